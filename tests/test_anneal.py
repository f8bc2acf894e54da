"""The annealer: its results against the best of all networks, its limits and settings."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given

from annealing_cases import large, lists_of, problems
from qubayes import SettingError
from qubayes.candidates import Candidates, prune
from qubayes.foundation.families import Families
from qubayes.foundation.progress import Progress
from qubayes.foundation.workers import Workers
from qubayes.search import Limits, solve, solver_named
from reference.networks import best_by_exhaustion, best_by_subsets
from solve_cases import TickingClock, random_candidates


def many(n: int) -> Candidates:
    """Some 60 random sets for each of many vertices."""
    random = np.random.default_rng(n)
    lists = []
    for vertex in range(n):
        sets = {(): -50.0}
        for _ in range(60):
            sets[
                tuple(sorted({*random.integers(0, n, random.integers(1, 4)).tolist()} - {vertex}))
            ] = random.normal()
        lists.append([*({**sets, (): -50.0}.items())])
    return prune([f"v{v}" for v in range(n)], lists)


@given(problems(2, 4))
def test_the_two_oracles_agree(candidates):
    lists = lists_of(candidates)
    assert best_by_subsets(lists) == pytest.approx(best_by_exhaustion(lists), abs=1e-9)


@pytest.mark.parametrize("ties", [False, True])
def test_the_population_finds_the_best_of_all(ties):
    candidates = large(15, 5, ties=ties)
    solution = solve(candidates, limits=Limits(None, moves=100_000))
    assert solution.score == pytest.approx(best_by_subsets(lists_of(candidates)), abs=1e-9)
    assert solution.status == "number of moves reached"
    assert solution.statistics["moves"] == 100_000


def test_small_components_are_proved():
    candidates = random_candidates(9, 2, sets=10)
    solution = solve(candidates, "anneal", limits=Limits(None))
    assert (
        solution.proved
        and solution.status == "proved optimal"
        and solution.statistics["moves"] == 0
    )
    assert solution.score == pytest.approx(best_by_subsets(lists_of(candidates)), abs=1e-9)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_vertices_are_proved(n):
    candidates = random_candidates(n, 0)
    solution = solve(candidates, "anneal")
    assert solution.proved
    assert solution.score == pytest.approx(best_by_exhaustion(lists_of(candidates)) if n else 0.0)


def test_components_are_searched_apart():
    one, two = large(20, 1), random_candidates(6, 2)
    lists = [list(one.families.sets_of(v)) for v in range(20)]
    lists += [
        [tuple(m + 20 for m in members) for members in two.families.sets_of(v)] for v in range(6)
    ]
    names = tuple(f"v{v}" for v in range(26))
    both = Candidates(names, Families.of(lists), np.concatenate([one.scores, two.scores]))
    limits = Limits(None, moves=50_000)
    together, alone = solve(both, limits=limits), solve(one, limits=limits)
    assert together.score == pytest.approx(alone.score + best_by_subsets(lists_of(two)), abs=1e-9)
    assert together.statistics == {"moves": 50_000, "components": 2, "solved_components": 1}


def test_a_component_whose_bound_is_reached_ends_the_search():
    n = 20  # a ring in which every vertex prefers no one but has a worse set with its neighbour
    rings = Families.of([[((v + 1) % n,), ()] for v in range(n)])
    scores = np.tile([1.0, 0.0], n)
    scores[0] = 0.0  # the ring may be broken at vertex 0 for nothing
    solution = solve(
        Candidates(tuple(f"v{v}" for v in range(n)), rings, scores), "anneal", limits=Limits(None)
    )
    assert solution.score == n - 1 and solution.proved


def test_the_result_depends_on_the_seed_and_not_on_the_threads():
    candidates = large(40, 3)
    limits = Limits(None, moves=30_000, seed=4)
    one, two = (solve(candidates, limits=limits, workers=Workers(threads)) for threads in (1, 2))
    assert one.choice.tolist() == two.choice.tolist()
    assert [score for _, score in one.trace] == [score for _, score in two.trace]
    other = solve(candidates, limits=dataclasses.replace(limits, moves=300, seed=5))
    assert [score for _, score in other.trace] != [score for _, score in one.trace]


@pytest.mark.parametrize("moves", [0, 1, 13, 14_001])
def test_the_number_of_moves_is_kept(moves):
    solution = solve(large(), limits=Limits(None, moves=moves))
    assert solution.statistics["moves"] == moves


def test_more_moves_are_better_and_a_start_is_never_lost():
    candidates = large(60, 7)
    short = solve(candidates, limits=Limits(None, moves=2_000))
    longer = solve(candidates, limits=Limits(None, moves=400_000))
    assert longer.score > short.score
    again = solve(candidates, limits=Limits(None, moves=14), start=longer.network)
    assert again.score >= longer.score


def test_progress_of_moves_is_told():
    reports: list[Progress] = []
    solve(large(), limits=Limits(None, moves=500_000), on_progress=reports.append)
    assert reports and all(report.total == 500_000 for report in reports)
    assert [report.done for report in reports] == sorted(report.done for report in reports)


@pytest.mark.parametrize("seconds", [20.0, 60.0])
def test_the_time_limit_is_kept(set_clock, seconds):
    candidates, clock = many(300), TickingClock(0.1)
    set_clock(clock)
    solution = solve(candidates, "anneal", limits=Limits(seconds), workers=Workers(2))
    assert solution.status == "time limit reached; best so far returned"
    assert seconds <= clock.seconds < seconds + 5.0  # 50 looks
    assert solution.score > solution.empty_score


def test_a_limit_that_is_too_short_to_prepare_is_told():
    solution = solve(many(300), "anneal", limits=Limits(1e-3))
    assert solution.score == solution.empty_score and len(solution.trace) == 1
    assert solution.status == "the time limit is too short to begin; the start is returned"


@pytest.mark.parametrize(
    "wrong",
    [{"hot": 0.1, "cold": 0.5}, {"cold": 0.0}, {"cold": math.inf}, {"walks": 0}, {"hot": math.inf}],
)
def test_wrong_settings_are_told(wrong):
    with pytest.raises(SettingError, match="give"):
        solver_named("anneal", **wrong)
    assert solver_named("anneal", hot=0.5, cold=0.5).hot == 0.5  # annealing at one temperature


def test_one_walk_is_enough():
    candidates = large()
    alone = solve(candidates, solver_named("anneal", walks=1), limits=Limits(None, moves=5_000))
    assert alone.statistics["moves"] == 5_000 and alone.score > alone.empty_score


def test_patience_ends_annealing_that_finds_nothing_better():
    """The status says that it was not the limit of 60 s."""
    candidates = large(15, 1)
    best = best_by_subsets(lists_of(candidates))
    for solver in (
        solver_named("anneal", patience=0.5),
        solver_named("auto", patience=0.5, share=0.0),
    ):
        found = solve(candidates, solver, limits=Limits(60.0))
        assert found.score == pytest.approx(best) and not found.proved
        assert found.status.startswith("no better network in the last ")
    # moves decide, not the clock
    searched = solve(candidates, solver_named("anneal", patience=1e-9), limits=Limits(None, 4000))
    assert searched.statistics["moves"] == 4000


@pytest.mark.parametrize("name", ["anneal", "auto"])
def test_bad_patience(name):
    for value in (0.0, -1.0, math.nan):
        with pytest.raises(SettingError, match=r"patience = .*; give a number above 0"):
            solver_named(name, patience=value)
