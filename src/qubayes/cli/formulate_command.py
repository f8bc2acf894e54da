"""`qubayes formulate`: candidate parent sets as a QUBO."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import AsJson, Cluster, Seed, Threads
from .shell import print_json, print_written, progress_bar, say

if TYPE_CHECKING:
    from ..candidates import Candidates
    from ..qubo import Formulation
    from ..qubo.subsets import Subsets


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(formulate)


def formulate(
    file: Annotated[Path, typer.Argument(metavar="FILE.jkl", help="Candidate sets: .jkl, .scores, .pss, .qbc.")],
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
    json: AsJson = False,
) -> None:
    """Turn candidate parent sets into a QUBO with few bits, and tell its size."""
    from ..candidates.candidate_files import read_candidates
    from ..foundation.errors import SettingError
    from ..foundation.files import check_places
    from ..foundation.workers import Workers
    from ..qubo import formulate as assemble
    from ..qubo.subsets import cover as find_subsets
    from ..qubo.subsets import read_subsets

    if subsets_file and cover:
        raise SettingError(f"--subsets {subsets_file} and --cover {cover}; give one: subsets are read or found")
    if subsets_file and presolve:
        raise SettingError(
            f"--subsets {subsets_file} and --presolve {presolve:g}; give one: those subsets are for all sets"
        )
    check_places([output], [file, subsets_file])
    candidates = read_candidates(file)
    if presolve:
        candidates = _presolved(candidates, presolve, quiet=json)
    if subsets_file:
        subsets = read_subsets(subsets_file)
    else:
        with progress_bar(quiet=json) as show:
            subsets = find_subsets(
                candidates, method=cover or "auto", seed=seed, workers=Workers(threads, cluster), on_progress=show
            )
    formulation = assemble(candidates, subsets, order=order, penalty=penalty, workers=Workers(threads))
    if output is not None:
        write(formulation, output, ordering)
    facts = facts_of(formulation, subsets)
    if json:
        print_json(facts)
    else:
        print_facts(facts, f"read from {subsets_file}, found in" if subsets_file else "found in")
        print_written([output])
    if not subsets_file and subsets.status != "finished":
        say(f"qubayes: subsets: {subsets.status}", error=True)
        raise typer.Exit(130)


def _presolved(candidates: "Candidates", seconds: float, *, quiet: bool) -> "Candidates":
    from ..search.presolve import presolve

    with progress_bar(quiet=quiet) as show:
        presolved = presolve(candidates, seconds, on_progress=show)
    if presolved.interrupted:
        raise KeyboardInterrupt
    return presolved.candidates


def print_facts(facts: dict[str, Any], origin: str) -> None:
    """The size of the QUBO in a few lines."""
    u, r, z, total = facts["bits"].values()
    least, largest = facts["coefficient_range"]
    say(f"{total:,} bits: {u:,} subsets, {r:,} order, {z:,} slack; {facts['couplers']:,} couplers")
    say(f"coefficients from {least:.6g} to {largest:.6g}")
    say(f"{facts['proved_optimal_vertices']} of {facts['n']} vertices have a provably smallest family of subsets")
    say(f"subsets {origin} {facts['seconds']['cover']} s; QUBO assembled in {facts['seconds']['assemble']} s")


def facts_of(formulation: "Formulation", subsets: "Subsets") -> dict[str, Any]:
    """What `--json` prints (design §10)."""
    return {
        "n": formulation.candidates.n,
        "bits": formulation.bits,
        "couplers": formulation.qubo.couplers,
        "coefficient_range": list(formulation.coefficient_range),
        "mu": subsets.families.sizes.tolist(),
        "proved_optimal_vertices": int(subsets.proved.sum()),
        "seconds": {"cover": round(subsets.seconds, 3), "assemble": round(formulation.seconds, 3)},
        "order": formulation.order_kind,
        "penalty": formulation.penalty_kind,
    }


def write(formulation: "Formulation", path: Path, ordering: str) -> None:
    """The QUBO with its labels; `.cqm` and `.lp` hold the constrained form, `.json` that for a Digital Annealer.

    `.svg` is a picture of a small one.
    """
    from ..foundation.files import ending

    if ending(path) == ".svg":
        write_picture(formulation, path)
    else:
        formulation.write(path, ordering=ordering)


def write_picture(formulation: "Formulation", path: Path) -> None:
    """The bits and their products, in the state of the best network."""
    from ..foundation.files import replacing
    from ..report.model_picture import check_drawable, draw_model
    from ..search import Limits, solve

    check_drawable(formulation)
    best = solve(formulation, "exact", limits=Limits(10.0))
    with replacing(path) as file:
        file.write(draw_model(formulation, best.bits))
