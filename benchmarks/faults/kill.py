"""Kills runs of the command line with SIGKILL at random moments, runs them again, and compares what they leave.

    python -m benchmarks faults kill --kills 120 --seed 0

Half of the kills come at a moment that is uniform over the time of an undisturbed run, half at a
change of a file (before one is made, locked, written, given its permissions, renamed or removed, or
some milliseconds into it). After each kill every file must be readable by the product's own reader,
and unfinished ones must be private. A run that was killed up to three times is then left to end:
the files must be those of an undisturbed run, with the user's permissions, equal byte for byte;
where a file holds times (`essence`), equal in all else."""

import argparse
import csv
import gzip
import io
import math
import os
import shutil
import signal
import stat
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from common import Run, dependent_data, files_in, finish, start, table

from qubayes.candidates import CandidateSearch, fingerprint, read_candidates
from qubayes.candidates.checkpoint import Checkpoint
from qubayes.data import read, write
from qubayes.foundation.files import json_object, read_text
from qubayes.foundation.workers import Workers
from qubayes.learning import learn
from qubayes.machines import read_model
from qubayes.network import read_network, write_network
from qubayes.qubo.formulation_files import read_problem
from qubayes.qubo.subsets import read_subsets
from qubayes.scores import Score
from qubayes.search.solve import read_solution

UMASK = 0o027
MOST_KILLS = 4  # of one run before it is left to end
LONGEST_DELAY = 0.004  # seconds into a change of a file; a small file is on the disk after that


@dataclass(frozen=True)
class Case:
    """A command whose runs are killed. `arguments` is given the folder of the inputs and that of the results."""

    name: str
    arguments: Callable[[Path, Path], Sequence[object]]
    share: float  # of all kills
    search: CandidateSearch | None = None  # what a file of blocks belongs to


@dataclass
class Count:
    """What was seen of one command."""

    seconds: float = 0.0
    changes: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    runs: int = 0  # that ended
    strays: int = 0  # temporary files that a kill left
    checked: int = 0  # files read after kills
    faults: list[str] = field(default_factory=list)


def _candidates(inputs: Path, out: Path) -> Sequence[object]:
    options = ("-m", 4, "--score", "bds", "--threads", 1, "--resume")
    return "candidates", inputs / "data.csv", *options, "-o", out / "x.jkl"


def _formulate(inputs: Path, out: Path) -> Sequence[object]:
    return "formulate", inputs / "sets.qbc", "--threads", 1, "-o", out / "x.bqm"


def _learn(inputs: Path, out: Path) -> Sequence[object]:
    search = (
        "-m",
        3,
        "--score",
        "bds",
        "--solver",
        "anneal",
        "--moves",
        200_000,
        "--bootstrap",
        2,
        "--threads",
        1,
    )
    written = ("-o", out / "x.bif", "--trace", out / "trace.csv", "--report", out / "x.html")
    return "learn", inputs / "data.csv", *search, "--run-dir", out / "run", *written


CASES = (
    Case("candidates", _candidates, 0.4, CandidateSearch(4, Score("bds"))),
    Case("formulate", _formulate, 0.4),
    Case("learn", _learn, 0.2, CandidateSearch(3, Score("bds"))),
)


def make_inputs(folder: Path, n: int, seed: int) -> None:
    """Data, candidate sets and a network for the commands to work on."""
    write(dependent_data(n, 400, seed), folder / "data.csv")
    small = learn(
        dependent_data(10, 300, seed),
        2,
        run_dir=folder / "small",
        workers=Workers(1),
        time_limit=1.0,
    )
    write_network(small.network, folder / "alarm.bif")
    (folder / "networks").mkdir()
    (folder / "networks" / "alarm.bif.gz").write_bytes(
        gzip.compress((folder / "alarm.bif").read_bytes(), mtime=0)
    )
    finish(
        start(
            [
                "candidates",
                folder / "data.csv",
                "-m",
                3,
                "--score",
                "bds",
                "-o",
                folder / "sets.qbc",
            ]
        )
    )


# What the files say


def essence(path: Path) -> Any:
    """What must be equal to an undisturbed run's: the bytes, or the content without times."""
    if path.suffix == ".qbs":
        found = read_subsets(path)
        arrays = [array.tolist() for array in (*found.families, found.lower_bounds)]
        return found.names, arrays, found.method, found.status
    if path.name == "solution.json":
        value = json_object(read_text(path))
        return {**_timeless(value), "trace": [point[1] for point in value["trace"]]}
    if path.name == "trace.csv":
        return [row[1:] for row in csv.reader(io.StringIO(read_text(path)))]
    if path.suffix == ".html":  # times throughout: as long, and whole
        text = read_text(path)
        return len(text.splitlines()), text.rstrip()[-3:]
    return path.read_bytes()


def _timeless(value: dict[str, Any]) -> dict[str, Any]:
    times = ("seconds", "prepare", "cover", "assemble", "peak_mb", "status", "statistics")
    return {key: part for key, part in value.items() if key not in times}


def read_with_product(path: Path, case: Case, inputs: Path) -> None:
    """Raise unless the file can be read by the reader that the product has for it."""
    if path.suffix in (".qbc", ".jkl"):
        read_candidates(path)
    elif path.suffix == ".blocks":
        _read_blocks(path, case, inputs)
    elif path.suffix == ".qbs":
        read_subsets(path)
    elif path.suffix == ".bqm":
        read_model(path)
    elif path.suffix == ".qbf":
        read_problem(path)
    elif path.suffix == ".bif":
        read_network(path)
    elif path.name == "solution.json":
        read_solution(path, read_candidates(path.with_name("candidates.qbc")))
    elif path.suffix == ".json":
        json_object(read_text(path))
    elif path.suffix != ".lock" and not read_text(path).endswith(("\n", ">")):
        raise ValueError("the text ends in the middle of a line")


def _read_blocks(path: Path, case: Case, inputs: Path) -> None:
    """Read a copy: the reader cuts off what is not whole, and the run that goes on is to see it."""
    assert case.search is not None
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copy(path, folder)
        with Checkpoint(
            Path(copy), fingerprint(read(inputs / "data.csv"), case.search), resume=True
        ):
            pass


# One command


class Experiment:
    """Runs of one command, its inputs, the files of an undisturbed run, and the count of what was seen."""

    def __init__(
        self, case: Case, inputs: Path, scratch: Path, random: np.random.Generator
    ) -> None:
        self.case, self.inputs, self.scratch, self.random = case, inputs, scratch, random
        self.count = Count()
        self.out = scratch / "out"
        began = time.monotonic()
        self._expect(finish(self._started(aim=0)))
        self.count.seconds, self.count.changes = time.monotonic() - began, self._changes()
        self.expected = {
            str(path.relative_to(self.out)): essence(path) for path in files_in(self.out)
        }

    def kill_one_run(self, kills: int) -> None:
        """Kill a new run at most so many times, let it end, and compare."""
        self._emptied()
        for _ in range(int(min(kills, self.random.integers(1, MOST_KILLS + 1)))):
            how = "write" if self.random.random() < 0.5 else "time"
            ended = self._killed_at_a_write() if how == "write" else self._killed_at_a_time()
            if ended.code != -signal.SIGKILL:  # it was done before the moment came
                self._expect(ended)
                continue
            self.count.kills[how] += 1
            self._check_remains()
        self._expect(finish(self._started()))
        self.count.runs += 1
        self._compare()

    def _killed_at_a_time(self) -> Run:
        process = self._started()
        time.sleep(self.random.uniform(0, self.count.seconds))
        os.killpg(process.pid, signal.SIGKILL)
        return finish(process)

    def _killed_at_a_write(self) -> Run:
        (self.scratch / "changes").unlink(missing_ok=True)
        delay = self.random.choice([0.0, self.random.uniform(0, LONGEST_DELAY)])
        return finish(
            self._started(
                aim=int(self.random.integers(1, self.count.changes + 1)), delay=float(delay)
            )
        )

    def _started(self, aim: int | None = None, delay: float = 0.0) -> Any:
        arguments = self.case.arguments(self.inputs, self.out)
        environment = dict(os.environ)
        if aim is not None:
            aims = {
                "FOLDER": self.out,
                "COUNT": self.scratch / "changes",
                "AT": aim,
                "DELAY": delay,
            }
            environment |= {f"AIM_{key}": str(value) for key, value in aims.items()}
            path = [
                str(Path(__file__).with_name("aim")),
                *filter(None, [environment.get("PYTHONPATH")]),
            ]
            environment["PYTHONPATH"] = os.pathsep.join(path)
        return start(arguments, env=environment, umask=UMASK)

    def _changes(self) -> int:
        return (self.scratch / "changes").stat().st_size

    def _emptied(self) -> None:
        shutil.rmtree(self.out, ignore_errors=True)
        self.out.mkdir()

    def _expect(self, ended: Run) -> None:
        if ended.code != 0 or "Traceback" in ended.err:
            self._fault(f"exit code {ended.code}: {ended.err.strip()[-300:]}")

    def _fault(self, what: str) -> None:
        self.count.faults.append(what)
        print(f"{self.case.name}: {what}", file=sys.stderr)

    def _check_remains(self) -> None:
        """Every file can be read; one that is not finished is private."""
        for path in files_in(self.out):
            unfinished = path.suffix in (".part", ".blocks")
            mode = stat.S_IMODE(path.stat().st_mode)
            if path.suffix == ".part":
                self.count.strays += 1
                # killed between being given its permissions and its name
                allowed = {0o600, 0o666 & ~UMASK}
            else:
                allowed = {0o600 if unfinished else 0o666 & ~UMASK}
                self._read(path)
            if mode not in allowed:
                self._fault(f"{path.name} has the permissions {mode:o} after a kill")

    def _read(self, path: Path) -> None:
        self.count.checked += 1
        try:
            read_with_product(path, self.case, self.inputs)
        except Exception as error:
            self._fault(f"{path.name} cannot be read after a kill: {error!r}")

    def _compare(self) -> None:
        found = {str(path.relative_to(self.out)): path for path in files_in(self.out)}
        for name in sorted(found.keys() ^ self.expected.keys()):
            self._fault(f"{name} is {'left over' if name in found else 'missing'} at the end")
        for name in sorted(found.keys() & self.expected.keys()):
            if essence(found[name]) != self.expected[name]:
                self._fault(f"{name} is not what an undisturbed run writes")
            if stat.S_IMODE(found[name].stat().st_mode) != 0o666 & ~UMASK:
                self._fault(f"{name} does not have the user's permissions")


def main() -> int:
    """0 if nothing was lost, else 1."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=12, help="in all")
    parser.add_argument("--commands", default=",".join(case.name for case in CASES))
    parser.add_argument("--variables", type=int, default=24, help="of the data")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    cases = [case for case in CASES if case.name in asked.commands.split(",")]
    counts = {}
    with tempfile.TemporaryDirectory() as folder:
        inputs = Path(folder, "inputs")
        inputs.mkdir()
        make_inputs(inputs, asked.variables, asked.seed)
        for number, case in enumerate(cases):
            scratch = Path(folder, case.name)
            (scratch / "out").mkdir(parents=True)
            experiment = Experiment(
                case, inputs, scratch, np.random.default_rng([asked.seed, number])
            )
            wanted = math.ceil(asked.kills * case.share / sum(each.share for each in cases))
            while (done := experiment.count.kills.total()) < wanted:
                experiment.kill_one_run(wanted - done)
            counts[case.name] = experiment.count
    print(report(counts))
    return 1 if any(count.faults for count in counts.values()) else 0


def report(counts: dict[str, Count]) -> str:
    """What was seen, as a table."""
    head = ("command", "undisturbed", "changes of files", "kills at a time", "kills at a write")
    head += ("temporary files left by kills", "files read after kills", "runs compared", "faults")
    rows = [(name, *row_of(count)) for name, count in counts.items()]
    kills = sum(count.kills.total() for count in counts.values())
    faults = sum(len(count.faults) for count in counts.values())
    return f"{table(head, rows)}\n\n{kills} kills, {faults} faults"


def row_of(count: Count) -> tuple[object, ...]:
    """The figures of one command."""
    kills = count.kills["time"], count.kills["write"]
    return (
        f"{count.seconds:.1f} s",
        count.changes,
        *kills,
        count.strays,
        count.checked,
        count.runs,
        len(count.faults),
    )


if __name__ == "__main__":
    sys.exit(main())
