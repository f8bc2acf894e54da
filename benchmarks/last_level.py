"""Nanoseconds a set of the last level, with bounds and without, and beside another checkout.

    python -m benchmarks last-level --data DIR [--instances alarm:4,...] [--scores bdeu,bds,bic]
    [--beside CHECKOUT]

DIR holds networks/*.bif.gz. One thread, 1000 rows, seed 0, processor time. *bounds* and *exact*,
the same level without bounds, come from one process, one after the other; their candidates are
compared. *there* is the last level of the other checkout: a process with its PYTHONPATH runs
`identify` and notes the time of each progress report. The time from the first block of the last
level, which may load a kernel, to its last block is divided by the sets between them. Then whole
commands, beside it and beside pyAgrum's greedy search on the same file, which uses no candidate
sets."""

import argparse
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from math import comb
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

import numpy as np

from qubayes import Score, Workers, read, read_network
from qubayes.candidates import CandidateSearch
from qubayes.candidates.identify import checked, first_level, scan_blocks
from qubayes.candidates.levels import Level, make_above, make_bounded, next_level
from qubayes.candidates.scanning import Block
from qubayes.data import Dataset, ReadSettings, write
from qubayes.network import sample_dataset

USUAL = "alarm:4,hailfinder:4,hepar2:4,pathfinder:3,barley:4,andes:3"
COMMAND = "from qubayes.cli import main; main()"
LAST_LEVEL = """
import sys, time
import qubayes
from qubayes import ReadSettings, Score, Workers, identify, read
Search = getattr(qubayes, "CandidateSearch", None) or qubayes.Search  # its name in older versions
path, most, score = sys.argv[1:]
marks = []
note = lambda report: marks.append((report.done, time.process_time()))
data = read(path, ReadSettings(missing="state"))
found = identify(data, Search(int(most), Score(score)), workers=Workers(1), on_progress=note)
(done, began), (total, ended) = marks[int(most)], marks[-1]  # the levels below report once each
print(1e9 * (ended - began) / (total - done), found.total)
"""
PYAGRUM = """
import sys
import pyagrum
learner = pyagrum.BNLearner(sys.argv[1])
learner.setNumberOfThreads(1)
learner.setMaxIndegree(int(sys.argv[2]))
learner.useScoreBDeu()
learner.useNoPrior()
learner.useGreedyHillClimbing()
learner.learnDAG()
"""


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--instances", default=USUAL)
    parser.add_argument("--scores", default="bdeu,bds,bic")
    parser.add_argument(
        "--beside", type=Path, help="another checkout, whose command is timed as well"
    )
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        instances = [
            Instance.sampled(text, options.data, Path(folder))
            for text in options.instances.split(",")
        ]
        print(
            "| network, m | score | sets | there ns | exact ns | bounds ns | there / bounds | candidates |"
        )
        print("|---" * 8 + "|")
        for instance in instances:
            for score in filter(None, options.scores.split(",")):
                print(
                    f"| {instance} | {score} | {row(instance, score, options.beside)} |", flush=True
                )
        if options.beside:
            print("\n| command | there s | here s | ratio | pyAgrum s |\n|---|---|---|---|---|")
            for instance in instances:
                arguments = [
                    "candidates",
                    instance.path,
                    "-m",
                    instance.most,
                    "--missing",
                    "state",
                    "--threads",
                    1,
                ]
                there, here = (
                    seconds(tree, COMMAND, *arguments) for tree in (options.beside, Path.cwd())
                )
                peer = seconds(Path.cwd(), PYAGRUM, instance.path, instance.most)
                print(
                    f"| {instance} | {there:.1f} | {here:.1f} | {there / here:.1f} | {peer:.1f} |",
                    flush=True,
                )


@dataclass(frozen=True, slots=True)
class Instance:
    """A sample of a network, and the largest number of parents."""

    path: Path
    most: int
    dataset: Dataset

    @classmethod
    def sampled(cls, text: str, data: Path, folder: Path) -> Self:
        """Return 1000 rows of the network of `name:most`, as a file and as read from it."""
        name, most = text.split(":")
        dataset = sample_dataset(read_network(data / "networks" / f"{name}.bif.gz"), 1000, seed=0)
        write(dataset.with_plain_states(), folder / f"{name}.csv")
        return cls(
            folder / f"{name}.csv",
            int(most),
            read(folder / f"{name}.csv", ReadSettings(missing="state")),
        )

    def __str__(self) -> str:
        return f"{self.path.stem} {self.most}"


def row(instance: Instance, score: str, beside: Path | None) -> str:
    """Return what the table says of one search."""
    dataset, most = instance.dataset, instance.most
    level = first_level(dataset, checked(dataset, CandidateSearch(most, Score(score))))
    below = 0
    for _ in range(most):
        above = make_above(level, last=False)
        below += sum(len(block.scores) for _, block in scan_blocks(level, above, Workers(1)))
        level = next_level(level, above)
    timed(level._replace(heads=level.heads[-1:]), bounded=True)  # compiles
    (bounded, found), (exact, wanted) = timed(level, bounded=True), timed(level, bounded=False)
    for block, other in zip(found, wanted, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(block, other, strict=True))
    sets, candidates = comb(dataset.n, most + 1), sum(len(block.scores) for block in found)
    there, ratio = "", ""
    if beside:
        nanoseconds, total = output(beside, LAST_LEVEL, instance.path, most, score).split()
        assert int(total) + dataset.n == candidates + below  # the total leaves out empty sets
        there, ratio = (
            f"{float(nanoseconds):.0f}",
            f"{float(nanoseconds) * sets / bounded / 1e9:.1f}",
        )
    return f"{sets:,} | {there} | {1e9 * exact / sets:.0f} | {1e9 * bounded / sets:.0f} | {ratio} | {candidates:,}"


def timed(level: Level, *, bounded: bool) -> tuple[float, list[Block]]:
    """Return the processor time of the level, and its blocks."""
    above, began = make_above(level, last=True), time.process_time()
    if bounded:
        level = make_bounded(level)
    blocks = [block for _, block in scan_blocks(level, above, Workers(1))]
    return time.process_time() - began, blocks


def output(tree: Path, program: str, *arguments: object) -> str:
    """Return what a Python program prints that imports qubayes from a checkout."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    return subprocess.run(
        command, env=environment, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def seconds(tree: Path, program: str, *arguments: object) -> float:
    """Return the processor time of such a program, the second of two runs: the first one compiles."""
    took = 0.0
    for _ in range(2):
        before = sum(os.times()[2:4])
        output(tree, program, *arguments)
        took = sum(os.times()[2:4]) - before
    return took


if __name__ == "__main__":
    main()
