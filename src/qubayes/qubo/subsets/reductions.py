"""Reductions of a covering problem: subsets that must be chosen or are not needed, and cores.

`reduce_exactly` is what the methods auto and search use; `reduce_as_paper` is the paper's Algorithm
2, row by row. Each changes `status` (EXCLUDED, OPEN or CLOSED for each column: neither, V_open,
V_close) and `row_open` (W_open)."""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ...foundation.arrays import AnyArray, Bools, Ints, SmallInts
from ...foundation.jit import inlined, inner, kernel
from .instance import ENTRY, Incidence

EXCLUDED = 0  # the column is not in the cover
OPEN = 1  # undecided
CLOSED = 2  # the column is in the cover
Status: TypeAlias = npt.NDArray[np.int8]  # one of the three for each column


class Core(NamedTuple):
    """An independent part that the reductions leave open, with its own numbers of columns."""

    row_start: Ints  # (rows + 1,)
    row_columns: SmallInts  # (row_start[-1],) -1 where the position's column is closed or excluded
    row_partners: Ints  # (rows,)
    row_table: Ints  # (rows,)
    partners: Ints
    fixed: Ints  # (rows,) mask of the positions of closed columns
    open: Ints  # (rows,) mask of the positions of open columns
    column_start: Ints  # (columns + 1,)
    entries: AnyArray  # (column_start[-1],) of ENTRY, the rows of each column
    rows: Ints  # (rows,) their numbers in the incidence
    columns: Ints  # (columns,) their numbers in the incidence


def reduce_to_cores(incidence: Incidence) -> tuple[Ints, list[Core]]:
    """Return closed columns and cores: with smallest covers of all cores, a smallest cover."""
    status = np.full(incidence.columns, OPEN, dtype=np.int8)
    row_open = np.ones(incidence.rows, dtype=np.bool_)
    reduce_exactly(incidence, status, row_open)
    return np.flatnonzero(status == CLOSED), cores_of(incidence, status, row_open)


# One array of records in place of many arrays: kernels compile sooner.
REDUCED_ROW = np.dtype(
    [
        ("start", np.int64),  # where its columns start
        ("partners", np.int64),  # where its masks start
        # the three are valid for open rows only
        ("alone", np.int64),  # open positions that cover it alone
        ("together", np.int64),  # open positions that cover it in pairs only
        ("opened", np.int64),  # positions of open columns
        ("open", np.bool_),
    ]
)
REDUCED_COLUMN = np.dtype(
    [
        ("start", np.int64),  # where its rows start
        ("count", np.int64),  # number of open rows that hold the column
        ("status", np.int8),
    ]
)


class Reduction(NamedTuple):
    """State of a reduction; rows and columns are changed in place."""

    rows: AnyArray  # (rows + 1,) of REDUCED_ROW
    columns: AnyArray  # (columns + 1,) of REDUCED_COLUMN
    row_columns: SmallInts
    entries: AnyArray  # of ENTRY, the rows of each column
    partners: Ints


def reduction_of(incidence: Incidence, status: Status, row_open: Bools) -> Reduction:
    """Return the state before any step."""
    rows = np.zeros(incidence.rows + 1, REDUCED_ROW)
    rows["start"] = incidence.row_start
    rows["partners"][:-1] = incidence.row_partners
    rows["open"][:-1] = row_open
    columns = np.zeros(incidence.columns + 1, REDUCED_COLUMN)
    columns["start"] = incidence.column_start
    columns["status"][:-1] = status
    return Reduction(rows, columns, incidence.row_columns, incidence.entries, incidence.partners)


def covering_positions(incidence: Incidence, status: Status) -> tuple[Ints, Ints, Bools]:
    """Return for each row the open positions that cover it alone, and in pairs.

    The third array says whether closed positions cover the row."""
    reduction = reduction_of(incidence, status, np.ones(incidence.rows, np.bool_))
    _note_positions(reduction, False)
    rows = reduction.rows[:-1]
    return rows["alone"], rows["together"], ~rows["open"]


def reduce_exactly(incidence: Incidence, status: Status, row_open: Bools) -> None:
    """Close forced columns, drop covered and implied rows, exclude replaceable columns; repeat.

    Each step keeps a smallest cover: (1) a row that only one open column can cover forces it; (2) a
    row that closed columns cover imposes nothing; (3) a column is excluded if one other does
    everything it can do in the open rows (this contains rows 3, 4, 5 of Algorithm 2 and the closure
    of `incidence_of`); (4) a row is implied by another one if every column that covers the other
    covers it alone."""
    reduction = reduction_of(incidence, status, row_open)
    # Called from Python: numba would compile each of them again into a kernel that calls it.
    while (
        _note_positions(reduction, True)
        or _exclude_columns(reduction)
        or _drop_implied_rows(reduction)
    ):
        pass
    status[:] = reduction.columns["status"][:-1]
    row_open[:] = reduction.rows["open"][:-1]


@kernel
def _note_positions(reduction: Reduction, forcing: bool) -> bool:
    """Drop rows that closed columns cover or that force a column to be closed (steps 1, 2).

    Returns whether any was dropped. Notes the covering positions of the other rows, and the number
    of open rows of each column; both hold once nothing changes."""
    rows, columns, row_columns, _, _ = reduction
    changed = False
    for column in range(len(columns) - 1):
        columns[column].count = 0
    for number in range(len(rows) - 1):
        row = rows[number]
        if not row.open:
            continue
        end = rows[number + 1].start
        covered = _note_row(reduction, row, end)
        one_choice = row.together == 0 and row.alone & (row.alone - 1) == 0
        forced = forcing and not covered and one_choice
        for place in range(row.start, end):
            column = columns[row_columns[place]]
            column.count += 1
            if forced and row.alone >> (place - row.start) & 1:
                column.status = CLOSED
        row.open = not (covered or forced)
        changed |= covered or forced
    return changed


@inlined
def _note_row(reduction: Reduction, row: Any, end: int) -> bool:
    """Note the positions that cover a row; return whether closed columns do."""
    partners = reduction.partners
    opened = 0
    closed = 0
    for place in range(row.start, end):
        status = reduction.columns[reduction.row_columns[place]].status
        if status == OPEN:
            opened |= 1 << (place - row.start)
        elif status == CLOSED:
            closed |= 1 << (place - row.start)
    covered = False
    alone = 0
    for p in range(end - row.start):
        mask = partners[row.partners + p]
        covered |= closed >> p & 1 == 1 and mask & closed != 0
        if opened >> p & 1 and mask & (closed | 1 << p):
            alone |= 1 << p
    paired = opened & ~alone
    together = 0
    for p in range(end - row.start):
        if paired >> p & 1 and partners[row.partners + p] & paired:
            together |= 1 << p
    row.opened = opened
    row.alone = alone
    row.together = together
    return covered


@kernel
def _exclude_columns(reduction: Reduction) -> bool:
    """Exclude columns that another replaces (step 3) or that lie in no open row.

    Returns whether one was replaced."""
    rows, columns, _, entries, _ = reduction
    changed = False
    for number in range(len(columns) - 1):
        column = columns[number]
        if column.status != OPEN:
            continue
        if column.count == 0:
            column.status = EXCLUDED
        elif _is_replaceable(reduction, number):
            column.status = EXCLUDED
            for entry in range(column.start, columns[number + 1].start):
                row = rows[entries[entry].row]
                row.opened &= ~(1 << entries[entry].position)
                row.alone &= ~(1 << entries[entry].position)
            changed = True
    return changed


@inlined
def _is_replaceable(reduction: Reduction, number: int) -> bool:
    """Return whether another open column replaces this one in each of its open rows."""
    rows, columns, row_columns, entries, _ = reduction
    first = columns[number].start
    while not rows[entries[first].row].open:
        first += 1
    row = entries[first].row
    for place in range(rows[row].start, rows[row + 1].start):
        other = row_columns[place]
        candidate = columns[other]
        if other == number or candidate.status != OPEN:
            continue
        if candidate.count >= columns[number].count and _replaces(reduction, number, other):
            return True
    return False


@inner
def _replaces(reduction: Reduction, column: int, other: int) -> bool:
    """Return whether `other` does in every open row what `column` can do there."""
    rows, columns, row_columns, entries, partners = reduction
    for entry in range(columns[column].start, columns[column + 1].start):
        number = entries[entry].row
        row = rows[number]
        if not row.open:
            continue
        position = entries[entry].position
        found = -1
        for place in range(row.start, rows[number + 1].start):
            if row_columns[place] == other:
                found = place - row.start
        if found < 0:
            return False
        if row.alone >> found & 1:
            continue
        if row.alone >> position & 1:
            return False
        if partners[row.partners + position] & row.opened & ~partners[row.partners + found]:
            return False
    return True


@kernel
def _drop_implied_rows(reduction: Reduction) -> bool:
    """Drop rows that another row implies (step 4); return whether any was dropped."""
    rows, columns, row_columns, entries, _ = reduction
    changed = False
    for number in range(len(rows) - 1):
        row = rows[number]
        if not row.open or row.together != 0:
            continue
        # rows that this one implies hold each of its columns: take the one in fewest rows
        rare = 0
        least = len(rows)
        for place in range(row.start, rows[number + 1].start):
            column = row_columns[place]
            if row.alone >> (place - row.start) & 1 and columns[column].count < least:
                rare = column
                least = columns[column].count
        for entry in range(columns[rare].start, columns[rare + 1].start):
            other = entries[entry].row
            if other != number and rows[other].open and _implies(rows, row_columns, number, other):
                rows[other].open = False
                changed = True
    return changed


@inner
def _implies(rows: AnyArray, row_columns: SmallInts, row: int, other: int) -> bool:
    """Return whether every column that covers `row` (which has no pairs) covers `other` alone."""
    for place in range(rows[row].start, rows[row + 1].start):
        if rows[row].alone >> (place - rows[row].start) & 1:
            column = row_columns[place]
            found = False
            for spot in range(rows[other].start, rows[other + 1].start):
                alone = rows[other].alone >> (spot - rows[other].start) & 1
                found |= alone == 1 and row_columns[spot] == column
            if not found:
                return False
    return True


def cores_of(incidence: Incidence, status: Status, row_open: Bools) -> list[Core]:
    """Return the connected components of the open rows and columns, by their least columns."""
    owner = np.repeat(np.arange(incidence.rows), np.diff(incidence.row_start))
    live = row_open[owner] & (status[incidence.row_columns] == OPEN)
    if not live.any():
        return []
    rows, columns = owner[live], incidence.row_columns[live]
    start = np.flatnonzero(np.append(True, rows[1:] != rows[:-1]))
    own, lengths = rows[start], np.diff(np.append(start, len(rows)))
    label, before = np.arange(incidence.columns), np.zeros(0, np.int64)
    # Spread the least column along rows and, as labels are columns, along labels. Most systems are
    # small: scipy's connected_components takes 0.2 ms to begin, twice the time of all reductions.
    while not np.array_equal(label, before):
        before, label = label, label.copy()
        of_row = np.minimum.reduceat(label[columns], start)
        np.minimum.at(label, columns, np.repeat(of_row, lengths))
        label = label[label]
    return [core_of(incidence, status, own[of_row == least]) for least in np.unique(of_row)]


def core_of(incidence: Incidence, status: Status, rows: Ints) -> Core:
    """Return the part of the problem that consists of these rows and the open columns in them."""
    lengths = np.diff(incidence.row_start)[rows]
    row_start = np.concatenate([[0], np.cumsum(lengths)])
    entries = np.empty(row_start[-1], ENTRY)
    entries["row"] = owner = np.repeat(np.arange(len(rows)), lengths)
    entries["position"] = position = np.arange(row_start[-1]) - row_start[owner]
    old = incidence.row_columns[incidence.row_start[rows][owner] + position]
    kind, bits = status[old], np.int64(1) << position
    live = np.flatnonzero(kind == OPEN)
    columns, numbers = np.unique(old[live], return_inverse=True)
    row_columns = np.full(len(old), -1, dtype=np.int32)
    row_columns[live] = numbers
    order = np.argsort(numbers, kind="stable")
    return Core(
        row_start,
        row_columns,
        incidence.row_partners[rows],
        incidence.row_table[rows],
        incidence.partners,
        np.add.reduceat(np.where(kind == CLOSED, bits, 0), row_start[:-1]),
        np.add.reduceat(np.where(kind == OPEN, bits, 0), row_start[:-1]),
        np.searchsorted(numbers[order], np.arange(len(columns) + 1)),
        entries[live[order]],
        rows,
        columns.astype(np.int64),
    )


def reduce_as_paper(incidence: Incidence) -> tuple[Status, Bools]:
    """Return V_open and V_close as status of the columns, and W_open, after Algorithm 2 (paper).

    Row 2 of Algorithm 1 as printed merges V if it is the only element of V_open that represents W
    alone or with an element of V_close. It ignores that two elements of V_open may represent W, and
    loses the optimum: {0}, {0,1}, {0,2}, {0,1,2}, {0,1,2,3} has a cover of four, the printed row
    leaves five. The text says "if there is only one way to represent W": `close_forced`."""
    status = np.full(incidence.columns, OPEN, dtype=np.int8)
    row_open = np.ones(incidence.rows, dtype=np.bool_)
    before = -1
    while before != (now := int(np.count_nonzero(status == CLOSED))):
        before = now
        exclude_lonely(incidence, status, row_open)
        close_forced(incidence, status, row_open)
        drop_covered(incidence, status, row_open)
        drop_useless(incidence, status, row_open)
        close_unrepresentable(incidence, status, row_open)
    reopen(incidence, status, row_open)
    return status, row_open


def exclude_lonely(incidence: Incidence, status: Status, row_open: Bools) -> None:
    """Paper, Algorithm 2, row 3: what lies in at most one open W is replaced by W (rows 5, 7)."""
    status[(status == OPEN) & (_open_rows(incidence, row_open) <= 1)] = EXCLUDED


def close_forced(incidence: Incidence, status: Status, row_open: Bools) -> None:
    """Paper, Algorithm 1, row 2: close an open set that a W's only representation needs."""
    alone, together, covered = covering_positions(incidence, status)
    rows = row_open & ~covered & (together == 0) & (alone != 0) & (alone & (alone - 1) == 0)
    positions = np.bitwise_count(alone[rows] - 1).astype(np.int64)
    status[incidence.row_columns[incidence.row_start[:-1][rows] + positions]] = CLOSED


def drop_covered(incidence: Incidence, status: Status, row_open: Bools) -> None:
    """Row 3 of Algorithm 1: W that two closed sets represent impose nothing."""
    row_open &= ~covering_positions(incidence, status)[2]


def drop_useless(incidence: Incidence, status: Status, row_open: Bools) -> None:
    """Row 4 of Algorithm 1: what lies in no open W is not needed."""
    status[(status == OPEN) & (_open_rows(incidence, row_open) == 0)] = EXCLUDED


def close_unrepresentable(incidence: Incidence, status: Status, row_open: Bools) -> None:
    """Row 5 of Algorithm 2: an open W that nothing left represents is chosen itself."""
    alone, together, covered = covering_positions(incidence, status)
    rows = row_open & ~covered & (alone == 0) & (together == 0)
    status[own_columns(incidence)[rows]] = CLOSED
    row_open &= ~rows


def reopen(incidence: Incidence, status: Status, row_open: Bools) -> None:
    """Row 7 of Algorithm 2: an open W that only two open sets represent may be cheaper itself."""
    alone, _, _ = covering_positions(incidence, status)
    status[own_columns(incidence)[row_open & (alone == 0)]] = OPEN


def own_columns(incidence: Incidence) -> Ints:
    """Return (rows,) the column that is the row itself."""
    return incidence.row_columns[incidence.row_start[1:] - 1].astype(np.int64)


def _open_rows(incidence: Incidence, row_open: Bools) -> Ints:
    """Return (columns,) the number of open rows that hold each column."""
    owner = np.repeat(row_open, np.diff(incidence.row_start))
    return np.bincount(incidence.row_columns[owner], minlength=incidence.columns)
