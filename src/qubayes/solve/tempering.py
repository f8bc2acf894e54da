"""Replica exchange over orders: copies of one search at a ladder of temperatures, which trade places.

The hot ones cross valleys, the cold ones go to their bottoms, and what is good sinks down the ladder.
"""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, wait
from typing import Any

import numpy as np

from ..arrays import Bools, Floats
from ..families import VertexSet
from .insertions import wander
from .orders import OrderProblem, OrderState, best_of, order_state
from .walks import random_order

SWEEPS = 5  # moves of each vertex between exchanges
LEAST = 1000  # moves between exchanges: fewer would take no longer than to hand them to a thread
MOST = 2000  # more would keep improvements from the user for seconds, where a move takes long


def temperatures(cold: float, hot: float, count: int) -> Floats:
    """(count,) from cold to hot, each a multiple of the one before; the multiples grow on the way up.

    Between 0.03 and 3 neighbours trade places seldom, above that often: fewer rungs are enough there.
    """
    steps = np.linspace(0.0, 1.0, count) ** 1.25
    return np.asarray(cold * (hot / cold) ** steps)


class Ladder:
    """One search for each temperature, each with its own random stream; what it finds depends on no thread."""

    def __init__(
        self,
        problem: OrderProblem,
        parents: Sequence[VertexSet],
        temperatures: Floats,
        seed: np.random.SeedSequence,
    ) -> None:
        exchanges, *streams = seed.spawn(1 + len(temperatures))
        self.problem, self.temperatures = problem, temperatures
        self.states = [_begin(problem, parents, stream) for stream in streams]
        self.random = np.random.default_rng(exchanges)
        self.moves, self.rounds, self.exchanged = 0, 0, 0
        self.best = best_of(problem, max(self.states, key=lambda state: state.totals[1]).best)

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

    def advance(self, moves: int | None, pool: Executor, stop: Bools, watch: Callable[[], Any]) -> bool:
        """Make moves until the next exchange, at most this many in all, then exchange; whether the best is better.

        `watch` is called every few hundredths of a second; it may set stop[0].
        """
        each = min(max(LEAST, SWEEPS * self.vertices), MOST)
        shares = [each] * len(self.states)
        if moves is not None and moves < sum(shares):
            shares = [(moves + k) // len(shares) for k in range(len(shares))]
        steps = zip(self.states, self.temperatures.tolist(), shares, strict=True)
        waiting: Any = {pool.submit(wander, self.problem, state, t, share, stop) for state, t, share in steps}
        while waiting:
            done, waiting = wait(waiting, timeout=0.02)
            self.moves += sum(future.result() for future in done)
            watch()
        better = self._collect()
        self._exchange()
        return better

    def _collect(self) -> bool:
        """Take the best order of all, and sum the scores afresh: sums of small steps drift."""
        for state in self.states:
            state.totals[0] = self.problem.scores[state.choice].sum()
        found = max(self.states, key=lambda state: state.totals[1])
        if found.totals[1] <= self.best.score:
            return False
        ordered = best_of(self.problem, found.best)
        better = ordered.score > self.best.score
        self.best = ordered if better else self.best
        return better

    def _exchange(self) -> None:
        """Neighbours trade places with the odds that leave the distribution at every temperature as it is."""
        cold = 1 / self.temperatures
        for k in range(self.rounds % 2, len(self.states) - 1, 2):
            gain = self.states[k + 1].totals[0] - self.states[k].totals[0]
            odds = gain * (cold[k] - cold[k + 1])
            if math.log(1 - self.random.random()) < odds:
                self.states[k], self.states[k + 1] = self.states[k + 1], self.states[k]
                self.exchanged += 1
        self.rounds += 1


def _begin(problem: OrderProblem, parents: Sequence[VertexSet], seed: np.random.SeedSequence) -> OrderState:
    """A search that begins at a random order in which these parents come first."""
    order, stream = seed.spawn(2)
    return order_state(problem, random_order(parents, order), stream)
