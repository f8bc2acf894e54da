"""`qubayes compare`: structural distance between two networks."""

from pathlib import Path
from typing import Annotated

import typer

from .options import AsJson
from .shell import print_json, say


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compare")(compare)


def compare(
    learned: Annotated[Path, typer.Argument(metavar="A", help="The learned network.", show_default=False)],
    truth: Annotated[Path, typer.Argument(metavar="B", help="The true network.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Compare the network A with the network B: structural Hamming distance, precision and recall of edges."""
    from ..network import compare, read_network

    found = compare(read_network(learned), read_network(truth))
    if as_json:
        print_json(found.as_json())
    else:
        say("\n".join(found.describe()))
