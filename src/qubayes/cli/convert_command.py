"""`qubayes convert`: a network file to another format."""

from pathlib import Path
from typing import Annotated

import typer

from .options import AsJson
from .shell import print_json, say


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("convert")(convert)


def convert(
    source: Annotated[Path, typer.Argument(metavar="A", help="The network file to read.", show_default=False)],
    target: Annotated[
        Path,
        typer.Argument(
            metavar="B", help="The file to write: .bif, .xmlbif, .json, .dot, .graphml, .bnlearn or .csv; also .gz."
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Convert the network file A to the format that the ending of B names."""
    from ..network import check_network_path, holds_tables, read_network, write_network

    check_network_path(target)
    network = read_network(source)
    write_network(network, target)
    kept = network.tables is not None and holds_tables(target)
    if as_json:
        print_json({"n": network.n, "edges": network.edges, "probabilities": kept, "output": str(target)})
        return
    lost = "" if kept or network.tables is None else "; this format holds no probabilities"
    say(f"{network.n} vertices, {network.edges} edges in {target}{lost}")
