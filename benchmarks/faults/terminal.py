"""Ctrl-C pressed at a terminal in every stage of `learn`: what is left is whole, and the run is resumed.

    python -m benchmarks faults terminal [--rounds 5] [--variables 16] [--seed 0] [--stages
    candidates,...]

The command runs on a terminal of its own (a pty) with a run folder. Once its progress shows a
stage, and a random time later, Ctrl-C is pressed: the terminal sends SIGINT to the whole process
group, helper processes included. The command must end with exit code 130 (or by SIGINT itself,
after its last word), without a traceback, and with a network file unless it was stopped in the
search for candidate sets; started again in the same folder it must write the network of an
undisturbed run. A run that ended before Ctrl-C came must have written that network already."""

import argparse
import os
import pty
import re
import select
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from common import dependent_data, table

from qubayes.data import write

LEARN = ("learn", "-m", 3, "--solver", "anneal", "--moves", 3_000_000, "--threads", 1)
MORE = ("--best", 3, "--bootstrap", 3)  # stages after the solver
STAGES = ("candidates", "anneal", "alternatives", "bootstrap", "subsets", "files")
LATEST = {
    "candidates": 0.4,
    "anneal": 0.5,
    "alternatives": 0.5,
    "bootstrap": 0.5,
    "subsets": 0.03,
    "files": 0.05,
}
PATIENCE = 300.0  # seconds without a word
COLOURS = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")  # and moves of the cursor


class Ended(NamedTuple):
    """How a command on a terminal ended: exit code, what it printed, whether Ctrl-C was pressed."""

    code: int
    text: str
    pressed: bool


def on_terminal(arguments: Sequence[object], stage: str = "", delay: float = 0.0) -> Ended:
    """Run the command on a terminal, and press Ctrl-C this many seconds after the stage shows."""
    process, terminal = pty.fork()
    if process == 0:
        command = [
            sys.executable,
            "-P",
            "-c",
            "from qubayes.cli import main; main()",
            *map(str, arguments),
        ]
        os.execve(command[0], command, os.environ | {"TERM": "xterm", "COLUMNS": "100"})
    text, pressed = b"", False
    while select.select([terminal], [], [], PATIENCE)[0]:
        try:
            part = os.read(terminal, 1 << 16)
        except OSError:  # Linux: the other end is closed
            break
        if not part:
            break
        text += part
        if (
            stage
            and not pressed
            and re.search(rf"{stage} +[━╸]", COLOURS.sub("", text.decode(errors="replace")))
        ):
            time.sleep(delay)
            os.write(terminal, b"\x03")
            pressed = True
    os.close(terminal)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    return Ended(code, text.decode(errors="replace"), pressed)


def interrupted(
    folder: Path, data: Path, stage: str, delay: float, wanted: bytes
) -> tuple[str, list[str]]:
    """Return how a run that was interrupted in the stage ended, and the faults that were seen."""
    output, place = folder / "x.bif", folder / "run"
    arguments = [*LEARN, data, "--run-dir", place, "-o", output]
    arguments += [] if stage == "candidates" else [*MORE, "--qubo", folder / "x.bqm"]
    ended = on_terminal(arguments, stage, delay)
    faults = ["a traceback"] if "Traceback" in ended.text else []
    if not ended.pressed:
        return "not reached", [*faults, f"the stage did not show, exit code {ended.code}"]
    if ended.code == 0:
        outcome = "finished"
        faults += (
            []
            if output.exists() and output.read_bytes() == wanted
            else ["another network, or none"]
        )
    else:
        outcome = "with a network" if output.exists() else "without a network"
        faults += [] if ended.code in (130, -signal.SIGINT) else [f"exit code {ended.code}"]
        faults += ["no network"] if stage != "candidates" and not output.exists() else []
    again = on_terminal(arguments)
    if again.code != 0 or output.read_bytes() != wanted:
        faults.append(f"resumed: exit code {again.code}, or another network")
    return outcome, faults


def main() -> int:
    """Run the experiment; 1 if there was a fault."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--variables", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--stages", default=",".join(STAGES))
    options = parser.parse_args()
    random, faults = np.random.default_rng(options.seed), 0
    stages = options.stages.split(",")
    ends: dict[str, Counter[str]] = {stage: Counter() for stage in stages}
    with tempfile.TemporaryDirectory() as name:
        cases = {}
        # More variables where candidate sets must take long.
        for variables in (
            options.variables,
            *([12 * options.variables] if "candidates" in stages else []),
        ):
            data, whole = Path(name) / f"{variables}.csv", Path(name) / f"{variables}.bif"
            write(dependent_data(variables, 3000, options.seed), data)
            on_terminal([*LEARN, data, "-o", whole])
            cases[variables > options.variables] = data, whole.read_bytes()
        for turn, stage in product(range(options.rounds), stages):
            folder = Path(name) / f"{turn}-{stage}"
            folder.mkdir()
            delay = float(random.uniform(0.0, LATEST[stage]))
            data, wanted = cases[stage == "candidates"]
            outcome, found = interrupted(folder, data, stage, delay, wanted)
            ends[stage][outcome] += 1
            faults += len(found)
            for fault in found:
                print(f"{stage}, {delay:.3f} s after it showed: {fault}", file=sys.stderr)
    outcomes = ("with a network", "without a network", "finished")
    print(
        table(
            ["Ctrl-C in", *outcomes],
            [[stage, *(ends[stage][each] for each in outcomes)] for stage in stages],
        )
    )
    print(f"\n{faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
