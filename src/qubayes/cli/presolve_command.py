"""`qubayes presolve`: candidate parent sets without those that a best network can do without."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import AsJson, CandidatesFile, Threads
from .shell import fail_after_printing, print_json, progress_bar, say

if TYPE_CHECKING:
    from ..foundation.workers import Workers
    from ..search.exact import Presolved


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(presolve)


def presolve(
    file: CandidatesFile,
    time_limit: Annotated[float, typer.Option(help="Seconds.")] = 60.0,
    twins: Annotated[bool, typer.Option(help="Let one of two variables that scores cannot tell apart leave.")] = True,
    bits: Annotated[bool, typer.Option(help="Count the bits of the QUBO before and after.")] = True,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the sets that are left: .jkl, .pss, .qbc.")
    ] = None,
    threads: Threads = None,
    json: AsJson = False,
) -> None:
    """Remove candidate sets that a best network can do without; the best score stays."""
    from ..candidates import check_output, read_candidates, write_candidates
    from ..foundation.workers import Workers
    from ..search.exact import presolve as reduce

    candidates, workers = read_candidates(file), Workers(threads)
    if output is not None:
        check_output(output, candidates.names)
    with progress_bar(quiet=json) as show:
        presolved = reduce(candidates, time_limit, twins=twins, on_progress=show)
    if output is not None:
        write_candidates(presolved.candidates, output)
    counted = bits_before_and_after(presolved, workers) if bits and not presolved.interrupted else None
    if json:
        print_json({**presolved.as_json(), "bits": counted})
    else:
        say("\n".join(presolved.describe()))
        if counted:
            before, after = counted["before"], counted["after"]
            kinds = ", ".join(f"{kind} {before[kind]:,} -> {after[kind]:,}" for kind in ("u", "r", "z"))
            say(f"bits {before['total']:,} -> {after['total']:,} ({kinds})")
    fail_after_printing(interrupted=presolved.interrupted and "more sets might leave in more time")


def bits_before_and_after(presolved: "Presolved", workers: "Workers") -> dict[str, dict[str, int]]:
    """Return the bits of the QUBO before and after, with subsets that are found in little time."""
    from ..qubo import count_bits, quick_subsets

    both = {"before": presolved.original, "after": presolved.candidates}
    return {when: count_bits(sets, quick_subsets(sets), workers=workers) for when, sets in both.items()}
