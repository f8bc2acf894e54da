"""Tables of numbers and states: seconds of a proof, and held-out likelihood with several priors.

    python -m benchmarks mixed TABLE.csv [...] [--rows 500 2500] [--samples 3] [--parents 3]
        [--page PAGE.md]

For each table, all parent sets of at most `--parents` are scored by BIC and the best network is
proved, on one thread. Then networks are learned from some of the rows, with several priors of the
parts of the rows (`qubayes.scores.Prior`), and the other rows are scored: the mean and the median of
their log density, over the samples. Without prior rows, sets with a part that has too few rows for
its regression are left out. `bic-cg` is the BIC of the best network by maximum likelihood, without
any prior."""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from time import process_time

import numpy as np

from qubayes import Limits, Network, Score, Workers, read, solve
from qubayes.candidates import Candidates, CandidateSearch, Knowledge, allowed_for
from qubayes.candidates.identify import assemble
from qubayes.candidates.parts import scan_parts
from qubayes.data import Dataset
from qubayes.network import ByState, Linear, fit
from qubayes.network.by_state import fit_by_state
from qubayes.scores import PRIOR, Prior
from qubayes.scores.mixed import Mixed

BIC = Score("bic")
PRIORS = (Prior(0.0), Prior(1.0, 0.0), Prior(1.0, 1.0), Prior(0.1), PRIOR, Prior(2.0), Prior(5.0))


def main() -> None:
    """Print the tables."""
    options = _options()
    lines = [*seconds_table(options), "", *heldout_table(options)]
    print("\n".join(lines))
    if options.page:
        command = "python -m benchmarks mixed " + " ".join(path.name for path in options.tables)
        options.page.write_text("\n".join([f"# Numbers and states\n\n`{command}`\n", *lines, ""]))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tables", nargs="+", type=Path)
    parser.add_argument("--rows", nargs="+", type=int, default=[500, 2500])
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--parents", type=int, default=3)
    parser.add_argument("--page", type=Path)
    return parser.parse_args()


def candidates_of(dataset: Dataset, most: int, prior: Prior) -> Candidates:
    """Return all candidate sets by BIC with this prior."""
    allowed = allowed_for(dataset, BIC, Knowledge(), most)
    found = scan_parts(Mixed(dataset, BIC, prior), allowed, most, Workers(1))
    blocks = [block for step in found for block in step.blocks]
    return assemble(dataset, CandidateSearch(most, BIC), blocks)


def seconds_table(options: argparse.Namespace) -> Iterator[str]:
    """Yield processor seconds and scores of whole tables, with our prior and without."""
    yield "| table | prior rows | candidate sets | proved | sets, s | proof, s | edges | bic-cg |"
    yield "|---|---|---|---|---|---|---|---|"
    for path in options.tables:
        dataset = read(path)
        candidates_of(dataset, 1, PRIOR)  # compiles
        for prior in (PRIOR, Prior(0.0)):
            began = process_time()
            candidates = candidates_of(dataset, options.parents, prior)
            found = process_time()
            solution = solve(candidates, limits=Limits(60.0), workers=Workers(1))
            done = process_time()
            likelihood = Mixed(dataset, BIC, Prior(0.0))
            network = solution.network
            bic = sum(likelihood.local(v, its) for v, its in enumerate(network.parents))
            yield (
                f"| {path.name} | {prior.rows:g} | {candidates.total:,} |"
                f" {'yes' if solution.proved else 'no'} | {found - began:.2f} |"
                f" {done - found:.2f} | {len(network.edges)} | {bic:,.2f} |"
            )


def heldout_table(options: argparse.Namespace) -> Iterator[str]:
    """Yield the log densities of rows that were not learned from."""
    yield "| table | rows | prior rows | share of the table | edges | mean | median |"
    yield "|---|---|---|---|---|---|---|"
    for path in options.tables:
        dataset = read(path)
        for rows in options.rows:
            for prior in PRIORS:
                edges, means, medians = [], [], []
                for seed in range(options.samples):
                    order = np.random.default_rng(seed).permutation(dataset.rows)
                    known, held = dataset.take(order[:rows]), dataset.take(order[rows:])
                    network = learned(known, options.parents, prior)
                    densities = log_densities(network, held)
                    edges.append(len(network.edges))
                    means.append(float(densities.mean()))
                    medians.append(float(np.median(densities)))
                yield (
                    f"| {path.name} | {rows:,} | {prior.rows:g} | {prior.table:g} |"
                    f" {fmean(edges):.1f} | {fmean(means):,.3f} | {fmean(medians):,.3f} |"
                )


def learned(dataset: Dataset, most: int, prior: Prior) -> Network:
    """Return the best network with parameters of this prior; tables have one of one row."""
    candidates = candidates_of(dataset, most, prior)
    graph = solve(candidates, limits=Limits(60.0), workers=Workers(1)).network
    network = fit(graph, dataset, "bdeu")
    tables = list(network.tables or ())
    for vertex, table in enumerate(tables):
        if isinstance(table, ByState):
            discrete, continuous = network.split_parents(vertex)
            names = [network.names[v] for v in (*continuous, vertex)]
            cells = np.array([dataset.numbers[name] for name in names])
            codes = [dataset.codes[v] for v in discrete]
            tables[vertex] = fit_by_state(cells, codes, table.arities, names, prior=prior)
    return replace(network, tables=tuple(tables))


def log_densities(network: Network, dataset: Dataset) -> np.ndarray:
    """Return the log density of each row."""
    total = np.zeros(dataset.rows)
    for vertex, table in enumerate(network.tables or ()):
        discrete, continuous = network.split_parents(vertex)
        codes = [dataset.codes[v] for v in discrete]
        if not isinstance(table, Linear | ByState):
            total += np.log(table[(*codes, dataset.codes[vertex])])
            continue
        cells = np.array([dataset.numbers[network.names[v]] for v in continuous])
        cells = cells.reshape(len(continuous), dataset.rows)
        if isinstance(table, Linear):
            mean, deviation = table.mean(cells), table.deviation
        else:
            mean, deviation = table.mean(codes, cells), table.deviations[tuple(codes)]
        errors = (dataset.numbers[network.names[vertex]] - mean) / deviation
        total += -0.5 * np.log(2 * np.pi) - np.log(deviation) - 0.5 * errors * errors
    return total


if __name__ == "__main__":
    main()
