"""Commands on networks: `score`, `judge`, `fit`, `compare`, `convert`, `draw`, `sample`."""

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..settings import Ess, MaxParents, ReadSettings, Seed, TotalSeconds
from .options import AsJson, DataFile, NetworkFile, ScoreName, Threads, made_by, search_options
from .shell import (
    Clock,
    fail_after_printing,
    on_one_line,
    print_json,
    print_result,
    progress_bar,
    say,
)

if TYPE_CHECKING:
    from ..candidates import CandidateSearch


def score(
    data: DataFile,
    network: NetworkFile,
    score: ScoreName = "bdeu",
    ess: Ess = 1.0,
    per_vertex: Annotated[
        bool, typer.Option("--per-vertex", help="List the score of every vertex.")
    ] = False,
    as_json: AsJson = False,
    reading: ReadSettings = made_by(ReadSettings),
) -> None:
    """Score a network on data; with probabilities, also the log-likelihood of the rows.

    Where the states of the network are intervals, numbers are put into them.
    """
    from ..network import score as score_network

    clock = Clock()
    found = score_network(network, data, score, ess, reading=reading)
    if as_json:
        scores = {"per_vertex": dict(found.per_vertex)} if per_vertex else {}
        print_json({**found.as_json(), **scores, "seconds": clock.seconds})
        return
    say("\n".join(found.describe()))
    for name, value in found.per_vertex.items() if per_vertex else ():
        say(f"{value:.6f}\t{on_one_line(name)}")


def judge(
    data: DataFile,
    network: NetworkFile,
    max_parents: MaxParents = None,
    search: "CandidateSearch" = made_by(search_options),
    time_limit: TotalSeconds = None,
    holdout: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|SHARE",
            help="Rows for the likelihood: other data, or a share of these, as 0.2.",
        ),
    ] = None,
    seed: Seed = 0,
    threads: Threads = None,
    as_json: AsJson = False,
    reading: ReadSettings = made_by(ReadSettings),
) -> None:
    """Judge a network: its score beside the optimum or a bound, weakest edges, held-out rows."""
    from ..foundation.workers import Workers
    from ..learning import judge as judge_network

    share: float | str | None = holdout
    with suppress(ValueError):
        share = None if holdout is None else float(holdout)
    with progress_bar(quiet=as_json) as show:
        found = judge_network(
            data,
            network,
            max_parents,
            holdout=share,
            workers=Workers(threads),
            on_progress=show,
            score=search.score,
            knowledge=search.knowledge,
            possible_parents=search.possible_parents,
            time_limit=time_limit,
            seed=seed,
            reading=reading,
        )
    print_result(found, as_json=as_json)
    fail_after_printing(
        interrupted=found.learned.interrupted and "the best network is the best so far"
    )


def fit(
    network: NetworkFile,
    data: DataFile,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The fitted network: .bif, .xmlbif or .json.")
    ],
    score: Annotated[
        str,
        typer.Option(
            "--score",
            metavar="NAME",
            help="Prior of this score, as bdeu or k2; ml for frequencies.",
        ),
    ] = "bdeu",
    ess: Ess = 1.0,
    as_json: AsJson = False,
    reading: ReadSettings = made_by(ReadSettings),
) -> None:
    """Estimate the probabilities of a network from data."""
    from ..foundation.errors import FormatError
    from ..foundation.files import check_places
    from ..network import fit as fit_network
    from ..network import holds_tables, write_network
    from ..scores import Score

    clock = Clock()
    check_places([output], [network, data])
    if not holds_tables(output):
        raise FormatError(
            f"{output}: the format holds no probabilities; give .bif, .xmlbif or .json"
        )
    fitted = fit_network(
        network, data, score if score == "ml" else Score(score, ess), reading=reading
    )
    write_network(fitted, output)
    numbers = sum(table.size for table in fitted.tables or ())
    if as_json:
        facts = {
            "n": fitted.n,
            "edges": len(fitted.edges),
            "probabilities": numbers,
            "output": str(output),
        }
        print_json({**facts, "seconds": clock.seconds})
    else:
        say(
            f"{fitted.n} vertices, {len(fitted.edges)} edges, {numbers:,} probabilities in {output}"
        )


def compare(
    learned: Annotated[
        Path, typer.Argument(metavar="A", help="The learned network.", show_default=False)
    ],
    truth: Annotated[
        Path, typer.Argument(metavar="B", help="The true network.", show_default=False)
    ],
    as_json: AsJson = False,
) -> None:
    """Compare networks A and B: structural Hamming distance, precision and recall of edges."""
    from ..network import compare, read_network

    print_result(compare(read_network(learned), read_network(truth)), as_json=as_json)


def convert(
    source: Annotated[
        Path, typer.Argument(metavar="A", help="The network file to read.", show_default=False)
    ],
    target: Annotated[
        Path,
        typer.Argument(
            metavar="B",
            help="The file to write: .bif, .xmlbif, .json, .dot, .graphml, .bnlearn or .csv; "
            "also .gz.",
        ),
    ],
    class_only: Annotated[
        bool,
        typer.Option(
            "--cpdag", help="Write the equivalence class: reversible edges without direction."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Convert the network file A to the format that the ending of B names."""
    from ..network import check_network_path, holds_tables, read_network, write_cpdag, write_network

    check_network_path(target)
    network = read_network(source)
    (write_cpdag if class_only else write_network)(network, target)
    kept = network.tables is not None and holds_tables(target)
    if as_json:
        print_json(
            {
                "n": network.n,
                "edges": len(network.edges),
                "probabilities": kept,
                "output": str(target),
            }
        )
        return
    lost = "" if kept or network.tables is None else "; this format holds no probabilities"
    say(f"{network.n} vertices, {len(network.edges)} edges in {target}{lost}")


def draw(
    network: Annotated[
        Path,
        typer.Argument(help="A network file; the ending tells its format.", show_default=False),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="A .svg, .png or .html file (a page to pan, zoom and search)."
        ),
    ],
    candidates: Annotated[
        Path | None,
        typer.Option(
            "--candidates",
            help="Scores of the same variables; edges get as thick as dropping them costs.",
        ),
    ] = None,
    class_only: Annotated[
        bool,
        typer.Option(
            "--cpdag", help="No arrow heads on edges that equivalent networks turn round."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Draw a network: parents above children, few crossings."""
    from ..candidates import read_candidates
    from ..network import read_network
    from ..report import write_drawing

    clock = Clock()
    drawn = read_network(network)
    write_drawing(
        drawn, output, read_candidates(candidates) if candidates else None, class_only=class_only
    )
    if as_json:
        print_json(
            {
                "n": drawn.n,
                "edges": len(drawn.edges),
                "output": str(output),
                "seconds": clock.seconds,
            }
        )
    else:
        say(f"{drawn.n} vertices and {len(drawn.edges)} edges in {output}")


def sample(
    network: Annotated[
        Path, typer.Argument(help="A network with probabilities: .bif, .xmlbif or .json.")
    ],
    rows: Annotated[int, typer.Option("--rows", "-n", help="How many rows to draw.")] = 1000,
    seed: Seed = 0,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="A .csv, .tsv, .dat or .parquet file; stdout unless given."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Draw rows from a network."""
    from ..data import write, write_rows
    from ..foundation.errors import SettingError
    from ..network import read_network, sample_dataset

    if as_json and output is None:
        raise SettingError(
            "--json and the rows would both go to stdout; name a file for the rows with -o"
        )
    clock = Clock()
    drawn = sample_dataset(read_network(network), rows, seed)
    dataset = (
        drawn
        if output is not None and output.suffix.lower() == ".parquet"
        else drawn.with_plain_states()
    )
    for name, before, after in zip(drawn.names, drawn.states, dataset.states, strict=True):
        for state, other in zip(before, after, strict=True):
            if state != other:
                say(
                    f"qubayes: {name!r}: {state!r} means a missing value; written as {other!r}",
                    error=True,
                )
    if output is None:
        write_rows(dataset, sys.stdout)
        return
    write(dataset, output)
    if as_json:
        facts = {"n": dataset.n, "rows": dataset.rows, "seed": seed, "output": str(output)}
        print_json({**facts, "checksum": dataset.checksum, "seconds": clock.seconds})
    else:
        say(f"{dataset.rows} rows of {dataset.n} variables in {output}")
