"""The options for reading data that commands share."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from qubayes import SettingError
from qubayes.cli.options import DataFile, made_by, spelled_out
from qubayes.data import ReadSettings, read
from qubayes.settings import Seed

pytestmark = pytest.mark.usefixtures("blocks_of_any_size")

app = typer.Typer()


@app.command()
@spelled_out
def show(data: DataFile, reading: ReadSettings = made_by(ReadSettings), seed: Seed = 3) -> None:
    """Show what is read."""
    found = read(data, reading)
    print(json.dumps([found.states, found.rows, found.arities_from, seed]))


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "x.csv").write_text("a,b,c\n0.5,x,1\n1.5,,2\n5.5,y,3\n")
    (tmp_path / "s.json").write_text('{"c": 4}')
    return tmp_path / "x.csv"


def shown(*arguments):
    return json.loads(run(*arguments).stdout)


def test_every_option_reaches_the_reader(path):
    both = ["--missing", "state", "--bins", 2]
    assert shown(path, *both) == [
        [["<1.5", ">=1.5"], ["x", "y", "missing"], ["1", "2", "3"]],
        3,
        "data",
        3,
    ]
    assert shown(path, "--missing", "drop", "--bins", 2)[1] == 2
    assert shown(path, *both, "--bin-method", "width")[0][0] == ["<3", ">=3"]
    assert shown(path, "--missing", "state", "--bins", "a=3", "--bins", "c=2")[0][2] == [
        "<2",
        ">=2",
    ]
    assert shown(path, *both, "--arities", path.parent / "s.json", "--seed", 9)[2:] == ["s.json", 9]
    assert shown(path, "--ignore", "b", "--bins", 2)[0] == [["<1.5", ">=1.5"], ["1", "2", "3"]]
    table = path.rename(path.with_suffix(".txt"))
    assert shown(table, *both, "--format", "csv")[1] == 3


@pytest.mark.parametrize("bins", [["x"], ["a="], ["2", "a=3"], ["2", "3"], ["1"], ["a=1"], ["-2"]])
def test_bins_that_are_none(path, bins):
    with pytest.raises(SettingError, match="bins"):
        run(path, *(word for text in bins for word in ("--bins", text)))


def test_help_names_every_option():
    text = run("--help").stdout
    for option in (
        "--missing",
        "--bins",
        "--bin-method",
        "--arities",
        "--ignore",
        "--format",
        "--seed",
    ):
        assert option in text
    assert "reading" not in text


def test_groups_of_options_nest_and_share_names():
    def limit(seed: Seed = 3, most: int = 1) -> tuple[int, int]:
        return seed, most

    def settings(limits: tuple[int, int] = made_by(limit), name: str = "x") -> list[object]:
        return [limits, name]

    @spelled_out
    def command(path: str, both: list[object] = made_by(settings), seed: Seed = 9) -> None:
        print(path, both, seed)

    nested = typer.Typer()
    nested.command()(command)
    assert CliRunner().invoke(nested, ["p"]).stdout == "p [(3, 1), 'x'] 3\n"
    assert (
        CliRunner().invoke(nested, ["p", "--seed", "5", "--most", "2"]).stdout
        == "p [(5, 2), 'x'] 5\n"
    )
