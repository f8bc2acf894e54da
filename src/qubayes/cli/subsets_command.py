"""`qubayes subsets`: the candidate parent subsets of a file of candidate sets."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import AsJson, Cluster, Seed, Threads
from .shell import print_json, progress_bar, say

if TYPE_CHECKING:
    from ..qubo.subsets import Subsets


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="subsets")(subsets)


def subsets(
    file: Annotated[Path, typer.Argument(help="Candidate parent sets: .jkl, .scores, .pss, .qbc.")],
    cover: Annotated[str, typer.Option(help="auto, search, ilp (Algorithm 2 first) or ilp-only.")] = "auto",
    seconds: Annotated[float, typer.Option(help="Limit of the integer program, per vertex.")] = 60.0,
    effort: Annotated[float, typer.Option(help="Multiplies the work of the search.")] = 1.0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A .qbs file, for `formulate --subsets`.")
    ] = None,
    seed: Seed = 0,
    threads: Threads = None,
    cluster: Cluster = None,
    as_json: AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")] = False,
) -> None:
    """Find the smallest families whose unions of two give every candidate parent set."""
    from ..candidates import read_candidates
    from ..foundation.workers import Workers
    from ..qubo.subsets import Budget, write_subsets
    from ..qubo.subsets import cover as find
    from ..qubo.subsets.subsets import check_output

    if output:
        check_output(output)
    with progress_bar(quiet=quiet) as show:
        found = find(
            read_candidates(file),
            method=cover,
            budget=Budget(seconds=seconds, effort=effort),
            seed=seed,
            workers=Workers(threads, cluster),
            on_progress=show,
        )
    if output:
        write_subsets(found, output)
    if as_json:
        print_json(summary(found))
    else:
        say(sentence(found))
        if output:
            say(f"written to {output}")
    if found.status != "finished":
        raise typer.Exit(130)


def summary(found: "Subsets") -> dict[str, Any]:
    """The subsets and what is known of them."""
    return {
        "n": len(found.names),
        "bits": found.total,
        "lower_bound": found.lower_bound,
        "mu": found.families.sizes.tolist(),
        "lower_bounds": found.lower_bounds.tolist(),
        "proved_optimal_vertices": int(found.proved.sum()),
        "method": found.method,
        "seconds": round(found.seconds, 3),
        "status": found.status,
        "subsets": {
            name: [[found.names[parent] for parent in members] for members in found.families.sets_of(vertex)]
            for vertex, name in enumerate(found.names)
        },
    }


def sentence(found: "Subsets") -> str:
    """The result in a few lines."""
    return (
        f"{found.total} subsets for {len(found.names)} vertices; at least {found.lower_bound} are needed\n"
        f"proved smallest for {int(found.proved.sum())} vertices; {found.method}, {found.seconds:.2f} s, {found.status}"
    )
