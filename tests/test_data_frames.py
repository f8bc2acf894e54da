"""The same data give the same Dataset from every kind of frame and file."""

import datetime
import decimal
import re
import subprocess
import sys
import uuid
from contextlib import suppress

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qubayes import DataError, SettingError
from qubayes.data import ReadSettings, read
from qubayes.learning import learn
from reference import data as oracle

COLUMNS = {
    "word": ["b", "a", "é, x", "b"],
    "number": [10, -2, 9, 9],
    "digits": ["2", "10", "1", "2"],
    "whole": [1.0, 3.0, 2.0, 1.0],
    "truth": [True, False, True, True],
}
STATES = (
    ("a", "b", "é, x"),
    ("-2", "9", "10"),
    ("1", "2", "10"),
    ("1", "2", "3"),
    ("false", "true"),
)


def sources(tmp_path, columns):
    """The columns as every source we know."""
    frame = pl.DataFrame(columns)
    frame.write_csv(tmp_path / "polars.csv")
    frame.write_csv(tmp_path / "polars.tsv", separator="\t", quote_style="always")
    frame.write_parquet(tmp_path / "polars.parquet")
    frame.write_ipc(tmp_path / "polars.arrow")
    frame.write_ipc_stream(tmp_path / "stream.arrow")
    table = pa.table(columns)
    pq.write_table(table, tmp_path / "arrow.pq")
    feather.write_feather(table, tmp_path / "arrow.feather")
    pandas = pd.DataFrame(columns)
    pandas.to_parquet(tmp_path / "pandas.parquet")
    yield from sorted(tmp_path.iterdir())
    yield from (frame, frame.lazy(), table, pandas, nw.from_native(frame), pandas.convert_dtypes())
    yield pandas.convert_dtypes(dtype_backend="pyarrow")
    yield frame.with_columns(pl.col("word").cast(pl.Categorical))


def test_every_source_gives_the_same_data(tmp_path):
    found = [read(source) for source in sources(tmp_path, COLUMNS)]
    assert len(found) == 16
    for data in found:
        assert data.names == tuple(COLUMNS)
        assert data.states == STATES
        assert data.arities_from == "data"
    assert len({data.checksum for data in found}) == 1
    assert [row[1] for row in oracle.decoded(found[0])] == ["10", "-2", "9", "9"]


HOLES = {
    "word": ["a", None, "b"],
    "number": [1, 2, None],
    "real": [None, 2.0, 1.0],
    "truth": [True, None, False],
}


@pytest.mark.parametrize("missing", ["drop", "state"])
def test_missing_values_of_every_source(tmp_path, missing):
    columns = {
        name: [*values, values[0], "z" if name == "word" else 1] for name, values in HOLES.items()
    }
    columns["truth"][4] = True
    found = {
        read(source, ReadSettings(missing=missing)).checksum
        for source in sources(tmp_path, columns)
    }
    assert len(found) == 1
    with pytest.raises(DataError, match="'number' \\(1\\)"):
        read(pd.DataFrame(columns))


def test_nan_is_missing():
    frame = {"a": [1.0, float("nan"), 2.0], "b": ["x", "y", "x"]}
    for source in (pl.DataFrame(frame), pa.table(frame), pd.DataFrame(frame)):
        assert read(source, ReadSettings(missing="drop")).states == (("1", "2"), ("x",))


def test_declared_types_keep_their_order_and_their_unseen_states(tmp_path):
    order = ["low", "high", "huge"]
    values = ["high", "low", "high"]
    frame = pl.DataFrame({"a": pl.Series(values, dtype=pl.Enum(order)), "b": ["x", "y", "x"]})
    frame.write_parquet(tmp_path / "x.parquet")
    frame.write_ipc(tmp_path / "x.arrow")
    pandas = pd.DataFrame({"a": pd.Categorical(values, order), "b": ["x", "y", "x"]})
    ordered = pd.DataFrame({"a": pd.Categorical(values, order, ordered=True), "b": ["x", "y", "x"]})
    sources = (
        frame,
        tmp_path / "x.parquet",
        tmp_path / "x.arrow",
        pandas,
        ordered,
        pa.Table.from_pandas(pandas),
    )
    for source in sources:
        data = read(source)
        assert data.states == (tuple(order), ("x", "y"))
        assert data.codes.tolist() == [[1, 0, 1], [0, 1, 0]]
        assert data.arities_from == "declared types"


def test_categories_that_are_numbers_and_missing():
    frame = pd.DataFrame({"a": pd.Categorical([3.0, None, 1.0], [3.0, 2.0, 1.0]), "b": [1, 2, 3]})
    data = read(frame, ReadSettings(missing="state"))
    assert data.states[0] == ("3", "2", "1", "missing")
    assert data.codes[0].tolist() == [0, 3, 2]


def test_continuous_frames(tmp_path):
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({"a": rng.normal(size=1000), "b": rng.integers(0, 3, 1000)})
    frame.write_csv(tmp_path / "x.csv")
    found = {read(source).checksum for source in (frame, tmp_path / "x.csv", frame.to_pandas())}
    assert len(found) == 1 and read(frame).numbers["a"].tolist() == frame["a"].to_list()
    with pytest.raises(DataError, match="'a' is continuous"):
        read(frame, numbers="error")
    for method in ("quantile", "width"):
        settings = ReadSettings(bins=5, bin_method=method)
        found = {
            read(source, settings).checksum
            for source in (frame, tmp_path / "x.csv", frame.to_pandas(), frame.to_arrow())
        }
        assert len(found) == 1


@given(
    st.lists(
        st.tuples(st.integers(-(2**63), 2**63 - 1), st.text(max_size=3).filter(str.strip)),
        min_size=1,
        max_size=9,
    )
)
def test_any_integers_and_texts(rows):
    frame = {"i": [i for i, _ in rows], "t": [f"_{t}" for _, t in rows]}
    found = [read(kind(frame)) for kind in (pl.DataFrame, pd.DataFrame, pa.table)]
    assert len({data.checksum for data in found}) == 1
    assert oracle.decoded(found[0]) == [[str(i), f"_{t}"] for i, t in rows]
    assert found[0].states[0] == tuple(map(str, sorted(set(frame["i"]))))


def test_other_types():
    day = datetime.date(2020, 1, 2)
    data = read(
        pl.DataFrame(
            {"day": [day, day], "small": pl.Series([1, 200], dtype=pl.UInt8), "n": [None, None]}
        ),
        ReadSettings(missing="state"),
    )
    assert data.states == (("2020-01-02",), ("1", "200"), ("missing",))
    big = read(pl.DataFrame({"a": pl.Series([2**64 - 1, 5], dtype=pl.UInt64), "b": [1, 2]}))
    assert big.states[0] == ("5", str(2**64 - 1))
    if hasattr(pl, "Int128"):
        wide = read(pl.DataFrame({"a": pl.Series([2**100, 5], dtype=pl.Int128), "b": [1, 2]}))
        assert wide.states[0] == ("5", str(2**100))
    with pytest.raises(DataError, match="'a' is of type"):
        read(pl.DataFrame({"a": [[1], [2]], "b": [1, 2]}))
    with pytest.raises(DataError, match="'a' mixes"):
        read(pd.DataFrame({"a": pd.Series([1, "x"], dtype=object), "b": [1, 2]}))
    with pytest.raises(DataError, match="'a' holds infinite"):
        read(pd.DataFrame({"a": [1.5, float("inf")], "b": [1, 2]}))


def as_objects(values):
    """The values as a column of Python objects, in a frame of polars and one of pandas."""
    other = ["x"] * len(values)
    yield pl.DataFrame({"a": pl.Series(values, dtype=pl.Object), "b": other})
    yield pd.DataFrame({"a": pd.Series(values, dtype=object), "b": other})


@pytest.mark.parametrize(
    ("values", "states"),
    [
        ([True, False], ("false", "true")),
        ([10, np.int64(9), 10], ("9", "10")),
        ([np.bool_(True), False], ("false", "true")),
        (["b", np.str_("a")], ("a", "b")),
        ([1, 2.0], ("1", "2")),
        ([2.0, np.float32(1)], ("1", "2")),
        ([datetime.date(2020, 1, 2)] * 2, ("2020-01-02",)),
        ([uuid.UUID(int=2), uuid.UUID(int=1)], (str(uuid.UUID(int=1)), str(uuid.UUID(int=2)))),
        ([None, 3, pd.NA, np.nan, pd.NaT], ("3", "missing")),
        (["x", None, np.nan], ("x", "missing")),
        ([None, None], ("missing",)),
    ],
)
def test_objects_become_their_values_or_text(values, states):
    for frame in as_objects(values):
        assert read(frame, ReadSettings(missing="state")).states == (states, ("x",))


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([1, "x"], "'a' mixes"),
        (["x", 1], "'a' mixes"),
        ([True, "x"], "'a' mixes"),
        ([[1], [2]], "'a' is of type list"),
        ([np.zeros(2), np.zeros(2)], "'a' is of type"),
    ],
)
def test_objects_that_are_no_states(values, told):
    for frame in as_objects(values):
        with pytest.raises(DataError, match=told):
            read(frame)


def test_pandas_names_that_are_numbers_or_repeat():
    assert read(pd.DataFrame([[1, 2], [3, 4]])).names == ("0", "1")
    with pytest.raises(DataError, match="'a'"):
        read(pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]))
    with pytest.raises(DataError, match="two columns are named '1'"):
        read(pd.DataFrame([[1, 2], [3, 4]], columns=[1, "1"]))


@pytest.mark.parametrize("source", [None, 5, {"a": [1]}, [[1, 2]], b"x.csv"])
def test_what_is_no_data(source):
    with pytest.raises(DataError, match="give a file, a data frame"):
        read(source)


def test_arrays_have_columns_x0_x1():
    dataset = read(np.array([[1.0, 7], [0, 8], [1, 7]]))
    assert (dataset.names, dataset.states) == (("x0", "x1"), (("0", "1"), ("7", "8")))
    assert dataset.codes.tolist() == [[1, 0, 1], [0, 1, 0]]
    mixed = read(np.array([["a", True], ["b", None]], dtype=object), ReadSettings(missing="state"))
    assert mixed.states == (("a", "b"), ("true", "missing"))
    with pytest.raises(DataError, match=r"shape \(3,\)"):
        read(np.zeros(3))


class Plain:
    """A class without a text of its own."""


class Failing:
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["\ud800", "x"], "lone surrogate"),
        ([Plain(), Plain()], "'a' is of type Plain; convert"),
        ([Failing(), Failing()], "'a' is of type Failing; convert"),
        ([{1}, {2}], "'a' is of type set"),
        ([b"x", b"y"], "'a' is of type"),
        ([10**5000, 1], "'a' is of type int"),
        ([decimal.Decimal("Infinity"), 1], "'a' holds infinite"),
        ([10**400, 0.5], "'a' holds infinite"),
    ],
)
def test_objects_without_a_text(values, message):
    for column in (pl.Series(values, dtype=pl.Object), pd.Series(values, dtype=object)):
        frame = (pl if isinstance(column, pl.Series) else pd).DataFrame(
            {"a": column, "b": ["x", "y"]}
        )
        with pytest.raises(DataError, match=message):
            read(frame)


def test_names_that_are_no_unicode_text():
    with pytest.raises(DataError, match="lone surrogate"):
        read(pd.DataFrame([[1, 2], [3, 4]], columns=pd.Index(["\udcff", "b"], dtype=object)))
    with pytest.raises(DataError, match="lone surrogate"):
        read(
            pd.DataFrame({"a": [1, 2], "b": [1, 2]}),
            ReadSettings(arities={"a": ["1", "2", "\ud800"]}),
        )


def test_wide_floats():
    values = np.array([1.0, 2.0, np.nan], dtype=np.longdouble)
    data = read(pd.DataFrame({"a": values, "b": [1, 2, 3]}), ReadSettings(missing="state"))
    assert data.states[0] == ("1", "2", "missing")
    with pytest.raises(DataError, match="infinite"):
        read(pd.DataFrame({"a": np.array([1.5, 2.0]).astype(np.longdouble) ** 5000, "b": [1, 2]}))


@pytest.mark.parametrize("name", [None, float("nan"), pd.NA])
def test_a_column_without_a_name(name):
    with pytest.raises(DataError, match="column 2 of 2 has no name"):
        read(pd.DataFrame([[1, 2], [3, 4]], columns=["a", name]))


def test_columns_of_missing_values_alone():
    frame = pd.DataFrame({"a": [np.nan, np.nan], "b": [1, 2]})
    assert read(frame, ReadSettings(missing="state", bins={"a": 2})).states[0] == ("missing",)


def test_categories_that_are_the_same_text():
    with pytest.raises(DataError, match="same as text"):
        read(pd.DataFrame({"a": pd.Categorical([1, "1"]), "b": [1, 2]}))


WITHOUT = """
import sys
sys.modules["polars"] = sys.modules["networkx"] = None
import qubayes as qb
from qubayes import MissingPackageError
from qubayes.network import to_networkx

learned = qb.learn("x.csv", max_parents=1)
assert len(learned.network.edges) == 1
for name in ("x.qubo", "x.coo", "x.mtx", "x.json"):
    learned.formulation.write(name)
for needed, call in (
    (".[frames]", lambda: qb.read("x.parquet")),
    (".[frames]", lambda: qb.data.write(learned.dataset, "y.parquet")),
    (".[networkx]", lambda: to_networkx(learned.network)),
):
    try:
        call()
    except MissingPackageError as error:
        assert f"pip install '{needed}'" in str(error)
    else:
        raise SystemExit("no error")
"""


def words_of(path):
    """The words of a file; those that are numbers as numbers, since polars writes 0 as 0.0."""
    words = path.read_text().split()
    return [float(word) if re.fullmatch(r"-?\d[\d.]*(e-?\d+)?", word) else word for word in words]


@pytest.mark.slow
def test_without_polars_and_networkx(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n" + "0,0\n1,1\n" * 20)
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    for flags in ([], ["-OO"]):
        command = [sys.executable, *flags, "-c", WITHOUT]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    formulation = learn(tmp_path / "x.csv", max_parents=1).formulation
    for ending in (".qubo", ".coo", ".mtx"):  # here polars writes
        formulation.write(tmp_path / f"y{ending}")
        assert words_of(tmp_path / f"x{ending}") == words_of(tmp_path / f"y{ending}")


def test_options_of_read_by_name():
    frame = pd.DataFrame({"a": ["x", None, "y"], "b": [0.5, 1.5, 2.5], "c": [1, 2, 3]})
    settings = ReadSettings(missing="state", bins={"b": 2}, ignore=("c",))
    found = read(frame, missing="state", bins={"b": 2}, ignore=["c"])
    assert found.checksum == read(frame, settings).checksum and found.names == ("a", "b")
    with pytest.raises(SettingError, match="settings and bins were both given"):
        read(frame, settings, bins=3)


def test_masked_values_of_an_array_are_missing():
    values, mask = [[0, 1], [1, 0], [1, 1]] * 4, [[False, False], [True, False], [False, False]] * 4
    for kind in (int, float, np.uint8, str, object, bool):
        masked = np.ma.MaskedArray(np.array(values).astype(kind), mask=mask)
        with pytest.raises(
            DataError, match=r"missing values in 4 of 12 rows, column \(rows\): 'x0' \(4\)"
        ):
            read(masked)
        plain = np.array(values).astype(kind).astype(object)
        plain[np.array(mask)] = None
        found, expected = (read(data, ReadSettings(missing="state")) for data in (masked, plain))
        assert found.states == expected.states and (found.codes == expected.codes).all()
        assert "missing" in found.states[0]
        unmasked = read(np.ma.MaskedArray(np.array(values).astype(kind)))
        assert (unmasked.codes == read(np.array(values).astype(kind)).codes).all()


class Textless:
    """An object without a text."""

    def __str__(self):
        raise RuntimeError("none")

    __repr__ = __str__


def with_column(name, values):
    """A frame of pandas with a column of objects, whatever its name and values are."""
    frame = pd.DataFrame({"a": ["x", "y"] * 4, "b": ["x", "x", "y", "y"] * 2}, dtype=object)
    frame["c"] = pd.Series(values, dtype=object)
    frame.columns = pd.Index(["a", "b", name], dtype=object)
    return frame


ODD_CELLS = [
    "\ud800", np.ma.masked, decimal.Decimal("sNaN"), 10**5000, 2**70, Textless(), object(), [1], {}, b"x",
    np.array([1, 2]), np.array(1), 1j, np.void(b"a"), float("nan"), None, "NA", pd.NA, pd.NaT, np.datetime64("NaT"),
    range(2), int,
]  # fmt: skip


@pytest.mark.parametrize("odd", ODD_CELLS, ids=lambda value: type(value).__name__)
def test_names_and_cells_of_any_kind_give_a_result_or_one_error(odd):
    frames = [
        with_column("c", [odd] * 8),
        with_column("c", [odd, "q"] * 4),
        with_column("c", [odd, 1.5] * 4),
    ]
    for values in (["p", "q"] * 4, [1, 2] * 4, [1.5, None] * 4, ["p", 1] * 4):
        frame = with_column("c", values)
        with suppress(TypeError, ValueError):  # pandas has no such name
            frame.columns = pd.Index(np.array(["a", "b", odd], dtype=object), dtype=object)
            frames.append(frame)
    for frame in frames:
        for settings in (ReadSettings(), ReadSettings(missing="state", bins=2)):
            try:
                found = read(frame, settings)
                (
                    str(found),
                    "".join(found.names).encode(),
                    "".join(map("".join, found.states)).encode(),
                )
            except DataError as error:
                assert "\n" not in str(error)


def test_text_of_python_with_a_lone_surrogate_is_refused():
    column = pd.Series(["\ud800", "q"] * 4, dtype=pd.StringDtype("python"))
    with pytest.raises(DataError, match="surrogate"):
        read(pd.DataFrame({"a": ["x", "y"] * 4, "b": column}))
