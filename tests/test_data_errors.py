"""Bad data: one line that says what was given, what is allowed and what to do; nothing else ever comes out."""

import gzip
import os

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qubayes import QubayesError, SettingError
from qubayes.data import ReadSettings, read

LONG = "a,b\n" + "x,1\n" * 5
IDENTIFIERS = "".join(f"k{i},1\n" for i in range(1001))

BAD = {
    "empty": ("x.csv", "", ["is empty"]),
    "only blank lines": ("x.csv", "\n \n\n", ["only blank lines"]),
    "header only": ("x.csv", "a,b\n", ["2 columns and no row"]),
    "header only, no line end": ("x.csv", "a,b", ["no row"]),
    "short row": ("x.csv", "a,b,c\n1,2,3\n1,2\n", ["line 3", "2 fields", "header has 3"]),
    "long row": ("x.csv", "a,b\n1,2\n\n1,2,3,4\n", ["line 4", "4 fields", "header has 2"]),
    "short row after a line break in quotes": (
        "x.csv",
        'a,b\n"1\n\n1",2\n1\n',
        ["line 5", "1 fields"],
    ),
    "one column": ("x.csv", "a\n1\n2\n", ["1 column", "two or more"]),
    "names twice": ("x.csv", "a,b,a\n1,2,3\n", ["'a'", "own name"]),
    "empty name": ("x.csv", "a,,c\n1,2,3\n", ["column 2 of 3", "no name"]),
    "trailing separator": ("x.csv", "a,b,\n1,2,\n", ["column 3 of 3", "no name"]),
    "not UTF-8": ("x.csv", b"a,b\n1,2\n\xe9,2\n", ["line 3", "0xe9", "UTF-8"]),
    "UTF-16": ("x.csv", "a,b\n1,2\n".encode("utf-16"), ["line 1", "UTF-8"]),
    "NUL": ("x.csv", b"a,b\n1,\x002\n", ["line 2", "NUL"]),
    "NUL in the header": ("x.csv", b"a,\x00b\n1,2\n", ["line 1", "NUL"]),
    "open quote": ("x.csv", 'a,b\n1,2\n"1,2\n3,4\n', ["line 3", "never closed"]),
    "open quote in the header": ("x.csv", '"a,b\n1,2\n', ["header"]),
    "text after a quote": ("x.csv", 'a,b\n"1"x,2\n', ["line 2", "closing quotation mark"]),
    "identifiers": (
        "x.csv",
        "id,b\n" + "".join(f"k{i},1\n" for i in range(1001)),
        ["'id'", "1001 states", "ignore=['id']"],
    ),
    "infinite": ("x.csv", "a,b\n1.5,1\ninf,2\n", ["'a'", "infinite"]),
    "wrong ending": ("x.xlsx", LONG, ["'.xlsx'", ".csv", "format"]),
    "no ending": ("x", LONG, ["'nothing'"]),
    "binary as text": ("x.csv", bytes(range(256)), ["x.csv"]),
    "text as parquet": ("x.parquet", LONG, ["not a whole Parquet file"]),
    "text as arrow": ("x.arrow", LONG, ["not a whole Arrow file"]),
    "empty parquet": ("x.parquet", "", ["not a whole Parquet file"]),
    "packed parquet": ("x.parquet.gz", "", ["unpack"]),
    "no gzip": ("x.csv.gz", LONG, ["gzip"]),
    "empty gzip": ("x.csv.gz", gzip.compress(b""), ["is empty"]),
    "empty dat": ("x.dat", "", ["is empty"]),
    "blank dat": ("x.dat", "\n\n", ["no item"]),
    "dat without arities": ("x.dat", "A B\nx y\n", ["2 names", "number of states"]),
    "dat with few arities": ("x.dat", "A B\n2\n", ["2 names", "1 fields"]),
    "dat with a short row": ("x.dat", "A B\n2 2\n0 1\n0\n", ["line 4", "1 fields"]),
    "dat with a state too many": (
        "x.dat",
        "A B\n2 2\n0 1\n1 0\n2 1\n",
        ["'A'", "2 states", "holds 3"],
    ),
    "dat with huge arity": ("x.dat", "A B\n2 99999999999\n0 1\n", ["number of states"]),
    "dat with many states": (
        "x.dat",
        "A B\n2 999999999\n0 1\n",
        ["line 2", "999999999 states", "at most 1000"],
    ),
    "dat without rows": ("x.dat", "A B\n2 2\n", ["no row"]),
}


def complaint(path, reading=None):
    with pytest.raises(QubayesError) as caught:
        read(path, reading)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.usefixtures("blocks_of_any_size")
@pytest.mark.parametrize("case", BAD)
def test_bad_files(tmp_path, case):
    name, content, words = BAD[case]
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    message = complaint(path)
    for word in words:
        assert word in message, message


@pytest.mark.parametrize("name", ["x.csv", "x.tsv.gz", "x.parquet", "x.arrow", "x.dat"])
def test_no_such_file_and_folders(tmp_path, name):
    assert "no such file" in complaint(tmp_path / name)
    (tmp_path / name).mkdir()
    assert "is a folder" in complaint(tmp_path / name)
    assert complaint(f"a\0b{name}")


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_unreadable_file(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(LONG)
    path.chmod(0)
    assert "cannot read" in complaint(path)


def test_fimi_that_is_none(tmp_path):
    path = tmp_path / "x.dat"
    for content, word in (
        (b"1 2\n1 -2\n", "b'-'"),
        (b"1 x\n", "b'x'"),
        (b"1\n" + b"9" * 40, "line 2"),
    ):
        path.write_bytes(content)
        assert word in complaint(path, ReadSettings(format="fimi"))
    rows = 70_000
    path.write_text("".join(f"{i}\n" for i in range(rows)))
    assert f"{rows} items x {rows} rows" in complaint(path)


def test_ignore(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b,c\n1,,3\n2,,4\n")
    path.with_name("four.csv").write_text('a,b,c,"d,e"\n1,0,3,5\n2,0,4,5\n')
    assert read(path, ReadSettings(ignore=("b",))).names == ("a", "c")
    for one in ("b", ["b"], ("b",)):
        assert read(path, ignore=one).names == ("a", "c")
    for none in (None, (), []):
        assert read(path, ignore=none, missing="state").names == ("a", "b", "c")
    for several in ("b,c", ["c, b"], ("b", "c"), ["b,c", "b"]):
        assert read(path.with_name("four.csv"), ignore=several).names == ("a", "d,e")
    assert read(path.with_name("four.csv"), ignore="d,e").names == ("a", "b", "c")
    assert "no column is named 'z'" in complaint(path, ReadSettings(ignore=("a,z",)))
    for wrong in (5, [5], {"b": 1}):
        with pytest.raises(SettingError, match="give names of columns, such as"):
            read(path, ignore=wrong)
    assert "no column is named 'z'" in complaint(path, ReadSettings(ignore=("z",)))
    assert "1 column" in complaint(path, ReadSettings(ignore=("a", "b")))


TABLE = b'a,"b ""c""",d\r\n1,x,0.5\r\n"2\n",NA,1.5\r\n3,"y,z",\r\n'
VALID = {
    "m.csv": TABLE,
    "m.csv.gz": gzip.compress(TABLE, mtime=0),
    "m.dat": b"A B\n2 2\n0 1\n1 0\n",
}
SETTINGS = (
    ReadSettings(),
    ReadSettings(missing="drop", bins=2),
    ReadSettings(missing="state", bins=3, bin_method="width"),
)
ANY = st.binary(max_size=120) | st.text('ab,"\n\r\t 01.#', max_size=60).map(str.encode)
NAMES = st.sampled_from(["any.csv", "any.tsv", "any.dat", "any.csv.gz"])
FRAME_FILES = st.sampled_from(["any.parquet", "any.arrow"])


def try_reading(path, content, reading):
    path.write_bytes(content)
    try:
        data = read(path, reading)
    except QubayesError as error:
        assert "\n" not in str(error)
    else:
        assert data.rows > 0
        assert data.n > 1
        assert all(
            (row < len(states)).all() for row, states in zip(data.codes, data.states, strict=True)
        )


@pytest.mark.usefixtures("blocks_of_any_size")
@given(ANY, NAMES, st.sampled_from(SETTINGS))
@settings(max_examples=8 * settings.default.max_examples)
def test_any_bytes_give_data_or_a_clear_error(tmp_path_factory, content, name, reading):
    try_reading(tmp_path_factory.getbasetemp() / name, content, reading)


@given(ANY, FRAME_FILES)
def test_any_bytes_are_no_parquet_or_arrow_file(tmp_path_factory, content, name):
    try_reading(tmp_path_factory.getbasetemp() / name, content, ReadSettings())


@pytest.mark.usefixtures("blocks_of_any_size")
@given(st.data())
@settings(max_examples=7 * settings.default.max_examples)
def test_any_change_of_a_file_gives_data_or_a_clear_error(tmp_path_factory, data):
    folder = tmp_path_factory.getbasetemp()
    name = data.draw(st.sampled_from(list(VALID)))
    content = VALID[name]
    start = data.draw(st.integers(0, len(content)))
    stop = data.draw(st.integers(start, min(len(content), start + 8)))
    middle = data.draw(st.binary(max_size=4))
    changed = content[:start] + middle + content[stop:]
    try_reading(folder / name, changed, data.draw(st.sampled_from(SETTINGS)))


@pytest.mark.parametrize("name", ["x.parquet", "x.arrow"])
def test_truncated_binary_files_give_a_clear_error(tmp_path, name):
    frame = pl.DataFrame({"a": ["x", "y", "x"], "b": [1, 2, 3], "c": [0.5, 1.5, None]})
    path = tmp_path / name
    frame.write_parquet(path) if name == "x.parquet" else frame.write_ipc(path)
    content = path.read_bytes()
    for length in range(0, len(content) - 1, 53):
        path.write_bytes(content[:length])
        assert "not a whole" in complaint(path)


def test_a_quoted_field_over_many_blocks(tmp_path):
    long = "x\n" * 5_000_000  # two blocks and more
    (tmp_path / "x.csv").write_text(f'a,b\n"{long}",1\ny,2\n')
    assert read(tmp_path / "x.csv").states == ((long, "y"), ("1", "2"))
    (tmp_path / "x.csv").write_text(f'a,b\ny,2\n"{long},1\ny,2\n')
    assert "line 3: a quotation mark that is never closed" in complaint(tmp_path / "x.csv")
