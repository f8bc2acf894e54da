"""`Solver`: what a solver must have; `SOLVERS`: their names; `Run`: limits and best network.

To add a solver, write one file with a class that follows `Solver`, and register it by one line: in
`SOLVERS`, or in another package as an entry point of the group "qubayes.solvers", in its
pyproject.toml:

    [project.entry-points."qubayes.solvers"]
    genetic = "genetic_orders.solver:Genetic"

Solvers are loaded on first use.
"""

import math
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, ClassVar, Protocol, get_type_hints

import numpy as np
import numpy.typing as npt

from ..candidates import Candidates, example
from ..foundation.arrays import Bools, Ints, frozen
from ..foundation.errors import ConstraintError, MissingPackageError, QubayesError, SettingError
from ..foundation.graph import cycle_path, find_cycle
from ..foundation.progress import OnProgress, Progress, silent
from ..foundation.settings import check_types, is_number, is_whole
from ..foundation.stop import Criterion, Interrupt, Reason, Stop, TimeLimit
from ..foundation.workers import Workers
from ..network import Network

REPORT_EVERY = 0.1  # seconds
HAND_ON_EVERY = 1.0  # seconds between two networks for `on_network`
MOST_MOVES = 2**53  # a count that doubles and 64-bit integers hold exactly
GROUP = "qubayes.solvers"
SOLVERS = {
    "anneal": "qubayes.search.orders.anneal:Anneal",
    "digital": "qubayes.qubo.samplers.digital:Digital",
    "sa": "qubayes.qubo.samplers.sa:SimulatedAnnealing",
    "exact": "qubayes.search.exact:Exact",
    "auto": "qubayes.search.exact:ExactThenAnneal",
    "dimod": "qubayes.qubo.samplers.dimod_bridge:DimodSampler",
}
BASELINES = ("order-sa", "asobs", "hillclimb", "bqp")  # solvers that the paper compares
WHERE_BASELINES_ARE = (
    "in the package qubayes-baselines. "
    "In a clone of qubayes run: pip install ./benchmarks/paper/baselines"
)


@dataclass(frozen=True, slots=True)
class Limits:
    """When a solver ends. Moves with a seed give the same result anywhere; seconds do not.

    Each solver says what it counts as a move. Without `seconds` only `moves`, or a proof, ends the
    run."""

    seconds: float | None = 10.0
    moves: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.seconds is not None and not (
            is_number(self.seconds) and 0 <= self.seconds < math.inf
        ):
            raise SettingError(f"a time limit of {self.seconds!r} s; give 0 or more, or none")
        if self.moves is not None and not (is_whole(self.moves) and 0 <= self.moves <= MOST_MOVES):
            raise SettingError(f"moves = {self.moves!r}; give 0 to {MOST_MOVES}, a whole number")
        if not (is_whole(self.seed) and self.seed >= 0):
            raise SettingError(f"seed = {self.seed!r}; give a whole number, 0 or more")
        # JSON takes Python's numbers only.
        object.__setattr__(self, "seconds", None if self.seconds is None else float(self.seconds))
        object.__setattr__(self, "moves", None if self.moves is None else int(self.moves))
        object.__setattr__(self, "seed", int(self.seed))


@dataclass(frozen=True, slots=True)
class Ending:
    """How a solver ended: a sentence, its statistics (moves, nodes, cuts) and its certificate."""

    status: str
    statistics: dict[str, Any] = field(default_factory=dict)
    certificate: Path | None = None  # the file, if one was written
    reason: Reason | None = None  # what the run says unless given


class Solver(Protocol):
    """A frozen dataclass whose fields are the settings of the solver.

    Calling it searches until the run is over, proved or out of moves, and hands every better
    network to `run.offer`. What it returns only describes the search; the run keeps the best
    network."""

    name: ClassVar[str]
    takes: ClassVar[str]  # "candidates" or "formulation"
    counts: ClassVar[str]  # what `Limits.moves` counts; "" if the solver has no such count

    def prepare(self) -> "Solver":
        """Return the solver, with packages loaded and kernels compiled before the clock starts.

        A solver with nothing to load returns itself. One whose packages or files are missing raises
        a `QubayesError`."""

    def __call__(self, problem: Any, run: "Run", /) -> Ending:
        """Search the problem, which is of the kind that `takes` says."""


def registered() -> dict[str, str]:
    """Return "module:class" of each solver by name: those of SOLVERS, then of other packages."""
    added = {
        point.name: point.value for point in entry_points(group=GROUP) if point.name not in SOLVERS
    }
    return SOLVERS | added


def name_for(name: str, moves: int | None) -> str:
    """Return the name of the solver: `auto` becomes `anneal` where moves are counted."""
    return "anneal" if name == "auto" and moves is not None else name


def solver_named(name: str, **settings: Any) -> Solver:
    """Return the solver of this name with these settings; the others keep their defaults."""
    kind = _class_of(name)
    hints = get_type_hints(kind)
    check_types(settings, {each.name: hints[each.name] for each in fields(kind)}, name)
    solver: Solver = kind(**settings)
    return solver


def _class_of(name: str) -> Any:
    """Return the class of the solver of this name."""
    target = SOLVERS.get(name) or registered().get(name)
    if target is None and name in BASELINES:
        raise MissingPackageError(f"solver {name!r} is now {WHERE_BASELINES_ARE}")
    if target is None:
        raise SettingError(f"solver {name!r} is unknown; choose one of {', '.join(registered())}")
    kind = load(target)
    if not (is_dataclass(kind) and is_solver(kind)):
        registration = f"{target} is registered as the solver {name!r}"
        raise SettingError(f"{registration}, but does not follow qubayes.search.Solver")
    return kind


def load(target: str) -> Any:
    """Return the object that "module:name" names."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


def is_solver(value: object) -> bool:
    """True if the value has what `Solver` asks for."""
    return callable(value) and all(
        hasattr(value, name) for name in ("name", "takes", "counts", "prepare")
    )


class Formulated(Protocol):
    """A model of the candidates, such as a QUBO, that has a state for each network."""

    @property
    def candidates(self) -> Candidates:
        """The candidate sets."""

    def state_of(self, choice: npt.ArrayLike, /) -> tuple[Bools, float]:
        """Return (bits, energy) of the network with these sets; the energy must be -score."""


def problem_candidates(problem: Candidates | Formulated) -> Candidates:
    """Return the candidate sets of a problem."""
    return problem if isinstance(problem, Candidates) else problem.candidates


def check(candidates: Candidates) -> None:
    """Raise unless each vertex has a set, scores are finite and required edges form no cycle."""
    names = candidates.names
    if (candidates.families.sizes < 1).any():
        name = names[int(np.argmin(candidates.families.sizes))]
        raise QubayesError(
            f"{name!r} has no candidate set, not even the empty one; add its score without parents"
        )
    infinite = np.flatnonzero(~np.isfinite(candidates.scores))
    if len(infinite):
        vertex = (
            int(np.searchsorted(candidates.families.vertex_start, infinite[0], side="right")) - 1
        )
        raise QubayesError(
            f"a candidate set of {names[vertex]!r} scores {candidates.scores[infinite[0]]}; "
            "allowed are finite numbers: leave out sets that may not be used"
        )
    if cycle := find_cycle([candidates.base(vertex) for vertex in range(candidates.n)]):
        path = cycle_path(cycle, names)
        raise ConstraintError(
            f"the required edges form the cycle {path}; no network has them all: remove one"
        )


@cache
def warm_up(
    kind: Callable[[], Solver],
    vertices: int = 8,
    moves: int | None = 1,
    formulate: Callable[[Candidates], Any] | None = None,
) -> None:
    """Run a solver with default settings on a small example, so that its kernels are compiled.

    Solvers call it in `prepare`; one that takes a formulation says how to `formulate` the example.
    """
    solver, candidates = kind(), example(vertices)
    solver(
        formulate(candidates) if formulate else candidates,
        Run(candidates, Limits(None, moves), Workers(1)),
    )


class Run:
    """Limits, clock and the best network so far; shared by `solve`, solvers and their threads.

    Solvers often ask a stop made by `until`, or `over` (kernels run in slices of a few hundredths
    of a second, or read `stop`). They call `offer` with every better network, `tighten` with every
    better bound and, from the thread that called them, `report` as often as they like."""

    def __init__(
        self,
        candidates: Candidates,
        limits: Limits,
        workers: Workers,
        start: Ints | None = None,  # the network of the required edges alone, unless given
        on_progress: OnProgress = silent,
        name: str = "solver",
        interrupt: Interrupt | None = None,
        on_network: Callable[[Network], None] | None = None,  # gets the best, once a second at most
    ) -> None:
        self.candidates = candidates
        self.limits = limits
        self.workers = workers.here
        self.start = frozen(
            np.array(candidates.families.vertex_start[1:] - 1 if start is None else start)
        )
        self.seed = limits.seed
        self.moves = limits.moves
        self.interrupt = Interrupt() if interrupt is None else interrupt
        self.clock = TimeLimit(limits.seconds)
        self.choice = self.start
        self.score = self.score_of(self.start)
        self.trace: list[tuple[float, float]] = [(0.0, self.score)]
        self.bound = float(candidates.scores[candidates.families.vertex_start[:-1]].sum())
        self._name = name
        self._on_progress = on_progress
        self._reported = 0.0  # seconds of the clock
        self._on_network = on_network
        self._handed_on: Ints | None = None  # the choice that `on_network` has
        self._next_hand_on = 0.0  # seconds of the clock
        self._lock = threading.Lock()

    @property
    def elapsed(self) -> float:
        """Seconds since the run began."""
        return self.clock.elapsed

    @property
    def stop(self) -> Bools:
        """An array of one flag, set by an interrupt; kernels may read it."""
        return self.interrupt.flag

    @property
    def left(self) -> float:
        """Seconds that are left; infinite without a time limit, 0 once the run was interrupted."""
        return 0.0 if self.interrupt else self.clock.left

    @property
    def over(self) -> bool:
        """True once the time is up or the run was interrupted."""
        return self.left <= 0.0

    @property
    def proved(self) -> bool:
        """True if the best network so far is proved optimal."""
        return self.bound - self.score <= 1e-9 * max(1.0, abs(self.score))

    @property
    def reason(self) -> Reason:
        """Why a search that ends now has ended."""
        stop = self.until()
        stop()
        return stop.reason or Reason.FINISHED

    def until(self, *criteria: Criterion) -> Stop:
        """Return a stop by interrupt, proof, time limit or one of these criteria."""
        return Stop(self.interrupt, self._proof, self.clock, *criteria)

    def _proof(self) -> Reason | None:
        return Reason.PROVED if self.proved else None

    def score_of(self, choice: npt.ArrayLike) -> float:
        """Return the sum of the scores of these candidate sets, exactly rounded."""
        return math.fsum(self.candidates.scores[np.asarray(choice)].tolist())

    def offer(self, choice: npt.ArrayLike) -> bool:
        """Keep a copy of this network (the numbers of its sets) if it is the best so far."""
        score = self.score_of(choice)
        with self._lock:
            if score <= self.score:
                return False
            self.choice, self.score = frozen(np.array(choice, np.int64)), score
            self.trace.append((self.elapsed, score))
        self._hand_on()
        return True

    def _hand_on(self) -> None:
        """Give `on_network` the best network, if it is a new one and the time has come."""
        if self._on_network is None:
            return
        with self._lock:
            choice, now = self.choice, self.elapsed
            if choice is self._handed_on or now < self._next_hand_on:
                return
            self._handed_on = choice
            self._next_hand_on = now + HAND_ON_EVERY
        self._on_network(Network(self.candidates.names, self.candidates.parents_at(choice)))

    def tighten(self, bound: float) -> None:
        """Record that no network scores more than this."""
        with self._lock:
            self.bound = min(self.bound, bound)

    def paused(self) -> AbstractContextManager[None]:
        """Stop the clock inside the block, where kernels are compiled."""
        return self.clock.paused()

    def shortened(self, seconds: float) -> AbstractContextManager[None]:
        """Allow at most this much time inside the block."""
        return self.clock.shortened(seconds)

    def report(
        self, note: str = "", *, done: float | None = None, total: float | None = None
    ) -> None:
        """Report progress, ten times a second at most: `done` of `total`, or the share of time."""
        now = self.elapsed
        if now - self._reported < REPORT_EVERY:
            return
        self._reported = now
        self._hand_on()
        if done is None or total is None:
            done, total = (now, self.limits.seconds) if self.limits.seconds else (0.0, 1.0)
        note = note or f"score {self.score:,.3f}"
        self._on_progress(Progress(self._name, min(done, total), total, note))
