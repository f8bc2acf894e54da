"""Search over orders of the vertices: each vertex takes its best candidate set among those that the order allows.

One move lifts a vertex out of the order and puts it back where a random draw says, all places weighed at once: with
`score / temperature` as the logarithm of the odds (heat bath, drawn as the maximum of score + temperature * noise
with noise of Gumbel's distribution). Two facts make all places as cheap as one:

- the set of another vertex depends only on whether the lifted one comes before it, not on where exactly;
- a set of the lifted vertex is allowed from the place of its last member on, so one walk through its sets, best
  first, gives its score at every place, and ends as soon as no worse set can win the draw.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..arrays import Bools, Floats, Ints, SmallInts, Words, frozen
from ..errors import SettingError
from ..families import Families
from ..jit import leaf, part
from .walks import draw, draw_below

_NOISES = 1 << 14
_MOST_NOISE = 9.71 + 0.7  # log(2^14), and log 2 as the quantile in the middle of the last step
_REGROUP_EVERY = 16
_ROUNDING = 1e-7  # a score that was summed up move by move is new only if it is larger by more than this
_LARGEST = 65_534  # vertices: a member is stored in 16 bits


class OrderProblem(NamedTuple):
    """The candidate sets, best first inside a vertex, and for each edge parent -> child the child's sets with it."""

    first: Ints  # (n + 1,) sets first[v] .. first[v + 1] - 1 belong to v
    scores: Floats  # (sets,)
    members: npt.NDArray[np.uint16]  # (sets, largest size), filled up with n
    skip: npt.NDArray[np.uint16]  # (sets, largest size) from the set to the next one without that member
    edge_start: Ints  # (n + 1,) edges by parent
    child: SmallInts  # (edges,)
    list_start: Ints  # (edges,) the edge's sets are lists[list_start[e] : list_stop[e]], best first
    list_stop: Ints  # (edges,)
    lists: SmallInts  # (members,) numbers of sets

    @property
    def n(self) -> int:
        """Number of vertices."""
        return len(self.first) - 1


class OrderState(NamedTuple):
    """An order and what it gives; kernels write it."""

    order: SmallInts  # (n,) vertices
    place: SmallInts  # (n + 1,) of each vertex in the order; the last is -1, the place of "no member"
    choice: Ints  # (n,) the best allowed set of each vertex
    totals: Floats  # (2,) score of `order`, score of `best`
    best: SmallInts  # (n,) the best order seen
    random: Words  # (1,) state of the random stream
    noise: npt.NDArray[np.float32]  # (2^14,) a sample of Gumbel's distribution in random order
    values: Floats  # (n,) scratch: by place, score of the other vertices plus noise
    reach: Floats  # (n,) scratch: the largest value up to a place
    other: Ints  # (n,) scratch: the set of a vertex once the lifted one has passed it
    passed: SmallInts  # (n,) scratch: the vertices whose set changes if the lifted one passes them
    marked: Bools  # (n + 1,) scratch: descendants, or ancestors


def order_problem(families: Families, scores: Floats) -> OrderProblem:
    """The sets of a `Part`, or of `Candidates`, prepared for moves in the order."""
    n = families.n
    if n > _LARGEST:
        raise SettingError(f"{n} variables in one component; the search over orders takes at most {_LARGEST}")
    sizes = np.diff(families.set_start)
    members = np.full((len(sizes), max(1, int(sizes.max(initial=0)))), n, np.uint16)
    counts = np.zeros((n, n), np.int64)
    _fill_members(families, members, counts)
    skip = np.ones_like(members)
    _fill_skips(families.vertex_start, members, skip)
    starts = (np.cumsum(counts.T.ravel()) - counts.T.ravel()).reshape(n, n).T  # by child, then by parent
    lists = np.empty(int(counts.sum()), np.int32)
    _fill_lists(families, starts.copy(), lists)
    parent, child = np.nonzero(counts)
    return OrderProblem(
        families.vertex_start,
        scores,
        frozen(members),
        frozen(skip),
        frozen(np.searchsorted(parent, np.arange(n + 1)).astype(np.int64)),
        frozen(child.astype(np.int32)),
        frozen(starts[parent, child]),
        frozen(starts[parent, child] + counts[parent, child]),
        frozen(lists),
    )


def order_state(problem: OrderProblem, order: npt.ArrayLike, seed: int | np.random.SeedSequence = 0) -> OrderState:
    """The state at this order, with a random stream of its own. The order must allow every base."""
    n = problem.n
    random = np.random.default_rng(seed)
    quantiles = (np.arange(_NOISES) + 0.5) / _NOISES
    noise = random.permutation(-np.log(-np.log(quantiles))).astype(np.float32)
    stream = random.integers(0, 2**63, 1, dtype=np.uint64)
    vertices = np.array(order, np.int32)
    state = OrderState(
        vertices,
        np.full(n + 1, -1, np.int32),
        np.empty(n, np.int64),
        np.full(2, -np.inf),
        vertices.copy(),
        stream,
        noise,
        *(np.empty(n), np.empty(n), np.empty(n, np.int64), np.empty(n, np.int32), np.empty(n + 1, np.bool_)),
    )
    settle(problem, state)
    return state


class Ordered(NamedTuple):
    """An order with the sets that it allows and their score."""

    order: Ints  # (n,) vertices
    choice: Ints  # (n,) the best allowed set of each vertex
    score: float


def best_of(problem: OrderProblem, order: npt.ArrayLike) -> Ordered:
    """The best allowed set of each vertex, and their score, summed afresh."""
    state = order_state(problem, order)
    return Ordered(state.order.astype(np.int64), state.choice, math.fsum(problem.scores[state.choice].tolist()))


def improve(
    problem: OrderProblem, order: npt.ArrayLike, moves: int, *, seed: int = 0, hot: float = 1.0, cold: float = 0.1
) -> Ordered:
    """The best order seen in this many moves from `order` while the temperature falls from hot to cold.

    A move takes about half a microsecond with ten thousand sets, some 30 µs with a million.
    """
    state, stop = order_state(problem, order, seed), np.zeros(1, np.bool_)
    for temperature in np.geomspace(hot, cold, 32):
        wander(problem, state, temperature, max(1, moves // 32), stop)
    return best_of(problem, state.best)


@leaf
def _fill_members(families: Any, members: Any, counts: Any) -> None:
    """Write the sets as rows, and for each parent and child the number of the child's sets that have it."""
    for vertex in range(len(families.vertex_start) - 1):
        for number in range(families.vertex_start[vertex], families.vertex_start[vertex + 1]):
            start = families.set_start[number]
            for k in range(start, families.set_start[number + 1]):
                members[number, k - start] = families.members[k]
                counts[families.members[k], vertex] += 1


@leaf
def _fill_skips(first: Any, members: Any, skip: Any) -> None:
    """Write how far it is from each set to the next one of the vertex without the member, at most 65535."""
    for vertex in range(len(first) - 1):
        for number in range(first[vertex + 1] - 2, first[vertex] - 1, -1):
            for k in range(members.shape[1]):
                for other in range(members.shape[1]):
                    if members[number, k] == members[number + 1, other]:
                        skip[number, k] = min(skip[number + 1, other], np.uint16(65534)) + 1


@leaf
def _fill_lists(families: Any, free: Any, lists: Any) -> None:
    """Write the numbers of the sets of each child and parent, from free[parent, child] on."""
    for vertex in range(len(families.vertex_start) - 1):
        for number in range(families.vertex_start[vertex], families.vertex_start[vertex + 1]):
            for k in range(families.set_start[number], families.set_start[number + 1]):
                parent = families.members[k]
                lists[free[parent, vertex]] = number
                free[parent, vertex] += 1


@leaf
def settle(problem: Any, state: Any) -> None:
    """Give each vertex its place and its best allowed set, and sum the score afresh; keep the order if it is best."""
    for place in range(len(state.order)):
        state.place[state.order[place]] = place
    score = 0.0
    for vertex in range(len(state.order)):
        state.choice[vertex] = _best_allowed(problem, state, vertex)
        score += problem.scores[state.choice[vertex]]
    state.totals[0] = score
    if score > state.totals[1]:
        _keep(state)


@part
def _best_allowed(problem: Any, state: Any, vertex: Any) -> Any:
    """The best set of the vertex whose members all come before it."""
    number, last, place = problem.first[vertex], problem.first[vertex + 1] - 1, state.place[vertex]
    while number < last:
        jump = _blocked(problem, state, number, -1, place)
        if jump == 0:
            break
        number = min(last, number + jump)
    return number


@part
def _blocked(problem: Any, state: Any, number: Any, without: Any, place: Any) -> Any:
    """0 if the members of the set, one vertex left out of account, all come before the place.

    Otherwise how many sets from here on are not allowed for the same reason.
    """
    for k in range(problem.members.shape[1]):
        member = problem.members[number, k]
        if member != without and state.place[member] >= place:
            return np.int64(problem.skip[number, k])
    return np.int64(0)


@part
def _holds(problem: Any, number: Any, vertex: Any) -> Any:
    """Whether the vertex is a member of the set."""
    held = False
    for k in range(problem.members.shape[1]):
        held |= problem.members[number, k] == vertex
    return held


@leaf
def wander(problem: Any, state: Any, temperature: Any, moves: Any, stop: Any) -> Any:
    """Make this many moves at the temperature unless stop[0] is set; return the number made."""
    n = len(state.order)
    for move in range(moves):
        if move & 15 == 0 and stop[0]:
            return move
        vertex = draw_below(state.random, n)
        offset = np.int64(draw(state.random) & np.uint64(_NOISES - 1))
        here, current = state.place[vertex], state.choice[vertex]
        level = problem.scores[current] + temperature * state.noise[(offset + here) & (_NOISES - 1)]
        # No place is drawn that costs the others more than this.
        slack = problem.scores[problem.first[vertex]] + temperature * _MOST_NOISE - level
        high, passed = _weigh_others(problem, state, vertex, slack)
        _add_noise(state, here, high, temperature, offset)
        target, chosen = _draw_place(problem, state, vertex, high, level)
        if target != here:
            _put(problem, state, vertex, target, chosen, passed)
        if move % _REGROUP_EVERY == _REGROUP_EVERY - 1:
            regroup(problem, state, draw_below(state.random, n), draw_below(state.random, 2) == 1)
    return moves


@leaf
def regroup(problem: Any, state: Any, vertex: Any, late: Any) -> None:
    """Put the vertex and its descendants (`late`) after all others, or it and its ancestors before all others.

    No vertex loses its set. Most orders of a network have a vertex with many descendants before one with many
    ancestors, so single steps seldom find the few that allow a better set there.
    """
    for other in range(len(state.order) + 1):
        state.marked[other] = other == vertex
    if late:
        for place in range(state.place[vertex] + 1, len(state.order)):
            _mark_child(problem, state, state.order[place])
    else:
        for place in range(state.place[vertex], -1, -1):
            _mark_parents(problem, state, state.order[place])
    start, held, free = state.place[vertex], 0, 0
    for place in range(len(state.order)):
        other = state.order[place]
        behind = state.marked[other] == late
        state.marked[other] = behind and (late or place < start)  # from now on: may have a better set
        if behind:
            state.passed[held] = other
            held += 1
        else:
            state.order[free] = other
            free += 1
    for k in range(held):
        state.order[free + k] = state.passed[k]
    for place in range(len(state.order)):
        state.place[state.order[place]] = place
    for other in range(len(state.order)):
        if state.marked[other]:
            number = _best_allowed(problem, state, other)
            state.totals[0] += problem.scores[number] - problem.scores[state.choice[other]]
            state.choice[other] = number
    if state.totals[0] > state.totals[1] + _ROUNDING:
        _keep(state)


@part
def _mark_child(problem: Any, state: Any, vertex: Any) -> None:
    """Mark the vertex if one of its parents is marked."""
    for k in range(problem.members.shape[1]):
        if state.marked[problem.members[state.choice[vertex], k]]:
            state.marked[vertex] = True


@part
def _mark_parents(problem: Any, state: Any, vertex: Any) -> None:
    """Mark the parents of the vertex if it is marked."""
    if state.marked[vertex]:
        for k in range(problem.members.shape[1]):
            state.marked[problem.members[state.choice[vertex], k]] = True


@part
def _weigh_others(problem: Any, state: Any, vertex: Any, slack: Any) -> Any:
    """(last place that may be drawn, number of `passed`): how the others' sets change once the vertex passes them.

    Written are values[place of the other], passed and other. A child that comes before can only win a set with the
    vertex in it, better than its own; a child that comes after loses its set if the vertex is in it.
    """
    here, high, passed = state.place[vertex], len(state.order) - 1, 0
    for place in range(len(state.order)):
        state.values[place] = 0.0
    for edge in range(problem.edge_start[vertex], problem.edge_start[vertex + 1]):
        child = problem.child[edge]
        there, old = state.place[child], state.choice[child]
        if there < here:
            new = _gained(problem, state, vertex, edge, old)
        elif there <= high and _holds(problem, old, vertex):
            new = _left(problem, state, vertex, child, slack)
            if new < 0:
                high = there - 1
                continue
        else:
            continue
        if new != old:
            state.values[there] = problem.scores[new] - problem.scores[old]
            state.other[child] = new
            state.passed[passed] = child
            passed += 1
    return high, passed


@part
def _gained(problem: Any, state: Any, vertex: Any, edge: Any, old: Any) -> Any:
    """The best set of the edge's child, should the vertex come before it."""
    place, useless = state.place[problem.child[edge]], 0
    for k in range(problem.list_start[edge], problem.list_stop[edge]):
        number = np.int64(problem.lists[k])
        if number >= old:
            break
        if number >= useless:
            jump = _blocked(problem, state, number, vertex, place)
            if jump == 0:
                return number
            useless = number + jump
    return old


@part
def _left(problem: Any, state: Any, vertex: Any, child: Any, slack: Any) -> Any:
    """The best set of the child, should the vertex come after it; -1 if there is none or it costs more than slack."""
    place, old = state.place[child], state.choice[child]
    here, state.place[vertex] = state.place[vertex], len(state.order)
    number, last, found = old + 1, problem.first[child + 1], -1
    while number < last and problem.scores[old] - problem.scores[number] <= slack:
        jump = _blocked(problem, state, number, -1, place)
        if jump == 0:
            found = number
            break
        number += jump
    state.place[vertex] = here
    return found


@part
def _add_noise(state: Any, here: Any, high: Any, temperature: Any, offset: Any) -> Any:
    """Sum values from `here` outwards and add noise: what the others give at each place; and `reach`."""
    total = 0.0
    for place in range(here + 1, high + 1):
        total += state.values[place]
        state.values[place] = total
    total = state.values[here] = 0.0
    for place in range(here - 1, -1, -1):
        total += state.values[place]
        state.values[place] = total
    most = -np.inf
    for place in range(high + 1):
        state.values[place] += temperature * state.noise[(offset + place) & (_NOISES - 1)]
        most = max(most, state.values[place])
        state.reach[place] = most


@part
def _draw_place(problem: Any, state: Any, vertex: Any, high: Any, level: Any) -> Any:
    """(place, set) of the vertex with the largest sum of score and noise; where it is, that sum is `level`.

    Places from `end` on are done: there a better set is allowed. A set is allowed from `begin` on.
    """
    scores, here = problem.scores, state.place[vertex]
    number, last, end = problem.first[vertex], problem.first[vertex + 1], high + 1
    target, chosen = np.int64(here), state.choice[vertex]
    while end > 0 and number < last and scores[number] + state.reach[end - 1] > level:
        begin, jump = np.int64(0), np.int64(1)
        for k in range(problem.members.shape[1]):
            place: Any = state.place[problem.members[number, k]]
            place += place < here
            if place > begin:
                begin, jump = place, np.int64(problem.skip[number, k])
        if begin < end:
            for place in range(begin, end):
                if scores[number] + state.values[place] > level:
                    level = scores[number] + state.values[place]
                    target, chosen = place, number
            end, jump = begin, np.int64(1)
        number += jump
    return target, chosen


@part
def _put(problem: Any, state: Any, vertex: Any, target: Any, chosen: Any, passed: Any) -> Any:
    """Move the vertex to its new place, with its new set, and give those that it passes theirs."""
    scores, place, choice = problem.scores, state.place, state.choice
    here = place[vertex]
    change = scores[chosen] - scores[choice[vertex]]
    choice[vertex] = chosen
    for k in range(passed):
        child = state.passed[k]
        if min(here, target) <= place[child] <= max(here, target):
            change += scores[state.other[child]] - scores[choice[child]]
            choice[child] = state.other[child]
    step = 1 if target > here else -1
    for k in range(here, target, step):
        state.order[k] = state.order[k + step]
        place[state.order[k]] = k
    state.order[target] = vertex
    place[vertex] = target
    state.totals[0] += change
    if state.totals[0] > state.totals[1] + _ROUNDING:
        _keep(state)


@part
def _keep(state: Any) -> Any:
    """Make the order the best one."""
    state.totals[1] = state.totals[0]
    for place in range(len(state.order)):
        state.best[place] = state.order[place]
