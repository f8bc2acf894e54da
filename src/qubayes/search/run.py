"""One run of a solver: its limits, its clock, the best network it has found so far."""

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar, Protocol, TypeGuard, runtime_checkable

import numpy as np
import numpy.typing as npt

from ..candidates import Candidates
from ..foundation.arrays import Bools, Ints, frozen
from ..foundation.errors import SettingError
from ..foundation.progress import OnProgress, Progress
from ..foundation.workers import Workers

REPORT_EVERY = 0.1  # seconds
MOST_MOVES = 2**53  # a count that doubles and 64-bit integers hold exactly


def is_number(value: object) -> TypeGuard[float]:
    """Whether this is a number; true and false are none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_whole(value: object) -> TypeGuard[int]:
    """Whether this is a whole number; true and false are none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class Limits:
    """When a solver ends. Seconds depend on the machine; a number of moves with a seed gives the same result anywhere.

    What a move is, each solver says. Without `seconds` only `moves`, or a proof, ends the run.
    """

    seconds: float | None = 10.0
    moves: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.seconds is not None and not (is_number(self.seconds) and 0 <= self.seconds < math.inf):
            raise SettingError(f"a time limit of {self.seconds!r} s; give 0 or more, or none")
        if self.moves is not None and not (is_whole(self.moves) and 0 <= self.moves <= MOST_MOVES):
            raise SettingError(f"moves = {self.moves!r}; give 0 to {MOST_MOVES}, a whole number")
        if not (is_whole(self.seed) and self.seed >= 0):
            raise SettingError(f"seed = {self.seed!r}; give a whole number, 0 or more")
        # Numbers of numpy are none to JSON.
        object.__setattr__(self, "seconds", None if self.seconds is None else float(self.seconds))
        object.__setattr__(self, "moves", None if self.moves is None else int(self.moves))
        object.__setattr__(self, "seed", int(self.seed))


@dataclass(frozen=True, slots=True)
class Ending:
    """How a solver ended: a sentence, and what it counted."""

    sentence: str
    figures: dict[str, Any] = field(default_factory=dict)


class Solver(Protocol):
    """A frozen dataclass whose fields are the solver's settings; calling it searches and offers what it finds."""

    name: ClassVar[str]
    takes: ClassVar[str]  # "candidates" or "formulation"
    counts: ClassVar[str]  # what `Limits.moves` counts; "" if the solver has no such count

    def __call__(self, problem: Any, run: "Run", /) -> Ending: ...


@runtime_checkable
class Preparing(Protocol):
    """A solver with packages or files to load before its clock starts."""

    def prepared(self) -> Solver:
        """The same solver with all that it needs; raises if that cannot be had."""


class Run:
    """Limits, clock and the best network so far; made by `solve`, used by solvers and their threads.

    Solvers look at `over` (or hand `stop` and `deadline` to their kernels, in slices of a few hundredths of a second),
    call `offer` with every better network, `tighten` with every better bound and, from the thread that called them,
    `report` as often as they like.
    """

    def __init__(
        self, candidates: Candidates, limits: Limits, workers: Workers, start: Ints, on_progress: OnProgress, name: str
    ) -> None:
        self.candidates, self.limits, self.workers, self.start = candidates, limits, workers, frozen(start.copy())
        self.seed, self.moves = limits.seed, limits.moves
        self.stop: Bools = np.zeros(1, np.bool_)  # set by an interrupt; kernels may look at it
        self.trace: list[tuple[float, float]] = []
        self.choice, self.score = self.start, self.score_of(self.start)
        self.bound = float(candidates.scores[candidates.families.vertex_start[:-1]].sum())
        self._name, self._on_progress, self._lock = name, on_progress, threading.Lock()
        self._began, self._reported = time.perf_counter(), 0.0
        self._end = math.inf if limits.seconds is None else limits.seconds
        self.trace.append((0.0, self.score))

    @property
    def elapsed(self) -> float:
        """Seconds since the run began."""
        return time.perf_counter() - self._began

    @property
    def left(self) -> float:
        """Seconds that are left; infinite without a time limit, 0 once the run was interrupted."""
        if self.stop[0]:
            return 0.0
        return max(0.0, self._end - self.elapsed)

    @property
    def over(self) -> bool:
        """Whether the time is up or the run was interrupted."""
        return self.left <= 0.0

    @property
    def proved(self) -> bool:
        """Whether the best network so far is known to be optimal."""
        return self.bound - self.score <= 1e-9 * max(1.0, abs(self.score))

    def score_of(self, choice: npt.ArrayLike) -> float:
        """The sum of the scores of these candidate sets, exactly rounded."""
        return math.fsum(self.candidates.scores[np.asarray(choice)].tolist())

    def offer(self, choice: npt.ArrayLike) -> bool:
        """Keep a copy of this network, the number of a candidate set for each vertex, if it is the best so far."""
        score = self.score_of(choice)
        with self._lock:
            if score <= self.score:
                return False
            self.choice, self.score = frozen(np.array(choice, np.int64)), score
            self.trace.append((self.elapsed, score))
            return True

    def tighten(self, bound: float) -> None:
        """No network scores more than this."""
        with self._lock:
            self.bound = min(self.bound, bound)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """The time inside the block does not count: kernels are compiled there."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self._began += time.perf_counter() - began

    @contextmanager
    def shortened(self, seconds: float) -> Iterator[None]:
        """Inside the block at most this much time is left."""
        end, self._end = self._end, min(self._end, self.elapsed + seconds)
        try:
            yield
        finally:
            self._end = end

    def report(self, note: str = "", *, done: float | None = None, total: float | None = None) -> None:
        """Tell the user, at most ten times a second, how far the run is: of its time unless `done` and `total` say."""
        now = self.elapsed
        if now - self._reported < REPORT_EVERY:
            return
        self._reported = now
        if done is None or total is None:
            done, total = (now, self.limits.seconds) if self.limits.seconds else (0.0, 1.0)
        note = note or f"score {self.score:,.3f}"
        self._on_progress(Progress(self._name, min(done, total), total, note))
