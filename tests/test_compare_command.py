"""`qubayes compare` and `qubayes convert` from the outside."""

import json
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from network_cases import read_graph
from qubayes import FormatError, QubayesError
from qubayes.cli import app
from qubayes.network import Network, read_network, write_network


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "a.bnlearn").write_text("[x][y|x][z|x:y][w]")
    (tmp_path / "b.bnlearn").write_text("[w][x|w:y][y][z|y]")
    tables = (np.array([0.25, 0.75]), np.array([[0.1, 0.9], [1.0, 0.0]]))
    write_network(
        Network(("p", "q"), ((), (0,)), (("0", "1"), ("0", "1")), tables), tmp_path / "c.bif"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


def test_json(folder):
    # A: x>y x>z y>z, w alone; its class has three lines. B: w>x<y>z; its class directs w>x and y>x,
    # and y-z is a line.
    found = json.loads(run("compare", "a.bnlearn", "b.bnlearn", "--json"))
    assert found == {
        "shd": 3,
        "shd_cpdag": 3,
        "missing": 1,
        "extra": 1,
        "reversed": 1,
        "edges": {"common": 1, "a": 3, "b": 3, "precision": 1 / 3, "recall": 1 / 3, "f1": 1 / 3},
        "skeleton": {"common": 2, "a": 3, "b": 3, "precision": 2 / 3, "recall": 2 / 3, "f1": 2 / 3},
        "cpdag": {"common": 1, "a": 3, "b": 3, "precision": 1 / 3, "recall": 1 / 3, "f1": 1 / 3},
    }


def test_text(folder):
    lines = run("compare", "a.bnlearn", "b.bnlearn").splitlines()
    assert lines[0] == "structural Hamming distance 3 (1 missing, 1 extra, 1 reversed)"
    assert lines[1] == "structural Hamming distance of the equivalence classes 3"
    assert lines[3].split() == ["directed", "edges", "1", "3", "3", "0.333", "0.333", "0.333"]
    assert [line.split()[0] for line in lines[4:]] == ["skeleton", "class"]


def test_other_vertices_and_missing_files(folder):
    with pytest.raises(
        QubayesError, match="only the first has 'w', 'x', 'y', 'z'; only the second has 'p', 'q'"
    ):
        run("compare", "a.bnlearn", "c.bif")
    with pytest.raises(FormatError, match="no such file"):
        run("compare", "a.bnlearn", "none.bnlearn")


def test_one_line_and_exit_1(folder):
    command = [
        sys.executable,
        "-c",
        "from qubayes.cli import main; main()",
        "compare",
        "a.bnlearn",
        "c.bif",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and done.stdout == "" and done.stderr.count("\n") == 1


def test_convert_keeps_what_the_format_holds(folder):
    assert run("convert", "c.bif", "c.xmlbif") == (
        "2 variables, 1 edge\n\n  c.xmlbif   network with probabilities\n"
    )
    assert run("convert", "c.xmlbif", "c.json.gz") == (
        "2 variables, 1 edge\n\n  c.json.gz   network with probabilities\n"
    )
    back, first = read_network("c.json.gz"), read_network("c.bif")
    assert back.states == first.states and all(
        (a == b).all() for a, b in zip(back.tables, first.tables, strict=True)
    )
    assert run("convert", "c.bif", "c.csv").endswith(", which this format does not hold\n")
    assert read_graph(folder / "c.csv").parent_names() == {"p": (), "q": ("p",)}
    assert json.loads(run("convert", "a.bnlearn", "a.gv", "--json")) == {
        "n": 4,
        "edges": 3,
        "probabilities": False,
        "output": "a.gv",
    }


def test_convert_refuses(folder):
    with pytest.raises(FormatError, match="fit it to data first"):
        run("convert", "a.bnlearn", "a.bif")
    with pytest.raises(FormatError, match="no ending of a network file"):
        run("convert", "none.bif", "a.png")
    assert not (folder / "a.bif").exists()
