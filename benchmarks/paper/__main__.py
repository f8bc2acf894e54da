"""`python -m benchmarks paper`: the paper's tables, reproduced.

The methods that they compare are a package of its own: pip install . ./benchmarks/paper/baselines
"""

from pathlib import Path
from typing import Annotated, Any

import typer

from qubayes.cli.options import Threads
from qubayes.cli.shell import guarded, progress_bar, say

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def bench(
    tables: Annotated[
        str,
        typer.Option(
            help="The paper's tables: 1, 2, 3, D.2 (or 4), D.5 (or 5), and growth; separated by commas."
        ),
    ] = "1,2,3,D.2,D.5",
    instances: Annotated[
        str | None,
        typer.Option(help="NAME:PARENTS, separated by commas; the paper's sixteen unless given."),
    ] = None,
    trials: Annotated[
        int, typer.Option(min=1, help="Samples of each instance: seeds 0, 1, ...")
    ] = 5,
    solvers: Annotated[
        str | None, typer.Option(help="Solvers of table 3, separated by commas; all unless given.")
    ] = None,
    approaches: Annotated[
        str | None,
        typer.Option(
            help="Of tables 1, 2 and D.5: auto, ogorman, ilp, ilp-only, separated by commas; all unless given."
        ),
    ] = None,
    peer: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=PATH of a program of yours that Table 3 compares: minobs, gobnilp; may be repeated."
        ),
    ] = None,
    time_limit: Annotated[
        float, typer.Option(help="Seconds of each solver; the paper's was 3600.")
    ] = 60.0,
    vertex_seconds: Annotated[
        float, typer.Option(help="Seconds of an integer program for one vertex.")
    ] = 60.0,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder with networks/ and fimi/; without it the data are downloaded."),
    ] = None,
    results: Annotated[
        Path, typer.Option(help="Raw results, tables and plots; a run that stopped is resumed.")
    ] = Path("bench-results"),
    measuring: Annotated[
        bool,
        typer.Option(
            "--measure/--no-measure", help="With --no-measure tables are made from what is there."
        ),
    ] = True,
    pages: Annotated[
        str,
        typer.Option(
            help="More pages, separated by commas, whose sentences are made from the results."
        ),
    ] = "",
    quick: Annotated[
        bool, typer.Option("--quick", help="Everything at a small size, in minutes.")
    ] = False,
    plots: Annotated[
        bool, typer.Option("--plots/--no-plots", help="Draw pictures too (needs matplotlib).")
    ] = False,
    jobs: Annotated[
        int, typer.Option(min=1, help="Trials at once; give each its --threads then.")
    ] = 1,
    threads: Threads = None,
    cluster: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Run on this Dask cluster.")
    ] = None,
) -> None:
    """Measure the paper's tables and print them beside the paper's own figures."""
    from dataclasses import replace

    from qubayes.foundation.workers import Workers

    from .bench import (
        QUICK,
        SOLVERS,
        Plan,
        check_installed,
        parsed_instances,
        parsed_tables,
        tables_of,
        write_tables,
    )
    from .bench import bench as measure
    from .programs import parsed_peers
    from .store import Store

    chosen: dict[str, Any] = {"tables": parsed_tables(tables.split(",")), "threads": threads}
    chosen["programs"] = parsed_peers(peer or ())
    chosen["solvers"] = tuple(solvers.split(",")) if solvers else SOLVERS
    if approaches:
        chosen["approaches"] = tuple(approaches.split(","))
    if instances:
        chosen["instances"] = parsed_instances(instances)
    if quick:
        plan = replace(QUICK, **chosen)
    else:
        plan = Plan(
            **chosen,
            seeds=tuple(range(trials)),
            time_limit=time_limit,
            vertex_seconds=vertex_seconds,
        )
    if measuring:
        check_installed(plan)
        with progress_bar() as show:
            folder = data or _downloaded(plan, results, show)
            store = measure(plan, folder, results, workers=Workers(jobs, cluster), on_progress=show)
    else:
        store = Store(results / "trials.jsonl")
    made = write_tables(
        store, plan, results, [Path(page) for page in filter(None, pages.split(","))]
    )
    for table in tables_of(store, plan):
        say(table.markdown())
    if plots:
        from .plots import draw_all

        made += draw_all(store, plan.instances, plan.solvers, plan.time_limit, results / "plots")
    say(f"written: {len(made)} files in {results}")
    failed = store.errors()
    if failed:
        first = failed[0]
        say(
            f"qubayes: {len(failed)} trials failed, the first: {first['trial']}: {first['error']}",
            error=True,
        )
        raise typer.Exit(1)


def _downloaded(plan: Any, results: Path, show: Any) -> Path:
    from .growth import AXES
    from .sources import fetch

    folder = results / "data"
    names = [instance.name for instance in plan.instances]
    if "growth" in plan.tables:
        names += [trial.instance for axis in AXES for trial in axis.trials]
    fetch(list(dict.fromkeys(names)), folder, on_progress=show)
    return folder


if __name__ == "__main__":
    guarded(app)
