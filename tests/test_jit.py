"""A kernel that was kept on disk is used again only if all that went into it is still the same."""

import re
import subprocess
import sys

import numba
import numpy as np
import pytest
from numba import njit

from qubayes.foundation.compilers import TRIED, InnerLibrary
from qubayes.foundation.jit import leaf, part

KERNEL = """
from qubayes.foundation.jit import leaf
from .parts import LIMIT, add

@leaf
def run(x):
    return add(x) + LIMIT
"""
PARTS = """
from qubayes.foundation.jit import leaf, part

LIMIT = {limit}

@part
def add(x):
    return x + later(x)

@part
def later(x):
    return {more}
"""
PROGRAM = """
from package.kernels import run
print(run(1), sum(run.stats.cache_hits.values()))
"""


@pytest.mark.parametrize("change", [{"limit": 200}, {"more": 7}])
def test_what_a_kernel_calls_and_names_elsewhere_counts(tmp_path, change):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "kernels.py").write_text(KERNEL)

    def run(limit=100, more=5) -> list[str]:
        (package / "parts.py").write_text(PARTS.format(limit=limit, more=more))
        done = subprocess.run(
            [sys.executable, "-B", "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return done.stdout.split()

    assert run() == ["106", "0"]
    assert run() == ["106", "1"]
    changed = {"limit": 100, "more": 5} | change
    assert run(**changed) == [str(1 + changed["more"] + changed["limit"]), "0"]


OF_A_TYPE = """
from typing import NamedTuple
from qubayes.foundation.jit import leaf

class {name}(NamedTuple):
    x: int

@leaf
def run(pair):
    return pair.x + 1
"""


def run_of_a_type(folder, name: str) -> str:
    """What the kernel gives, and how often it was found on disk."""
    file, text = folder / "kernels.py", OF_A_TYPE.format(name=name)
    if not file.exists() or file.read_text() != text:  # older versions of numba look at the file's time
        file.write_text(text)
    program = f"from kernels import {name}, run; print(run({name}(4)), sum(run.stats.cache_hits.values()))"
    command = [sys.executable, "-B", "-c", program]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


def test_a_type_may_be_gone_after_an_upgrade(tmp_path):
    found = [run_of_a_type(tmp_path, name) for name in ("First", "First", "Second", "Second")]
    assert found == ["5 0", "5 1", "5 0", "5 1"]


def test_a_damaged_index_is_made_anew(tmp_path):
    assert run_of_a_type(tmp_path, "Pair") == "5 0"
    (index,) = tmp_path.rglob("*.nbi")
    index.write_bytes(index.read_bytes()[:-20])
    assert [run_of_a_type(tmp_path, "Pair") for _ in range(2)] == ["5 0", "5 1"]


def test_every_kernel_on_disk_is_stamped():
    from qubayes.candidates.prune import _survivors
    from qubayes.candidates.scanning import scan
    from qubayes.foundation.jit import Stamp
    from qubayes.machines.qubo import _energies
    from qubayes.quadratize.local_search import _search
    from qubayes.search.orders.hillclimb_scores import climb_data

    for kernel in (_survivors, scan, _energies, _search, climb_data):
        assert isinstance(kernel._cache._cache_file._source_stamp, Stamp)


@pytest.mark.skipif(numba.version_info.short > TRIED, reason="a newer numba: try it, and raise compilers.TRIED")
def test_what_only_kernels_call_is_compiled_with_them():
    @part
    def twice(x):
        return 2 * x

    @part
    def more(x, array):
        return twice(x) + array[0]

    compiled = njit(lambda x, array: more(x, array) + twice(x))
    assert compiled(3, np.array([5])) == 17
    for inner in (twice, more):
        (result,) = inner.overloads.values()
        assert isinstance(result.library, InnerLibrary)
        assert result.library._compiled_object is None  # LLVM emitted nothing
    with pytest.raises(KeyError):
        twice(3)


@pytest.mark.skipif(numba.version_info.short > TRIED, reason="a newer numba: try it, and raise compilers.TRIED")
def test_what_unpacks_the_arguments_of_a_kernel_is_not_optimised():
    @leaf
    def total(pair):
        return pair[0][0] + pair[1][0]

    assert total((np.array([2]), np.array([3]))) == 5
    (text,) = total.inspect_llvm().values()
    (group,) = re.findall(r"^attributes (#\d+) = {[^}]* optnone", text, re.MULTILINE)
    functions = re.findall(r"^define .* @(\S+)\(.* (#\d+) ", text, re.MULTILINE)
    assert [name.startswith("_ZN7cpython") for name, its in functions if its == group] == [True]
