"""`learn` from end to end, what it keeps, and how sure edges are."""

import inspect
import json
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pandas
import polars
import pytest
import typer

import qubayes
from candidate_cases import assert_one_line, data_file, dependent_data, run, with_large_tables
from qubayes import QubayesError, SettingError, TooLargeError
from qubayes.candidates import Candidates, CandidateSearch, Stamp, example, identify
from qubayes.cli import app
from qubayes.data import ReadSettings
from qubayes.foundation.stop import Reason
from qubayes.foundation.workers import Workers
from qubayes.learning import LearnSettings, RunFolder, bootstrap, learn
from qubayes.network import read_network
from qubayes.qubo import decode, encode_sets
from qubayes.qubo.subsets import cover
from qubayes.scores import Score, local_score
from qubayes.search import (
    SOLVERS,
    Ending,
    Limits,
    Run,
    read_solution,
    registered,
    solve,
    write_solution,
)

DATA = dependent_data(8, 300, seed=1)


def assert_learned(learned):
    """The score is that of the network on the data, and the energy is minus the score."""
    scores = [
        local_score(learned.dataset, vertex, parents, learned.settings.chosen_score)
        for vertex, parents in enumerate(learned.network.parents)
    ]
    assert learned.solution.score == pytest.approx(sum(scores), rel=1e-12)
    decoded = decode(learned.formulation, encode_sets(learned.formulation, learned.solution.choice))
    assert decoded.energy == pytest.approx(-learned.solution.score, rel=1e-9)
    assert learned.network.tables is not None


@pytest.mark.parametrize("score", ["bdeu", "bds", "bic"])
def test_learns_the_optimum_and_proves_it(score):
    learned = learn(DATA, 2, score=score)
    assert_learned(learned)
    assert learned.solution.proved and learned.solution.gap == 0
    exact = solve(identify(DATA, CandidateSearch(2, Score(score))), "exact", limits=Limits(20.0))
    assert learned.solution.score == pytest.approx(exact.score, rel=1e-12)


def test_takes_data_frames_and_files(tmp_path):
    table = polars.DataFrame(
        {
            name: [DATA.states[i][code] for code in DATA.codes[i]]
            for i, name in enumerate(DATA.names)
        }
    )
    from_frame = qubayes.learn(table, max_parents=2)
    from_file = qubayes.learn(data_file(tmp_path, DATA), max_parents=2)
    assert from_frame.network.parents == from_file.network.parents
    assert from_frame.dataset.checksum == from_file.dataset.checksum


def test_the_same_seed_and_moves_give_the_same_network():
    first, second = (
        learn(DATA, 2, solver="anneal", time_limit=None, moves=3000, seed=5) for _ in range(2)
    )
    assert first.network.parents == second.network.parents


def test_moves_need_a_solver_that_counts():
    with pytest.raises(SettingError, match="counts no moves"):
        learn(DATA, 2, solver="exact", moves=100)


def test_paper_bits_are_those_of_the_papers_formulation():
    candidates = identify(DATA, CandidateSearch(2))
    subsets = cover(candidates)
    learned = learn(DATA, 2)
    paper = qubayes.formulate(candidates, subsets, order="scc", penalty="paper")
    assert learned.paper_bits["r"] == paper.bits["r"]
    assert learned.paper_bits["z"] == paper.bits["z"]
    assert learned.bits["total"] <= learned.paper_bits["total"]
    assert learned.bits == learned.formulation.bits


@pytest.mark.parametrize("solver", ["auto", "sa"])
def test_only_a_solver_of_the_qubo_needs_one(solver, set_memory):
    learned = learn(DATA, 2, solver=solver, time_limit=0.5)
    assert (learned.solution.energy is None) == (solver == "auto")
    assert ("formulation" in learned.seconds) == (solver == "sa")
    bits = learned.bits
    set_memory(10)
    if solver == "auto":
        assert learn(DATA, 2).bits == bits
    else:
        with pytest.raises(TooLargeError, match="takes about"):
            learn(DATA, 2, solver=solver)


def test_a_run_folder_is_gone_on_from(tmp_path):
    first = learn(DATA, 2, run_dir=tmp_path / "run")
    files = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "run").iterdir()}
    assert set(files) == {"candidates.qbc", "solution.json", "run.json", "run.lock"}
    second = learn(DATA, 2, run_dir=tmp_path / "run")
    assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "run").iterdir()} == files
    assert second.solution.score == first.solution.score
    assert second.solution.trace == first.solution.trace
    assert second.bits == first.bits


def test_a_run_folder_of_other_settings_is_not_used(tmp_path):
    learn(DATA, 1, run_dir=tmp_path)
    other = learn(DATA, 2, run_dir=tmp_path)
    assert other.solution.score == learn(DATA, 2).solution.score
    assert other.candidates.stamp.max_parents == 2


@pytest.mark.parametrize("name", ["candidates.qbc", "solution.json", "run.json"])
@pytest.mark.parametrize("damage", [b"", b"{}", b"\xff\xfe\x00 nothing"])
def test_a_damaged_file_of_a_run_folder_is_made_anew(tmp_path, name, damage):
    first = learn(DATA, 1, run_dir=tmp_path)
    (tmp_path / name).write_bytes(damage)
    again = learn(DATA, 1, run_dir=tmp_path)
    assert again.solution.score == first.solution.score
    assert (tmp_path / name).read_bytes() != damage


def test_without_a_folder_nothing_is_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert RunFolder(None).kept("x", {}, lambda: 5, None, None) == 5
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(QubayesError, match="cannot make the run folder"):
        learn(DATA, 1, run_dir=tmp_path / "file" / "run")


def test_solutions_survive_their_file(tmp_path):
    candidates = identify(DATA, CandidateSearch(2))
    solution = solve(candidates, "anneal", limits=Limits(None, moves=1000))
    write_solution(solution, tmp_path / "x.json")
    again = read_solution(tmp_path / "x.json", candidates)
    assert again.parents == solution.parents and again.score == solution.score
    assert (
        again.trace == solution.trace
        and again.bound == solution.bound
        and again.status == solution.status
    )


@pytest.mark.parametrize(
    "change",
    [
        {"choice": [0]},
        {"choice": [-1] * 8},
        {"choice": None},
        {"bound": "x"},
        {"trace": 5},
        {"seed": None},
    ],
)
def test_a_wrong_solution_file_is_refused(tmp_path, change):
    candidates = identify(DATA, CandidateSearch(2))
    path = tmp_path / "x.json"
    write_solution(solve(candidates, "anneal", limits=Limits(None, moves=10)), path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(QubayesError):
        read_solution(path, candidates)


def test_bootstrap_shows_its_progress_from_the_start():
    seen = []
    bootstrap(DATA, CandidateSearch(1), 2, on_progress=seen.append)
    assert [(part.stage, part.done, part.total) for part in seen] == [
        ("bootstrap", done, 2) for done in (0, 1, 2)
    ]


def test_bootstrap_is_repeatable_and_goes_on(tmp_path):
    whole = bootstrap(DATA, CandidateSearch(1), 4, seed=2)
    kept = tmp_path / "kept.json"
    bootstrap(DATA, CandidateSearch(1), 2, seed=2, keep=kept)
    assert len(json.loads(kept.read_text())["networks"]) == 2
    resumed = bootstrap(DATA, CandidateSearch(1), 4, seed=2, keep=kept)
    assert (resumed.frequencies == whole.frequencies).all()
    assert resumed.consensus == whole.consensus
    # the first two of the four that are kept
    fewer = bootstrap(DATA, CandidateSearch(1), 2, seed=2, keep=kept)
    assert (
        fewer.samples == 2
        and (fewer.frequencies == bootstrap(DATA, CandidateSearch(1), 2, seed=2).frequencies).all()
    )
    assert whole.frequencies.min() >= 0 and (whole.frequencies + whole.frequencies.T).max() <= 1


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_sample_whose_search_was_interrupted_does_not_count(tmp_path):
    """Ctrl-C is pressed once the solver listens, in the search of the second sample."""
    data, kept = dependent_data(25, 200, seed=3), tmp_path / "kept.json"

    def press() -> None:
        while signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            time.sleep(1e-4)
        os.kill(os.getpid(), signal.SIGINT)

    def show(progress) -> None:
        if progress.done == 1:
            threading.Thread(target=press).start()

    found = bootstrap(
        data, CandidateSearch(2), 3, seed=2, workers=Workers(1), keep=kept, on_progress=show
    )
    assert found.samples == 1 and len(json.loads(kept.read_text())["networks"]) == 1
    assert (found.frequencies == bootstrap(data, CandidateSearch(2), 1, seed=2).frequencies).all()


def test_a_certain_edge_is_always_found():
    rain = np.random.default_rng(0).integers(0, 2, 200)
    table = polars.DataFrame(
        {"rain": rain, "wet": rain, "noise": np.random.default_rng(1).integers(0, 2, 200)}
    )
    learned = learn(table, 2, bootstrap=5)
    assert learned.confidence is not None
    assert learned.confidence.of(0, 1) == 1.0
    assert learned.confidence.of(0, 2) < 0.7


@pytest.mark.parametrize("samples", [0, -1])
def test_a_number_of_samples_that_makes_no_sense(samples):
    with pytest.raises(SettingError):
        bootstrap(DATA, CandidateSearch(1), samples)


# The command


def test_the_command_writes_what_was_asked_for(tmp_path, capsys):
    path = data_file(tmp_path, DATA)
    out, page, trace = (tmp_path / name for name in ("out.bif", "out.html", "out.csv"))
    code, text, _ = run(
        capsys,
        "learn",
        path,
        "-m",
        2,
        "-o",
        out,
        "--report",
        page,
        "--trace",
        trace,
        "--run-dir",
        tmp_path / "run",
    )
    assert code == 0
    assert (
        text.startswith("Proved optimal")
        and "in the paper's formulation)" in text
        and f"{page}   report, open it in a browser" in text
    )
    assert read_network(out).edges == learn(DATA, 2).network.edges
    assert trace.read_text().startswith("seconds,score\n0.0,")
    assert page.read_text().startswith("<!doctype html>") or page.read_text().startswith(
        "<!DOCTYPE html>"
    )


def test_the_commands_json(tmp_path, capsys):
    code, text, _ = run(
        capsys, "learn", data_file(tmp_path, DATA), "-m", 1, "--bootstrap", 2, "--json"
    )
    assert code == 0
    value = json.loads(text)
    assert {
        "score",
        "empty_score",
        "bound",
        "gap",
        "proved",
        "solver",
        "seconds",
        "network",
        "status",
    } <= set(value)
    assert value["proved"] is True and value["gap"] == 0
    assert value["provenance"]["data"]["checksum"] == DATA.checksum
    assert value["confidence"]["samples"] == 2


def test_bad_usage_is_one_line(tmp_path, capsys):
    path = data_file(tmp_path, DATA)
    code, _, err = run(capsys, "learn", path, "--solver", "magic")
    assert_one_line(code, err, "'magic'", "choose one of")
    code, _, err = run(capsys, "learn", path, "-o", tmp_path / "x.nothing")
    assert_one_line(code, err, ".bif")
    code, _, err = run(capsys, "learn", tmp_path / "absent.csv")
    assert_one_line(code, err, "absent.csv")


def test_solve_command_for_every_solver(tmp_path, capsys):
    path = tmp_path / "x.jkl"
    qubayes.write_candidates(identify(dependent_data(5, 200, seed=3), CandidateSearch(2)), path)
    scores = {}
    for solver in registered():
        code, text, err = run(
            capsys, "solve", path, "--solver", solver, "--time-limit", 1, "--seed", 1, "--json"
        )
        assert code == 0, (solver, err)
        value = json.loads(text)
        scores[solver] = value["score"]
        assert value["solver"] == solver and value["status"]
    assert scores.pop("dimod") <= scores["exact"]  # whatever its sampler finds in a second
    assert max(scores.values()) - min(scores.values()) < 1e-9, scores


def test_solve_command_options(tmp_path, capsys):
    path, out = tmp_path / "x.jkl", tmp_path / "x.graphml"
    qubayes.write_candidates(identify(DATA, CandidateSearch(2)), path)
    arguments = (
        "solve",
        path,
        "--time-limit",
        1,
        "--bound",
        2,
        "--presolve",
        1,
        "-o",
        out,
        "--trace",
        tmp_path / "t",
    )
    arguments = (*arguments, "--bits", "--solver", "anneal")
    code, text, err = run(capsys, *arguments)
    assert code == 0, err
    assert "Proved optimal" in text and "equal to minus the score" in text
    code, text, err = run(capsys, "solve", path, "--start", out, "--moves", 0, "--json")
    assert code == 0, err
    assert json.loads(text)["score"] == pytest.approx(learn(DATA, 2).solution.score)
    code, _, err = run(capsys, "solve", path, "--set", "replicas")
    assert_one_line(code, err, "NAME=VALUE")
    code, _, err = run(capsys, "solve", path, "--set", "nothing=1")
    assert_one_line(code, err, "no setting 'nothing'")


# Python as people write it


def test_every_option_of_the_command_has_its_name_in_python():
    command = typer.main.get_command(app).commands["learn"]
    settings = {field.name for kind in (LearnSettings, ReadSettings) for field in fields(kind)}
    names = settings | set(inspect.signature(learn).parameters)
    assert {option.name for option in command.params} - {"as_json", "help"} <= names


def test_files_are_written_from_python(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("known.json").write_text(json.dumps({"forbidden": [[DATA.names[0], DATA.names[1]]]}))
    files = {"output": "x.bif", "report": "x.html", "qubo": "x.bqm", "trace": "x.csv"}
    learned = learn(DATA, 1, **files, threads=1, knowledge="known.json")
    assert all(Path(name).exists() for name in files.values())
    assert read_network("x.bif").parents == learned.network.parents
    assert learned.settings.knowledge.forbidden == ((DATA.names[0], DATA.names[1]),)
    with pytest.raises(QubayesError, match="ending"):
        learn(DATA, 1, report="x.pdf")


def test_a_file_that_cannot_be_written_costs_no_network(tmp_path):
    with pytest.warns(UserWarning, match="not every file was written"):
        learned = learn(
            with_large_tables(),
            2,
            score="loglik",
            output=tmp_path / "x.bif",
            trace=tmp_path / "x.csv",
        )
    assert learned.solution.proved and (tmp_path / "x.csv").exists()


def test_messages_name_arguments_in_python_and_flags_on_the_command_line(tmp_path, capsys):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n,2\n")
    with pytest.raises(QubayesError, match="with missing='drop'"):
        learn(path)
    assert "with --missing drop" in run(capsys, "learn", path)[2]
    with pytest.raises(QubayesError, match="with missing='drop'"):
        learn(path)  # as before the command


def test_what_a_notebook_shows():
    table = polars.DataFrame({"<b>": [0, 1] * 20, "c": [0, 1] * 20})
    learned = learn(table, 1)
    page = learned._repr_html_()
    assert "Proved optimal" in page and "<svg" in page and "<b>" not in page
    assert (
        str(learned) == f"2 variables, 1 edge, score {learned.solution.score:,.2f}, proved optimal"
    )
    assert (
        "&lt;b&gt;" in learned.candidates._repr_html_()
        and "2 candidate sets of 2 variables" in str(learned.candidates)
    )
    assert (
        " binary variables: " in str(learned.formulation)
        and "interactions" in learned.formulation._repr_html_()
    )


def test_bars_in_a_notebook(monkeypatch):
    class ZMQInteractiveShell:
        """What IPython has in the kernel of a notebook."""

    seen = []

    @contextmanager
    def bars():
        yield lambda progress: seen.append(progress.stage)

    monkeypatch.setattr("qubayes.learning.pipeline.progress_bars", bars)
    learn(DATA, 1)
    assert seen == []
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=ZMQInteractiveShell))
    learn(DATA, 1)
    assert {"candidates", "auto"} <= set(seen)


def test_the_log_has_stages_and_doubts(caplog, tmp_path, capsys):
    caplog.set_level("INFO", "qubayes")
    learn(polars.DataFrame({"id": range(40), "b": [0, 1] * 20}), 1)
    assert "40 rows of 2 variables" in caplog.text and "candidates: " in caplog.text
    [doubt] = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert (
        "'id' has 40 states in 40 rows" in doubt
        and "ignore=['id']" in doubt
        and "bins={'id': 3}" in doubt
    )
    code, _, error = run(capsys, "--verbose", "learn", data_file(tmp_path, DATA), "-m", 1)
    assert code == 0 and "qubayes: candidates: " in error


DAYS = pandas.date_range("2026-01-01", periods=40)


@pytest.mark.parametrize(
    ("column", "bins", "doubts"),
    [
        (
            DAYS,
            None,
            "'x' has 40 states in 40 rows and may be an identifier; leave it out with ignore=['x']",
        ),
        (
            [f"P{i}" for i in range(40)],
            3,
            "'x' has 40 states in 40 rows and may be an identifier; leave it out with",
        ),
        (
            range(40),
            3,
            "'x' has another whole number in each of 40 rows and may be an identifier; leave it out with",
        ),
        (range(40), {"x": 3}, ""),
        ([*range(39), 38], 3, ""),
        ([i + 0.5 for i in range(40)], 3, ""),
    ],
)
def test_a_column_whose_values_all_differ_is_doubted(caplog, column, bins, doubts):
    """Bins are advised for numbers only; a column that is named in `bins` is not doubted."""
    learn(pandas.DataFrame({"x": column, "b": [0, 1] * 20}), 1, bins=bins)
    messages = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(messages) == (1 if doubts else 0)
    assert all(doubts in message and "bins" not in message for message in messages)


# What a search would cost


MANY = dependent_data(60, 10, seed=0)  # so many that m = 3 is predicted within a second or less


def test_a_search_that_the_time_limit_does_not_allow_is_refused(tmp_path, capsys):
    with pytest.raises(
        SettingError, match=r"max_parents=3 would take about .*; the limit is 0 s: give more time"
    ):
        learn(MANY, 3, time_limit=0)
    data = data_file(tmp_path, MANY)
    for command in ("learn", "candidates"):
        code, _, error = run(capsys, command, data, "-m", 3, "--time-limit", 0)
        assert_one_line(
            code, error, "--max-parents 3 would take about", "the limit is 0 s: give more time"
        )


def slow(set_clock, factor):
    """Let the clock of the forecasts run faster, as if the machine were slower."""
    clock = SimpleNamespace(
        perf_counter=lambda: factor * time.perf_counter(),
        process_time=lambda: factor * time.process_time(),
    )
    set_clock(clock, "qubayes.candidates.forecast")


def test_a_time_limit_chooses_the_search_and_a_resumed_run_keeps_it(
    set_clock, tmp_path, capsys, caplog
):
    slow(set_clock, 100.0)
    found = learn(MANY, time_limit=4, solver="exact", run_dir=tmp_path / "run")
    search = found.settings.search
    assert search != CandidateSearch(3) and "is taken, about" in caplog.text
    stamp = found.candidates.stamp
    assert (stamp.max_parents, stamp.possible_parents) == (
        search.max_parents,
        search.possible_parents,
    )
    slow(set_clock, 0.0)
    again = learn(MANY, time_limit=4, solver="exact", run_dir=tmp_path / "run")
    assert again.settings.search == search
    whole = learn(MANY, time_limit=4, solver="exact").settings.search
    assert whole == CandidateSearch(3, Score("bdeu"))


def test_candidates_choose_a_search_too(set_clock, tmp_path, capsys):
    slow(set_clock, 100.0)
    arguments = "candidates", data_file(tmp_path, MANY), "-o", tmp_path / "x.qbc", "--time-limit", 4
    code, _, error = run(capsys, *arguments)
    assert code == 0 and "is taken, about" in error
    code, _, error = run(capsys, *arguments, "--resume")
    assert_one_line(code, error, "--resume and --time-limit without --max-parents")


@pytest.mark.parametrize("command", ["learn", "candidates"])
def test_more_parents_than_other_variables_are_named(command, tmp_path, capsys):
    code, _, error = run(
        capsys, command, data_file(tmp_path, dependent_data(5, 30, seed=0)), "-m", 9
    )
    assert (
        code == 0
        and "--max-parents 9 is the same as --max-parents 4: there are 5 variables" in error
    )


@pytest.mark.parametrize("command", ["learn", "candidates"])
@pytest.mark.parametrize("limit", ["-3", "nan"])
def test_a_time_limit_is_not_negative(command, limit, tmp_path, capsys):
    code, _, error = run(capsys, command, data_file(tmp_path, DATA), "--time-limit", limit)
    assert_one_line(code, error, f"a time limit of {float(limit)} s; give 0 or more")


@dataclass(frozen=True)
class Watched:
    """A solver that keeps the seconds that it is given, and returns the start."""

    name: ClassVar[str] = "watched"
    takes: ClassVar[str] = "candidates"
    counts: ClassVar[str] = ""
    given: ClassVar[list[float | None]] = []

    def prepare(self) -> "Watched":
        return self

    def __call__(self, candidates: Candidates, run: Run, /) -> Ending:
        self.given.append(run.limits.seconds)
        return Ending("watched", {})


@pytest.fixture
def seconds_given(monkeypatch):
    """The seconds that a solver gets in each run of `learn` with solver="watched"."""
    monkeypatch.setitem(SOLVERS, "watched", f"{__name__}:Watched")
    Watched.given.clear()
    return Watched.given


def pipeline_at(set_clock, *times: float) -> None:
    """Let the clock of `learn` show these times, and the last one from then on."""
    clock = chain(times, repeat(times[-1]))
    set_clock(SimpleNamespace(perf_counter=lambda: next(clock)), "qubayes.learning.pipeline")


def test_the_time_limit_holds_for_all_stages(set_clock, seconds_given):
    pipeline_at(set_clock, 0.0, 0.0, 7.0)
    learn(DATA, 1, time_limit=20.0, solver="watched")
    learn(DATA, 1, solver="watched")
    assert seconds_given == [13.0, 10.0]


def test_the_solver_has_a_tenth_of_the_time_limit_in_any_case(set_clock, seconds_given):
    pipeline_at(set_clock, 0.0, 100.0)
    learn(DATA, 1, time_limit=20.0, solver="watched")
    assert seconds_given == [2.0]


def test_a_weak_bound_is_called_so():
    solution = learn(DATA, 1).solution
    weak = replace(solution, bound=solution.score + 0.5 * (solution.score - solution.empty_score))
    assert weak.describe_gap() == "not proved optimal"
    assert ", a weak bound.\n" in str(weak) and "gap" not in str(weak)
    near = replace(solution, bound=solution.score + 0.1 * (solution.score - solution.empty_score))
    assert near.describe_gap().startswith("gap 10 %")
    assert str(near).startswith("Not proved optimal: a better network can score at most")
    assert f"{near.bound:,.2f} (gap 10 %).\nThe bound is for networks with at most 1 parent" in str(
        near
    )


def test_what_is_said_of_grown_parent_sets_after_an_interrupt_and_of_required_edges():
    solution = learn(DATA, 1).solution
    also = replace(solution, stamp=Stamp(max_parents=2, grown=7))
    assert also.conclusion() == [
        "Proved optimal among all sets of at most 2 parents and 7 larger ones."
    ]
    none = replace(solution, stamp=Stamp(max_parents=2, grown=0))
    assert "no network with at most 2 parents per variable" in none.conclusion()[0]
    only = replace(solution, stamp=Stamp(grown=7))
    assert only.conclusion() == [
        "Best network of the parent sets that were grown; nothing is proved of other sets."
    ]
    open_ = replace(only, bound=solution.score + 1.0)
    assert open_.conclusion() == [
        "Nothing is proved: parent sets were grown, and others can be better."
    ]
    assert only.describe_gap() == open_.describe_gap() == "not proved optimal"
    assert f"{open_.bound:,.2f}" not in str(open_)
    pressed = replace(solution, bound=solution.score + 1.0, reason=Reason.INTERRUPTED)
    assert pressed.conclusion()[0] == "Interrupted: best network so far."
    assert pressed.conclusion()[1].startswith("A better network can score at most")
    assert "above the empty network" in str(solution)
    assert "above the network with the required edges only" in str(replace(solution, required=1))


@pytest.mark.parametrize(
    ("largest", "possible", "scope"),
    [
        (1, None, " with at most 1 parent per variable"),
        (2, None, " with at most 2 parents per variable"),
        (3, None, ""),
        (2, 3, " with at most 2 of 3 candidate parents per variable"),
        (3, 2, " with 2 candidate parents per variable"),
        (None, None, " for these candidate parent sets"),
    ],
)
def test_a_proof_says_for_which_networks_it_holds(largest, possible, scope):
    candidates = replace(example(4), stamp=Stamp(max_parents=largest, possible_parents=possible))
    solution = solve(candidates, "exact")
    assert solution.scope == scope
    assert solution.describe_gap() == f"proved optimal{scope}"
    proved = f": no network{scope} scores higher." if largest else f"{scope}."
    assert str(solution).startswith(f"Proved optimal{proved}\n")
    told = replace(solution, bound=solution.bound + 1.0).conclusion()
    assert f"{solution.bound + 1.0:,.2f}" in told[0]
    assert told[1:] == ([f"The bound is for networks{scope}."] if scope else [])
