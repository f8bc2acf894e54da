"""Vertex moves on the feasible states of a QUBO, by replicas at different temperatures.

A vertex move takes a vertex out of an order of all vertices and inserts it at a place that is drawn
by heat bath: with probability proportional to exp(-energy / temperature) over all places. In the
QUBO it changes the order bits of the vertex, its subset bits, those of its children, and the slack
bits at once. The subset bits are those of least energy that agree with the order. So every state is
feasible, and its energy is minus the score of its network (docs/theory.md). The kernel is the one
of the solver `anneal`.

Replicas anneal side by side at a ladder of temperatures. After each round neighbours on the ladder
exchange their states, with the probability that keeps the joint distribution of all replicas. All
temperatures fall together."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ...foundation.arrays import Bools, Floats, Ints
from ...foundation.families import VertexSet
from ...search.orders.insertions import Ordered, OrderState, anneal_order, best_of, order_state
from ...search.orders.walks import OrderProblem, random_order

REPLICAS = 8
MOVES_PER_ROUND = 200  # moves of each replica between exchanges
# Where moves are counted, a run of few moves has shorter rounds, at least this many.
LEAST_ROUNDS = 50


@dataclass(frozen=True, slots=True)
class Ladder:
    """Temperatures of the replicas: the hottest begins at `first`, the coldest ends at `last`."""

    first: float
    last: float
    span: float = 10.0  # from the coldest to the hottest, at most

    def at(self, progress: float) -> Floats:
        """Return (REPLICAS,) temperatures, the coldest first, after this share of the run."""
        span = min(self.span, self.first / self.last)
        fall = self.last * span / self.first
        hottest = self.first * fall**progress
        return np.geomspace(hottest / span, hottest, REPLICAS)


class Replicas:
    """States of one problem, one at each temperature of a ladder."""

    def __init__(
        self,
        problem: OrderProblem,
        start: Sequence[int],
        bases: Sequence[VertexSet],
        seed: np.random.SeedSequence,
    ) -> None:
        self.problem = problem
        self.moves = 0
        self._rounds = 0
        self._random = np.random.default_rng(seed)
        orders = [start, *(random_order(bases, each) for each in seed.spawn(REPLICAS - 1))]
        self._states: list[OrderState] = [
            order_state(problem, order, each)
            for order, each in zip(orders, seed.spawn(REPLICAS), strict=True)
        ]

    @property
    def score(self) -> float:
        """Score of the best state so far, up to rounding."""
        return max(float(state.totals[1]) for state in self._states)

    @property
    def best(self) -> Ordered:
        """The order of the best state so far, with its candidate sets."""
        state = max(self._states, key=lambda state: float(state.totals[1]))
        return best_of(self.problem, state.best)

    def advance(self, temperatures: Floats, moves: int, halt: Bools) -> None:
        """Make a round of this many moves, shared evenly by the replicas, and exchange states."""
        for k, temperature in enumerate(temperatures.tolist()):
            share = (moves + k) // REPLICAS
            state = self._states[k]
            self.moves += anneal_order(self.problem, state, temperature, 1.0, share, halt)
            # sums of small steps drift
            state.totals[0] = self.problem.scores[state.choice].sum()
        self._exchange(1.0 / temperatures)
        self._rounds += 1

    def _exchange(self, betas: Floats) -> None:
        """Exchange the states of neighbours: in one round of the pairs 01, 23, ..., then 12, ..."""
        states = self._states
        for k in range(self._rounds % 2, REPLICAS - 1, 2):
            gain = states[k + 1].totals[0] - states[k].totals[0]
            if np.log(self._random.random()) < gain * (betas[k] - betas[k + 1]):
                states[k], states[k + 1] = states[k + 1], states[k]


def round_size(moves: int | None) -> int:
    """Return the moves of a round, of all replicas, if the run is to make this many (None: any)."""
    if moves is None:
        return REPLICAS * MOVES_PER_ROUND
    return max(REPLICAS, min(REPLICAS * MOVES_PER_ROUND, moves // LEAST_ROUNDS))


def anneal_replicas(
    replicas: Replicas,
    ladder: Ladder,
    progress: Callable[[], float],
    moves: int | None,
    offer: Callable[[Ints], None],
    halt: Bools,
) -> None:
    """Anneal until `progress` is 1, or all `moves` are made; offer each better choice of sets."""
    offered = replicas.score
    each = round_size(moves)
    while not halt[0] and (done := progress()) < 1.0:
        size = each if moves is None else min(each, moves - replicas.moves)
        replicas.advance(ladder.at(done), size, halt)
        if replicas.score > offered:
            offered = replicas.score
            offer(replicas.best.choice)
