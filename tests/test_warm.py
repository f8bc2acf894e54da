"""Compiling ahead: what `learn` calls is compiled, and the process in the background leaves no trace but the cache."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from qubayes import warm
from qubayes.candidates import tolerance
from qubayes.candidates.example import example as example_of
from qubayes.cluster import Workers
from qubayes.families import well_formed
from qubayes.progress import COMPILING, Progress
from qubayes.solve.ready import TRIED


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


@pytest.mark.parametrize("cores", [1, 2, 4, 64])
def test_all_later_stages_are_compiled_in_the_background(cores, monkeypatch):
    started: list[tuple[str, ...]] = []
    monkeypatch.setattr(warm, "is_warm", lambda: False)
    monkeypatch.setattr(warm, "_started", lambda group: started.append(tuple(group)))
    monkeypatch.setattr(Workers, "count", cores)
    assert not warm.warm_in_background().processes
    assert [stage for group in started for stage in group] == ["subsets", "bits", "solve"]
    assert len(started) == (3 if cores >= 4 else 2)


def test_stages_are_compiled_in_turn():
    seconds: dict[str, float] = {}
    stages = ["data", "subsets", "bits", "solve"]
    warm.warm(stages, seconds.__setitem__)
    assert list(seconds) == stages and min(seconds.values()) > 0
    assert warm.is_warm()
    assert not warm.warm_in_background().processes


def test_what_tells_that_a_machine_is_warm_was_compiled():
    """In a fresh process: here other tests may have called the same kernels."""
    script = (
        "from qubayes import warm\n"
        "warm.warm([stage for group in warm.GROUPS_OF_TWO_CORES for stage in group])\n"
        "print([kernel.__name__ for kernel in warm._last_kernels() if not kernel.signatures])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.skipif(not hasattr(os, "getppid"), reason="needs the number of the parent process")
def test_background_fills_the_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(warm, "is_warm", lambda: False)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    warming = warm.warm_in_background([("data",)])
    told: list[Progress] = []
    warming.wait("formulation", told.append)  # nobody works on it
    assert not told
    warming.wait("data", told.append)
    warming.wait("data", told.append)
    assert told == [COMPILING]
    (process,) = warming.processes.values()
    assert process.wait(60) == 0
    assert [path for path in tmp_path.rglob("*.nbi") if "_scan" in path.name]


@pytest.mark.skipif(sys.platform == "win32", reason="processes have no parents there")
def test_background_ends_with_its_parent(tmp_path):
    script = (
        "from qubayes import warm\n"
        "warm.is_warm = lambda: False\n"
        "(process,) = warm.warm_in_background([('formulation',)]).processes.values()\n"
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
from qubayes.formulation import formulate
from qubayes.solve import Limits, solve
from qubayes.solve.ready import TRIED, make_ready
from qubayes.subsets import cover

def loaded():
    kernels = [each for each in gc.get_objects() if isinstance(each, Dispatcher)]
    return {(each.__module__, each.__name__, str(types)) for each in kernels for types in each.overloads}

candidates, late = example(20), {}
formulation = formulate(candidates, cover(candidates))
for name in TRIED:
    make_ready(name)
    before = loaded()
    solve(formulation, name, limits=Limits(0.3))
    late[name] = sorted(name for module, name, types in loaded() - before if module.startswith("qubayes.solve"))
print(json.dumps(late))
"""
