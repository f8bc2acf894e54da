"""Reading text tables: values as written, states in order, arities, missing values, intervals."""

import gzip
import hashlib
import json
import re
import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from qubayes import DataError, FormatError, SettingError
from qubayes.data import MOST_CODES, Dataset, ReadSettings, code_type, read, write
from reference import data as oracle
from test_bif import SPRINKLER

pytestmark = pytest.mark.usefixtures("blocks_of_any_size")


@pytest.fixture
def save(tmp_path):
    def put(content, name="x.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return put


def column(dataset, name):
    """(states, the state of each row) of a variable."""
    i = dataset.names.index(name)
    return dataset.states[i], [dataset.states[i][c] for c in dataset.codes[i]]


@pytest.mark.parametrize("method", ["width", "quantile"])
def test_a_single_number_is_not_cut(save, method):
    settings = ReadSettings(bins={"a": 3}, bin_method=method)
    data = read(save("a,b\n1.5,x\n1.5,y\n"), settings)
    assert column(data, "a") == (("1.5",), ["1.5", "1.5"])


def test_a_single_bound_makes_two_intervals(save):
    data = read(save("a,b\n1,x\n1.5,y\n2,x\n"), ReadSettings(bins={"a": [1.5]}))
    assert column(data, "a") == (("<1.5", ">=1.5"), ["<1.5", ">=1.5", ">=1.5"])


@pytest.mark.parametrize(
    ("most", "name"), [(0, "uint8"), (1, "uint8"), (256, "uint8"), (257, "uint16")]
)
def test_codes_take_as_few_bytes_as_they_can(most, name):
    states = tuple(map(str, range(most)))
    assert code_type([states[:1], states, states[:1]] if most else []) == np.dtype(name)


def test_a_table(save):
    data = read(save("a,b,c\nx,10,u\ny,9,u\nx,-1,u\n"))
    assert data.names == ("a", "b", "c")
    assert data.states == (("x", "y"), ("-1", "9", "10"), ("u",))
    assert data.codes.tolist() == [[0, 1, 0], [2, 1, 0], [0, 0, 0]]
    assert data.codes.dtype == np.uint8
    assert data.codes.flags.c_contiguous
    assert not data.codes.flags.writeable
    assert data.arities.tolist() == [2, 3, 1]
    assert (data.n, data.rows, data.arities_from) == (3, 3, "data")
    assert read(data) is data


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,x\n2,y\n",
        "a,b\n1,x\n2,y",
        "a,b\r\n1,x\r\n2,y\r\n",
        "\ufeffa,b\n1,x\n2,y\n",
        "a, b\n 1 ,x \n2,\ty\n",
        '"a","b"\n"1","x"\n2,"y"\n',
        "a,b\n\n1,x\n  \n2,y\n\n\n",
        '\na,b\n1,  "x" \n2,y\n',
    ],
)
def test_spellings_of_one_table(save, text):
    assert read(save(text)).checksum == read(save("a,b\n1,x\n2,y\n", "y.csv")).checksum


def test_tsv_and_gz(save):
    expected = read(save('a,b\n1,x y\n2,"y,z"\n')).checksum
    tabs = "a\tb\n1\tx y\n2\ty,z\n"
    assert read(save(tabs, "x.tsv")).checksum == expected
    assert read(save(tabs, "x.TAB")).checksum == expected
    assert read(save(gzip.compress(tabs.encode()), "x.tsv.gz")).checksum == expected
    assert read(save(tabs, "x.txt"), ReadSettings(format="tsv")).checksum == expected


def test_quotes(save):
    data = read(save('"a ""b""\nc",d\n" x ","y,\n""z"""\nu"v,w\n'))
    assert data.names == ('a "b"\nc', "d")
    assert oracle.decoded(data) == [[" x ", 'y,\n"z"'], ['u"v', "w"]]


def test_leading_zeros_are_text_and_whole_floats_are_integers(save):
    data = read(save("a,b,c,d\n01,1.0,1,TRUE\n1,2.0,1.0,FALSE\n10,10.0,1e1,TRUE\n2,3,2,TRUE\n"))
    assert data.states == (
        ("01", "1", "10", "2"),
        ("1", "2", "3", "10"),
        ("1", "2", "10"),
        ("false", "true"),
    )
    assert column(data, "c")[1] == ["1", "1", "10", "2"]


def test_very_large_whole_numbers_stay_apart(save):
    big = 10**40
    data = read(save(f"a,b\n{big + 1},x\n{big},x\n9,x\n"))
    assert data.states[0] == ("9", str(big), str(big + 1))


def test_endless_digits(save):
    path = save("a,b\n" + "9" * 5000 + ",x\n1,y\n")
    with pytest.raises(DataError, match="infinite"):
        read(path)
    assert read(path, ReadSettings(arities={"a": 3})).states[0] == ("1", "9" * 5000, "unseen1")
    whole = save("a,b\n" + "9" * 300 + ",x\n1,y\n")
    assert read(whole, ReadSettings(bins={"a": 2})).arities[0] == 2


def test_more_than_256_states_take_two_bytes(save):
    rows = "".join(f"{i},x\n" for i in range(300))
    data = read(save("a,b\n" + rows))
    assert data.codes.dtype == np.uint16
    assert data.codes[0].tolist() == list(range(300))


@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
def test_the_checksum_is_that_of_all_codes_at_once_without_their_memory(kind):
    codes = np.arange(20 * 50_000, dtype=kind).reshape(50_000, 20).T % 200  # no row is contiguous
    data = Dataset(tuple(map(str, range(20))), (tuple(map(str, range(200))),) * 20, codes)
    text = repr((data.names, data.states)).encode()
    expected = hashlib.sha256(text + codes.astype("<u4").tobytes()).hexdigest()
    tracemalloc.start()
    found = data.checksum
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == expected and most < 1_000_000


FIELDS = st.text(st.sampled_from('ab01,"\n .-'), max_size=4).map(str.strip)


@given(
    st.integers(2, 4).flatmap(
        lambda n: st.lists(st.lists(FIELDS, min_size=n, max_size=n), min_size=1, max_size=12)
    )
)
@example([["", ""], ["a", "b"]])
@settings(max_examples=5 * settings.default.max_examples)
def test_any_table_reads_as_the_csv_module_reads_it(tmp_path_factory, rows):
    names = [f"v{i}" for i in range(len(rows[0]))]
    path = tmp_path_factory.getbasetemp() / "any.csv"
    quoted = [['"' + field.replace('"', '""') + '"' for field in row] for row in rows]
    path.write_text("\n".join(map(",".join, [names, *quoted])), newline="")
    assert oracle.table(path.read_text())[0] == names
    declared = {name: sorted({row[i] for row in rows}) for i, name in enumerate(names)}
    data = read(path, ReadSettings(arities=declared))
    assert oracle.decoded(data) == rows
    assert data.states == tuple(tuple(declared[name]) for name in names)


WORDS = st.sampled_from(["a", "b", "B", "é", "10", "9", "-3", "0", "01", "-0"])


@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=30))
@settings(max_examples=3 * settings.default.max_examples)
def test_states_come_in_the_order_of_the_oracle(tmp_path_factory, rows):
    path = tmp_path_factory.getbasetemp() / "order.csv"
    path.write_text("p,q\n" + "".join(f"{a},{b}\n" for a, b in rows))
    expected = []
    for i in range(2):
        values = [row[i] for row in rows]
        numbers = all(v not in ("a", "b", "B", "é", "01") for v in values)
        # "-0" is a number but not as people write it: beside other numbers it is their zero.
        expected.append([str(int(v)) for v in values] if numbers else values)
    data = read(path)
    assert data.states == tuple(oracle.states(values) for values in expected)
    assert oracle.decoded(data) == [list(row) for row in zip(*expected, strict=True)]


def test_many_distinct_values_make_the_index_grow(save):
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(20_000, 2)).tolist()
    path = save("a,b,c\n" + "".join(f"{x!r},{y!r},{i % 7}\n" for i, (x, y) in enumerate(numbers)))
    data = read(path, ReadSettings(bins=4))
    assert data.arities.tolist() == [4, 4, 7]
    for i in range(2):
        names, states = column(data, "ab"[i])
        assert all(
            oracle.in_interval(row[i], state) for row, state in zip(numbers, states, strict=True)
        )
        assert [states.count(name) for name in names] == [5000] * 4
    assert data.codes[2].tolist() == [i % 7 for i in range(20_000)]


# ---- missing values

HOLES = 'a,b,c\n1,x,u\n,x,u\n3,?,NA\n1,y,u\n2,"",v\n'


def test_missing_values_are_refused_with_columns_rows_and_remedy(save):
    with pytest.raises(DataError) as caught:
        read(save(HOLES))
    message = str(caught.value)
    assert "3 of 5 rows" in message
    assert "'a' (1), 'b' (2), 'c' (1)" in message
    assert "missing='drop'" in message
    assert "missing='state'" in message


def test_rows_with_missing_values_are_dropped_with_their_states(save):
    data = read(save(HOLES), ReadSettings(missing="drop"))
    assert oracle.decoded(data) == [["1", "x", "u"], ["1", "y", "u"]]
    assert data.states == (("1",), ("x", "y"), ("u",))


def test_missing_is_a_state_of_its_own(save):
    data = read(save(HOLES), ReadSettings(missing="state"))
    assert data.states == (("1", "2", "3", "missing"), ("x", "y", "missing"), ("u", "v", "missing"))
    assert [row[0] for row in oracle.decoded(data)] == ["1", "missing", "3", "1", "2"]
    assert [row[1] for row in oracle.decoded(data)] == ["x", "x", "missing", "y", "missing"]


@pytest.mark.parametrize("token", sorted(oracle.MISSING - {""}))
def test_every_token_for_no_value(save, token):
    with pytest.raises(DataError, match="1 of 2 rows"):
        read(save(f"a,b\n{token},1\n2,2\n"))


@pytest.mark.parametrize("word", ["None", "none", "na", "-", "missing", "No"])
def test_words_that_are_states(save, word):
    assert word in read(save(f"a,b\n{word},1\nzz,2\n")).states[0]


@pytest.mark.parametrize(
    ("states", "wanted"),
    [
        (("<1.5", "1.5..3", ">=3"), [0, 1, 2, 0, 1, 2, 2]),
        (("<0", ">=0"), [1, 1, 1, 0, "1.5..3"]),
        (("<1.5", "1.5..4", ">=3"), ["1"]),
        (("<3", "3..1", ">=1"), ["1"]),
        (("<nan", ">=nan"), ["1"]),
        (("<inf", ">=inf"), ["1"]),
        (("1", "2.5", "3", "-7", "1.5..3", ">=3", "1e300"), [0, 1, 2, 3, 4, 5, 6]),
    ],
)
def test_numbers_lie_in_declared_intervals(save, states, wanted):
    values = ["1", "2.5", "3", "-7", "1.5..3", ">=3", "1e300"]
    path = save("a,b\n" + "".join(f"{value},x\n" for value in values))
    if isinstance(wanted[-1], str):
        with pytest.raises(DataError, match=f"'{wanted[-1]}', which is not declared"):
            read(path, ReadSettings(arities={"a": states}))
    else:
        data = read(path, ReadSettings(arities={"a": states}))
        assert data.states[0] == states and data.codes[0].tolist() == wanted


def test_a_declared_state_is_never_missing(save):
    data = read(save("a,b\nNA,1\nEU,2\n"), ReadSettings(arities={"a": ["EU", "NA", "AS"]}))
    assert data.states[0] == ("EU", "NA", "AS")
    assert data.codes[0].tolist() == [1, 0]


def test_missing_with_bins_and_with_declared_states(save):
    path = save("a,b\n0.5,x\n,y\n1.5,\n2.5,x\n")
    data = read(path, ReadSettings(missing="state", bins=2, arities={"b": ["x", "y", "z"]}))
    assert data.states == (("<1.5", ">=1.5", "missing"), ("x", "y", "z", "missing"))
    assert data.codes.tolist() == [[0, 2, 1, 1], [0, 1, 3, 0]]


def test_nothing_left_and_name_taken(save):
    with pytest.raises(DataError, match="none is left"):
        read(save("a,b\n,1\n2,\n"), ReadSettings(missing="drop"))
    with pytest.raises(DataError, match="a state named 'missing'"):
        read(save("a,b\nmissing,1\n,2\n"), ReadSettings(missing="state"))


# ---- continuous columns


def test_continuous_columns_are_refused_where_they_are_an_error(save):
    with pytest.raises(DataError) as caught:
        read(save("height,b\n1.75,x\n1.5,y\n2,x\n"), ReadSettings(numbers="error"))
    for word in ("'height'", "continuous", "1.75", "bins=3", "bin_method", "arities", "gaussian"):
        assert word in str(caught.value)


def test_declared_numbers_are_states(save):
    data = read(
        save("dose,b\n0.5,x\n1.5,y\n"), ReadSettings(arities={"dose": ["0.5", "1.5", "2.5"]})
    )
    assert data.states[0] == ("0.5", "1.5", "2.5")


def test_bins_of_one_column_and_of_all(save):
    path = save(
        "age,x,y\n" + "".join(f"{age},{age / 10 + 0.05},{age % 3}\n" for age in range(20, 80))
    )
    every = read(path, ReadSettings(bins=3))
    assert every.arities.tolist() == [3, 3, 3]
    named = read(path, ReadSettings(bins={"age": 2, "x": 3}))
    assert named.states[0] == ("<50", ">=50")
    assert named.arities.tolist() == [2, 3, 3]
    mixed = read(path, ReadSettings(bins={"age": 2}))
    assert mixed.kind == "mixed" and [*mixed.numbers] == ["x"]
    with pytest.raises(DataError, match="'x' is continuous"):
        read(path, ReadSettings(bins={"age": 2}, numbers="error"))
    with pytest.raises(DataError, match="no column is named 'z'"):
        read(path, ReadSettings(bins={"z": 2}))
    with pytest.raises(DataError, match="holds text such as 'q'"):
        read(save("a,b\n1,q\n2,1\n"), ReadSettings(bins={"b": 2}))


def test_quantile_and_width_differ(save):
    path = save("a,b\n" + "".join(f"{value},x\n" for value in (0.5, 1, 1.5, 2, 100)))
    assert read(path, ReadSettings(bins=2)).codes[0].tolist() == [0, 0, 1, 1, 1]
    assert read(path, ReadSettings(bins=2, bin_method="width")).codes[0].tolist() == [0, 0, 0, 0, 1]
    assert read(path, ReadSettings(bins=2, bin_method="width")).states[0] == ("<50.2", ">=50.2")


def test_a_value_with_most_rows_gets_its_own_interval(save):
    values = [0] * 90 + [0.5 + i for i in range(10)]
    data = read(save("a,b\n" + "".join(f"{value},x\n" for value in values)), ReadSettings(bins=4))
    assert data.states[0] == ("<0.5", ">=0.5")


NUMBERS = (
    st.floats(-1e6, 1e6)
    | st.integers(-3, 3).map(float)
    | st.floats(allow_nan=False, allow_infinity=False)
)


@given(
    st.lists(NUMBERS, min_size=1, max_size=40),
    st.integers(2, 6),
    st.sampled_from(["quantile", "width"]),
)
@example([1234.5, 1235.5], 2, "quantile")
@example([1e308, -1e308, 0.5], 3, "width")
@example([0.0, -0.0], 2, "quantile")
@example([0.0, 0.0, 1.0, 1.0, -0.0], 3, "quantile")
@settings(max_examples=5 * settings.default.max_examples)
def test_intervals_are_those_of_the_oracle_and_their_names_are_true(
    tmp_path_factory, values, bins, method
):
    values = [0.5, *values]
    path = tmp_path_factory.getbasetemp() / "bins.csv"
    path.write_text("a,b\n" + "".join(f"{value!r},x\n" for value in values))
    data = read(path, ReadSettings(bins={"a": bins}, bin_method=method))
    names, states = column(data, "a")
    assert all(
        oracle.in_interval(value, state) for value, state in zip(values, states, strict=True)
    )
    assert set(states) == set(names)
    parts = [
        sorted({v for v, s in zip(values, states, strict=True) if s == name}) for name in names
    ]
    if method == "quantile":
        assert parts == oracle.quantile_parts(values, bins)
    else:
        assert len(parts) <= bins
        assert [value for part in parts for value in part] == sorted(set(values))


@given(st.lists(st.integers(0, 64).map(lambda i: i / 4), min_size=1, max_size=30))
def test_widths_are_equal(tmp_path_factory, values):
    values = [0.25, *values]
    path = tmp_path_factory.getbasetemp() / "width.csv"
    path.write_text("a,b\n" + "".join(f"{value!r},x\n" for value in values))
    data = read(path, ReadSettings(bins={"a": 4}, bin_method="width"))
    names, states = column(data, "a")
    parts = [
        sorted({v for v, s in zip(values, states, strict=True) if s == name}) for name in names
    ]
    assert parts == oracle.width_parts(values, 4)


@pytest.mark.parametrize(("values", "states"), [(MOST_CODES, MOST_CODES), (MOST_CODES + 1, 3)])
@pytest.mark.parametrize("ending", ["", ".0"])
def test_few_whole_numbers_may_be_codes_and_stay(save, values, states, ending):
    path = save("a,b\n" + "".join(f"{i}{ending},x\n{i}{ending},y\n" for i in range(values)))
    assert read(path, ReadSettings(bins=3)).arities[0] == states
    assert read(path, ReadSettings(bins={"a": 3})).arities[0] == 3
    assert read(path).arities[0] == values


def test_whole_numbers_with_too_many_states_are_cut_if_asked(save):
    path = save("a,b\n" + "".join(f"{i},x\n" for i in range(1500)))
    with pytest.raises(DataError, match=r"bins=\{'a': 3\}"):
        read(path)
    assert read(path, ReadSettings(bins=3)).states[0] == ("<500", "500..1000", ">=1000")


# ---- arities


def test_arities_from_a_mapping_json_or_network(save, tmp_path):
    path = save("rain,grass,n\nno,dry,1\nno,wet,3\n")
    assert read(path).states == (("no",), ("dry", "wet"), ("1", "3"))
    mapped = read(path, ReadSettings(arities={"rain": ["yes", "no"], "n": 4}))
    assert mapped.states == (("yes", "no"), ("dry", "wet"), ("0", "1", "2", "3"))
    assert mapped.arities_from == "declared"
    save(json.dumps({"rain": ["yes", "no"], "n": 3}), "states.json")
    filed = read(path, ReadSettings(arities=tmp_path / "states.json"))
    assert filed.states == (("yes", "no"), ("dry", "wet"), ("1", "2", "3"))
    assert filed.arities_from == "states.json"
    save(gzip.compress(SPRINKLER.encode()), "lawn.bif.gz")
    known = read(path, ReadSettings(arities=str(tmp_path / "lawn.bif.gz")))
    assert known.states == (("yes", "no"), ("wet", "dry"), ("1", "3"))
    assert known.arities_from == "network lawn.bif"
    assert known.codes.tolist() == [[1, 1], [1, 0], [0, 1]]


def test_a_number_of_states_names_what_was_not_seen(save):
    data = read(save("a,b\nx,1\ny,2\n"), ReadSettings(arities={"a": 4}))
    assert data.states[0] == ("x", "y", "unseen1", "unseen2")


@pytest.mark.parametrize(("count", "more"), [(10, ""), (11, ", ...")])
def test_an_error_names_ten_declared_states(save, count, more):
    names = [f"s{k}" for k in range(count)]
    with pytest.raises(DataError, match=rf"declared are {', '.join(names[:10])}{re.escape(more)};"):
        read(save("a,b\nx,1\ns0,2\n"), ReadSettings(arities={"a": names}))


@pytest.mark.parametrize(
    ("arities", "words"),
    [
        ({"a": ["x"]}, ["'a'", "'y'", "not declared"]),
        ({"a": 1}, ["'a'", "1 states", "holds 2"]),
        ({"z": 2}, ["'z'", "not a column"]),
        ({"a": 0}, ["'a'", "from 1 to 1000"]),
        ({"a": True}, ["'a'"]),
        ({"a": ["x", "x", "y"]}, ["'a'", "different"]),
        ({"a": [1, 2]}, ["'a'"]),
        ({"a": []}, ["'a'"]),
        ({"a": "xy"}, ["'a'"]),
        ({"a": None}, ["'a'"]),
    ],
)
def test_declarations_that_do_not_fit(save, tmp_path, arities, words):
    path = save("a,b\nx,1\ny,2\n")
    (tmp_path / "s.json").write_text(json.dumps(arities))
    for given_as in (arities, tmp_path / "s.json"):
        with pytest.raises(DataError) as caught:
            read(path, ReadSettings(arities=given_as))
        for word in words:
            assert word in str(caught.value)


@pytest.mark.parametrize("text", ["", "[1]", "{", '{"a": ', "[" * 100_000])
def test_json_that_is_none(save, tmp_path, text):
    path = save("a,b\nx,1\ny,2\n")
    (tmp_path / "s.json").write_text(text)
    with pytest.raises(FormatError, match="JSON"):
        read(path, ReadSettings(arities=tmp_path / "s.json"))


def test_arities_from_another_kind_of_file_or_network(save, tmp_path):
    path = save("a,b\nx,1\ny,2\n")
    with pytest.raises(FormatError, match=r"\.bif network or a \.json"):
        read(path, ReadSettings(arities="s.txt"))
    save(SPRINKLER, "lawn.bif")
    with pytest.raises(DataError, match="no column of the data"):
        read(path, ReadSettings(arities=tmp_path / "lawn.bif"))


# ---- GOBNILP and FIMI


def test_gobnilp(save):
    data = read(save("# made by hand\nA  B C\n2 3 2\n\n0 2 1 \n# between\n 1\t0 1\r\n", "x.dat"))
    assert data.names == ("A", "B", "C")
    assert data.states == (("0", "1"), ("0", "1", "2"), ("0", "1"))
    assert data.codes.tolist() == [[0, 1], [2, 0], [1, 1]]
    assert data.arities_from == "x.dat"


def test_gobnilp_with_names_of_states_and_numbers_as_names(save):
    named = read(save("A B\n2 3\nyes lo\nno hi\n", "x.dat"))
    assert named.states == (("no", "yes"), ("hi", "lo", "unseen1"))
    numbered = read(save("0 1\n2 3\n1 2\n0 0\n1 1\n", "x.dat"))
    assert numbered.names == ("0", "1")
    assert numbered.arities.tolist() == [2, 3]


def test_fimi(save):
    data = read(save("1 3 10\n\n3 2 3\n", "x.dat"))
    assert data.names == ("1", "2", "3", "10")
    assert data.arities_from == "item sets"
    assert data.states == (("0", "1"),) * 4
    assert data.codes.tolist() == [[1, 0, 0], [0, 0, 1], [1, 0, 1], [1, 0, 0]]


def test_fimi_with_rows_of_one_length_and_by_setting(save):
    rectangular = read(save("1 3 5\n1 4 5\n2 3 5\n2 4 6\n", "x.dat"))
    assert rectangular.names == ("1", "2", "3", "4", "5", "6")
    text = "0 1\n2 3\n1 2\n"
    assert read(save(text, "x.dat")).rows == 1
    assert read(save(text, "x.dat"), ReadSettings(format="fimi")).names == ("0", "1", "2", "3")
    assert read(save(text, "x.dat"), ReadSettings(format="fimi", ignore=("0", "1"))).names == (
        "2",
        "3",
    )


# ---- writing


def test_written_files_read_back(save, tmp_path):
    path = save('a,"b, ""c""",d\n" x ",1,u\ny,2,u\ny,10,v\n')
    data = read(path)
    for name in ("y.csv", "y.tsv", "y.parquet"):
        write(data, tmp_path / name)
        assert read(tmp_path / name).checksum == data.checksum


def test_parquet_and_dat_keep_arities(tmp_path):
    codes = np.array([[0, 1], [2, 2]], dtype=np.uint8)
    data = Dataset(("a", "b"), (("x", "y", "z"), ("1", "2", "3")), codes)
    write(data, tmp_path / "x.parquet")
    again = read(tmp_path / "x.parquet")
    assert (again.checksum, again.arities_from) == (data.checksum, "declared types")
    write(data, tmp_path / "x.dat")
    assert (tmp_path / "x.dat").read_text() == "a b\n3 3\nx 3\ny 3\n"
    assert read(tmp_path / "x.dat").arities.tolist() == [3, 3]


@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=20))
def test_dat_round_trip(tmp_path_factory, rows):
    folder = tmp_path_factory.getbasetemp()
    (folder / "r.csv").write_text("p,q\n" + "".join(f"{a},{b}\n" for a, b in rows))
    data = read(folder / "r.csv")
    write(data, folder / "r.dat")
    assert oracle.decoded(read(folder / "r.dat")) == oracle.decoded(data)


@pytest.mark.parametrize("state", ["a b", "#a", "a\tb"])
def test_dat_refuses_what_it_cannot_hold(tmp_path, state):
    data = Dataset(("a", "b"), ((state,), ("x",)), np.zeros((2, 1), dtype=np.uint8))
    with pytest.raises(FormatError, match="csv instead"):
        write(data, tmp_path / "x.dat")
    assert not list(tmp_path.iterdir())


def test_writing_to_a_wrong_place_changes_nothing(tmp_path):
    data = Dataset(("a", "b"), (("x",), ("y",)), np.zeros((2, 1), dtype=np.uint8))
    with pytest.raises(FormatError, match="give a name that ends in"):
        write(data, tmp_path / "x.xls")
    with pytest.raises(FormatError, match="cannot write"):
        write(data, tmp_path / "nowhere" / "x.csv")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"missing": "skip"}, "error, drop, state"),
        ({"bin_method": "kmeans"}, "quantile, width"),
        ({"format": "xls"}, "csv, tsv"),
        ({"bins": 1}, "from 2 to 1000"),
        ({"bins": {"a": 2.5}}, "from 2 to 1000"),
    ],
)
def test_settings_outside_what_is_allowed(wrong, word):
    with pytest.raises(SettingError, match=word):
        ReadSettings(**wrong)
