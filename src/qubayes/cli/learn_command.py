"""`qubayes learn`: from data to a network, its files and its report."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .candidates_command import Ess, KnowledgeFile, MaxParents, ScoreName
from .options import AsJson, Cluster, DataFile, Seed, Threads, reads_data
from .shell import counted, print_json, print_written, progress_bar, say

if TYPE_CHECKING:
    from ..data import Dataset, ReadSettings
    from ..foundation.errors import QubayesError
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
    moves: Annotated[
        int | None, typer.Option(help="End after so many moves of anneal instead: repeatable anywhere.")
    ] = None,
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
    from ..candidates.knowledge import read_knowledge
    from ..foundation.files import check_places
    from ..foundation.workers import Workers
    from ..learning import learn as learn_network
    from ..learning.folder import RunFolder

    if run_dir is not None:
        RunFolder(run_dir)  # is made: files may go there
    declared = reading.arities if isinstance(reading.arities, Path) else None
    check_places([output, report, trace], [data, knowledge, declared])
    _check_endings(output, report, trace)
    with progress_bar(quiet=as_json) as show:
        learned = learn_network(
            data,
            max_parents,
            score=score,
            ess=ess,
            knowledge=read_knowledge(knowledge) if knowledge else None,
            reading=reading,
            solver=solver,
            time_limit=time_limit,
            moves=moves,
            seed=seed,
            bootstrap=bootstrap,
            run_dir=run_dir,
            workers=Workers(threads, cluster),
            on_progress=show,
        )
    written, failure = _write(learned, output, report, trace)
    if as_json:
        print_json(learned.as_json())
    else:
        print_learned(learned, [*written, *([run_dir] if run_dir else [])])
    _tell_identifiers(learned.dataset)
    if failure is not None:
        raise failure
    if learned.interrupted:
        say("qubayes: interrupted; this is the best network so far", error=True)
        raise typer.Exit(130)


def _check_endings(output: Path | None, report: Path | None, trace: Path | None) -> None:
    from ..foundation.errors import FormatError
    from ..network import check_network_path

    if output is not None:
        check_network_path(output)
    for path, option, allowed in ((report, "--report", (".html", ".htm")), (trace, "--trace", (".csv",))):
        if path is not None and path.suffix.lower() not in allowed:
            raise FormatError(f"{option} {path} would not be what its ending says; give it the ending {allowed[0]}")


def _write(
    learned: "Learned", output: Path | None, report: Path | None, trace: Path | None
) -> "tuple[list[Path], QubayesError | None]":
    """Write what was asked for; the files, and why the first one that could not be written was not."""
    from ..foundation.errors import QubayesError
    from ..learning.page import report_of
    from ..network import write_network
    from ..report import write_report
    from .solve_command import write_trace

    writers: list[tuple[Path | None, Callable[[Path], None]]] = [
        (output, lambda path: write_network(learned.network, path)),
        (report, lambda path: write_report(report_of(learned), path)),
        (trace, lambda path: write_trace(learned.solution, path)),
    ]
    written: list[Path] = []
    failure: QubayesError | None = None
    for path, write in writers:
        try:
            if path is not None:
                write(path)
                written.append(path)
        except QubayesError as error:
            failure = failure or error
    return written, failure


def print_learned(learned: "Learned", written: list[Path]) -> None:
    """The result in a few lines."""
    from .solve_command import print_solution

    dataset, bits, paper = learned.dataset, learned.bits["total"], learned.paper_bits["total"]
    least, most = int(dataset.arities.min()), int(dataset.arities.max())
    states = f"{least} to {most}" if least < most else f"{most}"
    say(f"{dataset.rows:,} rows of {dataset.n} variables of {states} states")
    say(f"{learned.candidates.total:,} candidate parent sets")
    print_solution(learned.solution)
    say(f"{bits:,} bits; the paper's formulation has {paper:,} for the same subsets")
    say("; ".join(f"{stage} {seconds:.2f} s" for stage, seconds in learned.seconds.items()))
    if learned.confidence:
        edges, samples = learned.confidence.consensus.edges, learned.confidence.samples
        told = f"the consensus of {counted(samples, 'resampling')} has {counted(edges, 'edge')}"
        say(f"{told}, in more than half of them")
    print_written(written)


def _tell_identifiers(dataset: "Dataset") -> None:
    """A word where nearly every row has a state of its own: any variable can be told from such a parent."""
    from ..data.settings import MOST_CODES

    for name, arity in zip(dataset.names, dataset.arities.tolist(), strict=True):
        if arity > max(MOST_CODES, dataset.rows // 2):
            remedy = f"leave it out with --ignore {name}, or cut numbers with --bins {name}=5"
            say(f"qubayes: {name!r} has {arity} states in {dataset.rows} rows: an identifier? {remedy}", error=True)
