"""`qubayes score` from the outside."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from qubayes import QubayesError
from qubayes.cli import app
from qubayes.data import ReadSettings, read
from qubayes.network import fit, from_modelstring, write_network
from qubayes.scores import NAMES
from reference.scores import local_score

ROWS = [
    ("x", "p", "0"),
    ("x", "q", "1"),
    ("y", "q", "1"),
    ("y", "q", "0"),
    ("x", "p", "1"),
    ("y", "p", "2"),
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "x.csv").write_text("a,b,c\n" + "".join(",".join(row) + "\n" for row in ROWS))
    (tmp_path / "g.bnlearn").write_text("[b][a|b]")
    fitted = fit(from_modelstring("[b|a][a]"), read(tmp_path / "x.csv"), "ml")
    write_network(fitted, tmp_path / "g.bif")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments):
    result = CliRunner().invoke(app, ["score", *map(str, arguments)])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


@pytest.mark.parametrize("name", NAMES)
def test_scores_are_the_definitions(folder, name):
    rows = [("xy".index(a), "pq".index(b), int(c)) for a, b, c in ROWS]
    found = json.loads(
        run("x.csv", "g.bnlearn", "--score", name, "--ess", 2, "--json", "--per-vertex")
    )
    wanted = {
        "b": local_score(rows, [2, 2, 3], 1, (), name, 2.0),
        "a": local_score(rows, [2, 2, 3], 0, (1,), name, 2.0),
    }
    assert found["per_vertex"] == pytest.approx(wanted) and list(found["per_vertex"]) == ["b", "a"]
    assert found["score"] == pytest.approx(sum(wanted.values()))
    assert found["ess"] == (2.0 if name in ("bdeu", "bds") else None)
    assert (
        found["n"],
        found["edges"],
        found["rows"],
        found["other_columns"],
        found["arities"],
    ) == (2, 1, 6, 1, "data")
    assert found["log_likelihood"] is None and "no probabilities" in found["log_likelihood_note"]


def test_likelihood_of_a_network_with_tables(folder):
    found = json.loads(run("x.csv", "g.bif", "--score", "loglik", "--json"))
    assert found["log_likelihood"] == pytest.approx(found["score"])
    assert found["log_likelihood_per_row"] == pytest.approx(found["score"] / 6)
    assert found["log_likelihood_note"] is None and "per_vertex" not in found


@pytest.mark.parametrize("options", [(), ("--bins", "3"), ("--arities", "train.bif")])
def test_new_numbers_go_into_the_intervals_of_the_network(folder, options):
    random = np.random.default_rng(0)
    table = np.column_stack(
        [random.normal(size=(80, 2)).cumsum(axis=1), random.integers(2, size=80)]
    )
    text = ["a,b,c", *(f"{a!r},{b!r},{int(c)}" for a, b, c in table.tolist())]
    (folder / "train.csv").write_text("\n".join(text[:50]) + "\n")
    (folder / "test.csv").write_text("\n".join([text[0], *text[50:]]) + "\n")
    train = read("train.csv", ReadSettings(bins=3))
    network = fit(from_modelstring("[a][b|a][c]"), train)
    write_network(network, "train.bif")
    wanted = 0.0
    edges = [
        [float(name[1:].lstrip("=")) for name in (names[0], names[-1])]
        for names in train.states[:2]
    ]
    for a, b, c in table[49:].tolist():
        place = [
            sum(number >= edge for edge in its) for number, its in zip((a, b), edges, strict=True)
        ]
        chances = (
            network.tables[0][place[0]],
            network.tables[1][place[0], place[1]],
            network.tables[2][int(c)],
        )
        wanted += sum(map(math.log, chances))
    found = json.loads(run("test.csv", "train.bif", "--json", *options))
    assert found["log_likelihood"] == pytest.approx(wanted)


def test_intervals_with_missing_values(folder):
    """Rows that were drawn hold the text `missing`, rows that were measured hold nothing."""
    (folder / "holes.csv").write_text("a,b\n" + "1.5,x\n2.5,y\n,x\n3.5,y\n" * 5)
    network = fit(
        from_modelstring("[a][b|a]"), read("holes.csv", ReadSettings(bins=2, missing="state"))
    )
    assert network.states[0] == ("<2.5", ">=2.5", "missing")
    write_network(network, "holes.bif")
    (folder / "drawn.csv").write_text("a,b\n" + "<2.5,x\n>=2.5,y\nmissing,x\n>=2.5,y\n" * 5)
    found = [
        json.loads(run(name, "holes.bif", "--missing", "state", "--json", *options))
        for name in ("holes.csv", "drawn.csv")
        for options in ((), ("--arities", "holes.bif"))
    ]
    assert len({each["log_likelihood"] for each in found}) == 1 and found[0]["log_likelihood"] < 0
    assert len({each["score"] for each in found}) == 1
    assert [each["arities"] for each in found[:2]] == ["network holes.bif"] * 2


def test_codes_are_no_measurements(folder):
    train = fit(
        from_modelstring("[a][b|a]"), read(_table(folder, [0.5, 1.5, 2.5]), ReadSettings(bins=3))
    )
    write_network(train, "cut.bif")
    (folder / "coded.dat").write_text("a b\n3 2\n" + "0 0\n1 1\n2 1\n" * 4)
    found = json.loads(run("coded.dat", "cut.bif", "--json"))
    assert (
        found["log_likelihood"] is None
        and "is not a state of the network" in found["log_likelihood_note"]
    )


def test_a_column_that_is_not_there_is_told(folder):
    write_network(
        fit(from_modelstring("[a][b|a]"), read(_table(folder, [0.5, 1.5]), ReadSettings(bins=2))),
        "cut.bif",
    )
    (folder / "few.csv").write_text("b,c\nx,y\ny,y\n")
    with pytest.raises(QubayesError, match="no column 'a'"):
        run("few.csv", "cut.bif")


def _table(folder, numbers):
    (folder / "cut.csv").write_text(
        "a,b\n" + "".join(f"{x},{'xy'[i % 2]}\n" for i, x in enumerate(numbers * 4))
    )
    return folder / "cut.csv"


def test_declared_arities_and_other_reading_options_count(folder):
    (folder / "s.json").write_text('{"a": ["x", "y", "z"], "b": 4}')
    plain = json.loads(run("x.csv", "g.bnlearn", "--json"))
    declared = json.loads(
        run("x.csv", "g.bnlearn", "--json", "--arities", "s.json", "--ignore", "c")
    )
    assert (
        declared["score"] != plain["score"]
        and declared["arities"] == "s.json"
        and declared["other_columns"] == 0
    )


def test_rows_that_cannot_be_and_states_that_are_unknown_do_not_hide_the_score(folder):
    (folder / "y.csv").write_text("a,b\nx,p\ny,r\n")
    found = json.loads(run("y.csv", "g.bif", "--json"))
    assert math.isfinite(found["score"]) and found["log_likelihood"] is None
    assert "column 'b', row 2: 'r' is not a state" in found["log_likelihood_note"]
    (folder / "g.json").write_text(
        '{"format": "qubayes network", "version": 1, "vertices":'
        ' [{"name": "a", "parents": [], "states": ["x", "y"], "table": [[1, 0]]}]}'
    )
    found = json.loads(run("x.csv", "g.json", "--json"))
    assert found["log_likelihood"] is None and "minus infinity" in found["log_likelihood_note"]
    assert "log-likelihood   minus infinity" in run("x.csv", "g.json")


def test_text(folder):
    lines = run("x.csv", "g.bif", "--per-vertex").splitlines()
    assert lines[0].startswith("  score            -")
    assert lines[0].endswith("   (BDeu, equivalent sample size 1)")
    assert lines[1].startswith("  log-likelihood   -") and lines[1].endswith(" per row)")
    assert lines[2] == "  network          2 variables, 1 edge"
    assert lines[3].endswith("6 rows, states from network g.bif; 1 column not in the network")
    assert [line.split("\t")[1] for line in lines[4:]] == ["b", "a"]
    assert "equivalent" not in run("x.csv", "g.bif", "--score", "bic")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["x.csv", "none.bif"], "no such file"),
        (["x.csv", "x.txt"], "no ending of a network file"),
        (["x.csv", "g.bif", "--score", "best"], "unknown; choose one of"),
        (["x.csv", "h.bnlearn"], "no column 'z'"),
    ],
)
def test_bad_input_is_one_line_and_exit_1(folder, arguments, words):
    (folder / "h.bnlearn").write_text("[z][a|z]")
    command = [sys.executable, "-c", "from qubayes.cli import main; main()", "score", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and done.stdout == ""
    assert words in done.stderr and done.stderr.count("\n") == 1
