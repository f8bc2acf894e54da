"""`qubayes learn`: from data to a network, its files and its report."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .candidates_command import Ess, KnowledgeFile, MaxParents, ScoreName
from .options import AsJson, Cluster, DataFile, Seed, Threads, reads_data
from .shell import print_json, progress_bar, say

if TYPE_CHECKING:
    from ..data import ReadSettings
    from ..learning import Learned


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("learn")(reads_data(learn))


def learn(
    data: DataFile,
    reading: "ReadSettings",
    max_parents: MaxParents = 3,
    score: ScoreName = "bdeu",
    ess: Ess = 1.0,
    knowledge: KnowledgeFile = None,
    solver: Annotated[str, typer.Option(help="auto, anneal, exact, or another solver of `qubayes solve`.")] = "auto",
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds for the solver; 10 unless --moves is given.")
    ] = None,
    moves: Annotated[int | None, typer.Option(help="End after so many moves instead: repeatable anywhere.")] = None,
    bootstrap: Annotated[
        int, typer.Option(metavar="SAMPLES", help="Tell how sure each edge is, from this many resamplings.")
    ] = 0,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the network: .bif .xmlbif .json .dot .graphml .csv ...")
    ] = None,
    report: Annotated[Path | None, typer.Option("--report", help="Write a page to look at: .html.")] = None,
    trace: Annotated[Path | None, typer.Option("--trace", help="Write the score over time as CSV.")] = None,
    run_dir: Annotated[
        Path | None, typer.Option("--run-dir", help="Keep every stage's result here, and go on from it.")
    ] = None,
    seed: Seed = 0,
    threads: Threads = None,
    cluster: Cluster = None,
    as_json: AsJson = False,
) -> None:
    """Learn the best network for the data, and tell how good it is."""
    from ..cluster import Workers
    from ..knowledge import read_knowledge
    from ..learning import learn as learn_network
    from ..network import check_network_path

    if output is not None:
        check_network_path(output)
    with progress_bar(quiet=as_json) as show:
        learned = learn_network(
            data,
            max_parents,
            score=score,
            ess=ess,
            knowledge=read_knowledge(knowledge) if knowledge else None,
            reading=reading,
            solver=solver,
            time_limit=10.0 if time_limit is None and moves is None else time_limit,
            moves=moves,
            seed=seed,
            bootstrap=bootstrap,
            run_dir=run_dir,
            workers=Workers(threads, cluster),
            on_progress=show,
        )
    written = _write(learned, output, report, trace)
    if as_json:
        print_json(learned.as_json())
    else:
        print_learned(learned, written)
    if learned.solution.interrupted:
        say("qubayes: interrupted; this is the best network so far", error=True)
        raise typer.Exit(130)


def _write(learned: "Learned", output: Path | None, report: Path | None, trace: Path | None) -> list[Path]:
    """Write what was asked for; the files."""
    from ..network import write_network
    from .solve_command import write_trace

    if output is not None:
        write_network(learned.network, output)
    if report is not None:
        from ..learning.page import report_of
        from ..report import write_report

        write_report(report_of(learned), report)
    if trace is not None:
        write_trace(learned.solution, trace)
    return [path for path in (output, report, trace) if path is not None]


def print_learned(learned: "Learned", written: list[Path]) -> None:
    """The result in a few lines."""
    from .solve_command import print_solution

    dataset, bits, paper = learned.dataset, learned.bits["total"], learned.paper_bits["total"]
    say(f"{dataset.rows:,} rows of {dataset.n} variables; {learned.candidates.total:,} candidate parent sets")
    print_solution(learned.solution)
    say(f"{bits:,} bits; the paper's formulation has {paper:,} for the same subsets")
    say("; ".join(f"{stage} {seconds:.2f} s" for stage, seconds in learned.seconds.items()))
    if learned.confidence:
        edges = learned.confidence.consensus.edges
        say(f"{edges} edges are in more than half of {learned.confidence.samples} resamplings")
    for path in written:
        say(f"written: {path}")
