"""The best networks and the probabilities of edges, beside the frequencies of bootstrap samples, as Markdown.

    python -m benchmarks alternatives [--data FILE] [-m 3] [--within 20] [--samples 100] [--seed 0]
    [--time-limit 600]

The data are examples/alarm.csv unless given; the score is bdeu with equivalent sample size 1. A row
of the second table is a pair of variables: the probability that an edge joins them, in either
direction, among all networks within the Bayes factor (each network, or each equivalence class, by
its posterior weight), over all networks of the candidate sets where these can be summed, and the
share of bootstrap samples that join them. Pairs on which all agree are counted only."""

import argparse
import time

import numpy as np

from qubayes import CandidateSearch, Limits, alternatives, bootstrap, identify, read

AGREED = 0.05  # a pair whose numbers are all below it, or all above 1 less it, is not printed


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="examples/alarm.csv")
    parser.add_argument("-m", "--max-parents", type=int, default=3)
    parser.add_argument("--within", type=float, default=20.0)
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--time-limit", type=float, default=600.0)
    options = parser.parse_args()
    dataset, search = read(options.data), CandidateSearch(options.max_parents)
    candidates = identify(dataset, search)
    found = alternatives(candidates, within=options.within, limits=Limits(options.time_limit))
    print(f"{candidates}; {found.summary()} {found.seconds:.1f} s.\n")
    classes = found.classes()
    print("| class | networks | score | Bayes factor |\n|---:|---:|---:|---:|")
    for number, its in enumerate(classes[:10], 1):
        print(
            f"| {number} | {len(its):,} | {found.scores[its[0]]:,.3f} | {found.bayes_factors()[its[0]]:.2f} |"
        )
    began = time.perf_counter()
    confidence = bootstrap(dataset, search, options.samples, seed=options.seed)
    print(f"\n{confidence.samples} bootstrap samples in {time.perf_counter() - began:.1f} s.\n")
    columns = {"networks": found.edge_shares(), "classes": found.edge_shares(by_class=True)}
    if found.posterior is not None:
        columns["all networks"] = found.posterior.edges
    columns["bootstrap"] = confidence.frequencies
    joined = {name: shares + shares.T for name, shares in columns.items()}
    numbers = np.array([shares[np.triu_indices(dataset.n, 1)] for shares in joined.values()])
    certain, absent = (
        (numbers > 1.0 - AGREED).all(axis=0).sum(),
        (numbers < AGREED).all(axis=0).sum(),
    )
    above = ", ".join(
        f"{int((row > 0.5).sum())} ({name})" for name, row in zip(joined, numbers, strict=True)
    )
    print(
        f"{certain} pairs joined and {absent} apart by all; joined with more than one half: {above}.\n"
    )
    print(f"| pair | {' | '.join(joined)} |\n|---|{'---:|' * len(joined)}")
    pairs = np.column_stack(np.triu_indices(dataset.n, 1))
    open_pairs = np.flatnonzero(
        ~((numbers > 1.0 - AGREED).all(axis=0) | (numbers < AGREED).all(axis=0))
    )
    for place in sorted(open_pairs.tolist(), key=lambda place: -numbers[0, place]):
        a, b = pairs[place]
        print(
            f"| {dataset.names[a]}, {dataset.names[b]} | {' | '.join(f'{x:.2f}' for x in numbers[:, place])} |"
        )


if __name__ == "__main__":
    main()
