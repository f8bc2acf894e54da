"""What a task on a Dask cluster costs, and from which size on a cluster pays: measured for two processes.

    python -m benchmarks cluster [--tasks 500] [--data examples/alarm.csv] [--stages
    candidates:3,...] [--workers 100]
        [--task-seconds 0.5]

A scheduler and two worker processes of one thread are started on this machine. Figures are
processor time, which other programs disturb little: of this process (the client), of the scheduler,
and of both workers. The wall clock, which idle cores need, compares one thread, two threads and two
workers. Stages run twice, and the second run counts: kernels are compiled then. The last table is
on paper (`on_paper`)."""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil
from distributed import Client

from qubayes import CandidateSearch, Workers, bootstrap, identify, read
from qubayes.data import Dataset
from qubayes.foundation.workers import run

SCHEDULER = """
from distributed import LocalCluster
with LocalCluster(processes=True, n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
    print(cluster.scheduler_address, flush=True)
    input()
"""
LEAST_TASKS = 32  # into which a level is split, however small
USUAL = "candidates:2,candidates:3,candidates:4,possible-parents:4,bootstrap:2"


class Cost(NamedTuple):
    """Processor seconds, and the number of tasks."""

    client: float
    scheduler: float
    workers: float
    tasks: int


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", type=int, default=500)
    parser.add_argument("--data", type=Path, default=Path("examples/alarm.csv"))
    parser.add_argument("--stages", default=USUAL, help="each with its number of parents")
    parser.add_argument(
        "--task-seconds", type=float, default=0.5, help="of a block of the last level, on paper"
    )
    parser.add_argument("--workers", type=int, default=100, help="of the estimate on paper")
    options = parser.parse_args()
    with started_cluster() as (made, address):
        began = sum(seconds(made))
        with Workers(cluster=address).connected() as joined:
            connecting = sum(seconds(made)) - began
            each = empty_tasks(joined, made, options.tasks)
            print(
                f"connection {connecting:.2f} s; {1000 * megabytes(joined, made):.1f} ms for each MB that a worker gets"
            )
            print("\n| ms a task | client | scheduler | worker |\n|---|---|---|---|")
            print(
                "| that does nothing | "
                + " | ".join(f"{1000 * spent:.2f}" for spent in each[:3])
                + " |\n"
            )
            print(
                "| stage | here s | tasks | client s | scheduler s | workers s | all / here "
                "| wall s, one thread | two threads | two workers |"
            )
            print("|---|---|---|---|---|---|---|---|---|---|")
            dataset = read(options.data)
            for stage in options.stages.split(","):
                name, most = stage.split(":")
                work = work_of(name, int(most), dataset)
                here, there = both(work, joined, made)
                spent = f"{there.client:.2f} | {there.scheduler:.2f} | {there.workers:.2f}"
                clock = " | ".join(
                    f"{wall(work, workers):.2f}" for workers in (Workers(1), Workers(2), joined)
                )
                print(
                    f"| {name} {most} | {here:.2f} | {there.tasks} | {spent} | {sum(there[:3]) / here:.2f} | {clock} |",
                    flush=True,
                )
    print(
        f"\n| s on one thread | tasks | s with 2 workers | with {options.workers} | times |\n|---|---|---|---|---|"
    )
    for load in (0.3, 1, 3, 10, 100, 1000, 10_000):
        tasks = max(LEAST_TASKS, round(load / options.task_seconds))
        two, many = (
            on_paper(load, tasks, count, each, connecting) for count in (2, options.workers)
        )
        print(f"| {load:,} | {tasks:,} | {two:,.2f} | {many:,.2f} | {load / many:.1f} |")


@contextmanager
def started_cluster() -> Iterator[tuple[psutil.Process, str]]:
    """Yield the process of a scheduler, whose children are two workers, and its address."""
    command = [sys.executable, "-c", SCHEDULER]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        yield psutil.Process(process.pid), process.stdout.readline().strip()
        process.communicate("\n")


def on_paper(work: float, tasks: int, count: int, each: Cost, connecting: float) -> float:
    """Return T = c + N t + max(N s, (W + N o) / min(w, N)) seconds.

    c connection; W work on one thread, in N tasks, on w workers; each task costs the client t, the
    scheduler s, and its worker o. As if the client worked while nobody else does."""
    spread = (work + tasks * each.workers) / min(count, tasks)
    return connecting + tasks * each.client + max(tasks * each.scheduler, spread)


def seconds(made: psutil.Process) -> tuple[float, float, float]:
    """Return processor seconds so far of this process, the scheduler and the workers."""
    children = [
        child
        for child in made.children(recursive=True)
        if "spawn_main" in " ".join(child.cmdline())
    ]
    spent = [
        each.user + each.system for each in (process.cpu_times() for process in (made, *children))
    ]
    return sum(os.times()[:2]), spent[0], sum(spent[1:])


def cost_of(work: Callable[[], Any], made: psutil.Process) -> Cost:
    """Return what the work costs on the cluster."""
    submitted, submit = [0], Client.submit

    def counted(*given: Any, **more: Any) -> Any:
        submitted[0] += 1
        return submit(*given, **more)

    Client.submit = counted
    try:
        before = seconds(made)
        work()
        after = seconds(made)
    finally:
        Client.submit = submit
    return Cost(*(b - a for a, b in zip(before, after, strict=True)), submitted[0])


def nothing(shared: Any, item: int) -> int:
    """Do nothing."""
    return item


def empty_tasks(joined: Workers, made: psutil.Process, count: int) -> Cost:
    """Return the cost of one task that does nothing, the mean of so many."""
    list(run(nothing, (), range(20), joined))
    spent = cost_of(lambda: list(run(nothing, (), range(count), joined)), made)
    return Cost(*(part / count for part in spent[:3]), 1)


def megabytes(joined: Workers, made: psutil.Process, size: int = 100) -> float:
    """Return the seconds of all processes for one MB of shared input that both workers get."""
    shared = np.random.default_rng(0).random(size * 125_000)
    spent = cost_of(lambda: list(run(nothing, shared, range(4), joined)), made)
    return (spent.client + spent.scheduler + spent.workers) / size / 2


def work_of(name: str, most: int, dataset: Dataset) -> Callable[[Workers], Any]:
    """Return a stage as a function of the workers."""
    if name == "candidates":
        return lambda workers: identify(
            dataset, CandidateSearch(most), workers=workers
        ).scores.tobytes()
    if name == "possible-parents":
        search = CandidateSearch(most, possible_parents=10)
        return lambda workers: identify(dataset, search, workers=workers).scores.tobytes()
    assert name == "bootstrap", f"no stage {name}"
    return lambda workers: bootstrap(
        dataset, CandidateSearch(most), 4, workers=workers
    ).frequencies.tobytes()


def both(
    work: Callable[[Workers], Any], joined: Workers, made: psutil.Process
) -> tuple[float, Cost]:
    """Return the seconds on one thread here and the cost on the cluster; the results must be equal."""
    found: list[Any] = [work(Workers(1)), work(joined)]  # compiles
    began = sum(os.times()[:2])
    found.append(work(Workers(1)))
    here = sum(os.times()[:2]) - began
    cost = cost_of(lambda: found.append(work(joined)), made)
    assert all(each == found[0] for each in found)
    return here, cost


def wall(work: Callable[[Workers], Any], workers: Workers) -> float:
    """Return the seconds of the wall clock."""
    began = time.perf_counter()
    work(workers)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
