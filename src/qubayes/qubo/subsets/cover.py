"""Covering of candidate parent sets by as few candidate parent subsets as can be found."""

import math
import time
from collections.abc import Generator, Sequence
from contextlib import closing

import numpy as np

from ...candidates import Candidates
from ...foundation.arrays import frozen
from ...foundation.errors import SettingError
from ...foundation.families import Families
from ...foundation.progress import OnProgress, Progress, silent, stopping
from ...foundation.workers import Workers, run
from .instance import SetSystem, sets_to_cover
from .methods import METHODS, Budget, Covered, CoverTask, cover_system, themselves
from .subsets import Subsets

SMALL = 1000  # elements of all sets of a vertex, below which threads do not pay


def cover(
    candidates: Candidates,
    *,
    method: str = "auto",
    budget: Budget | None = None,
    seed: int = 0,
    workers: Workers | None = None,
    on_progress: OnProgress = silent,
) -> Subsets:
    """Return for each vertex the fewest subsets found whose unions of two give every candidate set (Definition 6).

    `ilp-only` is the paper's integer program over all subsets, `ilp` the same after Algorithm 2, `search` a local
    search after exact reductions, `auto` the best of reductions, closed form, search and integer program, with lower
    bounds. Interrupted, it returns the covers found so far; a vertex that was not reached keeps its candidate sets.

    >>> from qubayes.candidates.example import example
    >>> candidates = example()
    >>> subsets = cover(candidates)
    >>> subsets.total < candidates.total, bool(subsets.proved.all())
    (True, True)
    """
    if method not in METHODS:
        raise SettingError(f"cover method {method!r} is unknown; choose one of {', '.join(METHODS)}")
    began = time.perf_counter()
    systems = [sets_to_cover(candidates.families, vertex) for vertex in range(candidates.n)]
    distinct, which = _distinct(systems)
    task = CoverTask(method, budget or Budget(), seed, np.zeros(1, dtype=np.bool_))
    results, status = _cover_all(distinct, task, workers or Workers(), on_progress)
    named = [systems[vertex].named(results[which[vertex]].sets) for vertex in range(candidates.n)]
    bounds = np.array([results[index].lower_bound for index in which], dtype=np.int64)
    seconds = time.perf_counter() - began
    preparing = math.fsum(result.preparing for result in results)
    solving = math.fsum(result.seconds for result in results) - preparing
    return Subsets(
        candidates.names, Families.of(named), frozen(bounds), method, seconds, status, preparing, max(0.0, solving)
    )


def _distinct(systems: Sequence[SetSystem]) -> tuple[list[SetSystem], list[int]]:
    """Return the set systems that differ, and the number of each one among them: identical columns share their work."""
    found: dict[tuple[bytes, bytes], int] = {}
    keys = [(system.sizes.tobytes(), system.members.tobytes()) for system in systems]
    which = [found.setdefault(key, len(found)) for key in keys]
    first = {index: vertex for vertex, index in reversed(list(enumerate(which)))}
    return [systems[first[index]] for index in range(len(found))], which


def _cover_all(
    systems: list[SetSystem], task: CoverTask, workers: Workers, on_progress: OnProgress
) -> tuple[list[Covered], str]:
    """Return a cover of each set system and the status. The largest come first: no core idles at the end."""
    order = sorted(range(len(systems)), key=lambda index: -len(systems[index].members))
    results = [themselves(system) for system in systems]
    total, done = float(sum(1 + len(system.members) for system in systems)), 0.0
    try:
        with stopping(task.stop), closing(_run(task, [systems[i] for i in order], workers)) as finished:
            for number, (place, result) in enumerate(finished):
                results[order[place]] = result
                done += 1 + len(systems[order[place]].members)
                on_progress(Progress("subsets", done, total, f"{number + 1} of {len(systems)} vertices"))
                if task.stop[0] and workers.cluster is not None:  # workers elsewhere do not see the flag
                    break
    except KeyboardInterrupt:  # a second one, or one that `on_progress` raises
        task.stop[0] = True
    return results, "interrupted; the best covers found so far are returned" if task.stop[0] else "finished"


def _run(task: CoverTask, systems: list[SetSystem], workers: Workers) -> Generator[tuple[int, Covered], None, None]:
    """Yield each set system's place and cover, as they finish; systems are given from large to small.

    Small ones take a millisecond, most of it outside of kernels, where threads only wait for each other: two took
    0.45 s for andes, m = 3, and one 0.35 s. So one thread does them at the end.
    """
    sizes = [len(system.members) for system in systems]
    shared = workers.cluster is not None or task.method not in ("auto", "search")
    large = len(sizes) if shared else sum(size >= SMALL for size in sizes)
    yield from run(cover_system, task, systems[:large], workers)
    for place, result in run(cover_system, task, systems[large:], Workers(1)):
        yield large + place, result
