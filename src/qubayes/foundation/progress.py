"""`Progress`, which long work hands to its `on_progress`; progress bars in a notebook."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol


class Progress(NamedTuple):
    """The progress of a stage."""

    stage: str  # "candidates", "subsets", ...
    done: float  # in units of `total`
    total: float  # 0 if no end is known
    note: str = ""  # a few words, such as the best score so far


class OnProgress(Protocol):
    """Receives a report; called from the thread that called the stage."""

    def __call__(self, progress: Progress, /) -> None: ...


def silent(progress: Progress, /) -> None:
    """The receiver that ignores every report."""


@contextmanager
def progress_bars(console: Any = None) -> Iterator[OnProgress]:
    """Yield a receiver that draws a bar for each stage, by default in the output of a notebook."""
    from rich.console import Console  # here: other uses of the package need no rich
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    from .jit import compilations

    columns = (
        TextColumn("{task.description:<12}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[share]:>5}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with Bars(*columns, console=console or Console(), transient=True) as bars:
        tasks: dict[str, Any] = {}
        note = "kernels, once on this machine"
        compiling = bars.add_task("compiling", total=None, note=note, share="", visible=False)

        def show(progress: Progress, /) -> None:
            stage, total = progress.stage, progress.total
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total or None, note="", share="")
            share = f"{100 * progress.done / total:.0f} %" if total else ""
            # it cannot steer the terminal
            note = "".join(c if c.isprintable() else "\ufffd" for c in progress.note)
            done, end = progress.done, total or None
            bars.update(tasks[stage], completed=done, total=end, note=note, share=share)

        with compilations(lambda running: bars.update(compiling, visible=running, refresh=running)):
            yield show


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and type(ipython.get_ipython()).__name__ == "ZMQInteractiveShell"
