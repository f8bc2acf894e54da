"""Local scores against the oracle and against pgmpy."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qubayes.data import Dataset
from qubayes.foundation.errors import SettingError
from qubayes.scores import NAMES, Score, local_score
from reference import scores as reference
from strategies import datasets


@settings(deadline=None, max_examples=60)
@given(datasets(max_variables=4, max_rows=40), st.sampled_from(NAMES), st.floats(0.1, 50), st.data())
def test_local_score_is_its_definition(dataset, name, ess, data):
    child = data.draw(st.integers(0, dataset.n - 1))
    parents = data.draw(st.lists(st.sampled_from([i for i in range(dataset.n) if i != child]), unique=True))
    rows = [tuple(row) for row in dataset.codes.T.tolist()]
    expected = reference.local_score(rows, dataset.arities.tolist(), child, parents, name, ess)
    assert local_score(dataset, child, parents, Score(name, ess)) == pytest.approx(expected, rel=1e-11, abs=1e-9)


def _frame(dataset: Dataset):
    import pandas as pd

    columns = {
        name: pd.Categorical.from_codes(codes.astype(int), categories=list(states))
        for name, states, codes in zip(dataset.names, dataset.states, dataset.codes, strict=True)
    }
    return pd.DataFrame(columns)


@pytest.mark.parametrize(
    ("name", "theirs", "options"),
    [
        ("bdeu", "BDeu", {"equivalent_sample_size": 5}),
        ("bds", "BDs", {"equivalent_sample_size": 5}),
        ("k2", "K2", {}),
        ("bic", "BIC", {}),
        ("aic", "AIC", {}),
    ],
)
def test_agrees_with_pgmpy(name, theirs, options):
    """Every state of every variable is observed here, so that both mean the same by BDs."""
    scores = pytest.importorskip("pgmpy.structure_score")
    rng = np.random.default_rng(5)
    codes = np.array([rng.integers(0, r, 300) for r in (2, 3, 4)], dtype=np.uint8)
    codes[2] = (codes[0] + codes[1] + (rng.random(300) < 0.2)) % 4
    dataset = Dataset(("a", "b", "c"), (("0", "1"), ("0", "1", "2"), ("0", "1", "2", "3")), codes)
    other = getattr(scores, theirs)(_frame(dataset), **options)
    for child, parents in [(2, []), (2, [0]), (2, [0, 1]), (0, [2])]:
        expected = other.local_score(dataset.names[child], tuple(dataset.names[p] for p in parents))
        assert local_score(dataset, child, parents, Score(name, 5)) == pytest.approx(expected, rel=1e-9)


def test_likelihood_of_a_copy_is_one():
    codes = np.array([[0, 1, 1, 0], [1, 0, 0, 1]], dtype=np.uint8)
    dataset = Dataset(("a", "b"), (("x", "y"), ("x", "y")), codes)
    assert local_score(dataset, 1, [0], Score("loglik")) == 0.0
    assert local_score(dataset, 1, [], Score("loglik")) == pytest.approx(-4 * math.log(2))


@pytest.mark.parametrize(
    "settings",
    [("bde", 1.0), ("bdeu", 0.0), ("bdeu", -1.0), ("bds", math.nan), ("bds", math.inf), ("k2", 9e-101), ("bds", 2e100)],
)
def test_bad_settings(settings):
    with pytest.raises(SettingError):
        Score(*settings)


def test_nothing_is_lost_where_a_score_is_a_small_difference():
    """A binary variable with one state in 10^6 rows: log S = lnΓ(N + a/2) − lnΓ(a/2) − lnΓ(N + a) + lnΓ(a) ≈ −log 2.

    To first order in a it is −log 2 − (a/2) (ψ(N) − ψ(1)), and ψ(10^6) − ψ(1) = 14.392726...; the two sums are 1.3e7.
    """
    dataset = Dataset(("a",), (("x", "y"),), np.zeros((1, 10**6), dtype=np.uint8))
    expected = -math.log(2) - 0.5e-9 * (math.log(10**6) - 0.5e-6 + 0.5772156649015329)
    assert local_score(dataset, 0, [], Score("bdeu", 1e-9)) == pytest.approx(expected, rel=1e-13)


def test_nothing_is_lost_to_a_large_prior():
    """With a prior of 10^15 counts every row costs log 2, up to 1e-15."""
    dataset = Dataset(("a",), (("x", "y"),), np.zeros((1, 3), dtype=np.uint8))
    assert local_score(dataset, 0, [], Score("bdeu", 1e15)) == pytest.approx(-3 * math.log(2), rel=1e-13)
