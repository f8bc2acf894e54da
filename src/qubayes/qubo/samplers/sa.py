"""`sa`: simulated annealing of the QUBO (the paper's SAQ, Appendix D.3), or by vertex moves.

single flip: one bit changes. Before a vertex can pass one of its parents in the order, the subset
bit that holds the edge must be turned off, which costs its whole gain: this barrier keeps single
flips from good networks (docs/samplers.md).

vertex move: the order bits of a vertex change as if it were inserted elsewhere in an order of all
vertices, and with them its own subset bits, those of its children, and the slack bits. The place is
drawn by heat bath over all places, at each of them the subset bits being those of least energy that
agree with the order. All states are feasible."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from ...foundation.arrays import AnyArray, Bools, Floats
from ...foundation.errors import SettingError
from ...foundation.graph import topological_order
from ...foundation.random import draws_of
from ...foundation.workers import Workers
from ...search.orders.insertions import anneal_order, order_state
from ...search.orders.walks import OrderProblem, order_problem
from ...search.run import Ending, Run, warm_up
from .. import Formulation, encode_sets
from ..constrained import constrain
from .flips import (
    EXAMPLES,
    FlipModel,
    Schedule,
    descend,
    halting,
    state_of,
    sweep_at_random,
    sweep_in_order,
    walk_from,
    watch,
)
from .states import (
    PROVED_OPTIMAL,
    SHARES,
    NetworkOffers,
    formulate_example,
    offer_first,
    reserved_seconds,
    start_state,
)

TEMPERATURES = 4096  # number of temperatures, or a few more, of many moves where they are counted
# Where the clock decides the temperature: moves at one temperature, and length of a kernel's call.
FLIPS_PER_STEP = 1024
VERTEX_MOVES_PER_STEP = 16
SECONDS_PER_CALL = 0.004
FLIP_TEMPERATURES = (100.0, 1.0)  # first and last, as in the paper
VERTEX_TEMPERATURES = (10.0, 0.05)


class ReadPlan(NamedTuple):
    """Schedule and size of a read: a number of steps, or the time of its slot (None)."""

    schedule: Schedule
    steps: int | None
    # moves in each step, of bits or vertices drawn from all; 0: every bit once, in order
    tries: int = 0
    rest: int = 0  # moves after the last step, at its temperature


class TimeSlot(NamedTuple):
    """The time of a read, in `time.perf_counter` seconds."""

    begin: float
    end: float

    @property
    def progress(self) -> float:
        """The share of the time that has passed."""
        if self.end <= self.begin:
            return 1.0
        return min(1.0, (time.perf_counter() - self.begin) / (self.end - self.begin))


def time_slots(reads: int, threads: int, begin: float, end: float) -> list[TimeSlot]:
    """Return the slot of each read if as many as there are threads run at once."""
    rounds = math.ceil(reads / threads)
    length = (end - begin) / max(rounds, 1)
    return [
        TimeSlot(begin + length * (k // threads), begin + length * (k // threads + 1))
        for k in range(reads)
    ]


class FlipMoves:
    """Single flips of the bits of a QUBO."""

    def __init__(self, model: FlipModel, start: AnyArray, seed: np.random.SeedSequence) -> None:
        self._model, self._draws = model, draws_of(seed)
        self._walk = walk_from(model.qubo, start, keep_best=True)
        self.size = model.qubo.bits

    @property
    def state(self) -> Bools:
        """The present state."""
        return state_of(self._walk, self.size)

    @property
    def best(self) -> Bools:
        """The state of least energy at the end of a step."""
        return self._walk.best.copy()

    def make(self, betas: Floats, tries: int, halt: Bools) -> None:
        """Try this many flips at each inverse temperature; 0: every bit once, in order."""
        if tries:
            sweep_at_random(self._model.couplings, self._walk, self._draws, betas, tries, halt)
        else:
            sweep_in_order(self._model.couplings, self._walk, self._draws, betas, halt)


class VertexMoves:
    """Vertex moves on the feasible states of a formulation.

    The state is an order with the subset bits of least energy. A union of two subsets that is not a
    candidate set never has less energy than the best candidate set inside it. Therefore the subset
    bits of a vertex always are the representation of a candidate set."""

    def __init__(
        self,
        formulation: Formulation,
        problem: OrderProblem,
        start: tuple[int, ...],
        seed: np.random.SeedSequence,
    ) -> None:
        self._formulation, self._problem = formulation, problem
        self._state = order_state(problem, start, seed)
        self.size = problem.n

    @property
    def order(self) -> list[int]:
        """The order of the state of least energy so far."""
        order: list[int] = self._state.best.tolist()
        return order

    @property
    def best(self) -> Bools:
        """The state of least energy so far."""
        chosen = self._formulation.candidates.families.best_of_order(self.order)
        return encode_sets(self._formulation, chosen, self.order)

    def make(self, betas: Floats, tries: int, halt: Bools) -> None:
        """Make this many vertex moves at each inverse temperature."""
        for beta in betas.tolist():
            anneal_order(self._problem, self._state, 1.0 / beta, 1.0, tries, halt)


def vertex_problem(formulation: Formulation, workers: Workers) -> OrderProblem:
    """Return the candidate sets, valued by minus the energies of their subset bits in the QUBO."""
    candidates = formulation.candidates
    score = constrain(formulation, workers).score
    first, second = formulation.representations.astype(np.int64).T
    entries = score.weights, score.indices, score.indptr
    pairs: Any = csr_array(entries, shape=(len(score.h), len(score.h)))
    energies = np.where(first >= 0, np.append(score.h, 0.0)[first], 0.0)
    two = np.flatnonzero(first != second)
    energies[two] += score.h[second[two]] + np.asarray(pairs[first[two], second[two]]).ravel()
    bases = np.repeat(candidates.base_scores, candidates.families.sizes)
    return order_problem(candidates.families, bases - energies)


class Read:
    """One annealing; `halt`, set by another thread, ends it early."""

    def __init__(
        self, moves: FlipMoves | VertexMoves, plan: ReadPlan, slot: TimeSlot, halt: Bools
    ) -> None:
        self.moves = moves
        self.plan = plan
        self.slot = slot
        self.steps_done = 0
        self.halt = halt
        self._betas = None if plan.steps is None else plan.schedule.steps(plan.steps)
        self._call_steps = 1  # steps in the next call of a kernel
        self._rest_done = 0  # moves after the last step

    @property
    def tries(self) -> int:
        """Number of moves so far."""
        return self.steps_done * (self.plan.tries or self.moves.size) + self._rest_done

    @property
    def progress(self) -> float:
        """The share of the schedule that is done; 1 for a QUBO without bits."""
        if not self.moves.size or self.plan.steps == 0:
            return 1.0
        return self.slot.progress if self.plan.steps is None else self.steps_done / self.plan.steps

    def advance(self, until: float = 1.0) -> "Read":
        """Anneal until this share of the schedule is done, or `halt` is set.

        The number of steps in a call of a kernel does not change a read whose steps are counted.
        """
        while not self.halt[0] and self.progress < until:
            if self._betas is None:
                betas = np.full(self._call_steps, self.plan.schedule.at(self.slot.progress))
            else:
                last = min(self.steps_done + self._call_steps, math.ceil(until * len(self._betas)))
                betas = self._betas[self.steps_done : last]
            began = time.perf_counter()
            self.moves.make(betas, self.plan.tries, self.halt)
            self.steps_done += len(betas)
            taken = max(time.perf_counter() - began, 1e-6)
            longer = int(self._call_steps * SECONDS_PER_CALL / taken)
            self._call_steps = max(1, min(2 * self._call_steps, longer))
        if until >= 1.0 and not self.halt[0]:
            self._make_rest()
        return self

    def _make_rest(self) -> None:
        """Make the moves after the last step, once."""
        rest = self.plan.rest - self._rest_done
        if self.moves.size and self._betas is not None and rest > 0:
            self._rest_done = self.plan.rest
            self.moves.make(self._betas[-1:], rest, self.halt)

    def follow(self, model: FlipModel, offers: NetworkOffers) -> bool:
        """Anneal; offer the best state after each share; return whether the last was repaired."""
        best = known = self.moves.best
        for share in range(1, SHARES + 1):
            best = self.advance(share / SHARES).moves.best
            if self.halt[0] or offers.run.proved or share == SHARES:
                break
            if not np.array_equal(best, known):
                offers.offer(best)
            known = best
        return offers.offer(descend(model, best))


@cache
def load_sweeps(kind: str) -> None:
    """Compile or load the kernels of single flips for weights of this kind."""
    model = FlipModel.of(EXAMPLES[kind])
    go_on = np.zeros(1, np.bool_)
    for tries in (0, 1):
        moves = FlipMoves(model, np.zeros(2), np.random.SeedSequence(0))
        plan = ReadPlan(Schedule(np.ones(2)), 1, tries)
        Read(moves, plan, TimeSlot(0.0, 0.0), go_on).advance()
    descend(model, np.zeros(2))


@cache
def _maker(vertex_moves: bool) -> Callable[[], "SimulatedAnnealing"]:
    """Return the function that makes the solver, one for each kind of moves: each is warmed up."""
    return partial(SimulatedAnnealing, vertex_moves=vertex_moves)


@dataclass(frozen=True, slots=True)
class SimulatedAnnealing:
    """Simulated annealing; temperatures fall geometrically from the first to the last.

    Random single flips, or, with `vertex_moves`, moves of a vertex with its order bits, its subset
    bits and those of its children. Temperatures fall from 100 to 1, for vertex moves from 10 to
    0.05; each read ends with a descent. Several reads run at once; the best counts. Under a time
    limit there are by default as many as threads, each over the whole time; where moves are counted
    one, over all of them."""

    first_temperature: float | None = None
    last_temperature: float | None = None
    reads: int | None = None
    vertex_moves: bool = False

    name: ClassVar[str] = "sa"
    takes: ClassVar[str] = "formulation"
    counts: ClassVar[str] = "flips tried, or vertex moves, in each read"

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
        first, last = VERTEX_TEMPERATURES if self.vertex_moves else FLIP_TEMPERATURES
        return (
            first if self.first_temperature is None else self.first_temperature,
            last if self.last_temperature is None else self.last_temperature,
        )

    def prepare(self) -> "SimulatedAnnealing":
        """Compile the kernels."""
        warm_up(_maker(self.vertex_moves), formulate=formulate_example)
        for kind in EXAMPLES:
            load_sweeps(kind)
        return self

    def __call__(self, formulation: Formulation, run: Run, /) -> Ending:
        """Anneal, and offer the best state of each read."""
        threads = run.workers.count
        count = self.reads or (threads if run.moves is None else 1)
        stop = run.until()
        halt = np.array([run.proved])
        model = FlipModel.of(formulation.qubo)
        offers = NetworkOffers(formulation, run)
        start = start_state(formulation, run)
        if self.vertex_moves:
            start = encode_sets(formulation, run.start)
        cost = offer_first(offers, model, start)
        reserve = reserved_seconds(run, 2.0 * cost * math.ceil(count / threads))
        reads = self._reads(formulation, model, start, run, count, reserve, halt)

        def look() -> float:
            run.report(done=sum(read.progress for read in reads), total=float(count))
            return 0.0 if stop() else run.left - reserve

        with halting(halt, threads) as pool:
            futures = [pool.submit(read.follow, model, offers) for read in reads]
            repaired = sum(watch(futures, look, halt))
        return self._ending(reads, offers, repaired)

    def _ending(self, reads: list[Read], offers: NetworkOffers, repaired: int) -> Ending:
        """Return the status and the statistics of the finished reads."""
        run = offers.run
        count = len(reads)
        tries = sum(read.tries for read in reads)
        counted = "vertex_moves" if self.vertex_moves else "flips_tried"
        statistics = {counted: tries, "reads": count, "repaired": repaired, **offers.scores}
        what = f"{count} reads" if count > 1 else "1 read"
        made = f"{tries:,} vertex moves made" if self.vertex_moves else f"{tries:,} flips tried"
        status = f"{what} annealed, {made}; {offers.message(repaired, count)}"
        if run.proved:
            status = f"{PROVED_OPTIMAL}{status}"
        elif run.moves is not None and any(read.progress < 1.0 for read in reads):
            status = f"time limit reached before the last move; {status}"
        return Ending(status, statistics)

    def _reads(
        self,
        formulation: Formulation,
        model: FlipModel,
        start: Bools,
        run: Run,
        count: int,
        reserve: float,
        halt: Bools,
    ) -> list[Read]:
        seeds = np.random.SeedSequence(run.seed).spawn(count)
        moves: list[FlipMoves | VertexMoves]
        if self.vertex_moves:
            problem = vertex_problem(formulation, run.workers)
            order = topological_order(formulation.candidates.families.sets_at(run.start))
            moves = [VertexMoves(formulation, problem, order, seed) for seed in seeds]
        else:
            moves = [FlipMoves(model, start, seed) for seed in seeds]
        schedule = Schedule(1.0 / np.array(self.temperatures))
        now = time.perf_counter()
        if run.moves is None:
            tries = VERTEX_MOVES_PER_STEP if self.vertex_moves else FLIPS_PER_STEP
            plan = ReadPlan(schedule, None, tries)
            slots = time_slots(count, run.workers.count, now, now + run.left - reserve)
        else:
            tries = max(1, min(run.moves, max(16, run.moves // TEMPERATURES)))
            plan = ReadPlan(schedule, run.moves // tries, tries, run.moves % tries)
            slots = [TimeSlot(now, now)] * count
        return [Read(each, plan, slot, halt) for each, slot in zip(moves, slots, strict=True)]
