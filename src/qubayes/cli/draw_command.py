"""`qubayes draw`: the picture of a network."""

from pathlib import Path
from typing import Annotated

import typer

from .options import AsJson
from .shell import Clock, print_json, say


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("draw")(draw)


def draw(
    network: Annotated[Path, typer.Argument(help="A network file; the ending tells its format.", show_default=False)],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="A .svg, .png or .html file (a page to pan, zoom and search)."),
    ],
    candidates: Annotated[
        Path | None,
        typer.Option("--candidates", help="Scores of the same variables; edges get as thick as dropping them costs."),
    ] = None,
    class_only: Annotated[
        bool, typer.Option("--cpdag", help="No arrow heads on edges that equivalent networks turn round.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Draw a network: parents above children, few crossings."""
    from ..network import cpdag, read_network
    from ..report import network_strengths, write_drawing

    clock = Clock()
    drawn, strengths = read_network(network), None
    if candidates:
        from ..candidates import read_candidates

        strengths = network_strengths(read_candidates(candidates), drawn)
    free = cpdag(drawn).undirected if class_only else ()
    undirected = frozenset((a, b) if a in drawn.parents[b] else (b, a) for a, b in free)
    write_drawing(drawn, output, strengths, undirected)
    if as_json:
        print_json({"n": drawn.n, "edges": drawn.edges, "output": str(output), "seconds": clock.seconds})
    else:
        say(f"{drawn.n} vertices and {drawn.edges} edges in {output}")
