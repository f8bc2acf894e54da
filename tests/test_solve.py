"""Conformance suite: what every solver does, whichever it is."""

import math
import os
import signal
import threading
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from qubayes import ConstraintError, QubayesError, SettingError
from qubayes.candidates import Candidates
from qubayes.foundation.families import Families
from qubayes.foundation.graph import find_cycle
from qubayes.foundation.progress import Progress
from qubayes.foundation.workers import Workers
from qubayes.network import Network
from qubayes.qubo import Formulation
from qubayes.search import (
    Ending,
    Limits,
    Reason,
    Run,
    Solution,
    Solver,
    read_solution,
    registered,
    solve,
    solver_named,
    write_solution,
)
from solve_cases import best_score, formulated, random_candidates, with_required_edge

CLOCK = [0.0]
# those of plug-ins too, such as the package in benchmarks/paper/baselines
NAMES = list(registered())
COUNTING = [name for name in NAMES if solver_named(name).counts]


def problem_of(name: str, candidates: Candidates) -> Candidates | Formulation:
    """What the solver takes."""
    return formulated(candidates) if solver_named(name).takes == "formulation" else candidates


def hard_for(name: str) -> Candidates:
    """Candidates that the solver does not prove in seconds (order ideals end at 63 vertices); few for a QUBO."""
    return (
        random_candidates(25, 7, sets=60)
        if solver_named(name).takes == "formulation"
        else random_candidates(70, 0, 120)
    )


def solver_of(name: str) -> Solver:
    """The solver as it is; a sampler reads once unless it is told otherwise, which is not enough for an optimum."""
    reads = {"num_reads": 100, "num_sweeps": 1000, "time_limit": None}
    return solver_named(name, **({"parameters": reads} if name == "dimod" else {}))


def enough(name: str, seed: int = 1) -> Limits:
    """Limits within which small problems are solved, however busy the machine is."""
    moves = 100_000
    return (
        Limits(None, moves=moves, seed=seed)
        if solver_named(name).counts
        else Limits(20.0, seed=seed)
    )


def searched(name: str, candidates: Candidates, **more: Any) -> Solution:
    """The solver's result for the candidates."""
    more.setdefault("limits", enough(name))
    return solve(problem_of(name, candidates), solver_of(name), **more)


def assert_sound(solution: Solution, candidates: Candidates) -> None:
    """The network is a DAG of candidate sets, and its score is theirs."""
    families = [dict(candidates.of(vertex)) for vertex in range(candidates.n)]
    total = math.fsum(families[vertex][parents] for vertex, parents in enumerate(solution.parents))
    assert solution.score == total
    assert not find_cycle(solution.parents)
    assert solution.bound >= solution.score
    assert solution.trace[-1][1] == solution.score
    assert [score for _, score in solution.trace] == sorted({score for _, score in solution.trace})
    assert solution.status


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", NAMES)
def test_small_instances_are_solved(name, seed):
    candidates = random_candidates(6, seed)
    solution = searched(name, candidates, limits=enough(name, seed))
    assert_sound(solution, candidates)
    assert solution.score == pytest.approx(best_score(candidates), abs=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_ties(name):
    candidates = random_candidates(5, 3, ties=True)
    solution = searched(name, candidates)
    assert_sound(solution, candidates)
    assert solution.score == best_score(candidates)


@pytest.mark.parametrize("name", NAMES)
def test_required_edges_are_kept(name):
    candidates = with_required_edge(5, 2)
    solution = searched(name, candidates)
    assert_sound(solution, candidates)
    assert 0 in solution.parents[1]
    assert solution.score == pytest.approx(best_score(candidates), abs=1e-9)


@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_few_vertices(name, n):
    candidates = random_candidates(n, 0)
    solution = searched(name, candidates)
    if n:
        assert_sound(solution, candidates)
    assert solution.score == pytest.approx(best_score(candidates))
    if n < 2:
        assert solution.proved


@pytest.mark.parametrize("name", NAMES)
def test_vertices_without_candidate_sets(name):
    candidates = Candidates(("a", "b"), Families.of([[()], [()]]), np.array([-1.0, -2.0]))
    solution = searched(name, candidates)
    assert solution.parents == ((), ()) and solution.score == -3.0
    assert solution.proved and solution.gap == 0.0


@pytest.mark.parametrize("name", NAMES)
def test_no_time_returns_the_start(name):
    candidates = random_candidates(5, 0)
    solution = searched(name, candidates, limits=Limits(0.0))
    assert solution.parents == ((),) * 5 and solution.score == solution.empty_score
    assert solution.reason is Reason.TIME and "no time" in solution.status


@pytest.mark.parametrize("name", COUNTING)
def test_the_same_seed_and_moves_give_the_same_result_on_any_number_of_threads(name):
    candidates = random_candidates(12, 5, sets=20)
    results = [
        searched(
            name, candidates, limits=Limits(None, moves=2000, seed=3), workers=Workers(threads)
        )
        for threads in (1, 2, 2)
    ]
    assert len({result.parents for result in results}) == 1
    assert {result.reason for result in results} <= {Reason.FINISHED, Reason.PROVED}
    assert len({tuple(score for _, score in result.trace)[-1] for result in results}) == 1


@pytest.mark.parametrize("name", [name for name in NAMES if name not in COUNTING])
def test_a_solver_without_moves_says_so(name):
    with pytest.raises(SettingError, match="counts no moves"):
        searched(name, random_candidates(3, 0), limits=Limits(None, moves=10))


@pytest.mark.parametrize("name", NAMES)
def test_a_time_limit_ends_the_search(name):
    """It would take minutes. Samplers fill the time as they see fit: their own tests give them a clock that ticks."""
    candidates = hard_for(name)
    solution = solve(problem_of(name, candidates), name, limits=Limits(0.3))
    assert_sound(solution, candidates)
    if name not in ("sa", "digital", "dimod"):
        assert solution.reason == Reason.TIME
    assert all(seconds <= solution.seconds for seconds, _ in solution.trace)


@pytest.mark.parametrize("name", NAMES)
def test_a_good_start_is_never_lost(name):
    candidates = random_candidates(8, 9)
    best = searched("exact", candidates, limits=Limits(5.0))
    assert best.proved
    again = searched(name, candidates, start=best.network, limits=Limits(0.05))
    assert again.score == best.score and best.reason is Reason.PROVED


@pytest.mark.parametrize("name", NAMES)
def test_an_interrupt_returns_the_best_so_far(name):
    candidates = hard_for(name)
    problem = problem_of(name, candidates)
    solver = solver_named(name).prepare()
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    solution = solve(problem, solver, limits=Limits(600.0))
    timer.cancel()
    assert_sound(solution, candidates)
    assert solution.reason is Reason.INTERRUPTED and "interrupted" in solution.status
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("name", NAMES)
def test_progress_tells_the_score_and_its_receiver_may_interrupt(name):
    candidates, told = hard_for(name), list[Progress]()

    def receive(progress: Progress) -> None:
        told.append(progress)
        raise KeyboardInterrupt

    solution = searched(name, candidates, limits=Limits(600.0), on_progress=receive)
    assert_sound(solution, candidates)
    assert solution.interrupted
    assert told and all(0 <= progress.done <= progress.total for progress in told)
    assert "score" in told[0].note


def test_an_interrupt_while_bounding_keeps_the_bound_so_far():
    candidates = random_candidates(25, 7, sets=60)
    told: list[str] = []

    def interrupt(progress: Progress) -> None:
        told.append(progress.stage)
        os.kill(os.getpid(), signal.SIGINT)

    solution = solve(
        candidates, "anneal", limits=Limits(600.0), bound_seconds=600.0, on_progress=interrupt
    )
    assert told and solution.interrupted and set(told) == {"bound"}
    assert solution.status == "interrupted before the search; the start is returned"
    assert solution.bound >= solve(candidates, "anneal", limits=Limits(None, 20_000)).score


@pytest.mark.parametrize("name", NAMES)
def test_input_may_be_read_only_and_is_not_changed(name):
    candidates = random_candidates(6, 4)
    before = candidates.scores.copy()
    assert not candidates.scores.flags.writeable
    searched(name, candidates)
    assert (candidates.scores == before).all()


def test_a_formulation_gives_bits_whose_energy_is_minus_the_score():
    candidates = random_candidates(6, 1)
    formulation = formulated(candidates)
    solution = solve(formulation, "anneal", limits=Limits(None, moves=2000))
    assert solution.bits is not None and len(solution.bits) == formulation.qubo.bits
    assert solution.energy == pytest.approx(-solution.score, rel=1e-9)


def test_solvers_of_the_qubo_want_a_formulation():
    with pytest.raises(SettingError, match="formulate the candidates first"):
        solve(random_candidates(3, 0), "sa")


def test_a_bound_beforehand_gives_a_gap_or_a_proof():
    candidates = random_candidates(8, 2)
    solution = solve(candidates, "anneal", limits=Limits(None, 2**50), bound_seconds=60.0)
    assert solution.proved  # the search ends once the bound is reached


def test_unknown_names_are_refused():
    with pytest.raises(SettingError, match="choose one of anneal"):
        solver_named("magic")
    with pytest.raises(SettingError, match="has no setting 'magic'"):
        solver_named("anneal", magic=1)


@pytest.mark.parametrize(
    "limits", [{"seconds": -1.0}, {"seconds": math.nan}, {"moves": -1}, {"seed": -1}]
)
def test_limits_out_of_range(limits):
    with pytest.raises(SettingError):
        Limits(**limits)


def test_faults_of_the_candidates_are_named():
    bad = Candidates(("a", "b"), Families.of([[()], [(0,), ()]]), np.array([-1.0, math.inf, -2.0]))
    with pytest.raises(QubayesError, match="'b' scores inf"):
        solve(bad)
    with pytest.raises(QubayesError, match="'b' has no candidate set"):
        solve(replace(bad, families=Families.of([[()], []]), scores=np.array([-1.0])))


def test_a_cycle_of_required_edges_is_named():
    families = Families.of([[(2,)], [(0,)], [(1,)]])
    with pytest.raises(ConstraintError, match=r"form the cycle .* -> .* -> .* -> "):
        solve(Candidates(("a", "b", "c"), families, np.zeros(3)))


def test_a_start_with_other_names_is_refused():
    with pytest.raises(QubayesError, match="'x' is in only one"):
        solve(random_candidates(2, 0), start=Network(("v0", "v1", "x"), ((), (), ())))


@dataclass(frozen=True, slots=True)
class Prepared:
    """A solver that takes 100 seconds of a clock to prepare and finds nothing."""

    ready: bool = False

    name: ClassVar[str] = "prepared"
    takes: ClassVar[str] = "candidates"
    counts: ClassVar[str] = ""

    def prepare(self) -> "Prepared":
        CLOCK[0] += 100.0
        return Prepared(ready=True)

    def __call__(self, candidates: Candidates, run: Run, /) -> Ending:
        return Ending("ready" if self.ready else "not ready", {"seconds": run.elapsed})


def test_a_solver_is_prepared_before_the_clock_starts(set_clock):
    clock = SimpleNamespace(perf_counter=lambda: CLOCK[0])
    set_clock(clock, "qubayes.foundation.stop")
    began = CLOCK[0]
    solution = solve(random_candidates(4, 0), Prepared(), limits=Limits(30.0))
    assert solution.status == "ready" and solution.statistics["seconds"] == 0.0
    assert CLOCK[0] == began + 100.0
    assert solve(random_candidates(4, 0), Prepared(), limits=Limits(0.0)).status.startswith(
        "no time"
    )
    assert CLOCK[0] == began + 100.0


@dataclass(frozen=True)
class OneBitEach:
    """A model with a bit for each candidate set."""

    candidates: Candidates

    def state_of(self, choice: Any) -> tuple[Any, float]:
        bits = np.zeros(len(self.candidates.scores), np.bool_)
        bits[np.asarray(choice)] = True
        return bits, -float(self.candidates.scores[bits].sum())


def test_any_model_of_the_candidates_is_a_problem(tmp_path):
    problem = OneBitEach(random_candidates(5, 0))
    solution = solve(problem, "exact", limits=Limits(60.0))
    assert solution.energy == pytest.approx(-solution.score)
    assert solution.bits is not None and np.flatnonzero(solution.bits).tolist() == sorted(
        solution.choice.tolist()
    )
    write_solution(solution, tmp_path / "solution.json")
    again = read_solution(tmp_path / "solution.json", problem)
    assert again.energy == solution.energy and again.statistics == solution.statistics


@pytest.mark.parametrize("reason", Reason)
def test_a_solution_that_is_written_is_read_again(reason, tmp_path):
    candidates = random_candidates(5, 0)
    solution = replace(solve(candidates, "exact", limits=Limits(None)), reason=reason)
    write_solution(solution, tmp_path / "solution.json")
    again = read_solution(tmp_path / "solution.json", candidates)
    assert again.choice.tolist() == solution.choice.tolist()
    for name in (
        "score",
        "bound",
        "solver",
        "seed",
        "seconds",
        "status",
        "reason",
        "trace",
        "statistics",
    ):
        assert getattr(again, name) == getattr(solution, name), name


@pytest.mark.parametrize(("note", "told"), [("", "score -"), ("3 cuts", "3 cuts")])
def test_a_report_without_a_note_tells_the_score(note, told):
    reports = []
    run = Run(random_candidates(5, 0), Limits(10.0), Workers(1), on_progress=reports.append)
    while not reports:  # at most one in a tenth of a second
        run.report(note)
    assert reports[-1].note.startswith(told)
