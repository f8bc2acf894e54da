"""Closure scores: the gain of the best candidate set inside a set (design §5, docs/theory.md §1).

gain(W) = max { log S(C) - log S(base) : C a candidate set, C <= base | W }. Kernels work on one vertex at a time, on
sets in local numbers (`parents.py`), and find sets by packed keys in open-addressing tables (key 0: a free slot).
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ..arrays import Floats, SmallInts
from ..families import Families


class VertexGains(NamedTuple):
    """What the score part of one vertex is made of."""

    singles: Floats  # (mu,) gain of each subset
    pairs: Floats  # (mu (mu - 1) / 2,) gain of each union, pairs j < k in lexicographic order


@njit(nogil=True, cache=True)
def _slot(keys: Any, key: int) -> Any:
    """Where the key stands in the table, or the free slot where it would."""
    mask = len(keys) - 1
    place = ((key * -7046029254386353131) >> 29) & mask
    while keys[place] != 0 and keys[place] != key:
        place = (place + 1) & mask
    return place


@njit(nogil=True, cache=True)
def _table_size(entries: int) -> Any:
    size = 4
    while size < 2 * entries:
        size *= 2
    return size


@njit(nogil=True, cache=True)
def submask_keys(members: Any, width: int, keys: Any) -> Any:
    """keys[s] = key of the members chosen by the bit mask s; the number of masks."""
    count = 1
    keys[0] = 0
    for member in members:
        for s in range(count):
            keys[count + s] = (keys[s] << width) | member
        count *= 2
    return count


@njit(nogil=True, cache=True)
def index_of(families: Families, vertex: int, width: int) -> Any:
    """(keys, sets): a table from the key of each set of the vertex to its number; the empty set is left out."""
    first, last = families.vertex_start[vertex], families.vertex_start[vertex + 1]
    size = _table_size(last - first)
    keys, sets = np.zeros(size, np.int64), np.full(size, -1, np.int64)
    for number in range(first, last):
        key = 0
        for member in families.members[families.set_start[number] : families.set_start[number + 1]]:
            key = (key << width) | member
        if key != 0:
            place = _slot(keys, key)
            keys[place], sets[place] = key, number
    return keys, sets


@njit(nogil=True, cache=True)
def best_inside(keys: Any, sets: Any, gains: Any, submasks: Any, count: int, best: Any) -> None:
    """best[s] = gain of the best candidate set inside mask s."""
    for s in range(count):
        best[s] = 0.0
        number = sets[_slot(keys, submasks[s])] if s else -1
        if number >= 0:
            best[s] = gains[number]
    bit = 1
    while bit < count:
        for s in range(count):
            if s & bit:
                best[s] = max(best[s], best[s ^ bit])
        bit *= 2


@njit(nogil=True, cache=True)
def _largest(families: Families, vertex: int) -> Any:
    largest = 0
    for number in range(families.vertex_start[vertex], families.vertex_start[vertex + 1]):
        largest = max(largest, families.set_start[number + 1] - families.set_start[number])
    return largest


@njit(nogil=True, cache=True)
def _by_member(families: Families, vertex: int, members: int) -> Any:
    """(start, sets): the sets of the vertex that hold each member, members counted from 1."""
    first, last = families.vertex_start[vertex], families.vertex_start[vertex + 1]
    begin, end = families.set_start[first], families.set_start[last]
    start = np.zeros(members + 2, np.int64)
    for member in families.members[begin:end]:
        start[member + 1] += 1
    for member in range(members + 1):
        start[member + 1] += start[member]
    place = start.copy()
    sets = np.empty(end - begin, np.int64)
    for number in range(first, last):
        for member in families.members[families.set_start[number] : families.set_start[number + 1]]:
            sets[place[member]] = number
            place[member] += 1
    return start, sets


@njit(nogil=True, cache=True)
def single_gains(vertex: int, candidates: Families, gains: Floats, subsets: Families, width: int) -> Any:
    """gain(U) of each subset U of the vertex."""
    keys, sets = index_of(candidates, vertex, width)
    first, last = subsets.vertex_start[vertex], subsets.vertex_start[vertex + 1]
    size = 1 << _largest(subsets, vertex)
    submasks, best = np.empty(size, np.int64), np.empty(size)
    result = np.empty(last - first)
    for number in range(first, last):
        members = subsets.members[subsets.set_start[number] : subsets.set_start[number + 1]]
        count = submask_keys(members, width, submasks)
        best_inside(keys, sets, gains, submasks, count, best)
        result[number - first] = best[count - 1]
    return result


@njit(nogil=True, cache=True)
def pair_gains(vertex: int, candidates: Families, gains: Floats, subsets: Families, width: int, singles: Floats) -> Any:
    """gain(U | V) of each pair of subsets of the vertex, in lexicographic order.

    A candidate set inside U | V lies inside U, inside V, or meets U and leaves a rest inside V - U. So for each U the
    rests of the candidate sets that meet it go into a table, and each V looks up the 2^|V - U| - 1 sets inside V - U.
    """
    first, mu = subsets.vertex_start[vertex], len(singles)
    begin, end = (
        candidates.set_start[candidates.vertex_start[vertex]],
        candidates.set_start[candidates.vertex_start[vertex + 1]],
    )
    members = 0
    for member in candidates.members[begin:end]:
        members = max(members, member)
    start, holders = _by_member(candidates, vertex, members)
    keys = np.zeros(_table_size(candidates.vertex_start[vertex + 1] - candidates.vertex_start[vertex]), np.int64)
    best = np.zeros(len(keys))
    used = np.empty(len(keys), np.int64)
    submasks = np.empty(1 << _largest(subsets, vertex), np.int64)
    rest = np.empty(64, np.int32)
    inside = np.zeros(members + 1, np.bool_)
    result = np.empty(mu * (mu - 1) // 2)
    place = 0
    for j in range(mu):
        U = subsets.members[subsets.set_start[first + j] : subsets.set_start[first + j + 1]]
        for member in U:
            inside[member] = True
        entries = _fill_rests(U, candidates, gains, width, start, holders, inside, rest, keys, best, used)
        for k in range(j + 1, mu):
            size = 0
            for member in subsets.members[subsets.set_start[first + k] : subsets.set_start[first + k + 1]]:
                if not inside[member]:
                    rest[size] = member
                    size += 1
            value = max(singles[j], singles[k])
            for s in range(1, submask_keys(rest[:size], width, submasks)):
                slot = _slot(keys, submasks[s])
                if keys[slot] != 0:
                    value = max(value, best[slot])
            result[place] = value
            place += 1
        for entry in range(entries):
            keys[used[entry]] = 0
        for member in U:
            inside[member] = False
    return result


@njit(nogil=True, cache=True)
def _fill_rests(
    U: Any,
    candidates: Families,
    gains: Any,
    width: int,
    start: Any,
    holders: Any,
    inside: Any,
    rest: Any,
    keys: Any,
    best: Any,
    used: Any,
) -> Any:
    """Put best gain by rest C - U of the candidate sets C that meet U and do not lie in it; the number of entries."""
    entries = 0
    for member in U:
        for number in holders[start[member] : start[member + 1]]:
            key, met = 0, 0
            for other in candidates.members[candidates.set_start[number] : candidates.set_start[number + 1]]:
                if not inside[other]:
                    key = (key << width) | other
                elif met == 0:
                    met = other
            if key == 0 or met != member:  # inside U, or counted at its first member in U
                continue
            slot = _slot(keys, key)
            if keys[slot] == 0:
                keys[slot], best[slot] = key, gains[number]
                used[entries] = slot
                entries += 1
            elif gains[number] > best[slot]:
                best[slot] = gains[number]
    return entries


@njit(nogil=True, cache=True)
def parent_losses(vertex: int, candidates: Families, gains: Floats, width: int, ordered: Any) -> Any:
    """(loss, loss of all): what the vertex can lose at most with one possible parent, and with all `ordered` ones.

    loss[x] = max over candidate sets C with x of gain(C) - gain(C - x); the other: max of gain(C) - gain(C - ordered).
    """
    keys, sets = index_of(candidates, vertex, width)
    size = 1 << _largest(candidates, vertex)
    submasks, best = np.empty(size, np.int64), np.empty(size)
    losses, all_ordered = np.zeros(len(ordered)), 0.0
    for number in range(candidates.vertex_start[vertex], candidates.vertex_start[vertex + 1]):
        members = candidates.members[candidates.set_start[number] : candidates.set_start[number + 1]]
        count = submask_keys(members, width, submasks)
        best_inside(keys, sets, gains, submasks, count, best)
        rest = count - 1
        for t, member in enumerate(members):
            losses[member - 1] = max(losses[member - 1], gains[number] - best[(count - 1) ^ (1 << t)])
            if ordered[member - 1]:
                rest ^= 1 << t
        all_ordered = max(all_ordered, gains[number] - best[rest])
    return losses, all_ordered


@njit(nogil=True, cache=True)
def representations(vertex: int, candidates: Families, subsets: Families, width: int) -> SmallInts:
    """Rows (set, U, V): each way to write a candidate set of the vertex as U | V, U <= V; V = U where U is the set.

    Sets and subsets by their numbers in the families. A set that is itself a subset is listed so and not otherwise; a
    set with no way at all is listed with U = V = -1; the base (relative: the empty set) is not listed.
    """
    keys, sets = index_of(subsets, vertex, width)
    size = 1 << _largest(candidates, vertex)
    submasks, present = np.empty(size, np.int64), np.empty(size, np.int64)
    rows = [(0, 0, 0) for _ in range(0)]
    for number in range(candidates.vertex_start[vertex], candidates.vertex_start[vertex + 1]):
        members = candidates.members[candidates.set_start[number] : candidates.set_start[number + 1]]
        count = submask_keys(members, width, submasks)
        if count == 1:
            continue
        for s in range(1, count):
            present[s] = sets[_slot(keys, submasks[s])]
        if present[count - 1] >= 0:
            rows.append((number, present[count - 1], present[count - 1]))
            continue
        found = len(rows)
        for s in range(1, count):
            for t in range(s + 1, count):
                if s | t == count - 1 and present[s] >= 0 and present[t] >= 0:
                    rows.append((number, min(present[s], present[t]), max(present[s], present[t])))
        if len(rows) == found:
            rows.append((number, -1, -1))
    result = np.empty((len(rows), 3), np.int32)
    for index in range(len(rows)):
        result[index, 0], result[index, 1], result[index, 2] = rows[index]
    return result
