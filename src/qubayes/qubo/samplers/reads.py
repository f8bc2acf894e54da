"""Reads of simulated annealing: temperatures by count or by clock, threads over reads, and a watch over them all."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...foundation.arrays import AnyArray, Bools, Floats
from ...foundation.random import draws_of
from ...machines.qubo import Qubo
from .flips import Couplings, couplings_of, state_of, sweep_at_random, sweep_in_order, walk_from

POLL = 0.02  # seconds between two looks at the clock
SLICE = 0.004  # seconds at one temperature where the clock decides it


@dataclass(frozen=True, slots=True)
class Schedule:
    """Inverse temperatures from the first to the last: `geometric`, `linear`, or `custom`, each of them in turn."""

    betas: Floats
    kind: str = "geometric"

    def steps(self, count: int) -> Floats:
        """The inverse temperatures of this many steps; of one step the last."""
        if self.kind == "custom":
            return self.betas[np.arange(count) * len(self.betas) // max(count, 1)]
        if count < 2:
            return self.betas[-1:].repeat(count)
        first, last = self.betas.tolist()
        return np.geomspace(first, last, count) if self.kind == "geometric" else np.linspace(first, last, count)

    def at(self, progress: float) -> float:
        """The inverse temperature after this part of the time."""
        if self.kind == "custom":
            return float(self.betas[min(int(progress * len(self.betas)), len(self.betas) - 1)])
        first, last = self.betas.tolist()
        if self.kind == "linear":
            return float(first + (last - first) * progress)
        return float(first * (last / first) ** progress)


@dataclass(frozen=True, slots=True)
class Plan:
    """How a read is annealed: in so many steps, or, if `steps` is None, for as long as its clock says."""

    schedule: Schedule
    steps: int | None
    tries: int = 0  # bits drawn in each step; 0: every bit once, in order
    rest: int = 0  # bits drawn after the last step, at its temperature


@dataclass(frozen=True, slots=True)
class Clock:
    """The time of a read, in `time.perf_counter` seconds."""

    begin: float
    end: float

    @property
    def progress(self) -> float:
        """The part of the time that is over."""
        if self.end <= self.begin:
            return 1.0
        return min(1.0, (time.perf_counter() - self.begin) / (self.end - self.begin))


class Model(NamedTuple):
    """A QUBO as kernels want it."""

    qubo: Qubo
    couplings: Couplings

    @staticmethod
    def of(qubo: Qubo) -> "Model":
        """The same QUBO, its couplers sorted for flips."""
        return Model(qubo, couplings_of(qubo))


class Read:
    """One annealing from a state on; `halt`, set by another thread, ends it early."""

    def __init__(
        self, model: Model, start: AnyArray, seeds: np.random.SeedSequence, plan: Plan, clock: Clock, halt: Bools
    ) -> None:
        self.plan, self.clock, self.steps_done = plan, clock, 0
        self._model, self._halt, self._draws = model, halt, draws_of(seeds)
        self._walk = walk_from(model.qubo, start, keep_best=True)
        self._betas = None if plan.steps is None else plan.schedule.steps(plan.steps)
        self._pause = 1  # steps in the next call of a kernel
        self._rested = 0  # bits drawn after the last step

    @property
    def tries(self) -> int:
        """Flips tried so far."""
        return self.steps_done * (self.plan.tries or self._model.qubo.bits) + self._rested

    @property
    def progress(self) -> float:
        """The part of the schedule that is behind; all of it where there is nothing to flip."""
        if not self._model.qubo.bits or self.plan.steps == 0:
            return 1.0
        return self.clock.progress if self.plan.steps is None else self.steps_done / self.plan.steps

    @property
    def state(self) -> Bools:
        """The bits now."""
        return state_of(self._walk, self._model.qubo.bits)

    @property
    def best(self) -> Bools:
        """The bits of least energy at the end of a step."""
        return self._walk.best.copy()

    def advance(self, until: float = 1.0) -> "Read":
        """Anneal until this part of the schedule is behind, or `halt` is set."""
        while not self._halt[0] and self.progress < until:
            betas, began = self._next(until), time.perf_counter()
            if self.plan.tries:
                sweep_at_random(self._model.couplings, self._walk, self._draws, betas, self.plan.tries, self._halt)
            else:
                sweep_in_order(self._model.couplings, self._walk, self._draws, betas, self._halt)
            self.steps_done += len(betas)
            taken = max(time.perf_counter() - began, 1e-6)
            self._pause = max(1, min(2 * self._pause, int(self._pause * SLICE / taken)))
        if until >= 1.0 and not self._halt[0] and self._model.qubo.bits:
            self._draw_rest()
        return self

    def _draw_rest(self) -> None:
        if self._betas is not None and self._rested < self.plan.rest:
            self._rested = self.plan.rest
            last = self._betas[-1:]
            sweep_at_random(self._model.couplings, self._walk, self._draws, last, self._rested, self._halt)

    def _next(self, until: float) -> Floats:
        """The inverse temperatures of the next few steps. How many they are changes nothing where steps are counted."""
        if self._betas is None:
            return np.full(self._pause, self.plan.schedule.at(self.clock.progress))
        last = math.ceil(until * len(self._betas))
        return self._betas[self.steps_done : min(self.steps_done + self._pause, last)]


def clocks(reads: int, threads: int, begin: float, end: float) -> list[Clock]:
    """The time of each read where as many as there are threads run at once."""
    rounds = math.ceil(reads / threads)
    length = (end - begin) / max(rounds, 1)
    return [Clock(begin + length * (k // threads), begin + length * (k // threads + 1)) for k in range(reads)]


@contextmanager
def halting(halt: Bools, threads: int) -> Iterator[ThreadPoolExecutor]:
    """Threads that are told to halt, and waited for, when the block is left by an error."""
    pool = ThreadPoolExecutor(threads)
    try:
        yield pool
    except BaseException:
        halt[0] = True
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def watch(futures: Sequence[Future[Any]], look: Callable[[], float], halt: Bools) -> list[Any]:
    """What the futures returned. `look` is called every POLL seconds: it reports, and tells how many are left."""
    pending = set(futures)
    while pending:
        left = look()
        if left <= 0:
            halt[0] = True
        finished, pending = wait(pending, timeout=POLL if left <= 0 else min(POLL, left))
        for future in finished:
            future.result()
    return [future.result() for future in futures]
