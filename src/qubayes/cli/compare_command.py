"""`qubayes compare`: how far a learned network is from another."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import AsJson
from .shell import print_json, say

if TYPE_CHECKING:
    from ..network import Agreement, Comparison


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
        print_json(summary(found))
    else:
        _print(found)


def summary(found: "Comparison") -> dict[str, Any]:
    """What --json prints."""
    return {
        "shd": found.distance,
        "shd_cpdag": found.cpdag_distance,
        "missing": found.missing,
        "extra": found.extra,
        "reversed": found.reversed,
        "edges": _facts(found.edges),
        "skeleton": _facts(found.skeleton),
        "cpdag": _facts(found.cpdag),
    }


def _facts(agreement: "Agreement") -> dict[str, Any]:
    return {
        "common": agreement.common,
        "a": agreement.learned,
        "b": agreement.truth,
        "precision": agreement.precision,
        "recall": agreement.recall,
        "f1": agreement.f1,
    }


def _print(found: "Comparison") -> None:
    changes = f"{found.missing} missing, {found.extra} extra, {found.reversed} reversed"
    say(f"structural Hamming distance {found.distance} ({changes})")
    say(f"structural Hamming distance of the equivalence classes {found.cpdag_distance}")
    say(f"{'':16}{'common':>8}{'A':>8}{'B':>8}{'precision':>11}{'recall':>8}{'F1':>8}")
    rows = {"directed edges": found.edges, "skeleton": found.skeleton, "class": found.cpdag}
    for name, its in rows.items():
        counts = f"{its.common:>8}{its.learned:>8}{its.truth:>8}"
        say(f"{name:16}{counts}{its.precision:>11.3f}{its.recall:>8.3f}{its.f1:>8.3f}")
