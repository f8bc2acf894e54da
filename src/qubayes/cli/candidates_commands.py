"""`qubayes candidates`: data to candidate parent sets; `qubayes plan`: what that search would cost."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import (
    AsJson,
    Cluster,
    DataFile,
    Ess,
    KnowledgeFile,
    MaxParents,
    PossibleParents,
    ScoreName,
    Threads,
)
from .shell import Clock, print_json, print_written, progress_bar, say

if TYPE_CHECKING:
    from ..data import ReadSettings


def candidates(
    data: DataFile,
    reading: "ReadSettings",
    max_parents: MaxParents = 3,
    score: ScoreName = "bdeu",
    ess: Ess = 1.0,
    knowledge: KnowledgeFile = None,
    possible_parents: PossibleParents = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A .jkl, .pss or .qbc file.")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue from the blocks that a killed run finished.")
    ] = False,
    threads: Threads = None,
    cluster: Cluster = None,
    as_json: AsJson = False,
) -> None:
    """Find the parent sets that score more than all their subsets."""
    from ..candidates import Knowledge, Search, read_knowledge
    from ..foundation.workers import Workers
    from ..learning import blocks_file, identify_file
    from ..scores import Score

    clock = Clock()
    known = read_knowledge(knowledge) if knowledge else Knowledge()
    search = Search(max_parents, Score(score, ess), known, possible_parents)
    workers = Workers(threads, cluster)
    try:
        with progress_bar() as show:
            found = identify_file(data, search, output, reading, resume=resume, workers=workers, on_progress=show)
    except KeyboardInterrupt:
        if output and blocks_file(output).exists():
            say(f"qubayes: finished blocks are kept in {blocks_file(output)}; continue with --resume", error=True)
        raise
    if as_json:
        print_json({**found.as_json(), "seconds": clock.seconds})
    else:
        most, kept = found.stamp.max_parents, found.stamp.possible_parents
        among = "" if kept is None else f" among {kept} possible parents of each variable"
        say(f"{found.total:,} candidate sets of {found.n} variables ({score}, at most {most} parents{among})")
        print_written([output])


def plan(
    data: DataFile,
    reading: "ReadSettings",
    max_parents: Annotated[int, typer.Option("--max-parents", "-m", help="Plan for 1 to this many parents.")] = 5,
    score: ScoreName = "bdeu",
    ess: Ess = 1.0,
    knowledge: KnowledgeFile = None,
    seconds: Annotated[float, typer.Option("--seconds", help="The time you have.")] = 3600.0,
    memory: Annotated[float, typer.Option("--memory", help="The memory you have, in GB.")] = 8.0,
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Predict sets, seconds, memory and bits for each number of parents, and say which fits."""
    from ..candidates import Knowledge, Search, read_knowledge
    from ..data import read
    from ..foundation.workers import Workers
    from ..learning import Forecast, largest_that_fits
    from ..learning import plan as forecast
    from ..scores import Score

    dataset = read(data, reading)
    known = read_knowledge(knowledge) if knowledge else Knowledge()
    search = Search(min(max_parents, dataset.n - 1), Score(score, ess), known)
    forecasts = forecast(dataset, search, workers=Workers(threads))
    fits = largest_that_fits(forecasts, seconds, memory * 1e9)
    if as_json:
        rows = [item.as_json() for item in forecasts]
        print_json({"n": dataset.n, "rows": dataset.rows, "score": score, "plans": rows, "fits": fits})
        return
    say(f"{dataset.n} variables, {dataset.rows} rows, {score}")
    say("\n".join([Forecast.HEAD, *(item.describe() for item in forecasts)]))
    if fits:
        say(f"-m {fits} fits in {seconds:g} s and {memory:g} GB")
    else:
        say(f"no search fits in {seconds:g} s and {memory:g} GB; give more, or forbid edges with --knowledge")
