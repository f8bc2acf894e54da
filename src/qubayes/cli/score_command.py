"""`qubayes score`: how well any network explains data."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import AsJson, DataFile, Ess, ScoreName, reads_data
from .shell import Clock, on_one_line, print_json, say

if TYPE_CHECKING:
    from ..data import Dataset, ReadSettings
    from ..network import Network


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("score")(reads_data(score))


def score(
    data: DataFile,
    network: Annotated[Path, typer.Argument(help="A network: .bif, .xmlbif, .json, .dot, .graphml, .bnlearn or .csv.")],
    reading: "ReadSettings",
    score: ScoreName = "bdeu",
    ess: Ess = 1.0,
    per_vertex: Annotated[bool, typer.Option("--per-vertex", help="List the score of every vertex.")] = False,
    as_json: AsJson = False,
) -> None:
    """Score a network on data; with probabilities, also the log-likelihood of the rows.

    Where the states of the network are intervals, numbers are put into them.
    """
    from ..data import read
    from ..network import read_network, vertex_scores
    from ..scores import Score

    clock = Clock()
    chosen = Score(score, ess)
    graph = read_network(network)
    dataset = read(data, reading, like=graph)
    scores = dict(zip(graph.names, vertex_scores(graph, dataset, chosen).tolist(), strict=True))
    result = {
        "score": math.fsum(scores.values()),
        "name": chosen.name,
        "ess": chosen.stamped_ess,
        "arities": dataset.arities_from,
        "n": graph.n,
        "edges": graph.edges,
        "rows": dataset.rows,
        "other_columns": dataset.n - graph.n,
        **_likelihood(graph, dataset),
        **({"per_vertex": scores} if per_vertex else {}),
        "seconds": clock.seconds,
    }
    if as_json:
        print_json(result)
    else:
        _print(result)


def _likelihood(network: "Network", dataset: "Dataset") -> dict[str, Any]:
    """The log-likelihood, or why there is none: a structure may be scored on data with other states."""
    from ..foundation.errors import DataError
    from ..network import log_likelihood

    found, note = None, None
    if network.tables is None:
        note = "the network has no probabilities"
    else:
        try:
            found = log_likelihood(network, dataset)
        except DataError as error:
            note = str(error)
        if found == -math.inf:
            found, note = None, "minus infinity: the network holds some row impossible"
    per_row = found / dataset.rows if found is not None and dataset.rows else None
    return {"log_likelihood": found, "log_likelihood_per_row": per_row, "log_likelihood_note": note}


def _print(result: dict[str, Any]) -> None:
    ess = "" if result["ess"] is None else f", equivalent sample size {result['ess']:g}"
    say(f"{result['name']} score {result['score']:.6f}{ess}, arities from {result['arities']}")
    say(f"{result['n']} vertices, {result['edges']} edges, {result['rows']} rows")
    if result["other_columns"]:
        say(f"{result['other_columns']} columns of the data are no vertices and were passed over")
    if result["log_likelihood"] is None:
        say(f"log-likelihood: {result['log_likelihood_note']}")
    else:
        say(f"log-likelihood {result['log_likelihood']:.6f}, {result['log_likelihood_per_row']:.6f} a row")
    for name, value in result.get("per_vertex", {}).items():
        say(f"{value:.6f}\t{on_one_line(name)}")
