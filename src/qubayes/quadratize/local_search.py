"""Row-weighting local search for the smallest choice of sets where each row asks for one of several sets or pairs
(design §6).
"""

from typing import NamedTuple

import numpy as np

from ..foundation.arrays import Bools, Ints, Words
from ..foundation.jit import allocating_kernel

TRIED = 25  # chosen sets looked at before one is dropped


class Rows(NamedTuple):
    """Row r is content if one of its options start[r] .. start[r+1]-1 is whole, or if its guard is not chosen."""

    start: Ints  # (rows + 1,)
    guard: Ints  # (rows,) a set, or -1: the row always asks
    first: Ints  # (options,) a set
    second: Ints  # (options,) another set, or -1: the first suffices


class Uses(NamedTuple):
    """Rows seen from the sets."""

    row: Ints  # (options,) the row of each option
    start: Ints  # (sets + 1,)
    option: Ints  # (start[-1],) the options that name each set
    guarded: Ints  # (sets,) the row that asks only if the set is chosen, or -1


class State(NamedTuple):
    """A choice and what follows from it. The members of a list stand in its first places, and `place` says where."""

    chosen: Bools  # (sets,)
    picked: Ints  # (sets,) list of the chosen sets
    picked_place: Ints  # (sets,) or -1
    stamp: Ints  # (sets,) step of the last change
    missing: Ints  # (options,) sets that the option lacks
    whole: Ints  # (rows,) options that lack none
    weight: Ints  # (rows,) grows while the row is discontent
    asking: Ints  # (rows,) list of the discontent rows
    asking_place: Ints  # (rows,) or -1
    counts: Ints  # (2,) lengths of the two lists
    random: Words  # (1,) xorshift


def improve(rows: Rows, chosen: Bools, steps: int) -> Bools:
    """A choice with no discontent row and no more sets than the given one, which must have none either."""
    sets = len(chosen)
    both = np.concatenate([rows.first, rows.second])
    options = np.tile(np.arange(len(rows.first)), 2)[both >= 0]
    start = np.concatenate([[0], np.cumsum(np.bincount(both[both >= 0], minlength=sets))])
    guarded = np.full(sets, -1, dtype=np.int64)
    guarded[rows.guard[rows.guard >= 0]] = np.flatnonzero(rows.guard >= 0)
    row_of = np.repeat(np.arange(len(rows.guard)), np.diff(rows.start))
    uses = Uses(row_of, start.astype(np.int64), options[np.argsort(both[both >= 0], kind="stable")], guarded)
    best: Bools = _search(rows, uses, _begin(rows, uses, chosen), steps)
    return best


def _begin(rows: Rows, uses: Uses, chosen: Bools) -> State:
    sets, number_of_rows = len(chosen), len(rows.guard)
    missing = (~chosen[rows.first]).astype(np.int64) + ((rows.second >= 0) & ~chosen[rows.second])
    whole = np.bincount(uses.row[missing == 0], minlength=number_of_rows)
    members = np.flatnonzero(chosen)
    picked, place = np.zeros(sets, dtype=np.int64), np.full(sets, -1, dtype=np.int64)
    picked[: len(members)], place[members] = members, np.arange(len(members))
    nothing = np.zeros(number_of_rows, dtype=np.int64)
    return State(
        chosen.copy(), picked, place, np.full(sets, -9, dtype=np.int64), missing, whole.astype(np.int64), nothing + 1,
        nothing.copy(), nothing - 1, np.array([len(members), 0]), np.array([0x9E3779B97F4A7C15], dtype=np.uint64),
    )  # fmt: skip


@allocating_kernel
def _draw(state, below):  # type: ignore[no-untyped-def]
    word = state.random[0]
    word ^= word << np.uint64(13)
    word ^= word >> np.uint64(7)
    word ^= word << np.uint64(17)
    state.random[0] = word
    return np.int64(word % np.uint64(below))


@allocating_kernel
def _set_asking(state, row, asks):  # type: ignore[no-untyped-def]
    place = state.asking_place[row]
    if asks and place < 0:
        state.asking[state.counts[1]] = row
        state.asking_place[row] = state.counts[1]
        state.counts[1] += 1
    elif not asks and place >= 0:
        state.counts[1] -= 1
        last = state.asking[state.counts[1]]
        state.asking[place] = last
        state.asking_place[last] = place
        state.asking_place[row] = -1


@allocating_kernel
def _flip(rows, uses, state, changed, step):  # type: ignore[no-untyped-def]
    """Add the set if it is not chosen, drop it if it is."""
    add = not state.chosen[changed]
    state.chosen[changed] = add
    state.stamp[changed] = step
    if add:
        state.picked[state.counts[0]] = changed
        state.picked_place[changed] = state.counts[0]
        state.counts[0] += 1
    else:
        state.counts[0] -= 1
        last = state.picked[state.counts[0]]
        state.picked[state.picked_place[changed]] = last
        state.picked_place[last] = state.picked_place[changed]
        state.picked_place[changed] = -1
    for k in range(uses.start[changed], uses.start[changed + 1]):
        option = uses.option[k]
        row = uses.row[option]
        state.whole[row] -= state.missing[option] == 0
        state.missing[option] += -1 if add else 1
        state.whole[row] += state.missing[option] == 0
        guard = rows.guard[row]
        _set_asking(state, row, state.whole[row] == 0 and (guard < 0 or state.chosen[guard]))
    row = uses.guarded[changed]
    if row >= 0:
        _set_asking(state, row, add and state.whole[row] == 0)


@allocating_kernel
def _worth(rows, uses, state, candidate):  # type: ignore[no-untyped-def]
    """Weight of the rows that are content with the set and would not be without it (a row that it serves twice is not
    seen).
    """
    chosen = state.chosen[candidate]
    total = np.int64(0)
    for k in range(uses.start[candidate], uses.start[candidate + 1]):
        option = uses.option[k]
        row = uses.row[option]
        if chosen:
            guard = rows.guard[row]
            if state.missing[option] == 0 and state.whole[row] == 1 and (guard < 0 or state.chosen[guard]):
                total += state.weight[row]
        elif state.missing[option] == 1 and state.asking_place[row] >= 0:
            total += state.weight[row]
    row = uses.guarded[candidate]
    if row >= 0 and state.whole[row] == 0:
        total -= state.weight[row]
    return total


@allocating_kernel
def _least_missed(rows, uses, state, step):  # type: ignore[no-untyped-def]
    """Of a few chosen sets, unchanged for two steps, the one worth least; the oldest of equals; -1 if none."""
    best, least = -1, np.int64(0)
    for _ in range(TRIED):
        candidate = state.picked[_draw(state, state.counts[0])]
        if state.stamp[candidate] >= step - 2:
            continue
        worth = _worth(rows, uses, state, candidate)
        if best < 0 or worth < least or (worth == least and state.stamp[candidate] < state.stamp[best]):
            best, least = candidate, worth
    return best


@allocating_kernel
def _most_wanted(rows, uses, state, step):  # type: ignore[no-untyped-def]
    """Of the sets that a drawn discontent row names, the one worth most; the oldest of equals; -1 if none."""
    row = state.asking[_draw(state, state.counts[1])]
    best, most = -1, np.int64(0)
    for option in range(rows.start[row], rows.start[row + 1]):
        for candidate in (rows.first[option], rows.second[option]):
            if candidate < 0 or state.chosen[candidate] or state.stamp[candidate] == step:
                continue
            worth = _worth(rows, uses, state, candidate)
            if best < 0 or worth > most or (worth == most and state.stamp[candidate] < state.stamp[best]):
                best, most = candidate, worth
    return best


@allocating_kernel
def _search(rows, uses, state, steps):  # type: ignore[no-untyped-def]
    """The smallest choice met. A step makes room, adds a set for a discontent row, lets discontent rows weigh more."""
    best = state.chosen.copy()
    limit = state.counts[0]
    for step in range(steps):
        if state.counts[1] == 0:
            best[:] = state.chosen
            limit = state.counts[0] - 1
            if limit < 0:
                break
        while state.counts[0] > 0 and state.counts[0] >= limit:  # room for one set below the limit
            dropped = _least_missed(rows, uses, state, step)
            if dropped < 0:
                dropped = state.picked[_draw(state, state.counts[0])]
            _flip(rows, uses, state, dropped, step)
        if state.counts[1] > 0:
            added = _most_wanted(rows, uses, state, step)
            if added >= 0:
                _flip(rows, uses, state, added, step)
        for k in range(state.counts[1]):
            state.weight[state.asking[k]] += 1
    return best
