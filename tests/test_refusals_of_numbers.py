"""What no Gaussian model can be learned from is refused in one line with what to do."""

import numpy as np
import pandas as pd
import pytest

import qubayes as qb


def table(**columns):
    """Return three columns of numbers, changed or joined by others."""
    random = np.random.default_rng(0)
    numbers = {name: random.normal(size=30) for name in ("a", "b", "c")}
    return pd.DataFrame({**numbers, **columns})


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        ({"d": np.full(30, 1.5)}, {}, "column 'd' is constant"),
        ({"d": 2.0 * table()["a"] - table()["b"]}, {}, "linear function of"),
        ({"d": ["x", "y"] * 15}, {"score": "bge"}, "score 'bge'"),
        ({}, {"ess": 2.0, "score": "bge"}, "ess=2.0 has no effect on score 'bge'"),
        ({"d": [np.nan, *range(29)]}, {}, "missing"),
        ({"d": [np.inf, *np.arange(29) / 7]}, {}, "inf"),
    ],
)
def test_numbers_that_tell_nothing_are_refused(columns, options, words):
    with pytest.raises(qb.QubayesError) as error:
        qb.learn(table(**columns), 1, **options)
    assert words in str(error.value) and "\n" not in str(error.value)


def test_as_many_parents_as_rows_are_refused():
    with pytest.raises(qb.DataError, match="3 rows determine no variable by 2 parents"):
        qb.learn(table()[:3], 2)
