"""Order bits with a proof: bits and couplers beside the paper's, the default's and those of `adjacent`.

    python -m benchmarks proved-order DIR --data DATA --json docs/results/proved-order.jsonl --pages docs/results/README.md

DIR has the candidate sets (NAME_mM_s0.qbc), or gets them. Each certificate is checked by the checker, which shares no
code with what made it. Figures of the default and of `adjacent` are those of `benchmarks on-demand`."""

import argparse
import copy
import json
import time
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from benchmarks.on_demand import Row, problem_of, read_rows
from benchmarks.paper.bench import with_tables
from benchmarks.paper.printed import INSTANCES, Instance
from benchmarks.paper.table import Table
from benchmarks.paper.trial import circumstances
from qubayes.candidates import Candidates
from qubayes.foundation.workers import Workers
from qubayes.qubo import Demand, Formulation, formulate
from qubayes.search import checker

OTHERS = Path(__file__).parents[1] / "docs" / "results" / "on-demand.jsonl"
HEAD = (
    "instance",
    "Table 1",
    "bits default / adjacent / proved",
    "couplers default / adjacent / proved",
    "checked",
    "CPU s",
)


def main() -> None:
    """Measure, print a table, and put it on pages."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directory", type=Path, nargs="?")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--instances", default=",".join(map(str, INSTANCES)))
    parser.add_argument("--limit", type=float, default=Demand().seconds)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--pages", default="")
    options = parser.parse_args()
    kept = read_rows(options.json) if options.json and options.json.exists() else []
    known = {row["instance"]: row for row in kept}
    rows: list[Row] = []
    for name in options.instances.split(","):
        if name not in known and options.directory is not None:
            known[name] = measured(name, options)
            if options.json:
                with options.json.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(known[name]) + "\n")
        if name in known:
            rows.append(known[name])
    table = table_of(rows, read_rows(OTHERS))
    print(table.body())
    for page in filter(None, options.pages.split(",")):
        text = Path(page).read_text(encoding="utf-8")
        Path(page).write_text(with_tables(text, [table]), encoding="utf-8")


def measured(name: str, options: argparse.Namespace) -> Row:
    """Return what the proof of an instance, written as alarm:4, gives and takes."""
    stem, _, largest = name.partition(":")
    candidates, subsets = problem_of(Instance(stem, int(largest)), options)
    began = time.process_time()
    made = formulate(
        candidates,
        subsets,
        order="proved",
        demand=Demand(seconds=options.limit),
        workers=Workers(1),
    )
    seconds = time.process_time() - began
    certified = made.order_status.certified
    return {
        "instance": name,
        "limit": options.limit,
        **circumstances(),
        "certified": certified,
        "checked": certified and is_verified(made),
        "bits": made.bits,
        "couplers": made.qubo.couplers,
        "cpu_seconds": seconds,
    }


def is_verified(made: Formulation) -> bool:
    """Return whether the checker accepts the certificate."""
    certificate = copy.deepcopy(dict(made.certificate or {}))
    return checker.check_parts(scores_of(made.candidates), certificate).order is not None


def scores_of(candidates: Candidates) -> checker.Scores:
    """Return the scores of the candidate sets as the checker reads them."""
    names = candidates.names
    found: checker.Scores = {}
    for vertex, name in enumerate(names):
        sets = candidates.of(vertex)
        found[name] = {
            frozenset(names[parent] for parent in parents): Fraction(score)
            for parents, score in sets
        }
    return found


def table_of(rows: Sequence[Row], others: Sequence[Row]) -> Table:
    """Return the table of the rows, beside other formulations of the same instances."""
    beside = {row["instance"]: row for row in others}
    return Table(
        "proved-order",
        "Order bits with a proof",
        HEAD,
        tuple(cells_of(row, beside[row["instance"]]) for row in rows),
    )


def cells_of(row: Row, other: Row) -> tuple[str, ...]:
    """Return the cells of the table for an instance."""
    default, adjacent = (other["formulations"][kind] for kind in ("default", "adjacent"))
    bits = [default["bits"]["total"], adjacent["bits"]["total"]]
    couplers = [default["couplers"], adjacent["couplers"]]
    if row["certified"]:
        bits.append(row["bits"]["total"])
        couplers.append(row["couplers"])
    no_proof = "" if row["certified"] else " / no proof"
    return (
        row["instance"],
        f"{other['printed']:,.0f}",
        f"{' / '.join(f'{count:,}' for count in bits)}{no_proof}",
        f"{' / '.join(f'{count:,}' for count in couplers)}{no_proof}",
        "yes" if row["checked"] else "",
        f"{row['cpu_seconds']:.1f}",
    )


if __name__ == "__main__":
    main()
