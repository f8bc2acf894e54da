"""Scores of linear Gaussian models that tests/test_engines.py does not check."""

import numpy as np
import pytest

from qubayes import Knowledge, SettingError, Workers
from qubayes.candidates import Stamp
from qubayes.scores import GAUSSIAN_NAMES, Score
from qubayes.search import Growth
from strategies import table_of_numbers as table


def test_a_linear_function_of_other_columns_is_no_parent_beside_them():
    random = np.random.default_rng(0)
    rows = random.normal(size=(100, 4))
    rows[:, 2] = rows[:, 0] - 2 * rows[:, 1]
    engine = Score("bic").engine(table(rows))
    found = engine.extensions(3, np.array([[0, 1]], np.int32), None)[0]
    assert found[2] == -np.inf
    assert np.isfinite(found[-1])
    assert engine.extensions(2, np.array([[0, 1]], np.int32), None)[0, -1] == -np.inf


def test_equivalent_networks_score_the_same():
    rows = np.random.default_rng(1).normal(size=(50, 2)) @ np.array([[1, 0.7], [0, 1]])
    for name in GAUSSIAN_NAMES:
        engine = Score(name).engine(table(rows))
        one = engine.local(0, []) + engine.local(1, [0])
        two = engine.local(1, []) + engine.local(0, [1])
        assert one == pytest.approx(two, rel=1e-12)


def test_a_network_of_numbers_is_found():
    random = np.random.default_rng(2)
    rows = random.normal(size=(300, 5))
    rows[:, 2] += 2 * rows[:, 0] - rows[:, 1]
    rows[:, 4] += rows[:, 2]
    dataset = table(rows)
    allowed = Knowledge().resolve(dataset.names, 4)
    engine = Score("bge").engine(dataset)
    found = Growth(engine, dataset.names, allowed, Stamp("bge"), workers=Workers(1))
    found.run()
    joined = {frozenset((p, c)) for c, its in enumerate(found.network.parents) for p in its}
    assert joined == {frozenset(pair) for pair in ((0, 2), (1, 2), (2, 4))}


def test_scores_of_the_other_kind_are_refused():
    with pytest.raises(SettingError, match="bdeu' is for discrete columns"):
        Score("bdeu").engine(table(np.random.default_rng(0).normal(size=(9, 2))))
    with pytest.raises(SettingError, match="bge' is for continuous columns"):
        Score("bge").formula(10)
