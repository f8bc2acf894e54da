"""Damaged files for every reader: only success or a QubayesError may come out, in bounded time and memory.

    python -m benchmarks faults fuzz --inputs 1000000 --seed 0            # the whole experiment
    python -m benchmarks faults fuzz --reader 'network .bif' --inputs 5000
    python -m benchmarks faults fuzz --reader 'network .bif' --only 1234  # one input again, with its trace

Each reader works in a process of its own, on a file in memory, with a limit on its address space
and, for each input, on its processor time. Input k of a reader depends on --seed, the reader and k
alone. Prints a Markdown table; exit code 1 if anything else than a QubayesError came out, a limit
was met, or a process died."""

import argparse
import faulthandler
import math
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

os.environ.update(
    POLARS_MAX_THREADS="1", NUMBA_NUM_THREADS="1", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1"
)

from fuzz_readers import READERS, Reader

from qubayes import QubayesError

SECONDS = 5.0  # of processor time, for one input
MEMORY = 2 << 30  # bytes of address space beyond what the libraries take
# seconds of wall clock without a sign of life: the process hangs where no signal reaches it
_SILENCE = 120.0


class Tally(NamedTuple):
    """What came of the inputs of a reader."""

    inputs: int
    accepted: int
    refused: int
    slowest: float  # seconds
    slowest_input: int
    memory: float  # megabytes at the peak beyond those at the start
    failures: tuple[str, ...]


class TimeIsUpError(BaseException):
    """No Exception, so that no reader takes it for something of its own."""


def main() -> int:
    """Run the experiment; the exit code."""
    options = _options()
    if options.only is not None:
        return _repeat(options)
    if unknown := set(options.reader or ()) - set(READERS):
        sys.exit(f"no reader {min(unknown)!r}; there are: {', '.join(READERS)}")
    chosen = {
        name: reader for name, reader in READERS.items() if name in (options.reader or READERS)
    }
    parts = sum(reader.share for reader in chosen.values())
    began = time.perf_counter()
    print("| reader | inputs | accepted | refused | slowest, ms (input) | memory, MB | failures |")
    print("|---|--:|--:|--:|--:|--:|--:|", flush=True)
    tallies = []
    for name, reader in chosen.items():
        tally = _fuzz(
            name, reader, max(1, math.ceil(options.inputs * reader.share / parts)), options.seed
        )
        tallies.append(tally)
        print(
            f"| {name} | {tally.inputs:,} | {tally.accepted:,} | {tally.refused:,} "
            f"| {1000 * tally.slowest:,.0f} ({tally.slowest_input}) | {tally.memory:,.0f} | {len(tally.failures)} |",
            flush=True,
        )
        for failure in tally.failures[: options.show]:
            print(f"{name}: {failure}", file=sys.stderr, flush=True)
    inputs, accepted, refused = (
        sum(getattr(t, key) for t in tallies) for key in ("inputs", "accepted", "refused")
    )
    failures = sum(len(tally.failures) for tally in tallies)
    slowest, memory = max(t.slowest for t in tallies), max(t.memory for t in tallies)
    print(
        f"| all | {inputs:,} | {accepted:,} | {refused:,} | {1000 * slowest:,.0f} | {memory:,.0f} | {failures} |"
    )
    print(
        f"\nSeed {options.seed}; at most {SECONDS:g} s of processor time an input and {MEMORY >> 20:,} MB of address "
        f"space a reader; {time.perf_counter() - began:,.0f} s in all."
    )
    return 1 if failures else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--inputs", type=int, default=20_000, help="of all readers together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reader", action="append", help="only this one; may be repeated")
    parser.add_argument(
        "--only", type=int, help="repeat this input of --reader, with its content and trace"
    )
    parser.add_argument("--show", type=int, default=20, help="failures of a reader to tell of")
    return parser.parse_args()


def _fuzz(name: str, reader: Reader, inputs: int, seed: int) -> Tally:
    """All inputs of a reader, in as many processes, one after the other, as it takes: one that dies is replaced."""
    context = multiprocessing.get_context("fork")
    done, tallies, failures = 0, [], []
    while done < inputs:
        folder = _folder()  # made and removed here: the process may die
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(
            target=_work, args=(folder, name, reader, (done, inputs), seed, sender)
        )
        process.start()
        sender.close()
        at, tally = _followed(process, receiver)
        process.join()
        shutil.rmtree(folder, ignore_errors=True)
        tallies += [tally] if tally is not None else []
        if process.exitcode == 0 and tally is not None and tally.inputs == inputs - done:
            break
        if at is None:
            failures.append(f"no valid files could be made and read: code {process.exitcode}")
            break
        failures.append(
            f"input {at}: the process ended with code {process.exitcode}, or hung and was ended"
        )
        done = at + 1
    slowest = max(tallies, key=lambda t: t.slowest, default=Tally(0, 0, 0, 0.0, 0, 0.0, ()))
    accepted, refused = (sum(getattr(t, key) for t in tallies) for key in ("accepted", "refused"))
    failures += [failure for tally in tallies for failure in tally.failures]
    memory = max((t.memory for t in tallies), default=0.0)
    return Tally(
        inputs, accepted, refused, slowest.slowest, slowest.slowest_input, memory, tuple(failures)
    )


def _followed(process: Any, receiver: Any) -> tuple[int | None, Tally | None]:
    """(the input that was begun last, the last tally that was told)."""
    at = tally = None
    while True:
        if not receiver.poll(_SILENCE):
            process.kill()
            return at, tally
        try:
            at, tally = receiver.recv()
        except EOFError:
            return at, tally


def _work(
    folder: Path, name: str, reader: Reader, span: tuple[int, int], seed: int, sender: Any
) -> None:
    """Read the inputs; before each its number is sent, and the tally so far."""
    seeds, read = _prepared(folder, reader)
    place = folder / f"input{reader.ending}"
    _quiet()
    base = _peak()
    signal.signal(signal.SIGPROF, _time_is_up)
    accepted = refused = slowest_input = 0
    slowest, failures = 0.0, []

    def tally() -> Tally:
        done = accepted + refused + len(failures)
        return Tally(
            done, accepted, refused, slowest, slowest_input, _peak() - base, tuple(failures)
        )

    for number in range(*span):
        sender.send((number, tally()))
        random = Random(f"{seed} {name} {number}")
        place.write_bytes(reader.damage(seeds, random))
        began = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            read(place, random)
            accepted += 1
        except QubayesError:
            refused += 1
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            failures.append(
                f"input {number}: {type(error).__name__}: {str(error)[:150]!r} {_where(error)}"
            )
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        seconds = time.process_time() - began
        if seconds > slowest:
            slowest, slowest_input = seconds, number
    sender.send((span[1], tally()))


def _prepared(folder: Path, reader: Reader) -> Any:
    """The seeds and the function; every seed is read well once, so that kernels and libraries are loaded."""
    seeds, read = reader.prepare(folder)
    place = folder / f"input{reader.ending}"
    import gzip

    for seed in seeds:
        place.write_bytes(gzip.compress(seed) if reader.ending.endswith(".gz") else seed)
        for attempt in range(6 if reader.share >= 1 else 1):
            try:
                read(place, Random(attempt))
            except QubayesError:
                continue
    in_use = next(int(line.split()[1]) << 10 for line in _status() if line.startswith("VmSize"))
    resource.setrlimit(resource.RLIMIT_AS, (in_use + MEMORY, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return seeds, read


def _status() -> Iterator[str]:
    yield from Path("/proc/self/status").read_text().splitlines()


def _folder() -> Path:
    """A new folder in memory, where the system has such."""
    memory = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="qubayes-fuzz-", dir=memory if memory.is_dir() else None))


def _quiet() -> None:
    """Polars tells of its panics on stderr, whoever catches them; warnings of numpy are of no interest either."""
    faulthandler.disable()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _time_is_up(signal_number: int, frame: object) -> None:
    raise TimeIsUpError(f"more than {SECONDS:g} s")


def _where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return " < ".join(
        f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames[-4:])
    )


def _repeat(options: argparse.Namespace) -> int:
    [name] = options.reader or [""]
    reader = READERS[name]
    folder = _folder()
    try:
        seeds, read = _prepared(folder, reader)
        random = Random(f"{options.seed} {name} {options.only}")
        place = folder / f"input{reader.ending}"
        place.write_bytes(content := reader.damage(seeds, random))
        print(content[:3000])
        print(str(read(place, random))[:1000])
    except QubayesError as error:
        print(f"refused: {error}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
