"""Linear programs of the picture."""

from typing import Any

import numpy as np

from ..foundation.arrays import Floats

_OPTIONS = {"output_flag": False, "threads": 1, "parallel": "off", "random_seed": 0, "solver": "simplex"}


def minimiser(cost: Any, entries: tuple[Any, Any, Any], limits: Floats) -> Floats:
    """A basic solution of: cost.x -> min, A x <= limits, x >= 0, with A given as (values, rows, columns).

    Solved by HiGHS's dual simplex on one thread, so the same program has the same solution.
    """
    import highspy

    values, rows, columns = entries
    by_row = np.argsort(rows, kind="stable")
    model: Any = highspy.HighsLp()
    model.num_col_, model.num_row_ = len(cost), len(limits)
    model.col_cost_ = np.asarray(cost, dtype=np.float64)
    model.col_lower_, model.col_upper_ = np.zeros(len(cost)), np.full(len(cost), highspy.kHighsInf)
    model.row_lower_, model.row_upper_ = np.full(len(limits), -highspy.kHighsInf), limits
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(limits)))])
    model.a_matrix_.index_, model.a_matrix_.value_ = columns[by_row], values[by_row]
    highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    for option, value in _OPTIONS.items():
        highs.setOptionValue(option, value)
    highs.passModel(model)
    highs.run()
    if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        raise RuntimeError(f"the layout's linear program ended with {highs.getModelStatus()}")
    return np.array(highs.getSolution().col_value)
