"""Row-weighting local search: the fewest sets such that each row has an option, one set or two.

Its moves drop and add one set; rows without an option gain weight at each step, so that the search
leaves local optima."""

from typing import NamedTuple

import numpy as np

from ..foundation.arrays import Bools, Ints, Words
from ..foundation.jit import inner, kernel
from ..foundation.random import below, random_stream

TRIED = 25  # chosen sets examined before one is dropped


class OptionRows(NamedTuple):
    """Row r needs one of its options start[r] .. start[r+1]-1, unless its guard is not chosen."""

    start: Ints  # (rows + 1,)
    guard: Ints  # (rows,) a set, or -1: the row is always required
    first: Ints  # (options,) a set
    second: Ints  # (options,) another set, or -1: the first suffices


class SetUses(NamedTuple):
    """The rows seen from the sets."""

    row: Ints  # (options,) the row of each option
    start: Ints  # (sets + 1,)
    option: Ints  # (start[-1],) the options that name each set
    guarded: Ints  # (sets,) the row that is required only if the set is chosen, or -1


class ChoiceState(NamedTuple):
    """A choice and its consequences. A list's members come first; `place` is their index in it."""

    chosen: Bools  # (sets,)
    picked: Ints  # (sets,) list of the chosen sets
    picked_place: Ints  # (sets,)
    stamp: Ints  # (sets,) step of the last change
    missing: Ints  # (options,) sets that the option lacks
    complete: Ints  # (rows,) number of complete options
    weight: Ints  # (rows,) grows while the row is unsatisfied
    unsatisfied: Ints  # (rows,) list of the unsatisfied rows
    unsatisfied_place: Ints  # (rows,) -1 for satisfied rows
    counts: Ints  # (2,) lengths of the two lists
    words: Words  # random stream


def improve(rows: OptionRows, chosen: Bools, steps: int) -> Bools:
    """Return a choice that satisfies all rows, as the given one does, with at most as many sets."""
    best = chosen.copy()
    search(rows, *first_state(rows, chosen), steps, best)
    return best


def first_state(rows: OptionRows, chosen: Bools) -> tuple[SetUses, ChoiceState]:
    """Return the rows seen from the sets, and the first state, in which all are satisfied."""
    sets = len(chosen)
    count = len(rows.guard)
    both = np.concatenate([rows.first, rows.second])
    named = both >= 0
    options = np.tile(np.arange(len(rows.first)), 2)[named]
    start = np.concatenate([[0], np.cumsum(np.bincount(both[named], minlength=sets))])
    guarded = np.full(sets, -1, dtype=np.int64)
    guarded[rows.guard[rows.guard >= 0]] = np.flatnonzero(rows.guard >= 0)
    row_of = np.repeat(np.arange(count), np.diff(rows.start))
    uses = SetUses(
        row=row_of,
        start=start.astype(np.int64),
        option=options[np.argsort(both[named], kind="stable")],
        guarded=guarded,
    )
    missing = (~chosen[rows.first]).astype(np.int64) + ((rows.second >= 0) & ~chosen[rows.second])
    members = np.flatnonzero(chosen)
    picked = np.zeros(sets, dtype=np.int64)
    picked[: len(members)] = members
    place = np.zeros(sets, dtype=np.int64)
    place[members] = np.arange(len(members))
    state = ChoiceState(
        chosen=chosen.copy(),
        picked=picked,
        picked_place=place,
        stamp=np.full(sets, -9, dtype=np.int64),
        missing=missing,
        complete=np.bincount(row_of[missing == 0], minlength=count).astype(np.int64),
        weight=np.ones(count, dtype=np.int64),
        unsatisfied=np.zeros(count, dtype=np.int64),
        unsatisfied_place=np.full(count, -1, dtype=np.int64),
        counts=np.array([len(members), 0]),
        words=random_stream(0),
    )
    return uses, state


@inner
def _set_unsatisfied(state: ChoiceState, row: int, unsatisfied: bool) -> None:
    place = state.unsatisfied_place[row]
    if unsatisfied and place < 0:
        state.unsatisfied[state.counts[1]] = row
        state.unsatisfied_place[row] = state.counts[1]
        state.counts[1] += 1
    elif not unsatisfied and place >= 0:
        state.counts[1] -= 1
        last = state.unsatisfied[state.counts[1]]
        state.unsatisfied[place] = last
        state.unsatisfied_place[last] = place
        state.unsatisfied_place[row] = -1


@inner
def _flip(rows: OptionRows, uses: SetUses, state: ChoiceState, changed: int, step: int) -> None:
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
    for k in range(uses.start[changed], uses.start[changed + 1]):
        option = uses.option[k]
        row = uses.row[option]
        state.complete[row] -= state.missing[option] == 0
        state.missing[option] += -1 if add else 1
        state.complete[row] += state.missing[option] == 0
        guard = rows.guard[row]
        required = guard < 0 or state.chosen[guard]
        _set_unsatisfied(state, row, state.complete[row] == 0 and required)
    row = uses.guarded[changed]
    if row >= 0:
        _set_unsatisfied(state, row, add and state.complete[row] == 0)


@inner
def _gain(rows: OptionRows, uses: SetUses, state: ChoiceState, candidate: int) -> int:
    """Return the weight of the rows that are satisfied with the set but not without it.

    A row with two options that hold the set is counted as if it had one.
    """
    chosen = state.chosen[candidate]
    total = 0
    for k in range(uses.start[candidate], uses.start[candidate + 1]):
        option = uses.option[k]
        row = uses.row[option]
        if chosen:
            guard = rows.guard[row]
            only_option = state.missing[option] == 0 and state.complete[row] == 1
            if only_option and (guard < 0 or state.chosen[guard]):
                total += state.weight[row]
        elif state.missing[option] == 1 and state.unsatisfied_place[row] >= 0:
            total += state.weight[row]
    row = uses.guarded[candidate]
    if row >= 0 and state.complete[row] == 0:
        total -= state.weight[row]
    return total


@inner
def _set_to_drop(rows: OptionRows, uses: SetUses, state: ChoiceState, step: int) -> int:
    """Return the set of least gain among a few, unchanged for two steps; of equals the oldest."""
    best = -1
    least = 0
    for _ in range(TRIED):
        candidate = state.picked[below(state.words, state.counts[0])]
        if state.stamp[candidate] >= step - 2:
            continue
        gain = _gain(rows, uses, state, candidate)
        older = gain == least and state.stamp[candidate] < state.stamp[best]
        if best < 0 or gain < least or older:
            best = candidate
            least = gain
    return best if best >= 0 else state.picked[below(state.words, state.counts[0])]


@inner
def _set_to_add(rows: OptionRows, uses: SetUses, state: ChoiceState, step: int) -> int:
    """Return the set of most gain in a random unsatisfied row, the oldest of equals; or -1."""
    row = state.unsatisfied[below(state.words, state.counts[1])]
    best = -1
    most = 0
    for option in range(rows.start[row], rows.start[row + 1]):
        for candidate in (rows.first[option], rows.second[option]):
            if candidate < 0 or state.chosen[candidate] or state.stamp[candidate] == step:
                continue
            gain = _gain(rows, uses, state, candidate)
            older = gain == most and state.stamp[candidate] < state.stamp[best]
            if best < 0 or gain > most or older:
                best = candidate
                most = gain
    return best


@kernel
def search(rows: OptionRows, uses: SetUses, state: ChoiceState, steps: int, best: Bools) -> None:
    """Put the smallest choice found into `best`.

    Each step drops sets, adds one for an unsatisfied row, and raises the weights of such rows."""
    limit = state.counts[0]
    for step in range(steps):
        if state.counts[1] == 0:
            for k in range(len(best)):
                best[k] = state.chosen[k]
            limit = state.counts[0] - 1
            if limit < 0:
                break
        # one set may be added below the limit
        while state.counts[0] > 0 and state.counts[0] >= limit:
            _flip(rows, uses, state, _set_to_drop(rows, uses, state, step), step)
        if state.counts[1] > 0:
            added = _set_to_add(rows, uses, state, step)
            if added >= 0:
                _flip(rows, uses, state, added, step)
        for k in range(state.counts[1]):
            state.weight[state.unsatisfied[k]] += 1
