"""Exact reductions of a covering problem: what must be chosen, what need not be, and the parts that remain."""

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ...foundation.arrays import AnyArray, Bools, Ints, SmallInts
from ...foundation.jit import inner, kernel
from .incidence import Incidence

EXCLUDED, OPEN, CLOSED = 0, 1, 2
Status: TypeAlias = npt.NDArray[np.int8]  # one of the three for each column


class Core(NamedTuple):
    """An independent part of the problem that the reductions leave open; its columns are numbered anew."""

    row_start: Ints  # (rows + 1,)
    row_columns: SmallInts  # (row_start[-1],) -1 where the position's column is closed or excluded
    row_partners: Ints  # (rows,)
    row_table: Ints  # (rows,)
    partners: Ints
    fixed: Ints  # (rows,) mask of the positions of closed columns
    open: Ints  # (rows,) mask of the positions of open columns
    column_start: Ints  # (columns + 1,)
    column_rows: SmallInts
    column_positions: SmallInts
    rows: Ints  # (rows,) their numbers in the incidence
    columns: Ints  # (columns,) their numbers in the incidence


def presolve(incidence: Incidence) -> tuple[Ints, list[Core]]:
    """The closed columns, and the cores: the closed columns and a smallest cover of each core are a smallest cover."""
    status = np.full(incidence.columns, OPEN, dtype=np.int8)
    row_open = np.ones(incidence.rows, dtype=np.bool_)
    reduction = reduce_exactly(incidence, status, row_open)
    return np.flatnonzero(status == CLOSED), cores_of(incidence, status, reduction)


# What the kernels know of a row or a column lies together: one array in place of many compiles sooner.
ROW = np.dtype(
    [
        ("start", np.int64),  # where its columns start
        ("partners", np.int64),  # where its masks start
        ("alone", np.int64),  # open positions that cover the row alone; of open rows only, as all that follows
        ("together", np.int64),  # open positions that do in pairs only
        ("opened", np.int64),  # positions of open columns
        ("open", np.bool_),
    ]
)
COLUMN = np.dtype(
    [
        ("start", np.int64),  # where its rows start
        ("count", np.int64),  # of the open rows that hold the column
        ("parent", np.int64),  # in the trees of a union-find
        ("status", np.int8),
    ]
)
ENTRY = np.dtype([("row", np.int32), ("position", np.int32)])


class Reduction(NamedTuple):
    """A problem on its way to being reduced; rows and columns are written to."""

    rows: AnyArray  # (rows + 1,) of ROW
    columns: AnyArray  # (columns + 1,) of COLUMN
    row_columns: SmallInts
    entries: AnyArray  # of ENTRY, the rows of each column
    partners: Ints


def reduction_of(incidence: Incidence, status: Status, row_open: Bools) -> Reduction:
    """The problem before any step."""
    rows, columns = np.zeros(incidence.rows + 1, ROW), np.zeros(incidence.columns + 1, COLUMN)
    rows["start"], columns["start"] = incidence.row_start, incidence.column_start
    rows["partners"][:-1], rows["open"][:-1], columns["status"][:-1] = incidence.row_partners, row_open, status
    columns["parent"] = np.arange(len(columns))
    entries = np.zeros(len(incidence.column_rows), ENTRY)
    entries["row"], entries["position"] = incidence.column_rows, incidence.column_positions
    return Reduction(rows, columns, incidence.row_columns, entries, incidence.partners)


def all_ways(incidence: Incidence, status: Status) -> tuple[Ints, Ints, Bools]:
    """For each row the open positions that cover it alone, those that do in pairs only, and whether closed ones do."""
    reduction = reduction_of(incidence, status, np.ones(incidence.rows, np.bool_))
    _note_ways(reduction, False)
    rows = reduction.rows[:-1]
    return rows["alone"], rows["together"], ~rows["open"]


def reduce_exactly(incidence: Incidence, status: Status, row_open: Bools) -> Reduction:
    """Close forced columns, drop covered and implied rows, exclude replaceable columns, until nothing changes.

    Each step keeps a smallest cover: (1) a row that only one open column can cover forces it; (2) a row that closed
    columns cover imposes nothing; (3) a column is excluded if one other does everything it can do in the open rows
    (this contains rows 3, 4, 5 of Algorithm 2 and the closure of `incidence_of`); (4) a row is implied by another one
    if every column that covers the other covers it alone.
    """
    reduction = reduction_of(incidence, status, row_open)
    # Called from here, not from a kernel: numba would compile all of them once more into that one.
    while _note_ways(reduction, True) or _exclude_columns(reduction) or _drop_implied_rows(reduction):
        pass
    status[:], row_open[:] = reduction.columns["status"][:-1], reduction.rows["open"][:-1]
    return reduction


@kernel
def _note_ways(reduction: Reduction, forcing: bool) -> bool:
    """Whether some row was covered already, or forced a column to be closed; such rows are open no more (steps 1, 2).

    Notes the ways of the other rows, and in how many of them each column is; they hold when nothing changed.
    """
    rows, columns, row_columns, _, partners = reduction
    changed = False
    for column in range(len(columns) - 1):
        columns[column].count = 0
    for number in range(len(rows) - 1):
        row, end = rows[number], rows[number + 1].start
        if not row.open:
            continue
        opened, closed, covered = 0, 0, False
        for place in range(row.start, end):
            kind = columns[row_columns[place]].status
            if kind == 1:
                opened |= 1 << (place - row.start)
            elif kind == 2:
                closed |= 1 << (place - row.start)
        alone, together = 0, 0
        for p in range(end - row.start):
            mask = partners[row.partners + p]
            covered |= closed >> p & 1 == 1 and mask & closed != 0
            if opened >> p & 1 and mask & (closed | 1 << p):
                alone |= 1 << p
        for p in range(end - row.start):
            if (opened & ~alone) >> p & 1 and partners[row.partners + p] & opened & ~alone:
                together |= 1 << p
        row.opened, row.alone, row.together = opened, alone, together
        forced = forcing and not covered and together == 0 and alone & (alone - 1) == 0
        for place in range(row.start, end):
            columns[row_columns[place]].count += 1
            if forced and alone >> (place - row.start) & 1:
                columns[row_columns[place]].status = 2
        row.open = not (covered or forced)
        changed |= covered or forced
    return changed


@kernel
def _exclude_columns(reduction: Reduction) -> bool:
    """Whether some column was excluded because another one replaces it (step 3); those in no open row go unasked."""
    rows, columns, row_columns, entries, _ = reduction
    changed = False
    for number in range(len(columns) - 1):
        column = columns[number]
        if column.status != 1:
            continue
        if column.count == 0:
            column.status = 0
            continue
        first = column.start
        while not rows[entries[first].row].open:
            first += 1
        row = entries[first].row  # whatever replaces the column is in this row too
        for place in range(rows[row].start, rows[row + 1].start):
            other = np.int64(row_columns[place])
            if other == number or columns[other].status != 1 or columns[other].count < column.count:
                continue
            if _replaces(reduction, number, other):
                column.status = 0
                for entry in range(column.start, columns[number + 1].start):
                    rows[entries[entry].row].opened &= ~(1 << entries[entry].position)
                    rows[entries[entry].row].alone &= ~(1 << entries[entry].position)
                changed = True
                break
    return changed


@inner
def _replaces(reduction: Reduction, column: int, other: int) -> bool:
    """Whether `other` does in every open row what `column` can do there."""
    rows, columns, row_columns, entries, partners = reduction
    for entry in range(columns[column].start, columns[column + 1].start):
        number = entries[entry].row
        row = rows[number]
        if not row.open:
            continue
        position, found = entries[entry].position, -1
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
    """Whether some row was dropped because whatever covers another one covers it alone (step 4)."""
    rows, columns, row_columns, entries, _ = reduction
    changed = False
    for number in range(len(rows) - 1):
        row = rows[number]
        if not row.open or row.together != 0:
            continue
        rare, least = np.int64(-1), len(rows)  # rows that this one implies hold each of its columns: look at few
        for place in range(row.start, rows[number + 1].start):
            column = np.int64(row_columns[place])
            if row.alone >> (place - row.start) & 1 and columns[column].count < least:
                rare, least = column, columns[column].count
        for entry in range(columns[rare].start, columns[rare + 1].start):
            other = np.int64(entries[entry].row)
            if other != number and rows[other].open and _implies(rows, row_columns, number, other):
                rows[other].open = False
                changed = True
    return changed


@inner
def _implies(rows: AnyArray, row_columns: SmallInts, row: int, other: int) -> bool:
    """Whether whatever covers `row` (which has no pairs) covers `other` alone."""
    for place in range(rows[row].start, rows[row + 1].start):
        if rows[row].alone >> (place - rows[row].start) & 1:
            found = False
            for spot in range(rows[other].start, rows[other + 1].start):
                if rows[other].alone >> (spot - rows[other].start) & 1 and row_columns[spot] == row_columns[place]:
                    found = True
            if not found:
                return False
    return True


def cores_of(incidence: Incidence, status: Status, reduction: Reduction) -> list[Core]:
    """The connected parts of what is open."""
    if not reduction.rows["open"].any():
        return []
    parts = np.full(incidence.rows, -1)
    _label_parts(reduction.rows, reduction.columns, incidence.row_columns, parts)
    labels = sorted(set(parts.tolist()) - {-1})
    return [core_of(incidence, status, np.flatnonzero(parts == label)) for label in labels]


@kernel
def _label_parts(rows: AnyArray, columns: AnyArray, row_columns: SmallInts, parts: Ints) -> None:
    """Give each open row the least column of its part, by a union-find over columns."""
    for labelling in range(2):
        for row in range(len(parts)):
            root = np.int64(-1)
            for place in range(rows[row].start, rows[row + 1].start):
                column = np.int64(row_columns[place])
                if not rows[row].open or columns[column].status != 1:
                    continue
                while columns[column].parent != column:
                    columns[column].parent = columns[columns[column].parent].parent
                    column = columns[column].parent
                if root < 0:
                    root = column
                elif column < root:
                    columns[root].parent = column
                    root = column
                else:
                    columns[column].parent = root
            if labelling:
                parts[row] = root


def core_of(incidence: Incidence, status: Status, rows: Ints) -> Core:
    """The part of the problem that consists of these rows and the open columns in them."""
    lengths = np.diff(incidence.row_start)[rows]
    row_start = np.concatenate([[0], np.cumsum(lengths)])
    owner = np.repeat(np.arange(len(rows)), lengths)
    position = np.arange(row_start[-1]) - row_start[owner]
    old = incidence.row_columns[incidence.row_start[rows][owner] + position]
    kind = status[old]
    live = np.flatnonzero(kind == OPEN)
    columns, numbers = np.unique(old[live], return_inverse=True)
    row_columns = np.full(len(old), -1, dtype=np.int32)
    row_columns[live] = numbers
    order = np.argsort(numbers, kind="stable")
    bits = np.int64(1) << position
    return Core(
        row_start,
        row_columns,
        incidence.row_partners[rows],
        incidence.row_table[rows],
        incidence.partners,
        np.add.reduceat(np.where(kind == CLOSED, bits, 0), row_start[:-1]),
        np.add.reduceat(np.where(kind == OPEN, bits, 0), row_start[:-1]),
        np.searchsorted(numbers[order], np.arange(len(columns) + 1)),
        owner[live][order].astype(np.int32),
        position[live][order].astype(np.int32),
        rows,
        columns.astype(np.int64),
    )
