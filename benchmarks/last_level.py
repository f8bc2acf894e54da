"""Nanoseconds a set of the last level, with bounds and without, and whole commands beside another checkout.

    python -m benchmarks last-level --data DIR [--instances alarm:4,...] [--scores bdeu,bds,bic] [--beside CHECKOUT]

DIR holds networks/*.bif.gz. One thread, 1000 rows, seed 0, processor time. Each pair of figures comes from one process,
the one without bounds after the one with them; the candidates of both are compared.
"""

import argparse
import os
import subprocess
import sys
import time
from math import comb
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from qubayes import Score, Workers, read, read_network
from qubayes.candidates import Search
from qubayes.candidates.identify import checked, first_level, scan_level
from qubayes.candidates.levels import Block, Level, make_above, make_bounds, next_level
from qubayes.data import Dataset, ReadSettings, write
from qubayes.network import sample_dataset

USUAL = "alarm:4,hailfinder:4,hepar2:4,pathfinder:3,barley:4,andes:3"
COMMAND = "from qubayes.cli import main; main()"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--instances", default=USUAL)
    parser.add_argument("--scores", default="bdeu,bds,bic")
    parser.add_argument("--beside", type=Path, help="another checkout, whose command is timed as well")
    options = parser.parse_args()
    print("| network, m | score | sets | exact ns | bounds ns | ratio | candidates |\n|---|---|---|---|---|---|---|")
    with TemporaryDirectory() as folder:
        for instance in options.instances.split(","):
            name, most = instance.split(":")
            path = Path(folder) / f"{name}.csv"
            dataset = sample_dataset(read_network(options.data / "networks" / f"{name}.bif.gz"), 1000, seed=0)
            write(dataset.with_plain_states(), path)
            dataset = read(path, ReadSettings(missing="state"))
            for score in filter(None, options.scores.split(",")):
                print(f"| {name} {most} | {score} | {row(dataset, int(most), score)} |", flush=True)
        if options.beside:
            print("\n| command | there s | here s | ratio |\n|---|---|---|---|")
            for instance in options.instances.split(","):
                name, most = instance.split(":")
                times = [command(tree, Path(folder) / name, most) for tree in (options.beside, Path.cwd())]
                print(f"| {name} {most} | {times[0]:.1f} | {times[1]:.1f} | {times[0] / times[1]:.1f} |", flush=True)


def row(dataset: Dataset, most: int, score: str) -> str:
    """Return what the table says of one search."""
    level = first_level(dataset, checked(dataset, Search(most, Score(score))))
    for _ in range(most):
        above = make_above(level, last=False)
        list(scan_level(level, above, Workers(1)))
        level = next_level(level, above)
    bounded = level._replace(bounds=make_bounds(level.k, level.rows, level.rule, level.below.best))
    last = len(level.heads) - 1
    timed(bounded._replace(heads=level.heads[last:]))  # compiles
    (seconds, found), (exact, wanted) = timed(bounded), timed(level)
    for block, other in zip(found, wanted, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(block, other, strict=True))
    sets = comb(dataset.n, most + 1)
    candidates = sum(len(block.child) for block in found)
    return f"{sets:,} | {1e9 * exact / sets:.0f} | {1e9 * seconds / sets:.0f} | {exact / seconds:.1f} | {candidates:,}"


def timed(level: Level) -> tuple[float, list[Block]]:
    """Return the processor time of the level, and its blocks."""
    above, began = make_above(level, last=True), time.process_time()
    blocks = [block for _, block in scan_level(level, above, Workers(1))]
    return time.process_time() - began, blocks


def command(tree: Path, path: Path, most: str) -> float:
    """Return the processor time of `qubayes candidates` of a checkout, the second of two runs."""
    arguments = [sys.executable, "-c", COMMAND, "candidates", f"{path}.csv", "-m", most, "--missing", "state"]
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    seconds = 0.0
    for _ in range(2):  # the first one compiles
        before = sum(os.times()[2:4])
        subprocess.run([*arguments, "--threads", "1"], env=environment, check=True, stdout=subprocess.DEVNULL)
        seconds = sum(os.times()[2:4]) - before
    return seconds


if __name__ == "__main__":
    main()
