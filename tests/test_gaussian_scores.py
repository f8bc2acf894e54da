"""Scores of linear Gaussian models against their definitions."""

from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qubayes import Knowledge, SettingError, Workers
from qubayes.candidates import Stamp
from qubayes.data import Dataset
from qubayes.scores import GAUSSIAN_NAMES, Score, local_score
from qubayes.search import Growth
from reference import scores as reference


def table(rows, names=None):
    """A table of numbers, from (rows, n)."""
    names = names or tuple(f"x{v}" for v in range(rows.shape[1]))
    codes = np.zeros((len(names), len(rows)), np.uint8)
    numbers = {name: np.ascontiguousarray(rows[:, v]) for v, name in enumerate(names)}
    return Dataset(names, ((),) * len(names), codes, numbers=numbers)


@st.composite
def numbers(draw):
    n = draw(st.integers(2, 6))
    count = draw(st.integers(20, 60))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = random.normal(size=(count, n))
    for v in range(1, n):
        rows[:, v] += random.normal() * rows[:, random.integers(0, v)]
    return rows * 10.0 ** random.integers(-3, 4, n) + random.normal(size=n)


def defined(rows, name, child, parents):
    if name == "bge":
        return reference.bge_score(rows, child, parents)
    penalty = {"bic": 0.5 * log(len(rows)), "aic": 1.0, "loglik": 0.0}[name]
    return reference.gaussian_score(rows, child, parents, penalty)


@given(numbers(), st.sampled_from(GAUSSIAN_NAMES), st.data())
def test_scores_are_their_definitions(rows, name, data):
    dataset = table(rows)
    score = Score(name)
    child = data.draw(st.integers(0, dataset.n - 1))
    possible = [v for v in range(dataset.n) if v != child]
    parents = data.draw(st.lists(st.sampled_from(possible), unique=True))
    expected = defined(rows, name, child, parents)
    assert local_score(dataset, child, parents, score) == pytest.approx(expected, rel=1e-9)
    sets = np.array([parents], np.int32).reshape(1, len(parents))
    found = score.engine(dataset).extensions(child, sets, None)[0]
    assert found[-1] == pytest.approx(expected, rel=1e-9)
    for other in range(dataset.n):
        if other == child:
            assert found[other] == -np.inf
        else:
            larger = list(dict.fromkeys([*parents, other]))
            expected = defined(rows, name, child, larger)
            assert found[other] == pytest.approx(expected, rel=1e-9)


@given(numbers(), st.sampled_from(GAUSSIAN_NAMES))
def test_pairs_are_local_scores(rows, name):
    engine = Score(name).engine(table(rows))
    found = engine.pairs(np.arange(engine.n))
    for child in range(engine.n):
        for parent in range(engine.n):
            members = [] if parent == child else [parent]
            assert found[child, parent] == pytest.approx(engine.local(child, members), rel=1e-9)


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
