"""The kernels of the search over orders: a vertex is lifted out and put back where a draw over all places says.

They take an `OrderProblem` and an `OrderState`, unpacked at once: what is read from a tuple of twenty arrays in the
middle of a loop, or handed on with it, takes LLVM seconds.
"""

from typing import Any, NamedTuple

import numpy as np

from ...foundation.arrays import Floats, Ints
from ...foundation.jit import inner, kernel
from ...foundation.random import below, next_word

NOISES = 1 << 14
_MOST_NOISE = 10.4  # -log(-log(1 - 2^-15)) and no less
_REGROUP_EVERY = 8  # moves
_ROUNDING = 1e-7  # a score that was summed up move by move is new only if it is larger by more than this


class _Sets(NamedTuple):
    """Three arrays of an `OrderProblem`."""

    first: Ints
    scores: Floats
    members: Any


@kernel
def settle(problem: Any, state: Any) -> None:
    """Give each vertex its place and its best allowed set, and sum the score afresh; keep the order if it is best."""
    order, place, choice = state.order, state.place, state.choice
    sets = _Sets(problem.first, problem.scores, problem.members)
    for k in range(len(order)):
        place[order[k]] = k
    score = 0.0
    for vertex in range(len(order)):
        choice[vertex] = _best_allowed(sets, place, vertex)
        score += sets.scores[choice[vertex]]
    state.totals[0] = score
    if score > state.totals[1]:
        _keep(order, state.best, state.totals)


@inner
def _best_allowed(sets: Any, place: Any, vertex: Any) -> Any:
    """The best set of the vertex whose members all come before it."""
    number, last = sets.first[vertex], sets.first[vertex + 1] - 1
    while number < last and not _allowed(sets.members, place, number, vertex, place[vertex]):
        number += 1
    return number


@inner
def _allowed(members: Any, place: Any, number: Any, without: Any, limit: Any) -> Any:
    """Whether the members of the set, one vertex left out of account, all have places below the limit."""
    for k in range(members.shape[1]):
        member = members[number, k]
        if member != without and place[member] >= limit:
            return False
    return True


@inner
def _holds(members: Any, number: Any, vertex: Any) -> Any:
    """Whether the vertex is a member of the set."""
    held = False
    for k in range(members.shape[1]):
        held |= members[number, k] == vertex
    return held


@kernel
def wander(problem: Any, state: Any, temperature: Any, cooling: Any, moves: Any, stop: Any) -> Any:
    """Make this many moves unless stop[0] is set; return the number made. Each cools the next by the factor.

    A child of the lifted vertex that comes before it can only win a set with the vertex in it, better than its own; a
    child that comes after loses its set if the vertex is in it. `passed` are those whose set would change, `other`
    what it would be, and values[place] what that would do to the score.
    """
    edge_start, children = problem.edge_start, problem.child
    list_start, list_stop, lists = problem.list_start, problem.list_stop, problem.lists
    sets = _Sets(problem.first, problem.scores, problem.members)
    first, scores, members = sets
    order, place, choice, totals, best = state.order, state.place, state.choice, state.totals, state.best
    random, noise, marked = state.random, state.noise, state.marked
    values, reach, other, passed = state.values, state.reach, state.other, state.passed
    n, lifted = len(order), np.int64(-1)
    for move in range(moves):
        if move & 15 == 0 and stop[0]:
            return move
        vertex = lifted if lifted >= 0 else below(random, n)
        lifted = np.int64(-1)
        offset = below(random, NOISES)
        here, current = np.int64(place[vertex]), choice[vertex]
        level = scores[current] + temperature * noise[(offset + here) & (NOISES - 1)]
        # No place is drawn that costs a child more than this.
        slack = scores[first[vertex]] + temperature * _MOST_NOISE - level
        high, count = n - 1, 0
        for k in range(n):
            values[k] = 0.0
        for edge in range(edge_start[vertex], edge_start[vertex + 1]):
            child = np.int64(children[edge])
            there, old = place[child], choice[child]
            new = old
            if there < here:
                new = _gained(members, place, lists[list_start[edge] : list_stop[edge]], vertex, there, old)
            elif there <= high and _holds(members, old, vertex):
                place[vertex] = n
                new = _left(sets, place, child, old, slack)
                place[vertex] = here
                if new < 0:
                    high, new = there - 1, old
            if new != old:
                values[there] = scores[new] - scores[old]
                other[child] = new
                passed[count] = child
                count += 1
        _add_up(values, here, high)
        _add_noise(values, reach, noise, high, temperature, offset)
        target, chosen = _draw_place(sets, place, values, reach, vertex, current, high, level)
        if target != here:
            totals[0] += scores[chosen] - scores[current]
            choice[vertex] = chosen
            for k in range(count):
                child = passed[k]
                if min(here, target) <= place[child] <= max(here, target):
                    totals[0] += scores[other[child]] - scores[choice[child]]
                    choice[child] = other[child]
            _shift(order, place, here, target)
        if move % _REGROUP_EVERY == _REGROUP_EVERY - 1:
            lifted, word = below(random, n), next_word(random, 0)
            late = word >> np.uint64(63) == 0
            _mark(members, choice, marked, lifted, late, word >> np.uint64(16))
            regroup(sets, order, place, choice, marked, passed, late)
            totals[0] += _better(sets, place, choice, marked)
        if totals[0] > totals[1] + _ROUNDING:
            _keep(order, best, totals)
        temperature *= cooling
    return moves


@inner
def _gained(members: Any, place: Any, numbers: Any, vertex: Any, limit: Any, old: Any) -> Any:
    """The first of the numbers before `old` whose set is allowed, should the vertex come first; otherwise old."""
    for k in range(len(numbers)):
        number = np.int64(numbers[k])
        if number >= old:
            break
        if _allowed(members, place, number, vertex, limit):
            return number
    return old


@inner
def _left(sets: Any, place: Any, child: Any, old: Any, slack: Any) -> Any:
    """The best allowed set of the child after `old`; -1 if there is none or it costs more than slack."""
    number = old + 1
    while number < sets.first[child + 1] and sets.scores[old] - sets.scores[number] <= slack:
        if _allowed(sets.members, place, number, child, place[child]):
            return number
        number += 1
    return np.int64(-1)


@inner
def _add_up(values: Any, here: Any, high: Any) -> None:
    """Sum up the values from `here` outwards: what all that is passed gives together."""
    values[here] = 0.0
    for k in range(here + 1, high + 1):
        values[k] += values[k - 1]
    for k in range(here - 1, -1, -1):
        values[k] += values[k + 1]


@inner
def _add_noise(values: Any, reach: Any, noise: Any, high: Any, temperature: Any, offset: Any) -> None:
    """Add noise to the values; reach[k] is the largest up to k."""
    most = -np.inf
    for k in range(high + 1):
        values[k] += temperature * noise[(offset + k) & (NOISES - 1)]
        most = max(most, values[k])
        reach[k] = most


@inner
def _draw_place(
    sets: Any, place: Any, values: Any, reach: Any, vertex: Any, current: Any, high: Any, level: Any
) -> Any:
    """(place, set) of the vertex with the largest sum of score and noise; where it is, that sum is `level`.

    Places from `end` on are done: a better set is allowed there. A set is allowed from `begin` on.
    """
    first, scores, members = sets
    here, chosen, number, end = np.int64(place[vertex]), current, first[vertex], high + 1
    target: Any = here
    while end > 0 and number < first[vertex + 1] and scores[number] + reach[end - 1] > level:
        begin = np.int64(0)
        for k in range(members.shape[1]):
            last = np.int64(place[members[number, k]])
            begin = max(begin, last + 1 if last < here else last)
        for k in range(begin, end):
            if scores[number] + values[k] > level:
                level = scores[number] + values[k]
                target, chosen = k, number
        end = min(begin, end)
        number += 1
    return target, chosen


@inner
def _shift(order: Any, place: Any, here: Any, target: Any) -> None:
    """Move what is at one place of the order to another."""
    vertex, step = order[here], 1 if target > here else -1
    for k in range(here, target, step):
        order[k] = order[k + step]
        place[order[k]] = k
    order[target] = vertex
    place[vertex] = target


@inner
def _mark(members: Any, choice: Any, marked: Any, vertex: Any, parents: Any, word: Any) -> None:
    """Mark the vertex and some of its parents, or some of its children, as the bits of the word say."""
    for other in range(len(choice)):
        near = _holds(members, choice[vertex], other) if parents else _holds(members, choice[other], vertex)
        marked[other] = other == vertex or (near and (word >> np.uint64(other & 31)) & np.uint64(1) == 1)
    marked[len(choice)] = False


@inner
def regroup(sets: Any, order: Any, place: Any, choice: Any, marked: Any, passed: Any, late: Any) -> None:
    """Put what is marked and its descendants (`late`) after all others, or it and its ancestors before all others.

    No vertex loses its set; `marked` are those that may have a better one now. Most orders of a network have a vertex
    with many descendants before one with many ancestors, so single moves seldom find the few that allow more there:
    the vertex after most that is not below it, or close behind the children that it might come to depend on.
    """
    members, n, start = sets.members, len(order), 0
    for k in range(n):
        start = k if marked[order[k]] else start
    for step in range(n):
        relative = order[step if late else n - 1 - step]
        for k in range(members.shape[1]):
            member = members[choice[relative], k]
            if late:
                marked[relative] |= marked[member]
            elif member < n:
                marked[member] |= marked[relative]
    held, free = 0, 0
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


@inner
def _better(sets: Any, place: Any, choice: Any, marked: Any) -> Any:
    """Give the marked vertices their best allowed sets; return how much the score gains."""
    gain = 0.0
    for vertex in range(len(choice)):
        if marked[vertex]:
            number = _best_allowed(sets, place, vertex)
            gain += sets.scores[number] - sets.scores[choice[vertex]]
            choice[vertex] = number
    return gain


@inner
def _keep(order: Any, best: Any, totals: Any) -> None:
    """Make the order the best one."""
    totals[1] = totals[0]
    for k in range(len(order)):
        best[k] = order[k]
