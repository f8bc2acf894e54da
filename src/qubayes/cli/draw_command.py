"""`qubayes draw`: the picture of a network."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import AsJson
from .shell import Clock, print_json, say

if TYPE_CHECKING:
    from ..network import Network


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
    from ..report import write_drawing

    clock = Clock()
    drawn = read_network(network)
    strengths = _strengths(drawn, candidates) if candidates else None
    free = cpdag(drawn).undirected if class_only else ()
    undirected = frozenset((a, b) if a in drawn.parents[b] else (b, a) for a, b in free)
    write_drawing(drawn, output, strengths, undirected)
    if as_json:
        print_json({"n": drawn.n, "edges": drawn.edges, "output": str(output), "seconds": clock.seconds})
    else:
        say(f"{drawn.n} vertices and {drawn.edges} edges in {output}")


def _strengths(network: "Network", candidates: Path) -> dict[tuple[int, int], float]:
    """The strength of each edge; the vertices of the file of candidates are found by name."""
    from ..candidates import read_candidates
    from ..foundation.errors import QubayesError
    from ..report import edge_strengths

    scored = read_candidates(candidates)
    if set(scored.names) != set(network.names):
        odd = min(set(scored.names) ^ set(network.names))
        raise QubayesError(f"{odd!r} is in only one of the network and {candidates}; give the scores of its variables")
    place = {name: v for v, name in enumerate(network.names)}
    back = [place[name] for name in scored.names]  # vertex of the file -> vertex of the network
    there = {name: v for v, name in enumerate(scored.names)}
    parents = [[there[network.names[p]] for p in network.parents[v]] for v in back]
    return {(back[parent], back[child]): loss for (parent, child), loss in edge_strengths(scored, parents).items()}
