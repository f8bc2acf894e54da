"""Linear programs of the picture."""

from typing import Any

import numpy as np

from ..arrays import Floats


def minimiser(cost: Any, entries: tuple[Any, Any, Any], limits: Floats) -> Floats:
    """A basic solution of: cost.x -> min, A x <= limits, x >= 0, with A given as (values, rows, columns)."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    values, rows, columns = entries
    matrix = csr_array((values, (rows, columns)), shape=(len(limits), len(cost)))
    result = linprog(cost, A_ub=matrix, b_ub=limits, method="highs-ds")  # type: ignore[call-overload]
    return np.asarray(result.x)
