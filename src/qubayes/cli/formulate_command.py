"""`qubayes formulate`: candidate parent sets as a QUBO."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import AsJson, CandidatesFile, Cluster, Seed, Threads
from .shell import fail_after_printing, print_json, print_written, progress_bar, say

if TYPE_CHECKING:
    from ..qubo import Formulation


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(formulate)


def formulate(
    file: CandidatesFile,
    order: Annotated[str, typer.Option(help="Order bits: chordal, or scc as in the paper.")] = "chordal",
    penalty: Annotated[str, typer.Option(help="Penalties: tight, or paper.")] = "tight",
    cover: Annotated[
        str | None, typer.Option(help="How subsets are found: auto unless given, search, ilp or ilp-only.")
    ] = None,
    subsets_file: Annotated[
        Path | None, typer.Option("--subsets", help="Take the subsets from this .qbs file instead of finding them.")
    ] = None,
    presolve: Annotated[
        float, typer.Option(metavar="SECONDS", help="Spend this on removing sets that no optimum needs first.")
    ] = 0.0,
    ordering: Annotated[
        str, typer.Option(help="The order in .cqm and .lp files: penalties, or inequalities.")
    ] = "penalties",
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="Write the model: .bqm .coo .qubo .mtx .npz; constrained: .cqm .lp .json; a picture: .svg",
        ),
    ] = None,
    seed: Seed = 0,
    threads: Threads = None,
    cluster: Cluster = None,
    as_json: AsJson = False,
) -> None:
    """Turn candidate parent sets into a QUBO with few bits, and print its size."""
    from ..candidates import read_candidates
    from ..foundation.errors import SettingError
    from ..foundation.files import check_places, ending
    from ..foundation.workers import Workers
    from ..qubo import formulate as assemble
    from ..qubo.subsets import cover as find_subsets
    from ..qubo.subsets import read_subsets
    from ..search.exact import presolve as reduce

    for option, value in (("--cover", cover), ("--presolve", presolve)):
        if subsets_file and value:
            raise SettingError(f"--subsets {subsets_file} and {option} {value}; give one: the file has its subsets")
    check_places([output], [file, subsets_file])
    with progress_bar(quiet=as_json) as show:
        candidates = read_candidates(file)
        if presolve:
            presolved = reduce(candidates, presolve, on_progress=show)
            if presolved.interrupted:
                raise KeyboardInterrupt  # nothing is written yet
            candidates = presolved.candidates
        workers = Workers(threads, cluster)
        subsets = (
            read_subsets(subsets_file)
            if subsets_file
            else find_subsets(candidates, method=cover or "auto", seed=seed, workers=workers, on_progress=show)
        )
    formulation = assemble(candidates, subsets, order=order, penalty=penalty, workers=Workers(threads))
    if output is not None and ending(output) == ".svg":
        write_picture(formulation, output)
    elif output is not None:
        formulation.write(output, ordering=ordering)
    if as_json:
        print_json(formulation.as_json())
    else:
        say("\n".join(formulation.describe()))
        if subsets_file:
            say(f"subsets read from {subsets_file}")
        print_written([output])
    stopped = not subsets_file and subsets.status != "finished"
    fail_after_printing(interrupted=stopped and f"subsets: {subsets.status}")


def write_picture(formulation: "Formulation", path: Path) -> None:
    """Write a picture of a small QUBO: its bits and their products, in the state of the best network."""
    from ..foundation.files import replacing
    from ..report.model_picture import check_drawable, draw_model
    from ..search import Limits, solve

    check_drawable(formulation)
    best = solve(formulation, "exact", limits=Limits(10.0))
    with replacing(path) as file:
        file.write(draw_model(formulation, best.bits))
