"""Independent walks of one solver on all threads: each has its own random stream, the best network of all wins."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import Any, NamedTuple, Protocol

import numpy as np

from ...foundation.families import VertexSet
from ...foundation.graph import topological_order
from ..run import Ending, Run

RUNS = 4  # walks that share a limit of moves, whatever the number of threads
SLICE = 0.02  # seconds that a walk goes on for between looks at the limits


class Pace(NamedTuple):
    """How much of the limit is over when a slice begins, and how much each of its moves takes of it."""

    done: float
    per_move: float


class Walk(Protocol):
    """A search that goes on by slices. What it finds depends on its random stream and its moves, not on the slices."""

    def advance(self, moves: int, pace: Pace, /) -> None:
        """Make this many moves, and offer what was found."""


def walk_all(run: Run, make: Callable[[int, np.random.SeedSequence], Walk]) -> Ending:
    """Let walks made from a number and a seed go until the limit.

    With a limit of time there is one for each thread; a limit of moves is shared by a fixed number of walks, so that
    the result does not depend on the threads.
    """
    runs = RUNS if run.moves is not None else run.workers.count
    seeds = np.random.SeedSequence(run.seed).spawn(runs)
    enough, made = threading.Event(), [0] * runs

    def go(number: int) -> None:
        share = None if run.moves is None else (run.moves + runs - 1 - number) // runs
        for moves in _slices(make(number, seeds[number]), run, share, enough):
            made[number] += moves

    pool = ThreadPoolExecutor(min(runs, run.workers.count))
    try:
        walks = [pool.submit(go, number) for number in range(runs)]
        _watch(walks, run, enough, made)
        for walk in walks:
            walk.result()
    finally:
        enough.set()
        pool.shutdown(wait=True, cancel_futures=True)
    total = sum(made)
    return Ending(_sentence(run), {"moves": total, "walks": runs, "moves_per_second": round(total / run.elapsed)})


def _slices(walk: Walk, run: Run, share: int | None, enough: threading.Event) -> Iterator[int]:
    """Advance one walk until the limits, and yield the moves of each slice; they take about SLICE seconds."""
    made, moves, seconds = 0, 1, 0.0
    while not run.over and not enough.is_set() and (share is None or made < share):
        moves = moves if share is None else min(moves, share - made)
        began = time.perf_counter()
        walk.advance(moves, _pace(run, share, made, seconds))
        took = time.perf_counter() - began
        made, seconds = made + moves, took / moves
        yield moves
        moves = max(1, min(2 * moves, int(min(SLICE, run.left) / max(seconds, 1e-9))))


def _pace(run: Run, share: int | None, made: int, seconds: float) -> Pace:
    if share is not None:
        return Pace(made / share, 1.0 / share)
    limit = run.limits.seconds
    return Pace(0.0, 0.0) if limit is None else Pace(run.elapsed / limit, seconds / limit)


def _watch(walks: list[Future[None]], run: Run, enough: threading.Event, made: list[int]) -> None:
    """Report until all walks have ended; call them off once the best network is proved."""
    waiting: Any = set(walks)
    while waiting:
        done, waiting = wait(waiting, timeout=SLICE, return_when=FIRST_EXCEPTION)
        if run.proved or any(walk.exception() for walk in done):
            enough.set()
        if run.moves is None:
            run.report()
        else:
            run.report(done=sum(made), total=run.moves)


def _sentence(run: Run) -> str:
    if run.proved:
        return "the bound was reached: proved optimal"
    return "time limit reached; best so far returned" if run.over else "all moves made; best so far returned"


def random_order(parents: Sequence[VertexSet], seed: np.random.SeedSequence) -> tuple[int, ...]:
    """A random order in which parents come first. (The order of the columns would tell what their author knows.)"""
    names = np.random.default_rng(seed).permutation(len(parents)).tolist()
    vertex_of = dict(zip(names, range(len(parents)), strict=True))
    renamed = [[names[parent] for parent in parents[vertex_of[name]]] for name in range(len(parents))]
    return tuple(vertex_of[name] for name in topological_order(renamed))
