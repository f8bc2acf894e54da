"""Many runs in one process, two at once, and one that is interrupted again and again.

    python -m benchmarks faults load --calls 1000 --cycles 300 --seed 0

Prints memory, threads and open files of a process that calls `qubayes.learn` again and again; what
two processes do on one numba cache and one run folder; and what a run comes to that is interrupted
after a random time and resumed, cycle after cycle. Exit code 1 if something grows, differs or
breaks."""

import argparse
import json
import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from common import dependent_data, files_in, finish, start, table

import qubayes
from qubayes.data import write

# MB, by a straight line through all but the first tenth of the calls: noise of the allocator
GROWTH = 20.0
REFUSED = "another run works in"


class State(NamedTuple):
    """What a process holds."""

    calls: int
    memory: float  # MB resident
    threads: int
    files: int


def state(calls: int) -> State:
    """What this process holds now (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    memory = pages * os.sysconf("SC_PAGESIZE") / 2**20
    threads = len(list(Path("/proc/self/task").iterdir()))
    return State(calls, memory, threads, len(list(Path("/proc/self/fd").iterdir())))


def call_often(calls: int, seed: int) -> tuple[str, bool]:
    """A table of what the process holds at every tenth of the calls, and whether nothing grew after the first."""
    every = max(1, calls // 10)
    solvers = ("anneal", "hillclimb", "order-sa", "asobs", "auto", "digital")
    scores = ("bdeu", "bds", "bic", "k2")
    states = []
    # what is loaded for each solver and score at its first use is no growth
    for call in range(-12, calls):
        data = dependent_data(4 + call % 5, 60 + 20 * (call % 7), seed + call % 50)
        solver = solvers[call % len(solvers)]
        moves = None if solver == "auto" else 500
        qubayes.learn(
            data,
            2,
            score=scores[call % 4],
            solver=solver,
            moves=moves,
            seed=abs(call),
            workers=qubayes.Workers(1 + call % 3),
        )
        if call >= 0 and (call + 1) % every == 0:
            states.append(state(call + 1))
    later = states[1:] or states
    slope = (
        float(np.polyfit([s.calls for s in later], [s.memory for s in later], 1)[0])
        if len(later) > 1
        else 0.0
    )
    grown = slope * (later[-1].calls - later[0].calls)
    fine = (
        grown < GROWTH
        and later[-1].threads <= states[0].threads + 2
        and later[-1].files <= states[0].files
    )
    rows = [[s.calls, f"{s.memory:.1f}", s.threads, s.files] for s in states]
    title = f"\n{calls} calls of `learn`; after the first tenth of them memory grows by {grown:.2f} MB\n\n"
    return title + table(["calls", "MB resident", "threads", "open files"], rows), fine


def run_twice(folder: Path, seed: int, *, warm: bool) -> tuple[str, bool]:
    """Two processes on one numba cache, an empty one unless `warm`; then four on one run folder."""
    data = folder / "twice.csv"
    write(dependent_data(9, 400, seed), data)
    cache = {**os.environ} if warm else {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache")}
    command = [
        "learn",
        data,
        "-m",
        "2",
        "--solver",
        "anneal",
        "--moves",
        "20000",
        "--threads",
        "1",
        "--json",
    ]
    together = [finish(process) for process in [start(command, env=cache) for _ in range(2)]]
    found = [
        (json.loads(run.out)["score"], json.loads(run.out)["network"])
        for run in together
        if run.code == 0
    ]
    equal = len(found) == 2 and found[0] == found[1]
    shared = [*command[:-1], "--run-dir", folder / "shared", "--json"]
    runs = [finish(process) for process in [start(shared) for _ in range(4)]]
    refused = sum(run.told and REFUSED in run.err for run in runs)
    done = [json.loads(run.out) for run in runs if run.code == 0]
    after = finish(start(shared))
    same = (
        all((d["score"], d["network"]) == found[0] for d in [*done, json.loads(after.out)])
        if equal
        else False
    )
    fine = equal and same and len(done) + refused == 4 and len(done) >= 1
    rows = [
        [
            f"two processes on one {'warm' if warm else 'empty'} cache",
            "equal results" if equal else f"FAILED {[r.err for r in together]}",
        ],
        [
            "four processes on one run folder",
            f"{len(done)} finished, {refused} refused, {4 - len(done) - refused} failed; result "
            + ("equal" if same else "DIFFERENT"),
        ],
    ]
    return "\n" + table(["at once", "outcome"], rows), fine


def interrupt_often(folder: Path, cycles: int, seed: int) -> tuple[str, bool]:
    """`learn` with a run folder, interrupted (SIGINT) after a random time and resumed; a finished one begins anew."""
    rng = np.random.default_rng(seed)
    data = dependent_data(12, 2000, seed)
    settings = {
        "score": "bdeu",
        "solver": "anneal",
        "time_limit": None,
        "moves": 100_000,
        "seed": 3,
    }
    workers = qubayes.Workers(1)
    undisturbed = qubayes.learn(data, 3, workers=workers, **settings)
    began = time.perf_counter()  # all is compiled now
    qubayes.learn(data, 3, workers=workers, **settings)
    whole = time.perf_counter() - began
    ends = {"interrupted": 0, "finished": 0, "best so far": 0}
    largest, different = 0, 0
    place, number = folder / "cycles", 0
    for _ in range(cycles):
        seconds = float(rng.uniform(0.02, 1.1)) * whole
        timer = threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGINT))
        try:
            timer.start()  # it may be over before this returns
            result = qubayes.learn(
                data, 3, run_dir=place / str(number), workers=workers, **settings
            )
            timer.cancel()
            timer.join()
            ends["best so far" if result.solution.interrupted else "finished"] += 1
            if not result.solution.interrupted:
                different += not same_result(result, undisturbed)
                number += 1
        except KeyboardInterrupt:
            ends["interrupted"] += 1
        finally:
            timer.cancel()
        here = files_in(place / str(number)) if (place / str(number)).exists() else []
        largest = max(largest, len(here))
    final = qubayes.learn(data, 3, run_dir=place / str(number), workers=workers, **settings)
    different += not same_result(final, undisturbed)
    left = sorted(path.name for path in files_in(place / str(number)))
    fine = different == 0 and left == ["candidates.qbc", "run.json", "run.lock", "solution.json"]
    rows = [[cycles, *ends.values(), different, largest, " ".join(left)]]
    head = ["cycles", *ends, "different results", "most files", "files at the end"]
    return "\n" + table(head, rows), fine


def same_result(one: qubayes.Learned, other: qubayes.Learned) -> bool:
    """Whether both found the same network with the same score."""
    return (
        one.solution.score == other.solution.score
        and one.solution.parents == other.solution.parents
    )


def main() -> int:
    """Run the experiment; 1 if something grew, differed or broke."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=50, help="of learn in one process")
    parser.add_argument("--cycles", type=int, default=10, help="interruptions of one run")
    parser.add_argument(
        "--warm", action="store_true", help="do not compile everything twice on an empty cache"
    )
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    # a shell starts what is in the background without one
    signal.signal(signal.SIGINT, signal.default_int_handler)
    fine = True
    with tempfile.TemporaryDirectory() as name:
        for report, good in (
            call_often(options.calls, options.seed),
            run_twice(Path(name), options.seed, warm=options.warm),
            interrupt_often(Path(name), options.cycles, options.seed),
        ):
            print(report)
            fine &= good
    print("\nnothing grew, nothing differed" if fine else "\nFAILED")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
