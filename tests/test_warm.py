"""Compiling ahead: what `learn` calls is compiled, and the process in the background leaves no trace but the cache."""

import json
import os
import queue
import subprocess
import sys
import time
from pathlib import Path

import pytest

from qubayes import warm
from qubayes.candidates import tolerance
from qubayes.candidates.example import example as example_of
from qubayes.foundation.families import well_formed
from qubayes.foundation.progress import COMPILING
from qubayes.foundation.workers import Workers
from qubayes.search.ready import TRIED


@pytest.mark.parametrize("vertices", [8, 16])
def test_the_example_is_what_candidates_promise(vertices):
    example = example_of(vertices)
    assert well_formed(example.families)
    for vertex in range(example.n):
        sets = list(example.of(vertex))
        scores = dict(sets)
        assert sets == sorted(sets, key=lambda item: (-item[1], len(item[0]), item[0])) and sets[-1][0] == ()
        for chosen, score in sets:
            below = [scores[other] for other in scores if set(other) < set(chosen)]
            assert all(score > other + tolerance(scores[()]) for other in below)


class Pretended:
    """A process that answers to each stage when it is told to, and notes them."""

    def __init__(self) -> None:
        self.asked: queue.Queue[str] = queue.Queue()
        self.answers: queue.Queue[bytes] = queue.Queue()
        self.stdin = self.stdout = self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.asked.put("closed")

    def write(self, line: bytes) -> None:
        self.asked.put(line.decode().strip())

    def flush(self) -> None:
        pass

    def readline(self) -> bytes:
        return self.answers.get()


@pytest.fixture
def pretended(monkeypatch):
    started: list[Pretended] = []

    def start():
        started.append(Pretended())
        return started[-1]

    monkeypatch.setattr(warm, "is_warm", lambda: False)
    monkeypatch.setattr(warm, "_started", start)
    return started


@pytest.mark.parametrize(("cores", "processes"), [(1, 1), (2, 1), (3, 2), (4, 3), (64, 3)])
def test_processes_take_the_later_stages_in_turn(cores, processes, pretended, monkeypatch):
    monkeypatch.setattr(Workers, "count", cores)
    warm.warm_in_background()
    assert len(pretended) == processes
    taken = [process.asked.get(timeout=5) for process in pretended]
    for _ in range(len(warm.LATER) - processes):
        pretended[0].answers.put(b"done\n")
        taken.append(pretended[0].asked.get(timeout=5))
    assert sorted(taken) == sorted(warm.LATER) and taken[0] == warm.LATER[0]
    pretended[0].answers.put(b"done\n")
    assert pretended[0].asked.get(timeout=5) == "closed"


def test_who_waits_compiles_what_nobody_has_begun(pretended, monkeypatch):
    compiled: list[str] = []

    def compile_here(stages):
        compiled.extend(stages)
        pretended[0].answers.put(b"done\n")

    monkeypatch.setattr(Workers, "count", 2)
    monkeypatch.setattr(warm, "warm", compile_here)
    warming, told = warm.warm_in_background(["one", "two", "three"]), []
    assert pretended[0].asked.get(timeout=5) == "one"
    warming.wait(["unknown"], told.append)  # nobody works on it
    warming.wait(["two"], told.append)  # nobody has begun: it is compiled when it is used
    assert not told and not compiled
    warming.wait(["one"], told.append)
    assert told[0] is COMPILING and compiled == ["three"]
    warming.wait(["one", "two", "three"], told.append)
    assert pretended[0].asked.get(timeout=5) == "closed" and compiled == ["three"]


def test_a_process_that_ends_keeps_nobody_waiting(pretended, monkeypatch):
    monkeypatch.setattr(Workers, "count", 2)
    monkeypatch.setattr(warm, "warm", lambda stages: None)
    warming = warm.warm_in_background(["one", "two"])
    pretended[0].answers.put(b"")
    warming.wait(["one", "two"])
    assert [pretended[0].asked.get(timeout=5) for _ in range(2)] == ["one", "closed"]


def test_a_process_that_cannot_be_told_keeps_nobody_waiting(pretended, monkeypatch):
    def fail(line):
        raise BrokenPipeError

    monkeypatch.setattr(Workers, "count", 2)
    monkeypatch.setattr(Pretended, "write", lambda self, line: fail(line))
    monkeypatch.setattr(warm, "warm", lambda stages: None)
    warm.warm_in_background(["one", "two"]).wait(["one", "two"])
    assert pretended[0].asked.get(timeout=5) == "closed"


def test_what_fails_here_keeps_nobody_waiting(pretended, monkeypatch):
    def fail(stages):
        raise KeyboardInterrupt

    monkeypatch.setattr(Workers, "count", 2)
    monkeypatch.setattr(warm, "warm", fail)
    warming = warm.warm_in_background(["one", "two"])
    assert pretended[0].asked.get(timeout=5) == "one"
    with pytest.raises(KeyboardInterrupt):
        warming.wait(["one"])
    warming.wait(["two"])
    pretended[0].answers.put(b"one\n")
    warming.wait(["one"])


def test_the_data_stage_compiles_the_scanner():
    script = "from qubayes import warm; from qubayes.data.text import _scan as scan; warm.warm(['data']); "
    script += "print(len(scan.signatures))"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "1\n"


def test_stages_are_compiled_in_turn():
    seconds: dict[str, float] = {}
    stages = ["data", *warm.LATER]
    warm.warm(stages, seconds.__setitem__)
    assert list(seconds) == stages and min(seconds.values()) > 0
    assert warm.is_warm()
    assert not warm.warm_in_background().processes


def test_learn_finds_its_kernels_compiled():
    """In a fresh process: here other tests may have called the same kernels."""
    done = subprocess.run([sys.executable, "-c", LEARN_AFTER_WARMING], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [[], []]


LEARN_AFTER_WARMING = """
import gc, json
from numba.core.dispatcher import Dispatcher
from qubayes import warm
warm.warm(("candidates", *warm.LATER))
untouched = [kernel.__name__ for kernel in warm._last_kernels() if not kernel.signatures]

def loaded():
    kernels = [each for each in gc.get_objects() if isinstance(each, Dispatcher)]
    return {f"{each.__module__}.{each.__name__} {types}" for each in kernels for types in each.overloads}

import numpy as np, qubayes
from qubayes.data import Dataset
codes = np.random.default_rng(1).integers(3, size=(9, 300)).astype(np.uint8)
codes[1:] = np.where(codes[1:] == 2, codes[:-1], codes[1:])
before = loaded()
result = qubayes.learn(Dataset(tuple("abcdefghi"), (tuple("012"),) * 9, codes), max_parents=3)
assert result.solution.proved and result.network.edges > 5
print(json.dumps([untouched, sorted(name for name in loaded() - before if name.startswith("qubayes"))]))
"""


@pytest.mark.skipif(not hasattr(os, "getppid"), reason="needs the number of the parent process")
def test_background_fills_the_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(warm, "is_warm", lambda: False)
    monkeypatch.setattr(Workers, "count", 2)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    warming, told = warm.warm_in_background(["order"]), []
    deadline = time.monotonic() + 60
    while not list(tmp_path.rglob("*.nbi")) and time.monotonic() < deadline:  # it has not begun
        time.sleep(0.05)
    warming.wait(["order"], told.append)
    warming.wait(["order"], told.append)
    assert told in ([COMPILING], [])
    (process,) = warming.processes
    assert process.wait(60) == 0
    assert [path for path in tmp_path.rglob("*.nbi") if "_anneal" in path.name]


@pytest.mark.skipif(sys.platform == "win32", reason="processes have no parents there")
def test_background_ends_with_its_parent(tmp_path):
    script = (
        "from qubayes import warm\n"
        "warm.is_warm = lambda: False\n"
        "process, *_ = warm.warm_in_background(['formulation']).processes\n"
        "print(process.pid)\n"  # and ends while the other has only begun
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    deadline = time.monotonic() + 30
    while _runs(int(done.stdout)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not _runs(int(done.stdout))
    assert not [path for path in tmp_path.rglob("*.nbi") if "_mirror" in path.name]


def _runs(pid: int) -> bool:
    """Whether the process is alive; in a container nobody may have fetched its exit status yet."""
    try:
        os.kill(pid, 0)
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except ProcessLookupError:
        return False
    except FileNotFoundError:  # no Linux, or gone between the two
        return not Path("/proc/self").exists()


def test_a_time_limit_is_for_searching():
    """In a fresh process each solver, once ready, finds every kernel loaded."""
    done = subprocess.run([sys.executable, "-c", LOOK_FOR_KERNELS], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {name: [] for name in TRIED}


LOOK_FOR_KERNELS = """
import gc, json
from numba.core.dispatcher import Dispatcher
from qubayes.candidates.example import example
from qubayes.qubo import formulate
from qubayes.search import Limits, solve
from qubayes.search.ready import TRIED, make_ready
from qubayes.qubo.subsets import cover

def loaded():
    kernels = [each for each in gc.get_objects() if isinstance(each, Dispatcher)]
    return {(each.__module__, each.__name__, str(types)) for each in kernels for types in each.overloads}

candidates, late = example(20), {}
formulation = formulate(candidates, cover(candidates))
for name in TRIED:
    make_ready(name)
    before = loaded()
    solve(formulation, name, limits=Limits(0.3))
    late[name] = sorted(name for module, name, types in loaded() - before if module.startswith("qubayes.search"))
print(json.dumps(late))
"""
