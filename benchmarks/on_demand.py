"""Bits, couplers and gaps of the paper's, the default and the on-demand formulations, beside the paper's Table 1.

    python -m benchmarks on-demand DIR [--data DATA] [--instances alarm:4,andes:2] [--flips
    50000000]
        [--walks 1000] [--limit 60] [--seed 0] [--threads 1] [--json OUT.jsonl]

DIR holds candidate sets as {name}_m{m}_s0*.qbc (as `qubayes candidates -m M --score bds` or `python
-m benchmarks paper` writes them) and, if there are, subsets of the same name that end in .qbs.
Candidate sets that are not there are found in a sample of 1,000 rows of the instance in DATA, and
kept in DIR. The subsets are the same in every row.

A row is printed as soon as an instance is measured. With --json it is also appended to a file, and
instances that are in it are not measured again. `sa` tries --flips single flips in one read of each
formulation; `anneal` finds the best known network with 10,000 moves for each variable. A gap is a
percentage of the gain of the best network that any of them found: of the best annealed state that
violates no constraint, and of the best annealed state after repair ("none": there is none). The
search for order bits ends after --walks walks that find no state below the best network, or at the
time limit --limit. "walks" are those since the last such state was found, with the moves of each;
"below" counts the states that were found. "of default", "D" (bits of vertices with at most two
possible parents: docs/theory.md, Theorem D) and the CPU seconds of formulating are those of the
on-demand formulation."""

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.paper.instances import instance
from benchmarks.paper.printed import BITS, INSTANCES, Instance
from qubayes.candidates import (
    Candidates,
    CandidateSearch,
    identify,
    read_candidates,
    write_candidates,
)
from qubayes.foundation.workers import Workers
from qubayes.qubo import Demand, Formulation, formulate, quick_subsets
from qubayes.qubo.samplers import annealed_score
from qubayes.qubo.subsets import Subsets, read_subsets
from qubayes.scores import Score
from qubayes.search import Limits, solve

KINDS = {
    "paper": ("scc", "paper"),
    "default": ("chordal", "tight"),
    "adjacent": ("adjacent", "tight"),
}
MOVES = 10_000  # of `anneal` for each variable
SIZES = ("instance", "Table 1", "bits {}", "of default", "couplers {}", "of default")
COLUMNS = (*SIZES, "raw gap, % {}", "repaired gap, % {}", "walks", "below", "D", "CPU s")


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directory", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--instances", default=",".join(map(str, INSTANCES)))
    parser.add_argument("--flips", type=int, default=50_000_000)
    parser.add_argument("--walks", type=int, default=Demand().walks)
    parser.add_argument("--limit", type=float, default=Demand().seconds)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    kept = options.json.read_text().splitlines() if options.json and options.json.exists() else []
    rows = {row["instance"]: row for row in map(json.loads, kept)}
    kinds = " / ".join(KINDS)
    print(f"| {' | '.join(COLUMNS).format(*[kinds] * 4)} |\n|{'---|' * len(COLUMNS)}", flush=True)
    for name in options.instances.split(","):
        if name not in rows:
            rows[name] = measured(
                Instance(name.partition(":")[0], int(name.partition(":")[2])), options
            )
            if options.json:
                with options.json.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(rows[name]) + "\n")
        print(line_of(rows[name]), flush=True)


def measured(which: Instance, options: argparse.Namespace) -> dict[str, Any]:
    """Return sizes and scores of all formulations of an instance."""
    candidates, subsets = problem_of(which, options)
    workers = Workers(options.threads)
    known = solve(
        candidates,
        "anneal",
        limits=Limits(None, MOVES * candidates.n, options.seed),
        workers=workers,
    )
    row: dict[str, Any] = {"instance": str(which), "flips": options.flips, "seed": options.seed}
    row |= {"known": known.score, "empty": known.empty_score, "formulations": {}}
    if which in BITS:
        row["printed"] = BITS[which][4].mean
    demand = Demand(known.network, options.walks, seed=options.seed, seconds=options.limit)
    limits = Limits(None, options.flips, options.seed)
    for kind, (order, penalty) in KINDS.items():
        began = time.process_time()
        made = formulate(
            candidates, subsets, order=order, penalty=penalty, demand=demand, workers=workers
        )
        facts = {
            "bits": made.bits,
            "couplers": made.qubo.couplers,
            "order_status": asdict(made.order_status),
        }
        facts["cpu_seconds"] = time.process_time() - began
        found = solve(made, "sa", limits=limits, workers=workers).statistics
        facts |= {
            "raw": found["raw_score"],
            "repaired": annealed_score(found),
            "spare": spare_bits(made),
        }
        row["formulations"][kind] = facts
        del made
    return row


def problem_of(which: Instance, options: argparse.Namespace) -> tuple[Candidates, Subsets]:
    """Return the candidate sets and subsets of an instance, from files where there are any."""
    stem = f"{which.name}_m{which.max_parents}_s0"
    files = sorted(options.directory.glob(f"{stem}*.qbc"))
    if not files:
        if options.data is None:
            raise SystemExit(
                f"{options.directory} has no {stem}*.qbc; give --data, the folder of the instances"
            )
        dataset = instance(which.name, 0, options.data)
        options.directory.mkdir(parents=True, exist_ok=True)
        files = [options.directory / f"{stem}.qbc"]
        write_candidates(
            identify(dataset, CandidateSearch(max_parents=which.max_parents, score=Score("bds"))),
            files[0],
        )
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
    default, order = row["formulations"]["default"], row["formulations"]["adjacent"]
    best = max(
        [row["known"], *(facts["repaired"] for facts in made if facts["repaired"] is not None)]
    )
    status = order["order_status"]
    walks = "proved" if status["proved"] else f"{status['walks']:,} x {status['moves']:,}"

    def gaps(key: str) -> str:
        """Return the gap of each formulation's score."""
        gain = best - row["empty"]
        return " / ".join(
            "none" if facts[key] is None else f"{100 * (best - facts[key]) / gain:.3f}"
            for facts in made
        )

    cells = (
        row["instance"],
        f"{row['printed']:,.0f}" if "printed" in row else "",
        " / ".join(f"{facts['bits']['total']:,}" for facts in made),
        f"{order['bits']['total'] / default['bits']['total']:.1%}",
        " / ".join(f"{facts['couplers']:,}" for facts in made),
        f"{order['couplers'] / default['couplers']:.1%}",
        gaps("raw"),
        gaps("repaired"),
        walks,
        f"{status['found']:,}",
        f"{order['spare']:,}",
        f"{order['cpu_seconds']:.0f}",
    )
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
