"""Networks of numbers and states: parameters, files, samples, likelihoods and answers."""

import json
from dataclasses import replace
from itertools import product
from math import log, pi

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qubayes import FormatError, QubayesError
from qubayes.network import (
    ByState,
    Linear,
    Network,
    fit,
    log_likelihood,
    read_network,
    sample_dataset,
    write_network,
)
from strategies import mixed_tables

# Diet and sex of a bear; its weight, and the length of its tracks.
BEAR = Network(
    ("diet", "sex", "weight", "tracks"),
    ((), (), (0, 1), (2, 0)),
    (("berries", "fish", "honey"), ("female", "male"), (), ()),
    (
        np.array([0.5, 0.3, 0.2]),
        np.array([0.6, 0.4]),
        ByState(
            np.array([[90.0, 120.0], [110.0, 160.0], [100.0, 130.0]]),
            np.zeros((3, 2, 0)),
            np.array([[8.0, 10.0], [9.0, 12.0], [7.0, 11.0]]),
        ),
        ByState(np.array([5.0, 6.0, 7.0]), np.array([[0.1], [0.12], [0.08]]), np.full(3, 0.5)),
    ),
)


def density(x, mean, deviation):
    return -0.5 * log(2 * pi) - log(deviation) - 0.5 * ((x - mean) / deviation) ** 2


def log_density_of_row(network, row):
    """The definition: the product of the families."""
    total = 0.0
    for vertex, parents in enumerate(network.parents):
        its = network.tables[vertex]
        states = tuple(row[p] for p in parents if network.states[p])
        numbers = [row[p] for p in parents if not network.states[p]]
        if isinstance(its, np.ndarray):
            total += log(its[(*states, row[vertex])])
            continue
        linear = its[states] if isinstance(its, ByState) else its
        mean = linear.intercept + sum(w * x for w, x in zip(linear.weights, numbers, strict=True))
        total += density(row[vertex], mean, linear.deviation)
    return total


def rows_of(network, dataset):
    """The rows as lists of codes and numbers."""
    columns = [
        dataset.codes[v].tolist() if states else dataset.numbers[name].tolist()
        for v, (name, states) in enumerate(zip(network.names, network.states, strict=True))
    ]
    return list(zip(*columns, strict=True))


def test_log_likelihoods_are_sums_over_families():
    drawn = sample_dataset(BEAR, 50, seed=2)
    assert drawn.kind == "mixed"
    expected = sum(log_density_of_row(BEAR, row) for row in rows_of(BEAR, drawn))
    assert log_likelihood(BEAR, drawn) == pytest.approx(expected)


def test_samples_have_the_means_and_deviations_of_their_states():
    drawn = sample_dataset(BEAR, 100_000, seed=1)
    weights = drawn.numbers["weight"]
    for diet, sex in product(range(3), range(2)):
        here = (drawn.codes[0] == diet) & (drawn.codes[1] == sex)
        linear = BEAR.tables[2][diet, sex]
        assert weights[here].mean() == pytest.approx(linear.intercept, abs=0.6)
        assert weights[here].std() == pytest.approx(linear.deviation, rel=0.03)
    short = sample_dataset(BEAR, 10, seed=1)
    assert (short.numbers["tracks"] == drawn.numbers["tracks"][:10]).all()


@pytest.mark.parametrize("ending", [".json", ".json.gz"])
def test_networks_survive_our_own_format(tmp_path, ending):
    path = tmp_path / f"bear{ending}"
    write_network(BEAR, path)
    assert read_network(path) == BEAR
    write_network(replace(BEAR, tables=None), path)
    assert read_network(path) == replace(BEAR, tables=None)


def test_other_formats_refuse_a_continuous_vertex(tmp_path):
    for ending in (".bif", ".xmlbif"):
        with pytest.raises(FormatError, match="cannot hold the continuous variable 'weight'"):
            write_network(BEAR, tmp_path / f"bear{ending}")


def test_networks_are_equal_if_parameters_are():
    tracks, weight = BEAR.tables[3], BEAR.tables[2]
    turned = ByState(weight.intercepts.T, np.zeros((2, 3, 0)), weight.deviations.T)
    other = replace(
        BEAR, parents=((), (), (1, 0), (0, 2)), tables=(*BEAR.tables[:2], turned, tracks)
    )
    assert other == BEAR and hash(other) == hash(BEAR)
    changed = ByState(tracks.intercepts, tracks.weights, tracks.deviations * 2.0)
    assert changed != tracks and hash(changed) != hash(tracks) and changed != 3
    assert replace(BEAR, tables=(*BEAR.tables[:3], changed)) != BEAR
    assert ByState.of(list(weight), weight.arities) == weight


def test_parameters_that_do_not_fit_are_refused():
    ones = np.ones(2)
    for arrays, words in (
        ((ones, np.ones((3, 0)), ones), "give one of each for each combination of states"),
        ((np.float64(1), np.ones(0), np.float64(1)), "give one of each"),
        ((ones, np.ones((2, 0)), np.array([1.0, 0.0])), "standard deviation 0.0"),
        ((ones * np.inf, np.ones((2, 0)), ones), "not finite"),
    ):
        with pytest.raises(QubayesError, match=words):
            ByState(*arrays)
    line = Linear(0.0, (), 1.0)
    for table, words in (
        (line, "'weight' is continuous and its parent 'diet' has states; give a ByState"),
        (ByState(ones, np.ones((2, 0)), ones), r"the weights of 'weight' have shape \(2, 0\)"),
        (np.array([1.0]), "give a ByState"),
    ):
        with pytest.raises(QubayesError, match=words):
            replace(BEAR, tables=(*BEAR.tables[:2], table, BEAR.tables[3]))
    with pytest.raises(QubayesError, match="'diet' has states; give a table"):
        replace(BEAR, tables=(BEAR.tables[2], *BEAR.tables[1:]))
    with pytest.raises(QubayesError, match="'diet' has states and its parent 'weight' is cont"):
        replace(BEAR, parents=((2,), (), (1,), (2, 0)))
    with pytest.raises(QubayesError, match="'weight' is continuous and has no table"):
        _ = BEAR.parameters
    with pytest.raises(QubayesError, match="'diet' is discrete and has no weights"):
        _ = BEAR.linears


def test_vertices_as_text_and_as_frames():
    tracks = BEAR["tracks"]
    assert str(tracks) == (
        "tracks <- weight, diet\n  continuous\n  berries -> 5 +0.1 times weight, deviation 0.5\n"
        "  fish -> 6 +0.12 times weight, deviation 0.5\n"
        "  honey -> 7 +0.08 times weight, deviation 0.5"
    )
    frame = BEAR.to_frame("tracks")
    assert list(frame.columns) == ["diet", "intercept", "weight (weight)", "deviation"]
    assert frame["weight (weight)"].tolist() == [0.1, 0.12, 0.08]
    assert BEAR.to_frame("weight")["sex"].tolist() == ["female", "male"] * 3
    with pytest.raises(QubayesError, match="no table; its parameters are in `by_state`"):
        list(tracks.rows())
    with pytest.raises(QubayesError, match="'diet' has no parameters by states"):
        list(BEAR["diet"].lines())
    assert str(BEAR) == (
        "Network: 4 vertices, 4 edges, with parameters\n  weight <- diet, sex\n"
        "  tracks <- weight, diet"
    )


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"by_state": [{"intercept": 1.0, "weights": [], "deviation": 1.0}]}, "must have 2 rows"),
        ({"by_state": [{"intercept": 1.0, "weights": [], "deviation": 0.0}] * 2}, "deviation 0.0"),
        ({"by_state": [{"intercept": 1.0, "weights": [1], "deviation": 1}] * 2}, "has 1 weights"),
        ({"linear": {"intercept": 1.0, "weights": [], "deviation": 1.0}}, "has no 'by_state'"),
        ({}, "1 of 2 vertices have 'table' or 'linear' or 'by_state'"),
    ],
)
def test_broken_files_give_one_line(tmp_path, changes, words):
    path = tmp_path / "x.json"
    state = {"name": "s", "parents": [], "states": ["a", "b"], "table": [[0.5, 0.5]]}
    number = {"name": "x", "parents": ["s"], "states": [], **changes}
    document = {"format": "qubayes network", "version": 1, "vertices": [state, number]}
    path.write_text(json.dumps(document))
    with pytest.raises(FormatError, match=words) as raised:
        read_network(path)
    assert "\n" not in str(raised.value)


def test_a_sample_of_a_network_gives_its_parameters_back():
    drawn = sample_dataset(BEAR, 200_000, seed=3)
    again = fit(replace(BEAR, tables=None), drawn)
    assert again.tables[0] == pytest.approx(BEAR.tables[0], abs=0.01)
    for found, true in zip(again.tables[2:], BEAR.tables[2:], strict=True):
        assert found.intercepts == pytest.approx(true.intercepts, abs=0.4)
        assert found.weights == pytest.approx(true.weights, abs=0.01)
        assert found.deviations == pytest.approx(true.deviations, rel=0.02)
    assert fit(Network(BEAR.names, BEAR.parents), drawn, "bic").tables[3] == again.tables[3]


@given(mixed_tables(), st.integers(0, 2**32 - 1))
def test_fitted_parameters_are_those_of_the_score(dataset, seed):
    """The score of maximum likelihood is that of the fitted regressions, less the prior row."""
    random = np.random.default_rng(seed)
    child = int(random.choice([v for v in range(dataset.n) if not dataset.states[v]]))
    others = [v for v in range(dataset.n) if v != child and random.random() < 0.6]
    parents = tuple(tuple(others) if v == child else () for v in range(dataset.n))
    fitted = fit(Network(dataset.names, parents), dataset, "ml")
    weight = fitted.tables[child]
    discrete, continuous = fitted.split_parents(child)
    cells = np.array([dataset.numbers[dataset.names[v]] for v in (*continuous, child)])
    whole = np.cov(cells, bias=True).reshape(len(cells), -1)
    if not discrete:
        assert isinstance(weight, Linear)
        return
    assert isinstance(weight, ByState)
    labels = [tuple(row) for row in dataset.codes[list(discrete)].T.tolist()]
    parts = {at: cells[:, [label == at for label in labels]] for at in set(labels)}
    centred = {at: part - part.mean(axis=1, keepdims=True) for at, part in parts.items()}
    within = sum(part @ part.T for part in centred.values()) / dataset.rows
    prior = 0.9 * within + 0.1 * whole
    for at in np.ndindex(weight.arities):
        mean, joint, count = cells.mean(axis=1), whole, 1
        if at in parts:
            mean, count = parts[at].mean(axis=1), parts[at].shape[1] + 1
            joint = centred[at] @ centred[at].T + prior
        slopes = np.linalg.solve(joint[:-1, :-1], joint[:-1, -1])
        left = (joint[-1, -1] - slopes @ joint[:-1, -1]) / count
        linear = weight[at]
        scale = np.abs(cells[-1]).max()
        assert linear.weights == pytest.approx(slopes, rel=1e-6, abs=1e-6 * scale)
        assert linear.intercept == pytest.approx(
            mean[-1] - slopes @ mean[:-1], rel=1e-6, abs=1e-6 * scale
        )
        assert linear.deviation == pytest.approx(np.sqrt(left), rel=1e-6)
