"""`qubayes solve`: the best network of candidate parent sets; `check`: its certificate; `presolve`: fewer sets."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import (
    AsJson,
    BestCount,
    BoundSeconds,
    CandidatesFile,
    CertificateFile,
    CheckBits,
    Cover,
    KnowledgeFile,
    Moves,
    NamesFile,
    NetworkOutput,
    Order,
    Penalty,
    PresolveSeconds,
    Seed,
    SolverName,
    SolverSettings,
    StartNetwork,
    Threads,
    TimeLimit,
    TraceFile,
    WithinFactor,
    parsed_settings,
)
from .shell import fail_after_printing, print_json, print_written, progress_bar, say

if TYPE_CHECKING:
    from ..search import Limits


def solve(
    file: CandidatesFile,
    solver: SolverName = "anneal",
    time_limit: TimeLimit = None,
    moves: Moves = None,
    setting: SolverSettings = None,
    start: StartNetwork = None,
    names: NamesFile = None,
    knowledge: KnowledgeFile = None,
    bound: BoundSeconds = 0.0,
    presolve: PresolveSeconds = 0.0,
    order: Order = "chordal",
    penalty: Penalty = "tight",
    cover: Cover = "auto",
    bits: CheckBits = None,
    output: NetworkOutput = None,
    trace: TraceFile = None,
    certificate: CertificateFile = None,
    best: BestCount = None,
    within: WithinFactor = None,
    seed: Seed = 0,
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Find the best network of candidate parent sets, with a bound where one is known."""
    from ..foundation.errors import SettingError
    from ..foundation.files import check_places
    from ..foundation.workers import Workers
    from ..learning import SolveSettings, limits_of, solve_file

    limits, options = limits_of(time_limit, moves, seed), parsed_settings(setting)
    if best is not None or within is not None:
        if solver not in ("anneal", "exact") or presolve or moves is not None or certificate or output or trace:
            raise SettingError("a list of networks needs --solver exact, and takes --time-limit and --json alone")
        _show_alternatives(file, best, within, limits, as_json)
        return
    if certificate is not None:
        if solver not in ("anneal", "exact") or presolve:
            raise SettingError("--certificate needs --solver exact, and no --presolve: it is a proof for all sets")
        check_places([certificate, output, trace], [file, start])
        solver, options = "exact", {**options, "certificate": certificate}
    settings = SolveSettings(solver, options, limits, bound, presolve, bits, order, penalty, cover)
    with progress_bar(quiet=as_json) as show:
        given = {"start": start, "names": names, "knowledge": knowledge}
        solution = solve_file(file, settings, output, trace, **given, workers=Workers(threads), on_progress=show)
    if as_json:
        print_json(solution.as_json())
    else:
        say("\n".join(solution.describe()))
        print_written([output, trace])
    fail_after_printing(interrupted=solution.interrupted and "this is the best network so far")


def _show_alternatives(file: Path, best: int | None, within: float | None, limits: "Limits", as_json: bool) -> None:
    """Print the networks close to the best."""
    from ..candidates import read_candidates
    from ..search.exact import alternatives

    with progress_bar(quiet=as_json) as show:
        found = alternatives(read_candidates(file), best, within=within, limits=limits, on_progress=show)
    if as_json:
        print_json(found.as_json())
    else:
        say("\n".join(found.describe()))
    fail_after_printing(interrupted=found.interrupted and "these are the best networks so far")


def check(
    scores: CandidatesFile,
    certificate: Annotated[Path, typer.Argument(metavar="PROOF.json", help="Written by solve --certificate.")],
    as_json: AsJson = False,
) -> None:
    """Check a proof of optimality with whole numbers; exit code 1, and where it fails, if it does not hold."""
    from ..foundation.errors import FormatError
    from ..search.checker import RefusedError
    from ..search.checker import check as check_certificate

    try:
        verdict = check_certificate(str(scores), str(certificate))
    except RefusedError as refused:
        raise FormatError(f"refused: {refused}") from None
    if as_json:
        print_json(verdict._asdict())
    else:
        say(verdict.describe())


def presolve(
    file: CandidatesFile,
    time_limit: Annotated[float, typer.Option(help="Seconds.")] = 60.0,
    twins: Annotated[
        bool, typer.Option(help="Eliminate one of two variables that the scores cannot tell apart.")
    ] = True,
    bits: Annotated[bool, typer.Option(help="Count the bits of the QUBO before and after.")] = True,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the sets that are left: .jkl, .pss, .qbc.")
    ] = None,
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Remove candidate sets that a best network can do without; the best score stays."""
    from ..candidates import check_output, read_candidates, write_candidates
    from ..foundation.workers import Workers
    from ..qubo import count_bits, quick_subsets
    from ..search.exact import presolve as reduce

    candidates, workers = read_candidates(file), Workers(threads)
    if output is not None:
        check_output(output, candidates.names)
    with progress_bar(quiet=as_json) as show:
        presolved = reduce(candidates, time_limit, twins=twins, on_progress=show)
    if output is not None:
        write_candidates(presolved.candidates, output)
    both = (presolved.original, presolved.candidates) if bits and not presolved.interrupted else ()
    bits_of = [count_bits(sets, quick_subsets(sets), workers=workers) for sets in both]
    counted = dict(zip(("before", "after"), bits_of, strict=False))
    if as_json:
        print_json({**presolved.as_json(), "bits": counted or None})
    else:
        say("\n".join(presolved.describe()))
        if counted:
            before, after = counted["before"], counted["after"]
            kinds = ", ".join(f"{kind} {before[kind]:,} -> {after[kind]:,}" for kind in ("u", "r", "z"))
            say(f"bits {before['total']:,} -> {after['total']:,} ({kinds})")
    fail_after_printing(interrupted=presolved.interrupted and "more sets might leave in more time")
