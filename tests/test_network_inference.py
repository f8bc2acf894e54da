"""Queries of a network: probabilities, predictions, vertices by name; equal to sums over the joint distribution."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from network_cases import networks, random_tables
from qubayes import DataError, QubayesError, SettingError, learn, score
from qubayes.data import ReadSettings, read
from qubayes.network import (
    Network,
    fit,
    read_network,
    sample,
    sample_dataset,
    to_pgmpy,
    to_pyagrum,
    write_network,
)

RAIN = Network(
    ("rain", "sprinkler", "grass"),
    ((), (0,), (1, 0)),
    (("yes", "no"), ("off", "low", "high"), ("wet", "dry")),
    (
        np.array([0.2, 0.8]),
        np.array([[0.9, 0.1, 0.0], [0.5, 0.2, 0.3]]),
        np.array(
            [[[0.8, 0.2], [0.0, 1.0]], [[0.85, 0.15], [0.7, 0.3]], [[0.99, 0.01], [0.9, 0.1]]]
        ),
    ),
    "rain.bif",
)


def joint(network):
    """{states of all vertices: probability}, by multiplying the tables."""
    found = {}
    for codes in itertools.product(*(range(r) for r in network.arities)):
        p = 1.0
        for v, its in enumerate(network.parents):
            p *= network.tables[v][tuple(codes[u] for u in (*its, v))]
        found[codes] = p
    return found


def summed(table, wanted):
    return sum(
        p for codes, p in table.items() if all(codes[v] == code for v, code in wanted.items())
    )


@given(network=networks(max_vertices=5), data=st.data())
@settings(max_examples=2 * settings.default.max_examples)
def test_probabilities_are_sums_over_the_joint_distribution(network, data):
    table, n = joint(network), network.n
    roles = data.draw(st.lists(st.sampled_from(["query", "given", "free"]), min_size=n, max_size=n))
    codes = [data.draw(st.integers(0, r - 1)) for r in network.arities.tolist()]
    query = {v: codes[v] for v in range(n) if roles[v] == "query"}
    evidence = {v: codes[v] for v in range(n) if roles[v] == "given"}
    name = {v: network.states[v][code] for v, code in enumerate(codes)}
    below = summed(table, evidence)
    if not query:
        return
    asked = {network.names[v]: name[v] for v in query}
    known = {network.names[v]: name[v] for v in evidence}
    if below == 0:
        with pytest.raises(QubayesError, match="impossible"):
            network.probability(asked, given=known)
        return
    expected = summed(table, {**query, **evidence}) / below
    assert network.probability(asked, given=known) == pytest.approx(expected, rel=1e-9, abs=1e-15)
    vertex = min(query)
    each = network.probability(network.names[vertex], given=known)
    assert list(each) == list(network.states[vertex])
    for code, state in enumerate(each):
        exact = summed(table, {vertex: code, **evidence}) / below
        assert each[state] == pytest.approx(exact, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("seed", range(3))
def test_other_packages_agree(seed):
    gum, elimination = pytest.importorskip("pyagrum"), pytest.importorskip("pgmpy.inference")
    rng = np.random.default_rng(seed)
    parents = tuple(
        tuple(sorted(rng.choice(v, min(v, 3), replace=False).tolist())) for v in range(12)
    )
    names = tuple(f"v{v}" for v in range(12))
    network = random_tables(Network(names, parents, (("a", "b", "c"),) * 12), rng)
    drawn = sample_dataset(network, 1, seed)
    evidence = {f"v{v}": drawn.states[v][drawn.codes[v, 0]] for v in (3, 8, 11)}
    model, other = (
        gum.LazyPropagation(to_pyagrum(network)),
        elimination.VariableElimination(to_pgmpy(network)),
    )
    model.setEvidence(evidence)
    for name in ("v0", "v5", "v10"):
        ours = list(network.probability(name, given=evidence).values())
        assert ours == pytest.approx(model.posterior(name).tolist(), rel=1e-6, abs=1e-9)
        theirs = other.query([name], evidence=evidence, show_progress=False)
        assert ours == pytest.approx(
            [theirs.get_value(**{name: s}) for s in "abc"], rel=1e-9, abs=1e-12
        )


@given(network=networks(max_vertices=5), seed=st.integers(0, 99))
def test_predictions_ignore_what_is_missing_and_take_the_most_probable_state(network, seed):
    table, rows = joint(network), 12
    drawn = sample_dataset(network, rows, seed)
    rng = np.random.default_rng(seed)
    hidden = rng.random((network.n, rows)) < 0.4
    frame = pl.DataFrame(
        {
            name: [
                None if hidden[v, r] else drawn.states[v][drawn.codes[v, r]] for r in range(rows)
            ]
            for v, name in enumerate(network.names)
        },
        schema=dict.fromkeys(network.names, pl.String),
    )
    if network.n < 2:
        return
    vertex = int(rng.integers(network.n))
    found = network.predict_proba(frame, network.names[vertex])
    states = network.predict(frame, network.names[vertex])
    assert found.shape == (rows, network.arities[vertex])
    for r in range(rows):
        evidence = {
            v: int(drawn.codes[v, r]) for v in range(network.n) if v != vertex and not hidden[v, r]
        }
        weights = [
            summed(table, {vertex: code, **evidence}) for code in range(network.arities[vertex])
        ]
        assert found[r] == pytest.approx(np.array(weights) / sum(weights), rel=1e-9, abs=1e-15)
        assert states[r] == network.states[vertex][int(np.argmax(found[r]))]


def test_missing_values_are_the_state_that_they_were_learned_as():
    rows = [("a", "x"), (None, "y")] * 20
    table = pd.DataFrame(rows, columns=["first", "second"])
    learned = learn(table, missing="state")
    assert learned.network["first"].states == ("a", "missing")
    assert learned.network.predict(table[["first"]], "second").tolist() == ["x", "y"] * 20
    found = score(learned.network, table, reading=ReadSettings(missing="state"))
    assert found.total == pytest.approx(learned.solution.score)
    assert str(found).startswith("  score            -32.7") and "Proved optimal" in str(
        learned.solution
    )


FLAG = [True, False] * 30
COLUMNS = {
    "bool": pd.Series(FLAG),
    "nullable bool": pd.Series(FLAG, dtype="boolean"),
    "bool objects": pd.Series(FLAG, dtype=object),
    "int": pd.Series([7, -1] * 30, dtype="int8"),
    "nullable int": pd.Series([0, 1] * 30, dtype="Int64"),
    "float codes": pd.Series([0.0, 1.0] * 30),
    "text": pd.Series(["0", "1"] * 30),
    "categories": pd.Series(["lo", "hi"] * 30, dtype="category"),
    "categories of numbers": pd.Series([2, 1] * 30, dtype="category"),
    "days": pd.Series(pd.to_datetime(["2026-01-01", "2026-01-02"] * 30)),
}
POLARS = {
    "bool": pl.Series(FLAG),
    "int": pl.Series([0, 1] * 30, dtype=pl.Int16),
    "float codes": pl.Series([0.0, 1.0] * 30),
    "text": pl.Series(["0", "1"] * 30),
    "Enum": pl.Series(["lo", "hi"] * 30, dtype=pl.Enum(["lo", "hi"])),
    "Categorical": pl.Series(["lo", "hi"] * 30, dtype=pl.Categorical),
    "days": pl.Series(["2026-01-01", "2026-01-02"] * 30).str.to_date(),
}


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_predictions_are_values_of_the_column(column):
    table = pd.DataFrame({"x": column, "by": ["p", "q"] * 30})
    network = learn(table).network
    found = network.predict(table, "x")
    assert (found == column).mean() == 1.0
    assert (network.predict(table[["by"]], "x") == found).all()
    likeliest = network.probability("x", given=table[["by"]].iloc[0])
    assert max(likeliest, key=likeliest.get) == column[0]
    assert network.probability({"x": column[0]}, given={"by": "p"}) > 0.9
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "bif":
        assert found.dtype == column.dtype


def test_predictions_stand_beside_the_rows_of_a_pandas_frame():
    table = pd.DataFrame({"x": FLAG, "by": ["p", "q"] * 30})
    network, some = learn(table).network, table.sample(20, random_state=1)
    found = network.predict(some, "x")
    assert isinstance(found, pd.Series) and found.name == "x" and found.index.equals(some.index)
    assert found.equals(some.x)


@pytest.mark.parametrize("column", POLARS.values(), ids=POLARS)
def test_predictions_are_values_of_a_column_of_polars(column):
    table = pl.DataFrame({"x": column, "by": ["p", "q"] * 30})
    found = learn(table).network.predict(table.drop("x"), "x")
    assert isinstance(found, pl.Series) and (found == column).all()


def test_predictions_of_intervals_and_of_missing_values_are_names_of_states():
    table = pd.DataFrame(
        {"age": [20.5, 41.5] * 30, "code": [1.0, np.nan] * 30, "by": ["p", "q"] * 30}
    )
    network = learn(table, bins=2, missing="state").network
    assert network.predict(table, "age").tolist() == ["<41.5", ">=41.5"] * 30
    assert network.predict(table, "code").tolist() == [1, "missing"] * 30
    assert list(network.probability("code")) == [1, "missing"]


def test_predictions_of_files(tmp_path):
    """Numbers and truth values of a file of text are read as data frames read them; networks have texts."""
    table = pd.DataFrame({"n": [0, 1] * 30, "flag": FLAG, "text": ["p", "q"] * 30})
    table.to_csv(tmp_path / "x.csv", index=False)
    table.to_parquet(tmp_path / "x.parquet")
    for name in ("x.csv", "x.parquet"):
        network = learn(tmp_path / name).network
        for column in table:
            assert (network.predict(table, column) == table[column]).all()
    write_network(network, tmp_path / "x.json")
    read_back = read_network(tmp_path / "x.json")
    assert read_back.predict(table, "n").tolist() == ["0", "1"] * 30
    assert (fit(read_back, table).predict(table, "n") == table.n).all()


def test_states_that_did_not_occur_are_numbers_too():
    table = pd.DataFrame({"x": [0, 1] * 30, "by": ["p", "q"] * 30})
    network = learn(table, arities={"x": 3}).network
    assert (
        list(network.probability("x")) == [0, 1, 2]
        and (network.predict(table, "x") == table.x).all()
    )


def test_predictions_of_an_array_are_an_array():
    table = np.array([[0, 5], [1, 6]] * 30)
    found = learn(table).network.predict(table, "x1")
    assert isinstance(found, np.ndarray) and (found == table[:, 1]).all()


def test_a_row_is_evidence():
    table = pd.DataFrame(
        {"id": range(60), "age": [20.5, 41.5, None] * 20, "flag": FLAG, "by": ["p", "q"] * 30}
    )
    with_state = learn(table, ignore="id", bins=2, missing="state").network
    without = learn(table, ignore="id", bins=2, missing="drop").network
    for network, missing in ((with_state, {"age": "missing"}), (without, {})):
        for row, age in ((0, {"age": "<41.5"}), (1, {"age": ">=41.5"}), (2, missing)):
            expected = network.probability(flag=True, given=age | {"by": table.by[row]})
            assert network.probability(flag=True, given=table.iloc[row]) == pytest.approx(expected)
            mapping = {name: table[name][row] for name in ("age", "by")}
            assert network.probability(flag=True, given=mapping) == pytest.approx(expected)
            assert network.probability("flag", given=table.iloc[row])[True] == pytest.approx(
                expected
            )
    with pytest.raises(QubayesError, match="no vertex 'id'"):
        without.probability(flag=True, given=table.iloc[0].to_dict())
    with pytest.raises(SettingError, match="give states by name"):
        without.probability(flag=True, given=table)


def test_values_are_named_as_in_data():
    frame = pd.DataFrame(
        {"age": [20.5, 41, 67, 30, 50, 70] * 20, "smoker": [True, False, True] * 40}
    )
    dataset = read(frame, ReadSettings(bins={"age": [40, 65]}))
    network = fit(Network(("age", "smoker"), ((), (0,))), dataset, "ml")
    assert network.states == (("<40", "40..65", ">=65"), ("false", "true"))
    assert (
        network.probability(smoker=True, given={"age": 41})
        == network.probability(smoker="true", age="40..65") * 3
    )
    assert network.predict(
        pd.DataFrame({"age": [1.0, 66.0], "weight": [3, 4]}), "smoker"
    ).tolist() == [True, True]
    with pytest.raises(DataError, match="'x'"):
        network.probability(smoker="x")
    with pytest.raises(DataError, match="missing value"):
        network.probability(smoker="NA")


def test_what_cannot_be_asked_is_refused():
    for call, words in (
        (lambda: RAIN.probability(snow="yes"), "no vertex 'snow'; vertices are 'rain'"),
        (lambda: RAIN.probability("grss"), "did you mean 'grass'"),
        (lambda: RAIN.probability(rain="maybe"), "'maybe'"),
        (lambda: RAIN.probability(), "probability of nothing"),
        (lambda: RAIN.probability("rain", grass="wet"), "one or the other"),
        (lambda: RAIN.probability(rain="yes", given={"rain": "no"}), "asked for and given"),
        (lambda: RAIN.probability("rain", given={"rain": "no"}), "asked for and given"),
        (
            lambda: RAIN.probability(grass="wet", given={"rain": "yes", "sprinkler": "high"}),
            "row 1 impossible",
        ),
        (
            lambda: RAIN.predict(pd.DataFrame({"x": [1]}), "rain"),
            "no column that is a vertex besides 'rain'",
        ),
        (lambda: Network(("a", "b"), ((), (0,))).probability(a="x"), "no probabilities"),
        (lambda: Network(("a", "b"), ((), (0,))).to_frame("a"), "no probabilities"),
    ):
        with pytest.raises(QubayesError, match=words):
            call()


@pytest.mark.parametrize("parents", list(itertools.permutations(range(3))))
def test_tables_whose_parents_stand_in_any_order(parents):
    names, arities = ("a", "b", "c", "d"), (2, 3, 4, 2)
    states = tuple(tuple(map(str, range(arity))) for arity in arities)
    network = random_tables(Network(names, ((), (), (), parents), states), np.random.default_rng(0))
    table = joint(network)
    for known in ({0: 1}, {1: 2, 2: 3}, {0: 1, 1: 0, 2: 2}):
        given = {names[v]: str(code) for v, code in known.items()}
        expected = summed(table, {3: 1, **known}) / summed(table, known)
        assert network.probability(d="1", given=given) == pytest.approx(expected)


def test_evidence_that_is_impossible_in_another_part_of_the_graph():
    never = np.array([[1.0, 0.0], [1.0, 0.0]])
    yes_no = ("yes", "no")
    graph = Network(("asked", "hidden", "seen"), ((), (), (1,)), (yes_no,) * 3)
    network = replace(graph, tables=(np.array([0.3, 0.7]), np.array([0.5, 0.5]), never))
    assert network.probability(asked="yes", given={"seen": "yes"}) == pytest.approx(0.3)
    with pytest.raises(QubayesError, match="row 1 impossible"):
        network.probability(asked="yes", given={"seen": "no"})


def test_many_rows_have_the_probabilities_of_their_kinds():
    """More rows than are computed at once."""
    grass = np.random.default_rng(0).integers(2, size=400_001)
    kinds, many = (
        pl.DataFrame({"grass": np.array(["wet", "dry"])[codes]}) for codes in ([0, 1], grass)
    )
    each = RAIN.predict_proba(kinds, "sprinkler")
    assert (RAIN.predict_proba(many, "sprinkler") == each[grass]).all()


def test_long_products_do_not_vanish():
    n = 2000
    names = tuple(f"v{i}" for i in range(n))
    table = np.array([[0.01, 0.99], [0.99, 0.01]])
    network = Network(
        names,
        ((), *((v,) for v in range(n - 1))),
        (("a", "b"),) * n,
        (np.array([0.5, 0.5]), *[table] * (n - 1)),
    )
    evidence = dict.fromkeys(names[1:], "a")  # each of probability 0.01 given the one before
    assert network.probability(v0="a", given=evidence) == pytest.approx(0.01)


def test_long_sums_over_hidden_vertices_do_not_vanish():
    n = 200
    names = tuple(f"{kind}{i}" for kind in "ho" for i in range(n))
    parents = ((), *((v,) for v in range(n - 1)), *((v,) for v in range(n)))
    coin, seen = np.full((2, 2), 0.5), np.array([[1e-3, 1 - 1e-3], [2e-3, 1 - 2e-3]])
    tables = (np.array([0.5, 0.5]), *[coin] * (n - 1), *[seen] * n)
    network = Network(names, parents, (("a", "b"),) * 2 * n, tables)
    evidence = dict.fromkeys(names[n:], "a")  # together of probability 1e-560
    assert network.probability(h0="a", given=evidence) == pytest.approx(1 / 3)


def test_a_vertex_by_name():
    grass = RAIN["grass"]
    assert (grass.parents, grass.children, grass.states) == (
        ("sprinkler", "rain"),
        (),
        ("wet", "dry"),
    )
    assert RAIN["rain"].children == ("sprinkler", "grass")
    rows = list(grass.rows())
    assert rows[1] == (("off", "no"), {"wet": 0.0, "dry": 1.0}) and len(rows) == 6
    assert "low, yes -> wet: 0.85, dry: 0.15" in str(grass)
    assert RAIN.markov_blanket("rain") == ("sprinkler", "grass")
    graph = Network.from_edges("abcde", [("a", "c"), ("b", "c"), ("c", "d"), ("e", "d")])
    assert [graph.markov_blanket(v) for v in "abc"] == [
        ("b", "c"),
        ("a", "c"),
        ("a", "b", "d", "e"),
    ]
    assert graph["c"].states is None
    with pytest.raises(QubayesError, match="no vertex 'z'"):
        _ = graph["z"]


def test_tables_as_frames(monkeypatch):
    frame = RAIN.to_frame("grass")
    assert list(frame.columns) == ["sprinkler", "rain", "P(grass=wet)", "P(grass=dry)"]
    assert frame.iloc[3].tolist() == ["low", "no", 0.7, 0.3]
    assert RAIN.to_frame("rain").shape == (1, 2)
    monkeypatch.setattr("qubayes.data.dataset.find_spec", lambda name: None)
    assert isinstance(RAIN.to_frame("grass"), pl.DataFrame)
    assert isinstance(sample(RAIN, 2), pl.DataFrame)


def test_samples_are_frames_that_are_read_back():
    frame = sample(RAIN, 50, seed=3)
    assert frame.shape == (50, 3) and list(frame["sprinkler"].cat.categories) == [
        "off",
        "low",
        "high",
    ]
    again, drawn = read(frame), sample_dataset(RAIN, 50, seed=3)
    assert again.states == drawn.states and (again.codes == drawn.codes).all()


def test_pictures_and_texts(tmp_path):
    assert str(RAIN) == (
        "Network rain.bif: 3 vertices, 3 edges, with probabilities\n  sprinkler <- rain\n  grass <- sprinkler, rain"
    )
    picture = RAIN.plot(tmp_path / "x.svg")
    assert picture.startswith("<svg") and (tmp_path / "x.svg").read_text().startswith("<svg")
    assert RAIN._repr_svg_() == picture._repr_svg_() == picture
    many = Network(tuple(map(str, range(301))), ((),) * 301)
    assert many._repr_svg_() is None and many.plot().startswith("<svg")
    assert "and 80 vertices more" in str(
        Network.from_edges([str(i) for i in range(101)], [("0", str(i)) for i in range(1, 101)])
    )
    assert "<pre>grass &lt;- sprinkler" in RAIN["grass"]._repr_html_()


@pytest.mark.parametrize("rows", [20, 21, 25])
def test_a_long_table_is_shown_in_part(rows):
    names, states = ("a", "b"), (tuple(map(str, range(rows))), ("x", "y"))
    network = Network(names, ((), (0,)), states, (np.full(rows, 1 / rows), np.full((rows, 2), 0.5)))
    lines = str(network["b"]).splitlines()
    assert len([line for line in lines if "->" in line]) == 20
    assert [line for line in lines if "more" in line] == (
        [] if rows == 20 else [f"  and {rows - 20} rows more"]
    )
