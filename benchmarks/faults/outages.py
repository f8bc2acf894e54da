"""Takes from running commands what they need: workers, the scheduler, room on the disk, memory.

    python -m benchmarks faults outages --rounds 3 --seed 0

- worker: a worker process of a Dask cluster is killed in the middle. The result must be that of a
  run without cluster; or the command says that workers died, and has that result when run again.
- scheduler: the scheduler is killed in the middle and started again at the same address. The
  command must either end
  with the right result or fail with one line; run again, it must end with the right result.
- disk: the results go to a small file system in memory (needs the right to mount one), and to a
  disk where no file may
  grow past a limit. One line, no half-written file; with room again, the same command ends with the
  right result. A network whose file does not fit may stand beside it, in `x.bif.json`.
- memory: `ulimit -v`, too small for the libraries; problem: enough for them, and too small for a
  large problem. One
  line, and nothing but the lock of a run folder is left; under the same limit a small problem ends
  with the right result.

Exit code 1 if anything else was seen.
"""

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from common import Run, dependent_data, files_in, finish, run, start, table
from distributed import Client
from kill import essence

from qubayes.candidates import Candidates, write_candidates
from qubayes.data import write
from qubayes.foundation.arrays import frozen
from qubayes.foundation.families import Families

COMMANDS = ("candidates", "formulate", "learn")
RESCUED = "x.bif.json"  # where `learn` puts a network whose own file cannot be written
# MB: the libraries do not fit; they do, and the problem does not
LEAST_MEMORY, LITTLE_MEMORY = 699, 1000


def arguments_of(command: str, inputs: Path, out: Path) -> list[object]:
    """A command whose result depends on nothing but its input."""
    if command == "candidates":
        return [
            "candidates",
            inputs / "data.csv",
            "-m",
            3,
            "--score",
            "bds",
            "--resume",
            "-o",
            out / "x.jkl",
        ]
    if command == "formulate":
        return ["formulate", inputs / "sets.qbc", "-o", out / "x.bqm"]
    search = ["-m", 3, "--score", "bds", "--solver", "anneal", "--moves", 20_000]
    return ["learn", inputs / "data.csv", *search, "--run-dir", out / "run", "-o", out / "x.bif"]


class Bench:
    """Inputs, the result of each command when nothing is wrong, and the count of what was seen."""

    def __init__(self, folder: Path, variables: int, seed: int) -> None:
        self.folder, self.inputs, self.out = folder, folder / "inputs", folder / "out"
        self.random = np.random.default_rng(seed)
        self.seen: Counter[tuple[str, str, str]] = Counter()
        self.faults: list[str] = []
        self.inputs.mkdir()
        write(dependent_data(variables, 400, seed), self.inputs / "data.csv")
        made = run(
            [
                "candidates",
                self.inputs / "data.csv",
                "-m",
                3,
                "--score",
                "bds",
                "-o",
                self.inputs / "sets.qbc",
            ]
        )
        assert made.code == 0, made.err
        self.expected: dict[str, dict[str, Any]] = {}  # undisturbed: the files and what they say
        self.seconds: dict[str, float] = {}
        self.sizes: dict[str, list[int]] = {}  # bytes of each file

    def prepare(self, command: str) -> None:
        """Run the command undisturbed."""
        began = time.monotonic()
        done = run(self.arguments(command))
        assert done.code == 0, done.err
        self.seconds[command] = time.monotonic() - began
        self.expected[command] = self.found()
        self.sizes[command] = [path.stat().st_size for path in files_in(self.out)]
        self.empty()

    def arguments(self, command: str, *more: object) -> list[object]:
        self.out.mkdir(exist_ok=True)
        return [*arguments_of(command, self.inputs, self.out), *more]

    def found(self) -> dict[str, Any]:
        return {
            str(path.relative_to(self.out)): essence(path)
            for path in files_in(self.out)
            if path.name != RESCUED
        }

    def empty(self) -> None:
        for path in self.out.iterdir():  # not the folder itself: a file system may be mounted there
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def expect(
        self, fault: str, command: str, what: str, good: bool, ended: Run | None = None
    ) -> None:
        """Count what was seen; if it is not good, keep it as a fault."""
        self.seen[fault, command, what if good else "FAULT"] += 1
        if not good:
            told = f": exit code {ended.code}: {ended.err[-500:]}" if ended else ""
            self.faults.append(f"{fault}, {command}: not {what}{told}")
            print(self.faults[-1], file=sys.stderr)

    def expect_result(self, fault: str, command: str, what: str, ended: Run) -> None:
        self.expect(
            fault, command, what, ended.code == 0 and self.found() == self.expected[command], ended
        )

    def expect_told(self, fault: str, command: str, *words: str, ended: Run) -> None:
        """One line that says so, and no half-written file."""
        halves = [path.name for path in files_in(self.out) if path.suffix == ".part"]
        good = ended.told and any(word in ended.err for word in words) and not halves
        self.expect(fault, command, "told in one line", good, ended)


# A cluster


class Cluster:
    """A Dask scheduler and two workers, each a process; workers come back when they die."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.scheduler = self.start_scheduler()
        self.workers = self.start_workers()

    def _start(self, module: str, *arguments: object) -> "subprocess.Popen[bytes]":
        command = [
            sys.executable,
            "-m",
            f"distributed.cli.{module}",
            *map(str, arguments),
            "--no-dashboard",
        ]
        nothing = subprocess.DEVNULL
        return subprocess.Popen(
            command, cwd=self.folder, stdin=nothing, stdout=nothing, stderr=nothing
        )

    def start_scheduler(self) -> "subprocess.Popen[bytes]":
        scheduler = self._start("dask_scheduler", "--host", "127.0.0.1", "--port", self.port)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return scheduler
            time.sleep(0.1)
        raise TimeoutError("the scheduler does not start")

    def start_workers(self) -> "subprocess.Popen[bytes]":
        return self._start("dask_worker", self.address, "--nworkers", 2, "--nthreads", 1)

    def worker_processes(self) -> list[psutil.Process]:
        """The processes that tasks run in: what the nannies start, without the helpers of Python."""
        children = psutil.Process(self.workers.pid).children(recursive=True)
        return [child for child in children if "spawn_main" in " ".join(child.cmdline())]

    def wait_for_workers(self) -> None:
        """Return once both are at work: a nanny gives up a worker that dies while it starts."""
        with Client(self.address, timeout=60, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=120)

    def restart(self) -> None:
        """Kill the scheduler, and start it again at the same address with new workers: the old ones end with it."""
        self.close()
        self.scheduler = self.start_scheduler()
        self.workers = self.start_workers()

    def close(self) -> None:
        processes = [
            self.scheduler,
            self.workers,
            *psutil.Process(self.workers.pid).children(recursive=True),
        ]
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self.workers.wait()
        self.scheduler.wait()


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """A cluster, ended with the block."""
    made = Cluster(folder)
    try:
        yield made
    finally:
        made.close()


def disturbed(
    bench: Bench, command: str, cluster: Cluster, disturb: Callable[[], None]
) -> tuple[Run, str]:
    """The command on the cluster, disturbed while it works there; how it ended, and " (too late)" if it had before.

    `candidates` is disturbed at its first finished block, the others some time after they are
    connected."""
    process = start(bench.arguments(command, "--cluster", cluster.address))
    while process.poll() is None and not works_there(bench, command, process.pid, cluster.port):
        time.sleep(0.002)
    if command != "candidates":
        time.sleep(bench.random.uniform(0, 0.1 * bench.seconds[command]))
    late = " (too late)" if process.poll() is not None else ""
    disturb()
    return finish(process), late


def works_there(bench: Bench, command: str, pid: int, port: int) -> bool:
    """Whether a block is finished, or the process is connected with the scheduler."""
    if command == "candidates":
        blocks = [path for path in files_in(bench.out) if path.suffix == ".blocks"]
        return any(path.stat().st_size > 1000 for path in blocks)
    with suppress(psutil.Error):
        return any(
            link.raddr and link.raddr.port == port for link in psutil.Process(pid).net_connections()
        )
    return False


def kill_workers(bench: Bench, commands: Sequence[str], rounds: int) -> None:
    """A worker dies: nothing is to be seen of it, or it is told in one line; then the command goes on."""
    with cluster(bench.folder) as made:

        def kill_one() -> None:
            with suppress(psutil.NoSuchProcess):
                bench.random.choice(np.array(made.worker_processes(), dtype=object)).kill()

        for command in commands:
            for _ in range(rounds):
                made.wait_for_workers()
                ended, late = disturbed(bench, command, made, kill_one)
                if ended.code:
                    bench.expect_told("worker killed", command, "workers", "died", ended=ended)
                    ended = run(bench.arguments(command, "--cluster", made.address))
                bench.expect_result("worker killed", command, "the same result" + late, ended)
                bench.empty()


def restart_schedulers(bench: Bench, commands: Sequence[str], rounds: int) -> None:
    """The scheduler dies and comes back: told in one line, or survived; then the command goes on."""
    with cluster(bench.folder) as made:
        for command in commands:
            for _ in range(rounds):
                made.wait_for_workers()
                ended, late = disturbed(bench, command, made, made.restart)
                if ended.code:
                    bench.expect_told(
                        "scheduler restarted", command, "scheduler", "cluster", ended=ended
                    )
                else:
                    bench.expect_result(
                        "scheduler restarted", command, "the same result at once" + late, ended
                    )
                again = run(bench.arguments(command, "--cluster", made.address))
                bench.expect_result(
                    "scheduler restarted", command, "the same result when run again", again
                )
                bench.empty()


# The disk


def fill_disks(bench: Bench, commands: Sequence[str], rounds: int) -> str:
    """No room for the results; why it was left out, if it was."""
    for command in commands:
        size = max(bench.sizes[command])
        for share in bench.random.uniform(0.02, 0.98, rounds):
            limit = int(share * size) // 1024  # the unit of ulimit -f in bash
            ended = run(
                bench.arguments(command), ["bash", "-c", f'ulimit -f {limit}; exec "$@"', "-"]
            )
            no_room(bench, "file size limited", command, ended)
            bench.expect_result(
                "file size limited",
                command,
                "the same result with room",
                run(bench.arguments(command)),
            )
            bench.empty()
    if not can_mount(bench.out):
        return "disk full: left out, since no file system can be mounted here"
    for command in commands:
        for share in bench.random.uniform(0.02, 0.98, rounds):
            pages = max(1, int(share * sum(-(-size // 4096) for size in bench.sizes[command])))
            fill_disk(bench, command, pages)
    return ""


def no_room(bench: Bench, fault: str, command: str, ended: Run) -> None:
    if ended.code == 0:  # the limit was above all that was written
        bench.expect_result(fault, command, "the same result: it had room", ended)
    else:
        bench.expect_told(fault, command, "cannot write", ended=ended)


def can_mount(folder: Path) -> bool:
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True
    )
    if mounted.returncode == 0:
        subprocess.run(["umount", folder], check=True)
    return mounted.returncode == 0


def fill_disk(bench: Bench, command: str, pages: int) -> None:
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={4 * pages}k", "tmpfs", bench.out], check=True
    )
    try:
        no_room(bench, "disk full", command, run(bench.arguments(command)))
        subprocess.run(["mount", "-o", "remount,size=64m", bench.out], check=True)
        bench.expect_result(
            "disk full", command, "the same result with room", run(bench.arguments(command))
        )
        bench.empty()
    finally:
        subprocess.run(["umount", bench.out], check=True)


# Memory


def limit_memory(bench: Bench, commands: Sequence[str]) -> None:
    """Too little for the libraries."""
    for command in commands:
        for limit in (100, 350, LEAST_MEMORY):
            ended = run(bench.arguments(command), limited_to(limit))
            bench.expect_told("memory limited", command, f"limited to {limit} MB", ended=ended)


def exceed_memory(bench: Bench, commands: Sequence[str]) -> None:
    """Enough for the libraries and too little for the problem."""
    make_large(bench)
    for command in commands:
        ended = run([*large(bench, command), "--threads", 1], limited_to(LITTLE_MEMORY))
        words = (
            f"out of memory within the limit of {LITTLE_MEMORY} MB",
            "1.0 GB are here: take fewer parents",
        )
        bench.expect_told("problem too large", command, *words, ended=ended)
        left = [path.name for path in files_in(bench.out) if path.name != "run.lock"]
        bench.expect("problem too large", command, "no result left behind", not left)
        bench.empty()
        ended = run(bench.arguments(command, "--threads", 1), limited_to(LITTLE_MEMORY))
        bench.expect_result("problem too large", command, "the same result where it fits", ended)
        bench.empty()


def limited_to(megabytes: int) -> list[str]:
    return ["bash", "-c", f'ulimit -v {megabytes << 10}; exec "$@"', "-"]


def make_large(bench: Bench) -> None:
    """Data and candidate sets that take little time and more than LITTLE_MEMORY."""
    write(dependent_data(700, 20, 0), bench.inputs / "wide.csv")
    n = 700
    # one cycle: every pair needs an order
    families = Families.of([[((v + 1) % n,), ()] for v in range(n)])
    write_candidates(
        Candidates(tuple(f"v{v}" for v in range(n)), families, frozen(np.tile([-1.0, -2.0], n))),
        bench.inputs / "cycle.qbc",
    )


def large(bench: Bench, command: str) -> list[object]:
    changed = {"data.csv": "wide.csv", "sets.qbc": "cycle.qbc"}
    arguments = [
        bench.inputs / changed[word.name]
        if isinstance(word, Path) and word.name in changed
        else word
        for word in bench.arguments(command)
    ]
    return [*arguments, *(["--order", "scc"] if command == "formulate" else [])]


def main() -> int:
    """0 if all was as it should be, else 1."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=1, help="of each fault and command")
    parser.add_argument("--faults", default="worker,scheduler,disk,memory,problem")
    parser.add_argument("--commands", default=",".join(COMMANDS))
    parser.add_argument("--variables", type=int, default=24, help="of the data")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    commands = asked.commands.split(",")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), asked.variables, asked.seed)
        for command in commands:
            bench.prepare(command)
        left_out = run_all(bench, commands, asked.faults.split(","), asked.rounds)
    rows = [(*key, count) for key, count in sorted(bench.seen.items())]
    print(table(("fault", "command", "seen", "times"), rows))
    print(
        f"\n{sum(bench.seen.values())} observations, {len(bench.faults)} faults\n{left_out}".rstrip()
    )
    return 1 if bench.faults else 0


def run_all(bench: Bench, commands: Sequence[str], faults: Sequence[str], rounds: int) -> str:
    """What was left out, and why."""
    if "worker" in faults:
        kill_workers(bench, commands, rounds)
    if "scheduler" in faults:
        restart_schedulers(bench, commands, rounds)
    if "memory" in faults:
        limit_memory(bench, commands)
    if "problem" in faults:
        exceed_memory(bench, commands)
    return fill_disks(bench, commands, rounds) if "disk" in faults else ""


if __name__ == "__main__":
    os.umask(0o022)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    sys.exit(main())
