"""Bits and couplers with order bits on demand, beside the default and the paper's formulation.

    python -m benchmarks on-demand DIR [--instances alarm:4,andes:2] [--orders adjacent,minimal] [--seeds 0,1]

DIR holds candidate sets as {name}_m{m}_s0.qbc, as `qubayes candidates -m M --score bds` writes them. The subsets are
the same in every column. A row is printed for each instance and seed of the search as soon as it is measured.
"""

import argparse
import time
from pathlib import Path

from qubayes.candidates import read_candidates
from qubayes.qubo import Demand, count_bits, formulate, quick_subsets

COLUMNS = (
    "instance",
    "seed",
    "paper bits",
    "default bits",
    "couplers",
    "order",
    "bits",
    "of default",
    "couplers",
    "of",
)
COLUMNS = (*COLUMNS, "order status", "s")


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--instances", default="alarm:4,hailfinder:4,win95pts:2,andes:2")
    parser.add_argument("--orders", default="adjacent,minimal")
    parser.add_argument("--seeds", default="0")
    options = parser.parse_args()
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}", flush=True)
    for instance in options.instances.split(","):
        name, _, parents = instance.partition(":")
        candidates = read_candidates(options.directory / f"{name}_m{parents}_s0.qbc")
        subsets = quick_subsets(candidates)
        paper = count_bits(candidates, subsets, order="scc", penalty="paper")["total"]
        default = formulate(candidates, subsets)
        total, couplers = default.bits["total"], default.qubo.couplers
        for seed in map(int, options.seeds.split(",")):
            for order in options.orders.split(","):
                began = time.perf_counter()
                made = formulate(candidates, subsets, order=order, demand=Demand(seed=seed))
                cells = (
                    f"{name} m={parents}",
                    f"{seed}",
                    f"{paper:,}",
                    f"{total:,}",
                    f"{couplers:,}",
                    order,
                    f"{made.bits['total']:,}",
                    f"{made.bits['total'] / total:.1%}",
                    f"{made.qubo.couplers:,}",
                    f"{made.qubo.couplers / couplers:.1%}",
                    made.order_status.partition(":")[0],
                    f"{time.perf_counter() - began:.0f}",
                )
                print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
