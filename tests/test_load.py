"""The experiments on numbers and load, on a small scale."""

import subprocess
import sys
from pathlib import Path

import pytest

FAULTS = Path(__file__).parents[1] / "benchmarks" / "faults"


@pytest.mark.parametrize(
    ("script", "options", "said"),
    [
        ("precision.py", ["--tables", "2", "--rows", "100", "--states", "2"], "| score bdeu |"),
        ("load.py", ["--calls", "10", "--cycles", "2", "--warm"], "nothing grew, nothing differed"),
    ],
)
def test_an_experiment_runs(script, options, said):
    pytest.importorskip("mpmath")
    done = subprocess.run(
        [sys.executable, FAULTS / script, *options], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert said in done.stdout
