"""`qubayes subsets` from the outside."""

import json
import subprocess
import sys

import pytest

from qubayes.qubo.subsets import read_subsets

FILE = """3
a 4
-1.0 2 b c
-2.0 1 b
-3.0 1 c
-4.0 0
b 1
-1.0 0
c 2
-1.0 2 a b
-2.0 0
"""


@pytest.fixture
def run(tmp_path):
    (tmp_path / "x.jkl").write_text(FILE)

    def call(*arguments):
        command = [
            sys.executable,
            "-c",
            "from qubayes.cli import main; main()",
            "subsets",
            *arguments,
        ]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)

    return call


def test_json(run):
    done = run("x.jkl", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["bits"], result["lower_bound"], result["mu"]) == (3, 3, [2, 0, 1])
    assert result["subsets"] == {"a": [["b"], ["c"]], "b": [], "c": [["a", "b"]]}
    assert result["proved_optimal_vertices"] == 3 and result["status"] == "finished"


def test_text_and_methods(run):
    for method in ("search", "ilp", "ilp-only"):
        done = run("x.jkl", "--cover", method)
        assert done.returncode == 0 and done.stdout.startswith("3 subsets for 3 vertices"), (
            done.stderr
        )


def test_an_unknown_method_is_one_line(run):
    done = run("x.jkl", "--cover", "gurobi")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1 and "choose one of" in done.stderr


def test_the_subsets_are_written(run, tmp_path):
    done = run("x.jkl", "-o", "x.qbs", "--threads", "1", "--seed", "1")
    assert done.returncode == 0 and "x.qbs   parent subsets" in done.stdout, done.stderr
    found = read_subsets(tmp_path / "x.qbs")
    assert [list(found.families.sets_of(vertex)) for vertex in range(3)] == [
        [(1,), (2,)],
        [],
        [(0, 1)],
    ]
    assert (
        found.names == ("a", "b", "c")
        and found.lower_bounds.tolist() == [2, 0, 1]
        and found.complete
    )


@pytest.mark.parametrize("name", ["x.jkl", "none/x.qbs"])
def test_a_place_that_cannot_be_written_is_told_before_the_search(run, tmp_path, name):
    done = run("missing.jkl", "-o", name)
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and f"{name}" in done.stderr
    assert "cannot write" in done.stderr and (tmp_path / "x.jkl").read_text() == FILE
