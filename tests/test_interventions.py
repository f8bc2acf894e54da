"""Experiments: a row in which a variable was set leaves its family."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import qubayes
from candidate_cases import dependent_data, run
from qubayes import judge, learn, score
from qubayes.candidates import CandidateSearch, identify
from qubayes.data import MissingCells, ReadSettings, read
from qubayes.foundation.errors import DataError
from qubayes.network import Network, cpdag, fit, log_likelihood
from qubayes.scores import Score, local_score
from reference.networks import acyclic
from reference.partial import experiment_score
from strategies import table_of_numbers

FRAME = pd.DataFrame(
    {
        "a": ["x", "y", "y", "x", "y"],
        "b": ["p", "q", "p", "q", "q"],
        "INT": ["", "a", "a;b", None, "b"],
    }
)
MARKS = [[False, True, True, False, False], [False, False, True, False, True]]


def with_experiments(dataset, share, seed=0):
    """The data as if this share of the cells had been set; the first rows are observed."""
    marks = np.random.default_rng(seed).random(dataset.codes.shape) < share
    marks[:, :6] = False
    return replace(dataset, interventions=marks)


def test_a_column_names_the_variables_that_were_set():
    dataset = read(FRAME, interventions="INT")
    assert dataset.names == ("a", "b")
    assert dataset.interventions.tolist() == MARKS
    assert dataset.take(np.array([0, 3])).is_plain
    assert dataset.select(np.array([1])).interventions.tolist() == MARKS[1:]
    assert dataset.checksum != read(FRAME.drop(columns="INT")).checksum
    assert "40 % of the cells set" in str(dataset)


def test_truth_values_say_the_same():
    plain = FRAME.drop(columns="INT")
    table = pd.DataFrame({"a": MARKS[0], "b": MARKS[1]})
    expected = read(FRAME, interventions="INT").checksum
    for given_as in (table, table.to_numpy(), {"a": MARKS[0], "b": MARKS[1]}, table.astype(int)):
        assert read(plain, interventions=given_as).checksum == expected
    one = read(plain, interventions=table[["b"]])
    assert one.interventions.tolist() == [[False] * 5, MARKS[1]]
    dropped = read(plain.assign(b=["p", None, "p", "q", "q"]), missing="drop", interventions=table)
    assert dropped.interventions.astype(int).tolist() == [[0, 1, 0, 0], [0, 1, 0, 1]]


@pytest.mark.parametrize(
    ("given_as", "words"),
    [
        ("X", r"interventions='X' is no column; columns are 'a', 'b', 'INT'"),
        ("b", r"column 'b', row 1: 'p' is not a variable; .* 'a', 'INT'"),
        (pd.DataFrame({"z": [True] * 5}), "names 'z', which is not a variable"),
        (pd.DataFrame({"a": [True] * 5}), r"'a' was set in all rows, .*ignore=\['a'\]"),
        (pd.DataFrame({"a": [True] * 2}), "has 2 rows, and the data 5"),
        (np.ones((2, 2)), r"shape \(2, 2\); give truth values for 5 rows of 3 variables"),
        (pd.DataFrame({"a": ["yes"] * 5}), "'yes', which is no truth value"),
    ],
)
def test_wrong_interventions_are_refused_in_one_line(given_as, words):
    with pytest.raises(DataError, match=words) as caught:
        read(FRAME.assign(INT=FRAME.INT.replace("", "none").fillna("none")), interventions=given_as)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["bdeu", "bds", "k2", "bic", "loglik"])
@given(st.data())
def test_every_score_is_that_of_the_rows_in_which_the_child_was_not_set(name, data):
    seed = data.draw(st.integers(0, 50))
    dataset = with_experiments(dependent_data(5, 40, seed), 0.2, seed)
    ess = 1.0 if name in ("k2", "bic", "loglik") else 3.0
    engine = Score(name, ess).engine(dataset)
    child = data.draw(st.integers(0, 4))
    possible = [v for v in range(5) if v != child]
    members = data.draw(st.lists(st.sampled_from(possible), unique=True, max_size=3))
    alone = experiment_score(dataset, child, members, name, ess)
    found = engine.extensions(child, np.array([[*members, -1]], np.int32), None)[0]
    assert found[-1] == pytest.approx(alone, rel=1e-9)
    assert local_score(dataset, child, members, Score(name, ess)) == pytest.approx(alone, rel=1e-9)
    pairs = engine.pairs(np.arange(5))
    for other in possible:
        larger = list(dict.fromkeys([*members, other]))
        expected = experiment_score(dataset, child, larger, name, ess)
        assert found[other] == pytest.approx(expected, rel=1e-9)
        single = experiment_score(dataset, child, [other], name, ess)
        assert pairs[child, other] == pytest.approx(single, rel=1e-9)


def all_networks(n):
    """Parent sets of every acyclic graph of n vertices."""
    subsets = [
        [
            tuple(v for v in range(n) if word >> v & 1)
            for word in range(1 << n)
            if not word >> child & 1
        ]
        for child in range(n)
    ]
    return [parents for parents in product(*subsets) if acyclic(parents)]


def test_the_best_of_all_networks_of_four_vertices_is_proved():
    dataset = with_experiments(dependent_data(4, 60, 3, states=2), 0.2)
    networks = all_networks(4)
    scores = {
        (child, parents): experiment_score(dataset, child, parents, "bdeu", 1.0)
        for child in range(4)
        for parents in {its[child] for its in networks}
    }
    best = max(sum(scores[pair] for pair in enumerate(parents)) for parents in networks)
    learned = learn(dataset, 3)
    assert learned.solution.proved
    assert learned.solution.score == pytest.approx(best, rel=1e-9)
    found = judge(dataset, learned.network, 3)
    assert found.optimal and found.score == pytest.approx(best, rel=1e-9)
    assert score(learned.network, dataset).total == pytest.approx(best, rel=1e-9)


def test_candidate_sets_are_those_of_the_rows_of_each_child():
    dataset = with_experiments(dependent_data(6, 100, 4), 0.1)
    found = identify(dataset, CandidateSearch(2))
    for child in range(6):
        rows = np.flatnonzero(~dataset.interventions[child])
        plain = replace(dataset, interventions=None).take(rows)
        expected = dict(identify(plain, CandidateSearch(2)).of(child))
        sets = dict(found.of(child))
        assert sets.keys() == expected.keys()
        assert all(sets[each] == pytest.approx(expected[each], rel=1e-9) for each in sets)


def numbers_with_experiments():
    """Two dependent columns of numbers, of which the second was set in some rows."""
    rng = np.random.default_rng(0)
    first = rng.normal(size=400)
    second = first + 0.5 * rng.normal(size=400)
    set_rows = np.arange(400) < 150
    second[set_rows] = rng.normal(size=150)
    dataset = table_of_numbers(np.array([first, second]).T, ("first", "second"))
    return replace(dataset, interventions=np.array([np.zeros(400, np.bool_), set_rows]))


def test_experiments_direct_an_edge_between_numbers():
    dataset = numbers_with_experiments()
    learned = learn(dataset)
    assert learned.network.edges == [("first", "second")]
    rows = np.flatnonzero(~dataset.interventions[1])
    first, second = (dataset.numbers[name][rows] for name in dataset.names)
    slope = np.polyfit(first, second, 1)[0]
    assert learned.network.linears[1].weights[0] == pytest.approx(slope)
    pattern = cpdag(learned.network, dataset.told)
    assert pattern.directed == ((0, 1),) and not cpdag(learned.network).directed


def test_probabilities_and_likelihood_leave_out_the_rows_that_were_set():
    dataset = with_experiments(dependent_data(2, 100, 5, states=2), 0.3)
    network = fit(Network(dataset.names, ((), (0,))), dataset, "ml")
    kept = [~marks for marks in dataset.interventions]
    first, second = dataset.codes
    assert network.tables[0][1] == pytest.approx(first[kept[0]].mean())
    assert network.tables[1][1, 1] == pytest.approx(second[kept[1] & (first == 1)].mean())
    expected = np.log(network.tables[0][first[kept[0]]]).sum()
    expected += np.log(network.tables[1][first[kept[1]], second[kept[1]]]).sum()
    assert log_likelihood(network, dataset) == pytest.approx(expected)


def test_the_bootstrap_counts_directions_that_experiments_tell():
    learned = learn(numbers_with_experiments(), 1, bootstrap=5)
    assert learned.confidence.frequencies[0, 1] == 1.0


def equivalent(one, other, marks):
    """Whether two networks have the same skeleton and v-structures in every experiment."""
    for target in {tuple(row) for row in marks.T.tolist()}:
        graphs = []
        for parents in (one, other):
            left = [() if target[v] else its for v, its in enumerate(parents)]
            pairs = {frozenset((p, v)) for v, its in enumerate(left) for p in its}
            meets = {
                (a, v, b)
                for v, its in enumerate(left)
                for a in its
                for b in its
                if a < b and frozenset((a, b)) not in pairs
            }
            graphs.append((pairs, meets))
        if graphs[0] != graphs[1]:
            return False
    return True


@pytest.mark.parametrize("targets", [[(0,)], [(1, 2)], [(0,), (3,)]])
def test_the_class_is_that_of_all_networks_that_no_experiment_tells_apart(targets):
    marks = np.zeros((4, 1 + len(targets)), np.bool_)  # the first row is observed
    for row, target in enumerate(targets, 1):
        marks[list(target), row] = True
    dataset = replace(dependent_data(4, marks.shape[1], 0), interventions=marks)
    networks = all_networks(4)
    for parents in networks[::7]:
        members = [other for other in networks if equivalent(parents, other, marks)]
        edges = [{(p, v) for v, its in enumerate(each) for p in its} for each in members]
        common = set.intersection(*edges) if edges else set()
        found = cpdag(Network(dataset.names, parents), dataset.told)
        assert set(found.directed) == common
        rest = {(min(edge), max(edge)) for edge in edges[0] - common}
        assert set(found.undirected) == rest


def test_the_command_line_and_the_estimator_take_the_column(tmp_path, capsys):
    rng = np.random.default_rng(0)
    first = rng.random(200) < 0.5
    second = first ^ (rng.random(200) < 0.1)
    second[:80] = rng.random(80) < 0.5
    frame = pd.DataFrame({"first": first, "second": second, "INT": ["second"] * 80 + [""] * 120})
    frame.to_csv(tmp_path / "set.csv", index=False)
    code, out, err = run(capsys, "learn", tmp_path / "set.csv", "--interventions", "INT")
    assert code == 0, err
    assert "20 % of the cells set by experiments" in out
    reading = ReadSettings(interventions="INT")
    fitted = qubayes.BayesianNetworkEstimator(reading=reading).fit(frame)
    learned = learn(frame, interventions="INT")
    assert fitted.network_.edges == learned.network.edges == [("first", "second")]
    assert fitted.score_ == pytest.approx(learned.solution.score)


def test_experiments_with_numbers_and_states():
    rng = np.random.default_rng(0)
    state = rng.integers(0, 2, 300)
    number = state + 0.5 * rng.normal(size=300)
    number[:100] = rng.normal(size=100)
    frame = pd.DataFrame({"state": np.where(state, "u", "v"), "number": number})
    marks = pd.DataFrame({"number": np.arange(300) < 100})
    learned = learn(frame, interventions=marks)
    assert learned.solution.proved and learned.network.edges == [("state", "number")]
    plain = read(frame.iloc[100:].reset_index(drop=True))
    expected = local_score(plain, 1, [0], Score("auto").on(plain))
    found = local_score(learned.dataset, 1, [0], Score("auto").on(plain))
    assert found == pytest.approx(expected, rel=1e-9)


def test_missing_cells_and_experiments_at_once():
    dataset = with_experiments(dependent_data(5, 80, 1), 0.1)
    mask = np.random.default_rng(1).random(dataset.codes.shape) < 0.1
    both = replace(dataset, missing=MissingCells(mask, "rows"))
    rows = np.flatnonzero(~dataset.interventions[2])
    plain = replace(both, interventions=None).take(rows)
    expected = local_score(plain, 2, [0, 1], Score("bic"))
    assert local_score(both, 2, [0, 1], Score("bic")) == pytest.approx(expected, rel=1e-9)
    imputed = learn(replace(both, missing=MissingCells(mask, "impute")), 1, completions=2)
    assert imputed.solution.proved and imputed.dataset.interventions is not None
