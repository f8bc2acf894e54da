"""Exact reductions of a covering problem: what must be chosen, what need not be, and the parts that remain."""

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ..arrays import Bools, Ints, SmallInts
from ..jit import leaf
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
    reduce_exactly(incidence, status, row_open)
    return np.flatnonzero(status == CLOSED), cores_of(incidence, status, row_open)


@leaf
def _masks(row_start: Ints, row_columns: SmallInts, status: Status, row: int) -> tuple[int, int]:
    """Positions of the open and of the closed columns of a row."""
    first, last = row_start[row], row_start[row + 1]
    opened, closed = 0, 0
    for place in range(first, last):
        kind = status[row_columns[place]]
        if kind == 1:
            opened |= 1 << (place - first)
        elif kind == 2:
            closed |= 1 << (place - first)
    return opened, closed


@leaf
def _ways(partners: Ints, first: int, opened: int, closed: int) -> tuple[int, int, bool]:
    """Open positions that cover a row alone, open positions that do in pairs only, and whether the closed ones do.

    Its partners begin at `first`.
    """
    alone, together, covered, p = 0, 0, False, 0
    while (opened | closed) >> p:
        mask = partners[first + p]
        if closed >> p & 1 and mask & closed:
            covered = True
        if opened >> p & 1 and mask & (closed | 1 << p):
            alone |= 1 << p
        p += 1
    while p:
        p -= 1
        if (opened & ~alone) >> p & 1 and partners[first + p] & opened & ~alone:
            together |= 1 << p
    return alone, together, covered


def all_ways(incidence: Incidence, status: Status) -> tuple[Ints, Ints, Bools]:
    """For each row the masks of `_ways`."""
    alone, together = np.zeros((2, incidence.rows), np.int64)
    covered = np.zeros(incidence.rows, np.bool_)
    _fill_ways(incidence, status, alone, together, covered)
    return alone, together, covered


@leaf
def _fill_ways(incidence: Incidence, status: Status, alone: Ints, together: Ints, covered: Bools) -> None:
    for row in range(len(covered)):
        masks = _masks(incidence.row_start, incidence.row_columns, status, row)
        alone[row], together[row], covered[row] = _ways(
            incidence.partners, incidence.row_partners[row], masks[0], masks[1]
        )


@leaf
def _replaces(incidence: Incidence, alone: Ints, opened: Ints, row_open: Bools, column: int, other: int) -> bool:
    """Whether `other` does in every open row what `column` can do there."""
    for place in range(incidence.column_start[column], incidence.column_start[column + 1]):
        row = incidence.column_rows[place]
        if not row_open[row]:
            continue
        position, found = incidence.column_positions[place], -1
        for q in range(incidence.row_start[row + 1] - incidence.row_start[row]):
            if incidence.row_columns[incidence.row_start[row] + q] == other:
                found = q
        if found < 0:
            return False
        if alone[row] >> found & 1:
            continue
        partners = incidence.row_partners[row]
        mine = incidence.partners[partners + position] & opened[row]
        if alone[row] >> position & 1 or mine & ~incidence.partners[partners + found]:
            return False
    return True


@leaf
def _implies(row_start: Ints, row_columns: SmallInts, alone: Ints, row: int, other: int) -> bool:
    """Whether whatever covers `row` (which has no pairs) covers `other` alone."""
    for p in range(row_start[row + 1] - row_start[row]):
        if alone[row] >> p & 1:
            column, found = row_columns[row_start[row] + p], False
            for q in range(row_start[other + 1] - row_start[other]):
                if alone[other] >> q & 1 and row_columns[row_start[other] + q] == column:
                    found = True
            if not found:
                return False
    return True


class Reduction(NamedTuple):
    """A problem on its way to being reduced; the arrays are written to."""

    status: Status  # (columns,)
    row_open: Bools  # (rows,)
    alone: Ints  # (rows,) masks of `_ways`; of open rows only, as all that follows
    together: Ints  # (rows,)
    opened: Ints  # (rows,) mask of the positions of open columns
    counts: Ints  # (columns,) number of open rows that hold the column


def reduce_exactly(incidence: Incidence, status: Status, row_open: Bools) -> None:
    """Close forced columns, drop covered and implied rows, exclude replaceable columns, until nothing changes.

    Each step keeps a smallest cover: (1) a row that only one open column can cover forces it; (2) a row that closed
    columns cover imposes nothing; (3) a column is excluded if one other does everything it can do in the open rows
    (this contains rows 3, 4, 5 of Algorithm 2 and the closure of `incidence_of`); (4) a row is implied by another one
    if every column that covers the other covers it alone.
    """
    alone, together, opened = np.zeros((3, len(row_open)), np.int64)
    counts = np.zeros(len(status), np.int64)
    _reduce(incidence, Reduction(status, row_open, alone, together, opened, counts))


@leaf
def _reduce(incidence: Incidence, reduction: Reduction) -> None:
    changed = True
    while changed:
        changed = _settle_rows(incidence, reduction)
        if not changed:
            _count(incidence, reduction)
            changed = _exclude_columns(incidence, reduction)
        if not changed:
            changed = _drop_implied_rows(incidence, reduction)


@leaf
def _settle_rows(incidence: Incidence, reduction: Reduction) -> bool:
    """Whether some row was covered already or forced a column; such rows are open no more (steps 1 and 2)."""
    status, row_open, alone, together, _, _ = reduction
    changed = False
    for row in range(len(row_open)):
        if not row_open[row]:
            continue
        masks = _masks(incidence.row_start, incidence.row_columns, status, row)
        alone[row], together[row], covered = _ways(incidence.partners, incidence.row_partners[row], masks[0], masks[1])
        if covered:
            row_open[row] = False
            changed = True
        elif together[row] == 0 and alone[row] & (alone[row] - 1) == 0:
            for p in range(incidence.row_start[row + 1] - incidence.row_start[row]):
                if alone[row] >> p & 1:
                    status[incidence.row_columns[incidence.row_start[row] + p]] = 2
            row_open[row] = False
            changed = True
    return changed


@leaf
def _count(incidence: Incidence, reduction: Reduction) -> None:
    """Note the open columns of each open row, and in how many open rows each column is."""
    status, row_open, _, _, opened, counts = reduction
    for column in range(len(counts)):
        counts[column] = 0
    for row in range(len(row_open)):
        if row_open[row]:
            opened[row] = _masks(incidence.row_start, incidence.row_columns, status, row)[0]
            for place in range(incidence.row_start[row], incidence.row_start[row + 1]):
                counts[incidence.row_columns[place]] += 1


@leaf
def _exclude_columns(incidence: Incidence, reduction: Reduction) -> bool:
    """Whether some column was excluded because another one replaces it (step 3); those in no open row go unasked."""
    status, row_open, alone, _, opened, counts = reduction
    changed = False
    for column in range(len(status)):
        if status[column] != 1:
            continue
        if counts[column] == 0:
            status[column] = 0
            continue
        first = incidence.column_start[column]
        while not row_open[incidence.column_rows[first]]:
            first += 1
        row = incidence.column_rows[first]  # whatever replaces the column is in this row too
        for place in range(incidence.row_start[row], incidence.row_start[row + 1]):
            other = incidence.row_columns[place]
            if other == column or status[other] != 1 or counts[other] < counts[column]:
                continue
            if _replaces(incidence, alone, opened, row_open, column, other):
                _exclude(incidence, reduction, column)
                changed = True
                break
    return changed


@leaf
def _exclude(incidence: Incidence, reduction: Reduction, column: int) -> None:
    """Exclude the column, and take it out of the masks of its rows."""
    reduction.status[column] = 0
    for place in range(incidence.column_start[column], incidence.column_start[column + 1]):
        row, gone = incidence.column_rows[place], ~(1 << incidence.column_positions[place])
        reduction.opened[row] &= gone
        reduction.alone[row] &= gone


@leaf
def _drop_implied_rows(incidence: Incidence, reduction: Reduction) -> bool:
    """Whether some row was dropped because whatever covers another one covers it alone (step 4)."""
    _, row_open, alone, together, _, _ = reduction
    changed = False
    for row in range(len(row_open)):
        if not row_open[row] or together[row] != 0:
            continue
        rare = _rarest(incidence, reduction, row)  # rows that this one implies hold each of its columns
        for place in range(incidence.column_start[rare], incidence.column_start[rare + 1]):
            other = incidence.column_rows[place]
            if (
                other != row
                and row_open[other]
                and _implies(incidence.row_start, incidence.row_columns, alone, row, other)
            ):
                row_open[other] = False
                changed = True
    return changed


@leaf
def _rarest(incidence: Incidence, reduction: Reduction, row: int) -> int:
    """The column in fewest open rows among those that cover the row alone."""
    rare, least = -1, len(reduction.row_open) + 1
    for p in range(incidence.row_start[row + 1] - incidence.row_start[row]):
        column = incidence.row_columns[incidence.row_start[row] + p]
        if reduction.alone[row] >> p & 1 and reduction.counts[column] < least:
            rare, least = column, reduction.counts[column]
    return rare


def cores_of(incidence: Incidence, status: Status, row_open: Bools) -> list[Core]:
    """The connected parts of what is open."""
    if not row_open.any():
        return []
    parts = np.full(incidence.rows, -1)
    _label_parts(incidence.row_start, incidence.row_columns, status, row_open, np.arange(incidence.columns), parts)
    return [core_of(incidence, status, np.flatnonzero(parts == part)) for part in np.unique(parts[row_open]).tolist()]


@leaf
def _label_parts(
    row_start: Ints, row_columns: SmallInts, status: Status, row_open: Bools, parent: Ints, parts: Ints
) -> None:
    """Give each open row the least column of its part; `parent` holds the trees of a union-find over columns."""
    for labelling in range(2):
        for row in range(len(row_open)):
            root = np.int64(-1)
            for place in range(row_start[row], row_start[row + 1]):
                column = np.int64(row_columns[place])
                if not row_open[row] or status[column] != 1:
                    continue
                while parent[column] != column:
                    parent[column] = parent[parent[column]]
                    column = parent[column]
                if root < 0:
                    root = column
                parent[max(root, column)] = min(root, column)
                root = min(root, column)
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
