"""The steps of a climb: the best change of an edge, or a random one of a kick."""

from typing import Any, NamedTuple

import numpy as np

from ...candidates import Candidates
from ...foundation.arrays import Floats, Ints, SmallInts, frozen
from ...foundation.jit import inner, kernel
from ...foundation.random import below
from .hillclimb_state import (
    ANCESTORS,
    BEST,
    CHANGED,
    CLIMB_BEST,
    CLIMBS,
    FIRST,
    KEY,
    KICK,
    PARENTS,
    SIZE,
    STALL,
    STEPS,
    TOTAL,
    copy_graph,
    copy_row,
    has,
    renew_ancestors,
)
from .order_problem import order_problem

TABU = 10  # changes for which a pair may not be changed again, and changes without a better network that end a climb
KICKS = 10  # random edges that are changed after a climb
EPSILON = 1e-9  # by more than this a network is better
TRIES = 100  # draws of an edge that may be changed


class Sets(NamedTuple):
    """The candidate sets, best first inside a vertex; empty arrays if scores come from data."""

    vertex_start: Ints  # (n + 1,)
    set_start: Ints  # (sets + 1,)
    members: SmallInts
    scores: Floats  # (sets,)
    lists: SmallInts  # for each edge the numbers of the child's sets with the parent, best first
    edges: Ints  # (n, n, 3) [child, parent]: where in `lists` they begin and end; the set {parent}, -1 if there is none


def sets_of(candidates: Candidates) -> Sets:
    """The candidate sets, and for each edge those that have it."""
    families, n = candidates.families, candidates.n
    scores = frozen(candidates.scores[:])  # a view: kernels are compiled for read-only arrays
    problem = order_problem(families, scores)
    edges = np.zeros((n, n, 3), np.int64)
    parent = np.repeat(np.arange(n), np.diff(problem.edge_start))
    edges[problem.child, parent, 0], edges[problem.child, parent, 1] = problem.list_start, problem.list_stop
    edges[:, :, 2] = -1
    single = np.flatnonzero(np.diff(families.set_start) == 1)
    child = np.searchsorted(families.vertex_start, single, side="right") - 1
    edges[child, families.members[families.set_start[single]], 2] = single
    return Sets(families.vertex_start, families.set_start, families.members, scores, problem.lists, frozen(edges))


def no_sets(candidates: Candidates) -> Sets:
    """What stands in the place of the sets if scores come from data."""
    families = candidates.families
    numbers, members = families.vertex_start[:0], families.members[:0]
    return Sets(
        numbers, numbers, members, frozen(candidates.scores[:0]), members, frozen(np.zeros((0, 0, 3), np.int64))
    )


@kernel
def step(sets: Any, climb: Any) -> None:
    """Change one edge: the best change, or a random edge of a kick. Vertices with new parents are listed as changed.

    When a climb has ended the step only returns to the best graph: the kick needs its rows.
    """
    counts = climb.counts
    counts[STEPS] += 1
    if counts[KICK]:
        counts[KICK] -= 1
        _kick(sets, climb)
    elif counts[STALL] == TABU or not _find_best_change(climb):
        counts[CLIMBS] += 1
        counts[KICK] = KICKS
        _go_back(climb)
        return
    for k in range(counts[CHANGED]):
        child, parent = climb.changed[k, 0], climb.changed[k, 1]
        _change(sets, climb, child, parent, climb.changed[k, 2])
        renew_ancestors(climb, child)
        climb.tabu[child, parent] = climb.tabu[parent, child] = counts[STEPS] + TABU + 1


@inner
def _plan(climb: Any, child: Any, parent: Any, number: Any) -> None:
    """List a change to come: the edge, and the candidate set that the child takes."""
    count = climb.counts[CHANGED]
    climb.changed[count, 0], climb.changed[count, 1], climb.changed[count, 2] = child, parent, number
    climb.counts[CHANGED] = count + 1


@inner
def _find_best_change(climb: Any) -> Any:
    """Plan the change that scores most and closes no cycle; False if there is none.

    A pair that was changed in the last TABU steps is left alone, unless that gives the best network of this climb.
    """
    lists, bits, scores, entries = climb.lists, climb.bits, climb.scores, climb.entries
    n = lists.shape[1]
    most, child, parent, reverse = -np.inf, np.int64(-1), np.int64(-1), False
    wanted = climb.totals[CLIMB_BEST] + EPSILON - climb.totals[TOTAL]
    for i in range(n):
        for k in range(FIRST + n, FIRST + n + entries[i, SIZE]):
            j = entries[i, k]
            gain = scores[i, j] - scores[i, i]
            if gain <= most:
                break
            if climb.tabu[i, j] > climb.counts[STEPS] and gain <= wanted:
                continue
            if has(bits, PARENTS, i, j) or not has(bits, ANCESTORS, j, i):
                most, child, parent = gain, np.int64(i), j
                break
    for i in range(n):
        for k in range(FIRST, FIRST + lists[0, i, SIZE]):
            j = lists[0, i, k]
            gain = scores[i, j] - scores[i, i] + scores[j, i] - scores[j, j]
            free = climb.tabu[i, j] <= climb.counts[STEPS] or gain > wanted
            if gain > most and free and _reversible(climb, i, j):
                most, child, parent, reverse = gain, np.int64(i), j, True
    if child < 0:
        return False
    _plan(climb, child, parent, entries[child, FIRST + parent])
    if reverse:
        _plan(climb, parent, child, entries[parent, FIRST + child])
    return True


@inner
def _reversible(climb: Any, child: Any, parent: Any) -> Any:
    """Whether the edge is the only path from the parent to the child."""
    for k in range(FIRST, FIRST + climb.lists[0, child, SIZE]):
        other = climb.lists[0, child, k]
        if other != parent and has(climb.bits, ANCESTORS, other, parent):
            return False
    return True


@inner
def _change(sets: Any, climb: Any, child: Any, parent: Any, number: Any) -> None:
    """Give the child the members of a candidate set as parents; without sets toggle the parent."""
    parents, bits = climb.lists[0, child], climb.bits[PARENTS, child]
    if len(sets.scores):
        parents[SIZE], parents[KEY] = 0, number + 1
        for word in range(len(bits)):
            bits[word] = np.uint64(0)
        for k in range(sets.set_start[number], sets.set_start[number + 1]):
            parents[FIRST + parents[SIZE]] = sets.members[k]
            parents[SIZE] += 1
            bits[sets.members[k] >> 6] |= np.uint64(1) << np.uint64(sets.members[k] & 63)
        return
    parents[KEY] ^= climb.hashes[1, parent]
    held = has(climb.bits, PARENTS, child, parent)
    bits[parent >> 6] ^= np.uint64(1) << np.uint64(parent & 63)
    if not held:
        parents[FIRST + parents[SIZE]] = parent
        parents[SIZE] += 1
        return
    parents[SIZE] -= 1
    for k in range(FIRST, FIRST + parents[SIZE]):
        if parents[k] == parent:
            parents[k] = parents[FIRST + parents[SIZE]]


@inner
def _kick(sets: Any, climb: Any) -> None:
    """Plan the change of a random possible edge that closes no cycle.

    To put an edge in means to take a candidate set with it: one of those that close no cycle, good ones more often.
    """
    for _ in range(TRIES if len(climb.edges) else 0):
        edge = below(climb.random, len(climb.edges))
        child, parent = np.int64(climb.edges[edge, 0]), np.int64(climb.edges[edge, 1])
        number = climb.entries[child, FIRST + parent]
        if not has(climb.bits, PARENTS, child, parent):
            if has(climb.bits, ANCESTORS, parent, child):
                continue
            if len(sets.scores):
                number = _some_set(sets, climb, child, parent)
                if number < 0:
                    continue
            elif climb.lists[0, child, SIZE] == climb.lists.shape[2] - FIRST:
                continue
        _plan(climb, child, parent, number)
        return


@inner
def _some_set(sets: Any, climb: Any, child: Any, parent: Any) -> Any:
    """A candidate set of the child that has the parent and closes no cycle: the first from a random place on, or -1."""
    first, count = sets.edges[child, parent, 0], sets.edges[child, parent, 1] - sets.edges[child, parent, 0]
    start = below(climb.random, below(climb.random, count) + 1)
    for k in range(count):
        number = np.int64(sets.lists[first + (start + k) % count])
        fits = True
        for place in range(sets.set_start[number], sets.set_start[number + 1]):
            fits = fits and not has(climb.bits, ANCESTORS, sets.members[place], child)
        if fits:
            return number
    return np.int64(-1)


@inner
def _go_back(climb: Any) -> None:
    """Return to the best graph of all; vertices whose parents differ are listed as changed."""
    for vertex in range(climb.lists.shape[1]):
        if climb.lists[0, vertex, KEY] != climb.lists[1, vertex, KEY]:
            _plan(climb, vertex, vertex, -1)
    copy_graph(climb, 1, 0)


@kernel
def recall(climb: Any, vertex: Any) -> Any:
    """Whether the vertex's row for its parents was known; if so it is put in its place."""
    slot = _slot(climb, vertex)
    if climb.entries[slot, KEY] != climb.lists[0, vertex, KEY]:
        return False
    copy_row(climb, slot, vertex)
    return True


@inner
def _slot(climb: Any, vertex: Any) -> Any:
    """Where the row of the vertex and its parents is kept."""
    n = climb.lists.shape[1]
    return n + climb.lists[0, vertex, KEY] % (len(climb.scores) - n)


@kernel
def remember(climb: Any, vertex: Any) -> None:
    """Rank the edges in the vertex's freshly scored row, best first (Shell's sort), and keep a copy of it."""
    scores, entries, n = climb.scores[vertex], climb.entries[vertex], climb.scores.shape[1]
    count = 0
    for other in range(n):
        if other != vertex and scores[other] > -np.inf:
            entries[FIRST + n + count] = other
            count += 1
    entries[SIZE], entries[KEY] = count, climb.lists[0, vertex, KEY]
    order = entries[FIRST + n :]
    gap = 1
    while 3 * gap + 1 < count:
        gap = 3 * gap + 1
    while gap > 0:
        for k in range(gap, count):
            item, place = order[k], k
            while place >= gap and scores[order[place - gap]] < scores[item]:
                order[place] = order[place - gap]
                place -= gap
            order[place] = item
        gap //= 3
    copy_row(climb, vertex, _slot(climb, vertex))


@kernel
def conclude(climb: Any) -> None:
    """Sum the score of the graph; keep it if it is the best of all. A kick begins a new climb."""
    counts, totals = climb.counts, climb.totals
    counts[CHANGED] = 0
    total = 0.0
    for vertex in range(climb.lists.shape[1]):
        total += climb.scores[vertex, vertex]
    totals[TOTAL] = total
    counts[STALL] += 1
    if counts[KICK]:
        totals[CLIMB_BEST], counts[STALL] = -np.inf, 0
    elif total > totals[CLIMB_BEST] + EPSILON:
        totals[CLIMB_BEST], counts[STALL] = total, 0
    if total > totals[BEST] + EPSILON:
        totals[BEST] = total
        copy_graph(climb, 0, 1)
