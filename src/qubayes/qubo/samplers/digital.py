"""`digital`: the Digital Annealer's algorithm in software (DAQ): parallel trial, dynamic offset, replica exchange."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...foundation.arrays import Bools
from ...foundation.errors import SettingError
from ...machines.qubo import upper_triangle
from ...search.run import Ending, Run
from .. import Formulation, Qubo, constrain, qubo_from_couplers
from .exchange import Tempering
from .reads import Model, Schedule, halting
from .states import PROVED, read_state, reading_seconds, repairs, start_state, with_slack
from .trial import Groups

PARTS = 20  # of the run; after each of them the best state is offered


@dataclass(frozen=True, slots=True)
class Digital:
    """Every flip is tried, one of the accepted is taken; at most two subsets of a vertex are active (Appendix D.4).

    Replicas at several temperatures, which fall from the first to the last, are exchanged. Their number does not depend
    on that of threads.
    """

    first_temperature: float = 30.0
    last_temperature: float = 1.0
    replicas: int = 4

    name: ClassVar[str] = "digital"
    takes: ClassVar[str] = "formulation"
    counts: ClassVar[str] = "iterations of each replica"

    def __post_init__(self) -> None:
        if not 0 < self.last_temperature <= self.first_temperature < float("inf"):
            raise SettingError(
                f"temperatures from {self.first_temperature} to {self.last_temperature}; they must fall and be positive"
            )
        if self.replicas < 1:
            raise SettingError(f"replicas = {self.replicas}; give 1 or more")

    def __call__(self, formulation: Formulation, run: Run, /) -> Ending:
        """Search with all replicas, and offer the best states."""
        cost = reading_seconds(formulation, run)
        if run.over:
            return _too_short(self.replicas)
        tempering = self._tempering(formulation, run)
        if run.over:
            return _too_short(self.replicas)
        reserve = 0.0 if run.limits.seconds is None else min(3.0 * cost * self.replicas, 0.2 * run.left)
        self._search(formulation, run, tempering, reserve)
        readings = [read_state(formulation, with_slack(formulation, best)) for best in tempering.bests]
        for reading in readings:
            run.offer(reading.choice)
        mended = sum(reading.repaired for reading in readings)
        figures = {"iterations": tempering.iterations, "replicas": self.replicas, "repaired": mended}
        cut = "time limit reached before the last iteration; " if run.moves is not None and run.over else ""
        cut = PROVED if run.proved else cut
        what = f"{self.replicas} replicas" if self.replicas > 1 else "1 replica"
        return Ending(
            f"{cut}{what}, {tempering.iterations:,} iterations of each; {repairs(mended, self.replicas)}", figures
        )

    def _tempering(self, formulation: Formulation, run: Run) -> Tempering:
        form = constrain(formulation, run.workers)
        qubo = _sum(form.score, form.cycles)
        start = start_state(formulation, run)[: qubo.bits]
        seeds = np.random.SeedSequence(run.seed)
        return Tempering(Model.of(qubo), Groups.of(form.groups, qubo.bits), [start] * self.replicas, seeds)

    def _search(self, formulation: Formulation, run: Run, tempering: Tempering, reserve: float) -> None:
        """Rounds until the limit; after each part of it the best state so far is offered."""
        halt, part, known = np.zeros(1, np.bool_), 1, np.inf
        schedule = Schedule(1.0 / np.array([self.first_temperature, self.last_temperature]))
        begin, end = run.elapsed, run.elapsed + run.left - reserve

        def progress() -> float:
            if run.moves is not None:
                return tempering.iterations / run.moves if run.moves else 1.0
            return (run.elapsed - begin) / (end - begin) if end > begin else 1.0

        def look() -> float:
            run.report(done=progress(), total=1.0)
            return run.left - reserve

        with halting(halt, run.workers.count) as pool:
            while tempering.model.qubo.bits and not (halt[0] or run.proved) and progress() < 1.0:
                left = tempering.period if run.moves is None else run.moves - tempering.iterations
                beta = schedule.at(min(1.0, progress()))
                tempering.advance(pool, min(tempering.period, left), beta, look, halt)
                if progress() >= part / PARTS:
                    part += 1
                    energy, best = tempering.best
                    known = _offer(formulation, run, energy, best, known)


def _too_short(replicas: int) -> Ending:
    """The ending of a run whose time was over before the first iteration."""
    figures = {"iterations": 0, "replicas": replicas, "repaired": 0}
    return Ending("the time limit is too short to begin; best so far returned", figures)


def _offer(formulation: Formulation, run: Run, energy: float, best: Bools, known: float) -> float:
    """Offer the state unless it was offered before; its energy."""
    if energy < known:
        run.offer(read_state(formulation, with_slack(formulation, best)).choice)
    return energy


def _sum(one: Qubo, two: Qubo) -> Qubo:
    """The sum of two functions of the same bits."""
    first, second = upper_triangle(one), upper_triangle(two)
    rows, columns = np.concatenate([first[0], second[0]]), np.concatenate([first[1], second[1]])
    weights = np.concatenate([first[2], second[2]])
    return qubo_from_couplers(one.h + two.h, rows, columns, weights, one.offset + two.offset)
