"""Kernels: scores of a parent set with one more parent, for many parents in one pass over the rows.

The rows are sorted by the state of the parents and, inside it, by the state of the child. The
one-hot rows of the further parents are added up in each of these cells, which gives the counts of
all their states at once; the first state of a variable has no column and gets what is left. The
terms of the counts come from tables, one for each prior count, filled only as far as counts go.

Rows may have weights: then each counts that often.

There is no limit on the number of parents: the states of the parents are numbered anew after each
parent, so there are never more of them than rows."""

from math import log
from typing import Any, NamedTuple

import numpy as np

from ..foundation.arrays import AnyArray, Floats, Ints, SmallInts
from ..foundation.jit import inner, kernel
from ..foundation.words import slot_of
from .score import OBSERVED, Formula, priors, rising, stirling

COLUMNS_AT_ONCE = (
    64  # columns that are added up together: a fixed length, which makes vector instructions
)
MOST_OTHERS = 256  # further parents of a call: the tables of all of them are needed at once
WIDTH = 1 << 13  # counts from here on are rare and have no table
_SLOTS = 1 << 11  # tables of terms; emptied when half of them are taken
_LONGEST_RUN = 255  # rows whose sums fit into a byte
_ROW, _LABEL, _START, _BEFORE, _STATE, _GROUP = range(6)  # rows of Scratch.rows

for _function in (stirling, rising, priors):  # kernels may call these plain functions
    inner(_function)


class Hot(NamedTuple):
    """The one-hot rows of some variables."""

    columns: AnyArray  # (rows, a multiple of COLUMNS_AT_ONCE) uint8
    first: Ints  # (variables + 1,) their first columns: one for each state but the first
    states: Ints  # (variables,) numbers of declared states


class Tables(NamedTuple):
    """Terms of the score by prior count and count, in a hash table of prior counts."""

    keys: Ints  # (slots + 1,) bits of the prior count; the last one is the number of keys
    filled: Ints  # (slots,) the terms that are known
    terms: Floats  # (slots, width)


class Scratch(NamedTuple):
    """Memory of one thread."""

    rows: SmallInts  # (6, rows + 1)
    labels: SmallInts  # (rows times the largest number of states,)
    sums: AnyArray  # (columns,) uint8
    counts: SmallInts  # (2, columns) of a cell, and of all cells of a state of the parents
    slots: Ints  # (2, others) tables of cells and of states of the parents
    priors: Floats  # (2, others) prior counts of these tables
    seen: Ints  # (others,) observed states of the parents and each further parent


def one_hot(codes: AnyArray, states: Ints, variables: Ints) -> Hot:
    """Return the one-hot rows of these variables."""
    widths = np.maximum(states[variables] - 1, 0)
    first = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
    columns = np.zeros(
        (codes.shape[1], -(-max(int(first[-1]), 1) // COLUMNS_AT_ONCE) * COLUMNS_AT_ONCE), np.uint8
    )
    _fill_columns(codes, variables, first, columns)
    return Hot(columns, first, states[variables])


def make_tables(rows: int) -> Tables:
    """Return empty tables for counts up to this number of rows."""
    width = min(max(rows, 1), WIDTH - 1) + 1
    return Tables(
        np.zeros(_SLOTS + 1, np.int64), np.zeros(_SLOTS, np.int64), np.zeros((_SLOTS, width))
    )


def make_scratch(rows: int, most_states: int, hot: Hot) -> Scratch:
    """Return memory for calls with these one-hot rows."""
    others = len(hot.states)
    return Scratch(
        np.zeros((6, rows + 1), np.int32),
        np.zeros(rows * most_states + 1, np.int32),
        np.zeros(hot.columns.shape[1], np.uint8),
        np.zeros((2, hot.columns.shape[1]), np.int32),
        np.zeros((2, others), np.int64),
        np.zeros((2, others)),
        np.zeros(others, np.int64),
    )


@kernel
def _fill_columns(codes: AnyArray, variables: Ints, first: Ints, columns: AnyArray) -> None:
    """Set the column of the state of each variable in each row."""
    for place in range(len(variables)):
        column = codes[variables[place]]
        for row in range(len(column)):
            if column[row] > 0:
                columns[row, first[place] + column[row] - 1] = 1


@inner
def table_of(tables: Tables, prior: float, most: int) -> Any:
    """Return the table's slot for this prior count, filled up to this count or to its width."""
    key = np.int64(1) if prior == 0.0 else np.float64(prior).view(np.int64)
    slot = slot_of(tables.keys[:-1], key)
    if tables.keys[slot] == 0:
        tables.keys[slot] = key
        tables.keys[-1] += 1
        tables.filled[slot] = 0
        tables.terms[slot, 0] = 0.0
    terms = tables.terms[slot]
    last = min(max(most, 1), len(terms) - 1)
    for count in range(tables.filled[slot], last):
        if prior == 0.0:
            terms[count + 1] = (count + 1) * log(count + 1.0)
        else:
            terms[count + 1] = terms[count] + log(prior + count)
    tables.filled[slot] = max(tables.filled[slot], last)
    return slot


@inner
def make_room(tables: Tables) -> None:
    """Empty the tables if half of them are taken."""
    if tables.keys[-1] > _SLOTS // 2:
        tables.keys[:] = 0


@inner
def term(tables: Tables, slot: int, count: int, prior: float) -> Any:
    """Return the term of a count, by its table or directly."""
    if count < tables.terms.shape[1]:
        return tables.terms[slot, count]
    return rising(count, prior)


@kernel
def score_extensions(
    child: int,
    child_states: int,
    sets: SmallInts,
    codes: AnyArray,
    weights: SmallInts,
    states: Ints,
    formula: Formula,
    hot: Hot,
    tables: Tables,
    scratch: Scratch,
    scores: Floats,
) -> None:
    """Set scores[s] to those with the set s and each variable of `hot`; the last: the set alone.

    `weights` say how often each row counts; there are none if each counts once.

    Sets are filled up with -1. Scores with the child itself, or with a variable that is in the set
    already, mean nothing. A prior is spread over `child_states` states of the child."""
    for s in range(len(sets)):
        make_room(tables)
        cells = _sort_rows(child, sets[s], codes, states, scratch)
        _count_before(cells, weights, scratch.rows)
        parent_states = 1.0
        for parent in sets[s]:
            if parent >= 0:
                parent_states *= states[parent]
        most = _largest_group(cells, scratch.rows)
        _count_states(cells, formula, weights, hot, scratch)
        _choose_tables(parent_states, child_states, most, formula, hot, tables, scratch)
        penalty = formula.penalty * parent_states * (states[child] - 1.0)
        for other in range(len(hot.states)):
            scores[s, other] = -penalty * hot.states[other]
        _add_terms(cells, weights, hot, tables, scratch, scores[s])
        alone = _sum_alone(cells, parent_states, child_states, most, formula, tables, scratch.rows)
        scores[s, -1] = alone - penalty


@inner
def _sort_rows(child: int, parents: Any, codes: Any, states: Any, scratch: Scratch) -> int:
    """Sort the rows by the state of the parents and that of the child; return the number of cells.

    Cell i has the rows from `_START` i on, the state `_STATE` of the child, and the number `_GROUP`
    of the state of the parents."""
    labels = scratch.labels
    label = scratch.rows[_LABEL]
    rows = codes.shape[1]
    for row in range(rows):
        label[row] = 0
    groups = 1
    for parent in parents:
        if parent >= 0:
            groups = _split(groups, codes[parent], states[parent], label, labels)
    size = states[child]
    for place in range(groups * size + 1):
        labels[place] = 0
    for row in range(rows):
        label[row] = label[row] * size + codes[child, row]
        labels[label[row] + 1] += 1
    start = scratch.rows[_START]
    state = scratch.rows[_STATE]
    group = scratch.rows[_GROUP]
    cells = 0
    for place in range(groups * size):
        if labels[place + 1] > 0:
            start[cells] = labels[place]
            state[cells] = place % size
            group[cells] = place // size
            cells += 1
        labels[place + 1] += labels[place]
    start[cells] = rows
    for row in range(rows):
        place = label[row]
        scratch.rows[_ROW, labels[place]] = row
        labels[place] += 1
    return cells


@inner
def _count_before(cells: int, weights: Any, rows: Any) -> None:
    """Set how many rows, each as often as it counts, come before each cell and behind the last."""
    order, start, before = rows[_ROW], rows[_START], rows[_BEFORE]
    if len(weights) == 0:
        for cell in range(cells + 1):
            before[cell] = start[cell]
        return
    total = 0
    for cell in range(cells):
        before[cell] = total
        for place in range(start[cell], start[cell + 1]):
            total += weights[order[place]]
    before[cells] = total


@inner
def _split(groups: int, column: Any, size: int, label: Any, labels: Any) -> int:
    """Number the states of the parents and one more parent in `label`; return how many occur."""
    for place in range(groups * size):
        labels[place] = 0
    for row in range(len(column)):
        label[row] = label[row] * size + column[row]
        labels[label[row]] = 1
    found = 0
    for place in range(groups * size):
        if labels[place]:
            labels[place] = found
            found += 1
    for row in range(len(column)):
        label[row] = labels[label[row]]
    return found


@inner
def _end_of_group(cell: int, cells: int, group: Any) -> int:
    """Return the first cell behind those with the state of the parents of this cell."""
    end = cell + 1
    while end < cells and group[end] == group[cell]:
        end += 1
    return end


@inner
def _largest_group(cells: int, rows: Any) -> int:
    """Return the largest number of rows with one state of the parents."""
    most = 0
    cell = 0
    while cell < cells:
        end = _end_of_group(cell, cells, rows[_GROUP])
        most = max(most, rows[_BEFORE, end] - rows[_BEFORE, cell])
        cell = end
    return most


@inner
def _count_states(cells: int, formula: Formula, weights: Any, hot: Hot, scratch: Scratch) -> None:
    """Set how many joint states of the parents and a further one the data have, if needed."""
    if formula.spread != OBSERVED:
        return
    seen = scratch.seen
    for other in range(len(seen)):
        seen[other] = 0
    cell = 0
    while cell < cells:
        end = _end_of_group(cell, cells, scratch.rows[_GROUP])
        _add_rows(cell, end, weights, hot.columns, scratch.rows, scratch.sums, scratch.counts[0])
        for other in range(len(seen)):
            rest = scratch.rows[_BEFORE, end] - scratch.rows[_BEFORE, cell]
            for column in range(hot.first[other], hot.first[other + 1]):
                count = scratch.counts[0, column]
                rest -= count
                seen[other] += count > 0
            seen[other] += rest > 0
        cell = end


@inner
def _choose_tables(
    parent_states: float,
    child_states: int,
    most: int,
    formula: Formula,
    hot: Hot,
    tables: Tables,
    scratch: Scratch,
) -> None:
    """Set the tables of each further parent."""
    for other in range(len(hot.states)):
        joint = parent_states * hot.states[other]
        if formula.spread == OBSERVED:
            joint = float(scratch.seen[other])
        per_cell, per_state = priors(formula, joint, child_states)
        scratch.priors[0, other] = per_cell
        scratch.priors[1, other] = per_state
        scratch.slots[0, other] = table_of(tables, per_cell, most)
        scratch.slots[1, other] = table_of(tables, per_state, most)


@inner
def _add_rows(
    cell: int, last_cell: int, weights: Any, columns: Any, rows: Any, sums: Any, counts: Any
) -> None:
    """Set the counts to the sums of the one-hot rows of the cells before `last_cell`."""
    order = rows[_ROW]
    begin, end = rows[_START, cell], rows[_START, last_cell]
    if len(weights) > 0:
        _add_weighted_rows(begin, end, weights, columns, order, counts)
        return
    for block in range(columns.shape[1] // COLUMNS_AT_ONCE):
        first = block * COLUMNS_AT_ONCE
        for place in range(COLUMNS_AT_ONCE):
            counts[first + place] = 0
        row = begin
        while row < end:
            last = min(row + _LONGEST_RUN, end)
            for place in range(COLUMNS_AT_ONCE):
                sums[first + place] = 0
            for each in range(row, last):
                source = columns[order[each]]
                for place in range(COLUMNS_AT_ONCE):
                    sums[first + place] += source[first + place]
            for place in range(COLUMNS_AT_ONCE):
                counts[first + place] += sums[first + place]
            row = last


@inner
def _add_weighted_rows(
    begin: int, end: int, weights: Any, columns: Any, order: Any, counts: Any
) -> None:
    """Set the counts to the sums of these one-hot rows, each times its weight."""
    for column in range(len(counts)):
        counts[column] = 0
    for each in range(begin, end):
        source = columns[order[each]]
        weight = weights[order[each]]
        for column in range(len(counts)):
            counts[column] += weight * source[column]


@inner
def _add_terms(
    cells: int, weights: Any, hot: Hot, tables: Tables, scratch: Scratch, scores: Any
) -> None:
    """Add the terms of all cells of each further parent; take away those of the parents' states.

    Cells and groups of one row are frequent with many parents. They have the same terms for every
    further parent, so they are only counted."""
    order = scratch.rows[_ROW]
    start = scratch.rows[_START]
    group = scratch.rows[_GROUP]
    before = scratch.rows[_BEFORE]
    counts, totals = scratch.counts[0], scratch.counts[1]
    single_cells = 0
    single_groups = 0
    cell = 0
    while cell < cells:
        end = _end_of_group(cell, cells, group)
        size = before[end] - before[cell]
        if size == 1:
            single_cells += 1
            single_groups += 1
            cell = end
            continue
        for column in range(len(totals)):
            totals[column] = 0
        while cell < end:
            cell_size = before[cell + 1] - before[cell]
            if cell_size == 1:
                single_cells += 1
                _add_row(hot.columns[order[start[cell]]], totals)
            else:
                _add_rows(cell, cell + 1, weights, hot.columns, scratch.rows, scratch.sums, counts)
                for column in range(len(totals)):
                    totals[column] += counts[column]
                _add_terms_of(counts, cell_size, 1.0, hot.first, tables, scratch, 0, scores)
            cell += 1
        _add_terms_of(totals, size, -1.0, hot.first, tables, scratch, 1, scores)
    for other in range(len(hot.states)):
        scores[other] += single_cells * tables.terms[scratch.slots[0, other], 1]
        scores[other] -= single_groups * tables.terms[scratch.slots[1, other], 1]


@inner
def _add_row(row: Any, totals: Any) -> None:
    """Add a one-hot row to the totals."""
    for column in range(len(totals)):
        totals[column] += row[column]


@inner
def _add_terms_of(
    counts: Any,
    size: int,
    sign: float,
    first: Any,
    tables: Tables,
    scratch: Scratch,
    kind: int,
    scores: Any,
) -> None:
    """Add the terms of each variable's counts, which sum to `size` with that of state 0."""
    slots, terms = scratch.slots[kind], tables.terms
    if size >= terms.shape[1]:
        _add_long_terms(counts, size, sign, first, tables, slots, scratch.priors[kind], scores)
        return
    for other in range(len(slots)):
        row = terms[slots[other]]
        rest = size
        total = 0.0
        for column in range(first[other], first[other + 1]):
            count = counts[column]
            rest -= count
            total += row[count]
        scores[other] += sign * (total + row[rest])


@inner
def _add_long_terms(
    counts: Any,
    size: int,
    sign: float,
    first: Any,
    tables: Tables,
    slots: Any,
    priors_of: Any,
    scores: Any,
) -> None:
    """Do the same where a count may be too large for the tables."""
    for other in range(len(slots)):
        slot, prior = slots[other], priors_of[other]
        rest = size
        total = 0.0
        for column in range(first[other], first[other + 1]):
            count = counts[column]
            rest -= count
            total += term(tables, slot, count, prior)
        scores[other] += sign * (total + term(tables, slot, rest, prior))


@inner
def _sum_alone(
    cells: int,
    parent_states: float,
    child_states: int,
    most: int,
    formula: Formula,
    tables: Tables,
    rows: Any,
) -> float:
    """Return the terms of the child with the parents by which the rows are sorted."""
    before, group = rows[_BEFORE], rows[_GROUP]
    joint = parent_states
    if formula.spread == OBSERVED:
        joint = 0.0
        cell = 0
        while cell < cells:
            joint += 1.0
            cell = _end_of_group(cell, cells, group)
    per_cell, per_state = priors(formula, joint, child_states)
    of_cells = table_of(tables, per_cell, most)
    of_states = table_of(tables, per_state, most)
    total = 0.0
    cell = 0
    while cell < cells:
        end = _end_of_group(cell, cells, group)
        total -= term(tables, of_states, before[end] - before[cell], per_state)
        while cell < end:
            total += term(tables, of_cells, before[cell + 1] - before[cell], per_cell)
            cell += 1
    return total
