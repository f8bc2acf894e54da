"""`qubayes subsets`: the candidate parent subsets of a file of candidate sets."""

from pathlib import Path
from typing import Annotated

import typer

from .options import AsJson, CandidatesFile, Cluster, Seed, Threads
from .shell import print_json, print_written, progress_bar, say


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="subsets")(subsets)


def subsets(
    file: CandidatesFile,
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
    from ..qubo.subsets import Budget, check_output, write_subsets
    from ..qubo.subsets import cover as find

    if output:
        check_output(output)
    budget, workers = Budget(seconds=seconds, effort=effort), Workers(threads, cluster)
    with progress_bar(quiet=quiet) as show:
        found = find(read_candidates(file), method=cover, budget=budget, seed=seed, workers=workers, on_progress=show)
    if output:
        write_subsets(found, output)
    if as_json:
        print_json(found.as_json())
    else:
        say("\n".join(found.describe()))
        print_written([output])
    if found.status != "finished":
        raise typer.Exit(130)
