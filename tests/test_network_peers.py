"""Other programs read our files, and what they read is what we wrote."""

import itertools
import sys
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import networkx as nx
import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from network_cases import equal_tables, graphs, networks, random_tables, read_graph
from qubayes import FormatError, MissingPackageError, QubayesError
from qubayes.data import ReadSettings, read
from qubayes.network import (
    Linear,
    Network,
    fit,
    from_networkx,
    from_pgmpy,
    log_likelihood,
    read_network,
    sample,
    to_networkx,
    to_pgmpy,
    to_pyagrum,
    write_network,
)

# Names that every reader of BIF takes, and names that only XML readers take.
PLAIN = ("rain", "Lung_Cancer", "a-b", "x.1", "3_4", "grass")
PLAIN_STATES = ("yes", "no", "0", "1", "-1", "more_than_5")
ODD = ("a b", "a,b", "<script>alert(1)</script>", 'say "hi"', "雨", "[x]|{y}(z);")
ODD_STATES = ("<1.5", ">=1.5", "a b", "x, y", "é&amp;", "'")


def example(names, states, seed=0, fewest=1):
    """Six vertices in an order where children come first, tables with zeros and tiny numbers."""
    rng = np.random.default_rng(seed)
    parents = ((3, 1), (5,), (0, 4, 1), (), (3,), (3,))
    arities = (2, 3, 2, 3, fewest, 2)
    chosen = tuple(tuple(rng.permutation(states)[:arity].tolist()) for arity in arities)
    return random_tables(Network(names, parents, chosen), rng)


def entries(network):
    """({name: state}, vertex's name, probability) of every entry of every table."""
    for vertex, table in enumerate(network.tables):
        family = (*network.parents[vertex], vertex)
        for place in itertools.product(*(range(size) for size in table.shape)):
            states = {
                network.names[v]: network.states[v][k] for v, k in zip(family, place, strict=True)
            }
            yield states, network.names[vertex], float(table[place])


def parent_sets(network):
    """The parents of each vertex, by name; networkx orders edges by their source."""
    return {name: set(its) for name, its in network.parent_names().items()}


def assert_pgmpy_has(model, network):
    assert set(model.nodes) == set(network.names)
    assert {(p, c) for p, c in model.edges} == {
        (p, c) for c, its in network.parent_names().items() for p in its
    }
    for states, name, probability in entries(network):
        assert model.get_cpds(name).get_value(**states) == probability


@pytest.mark.parametrize("ending", [".bif", ".xmlbif"])
def test_pgmpy_reads_our_files(tmp_path, ending):
    readwrite = pytest.importorskip("pgmpy.readwrite")
    network = example(PLAIN, PLAIN_STATES)
    path = tmp_path / f"x{ending}"
    write_network(network, path)
    reader = readwrite.BIFReader if ending == ".bif" else readwrite.XMLBIFReader
    assert_pgmpy_has(reader(str(path)).get_model(), network)


def test_pgmpy_reads_odd_names_from_xmlbif(tmp_path):
    readwrite = pytest.importorskip("pgmpy.readwrite")
    network = example(ODD, ODD_STATES)
    write_network(network, tmp_path / "x.xmlbif")
    assert_pgmpy_has(readwrite.XMLBIFReader(str(tmp_path / "x.xmlbif")).get_model(), network)


def assert_agrum_has(model, network, tolerance):
    gum = pytest.importorskip("pyagrum")
    assert set(model.names()) == set(network.names)
    assert len(model.arcs()) == len(network.edges)
    for states, name, probability in entries(network):
        table = model.cpt(name)
        place = gum.Instantiation(table)
        for variable, state in states.items():
            place[variable] = state
        assert table[place] == pytest.approx(probability, rel=tolerance, abs=1e-300)


@pytest.mark.parametrize("ending", [".bif", ".bifxml"])
@pytest.mark.parametrize("seed", range(3))
def test_pyagrum_reads_our_files(tmp_path, ending, seed):
    gum = pytest.importorskip("pyagrum")
    network = example(PLAIN, PLAIN_STATES, seed, fewest=2)
    path = tmp_path / f"x{ending}"
    write_network(network, path)
    # Its BIF reader keeps single precision, its XML reader all digits.
    assert_agrum_has(gum.loadBN(str(path)), network, 1e-6 if ending == ".bif" else 1e-15)


def test_pyagrum_reads_odd_names_from_xmlbif(tmp_path):
    gum = pytest.importorskip("pyagrum")
    network = example(ODD, ODD_STATES)
    write_network(network, tmp_path / "x.bifxml")
    assert_agrum_has(gum.loadBN(str(tmp_path / "x.bifxml")), network, 1e-15)


def only_with(package, version):
    """Skip where another version than the documented one is installed: it may have learned better."""
    pytest.importorskip(package)
    if not metadata.version(package).startswith(version):
        pytest.skip(f"docs/networks.md speaks of {package} {version}")


def binned():
    """A network learned from measurements: names with blanks, states that are intervals, one of missing values."""
    rng = np.random.default_rng(0)
    alcohol = rng.normal(12.5, 0.8, 200).round(2)
    table = {
        "fixed acidity": [None if x > 14 else round(x * 1e-7, 9) for x in alcohol],
        "alcohol": alcohol - 13,
        "good?": alcohol > 12.6,
        "1.5": rng.integers(0, 2, 200) * 1e20,
    }
    reading = ReadSettings(
        bins={"fixed acidity": 3, "alcohol": 4, "1.5": [0.5, 1e20]}, missing="state"
    )
    dataset = read(pandas.DataFrame(table), reading)
    return fit(Network(dataset.names, ((1,), (), (0, 1), (2,))), dataset)


def with_identifiers(path, plain):
    """The network as readers see it that skip properties."""
    lines = path.read_text().splitlines(keepends=True)
    plain.write_text("".join(line for line in lines if "property" not in line))
    return read_network(plain)


@pytest.mark.parametrize(
    "network",
    [
        binned(),
        example(ODD, ODD_STATES, fewest=2),
        example(("table", "1.5", "1_5", "_", "network", "s_1.5"), ODD_STATES),
    ],
)
def test_other_readers_take_any_names_from_bif_as_identifiers(tmp_path, network):
    gum, readwrite = pytest.importorskip("pyagrum"), pytest.importorskip("pgmpy.readwrite")
    if min(network.arities) == 1:  # pyAgrum refuses variables of one state
        network = example(network.names, ODD_STATES, fewest=2)
    path = tmp_path / "x.bif"
    write_network(network, path)
    ours = read_network(path)
    assert (ours.names, ours.parents, ours.states) == (
        network.names,
        network.parents,
        network.states,
    )
    assert equal_tables(ours, network)
    seen = with_identifiers(path, tmp_path / "y.bif")
    assert seen.names != network.names and seen.parents == network.parents
    assert_pgmpy_has(readwrite.BIFReader(str(path)).get_model(), seen)
    assert_agrum_has(gum.loadBN(str(path)), seen, 1e-6)


def test_other_readers_take_the_network_of_the_tutorial(tmp_path):
    gum, readwrite = pytest.importorskip("pyagrum"), pytest.importorskip("pgmpy.readwrite")
    dataset = read(Path(__file__).parent.parent / "examples" / "wine.csv", ReadSettings(bins=3))
    network = fit(Network(dataset.names, ((), *((v - 1,) for v in range(1, dataset.n)))), dataset)
    assert any(state.startswith("<") for states in network.states for state in states)
    write_network(network, tmp_path / "wine.bif")
    seen = with_identifiers(tmp_path / "wine.bif", tmp_path / "y.bif")
    assert_pgmpy_has(readwrite.BIFReader(str(tmp_path / "wine.bif")).get_model(), seen)
    assert_agrum_has(gum.loadBN(str(tmp_path / "wine.bif")), seen, 1e-6)


def test_identifiers_of_intervals_are_legible(tmp_path):
    network = binned()
    write_network(network, tmp_path / "x.bif")
    seen = with_identifiers(tmp_path / "x.bif", tmp_path / "y.bif")
    assert seen.names == ("fixed_acidity", "alcohol", "good_", "s_1.5")
    assert network.states[3] == ("<0.5", "0.5..1e+20", ">=1e+20")
    assert seen.states[3] == ("below_0.5", "from_0.5_to_1e_20", "from_1e_20")
    assert network.states[0][-1] == seen.states[0][-1] == "missing"
    text = (tmp_path / "x.bif").read_text()
    assert "  property qubayes_name = fixed acidity ;\n" in text
    assert f"  property qubayes_states = {', '.join(network.states[1])} ;\n" in text


def test_properties_that_do_not_fit_are_refused(tmp_path):
    write_network(binned(), tmp_path / "x.bif")
    text = (tmp_path / "x.bif").read_text()
    (tmp_path / "x.bif").write_text(text.replace("qubayes_states = ", "qubayes_states = x, "))
    with pytest.raises(FormatError, match="'fixed_acidity' has 4 states and 5 in its property"):
        read_network(tmp_path / "x.bif")


def test_pyagrum_refuses_variables_of_one_state_as_documented(tmp_path):
    only_with("pyagrum", "3.3.")
    import pyagrum as gum

    write_network(Network(("a",), ((),), (("x",),), (np.array([1.0]),)), tmp_path / "x.bif")
    with pytest.raises(gum.FatalError):
        gum.loadBN(str(tmp_path / "x.bif"))


@pytest.mark.parametrize("network", [binned(), example(ODD, ODD_STATES, fewest=2)])
def test_models_of_pyagrum_have_the_same_tables(network):
    assert_agrum_has(to_pyagrum(network), network, 1e-15)


@pytest.mark.parametrize("ending", [".bif", ".bifxml"])
def test_we_read_pyagrums_files(tmp_path, ending):
    gum = pytest.importorskip("pyagrum")
    model = gum.fastBN("a{x|y|z}->b[3]->c<-a; d->c")
    gum.saveBN(model, str(tmp_path / f"x{ending}"))
    network = read_network(tmp_path / f"x{ending}")
    assert network.states[network.names.index("a")] == ("x", "y", "z")
    assert_agrum_has(model, network, 1e-5)  # it writes six digits to XML


@pytest.mark.parametrize("ending", [".bif", ".xmlbif"])
def test_we_read_pgmpys_files(tmp_path, ending):
    readwrite = pytest.importorskip("pgmpy.readwrite")
    model = to_pgmpy(example(("p", "q", "r", "s", "t", "u"), ("up", "down", "left")))
    writer = (readwrite.BIFWriter if ending == ".bif" else readwrite.XMLBIFWriter)(model)
    writer.write(str(tmp_path / f"x{ending}"))
    found = read_network(tmp_path / f"x{ending}")
    again = from_pgmpy(model)
    assert found.n == again.n
    for states, name, probability in entries(found):
        assert model.get_cpds(name).get_value(**states) == pytest.approx(probability, abs=1e-12)


@given(networks())
def test_to_pgmpy_and_back(network):
    pytest.importorskip("pgmpy")
    model = to_pgmpy(network)
    assert model.check_model()
    assert_pgmpy_has(model, network)
    found = from_pgmpy(model)
    assert (found.names, found.parents, found.states) == (
        network.names,
        network.parents,
        network.states,
    )
    assert equal_tables(found, network)


def test_a_pgmpy_model_without_tables_and_one_with_states_in_another_order():
    pytest.importorskip("pgmpy")
    from pgmpy.factors.discrete import TabularCPD
    from pgmpy.models import DiscreteBayesianNetwork

    model = DiscreteBayesianNetwork([("a", "b")])
    assert (
        from_pgmpy(model).parent_names() == {"a": (), "b": ("a",)}
        and from_pgmpy(model).tables is None
    )
    assert to_pgmpy(Network(("a", "b"), ((), (0,)))).edges == model.edges
    turned = {"b": ["p", "q"], "a": [1, 0]}
    model.add_cpds(
        TabularCPD("a", 2, [[0.25], [0.75]], state_names={"a": [0, 1]}),
        TabularCPD("b", 2, [[0.1, 0.2], [0.9, 0.8]], ["a"], [2], turned),
    )
    found = from_pgmpy(model)
    assert found.states == (("0", "1"), ("p", "q"))
    assert found.tables[1].tolist() == [[0.2, 0.8], [0.1, 0.9]]


@given(
    graphs(
        vertex_names=st.text(
            st.characters(exclude_categories=("Cs", "Cc", "Cn")), min_size=1, max_size=6
        )
    )
)
def test_networkx_reads_our_graphml(tmp_path_factory, network):
    path = tmp_path_factory.getbasetemp() / "networkx.graphml"
    write_network(network, path)
    found = nx.read_graphml(path)
    assert found.is_directed() and list(found.nodes) == list(network.names)
    assert list(found.edges) == list(to_networkx(network).edges)
    nx.write_graphml(to_networkx(network), path)
    assert parent_sets(read_network(path)) == parent_sets(network)


@given(graphs(vertex_names=st.text(max_size=4)))
def test_to_networkx_and_back(network):
    found = from_networkx(to_networkx(network))
    assert (found.names, found.parents) == (network.names, network.parents)


def test_networkx_graphs_that_are_no_networks():
    with pytest.raises(QubayesError, match="undirected"):
        from_networkx(nx.Graph([("a", "b")]))
    with pytest.raises(QubayesError, match="cycle"):
        from_networkx(nx.DiGraph([("a", "b"), ("b", "a")]))
    with pytest.raises(QubayesError, match="two vertices are named '1'"):
        from_networkx(nx.DiGraph([(1, "1")]))
    assert from_networkx(nx.MultiDiGraph([(1, 2), (1, 2)])).parent_names() == {"1": (), "2": ("1",)}


def test_networkx_reads_our_dot(tmp_path):
    pytest.importorskip("pydot")
    names = ("a b", "a,b", "<script>", "雨", "[x]|{y}(z)->w", "plain", "1", "node")
    network = Network(names, ((1, 2), (), (1,), (0,), (), (4, 3), (5,), (6, 0)))
    write_network(network, tmp_path / "x.dot")
    found = from_networkx(nx.nx_pydot.read_dot(tmp_path / "x.dot"))
    assert parent_sets(found) == parent_sets(network)


def test_quotation_marks_in_dot_are_right_but_pydot_leaves_the_backslash(tmp_path):
    pydot = pytest.importorskip("pydot")
    write_network(Network(('a"b',), ((),)), tmp_path / "x.dot")
    [graph] = pydot.graph_from_dot_file(str(tmp_path / "x.dot"))
    assert graph.get_nodes()[0].get_name() == '"a\\"b"'  # as it stands in the file
    assert read_graph(tmp_path / "x.dot").names == ('a"b',)


def test_pandas_reads_our_matrix(tmp_path):
    pandas = pytest.importorskip("pandas")
    network = Network(("a,b", 'c"d', "e\nf"), ((), (0, 2), ()))
    write_network(network, tmp_path / "x.csv")
    frame = pandas.read_csv(tmp_path / "x.csv")
    assert tuple(frame.columns) == network.names
    assert frame.to_numpy().tolist() == [[0, 1, 0], [0, 0, 0], [0, 1, 0]]
    found = from_networkx(nx.from_pandas_adjacency(frame.set_axis(frame.columns), nx.DiGraph))
    assert parent_sets(found) == parent_sets(network)


def test_without_pgmpy_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pgmpy.models", None)
    with pytest.raises(MissingPackageError, match="pip install pgmpy"):
        to_pgmpy(Network(("a",), ((),)))


def wheat():
    """A network of continuous variables."""
    names = ("sun", "rain", "wet soil", "harvest")
    parents = ((), (0,), (1, 0), (2,))
    linears = (
        Linear(6.0, (), 1.5),
        Linear(4.0, (-0.3,), 0.5),
        Linear(20.0, (5.0, 2.0), 4.0),
        Linear(-1.0, (0.1,), 0.25),
    )
    return Network(names, parents, ((),) * 4, linears)


@pytest.mark.slow
def test_pgmpy_has_our_linear_gaussian_networks(tmp_path):
    models = pytest.importorskip("pgmpy.models")
    network = wheat()
    frame = sample(network, 50, seed=1)
    write_network(network, tmp_path / "x.pgmpy.json")
    read_back = models.LinearGaussianBayesianNetwork.load(tmp_path / "x.pgmpy.json")
    for model in (to_pgmpy(network), read_back):
        assert from_pgmpy(model) == network
        likelihood = model.log_likelihood(frame)
        assert log_likelihood(network, read(frame, like=network)) == pytest.approx(likelihood)
        for name in network.names:
            known = frame.drop(columns=[name])
            expected = model.predict(known)[name]
            assert network.predict(known, name).to_numpy() == pytest.approx(expected.to_numpy())
            _, means, covariance = model.predict_probability(known.iloc[:1])
            found = network.probability(name, given=known.iloc[0])
            assert found.mean == pytest.approx(means[0, 0])
            assert found.deviation == pytest.approx(np.sqrt(covariance[0, 0]))
    read_back.save(tmp_path / "theirs.json")
    assert read_network(tmp_path / "theirs.json") == network
    graph = replace(network, tables=None)
    assert set(to_pgmpy(graph).edges) == set(network.edges) and not to_pgmpy(graph).cpds
    with pytest.raises(QubayesError, match="'sun' is continuous and has no table"):
        to_pyagrum(network)


@pytest.mark.slow
def test_pgmpy_estimates_the_same_parameters():
    models = pytest.importorskip("pgmpy.models")
    frame = sample(wheat(), 200, seed=2)
    ours = fit(wheat(), frame)
    theirs = from_pgmpy(models.LinearGaussianBayesianNetwork(wheat().edges).fit(frame))
    index = {name: v for v, name in enumerate(theirs.names)}
    for name, its, linear in zip(ours.names, ours.parents, ours.linears, strict=True):
        other = theirs.linears[index[name]]
        assert linear.intercept == pytest.approx(other.intercept)
        weights = dict(zip(theirs[name].parents, other.weights, strict=True))
        for parent, weight in zip(its, linear.weights, strict=True):
            assert weight == pytest.approx(weights[ours.names[parent]])
        # pgmpy divides by another number of rows
        assert linear.deviation == pytest.approx(other.deviation, rel=0.02)
