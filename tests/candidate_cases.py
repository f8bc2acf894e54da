"""Data and commands for the tests of the candidates stage."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from qubayes.cli import app, guarded
from qubayes.data import Dataset, write

# characters that steer a terminal
CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069]"
)


def dependent_data(n: int, rows: int, seed: int, states: int = 3) -> Dataset:
    """Each variable a noisy sum of two earlier ones."""
    rng = np.random.default_rng(seed)
    codes = np.zeros((n, rows), dtype=np.uint8)
    for i in range(n):
        source = codes[rng.integers(0, i)] + codes[rng.integers(0, i)] if i else codes[0]
        codes[i] = np.where(rng.random(rows) < 0.3, rng.integers(0, states, rows), source) % states
    return Dataset(tuple(f"v{i}" for i in range(n)), (tuple(map(str, range(states))),) * n, codes)


def data_file(folder: Path, dataset: Dataset) -> Path:
    """The data as a file to give to the command line."""
    path = folder / "data.csv"
    write(dataset, path)
    return path


def start(*arguments: object, **more: object) -> subprocess.Popen[str]:
    """The command line in a process of its own."""
    command = [sys.executable, "-c", "from qubayes.cli import main; main()", *map(str, arguments)]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    return subprocess.Popen(command, text=True, **streams)


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """(exit code, stdout, stderr)."""
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def run(capsys: Any, *arguments: object) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of the command line, here: it needs no second start of Python."""
    capsys.readouterr()
    code = 0
    try:
        guarded(lambda: app([*map(str, arguments)]))
    except SystemExit as end:
        code = int(end.code or 0)
    return code, *capsys.readouterr()


def assert_one_line(code: int, err: str, *words: str) -> None:
    """Bad input: exit code 1, and one line that holds the words."""
    assert code == 1, err
    assert err.startswith("qubayes: ") and err.count("\n") == 1 and err.endswith("\n"), err
    for word in words:
        assert word in err, (word, err)


def repeated(column: list[list[int]], arities: list[int], rows: int) -> Dataset:
    """Data that take no memory: one row, again and again."""
    codes = np.broadcast_to(np.array(column, dtype=np.uint16), (len(arities), rows))
    names = tuple(f"v{i}" for i in range(len(arities)))
    return Dataset(names, tuple(tuple(map(str, range(r))) for r in arities), codes)


class Clock:
    """A clock that only work moves; other work slows the wall clock's seconds."""

    def __init__(self):
        self.now = 0.0
        self.slow = 1.0

    def perf_counter(self):
        return self.slow * self.now

    def process_time(self):
        return self.now

    def work(self, shared, seconds):
        self.now += seconds
        return seconds


def with_large_tables() -> Dataset:
    """Three variables whose tables are too large for probabilities, if each two are joined."""
    states = tuple(f"s{i}" for i in range(500))
    codes = np.array([np.arange(2000) * step // 7 % 500 for step in (7, 13, 29)], np.uint16)
    return Dataset(('q"x', "b", "c"), (states,) * 3, codes)
