"""`qubayes candidates`: data to candidate parent sets."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import AsJson, Cluster, DataFile, Ess, KnowledgeFile, MaxParents, ScoreName, Threads, reads_data
from .shell import Clock, print_json, print_written, progress_bar, say

if TYPE_CHECKING:
    from ..candidates import Candidates
    from ..data import ReadSettings


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("candidates")(reads_data(candidates))


def candidates(
    data: DataFile,
    reading: "ReadSettings",
    max_parents: MaxParents = 3,
    score: ScoreName = "bdeu",
    ess: Ess = 1.0,
    knowledge: KnowledgeFile = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A .jkl, .pss or .qbc file.")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue from the blocks that a killed run finished.")
    ] = False,
    threads: Threads = None,
    cluster: Cluster = None,
    as_json: AsJson = False,
) -> None:
    """Find the parent sets that score more than all their subsets."""
    from ..candidates import Search, check_output, identify, write_candidates
    from ..candidates.knowledge import Knowledge, read_knowledge
    from ..data import read
    from ..foundation.errors import SettingError
    from ..foundation.workers import Workers
    from ..scores import Score

    if resume and output is None:
        raise SettingError("--resume without -o; finished blocks are kept beside the output file, so name it with -o")
    if output:
        check_output(output)
    clock = Clock()
    search = Search(max_parents, Score(score, ess), read_knowledge(knowledge) if knowledge else Knowledge())
    checkpoint = output.with_name(output.name + ".blocks") if output else None
    with progress_bar() as show:
        try:
            dataset = read(data, reading)
            if output:
                check_output(output, dataset.names)
            found = identify(
                dataset,
                search,
                workers=Workers(threads, cluster),
                checkpoint=checkpoint,
                resume=resume,
                on_progress=show,
            )
        except KeyboardInterrupt:
            if checkpoint and checkpoint.exists():
                say(f"qubayes: finished blocks are kept in {checkpoint}; continue with --resume", error=True)
            raise
    if output and checkpoint:
        write_candidates(found, output)
        checkpoint.unlink(missing_ok=True)  # not before: a full disk must not cost the search
    if as_json:
        print_json(summary(found, clock.seconds))
    else:
        say(f"{found.total:,} candidate sets of {found.n} variables ({score}, at most {max_parents} parents)")
        print_written([output])


def summary(found: "Candidates", seconds: float) -> dict[str, Any]:
    """Return what `--json` prints."""
    return {
        "n": found.n,
        "rows": found.stamp.rows,
        "score": found.stamp.score,
        "ess": found.stamp.ess,
        "arities": found.stamp.arities,
        "m": found.stamp.max_parents,
        "total": found.total,
        "per_vertex": dict(zip(found.names, found.per_vertex.tolist(), strict=True)),
        "seconds": seconds,
    }
