"""`qubayes presolve`: candidate parent sets without those that a best network can do without."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import AsJson, Threads
from .shell import print_json, progress_bar, say

if TYPE_CHECKING:
    from ..candidates import Candidates
    from ..foundation.workers import Workers
    from ..search.exact.presolve import Presolved


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(presolve)


def presolve(
    file: Annotated[Path, typer.Argument(metavar="FILE.jkl", help="Candidate sets: .jkl, .scores, .pss, .qbc.")],
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
    from ..candidates.candidate_files import check_output, read_candidates, write_candidates
    from ..foundation.workers import Workers
    from ..search.exact.presolve import presolve as reduce

    candidates, workers = read_candidates(file), Workers(threads)
    if output is not None:
        check_output(output, candidates.names)
    with progress_bar(quiet=json) as show:
        presolved = reduce(candidates, time_limit, twins=twins, workers=workers, on_progress=show)
    if output is not None:
        write_candidates(presolved.candidates, output)
    facts = facts_of(presolved, workers if bits and not presolved.interrupted else None)
    if json:
        print_json(facts)
    else:
        print_facts(facts)
    if presolved.interrupted:
        say("qubayes: interrupted; more sets might leave in more time", error=True)
        raise typer.Exit(130)


def facts_of(presolved: "Presolved", workers: "Workers | None") -> dict[str, Any]:
    """What `--json` prints; bits are counted only with workers for it."""
    names = presolved.original.names
    before, after = presolved.original, presolved.candidates
    return {
        "n": before.n,
        "sets": {"before": before.total, "after": after.total},
        "fixed_vertices": presolved.fixed,
        "twins": {names[twin]: names[other] for twin, other in presolved.twins},
        "score": presolved.score,
        "bound": presolved.bound,
        "bits": None if workers is None else {"before": bits_of(before, workers), "after": bits_of(after, workers)},
        "seconds": round(presolved.seconds, 3),
    }


def bits_of(candidates: "Candidates", workers: "Workers") -> dict[str, int]:
    """The bits of the QUBO, with subsets that are found in little time."""
    from ..qubo import count_bits
    from ..qubo.subsets import Budget, cover

    subsets = cover(candidates, budget=Budget(effort=0.1, rounds=0), workers=workers)
    return count_bits(candidates, subsets, workers=workers)


def print_facts(facts: dict[str, Any]) -> None:
    """The result in a few lines."""
    sets = facts["sets"]
    say(f"{sets['after']:,} of {sets['before']:,} candidate sets are left ({facts['seconds']} s)")
    say(f"the parents of {facts['fixed_vertices']} of {facts['n']} variables are known")
    if facts["twins"]:
        say("twins: " + ", ".join(f"{twin} of {other}" for twin, other in facts["twins"].items()))
    say(f"best network met scores {facts['score']:,.6f}; none scores more than {facts['bound']:,.6f}")
    if facts["bits"] is not None:
        before, after = facts["bits"]["before"], facts["bits"]["after"]
        kinds = ", ".join(f"{kind} {before[kind]:,} -> {after[kind]:,}" for kind in ("u", "r", "z"))
        say(f"bits {before['total']:,} -> {after['total']:,} ({kinds})")
