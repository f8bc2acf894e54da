"""Algorithm 2, "Candidate Parent Subset Reduction", row by row, and row 2 of Algorithm 1 as its text explains it.

Row 2 as printed merges V if it is the only element of V_open that represents W alone or with an element of V_close. It
ignores that two elements of V_open may represent W, and loses the optimum: {0}, {0,1}, {0,2}, {0,1,2}, {0,1,2,3} has a
cover of four, the printed row leaves five. The text says "if there is only one way to represent W": `close_forced`.

Each function changes `status` (EXCLUDED, OPEN or CLOSED for each column: neither, V_open, V_close) and `row_open`
(W_open).
"""

import numpy as np

from ...foundation.arrays import Bools, Ints
from .incidence import Incidence
from .presolve import CLOSED, EXCLUDED, OPEN, Status, all_ways


def reduce_as_paper(incidence: Incidence) -> tuple[Status, Bools]:
    """V_open and V_close as the status of each column, and W_open, at the end of Algorithm 2."""
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
    """Row 3 of Algorithm 2: what lies in at most one open W can be replaced by W, which rows 5 and 7 bring back."""
    status[(status == OPEN) & (_open_rows(incidence, row_open) <= 1)] = EXCLUDED


def close_forced(incidence: Incidence, status: Status, row_open: Bools) -> None:
    """Row 2 of Algorithm 1, by its text: an open set in the only way to represent some open W is closed."""
    alone, together, covered = all_ways(incidence, status)
    rows = row_open & ~covered & (together == 0) & (alone != 0) & (alone & (alone - 1) == 0)
    positions = np.bitwise_count(alone[rows] - 1).astype(np.int64)
    status[incidence.row_columns[incidence.row_start[:-1][rows] + positions]] = CLOSED


def drop_covered(incidence: Incidence, status: Status, row_open: Bools) -> None:
    """Row 3 of Algorithm 1: W that two closed sets represent impose nothing any more."""
    row_open &= ~all_ways(incidence, status)[2]


def drop_useless(incidence: Incidence, status: Status, row_open: Bools) -> None:
    """Row 4 of Algorithm 1: what lies in no open W is not needed."""
    status[(status == OPEN) & (_open_rows(incidence, row_open) == 0)] = EXCLUDED


def close_unrepresentable(incidence: Incidence, status: Status, row_open: Bools) -> None:
    """Row 5 of Algorithm 2: an open W that nothing left represents is chosen itself."""
    alone, together, covered = all_ways(incidence, status)
    rows = row_open & ~covered & (alone == 0) & (together == 0)
    status[own_columns(incidence)[rows]] = CLOSED
    row_open &= ~rows


def reopen(incidence: Incidence, status: Status, row_open: Bools) -> None:
    """Row 7 of Algorithm 2: an open W that only two open sets represent may be cheaper itself."""
    alone, _, _ = all_ways(incidence, status)
    status[own_columns(incidence)[row_open & (alone == 0)]] = OPEN


def own_columns(incidence: Incidence) -> Ints:
    """(rows,) the column that is the row itself."""
    return incidence.row_columns[incidence.row_start[1:] - 1].astype(np.int64)


def _open_rows(incidence: Incidence, row_open: Bools) -> Ints:
    """(columns,) in how many open rows each column lies."""
    owner = np.repeat(row_open, np.diff(incidence.row_start))
    return np.bincount(incidence.row_columns[owner], minlength=incidence.columns)
