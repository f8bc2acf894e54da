"""`GrownStage`: the first network and the parent sets of `learn` without a number of parents.

A network is there at once and gets better while parent sets grow. Where the time allows it, all
sets of at most three or two parents are found as well: then the best network can be proved."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import comb, inf
from pathlib import Path

from ..candidates import (
    Candidates,
    allowed_for,
    identify_until,
    is_large,
    most_parents,
    stamp_of,
    with_larger,
)
from ..data import Dataset, have_many_equal
from ..foundation.environment import peak_memory, usable_memory
from ..foundation.errors import QubayesError, option
from ..foundation.jit import compilations
from ..foundation.progress import OnProgress, Progress
from ..foundation.stop import Interrupt
from ..foundation.workers import Workers
from ..network import Network, read_network, write_network
from ..scores import PENALISED, LimitedTables
from ..search import Growth
from ..search.growth import FEW_RESTARTS, MANY_RESTARTS, NARROW, WIDE
from ..settings import DEFAULT_SECONDS, LearnSettings

# Shares of the time limit.
_FIRST_SHARE = 0.25  # to grow sets before others are looked at
_ALL_SHARE = 0.4  # for all sets of at most m parents, by the forecast
_LAST_SHARE = 0.85  # when this search, or growing, is given up; the solver has the rest
_ALL_SECONDS = 60.0  # for all sets of at most m parents, without a time limit
# Growing sets of n variables takes about as long as searching this number of all sets for each of
# them; with fewer cells than these in the table, less than half a second.
_SETS_A_VARIABLE, _FELT = 600, 1_000_000
# Continuous variables of which parent sets of every size are searched: half a million sets.
_MOST_NUMBERS = 16
# Seconds, or share of the time limit, for sets of every size, and the most variables of these.
_EVERY_SECONDS = 5.0
_EVERY_SHARE = 0.1
_MOST_EVERY = 64
_BYTES_A_SET = 600  # of a grown set, with the copies that annealing and the solver make
_KEEP_EVERY = 1.0  # seconds between two writings of the best network
log = logging.getLogger("qubayes")


class CompiledClock:
    """Seconds since it was made, without those of compilations."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._compiling = inf

    @property
    def seconds(self) -> float:
        """The seconds so far."""
        return min(time.perf_counter(), self._compiling) - self._began

    def compiles(self, begins: bool) -> None:
        """Stop the clock where a compilation begins, and go on where it ends."""
        if not begins:
            self._began += time.perf_counter() - self._compiling
        self._compiling = time.perf_counter() if begins else inf


@dataclass
class GrownStage:
    """Finds the parent sets of a run; `network` is the best so far, `trace` how its score grew."""

    dataset: Dataset
    settings: LearnSettings
    workers: Workers
    interrupt: Interrupt
    on_progress: OnProgress
    kept: Path | None = None  # file for the best network so far
    began: float | None = None  # of the clock, where the time limit does not begin with the stage
    network: Network | None = None
    trace: list[tuple[float, float]] = field(default_factory=list)
    interrupted: bool = False

    def __post_init__(self) -> None:
        self._entered = time.perf_counter()
        self._limited_from = self._entered if self.began is None else self.began
        self._written = -inf
        if self.kept is not None and self.kept.exists():
            try:
                self.network = read_network(self.kept)
            except QubayesError:  # damaged: start without it
                self.kept.unlink()

    def find(self) -> Candidates:
        """Return the grown sets, with all sets of at most m parents if these fit the time."""
        growth = self._growth(NARROW if self._small and self._discrete else WIDE)
        found = None
        if self._small and self._discrete and self._is_dear(self.settings.search.max_parents):
            found = self._identify(self.settings.search.max_parents)
            if found is not None:
                return self._with_every_size(found)
        self._grow_first(growth)
        most = 0 if self._pressed() else self._most_to_search()
        if most:
            found = self._identify(most)
        if found is not None:
            found = self._with_every_size(found)
        if found is None and not self.interrupted and self.moves is None:
            growth.run(self._until(_LAST_SHARE * self._seconds))
            self._pressed()
        if growth.full:
            self._say_memory()
        self._keep(force=True)
        grown = growth.candidates()
        return grown if found is None else with_larger(found, grown)

    def _grow_first(self, growth: Growth) -> None:
        """Grow sets for all moves, or until others are looked at."""
        if self.moves is not None:
            growth.run(self._until(self._latest), self.moves)
        elif self._small and self.settings.time_limit is None:
            growth.run()
        else:
            growth.run(self._until(_FIRST_SHARE * self._seconds))

    def _say_memory(self) -> None:
        """Warn that the memory has ended the growing of parent sets."""
        memory = usable_memory(self.settings.memory_in_bytes) / 1e9
        log.warning(
            "growing parent sets ended, as the memory of %.3g GB is used up; give more with %s",
            *(memory, option("memory", f"{2 * memory:.2g}GB")),
        )

    @property
    def moves(self) -> int | None:
        """The moves of the annealing while sets are grown; the solver has the others."""
        moves = self.settings.moves
        return None if moves is None else moves // 2

    @property
    def _discrete(self) -> bool:
        """Whether all columns are discrete."""
        return self.dataset.kind == "discrete"

    @property
    def _complete(self) -> bool:
        """Whether there is a search of all sets for this score."""
        score = self.settings.search.score
        return not self._discrete or score.is_formula or score.function is not None

    @property
    def _small(self) -> bool:
        """Whether all sets can be searched without a forecast."""
        return self._complete and not is_large(self.dataset, self.settings.search, inf)

    @property
    def _seconds(self) -> float:
        """The time limit, or the seconds that a solver has without one."""
        limit = self.settings.time_limit
        return DEFAULT_SECONDS if limit is None else limit

    @property
    def _room(self) -> float:
        """The bytes that are left for parent sets."""
        return usable_memory(self.settings.memory_in_bytes) - peak_memory()

    @property
    def _latest(self) -> float:
        """The second when this stage is to end; the solver has the rest of the time limit."""
        limit = self.settings.time_limit
        return inf if limit is None else _LAST_SHARE * limit

    def _most_to_search(self) -> int:
        """Return the number of parents of which all sets are searched; 0 if this is not done."""
        if not self._complete:
            return 0
        if self._has_few_numbers():
            return self.dataset.n - 1
        if self._small and self.settings.time_limit is None:
            return self.settings.search.max_parents
        if self.moves is not None:  # a forecast would depend on the clock
            return 0
        return self._most_parents()

    def _has_few_numbers(self) -> bool:
        """Return whether parent sets of every size are searched: of few continuous variables."""
        n = self.dataset.n
        own = self.settings.search.score.function is not None
        quick = self.dataset.kind == "continuous" and self.dataset.is_plain and not own
        return quick and n <= _MOST_NUMBERS and self.dataset.rows > n

    def _is_dear(self, most: int) -> bool:
        """Return whether growing sets takes longer than searching all of them, and is felt."""
        n = self.dataset.n
        sets = sum(comb(n, size) for size in range(most + 2))
        cells = n * self.dataset.stored_rows
        if cells <= _FELT or sets >= _SETS_A_VARIABLE * n:
            return False
        # equal rows are merged
        return not have_many_equal(self.dataset.codes, _FELT / cells)

    def _growth(self, width: int) -> Growth:
        """Return the search that grows sets, with no limit of parents but prior knowledge's."""
        search = self.settings.search
        names = self.dataset.names
        stamp = replace(stamp_of(self.dataset, search), max_parents=None)
        engine = search.score.engine(self.dataset)
        return Growth(
            LimitedTables(engine, self.dataset.arities, self.settings.max_table),
            names,
            allowed_for(self.dataset, search.score, search.knowledge, self.dataset.n - 1),
            stamp,
            width=width,
            seed=self.settings.seed,
            most_sets=max(self._room / _BYTES_A_SET, self.dataset.n),
            start=None if self.moves is not None else self.network,  # seed and moves decide alone
            restarts=self._restarts,
            workers=search.score.fitting(self.workers),
            interrupt=self.interrupt,
            on_progress=self._show,
            on_network=self._better,
        )

    @property
    def _restarts(self) -> int | None:
        """Return how often growing begins anew: for numbers, whose extensions cost little."""
        own = self.settings.search.score.function is not None
        if self.dataset.kind != "continuous" or own or not self.dataset.is_plain:
            return None
        unlimited = self._small and self.settings.time_limit is None
        return FEW_RESTARTS if unlimited else MANY_RESTARTS

    def _until(self, seconds: float) -> Callable[[], float]:
        """Return a clock of the seconds that are left, counted from the beginning of the limit."""
        end = self._limited_from + seconds
        return lambda: end - time.perf_counter()

    def _show(self, progress: Progress) -> None:
        """Report progress: with a time limit it runs with the time."""
        if self._latest < inf:
            done = min(time.perf_counter() - self._limited_from, self._latest)
            progress = progress._replace(done=done, total=self._latest)
        self.on_progress(progress)

    def _most_parents(self) -> int:
        """Return the most parents whose sets can all be searched in time; 0 if below 2."""
        search, limit = self.settings.search, self.settings.time_limit
        seconds = _ALL_SECONDS if limit is None else _ALL_SHARE * limit
        most = most_parents(
            self.dataset,
            search,
            self.workers,
            seconds,
            memory=self.settings.memory_in_bytes,
            on_progress=self.on_progress,
        )
        if most < search.max_parents:
            every = f"all sets of at most {most} parents" if most else "no number of parents"
            log.warning(
                "%s can be searched in %.3g s, and larger sets are grown; "
                "nothing is proved of these."
                " Use %s to search all sets of %d parents",
                every,
                seconds,
                option("max_parents", search.max_parents),
                search.max_parents,
            )
        return most

    def _identify(self, most: int) -> Candidates | None:
        """Return all candidate sets of at most this many parents; None if interrupted or late."""
        left = self._until(self._latest)
        with self.interrupt.listening():
            return identify_until(
                lambda: self._pressed() or left() <= 0.0,
                self.dataset,
                replace(self.settings.search, max_parents=most),
                workers=self.workers,
                on_progress=self.on_progress,
            )

    def _with_every_size(self, found: Candidates) -> Candidates:
        """Return the candidate sets of any size if they are found soon, else those that are known.

        Only scores whose bounds are strong are tried; other runs load and compile nothing."""
        search = replace(self.settings.search, every_size=True)
        strong = not self._discrete or search.score.name in PENALISED
        if not strong or self.dataset.n > _MOST_EVERY or self.moves is not None:
            return found
        if found.stamp.max_parents == self.dataset.n - 1 or self._pressed():
            return found
        from ..candidates.every_size import has_bounds

        if not has_bounds(self.dataset, search.score.on(self.dataset)):
            return found
        limit = self.settings.time_limit
        seconds = _EVERY_SECONDS if limit is None else _EVERY_SHARE * limit
        clock = CompiledClock()
        with self.interrupt.listening(), compilations(clock.compiles):
            larger = identify_until(
                self._pressed,
                self.dataset,
                search,
                enough=lambda: clock.seconds > seconds,
                workers=self.workers,
                on_progress=self.on_progress,
            )
        complete = larger is not None and larger.stamp.every_size == self.dataset.n
        return larger if larger is not None and complete else found

    def _pressed(self) -> bool:
        """Return whether the stage was interrupted."""
        self.interrupted = self.interrupted or bool(self.interrupt)
        return self.interrupted

    def _better(self, network: Network, score: float) -> None:
        """Keep a better network."""
        self.network = network
        self.trace.append((time.perf_counter() - self._entered, score))
        self._keep()

    def _keep(self, *, force: bool = False) -> None:
        """Write the best network, at most once a second."""
        now = time.perf_counter()
        due = force or now - self._written > _KEEP_EVERY
        if self.kept is not None and self.network is not None and due:
            write_network(self.network, self.kept)
            self._written = now
