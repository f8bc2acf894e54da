"""Probabilities of edges: errors by CPU seconds, against exact sums or between two runs.

    python -m benchmarks posterior FOLDER [--runs asia:2,sachs:2,child:5,alarm:6,...] [--rows 1000]
        [--page docs/posterior.md]

FOLDER holds networks, NAME.bif or NAME.bif.gz. A run is NAME:SECONDS or NAME:SECONDS:fair. A sample
of the network is drawn, its parent sets are scored, and four chains share the CPU seconds on one
thread, twice with different seeds. Of at most 20 variables the error is the largest difference from
exact sums over the same sets, of the worse run; of more it is the largest difference between the two
runs. Burn-in counts, scoring the sets does not: it has a column of its own. The table replaces the
one on --page, between comments."""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from qubayes.candidates import CandidateSearch, SlackSets
from qubayes.data import read
from qubayes.foundation.arrays import Floats
from qubayes.foundation.stop import Interrupt
from qubayes.foundation.workers import Workers
from qubayes.learning.posterior import good_start, grown_sets, parent_sets, parents_for
from qubayes.network import read_network, sample
from qubayes.scores import Score
from qubayes.search.exact import MOST_SUMMED_VERTICES, sum_networks
from qubayes.search.posterior import Sampled, sample_networks

RUNS = "asia:2,sachs:2,child:5,alarm:6,alarm:10,hailfinder:25,andes:15:fair,andes:40:uniform"
GROWING = 20.0  # seconds to grow sets where there are too many variables
COLUMNS = [
    "network",
    "variables",
    "prior",
    "sets",
    "scoring",
    "CPU",
    "error",
    "99%",
    "R-hat",
    "open",
    "tempered",
    "left_out",
]
MARK = "<!-- benchmarks posterior -->"


def sets_of(folder: Path, name: str, rows: int, prior: Any) -> tuple[SlackSets, float]:
    """Return the parent sets of a sample of a network, and the CPU seconds of scoring them."""
    path = next(each for each in sorted(folder.glob(f"{name}.bif*")))
    dataset = read(sample(read_network(path), rows, seed=1))
    search = CandidateSearch(parents_for(dataset), Score("bdeu"))
    one, interrupt = Workers(1), Interrupt()
    began = time.process_time()
    known = None
    if dataset.n > 100:
        known = grown_sets(dataset, search, GROWING, 0, one, interrupt)
    found = parent_sets(dataset, search, prior, known, one, interrupt)
    return found, time.process_time() - began


def sampled(sets: SlackSets, seconds: float, seed: int) -> Sampled:
    """Return what chains alone say after these CPU seconds."""
    one, interrupt = Workers(1), Interrupt()
    return sample_networks(
        sets,
        seconds=seconds,
        start=good_start(sets, seed, one, interrupt),
        seed=seed,
        most_summed=0,
        now=time.process_time,
        workers=one,
    )


def differences(sets: SlackSets, runs: list[Sampled]) -> Floats:
    """Return the differences of all edges, of the worse run or between the runs."""
    if sets.n > MOST_SUMMED_VERTICES:
        return np.abs(runs[0].edges - runs[1].edges)
    exact = sum_networks(sets)
    assert exact is not None
    both = [np.abs(each.edges - exact.edges) for each in runs]
    return max(both, key=lambda each: float(each.max()))


def measured(folder: Path, run: str, rows: int) -> list[str]:
    """Return a row of the table."""
    name, seconds, *prior = run.split(":")
    sets, scoring = sets_of(folder, name, rows, prior[0] if prior else "uniform")
    runs = [sampled(sets, float(seconds), seed) for seed in (0, 1)]
    found = differences(sets, runs)[~np.eye(sets.n, dtype=bool)]
    worst = max(runs, key=lambda each: float(each.rhat.max()))
    return [
        name,
        str(sets.n),
        sets.prior,
        f"{len(sets.scores):,}",
        f"{scoring:.1f}",
        seconds,
        f"{found.max():.4f}",
        f"{np.quantile(found, 0.99):.4f}",
        f"{worst.rhat.max():.3f}",
        str(max(int(each.open.sum()) for each in runs)),
        str(worst.tempered),
        f"{100 * max(each.lost for each in runs):.2g} %",
    ]


def main() -> None:
    """Print the table row by row; put it on a page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", default=RUNS)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    heads = " | ".join(COLUMNS).replace("_", " ")
    lines = [f"| {heads} |", "|" + "---|" * len(COLUMNS)]
    print("\n".join(lines), flush=True)
    for run in given.runs.split(","):
        lines.append("| " + " | ".join(measured(given.folder, run, given.rows)) + " |")
        print(lines[-1], flush=True)
    if given.page is not None:
        before, _, after = given.page.read_text().split(MARK)
        table = "\n".join(lines)
        given.page.write_text(f"{before}{MARK}\n\n{table}\n\n{MARK}{after}")


if __name__ == "__main__":
    main()
