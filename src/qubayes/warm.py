"""Compile the kernels of later stages while earlier ones still run, and all of them ahead of time.

numba compiles one function at a time in a process, so other processes do it and leave the result in numba's cache on
disk, where this one finds it. Each file of the cache is replaced as a whole: two processes may write the same one.
`python -m qubayes.warm` compiles everything once, for images and clusters.
"""

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .foundation.progress import COMPILING, OnProgress, silent
from .foundation.workers import Workers

if TYPE_CHECKING:
    from .candidates import Candidates
    from .qubo.subsets import Subsets

STAGES = ("data", "candidates", "subsets", "exact", "order", "slack", "formulation", "solvers")
LATER = ("subsets", "exact", "order", "slack")  # what `learn` needs after the candidates, in that order
MOST_PROCESSES = 3


class Warming:
    """Stages that processes in the background compile, one after the other, while this one does the first itself."""

    def __init__(self, stages: Sequence[str], count: int) -> None:
        self._waiting, self._done = deque(stages), {stage: threading.Event() for stage in stages}
        self.processes = [process for _ in range(count) if (process := _started()) is not None]
        for process in self.processes:
            threading.Thread(target=self._feed, args=(process,), daemon=True).start()

    def _feed(self, process: "subprocess.Popen[bytes]") -> None:
        """Give the process one stage after the other until none is waiting."""
        assert process.stdin is not None and process.stdout is not None
        with suppress(OSError), process.stdin:
            while stage := self._next():
                try:
                    process.stdin.write(f"{stage}\n".encode())
                    process.stdin.flush()
                    answer = process.stdout.readline()
                finally:
                    self._done[stage].set()  # if the process has ended, whoever needs the stage compiles it
                if not answer:
                    break

    def _next(self) -> str:
        with suppress(IndexError):
            return self._waiting.popleft()
        return ""

    def wait(self, stages: Sequence[str], on_progress: OnProgress = silent) -> None:
        """Return when each stage is compiled, or nobody works on it: then this process will, or does so meanwhile."""
        for stage in (stage for stage in stages if stage in self._done):
            with suppress(ValueError):
                self._waiting.remove(stage)
                self._done[stage].set()
            while not self._done[stage].is_set():
                on_progress(COMPILING)
                if other := self._next():
                    try:
                        warm((other,))
                    finally:
                        self._done[other].set()
                else:
                    self._done[stage].wait()


def warm_in_background(stages: Sequence[str] = LATER) -> Warming:
    """Processes that compile these stages' kernels, those of `learn` unless given; none if they were compiled before.

    They run with low priority, read and write nothing but the cache, and end with this process.
    """
    if is_warm():
        return Warming((), 0)
    return Warming(stages, max(1, min(MOST_PROCESSES, Workers().count - 1)))


def _started() -> "subprocess.Popen[bytes] | None":
    pipe, command = subprocess.PIPE, [sys.executable, "-P", "-m", "qubayes.warm", str(os.getpid())]
    with suppress(OSError):
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, start_new_session=True)
    return None


def is_warm() -> bool:
    """Whether this machine has compiled what `learn` needs before; True if that cannot be told."""
    with suppress(Exception):  # the cache is no part of numba's interface
        return all(kernel._cache._cache_file._load_index() for kernel in _last_kernels())
    return True


def _last_kernels() -> tuple[Any, ...]:
    """The kernel of each stage that is compiled last, of those that most runs of `learn` need."""
    from .qubo.crowding import _third_gain
    from .qubo.elimination import _anneal
    from .qubo.subsets.tree import _grow
    from .search.exact.clusters import _search_clusters

    return _grow, _search_clusters, _anneal, _third_gain


def warm(stages: Sequence[str] = STAGES, on_stage: Callable[[str, float], None] = lambda stage, seconds: None) -> None:
    """Compile each stage's kernels, or load them if they were compiled before; tells how many seconds each took."""
    for stage in stages:
        start = time.perf_counter()
        _WARMERS[stage]()
        on_stage(stage, time.perf_counter() - start)


def _warm_data() -> None:
    from .data import read

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        path.write_text("a,b\n" + '"x",y\nz,x\n' * 9)  # with quotation marks, or no kernel would be asked
        read(path)


def _warm_candidates() -> None:
    import numpy as np

    from .candidates import Search, identify
    from .data import Dataset
    from .foundation.workers import Workers

    names = tuple("abcde")
    for states in (2, 3):  # rows as bits, and as labels
        codes = np.random.default_rng(0).integers(states, size=(len(names), 100)).astype(np.uint8)
        dataset = Dataset(names, (tuple("012"[:states]),) * len(names), codes)
        identify(dataset, Search(3), workers=Workers(1))


def _warm_subsets() -> None:
    from .candidates.example import example
    from .qubo.subsets import cover

    cover(example())


def _warm_order() -> None:
    from .candidates.example import example
    from .qubo.order import choose_order
    from .qubo.parents import relate

    choose_order(relate(example()), "chordal")


def _warm_slack() -> None:
    import numpy as np

    from .qubo.crowding import third_gain

    third_gain(np.zeros(3), np.zeros(3))


def _warm_formulation() -> None:
    from .candidates.example import example
    from .qubo import best_sets, decode, encode_sets, formulate
    from .qubo.closure import closure_gains, look_up_hashed, pair_gains_by_rests
    from .qubo.score_part import Problem

    candidates = example()
    formulation = formulate(candidates, _parts_of(candidates))
    decode(formulation, encode_sets(formulation, best_sets(formulation, list(range(candidates.n)))))
    problem = Problem.of(candidates, _parts_of(candidates))
    (sets, subsets), gains = problem.sets_of(0), problem.gains_of(0)
    singles = closure_gains(look_up_hashed(sets, subsets), gains)[:, -1]  # what only many sets need
    pair_gains_by_rests(sets, gains, subsets, singles.copy())


def _parts_of(candidates: "Candidates") -> "Subsets":
    """All parts of one or two members of the candidate sets, which have three at most: two of them give each set."""
    from itertools import combinations

    import numpy as np

    from .foundation.families import Families
    from .qubo.subsets import Subsets

    lists = [
        sorted({part for chosen, _ in candidates.of(vertex) for size in (1, 2) for part in combinations(chosen, size)})
        for vertex in range(candidates.n)
    ]
    return Subsets(candidates.names, Families.of(lists), np.zeros(candidates.n, np.int64), "auto", 0.0)


def _warm_exact() -> None:
    from .search.ready import make_ready

    make_ready("exact")


def _warm_solvers() -> None:
    from .search.ready import TRIED, make_ready

    for name in ("search", *TRIED):
        make_ready(name)


_WARMERS: dict[str, Callable[[], None]] = {
    "data": _warm_data,
    "candidates": _warm_candidates,
    "subsets": _warm_subsets,
    "exact": _warm_exact,
    "order": _warm_order,
    "slack": _warm_slack,
    "formulation": _warm_formulation,
    "solvers": _warm_solvers,
}


def _end_with(parent: int) -> None:
    """End this process soon after its parent has."""
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(0)


def _in_background(parent: int) -> None:
    """Compile the stages that are named on standard input, and tell of each."""
    with suppress(AttributeError, OSError):
        os.nice(5)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    with suppress(OSError):  # nobody listens any more
        for line in sys.stdin:
            warm([line.strip()])
            print(line, end="", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _in_background(int(sys.argv[1]))
    else:
        warm(on_stage=lambda stage, seconds: print(f"{stage}: {seconds:.1f} s", flush=True))
