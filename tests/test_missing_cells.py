"""Tables with missing cells: what is read, and scores of families on their own rows."""

import pickle
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from candidate_cases import dependent_data
from qubayes import Knowledge, learn
from qubayes.candidates import CandidateSearch, identify
from qubayes.data import MissingCells, read, write
from qubayes.foundation.errors import DataError, SettingError
from qubayes.network import Network, fit, log_likelihood, sample_dataset
from qubayes.scores import Score, local_score
from reference.networks import acyclic
from reference.partial import own_rows_score
from strategies import table_of_numbers

FRAME = pd.DataFrame(
    {"a": ["x", None, "y", "x"], "b": ["1", "2", None, "1"], "c": ["p", "q", "q", "p"]}
)


def with_gaps(dataset, share, seed=0):
    """The data without this share of the cells, drawn at random; one row stays complete."""
    mask = np.random.default_rng(seed).random(dataset.codes.shape) < share
    mask[:, :6] = False
    if not dataset.numbers:
        return replace(dataset, missing=MissingCells(mask))
    numbers = {
        name: np.where(mask[v], np.nan, dataset.numbers[name])
        for v, name in enumerate(dataset.names)
    }
    return replace(dataset, numbers=numbers, missing=MissingCells(mask))


def numbers_of_chain(rows, seed=0):
    """Five columns of numbers, each dependent on the one before."""
    rng = np.random.default_rng(seed)
    cells = rng.normal(size=(rows, 5))
    for column in range(1, 5):
        cells[:, column] += 0.8 * cells[:, column - 1]
    return table_of_numbers(cells)


@pytest.mark.parametrize("treatment", ["rows", "impute"])
def test_missing_cells_are_read_as_a_mask(treatment):
    dataset = read(FRAME, missing=treatment)
    assert dataset.missing.treatment == treatment and dataset.has_gaps
    assert dataset.missing.mask.tolist() == FRAME.isna().to_numpy().T.tolist()
    assert dataset.states == (("x", "y"), ("1", "2"), ("p", "q"))
    assert dataset.take(np.array([0, 3])).missing is None
    assert dataset.select(np.array([2])).is_plain
    assert "16.7 % of the cells missing" in str(dataset)


def test_a_table_without_missing_cells_is_plain():
    plain = read(FRAME.dropna())
    for treatment in ("rows", "impute"):
        dataset = read(FRAME.dropna(), missing=treatment)
        assert dataset.is_plain and dataset.checksum == plain.checksum


def test_the_checksum_tells_which_cells_are_missing():
    sums = {read(FRAME, missing=each).checksum for each in ("rows", "impute", "state")}
    other = FRAME.copy()
    other.loc[1, "a"] = "x"
    assert len({*sums, read(other, missing="rows").checksum}) == 4


def test_missing_cells_stay_missing_in_frames_and_files(tmp_path):
    dataset = read(FRAME, missing="rows")
    assert dataset.to_frame().isna().equals(FRAME.isna())
    numbers = with_gaps(numbers_of_chain(30), 0.2)
    for data, name in product((dataset, numbers), ("x.csv", "x.parquet")):
        write(data, tmp_path / name)
        again = read(tmp_path / name, missing="rows")
        assert again.checksum == data.checksum, name


def test_a_column_without_any_value_is_refused():
    with pytest.raises(DataError, match=r"'a' has no value in any row; .*ignore=\['a'\]"):
        read(FRAME.assign(a=None), missing="rows")


def test_scores_with_a_prior_are_refused_with_the_remedy():
    dataset = read(FRAME, missing="rows")
    with pytest.raises(SettingError, match=r"'bdeu' needs tables .*missing='impute'.*score='bic'"):
        learn(dataset, 1, score="bdeu")


@pytest.mark.parametrize("name", ["bic", "aic", "loglik"])
@pytest.mark.parametrize("kind", ["discrete", "continuous"])
@given(st.data())
def test_every_score_is_its_definition(kind, name, data):
    seed = data.draw(st.integers(0, 50))
    plain = dependent_data(5, 40, seed) if kind == "discrete" else numbers_of_chain(40, seed)
    dataset = with_gaps(plain, data.draw(st.sampled_from([0.05, 0.3])), seed)
    engine = Score(name).engine(dataset)
    child = data.draw(st.integers(0, 4))
    possible = [v for v in range(5) if v != child]
    members = data.draw(st.lists(st.sampled_from(possible), unique=True, max_size=3))
    sets = np.array([[*members, -1]], np.int32)
    found = engine.extensions(child, sets, None)[0]
    alone = own_rows_score(dataset, child, members, name)
    assert found[-1] == pytest.approx(alone, rel=1e-9)
    assert local_score(dataset, child, members, Score(name)) == pytest.approx(alone, rel=1e-9)
    for other in possible:
        larger = list(dict.fromkeys([*members, other]))
        expected = own_rows_score(dataset, child, larger, name)
        assert found[other] == pytest.approx(expected, rel=1e-9)
    assert found[child] == -np.inf
    again = pickle.loads(pickle.dumps(engine))
    assert np.array_equal(again.pairs(np.arange(5)), engine.pairs(np.arange(5)))


@pytest.mark.parametrize("kind", ["discrete", "continuous"])
def test_without_missing_cells_the_scores_are_the_plain_ones(kind):
    plain = dependent_data(4, 50, 1) if kind == "discrete" else numbers_of_chain(50)
    mask = np.zeros(plain.codes.shape, np.bool_)
    dataset = replace(plain, missing=MissingCells(mask))
    for name, parents in product(("bic", "aic", "loglik"), ([], [1], [1, 2])):
        expected = local_score(plain, 0, parents, Score(name))
        assert local_score(dataset, 0, parents, Score(name)) == pytest.approx(expected, rel=1e-9)


def all_networks(n):
    """Parent sets of every acyclic graph of n vertices."""
    subsets = [
        [[v for v in range(n) if word >> v & 1] for word in range(1 << n) if not word >> child & 1]
        for child in range(n)
    ]
    return [parents for parents in product(*subsets) if acyclic(parents)]


@pytest.mark.parametrize("kind", ["discrete", "continuous"])
def test_the_best_of_all_networks_of_four_vertices_is_proved(kind):
    plain = dependent_data(4, 60, 3, states=2) if kind == "discrete" else numbers_of_chain(60)
    dataset = with_gaps(plain.select(np.arange(4)), 0.2)
    scores = {
        (child, parents): own_rows_score(dataset, child, parents, "bic")
        for child in range(4)
        for parents in map(tuple, {tuple(its[child]) for its in all_networks(4)})
    }
    best = max(
        sum(scores[child, tuple(its)] for child, its in enumerate(parents))
        for parents in all_networks(4)
    )
    learned = learn(dataset, 3)
    assert learned.solution.proved
    assert learned.solution.score == pytest.approx(best, rel=1e-9)


def test_candidate_sets_follow_prior_knowledge():
    dataset = with_gaps(dependent_data(5, 80, 2), 0.1)
    knowledge = Knowledge(
        required=[("v0", "v2")], forbidden=[("v1", "v2")], priors=[("v3", "v2", 50.0)]
    )
    found = identify(dataset, CandidateSearch(3, Score("bic"), knowledge))
    sets = dict(found.of(2))
    assert all(0 in parents and 1 not in parents for parents in sets)
    score = own_rows_score(dataset, 2, [0, 3], "bic") + 50.0
    assert sets[0, 3] == pytest.approx(score, rel=1e-9)


def test_probabilities_are_those_of_the_rows_of_the_family():
    dataset = with_gaps(dependent_data(3, 200, 5, states=2), 0.2)
    network = Network(dataset.names, ((), (0,), ()))
    table = fit(network, dataset, "ml").tables[1]
    rows = ~dataset.missing.mask[[0, 1]].any(axis=0)
    first, second = dataset.codes[:2, rows]
    assert table[1, 1] == pytest.approx(second[first == 1].mean())
    with pytest.raises(DataError, match="missing='drop'"):
        log_likelihood(fit(network, dataset), dataset)


def test_rows_finds_the_edges_of_a_chain():
    network = Network(("a", "b", "c"), ((), (0,), (1,)), states=(("n", "y"),) * 3)
    rare = np.array([[0.9, 0.1], [0.2, 0.8]])
    tables = (np.array([0.5, 0.5]), rare, rare)
    dataset = with_gaps(sample_dataset(replace(network, tables=tables), 500), 0.3)
    learned = learn(dataset)
    assert {frozenset(edge) for edge in learned.network.edges} == {
        frozenset("ab"),
        frozenset("bc"),
    }
