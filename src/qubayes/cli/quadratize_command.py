"""`qubayes quadratize`: a polynomial as a quadratic model with few bits."""

from pathlib import Path
from typing import Annotated, Any

import typer

from .shell import print_json, say


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("quadratize")(quadratize_command)


def quadratize_command(
    poly: Annotated[Path, typer.Argument(metavar="POLY.json", help="JSON list of [coefficient, [names...]].")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the quadratic model; the ending says how.")
    ] = None,
    decoder: Annotated[Path | None, typer.Option(help="Write the decoder as JSON.")] = None,
    assumptions: Annotated[str, typer.Option(help="general, conventional or terms-exclusive.")] = "general",
    mode: Annotated[str, typer.Option(help="auto, optimal or greedy.")] = "auto",
    fewest_couplers: Annotated[
        bool, typer.Option("--fewest-couplers", help="Among the smallest, the fewest couplers.")
    ] = False,
    trade_off: Annotated[
        int | None, typer.Option(help="Also show the fewest couplers with up to this many more bits.")
    ] = None,
    penalty: Annotated[str, typer.Option(help="tight (per term) or paper (Lemma B.2, one kappa).")] = "tight",
    time_limit: Annotated[float, typer.Option(help="Seconds for the integer program.")] = 120.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Turn a polynomial of bits into a quadratic model with as few bits as possible, and say what is proved."""
    from .. import quadratize as room

    polynomial = room.read_polynomial(poly)
    common: dict[str, Any] = {"assumptions": assumptions, "time_limit": time_limit}
    settings: dict[str, Any] = {"mode": mode, "fewest_couplers": fewest_couplers, "penalty": penalty}
    result = room.quadratize(polynomial, **common, **settings)
    if output is not None:
        result.write(output)
    if decoder is not None:
        result.decoder.write(decoder)
    rows = () if trade_off is None else room.trade_off(polynomial, extra_bits=trade_off, **common)
    if as_json:
        print_json(result.as_json() | ({"trade_off": [row._asdict() for row in rows]} if rows else {}))
    else:
        for line in [*result.describe(), *(row.describe() for row in rows)]:
            say(line)
