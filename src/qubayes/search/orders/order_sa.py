"""`order-sa` (the paper's SAO): simulated annealing over orders of the vertices; a move swaps two places."""

from dataclasses import dataclass
from math import log
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from ...candidates import Candidates
from ...foundation.arrays import Floats, Ints, SmallInts, Words
from ...foundation.errors import SettingError
from ...foundation.families import Families
from ...foundation.jit import inner, kernel
from ...foundation.random import below, random_stream, uniform
from ..run import Ending, Run, warm_up
from .order_problem import holds, order_problem, random_order
from .walks import Advance, Pace, walk_all


@dataclass(frozen=True, slots=True)
class OrderAnnealing:
    """Swap two random places of the order; each vertex takes its best candidate set among the vertices before it.

    A swap that changes the score by d is accepted with probability exp(d / T), T = hot^(1 - t) where t is the part of
    the time (or of the moves) that is over: the schedule of Appendix D.3 of the paper. Only the two vertices, and
    those of their children that lie between the two places, are scored again.
    """

    hot: float = 100.0

    name: ClassVar[str] = "order-sa"
    takes: ClassVar[str] = "candidates"
    counts: ClassVar[str] = "swaps tried"

    def __post_init__(self) -> None:
        if not 1 <= self.hot < float("inf"):
            raise SettingError(f"hot = {self.hot}; give a temperature of 1 or more")

    def prepare(self) -> "OrderAnnealing":
        """Compile the kernels."""
        warm_up(OrderAnnealing)
        return self

    def __call__(self, candidates: Candidates, run: Run, /) -> Ending:
        """Anneal on every thread."""
        if run.limits.seconds is None and run.moves is None:
            raise SettingError("order-sa cools down over its limit; give it a time limit or a number of moves")
        if candidates.n < 2:
            return Ending("one variable: nothing to order")
        problem = order_problem(candidates.families, candidates.scores)
        parents = candidates.families.sets_at(run.start)

        def make(number: int, seed: np.random.SeedSequence) -> Advance:
            streams, orders = seed.spawn(2)
            order = random_order(parents, orders)
            state = swap_state(candidates.families, candidates.scores, order, random_stream(streams))

            def advance(moves: int, pace: Pace) -> None:
                swap_places(problem, state, moves, log(self.hot), pace.done, pace.per_move)
                run.offer(state.best)

            run.offer(state.best)
            return advance

        return walk_all(run, make)


class SwapState(NamedTuple):
    """An order, its candidate sets and the best sets so far; kernels write it."""

    order: SmallInts  # (n,) vertices
    place: SmallInts  # (n + 1,) of each vertex in the order; the last is -1, the place of "no member"
    choice: Ints  # (n,) the best allowed set of each vertex
    best: Ints  # (n,) the sets of the best order seen
    totals: Floats  # (2,) score of `choice`, score of `best`
    random: Words  # (2, 1) random stream
    new: Ints  # (n,) scratch: the set of a vertex after the swap; -1 if it stays the same
    touched: Ints  # (n,) scratch: the vertices whose set changes


def swap_state(families: Families, scores: Floats, order: npt.ArrayLike, random: Words) -> SwapState:
    """Return the state at this order, which must allow every base."""
    n, vertices = families.n, np.array(order, np.int32)
    place = np.full(n + 1, -1, np.int32)
    place[vertices] = np.arange(n, dtype=np.int32)
    choice = families.best_of_order(vertices)
    return SwapState(
        order=vertices,
        place=place,
        choice=choice,
        best=choice.copy(),
        totals=np.full(2, scores[choice].sum()),
        random=random,
        new=np.full(n, -1, np.int64),
        touched=np.zeros(n, np.int64),
    )


class _Allowed(NamedTuple):
    """What tells whether a set is allowed."""

    members: Any  # of an `OrderProblem`
    skip: Any
    place: SmallInts


@kernel
def swap_places(problem: Any, state: Any, moves: int, log_hot: float, done: float, per_move: float) -> None:
    """Try this many swaps of two random places."""
    order, place, choice, new = state.order, state.place, state.choice, state.new
    n = len(order)
    for move in range(moves):
        temperature = np.exp(log_hot * max(0.0, 1.0 - done - move * per_move))
        one, two = below(state.random, n), below(state.random, n - 1)
        two += two >= one
        low, high = min(one, two), max(one, two)
        threshold = temperature * np.log(uniform(state.random))  # the swap is accepted if the score changes by more
        up, down = order[low], order[high]
        place[up], place[down] = high, low
        touched, change = _rescore(problem, state, up, down, threshold)
        if change >= threshold:
            order[low], order[high] = down, up
            state.totals[0] += change
        else:
            place[up], place[down] = low, high
        for k in range(touched):
            vertex = state.touched[k]
            if change >= threshold:
                choice[vertex] = new[vertex]
            new[vertex] = -1
        if state.totals[0] > state.totals[1] + 1e-7:
            state.totals[1] = state.totals[0]
            for vertex in range(n):
                state.best[vertex] = choice[vertex]


@inner
def _rescore(problem: Any, state: Any, up: Any, down: Any, threshold: Any) -> Any:
    """Return (vertices with a new set, change of the score) once `up` has its later and `down` its earlier place.

    The places are those after the swap; the sets are written to `new`. Ends with -inf once the change is below the
    threshold and can only become worse.
    """
    first, scores, place, choice, new = problem.first, problem.scores, state.place, state.choice, state.new
    allowed = _Allowed(problem.members, problem.skip, place)
    low, high = np.int64(place[down]), np.int64(place[up])
    new[down] = _first_allowed(allowed, choice[down], first[down + 1], low)
    if new[down] == first[down + 1]:
        new[down] = -1
        return 0, -np.inf
    new[up] = _first_allowed(allowed, first[up], choice[up] + 1, high)
    state.touched[0], state.touched[1], touched = down, up, 2
    change = scores[new[down]] - scores[choice[down]] + scores[new[up]] - scores[choice[up]]
    for edge in range(problem.edge_start[down], problem.edge_start[down + 1]):
        child = problem.child[edge]
        if low < place[child] < high:
            numbers = problem.lists[problem.list_start[edge] : problem.list_stop[edge]]
            number = _first_listed(allowed, numbers, choice[child], place[child])
            if number >= 0:
                new[child], state.touched[touched] = number, child
                touched += 1
                change += scores[number] - scores[choice[child]]
    for edge in range(problem.edge_start[up], problem.edge_start[up + 1]):
        child = problem.child[edge]
        if change < threshold:
            return touched, -np.inf
        if low < place[child] < high and new[child] < 0 and holds(problem.members, choice[child], up):
            number = _first_allowed(allowed, choice[child], first[child + 1], np.int64(place[child]))
            if number == first[child + 1]:
                return touched, -np.inf
            new[child], state.touched[touched] = number, child
            touched += 1
            change += scores[number] - scores[choice[child]]
    return touched, change


@inner
def _first_allowed(allowed: Any, number: Any, last: Any, limit: Any) -> Any:
    """Return the first set from `number` on whose members all come before place `limit`; `last` if none before it."""
    while number < last:
        jump = _blocked(allowed, number, limit)
        if jump == 0:
            return number
        number += jump
    return last


@inner
def _first_listed(allowed: Any, numbers: Any, current: Any, limit: Any) -> Any:
    """Return the first listed set before `current` whose members come before place `limit`; -1 if there is none."""
    useless = 0
    for k in range(len(numbers)):
        number = np.int64(numbers[k])
        if number >= current:
            break
        if number >= useless:
            jump = _blocked(allowed, number, np.int64(limit))
            if jump == 0:
                return number
            useless = number + jump
    return np.int64(-1)


@inner
def _blocked(allowed: Any, number: Any, limit: Any) -> Any:
    """Return 0 if all members come before place `limit`, else the sets from here on that the member forbids."""
    for k in range(allowed.members.shape[1]):
        if allowed.place[allowed.members[number, k]] >= limit:
            return np.int64(allowed.skip[number, k])
    return np.int64(0)
