"""Answers of networks of numbers and states, against sums over all states of the joint normal."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from network_cases import graphs
from qubayes import QubayesError, SettingError
from qubayes.network import (
    ByState,
    Linear,
    Mixture,
    Network,
    Normal,
    compare,
    cpdag,
    query,
    sample_dataset,
)
from reference import normals as reference


@st.composite
def mixed_networks(draw):
    """A network of numbers and states with random parameters."""
    graph = draw(graphs(6))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    arities = [int(random.integers(2, 4)) if random.random() < 0.5 else 0 for _ in range(graph.n)]
    parents, tables = [], []
    for v, its in enumerate(graph.parents):
        kept = tuple(p for p in its if not arities[v] or arities[p])
        parents.append(kept)
        shape = tuple(arities[p] for p in kept if arities[p])
        count = sum(not arities[p] for p in kept)
        if arities[v]:
            table = random.random((*shape, arities[v])) * (
                random.random((*shape, arities[v])) < 0.8
            )
            table[..., 0] += 1e-3
            tables.append(table / table.sum(axis=-1, keepdims=True))
        elif shape:
            weights = random.normal(size=(*shape, count))
            tables.append(
                ByState(3 * random.normal(size=shape), weights, 0.5 + random.random(shape))
            )
        else:
            tables.append(Linear(random.normal(), tuple(random.normal(size=count)), 0.7))
    states = tuple(tuple(str(s) for s in range(arity)) for arity in arities)
    return Network(graph.names, tuple(parents), states, tuple(tables))


def all_parts(network, codes, numbers):
    """Every combination of states: its weight given the evidence, and the joint normal."""
    discrete = [v for v in range(network.n) if network.states[v]]
    continuous = [v for v in range(network.n) if not network.states[v]]
    place = {v: k for k, v in enumerate(continuous)}
    parts = []
    for states in product(*(range(len(network.states[v])) for v in discrete)):
        chosen = dict(zip(discrete, states, strict=True))
        if any(chosen[v] != code for v, code in codes.items()):
            continue
        weight = 1.0
        for v in discrete:
            weight *= network.tables[v][(*(chosen[p] for p in network.parents[v]), chosen[v])]
        linears = []
        for v in continuous:
            its = network.tables[v]
            at = tuple(chosen[p] for p in network.parents[v] if p in chosen)
            linears.append(its[at] if isinstance(its, ByState) else its)
        parents = [tuple(place[p] for p in network.parents[v] if p in place) for v in continuous]
        mean, covariance = np.zeros(0), np.zeros((0, 0))
        if continuous:
            mean, covariance = reference.joint(
                parents,
                [each.intercept for each in linears],
                [each.weights for each in linears],
                [each.deviation for each in linears],
            )
        known = {place[v]: x for v, x in numbers.items()}
        if known:
            rows = [*known]
            density = reference.log_density(
                mean[rows], covariance[np.ix_(rows, rows)], np.array([[*known.values()]])
            )
            weight *= np.exp(density)
        parts.append((weight, chosen, mean, covariance, known, place))
    total = sum(part[0] for part in parts)
    return [(part[0] / total, *part[1:]) for part in parts]


def evidence_of(network, data, query):
    drawn = sample_dataset(network, 1, seed=data.draw(st.integers(0, 1000)))
    others = [v for v in range(network.n) if v != query]
    known = data.draw(st.lists(st.sampled_from(others), unique=True)) if others else []
    codes = {v: int(drawn.codes[v, 0]) for v in known if network.states[v]}
    numbers = {v: float(drawn.numbers[network.names[v]][0]) for v in known if not network.states[v]}
    return codes, numbers


@given(mixed_networks(), st.data())
def test_answers_are_sums_over_all_states(network, data):
    query = data.draw(st.integers(0, network.n - 1))
    codes, numbers = evidence_of(network, data, query)
    parts = all_parts(network, codes, numbers)
    known = {network.names[v]: network.states[v][code] for v, code in codes.items()}
    known |= {network.names[v]: x for v, x in numbers.items()}
    name = network.names[query]
    if not network.is_mixed:
        return
    found = network.probability(name, given=known)
    if network.states[query]:
        for code, state in enumerate(network.states[query]):
            expected = sum(part[0] for part in parts if part[1][query] == code)
            assert found[state] == pytest.approx(expected, rel=1e-6, abs=1e-9)
            alone = network.probability({name: state}, given=known)
            assert alone == pytest.approx(expected, rel=1e-6, abs=1e-9)
        return
    normals = [
        (weight, *reference.conditional(mean, covariance, place[query], evidence))
        for weight, _, mean, covariance, evidence, place in parts
    ]
    mean = sum(w * m for w, m, _ in normals)
    deviation = np.sqrt(sum(w * ((m - mean) ** 2 + d * d) for w, m, d in normals))
    assert found.mean == pytest.approx(mean, rel=1e-6, abs=1e-6)
    assert found.deviation == pytest.approx(deviation, rel=1e-6)
    low, high = mean - 0.3, mean + deviation
    expected = sum(w * reference.share_between(m, d, low, high) for w, m, d in normals)
    assert found.between(low, high) == pytest.approx(expected, rel=1e-5)
    inside = network.probability({name: (low, high)}, given=known)
    assert inside == pytest.approx(expected, rel=1e-5)


@given(mixed_networks(), st.integers(0, 1000))
def test_predictions_are_the_answers_of_each_row(network, seed):
    if not network.is_mixed:
        return
    random = np.random.default_rng(seed)
    drawn = sample_dataset(network, 10, seed=seed)
    frame = drawn.to_frame()
    masked = frame.mask(random.random(frame.shape) < 0.3)
    for name, states in zip(network.names, network.states, strict=True):
        found = network.predict(masked, name)
        for (_, row), value in zip(masked.iterrows(), found, strict=True):
            given = {other: row[other] for other in network.names if other != name}
            answer = network.probability(name, given=given)
            if not states:
                assert value == pytest.approx(answer.mean, rel=1e-9, abs=1e-9)
            else:
                assert answer[value] == pytest.approx(max(answer.values()))
        if states:
            shares = network.predict_proba(masked, name)
            assert shares.sum(axis=1) == pytest.approx(np.ones(10))


# Rain makes grass wet and its moisture higher; the moisture is measured twice.
GARDEN = Network(
    ("rain", "moisture", "meter"),
    ((), (0,), (1,)),
    (("no", "yes"), (), ()),
    (
        np.array([0.7, 0.3]),
        ByState(np.array([10.0, 30.0]), np.zeros((2, 0)), np.array([3.0, 5.0])),
        Linear(1.0, (1.0,), 2.0),
    ),
)


def test_answers_by_hand():
    assert GARDEN.probability("rain") == pytest.approx({"no": 0.7, "yes": 0.3})
    mixture = GARDEN.probability("moisture")
    assert isinstance(mixture, Mixture) and mixture.mean == pytest.approx(16.0)
    assert mixture.deviation == pytest.approx(np.sqrt(0.7 * (36 + 9) + 0.3 * (196 + 25)))
    assert str(mixture) == "mean 16, deviation 9.88939, 2 normals"
    alone = GARDEN.probability("moisture", given={"rain": "yes"})
    assert alone == Normal(30.0, 5.0)
    # numerical integration over the moisture
    grid = np.linspace(-50.0, 120.0, 200_001)
    step = grid[1] - grid[0]
    joint = []
    for weight, mean, deviation in ((0.7, 10.0, 3.0), (0.3, 30.0, 5.0)):
        moisture = np.exp(-0.5 * ((grid - mean) / deviation) ** 2) / deviation
        meter = np.exp(-0.5 * ((22.0 - 1.0 - grid) / 2.0) ** 2)
        joint.append(weight * moisture * meter * step)
    total = sum(part.sum() for part in joint)
    found = GARDEN.probability("rain", given={"meter": 22.0})
    assert found["yes"] == pytest.approx(joint[1].sum() / total, rel=1e-8)
    mean = sum((part * grid).sum() for part in joint) / total
    assert GARDEN.probability("moisture", given={"meter": 22.0}).mean == pytest.approx(mean)
    both = GARDEN.probability({"rain": "yes", "moisture": (25.0, None)})
    assert both == pytest.approx(0.3 * Normal(30.0, 5.0).between(25.0, np.inf))


def test_what_cannot_be_asked_is_refused():
    for call, words in (
        (lambda: GARDEN.probability(moisture=3.0), "a single value such as 3.0 has probability 0"),
        (lambda: GARDEN.probability(moisture=(0, 1), meter=(0, 1)), "intervals of 'moisture' and"),
        (lambda: GARDEN.probability("rain", given={"meter": "much"}), "'much' was given"),
        (lambda: GARDEN.probability("meter", given={"rain": "hail"}), "hail"),
        (lambda: GARDEN.predict_proba(pd.DataFrame({"rain": ["no"]}), "meter"), "use predict"),
        (lambda: GARDEN.predict(pd.DataFrame({"x": ["no"]}), "rain"), "no column that is a vertex"),
    ):
        with pytest.raises(QubayesError, match=words):
            call()
    never = replace(GARDEN, tables=(np.array([1.0, 0.0]), *GARDEN.tables[1:]))
    assert never.probability({"rain": "yes", "moisture": (0, 1)}) == 0.0
    with pytest.raises(SettingError, match="asked for and given"):
        GARDEN.probability("rain", given={"rain": "no"})


def test_a_query_prints_states_and_numbers():
    answer = query(GARDEN, {"meter": "22"})
    assert answer.probability_of_given is None
    lines = answer.describe()
    assert lines[0] == "Given meter = 22:"
    normal = GARDEN.probability("moisture", given={"meter": 22.0})
    assert lines[-1].split() == ["moisture", f"{normal.mean:.6g}", f"{normal.deviation:.6g}"]
    assert answer.as_json()["normals"]["moisture"]["deviation"] == normal.deviation
    alone = query(GARDEN, {"rain": "yes"}, ["moisture"])
    assert alone.probability_of_given == pytest.approx(0.3)
    assert alone.describe()[2:] == [
        "variable          mean     deviation",
        "moisture            30             5",
    ]
    with pytest.raises(QubayesError, match="'much' was given for 'meter'"):
        query(GARDEN, {"meter": "much"})


def test_the_class_keeps_edges_from_states_to_numbers():
    found = cpdag(GARDEN)
    assert found.directed == ((0, 1), (1, 2)) and found.undirected == ()  # else 2 -> 1 <- 0
    plain = cpdag(Network(GARDEN.names, GARDEN.parents))
    assert plain.undirected == ((0, 1), (1, 2))
    other = Network(GARDEN.names, ((), (0, 2), ()), GARDEN.states)
    assert compare(GARDEN, other).cpdag_distance == 1
    three = Network(("s", "x", "y"), ((), (0,), (0, 1)), (("a", "b"), (), ()))
    assert cpdag(three).directed == ((0, 1), (0, 2)) and cpdag(three).undirected == ((1, 2),)
