"""Compiled kernels are kept on disk, and used while all that they were made from is the same."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import config, njit

from qubayes.foundation import jit

# A package outside this one, and a module that it imports absolutely.
FILES = {
    "plug/__init__.py": "",
    "plug/kernels.py": """
import other
import plug.sizes as sizes
from qubayes.foundation.jit import inner, kernel
from .parts import LIMIT, Pair, add

@kernel
def run(x):
    "A docstring, which -OO removes."
    pair = Pair(add(x), later(x))
    return pair.first + pair.second + LIMIT + other.more(x) + sizes.SIZE

@inner
def later(x):
    return 1000 * x
""",
    "plug/parts.py": """
from collections import namedtuple
from qubayes.foundation.jit import inner
from other import deep

LIMIT = 100
Pair = namedtuple("Pair", "first second")

@inner
def add(x):
    return deep(x) + 5
""",
    "plug/sizes.py": "SIZE = 10000\n",
    "other.py": """
from qubayes.foundation.jit import allocating_kernel, inner

@inner
def deep(x):
    return x

def made(step):
    @inner
    def made_inside(x):
        return x * step
    return made_inside

more = made(20)
""",
}
PROGRAM = """
from qubayes.foundation.jit import is_compiled
from plug.kernels import run
before = is_compiled(run)
print(run(1), sum(run.stats.cache_hits.values()), before, is_compiled(run))
"""


@pytest.fixture
def run_plug_in(tmp_path, monkeypatch):
    """Run the plug-in with texts of its files replaced: (result, whether the kernel was on disk)."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))

    def run(*flags, name="", old="", new="") -> tuple[int, bool]:
        for path, text in FILES.items():
            place = tmp_path / path
            place.parent.mkdir(exist_ok=True)
            assert path != name or old in text
            place.write_text(text.replace(old, new) if path == name else text)
        command = [sys.executable, "-B", *flags, "-c", PROGRAM]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        result, hits, before, after = done.stdout.split()
        assert (before, after) == (str(hits == "1"), "True")
        return int(result), hits == "1"

    return run


def test_a_change_in_a_module_of_a_plug_in_counts(run_plug_in):
    first = 1 + 5 + 1000 + 100 + 20 + 10000
    assert run_plug_in() == (first, False)
    assert run_plug_in() == (first, True)
    changes = [
        ("plug/parts.py", "LIMIT = 100", "LIMIT = 200", 100),
        ("plug/parts.py", "+ 5", "+ 7", 2),
        ("plug/sizes.py", "10000", "20000", 10000),
        ("plug/kernels.py", "1000 * x", "3000 * x", 2000),  # a function below the kernel
        # a function that a function of another module calls
        ("other.py", "return x\n", "return x + 100\n", 100),
        # a value that a function keeps from where it was made
        ("other.py", "made(20)", "made(30)", 10),
    ]
    for name, old, new, more in changes:
        assert run_plug_in(name=name, old=old, new=new) == (first + more, False), (name, old)
    assert run_plug_in() == (first, True)  # that of the earlier state of the modules is still there
    assert run_plug_in(
        name="other.py", old="@inner\ndef deep", new="# Words.\n@inner\ndef deep"
    ) == (first, True)
    inlined = run_plug_in(name="other.py", old="allocating_kernel, inner", new="inlined as inner")
    assert inlined == (first, False)
    assert run_plug_in("-OO") == (first, False)
    assert run_plug_in() == (first, True)


def test_an_import_makes_no_folder_and_no_kernel_counts_as_compiled(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    program = """
import qubayes
from qubayes.foundation.jit import is_compiled
from qubayes.candidates.scanning import scan_prefixes
qubayes.learn
print(is_compiled(scan_prefixes))
"""
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        )
        assert done.stdout == "False\n" and not (tmp_path / "cache").exists()


def test_kernels_are_kept_outside_the_package_and_the_setting_of_numba_is_restored(empty_cache):
    def plain(x):
        return x + 1

    compiled = jit.kernel(plain)
    assert compiled(1) == 2 and jit.is_compiled(compiled)
    assert str(empty_cache) == config.CACHE_DIR
    assert Path(compiled.stats.cache_path).is_relative_to(empty_cache / "qubayes")


@pytest.mark.usefixtures("empty_cache")
def test_a_folder_without_a_compiled_form_is_not_a_compiled_kernel():
    def plain(x):
        return x + 2

    made = jit.kernel(plain)
    made._cache.folder.mkdir(parents=True)
    assert not jit.is_compiled(made)


@pytest.mark.usefixtures("empty_cache")
def test_numba_leaves_out_what_the_options_say():
    """A new version of numba may ignore options that it does not document."""

    @jit.inner
    def first(x):
        return 2 * x[0]

    @jit.kernel
    def plain(x):
        return first(x)

    @jit.allocating_kernel
    def allocating(x):
        return x + 1

    def code_of(compiled):
        return "".join(compiled.inspect_llvm().values())

    plain(np.ones(3))
    allocating(np.ones(3))
    # references are counted where arrays are made; entries from C and from Python have these names
    for sign, in_plain in (("NRT_", False), ("@cfunc.", False), ("define ptr @_ZN7cpython", True)):
        assert (sign in code_of(plain)) == in_plain
        assert sign in code_of(allocating)
    only_called = njit("float64(float64[:])", **first.jit_options)(first)
    assert "NRT_" not in code_of(only_called) and "7cpython" not in code_of(only_called)


@pytest.mark.usefixtures("empty_cache")
def test_compilations_are_told_once_each():
    told = []

    @jit.inner
    def called(x):
        return x + 2

    @jit.kernel
    def calls(x):
        return called(x)

    with jit.compilations(told.append):
        assert not told
        calls(1)
        calls(2)
    calls(1.0)
    assert told == [True, False]
