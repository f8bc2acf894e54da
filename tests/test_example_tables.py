"""Sample tables: `example`, the command, and the files in the wheel."""

import gzip
import json
import zipfile
from importlib.resources import files
from pathlib import Path

import pytest

import qubayes as qb
from candidate_cases import assert_one_line, run

EXAMPLES = Path(__file__).parent.parent / "examples"
NAMES = ("alarm", "wine")
MOST_BYTES = 20_000  # of all sample tables in the wheel


def test_the_names_are_those_of_the_tables_in_the_folder():
    assert qb.example() == NAMES
    assert sorted(path.stem for path in EXAMPLES.glob("*.csv")) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_table_is_the_one_in_the_folder(name):
    found = qb.example(name)
    assert found.checksum == qb.read(EXAMPLES / f"{name}.csv").checksum
    packed = (files("qubayes.data") / "tables" / f"{name}.csv.gz").read_bytes()
    assert gzip.decompress(packed) == (EXAMPLES / f"{name}.csv").read_bytes()


def test_settings_say_how_it_is_read():
    settings = qb.ReadSettings(bins=3)
    found = qb.example("wine", settings)
    assert found.checksum == qb.read(EXAMPLES / "wine.csv", settings).checksum
    assert found.kind == "discrete" and qb.example("wine").kind == "mixed"


def test_an_unknown_name_is_refused_with_the_nearest_one_and_all_names():
    with pytest.raises(qb.SettingError, match=r"'alram'; did you mean 'alarm'\?.*'alarm', 'wine'$"):
        qb.example("alram")
    with pytest.raises(qb.SettingError, match=r"'sachs'; sample tables are 'alarm', 'wine'$"):
        qb.example("sachs")
    with pytest.raises(qb.SettingError, match="no sample table is named 3"):
        qb.example(3)


def test_the_command_lists_the_names(capsys):
    code, printed, _ = run(capsys, "example")
    assert code == 0
    assert [line.split()[0] for line in printed.splitlines()] == list(NAMES)
    code, printed, _ = run(capsys, "example", "--json")
    assert code == 0 and list(json.loads(printed)["examples"]) == list(NAMES)


@pytest.mark.parametrize("ending", ["csv", "tsv"])
@pytest.mark.parametrize("name", NAMES)
def test_the_command_writes_a_table(name, ending, tmp_path, capsys):
    path = tmp_path / f"own.{ending}"
    code, printed, _ = run(capsys, "example", name, "-o", path)
    assert code == 0 and printed.endswith(f"{path}   table\n")
    assert qb.read(path).checksum == qb.example(name).checksum


def test_the_command_describes_what_it_wrote(tmp_path, capsys):
    path = tmp_path / "wine.csv"
    code, printed, _ = run(capsys, "example", "wine", "--json", "-o", path)
    assert code == 0
    assert json.loads(printed) == {
        "n": 14,
        "rows": 178,
        "output": str(path),
        "checksum": qb.example("wine").checksum,
    }


def test_the_command_prints_the_rows_without_a_file(capsys):
    code, printed, _ = run(capsys, "example", "wine")
    assert code == 0 and printed == (EXAMPLES / "wine.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "words, told",
    [
        (["alram"], "did you mean 'alarm'? sample tables are 'alarm', 'wine'"),
        (["-o", "x.csv"], "`qubayes example` lists the names"),
        (["wine", "--json"], "name a file for the rows with -o"),
        (["wine", "-o", "x.xls"], ".csv, .tsv, .dat or .parquet"),
    ],
)
def test_the_command_refuses_in_one_line(words, told, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code, printed, error = run(capsys, "example", *words)
    assert printed == ""
    assert_one_line(code, error, told)
    assert not list(tmp_path.iterdir())


def test_the_wheel_holds_the_tables(tmp_path):
    wheel = pytest.importorskip("hatchling.builders.wheel")
    root = EXAMPLES.parent
    [built] = wheel.WheelBuilder(str(root)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(built) as file:
        sizes = {item.filename: item.compress_size for item in file.infolist()}
        tables = {name for name in sizes if name.startswith("qubayes/data/tables/")}
        assert tables == {f"qubayes/data/tables/{name}.csv.gz" for name in NAMES}
        assert sum(sizes[name] for name in tables) < MOST_BYTES
