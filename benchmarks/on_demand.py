"""Bits, couplers and gaps of the paper's, the default and the on-demand formulations, beside the paper's Table 1.

    python -m benchmarks on-demand [DIR] [--data DATA] [--instances alarm:4,andes:2]
        [--flips 200000000] [--walks 1000] [--limit 60] [--seed 0] [--threads 1]
        [--json docs/results/on-demand.jsonl] [--pages docs/results/README.md,...]

DIR holds candidate sets as {name}_m{m}_s0*.qbc (as `qubayes candidates -m M --score bds` or `python
-m benchmarks paper` writes them) and, if there are, subsets of the same name that end in .qbs.
Candidate sets that are not there are found in a sample of 1,000 rows of the instance in DATA, and
kept in DIR. The subsets are the same in every row.

A row is printed as soon as an instance is measured, and appended to the file --json; instances that
are in it are not measured again. Without DIR nothing is measured. The table and the sentence about
it are put on --pages, between comments of their names.

`sa` tries --flips single flips in one read of each formulation; `anneal` finds the best known
network with 10,000 moves for each variable. A gap is a percentage of the gain of the best network
that any of them found: of the best annealed state that violates no constraint, and of the best
annealed state after repair ("none": there is none). The search for order bits ends after --walks
walks that find no state below the best network, or at the time limit --limit. "walks" are those
since the last such state was found, with the moves of each; "below" counts the states that were
found. "of default", "D" (bits of vertices with at most two possible parents: docs/theory.md,
Theorem D) and the CPU seconds of formulating are those of the on-demand formulation."""

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.paper.bench import with_tables
from benchmarks.paper.instances import instance
from benchmarks.paper.printed import BITS, INSTANCES, Instance
from benchmarks.paper.sentences import with_sentences
from benchmarks.paper.table import Table
from benchmarks.paper.trial import circumstances
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
from qubayes.search import Limits, solve, solver_named

KINDS = {
    "paper": ("scc", "paper"),
    "default": ("chordal", "tight"),
    "adjacent": ("adjacent", "tight"),
}
MOVES = 10_000  # of `anneal` for each variable
SAME = 5e-6  # difference of gaps that counts as none: half of the last printed digit
SIZES = ("instance", "Table 1", "bits {}", "of default", "couplers {}", "of default")
COLUMNS = (*SIZES, "raw gap, % {}", "repaired gap, % {}", "walks", "below", "D", "CPU s")
Row = dict[str, Any]


def main() -> None:
    """Measure, print a table, and put it on pages."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directory", type=Path, nargs="?")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--instances", default=",".join(map(str, INSTANCES)))
    parser.add_argument("--flips", type=int, default=200_000_000)
    parser.add_argument("--walks", type=int, default=Demand().walks)
    parser.add_argument("--limit", type=float, default=Demand().seconds)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--pages", default="")
    options = parser.parse_args()
    kept = read_rows(options.json) if options.json and options.json.exists() else []
    known = {row["instance"]: row for row in kept}
    rows: list[Row] = []
    print("\n".join(table_of([]).body().splitlines()[:2]), flush=True)
    for name in options.instances.split(","):
        if name not in known and options.directory is not None:
            known[name] = measured(name, options)
            if options.json:
                with options.json.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(known[name]) + "\n")
        if name in known:
            rows.append(known[name])
            print(f"| {' | '.join(cells_of(known[name]))} |", flush=True)
    for page in filter(None, options.pages.split(",")):
        text = Path(page).read_text(encoding="utf-8")
        Path(page).write_text(with_rows(text, rows), encoding="utf-8")


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a file that --json wrote."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def with_rows(page: str, rows: Sequence[Row]) -> str:
    """Return the page with the table and the sentence about these rows in their places."""
    return with_sentences(
        with_tables(page, [table_of(rows)]), {"said-on-demand": sentence_of(rows)}
    )


def measured(name: str, options: argparse.Namespace) -> Row:
    """Return sizes and scores of all formulations of an instance, written as alarm:4."""
    stem, _, largest = name.partition(":")
    which = Instance(stem, int(largest))
    candidates, subsets = problem_of(which, options)
    workers = Workers(options.threads)
    known = solve(
        candidates,
        "anneal",
        limits=Limits(None, MOVES * candidates.n, options.seed),
        workers=workers,
    )
    row: Row = {"instance": name, "flips": options.flips, "seed": options.seed}
    row["limit"] = options.limit
    row |= circumstances()
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
        found = solve(
            made, solver_named("sa", flips=True), limits=limits, workers=workers
        ).statistics
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


class Gaps(NamedTuple):
    """How far the networks of the formulations are below the best, in parts of its gain; None: there is none."""

    raw: list[float | None]
    repaired: list[float | None]


def gaps_of(row: Row) -> Gaps:
    """Return the gaps in the order of KINDS."""
    made = [row["formulations"][kind] for kind in KINDS]
    found = [facts["repaired"] for facts in made if facts["repaired"] is not None]
    best = max(row["known"], *found)

    def gap(score: float | None) -> float | None:
        return None if score is None else (best - score) / (best - row["empty"])

    return Gaps([gap(facts["raw"]) for facts in made], [gap(facts["repaired"]) for facts in made])


def cells_of(row: Row) -> tuple[str, ...]:
    """Return the cells of the table for an instance."""
    made = [row["formulations"][kind] for kind in KINDS]
    default, order = row["formulations"]["default"], row["formulations"]["adjacent"]
    status, gaps = order["order_status"], gaps_of(row)
    return (
        row["instance"],
        f"{row['printed']:,.0f}" if "printed" in row else "",
        " / ".join(f"{facts['bits']['total']:,}" for facts in made),
        f"{order['bits']['total'] / default['bits']['total']:.1%}",
        " / ".join(f"{facts['couplers']:,}" for facts in made),
        f"{order['couplers'] / default['couplers']:.1%}",
        _percentages(gaps.raw),
        _percentages(gaps.repaired),
        "proved" if status["proved"] else f"{status['walks']:,} of {status['moves']:,}",
        f"{status['found']:,}",
        f"{order['spare']:,}",
        f"{order['cpu_seconds']:.0f}",
    )


def _percentages(gaps: Sequence[float | None]) -> str:
    return " / ".join("none" if gap is None else f"{100 * gap:.3f}" for gap in gaps)


def table_of(rows: Sequence[Row]) -> Table:
    """Return the table of the rows."""
    head = tuple(name.format(" / ".join(KINDS)) for name in COLUMNS)
    return Table("on-demand", "Order bits on demand", head, tuple(map(cells_of, rows)))


def sentence_of(rows: Sequence[Row]) -> str:
    """Return what the rows say about the on-demand formulation beside the default."""
    if not rows:
        return ""
    orders = [row["formulations"]["adjacent"] for row in rows]
    defaults = [row["formulations"]["default"] for row in rows]
    pairs = list(zip(orders, defaults, strict=True))
    bits = [order["bits"]["total"] / default["bits"]["total"] for order, default in pairs]
    couplers = [order["couplers"] / default["couplers"] for order, default in pairs]
    searched = [order["order_status"] for order in orders if not order["order_status"]["proved"]]
    walks = [status["walks"] for status in searched]
    met = [status for status in searched if status["found"]]
    leads = [_lead(gaps_of(row)) for row in rows]
    no_raw = [sum(facts["raw"] is None for facts in made) for made in (orders, defaults)]
    return (
        f"`adjacent` has fewer bits than the default on {sum(share < 1 for share in bits)} of "
        f"{len(rows)} instances ({_span(bits)} of them, and {_span(couplers)} of the couplers). On "
        f"{len(met)} its search met states below the best known network, and added order bits; "
        f"{min(walks)} to {max(walks)} walks after the last such state found none, which proves "
        f"nothing. After {rows[0]['flips'] / 1e6:,.0f} million flips of `sa` its best annealed "
        f"state after repair is better than the default's on {leads.count(1)} instances, worse on "
        f"{leads.count(-1)} and equal on {leads.count(0)}; without repair it has no feasible state "
        f"on {no_raw[0]}, the default on {no_raw[1]}."
    )


def _lead(gaps: Gaps) -> int:
    """Return 1 where `adjacent` ends above the default after repair, -1 where below, 0 where level."""
    _, default, order = (float("inf") if gap is None else gap for gap in gaps.repaired)
    if default == order or abs(default - order) < SAME:
        return 0
    return 1 if order < default else -1


def _span(shares: Sequence[float]) -> str:
    return f"{100 * min(shares):.0f} to {100 * max(shares):.0f} %"


if __name__ == "__main__":
    main()
