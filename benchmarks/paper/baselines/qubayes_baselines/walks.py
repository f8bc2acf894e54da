"""Walks on all threads, which the three searches over networks share.

A walk is a search that advances in slices of moves. Its result depends on its random stream and its
number of moves, not on the slices. Walks are independent of each other; the best network of all
wins."""

import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from qubayes.search.run import Ending, Run

WALKS = 4  # walks that share a limit of moves, for any number of threads
SLICE = 0.02  # seconds between two looks at the limits


class Pace(NamedTuple):
    """The part of the limit that is over when a slice begins, and the part that each of its moves takes."""

    done: float
    per_move: float


Advance: TypeAlias = Callable[[int, Pace], None]  # make this many moves, and offer what was found


def walk_all(run: Run, make: Callable[[int, np.random.SeedSequence], Advance]) -> Ending:
    """Make walks from a number and a seed, and advance them until the limit.

    With a time limit there is one walk for each thread. A limit of moves is shared by a fixed
    number of walks, so that the result does not depend on the threads."""
    walks = WALKS if run.moves is not None else run.workers.count
    seeds = np.random.SeedSequence(run.seed).spawn(walks)
    enough, made = threading.Event(), [0] * walks

    def walk(number: int) -> None:
        share = None if run.moves is None else (run.moves + walks - 1 - number) // walks
        advance, moves, seconds = make(number, seeds[number]), 1, 0.0
        whole = share or run.limits.seconds or math.inf  # moves or seconds
        while not run.over and not enough.is_set() and (share is None or made[number] < share):
            moves = moves if share is None else min(moves, share - made[number])
            done, each = (run.elapsed, seconds) if share is None else (made[number], 1.0)
            began = time.perf_counter()
            advance(moves, Pace(done / whole, each / whole))
            seconds = (time.perf_counter() - began) / moves
            made[number] += moves
            moves = max(1, min(2 * moves, int(min(SLICE, run.left) / max(seconds, 1e-9))))

    with ThreadPoolExecutor(min(walks, run.workers.count)) as pool:
        futures = [pool.submit(walk, number) for number in range(walks)]
        waiting: Any = set(futures)
        try:
            while waiting and not enough.is_set():
                done, waiting = wait(waiting, timeout=SLICE, return_when=FIRST_EXCEPTION)
                if run.proved or any(future.exception() for future in done):
                    enough.set()
                run.report(done=sum(made), total=run.moves)
        finally:  # also if the progress callback raises
            enough.set()
        for future in futures:
            future.result()
    status = (
        "time limit reached; best so far returned"
        if run.over
        else "all moves made; best so far returned"
    )
    if run.proved:
        status = "the bound was reached: proved optimal"
    total = sum(made)
    return Ending(
        status, {"moves": total, "walks": walks, "moves_per_second": round(total / run.elapsed)}
    )
