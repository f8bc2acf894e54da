"""Candidate parent sets on the paper's instances as Markdown tables; with --spread beside the paper's Table D.2.

    python -m benchmarks candidates --data DIR [--instances alarm:4,...] [--score bdeu,bds] [--seeds
    0]
        [--spread] [--large] [--pgmpy] [--keep FOLDER]

DIR holds networks/*.bif.gz and fimi/*.dat.gz. Every search runs in a process of its own, so that
its peak of memory is its own; what it takes to compile the kernels, or to load them from the cache,
is told apart from the search."""

import argparse
import json
import os
import platform
import resource
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from math import comb
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

# this process stays small and starts at once: only those that search load the package
if TYPE_CHECKING:
    from qubayes.data import Dataset


class Printed(NamedTuple):
    """A row of the paper's Table D.2: mean and standard deviation over five samples."""

    candidates: int
    candidates_spread: int


PAPER = {
    "alarm:4": Printed(2291, 210),
    "barley:4": Printed(355, 12),
    "hailfinder:4": Printed(692, 16),
    "hepar2:4": Printed(689, 59),
    "chess:2": Printed(32570, 1686),
    "chess:3": Printed(236285, 15636),
    "win95pts:2": Printed(9231, 665),
    "win95pts:3": Printed(43657, 3850),
    "pathfinder:2": Printed(50962, 3254),
    "pathfinder:3": Printed(398131, 47889),
    "mushroom:2": Printed(273526, 12647),
    "connect:2": Printed(76996, 4381),
    "connect:3": Printed(710684, 73964),
    "munin1:2": Printed(135570, 6765),
    "andes:2": Printed(7424, 219),
    "andes:3": Printed(14195, 556),
}
USUAL = [
    *("alarm:4", "barley:4", "hailfinder:4", "hepar2:4", "chess:3", "win95pts:3"),
    *("pathfinder:3", "connect:3", "munin1:2", "mushroom:2", "andes:3"),
]
LARGE = (("link:2", 1000), ("munin:2", 1000), ("alarm:3", 1_000_000))


@dataclass(frozen=True)
class Task:
    """One search."""

    instance: str  # name:m
    data: str
    score: str = "bds"
    seed: int = 0
    rows: int = 1000
    threads: int | None = None
    keep: str | None = None  # folder for the result

    @property
    def name(self) -> str:
        """The instance without its m."""
        return self.instance.partition(":")[0]

    @property
    def max_parents(self) -> int:
        """m."""
        return int(self.instance.partition(":")[2])


@dataclass(frozen=True)
class Outcome:
    """What a search took and found."""

    n: int
    rows: int
    sets: int  # whose joint states are counted: at most m + 1 variables
    candidates: int
    seconds: float
    compile_seconds: float
    megabytes: int


def main() -> None:
    """Print the tables that are asked for."""
    options = parse()
    if options.one or options.peer:
        from qubayes.cli.shell import guarded

        task = Task(**json.loads(options.one or options.peer))
        guarded(
            lambda: print(json.dumps(asdict(search(task)) if options.one else measure_peer(task)))
        )
    else:
        print_machine(options)
        print_tables(options)


def print_tables(options: argparse.Namespace) -> None:
    """The tables that the options ask for."""
    first = Task(
        "", str(options.data), threads=options.threads, keep=options.keep and str(options.keep)
    )
    for score in options.score:
        for seed in options.seeds:
            print_times(replace(first, score=score, seed=seed), options.instances or USUAL)
    if options.spread:
        print_spread(first, options.instances or list(PAPER))
    if options.large:
        print_large(
            [replace(first, instance=name, rows=rows, keep=None) for name, rows in LARGE],
            options.score,
        )
    if options.pgmpy:
        print_peer(replace(first, instance="alarm:4", score="bdeu", keep=None))


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder with networks/*.bif.gz and fimi/*.dat.gz")
    parser.add_argument(
        "--instances", type=instances, help="name:m, separated by commas; eleven unless given"
    )
    parser.add_argument(
        "--score", type=words, default=["bdeu", "bds"], help="one table for each; none if empty"
    )
    parser.add_argument(
        "--seeds", type=lambda text: [int(seed) for seed in words(text)], default=[0]
    )
    parser.add_argument("--threads", type=int, help="all cores unless given")
    parser.add_argument(
        "--keep",
        type=Path,
        help="write the candidate sets of bds to FOLDER/{name}_m{m}_s{seed}.qbc",
    )
    parser.add_argument(
        "--spread", action="store_true", help="number of candidates of bds over seeds 0-4"
    )
    parser.add_argument(
        "--large", action="store_true", help="link and munin (m = 2); alarm with 10^6 rows (m = 3)"
    )
    parser.add_argument(
        "--pgmpy", action="store_true", help="local scores per second beside pgmpy's"
    )
    # a task as JSON: what a process of its own does
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not (options.one or options.peer or options.data):
        parser.error("--data is needed")
    return options


def words(text: str) -> list[str]:
    """Split at commas."""
    return [word for word in text.split(",") if word]


def instances(text: str) -> list[str]:
    """Instances as name:m, checked."""
    for word in words(text):
        name, colon, m = word.partition(":")
        if not (name and colon and m.isdigit()):
            raise argparse.ArgumentTypeError(
                f"{word!r} is no instance; give name:m such as alarm:4"
            )
    return words(text)


def print_times(task: Task, names: Sequence[str]) -> None:
    """One table: each instance, and all together."""
    print(f"\n## `{task.score}`, seed {task.seed}\n")
    head = [
        "instance",
        "m",
        "n",
        "rows",
        "sets counted",
        "candidates",
        "seconds",
        "peak MB",
        "compile or load s",
    ]
    print_row(head)
    print_row(["---"] + ["--:"] * (len(head) - 1))
    done = []
    for name in names:
        outcome = apart(replace(task, instance=name))
        done.append(outcome)
        print_row(cells(name, outcome))
    seconds, most = (
        sum(outcome.seconds for outcome in done),
        max(outcome.megabytes for outcome in done),
    )
    compiling = sum(outcome.compile_seconds for outcome in done)
    total = ["**all**", "", "", "", f"{sum(outcome.sets for outcome in done):,}", ""]
    print_row([*total, f"**{seconds:.1f}**", f"**{most:,}**", f"{compiling:.1f}"])


def print_spread(task: Task, names: Iterable[str]) -> None:
    """Numbers of candidate sets over five samples beside the paper's."""
    print("\n## Candidates over samples: `bds`, seeds 0 to 4\n")
    print_row(
        ["instance", "m", "candidates", "paper", "difference", "difference / paper's deviation"]
    )
    print_row(["---"] + ["--:"] * 5)
    for name in names:
        found = [
            apart(replace(task, instance=name, score="bds", seed=seed)).candidates
            for seed in range(5)
        ]
        mean, spread = statistics.mean(found), statistics.stdev(found)
        row = [*name.split(":"), f"{mean:,.0f} ± {spread:,.0f}"]
        printed = PAPER.get(name)
        if printed:
            apart_by = mean - printed.candidates
            row += [
                f"{printed.candidates:,} ± {printed.candidates_spread:,}",
                f"{apart_by / printed.candidates:+.1%}",
            ]
            row += [f"{apart_by / printed.candidates_spread:+.2f}"]
        print_row([*row, "", "", ""][:6])


def print_large(tasks: Iterable[Task], scores: Iterable[str]) -> None:
    """Searches that are too large for a full enumeration of larger sets, or that have many rows."""
    print("\n## Large\n")
    head = [
        "score",
        "instance",
        "m",
        "n",
        "rows",
        "sets counted",
        "candidates",
        "seconds",
        "peak MB",
    ]
    print_row([*head, "compile or load s"])
    print_row(["---", "---"] + ["--:"] * 8)
    for score in scores:
        for task in tasks:
            print_row([f"`{score}`", *cells(task.instance, apart(replace(task, score=score)))])


def print_peer(task: Task) -> None:
    """Local scores per second, ours and pgmpy's on the same data: medians of three turns each, taken in turn."""
    turns = [(apart(task), in_process("--peer", task)) for _ in range(3)]
    outcome, peer = turns[0]
    scores = outcome.n * sum(comb(outcome.n - 1, k) for k in range(task.max_parents + 1))
    seconds = statistics.median(outcome.seconds for outcome, _ in turns)
    peer_seconds = statistics.median(peer["seconds"] for _, peer in turns)
    ours, theirs = scores / seconds, peer["scores"] / peer_seconds
    print(f"\n## Local scores per second: `bdeu` on {task.name}, m = {task.max_parents}\n")
    print_row(["program", "threads", "local scores", "seconds", "per second", "ratio"])
    print_row(["---"] + ["--:"] * 5)
    print_row(
        [
            "qubayes",
            f"{task.threads or cores()}",
            f"{scores:,}",
            f"{seconds:.2f}",
            f"{ours:,.0f}",
            f"{ours / theirs:,.0f}",
        ]
    )
    print_row(["pgmpy", "1", f"{peer['scores']:,}", f"{peer_seconds:.2f}", f"{theirs:,.0f}", "1"])
    print(f"\nLargest difference between the scores of both: {peer['difference']:.1e}")


def cells(name: str, outcome: Outcome) -> list[str]:
    """An outcome as cells of a row."""
    numbers = [
        f"{value:,}" for value in (outcome.n, outcome.rows, outcome.sets, outcome.candidates)
    ]
    spent = [f"{outcome.seconds:.2f}", f"{outcome.megabytes:,}", f"{outcome.compile_seconds:.1f}"]
    return [*name.split(":"), *numbers, *spent]


def print_row(row: Sequence[str]) -> None:
    """One row of a Markdown table, seen as soon as it is known."""
    print(f"| {' | '.join(row)} |", flush=True)


def apart(task: Task) -> Outcome:
    """The outcome of the task, run in a new process."""
    return Outcome(**in_process("--one", task))


def in_process(what: str, task: Task) -> dict:
    """What this script prints as JSON when it is told to do one thing."""
    command = [sys.executable, __file__, what, json.dumps(asdict(task))]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(
            f"{task.instance} ({task.score}, seed {task.seed}) failed with exit code {done.returncode}"
        )
    return json.loads(done.stdout)


def search(task: Task) -> Outcome:
    """Run the search of the task here."""
    from benchmarks.paper import instance
    from qubayes.candidates import CandidateSearch, identify, write_candidates
    from qubayes.foundation.workers import Workers
    from qubayes.scores import Score

    dataset = instance(task.name, task.seed, task.data, task.rows)
    what, workers = CandidateSearch(task.max_parents, Score(task.score)), Workers(task.threads)
    before = time.perf_counter()
    identify(small(dataset, task.max_parents + 2), what, workers=workers)
    start = time.perf_counter()
    found = identify(dataset, what, workers=workers)
    seconds = time.perf_counter() - start
    if task.keep and task.score == "bds":
        Path(task.keep).mkdir(parents=True, exist_ok=True)
        write_candidates(
            found, Path(task.keep) / f"{task.name}_m{task.max_parents}_s{task.seed}.qbc"
        )
    sets = sum(comb(dataset.n, k) for k in range(1, task.max_parents + 2))
    return Outcome(
        dataset.n, dataset.rows, sets, found.total, seconds, start - before, peak_megabytes()
    )


def small(dataset: "Dataset", columns: int) -> "Dataset":
    """A few rows of the columns with most observed states: the same kernels, and no time to speak of."""
    import numpy as np

    observed = [len(np.unique(column)) for column in dataset.codes]
    chosen = sorted(range(dataset.n), key=lambda i: -observed[i])[:columns]
    return replace(
        dataset,
        names=tuple(dataset.names[i] for i in chosen),
        states=tuple(dataset.states[i] for i in chosen),
        codes=np.ascontiguousarray(dataset.codes[chosen, :1000]),
    )


def peak_megabytes() -> int:
    """Largest resident memory of this process. Linux adds that of the parent to ru_maxrss, but not to VmHWM."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) // 1024
    scale = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // scale


def measure_peer(task: Task) -> dict[str, float]:
    """pgmpy's local scores of families drawn as often as the search meets them by size: number, seconds, agreement."""
    import numpy as np
    import pandas as pd
    from pgmpy.structure_score import BDeu

    from benchmarks.paper import instance
    from qubayes.scores import Score, local_score

    dataset = instance(task.name, task.seed, task.data, task.rows)
    names = list(dataset.names)
    frame = pd.DataFrame(
        {name: column.astype(int) for name, column in zip(names, dataset.codes, strict=True)}
    )
    states = {name: list(range(len(its))) for name, its in zip(names, dataset.states, strict=True)}
    peer = BDeu(frame, equivalent_sample_size=1, state_names=states)
    rng = np.random.default_rng(0)
    sizes = np.array([comb(dataset.n - 1, k) for k in range(task.max_parents + 1)], dtype=float)
    families = []
    for size in rng.choice(len(sizes), 500, p=sizes / sizes.sum()):
        child, *parents = rng.permutation(dataset.n)[: size + 1].tolist()
        families.append((child, parents))
    peer.local_score(names[0], (names[1],))
    start = time.perf_counter()
    scores = [
        peer.local_score(names[child], tuple(names[p] for p in parents))
        for child, parents in families
    ]
    seconds = time.perf_counter() - start
    ours = [local_score(dataset, child, parents, Score("bdeu")) for child, parents in families]
    difference = max(abs(a - b) for a, b in zip(scores, ours, strict=True))
    return {"scores": len(scores), "seconds": seconds, "difference": float(difference)}


def print_machine(options: argparse.Namespace) -> None:
    """Where and with what this was measured."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    print(
        f"- machine: {cores()} cores, {processor()}, {memory:.0f} GB; {platform.system()} {platform.machine()}"
    )
    packages = ", ".join(
        f"{name} {installed(name)}" for name in ("qubayes", "numpy", "scipy", "numba", "pgmpy")
    )
    print(f"- Python {platform.python_version()}; {packages}")
    print(f"- commit: {commit()}")
    # where they are here says nothing elsewhere
    places = {str(options.data): "DIR", str(options.keep): "FOLDER"}
    given = shlex.join(places.get(argument, argument) for argument in sys.argv[1:])
    print(f"- command: `python -m benchmarks candidates {given}`", flush=True)


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processor() -> str:
    """The name of the processor."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or "unknown processor"


def installed(package: str) -> str:
    """The version of the package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def commit() -> str:
    """The commit of the source, and whether it was changed since."""

    def git(*arguments: str) -> str:
        here = Path(__file__).resolve().parent
        done = subprocess.run(
            ["git", *arguments], cwd=here, capture_output=True, text=True, check=False
        )
        return done.stdout.strip() if done.returncode == 0 else ""

    changed = (
        " (with changes)"
        if git("status", "--porcelain", "--untracked-files=no", "--", "../src")
        else ""
    )
    return (git("rev-parse", "--short", "HEAD") or "unknown") + changed


if __name__ == "__main__":
    main()
