"""One spelling of a value: the same data give the same states from all files and data frames."""

import datetime as dt
import io
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pytest

from qubayes import DataError, FormatError, SettingError
from qubayes.data import ReadSettings, read, read_evidence, state_of, write, write_rows

START = dt.datetime(2024, 2, 28, 12, 30)
ROWS = 8
COLUMNS = {
    "truth": ([i % 3 == 0 for i in range(ROWS)], ("false", "true")),
    "date": (
        [dt.date(2024, 2, 28) + dt.timedelta(i % 2) for i in range(ROWS)],
        ("2024-02-28", "2024-02-29"),
    ),
    "moment": (
        [START + dt.timedelta(hours=12 * (i % 2)) for i in range(ROWS)],
        ("2024-02-28 12:30:00", "2024-02-29 00:30:00"),
    ),
    "midnight": (
        [dt.datetime(2024, 2, 28) + dt.timedelta(i % 2) for i in range(ROWS)],
        ("2024-02-28", "2024-02-29"),
    ),
    "finer": (
        [START + dt.timedelta(milliseconds=250 * (i % 2)) for i in range(ROWS)],
        ("2024-02-28 12:30:00", "2024-02-28 12:30:00.250000"),
    ),
    "zoned": (
        [dt.datetime(2024, 2, 28, i % 2, tzinfo=dt.UTC) for i in range(ROWS)],
        ("2024-02-28 00:00:00+00:00", "2024-02-28 01:00:00+00:00"),
    ),
    "time": ([dt.time(8 + i % 2, 30) for i in range(ROWS)], ("08:30:00", "09:30:00")),
    "whole": ([i % 3 for i in range(ROWS)], ("0", "1", "2")),
    "float": ([float(i % 3 + 9) for i in range(ROWS)], ("9", "10", "11")),
    "text": ([("b", "a", "1.50")[i % 3] for i in range(ROWS)], ("1.50", "a", "b")),
    "like_numbers": ([("01", "1")[i % 2] for i in range(ROWS)], ("01", "1")),
}


def every_source(table, folder):
    """{name: source} of the same table from all programs."""
    pandas, polars = pd.DataFrame(table), pl.DataFrame(table)
    arrow = pa.table(table)
    pandas.to_csv(folder / "pandas.csv", index=False)
    polars.write_csv(folder / "polars.csv")
    pyarrow.csv.write_csv(arrow, folder / "pyarrow.csv")
    polars.write_parquet(folder / "x.parquet")
    polars.write_ipc(folder / "x.arrow")
    files = ("pandas.csv", "polars.csv", "pyarrow.csv", "x.parquet", "x.arrow")
    r_style = pandas.copy()
    if "truth" in table:
        r_style["truth"] = ["TRUE" if value else "FALSE" for value in table["truth"]]
    r_style.to_csv(folder / "r.csv", index=False)
    return {
        "pandas": pandas,
        "pandas categories": pandas.astype("category"),
        "polars": polars,
        "pyarrow": arrow,
        **{name: folder / name for name in (*files, "r.csv")},
    }


TABLE = {name: values for name, (values, _) in COLUMNS.items()}


def test_the_same_states_from_every_source(tmp_path):
    reference = read(pl.DataFrame(TABLE))
    for source, data in every_source(TABLE, tmp_path).items():
        found = read(data)
        assert found.names == tuple(COLUMNS)
        for name, own, (_, states) in zip(found.names, found.states, COLUMNS.values(), strict=True):
            assert own == states, (source, name)
        assert (found.codes == reference.codes).all(), source


def test_declared_spellings_are_matched(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\nTRUE,1.0\nFALSE,2\n")
    frame = pd.DataFrame({"a": [True, False], "b": [1.0, 2.0]})
    for source in (tmp_path / "x.csv", frame):
        for states in (["True", "False"], ["false", "true"], ["TRUE", "FALSE", "other"]):
            found = read(source, ReadSettings(arities={"a": states, "b": ["2", "1"]}))
            assert found.states == (tuple(states), ("2", "1"))
            assert [found.states[0][code].lower() for code in found.codes[0]] == ["true", "false"]
            assert found.codes[1].tolist() == [1, 0]


def test_evidence_is_matched_from_every_source(tmp_path):
    reference = read(pl.DataFrame(TABLE))
    part = {name: values[1:3] for name, values in TABLE.items()}
    for source, data in every_source(part, tmp_path).items():
        found = read_evidence(data, reference)
        for name, codes in zip(reference.names, reference.codes, strict=True):
            assert found[name].tolist() == codes[1:3].tolist(), (source, name)
    for (values, states), codes in zip(COLUMNS.values(), reference.codes, strict=True):
        assert [state_of(states, value) for value in values] == codes.tolist()


def test_what_is_no_date_stays_text(tmp_path):
    (tmp_path / "x.csv").write_text("a,b,c\n2024-02-31,12:30,True\n2024-02-01,09:00,maybe\n")
    found = read(tmp_path / "x.csv")
    assert found.states == (("2024-02-01", "2024-02-31"), ("09:00", "12:30"), ("True", "maybe"))


def test_bounds_between_intervals():
    frame = pd.DataFrame({"age": [17, 18, 39, 40, 64.5, 65, 99], "b": list("xyxyxyx")})
    found = read(frame, ReadSettings(bins={"age": [18, 40, 65]}))
    assert found.states[0] == ("<18", "18..40", "40..65", ">=65")
    assert found.codes[0].tolist() == [0, 1, 1, 2, 2, 3, 3]
    assert read(frame.head(2), like=found).codes[0].tolist() == [0, 1]
    assert read(frame, ReadSettings(bins={"age": np.array([30.5])})).states[0] == (
        "<30.5",
        ">=30.5",
    )
    for bad in ([], [2, 1], [1, 1], [float("inf")], ["1"], 1, True, "18", [float("nan")]):
        with pytest.raises(SettingError, match=r"bins = .*ascending"):
            ReadSettings(bins={"age": bad})
    with pytest.raises(SettingError, match="bins"):
        ReadSettings(bins=[18, 40])


def test_dropped_rows_are_counted(tmp_path):
    frame = pd.DataFrame({"a": ["x", None, "y", "x"], "b": [1, 2, np.nan, 1]})
    found = read(frame, ReadSettings(missing="drop"))
    assert (found.rows, found.dropped) == (2, 2)
    assert str(found).startswith(
        "Dataset: 2 rows (2 more with missing values were dropped) of 2 variables"
    )
    assert read(frame, ReadSettings(missing="state")).dropped == 0


def test_texts_and_tables_of_a_dataset():
    found = read(pd.DataFrame({"<b>": ["x", "<i>"] * 10, "b": list(range(20))}))
    assert str(found).splitlines()[1] == "  <b>: 2 states '<i>', 'x'"
    page = found._repr_html_()
    assert "&lt;i&gt;" in page and "<i>" not in page and page.count("<tr>") == 12


def test_states_by_value():
    assert [
        state_of(("<1.5", "1.5..3", ">=3", "missing"), value)
        for value in (1, 1.5, "2.9", 3, "missing")
    ] == [*(0, 1, 1, 2, 3)]
    assert state_of(("0", "1"), np.float64(1.0)) == state_of(("0", "1"), "1.0") == 1
    for value in (2, "x", [1]):
        with pytest.raises(DataError):
            state_of(("0", "1"), value)


def test_a_state_that_means_missing_is_not_written_as_text(tmp_path):
    frame = pd.DataFrame({"a": pd.Categorical(["NA", "x", "?"]), "b": ["u", "v", "u"]})
    dataset = read(frame)
    assert dataset.states[0] == ("?", "NA", "x")
    for ending in (".csv", ".tsv", ".dat"):
        with pytest.raises(FormatError, match=r"'\?' of 'a' means a missing value"):
            write(dataset, tmp_path / f"x{ending}")
    write(dataset, tmp_path / "x.parquet")
    assert read(tmp_path / "x.parquet").states == dataset.states
    plain = dataset.with_plain_states()
    assert plain.states[0] == ("state_?", "state_NA", "x")
    write(plain, tmp_path / "x.csv")
    assert (read(tmp_path / "x.csv").codes == dataset.codes).all()
    both = read(
        pd.DataFrame({"a": pd.Categorical(["NA", "state_NA"]), "b": ["u", "v"]})
    ).with_plain_states()
    assert both.states[0] == ("state_NA_", "state_NA")


def test_standard_input(tmp_path):
    code = "import qubayes as qb; d = qb.read('-'); print(d.states)"
    done = subprocess.run(
        [sys.executable, "-c", code], input="a,b\nx,1\ny,2\n", capture_output=True, text=True
    )
    assert done.stdout == "(('x', 'y'), ('1', '2'))\n", done.stderr
    done = subprocess.run(
        [sys.executable, "-c", code], input="a,b\nx\n", capture_output=True, text=True
    )
    assert "standard input, line 2: 1 fields where the header has 2" in done.stderr


def test_rows_of_a_dataset_as_text():
    file = io.StringIO()
    write_rows(read(np.array([[1, 2], [3, 4]])), file)
    assert file.getvalue() == "x0,x1\n1,2\n3,4\n"


@pytest.mark.parametrize(
    "texts", [["2024-05-01 00:00:00", "20240502"], ["2024-05-01 00:00:00", "x"], ["True", "x"]]
)
def test_texts_that_are_not_all_of_a_kind_stay_as_they_are(texts):
    """20240502 is a date to Python, and a number to everybody else."""
    frame = pd.DataFrame({"a": texts, "b": [0, 1]})
    assert read(frame).states[0] == tuple(sorted(texts))
