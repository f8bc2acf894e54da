"""`qubayes quadratize POLY.json`."""

import json
import subprocess
import sys
from typing import NamedTuple

import dimod
import pytest

from qubayes.cli import main
from qubayes.quadratize import Decoder, quadratize, read_polynomial

POLY = [
    [1.0, ["a", "b", "c", "d"]],
    [-2.0, ["a", "b", "c"]],
    [1.5, ["d"]],
    [3.0, ["c", "d"]],
    [0.5, []],
]


class Done(NamedTuple):
    """How the command ended."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs the command as `main` runs it."""

    def in_process(*arguments):
        monkeypatch.setattr(sys, "argv", ["qubayes", "quadratize", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as ended:
            code = ended.code or 0
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return in_process


@pytest.fixture
def poly(tmp_path):
    path = tmp_path / "poly.json"
    path.write_text(json.dumps(POLY))
    return path


def test_json_says_what_was_found(run, poly):
    done = run(poly, "--json", "--trade-off", 1, "--fewest-couplers")
    facts = json.loads(done.stdout)
    assert done.returncode == 0 and facts.pop("seconds") >= 0
    assert facts.pop("trade_off") == [{"bits": 3, "couplers": 3, "proved": True}] * 2
    assert facts == {
        "variables": 4, "terms": 4, "degree": 4, "bits": {"total": 3, "sets": 3}, "couplers": 3, "lower_bound": 3,
        "proved": True, "status": "3 sets, proved minimal; couplers proved fewest",
    }  # fmt: skip


def test_text_for_people(run, poly):
    done = run(poly, "--assumptions", "conventional", "--mode", "optimal")
    lines = dict(
        line.split(None, 1) for line in done.stdout.splitlines() if not line.startswith("lower")
    )
    assert lines["bits"] == "6" and lines["status"] == "6 sets, proved minimal"
    assert "lower bound  6" in done.stdout


def test_model_and_decoder_are_written(run, poly, tmp_path):
    done = run(poly, "-o", tmp_path / "model.bqm", "--decoder", tmp_path / "decoder.json")
    assert done.returncode == 0, done.stderr
    with (tmp_path / "model.bqm").open("rb") as file:
        model = dimod.BinaryQuadraticModel.from_file(file)
    decoder = Decoder.from_json((tmp_path / "decoder.json").read_text())
    assert decoder == quadratize(read_polynomial(poly)).decoder
    best = dimod.ExactSolver().sample(model).first
    assert read_polynomial(poly).energy(decoder.decode(best.sample)) == best.energy == -1.5


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("{", "not JSON"),
        ('{"a": 1}', "list of"),
        ("[[1, 2]]", "entry 1"),
        ('[[1, ["a"]], [1]]', "entry 2"),
        ('[["x", ["a"]]]', "finite real number"),
        ("[[NaN, []]]", "NaN is not finite"),
        ("[[1, [[2]]]]", "names are strings"),
        ("[[true, []]]", "finite real number"),
    ],
)
def test_bad_files_are_one_line(run, tmp_path, text, word):
    path = tmp_path / "bad.json"
    path.write_text(text)
    done = run(path)
    assert done.returncode == 1 and word in done.stderr and done.stderr.count("\n") == 1


def test_bad_settings_are_one_line(run, poly, tmp_path):
    for arguments, word in [
        ((tmp_path / "none.json",), "cannot read"),
        ((poly, "--mode", "fast"), "mode = 'fast'"),
    ]:
        done = run(*arguments)
        assert done.returncode == 1 and word in done.stderr and done.stderr.count("\n") == 1


def test_empty_and_constant_polynomials(run, tmp_path):
    for text in ("[]", "[[2, []]]"):
        path = tmp_path / "poly.json"
        path.write_text(text)
        assert json.loads(run(path, "--json").stdout)["bits"]["total"] == 0


def test_as_a_process(poly):
    command = [
        sys.executable,
        "-c",
        "from qubayes.cli import main; main()",
        "quadratize",
        str(poly),
        "--json",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (
        done.returncode == 0 and done.stderr == "" and json.loads(done.stdout)["bits"]["total"] == 3
    )
