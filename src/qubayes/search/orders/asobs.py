"""`asobs` (the paper's ASO): acyclic selection ordering-based search (Scanagatta, de Campos, Corani, Zaffalon 2015)."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...candidates import Candidates
from ...foundation.arrays import Floats, Ints, Words, frozen
from ...foundation.jit import allocating_kernel, inner, kernel
from ...foundation.random import below, random_stream
from ...foundation.words import popcount
from ..run import Ending, Run
from .orders import OrderProblem, order_problem
from .walks import Pace, random_order, walk_all

EPSILON = 1e-9  # by more than this a network is better


@dataclass(frozen=True, slots=True)
class AcyclicSelection:
    """Random orders, acyclic selection, hill climbing by swaps of neighbours, restarts until the limit.

    Acyclic selection takes the vertices from the last of the order to the first, and gives each the best candidate set
    without any of its descendants in the graph made so far. Unlike the best set that the order allows, such a set may
    hold vertices that come later; so the network is never worse than the best one of the order. From a random order
    each swap of two neighbours that improves the network is made, in sweeps from the end to the front, until a sweep
    finds none; then the next random order begins. After a swap only vertices with other descendants than before choose
    again. Required edges are in the graph from the beginning. Orders are drawn uniformly.
    """

    name: ClassVar[str] = "asobs"
    takes: ClassVar[str] = "candidates"
    counts: ClassVar[str] = "swaps tried"

    def __call__(self, candidates: Candidates, run: Run, /) -> Ending:
        """Search on every thread."""
        if candidates.n < 2:
            return Ending("one variable: nothing to order")
        problem = order_problem(candidates.families, frozen(candidates.scores[:]))
        parents = candidates.families.sets_at(run.start)
        walks: list[_Selector] = []

        def make(number: int, seed: np.random.SeedSequence) -> _Selector:
            streams, orders = seed.spawn(2)
            state = new_selection(candidates, random_order(parents, orders), random_stream(streams))
            walks.append(_Selector(problem, run, state))
            return walks[-1]

        ending = walk_all(run, make)
        restarts = sum(int(walk.state.counts[RESTARTS]) for walk in walks)
        return Ending(ending.sentence, {**ending.figures, "restarts": restarts})


class Selection(NamedTuple):
    """An order, the network that acyclic selection makes of it, and a trial; kernels write it.

    Plane 0 of `kids` holds the edges of the required sets and of the vertices behind the pair to be swapped, plane 1
    those of the trial; plane 2 the required ones alone. Plane 0 of `below` holds the descendants that each vertex had
    when it chose, plane 1 those in the trial.
    """

    order: Ints  # (n,) vertices
    choice: Ints  # (2, n) sets of the network, of the trial
    best: Ints  # (n,) sets of the best network
    kids: Words  # (3, n + 1, words) bit c of row v: v is a parent of c
    below: Words  # (2, n, words)
    slack: Floats  # (n + 1,) by how much the vertices before a place can still gain
    totals: Floats  # (2,) score of the network, of the best
    counts: Ints  # (3,) place of the first of the pair to be swapped next, whether the sweep found a swap, restarts
    random: Words  # (2, 1)


PLACE, FOUND, RESTARTS = range(3)
BASE, TRIAL, REQUIRED = range(3)


def new_selection(candidates: Candidates, order: tuple[int, ...], random: Words) -> Selection:
    """The state before the first selection, which takes this order."""
    n = candidates.n
    kids = np.zeros((3, n + 1, n // 64 + 1), np.uint64)
    for vertex in range(n):
        for parent in candidates.base(vertex):
            kids[REQUIRED, parent, vertex >> 6] |= np.uint64(1 << (vertex & 63))
    return Selection(
        np.array(order, np.int64),
        np.zeros((2, n), np.int64),
        np.zeros(n, np.int64),
        kids,
        np.zeros((2, n, n // 64 + 1), np.uint64),
        np.zeros(n + 1),
        np.full(2, -np.inf),
        np.array([-1, 0, 0]),
        random,
    )


class _Selector:
    """One walk over orders."""

    def __init__(self, problem: OrderProblem, run: Run, state: Selection) -> None:
        self.problem, self.run, self.state = problem, run, state

    def advance(self, moves: int, pace: Pace) -> None:
        """Try this many swaps, and offer the best network if it is new."""
        before = self.state.totals[1]
        swap_neighbours(self.problem, self.state, moves)
        if self.state.totals[1] > before:
            self.run.offer(self.state.best)


@allocating_kernel
def swap_neighbours(problem: Any, state: Any, moves: int) -> None:
    """Try this many swaps; a sweep without an improvement is followed by the next random order."""
    order, counts = state.order, state.counts
    n = len(order)
    for _ in range(moves):
        if counts[PLACE] < 0:
            if counts[FOUND] == 0:
                _restart(problem, state)
            _copy_plane(state.kids, REQUIRED, BASE)
            counts[PLACE], counts[FOUND] = n - 2, 0
        place = counts[PLACE]
        order[place], order[place + 1] = order[place + 1], order[place]
        _copy_plane(state.kids, BASE, TRIAL)
        change = select(problem, state, place + 1, place, EPSILON)
        if change > EPSILON:
            _adopt(problem, state, place + 1)
            counts[FOUND] = 1
        else:
            order[place], order[place + 1] = order[place + 1], order[place]
        behind = order[place + 1]
        _link(problem, state.kids, BASE, behind, state.choice[0, behind])
        counts[PLACE] = place - 1


@inner
def _restart(problem: Any, state: Any) -> None:
    """Select for a random order; the first one is as it was given."""
    order = state.order
    n = len(order)
    if state.counts[RESTARTS]:
        for k in range(n - 1, 0, -1):
            other = below(state.random, k + 1)
            order[k], order[other] = order[other], order[k]
    state.counts[RESTARTS] += 1
    for vertex in range(n):
        state.below[0, vertex, vertex >> 6] |= np.uint64(1) << np.uint64(vertex & 63)  # no vertex is below itself
    _copy_plane(state.kids, REQUIRED, TRIAL)
    select(problem, state, n - 1, -1, -np.inf)
    _adopt(problem, state, n - 1)


@kernel
def select(problem: Any, state: Any, last: Any, pair: Any, limit: Any) -> Any:
    """The change of the score by acyclic selection up to place `last`, into the trial; -inf if not above the limit.

    If the two vertices from place `pair` on choose as they did, so will all before them: -inf.
    """
    choice, below, scores = state.choice, state.below, problem.scores
    change = 0.0
    for place in range(last, -1, -1):
        vertex = state.order[place]
        _descend(state.kids, vertex, below[TRIAL, vertex])
        same = True
        for word in range(below.shape[2]):
            same = same and below[TRIAL, vertex, word] == below[0, vertex, word]
        number = choice[0, vertex] if same else _best_without(problem, vertex, below[TRIAL, vertex])
        choice[TRIAL, vertex] = number
        change += scores[number] - scores[choice[0, vertex]]
        if change + state.slack[place] <= limit:
            return -np.inf
        if place == pair:
            behind = state.order[place + 1]
            if number == choice[0, vertex] and choice[TRIAL, behind] == choice[0, behind]:
                return -np.inf
        _link(problem, state.kids, TRIAL, vertex, number)
    return change


@inner
def _descend(kids: Any, vertex: Any, found: Any) -> None:
    """Write the descendants of the vertex in the trial."""
    words, todo = kids.shape[2], kids[TRIAL, kids.shape[1] - 1]
    for word in range(words):
        found[word] = todo[word] = kids[TRIAL, vertex, word]
    again = True
    while again:
        again = False
        for word in range(words):
            while todo[word]:
                lowest = todo[word] & (~todo[word] + np.uint64(1))
                todo[word] ^= lowest
                child = (word << 6) + popcount(lowest - np.uint64(1))
                for other in range(words):
                    fresh = kids[TRIAL, child, other] & ~found[other]
                    found[other] |= fresh
                    todo[other] |= fresh
                    again = again or (fresh != 0 and other < word)


@inner
def _best_without(problem: Any, vertex: Any, below: Any) -> Any:
    """The best set of the vertex that has none of its descendants."""
    number, last = problem.first[vertex], problem.first[vertex + 1] - 1
    while number < last:
        jump = np.int64(0)
        for k in range(problem.members.shape[1]):
            member = np.int64(problem.members[number, k])
            if (below[member >> 6] >> np.uint64(member & 63)) & np.uint64(1) != 0:
                jump = np.int64(problem.skip[number, k])
                break
        if jump == 0:
            return number
        number = min(last, number + jump)
    return last


@inner
def _link(problem: Any, kids: Any, plane: Any, vertex: Any, number: Any) -> None:
    """Put in the edges from the members of the set to the vertex; the last row takes those of "no member"."""
    for k in range(problem.members.shape[1]):
        kids[plane, problem.members[number, k], vertex >> 6] |= np.uint64(1) << np.uint64(vertex & 63)


@inner
def _copy_plane(kids: Any, start: Any, end: Any) -> None:
    """Write the edges of one plane over another's."""
    for vertex in range(kids.shape[1] - 1):
        for word in range(kids.shape[2]):
            kids[end, vertex, word] = kids[start, vertex, word]


@inner
def _adopt(problem: Any, state: Any, last: Any) -> None:
    """Make the trial, which differs up to place `last`, the network; keep it if it is the best."""
    n, total, slack = len(state.order), 0.0, 0.0
    for place in range(n):
        vertex = state.order[place]
        if place <= last:
            state.choice[0, vertex] = state.choice[TRIAL, vertex]
            for word in range(state.below.shape[2]):
                state.below[0, vertex, word] = state.below[TRIAL, vertex, word]
        score = problem.scores[state.choice[0, vertex]]
        total += score
        state.slack[place] = slack
        slack += problem.scores[problem.first[vertex]] - score
    state.totals[0] = total
    if total > state.totals[1] + EPSILON:
        state.totals[1] = total
        for vertex in range(n):
            state.best[vertex] = state.choice[0, vertex]
