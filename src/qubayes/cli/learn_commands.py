"""Commands that start from data: `learn`, `candidates`, `plan` (seconds, memory), `example`."""

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..foundation.summary import aligned, counted
from ..settings import (
    Ess,
    LearnSettings,
    MaxParents,
    PenaltyFactor,
    PossibleParents,
    ReadSettings,
    bytes_of,
)
from .options import (
    ArityFile,
    AsJson,
    DataFile,
    KnowledgeFile,
    NetworkOutput,
    ScoreName,
    Threads,
    TraceFile,
    made_by,
    search_options,
    worker_options,
)
from .shell import (
    Clock,
    fail_after_printing,
    print_json,
    print_result,
    print_written,
    progress_bar,
    say,
)

if TYPE_CHECKING:
    from ..candidates import CandidateSearch
    from ..foundation.workers import Workers


def learn(
    data: DataFile,
    settings: LearnSettings = made_by(LearnSettings),
    output: NetworkOutput = None,
    report: Annotated[
        Path | None, typer.Option(help="Write a report to open in a browser: .html.")
    ] = None,
    qubo: Annotated[
        Path | None,
        typer.Option(help="Write the QUBO of the same problem: .bqm .coo .qubo .cqm .lp ..."),
    ] = None,
    trace: TraceFile = None,
    draws: Annotated[
        Path | None,
        typer.Option(help="Write the networks that --posterior draws: .jsonl, one in each line."),
    ] = None,
    run_dir: Annotated[
        Path | None,
        typer.Option(help="Keep the result of every stage in this folder, and resume from it."),
    ] = None,
    workers: "Workers" = made_by(worker_options),
    as_json: AsJson = False,
    knowledge: KnowledgeFile = None,
    arities: ArityFile = None,
) -> None:
    """Learn a network from a table of data.

    The first line of the result says what is proved. Without --max-parents, parent sets of any
    size are grown; where time allows, all sets of at most 3 parents are searched, too.
    """
    from ..learning import Outputs, learn_with
    from ..search.ahead import compiled_ahead

    outputs = Outputs(output, report, trace, qubo, draws)
    outputs.check([data, knowledge, arities], run_dir)
    with ExitStack() as during:
        show = during.enter_context(progress_bar(quiet=as_json))
        if workers.count > 1:
            during.enter_context(compiled_ahead(annealing=settings.max_parents is None))
        learned, written = learn_with(
            settings, data, run_dir=run_dir, workers=workers, on_progress=show, outputs=outputs
        )
    files: dict[Path | None, str] = dict(written.files.items())
    files[run_dir] = "results of the stages, to resume from"
    print_result(learned, files, as_json=as_json)
    left = written.interrupted or "this is the best network so far"
    fail_after_printing(written.failure, interrupted=learned.interrupted and left)


def candidates(
    data: DataFile,
    max_parents: MaxParents = None,
    search: "CandidateSearch" = made_by(search_options),
    time_limit: Annotated[
        float | None,
        typer.Option(help="Refuse a search that takes more seconds; without -m, make it smaller."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the candidate parent sets: .jkl, .pss or .qbc."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue from the blocks that a killed run finished.")
    ] = False,
    workers: "Workers" = made_by(worker_options),
    as_json: AsJson = False,
    reading: ReadSettings = made_by(ReadSettings),
) -> None:
    """Compute candidate parent sets.

    These are the parent sets that score higher than all their subsets: only they can be in a best
    network.
    """
    from ..learning import blocks_file, identify_file

    clock = Clock()
    try:
        with progress_bar() as show:
            found = identify_file(
                data,
                search,
                output,
                reading,
                time_limit=time_limit,
                smaller=max_parents is None,
                resume=resume,
                workers=workers,
                on_progress=show,
            )
    except KeyboardInterrupt:
        if output and blocks_file(output).exists():
            say(
                f"qubayes: finished blocks are kept in {blocks_file(output)}; "
                "continue with --resume",
                error=True,
            )
        raise
    if as_json:
        print_json({**found.as_json(), "seconds": clock.seconds})
        return
    say(str(found))
    print_written({output: "candidate parent sets"})


def plan(
    data: DataFile,
    max_parents: Annotated[
        int, typer.Option("--max-parents", "-m", help="Plan for 1 to this many parents.")
    ] = 5,
    score: ScoreName = "auto",
    ess: Ess = 1.0,
    penalty: PenaltyFactor = 1.0,
    knowledge: KnowledgeFile = None,
    possible_parents: PossibleParents = None,
    seconds: Annotated[
        float, typer.Option(help="Find the largest search that fits in these seconds.")
    ] = 3600.0,
    memory: Annotated[
        str, typer.Option(help="Find the largest search that fits in this memory.", metavar="SIZE")
    ] = "8GB",
    threads: Threads = None,
    as_json: AsJson = False,
    reading: ReadSettings = made_by(ReadSettings),
) -> None:
    """Estimate time and memory before a long run.

    Prints the number of parent sets to score, the seconds, the memory and the binary variables of
    the QUBO for each number of parents, and the largest number that fits.
    """
    from ..data import read
    from ..foundation.workers import Workers
    from ..learning import Forecast, largest_that_fits
    from ..learning import plan as predicted

    dataset = read(data, reading)
    search = search_options(max_parents, score, ess, knowledge, possible_parents, penalty)
    score = search.score.on(dataset).name
    with progress_bar(quiet=as_json) as show:
        forecasts = predicted(dataset, search, workers=Workers(threads), on_progress=show)
    fits = largest_that_fits(forecasts, seconds, bytes_of(memory))
    if as_json:
        rows = [item.as_json() for item in forecasts]
        print_json(
            {"n": dataset.n, "rows": dataset.rows, "score": score, "plans": rows, "fits": fits}
        )
        return
    say(f"{dataset.n} variables, {dataset.rows} rows, {score}")
    say("\n".join([Forecast.HEAD, *(item.describe() for item in forecasts)]))
    if fits:
        say(f"-m {fits} fits in {seconds:g} s and {bytes_of(memory) / 1e9:g} GB")
    else:
        say(
            f"no search fits in {seconds:g} s and {bytes_of(memory) / 1e9:g} GB; "
            "give more, or forbid edges with --knowledge"
        )


def example(
    name: Annotated[
        str | None,
        typer.Argument(help="A sample table. Default: list their names.", show_default=False),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write the table: .csv, .tsv, .dat or .parquet. Default: to stdout.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a sample table to try other commands on, or list the sample tables.

    For example, qubayes example alarm -o alarm.csv, then qubayes learn alarm.csv.
    """
    from ..data import EXAMPLES, write, write_rows
    from ..data import example as sample_table
    from ..foundation.errors import SettingError

    if name is None:
        if output is not None:
            raise SettingError(
                "-o was given without the name of a sample table; `qubayes example` lists the names"
            )
        if as_json:
            print_json({"examples": EXAMPLES})
        else:
            say("\n".join(aligned(list(EXAMPLES.items()))))
        return
    if as_json and output is None:
        raise SettingError(
            "--json and the rows would both go to stdout; name a file for the rows with -o"
        )
    dataset = sample_table(name)
    if output is None:
        write_rows(dataset, sys.stdout)
        return
    write(dataset, output)
    if as_json:
        facts = {"n": dataset.n, "rows": dataset.rows, "output": str(output)}
        print_json({**facts, "checksum": dataset.checksum})
    else:
        say(f"{counted(dataset.rows, 'row')} of {counted(dataset.n, 'variable')}")
        print_written({output: "table"})
