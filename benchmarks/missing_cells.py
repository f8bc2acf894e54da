"""Skeletons learned from samples of which some cells are missing at random, by each `missing=`.

    python -m benchmarks missing-cells NETWORK [...] [--rows 1000] [--parents 3] [--shares 0.1 0.3]
        [--seeds 0 1 2] [--page PAGE.md]

Each sample of the network loses each cell with the given probability. "complete" learns from the
sample before that. The table has the mean over the seeds: F1 of the skeleton, the structural
Hamming distance of the equivalence classes, edges, and the processor seconds of `learn`."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np

import qubayes as qb
from benchmarks.anytime import with_table

TABLE = "missing-cells"
WAYS = ("complete", "impute", "rows", "state", "drop")


class Outcome(NamedTuple):
    """How close the learned network is to the true one."""

    f1: float
    distance: float
    edges: float
    seconds: float


def main() -> None:
    """Learn from all samples, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("networks", nargs="+", type=Path)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--parents", type=int, default=3)
    parser.add_argument("--shares", nargs="+", type=float, default=[0.1, 0.3])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    lines = list(table(options))
    print("\n".join(lines))
    if options.page:
        options.page.write_text(with_table(options.page.read_text(), lines, TABLE))


def table(options: argparse.Namespace) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| network | missing | `missing=` | skeleton F1 | of each seed | distance | edges | s |"
    yield "|---|---|---|---|---|---|---|---|"
    for path in options.networks:
        network = qb.read_network(path)
        for share in options.shares:
            for way in WAYS:
                found = [
                    outcome(network, options.rows, options.parents, share, way, seed)
                    for seed in options.seeds
                ]
                name = path.name.split(".")[0]
                yield f"| {name} | {share:.0%} | {way} | {in_words(found)} |"


def in_words(found: list[Outcome | None]) -> str:
    """Return the mean of the outcomes; some may be lacking."""
    if None in found:
        return "no row is complete | | | |"
    rows = np.array(found)
    f1, distance, edges, seconds = rows.mean(axis=0)
    each = " ".join(f"{value:.2f}" for value in rows[:, 0])
    return f"{f1:.3f} | {each} | {distance:.0f} | {edges:.0f} | {seconds:.1f}"


def outcome(
    network: qb.Network, rows: int, parents: int, share: float, way: str, seed: int
) -> Outcome | None:
    """Return what is learned from one sample; None if no row is left."""
    frame = qb.sample(network, rows, seed)
    uniforms = np.random.default_rng(seed).random((network.n, rows))
    gaps = (uniforms < share).T
    data: Any = frame if way == "complete" else frame.mask(gaps)
    if way == "drop" and not len(data.dropna()):
        return None
    began = process_time()
    learned = qb.learn(data, parents, missing="error" if way == "complete" else way)
    seconds = process_time() - began
    close = qb.compare(learned.network, network)
    edges = float(len(learned.network.edges))
    return Outcome(close.skeleton.f1, float(close.cpdag_distance), edges, seconds)


if __name__ == "__main__":
    main()
