"""How many candidate sets of chess (m = 2) are ties that rounding errors decide.

    python -m benchmarks ties --data DIR [--instance chess] [--seed 0]

Scores (`bds`) as the formula of Appendix D.1 is printed: lnΓ(α) and lnΓ(N + α) summed on their own,
each family by itself. A set is counted once if it beats its subsets by more than 1e-10, and once if
it beats them at all."""

import argparse
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
from scipy.special import gammaln

from benchmarks.paper import instance
from qubayes.data import Dataset
from qubayes.scores.score import count

TOLERANCES = (0.0, 1e-10)


def main() -> None:
    """Print the number of candidates for each tolerance."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--instance", default="chess")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    dataset = instance(options.instance, options.seed, options.data)
    counts: Counter[float] = Counter()
    for child in range(dataset.n):
        counts.update(candidates(dataset, child))
    print("| a set must win by more than | candidates |\n|---|---|")
    for tolerance in TOLERANCES:
        print(f"| {tolerance:g} | {counts[tolerance]:,} |")


def candidates(dataset: Dataset, child: int) -> Counter[float]:
    """Number of sets of one or two parents that beat their subsets, by tolerance."""
    others = [i for i in range(dataset.n) if i != child]
    known = {(): as_printed(dataset, child, ())}
    counts: Counter[float] = Counter()
    for size in (1, 2):
        for parents in combinations(others, size):
            known[parents] = as_printed(dataset, child, parents)
            best = max(
                known[subset]
                for smaller in range(size)
                for subset in combinations(parents, smaller)
            )
            counts.update(t for t in TOLERANCES if known[parents] > best + t)
    return counts


def as_printed(dataset: Dataset, child: int, parents: tuple[int, ...]) -> float:
    """log S_child(parents), term by term."""
    table = count(dataset, child, parents)
    per_state = 1.0 / len(table.parents)
    per_cell = per_state / table.child_observed
    states = len(table.parents) * gammaln(per_state) - np.sum(gammaln(table.parents + per_state))
    return float(
        states + np.sum(gammaln(table.cells + per_cell)) - len(table.cells) * gammaln(per_cell)
    )


if __name__ == "__main__":
    main()
