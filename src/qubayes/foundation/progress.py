"""What long work reports, and how it is stopped.

A stage calls its `on_progress` after each finished piece. Inside `stopping`, Ctrl-C sets a flag
that kernels and loops look at; inside `raising` it raises KeyboardInterrupt."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:  # the command line starts without numpy
    from .arrays import Bools


class Progress(NamedTuple):
    """The progress of a stage."""

    stage: str  # "candidates", "subsets", ...
    done: float  # in units of `total`
    total: float
    note: str = ""  # a few words, such as the best score so far


class OnProgress(Protocol):
    """Receives a report; called from the thread that called the stage."""

    def __call__(self, progress: Progress, /) -> None: ...


def silent(progress: Progress, /) -> None:
    """The receiver that ignores every report."""


@contextmanager
def progress_bars(console: Any = None) -> Iterator[OnProgress]:
    """Yield a receiver that draws a bar for each stage on a console of rich, by default the output of a notebook."""
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
                tasks[stage] = bars.add_task(stage, total=total, note="", share="")
            share = f"{100 * progress.done / total:.0f} %" if total else ""
            # it cannot steer the terminal
            note = "".join(c if c.isprintable() else "\ufffd" for c in progress.note)
            bars.update(tasks[stage], completed=progress.done, total=total, note=note, share=share)

        with compilations(lambda running: bars.update(compiling, visible=running, refresh=running)):
            yield show


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and type(ipython.get_ipython()).__name__ == "ZMQInteractiveShell"


_entered: list["Bools"] = []  # flags of the `stopping` blocks that the main thread is in


@contextmanager
def stopping(stop: "Bools") -> Iterator[None]:
    """Let the first Ctrl-C inside the block set stop[0]; a second one acts as it would without the block.

    Blocks nest: Ctrl-C sets the flags of the blocks around this one as well, and one of theirs that
    is set already sets this one. After a block inside this one, Ctrl-C sets flags again. Outside
    the main thread the block has no effect, because Python handles signals in the main thread
    alone."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous: Any = signal.getsignal(signal.SIGINT)

    def handle(number: int, frame: FrameType | None) -> None:
        stop[0] = True
        signal.signal(signal.SIGINT, previous)
        if getattr(previous, "stops", False):  # the handler of a block around this one
            previous(number, frame)

    handle.stops = True  # type: ignore[attr-defined]
    signal.signal(signal.SIGINT, handle)
    stop[0] |= any(flag[0] for flag in _entered)
    _entered.append(stop)
    try:
        yield
    finally:
        _entered.pop()
        signal.signal(signal.SIGINT, previous)


@contextmanager
def raising() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt inside the block, whatever `stopping` blocks are around it.

    It is raised at once if the flag of one of them is set already.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        if any(flag[0] for flag in _entered):
            raise KeyboardInterrupt
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
