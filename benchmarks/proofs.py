"""Proofs on a corpus: seconds at several limits, counts that must agree, certificates and their checks.

    python -m benchmarks proofs --candidates DIR [--data DATA] [--limits 20,60,180] [--only
    alarm,steel]

DIR holds .jkl files. With --data, those of the corpus that are missing are made first, from the
folders of DATA: tables/*.csv.gz (no header line; BIC and BDeu), scores/* (files of scores by other
programs), networks/*.bif.gz (1,000 rows of each of ten, BDeu, at most three parents). Tables get up
to ceil(log2 rows) parents, as in the literature, but not so many that more than five million sets
of a size are to be scored.

Prints one line for each file: variables, candidate sets, score, CPU seconds of the proof at each
limit (or the gap that was left), whether the counts of all runs that ended with a proof agree and
no longer limit gave a worse score or bound, size of the certificate, CPU seconds of its check in
pure Python. Certificates with more states than --check-states are not checked. Kernels are compiled
before the clock starts. Limits are in CPU seconds, so that other work on the machine does not
shorten a search.

--beside CHECKOUT prints another table: CPU seconds of the proof, or the gap, by the code in the
folder CHECKOUT and by this one, at the last of --limits. Runs alternate, each is a process of its
own, and the quickest of up to five solves in it counts."""

import argparse
import gzip
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

from qubayes.candidates import (
    Candidates,
    CandidateSearch,
    identify,
    read_candidates,
    write_candidates,
)
from qubayes.data import Dataset, read
from qubayes.network import read_network, sample_dataset
from qubayes.scores import Score
from qubayes.search import Limits, Solution, solve, solver_named
from qubayes.search.checker import RefusedError, check
from qubayes.search.exact.component_proof import compile_order_search
from qubayes.search.exact.ideals import compile_ideals

NETWORKS = (
    "asia",
    "sachs",
    "child",
    "insurance",
    "water",
    "mildew",
    "alarm",
    "barley",
    "hailfinder",
    "hepar2",
)
MOST_SETS = 5_000_000  # of the largest size, all variables together
HERE = Path(__file__).parents[1]
# Prints the least CPU seconds and the gap. Runs with the code of other commits too: `solve` was in
# a room of that name.
TIMED = """
import sys, time
time.perf_counter = time.process_time
from qubayes import Limits, read_candidates
try:
    from qubayes.search import solve
except ImportError:
    from qubayes.solve import solve
candidates, seconds = read_candidates(sys.argv[1]), []
while len(seconds) < 5 and sum(seconds) < 10.0:
    began = time.process_time()
    solution = solve(candidates, "exact", limits=Limits(float(sys.argv[2])))
    seconds.append(time.process_time() - began)
print(min(seconds), 0.0 if solution.proved else solution.gap)
"""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--candidates", required=True, type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument(
        "--limits",
        type=lambda text: [float(word) for word in text.split(",")],
        default=[20.0, 60.0, 180.0],
    )
    parser.add_argument("--only", type=lambda text: text.split(","), default=[""])
    parser.add_argument("--certificates", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--check-states", type=int, default=100_000)
    parser.add_argument("--beside", metavar="CHECKOUT", type=Path)
    options = parser.parse_args()
    if options.data is not None:
        options.candidates.mkdir(parents=True, exist_ok=True)
        for name, make in corpus(options.data):
            path = options.candidates / f"{name}.jkl"
            if not path.exists() and any(word in path.name for word in options.only):
                write_candidates(make(), path)
    paths = sorted(options.candidates.glob("*.jkl"), key=lambda path: path.stat().st_size)
    paths = [path for path in paths if any(word in path.name for word in options.only)]
    if options.beside is None:
        table(paths, options.limits, options.check_states if options.certificates else None)
    else:
        compare(paths, options.limits[-1], options.beside)


def table(paths: list[Path], limits: list[float], check_states: int | None) -> None:
    """Print a line for each file."""
    time.perf_counter = time.process_time
    compile_order_search()
    compile_ideals()
    shown = [f"{limit:g} s" for limit in limits]
    print(
        f"| file | n | sets | score | {' | '.join(shown)} | same counts, never worse | certificate | check |"
    )
    print(f"|{'---|' * (7 + len(shown))}", flush=True)
    for path in paths:
        print(line(path, limits, check_states), flush=True)


def compare(paths: list[Path], limit: float, checkout: Path) -> None:
    """Print for each file the CPU seconds, or the gap, by the code of the checkout and by this one."""
    print("| file | then | now | now / then |\n|---|---:|---:|---:|", flush=True)
    for path in paths:
        then, now = (timed(path, limit, folder) for folder in (checkout, HERE))
        cells = [
            f"{seconds:.3f}" if not gap else f"gap {100 * gap:.3f} %"
            for seconds, gap in (then, now)
        ]
        ratio = f"{now[0] / then[0]:.2f}" if not (then[1] or now[1]) else ""
        print(f"| {path.stem} | {cells[0]} | {cells[1]} | {ratio} |", flush=True)


def timed(path: Path, limit: float, checkout: Path) -> tuple[float, float]:
    """Return the CPU seconds and the gap of a run with the code of the checkout."""
    command, paths = [sys.executable, "-c", TIMED, str(path), str(limit)], str(checkout / "src")
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    seconds, gap = done.stdout.split()
    return float(seconds), float(gap)


def corpus(data: Path) -> Iterator[tuple[str, Callable[[], Candidates]]]:
    """Yield the name of each file, and what makes its candidate sets."""
    for path in sorted((data / "tables").glob("*.csv.gz")):
        for score in ("bic", "bdeu"):
            yield (
                f"{path.name.split('.')[0]}_{score}",
                lambda path=path, score=score: of_table(path, score),
            )
    for path in sorted((data / "scores").iterdir()):
        if path.suffix in (".jkl", ".gz"):
            yield f"given_{path.name.split('.')[0]}", lambda path=path: read_candidates(path)
    for name in NETWORKS:
        path = data / "networks" / f"{name}.bif.gz"
        yield (
            f"{name}_1000",
            lambda path=path: identify(
                sample_dataset(read_network(path), 1000, 1), CandidateSearch(3)
            ),
        )


def of_table(path: Path, score: str) -> Candidates:
    """Return the candidate sets of a table without a header line."""
    rows = gzip.decompress(path.read_bytes()).decode()
    names = ",".join(f"v{number}" for number in range(rows.partition("\n")[0].count(",") + 1))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "table.csv"
        file.write_text(f"{names}\n{rows}")
        table = read(file)
    return identify(table, CandidateSearch(most_parents(table), Score(score)))


def most_parents(table: Dataset) -> int:
    """Return ceil(log2 rows), or the largest number of parents below it with at most MOST_SETS sets."""
    most = min(math.ceil(math.log2(table.rows)), table.n - 1)
    while table.n * max(math.comb(table.n - 1, size) for size in range(most + 1)) > MOST_SETS:
        most -= 1
    return most


def line(path: Path, limits: list[float], check_states: int | None) -> str:
    """Return the line of one file."""
    candidates = read_candidates(path)
    found = [proof(path, limit) for limit in limits]
    counts = {str(solution.statistics) for solution, _ in found if solution.proved}
    steady = all(
        later.score >= earlier.score - 1e-9 and later.bound <= earlier.bound + 1e-9
        for (earlier, _), (later, _) in pairwise(found)
    )
    cells = [
        f"{seconds:.2f}" if solution.proved else f"gap {100 * solution.gap:.3f} %"
        for solution, seconds in found
    ]
    best = max(solution.score for solution, _ in found)
    certificate = ("", "")
    if check_states is not None and found[-1][0].proved:
        certificate = certified(path, limits[-1], check_states)
    right = "yes" if len(counts) < 2 and steady else "NO"
    facts = (path.stem, candidates.n, candidates.total, f"{best:.4f}", *cells, right)
    return f"| {' | '.join(map(str, (*facts, *certificate)))} |"


def proof(path: Path, limit: float) -> tuple[Solution, float]:
    """Return the solution and the CPU seconds that it took."""
    candidates, solver = read_candidates(path), solver_named("exact").prepare()
    began = time.process_time()
    solution = solve(candidates, solver, limits=Limits(limit))
    return solution, time.process_time() - began


def certified(path: Path, limit: float, check_states: int) -> tuple[str, str]:
    """Return the size of the certificate and the CPU seconds of its check."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "proof.json"
        limits = Limits(2 * limit)  # the certificate may need the search once more
        solve(read_candidates(path), solver_named("exact", certificate=file), limits=limits)
        if not file.exists():
            return "none", ""
        size = f"{file.stat().st_size / 1000:.1f} kB"
        states = sum(part.get("states", 0) for part in json.loads(file.read_text())["parts"])
        if states > check_states:
            return size, f"not checked: {states:,} states"
        began = time.process_time()
        try:
            verdict = check(str(path), str(file))
        except RefusedError as refused:
            return size, f"REFUSED: {refused}"
        return (
            size,
            f"{time.process_time() - began:.2f} s ({verdict.states:,} states, {verdict.nodes:,} nodes)",
        )


if __name__ == "__main__":
    main()
