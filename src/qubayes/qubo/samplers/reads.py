"""Reads: annealing by single flips, over a number of steps or over a time."""

import math
import time
from functools import cache
from typing import NamedTuple, Protocol

import numpy as np

from ...foundation.arrays import AnyArray, Bools, Floats
from ...foundation.random import draws_of
from .flips import (
    EXAMPLES,
    FlipModel,
    Schedule,
    descend,
    state_of,
    sweep_at_random,
    sweep_in_order,
    walk_from,
)

SECONDS_PER_CALL = 0.004  # length of a kernel's call


class ReadPlan(NamedTuple):
    """Schedule and size of a read: a number of steps, or the time of its slot (None)."""

    schedule: Schedule
    steps: int | None
    # flips tried in each step, of bits drawn from all; 0: every bit once, in order
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


class Moves(Protocol):
    """A state of a QUBO that is annealed by moves of one kind."""

    size: int  # number of bits

    @property
    def state(self) -> Bools:
        """The present state."""

    @property
    def best(self) -> Bools:
        """The state of least energy at the end of a step."""

    def make(self, betas: Floats, tries: int, halt: Bools) -> None:
        """Try this many moves at each inverse temperature; 0: as many as there are bits."""


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


class Read:
    """One annealing; `halt`, set by another thread, ends it early."""

    def __init__(self, moves: Moves, plan: ReadPlan, slot: TimeSlot, halt: Bools) -> None:
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
