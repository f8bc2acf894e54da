"""Annealing of a population over orders: rounds of slow cooling, each twice as long, with a crossover in between.

A cooled walk ends at a network that is best in most regions and second best in some, other ones in others. The
crossover is annealing too, restricted to the sets that good networks use: it takes from each region what is best.
"""

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, wait
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..arrays import Bools, Floats
from ..families import Families, VertexSet
from .insertions import wander
from .orders import Ordered, OrderProblem, OrderState, best_of, order_problem, order_state
from .walks import random_order

SWEEPS = 20  # moves of each vertex in a walk of the first round
SLICE = 2000  # moves of a walk between looks at the best; more would keep improvements from the user for seconds
CROSSING = 0.2  # the moves of a crossover, in parts of the round before it
BEGINNINGS = (("anywhere", 1.0), ("best", 0.25), ("elite", 0.5), ("elite", 1.0))  # of walks, and how hot, in turn
SAME = 1e-7  # two networks whose scores differ by less are taken for one


class Phase(NamedTuple):
    """Walks that are cooled together, on all sets or some."""

    problem: OrderProblem
    states: list[OrderState]
    hot: list[float]  # first temperature of each
    length: int  # moves of each
    crossing: bool


class Population:
    """Walks over the orders of one component. What they find depends on the seed and the moves, on no thread."""

    def __init__(
        self,
        families: Families,
        scores: Floats,
        parents: Sequence[VertexSet],
        temperatures: tuple[float, float],
        count: int,
        seed: np.random.SeedSequence,
    ) -> None:
        self.families, self.problem, self.count = families, order_problem(families, scores), count
        self.hot, self.cold = temperatures
        self.moves, self.rounds, self.seconds = 0, 0, 0.0
        self._seed, self._made = seed, 0
        self._bases = [families.set_at(number) for number in (families.vertex_start[1:] - 1).tolist()]
        self.best = best_of(self.problem, random_order(parents, self._next_seed()))
        self.elite = [self.best]
        self.phase: Phase | None = None

    @property
    def vertices(self) -> int:
        """Number of vertices."""
        return self.problem.n

    @property
    def limit(self) -> float:
        """No order scores more: every vertex with its best set."""
        return math.fsum(self.problem.scores[self.problem.first[:-1]].tolist())

    @property
    def perfect(self) -> bool:
        """Whether the limit is reached."""
        return self.limit - self.best.score <= 1e-9 * max(1.0, abs(self.best.score))

    def advance(self, left: float, most: int | None, pool: Executor, stop: Bools, watch: Callable[[], Any]) -> bool:
        """Make a slice of the present phase, or begin the next; whether the best is better.

        About so many moves are `left` for all phases: a round that would be the last one takes them. At `most` so
        many are made now. `watch` is called every few hundredths of a second; it may set stop[0].
        """
        began, before = time.perf_counter(), self.best.score
        if self.phase is None:
            self.phase = self._round(left)
        self._slice(self.phase, most, pool, stop, watch)
        if self._made >= self.phase.length:
            self._finish(self.phase)
        self.seconds += time.perf_counter() - began
        return self.best.score > before

    def _slice(self, phase: Phase, most: int | None, pool: Executor, stop: Bools, watch: Callable[[], Any]) -> None:
        each = min(SLICE, phase.length - self._made)
        shares = [each] * self.count
        if most is not None and most < sum(shares):
            shares = [(most + k) // self.count for k in range(self.count)]
        waiting: Any = set()
        for state, hot, share in zip(phase.states, phase.hot, shares, strict=True):
            cooling = (self.cold / hot) ** (1 / phase.length)
            waiting.add(pool.submit(wander, phase.problem, state, hot * cooling**self._made, cooling, share, stop))
        while waiting:
            done, waiting = wait(waiting, timeout=0.02)
            self.moves += sum(future.result() for future in done)
            watch()
        self._made += each
        for state in phase.states:  # sums of small steps drift
            state.totals[0] = phase.problem.scores[state.choice].sum()
        self._keep(max(phase.states, key=lambda state: state.totals[1]))

    def _keep(self, state: OrderState) -> None:
        """Make the best order of the walk the best of all if it is."""
        if state.totals[1] > self.best.score:
            found = best_of(self.problem, state.best)
            self.best = max(self.best, found, key=lambda ordered: ordered.score)

    def _finish(self, phase: Phase) -> None:
        """What the walks have found joins the elite; after a round comes a crossover, after that the next round."""
        found = [self.best, *(best_of(self.problem, state.best) for state in phase.states)]
        self.elite = _distinct([*self.elite, *found])[: 2 * self.count]
        self._made, self.phase = 0, None
        if not phase.crossing and len(self.elite) > 1:
            self.phase = self._crossover(phase.length)

    def _round(self, left: float) -> Phase:
        """Walks that begin anywhere, at the best network or at another good one; twice as long as before."""
        wanted = SWEEPS * self.vertices * 2**self.rounds
        most = left / (self.count * (1 + CROSSING))
        length = max(self.vertices, int(wanted if most > 2 * wanted else most))
        self.rounds += 1
        states, hot = [], []
        for k in range(self.count):
            where, share = BEGINNINGS[k % len(BEGINNINGS)]
            states.append(order_state(self.problem, self._beginning(where), self._next_seed()))
            hot.append(max(self.cold, share * self.hot))
        return Phase(self.problem, states, hot, length, crossing=False)

    def _beginning(self, where: str) -> npt.ArrayLike:
        if where == "anywhere":
            return random_order(self._bases, self._next_seed())
        if where == "best":
            return self.best.order
        return self.elite[np.random.default_rng(self._next_seed()).integers(len(self.elite))].order

    def _crossover(self, length: int) -> Phase:
        """Walks from the best network over the sets that the elite uses, and the bases."""
        bases = self.families.vertex_start[1:] - 1
        numbers = np.unique(np.concatenate([bases, *(ordered.choice for ordered in self.elite)]))
        problem = order_problem(self.families.chosen(numbers), self.problem.scores[numbers])
        states = [order_state(problem, self.best.order, self._next_seed()) for _ in range(self.count)]
        return Phase(problem, states, [self.hot] * self.count, max(1, int(CROSSING * length)), crossing=True)

    def _next_seed(self) -> np.random.SeedSequence:
        return self._seed.spawn(1)[0]


def _distinct(found: Sequence[Ordered]) -> list[Ordered]:
    """The networks with different scores, best first."""
    kept: list[Ordered] = []
    for ordered in sorted(found, key=lambda ordered: -ordered.score):
        if not kept or kept[-1].score - ordered.score > SAME:
            kept.append(ordered)
    return kept
