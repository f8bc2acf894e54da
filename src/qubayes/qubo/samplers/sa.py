"""`sa`: simulated annealing of the QUBO by single flips (SAQ, Appendix D.3)."""

import math
import time
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, NamedTuple

import numpy as np

from ...foundation.arrays import AnyArray, Bools, Floats
from ...foundation.errors import SettingError
from ...foundation.random import draws_of
from ...machines.qubo import qubo_from_couplers
from ...search.run import Ending, Run, warm_up
from .. import Formulation
from .flips import FlipModel, Schedule, halting, state_of, sweep_at_random, sweep_in_order, walk_from, watch
from .states import PROVED, formulate_example, read_state, reading_seconds, repair_message, start_state

SHARES = 20  # of a read; after each of them its best state is offered
TEMPERATURES = 4096  # at most, where flips are counted
TRIES = 1024  # at one temperature, where the clock decides it
SLICE = 0.004  # seconds at one temperature, where the clock decides it


class ReadPlan(NamedTuple):
    """Schedule and size of a read: a number of steps, or, if `steps` is None, the time of its slot."""

    schedule: Schedule
    steps: int | None
    tries: int = 0  # bits drawn in each step; 0: every bit once, in order
    rest: int = 0  # bits drawn after the last step, at its temperature


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
    return [TimeSlot(begin + length * (k // threads), begin + length * (k // threads + 1)) for k in range(reads)]


class Read:
    """One annealing from a start state; `halt`, set by another thread, ends it early."""

    def __init__(
        self,
        model: FlipModel,
        start: AnyArray,
        seeds: np.random.SeedSequence,
        plan: ReadPlan,
        slot: TimeSlot,
        halt: Bools,
    ) -> None:
        self.plan, self.slot, self.steps_done = plan, slot, 0
        self._model, self._halt, self._draws = model, halt, draws_of(seeds)
        self._walk = walk_from(model.qubo, start, keep_best=True)
        self._betas = None if plan.steps is None else plan.schedule.steps(plan.steps)
        self._call_steps = 1  # steps in the next call of a kernel
        self._rest_done = 0  # bits drawn after the last step

    @property
    def tries(self) -> int:
        """Number of flips tried so far."""
        return self.steps_done * (self.plan.tries or self._model.qubo.bits) + self._rest_done

    @property
    def progress(self) -> float:
        """The share of the schedule that is done; 1 for a QUBO without bits."""
        if not self._model.qubo.bits or self.plan.steps == 0:
            return 1.0
        return self.slot.progress if self.plan.steps is None else self.steps_done / self.plan.steps

    @property
    def state(self) -> Bools:
        """The present state."""
        return state_of(self._walk, self._model.qubo.bits)

    @property
    def best(self) -> Bools:
        """The state of least energy at the end of a step."""
        return self._walk.best.copy()

    def advance(self, until: float = 1.0) -> "Read":
        """Anneal until this share of the schedule is done, or `halt` is set."""
        while not self._halt[0] and self.progress < until:
            betas, began = self._next_betas(until), time.perf_counter()
            if self.plan.tries:
                sweep_at_random(self._model.couplings, self._walk, self._draws, betas, self.plan.tries, self._halt)
            else:
                sweep_in_order(self._model.couplings, self._walk, self._draws, betas, self._halt)
            self.steps_done += len(betas)
            taken = max(time.perf_counter() - began, 1e-6)
            self._call_steps = max(1, min(2 * self._call_steps, int(self._call_steps * SLICE / taken)))
        rest = self.plan.rest - self._rest_done
        if until >= 1.0 and not self._halt[0] and self._model.qubo.bits and self._betas is not None and rest > 0:
            self._rest_done = self.plan.rest
            sweep_at_random(self._model.couplings, self._walk, self._draws, self._betas[-1:], rest, self._halt)
        return self

    def _next_betas(self, until: float) -> Floats:
        """Return the inverse temperatures of the next steps; their number does not change a counted read."""
        if self._betas is None:
            return np.full(self._call_steps, self.plan.schedule.at(self.slot.progress))
        last = math.ceil(until * len(self._betas))
        return self._betas[self.steps_done : min(self.steps_done + self._call_steps, last)]


@cache
def load_sweeps() -> None:
    """Compile or load the kernels of a read, on a QUBO of one bit."""
    model, halt = FlipModel.of(qubo_from_couplers([1.0], [], [], [])), np.zeros(1, np.bool_)
    for tries in (0, 1):
        plan = ReadPlan(Schedule(np.ones(2)), 1, tries)
        Read(model, np.zeros(1), np.random.SeedSequence(0), plan, TimeSlot(0.0, 0.0), halt).advance()


@dataclass(frozen=True, slots=True)
class SimulatedAnnealing:
    """Random single flips, temperature T0^(1 - t / limit): from `first_temperature` down to `last_temperature`.

    Several reads run at once; the best counts. Under a time limit there are by default as many as threads, each over
    the whole time; where flips are counted one, over all of them.
    """

    first_temperature: float = 100.0
    last_temperature: float = 1.0
    reads: int | None = None

    name: ClassVar[str] = "sa"
    takes: ClassVar[str] = "formulation"
    counts: ClassVar[str] = "flips tried in each read"

    def __post_init__(self) -> None:
        if not 0 < self.last_temperature <= self.first_temperature < float("inf"):
            raise SettingError(
                f"temperatures from {self.first_temperature} to {self.last_temperature}; they must fall and be positive"
            )
        if self.reads is not None and self.reads < 1:
            raise SettingError(f"reads = {self.reads}; give 1 or more")

    def prepare(self) -> "SimulatedAnnealing":
        """Compile the kernels."""
        warm_up(SimulatedAnnealing, formulate=formulate_example)
        return self

    def __call__(self, formulation: Formulation, run: Run, /) -> Ending:
        """Anneal, and offer the best state of each read."""
        threads = run.workers.count
        count = self.reads or (threads if run.moves is None else 1)
        cost = reading_seconds(formulation, run)
        reserve = min(2.0 * cost * -(-count // threads), 0.2 * run.left) if run.limits.seconds is not None else 0.0
        halt = np.array([run.proved])
        reads = self._reads(formulation, run, count, reserve, halt)

        def look() -> float:
            run.report(done=sum(read.progress for read in reads), total=float(count))
            return 0.0 if run.proved else run.left - reserve

        with halting(halt, threads) as pool:
            futures: list[Future[bool]] = [pool.submit(_follow, formulation, run, read, halt) for read in reads]
            repaired = sum(watch(futures, look, halt))
        tries = sum(read.tries for read in reads)
        cut = "time limit reached before the last flip; " if run.moves is not None and run.over else ""
        what = f"{count} reads" if count > 1 else "1 read"
        return Ending(
            f"{PROVED if run.proved else cut}{what} annealed, {tries:,} flips tried; {repair_message(repaired, count)}",
            {"flips_tried": tries, "reads": count, "repaired": repaired},
        )

    def _reads(self, formulation: Formulation, run: Run, count: int, reserve: float, halt: Bools) -> list[Read]:
        model, start = FlipModel.of(formulation.qubo), start_state(formulation, run)
        schedule = Schedule(1.0 / np.array([self.first_temperature, self.last_temperature]))
        seeds = np.random.SeedSequence(run.seed).spawn(count)
        now = time.perf_counter()
        if run.moves is None:
            plan = ReadPlan(schedule, None, TRIES)
            slots = time_slots(count, run.workers.count, now, now + run.left - reserve)
        else:
            tries = max(1, min(run.moves, max(16, run.moves // TEMPERATURES)))
            plan = ReadPlan(schedule, run.moves // tries, tries, run.moves % tries)
            slots = [TimeSlot(now, now)] * count
        return [Read(model, start, seed, plan, slot, halt) for seed, slot in zip(seeds, slots, strict=True)]


def _follow(formulation: Formulation, run: Run, read: Read, halt: Bools) -> bool:
    """Anneal one read and offer its best state after each share; return True if the last one was repaired."""
    known, repaired = np.zeros(0, np.bool_), False
    for share in range(1, SHARES + 1):
        best = read.advance(share / SHARES).best
        if not np.array_equal(best, known):
            reading = read_state(formulation, best)
            run.offer(reading.choice)
            known, repaired = best, reading.repaired
        if halt[0] or run.proved:
            break
    return repaired
