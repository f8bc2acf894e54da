"""The verb of the stage: candidate parent subsets, as few as can be found."""

import math
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...candidates import Candidates
from ...foundation.arrays import Bools, frozen
from ...foundation.errors import SettingError
from ...foundation.families import Families, VertexSet
from ...foundation.progress import OnProgress, Progress, silent
from ...foundation.workers import Workers, run
from .family import Family, family_of
from .subsets import Subsets

METHODS = ("auto", "search", "ilp", "ilp-only")
SMALL = 1000  # elements of all sets of a family, below which threads do not pay


@dataclass(frozen=True, slots=True)
class Budget:
    """How much work one vertex may cost. Work and rounds are counts, so that results do not depend on the machine."""

    seconds: float = 60.0  # for the integer program; the paper's limit
    effort: float = 1.0  # multiplies the work of the search
    rounds: int = 6  # of cuts for the lower bound
    program: int = 60  # columns of the largest core that `auto` gives to the integer program; 400 proves more, slowly

    def __post_init__(self) -> None:
        if not (self.seconds > 0 and self.effort > 0 and self.rounds >= 0 and self.program >= 0):
            raise SettingError(f"{self}; seconds and effort must be positive, rounds and program not negative")


class Covered(NamedTuple):
    """A verified cover of one family."""

    sets: list[VertexSet]  # over the family's elements
    lower_bound: int
    preparing: float = 0.0  # seconds of reducing, and of setting up a program
    seconds: float = 0.0  # in all


class Task(NamedTuple):
    """What all vertices share."""

    method: str
    budget: Budget
    seed: int
    stop: Bools  # (1,) set when the user interrupts


def cover(
    candidates: Candidates,
    *,
    method: str = "auto",
    budget: Budget | None = None,
    seed: int = 0,
    workers: Workers | None = None,
    on_progress: OnProgress = silent,
) -> Subsets:
    """For each vertex the smallest family found whose unions of two give every candidate set (Definition 6, design §6).

    `ilp-only` is the paper's integer program over all subsets, `ilp` the same after Algorithm 2, `search` a local
    search after exact reductions, `auto` the best of reductions, closed form, search and integer program, with lower
    bounds. Interrupted, it returns what it has; a vertex that was not reached gets its candidate sets themselves.

    >>> from qubayes.candidates.example import example
    >>> candidates = example()
    >>> subsets = cover(candidates)
    >>> subsets.total < candidates.total, bool(subsets.proved.all())
    (True, True)
    """
    if method not in METHODS:
        raise SettingError(f"cover method {method!r} is unknown; choose one of {', '.join(METHODS)}")
    began = time.perf_counter()
    families = [family_of(candidates.families, vertex) for vertex in range(candidates.n)]
    distinct, which = _distinct(families)
    task = Task(method, budget or Budget(), seed, np.zeros(1, dtype=np.bool_))
    results, status = _cover_all(distinct, task, workers or Workers(), on_progress)
    named = [families[vertex].named(results[which[vertex]].sets) for vertex in range(candidates.n)]
    bounds = np.array([results[index].lower_bound for index in which], dtype=np.int64)
    seconds = time.perf_counter() - began
    preparing = math.fsum(result.preparing for result in results)
    solving = math.fsum(result.seconds for result in results) - preparing
    return Subsets(
        candidates.names, Families.of(named), frozen(bounds), method, seconds, status, preparing, max(0.0, solving)
    )


def _distinct(families: Sequence[Family]) -> tuple[list[Family], list[int]]:
    """The families that differ, and which of them each one is: columns of the data that are copies share their work."""
    found: dict[tuple[bytes, bytes], int] = {}
    keys = [(family.sizes.tobytes(), family.members.tobytes()) for family in families]
    which = [found.setdefault(key, len(found)) for key in keys]
    first = {index: vertex for vertex, index in reversed(list(enumerate(which)))}
    return [families[first[index]] for index in range(len(found))], which


def _cover_all(
    families: list[Family], task: Task, workers: Workers, on_progress: OnProgress
) -> tuple[list[Covered], str]:
    """A cover of each family, and whether all were worked on. The largest come first: no core idles at the end."""
    order = sorted(range(len(families)), key=lambda index: -len(families[index].members))
    results = [themselves(family) for family in families]
    total, done = float(sum(1 + len(family.members) for family in families)), 0.0
    try:
        with _stopping(task.stop), _closing(_run(task, [families[i] for i in order], workers)) as finished:
            for number, (place, result) in enumerate(finished):
                results[order[place]] = result
                done += 1 + len(families[order[place]].members)
                on_progress(Progress("subsets", done, total, f"{number + 1} of {len(families)} families"))
    except KeyboardInterrupt:
        return results, "interrupted; the best covers found so far are returned"
    return results, "finished"


def _run(task: Task, families: list[Family], workers: Workers) -> Iterator[tuple[int, Covered]]:
    """Each family's place and cover, as they finish; the families are given from large to small.

    Small ones are settled in a millisecond, most of it outside of kernels, where threads only wait for each other: two
    took 0.45 s for andes, m = 3, and one 0.35 s. So one thread does them at the end.
    """
    sizes = [len(family.members) for family in families]
    shared = workers.cluster is not None or task.method not in ("auto", "search")
    large = len(sizes) if shared else sum(size >= SMALL for size in sizes)
    yield from run(cover_family, task, families[:large], workers)
    for place, result in run(cover_family, task, families[large:], Workers(1)):
        yield large + place, result


@contextmanager
def _closing(results: Iterator[tuple[int, Covered]]) -> Iterator[Iterator[tuple[int, Covered]]]:
    """The iterator, closed at the end of the block: what has not begun never begins."""
    try:
        yield results
    finally:
        getattr(results, "close", lambda: None)()


@contextmanager
def _stopping(stop: Bools) -> Iterator[None]:
    """While the block runs, an interrupt also sets stop[0], so that solvers in other threads end at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous: Any = signal.getsignal(signal.SIGINT)

    def handle(number: int, frame: Any) -> None:
        stop[0] = True
        if callable(previous):
            previous(number, frame)

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def cover_family(task: Task, family: Family) -> Covered:
    """A verified cover of one family by the task's method."""
    began = time.perf_counter()
    largest = int(family.sizes.max(initial=0))
    if largest <= 1:
        result = Covered(family.sets(), len(family.sizes))
    elif largest == 2 and task.method in ("auto", "search"):
        from .pairs import cover_pairs

        sets = cover_pairs(family)
        result = Covered(sets, len(sets))
    else:
        from . import vertex

        result = vertex.METHODS[task.method](task, family)
    return verified(family, result)._replace(seconds=time.perf_counter() - began)


def verified(family: Family, result: Covered) -> Covered:
    """The same result; a cover that misses a set is an error of this package and is never passed on."""
    from .verify import uncovered

    missing = np.flatnonzero(uncovered(family, result.sets))
    if len(missing) or result.lower_bound > len(result.sets):
        raise AssertionError(
            f"internal error: {len(missing)} of {len(family.sizes)} candidate sets are not covered, "
            f"lower bound {result.lower_bound}, size {len(result.sets)}; please report it"
        )
    return result


def themselves(family: Family) -> Covered:
    """The sets of the family as their own cover."""
    return Covered(family.sets(), counting_bound(len(family.sizes)))


def counting_bound(sets: int) -> int:
    """The least k with k (k + 1) / 2 >= sets: k members have no more unions of at most two."""
    root = (math.isqrt(8 * sets + 1) - 1) // 2
    return root if root * (root + 1) // 2 >= sets else root + 1
