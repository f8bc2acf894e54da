"""Annealing of a population over orders: rounds of slow cooling, each twice as long, with a crossover in between.

A cooled walk ends at a network that is best in most regions and second best in some, other ones in others. The
crossover is annealing too, restricted to the sets that good networks use: it takes from each region what is best.

Slow cooling ends in the widest basin. Where the best one is narrow, many short walks find it sooner: in each round
one walk is made of sprints, and then goes on from the best of them.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, wait
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...foundation.arrays import Bools, Floats
from ...foundation.families import Families, VertexSet
from .insertions import settle, wander
from .orders import Ordered, OrderProblem, OrderState, best_of, order_problem, order_state
from .walks import random_order

SWEEPS = 20  # moves of each vertex in a walk of the first round, and in a sprint
SLICE = 2000  # moves of a walk between looks at the best; more would keep improvements from the user for seconds
CROSSING = 0.2  # the moves of a crossover, in parts of the round before it
BEGINNINGS = (("sprints", 1.0), ("best", 0.25), ("elite", 0.5), ("elite", 1.0))  # of walks, and how hot, in turn
SPRINTING = 0.75  # of the moves of a walk that sprints, at most
AFTERWARDS = 0.25  # how hot it begins to go on from the best sprint
SAME = 1e-7  # two networks whose scores differ by less are taken for one


class Leg(NamedTuple):
    """A part of a walk, cooled from `hot` to the end."""

    begin: str  # "here"; "anywhere"; at the "best" order of the walk
    hot: float
    length: int  # moves


class OrderWalk:
    """Legs one after the other. `state` holds the best order of all of them."""

    def __init__(
        self, problem: OrderProblem, order: npt.ArrayLike, legs: list[Leg], seed: np.random.SeedSequence
    ) -> None:
        self.problem, self.legs, self._seed = problem, deque(legs), seed
        self.state = order_state(problem, order, seed.spawn(1)[0])
        self._made = 0  # moves of the first leg

    def advance(self, moves: int, cold: float, bases: Sequence[VertexSet], stop: Bools) -> int:
        """Make this many moves unless stop[0] is set or the legs end before; the number made."""
        done = 0
        while done < moves and self.legs and not stop[0]:
            leg = self.legs[0]
            if not self._made:
                self._begin(leg.begin, bases)
            cooling = (cold / leg.hot) ** (1 / leg.length)
            share = min(moves - done, leg.length - self._made)
            made = wander(self.problem, self.state, leg.hot * cooling**self._made, cooling, share, stop)
            done, self._made = done + made, self._made + made
            if self._made == leg.length:
                self.legs.popleft()
                self._made = 0
        self.state.totals[0] = self.problem.scores[self.state.choice].sum()  # sums of small steps drift
        return done

    def _begin(self, where: str, bases: Sequence[VertexSet]) -> None:
        if where != "here":
            self.state.order[:] = self.state.best if where == "best" else random_order(bases, self._seed.spawn(1)[0])
            settle(self.problem, self.state)


class Phase(NamedTuple):
    """Walks that are cooled together, on all sets or some."""

    walks: list[OrderWalk]
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
        waiting: Any = {
            pool.submit(walk.advance, share, self.cold, self._bases, stop)
            for walk, share in zip(phase.walks, shares, strict=True)
        }
        while waiting:
            done, waiting = wait(waiting, timeout=0.02)
            self.moves += sum(future.result() for future in done)
            watch()
        self._made += each
        self._keep(max((walk.state for walk in phase.walks), key=lambda state: state.totals[1]))

    def _keep(self, state: OrderState) -> None:
        """Make the best order of the walk the best of all if it is."""
        if state.totals[1] > self.best.score:
            found = best_of(self.problem, state.best)
            self.best = max(self.best, found, key=lambda ordered: ordered.score)

    def _finish(self, phase: Phase) -> None:
        """What the walks have found joins the elite; after a round comes a crossover, after that the next round."""
        found = [self.best, *(best_of(self.problem, walk.state.best) for walk in phase.walks)]
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
        beginnings = [BEGINNINGS[k % len(BEGINNINGS)] for k in range(self.count)]
        return Phase([self._walk(*beginning, length) for beginning in beginnings], length, crossing=False)

    def _walk(self, where: str, share: float, length: int) -> OrderWalk:
        hot = max(self.cold, share * self.hot)
        legs = [Leg("here", hot, length)]
        if where == "sprints" and self.count > 1:  # a single walk is cooled slowly
            legs = _sprints((hot, self.cold), SWEEPS * self.vertices, length)
        return OrderWalk(self.problem, self._beginning(where), legs, self._next_seed())

    def _beginning(self, where: str) -> npt.ArrayLike:
        if where == "best":
            return self.best.order
        if where == "elite":
            return self.elite[np.random.default_rng(self._next_seed()).integers(len(self.elite))].order
        return random_order(self._bases, self._next_seed())  # not the best, or no sprint would be kept

    def _crossover(self, length: int) -> Phase:
        """Walks from the best network over the sets that the elite uses, and the bases."""
        bases = self.families.vertex_start[1:] - 1
        numbers = np.unique(np.concatenate([bases, *(ordered.choice for ordered in self.elite)]))
        problem = order_problem(self.families.chosen(numbers), self.problem.scores[numbers])
        length = max(1, int(CROSSING * length))
        legs = [Leg("here", self.hot, length)]
        walks = [OrderWalk(problem, self.best.order, legs, self._next_seed()) for _ in range(self.count)]
        return Phase(walks, length, crossing=True)

    def _next_seed(self) -> np.random.SeedSequence:
        return self._seed.spawn(1)[0]


def _sprints(temperatures: tuple[float, float], sprint: int, length: int) -> list[Leg]:
    """Sprints, and a leg that goes on from the best of them; one sprint in a walk that is too short for that."""
    hot, cold = temperatures
    count = int(SPRINTING * length / sprint)
    if count < 2:
        return [Leg("anywhere", hot, length)]
    return [Leg("anywhere", hot, sprint)] * count + [Leg("best", max(cold, AFTERWARDS * hot), length - count * sprint)]


def _distinct(found: Sequence[Ordered]) -> list[Ordered]:
    """The networks with different scores, best first."""
    kept: list[Ordered] = []
    for ordered in sorted(found, key=lambda ordered: -ordered.score):
        if not kept or kept[-1].score - ordered.score > SAME:
            kept.append(ordered)
    return kept
