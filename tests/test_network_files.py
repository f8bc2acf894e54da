"""Network files: what goes in comes out, or is refused by name; what is broken is told in one line."""

import functools
import gzip
import inspect
import json
import tempfile
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from network_cases import NASTY, equal_tables, graphs, names, networks, read_graph
from qubayes import FormatError, QubayesError
from qubayes.network import (
    MOST_NETWORK_BYTES,
    NETWORK_ENDINGS,
    Linear,
    Network,
    from_modelstring,
    holds_tables,
    read_about,
    read_network,
    to_modelstring,
    write_network,
)

WITH_TABLES = tuple(ending for ending in NETWORK_ENDINGS if holds_tables(f"x{ending}"))
GRAPHS = (".json", *(ending for ending in NETWORK_ENDINGS if ending not in WITH_TABLES))


def fuse():
    """A small network with every kind of number."""
    table = np.array(
        [
            [[0.1, 0.9], [1e-300, 1.0]],
            [[0.0, 1.0], [0.30000000000000004, 0.7]],
            [[1 / 3, 2 / 3], [0.5, 0.5]],
        ]
    )
    return Network(
        ("wet", "sprinkler", "rain"),
        ((1, 2), (), ()),
        (("yes", "no"), ("off", "low", "high"), ("0", "1")),
        (table, np.array([0.2, 0.3, 0.5]), np.array([5e-324, 1.0])),
    )


@pytest.mark.parametrize("ending", [*NETWORK_ENDINGS, ".bif.gz", ".csv.gz", ".JSON", ".Xml.GZ"])
def test_round_trip(tmp_path, ending):
    network, path = fuse(), tmp_path / f"x{ending}"
    write_network(network, path)
    found = read_graph(path)
    assert (found.names, found.parents) == (network.names, network.parents)
    assert found.name == path.name.removesuffix(".gz")
    if holds_tables(path):
        assert found.states == network.states and equal_tables(found, network)
    else:
        assert found.states is None and found.tables is None
    first = path.read_bytes()
    write_network(network, path)
    assert path.read_bytes() == first
    assert (first[:2] == b"\x1f\x8b") == path.name.lower().endswith(".gz")
    assert [found.name for found in tmp_path.iterdir()] == [path.name]


def test_networks_are_equal_if_all_but_the_order_of_parents_is(tmp_path):
    network, path = fuse(), tmp_path / "x.json"
    table, *others = network.tables
    turned = replace(network, parents=((2, 1), (), ()), tables=(table.transpose(1, 0, 2), *others))
    write_network(network, path)
    same = [network, fuse(), turned, read_graph(path)]
    assert all(one == other for one in same for other in same) and len({*same}) == 1
    other_table = np.array([0.2, 0.4, 0.4])
    different = [
        replace(network, tables=None),
        replace(network, tables=None, states=None),
        replace(network, tables=(table, other_table, others[1])),
        replace(network, names=("wet", "rain", "sprinkler")),
        replace(network, states=(("no", "yes"), *network.states[1:])),
        replace(network, parents=((1,), (), ()), tables=None),
        replace(turned, parents=network.parents, tables=None),
    ]
    assert all(network != other and other != network for other in different)
    assert replace(turned, tables=None) == different[0] == different[-1] and len({*different}) == 6
    assert network != "wet"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("examples")


def refused_by_name(network, path, texts):
    """Write; whether it was refused with a message of one line that holds one of the texts and what else to do."""
    path.unlink(missing_ok=True)
    try:
        write_network(network, path)
    except FormatError as error:
        message = str(error)
        assert any(repr(text) in message for text in texts), message
        assert "\n" not in message and ("instead" in message or "rename" in message)
        assert not path.exists()
        return True
    return False


@pytest.mark.parametrize("ending", [".bif", ".xmlbif", ".json"])
@given(network=networks(vertex_names=names, state_names=names))
def test_any_names_survive_with_tables_or_are_refused(folder, ending, network):
    path = folder / f"x{ending}"
    texts = [*network.names, *(state for states in network.states for state in states)]
    if not refused_by_name(network, path, texts):
        found = read_graph(path)
        assert (found.names, found.parents, found.states) == (
            network.names,
            network.parents,
            network.states,
        )
        assert equal_tables(found, network)


@pytest.mark.parametrize("ending", [".json", ".dot", ".graphml", ".bnlearn", ".csv"])
@given(network=graphs(vertex_names=names))
def test_any_names_survive_in_graphs_or_are_refused(folder, ending, network):
    path = folder / f"x{ending}"
    if not refused_by_name(network, path, network.names):
        found = read_graph(path)
        assert found.names == network.names
        if ending == ".csv":  # a matrix has no order of parents
            assert found.parents == tuple(tuple(sorted(its)) for its in network.parents)
        else:
            assert found.parents == network.parents


REFUSED = {
    ".bif": [],
    ".xmlbif": [" a", "a ", "\r", " ", "", "\x00", "\x01", "\x1f", "\ufffe"],
    ".json": [],
    ".dot": ["a\\", "\\", 'a\\"b', "\x00"],
    ".graphml": ["", "\x00", "\x01", "\x1f", "\ufffe"],
    ".bnlearn": ["a[b]", "a|b:c", "]]>", "", "\x00"],
    ".csv": ["\x00"],
}


@pytest.mark.parametrize("ending", REFUSED)
def test_which_names_are_refused(tmp_path, ending):
    refused = []
    for place, name in enumerate(NASTY):
        network = Network(
            (name, "child"),
            ((), (0,)),
            (("x",), ("p", "q")),
            (np.ones(1), np.array([[0.25, 0.75]])),
        )
        path = tmp_path / f"{place}{ending}"
        if refused_by_name(network, path, [name]):
            refused.append(name)
        else:
            assert read_graph(path).parent_names() == {name: (), "child": (name,)}
    assert refused == REFUSED[ending]


def test_half_a_character_is_refused_by_every_format(tmp_path):
    network = Network(("a\ud800",), ((),), (("x",),), (np.ones(1),))
    for ending in NETWORK_ENDINGS:
        with pytest.raises(FormatError, match=r"'a\\ud800'.*rename"):
            write_network(network, tmp_path / f"x{ending}")
    (tmp_path / "x.json").write_text(
        '{"format": "qubayes network", "version": 1, "vertices": [{"name": "a\\ud800", "parents": []}]}'
    )
    with pytest.raises(FormatError, match="'name'"):
        read_network(tmp_path / "x.json")


def test_a_graph_alone_is_no_bif(tmp_path):
    for ending in (".bif", ".xmlbif"):
        with pytest.raises(FormatError, match=r"fit it to data first .*, or write \.json"):
            write_network(Network(("a",), ((),)), tmp_path / f"x{ending}")
    assert not list(tmp_path.iterdir())


def test_states_without_tables_survive_in_json(tmp_path):
    network = Network(("a", "b"), ((1,), ()), (("x", "y"), ("", "z")))
    write_network(network, tmp_path / "x.json")
    found = read_network(tmp_path / "x.json")
    assert (found.names, found.parents, found.states, found.tables) == (
        network.names,
        network.parents,
        network.states,
        None,
    )


@pytest.mark.parametrize("ending", GRAPHS)
def test_no_vertices(tmp_path, ending):
    path = tmp_path / f"x{ending}"
    if ending in (".bnlearn", ".csv"):
        with pytest.raises(FormatError, match="vertices"):
            write_network(Network((), ()), path)
    else:
        write_network(Network((), ()), path)
        assert read_graph(path).n == 0


def test_facts_beside_the_network(tmp_path):
    about = {"score": -1234.5, "stamp": {"score": "bdeu", "ess": 1.0}}
    write_network(fuse(), tmp_path / "x.json", about)
    assert read_about(tmp_path / "x.json") == about
    assert equal_tables(read_network(tmp_path / "x.json"), fuse())
    write_network(fuse(), tmp_path / "x.json")
    assert read_about(tmp_path / "x.json") == {}
    for bad in ({"score": float("nan")}, {"score": object()}):
        with pytest.raises(FormatError, match="plain JSON"):
            write_network(fuse(), tmp_path / "y.json", bad)


def test_the_documented_example_is_read(tmp_path):
    page = inspect.getmodule(read_about).__doc__
    text, continuous = (part for part in page.split("\n\n") if part.lstrip().startswith("{"))
    (tmp_path / "x.json").write_text(continuous)
    assert read_network(tmp_path / "x.json").linears == (Linear(4.0, (), 0.5),)
    text = text.replace('["rain"]', "[]").replace(", [0.1, 0.9]", "")
    (tmp_path / "x.json").write_text(text)
    assert read_network(tmp_path / "x.json").tables[0].tolist() == [0.8, 0.2]
    assert read_about(tmp_path / "x.json") == {"score": -1234.5}


def test_model_strings():
    network = from_modelstring("[A][C|B:A]\n  [B|A]\n")
    assert network.names == ("A", "C", "B") and network.parents == ((), (2, 0), (0,))
    assert to_modelstring(network) == "[A][C|B:A][B|A]"
    with pytest.raises(QubayesError, match="'B', which is not a vertex; add it"):
        from_modelstring("[A|B]")


OTHERS = {
    # As other programs write them.
    "networkx.graphml": (
        "<?xml version='1.0' encoding='utf-8'?>\n"
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">'
        '<key id="d0" for="edge" attr.name="weight" attr.type="double"/><graph edgedefault="directed">'
        '<node id="a"/><node id="b"/><edge source="a" target="b"><data key="d0">0.5</data></edge></graph></graphml>'
    ),
    "each.graphml": (
        '<graphml><graph edgedefault="undirected"><node id="a"/><node id="b"/>'
        '<edge directed="true" source="a" target="b"/></graph></graphml>'
    ),
    "r.bnlearn": "[a][b|a]",
    "wrapped.bnlearn": "\n   [a]\n   [b|a] \n",
    "doctype.xml": """<?xml version="1.0"?>
<!-- a comment -->
<!DOCTYPE BIF [
    <!ELEMENT BIF ( NETWORK )*>
    <!ATTLIST BIF VERSION CDATA #REQUIRED>
    <!ELEMENT NETWORK ( NAME, ( PROPERTY | VARIABLE | DEFINITION )* )>
    <!ELEMENT NAME (#PCDATA)>
    <!ATTLIST VARIABLE TYPE (nature|decision|utility) "nature">
]>
<BIF VERSION="0.3" xmlns="http://www.cs.ubc.ca/labs/lci/fopi/ve/XMLBIFv0_3">
<NETWORK><NAME>x</NAME><PROPERTY>short = y</PROPERTY>
<VARIABLE TYPE="nature">
  <NAME> a </NAME><OUTCOME>true</OUTCOME><OUTCOME> false
  </OUTCOME><PROPERTY>position = (73, 165)</PROPERTY>
</VARIABLE>
<VARIABLE><NAME>b</NAME><OUTCOME>p</OUTCOME><OUTCOME>q</OUTCOME></VARIABLE>
<DEFINITION><FOR>b</FOR><GIVEN>a</GIVEN><TABLE> <!-- p q --> 0.25 0.75
   0.5 <!-- then --> .5 </TABLE></DEFINITION>
<DEFINITION><FOR>a</FOR><TABLE>1 0</TABLE></DEFINITION>
</NETWORK></BIF>""",
}


@pytest.mark.parametrize("name", OTHERS)
def test_files_of_other_programs(tmp_path, name):
    (tmp_path / name).write_bytes(OTHERS[name].encode())
    found = read_network(tmp_path / name)
    assert found.parent_names() == {"a": (), "b": ("a",)}
    if name.endswith(".xml"):
        assert found.states == (("true", "false"), ("p", "q"))
        assert [table.tolist() for table in found.tables] == [
            [1.0, 0.0],
            [[0.25, 0.75], [0.5, 0.5]],
        ]


def test_latin_1_and_utf_16_xml(tmp_path):
    text = '<?xml version="1.0" encoding="{}"?><graphml><graph edgedefault="directed"><node id="é"/></graph></graphml>'
    for encoding in ("iso-8859-1", "utf-16", "windows-1252"):
        (tmp_path / "x.graphml").write_bytes(text.format(encoding).encode(encoding))
        assert read_network(tmp_path / "x.graphml").names == ("é",)
    (tmp_path / "x.graphml").write_bytes(text.format("klingon").encode())
    with pytest.raises(FormatError, match=r"x\.graphml: not well-formed XML"):
        read_network(tmp_path / "x.graphml")


XML = OTHERS["doctype.xml"]
JSON = '{"format": "qubayes network", "version": 1, "vertices": [%s]}'
A = '{"name": "a", "parents": [], "states": ["x", "y"], "table": [[0.5, 0.5]]}'
BROKEN = {
    "empty.xml": ("", "not well-formed XML"),
    "cut.xml": (XML[:-30], "not well-formed XML"),
    "entity.xml": (XML.replace("]>", '<!ENTITY e "x">]>'), "declares the entity 'e'"),
    "parameter.xml": (XML.replace("]>", '<!ENTITY % e "x">]>'), "declares the entity 'e'"),
    "external.xml": (
        XML.replace("]>", '<!ENTITY e SYSTEM "file:///etc/passwd">]>'),
        "declares the entity 'e'",
    ),
    "unknown.xml": (
        XML.replace("p q", "").replace("<OUTCOME>q", "<OUTCOME>&e;"),
        "undefined entity",
    ),
    "deep.xml": ("<a>" * 200 + "</a>" * 200, "deeper than 100"),
    "root.xml": ("<html/>", "'html'"),
    "none.xml": ("<BIF/>", "one NETWORK"),
    "two.xml": (XML.replace("</NETWORK>", "</NETWORK><NETWORK/>"), "one NETWORK"),
    "table.xml": (XML.replace("0.25 0.75", "0.25"), "'b' has 3 numbers.*need 4"),
    "number.xml": (XML.replace("0.25 0.75", "0.25 much"), "'b'.*'much'"),
    "nan.xml": (XML.replace("0.25 0.75", "0.25 nan"), "'b'"),
    "sum.xml": (XML.replace("0.25 0.75", "0.25 0.25"), "'b'.*sum 0.5"),
    "notable.xml": (XML.replace("<TABLE>1 0</TABLE>", ""), "'a' has 0 numbers"),
    "tables.xml": (
        XML.replace("<TABLE>1 0</TABLE>", "<TABLE>1 0</TABLE>" * 2),
        "'a' has a second DEFINITION or TABLE",
    ),
    "undefined.xml": (XML.replace("<FOR>a<", "<FOR>c<"), "'c' in a DEFINITION"),
    "given.xml": (XML.replace("<GIVEN>a<", "<GIVEN>c<"), "'c' in a DEFINITION"),
    "left.xml": (
        XML.replace("<DEFINITION><FOR>a</FOR><TABLE>1 0</TABLE></DEFINITION>", ""),
        "'a' has no DEFINITION",
    ),
    "again.xml": (XML.replace("<FOR>a<", "<FOR>b<"), "'b' has a second DEFINITION"),
    "same.xml": (XML.replace("<NAME>b<", "<NAME>a<"), "two VARIABLE elements have the same name"),
    "nameless.xml": (
        XML.replace("<NAME>b<", "<NAME><"),
        "VARIABLE has 1 NAME elements; it must have one, with text",
    ),
    "utility.xml": (XML.replace('TYPE="nature"', 'TYPE="utility"'), "TYPE 'utility'"),
    "states.xml": (XML.replace("<OUTCOME>q<", "<OUTCOME>p<"), "states of 'b'"),
    "cycle.xml": (XML.replace("<FOR>a</FOR>", "<FOR>a</FOR><GIVEN>b</GIVEN>"), "cycle"),
    "undirected.graphml": (
        OTHERS["networkx.graphml"].replace('"directed"', '"undirected"'),
        "'a' and 'b' is undirected",
    ),
    "no.graphml": ("<graphml/>", "one graph"),
    "id.graphml": (OTHERS["networkx.graphml"].replace('id="b"', ""), "node without 'id'"),
    "lost.graphml": (
        OTHERS["networkx.graphml"].replace('target="b"', 'target="c"'),
        "'c', which is not a vertex",
    ),
    "double.graphml": (
        OTHERS["networkx.graphml"].replace('id="b"', 'id="a"').replace('target="b"', 'target="a"'),
        "'a'",
    ),
    "hyper.graphml": (
        OTHERS["networkx.graphml"].replace("</graph>", "<hyperedge/></graph>"),
        "hyperedges",
    ),
    "empty.bnlearn": ("\n", "no vertex"),
    "text.bnlearn": ("[a] and [b]", "'and \\[b\\]' where"),
    "bar.bnlearn": ("[a|]", "where"),
    "parent.bnlearn": ("[a|b]", "'b' -> 'a' has 'b'"),
    "twice.bnlearn": ("[a][a]", "two vertices are named 'a'"),
    "cycle.bnlearn": ("[a|b][b|a]", "cycle"),
    "empty.json": ("", "not JSON"),
    "deep.json": ("[" * 200_000, "not JSON"),
    "list.json": ("[]", "not a network"),
    "other.json": ('{"format": "x", "vertices": []}', "not a network"),
    "version.json": (JSON.replace("1", "2") % "", "version 2"),
    "name.json": (JSON % '{"parents": []}', "'vertices' must"),
    "vertex.json": (JSON % "1", "'vertices' must"),
    "parent.json": (JSON % '{"name": "a", "parents": ["b"]}', "'b', a parent of 'a'"),
    "index.json": (JSON % '{"name": "a", "parents": [0]}', "'vertices' must"),
    "some.json": (JSON % (A + ', {"name": "b", "parents": []}'), "1 of 2 vertices have 'states'"),
    "twice.json": (JSON % (A + ", " + A), "two vertices"),
    "stateless.json": (JSON % '{"name": "a", "parents": [], "table": [[1]]}', "no 'states'"),
    "shape.json": (JSON % A.replace("[[0.5, 0.5]]", "[0.5, 0.5]"), "1 rows of 2"),
    "rows.json": (JSON % A.replace("[[0.5, 0.5]]", "[[0.5, 0.5], [1, 0]]"), "1 rows of 2"),
    "huge.json": (JSON % A.replace("[[0.5, 0.5]]", "[[1" + "0" * 400 + ", 0]]"), "1 rows of 2"),
    "digits.json": (JSON % A.replace("[[0.5, 0.5]]", "[[1" + "0" * 9000 + ", 0]]"), "not JSON"),
    "nan.json": (JSON % A.replace("[[0.5, 0.5]]", "[[NaN, 0]]"), "not JSON"),
    "text.json": (JSON % A.replace("[[0.5, 0.5]]", '[["1", 0]]'), "1 rows of 2"),
    "sum.json": (JSON % A.replace("[[0.5, 0.5]]", "[[0.5, 0.25]]"), "'a'.*sum 0.75"),
    "about.json": (JSON.replace('"vertices"', '"about": 1, "vertices"') % "", None),
    "x.txt": ("[a]", r"no ending of a network file; allowed are \.bif"),
    "bytes.bnlearn": (b"[a][b|\xff]", "not UTF-8"),
    "nul.bnlearn": ("[a]\n\0\n", "NUL"),
    "x.dot": (
        "digraph { a -> b }",
        r"\.dot files are written, not read; give one of \.bif.*networkx",
    ),
    "x.csv": ("a,b\n0,1\n0,0\n", r"\.csv files are written, not read; give one of .*, \.bnlearn,"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_give_one_line_that_says_what(tmp_path, name):
    text, pattern = BROKEN[name]
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(FormatError, match=pattern) as caught:
        (read_about if pattern is None else read_network)(tmp_path / name)
    assert name in str(caught.value) and "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500 + len(str(tmp_path))


def test_a_missing_file_and_a_bad_ending(tmp_path):
    with pytest.raises(FormatError, match="no such file"):
        read_network(tmp_path / "x.json")
    with pytest.raises(FormatError, match=r"x\.qbn has no ending"):
        write_network(fuse(), tmp_path / "x.qbn")
    with pytest.raises(FormatError, match="cannot write"):
        write_network(fuse(), tmp_path / "none" / "x.json")


def test_what_could_not_be_read_back_is_not_written(tmp_path):
    many = Network(tuple(map(str, range(100_001))), ((),) * 100_001)
    with pytest.raises(FormatError, match="100001 vertices and 0 probabilities are too many"):
        write_network(many, tmp_path / "x.json")
    (tmp_path / "x.bnlearn").write_text("".join(f"[{v}]" for v in range(100_001)))
    with pytest.raises(FormatError, match="100001 vertices; at most 100000"):
        read_network(tmp_path / "x.bnlearn")
    (tmp_path / "x.bnlearn").unlink()
    states = tuple(map(str, range(5000)))
    wide = Network(
        ("a", "b"), ((), (0,)), (states, states), (np.full(5000, 2e-4), np.full((5000, 5000), 2e-4))
    )
    for ending in WITH_TABLES:
        with pytest.raises(
            FormatError, match=r"2 vertices and 25005000 probabilities are too many for a \."
        ):
            write_network(wide, tmp_path / f"x{ending}")
    with pytest.raises(FormatError, match="more than the 67108864"):
        write_network(Network(("x" * (1 << 26),), ((),)), tmp_path / "x.dot")
    assert not list(tmp_path.iterdir())
    write_network(wide, tmp_path / "x.dot")
    with pytest.raises(FormatError, match="from 1 to 5000 are written"):
        write_network(Network(many.names[:5001], ((),) * 5001), tmp_path / "x.csv")


@pytest.mark.parametrize("ending", [".json", ".graphml", ".bnlearn"])
def test_a_file_of_the_most_bytes_is_written_and_read(tmp_path, ending):
    path, most = tmp_path / f"x{ending}", MOST_NETWORK_BYTES
    write_network(Network(("x",), ((),)), path)
    name = "x" * (most - path.stat().st_size + 1)
    write_network(Network((name,), ((),)), path)
    assert path.stat().st_size == most and read_network(path).names == (name,)
    with pytest.raises(FormatError, match=f"would hold {most + 1} bytes, more than the {most}"):
        write_network(Network((f"{name}x",), ((),)), path)
    with path.open("a") as file:
        file.write("\n")
    with pytest.raises(FormatError, match=f"more than {most} bytes"):
        read_network(path)


@pytest.mark.parametrize("ending", [".csv", ".bnlearn"])
def test_a_network_of_one_vertex_is_written_and_one_of_none_is_refused(tmp_path, ending):
    path = tmp_path / f"x{ending}"
    write_network(Network(("a",), ((),)), path)
    assert read_graph(path).names == ("a",)
    with pytest.raises(FormatError, match="of 0 vertices; from 1 to"):
        write_network(Network((), ()), path)


@pytest.mark.parametrize("count", [1000, 1001])
def test_a_thousand_declarations_of_attributes_are_read(tmp_path, count):
    write_network(fuse(), tmp_path / "x.xml")
    text = (tmp_path / "x.xml").read_text()
    declared = "".join(f"<!ATTLIST a b{k} CDATA #IMPLIED>" for k in range(count))
    before, after = text.split("<BIF", 1)
    before = before.split("<!DOCTYPE")[0]
    (tmp_path / "x.xml").write_text(f"{before}<!DOCTYPE BIF [{declared}]>\n<BIF{after}")
    if count == 1000:
        assert read_network(tmp_path / "x.xml").parents == fuse().parents
    else:
        with pytest.raises(FormatError, match="declares more than 1000 attributes"):
            read_network(tmp_path / "x.xml")


def test_a_bif_file_that_pyagrum_refuses_is_written_with_a_warning(tmp_path, caplog):
    graph = Network(("a", "b", "c"), ((), (0,), ()), (("x",), ("u", "v"), ("y",)))
    tables = (np.array([1.0]), np.array([[0.5, 0.5]]), np.array([1.0]))
    one_state = replace(graph, tables=tables)
    for name in ("x.bifxml", "x.json", "x.bif"):
        write_network(one_state, tmp_path / name)
    [record] = caplog.records
    assert "'a', 'c' have one state" in record.getMessage() and "pyAgrum" in record.getMessage()
    assert read_network(tmp_path / "x.bif").states == one_state.states
    gum = pytest.importorskip("pyagrum")
    with pytest.raises(gum.FatalError):
        gum.loadBN(str(tmp_path / "x.bif"))
    assert gum.loadBN(str(tmp_path / "x.bifxml")).size() == 3


def test_a_bomb_of_entities_and_one_of_zeros_do_nothing(tmp_path):
    laughs = "".join(f'<!ENTITY e{k + 1} "{f"&e{k};" * 10}">' for k in range(9))
    text = f'<?xml version="1.0"?><!DOCTYPE BIF [<!ENTITY e0 "ha">{laughs}]><BIF>&e9;</BIF>'
    (tmp_path / "x.xml").write_text(text)
    defaults = (
        f'<!DOCTYPE BIF [<!ATTLIST a b CDATA "{"x" * 100_000}">]><BIF>{"<a/>" * 100_000}</BIF>'
    )
    (tmp_path / "y.xml").write_text(defaults)
    (tmp_path / "x.json.gz").write_bytes(gzip.compress(bytes(MOST_NETWORK_BYTES + 1), 1))
    tracemalloc.start()
    for name, words in (
        ("x.xml", "entity"),
        ("y.xml", "one NETWORK"),
        ("x.json.gz", "more than 67108864 bytes"),
    ):
        with pytest.raises(FormatError, match=words):
            read_network(tmp_path / name)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # the files unpack to 64 MB; their entities and defaults to gigabytes
    assert most < 4 * MOST_NETWORK_BYTES


@functools.cache
def written(ending):
    """The small network as a file's content."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"x{ending}"
        write_network(fuse(), path)
        return path.read_bytes()


@pytest.mark.parametrize("ending", [".xml", ".graphml", ".bnlearn", ".json"])
@given(data=st.data())
@settings(max_examples=3 * settings.default.max_examples)
def test_damaged_files_raise_only_errors_of_ours(folder, ending, data):
    path = folder / f"x{ending}"
    content = bytearray(written(ending))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content)))
        kind = data.draw(st.integers(0, 2))
        if kind == 0:
            content[place : place + data.draw(st.integers(1, 20))] = b""
        else:
            content[place : place + kind - 1] = data.draw(
                st.one_of(
                    st.binary(max_size=3),
                    st.sampled_from([b'"', b"[", b"]", b"<", b"\\", b"->", b"1e9", b"\n"]),
                )
            )
    path.write_bytes(bytes(content))
    try:
        network = read_graph(path)
    except QubayesError as error:
        assert "\n" not in str(error)
    else:
        assert network.order is not None


def test_json_is_what_it_says(tmp_path):
    write_network(fuse(), tmp_path / "x.json")
    document = json.loads((tmp_path / "x.json").read_text())
    assert (document["format"], document["version"]) == ("qubayes network", 1)
    first = document["vertices"][0]
    assert first["parents"] == ["sprinkler", "rain"] and first["table"][3] == [
        0.30000000000000004,
        0.7,
    ]
