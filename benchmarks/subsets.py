"""Candidate parent subsets on the paper's instances, beside the paper's Tables 1, 2 and D.5.

    python -m benchmarks subsets FOLDER [--instances chess:3,andes:3] [--seconds 60] [--methods
    ilp-only,ilp,auto]
        [--seeds 0,1] [--vertices 10] [--save DIR]

FOLDER holds candidate files named {instance}_m{m}_s{seed}.qbc (or .jkl). Prints a Markdown
table: means over the seeds found. The covers of `auto` are kept as DIR/{instance}_m{m}_s{seed}.qbs.
    With `--vertices N` only N vertices are covered, evenly spread by the number of their candidate
    sets, the largest among them; the table says so and leaves out the paper's figures, which are
    for all vertices; so does a table of one seed, as they are means."""

import argparse
import re
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from qubayes.candidates import Candidates, read_candidates
from qubayes.foundation.families import Families
from qubayes.foundation.workers import Workers
from qubayes.qubo.subsets import Budget, Subsets, cover, write_subsets


@dataclass(frozen=True)
class Printed:
    """What the paper prints: binary variables (Table 1), seconds to reduce and to solve (Tables D.5 and 2)."""

    ilp_only: int
    ilp: int
    ilp_only_seconds: int
    ilp_seconds: int


PAPER = {
    "alarm:4": Printed(1373, 1373, 1 + 50, 1 + 3),
    "barley:4": Printed(995, 995, 0 + 1, 0 + 0),
    "hailfinder:4": Printed(1913, 1913, 0 + 0, 0 + 0),
    "hepar2:4": Printed(2616, 2616, 0 + 0, 0 + 0),
    "chess:2": Printed(6964, 6964, 6 + 0, 2 + 0),
    "chess:3": Printed(26355, 23662, 639 + 3150, 406 + 2554),
    "win95pts:2": Printed(5028, 5028, 2 + 0, 1 + 0),
    "win95pts:3": Printed(9220, 9025, 49 + 530, 45 + 398),
    "pathfinder:2": Printed(10725, 10725, 18 + 0, 3 + 0),
    "pathfinder:3": Printed(38245, 34448, 3844 + 2132, 1407 + 1679),
    "mushroom:2": Printed(17930, 17930, 277 + 1, 23 + 0),
    "connect:2": Printed(14978, 14978, 26 + 0, 5 + 0),
    "connect:3": Printed(64533, 58247, 6219 + 4568, 2472 + 4129),
    "munin1:2": Printed(25001, 25001, 78 + 0, 12 + 0),
    "andes:2": Printed(28810, 28810, 1 + 0, 1 + 0),
    "andes:3": Printed(31162, 31162, 4 + 7, 6 + 2),
}
HEADER = (
    "| instance | m | seeds | sets | method | u bits | lower bound | gap | proved | seconds | CPU s | paper: u | s |",
    "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
)


def main() -> None:
    """Print the table."""
    arguments = parse()
    warm_up(arguments.methods)
    print(*HEADER, sep="\n")
    for instance in arguments.instances:
        files = files_of(arguments.folder, instance, arguments.seeds)
        loaded = [largest(read_candidates(file), arguments.vertices) for file in files]
        for method in arguments.methods if loaded else ():
            budget = Budget(
                seconds=arguments.seconds, effort=arguments.effort, program=arguments.program
            )
            began = time.process_time()
            results = [
                cover(c, method=method, budget=budget, workers=Workers(arguments.threads))
                for c in loaded
            ]
            used = (time.process_time() - began) / len(results)
            print(line(instance, method, loaded, results, used, arguments.vertices), flush=True)
            if arguments.save and method == "auto":
                save(results, [arguments.save / f"{file.stem}.qbs" for file in files])


def parse() -> argparse.Namespace:
    """The command line."""
    words = lambda text: text.split(",")  # noqa: E731
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--instances", type=words, default=list(PAPER))
    parser.add_argument("--methods", type=words, default=["ilp-only", "ilp", "auto"])
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="limit of the integer program, per vertex"
    )
    parser.add_argument(
        "--effort", type=float, default=1.0, help="multiplies the work of the search"
    )
    parser.add_argument(
        "--program",
        type=int,
        default=Budget().program,
        help="columns of the largest core given to it by auto",
    )
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--seeds", type=words, help="only these samples")
    parser.add_argument(
        "--vertices", type=int, default=0, metavar="N", help="cover N vertices only"
    )
    parser.add_argument("--save", type=Path, metavar="DIR", help="keep the covers of auto there")
    return parser.parse_args()


def save(results: list[Subsets], places: list[Path]) -> None:
    """Write each cover to its place."""
    for result, place in zip(results, places, strict=True):
        place.parent.mkdir(parents=True, exist_ok=True)
        write_subsets(result, place)


def warm_up(methods: list[str]) -> None:
    """Compile, or load from the cache, what the methods need: not part of the times."""
    sets = [
        (1,),
        (2,),
        (3,),
        *((a, b, c) for a in range(1, 7) for b in range(a + 1, 7) for c in range(b + 1, 7)),
        (),
    ]
    families = Families.of([sets, *([[()]] * 6)])
    candidates = Candidates(tuple("abcdefg"), families, np.zeros(len(sets) + 6))
    for method in methods:
        cover(candidates, method=method)


def files_of(folder: Path, instance: str, seeds: list[str] | None) -> list[Path]:
    """The candidate files of an instance, by seed."""
    name, m = instance.split(":")
    seed = "|".join(map(re.escape, seeds)) if seeds else r"\d+"
    return sorted(
        file
        for file in folder.iterdir()
        if re.fullmatch(rf"{name}_m{m}_s({seed})\.(qbc|jkl)", file.name)
    )


def largest(candidates: Candidates, count: int) -> Candidates:
    """The candidates of `count` vertices, evenly spread from the one with most sets down; of all if count is 0."""
    if not count:
        return candidates
    order = np.argsort(-candidates.families.sizes, kind="stable")
    kept = set(order[:: -(-len(order) // count)].tolist())
    sets = [list(candidates.families.sets_of(vertex)) for vertex in range(candidates.n)]
    families = Families.of([own if vertex in kept else own[-1:] for vertex, own in enumerate(sets)])
    return Candidates(candidates.names, families, np.zeros(len(families.set_start) - 1))


def line(
    instance: str,
    method: str,
    loaded: list[Candidates],
    results: list[Subsets],
    used: float,
    vertices: int,
) -> str:
    """One row of the table."""
    name, m = instance.split(":")
    bits, bound = mean(r.total for r in results), mean(r.lower_bound for r in results)
    cells = [
        name, m, str(len(results)), f"{mean(c.total for c in loaded):,.0f}", f"`{method}`", f"{bits:,.0f}",
        f"{bound:,.0f}",
        f"{1 - bound / bits:.1%}", proved_of(results, loaded[0], vertices),
        f"{mean(r.seconds for r in results):.2f}", f"{used:.2f}",
        *(printed(PAPER.get(instance), method, loaded) if not vertices and len(results) > 1 else ("", "")),
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def proved_of(results: list[Subsets], candidates: Candidates, vertices: int) -> str:
    """How many vertices have a family that is proved smallest, of those that were covered."""
    if not vertices:
        return f"{mean(int(r.proved.sum()) for r in results):.0f} of {candidates.n}"
    kept = int(np.count_nonzero(candidates.families.sizes > 1))
    proved = mean(int(np.count_nonzero(r.proved & (r.families.sizes > 0))) for r in results)
    return f"{proved:.0f} of the {kept} covered"


def printed(paper: Printed | None, method: str, loaded: list[Candidates]) -> tuple[str, str]:
    """The paper's u bits (its binary variables less one z per vertex and the order bits) and seconds."""
    if paper is None:
        return "", ""
    total, seconds = (
        (paper.ilp_only, paper.ilp_only_seconds)
        if method == "ilp-only"
        else (paper.ilp, paper.ilp_seconds)
    )
    return f"{total - mean(c.n + ordered_pairs(c) for c in loaded):,.0f}", f"{seconds:,}"


def ordered_pairs(candidates: Candidates) -> int:
    """Number of pairs inside the strongly connected components of the graph of all candidate edges."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    families = candidates.families
    child = np.repeat(
        np.repeat(np.arange(candidates.n), families.sizes), np.diff(families.set_start)
    )
    graph = coo_array(
        (np.ones(len(child), np.int8), (families.members, child)),
        shape=(candidates.n, candidates.n),
    )
    sizes = np.bincount(connected_components(graph, connection="strong")[1])
    return int((sizes * (sizes - 1) // 2).sum())


def mean(values: Iterator[float]) -> float:
    """The mean of the values."""
    return statistics.fmean(values)


if __name__ == "__main__":
    main()
