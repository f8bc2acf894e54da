"""Compile the kernels of later stages while earlier ones still run, and all of them ahead of time.

numba compiles one function at a time in a process, so a second process does it and leaves the result in numba's cache
on disk, where this one finds it. Each file of the cache is replaced as a whole: two processes may write the same one.
`python -m qubayes.warm` compiles everything once, for images and clusters.
"""

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import combinations
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .candidates import Candidates

STAGES = ("data", "candidates", "subsets", "formulation", "solve")
LATER = STAGES[2:]  # what can be compiled while the data are read and the candidates searched
_VERTICES = 8


def warm_in_background(stages: Sequence[str] = LATER) -> "subprocess.Popen[bytes] | None":
    """A process that compiles these stages' kernels; None if they were compiled before, or it cannot be started.

    It runs with low priority, reads and writes nothing but the cache, and ends with this process.
    """
    if is_warm():
        return None
    nothing = subprocess.DEVNULL
    command = [sys.executable, "-m", "qubayes.warm", str(os.getpid()), *stages]
    with suppress(OSError):
        return subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True)
    return None


def is_warm() -> bool:
    """Whether this machine has compiled a formulation before; True if that cannot be told."""
    from .formulation.qubo import _mirror

    with suppress(Exception):  # the cache is no part of numba's interface
        return bool(_mirror._cache._cache_file._load_index())
    return True


def warm(stages: Sequence[str] = STAGES) -> dict[str, float]:
    """Seconds that each stage's kernels took to compile, or to load if they were compiled before."""
    seconds = {}
    for stage in stages:
        start = time.perf_counter()
        _WARMERS[stage]()
        seconds[stage] = time.perf_counter() - start
    return seconds


def _warm_data() -> None:
    from .data import read

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        path.write_text("a,b\n" + "x,y\nz,x\n" * 9)
        read(path)


def _warm_candidates() -> None:
    import numpy as np

    from .candidates import Search, identify
    from .cluster import Workers
    from .data import Dataset

    names = tuple("abcde")
    for states in (2, 3):  # rows as bits, and as labels
        codes = np.random.default_rng(0).integers(states, size=(len(names), 100)).astype(np.uint8)
        dataset = Dataset(names, (tuple("012"[:states]),) * len(names), codes)
        identify(dataset, Search(3), workers=Workers(1))


def _warm_subsets() -> None:
    from .subsets import cover

    cover(example())


def _warm_formulation() -> None:
    from .formulation import best_sets, decode, encode_sets, formulate
    from .subsets import cover

    candidates = example()
    formulation = formulate(candidates, cover(candidates))
    decode(formulation, encode_sets(formulation, best_sets(formulation, list(range(candidates.n)))))


def _warm_solve() -> None:
    from .formulation import formulate
    from .solve import Limits, solve, solver_named
    from .subsets import cover

    candidates = example()
    formulation = formulate(candidates, cover(candidates))
    for name in ("auto", "anneal"):  # the first proves this example before it has annealed
        solve(formulation, solver_named(name), limits=Limits(0.1))


_WARMERS: dict[str, Callable[[], None]] = {
    "data": _warm_data,
    "candidates": _warm_candidates,
    "subsets": _warm_subsets,
    "formulation": _warm_formulation,
    "solve": _warm_solve,
}


def example() -> "Candidates":
    """Candidate sets that are hard enough for every kernel to be called, made without one."""
    import numpy as np

    from .arrays import frozen
    from .candidates import Candidates
    from .families import Families

    random = np.random.default_rng(0)
    lists, scores = [], []
    for vertex in range(_VERTICES):
        others = [other for other in range(_VERTICES) if other != vertex]
        sets = [chosen for size in range(1, 4) for chosen in combinations(others, size) if random.random() < 0.5]
        best: dict[tuple[int, ...], float] = {(): -10.0}
        for chosen in sets:
            below = max((score for known, score in best.items() if set(known) < set(chosen)), default=-inf)
            best[chosen] = below + float(random.random())
        ordered = sorted(best.items(), key=lambda item: (-item[1], len(item[0]), item[0]))
        lists.append([chosen for chosen, _ in ordered])
        scores += [score for _, score in ordered]
    return Candidates(tuple("abcdefgh"[:_VERTICES]), Families.of(lists), frozen(np.array(scores)))


def _end_with(parent: int) -> None:
    """End this process soon after its parent has."""
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(0)


def _in_background(parent: int, stages: Sequence[str]) -> None:
    with suppress(AttributeError, OSError):
        os.nice(5)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    warm(stages)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _in_background(int(sys.argv[1]), sys.argv[2:])
    else:
        for name, took in warm().items():
            print(f"{name}: {took:.1f} s")
