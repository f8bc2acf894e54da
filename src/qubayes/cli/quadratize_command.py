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
    from ..quadratize import quadratize, read_polynomial
    from ..quadratize import trade_off as find_trade_off

    polynomial = read_polynomial(poly)
    result = quadratize(
        polynomial, assumptions=assumptions, mode=mode, fewest_couplers=fewest_couplers, penalty=penalty,  # type: ignore[arg-type]
        time_limit=time_limit,
    )  # fmt: skip
    if output is not None:
        from ..machines import write_model

        write_model(result.model, output)
    if decoder is not None:
        from ..foundation.files import replacing

        with replacing(decoder) as file:
            file.write(result.decoder.to_json())
    rows: list[Any] = []
    if trade_off is not None:
        rows = list(find_trade_off(polynomial, assumptions=assumptions, extra_bits=trade_off, time_limit=time_limit))  # type: ignore[arg-type]
    _print(result, rows, as_json)


def _print(result: Any, rows: list[Any], as_json: bool) -> None:
    polynomial = result.polynomial
    facts: dict[str, Any] = {
        "variables": len(polynomial.variables),
        "terms": len(polynomial.terms),
        "degree": polynomial.degree,
        "bits": {"total": result.bits, "sets": len(result.sets)},
        "couplers": result.couplers,
        "lower_bound": result.lower_bound,
        "proved": result.proved,
        "status": result.status,
        "seconds": result.seconds,
    }
    if rows:
        facts["trade_off"] = [row._asdict() for row in rows]
    if as_json:
        print_json(facts)
        return
    facts["bits"] = result.bits
    facts["proved"] = "minimal number of sets" if result.proved else "no"
    for name in ("variables", "terms", "degree", "bits", "couplers", "lower_bound", "proved", "status", "seconds"):
        say(f"{name.replace('_', ' '):<12} {facts[name]}")
    for row in rows:
        say(f"{row.bits} bits: {row.couplers} couplers{', proved fewest' if row.proved else ''}")
