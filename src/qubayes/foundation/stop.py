"""When a search ends, and why: `Stop`, made of criteria as `TimeLimit` and `Interrupt` (Ctrl-C).

    stop = Stop(interrupt, TimeLimit(10.0))
    while not stop():
        ...
    return stop.reason

A command makes one `Interrupt` and hands it down. Nothing here raises: Ctrl-C sets a flag, which
loops ask for and kernels read."""

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from types import FrameType
from typing import Any

import numpy as np

from .arrays import Bools


class Reason(StrEnum):
    """Why a search ended."""

    PROVED = "proved"
    INTERRUPTED = "interrupted"
    TIME = "time limit"
    # The solver ended by itself: all moves made, patience, nothing left to search.
    FINISHED = "finished"

    @property
    def sentence(self) -> str:
        """The reason as the user reads it, unless a solver has more to say."""
        return _SENTENCES[self]


_SENTENCES = {
    Reason.PROVED: "proved optimal",
    Reason.INTERRUPTED: "interrupted; best so far returned",
    Reason.TIME: "time limit reached; best so far returned",
    Reason.FINISHED: "the search has ended",
}

Criterion = Callable[[], Reason | None]


class Stop:
    """True once a criterion gives a reason to end; `reason` is the one that came first."""

    def __init__(self, *criteria: Criterion) -> None:
        self.criteria = criteria
        self.reason: Reason | None = None

    def __call__(self) -> bool:
        for criterion in self.criteria:
            if self.reason is None:
                self.reason = criterion()
        return self.reason is not None


class Interrupt:
    """Whether Ctrl-C was pressed: a flag that loops, kernels and threads read."""

    def __init__(self, flag: Bools | None = None) -> None:
        self.flag: Bools = np.zeros(1, np.bool_) if flag is None else flag
        self._listens = False
        self._before: Any = None  # what Ctrl-C did before this interrupt listened

    def __bool__(self) -> bool:
        return bool(self.flag[0])

    def __call__(self) -> Reason | None:
        return Reason.INTERRUPTED if self else None

    def press(self) -> None:
        """End all searches that were given this interrupt."""
        self.flag[0] = True

    def forget(self) -> bool:
        """Return whether it was pressed; the next Ctrl-C counts as the first one."""
        pressed = bool(self)
        self.flag[0] = False
        return pressed

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Let the first Ctrl-C in the block set the flag; a second one acts as without the block.

        Inside the block of another interrupt, Ctrl-C sets both flags; if the other one is set
        already, this one begins set. Inside a block of its own, and outside the main thread, which
        alone handles signals, this does nothing."""
        if self._listens or threading.current_thread() is not threading.main_thread():
            yield
            return
        self._before = signal.getsignal(signal.SIGINT)
        around = self._around()
        if around:
            self.press()
        self._listens = True
        signal.signal(signal.SIGINT, self._handle)
        try:
            yield
        finally:
            self._listens = False
            signal.signal(signal.SIGINT, self._before)

    def _around(self) -> "Interrupt | None":
        """Return the interrupt whose block this one is inside."""
        owner = getattr(self._before, "__self__", None)
        return owner if isinstance(owner, Interrupt) else None

    def _handle(self, number: int, frame: FrameType | None) -> None:
        again = bool(self)
        self.press()
        passes_on = again or self._around() is not None
        if passes_on and callable(self._before):
            self._before(number, frame)


class TimeLimit:
    """A clock that begins when it is made, and a limit of seconds; None for none."""

    def __init__(self, seconds: float | None, now: Callable[[], float] | None = None) -> None:
        self.seconds = math.inf if seconds is None else seconds
        self._now = time.perf_counter if now is None else now
        self._began = self._now()

    @property
    def elapsed(self) -> float:
        """Seconds so far, without pauses."""
        return self._now() - self._began

    @property
    def left(self) -> float:
        """Seconds that are left; infinite without a limit."""
        return max(0.0, self.seconds - self.elapsed)

    def __call__(self) -> Reason | None:
        return Reason.TIME if self.left <= 0.0 else None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the clock inside the block, where kernels are compiled."""
        began = self._now()
        try:
            yield
        finally:
            self._began += self._now() - began

    @contextmanager
    def shortened(self, seconds: float) -> Iterator[None]:
        """Allow at most this much time inside the block."""
        before = self.seconds
        self.seconds = min(before, self.elapsed + seconds)
        try:
            yield
        finally:
            self.seconds = before


class Stalled:
    """Ends a search without progress for `times` as long as the best took (at least one second)."""

    def __init__(self, clock: TimeLimit, times: float) -> None:
        self.times = times
        self.improved = 0.0  # seconds until the best network
        self._clock = clock
        self._began = clock.elapsed

    def better(self) -> None:
        """Note that something better was found just now."""
        self.improved = self._clock.elapsed - self._began

    @property
    def idle(self) -> float:
        """Seconds since the last improvement."""
        return self._clock.elapsed - self._began - self.improved

    def __call__(self) -> Reason | None:
        patient = self.idle <= self.times * max(self.improved, 1.0)
        return None if patient else Reason.FINISHED
