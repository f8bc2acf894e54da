"""`sa`: simulated annealing of the QUBO, by vertex moves or by single flips.

vertex move: the order bits of a vertex change as if it were inserted elsewhere in an order of all
vertices, and with them its own subset bits, those of its children, and the slack bits
(`vertex_moves.py`). All states are feasible.

single flip: one bit changes. This is SAQ (paper, Appendix D.3). Before a vertex can pass one
of its parents in the order, the subset bit that holds the edge must be turned off, which costs its
whole gain: this barrier keeps single flips from good networks (docs/samplers.md)."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import ClassVar

import numpy as np

from ...foundation.arrays import Bools
from ...foundation.errors import SettingError
from ...foundation.graph import topological_order
from ...search.orders.walks import order_problem
from ...search.run import Ending, Run, warm_up
from .. import Formulation
from .flips import EXAMPLES, FlipModel, Schedule, descend, halting, watch
from .reads import FlipMoves, Read, ReadPlan, TimeSlot, load_sweeps, time_slots
from .states import (
    PROVED_OPTIMAL,
    SHARES,
    NetworkOffers,
    formulate_example,
    offer_first,
    reserved_seconds,
    start_state,
)
from .vertex_moves import Ladder, Replicas, anneal_replicas

# number of temperatures, or a few more, of many flips where they are counted
TEMPERATURES = 4096
# flips tried at one temperature, where the clock decides the temperature
FLIPS_PER_STEP = 1024
FLIP_TEMPERATURES = (100.0, 1.0)  # first and last, as in the paper
VERTEX_TEMPERATURES = (6.0, 0.09)  # of the hottest replica at first, of the coldest at last


@cache
def _maker(flips: bool) -> Callable[[], "SimulatedAnnealing"]:
    """Return the function that makes the solver, one for each kind of moves: each is warmed up."""
    return partial(SimulatedAnnealing, flips=flips)


@dataclass(frozen=True, slots=True)
class SimulatedAnnealing:
    """Simulated annealing by vertex moves: a vertex and its bits change with its place in an order.

    Eight replicas at temperatures from 6 to 0.6 exchange their states; all temperatures fall to
    0.15 of that. With `flips`: random single flips, as in the paper; the temperature falls from 100
    to 1, and each read ends with a descent. Several reads run at once; the best counts. Under a
    time limit there are by default as many as threads, each over the whole time; where moves are
    counted one, over all of them."""

    flips: bool = False
    first_temperature: float | None = None
    last_temperature: float | None = None
    reads: int | None = None

    name: ClassVar[str] = "sa"
    takes: ClassVar[str] = "formulation"
    counts: ClassVar[str] = "vertex moves, or flips tried, in each read"

    def __post_init__(self) -> None:
        first, last = self.temperatures
        if not 0 < last <= first < float("inf"):
            raise SettingError(
                f"temperatures from {first} to {last}; they must fall and be positive"
            )
        if self.reads is not None and self.reads < 1:
            raise SettingError(f"reads = {self.reads}; give 1 or more")

    @property
    def temperatures(self) -> tuple[float, float]:
        """The first and the last temperature."""
        first, last = FLIP_TEMPERATURES if self.flips else VERTEX_TEMPERATURES
        return (
            first if self.first_temperature is None else self.first_temperature,
            last if self.last_temperature is None else self.last_temperature,
        )

    def prepare(self) -> "SimulatedAnnealing":
        """Compile the kernels."""
        warm_up(_maker(self.flips), formulate=formulate_example)
        if self.flips:
            for kind in EXAMPLES:
                load_sweeps(kind)
        return self

    def __call__(self, formulation: Formulation, run: Run, /) -> Ending:
        """Anneal, and offer the best states."""
        count = self.reads or (run.workers.count if run.moves is None else 1)
        if self.flips:
            return FlipReads(self, formulation, run, count).anneal()
        return VertexReads(self, formulation, run, count).anneal()


class VertexReads:
    """Annealings by vertex moves of one run."""

    def __init__(
        self, solver: SimulatedAnnealing, formulation: Formulation, run: Run, count: int
    ) -> None:
        candidates = formulation.candidates
        families = candidates.families
        self.run = run
        self.moves = run.moves if formulation.qubo.bits else 0
        self.offers = NetworkOffers(formulation, run)
        self.halt = np.array([run.proved])
        self.ladder = Ladder(*solver.temperatures)
        # the energy of a feasible state is minus the score of its network
        problem = order_problem(families, candidates.scores)
        bases = [candidates.base(vertex) for vertex in range(candidates.n)]
        start = topological_order(families.sets_at(run.start))
        seeds = np.random.SeedSequence(run.seed).spawn(count)
        self.reads = [Replicas(problem, start, bases, seed) for seed in seeds]
        now = time.perf_counter()
        self.slots = time_slots(count, run.workers.count, now, now + run.left)

    def anneal(self) -> Ending:
        """Anneal all reads until the limit, and offer their best networks."""
        stop = self.run.until()

        def look() -> float:
            done = sum(map(self.progress, range(len(self.reads))))
            self.run.report(done=done, total=float(len(self.reads)))
            return 0.0 if stop() else self.run.left

        with halting(self.halt, self.run.workers.count) as pool:
            numbers = range(len(self.reads))
            watch([pool.submit(self._anneal_one, number) for number in numbers], look, self.halt)
        return self._ending()

    def progress(self, number: int) -> float:
        """Return the share of a read that is done."""
        if self.moves is None:
            return self.slots[number].progress
        return self.reads[number].moves / self.moves if self.moves else 1.0

    def _anneal_one(self, number: int) -> None:
        read = self.reads[number]
        offer = self.offers.offer_choice
        progress = partial(self.progress, number)
        anneal_replicas(read, self.ladder, progress, self.moves, offer, self.halt)
        offer(read.best.choice)

    def _ending(self) -> Ending:
        """Return the status and the statistics."""
        made = sum(read.moves for read in self.reads)
        count = len(self.reads)
        statistics = {"vertex_moves": made, "reads": count, "repaired": 0, **self.offers.scores}
        status = f"{_reads(count)} annealed, {made:,} vertex moves made; all states are feasible"
        unfinished = self.moves is not None and made < self.moves * count
        return Ending(_with_reason(status, self.run, unfinished), statistics)


class FlipReads:
    """Annealings by single flips of one run."""

    def __init__(
        self, solver: SimulatedAnnealing, formulation: Formulation, run: Run, count: int
    ) -> None:
        self.run = run
        self.halt = np.array([run.proved])
        self.model = FlipModel.of(formulation.qubo)
        self.offers = NetworkOffers(formulation, run)
        start = start_state(formulation, run)
        cost = offer_first(self.offers, self.model, start)
        # descents and repairs at the end
        self.reserve = reserved_seconds(run, 2.0 * cost * math.ceil(count / run.workers.count))
        schedule = Schedule(1.0 / np.array(solver.temperatures))
        seeds = np.random.SeedSequence(run.seed).spawn(count)
        moves = [FlipMoves(self.model, start, seed) for seed in seeds]
        self.reads = make_reads(moves, schedule, run, self.reserve, self.halt)

    def anneal(self) -> Ending:
        """Anneal all reads until the limit, and offer their best states, repaired if need be."""
        stop = self.run.until()

        def look() -> float:
            done = sum(read.progress for read in self.reads)
            self.run.report(done=done, total=float(len(self.reads)))
            return 0.0 if stop() else self.run.left - self.reserve

        with halting(self.halt, self.run.workers.count) as pool:
            futures = [pool.submit(self._anneal_one, read) for read in self.reads]
            repaired = sum(watch(futures, look, self.halt))
        return self._ending(repaired)

    def _anneal_one(self, read: Read) -> bool:
        """Anneal; offer the best state after each share; return whether the last was repaired."""
        best = known = read.moves.best
        for share in range(1, SHARES + 1):
            best = read.advance(share / SHARES).moves.best
            if self.halt[0] or self.run.proved or share == SHARES:
                break
            if not np.array_equal(best, known):
                self.offers.offer(best)
            known = best
        return self.offers.offer(descend(self.model, best))

    def _ending(self, repaired: int) -> Ending:
        """Return the status and the statistics."""
        count = len(self.reads)
        tries = sum(read.tries for read in self.reads)
        counts = {"flips_tried": tries, "reads": count, "repaired": repaired}
        message = self.offers.message(repaired, count)
        status = f"{_reads(count)} annealed, {tries:,} flips tried; {message}"
        counted = self.run.moves is not None
        unfinished = counted and any(read.progress < 1.0 for read in self.reads)
        status = _with_reason(status, self.run, unfinished)
        return Ending(status, {**counts, **self.offers.scores})


def make_reads(
    moves: Sequence[FlipMoves], schedule: Schedule, run: Run, reserve: float, halt: Bools
) -> list[Read]:
    """Return a read for each of the moves; `reserve` seconds of the time limit are left over."""
    count = len(moves)
    now = time.perf_counter()
    if run.moves is None:
        plan = ReadPlan(schedule, None, FLIPS_PER_STEP)
        slots = time_slots(count, run.workers.count, now, now + run.left - reserve)
    else:
        tries = max(1, min(run.moves, max(16, run.moves // TEMPERATURES)))
        plan = ReadPlan(schedule, run.moves // tries, tries, run.moves % tries)
        slots = [TimeSlot(now, now)] * count
    return [Read(each, plan, slot, halt) for each, slot in zip(moves, slots, strict=True)]


def _reads(count: int) -> str:
    """Return the number of reads, in words."""
    return f"{count} reads" if count > 1 else "1 read"


def _with_reason(status: str, run: Run, unfinished: bool) -> str:
    """Return the status, after why the run ended if that was not planned."""
    if run.proved:
        return f"{PROVED_OPTIMAL}{status}"
    return f"time limit reached before the last move; {status}" if unfinished else status
