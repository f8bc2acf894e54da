"""What long work reports, and how it is stopped.

A stage calls its `on_progress` after each finished piece. Ctrl-C sets a flag that kernels and loops look at; it raises
nothing (the one handler of SIGINT).
"""

import signal
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
def stopping(stop: "Bools") -> Iterator[None]:
    """Let the first Ctrl-C inside the block set stop[0]; a second one acts as it would without the block.

    Blocks nest: the flags of the blocks around this one are set as well. Outside the main thread the block has no
    effect, because Python handles signals in the main thread alone.
    """
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
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
