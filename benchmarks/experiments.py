"""Networks learned from experiments, with and without the knowledge of what was set.

    python -m benchmarks experiments NETWORK [--observed 500] [--each 50] [--targets 10]
        [--parents 3] [--seeds 0 1 2 3 4] [--page PAGE.md]

A sample has observed rows, and rows of experiments: in `--each` rows for each of the first targets,
this variable was set to a state at random, and the variables after it follow. "told" learns with
`interventions=`, "not told" from the same rows without it, "observed" from as many observed rows.
The table has the F1 of the directed edges."""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

import qubayes as qb
from benchmarks.anytime import with_table

TABLE = "experiments"


def main() -> None:
    """Learn from all samples, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("network", type=Path)
    parser.add_argument("--observed", type=int, default=500)
    parser.add_argument("--each", type=int, default=50)
    parser.add_argument("--targets", type=int, default=10)
    parser.add_argument("--parents", type=int, default=3)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    lines = list(table(options))
    print("\n".join(lines))
    if options.page:
        options.page.write_text(with_table(options.page.read_text(), lines, TABLE))


def table(options: argparse.Namespace) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| seed | told | not told | observed |"
    yield "|---|---|---|---|"
    network = qb.read_network(options.network)
    found = []
    for seed in options.seeds:
        scores = outcomes(network, options, seed)
        found.append(scores)
        yield f"| {seed} | " + " | ".join(f"{f1:.3f}" for f1 in scores) + " |"
    yield "| mean | " + " | ".join(f"{f1:.3f}" for f1 in np.mean(found, axis=0)) + " |"


def outcomes(network: qb.Network, options: argparse.Namespace, seed: int) -> list[float]:
    """Return F1 of the directed edges: told, not told, and from observed rows."""
    parts = [qb.sample(network, options.observed, 1000 * seed)]
    marks = [""] * options.observed
    for number, name in enumerate(network.names[: options.targets]):
        part = qb.sample(with_target(network, number), options.each, 1000 * seed + 1 + number)
        parts.append(part)
        marks += [name] * options.each
    rows = pd.concat(parts, ignore_index=True)
    observed = qb.sample(network, len(rows), 1000 * seed + 999)
    marked = rows.assign(INT=marks)
    most = options.parents
    learned = [
        qb.learn(marked, most, interventions="INT"),
        qb.learn(rows, most),
        qb.learn(observed, most),
    ]
    return [qb.compare(each.network, network).edges.f1 for each in learned]


def with_target(network: qb.Network, vertex: int) -> qb.Network:
    """Return the network in which this vertex is set at random."""
    states, tables = network.parameters
    parents = tuple(() if v == vertex else its for v, its in enumerate(network.parents))
    uniform = np.full(len(states[vertex]), 1.0 / len(states[vertex]))
    its_tables = tuple(uniform if v == vertex else table for v, table in enumerate(tables))
    return qb.Network(network.names, parents, states=states, tables=its_tables)


if __name__ == "__main__":
    main()
