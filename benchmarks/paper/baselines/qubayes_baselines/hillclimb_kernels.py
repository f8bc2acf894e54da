"""Kernels of `hillclimb`: the steps of a climb, and the scores of a vertex with each edge into it toggled.

They take `Sets` or `Data`, the other one being None, and change a `Climb` (`hillclimb.py`). What
needs an argument that is None is not compiled."""

from math import lgamma
from typing import Any

import numpy as np

from qubayes.candidates.counting import add_member, count_rows
from qubayes.foundation.jit import inner, kernel
from qubayes.foundation.random import below
from qubayes.scores import OBSERVED
from qubayes.scores.score import LARGE, priors, rising
from qubayes.scores.sums import TIMES, VALUES
from qubayes.search.orders import holds

# steps for which a pair may not be changed again, and steps without a better network that end a
# climb
TABU = 10
KICKS = 10  # random edges that are changed after a climb
EPSILON = 1e-9  # a network is better if its score is larger by more than this
TRIES = 100  # draws of an edge that may be changed

SIZE, KEY, FIRST = range(3)  # columns of `lists` and `entries`
PARENTS, ANCESTORS, POSSIBLE = range(3)  # planes of `bits`
STEPS, STALL, KICK, CLIMBS, CHANGED = range(5)  # of `counts`
TOTAL, CLIMB_BEST, BEST = range(3)  # of `totals`


@kernel
def climb_edges(sets: Any, data: Any, climb: Any, moves: int) -> None:
    """Make this many steps, and keep the best graph; the first call scores the start before."""
    counts, totals, lists = climb.counts, climb.totals, climb.lists
    scored = totals[TOTAL] > -np.inf
    if not scored:
        for vertex in range(lists.shape[1]):
            _set_parent_bits(climb, vertex)
        renew_ancestors(climb, -1)
    for _ in range(moves + (not scored)):
        if scored:
            step(sets, climb)
        scored = True
        for k in range(counts[CHANGED]):
            vertex = climb.changed[k, 0]
            slot = lists.shape[1] + lists[0, vertex, KEY] % (len(climb.scores) - lists.shape[1])
            if climb.entries[slot, KEY] == lists[0, vertex, KEY]:
                _copy_row(climb, slot, vertex)
                continue
            if sets is not None:
                score_by_sets(sets, climb, vertex)
            if data is not None:
                score_by_data(data, climb, vertex)
            _rank_edges(climb, vertex)
            _copy_row(climb, vertex, slot)
        total = 0.0
        for vertex in range(lists.shape[1]):
            total += climb.scores[vertex, vertex]
        totals[TOTAL] = total
        counts[STALL] += 1
        if counts[KICK]:  # the next climb has no best yet
            totals[CLIMB_BEST], counts[STALL] = -np.inf, 0
        elif total > totals[CLIMB_BEST] + EPSILON:
            totals[CLIMB_BEST], counts[STALL] = total, 0
        if total > totals[BEST] + EPSILON:
            totals[BEST] = total
            for vertex in range(lists.shape[1]):
                for k in range(lists.shape[2]):
                    lists[1, vertex, k] = lists[0, vertex, k]


@inner
def has(bits: Any, plane: int, vertex: Any, other: Any) -> Any:
    """Return True if the bit of `other` is set in the vertex's row of a plane."""
    return (bits[plane, vertex, other >> 6] >> np.uint64(other & 63)) & np.uint64(1) != 0


@kernel
def step(sets: Any, climb: Any) -> None:
    """Change one edge: the best change, or a random edge of a kick. Vertices with new parents are listed as changed.

    When a climb has ended the step only returns to the best graph: the kick needs its rows.
    """
    counts, lists = climb.counts, climb.lists
    counts[STEPS] += 1
    counts[CHANGED] = 0
    if counts[KICK]:
        counts[KICK] -= 1
        _plan_kick(sets, climb)
    elif counts[STALL] == TABU or not _plan_best(climb):
        counts[CLIMBS] += 1
        counts[KICK] = KICKS
        for vertex in range(lists.shape[1]):
            if lists[0, vertex, KEY] != lists[1, vertex, KEY]:
                for k in range(lists.shape[2]):
                    lists[0, vertex, k] = lists[1, vertex, k]
                _set_parent_bits(climb, vertex)
                _plan(climb, vertex, vertex, -1)
        renew_ancestors(climb, -1)
        return
    for k in range(counts[CHANGED]):
        child, parent = climb.changed[k, 0], climb.changed[k, 1]
        _change_edge(sets, climb, child, parent, climb.changed[k, 2])
        _set_parent_bits(climb, child)
        renew_ancestors(climb, child)
        climb.tabu[child, parent] = climb.tabu[parent, child] = counts[STEPS] + TABU + 1


@inner
def _plan(climb: Any, child: Any, parent: Any, number: Any) -> None:
    """List a change to be made: the edge, and the candidate set that the child takes."""
    count = climb.counts[CHANGED]
    climb.changed[count, 0], climb.changed[count, 1], climb.changed[count, 2] = (
        child,
        parent,
        number,
    )
    climb.counts[CHANGED] = count + 1


@inner
def _plan_best(climb: Any) -> Any:
    """Plan the change that scores most and closes no cycle; return False if there is none.

    A pair that was changed in the last TABU steps stays, unless the change gives the best network
    of this climb."""
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
            if gain <= most or (climb.tabu[i, j] > climb.counts[STEPS] and gain <= wanted):
                continue
            only_path = True  # from j to i is the edge
            for p in range(FIRST, FIRST + lists[0, i, SIZE]):
                only_path = only_path and not has(bits, ANCESTORS, lists[0, i, p], j)
            if only_path:
                most, child, parent, reverse = gain, np.int64(i), j, True
    if child < 0:
        return False
    _plan(climb, child, parent, entries[child, FIRST + parent])
    if reverse:
        _plan(climb, parent, child, entries[parent, FIRST + child])
    return True


@inner
def _plan_kick(sets: Any, climb: Any) -> None:
    """Plan the change of a random possible edge that closes no cycle.

    To add an edge is to take a candidate set with it: the first one from a random place on that
    closes no cycle."""
    for _ in range(TRIES if len(climb.edges) else 0):
        edge = below(climb.random, len(climb.edges))
        child, parent = np.int64(climb.edges[edge, 0]), np.int64(climb.edges[edge, 1])
        number = climb.entries[child, FIRST + parent]
        if not has(climb.bits, PARENTS, child, parent):
            if has(climb.bits, ANCESTORS, parent, child):
                continue
            if sets is None:
                if climb.lists[0, child, SIZE] == climb.lists.shape[2] - FIRST:
                    continue
            else:
                first = sets.edges[child, parent, 0]
                count = sets.edges[child, parent, 1] - first
                start, tried, cycle = below(climb.random, below(climb.random, count) + 1), 0, True
                while cycle and tried < count:
                    number, cycle = np.int64(sets.lists[first + (start + tried) % count]), False
                    tried += 1
                    for k in range(sets.members.shape[1]):
                        member = np.int64(sets.members[number, k])
                        cycle = cycle or (
                            member < climb.lists.shape[1]
                            and has(climb.bits, ANCESTORS, member, child)
                        )
                if cycle:
                    continue
        _plan(climb, child, parent, number)
        return


@inner
def _change_edge(sets: Any, climb: Any, child: Any, parent: Any, number: Any) -> None:
    """Give the child the members of a candidate set as parents; without sets toggle the parent."""
    parents = climb.lists[0, child]
    if sets is None:
        parents[KEY] ^= climb.hashes[parent]
        if not has(climb.bits, PARENTS, child, parent):
            parents[FIRST + parents[SIZE]] = parent
            parents[SIZE] += 1
            return
        parents[SIZE] -= 1
        for k in range(FIRST, FIRST + parents[SIZE]):
            if parents[k] == parent:
                parents[k] = parents[FIRST + parents[SIZE]]
    else:
        parents[SIZE], parents[KEY] = 0, number + 1
        for k in range(sets.members.shape[1]):
            if sets.members[number, k] < climb.lists.shape[1]:
                parents[FIRST + parents[SIZE]] = sets.members[number, k]
                parents[SIZE] += 1


@inner
def _set_parent_bits(climb: Any, vertex: Any) -> None:
    parents, bits = climb.lists[0, vertex], climb.bits[PARENTS, vertex]
    for word in range(len(bits)):
        bits[word] = np.uint64(0)
    for k in range(FIRST, FIRST + parents[SIZE]):
        bits[parents[k] >> 6] |= np.uint64(1) << np.uint64(parents[k] & 63)


@kernel
def renew_ancestors(climb: Any, vertex: Any) -> None:
    """Compute the ancestors of the vertex and its descendants, parents before children; of all vertices for -1."""
    lists, bits, waits, waiting = climb.lists, climb.bits, climb.scratch[0], climb.scratch[1]
    left = 0
    for other in range(len(waits)):
        waits[other] = vertex < 0 or other == vertex or has(bits, ANCESTORS, other, vertex)
        if waits[other]:
            waiting[left] = other
            left += 1
    while left:
        kept = 0
        for k in range(left):
            other = waiting[k]
            ready = True
            for p in range(FIRST, FIRST + lists[0, other, SIZE]):
                ready = ready and waits[lists[0, other, p]] == 0
            if not ready:
                waiting[kept] = other
                kept += 1
                continue
            waits[other] = 0
            for word in range(bits.shape[2]):
                found = bits[PARENTS, other, word]
                for p in range(FIRST, FIRST + lists[0, other, SIZE]):
                    found |= bits[ANCESTORS, lists[0, other, p], word]
                bits[ANCESTORS, other, word] = found
        left = kept


@inner
def _copy_row(climb: Any, start: Any, end: Any) -> None:
    """Copy one row of the table to another."""
    for k in range(climb.scores.shape[1]):
        climb.scores[end, k] = climb.scores[start, k]
    for k in range(climb.entries.shape[1]):
        climb.entries[end, k] = climb.entries[start, k]


@inner
def _rank_edges(climb: Any, vertex: Any) -> None:
    """List the edges that may be toggled in the vertex's row, best first (Shell's sort)."""
    scores, entries, n = climb.scores[vertex], climb.entries[vertex], climb.scores.shape[1]
    order, count = entries[FIRST + n :], 0
    for other in range(n):
        if other != vertex and scores[other] > -np.inf:
            order[count] = other
            count += 1
    entries[SIZE], entries[KEY] = count, climb.lists[0, vertex, KEY]
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


@inner
def score_by_sets(sets: Any, climb: Any, vertex: Any) -> None:
    """Fill the vertex's row with the scores of the best candidate sets inside its parents ± each other vertex.

    Its parents are a candidate set. Another parent that gives no better set changes nothing, and is
    not allowed. A set inside the parents and one more vertex is that vertex alone, or has one of
    the parents: only lists of these are read."""
    scores, entries, parents = climb.scores[vertex], climb.entries[vertex], climb.lists[0, vertex]
    now, base, n = parents[KEY] - 1, sets.first[vertex + 1] - 1, len(scores)
    for other in range(n):
        single = sets.edges[vertex, other, 2]
        scores[other], entries[FIRST + other] = -np.inf, single if single < now else -1
    for p in range(FIRST, FIRST + parents[SIZE]):
        if not holds(sets.members, base, parents[p]):
            entries[FIRST + parents[p]] = base
    for p in range(FIRST, FIRST + parents[SIZE]):
        for k in range(sets.edges[vertex, parents[p], 0], sets.edges[vertex, parents[p], 1]):
            _use_set(sets, climb, vertex, np.int64(sets.lists[k]))
    for other in range(n):
        if entries[FIRST + other] >= 0:
            scores[other] = sets.scores[entries[FIRST + other]]
    scores[vertex] = sets.scores[now]


@inner
def _use_set(sets: Any, climb: Any, vertex: Any, number: Any) -> None:
    """Enter a set with at most one member that is not a parent where it is the best set for a toggled edge."""
    entries, parents, n = climb.entries[vertex], climb.lists[0, vertex], climb.lists.shape[1]
    absent, missing = 0, np.int64(0)
    for k in range(sets.members.shape[1]):
        member = np.int64(sets.members[number, k])
        if member < n and not has(climb.bits, PARENTS, vertex, member):
            absent, missing = absent + 1, member
            if absent > 1:
                return
    if absent == 1:
        if number < parents[KEY] - 1 and (
            entries[FIRST + missing] < 0 or number < entries[FIRST + missing]
        ):
            entries[FIRST + missing] = number
        return
    for p in range(FIRST, FIRST + parents[SIZE]):
        if number < entries[FIRST + parents[p]] and not holds(sets.members, number, parents[p]):
            entries[FIRST + parents[p]] = number


@kernel
def score_by_data(data: Any, climb: Any, vertex: Any) -> None:
    """Fill the vertex's row with local scores counted in the data."""
    parents, scores = climb.lists[0, vertex], climb.scores[vertex]
    size, states = parents[SIZE], 1.0
    for other in range(len(scores)):
        scores[other] = -np.inf
    # without each parent; then with all, which leaves the partition by them
    for skip in range(size + 1):
        if skip == size or has(climb.bits, POSSIBLE, vertex, parents[FIRST + skip]):
            scores[vertex if skip == size else parents[FIRST + skip]] = _score_family(
                data, parents, vertex, skip
            )
    for k in range(size):
        states *= data.states[parents[FIRST + k]]
    if FIRST + size == len(parents):
        return
    add_member(size, vertex, data.labels)
    for other in range(len(scores)):
        if has(climb.bits, POSSIBLE, vertex, other) and not has(climb.bits, PARENTS, vertex, other):
            declared = states * data.states[other]
            above, prior = _parent_terms(
                data, count_rows(size, other, data.labels, data.counts), vertex, declared
            )
            cells = _sum_terms(
                data.counts, count_rows(size + 1, other, data.labels, data.counts), prior
            )
            scores[other] = cells - above


@inner
def _score_family(data: Any, parents: Any, vertex: Any, skip: Any) -> Any:
    """Return the local score with all parents but the one at `skip`; the labels keep the partition by them."""
    depth, states, last = 0, 1.0, np.int64(-1)
    for k in range(parents[SIZE]):
        if k != skip:
            last = parents[FIRST + k]
            add_member(depth, last, data.labels)
            states *= data.states[last]
            depth += 1
    if depth:
        count = count_rows(depth - 1, last, data.labels, data.counts)
    else:
        data.counts[VALUES, 0], data.counts[TIMES, 0] = data.total, 1
        count = 1
    above, prior = _parent_terms(data, count, vertex, states)
    return (
        _sum_terms(data.counts, count_rows(depth, vertex, data.labels, data.counts), prior) - above
    )


@inner
def _parent_terms(data: Any, count: Any, vertex: Any, states: Any) -> Any:
    """Return (terms of the parents' counts plus the penalty, prior of a cell)."""
    penalty, observed = data.formula.penalty * states * (data.states[vertex] - 1.0), 0
    if data.formula.spread == OBSERVED:
        for k in range(count):
            observed += data.counts[TIMES, k] if data.counts[VALUES, k] else 0
        states = max(1.0, float(observed))
    per_cell, per_parent_state = priors(data.formula, states, data.prior_states[vertex])
    return _sum_terms(data.counts, count, per_parent_state) + penalty, per_cell


@inner
def _sum_terms(counts: Any, count: Any, prior: Any) -> Any:
    """Return the sum of times · (lnΓ(value + prior) − lnΓ(prior)); with prior 0, of times · value log value."""
    total, cells = 0.0, 0
    small = 0.0 < prior < LARGE  # then lnΓ(prior) is subtracted once, at the end
    for k in range(count):
        value = counts[VALUES, k]
        if value:
            total += counts[TIMES, k] * (lgamma(value + prior) if small else rising(value, prior))
            cells += counts[TIMES, k]
    return total - cells * lgamma(prior) if small else total
