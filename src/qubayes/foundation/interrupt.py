"""The one handler of SIGINT: an interrupt sets a flag that kernels and loops look at, and raises nothing."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from .arrays import Bools


@contextmanager
def stopping(stop: Bools) -> Iterator[None]:
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
