"""A second process compiles the kernels of the search while the first `learn` runs."""

import os
import subprocess
import sys

from qubayes.search import ahead

# Waits until the second process has ended by itself, and searches a network. Prints which kernels
# this process compiled before the last one waited, and after it.
PROGRAM = """
from qubayes.foundation.jit import compilations, is_compiled
from qubayes.search import Limits, ahead, solve
from qubayes.search.exact.relaxation import fill_lagrangian_costs
from qubayes.search.run import example
from qubayes.search.orders.insertions import anneal_order

told = []
with compilations(told.append):
    before = is_compiled(anneal_order)
    process = ahead._started("annealing")
    code = process.wait(300)
    after = is_compiled(anneal_order), is_compiled(fill_lagrangian_costs)
    with ahead.compiled_ahead(annealing=True):
        solve(example(16), "anneal", limits=Limits(moves=100))
        solve(example(8), "exact")
print(before, code, after, told)
"""
# Begins with an empty folder of kernels, and ends the block at once.
SHORT = """
import subprocess
from qubayes.search import ahead

started = []
class Popen(subprocess.Popen):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        started.append(self)

subprocess.Popen = Popen
with ahead.compiled_ahead(annealing=False):
    pass
print([process.returncode is not None for process in started])
"""


def run_with_empty_cache(program, folder) -> str:
    """Return what the program prints."""
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


def test_the_first_process_compiles_nothing_of_what_the_second_one_compiled(tmp_path):
    assert run_with_empty_cache(PROGRAM, tmp_path) == "False 0 (True, True) []"


def test_the_second_process_ends_with_the_block(tmp_path):
    assert run_with_empty_cache(SHORT, tmp_path) == "[True]"


def test_the_second_process_ends_when_the_first_one_is_gone(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    process = ahead._started("proof")
    assert process is not None and process.stdin is not None
    process.stdin.close()
    assert process.wait(60) == 0
    assert not list(tmp_path.rglob("*.nbc"))
