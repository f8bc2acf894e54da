"""`qubayes solve`: the best network of candidate parent sets."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import AsJson, Seed, Threads
from .shell import counted, print_json, print_written, progress_bar, say

if TYPE_CHECKING:
    from ..candidates import Candidates
    from ..foundation.progress import OnProgress
    from ..network import Network
    from ..qubo import Formulation
    from ..search import Solution


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(solve)


def solve(
    file: Annotated[Path, typer.Argument(metavar="FILE.jkl", help="Candidate sets: .jkl, .scores, .pss, .qbc.")],
    solver: Annotated[
        str, typer.Option(help="anneal, exact, auto, digital, sa, bqp, hillclimb, order-sa, asobs or dimod.")
    ] = "anneal",
    time_limit: Annotated[float | None, typer.Option(help="Seconds; 10 unless given or --moves is.")] = None,
    moves: Annotated[int | None, typer.Option(help="End after so many moves instead: repeatable anywhere.")] = None,
    setting: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting of the solver; may be repeated.")
    ] = None,
    start: Annotated[Path | None, typer.Option(help="Start from this network (any network file).")] = None,
    bound: Annotated[float, typer.Option(metavar="SECONDS", help="Spend this on a bound first, to tell a gap.")] = 0.0,
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
    json: AsJson = False,
) -> None:
    """Find the best network of candidate parent sets, with a bound where one is known."""
    from ..candidates.candidate_files import read_candidates
    from ..foundation.files import check_places
    from ..foundation.workers import Workers
    from ..network import check_network_path, read_network, write_network
    from ..search import Limits, solver_named
    from ..search import solve as search

    check_places([output, trace], [file])
    if output is not None:
        check_network_path(output, tables=False)
    limits = Limits(10.0 if time_limit is None and moves is None else time_limit, moves, seed)
    chosen = solver_named(solver, **_settings(setting or []))
    beginning = read_network(start) if start else None
    candidates, workers = read_candidates(file), Workers(threads)
    with_bits = chosen.takes == "formulation" or (bits if bits is not None else chosen.name == "anneal")
    with progress_bar(quiet=json) as show:
        try:
            presolved = _presolved(candidates, presolve, workers, show) if presolve else None
            reduced = presolved.candidates if presolved else candidates
            model = _formulated(reduced, order, penalty, cover, workers, show) if with_bits else reduced
        except KeyboardInterrupt:
            solution = _start_of(candidates, beginning, chosen.name, seed)
        else:
            solution = search(
                model,
                chosen,
                limits=limits,
                start=beginning,
                bound_seconds=bound,
                workers=workers,
                on_progress=show,
            )
            solution = presolved.restore(solution) if presolved else solution
    if output is not None:
        write_network(solution.network, output)
    if trace is not None:
        write_trace(solution, trace)
    if json:
        print_json(solution.as_json())
    else:
        print_solution(solution)
        print_written([output, trace])
    if solution.interrupted:
        say("qubayes: interrupted; this is the best network so far", error=True)
        raise typer.Exit(130)


def _settings(texts: list[str]) -> dict[str, Any]:
    """{name: value} of NAME=VALUE; a value is read as JSON, or as the text that it is."""
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


def _presolved(candidates: "Candidates", seconds: float, workers: Any, show: "OnProgress") -> Any:
    from ..search.exact.presolve import presolve

    presolved = presolve(candidates, seconds=seconds, workers=workers, on_progress=show)
    if presolved.interrupted:
        raise KeyboardInterrupt
    return presolved


def _start_of(candidates: "Candidates", start: "Network | None", solver: str, seed: int) -> "Solution":
    """What there is if the work was interrupted before the search."""
    from dataclasses import replace

    from ..search import Limits, solve

    found = solve(candidates, "exact", limits=Limits(0.0, None, seed), start=start)
    status = "interrupted before the search; the start is returned"
    return replace(found, interrupted=True, status=status, solver=solver, statistics={})


def _formulated(
    candidates: "Candidates", order: str, penalty: str, cover: str, workers: Any, show: "OnProgress"
) -> "Formulation":
    from ..qubo import formulate
    from ..qubo.subsets import Budget
    from ..qubo.subsets import cover as find_subsets

    # A tenth of the search for subsets costs a few bits in a thousand and saves most of its time.
    subsets = find_subsets(
        candidates, method=cover, budget=Budget(effort=0.1, rounds=0), workers=workers, on_progress=show
    )
    if subsets.status != "finished":
        raise KeyboardInterrupt
    return formulate(candidates, subsets, order=order, penalty=penalty, workers=workers)


def write_trace(solution: "Solution", path: Path) -> None:
    """The score over time as CSV."""
    from ..foundation.files import replacing

    with replacing(path) as file:
        file.write("seconds,score\n")
        file.writelines(f"{seconds!r},{score!r}\n" for seconds, score in solution.trace)


def print_solution(solution: "Solution") -> None:
    """The result in a few lines."""
    stamp = solution.stamp
    kind = stamp.score if stamp.ess is None else f"{stamp.score}, ess {stamp.ess:g}"
    say(f"score {solution.score:,.6f} ({kind}), {solution.score - solution.empty_score:,.6f} above no edges")
    edges = counted(sum(map(len, solution.parents)), "edge")
    say(f"{told_gap(solution)}; {edges} among {len(solution.names)} variables")
    if solution.energy is not None and solution.bits is not None:
        say(f"energy {solution.energy:,.6f} of {len(solution.bits):,} bits, equal to minus the score")
    say(f"{solution.solver}: {solution.status} ({solution.seconds:.2f} s)")


def told_gap(solution: "Solution") -> str:
    """The gap in words."""
    if solution.proved:
        return "proved optimal"
    if solution.gap == float("inf"):
        return f"no network scores more than {solution.bound:,.6f}"
    return f"gap {100 * solution.gap:.3g} % of that: no network scores more than {solution.bound:,.6f}"
