"""Seconds of start-up: the first `learn` on a new machine, later ones, imports, and compiling by kernel.

    python -m benchmarks first-run [--data examples/alarm.csv] [-m 3] [--kernels 10] [--repeat 1]

First `qubayes learn` as a user runs it, each time in full, and what of it are imports. Then its
stages one after the other in one process, where nothing is compiled by a second one; of these the
quickest run counts, stage by stage: other work on the machine only ever adds. Each run is a process
of its own: the first with an empty cache of compiled kernels, the second with what the first left
there. The byte code of all modules is made before, as an installer does."""

import argparse
import compileall
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[1] / "src"
# the modules of the command, and those that `learn` imports when it begins
IMPORTS = (
    "import qubayes.cli, qubayes.learning, qubayes.search.exact, highspy, scipy.sparse.csgraph"
)
_STAGE_PARENTS = 3  # most parents in the table of stages, unless given
SAMPLE = Path(__file__).parents[1] / "examples" / "alarm.csv"


def main() -> None:
    """Print the tables, or be one of the runs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=str(SAMPLE))
    parser.add_argument("-m", "--max-parents", type=int, help="of the command; default: none")
    parser.add_argument(
        "--kernels", type=int, default=10, help="how many of the slowest functions to list"
    )
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(run(options.data, options.max_parents)))
    else:
        compileall.compile_dir(SOURCE, quiet=1)
        learn(options)
        compare(options)


def learn(options: argparse.Namespace) -> None:
    """Print how long the whole command takes, to the result's end, and whether it is proved."""
    print_row(["`qubayes learn`", "first run, s", "next run, s", "of these imports, s", "proved"])
    print_row(["---", "---:", "---:", "---:", "---"])
    for number in range(1, options.repeat + 1):
        with tempfile.TemporaryDirectory() as folder:
            runs = [_learn_once(options, folder) for _ in range(2)]
            imports = _seconds_of_imports()
        proved = "yes" if all(proved for _, proved in runs) else "no"
        seconds = [*(its for its, _ in runs), imports]
        print_row([f"run {number}", *(f"{each:.2f}" for each in seconds), proved])
    print()


def _learn_once(options: argparse.Namespace, folder: str) -> tuple[float, bool]:
    """(seconds of the process, whether its network is proved to be the best)."""
    command = [
        sys.executable,
        "-m",
        "qubayes",
        "learn",
        options.data,
    ]
    if options.max_parents is not None:
        command += ["-m", str(options.max_parents)]
    command += ["--json", "-o", str(Path(folder) / "network.bif")]
    began = time.perf_counter()
    environment = _environment(NUMBA_CACHE_DIR=folder)
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return time.perf_counter() - began, bool(json.loads(done.stdout)["proved"])


def _seconds_of_imports() -> float:
    """Return the seconds of a process that imports what `learn` needs, and no more."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", IMPORTS], check=True, env=_environment())
    return time.perf_counter() - began


def _environment(**more: str) -> dict[str, str]:
    """Return the variables of this process and `more`; modules keep their byte code."""
    kept = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | more


def compare(options: argparse.Namespace) -> None:
    """Run with an empty cache and again with a full one, and print both."""
    first, again = None, None
    for _ in range(options.repeat):
        with tempfile.TemporaryDirectory() as folder:
            first = quicker(first, in_process(options, folder))
            again = quicker(again, in_process(options, folder))
    print_row(
        [
            "stage",
            "first run, s",
            "CPU s",
            "compiling, CPU s",
            "functions compiled",
            "next run, s",
            "CPU s",
        ]
    )
    print_row(["---", *["---:"] * 6])
    for stage in first:
        cold, warm = first[stage], again[stage]
        shown = [f"{cold[key]:.2f}" for key in ("wall", "cpu", "compiling")]
        print_row(
            [
                stage,
                *shown,
                str(len(cold["functions"])),
                f"{warm['wall']:.2f}",
                f"{warm['cpu']:.2f}",
            ]
        )
    functions = [entry for stage in first.values() for entry in stage["functions"]]
    print()
    print_row(["function", "CPU s, without what it calls"])
    print_row(["---", "---:"])
    for seconds, name in sorted(functions, reverse=True)[: options.kernels]:
        print_row([name, f"{seconds:.2f}"])


def quicker(known: dict[str, Any] | None, found: dict[str, Any]) -> dict[str, Any]:
    """For each stage the run that took less processor time."""
    if known is None:
        return found
    return {
        stage: min(known[stage], found[stage], key=lambda outcome: outcome["cpu"])
        for stage in found
    }


def in_process(options: argparse.Namespace, cache: str) -> dict[str, Any]:
    """The outcome of one run with this cache."""
    command = [
        sys.executable,
        __file__,
        "--one",
        "--data",
        options.data,
        "-m",
        str(options.max_parents or _STAGE_PARENTS),
    ]
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=_environment(NUMBA_CACHE_DIR=cache),
    )
    outcome: dict[str, Any] = json.loads(done.stdout)
    return outcome


def run(path: str, max_parents: int) -> dict[str, Any]:
    """Stage by stage: seconds, and the functions that were compiled."""
    stages = Stages()
    with stages.timed("imports"):
        import qubayes.qubo
        import qubayes.search
        from qubayes.candidates import CandidateSearch, identify
        from qubayes.data import read
        from qubayes.qubo.subsets import cover

        stages.listen()
    with stages.timed("data"):
        dataset = read(path)
    with stages.timed("candidates"):
        candidates = identify(dataset, CandidateSearch(max_parents))
    with stages.timed("subsets"):
        subsets = cover(candidates)
    with stages.timed("solve"):
        qubayes.search.solve(
            candidates, qubayes.search.solver_named("auto"), limits=qubayes.search.Limits(10.0)
        )
    with stages.timed("bits"):
        qubayes.qubo.count_bits(candidates, subsets)
    return stages.outcomes


class Stages:
    """Times stages, and listens to what numba compiles in them."""

    def __init__(self) -> None:
        self.outcomes: dict[str, Any] = {}
        self.functions: list[tuple[float, str]] = []
        self.open: list[list[float]] = []  # start, and CPU seconds of what was compiled inside

    def listen(self) -> None:
        """From now on functions are noted as they are compiled."""
        from numba.core import event

        stages = self

        class Listener(event.Listener):  # type: ignore[misc]
            def on_start(self, _: Any) -> None:
                stages.open.append([time.process_time(), 0.0])

            def on_end(self, found: Any) -> None:
                stages.note(found)

        event.register("numba:compile", Listener())

    def note(self, found: Any) -> None:
        """A function was compiled, and meanwhile what it calls."""
        start, inside = self.open.pop()
        took = time.process_time() - start
        function = found.data["dispatcher"].py_func
        self.functions.append((took - inside, f"{function.__module__}.{function.__name__}"))
        if self.open:
            self.open[-1][1] += took

    def timed(self, stage: str) -> "Timed":
        """Times what happens inside `with`."""
        return Timed(self, stage)


class Timed:
    """One stage."""

    def __init__(self, stages: Stages, stage: str) -> None:
        self.stages, self.stage = stages, stage

    def __enter__(self) -> None:
        self.stages.functions = []
        self.start = time.perf_counter(), time.process_time()

    def __exit__(self, *_: object) -> None:
        functions = self.stages.functions
        self.stages.outcomes[self.stage] = {
            "wall": time.perf_counter() - self.start[0],
            "cpu": time.process_time() - self.start[1],
            "compiling": sum(seconds for seconds, _ in functions),
            "functions": functions,
        }


def print_row(cells: list[str]) -> None:
    """One row of a Markdown table."""
    print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
