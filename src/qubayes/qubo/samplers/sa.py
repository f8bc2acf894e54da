"""`sa`: simulated annealing of the QUBO by single flips (SAQ, Appendix D.3)."""

import time
from concurrent.futures import Future
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...foundation.arrays import Bools
from ...foundation.errors import SettingError
from ...search.run import Ending, Run
from .. import Formulation
from .reads import Clock, Model, Plan, Read, Schedule, clocks, halting, watch
from .states import PROVED, read_state, reading_seconds, repairs, start_state

PARTS = 20  # of a read; after each of them its best state is offered
TEMPERATURES = 4096  # at most, where flips are counted
TRIES = 1024  # at one temperature, where the clock decides it


@dataclass(frozen=True, slots=True)
class SimulatedAnnealing:
    """Random single flips, temperature T0^(1 - t / limit): from `first_temperature` down to `last_temperature`.

    Several reads run at once; the best counts. Under a time limit there are as many as threads unless said, each over
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
            mended = watch(futures, look, halt)
        return self._ending(run, reads, sum(mended))

    def _reads(self, formulation: Formulation, run: Run, count: int, reserve: float, halt: Bools) -> list[Read]:
        model, start = Model.of(formulation.qubo), start_state(formulation, run)
        schedule = Schedule(1.0 / np.array([self.first_temperature, self.last_temperature]))
        seeds = np.random.SeedSequence(run.seed).spawn(count)
        now = time.perf_counter()
        if run.moves is None:
            plan, times = Plan(schedule, None, TRIES), clocks(count, run.workers.count, now, now + run.left - reserve)
        else:
            tries = max(1, min(run.moves, max(16, run.moves // TEMPERATURES)))
            plan, times = Plan(schedule, run.moves // tries, tries, run.moves % tries), [Clock(now, now)] * count
        return [Read(model, start, seed, plan, time, halt) for seed, time in zip(seeds, times, strict=True)]

    def _ending(self, run: Run, reads: list[Read], mended: int) -> Ending:
        tries = sum(read.tries for read in reads)
        figures = {"flips_tried": tries, "reads": len(reads), "repaired": mended}
        cut = "time limit reached before the last flip; " if run.moves is not None and run.over else ""
        cut = PROVED if run.proved else cut
        what = f"{len(reads)} reads" if len(reads) > 1 else "1 read"
        return Ending(f"{cut}{what} annealed, {tries:,} flips tried; {repairs(mended, len(reads))}", figures)


def _follow(formulation: Formulation, run: Run, read: Read, halt: Bools) -> bool:
    """Anneal one read, offer its best state after each part; whether the last one had to be repaired."""
    known, mended = np.zeros(0, np.bool_), False
    for part in range(1, PARTS + 1):
        best = read.advance(part / PARTS).best
        if not np.array_equal(best, known):
            reading = read_state(formulation, best)
            run.offer(reading.choice)
            known, mended = best, reading.repaired
        if halt[0] or run.proved:
            break
    return mended
