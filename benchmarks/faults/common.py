"""What the experiments share: data to work on, commands to run, tables to print."""

import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from qubayes.data import Dataset


class Run(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def told(self) -> bool:
        """Whether it failed as it should: exit code 1 and one line on stderr, no traceback."""
        return self.code == 1 and self.err.startswith("qubayes: ") and self.err.count("\n") == 1


def dependent_data(n: int, rows: int, seed: int, states: int = 3) -> Dataset:
    """Each variable a noisy sum of two earlier ones."""
    random = np.random.default_rng(seed)
    codes = np.zeros((n, rows), dtype=np.uint8)
    for i in range(n):
        source = codes[random.integers(0, i)] + codes[random.integers(0, i)] if i else codes[0]
        codes[i] = (
            np.where(random.random(rows) < 0.3, random.integers(0, states, rows), source) % states
        )
    return Dataset(tuple(f"v{i}" for i in range(n)), (tuple(map(str, range(states))),) * n, codes)


def start(
    arguments: Sequence[object], before: Sequence[str] = (), **more: object
) -> "subprocess.Popen[str]":
    """The command line in a process group of its own; `before` is put in front of the command."""
    command = [
        *before,
        sys.executable,
        "-c",
        "from qubayes.cli import main; main()",
        *map(str, arguments),
    ]
    streams = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        **more,
    }
    return subprocess.Popen(command, text=True, start_new_session=True, **streams)


def finish(process: "subprocess.Popen[str]", patience: float = 300) -> Run:
    """How the process ended; one that takes too long is killed and counts as such (-9)."""
    try:
        out, err = process.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
    return Run(process.returncode, out, err)


def run(arguments: Sequence[object], before: Sequence[str] = (), **more: object) -> Run:
    """How the command ended."""
    return finish(start(arguments, before, **more))


def files_in(folder: Path) -> list[Path]:
    """Every file below the folder, hidden ones too."""
    return sorted(Path(place, name) for place, _, names in os.walk(folder) for name in names)


def table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
