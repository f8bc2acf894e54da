"""The end of a search: a bound that is reached, a time limit; and its progress."""

import pytest

from qubayes.foundation.progress import Progress
from qubayes.foundation.workers import Workers
from qubayes.search import Limits, solve, solver_named
from solve_cases import best_score, formulated, random_candidates


@pytest.mark.parametrize("limits", [Limits(60.0), Limits(None, moves=2**40)])
@pytest.mark.parametrize("name", ["sa", "digital", "anneal", "hillclimb", "order-sa", "asobs"])
def test_a_bound_that_is_reached_ends_the_search(name, limits):
    candidates = random_candidates(6, 1)
    best = best_score(candidates)
    problem = formulated(candidates)
    # From the best network the first look is enough; the limits would take minutes.
    start = solve(candidates, "exact").network
    solution = solve(problem, name, limits=limits, bound=best, start=start)
    assert solution.proved
    assert "proved optimal" in solution.status or "component solved" in solution.status


@pytest.mark.parametrize("name", ["sa", "digital"])
def test_a_bound_that_is_found_on_the_way_ends_the_search(name):
    candidates = random_candidates(5, 1)
    moves = 4_000_000
    solution = solve(
        formulated(candidates), name, limits=Limits(None, moves), bound=best_score(candidates)
    )
    assert solution.proved and solution.status.startswith("the bound was reached: proved optimal; ")
    counted = solution.statistics["vertex_moves" if name == "sa" else "iterations"]
    assert 0 < counted < moves


def test_samples_are_read_until_the_bound_is_reached():
    candidates = random_candidates(5, 1)
    formulation, best = formulated(candidates), best_score(candidates)
    solver = solver_named(
        "dimod", parameters={"num_reads": 100, "num_sweeps": 1000, "time_limit": None}
    )
    solution = solve(formulation, solver, bound=best)
    assert solution.proved and solution.statistics["read"] < solution.statistics["samples"]
    assert solution.status.startswith(
        "the bound was reached: proved optimal; SimulatedAnnealingSampler returned"
    )
    again = solve(formulation, solver, bound=best, start=solution.network)
    assert again.status.endswith("SimulatedAnnealingSampler was not asked")


@pytest.mark.parametrize("name", ["hillclimb", "order-sa", "asobs", "sa", "digital"])
def test_moves_are_what_progress_counts(name):
    told: list[Progress] = []

    def enough(progress: Progress) -> None:
        told.append(progress)
        if len(told) == 4:
            raise KeyboardInterrupt

    problem = formulated(random_candidates(25, 7, sets=60))
    solution = solve(
        problem, name, limits=Limits(None, moves=2**32), on_progress=enough, workers=Workers(1)
    )
    assert solution.interrupted
    parts = [progress.done / progress.total for progress in told]
    assert parts == sorted(parts) and 0 < parts[-1] < 1


@pytest.mark.parametrize("sampler", ["SimulatedAnnealingSampler", "DigitalAnnealingSampler"])
def test_our_samplers_tell_how_far_they_are(sampler):
    told: list[Progress] = []

    def enough(progress: Progress) -> None:
        told.append(progress)
        if len(told) == 4:
            raise KeyboardInterrupt

    solver = solver_named("dimod", sampler=f"qubayes.qubo.samplers.dimod_bridge:{sampler}")
    solve(
        formulated(random_candidates(12, 7, sets=20)),
        solver,
        limits=Limits(600.0),
        on_progress=enough,
    )
    parts = [progress.done / progress.total for progress in told[:4]]
    assert len(parts) == 4 and parts == sorted(parts) and 0 < parts[-1] < 1


def test_a_time_that_is_too_short_for_digital():
    solution = solve(formulated(random_candidates(40, 1, sets=40)), "digital", limits=Limits(1e-4))
    assert solution.status == "the time limit is too short to begin; best so far returned"
    assert solution.statistics["iterations"] == 0
