"""What every command shares: how it prints, how it shows progress, how it fails."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import QubayesError
from ..progress import OnProgress, Progress, silent


def guarded(command: Callable[[], Any]) -> None:
    """Run the command; a QubayesError becomes one line on stderr and exit code 1, an interrupt exit code 130."""
    try:
        command()
    except QubayesError as error:
        print(f"qubayes: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("qubayes: interrupted", file=sys.stderr)
        sys.exit(130)
    except MemoryError:
        print("qubayes: out of memory; `qubayes plan` tells what fits", file=sys.stderr)
        sys.exit(1)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)


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
