"""Held-out rows with at most three parents and without a limit of parents.

    python -m benchmarks heldout NETWORK.bif [...] [--rows 1000 10000] [--fresh 10000]
        [--seconds 30] [--results heldout.jsonl] [--page PAGE.md]

Rows are drawn from each network. The same search (`Growth`, one thread, BDeu with equivalent sample
size 1) runs for the same processor time with at most three parents a variable and without a limit;
the probabilities are fitted with the same prior, and the log-likelihood of fresh rows of the network
is taken. The table also has the log-likelihood by the network that the rows are drawn from. With
`--results`, finished searches are kept and not run again; `--page` puts the table between the two
comments that mark its place.
"""

import argparse
import json
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from qubayes import Knowledge, Score, Workers, fit, log_likelihood, read_network
from qubayes.candidates import Stamp
from qubayes.data import Dataset
from qubayes.network import Network, sample_dataset
from qubayes.scores import LimitedTables
from qubayes.search import Growth

BEGINS = "<!-- table of python -m benchmarks heldout -->"
ENDS = "<!-- end of the table -->"
SCORE = Score("bdeu", 1.0)
LIMITED = 3
MOST_CELLS = 10**6  # of a table of probabilities


class Outcome(NamedTuple):
    """A network that was learned, and how it predicts fresh rows."""

    network: str
    rows: int
    limit: int | None  # parents of a variable
    score: float
    most: int  # parents that a variable has
    likelihood: float  # log, of a fresh row
    true: float  # the same by the network that the rows are drawn from


def main() -> None:
    """Run the searches that are not kept, and print the table."""
    options = _options()
    outcomes = kept(options.results)
    done = {outcome[:3] for outcome in outcomes}
    for path in options.networks:
        name = path.name.split(".")[0]
        for rows in options.rows:
            for limit in (LIMITED, None):
                if (name, rows, limit) not in done:
                    found = measure(path, rows, options.fresh, limit, options.seconds)
                    outcomes.append(found)
                    _keep(found, options.results)
    lines = table(outcomes)
    print("\n".join(lines))
    if options.page:
        options.page.write_text(with_table(options.page.read_text(), lines))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("networks", nargs="*", type=Path)
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--fresh", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--page", type=Path)
    return parser.parse_args()


def kept(path: Path | None) -> list[Outcome]:
    """Return the outcomes of earlier runs."""
    if path is None or not path.exists():
        return []
    return [Outcome(**json.loads(line)) for line in path.read_text().splitlines()]


def _keep(outcome: Outcome, path: Path | None) -> None:
    if path is not None:
        with path.open("a") as file:
            file.write(json.dumps(outcome._asdict()) + "\n")


def measure(path: Path, rows: int, fresh: int, limit: int | None, seconds: float) -> Outcome:
    """Learn from some rows of a network, and score fresh ones."""
    true = read_network(path)
    drawn = sample_dataset(true, rows + fresh, seed=1)
    seen = drawn.take(np.arange(rows))
    others = drawn.take(np.arange(rows, rows + fresh))
    network, score = learned(seen, limit, seconds)
    return Outcome(
        path.name.split(".")[0],
        rows,
        limit,
        score,
        max(map(len, network.parents)),
        log_likelihood(fit(network, seen, SCORE), others) / fresh,
        log_likelihood(true, others) / fresh,
    )


def learned(dataset: Dataset, limit: int | None, seconds: float) -> tuple[Network, float]:
    """Return the best network of a search with at most so many parents, and its score."""
    most = dataset.n - 1 if limit is None else limit
    engine = LimitedTables(SCORE.engine(dataset), dataset.arities, MOST_CELLS)
    allowed = Knowledge().resolve(dataset.names, most)
    growth = Growth(engine, dataset.names, allowed, Stamp(), workers=Workers(1))
    began = time.process_time()
    growth.run(lambda: seconds - (time.process_time() - began))
    assert growth.network is not None
    return growth.network, growth.score


def table(outcomes: list[Outcome]) -> list[str]:
    """Return a line for each network and number of rows."""
    lines = [
        "| network | rows | parents | score, at most 3 | no limit | fresh row, at most 3 | no limit |"
        " true network |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    found = {outcome[:3]: outcome for outcome in outcomes}
    for name, rows in dict.fromkeys((outcome.network, outcome.rows) for outcome in outcomes):
        limited = found.get((name, rows, LIMITED))
        free = found.get((name, rows, None))
        if limited is None or free is None:
            continue
        lines.append(
            f"| {name} | {rows:,} | {free.most} | {limited.score:,.1f} | {free.score:,.1f} |"
            f" {limited.likelihood:,.3f} | {free.likelihood:,.3f} | {free.true:,.3f} |"
        )
    return lines


def with_table(text: str, lines: list[str]) -> str:
    """Return the page with the table between the two comments."""
    head, begins, rest = text.partition(BEGINS)
    _, ends, tail = rest.partition(ENDS)
    if not begins or not ends:
        raise SystemExit(f"the page has no place for the table: {BEGINS} ... {ENDS}")
    return f"{head}{BEGINS}\n\n" + "\n".join(lines) + f"\n\n{ENDS}{tail}"


if __name__ == "__main__":
    main()
