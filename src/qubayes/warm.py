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
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .cluster import Workers
from .progress import COMPILING, OnProgress, silent

if TYPE_CHECKING:
    from .candidates import Candidates
    from .subsets import Subsets

STAGES = ("data", "candidates", "subsets", "bits", "formulation", "solve")
# What `learn` needs besides: compiled while the data are read and the candidates searched, each group by a process.
GROUPS_OF_TWO_CORES = (("subsets", "bits"), ("solve",))
GROUPS_OF_FOUR_CORES = (("subsets",), ("bits",), ("solve",))


class Warming:
    """Processes that compile kernels of later stages, and tell of each stage when it is done."""

    def __init__(self, groups: Sequence[Sequence[str]]) -> None:
        self.processes = {tuple(group): process for group in groups if (process := _started(group)) is not None}
        self._done: set[str] = set()

    def wait(self, stage: str, on_progress: OnProgress = silent) -> None:
        """Return when the stage is compiled, or nobody works on it: then this process will compile it itself."""
        for group, process in self.processes.items():
            if stage in group and stage not in self._done:
                on_progress(COMPILING)
            while stage in group and stage not in self._done and (line := _line_of(process)):
                self._done.add(line)


def warm_in_background(groups: Sequence[Sequence[str]] | None = None) -> Warming:
    """Processes that compile these stages' kernels, those of `learn` unless given; none if they were compiled before.

    They run with low priority, read and write nothing but the cache, and end with this process.
    """
    if is_warm():
        return Warming(())
    usual = GROUPS_OF_FOUR_CORES if Workers().count >= 4 else GROUPS_OF_TWO_CORES
    return Warming(usual if groups is None else groups)


def _started(stages: Sequence[str]) -> "subprocess.Popen[bytes] | None":
    nothing, command = subprocess.DEVNULL, [sys.executable, "-P", "-m", "qubayes.warm", str(os.getpid()), *stages]
    with suppress(OSError):
        return subprocess.Popen(command, stdin=nothing, stdout=subprocess.PIPE, stderr=nothing, start_new_session=True)
    return None


def _line_of(process: "subprocess.Popen[bytes]") -> str:
    """What the process says next; nothing if it has ended."""
    assert process.stdout is not None
    return process.stdout.readline().decode().strip()


def is_warm() -> bool:
    """Whether this machine has compiled what `learn` needs before; True if that cannot be told."""
    with suppress(Exception):  # the cache is no part of numba's interface
        return all(kernel._cache._cache_file._load_index() for kernel in _last_kernels())
    return True


def _last_kernels() -> tuple[Any, ...]:
    """A kernel of each group that no run of `learn` does without: the last of its stage to be compiled."""
    from .formulation.closure import _pair_gains
    from .solve.clusters import _search_clusters
    from .subsets.tree import _grow

    return _grow, _pair_gains, _search_clusters


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
    from .candidates.example import example
    from .subsets import cover

    cover(example())


def _warm_bits() -> None:
    """Without the kernels of `cover`, which another process may be compiling."""
    from .candidates.example import example
    from .formulation import count_bits

    candidates = example()
    count_bits(candidates, _parts_of(candidates))


def _warm_formulation() -> None:
    from .candidates.example import example
    from .formulation import best_sets, decode, encode_sets, formulate

    candidates = example()
    formulation = formulate(candidates, _parts_of(candidates))
    decode(formulation, encode_sets(formulation, best_sets(formulation, list(range(candidates.n)))))


def _parts_of(candidates: "Candidates") -> "Subsets":
    """All parts of one or two members of the candidate sets, which have three at most: two of them give each set."""
    from itertools import combinations

    import numpy as np

    from .families import Families
    from .subsets import Subsets

    lists = [
        sorted({part for chosen, _ in candidates.of(vertex) for size in (1, 2) for part in combinations(chosen, size)})
        for vertex in range(candidates.n)
    ]
    return Subsets(candidates.names, Families.of(lists), np.zeros(candidates.n, np.int64), "auto", 0.0)


def _warm_solve() -> None:
    from .solve.ready import make_ready

    make_ready("auto")


_WARMERS: dict[str, Callable[[], None]] = {
    "data": _warm_data,
    "candidates": _warm_candidates,
    "subsets": _warm_subsets,
    "bits": _warm_bits,
    "formulation": _warm_formulation,
    "solve": _warm_solve,
}


def _end_with(parent: int) -> None:
    """End this process soon after its parent has."""
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(0)


def _in_background(parent: int, stages: Sequence[str]) -> None:
    with suppress(AttributeError, OSError):
        os.nice(5)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    warm(stages, _tell)


def _tell(stage: str, _: float) -> None:
    with suppress(OSError):  # nobody listens any more
        print(stage, flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _in_background(int(sys.argv[1]), sys.argv[2:])
    else:
        warm(on_stage=lambda stage, seconds: print(f"{stage}: {seconds:.1f} s", flush=True))
