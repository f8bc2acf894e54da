"""Settings, limits and arguments of the wrong kind are refused in one sentence that says what is allowed."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from qubayes import MissingPackageError, QubayesError, SettingError
from qubayes.candidates import write_candidates
from qubayes.cli import app
from qubayes.learning import LearnSettings, SolveSettings
from qubayes.search import Limits, Reason, registered, solve, solver_named
from solve_cases import formulated, random_candidates


@pytest.mark.parametrize(
    ("name", "setting", "value", "words"),
    [
        ("sa", "reads", "x", "give a whole number or none"),
        ("sa", "reads", True, "give a whole number or none"),
        ("anneal", "hot", "x", "give a number or none"),
        ("anneal", "walks", 1.5, "give a whole number"),
        ("anneal", "cold", None, "give a number"),
        ("anneal", "twins", 1, "give true or false"),
        ("order-sa", "hot", "x", "give a number"),
        ("auto", "share", "x", "give a number"),
        ("digital", "replicas", 1.5, "give a whole number"),
        ("dimod", "parameters", 5, "give a mapping or text"),
        ("bqp", "backend", 1, "give text"),
        ("hillclimb", "dataset", 5, "give a Dataset, text, a path or none"),
    ],
)
def test_a_setting_of_the_wrong_kind(name, setting, value, words):
    with pytest.raises(SettingError) as caught:
        solver_named(name, **{setting: value})
    assert str(caught.value) == f"{name}: {setting} = {value!r}; {words}"


@pytest.mark.parametrize(
    ("name", "setting", "fine", "wrong"),
    [
        ("auto", "share", (0, 0.5, 1), (-0.001, 1.001, math.nan)),
        ("anneal", "cold", (1e-300, 2.0), (0.0, -1.0, math.inf)),
        ("anneal", "hot", (0.03, 1e9), (0.02, math.inf)),
        ("anneal", "patience", (1e-9, math.inf), (0.0, -1.0)),
        ("digital", "first_temperature", (1e9,), (math.inf, 0.0)),
        ("digital", "last_temperature", (1e-9,), (0.0, math.inf)),
    ],
)
def test_settings_at_the_ends_of_their_ranges(name, setting, fine, wrong):
    for value in fine:
        assert getattr(solver_named(name, **{setting: value}), setting) == value
    for value in wrong:
        with pytest.raises(SettingError, match=setting.split("_")[-1]):
            solver_named(name, **{setting: value})


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("anneal", {"hot": 5, "cold": np.float64(0.1), "walks": np.int64(3), "twins": False}),
        ("anneal", {"hot": None}),
        ("sa", {"reads": None, "first_temperature": np.float32(50)}),
        ("dimod", {"parameters": {"num_reads": 1}, "sampler": object()}),
        ("dimod", {"parameters": "{}"}),
        ("hillclimb", {"dataset": Path("x.csv")}),
    ],
)
def test_a_setting_of_the_right_kind(name, settings):
    solver = solver_named(name, **settings)
    assert {setting: getattr(solver, setting) for setting in settings} == settings


@pytest.mark.parametrize("name", registered())
def test_every_setting_accepts_its_default(name):
    solver = solver_named(name)
    assert (
        solver_named(name, **{field: getattr(solver, field) for field in solver.__slots__})
        == solver
    )


@pytest.mark.parametrize(
    "wrong",
    [
        ("1",),
        (True,),
        (None, 1.5),
        (None, "3"),
        (None, True),
        (1.0, None, 0.5),
        (1.0, None, None),
        (math.inf,),
    ],
)
def test_limits_of_the_wrong_kind(wrong):
    with pytest.raises(SettingError, match="give "):
        Limits(*wrong)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"problem": "s.jkl"}, "the problem is of type str; give candidates"),
        ({"problem": None}, "the problem is of type NoneType"),
        ({"solver": 5}, "the solver is of type int; give a name"),
        ({"limits": 5}, "limits is of type int; give Limits"),
        ({"limits": 0}, "limits is of type int; give Limits"),
        ({"start": "x"}, "start is of type str; give a Network"),
        ({"bound": math.nan}, "bound = nan; give a number"),
        ({"bound": -math.inf}, "bound = -inf; give a number"),
        ({"bound": "3"}, "bound = '3'; give a number"),
        ({"bound_seconds": -1.0}, "-1.0 s for a bound; give 0 or more"),
        ({"bound_seconds": math.nan}, "nan s for a bound"),
    ],
)
def test_arguments_of_the_wrong_kind(given, words):
    with pytest.raises(QubayesError) as caught:
        solve(**{"problem": random_candidates(3, 0), **given})
    assert words in str(caught.value)


def test_a_formulation_is_a_problem_too():
    assert solve(formulated(random_candidates(3, 0)), "exact", limits=Limits(5.0)).proved


@pytest.fixture
def files(tmp_path):
    """A folder with candidate sets."""
    write_candidates(random_candidates(6, 0), tmp_path / "x.qbc")
    return tmp_path


def test_the_default_solver_is_that_of_learn(files):
    candidates = random_candidates(7, 0)
    found = solve(candidates)
    assert (found.solver, found.status, found.reason) == ("auto", "optimal", Reason.PROVED)
    # a proof counts no moves
    assert solve(candidates, limits=Limits(None, moves=10)).solver == "anneal"
    assert SolveSettings().solver == LearnSettings().solver == "auto"
    assert SolveSettings(moves=10).solver_name == "anneal"
    done = CliRunner().invoke(app, ["solve", str(files / "x.qbc")])
    assert done.exit_code == 0 and "Proved optimal" in done.output and "energy" not in done.output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--certificate p.json --solver anneal", "--certificate needs --solver exact"),
        ("--certificate p.json --solver auto", "--certificate needs --solver exact"),
        ("--certificate p.json --presolve 3", "--certificate takes no --presolve"),
        (
            "--set certificate=p.json --solver exact --presolve 3",
            "--certificate takes no --presolve",
        ),
        ("--best 2 --solver anneal", "--solver anneal makes no list"),
        ("--within 2 --solver auto", "--solver auto makes no list"),
        ("--best 2 --bound 3", "--bound has no effect"),
        ("--best 2 --bits", "--bits has no effect"),
        ("--best 2 --moves 3", "--moves has no effect"),
        ("--within 2 --trace t.csv", "--trace has no effect"),
        ("--within 2 --classes", "--classes has no effect without --best"),
        ("--classes", "--classes has no effect without --best"),
        ("--solver exact --order scc", "--order has no effect on exact"),
        ("--penalty tight", "--penalty has no effect on auto"),
        ("--cover search --no-bits", "--cover has no effect on auto"),
        ("--solver sa --no-bits", "sa solves the QUBO"),
    ],
)
def test_an_option_of_solve_is_obeyed_or_refused(files, options, words, monkeypatch):
    monkeypatch.chdir(files)
    done = CliRunner().invoke(app, ["solve", "x.qbc", *options.split()])
    assert done.exit_code == 1 and words in str(done.exception), done.output
    assert {path.name for path in files.iterdir()} == {"x.qbc"}


@pytest.mark.parametrize(
    "options", ["--bits --order scc --cover search", "--best 1 --solver exact --threads 1 --seed 3"]
)
def test_options_of_solve_that_go_together(files, options):
    assert CliRunner().invoke(app, ["solve", str(files / "x.qbc"), *options.split()]).exit_code == 0


PLUGIN = """
from dataclasses import dataclass
from typing import ClassVar
from qubayes.search import Ending

@dataclass(frozen=True)
class Best:
    tries: int = 1
    name: ClassVar[str] = "plugged"
    takes: ClassVar[str] = "candidates"
    counts: ClassVar[str] = ""
    def prepare(self): return self
    def __call__(self, candidates, run, /): return Ending("done", {"tries": self.tries})

class NoSolver: pass
"""


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """A package that brings solvers by entry points."""
    (tmp_path / "a_solver_from_elsewhere.py").write_text(PLUGIN)
    facts = tmp_path / "a_solver_from_elsewhere-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: a-solver-from-elsewhere\nVersion: 1.0\n"
    )
    points = "plugged = a_solver_from_elsewhere:Best\nwrong = a_solver_from_elsewhere:NoSolver\n"
    (facts / "entry_points.txt").write_text("[qubayes.solvers]\n" + points)
    monkeypatch.syspath_prepend(tmp_path)


def test_a_solver_of_another_package(plugin):
    solution = solve(random_candidates(3, 0), solver_named("plugged", tries=3))
    assert solution.solver == "plugged" and solution.statistics == {"tries": 3}
    with pytest.raises(SettingError, match="plugged: tries = 'x'; give a whole number"):
        solver_named("plugged", tries="x")
    with pytest.raises(SettingError, match=r"choose one of anneal.*plugged"):
        solver_named("magic")
    with pytest.raises(SettingError, match="registered as the solver 'wrong', but does not follow"):
        solver_named("wrong")


@pytest.mark.parametrize("name", ["order-sa", "asobs", "hillclimb", "bqp"])
@pytest.mark.usefixtures("without_plug_ins")
def test_a_solver_that_has_moved_says_where_it_is(name):
    with pytest.raises(MissingPackageError) as caught:
        solver_named(name)
    assert str(caught.value) == (
        f"solver {name!r} is now in the package qubayes-baselines. "
        "In a clone of qubayes run: pip install ./benchmarks/paper/baselines"
    )


def test_help_names_every_solver(plugin):
    done = CliRunner().invoke(app, ["solve", "--help"], terminal_width=500)
    assert done.exit_code == 0 and f"by one of {', '.join(registered())}." in done.output
    assert "plugged" in registered()


def test_a_search_over_candidates_loads_nothing_of_the_qubo():
    code = """
import sys
from qubayes.candidates import example
from qubayes.search import Limits, solve
solve(example(), "auto", limits=Limits(30.0))
solve(example(), "anneal", limits=Limits(None, 100), bound_seconds=1.0)
rooms = ("qubo", "machines", "quadratize", "report", "learning", "cli")
print([name for name in sys.modules if name.startswith(tuple(f"qubayes.{room}" for room in rooms))])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
