"""Commands on candidate sets: `solve`, `presolve`, and `check` for certificates."""

from pathlib import Path
from typing import Annotated

import typer

from ..settings import BestCount, SolveSettings, WithinFactor
from .options import (
    AsJson,
    CandidatesFile,
    KnowledgeFile,
    NetworkOutput,
    Threads,
    TraceFile,
    given_options,
    made_by,
    refuse,
)
from .shell import fail_after_printing, print_json, print_result, print_written, progress_bar, say

# Options that a list of networks obeys; its result does not depend on a seed, and is made by one
# thread.
LISTING = {
    "best",
    "within",
    "classes",
    "solver",
    "time_limit",
    "names",
    "knowledge",
    "as_json",
    "seed",
    "threads",
}


def solve(
    file: CandidatesFile,
    settings: SolveSettings = made_by(SolveSettings),
    start: Annotated[Path | None, typer.Option(help="Start from this network.")] = None,
    names: Annotated[
        Path | None,
        typer.Option(
            help="Read the names of the variables from a network file, or from a text with one "
            "on each line."
        ),
    ] = None,
    knowledge: KnowledgeFile = None,
    output: NetworkOutput = None,
    trace: TraceFile = None,
    best: BestCount = None,
    within: WithinFactor = None,
    classes: Annotated[
        bool,
        typer.Option(
            "--classes", help="Let --best count equivalence classes, each with all its networks."
        ),
    ] = False,
    threads: Threads = None,
    as_json: AsJson = False,
    given: dict[str, str] = made_by(given_options),
) -> None:
    """Find the best network for candidate parent sets."""
    from ..foundation.errors import SettingError
    from ..foundation.workers import Workers
    from ..learning import certified_scores, read_restricted, solve_file
    from ..search.exact import alternatives

    if settings.certificate is not None and "solver" in given and settings.solver != "exact":
        raise SettingError(
            "--certificate needs --solver exact, and not auto; leave one of the two out"
        )
    if not settings.formulates:
        why = (
            f"on {settings.solver_name}, which does not use the QUBO; "
            "leave it out, or check the QUBO with --bits"
        )
        refuse(given, ["order", "penalty", "cover"], why)
    refuse(
        given, ["classes"] if best is None else [], "without --best; give --best K, or leave it out"
    )
    if best is None and within is None:
        inputs = {"start": start, "names": names, "knowledge": knowledge}
        with progress_bar(quiet=as_json) as show:
            solution = solve_file(
                file, settings, output, trace, **inputs, workers=Workers(threads), on_progress=show
            )
        files = {
            output: "network without probabilities",
            trace: "score over time",
            solution.certificate: "certificate, for `qubayes check`",
            certified_scores(file, solution.certificate, names, knowledge): "its scores",
        }
        print_result(solution, files, as_json=as_json)
        fail_after_printing(interrupted=solution.interrupted and "this is the best network so far")
        return
    if "solver" in given and settings.solver != "exact":
        raise SettingError(
            f"--solver {settings.solver} makes no list of networks; "
            "give --solver exact, or leave it out"
        )
    others = given.keys() - LISTING
    refuse(
        given,
        sorted(others),
        "on a list of networks; leave it out, or leave out --best and --within",
    )
    with progress_bar(quiet=as_json) as show:
        problem = read_restricted(file, names, knowledge)
        found = alternatives(
            problem, best, within=within, classes=classes, limits=settings.limits, on_progress=show
        )
    print_result(found, as_json=as_json)
    fail_after_printing(interrupted=found.interrupted and "these are the best networks so far")


def check(
    scores: Annotated[
        Path,
        typer.Argument(
            metavar="FILE.jkl",
            help="The scores that the proof is about: .jkl or .scores, also .gz.",
        ),
    ],
    certificate: Annotated[
        Path,
        typer.Argument(
            metavar="PROOF.json",
            help="A certificate that `qubayes solve --certificate` or `formulate` wrote.",
        ),
    ],
    model: Annotated[
        Path | None,
        typer.Option(
            "--model",
            help="Also verify that this model, by `formulate --order proved`, is the QUBO of the "
            "scores with the order bits of the certificate.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Verify a certificate of optimality.

    Uses integer arithmetic and none of the solver's code. The exit code is 1 if the proof fails.
    """
    from ..foundation.errors import FormatError
    from ..learning import check_certified_model
    from ..search.checker import RefusedError
    from ..search.checker import check as check_certificate

    try:
        verdict = check_certificate(str(scores), str(certificate))
    except RefusedError as refused:
        raise FormatError(f"refused: {refused}") from None
    if model is not None:
        check_certified_model(model, scores, verdict.order)
    if as_json:
        order = None if verdict.order is None else len(verdict.order)
        print_json({**verdict._asdict(), "order": order})
    else:
        say(verdict.describe())
        if model is not None:
            say(f"{model} is this QUBO")


def presolve(
    file: CandidatesFile,
    time_limit: Annotated[float, typer.Option(help="Stop after this many seconds.")] = 60.0,
    twins: Annotated[
        bool, typer.Option(help="Eliminate one of two variables that the scores cannot tell apart.")
    ] = True,
    bits: Annotated[
        bool, typer.Option(help="Count the binary variables of the QUBO before and after.")
    ] = True,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write the sets that are left: .jkl, .pss, .qbc."),
    ] = None,
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Remove candidate parent sets that are not needed.

    A best network can do without them, so the best score stays.
    """
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
            kinds = ", ".join(
                f"{kind} {before[kind]:,} -> {after[kind]:,}" for kind in ("u", "r", "z")
            )
            say(f"  QUBO         bits {before['total']:,} -> {after['total']:,} ({kinds})")
        print_written({output: "candidate parent sets that are left"})
    fail_after_printing(interrupted=presolved.interrupted and "more sets might leave in more time")
