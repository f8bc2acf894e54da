"""Parameters and likelihoods against dictionaries of counts."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import qubayes as qb
from network_cases import graphs, networks
from qubayes import DataError, QubayesError, SettingError
from qubayes.data import Dataset, read
from qubayes.network import Network, fit, log_likelihood, sample_dataset, vertex_scores
from qubayes.scores import NAMES, Score
from reference import network as reference
from reference.data import joint_probability
from reference.scores import local_score


@st.composite
def graphs_with_data(draw, max_rows=30):
    """A graph, and rows of its variables in another order, with states that never occur."""
    graph = draw(graphs(max_vertices=4))
    columns = draw(st.permutations(range(graph.n)))
    arities = draw(st.lists(st.integers(1, 3), min_size=graph.n, max_size=graph.n))
    rows = draw(st.integers(1, max_rows))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    codes = np.array([rng.integers(0, arities[v], rows) for v in columns], dtype=np.uint8)
    states = tuple(tuple(str(k) for k in range(arities[v] + rng.integers(0, 2))) for v in columns)
    return graph, Dataset(tuple(graph.names[v] for v in columns), states, codes)


def rows_of(dataset, names):
    """The rows as tuples of codes, in the order of the names; and the arities."""
    places = [dataset.names.index(name) for name in names]
    arities = [len(dataset.states[place]) for place in places]
    return list(zip(*dataset.codes[places].tolist(), strict=True)), arities


@given(graphs_with_data(), st.sampled_from([*NAMES, "ml"]), st.sampled_from([0.1, 1.0, 10.0]))
@settings(max_examples=5 * settings.default.max_examples)
def test_tables_are_posterior_means_or_frequencies(case, name, ess):
    graph, dataset = case
    fitted = fit(graph, dataset, "ml" if name == "ml" else Score(name, ess))
    rows, arities = rows_of(dataset, graph.names)
    for vertex, parents in enumerate(graph.parents):
        wanted = reference.table(rows, arities, vertex, parents, name, ess)
        assert fitted.tables[vertex].size == len(wanted)
        for (given_states, state), probability in wanted.items():
            assert fitted.tables[vertex][(*given_states, state)] == pytest.approx(
                probability, rel=1e-12
            )
    assert fitted.states == tuple(dataset.states[dataset.names.index(name)] for name in graph.names)


@given(graphs_with_data(), st.sampled_from(NAMES))
def test_scores_of_the_vertices(case, name):
    graph, dataset = case
    rows, arities = rows_of(dataset, graph.names)
    found = vertex_scores(graph, dataset, Score(name, 2.0))
    wanted = [local_score(rows, arities, v, its, name, 2.0) for v, its in enumerate(graph.parents)]
    assert found.tolist() == pytest.approx(wanted, abs=1e-9)


@given(networks(), st.integers(0, 1000), st.integers(1, 40))
@settings(max_examples=2 * settings.default.max_examples)
def test_log_likelihood_is_the_sum_over_rows(network, seed, rows):
    rng = np.random.default_rng(seed)
    columns = rng.permutation(network.n)
    codes = np.array(
        [rng.integers(0, len(network.states[v]), rows) for v in columns], dtype=np.uint8
    )
    dataset = Dataset(
        tuple(network.names[v] for v in columns), tuple(network.states[v] for v in columns), codes
    )
    wanted = 0.0
    for row in rows_of(dataset, network.names)[0]:
        probability = joint_probability(network, row)
        wanted = wanted + math.log(probability) if probability else -math.inf
    assert log_likelihood(network, dataset) == pytest.approx(wanted, rel=1e-9, abs=1e-9)


def test_maximum_likelihood_beats_every_other_table_on_its_own_data():
    graph = Network(("a", "b"), ((), (0,)))
    dataset = Dataset(
        ("a", "b"),
        (("x", "y"), ("x", "y")),
        np.array([[0, 0, 0, 1, 1], [0, 0, 1, 1, 1]], dtype=np.uint8),
    )
    best = log_likelihood(fit(graph, dataset, "ml"), dataset)
    assert best == pytest.approx(vertex_scores(graph, dataset, Score("loglik")).sum())
    assert all(
        log_likelihood(fit(graph, dataset, name), dataset) < best for name in ("bdeu", "bds", "k2")
    )


def test_held_out_rows_that_frequencies_hold_impossible():
    graph = Network(("a",), ((),))
    train = Dataset(("a",), (("x", "y"),), np.array([[0, 0]], dtype=np.uint8))
    test = Dataset(("a",), (("y", "x"),), np.array([[0, 1]], dtype=np.uint8))
    assert log_likelihood(fit(graph, train, "ml"), test) == -math.inf
    assert log_likelihood(fit(graph, train, Score("bdeu", 2.0)), test) == pytest.approx(
        math.log(1 / 4 * 3 / 4)
    )


def test_states_are_matched_by_name_and_may_be_declared_without_occurring():
    network = Network(("a",), ((),), (("low", "high"),), (np.array([0.25, 0.75]),))
    data = Dataset(
        ("z", "a"),
        (("0",), ("high", "other", "low")),
        np.array([[0, 0, 0], [0, 0, 2]], dtype=np.uint8),
    )
    assert log_likelihood(network, data) == pytest.approx(2 * math.log(0.75) + math.log(0.25))
    assert fit(network, data, "ml").tables[0].tolist() == pytest.approx([1 / 3, 2 / 3])
    assert fit(network, data, "ml").states == network.states
    strange = Dataset(data.names, data.states, np.array([[0, 0, 0], [0, 1, 2]], dtype=np.uint8))
    for ask in (log_likelihood, fit):
        with pytest.raises(
            DataError,
            match="column 'a', row 2: 'other' is not a state of the network; its states are 'low'",
        ):
            ask(network, strange)


def test_missing_columns_are_named():
    data = Dataset(("b",), (("0",),), np.zeros((1, 1), dtype=np.uint8))
    network = Network(("a", "b"), ((), ()), (("0",), ("0",)), (np.ones(1), np.ones(1)))
    for ask in (log_likelihood, fit, vertex_scores):
        with pytest.raises(DataError, match="no column 'a'; columns are 'b'"):
            ask(network, data)


def test_no_tables_and_unknown_estimators():
    data = Dataset(("a",), (("0",),), np.zeros((1, 1), dtype=np.uint8))
    with pytest.raises(QubayesError, match="fit it to data"):
        log_likelihood(Network(("a",), ((),)), data)
    with pytest.raises(SettingError, match=r"'map'.*'ml'"):
        fit(Network(("a",), ((),)), data, "map")


def test_a_table_of_a_billion_cells_is_refused_before_it_is_made():
    n, arity = 10, 10
    graph = Network(tuple("abcdefghij"), (*((),) * (n - 1), tuple(range(n - 1))))
    data = Dataset(
        graph.names, (tuple(map(str, range(arity))),) * n, np.zeros((n, 1), dtype=np.uint8)
    )
    with pytest.raises(
        QubayesError, match=r"10000000000 of them for 'j' and its 9 parents; at most 100000000"
    ):
        fit(graph, data)
    # Arities so large that their product passes 64 bits.
    wide = Network(tuple("abcdefghij"), graph.parents, (tuple(map(str, range(1000))),) * n)
    with pytest.raises(QubayesError, match="at most 100000000"):
        fit(wide, data)


def test_unseen_parent_states_are_uniform_for_every_score():
    data = Dataset(
        ("a", "b"), (("x", "y"), ("p", "q", "r")), np.array([[0, 0], [0, 1]], dtype=np.uint8)
    )
    for name in (*NAMES, "ml"):
        table = fit(Network(("a", "b"), ((), (0,))), data, name).tables[1]
        assert table[1].tolist() == pytest.approx([1 / 3] * 3)
        assert table[0][0] == table[0][1] > 1 / 3


def test_the_least_prior_is_uniform_where_nothing_was_seen():
    data = Dataset(("a",), (("x", "y", "z"),), np.zeros((1, 0), dtype=np.uint8))
    found = fit(Network(("a",), ((),)), data, Score("bdeu", 1e-100)).tables[0].tolist()
    assert found == pytest.approx([1 / 3] * 3, rel=1e-15)


def test_a_sample_gives_its_network_back():
    rng = np.random.default_rng(3)
    graph = Network(tuple("abc"), ((), (0,), (1, 0)), (("x", "y"),) * 3)
    tables = tuple(rng.dirichlet((2, 2), size=shape) for shape in ((), (2,), (2, 2)))
    truth = Network(graph.names, graph.parents, graph.states, tables)
    found = fit(graph, sample_dataset(truth, 200_000, seed=1))
    for ours, theirs in zip(found.tables, truth.tables, strict=True):
        assert np.abs(ours - theirs).max() < 0.02
    data = sample_dataset(truth, 10_000, seed=2)
    entropy = sum(
        p * math.log(p)
        for p in (joint_probability(truth, row) for row in itertools.product((0, 1), repeat=3))
    )
    assert log_likelihood(found, data) / data.rows == pytest.approx(entropy, abs=0.05)


def test_spellings_of_truth_values_and_numbers_are_matched(tmp_path):
    network = fit(Network(("a", "b"), ((), (0,)), (("True", "False"), ("1.0", "2"))), coins())
    (tmp_path / "x.csv").write_text("a,b\nTrue,1.0\nFalse,2.0\n")
    expected = math.log(network.probability(a="True", b="1.0")) + math.log(
        network.probability(a="False", b="2")
    )
    assert log_likelihood(network, read(tmp_path / "x.csv")) == pytest.approx(expected)


def coins():
    return Dataset(
        ("a", "b"),
        (("False", "True"), ("1.0", "2")),
        np.array([[0, 1, 1, 0], [0, 1, 0, 0]], np.uint8),
    )


def test_missing_values_are_read_as_the_state_that_the_network_has():
    table = pd.DataFrame({"a": ["x", None, "y"] * 20, "b": [0.0, 1.0, np.nan] * 20})
    learned = qb.learn(table, missing="state")
    for found in (
        qb.score(learned.network, table),
        qb.score(learned.network, table, missing="state"),
    ):
        assert found.total == pytest.approx(learned.solution.score) and found.dropped == 0
    assert qb.score(learned.network, table, missing="drop").rows == 20
    assert qb.judge(table, learned.network).optimal
    assert qb.fit(qb.Network(("a", "b"), ((), (0,))), table, missing="drop").states == (
        ("x",),
        ("0",),
    )
    with pytest.raises(DataError, match="missing values in 40 of 60 rows"):
        qb.score(qb.Network(("a", "b"), ((), (0,))), table)
    with pytest.raises(SettingError, match="settings and missing were both given"):
        qb.score(learned.network, table, reading=qb.ReadSettings(), missing="drop")
