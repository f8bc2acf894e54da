"""Bits, couplers and gaps of the paper's, the default and the on-demand formulations, beside the paper's Table 1.

    python -m benchmarks on-demand DIR [--data DATA] [--instances alarm:4,andes:2] [--orders adjacent,minimal]
        [--seconds 20] [--limit 60] [--sweeps 8000] [--seed 0] [--threads 1] [--json OUT.jsonl]

DIR holds candidate sets as {name}_m{m}_s0*.qbc (as `qubayes candidates -m M --score bds` or `python -m benchmarks
paper` writes them) and, if there are, subsets of the same name that end in .qbs. Candidate sets that are not there are
found in a sample of 1,000 rows of the instance in DATA, and kept in DIR. The subsets are the same in every row.

A row is printed as soon as an instance is measured. With --json it is also appended to a file, and instances that are
in it are not measured again. `sa` (single flips) gets --seconds on each formulation, `anneal` the same for the best
known network; a gap is a percentage of the gain of the best network that any of them found: of the best state that
violates no constraint, and of the best network after repair. --limit is the time limit of the search for order bits,
--sweeps the length of its longest walks.
"of default", order status, "D" (bits of vertices with at most two possible parents: docs/theory.md, Theorem D) and the
seconds of formulating are those of the first of --orders.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.paper.instances import instance
from benchmarks.paper.printed import BITS, INSTANCES, Instance
from qubayes.candidates import Candidates, Search, identify, read_candidates, write_candidates
from qubayes.foundation.workers import Workers
from qubayes.qubo import Demand, Formulation, formulate, quick_subsets
from qubayes.qubo.samplers.states import annealed_score
from qubayes.qubo.subsets import Subsets, read_subsets
from qubayes.scores import Score
from qubayes.search import Limits, solve

FIXED = {"paper": ("scc", "paper"), "default": ("chordal", "tight")}
COLUMNS = ("instance", "Table 1", "bits {}", "of default", "couplers {}", "of default", "raw gap, % {}")
COLUMNS = (*COLUMNS, "repaired gap, % {}", "order status", "D", "s")


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--instances", default=",".join(map(str, INSTANCES)))
    parser.add_argument("--orders", default="adjacent")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--sweeps", type=int, default=Demand().sweeps)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    kept = options.json.read_text().splitlines() if options.json and options.json.exists() else []
    rows = {row["instance"]: row for row in map(json.loads, kept)}
    kinds = " / ".join((*FIXED, *options.orders.split(",")))
    print(f"| {' | '.join(COLUMNS).format(*[kinds] * 4)} |\n|{'---|' * len(COLUMNS)}", flush=True)
    for name in options.instances.split(","):
        if name not in rows:
            rows[name] = measured(Instance(name.partition(":")[0], int(name.partition(":")[2])), options)
            if options.json:
                with options.json.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(rows[name]) + "\n")
        print(line_of(rows[name]), flush=True)


def measured(which: Instance, options: argparse.Namespace) -> dict[str, Any]:
    """Return sizes and scores of all formulations of an instance."""
    candidates, subsets = problem_of(which, options)
    limits, workers = Limits(options.seconds, seed=options.seed), Workers(options.threads)
    known = solve(candidates, "anneal", limits=limits, workers=workers)
    row: dict[str, Any] = {"instance": str(which), "seconds": options.seconds, "seed": options.seed}
    row |= {"known": known.score, "empty": known.empty_score, "formulations": {}}
    if which in BITS:
        row["printed"] = BITS[which][4].mean
    for kind in (*FIXED, *options.orders.split(",")):
        began, (order, penalty) = time.perf_counter(), FIXED.get(kind, (kind, "tight"))
        demand = Demand(known.network, options.sweeps, seed=options.seed, seconds=options.limit)
        made = formulate(candidates, subsets, order=order, penalty=penalty, demand=demand, workers=workers)
        facts = {"bits": made.bits, "couplers": made.qubo.couplers, "order_status": made.order_status}
        facts["formulate"] = time.perf_counter() - began
        found = solve(made, "sa", limits=limits, workers=workers)
        facts |= {"score": annealed_score(found.statistics), "raw": found.statistics["raw_score"]}
        facts["spare"] = spare_bits(made)
        row["formulations"][kind] = facts
        del made
    return row


def problem_of(which: Instance, options: argparse.Namespace) -> tuple[Candidates, Subsets]:
    """Return the candidate sets and subsets of an instance, from files where there are any."""
    stem = f"{which.name}_m{which.max_parents}_s0"
    files = sorted(options.directory.glob(f"{stem}*.qbc"))
    if not files:
        if options.data is None:
            raise SystemExit(f"{options.directory} has no {stem}*.qbc; give --data, the folder of the instances")
        dataset = instance(which.name, 0, options.data)
        options.directory.mkdir(parents=True, exist_ok=True)
        files = [options.directory / f"{stem}.qbc"]
        write_candidates(identify(dataset, Search(max_parents=which.max_parents, score=Score("bds"))), files[0])
    candidates, covered = read_candidates(files[0]), files[0].with_suffix(".qbs")
    return candidates, read_subsets(covered) if covered.exists() else quick_subsets(candidates)


def spare_bits(made: Formulation) -> int:
    """Return the u and z bits of vertices whose possible parents are at most two and all share an r bit with them."""
    parents, subsets = made.relative.parents, made.subsets.families.sizes
    ordered = made.order.pair_of(parents.vertices, parents.children) >= 0
    unordered = np.bincount(parents.children[~ordered], minlength=made.candidates.n)
    small = (np.diff(parents.start) <= 2) & (unordered == 0)
    return int(subsets[small].sum() + made.penalties.has_slack[small].sum())


def line_of(row: dict[str, Any]) -> str:
    """Return the line of the table for an instance."""
    made = row["formulations"].values()
    best, order = max(row["known"], *(facts["score"] for facts in made if facts["score"] is not None)), list(made)[2]

    def gaps(key: str) -> str:
        """Return the gap of each formulation's score."""
        gain = best - row["empty"]
        return " / ".join("none" if facts[key] is None else f"{100 * (best - facts[key]) / gain:.3f}" for facts in made)

    cells = (
        row["instance"],
        f"{row['printed']:,.0f}" if "printed" in row else "",
        " / ".join(f"{facts['bits']['total']:,}" for facts in made),
        f"{order['bits']['total'] / row['formulations']['default']['bits']['total']:.1%}",
        " / ".join(f"{facts['couplers']:,}" for facts in made),
        f"{order['couplers'] / row['formulations']['default']['couplers']:.1%}",
        gaps("raw"),
        gaps("score"),
        order["order_status"].partition(":")[0],
        f"{order['spare']:,}",
        f"{order['formulate']:.0f}",
    )
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
