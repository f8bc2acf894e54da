"""Linear programs of the picture."""

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from ..foundation.arrays import Floats
from ..foundation.highs import Highs, LinearModel


def minimiser(cost: Any, entries: tuple[Any, Any, Any], limits: Floats) -> Floats:
    """Return a basic solution of: cost.x -> min, A x <= limits, x >= 0, with A given as (values, rows, columns).

    Solved by HiGHS's dual simplex on one thread, so the same program has the same solution.
    """
    values, rows, columns = entries
    by_row = np.argsort(rows, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(limits)))])
    matrix = csr_array((values[by_row], columns[by_row], start), shape=(len(limits), len(cost)))
    solved = Highs(solver="simplex").load(LinearModel(cost, matrix, row_upper=limits)).solve()
    if not solved.optimal:
        raise RuntimeError(f"HiGHS found no optimum of the layout's linear program with {len(limits)} rows")
    return solved.values
