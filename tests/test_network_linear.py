"""Networks of continuous variables: fitted, scored, drawn and asked; equal to the joint normal."""

from dataclasses import replace
from math import inf, log

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from network_cases import graphs
from qubayes import DataError, QubayesError, Score, SettingError
from qubayes.data import Dataset, read
from qubayes.network import (
    Linear,
    Network,
    Normal,
    fit,
    log_likelihood,
    sample_dataset,
    score,
    vertex_scores,
)
from reference import normals as reference

# A field of wheat: sun and rain make it grow, and the harvest follows.
WHEAT = Network(
    ("sun", "rain", "height", "harvest"),
    ((), (0,), (1, 0), (2,)),
    ((),) * 4,
    (
        Linear(6.0, (), 1.5),
        Linear(4.0, (-0.3,), 0.5),
        Linear(20.0, (5.0, 2.0), 4.0),
        Linear(-1.0, (0.1,), 0.25),
    ),
)


def table(rows, names=None):
    """A table of numbers, from (rows, n)."""
    names = names or tuple(f"x{v}" for v in range(rows.shape[1]))
    codes = np.zeros((len(names), len(rows)), np.uint8)
    numbers = {name: np.ascontiguousarray(rows[:, v]) for v, name in enumerate(names)}
    return Dataset(names, ((),) * len(names), codes, numbers=numbers)


@st.composite
def linear_networks(draw, max_vertices=6):
    """A network of continuous variables of very different sizes."""
    graph = draw(graphs(max_vertices))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    linears = tuple(
        Linear(
            random.normal() * 10.0 ** random.integers(-2, 3),
            tuple(random.normal(size=len(its)) * 10.0 ** random.integers(-1, 2, len(its))),
            10.0 ** random.uniform(-2, 2),
        )
        for its in graph.parents
    )
    return Network(graph.names, graph.parents, ((),) * graph.n, linears)


def joint(network):
    return reference.joint(
        network.parents,
        [linear.intercept for linear in network.linears],
        [linear.weights for linear in network.linears],
        [linear.deviation for linear in network.linears],
    )


@given(graphs(), st.integers(0, 2**32 - 1))
def test_parameters_are_those_of_least_squares(graph, seed):
    random = np.random.default_rng(seed)
    rows = random.normal(size=(30, graph.n)) @ random.normal(size=(graph.n, graph.n))
    rows = rows + random.normal(size=(30, graph.n)) + 10.0 * random.normal(size=graph.n)
    fitted = fit(graph, table(rows, graph.names))
    assert fitted.is_continuous and fitted.parents == graph.parents
    for vertex, (its, linear) in enumerate(zip(graph.parents, fitted.linears, strict=True)):
        intercept, weights, deviation = reference.normal_equations(rows, vertex, list(its))
        assert linear.intercept == pytest.approx(intercept, rel=1e-6, abs=1e-6)
        assert linear.weights == pytest.approx(weights, rel=1e-6, abs=1e-6)
        assert linear.deviation == pytest.approx(deviation, rel=1e-6)


def test_a_sample_of_a_fitted_network_gives_its_parameters_back():
    drawn = sample_dataset(WHEAT, 200_000, seed=1)
    again = fit(WHEAT, drawn)
    for linear, other in zip(WHEAT.linears, again.linears, strict=True):
        assert other.intercept == pytest.approx(linear.intercept, abs=0.2)
        assert other.weights == pytest.approx(linear.weights, abs=0.02)
        assert other.deviation == pytest.approx(linear.deviation, rel=0.01)
    short = sample_dataset(WHEAT, 100, seed=1)
    assert all((short.numbers[v] == drawn.numbers[v][:100]).all() for v in WHEAT.names)
    assert drawn.kind == "continuous"
    with pytest.raises(SettingError, match="rows = 0"):
        sample_dataset(WHEAT, 0)


def test_parameters_without_digits_to_spare():
    # far from zero, and of different units: the normal equations would lose all digits
    random = np.random.default_rng(3)
    a = 1e6 + random.normal(size=200)
    b = 1e-9 * (a + 1e-3 * random.normal(size=200))
    fitted = fit(Network(("a", "b"), ((), (0,))), table(np.column_stack([a, b]), ("a", "b")))
    assert fitted.linears[1].weights[0] == pytest.approx(1e-9, rel=1e-3)
    assert fitted.linears[1].deviation == pytest.approx(1e-12, rel=0.2)


def test_what_cannot_be_fitted_is_refused_by_name():
    random = np.random.default_rng(0)
    rows = random.normal(size=(20, 4))
    names = tuple("abcd")
    family = Network(names, ((), (), (), (0, 1, 2)))

    def refused(rows, words, network=family):
        with pytest.raises(DataError, match=words):
            fit(network, table(rows, names))

    refused(rows[:4], "'d' has 3 parents and the data have 4 rows; give 5 rows or more")
    assert fit(family, table(rows[:5], names)).linears[3].deviation > 0
    for column in range(4):
        constant = rows.copy()
        constant[:, column] = 0.1
        refused(constant, f"column {names[column]!r} is 0.1 in every row")
    dependent = rows.copy()
    dependent[:, 2] = 3.0 * rows[:, 0] - 2.0
    refused(dependent, "column 'c' is a linear function of 'a'; remove it, or one of them")
    dependent[:, 2] = rows[:, 0] - rows[:, 1]
    refused(dependent, "column 'c' is a linear function of 'a', 'b'")
    dependent[:, 3] = rows[:, 1]
    refused(dependent, "column 'd' is a linear function of 'b'", Network(names, ((), (), (), (1,))))
    refused(rows[:, [0, 1, 2, 0]], "column 'd' is a linear function of 'a'")
    with pytest.raises(DataError, match="no column 'e'"):
        fit(Network(("a", "e"), ((), ())), table(rows, names))
    with pytest.raises(SettingError, match="'posterior'"):
        fit(family, table(rows, names), "posterior")


def test_every_score_gives_the_same_parameters():
    drawn = sample_dataset(WHEAT, 50)
    assert fit(WHEAT, drawn) == fit(WHEAT, drawn, "bge") == fit(WHEAT, drawn, "ml")
    assert fit(WHEAT, drawn) == fit(Network(WHEAT.names, WHEAT.parents), drawn, Score("bic"))


def test_columns_of_states_and_of_numbers():
    codes = np.array([[0, 1, 2, 1, 0, 2], [0, 1, 0, 1, 0, 1]], np.uint8)
    counted = Dataset(
        ("a", "b"), (("0", "1", "2"), ("x", "y")), codes, values={"a": np.array([0, 1, 2])}
    )
    one = Network(("a",), ((),), ((),))
    assert fit(one, counted).linears == (Linear(1.0, (), np.sqrt(4 / 6)),)
    with pytest.raises(DataError, match="column 'b' has states such as 'x'"):
        fit(Network(("b",), ((),), ((),)), counted)
    states = Network(("x0", "x1"), ((), ()), (("0", "1"), ("0", "1")))
    with pytest.raises(DataError, match="column 'x0' holds numbers, and the network has states"):
        fit(states, table(np.random.default_rng(0).normal(size=(9, 2))))
    mixed = Dataset(("a", "b"), ((), ("x", "y")), codes, numbers={"a": codes[0] * 1.5})
    both = fit(Network(("a", "b"), ((), ())), mixed)
    assert both.is_mixed and both.tables[0].intercept == pytest.approx(1.5)
    assert fit(Network(("a",), ((),)), mixed).linears[0].intercept == pytest.approx(1.5)
    assert fit(Network(("b",), ((),)), mixed).tables[0].tolist() == [0.5, 0.5]


def test_parameters_that_do_not_fit_are_refused():
    for linear, words in (
        ((0.0, (), 0.0), "standard deviation 0.0; give a finite number above 0"),
        ((0.0, (), inf), "standard deviation inf"),
        ((0.0, (), float("nan")), "standard deviation nan"),
        ((inf, (), 1.0), "give finite numbers"),
        ((0.0, (float("nan"),), 1.0), "give finite numbers"),
    ):
        with pytest.raises(QubayesError, match=words):
            Linear(*linear)
    line = Linear(0.0, (), 1.0)
    for states, tables, words in (
        (((),), (Linear(0.0, (1.0,), 1.0),), "'a' has 0 parents and 1 weights"),
        (((),), (np.array([1.0]),), "'a' is continuous; give a Linear"),
        ((("x",),), (line,), "'a' has states; give a table"),
        (None, (line,), "tables need states"),
    ):
        with pytest.raises(QubayesError, match=words):
            Network(("a",), ((),), states, tables)
    with pytest.raises(QubayesError, match="'b' has states and its parent 'a' is continuous"):
        Network(("a", "b"), ((), (0,)), ((), ("x",)), (line, np.array([1.0])))
    assert Network(("a", "b"), ((), ()), (("x",), ())).states == (("x",), ())
    with pytest.raises(QubayesError, match="'sun' is continuous and has no table"):
        _ = WHEAT.parameters
    with pytest.raises(QubayesError, match="'a' is discrete and has no weights"):
        _ = Network(("a",), ((),), (("x",),), (np.array([1.0]),)).linears
    with pytest.raises(QubayesError, match="no probabilities"):
        _ = replace(WHEAT, tables=None).linears


def test_networks_are_equal_if_parameters_are():
    turned = replace(
        WHEAT,
        parents=((), (0,), (0, 1), (2,)),
        tables=(*WHEAT.linears[:2], Linear(20.0, (2.0, 5.0), 4.0), WHEAT.linears[3]),
    )
    assert turned == WHEAT and hash(turned) == hash(WHEAT)
    other = replace(WHEAT, tables=(*WHEAT.linears[:3], Linear(-1.0, (0.1,), 0.3)))
    assert other != WHEAT and replace(WHEAT, tables=None) != WHEAT
    assert Linear(1, [np.float64(2)], 3) == Linear(1.0, (2.0,), 3.0)


@given(linear_networks())
def test_log_likelihoods_are_those_of_the_joint_normal(network):
    drawn = sample_dataset(network, 20)
    mean, covariance = joint(network)
    rows = np.array([drawn.numbers[name] for name in network.names]).T
    expected = reference.log_density(mean, covariance, rows)
    assert log_likelihood(network, drawn) == pytest.approx(expected, rel=1e-3, abs=1e-3)


def test_scores_of_networks():
    drawn = sample_dataset(WHEAT, 300)
    fitted = fit(WHEAT, drawn)
    found = score(fitted, drawn, "loglik")
    assert found.total == pytest.approx(log_likelihood(fitted, drawn))
    assert found.log_likelihood == log_likelihood(fitted, drawn)
    parameters = sum(linear.size for linear in fitted.linears)
    assert score(WHEAT, drawn, "bic").total == pytest.approx(
        found.total - 0.5 * log(300) * parameters
    )
    assert score(WHEAT, drawn).score.name == "bge"
    assert score(replace(WHEAT, tables=None), drawn).log_likelihood_note.startswith("the network")
    graph = Network(("sun", "harvest"), ((), (0,)))
    assert score(graph, drawn).other_columns == 2
    assert vertex_scores(graph, drawn, Score("bic")).shape == (2,)
    with pytest.raises(SettingError, match="'bdeu' is for discrete columns"):
        score(WHEAT, drawn, "bdeu")


@given(linear_networks(), st.data())
def test_answers_are_those_of_the_joint_normal(network, data):
    mean, covariance = joint(network)
    query = data.draw(st.integers(0, network.n - 1))
    others = [v for v in range(network.n) if v != query]
    known = data.draw(st.lists(st.sampled_from(others), unique=True)) if others else []
    numbers = {v: mean[v] + data.draw(st.floats(-3, 3)) * np.sqrt(covariance[v, v]) for v in known}
    found = network.probability(
        network.names[query], given={network.names[v]: x for v, x in numbers.items()}
    )
    lines = [(each.intercept, each.weights, each.deviation) for each in network.linears]
    wanted, deviation = reference.exact_conditional(network.parents, lines, query, numbers)
    size = np.sqrt(covariance[query, query])
    assert found.deviation == pytest.approx(deviation, rel=1e-5, abs=1e-10 * size)
    assert found.mean == pytest.approx(wanted, rel=1e-6, abs=1e-6 * size)


def test_small_residuals_are_exact():
    # of a variance of 1, a part of 1e-18 is left: a difference of covariances has no digit of it
    line = Linear(0.0, (), 1.0), Linear(0.0, (1.0,), 1e-9)
    network = Network(("a", "b"), ((), (0,)), ((), ()), line)
    assert network.probability("a", given={"b": 2.0}).deviation == pytest.approx(1e-9, rel=1e-6)
    assert network.probability("b", given={"a": 2.0}) == Normal(2.0, 1e-9)
    n = 60
    chain = Network(
        tuple(map(str, range(n))),
        ((), *((v,) for v in range(n - 1))),
        ((),) * n,
        (line[0], *[line[1]] * (n - 1)),
    )
    assert chain.probability(str(n - 1)).deviation == pytest.approx(1.0, rel=1e-12)


def test_intervals_have_probabilities():
    normal = WHEAT.probability("harvest", given={"rain": 3.0})
    for low, high in ((1.0, 2.0), (normal.mean, 9.0), (3.0, 4.0), (0.0, 1.0)):
        expected = reference.share_between(normal.mean, normal.deviation, low, high)
        found = WHEAT.probability(harvest=(low, high), given={"rain": 3.0})
        assert found == pytest.approx(expected, rel=1e-6)
    assert WHEAT.probability({"sun": (None, 6.0)}) == WHEAT.probability(sun=[6.0, inf]) == 0.5
    assert WHEAT.probability(sun=(None, None)) == 1.0
    # tails keep their digits on both sides
    tail = 7.619853024160527e-24  # of the standard normal beyond 10
    assert Normal(0.0, 1.0).between(10.0, inf) == pytest.approx(tail, rel=1e-12)
    assert Normal(0.0, 1.0).between(-inf, -10.0) == pytest.approx(tail, rel=1e-12)
    assert Normal(0.0, 1.0).between(10.0, 11.0) == pytest.approx(tail, rel=1e-3)


def test_what_cannot_be_asked_is_refused():
    for call, words in (
        (lambda: WHEAT.probability(sun=6.0), r"a single value such as 6.0 has probability 0"),
        (lambda: WHEAT.probability(sun=(1, 2, 3)), "a single value"),
        (lambda: WHEAT.probability(sun=(2, 1)), "lower end first"),
        (lambda: WHEAT.probability(sun=("a", 1)), "'a' was given for 'sun'"),
        (lambda: WHEAT.probability(sun=(0, 1), rain=(0, 1)), "intervals of 'sun' and 'rain'"),
        (lambda: WHEAT.probability("sun", given={"rain": "much"}), "'much' was given for 'rain'"),
        (lambda: WHEAT.probability("sun", given={"rain": (1, 2)}), "give a number"),
        (lambda: WHEAT.probability("sun", given={"sun": 1.0}), "asked for and given"),
        (lambda: WHEAT.probability("sum"), "did you mean 'sun'"),
        (lambda: WHEAT.probability(), "probability of nothing"),
        (lambda: WHEAT.predict_proba(pd.DataFrame({"sun": [1.0]}), "rain"), "use predict"),
        (lambda: WHEAT.predict(pd.DataFrame({"x": [1.0]}), "rain"), "no column that is a vertex"),
        (lambda: WHEAT.predict(pd.DataFrame({"sun": ["a"]}), "rain"), "text such as 'a'"),
        (lambda: list(WHEAT["sun"].rows()), "'sun' is continuous and has no table"),
    ):
        with pytest.raises(QubayesError, match=words):
            call()


def test_a_row_is_evidence_and_missing_values_are_left_out():
    row = pd.Series({"sun": 5.0, "rain": np.nan, "field": "north", "harvest": 1.0})
    expected = WHEAT.probability("height", given={"sun": 5.0, "harvest": 1.0})
    assert WHEAT.probability("height", given=row) == expected
    assert WHEAT.probability("height", given={"rain": None}) == WHEAT.probability("height")
    assert WHEAT.probability("height", given={"rain": np.int64(3)}) == WHEAT.probability(
        "height", given={"rain": 3.0}
    )


@given(linear_networks(), st.integers(0, 2**32 - 1))
def test_predictions_are_the_means_given_what_is_known(network, seed):
    random = np.random.default_rng(seed)
    drawn = sample_dataset(network, 12, seed=seed)
    frame = pd.DataFrame({name: drawn.numbers[name] for name in network.names})
    frame = frame.mask(random.random(frame.shape) < 0.4)
    frame.index = frame.index + 7
    if network.n == 1:
        return
    name = network.names[0]
    found = network.predict(frame, name)
    assert found.index.equals(frame.index) and found.name == name
    for (_, row), mean in zip(frame.iterrows(), found, strict=True):
        assert mean == pytest.approx(network.probability(name, given=row).mean, rel=1e-9, abs=1e-9)
    whole = network.predict(drawn, name)
    assert isinstance(whole, np.ndarray) and len(whole) == 12


def test_predictions_of_files_and_of_whole_numbers(tmp_path):
    path = tmp_path / "field.csv"
    path.write_text("sun,rain,plot\n5,2.5,a\n6,NA,b\n,,c\n")
    found = WHEAT.predict(path, "height")
    given = [{"sun": 5.0, "rain": 2.5}, {"sun": 6.0}, {}]
    expected = [WHEAT.probability("height", given=each).mean for each in given]
    assert found.tolist() == pytest.approx(expected)
    assert WHEAT.predict(pd.DataFrame({"sun": [5, 6]}), "rain").tolist() == pytest.approx(
        [2.5, 2.2]
    )


@given(graphs(max_vertices=5), st.data())
def test_separation_is_that_of_all_paths(graph, data):
    if graph.n < 2:
        return
    x, y, *others = data.draw(st.permutations(range(graph.n)))
    known = data.draw(st.lists(st.sampled_from(others), unique=True)) if others else []
    found = graph.separated(graph.names[x], graph.names[y], [graph.names[v] for v in known])
    assert found == reference.separated(graph.parents, x, y, known)
    assert found == graph.separated(graph.names[y], graph.names[x], {graph.names[v] for v in known})


def test_separation_of_several():
    assert WHEAT.separated("harvest", ["sun", "rain"], given="height")
    assert not WHEAT.separated(["harvest"], ("sun", "rain"))
    assert WHEAT.separated([], "sun")
    for x, y, known in (("sun", "sun", ()), ("sun", "rain", "sun"), ("sun", "rain", ["rain"])):
        with pytest.raises(SettingError, match="stands in two of x, y and given"):
            WHEAT.separated(x, y, known)
    with pytest.raises(QubayesError, match="no vertex 'snow'"):
        WHEAT.separated("snow", "sun")


def test_vertices_as_text_and_as_frames():
    height = WHEAT["height"]
    assert height.linear == Linear(20.0, (5.0, 2.0), 4.0) and height.table is None
    assert str(height) == (
        "height <- rain, sun\n  continuous\n  intercept 20\n  +5 times rain\n  +2 times sun\n"
        "  deviation 4"
    )
    assert "-0.3 times sun" in WHEAT["rain"]._repr_html_()
    frame = WHEAT.to_frame("height")
    assert frame["term"].tolist() == ["intercept", "rain", "sun", "deviation"]
    assert frame["value"].tolist() == [20.0, 5.0, 2.0, 4.0]
    assert str(WHEAT).startswith("Network: 4 vertices, 4 edges, with parameters")
    names = tuple(f"p{i}" for i in range(25))
    many = Network(
        (*names, "c"),
        (*((),) * 25, tuple(range(25))),
        ((),) * 26,
        (*[Linear(0.0, (), 1.0)] * 25, Linear(0.0, (1.0,) * 25, 1.0)),
    )
    assert "  and 5 parents more\n  deviation 1" in str(many["c"])
    assert many.probability("c").deviation == pytest.approx(np.sqrt(26))
    assert replace(WHEAT, tables=None)["sun"].linear is None


def test_frames_of_whole_numbers_are_read_as_numbers():
    line = Linear(0.0, (), 1.0), Linear(1.0, (2.0,), 0.5)
    network = Network(("a", "b"), ((), (0,)), ((), ()), line)
    frame = pd.DataFrame({"a": [1, 2, 3, 4], "b": [3, 5, 8, 9]})
    fitted = fit(network, frame)
    assert fitted.linears[0].intercept == 2.5
    assert fitted.linears[0].deviation == pytest.approx(np.sqrt(1.25))
    assert score(fitted, frame, "loglik").total == pytest.approx(
        log_likelihood(fitted, read(frame, like=network))
    )
    assert fit(Network(("a", "b"), ((), (0,))), frame).states == (
        ("1", "2", "3", "4"),
        ("3", "5", "8", "9"),
    )
    found = network.predict(pl.DataFrame({"a": [1, None]}), "b")
    assert isinstance(found, pl.Series) and found.to_list() == [3.0, 1.0]


def test_many_columns_with_cells_missing_here_and_there():
    # each row has its own pattern of missing cells; only what is near the query matters
    n = 300
    parents = tuple(tuple(range(max(0, v - 2), v)) for v in range(n))
    linears = tuple(Linear(0.1, (0.4,) * len(its), 1.0) for its in parents)
    network = Network(tuple(map(str, range(n))), parents, ((),) * n, linears)
    frame = sample_dataset(network, 40, seed=1).to_frame()
    masked = frame.mask(np.random.default_rng(0).random(frame.shape) < 0.1)
    found = network.predict(masked, "150")
    mean, covariance = joint(network)
    row = masked.iloc[7]
    known = {v: row.iloc[v] for v in range(n) if v != 150 and not np.isnan(row.iloc[v])}
    expected, deviation = reference.conditional(mean, covariance, 150, known)
    assert found.iloc[7] == pytest.approx(expected)
    assert network.probability("150", given=row).deviation == pytest.approx(deviation)
