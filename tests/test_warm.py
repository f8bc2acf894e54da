"""Compiling ahead: what `learn` calls is compiled, and the process in the background leaves no trace but the cache."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from qubayes import warm
from qubayes.candidates import tolerance
from qubayes.families import well_formed


def test_the_example_is_what_candidates_promise():
    example = warm.example()
    assert well_formed(example.families)
    for vertex in range(example.n):
        sets = list(example.of(vertex))
        scores = dict(sets)
        assert sets == sorted(sets, key=lambda item: (-item[1], len(item[0]), item[0])) and sets[-1][0] == ()
        for chosen, score in sets:
            below = [scores[other] for other in scores if set(other) < set(chosen)]
            assert all(score > other + tolerance(scores[()]) for other in below)


def test_stages_are_compiled_in_turn():
    seconds = warm.warm(("data", "formulation"))
    assert list(seconds) == ["data", "formulation"] and min(seconds.values()) > 0
    assert warm.is_warm()
    assert warm.warm_in_background() is None


@pytest.mark.skipif(not hasattr(os, "getppid"), reason="needs the number of the parent process")
def test_background_fills_the_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(warm, "is_warm", lambda: False)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    process = warm.warm_in_background(("data",))
    assert process is not None and process.wait(60) == 0
    assert [path for path in tmp_path.rglob("*.nbi") if "_scan" in path.name]


@pytest.mark.skipif(sys.platform == "win32", reason="processes have no parents there")
def test_background_ends_with_its_parent(tmp_path):
    script = (
        "from qubayes import warm\n"
        "warm.is_warm = lambda: False\n"
        "print(warm.warm_in_background().pid)\n"  # and ends while the other has only begun
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
