"""`qubayes solve`: the best network of candidate parent sets."""

from pathlib import Path
from typing import Annotated, Any

import typer

from .options import AsJson, CandidatesFile, Seed, Threads
from .shell import fail_after_printing, print_json, print_written, progress_bar, say


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(solve)


def solve(
    file: CandidatesFile,
    solver: Annotated[
        str, typer.Option(help="anneal, exact, auto, digital, sa, bqp, hillclimb, order-sa, asobs or dimod.")
    ] = "anneal",
    time_limit: Annotated[float | None, typer.Option(help="Seconds; 10 unless given or --moves is.")] = None,
    moves: Annotated[
        int | None, typer.Option(help="End after this many moves instead: repeatable on any machine.")
    ] = None,
    setting: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting of the solver; may be repeated.")
    ] = None,
    start: Annotated[Path | None, typer.Option(help="Start from this network (any network file).")] = None,
    bound: Annotated[
        float, typer.Option(metavar="SECONDS", help="Spend this on a bound first, to know the gap.")
    ] = 0.0,
    presolve: Annotated[
        float, typer.Option(metavar="SECONDS", help="Spend this on removing sets that no optimum uses.")
    ] = 0.0,
    order: Annotated[str, typer.Option(help="Order bits of the QUBO: chordal, or scc as in the paper.")] = "chordal",
    penalty: Annotated[str, typer.Option(help="Penalties of the QUBO: tight, or paper.")] = "tight",
    cover: Annotated[str, typer.Option(help="How subsets are found: auto, search, ilp or ilp-only.")] = "auto",
    bits: Annotated[
        bool | None,
        typer.Option("--bits/--no-bits", help="Formulate, and check energy = -score on the QUBO; on for anneal."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the network; the ending chooses the format.")
    ] = None,
    trace: Annotated[Path | None, typer.Option(help="Write the score over time as CSV.")] = None,
    seed: Seed = 0,
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Find the best network of candidate parent sets, with a bound where one is known."""
    from ..candidates import read_candidates
    from ..foundation.files import check_places
    from ..foundation.workers import Workers
    from ..learning.solving import SolveSettings, solve_candidates
    from ..network import check_network_path, read_network, write_network
    from ..search import Limits, solver_named

    check_places([output, trace], [file])
    if output is not None:
        check_network_path(output, tables=False)
    limits = Limits(10.0 if time_limit is None and moves is None else time_limit, moves, seed)
    options = parsed_settings(setting or [])
    solver_named(solver, **options)  # raises before anything is read
    settings = SolveSettings(solver, options, limits, bound, presolve, bits, order, penalty, cover)
    beginning = read_network(start) if start else None
    candidates, workers = read_candidates(file), Workers(threads)
    with progress_bar(quiet=as_json) as show:
        solution = solve_candidates(candidates, settings, start=beginning, workers=workers, on_progress=show)
    if output is not None:
        write_network(solution.network, output)
    if trace is not None:
        solution.write_trace(trace)
    if as_json:
        print_json(solution.as_json())
    else:
        say("\n".join(solution.describe()))
        print_written([output, trace])
    fail_after_printing(interrupted=solution.interrupted and "this is the best network so far")


def parsed_settings(texts: list[str]) -> dict[str, Any]:
    """Return {name: value} of NAME=VALUE; a value is read as JSON, or as the text that it is."""
    from json import JSONDecodeError, loads

    from ..foundation.errors import SettingError

    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise SettingError(f"--set {text}; give NAME=VALUE")
        try:
            found[name] = loads(value)
        except (JSONDecodeError, RecursionError):
            found[name] = value
    return found
