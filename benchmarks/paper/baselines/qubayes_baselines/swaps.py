"""Searches over orders by swaps: `order-sa` (the paper's SAO) and `asobs` (the paper's ASO).

order-sa: simulated annealing. A move tries to swap two random places of the order; each vertex
takes its best candidate set among the vertices before it.

asobs: acyclic selection ordering-based search (Scanagatta, de Campos, Corani, Zaffalon 2015). A
    move tries to swap two neighbours of the order. A sweep tries all pairs, from the end of the
    order to the front. A sweep without an improvement is followed by a restart at another random
    order."""

from collections.abc import Callable
from dataclasses import dataclass
from math import log
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from qubayes import SettingError
from qubayes.candidates import Candidates
from qubayes.foundation.arrays import Floats, Ints, SmallInts, Words
from qubayes.foundation.jit import inner, kernel
from qubayes.foundation.random import below, random_stream, uniform
from qubayes.foundation.words import lowest_bit
from qubayes.search.orders import OrderProblem, holds, order_problem, random_order
from qubayes.search.run import Ending, Run, warm_up

from .walks import Advance, Pace, walk_all

EPSILON = 1e-9  # in `asobs` a network is better if its score is larger by more than this


def _walk_orders(
    run: Run,
    begin: Callable[[tuple[int, ...], Words], Any],
    advance: Callable[[OrderProblem, Any, int, Pace], None],
) -> tuple[Ending, list[Any]]:
    """Advance one state for each walk until the limit, from random orders; return the ending and the states.

    `begin` makes a state of an order and a random stream; its `best` is offered after every slice.
    """
    if run.candidates.n < 2:
        return Ending("one variable: nothing to order"), []
    problem = order_problem(run.candidates.families, run.candidates.scores)
    parents, states = run.candidates.families.sets_at(run.start), list[Any]()

    def make(number: int, seed: np.random.SeedSequence) -> Advance:
        streams, orders = seed.spawn(2)
        state = begin(random_order(parents, orders), random_stream(streams))
        states.append(state)

        def advance_and_offer(moves: int, pace: Pace) -> None:
            advance(problem, state, moves, pace)
            run.offer(state.best)

        run.offer(state.best)
        return advance_and_offer

    return walk_all(run, make), states


@dataclass(frozen=True, slots=True)
class OrderAnnealing:
    """Swap two random places of the order; each vertex takes its best candidate set among the vertices before it.

    A swap that changes the score by d is accepted with probability exp(d / T), T = hot^(1 - t)
    where t is the part of the time (or of the moves) that is over: the schedule of Appendix D.3 of
    the paper. Only the two vertices, and those of their children that lie between the two places,
    are scored again."""

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
            raise SettingError(
                "order-sa cools down over its limit; give it a time limit or a number of moves"
            )

        def advance(problem: OrderProblem, state: SwapState, moves: int, pace: Pace) -> None:
            swap_places(problem, state, moves, log(self.hot), pace.done, pace.per_move)

        return _walk_orders(
            run, lambda order, random: swap_state(candidates, order, random), advance
        )[0]


class SwapState(NamedTuple):
    """An order, its candidate sets and the best sets so far; kernels write it."""

    order: SmallInts  # (n,) vertices
    # (n + 1,) of each vertex in the order; the last is -1, the place of "no member"
    place: SmallInts
    choice: Ints  # (n,) the best allowed set of each vertex
    best: Ints  # (n,) the sets of the best order seen
    totals: Floats  # (2,) score of `choice`, score of `best`
    random: Words  # (2, 1) random stream
    new: Ints  # (n,) scratch: the set of a vertex after the swap; -1 if it stays the same
    touched: Ints  # (n,) scratch: the vertices whose set changes


def swap_state(candidates: Candidates, order: npt.ArrayLike, random: Words) -> SwapState:
    """Return the state at this order, which must allow every base."""
    n, vertices = candidates.n, np.array(order, np.int32)
    place = np.full(n + 1, -1, np.int32)
    place[vertices] = np.arange(n, dtype=np.int32)
    choice = candidates.families.best_of_order(vertices)
    return SwapState(
        order=vertices,
        place=place,
        choice=choice,
        best=choice.copy(),
        totals=np.full(2, candidates.scores[choice].sum()),
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
def swap_places(
    problem: Any, state: Any, moves: int, log_hot: float, done: float, per_move: float
) -> None:
    """Try this many swaps of two random places."""
    order, place, choice, new = state.order, state.place, state.choice, state.new
    n = len(order)
    for move in range(moves):
        temperature = np.exp(log_hot * max(0.0, 1.0 - done - move * per_move))
        one, two = below(state.random, n), below(state.random, n - 1)
        two += two >= one
        low, high = min(one, two), max(one, two)
        # the swap is accepted if the score changes by more
        threshold = temperature * np.log(uniform(state.random))
        up, down = order[low], order[high]
        place[up], place[down] = high, low
        touched, change = _rescore(problem, state, up, down, threshold)
        accepted = change >= threshold
        if accepted:
            order[low], order[high] = down, up
            state.totals[0] += change
        else:
            place[up], place[down] = low, high
        for k in range(touched):
            vertex = state.touched[k]
            if accepted:
                choice[vertex] = new[vertex]
            new[vertex] = -1
        if state.totals[0] > state.totals[1] + 1e-7:
            state.totals[1] = state.totals[0]
            for vertex in range(n):
                state.best[vertex] = choice[vertex]


@inner
def _rescore(problem: Any, state: Any, up: Any, down: Any, threshold: Any) -> Any:
    """Return (vertices with a new set, change of the score) once `up` has its later and `down` its earlier place.

    The places are those after the swap; the sets are written to `new`. Ends with -inf once the
    change is below the threshold and can only become worse."""
    first, scores, place, choice, new = (
        problem.first,
        problem.scores,
        state.place,
        state.choice,
        state.new,
    )
    allowed = _Allowed(problem.members, problem.skip, place)
    low, high = np.int64(place[down]), np.int64(place[up])
    new[down] = _first_allowed(allowed, choice[down], first[down + 1], low)
    new[up] = _first_allowed(allowed, first[up], choice[up], high)
    state.touched[0], state.touched[1], touched = down, up, 2
    if new[down] == first[down + 1]:
        return touched, -np.inf
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
        if (
            low < place[child] < high
            and new[child] < 0
            and holds(problem.members, choice[child], up)
        ):
            number = _first_allowed(
                allowed, choice[child], first[child + 1], np.int64(place[child])
            )
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


@dataclass(frozen=True, slots=True)
class AcyclicSelection:
    """Random orders, acyclic selection, hill climbing by swaps of neighbours, restarts until the limit.

    Acyclic selection takes the vertices from the last of the order to the first, and gives each the
    best candidate set without any of its descendants in the graph made so far. Unlike the best set
    that the order allows, such a set may contain vertices that come later; so the network is never
    worse than the best one of the order. From a random order each swap of two neighbours that
    improves the network is made, in sweeps from the end to the front, until a sweep finds none;
    then the next random order begins. After a swap only vertices with other descendants than before
    choose again. Required edges are in the graph from the beginning. Orders are drawn uniformly."""

    name: ClassVar[str] = "asobs"
    takes: ClassVar[str] = "candidates"
    counts: ClassVar[str] = "swaps tried"

    def prepare(self) -> "AcyclicSelection":
        """Compile the kernels."""
        warm_up(AcyclicSelection)
        return self

    def __call__(self, candidates: Candidates, run: Run, /) -> Ending:
        """Search on every thread."""

        def advance(problem: OrderProblem, state: Selection, moves: int, pace: Pace) -> None:
            swap_neighbours(problem, state, moves)

        ending, states = _walk_orders(
            run, lambda order, random: selection(candidates, order, random), advance
        )
        restarts = sum(int(state.counts[RESTARTS]) for state in states)
        return Ending(ending.status, {**ending.statistics, "restarts": restarts} if states else {})


class Selection(NamedTuple):
    """An order, the network that acyclic selection makes of it, and a trial network; kernels write it.

    The first plane of `children` holds the required edges and those of the vertices behind the pair
    to be swapped, the second the edges of the trial, the third the required edges alone. The first
    plane of `descendants` holds those that each vertex had when it chose its set, the second those
    in the trial."""

    order: Ints  # (n,) vertices
    choice: Ints  # (2, n) sets of the network, of the trial
    best: Ints  # (n,) sets of the best network
    # (3, n + 1, words) bit c of row v: v is a parent of c; row n is for "no member" and scratch
    children: Words
    descendants: Words  # (2, n, words)
    slack: Floats  # (n,) by how much the vertices before a place can still gain
    totals: Floats  # (2,) score of the network, of the best
    # (3,) place of the first of the pair to be swapped next, swaps made in this sweep, restarts
    counts: Ints
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
        best=candidates.families.vertex_start[1:] - 1,
        children=children,
        descendants=np.zeros((2, n, n // 64 + 1), np.uint64),
        slack=np.zeros(n),
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
            # the first order is the given one
            for k in range(n - 1 if counts[RESTARTS] else 0, 0, -1):
                other = below(state.random, k + 1)
                order[k], order[other] = order[other], order[k]
            counts[RESTARTS] += 1
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
def _select(problem: Any, state: Any, trial: Any, last: Any, pair: Any, limit: Any) -> Any:
    """Select sets for the trial from place `last` to the front; return the change of the score.

    Only vertices with other descendants than before choose again; all of them if `pair` is
    negative. Returns -inf if the change is not above the limit, or if the two vertices from place
    `pair` on choose as they did: then all before them do too."""
    first, scores, members, skip = problem.first, problem.scores, problem.members, problem.skip
    old, new, order, before = state.choice[0], state.choice[1], state.order, state.descendants[0]
    change = 0.0
    for place in range(last, -1, -1):
        vertex = order[place]
        found = state.descendants[1, vertex]
        _descend(trial, vertex, found)
        same = pair >= 0
        for word in range(len(found)):
            same = same and found[word] == before[vertex, word]
        number = old[vertex]
        if not same:
            number, end, blocked = first[vertex], first[vertex + 1] - 1, True
            while blocked and number < end:
                blocked = False
                for k in range(members.shape[1]):
                    member = np.int64(members[number, k])
                    if (found[member >> 6] >> np.uint64(member & 63)) & np.uint64(1) != 0:
                        number, blocked = min(number + skip[number, k], end), True
                        break
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
