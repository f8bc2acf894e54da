"""`qubayes plan`: what a search would cost."""

from typing import TYPE_CHECKING, Annotated

import typer

from .options import AsJson, DataFile, Ess, KnowledgeFile, ScoreName, Threads, reads_data
from .shell import print_json, say

if TYPE_CHECKING:
    from ..data import ReadSettings


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("plan")(reads_data(plan))


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
    from ..candidates import Search
    from ..candidates.knowledge import Knowledge, read_knowledge
    from ..data import read
    from ..foundation.workers import Workers
    from ..learning.plan import largest_that_fits
    from ..learning.plan import plan as forecast
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
    say(f"{'m':>2} {'sets to score':>18} {'seconds':>10} {'memory':>9} {'candidates':>11} {'bits':>8}")
    say("\n".join(item.describe() for item in forecasts))
    say(
        f"-m {fits} fits in {seconds:g} s and {memory:g} GB"
        if fits
        else f"no search fits in {seconds:g} s and {memory:g} GB; give more, or forbid edges with --knowledge"
    )
