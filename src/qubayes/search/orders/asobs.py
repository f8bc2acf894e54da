"""`asobs` (the paper's ASO): acyclic selection ordering-based search (Scanagatta, de Campos, Corani, Zaffalon 2015).

A move tries to swap two neighbours of the order. A sweep tries all pairs, from the end of the order to the front. A
sweep without an improvement is followed by a restart at another random order.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from ...candidates import Candidates
from ...foundation.arrays import Floats, Ints, Words
from ...foundation.jit import inner, kernel
from ...foundation.random import below, random_stream
from ...foundation.words import lowest_bit
from ..run import Ending, Run, warm_up
from .order_problem import order_problem, random_order
from .walks import Advance, Pace, walk_all

EPSILON = 1e-9  # a network is better if its score is larger by more than this


@dataclass(frozen=True, slots=True)
class AcyclicSelection:
    """Random orders, acyclic selection, hill climbing by swaps of neighbours, restarts until the limit.

    Acyclic selection takes the vertices from the last of the order to the first, and gives each the best candidate set
    without any of its descendants in the graph made so far. Unlike the best set that the order allows, such a set may
    contain vertices that come later; so the network is never worse than the best one of the order. From a random order
    each swap of two neighbours that improves the network is made, in sweeps from the end to the front, until a sweep
    finds none; then the next random order begins. After a swap only vertices with other descendants than before choose
    again. Required edges are in the graph from the beginning. Orders are drawn uniformly.
    """

    name: ClassVar[str] = "asobs"
    takes: ClassVar[str] = "candidates"
    counts: ClassVar[str] = "swaps tried"

    def prepare(self) -> "AcyclicSelection":
        """Compile the kernels."""
        warm_up(AcyclicSelection)
        return self

    def __call__(self, candidates: Candidates, run: Run, /) -> Ending:
        """Search on every thread."""
        if candidates.n < 2:
            return Ending("one variable: nothing to order")
        problem = order_problem(candidates.families, candidates.scores)
        parents = candidates.families.sets_at(run.start)
        states: list[Selection] = []

        def make(number: int, seed: np.random.SeedSequence) -> Advance:
            streams, orders = seed.spawn(2)
            state = selection(candidates, random_order(parents, orders), random_stream(streams))
            states.append(state)

            def advance(moves: int, pace: Pace) -> None:
                swap_neighbours(problem, state, moves)
                run.offer(state.best)

            return advance

        ending = walk_all(run, make)
        restarts = sum(int(state.counts[RESTARTS]) for state in states)
        return Ending(ending.status, {**ending.statistics, "restarts": restarts})


class Selection(NamedTuple):
    """An order, the network that acyclic selection makes of it, and a trial network; kernels write it.

    The first plane of `children` holds the required edges and those of the vertices behind the pair to be swapped, the
    second the edges of the trial, the third the required edges alone. The first plane of `descendants` holds those
    that each vertex had when it chose its set, the second those in the trial.
    """

    order: Ints  # (n,) vertices
    choice: Ints  # (2, n) sets of the network, of the trial
    best: Ints  # (n,) sets of the best network
    children: Words  # (3, n + 1, words) bit c of row v: v is a parent of c; row n is for "no member" and scratch
    descendants: Words  # (2, n, words)
    slack: Floats  # (n + 1,) by how much the vertices before a place can still gain
    totals: Floats  # (2,) score of the network, of the best
    counts: Ints  # (3,) place of the first of the pair to be swapped next, swaps made in this sweep, restarts
    random: Words  # (2, 1) random stream


PLACE, FOUND, RESTARTS = range(3)


def selection(candidates: Candidates, order: npt.ArrayLike, random: Words) -> Selection:
    """Return the state before the first selection, which takes this order."""
    n = candidates.n
    children = np.zeros((3, n + 1, n // 64 + 1), np.uint64)
    for vertex in range(n):
        for parent in candidates.base(vertex):
            children[2, parent, vertex >> 6] |= np.uint64(1 << (vertex & 63))
    return Selection(
        order=np.array(order, np.int64),
        choice=np.zeros((2, n), np.int64),
        best=np.zeros(n, np.int64),
        children=children,
        descendants=np.zeros((2, n, n // 64 + 1), np.uint64),
        slack=np.zeros(n + 1),
        totals=np.full(2, -np.inf),
        counts=np.array([-1, 0, 0]),
        random=random,
    )


@kernel
def swap_neighbours(problem: Any, state: Any, moves: int) -> None:
    """Try this many swaps of neighbours; a restart is not counted."""
    order, counts, choice, n = state.order, state.counts, state.choice, len(state.order)
    base, trial, required = state.children[0], state.children[1], state.children[2]
    made = 0
    while made < moves:
        restart = counts[PLACE] < 0 and counts[FOUND] == 0
        if counts[PLACE] < 0:
            counts[PLACE], counts[FOUND] = n - 2, 0
            _copy(required, base)
        place = counts[PLACE]
        if restart:
            _shuffle(state.random, order, counts)
            _spoil(state.descendants[0])
            last, pair, limit = n - 1, np.int64(-1), -np.inf
        else:
            order[place], order[place + 1] = order[place + 1], order[place]
            last, pair, limit = place + 1, place, EPSILON
        _copy(base, trial)
        improved = _select(problem, state, trial, last, pair, limit) > limit
        if improved:
            _adopt(problem, state, last)
        if restart:
            continue
        counts[FOUND] += improved
        if not improved:
            order[place], order[place + 1] = order[place + 1], order[place]
        behind = order[place + 1]
        _link(problem.members, base, behind, choice[0, behind])
        counts[PLACE] = place - 1
        made += 1


@inner
def _shuffle(random: Any, order: Any, counts: Any) -> None:
    """Draw a random order; the first one is as it was given."""
    if counts[RESTARTS]:
        for k in range(len(order) - 1, 0, -1):
            other = below(random, k + 1)
            order[k], order[other] = order[other], order[k]
    counts[RESTARTS] += 1


@inner
def _spoil(descendants: Any) -> None:
    """Make each vertex its own descendant, which it cannot be, so that all choose again."""
    for vertex in range(len(descendants)):
        descendants[vertex, vertex >> 6] |= np.uint64(1) << np.uint64(vertex & 63)


@inner
def _select(problem: Any, state: Any, trial: Any, last: Any, pair: Any, limit: Any) -> Any:
    """Select sets for the trial from place `last` to the front; return the change of the score.

    Returns -inf if the change is not above the limit, or if the two vertices from place `pair` on choose as they did:
    then all before them do too.
    """
    first, scores, members, skip = problem.first, problem.scores, problem.members, problem.skip
    old, new, order, before = state.choice[0], state.choice[1], state.order, state.descendants[0]
    change = 0.0
    for place in range(last, -1, -1):
        vertex = order[place]
        found = state.descendants[1, vertex]
        _descend(trial, vertex, found)
        same = True
        for word in range(len(found)):
            same = same and found[word] == before[vertex, word]
        number = old[vertex] if same else _best_without(first, members, skip, vertex, found)
        new[vertex] = number
        change += scores[number] - scores[old[vertex]]
        if change + state.slack[place] <= limit:
            return -np.inf
        if place == pair:
            behind = order[place + 1]
            if number == old[vertex] and new[behind] == old[behind]:
                return -np.inf
        _link(members, trial, vertex, number)
    return change


@inner
def _descend(children: Any, vertex: Any, found: Any) -> None:
    """Write the descendants of the vertex."""
    words, todo = len(found), children[len(children) - 1]
    for word in range(words):
        found[word] = todo[word] = children[vertex, word]
    again = True
    while again:
        again = False
        for word in range(words):
            while todo[word]:
                child = (word << 6) + lowest_bit(todo[word])
                todo[word] &= todo[word] - np.uint64(1)
                for other in range(words):
                    fresh = children[child, other] & ~found[other]
                    found[other] |= fresh
                    todo[other] |= fresh
                    again = again or (fresh != 0 and other < word)


@inner
def _best_without(first: Any, members: Any, skip: Any, vertex: Any, descendants: Any) -> Any:
    """Return the best set of the vertex that has none of its descendants."""
    number, last = first[vertex], first[vertex + 1] - 1
    while number < last:
        jump = np.int64(0)
        for k in range(members.shape[1]):
            member = np.int64(members[number, k])
            if (descendants[member >> 6] >> np.uint64(member & 63)) & np.uint64(1) != 0:
                jump = np.int64(skip[number, k])
                break
        if jump == 0:
            return number
        number += jump
    return last


@inner
def _link(members: Any, children: Any, vertex: Any, number: Any) -> None:
    """Add the edges from the members of the set to the vertex."""
    for k in range(members.shape[1]):
        children[members[number, k], vertex >> 6] |= np.uint64(1) << np.uint64(vertex & 63)


@inner
def _copy(start: Any, end: Any) -> None:
    """Copy the edges of one plane to another."""
    for vertex in range(len(start) - 1):
        for word in range(start.shape[1]):
            end[vertex, word] = start[vertex, word]


@inner
def _adopt(problem: Any, state: Any, last: Any) -> None:
    """Make the trial, which differs up to place `last`, the network; keep it if it is the best."""
    choice, descendants, scores = state.choice, state.descendants, problem.scores
    total, slack = 0.0, 0.0
    for place in range(len(state.order)):
        vertex = state.order[place]
        if place <= last:
            choice[0, vertex] = choice[1, vertex]
            for word in range(descendants.shape[2]):
                descendants[0, vertex, word] = descendants[1, vertex, word]
        score = scores[choice[0, vertex]]
        total += score
        state.slack[place] = slack
        slack += scores[problem.first[vertex]] - score
    state.totals[0] = total
    if total > state.totals[1] + EPSILON:
        state.totals[1] = total
        for vertex in range(len(state.order)):
            state.best[vertex] = choice[0, vertex]
