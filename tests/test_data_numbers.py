"""Continuous columns: what is read as numbers, what is refused, and how numbers are written."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qubayes import DataError, FormatError, SettingError
from qubayes.data import ReadSettings, read, write

RANDOM = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "weight": RANDOM.normal(70.0, 9.0, 60),
        "age": RANDOM.permutation(60) // 2 + 20,
        "children": RANDOM.integers(0, 4, 60),
        "town": RANDOM.choice(["A", "B"], 60),
    }
)


def test_fractions_are_numbers_and_whole_numbers_beside_them():
    data = read(FRAME)
    assert [*data.numbers] == ["weight", "age"] and data.kind == "mixed"
    assert data.states == ((), (), ("0", "1", "2", "3"), ("A", "B"))
    assert data.numbers["weight"].tolist() == FRAME["weight"].tolist()
    assert data.numbers["age"].tolist() == FRAME["age"].tolist()
    assert not data.codes[:2].any() and data.codes.dtype == np.uint8
    assert "weight: numbers from" in str(data) and "children: 4 states" in str(data)
    assert "numbers" in data._repr_html_()


def test_whole_numbers_alone_are_states():
    data = read(FRAME[["age", "town"]])
    assert data.kind == "discrete" and len(data.states[0]) == 30


def test_numbers_are_cut_where_asked():
    bins = read(FRAME, numbers="bins")
    assert bins.kind == "discrete" and bins.arities.tolist() == [3, 3, 4, 2]
    assert bins.checksum == read(FRAME, bins=3).checksum
    assert read(FRAME, numbers="bins", bins=4).arities.tolist() == [4, 4, 4, 2]
    assert read(FRAME, bins={"weight": 2}).kind == "discrete"
    with pytest.raises(DataError, match=r"'weight' is continuous .* bins=3 .*numbers='gaussian'"):
        read(FRAME, numbers="error")
    with pytest.raises(SettingError, match="numbers = 'none'; give one of gaussian, bins, error"):
        ReadSettings(numbers="none")


def test_declared_columns_are_states():
    data = read(FRAME, arities={"weight": [repr(x) for x in FRAME["weight"]]})
    assert data.kind == "discrete"


@pytest.mark.parametrize("cell", [None, np.nan])
def test_missing_numbers(cell):
    frame = FRAME[["weight", "age"]].astype(object)
    frame.loc[3, "weight"] = cell
    with pytest.raises(DataError, match=r"missing values in 1 of 60 rows, .*missing='drop'"):
        read(frame)
    data = read(frame, missing="drop")
    assert data.rows == 59 and data.dropped == 1 and data.kind == "continuous"
    with pytest.raises(
        DataError, match=r"'weight' is continuous, and a missing .*missing='impute'"
    ):
        read(frame, missing="state")
    assert read(frame, missing="state", bins=3).states[0][-1] == "missing"


def test_what_no_model_can_take():
    for cell in (np.inf, -np.inf):
        frame = FRAME[["weight", "age"]].copy()
        frame.loc[3, "weight"] = cell
        with pytest.raises(DataError, match="'weight' holds infinite values; replace them"):
            read(frame)
    frame = FRAME[["weight", "age"]].assign(half=0.5)
    with pytest.raises(DataError, match=r"'half' is constant \(0.5 in every row\).*ignore"):
        read(frame)
    huge = pl.DataFrame({"a": ["0.5", "1.5"], "b": ["1" + "0" * 400, "2"]})
    with pytest.raises(DataError, match="'b' holds infinite values"):
        read(huge)


def test_like_a_table_of_numbers():
    data = read(FRAME[["weight", "age"]])
    one = pd.DataFrame({"weight": [70], "age": [30]})
    again = read(one, like=data)
    assert again.kind == "continuous" and again.numbers["weight"].tolist() == [70.0]
    with pytest.raises(DataError, match="'age' holds text such as 'old', and it is continuous"):
        read(pd.DataFrame({"weight": [70.5], "age": ["old"]}), like=data)
    whole = read(FRAME[["children", "town"]])
    other = pd.DataFrame({"children": [0.5, 1.5], "town": ["A", "B"]})
    with pytest.raises(DataError, match="'children' is continuous"):
        read(other, like=whole)


def test_rows_and_variables_are_taken():
    data = read(FRAME)
    rows = np.array([5, 5, 2])
    assert data.take(rows).numbers["age"].tolist() == FRAME["age"].to_numpy()[rows].tolist()
    assert data.select(np.array([3, 1])).names == ("town", "age")
    assert [*data.select(np.array([3, 1])).numbers] == ["age"]


FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.tuples(FLOATS, FLOATS), min_size=2, max_size=30))
def test_numbers_are_written_and_read_back_exactly(tmp_path_factory, rows):
    frame = pd.DataFrame([(0.5, 0.25), (1.5, 0.75), *rows], columns=["a", "b"])
    data = read(frame)
    folder = tmp_path_factory.mktemp("numbers")
    for ending in (".csv", ".tsv", ".parquet"):
        path = folder / f"data{ending}"
        write(data, path)
        back = read(path)
        assert back.checksum == data.checksum
        for name in ("a", "b"):
            assert back.numbers[name].tobytes() == data.numbers[name].tobytes()
    with pytest.raises(FormatError, match=r"\.dat file cannot hold the numbers of 'a'"):
        write(data, folder / "data.dat")


def test_frames_of_numbers():
    data = read(FRAME)
    for frame in (data.to_frame(), data.to_polars()):
        assert read(frame).checksum == data.checksum
    assert data.to_frame()["weight"].dtype == float
