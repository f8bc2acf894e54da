"""`qubayes score`: the score of a given network on data."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import AsJson, DataFile, Ess, ScoreName, reads_data
from .shell import Clock, on_one_line, print_json, say

if TYPE_CHECKING:
    from ..data import ReadSettings


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
