"""Local scores against the oracle and against pgmpy."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qubayes import SettingError
from qubayes.candidates import CandidateSearch, identify
from qubayes.data import Dataset
from qubayes.network import Network, fit
from qubayes.scores import EACH, NAMES, OBSERVED, Formula, Score, is_score, local_score, score
from reference import scores as reference
from reference.candidates import prune as pruned
from strategies import datasets


@given(
    datasets(max_variables=4, max_rows=40), st.sampled_from(NAMES), st.floats(0.1, 50), st.data()
)
def test_local_score_is_its_definition(dataset, name, ess, data):
    child = data.draw(st.integers(0, dataset.n - 1))
    parents = data.draw(
        st.lists(st.sampled_from([i for i in range(dataset.n) if i != child]), unique=True)
    )
    rows = [tuple(row) for row in dataset.codes.T.tolist()]
    expected = reference.local_score(rows, dataset.arities.tolist(), child, parents, name, ess)
    assert local_score(dataset, child, parents, Score(name, ess)) == pytest.approx(
        expected, rel=1e-11, abs=1e-9
    )


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
        assert local_score(dataset, child, parents, Score(name, 5)) == pytest.approx(
            expected, rel=1e-9
        )


def test_likelihood_of_a_copy_is_one():
    codes = np.array([[0, 1, 1, 0], [1, 0, 0, 1]], dtype=np.uint8)
    dataset = Dataset(("a", "b"), (("x", "y"), ("x", "y")), codes)
    assert local_score(dataset, 1, [0], Score("loglik")) == 0.0
    assert local_score(dataset, 1, [], Score("loglik")) == pytest.approx(-4 * math.log(2))


@pytest.mark.parametrize(
    "settings",
    [
        ("bde", 1.0),
        ("bdeu", 0.0),
        ("bdeu", -1.0),
        ("bds", math.nan),
        ("bds", math.inf),
        ("k2", 9e-101),
        ("bds", 2e100),
    ],
)
def test_bad_settings(settings):
    with pytest.raises(SettingError):
        Score(*settings)


def test_nothing_is_lost_where_a_score_is_a_small_difference():
    """A binary variable with one state in 10^6 rows: log S = lnΓ(N + a/2) − lnΓ(a/2) − lnΓ(N + a) + lnΓ(a) ≈ −log 2.

    To first order in a it is −log 2 − (a/2) (ψ(N) − ψ(1)), and ψ(10^6) − ψ(1) = 14.392726...; the
    two sums are 1.3e7."""
    dataset = Dataset(("a",), (("x", "y"),), np.zeros((1, 10**6), dtype=np.uint8))
    expected = -math.log(2) - 0.5e-9 * (math.log(10**6) - 0.5e-6 + 0.5772156649015329)
    assert local_score(dataset, 0, [], Score("bdeu", 1e-9)) == pytest.approx(expected, rel=1e-13)


def test_nothing_is_lost_to_a_large_prior():
    """With a prior of 10^15 counts every row costs log 2, up to 1e-15."""
    dataset = Dataset(("a",), (("x", "y"),), np.zeros((1, 3), dtype=np.uint8))
    assert local_score(dataset, 0, [], Score("bdeu", 1e15)) == pytest.approx(
        -3 * math.log(2), rel=1e-13
    )


def jeffreys(ess: float, rows: int) -> Formula:
    """Half a count in each cell."""
    return Formula(EACH, 0.5)


def dear(ess: float, rows: int) -> Formula:
    """BDs with a price for each parameter."""
    return Formula(OBSERVED, ess, 0.01 * math.log(rows))


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package that brings scores by its entry points."""
    facts = tmp_path / "more_scores-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: more-scores\nVersion: 1.0\n")
    points = "jeffreys = test_score:jeffreys\ndear = test_score:dear\nbdeu = test_score:jeffreys\n"
    (facts / "entry_points.txt").write_text(f"[qubayes.scores]\n{points}")
    monkeypatch.syspath_prepend(tmp_path)
    score._installed.cache_clear()
    yield
    score._installed.cache_clear()


@pytest.mark.parametrize("states", [2, 3])
def test_a_score_of_another_package_is_used_everywhere(installed, states):
    rng = np.random.default_rng(states)
    codes = rng.integers(0, states, (5, 60)).astype(np.uint8)
    codes[2] = (codes[0] + codes[1] + (rng.random(60) < 0.1)) % states
    dataset = Dataset(tuple("abcde"), (tuple("xyzw"[: states + 1]),) * 5, codes)
    for name, ess in (("jeffreys", None), ("dear", 2.0)):
        chosen = Score(name, 2.0)
        assert chosen.stamped_ess == ess
        found = identify(dataset, CandidateSearch(4, chosen))
        table = [
            [(w, local_score(dataset, i, w, chosen)) for w in sets_without(i)] for i in range(5)
        ]
        for i, kept in enumerate(pruned(table)):
            assert [w for w, _ in found.of(i)] == [w for w, _ in kept]
            assert [s for _, s in found.of(i)] == pytest.approx([s for _, s in kept])
    fitted = fit(Network(dataset.names, ((), (), (0,), (), ())), dataset, "jeffreys")
    counts = np.bincount(codes[0], minlength=states + 1)
    np.testing.assert_allclose(fitted.tables[0], (counts + 0.5) / (60 + 0.5 * (states + 1)))


def sets_without(child: int) -> list[tuple[int, ...]]:
    others = [v for v in range(5) if v != child]
    return [w for size in range(5) for w in combinations(others, size)]


def test_names_of_this_package_come_first(installed):
    assert Score("bdeu", 3.0).formula(10).prior == 3.0
    assert is_score("dear") and not is_score("cheap")
    with pytest.raises(
        SettingError, match=r"'cheap' is unknown; choose one of bdeu, .*, dear, jeffreys"
    ):
        Score("cheap")


@pytest.mark.parametrize(
    "wrong", [Formula(7, 1.0), Formula(EACH, -1.0), Formula(EACH, math.nan), Formula(EACH, 1, -1)]
)
def test_impossible_formulas_are_refused(wrong, monkeypatch):
    monkeypatch.setitem(score.FORMULAS, "wrong", lambda ess, rows: wrong)
    with pytest.raises(SettingError, match="'wrong' gives"):
        Score("wrong").formula(5)
