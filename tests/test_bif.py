"""Reading BIF: every dialect, the right axis for every number, and one clear line for what is broken."""

import gzip
import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qubayes import FormatError, QubayesError
from qubayes.foundation.graph import find_cycle, topological_order
from qubayes.network import Network, read_network

SPRINKLER = """network unknown {
}
variable rain {
  type discrete [ 2 ] { yes, no };
}
variable sprinkler {
  type discrete [ 3 ] { off, low, high };
}
variable grass {
  type discrete [ 2 ] { wet, dry };
}
probability ( rain ) {
  table 0.2, 0.8;
}
probability ( sprinkler | rain ) {
  (yes) 0.9, 0.1, 0.0;
  (no) 0.5, 0.2, 0.3;
}
probability ( grass | sprinkler, rain ) {
  (off, yes) 0.8, 0.2;
  (low, yes) 0.85, 0.15;
  (high, yes) 0.99, 0.01;
  (off, no) 0.0, 1.0;
  (low, no) 0.7, 0.3;
  (high, no) 0.9, 0.1;
}
"""
# sprinkler, rain, grass
GRASS = [[[0.8, 0.2], [0.0, 1.0]], [[0.85, 0.15], [0.7, 0.3]], [[0.99, 0.01], [0.9, 0.1]]]


def read_text(tmp_path, text, name="x.bif"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_network(path)


def test_reads_names_states_parents_and_tables(tmp_path):
    network = read_text(tmp_path, SPRINKLER)
    assert network.names == ("rain", "sprinkler", "grass")
    assert network.states == (("yes", "no"), ("off", "low", "high"), ("wet", "dry"))
    assert network.parents == ((), (0,), (1, 0))
    assert network.name == "x.bif"
    assert network.tables[2].tolist() == GRASS
    assert network.tables[1].tolist() == [[0.9, 0.1, 0.0], [0.5, 0.2, 0.3]]
    assert not network.tables[2].flags.writeable
    assert network.order == (0, 1, 2)
    assert network.edges == [("rain", "sprinkler"), ("sprinkler", "grass"), ("rain", "grass")]
    assert network.parent_names()["grass"] == ("sprinkler", "rain")


def test_agrees_with_another_reader(tmp_path):
    readwrite = pytest.importorskip("pgmpy.readwrite")
    path = tmp_path / "x.bif"
    path.write_text(SPRINKLER)
    ours, theirs = read_network(path), readwrite.BIFReader(str(path)).get_model()
    for vertex, name in enumerate(ours.names):
        factor = theirs.get_cpds(name)
        evidence = [ours.names[p] for p in ours.parents[vertex]]
        for row in itertools.product(*(ours.states[v] for v in (*ours.parents[vertex], vertex))):
            place = tuple(
                ours.states[v].index(s)
                for v, s in zip((*ours.parents[vertex], vertex), row, strict=True)
            )
            assert ours.tables[vertex][place] == factor.get_value(
                **dict(zip([*evidence, name], row, strict=True))
            )


DIALECTS = {
    "packed": lambda text: gzip.compress(text.encode()),
    "quoted names": lambda text: text.replace("rain", '"rain"').replace("off", '"off"'),
    "no commas": lambda text: text.replace(",", " "),
    "no white space": lambda text: text.replace("\n", "").replace(", ", ","),
    "windows lines": lambda text: text.replace("\n", "\r\n"),
    "byte order mark": lambda text: "\ufeff" + text,
    "quoted network": lambda text: text.replace("network unknown", 'network "a; {net}"'),
    "properties": lambda text: text.replace(
        "{\n", '{\n property "a; } \' b" ;\n property position = (1, 2) ;\n'
    ),
    "comments": lambda text: (
        "// first\n" + text.replace(";\n", '; // { 1 "\n/* two\n lines } */\n')
    ),
    "comment in numbers": lambda text: text.replace(
        "0.85, 0.15", "0.85 /* of 1 */, // rest\n 0.15"
    ),
    "default": lambda text: text.replace("  (off, no) 0.0, 1.0;\n", "  default 0.0, 1.0;\n"),
    "default for a root": lambda text: text.replace("table", "default"),
    "table, child slowest": lambda text: (
        text[: text.index("  (off, yes)")]
        + "table 0.8 0.0 0.85 0.7 0.99 0.9 0.2 1.0 0.15 0.3 0.01 0.1;\n}"
    ),
    "no bar": lambda text: text.replace("|", ","),
    "exponents": lambda text: (
        text.replace("0.01", "1e-2").replace("0.85", "+8.5E-1").replace("0.5", ".5")
    ),
    "other order of blocks": lambda text: (
        text[text.index("probability ( grass") :] + text[: text.index("probability ( grass")]
    ),
    "other order of rows": lambda text: text.replace("  (high, no) 0.9, 0.1;\n", "").replace(
        "  (off, yes)", "  (high, no) 0.9, 0.1;\n  (off, yes)"
    ),
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_gives_the_same_network(tmp_path, dialect):
    plain = read_text(tmp_path, SPRINKLER)
    changed = DIALECTS[dialect](SPRINKLER)
    assert changed != SPRINKLER
    other = read_text(tmp_path, changed, "x.bif.gz" if dialect == "packed" else "x.bif")
    assert (other.names, other.states, other.parents) == (plain.names, plain.states, plain.parents)
    assert other.name == "x.bif"
    for a, b in zip(other.tables, plain.tables, strict=True):
        assert np.array_equal(a, b)


def test_names_with_spaces_commas_and_brackets_in_quotes(tmp_path):
    text = SPRINKLER.replace("off", '"off, (really) {;}"').replace("rain", '"Regen | 雨"')
    network = read_text(tmp_path, text)
    assert network.names[0] == "Regen | 雨"
    assert network.states[1][0] == "off, (really) {;}"
    assert network.tables[2].tolist() == GRASS


def test_empty_blocks_are_a_graph_alone(tmp_path):
    text = "\n".join(line for line in SPRINKLER.splitlines() if "0." not in line)
    network = read_text(tmp_path, text)
    assert network.tables is None
    assert network.parents == ((), (0,), (1, 0))


def test_rounded_rows_are_scaled_and_exact_rows_kept(tmp_path):
    network = read_text(
        tmp_path,
        SPRINKLER.replace("0.9, 0.1, 0.0", "0.33, 0.33, 0.33").replace(
            "0.5, 0.2, 0.3", "0.1, 0.2, 0.7"
        ),
    )
    assert network.tables[1][0].tolist() == pytest.approx([1 / 3] * 3, abs=1e-15)
    assert network.tables[1][1].tolist() == [0.1, 0.2, 0.7]


BROKEN = {
    "empty": ("", ["no 'variable' block"]),
    "not BIF": ("hello, world", ["line 1", "'hello'"]),
    "truncated": (SPRINKLER[:-20], ["line 25", "must stand"]),
    "truncated in a block": (
        SPRINKLER[: SPRINKLER.index("probability ( grass")],
        ["'grass'", "no 'probability' block"],
    ),
    "two defaults": (
        re.sub(
            r"probability \( grass.*?\{", r"\g<0> default 0.5, 0.5; default 0.1, 0.9;", SPRINKLER
        ),
        ["'default'", "one 'default'"],
    ),
    "an unknown word": (
        re.sub(r"probability \( grass.*?\{", r"\g<0> otherwise 0.5, 0.5;", SPRINKLER),
        ["'otherwise'", "one 'default'"],
    ),
    "cycle": (
        SPRINKLER.replace("( rain )", "( rain | grass )"),
        ["cycle", "grass -> rain -> grass"],
    ),
    "own parent": (SPRINKLER.replace("( rain )", "( rain | rain )"), ["cycle", "rain -> rain"]),
    "parent twice": (SPRINKLER.replace("sprinkler, rain )", "rain, rain )"), ["'grass'"]),
    "unknown parent": (
        SPRINKLER.replace("sprinkler | rain", "sprinkler | snow"),
        ["line 15", "'snow'"],
    ),
    "unknown state": (
        SPRINKLER.replace("(low, no)", "(slow, no)"),
        ["line 24", "'slow'", "'sprinkler'"],
    ),
    "missing row": (SPRINKLER.replace("  (low, no) 0.7, 0.3;\n", ""), ["'grass'", "5 of 6 rows"]),
    "row twice": (
        SPRINKLER.replace("(low, no)", "(off, no)"),
        ["line 24", "second row", "(off, no)"],
    ),
    "short row": (SPRINKLER.replace("0.7, 0.3;", "0.7;"), ["line 24", "2 numbers"]),
    "long row": (SPRINKLER.replace("0.7, 0.3;", "0.7, 0.3, 0.0;"), ["line 24", "2 numbers"]),
    "few states in a row": (SPRINKLER.replace("(low, no)", "(low)"), ["line 24", "2 states"]),
    "short table": (SPRINKLER.replace("table 0.2, 0.8", "table 1.0"), ["'rain'", "2 numbers"]),
    "table and default": (
        SPRINKLER.replace("table 0.2, 0.8;", "table 0.2, 0.8; default 1 0;"),
        ["'rain'"],
    ),
    "bad sum": (SPRINKLER.replace("0.7, 0.3", "0.7, 0.2"), ["'grass'", "sum 0.9"]),
    "negative": (SPRINKLER.replace("0.7, 0.3", "1.3, -0.3"), ["'grass'", "-0.3"]),
    "not a number": (SPRINKLER.replace("0.7, 0.3", "0.7, 0.3.1"), ["line 24", "0.3.1"]),
    "nan": (SPRINKLER.replace("0.7, 0.3", "0.7, nan"), ["line 24"]),
    "infinite": (SPRINKLER.replace("0.7, 0.3", "1e999, 0.3"), ["'grass'"]),
    "state count": (SPRINKLER.replace("[ 3 ]", "[ 2 ]"), ["line 7", "[ 2 ]", "lists 3"]),
    "huge state count": (SPRINKLER.replace("[ 3 ]", "[ 99999999999 ]"), ["line 7"]),
    "state twice": (SPRINKLER.replace("off, low, high }", "off, low, low }"), ["line 7", "twice"]),
    "variable twice": (
        SPRINKLER.replace("variable grass", "variable rain"),
        ["line 9", "second time"],
    ),
    "block twice": (
        SPRINKLER + SPRINKLER[SPRINKLER.index("probability ( rain") :],
        ["second probability block"],
    ),
    "continuous": (SPRINKLER.replace("discrete", "continuous"), ["line 4", "'discrete'"]),
    "open quote": (
        SPRINKLER.replace("variable rain", 'variable "rain'),
        ["line 3", "quotation mark"],
    ),
    "open comment": (
        SPRINKLER.replace("variable grass", "/* variable grass"),
        ["line 9", "never closed"],
    ),
    "open property": (
        SPRINKLER.replace("network unknown {", "network unknown {\nproperty x"),
        ["line 2"],
    ),
    "NUL": (SPRINKLER.replace("wet", "w\0t"), ["line 10", "NUL"]),
    "not UTF-8": (SPRINKLER.encode().replace(b"wet", b"w\xfft"), ["line 10", "0xff", "UTF-8"]),
    "some blocks empty": (SPRINKLER.replace("  table 0.2, 0.8;\n", ""), ["'rain'", "0 of 1 rows"]),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_files_give_one_line_that_says_where(tmp_path, case):
    text, words = BROKEN[case]
    with pytest.raises(FormatError) as caught:
        read_text(tmp_path, text)
    message = str(caught.value)
    assert "x.bif" in message
    assert "\n" not in message
    for word in words:
        assert word in message, message


def test_no_file_folder_and_broken_gzip(tmp_path):
    for path, word in ((tmp_path / "none.bif", "no such file"), (tmp_path, "folder")):
        with pytest.raises(FormatError, match=word):
            read_network(path)
    packed = gzip.compress(SPRINKLER.encode())
    for content in (packed[:-12], b"plain text", packed[:20] + b"\xff" + packed[21:]):
        with pytest.raises(FormatError, match="gzip"):
            read_text(tmp_path, content, "x.bif.gz")


def test_a_default_cannot_ask_for_an_endless_table(tmp_path):
    names = [f"v{i}" for i in range(41)]
    variables = "".join(
        f"variable {name} {{ type discrete [ 2 ] {{ a, b }}; }}\n" for name in names
    )
    roots = "".join(f"probability ( {name} ) {{ table 0.5, 0.5; }}\n" for name in names[1:])
    block = f"probability ( v0 | {', '.join(names[1:])} ) {{ default 0.5, 0.5; }}\n"
    with pytest.raises(FormatError, match="at most"):
        read_text(tmp_path, variables + roots + block)


@given(
    st.lists(st.lists(st.integers(0, 6), unique=True, max_size=3), min_size=7, max_size=7),
    st.booleans(),
)
def test_order_and_cycle_are_what_they_say(parents, acyclic):
    if acyclic:  # random graphs hardly ever are
        parents = [[p for p in its if p > v] for v, its in enumerate(parents)]
    order, cycle = topological_order(parents), find_cycle(parents)
    assert not (acyclic and cycle)
    if cycle:
        assert len(order) < 7
        assert all(a in parents[b] for a, b in zip(cycle, (*cycle[1:], cycle[0]), strict=True))
        with pytest.raises(QubayesError, match="cycle"):
            Network(tuple("abcdefg"), tuple(map(tuple, parents)))
    else:
        assert sorted(order) == list(range(7))
        assert all(order.index(p) < order.index(v) for v in range(7) for p in parents[v])


@given(
    st.binary(max_size=200)
    | st.text(
        'network{variable}[probability](type);|discrete,02. \n"/*table default', max_size=200
    ).map(str.encode)
)
@settings(max_examples=5 * settings.default.max_examples)
def test_any_bytes_give_a_network_or_a_clear_error(tmp_path_factory, content):
    try_reading(tmp_path_factory, content)


@given(st.data())
@settings(max_examples=5 * settings.default.max_examples)
def test_any_change_of_a_file_gives_a_network_or_a_clear_error(tmp_path_factory, data):
    text = SPRINKLER.encode()
    start = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(start, min(len(text), start + 30)))
    middle = data.draw(
        st.binary(max_size=5) | st.sampled_from([b";", b"}", b"{", b'"', b"(", b"9", b"/*", b"//"])
    )
    try_reading(tmp_path_factory, text[:start] + middle + text[stop:])


def try_reading(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "any.bif"
    path.write_bytes(content)
    try:
        network = read_network(path)
    except QubayesError as error:
        assert str(path) in str(error)
    else:
        assert network.n > 0
