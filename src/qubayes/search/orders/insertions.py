"""Annealing over orders of the vertices by insertion moves; each vertex takes its best allowed set.

A candidate set is allowed if all its members come before the vertex. One move takes a vertex out of
the order and puts it back at a place that is drawn with probability proportional to exp(score /
temperature): heat bath, drawn as the maximum of score + temperature * noise over all places, where
the noise has Gumbel's distribution. Two facts make all places as cheap as one:

- the set of another vertex depends only on whether the moved one comes before it, not on where
  exactly;
- a set of the moved vertex is allowed from the place of its last member on, so one pass through its
  sets, best first, gives its score at every place, and ends as soon as no worse set can win the
  draw.

The kernel unpacks its two tuples at once: LLVM takes seconds for what is read from a tuple of
twenty arrays in the middle of a loop, or passed on with it."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...foundation.arrays import Bools, Floats, Ints, SmallInts, Words
from ...foundation.jit import inlined, inner, kernel
from ...foundation.random import below, next_word, random_stream
from .walks import OrderProblem, holds

_NOISES = 1 << 14
# A sample of Gumbel's distribution in random order. Moves read it from a random place on.
_NOISE = (
    np.random.default_rng(0)
    .permutation(-np.log(-np.log((np.arange(_NOISES) + 0.5) / _NOISES)))
    .astype(np.float32)
)
_MOST_NOISE = float(_NOISE.max())
_REGROUP_EVERY = 8  # moves
_NEVER = np.zeros(1, np.bool_)  # a flag that nobody sets
_SLICE_WORK = 10**10  # moves times sets between two looks at the clock, about a second
# a score that was summed up move by move is new only if it is larger by more than this
_ROUNDING = 1e-7


class OrderState(NamedTuple):
    """An order, its candidate sets and the best order so far; kernels write it."""

    order: SmallInts  # (n,) vertices
    # (n + 1,) of each vertex in the order; the last is -1, the place of "no member"
    place: SmallInts
    choice: Ints  # (n,) the best allowed set of each vertex
    # (2,) score of `order`, -inf if `place` and `choice` are to be computed; score of `best`
    totals: Floats
    best: SmallInts  # (n,) the best order seen
    random: Words  # (2, 1) random stream
    noise: npt.NDArray[np.float32]  # (2^14,) a sample of Gumbel's distribution in random order
    values: Floats  # (n,) scratch: by place, score of the other vertices plus noise
    reach: Floats  # (n,) scratch: the largest value up to a place
    other: Ints  # (n,) scratch: the set of a vertex once the moved one has passed it
    passed: SmallInts  # (n,) scratch: the vertices whose set changes if the moved one passes them
    marked: Bools  # (n + 1,) scratch: vertices that may have a better set


class Ordered(NamedTuple):
    """An order with the best sets that it allows and their score."""

    order: Ints  # (n,) vertices
    choice: Ints  # (n,) the best allowed set of each vertex
    score: float


def order_state(
    problem: OrderProblem, order: npt.ArrayLike, seed: int | np.random.SeedSequence = 0
) -> OrderState:
    """Return the state at this order, which must allow every base, with its own random stream."""
    n, vertices = problem.n, np.array(order, np.int32)
    state = OrderState(
        order=vertices,
        place=np.full(n + 1, -1, np.int32),
        choice=np.empty(n, np.int64),
        totals=np.full(2, -np.inf),
        best=vertices.copy(),
        random=random_stream(seed),
        noise=_NOISE,
        values=np.empty(n),
        reach=np.empty(n),
        other=np.empty(n, np.int64),
        passed=np.empty(n, np.int32),
        marked=np.empty(n + 1, np.bool_),
    )
    restart_at(problem, state, vertices)
    return state


def restart_at(problem: OrderProblem, state: OrderState, order: npt.ArrayLike) -> None:
    """Replace the order; the best order so far and the random stream are kept."""
    state.order[:], state.totals[0] = order, -np.inf
    anneal_order(problem, state, 1.0, 1.0, 0, _NEVER)


def best_of(problem: OrderProblem, order: npt.ArrayLike) -> Ordered:
    """Return the order with each vertex's best allowed set, and their exactly rounded score."""
    state = order_state(problem, order)
    return Ordered(
        state.order.astype(np.int64), state.choice, math.fsum(problem.scores[state.choice].tolist())
    )


def improve(
    problem: OrderProblem,
    order: npt.ArrayLike,
    moves: int,
    *,
    seed: int = 0,
    hot: float = 1.0,
    cold: float = 0.1,
    over: Callable[[], bool] = lambda: False,
    slice_work: int = _SLICE_WORK,
) -> Ordered:
    """Return the best order seen in this many moves from `order`, while the temperature falls.

    A move takes about half a microsecond with ten thousand sets, some 30 µs with a million. The
    search ends early once `over` returns true, which is asked about once a second."""
    state = order_state(problem, order, seed)
    cooling = (cold / hot) ** (1 / max(1, moves))
    made = 0
    slice_moves = max(1, slice_work // len(problem.scores))
    while made < moves and not over():
        now = min(slice_moves, moves - made)
        made += anneal_order(problem, state, hot * cooling**made, cooling, now, _NEVER)
    return best_of(problem, state.best)


# Parts of an `OrderProblem` and of an `OrderState`, as the steps of a move use them: a step gets
# few arrays.


class _Sets(NamedTuple):
    first: Ints
    scores: Floats
    members: Any


class _Edges(NamedTuple):
    start: Ints
    child: SmallInts
    list_start: Ints
    list_stop: Ints
    lists: SmallInts


class _Now(NamedTuple):
    """The order and its sets."""

    order: SmallInts
    place: SmallInts
    choice: Ints


class _Draft(NamedTuple):
    """What a move would change."""

    values: Floats
    reach: Floats
    other: Ints
    passed: SmallInts


class _Noise(NamedTuple):
    """The noise of one move."""

    sample: Any
    offset: int
    temperature: float


@kernel
def anneal_order(
    problem: Any, state: Any, temperature: float, cooling: float, moves: int, stop: Any
) -> Any:
    """Make this many moves unless stop[0] is set; return the number made."""
    sets = _Sets(problem.first, problem.scores, problem.members)
    edges = _Edges(
        problem.edge_start, problem.child, problem.list_start, problem.list_stop, problem.lists
    )
    now = _Now(state.order, state.place, state.choice)
    draft = _Draft(state.values, state.reach, state.other, state.passed)
    random = state.random
    totals = state.totals
    n = len(now.order)
    if totals[0] == -np.inf:
        totals[0] = _start(sets, now, state.marked)
        _keep_better(now.order, state.best, totals, 0.0)
    next_vertex = np.int64(-1)
    for move in range(moves):
        if stop[0]:
            return move
        vertex = next_vertex if next_vertex >= 0 else below(random, n)
        next_vertex = np.int64(-1)
        noise = _Noise(state.noise, below(random, _NOISES), temperature)
        level = sets.scores[now.choice[vertex]] + _noise_at(noise, np.int64(now.place[vertex]))
        high, count = _propose(vertex, level, temperature, sets, edges, now, draft)
        _sum_values(np.int64(now.place[vertex]), high, noise, draft)
        target, chosen = _draw_place(vertex, high, level, sets, now, draft)
        if target != now.place[vertex]:
            totals[0] = _move(vertex, target, chosen, count, totals[0], sets, now, draft)
        if move % _REGROUP_EVERY == _REGROUP_EVERY - 1:
            next_vertex = below(random, n)
            word = next_word(random, 0)
            late = word >> np.uint64(63) == 0
            _mark(sets.members, now.choice, state.marked, next_vertex, late, word >> np.uint64(16))
            regroup(
                sets.members, now.order, now.place, now.choice, state.marked, draft.passed, late
            )
            totals[0] += _choose_best(sets, now.place, now.choice, state.marked)
        _keep_better(now.order, state.best, totals, _ROUNDING)
        temperature *= cooling
    return moves


@inner
def _start(sets: Any, now: Any, marked: Any) -> Any:
    """Set the places and the best allowed sets of the order; return its score."""
    for k in range(len(now.order)):
        now.place[now.order[k]] = k
        now.choice[k] = sets.first[k]
        marked[k] = True
    _choose_best(sets, now.place, now.choice, marked)
    total = 0.0
    for k in range(len(now.order)):
        total += sets.scores[now.choice[k]]
    return total


@inner
def _noise_at(noise: Any, place: Any) -> Any:
    """Return the noise of a place."""
    return noise.temperature * noise.sample[(noise.offset + place) & (_NOISES - 1)]


@inlined
def _propose(
    vertex: Any, level: Any, temperature: Any, sets: Any, edges: Any, now: Any, draft: Any
) -> Any:
    """Draft what changes if the vertex moves: values[place], `other` sets of the children `passed`.

    A child that comes before the vertex can only gain a better set with the vertex in it; a child
    that comes after loses its set if the vertex is in it. Returns the last place that may be drawn,
    and the number of children passed."""
    place = now.place
    n = len(now.order)
    here = np.int64(place[vertex])
    # places that cost more are not drawn
    slack = sets.scores[sets.first[vertex]] + temperature * _MOST_NOISE - level
    high = n - 1
    count = 0
    for k in range(n):
        draft.values[k] = 0.0
    for edge in range(edges.start[vertex], edges.start[vertex + 1]):
        child = np.int64(edges.child[edge])
        there = place[child]
        old = now.choice[child]
        new = old
        if there < here:
            numbers = edges.lists[edges.list_start[edge] : edges.list_stop[edge]]
            new = _gained(sets.members, place, numbers, vertex, there, old)
        elif there <= high and holds(sets.members, old, vertex):
            place[vertex] = n
            new = _next_best(sets, place, child, old, slack)
            place[vertex] = here
            if new < 0:
                high = there - 1
                new = old
        if new != old:
            draft.values[there] = sets.scores[new] - sets.scores[old]
            draft.other[child] = new
            draft.passed[count] = child
            count += 1
    return high, count


@inlined
def _move(
    vertex: Any, target: Any, chosen: Any, count: Any, total: Any, sets: Any, now: Any, draft: Any
) -> Any:
    """Move the vertex; the children that it passes get their other sets. Return the new score."""
    scores = sets.scores
    here = np.int64(now.place[vertex])
    low = min(here, target)
    high = max(here, target)
    total += scores[chosen] - scores[now.choice[vertex]]
    now.choice[vertex] = chosen
    for k in range(count):
        child = draft.passed[k]
        if low <= now.place[child] <= high:
            total += scores[draft.other[child]] - scores[now.choice[child]]
            now.choice[child] = draft.other[child]
    _shift(now.order, now.place, here, target)
    return total


@inner
def _allowed(members: Any, place: Any, number: Any, without: Any, limit: Any) -> Any:
    """Return whether all members of the set, except the vertex `without`, stand below the limit."""
    for k in range(members.shape[1]):
        member = members[number, k]
        if member != without and place[member] >= limit:
            return False
    return True


@inner
def _gained(members: Any, place: Any, numbers: Any, vertex: Any, limit: Any, old: Any) -> Any:
    """Return the first set before `old` that is allowed with the vertex in front; else old."""
    for k in range(len(numbers)):
        number = np.int64(numbers[k])
        if number >= old:
            break
        if _allowed(members, place, number, vertex, limit):
            return number
    return old


@inner
def _next_best(sets: Any, place: Any, child: Any, old: Any, slack: Any) -> Any:
    """Return the best allowed set of the child after `old`; -1 if none costs at most `slack`."""
    number = old + 1
    while number < sets.first[child + 1] and sets.scores[old] - sets.scores[number] <= slack:
        if _allowed(sets.members, place, number, child, place[child]):
            return number
        number += 1
    return np.int64(-1)


@inlined
def _sum_values(here: Any, high: Any, noise: Any, draft: Any) -> None:
    """Sum the values from `here` outwards, so that each counts all that is passed; add noise.

    reach[k] is the largest value up to k.
    """
    values = draft.values
    for k in range(here + 1, high + 1):
        values[k] += values[k - 1]
    for k in range(here - 1, -1, -1):
        values[k] += values[k + 1]
    most = -np.inf
    for k in range(high + 1):
        values[k] += _noise_at(noise, k)
        most = max(most, values[k])
        draft.reach[k] = most


@inlined
def _draw_place(vertex: Any, high: Any, level: Any, sets: Any, now: Any, draft: Any) -> Any:
    """Return the vertex's (place, set) with the largest sum of score and noise; now it is `level`.

    A set is allowed from `begin` on. From `end` on a better set is allowed: these places are done.
    """
    values = draft.values
    target: Any = np.int64(now.place[vertex])
    chosen = now.choice[vertex]
    number = sets.first[vertex]
    end = high + 1
    while (
        end > 0
        and number < sets.first[vertex + 1]
        and sets.scores[number] + draft.reach[end - 1] > level
    ):
        begin = _first_place(sets.members[number], vertex, now.place)
        for k in range(begin, end):
            if sets.scores[number] + values[k] > level:
                level = sets.scores[number] + values[k]
                target = k
                chosen = number
        end = min(begin, end)
        number += 1
    return target, chosen


@inner
def _first_place(members: Any, vertex: Any, place: Any) -> Any:
    """Return the first place of the vertex, once taken out, behind all these members."""
    begin = np.int64(0)
    for k in range(len(members)):
        last = np.int64(place[members[k]])
        begin = max(begin, last + 1 if last < place[vertex] else last)
    return begin


@inner
def _shift(order: Any, place: Any, here: Any, target: Any) -> None:
    """Move the vertex at one place of the order to another place."""
    vertex, step = order[here], 1 if target > here else -1
    for k in range(here, target, step):
        order[k] = order[k + step]
        place[order[k]] = k
    order[target] = vertex
    place[vertex] = target


@inner
def _mark(members: Any, choice: Any, marked: Any, vertex: Any, parents: Any, word: Any) -> None:
    """Mark the vertex and some of its parents, or children, selected by the bits of the word."""
    for other in range(len(choice)):
        child = vertex if parents else other
        parent = other if parents else vertex
        near = holds(members, choice[child], parent)
        drawn = (word >> np.uint64(other & 31)) & np.uint64(1) == 1
        marked[other] = other == vertex or (near and drawn)
    marked[len(choice)] = False


@inner
def regroup(
    members: Any, order: Any, place: Any, choice: Any, marked: Any, passed: Any, late: Any
) -> None:
    """Move marked vertices with descendants to the end (`late`), or with ancestors to the front.

    Every vertex keeps its set; `marked` become those that may have a better one now. In most orders
    of a network a vertex with many descendants comes before one with many ancestors, so single
    moves seldom find the few orders that allow more: the vertex behind most that are not its
    descendants, or just behind children that may become parents."""
    n = len(order)
    start = 0
    for k in range(n):
        start = k if marked[order[k]] else start
    _mark_relatives(members, order, choice, marked, late)
    held = 0
    free = 0
    for k in range(n):
        moved = order[k]
        behind = marked[moved] == late
        marked[moved] = behind and (late or k < start)
        if behind:
            passed[held] = moved
            held += 1
        else:
            order[free] = moved
            free += 1
    for k in range(held):
        order[free + k] = passed[k]
    for k in range(n):
        place[order[k]] = k


@inlined
def _mark_relatives(members: Any, order: Any, choice: Any, marked: Any, late: Any) -> None:
    """Mark the descendants of marked vertices (`late`), or their ancestors."""
    n = len(order)
    for step in range(n):
        relative = order[step if late else n - 1 - step]
        for k in range(members.shape[1]):
            member = members[choice[relative], k]
            if late:
                marked[relative] |= marked[member]
            elif member < n:
                marked[member] |= marked[relative]


@inner
def _choose_best(sets: Any, place: Any, choice: Any, marked: Any) -> Any:
    """Give each marked vertex its best allowed set; return the gain of the score."""
    gain = 0.0
    for vertex in range(len(choice)):
        if marked[vertex]:
            number, last = sets.first[vertex], sets.first[vertex + 1] - 1
            while number < last and not _allowed(
                sets.members, place, number, vertex, place[vertex]
            ):
                number += 1
            gain += sets.scores[number] - sets.scores[choice[vertex]]
            choice[vertex] = number
    return gain


@inner
def _keep_better(order: Any, best: Any, totals: Any, margin: float) -> None:
    """Make the order the best one if it scores more than that by the margin."""
    if totals[0] > totals[1] + margin:
        totals[1] = totals[0]
        for k in range(len(order)):
            best[k] = order[k]
