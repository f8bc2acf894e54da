"""Files of networks of continuous variables: our own, pgmpy's, and those that cannot hold them."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from network_cases import names as vertex_names
from network_cases import read_graph
from qubayes import FormatError
from qubayes.data import Dataset
from qubayes.network import (
    Linear,
    Network,
    check_network_path,
    read_about,
    read_network,
    write_network,
)

WHEAT = Network(
    ("sun", "rain", "harvest"),
    ((), (0,), (1, 0)),
    ((),) * 3,
    (Linear(6.0, (), 1.5), Linear(4.0, (-0.3,), 0.5), Linear(20.0, (5.0, 2.0), 4.0)),
)
# As the networks of bnlearn's repository stand in pgmpy: arcs in the order of the parents, numbers
# in lists, few digits.
PGMPY = {
    "nodes": ["YLD", "HT", "G418", "G 1294"],
    "arcs": [["HT", "YLD"], ["G418", "YLD"], ["G418", "HT"], ["G 1294", "HT"]],
    "cpds": {
        "YLD": {
            "coefficients": {"(Intercept)": [1.5484], "HT": [0.0718], "G418": [-0.27]},
            "variance": [0.1108],
            "parents": ["HT", "G418"],
        },
        "HT": {
            "coefficients": {"(Intercept)": [76.6512], "G 1294": [-0.5071], "G418": [1.7493]},
            "variance": [10.9772],
            "parents": ["G 1294", "G418"],
        },
        "G418": {"coefficients": {"(Intercept)": [0.24]}, "variance": [0.4231], "parents": []},
        "G 1294": {"coefficients": {"(Intercept)": [-2]}, "variance": [0.01], "parents": []},
    },
}


@st.composite
def linear_graphs(draw):
    """A network with any names and any numbers."""
    chosen = draw(st.lists(vertex_names, min_size=1, max_size=4, unique=True))
    numbers = st.floats(-1e100, 1e100)
    parents = [
        tuple(draw(st.lists(st.sampled_from(range(v)), unique=True))) if v else ()
        for v in range(len(chosen))
    ]
    linears = [
        Linear(
            draw(numbers),
            tuple(draw(numbers) for _ in its),
            draw(st.floats(1e-100, 1e100)),
        )
        for its in parents
    ]
    return Network(tuple(chosen), tuple(parents), ((),) * len(chosen), tuple(linears))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


@pytest.mark.parametrize("ending", [".json", ".json.gz", ".pgmpy.json", ".pgmpy.json.gz"])
@given(network=linear_graphs())
def test_any_numbers_survive(folder, ending, network):
    path = folder / f"x{ending}"
    if any("\ud800" <= letter <= "\udfff" for name in network.names for letter in name):
        return
    write_network(network, path)
    again = read_network(path)
    assert again == network and again.parents == network.parents
    assert again.name == path.name.removesuffix(".gz")


def test_facts_stand_beside_our_own_format_only(tmp_path):
    write_network(WHEAT, tmp_path / "x.json", {"score": -1.5})
    assert read_about(tmp_path / "x.json") == {"score": -1.5}
    write_network(WHEAT, tmp_path / "x.pgmpy.json")
    assert read_about(tmp_path / "x.pgmpy.json") == {}
    write_network(replace(WHEAT, tables=None), tmp_path / "x.json")
    again = read_network(tmp_path / "x.json")
    assert again.states == ((),) * 3 and again.tables is None and again.is_continuous


def test_networks_of_pgmpy_are_read_and_written_back(tmp_path):
    path = tmp_path / "yield.json"
    path.write_text(json.dumps(PGMPY))
    network = read_network(path)
    assert network.names == ("YLD", "HT", "G418", "G 1294")
    assert network.parents == ((1, 2), (3, 2), (), ())
    assert network.linears[1] == Linear(76.6512, (-0.5071, 1.7493), np.sqrt(10.9772))
    write_network(network, tmp_path / "back.pgmpy.json")
    assert json.loads((tmp_path / "back.pgmpy.json").read_text()) == PGMPY
    assert read_network(tmp_path / "back.pgmpy.json") == network
    write_network(network, path)  # .json alone: our own
    assert json.loads(path.read_text())["format"] == "qubayes network"
    assert read_network(path) == network


def changed(**changes):
    """PGMPY with other parameters of YLD."""
    cpds = {**PGMPY["cpds"], "YLD": {**PGMPY["cpds"]["YLD"], **changes}}
    return {**PGMPY, "cpds": cpds}


@pytest.mark.parametrize(
    "document, words",
    [
        ({**PGMPY, "nodes": ["YLD", 3]}, "'nodes' must be a list of names"),
        ({**PGMPY, "nodes": [*PGMPY["nodes"], "\ud800"]}, "'nodes' must be a list of names"),
        ({**PGMPY, "nodes": [*PGMPY["nodes"], "x"]}, "'cpds' must hold the parameters of each"),
        ({**PGMPY, "arcs": [["HT"]]}, "'arcs' must be a list of pairs"),
        ({"nodes": PGMPY["nodes"], "cpds": PGMPY["cpds"]}, "'arcs' must be a list of pairs"),
        ({**PGMPY, "arcs": PGMPY["arcs"][1:]}, "the arc 'HT' -> 'YLD' stands in one of"),
        ({**PGMPY, "arcs": [*PGMPY["arcs"], ["YLD", "G418"]]}, "the arc 'YLD' -> 'G418' stands"),
        (changed(coefficients=None), "the parameters of 'YLD' have no 'coefficients'"),
        (changed(coefficients={"HT": [1]}), "the parameters of 'YLD' have no 'coefficients'"),
        (changed(parents=["HT"]), "'YLD' has coefficients of"),
        (changed(variance=[0]), "the parameters of 'YLD': the standard deviation 0.0"),
        (changed(variance=[-1.0]), "the parameters of 'YLD': the standard deviation 0.0"),
        (changed(variance=["a"]), "a parameter of 'YLD' is"),
        (changed(variance=[1, 2]), "a parameter of 'YLD' is"),
        (changed(variance=[10**400]), "a parameter of 'YLD' is"),
        (changed(variance=None), "a parameter of 'YLD' is None"),
    ],
)
def test_broken_files_of_pgmpy_give_one_line(tmp_path, document, words):
    path = tmp_path / "x.json"
    path.write_text(json.dumps(document))
    with pytest.raises(FormatError, match=words) as raised:
        read_network(path)
    assert str(raised.value).startswith(str(path)) and "\n" not in str(raised.value)


def vertex(**changes):
    return {
        "name": "a",
        "parents": [],
        "states": [],
        "linear": {"intercept": 1.0, "weights": [], "deviation": 2.0},
        **changes,
    }


@pytest.mark.parametrize(
    "vertices, words",
    [
        ([vertex(linear={"intercept": 1.0})], "'linear' of 'a' must hold the numbers"),
        ([vertex(linear=[1.0, 2.0])], "'linear' of 'a' must hold the numbers"),
        (
            [vertex(linear={"intercept": True, "weights": [], "deviation": 1})],
            "'linear' of 'a' must hold",
        ),
        (
            [vertex(linear={"intercept": 10**400, "weights": [], "deviation": 1})],
            "'linear' of 'a'",
        ),
        (
            [vertex(linear={"intercept": 0, "weights": [], "deviation": 0})],
            "'linear' of 'a': the standard deviation 0.0",
        ),
        (
            [vertex(linear={"intercept": 0, "weights": [1.0], "deviation": 1})],
            "'a' has 0 parents and 1 weights",
        ),
        (
            [vertex(), {"name": "b", "parents": [], "states": []}],
            "1 of 2 vertices have 'table' or 'linear'",
        ),
        ([vertex(states=["x"])], "'a' has no 'table', which its states and parents ask for"),
        ([{"name": "a", "parents": [], "states": [], "table": [[]]}], "'a' has no 'linear'"),
    ],
)
def test_broken_files_of_our_own_give_one_line(tmp_path, vertices, words):
    path = tmp_path / "x.json"
    document = {"format": "qubayes network", "version": 1, "vertices": vertices}
    path.write_text(json.dumps(document))
    with pytest.raises(FormatError, match=words) as raised:
        read_network(path)
    assert str(raised.value).startswith(str(path)) and "\n" not in str(raised.value)


@pytest.mark.parametrize("ending", [".bif", ".bif.gz", ".xmlbif", ".bifxml", ".xml"])
def test_formats_of_tables_refuse_a_continuous_variable_by_name(tmp_path, ending):
    path = tmp_path / f"x{ending}"
    words = "cannot hold the continuous variable 'sun'; write .json instead, or cut .* bins=3"
    with pytest.raises(FormatError, match=words):
        write_network(WHEAT, path)
    codes = np.zeros((2, 3), np.uint8)
    mixed = Dataset(("a", "sun"), (("x",), ()), codes, numbers={"sun": np.arange(3.0)})
    with pytest.raises(FormatError, match=words):
        check_network_path(path, dataset=mixed)
    assert not path.exists()


@pytest.mark.parametrize("ending", [".dot", ".gv", ".graphml", ".bnlearn", ".csv"])
def test_formats_of_graphs_hold_the_graph(tmp_path, ending):
    path = tmp_path / f"x{ending}"
    write_network(WHEAT, path)
    again = read_graph(path)
    assert again.names == WHEAT.names and set(again.edges) == set(WHEAT.edges)


def test_what_json_of_pgmpy_cannot_hold_is_refused(tmp_path):
    path = tmp_path / "x.pgmpy.json"
    states = Network(("a",), ((),), (("x",),), (np.array([1.0]),))
    with pytest.raises(FormatError, match="continuous variables alone, and 'a' has states"):
        write_network(states, path)
    with pytest.raises(FormatError, match="needs probabilities"):
        write_network(replace(WHEAT, tables=None), path)
    named = Network(("(Intercept)",), ((),), ((),), (Linear(0.0, (), 1.0),))
    with pytest.raises(FormatError, match="it is the name of the intercept"):
        write_network(named, path)
    assert not path.exists()
