"""`order-sa` (the paper's SAO): simulated annealing over orders of the vertices by swaps."""

from dataclasses import dataclass
from math import log
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...candidates import Candidates
from ...foundation.arrays import Floats, Ints, SmallInts, Words, frozen
from ...foundation.errors import SettingError
from ...foundation.jit import allocating_kernel, inner
from ...foundation.random import below, random_stream, uniform
from ..run import Ending, Run
from .orders import OrderProblem, best_of, order_problem
from .walks import Pace, random_order, walk_all


@dataclass(frozen=True, slots=True)
class OrderAnnealing:
    """Swap two random places of the order, each vertex taking its best candidate set among what comes before it.

    A swap that changes the score by d is accepted with probability exp(d / T), T = hot^(1 - t) where t is the part of
    the time (or of the moves) that is over: the schedule of Appendix D.3. Only the children of the two vertices that
    lie between the two places, and these two themselves, are scored again.
    """

    hot: float = 100.0

    name: ClassVar[str] = "order-sa"
    takes: ClassVar[str] = "candidates"
    counts: ClassVar[str] = "swaps tried"

    def __post_init__(self) -> None:
        if not 1 <= self.hot < float("inf"):
            raise SettingError(f"hot = {self.hot}; give a temperature of 1 or more")

    def __call__(self, candidates: Candidates, run: Run, /) -> Ending:
        """Anneal on every thread."""
        if run.limits.seconds is None and run.moves is None:
            raise SettingError("order-sa cools down over its limit; give it a time limit or a number of moves")
        if candidates.n < 2:
            return Ending("one variable: nothing to order")
        problem = order_problem(candidates.families, frozen(candidates.scores[:]))
        parents = candidates.families.sets_at(run.start)

        def make(number: int, seed: np.random.SeedSequence) -> _Annealer:
            streams, orders = seed.spawn(2)
            state = new_swaps(problem, random_order(parents, orders), random_stream(streams))
            return _Annealer(problem, run, state, log(self.hot))

        return walk_all(run, make)


class Swaps(NamedTuple):
    """An order and what it gives; kernels write it."""

    order: SmallInts  # (n,) vertices
    place: SmallInts  # (n + 1,) of each vertex in the order; the last is -1, the place of "no member"
    choice: Ints  # (n,) the best allowed set of each vertex
    best: Ints  # (n,) the sets of the best order seen
    totals: Floats  # (2,) score of `choice`, score of `best`
    random: Words  # (2, 1)
    new: Ints  # (n,) scratch: the set of a vertex after the swap; -1 if it is as before
    touched: Ints  # (n,) scratch: the vertices whose set changes


class _Annealer:
    """One walk over orders."""

    def __init__(self, problem: OrderProblem, run: Run, state: Swaps, log_hot: float) -> None:
        self.problem, self.run, self.state, self.log_hot = problem, run, state, log_hot
        run.offer(state.best)

    def advance(self, moves: int, pace: Pace) -> None:
        """Try this many swaps, and offer the best order if it is new."""
        before = self.state.totals[1]
        swap_places(self.problem, self.state, moves, self.log_hot, pace)
        if self.state.totals[1] > before:
            self.run.offer(self.state.best)


def new_swaps(problem: OrderProblem, order: tuple[int, ...], random: Words) -> Swaps:
    """The state at this order, which must allow every base."""
    n, start = problem.n, best_of(problem, order)
    place = np.full(n + 1, -1, np.int32)
    place[start.order] = np.arange(n, dtype=np.int32)
    return Swaps(
        start.order.astype(np.int32),
        place,
        start.choice.copy(),
        start.choice.copy(),
        np.full(2, start.score),
        random,
        np.full(n, -1, np.int64),
        np.zeros(n, np.int64),
    )


@allocating_kernel
def swap_places(problem: Any, state: Any, moves: int, log_hot: float, pace: Any) -> None:
    """Try this many swaps of two random places."""
    n, order, place = len(state.order), state.order, state.place
    for move in range(moves):
        temperature = np.exp(log_hot * max(0.0, 1.0 - pace.done - move * pace.per_move))
        one, two = below(state.random, n), below(state.random, n - 1)
        two += two >= one
        low, high = min(one, two), max(one, two)
        threshold = temperature * np.log(uniform(state.random))
        up, down = order[low], order[high]
        place[up], place[down] = high, low
        touched, change = rescore(problem, state, up, down, threshold)
        accepted = change >= threshold
        if accepted:
            order[low], order[high] = down, up
            state.totals[0] += change
        else:
            place[up], place[down] = low, high
        for k in range(touched):
            vertex = state.touched[k]
            if accepted:
                state.choice[vertex] = state.new[vertex]
            state.new[vertex] = -1
        if state.totals[0] > state.totals[1] + 1e-7:
            state.totals[1] = state.totals[0]
            for vertex in range(n):
                state.best[vertex] = state.choice[vertex]


@inner
def rescore(problem: Any, state: Any, up: Any, down: Any, threshold: Any) -> Any:
    """(vertices with a new set, change of the score) once `up` has moved to its later and `down` to its earlier place.

    The places are those after the swap; the sets are written to `new`. Stops, with -inf, once the change is too bad.
    """
    first, scores, place, choice = problem.first, problem.scores, state.place, state.choice
    low, high = place[down], place[up]
    number = _first_allowed(problem, place, choice[down], first[down + 1], low)
    if number == first[down + 1]:
        return 0, -np.inf
    touched = _touch(state, 0, down, number)
    change = scores[number] - scores[choice[down]]
    number = _first_allowed(problem, place, first[up], choice[up] + 1, high)
    touched = _touch(state, touched, up, number)
    change += scores[number] - scores[choice[up]]
    for edge in range(problem.edge_start[down], problem.edge_start[down + 1]):
        child = problem.child[edge]
        if low < place[child] < high:
            number = _better_with(problem, place, edge, choice[child])
            if number >= 0:
                touched = _touch(state, touched, child, number)
                change += scores[number] - scores[choice[child]]
    for edge in range(problem.edge_start[up], problem.edge_start[up + 1]):
        child = problem.child[edge]
        if change < threshold:  # what follows only lowers it
            return touched, -np.inf
        if low < place[child] < high and state.new[child] < 0 and _holds(problem, choice[child], up):
            number = _first_allowed(problem, place, choice[child], first[child + 1], place[child])
            if number == first[child + 1]:
                return touched, -np.inf
            touched = _touch(state, touched, child, number)
            change += scores[number] - scores[choice[child]]
    return touched, change


@inner
def _touch(state: Any, touched: Any, vertex: Any, number: Any) -> Any:
    """Note the vertex's new set."""
    state.new[vertex], state.touched[touched] = number, vertex
    return touched + 1


@inner
def _first_allowed(problem: Any, place: Any, number: Any, last: Any, limit: Any) -> Any:
    """The first set from `number` on whose members all come before place `limit`; `last` if there is none before it."""
    while number < last:
        jump = _blocked(problem, place, number, limit)
        if jump == 0:
            return number
        number += jump
    return last


@inner
def _better_with(problem: Any, place: Any, edge: Any, current: Any) -> Any:
    """The best set with the edge that is allowed and better than the child's current one; -1 if there is none."""
    limit, useless = place[problem.child[edge]], 0
    for k in range(problem.list_start[edge], problem.list_stop[edge]):
        number = np.int64(problem.lists[k])
        if number >= current:
            break
        if number >= useless:
            jump = _blocked(problem, place, number, limit)
            if jump == 0:
                return number
            useless = number + jump
    return np.int64(-1)


@inner
def _blocked(problem: Any, place: Any, number: Any, limit: Any) -> Any:
    """0 if the members of the set all come before the place, else how many sets are not allowed for the same reason."""
    for k in range(problem.members.shape[1]):
        if place[problem.members[number, k]] >= limit:
            return np.int64(problem.skip[number, k])
    return np.int64(0)


@inner
def _holds(problem: Any, number: Any, vertex: Any) -> Any:
    """Whether the vertex is in the set."""
    held = False
    for k in range(problem.members.shape[1]):
        held = held or problem.members[number, k] == vertex
    return held
