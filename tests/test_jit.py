"""Compiled kernels are kept on disk and used again only while everything that they were made from is the same."""

import subprocess
import sys

import pytest

from qubayes.foundation import jit

KERNEL = """
from {jit} import kernel
from .parts import LIMIT, add

@kernel
def run(x):
    "A docstring, which -OO removes."
    return add(x) + LIMIT
"""
PARTS = """
from {jit} import inner

LIMIT = {limit}

@inner
def add(x):
    return x + {more}
"""
PROGRAM = """
from pathlib import Path
from qubayes.foundation import jit
jit.PACKAGE = Path("package").absolute()
from package.kernels import run
print(run(1), sum(run.stats.cache_hits.values()))
"""


@pytest.mark.parametrize("change", [{"limit": 200}, {"more": 7}])
def test_a_change_in_an_imported_module_counts(tmp_path, monkeypatch, change):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "kernels.py").write_text(KERNEL.format(jit="qubayes.foundation.jit"))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))

    def run(*flags, limit=100, more=5) -> list[str]:
        (package / "parts.py").write_text(PARTS.format(jit="qubayes.foundation.jit", limit=limit, more=more))
        done = subprocess.run(
            [sys.executable, "-B", *flags, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return done.stdout.split()

    assert run() == ["106", "0"]
    assert run() == ["106", "1"]
    run("-OO")
    assert run("-OO") == ["106", "1"]
    assert run() == ["106", "1"]  # those of -OO are kept beside these
    changed = {"limit": 100, "more": 5} | change
    assert run(**changed) == [str(1 + changed["more"] + changed["limit"]), "0"]
    assert run() == ["106", "1"]  # the earlier state of the sources is still there


def test_kernels_are_kept_outside_the_package_and_the_setting_of_numba_is_restored():
    from numba import config

    before = config.CACHE_DIR
    compiled = jit.kernel(jit._folder.__wrapped__)  # decorated only, never called
    assert before == config.CACHE_DIR
    assert compiled.stats.cache_path.startswith(jit._folder("qubayes.foundation.jit"))
