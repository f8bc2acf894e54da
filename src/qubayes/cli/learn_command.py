"""`qubayes learn`: from data to a network, its files and its report."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import (
    AsJson,
    BootstrapSamples,
    Cluster,
    DataFile,
    Ess,
    KnowledgeFile,
    MaxParents,
    Moves,
    NetworkOutput,
    PossibleParents,
    QuboFile,
    ReportFile,
    RunDirectory,
    ScoreName,
    Seed,
    Threads,
    TimeLimit,
    TraceFile,
)
from .shell import fail_after_printing, print_json, print_written, progress_bar, say

if TYPE_CHECKING:
    from ..data import ReadSettings


def learn(
    data: DataFile,
    reading: "ReadSettings",
    max_parents: MaxParents = 3,
    score: ScoreName = "bdeu",
    ess: Ess = 1.0,
    knowledge: KnowledgeFile = None,
    possible_parents: PossibleParents = None,
    solver: Annotated[str, typer.Option(help="auto, anneal, exact, or another solver of `qubayes solve`.")] = "auto",
    time_limit: TimeLimit = None,
    moves: Moves = None,
    bootstrap: BootstrapSamples = 0,
    output: NetworkOutput = None,
    report: ReportFile = None,
    qubo: QuboFile = None,
    trace: TraceFile = None,
    run_dir: RunDirectory = None,
    seed: Seed = 0,
    threads: Threads = None,
    cluster: Cluster = None,
    as_json: AsJson = False,
) -> None:
    """Learn the best network for the data, with a proof or a bound."""
    from ..candidates import read_knowledge
    from ..foundation.workers import Workers
    from ..learning import LearnSettings, Outputs, learn_with

    known = read_knowledge(knowledge) if knowledge else None
    limits = solver, time_limit, moves, seed, bootstrap
    settings = LearnSettings(max_parents, score, ess, known, *limits, reading, possible_parents)
    outputs = Outputs(output, report, trace, qubo)
    outputs.check([data, knowledge, reading.arities if isinstance(reading.arities, Path) else None], run_dir)
    workers = Workers(threads, cluster)
    with progress_bar(quiet=as_json) as show:
        learned = learn_with(settings, data, run_dir=run_dir, workers=workers, on_progress=show, outputs=outputs)
        written, failure = outputs.write(learned, Workers(threads), show)
    if as_json:
        print_json(learned.as_json())
    else:
        say("\n".join(learned.describe()))
        print_written([*written, run_dir])
    fail_after_printing(failure, interrupted=learned.interrupted and "this is the best network so far")
