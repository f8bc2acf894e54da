"""What every command shares: how it prints, how it shows progress, how it fails."""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from ..errors import QubayesError
from ..progress import OnProgress, Progress, silent


def guarded(command: Callable[[], Any]) -> None:
    """Run the command; a QubayesError becomes one line on stderr and exit code 1, an interrupt exit code 130."""
    try:
        _run(command)
        sys.stdout.flush()  # a full disk shows now, while there is still someone to say so
    except QubayesError as error:
        _fail(" ".join(str(error).split()), 1)
    except KeyboardInterrupt:
        _fail("interrupted", 130)
    except MemoryError:
        _fail("out of memory; `qubayes plan` tells what fits", 1)
    except BrokenPipeError:  # the reader had enough, and knows it
        _abandon_stdout()
        sys.exit(1)
    except OSError as error:
        _abandon_stdout()
        place = f" {error.filename}" if error.filename else ""
        _fail(f"cannot read or write{place}: {error.strerror or error}", 1)


def _run(command: Callable[[], Any]) -> None:
    """Run the command; an app ends in SystemExit even where all went well, and turns an interrupt into one."""
    try:
        command()
    except SystemExit as end:
        cause = end.__context__
        while cause and not isinstance(cause, KeyboardInterrupt):
            cause = cause.__cause__ or cause.__context__
        if cause:
            raise KeyboardInterrupt from end
        if end.code:
            raise


def _fail(message: str, code: int) -> NoReturn:
    print(f"qubayes: {message}", file=sys.stderr)
    sys.exit(code)


def _abandon_stdout() -> None:
    """Let what is still unwritten go nowhere; Python would try it once more at its end, and complain."""
    with suppress(OSError):  # io.UnsupportedOperation too: a stdout without a file needs no care
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_json(value: Any) -> None:
    """The value as one JSON document on stdout."""
    json.dump(value, sys.stdout, indent=2, allow_nan=False, ensure_ascii=False)
    sys.stdout.write("\n")


@contextmanager
def progress_bar(*, quiet: bool = False) -> Iterator[OnProgress]:
    """A receiver of progress that draws a bar with the remaining time on stderr; silent where stderr is no terminal."""
    if quiet or not sys.stderr.isatty():
        yield silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description:<12}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, Any] = {}

        def show(progress: Progress, /) -> None:
            if progress.stage not in tasks:
                tasks[progress.stage] = bars.add_task(progress.stage, total=progress.total, note="")
            bars.update(tasks[progress.stage], completed=progress.done, total=progress.total, note=progress.note)

        yield show


class Clock:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds since the clock was made, rounded to milliseconds."""
        return round(time.perf_counter() - self._start, 3)
