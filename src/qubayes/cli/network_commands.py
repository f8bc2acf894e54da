"""Commands: `query`, `feature`, `score`, `judge`, `fit`, `compare`, `convert`, `draw`, `sample`."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..foundation.summary import aligned, counted
from ..settings import Ess, MaxParents, PenaltyFactor, ReadSettings, Seed, TotalSeconds
from .options import (
    AsJson,
    DataFile,
    NetworkFile,
    ScoreName,
    Threads,
    given_options,
    made_by,
    refuse,
    search_options,
)
from .shell import (
    Clock,
    fail_after_printing,
    on_one_line,
    print_json,
    print_result,
    print_written,
    progress_bar,
    say,
)

if TYPE_CHECKING:
    from ..candidates import CandidateSearch
    from ..network import Network


def query(
    network: Annotated[
        Path,
        typer.Argument(
            help="A network with probabilities: .bif, .xmlbif or .json.", show_default=False
        ),
    ],
    given: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A=STATE,...", help="Name the states that are known; may be repeated."
        ),
    ] = None,
    of: Annotated[
        list[str] | None,
        typer.Option(
            metavar="C,...",
            help="Show these variables only, instead of all others; may be repeated.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compute probabilities, given what is known.

    For example, qubayes query alarm.bif --given HISTORY=true --of LVFAILURE prints P(LVFAILURE |
    HISTORY = true). A number is put into its interval where the states are intervals. The
    probabilities are exact; a network that is too dense for that is refused.
    """
    from ..network import parsed_states, read_network
    from ..network import query as probabilities

    known = read_network(network)
    states = parsed_states(given or [], known.names)
    wanted = [] if of is None else names_of_variables(of, known.names)
    print_result(probabilities(known, states, wanted), as_json=as_json)


def feature(
    draws: Annotated[
        Path,
        typer.Argument(help="Networks that learn --draws wrote: .jsonl.", show_default=False),
    ],
    features: Annotated[
        list[str],
        typer.Argument(
            help="An edge 'A -> B', two joined variables 'A -- B', a directed path 'A ~> B', or "
            "a v-structure 'A -> B <- C'.",
            show_default=False,
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Compute how probable features of the network are, by networks drawn from the posterior."""
    from ..search.posterior import read_draws

    drawn = read_draws(draws)
    shares = {words: drawn.probability(words) for words in features}
    if as_json:
        print_json({"draws": len(drawn), "about": drawn.about, "features": shares})
        return
    say(f"{len(drawn):,} networks drawn from the posterior: {drawn.about}")
    for line in aligned([(words, f"{share:.3f}") for words, share in shares.items()]):
        say(line)


def names_of_variables(texts: list[str], names: Sequence[str]) -> list[str]:
    """Return the names in ["A,B", "C"]; a variable whose name has a comma is one."""
    whole = [[text] if text in names else text.split(",") for text in texts]
    return [name.strip() for each in whole for name in each]


def score(
    data: DataFile,
    network: NetworkFile,
    score: ScoreName = "auto",
    ess: Ess = 1.0,
    penalty: PenaltyFactor = 1.0,
    per_vertex: Annotated[
        bool, typer.Option("--per-vertex", help="List the score of every variable.")
    ] = False,
    as_json: AsJson = False,
    reading: ReadSettings = made_by(ReadSettings),
) -> None:
    """Score a network on data.

    A network with probabilities also gets the log-likelihood of the rows. Where its states are
    intervals, numbers are put into them.
    """
    from ..network import score as score_network

    clock = Clock()
    found = score_network(network, data, score, ess, penalty, reading=reading)
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
            help="Compute the likelihood on other data, or on a share of the rows, such as 0.2.",
        ),
    ] = None,
    seed: Seed = 0,
    threads: Threads = None,
    as_json: AsJson = False,
    reading: ReadSettings = made_by(ReadSettings),
) -> None:
    """Compare a network with the optimum, edge by edge.

    Prints how far its score is from the optimum or a bound, the edges of the least support, better
    parents, and the likelihood of held-out rows.
    """
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
        Path,
        typer.Option("--output", "-o", help="Write the fitted network: .bif, .xmlbif or .json."),
    ],
    score: Annotated[
        str,
        typer.Option(
            "--score",
            metavar="NAME",
            help="Use the prior of this score, such as bdeu or k2; ml for frequencies.",
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
        what = "parameters" if () in (fitted.states or ()) else "probabilities"
        say(f"{size_of(fitted)}, {numbers:,} {what}")
        print_written({output: f"network with {what}"})


def compare(
    learned: Annotated[
        Path, typer.Argument(metavar="A", help="The learned network.", show_default=False)
    ],
    truth: Annotated[
        Path, typer.Argument(metavar="B", help="The true network.", show_default=False)
    ],
    as_json: AsJson = False,
) -> None:
    """Compare two networks.

    Prints structural Hamming distances, and the precision and recall of the edges of A.
    """
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
    data: Annotated[
        Path | None,
        typer.Option(
            help="Keep the directions that this table tells in the class: by experiments "
            "(--interventions), and from states to numbers.",
        ),
    ] = None,
    as_json: AsJson = False,
    reading: ReadSettings = made_by(ReadSettings),
    given: dict[str, str] = made_by(given_options),
) -> None:
    """Convert a network file to another format.

    The ending of B chooses the format.
    """
    from ..data import read
    from ..network import (
        check_network_path,
        holds_tables,
        read_network,
        told_by,
        write_cpdag,
        write_network,
    )

    if not class_only:
        refuse(given, ["data"], "without --cpdag")
    if data is None:
        refuse(given, [each.name for each in fields(ReadSettings)], "without --data")
    check_network_path(target)
    network = read_network(source)
    if class_only:
        told = None if data is None else told_by(network, read(data, reading))
        write_cpdag(network, target, told)
    else:
        write_network(network, target)
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
    say(size_of(network))
    kind = "with probabilities" if kept else "without probabilities"
    lost = "" if kept or network.tables is None else ", which this format does not hold"
    print_written({target: f"network {kind}{lost}"})


def size_of(network: "Network") -> str:
    """Return the numbers of variables and edges, in words."""
    return f"{counted(network.n, 'variable')}, {counted(len(network.edges), 'edge')}"


def draw(
    network: Annotated[
        Path,
        typer.Argument(help="A network file; the ending chooses the format.", show_default=False),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Write the picture: .svg, .png or .html (to move, zoom and search).",
        ),
    ],
    candidates: Annotated[
        Path | None,
        typer.Option(
            "--candidates",
            help="Draw edges as wide as these candidate parent sets say that they matter.",
        ),
    ] = None,
    class_only: Annotated[
        bool,
        typer.Option("--cpdag", help="Draw reversible edges without arrow heads."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Draw a network as SVG, PNG or HTML."""
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
        say(size_of(drawn))
        print_written({output: "picture"})


def sample(
    network: Annotated[
        Path, typer.Argument(help="A network with probabilities: .bif, .xmlbif or .json.")
    ],
    rows: Annotated[int, typer.Option("--rows", "-n", help="Generate this many rows.")] = 1000,
    seed: Seed = 0,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write the rows: .csv, .tsv, .dat or .parquet. Default: to stdout.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Generate rows from a network."""
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
        say(f"{counted(dataset.rows, 'row')} of {counted(dataset.n, 'variable')}")
        print_written({output: "table"})
