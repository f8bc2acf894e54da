"""`exact`: proofs that exhaustion confirms, and bounds that no network exceeds."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qubayes import SettingError
from qubayes.search import Limits, solve, solver_named
from qubayes.search.exact import upper_bound
from solve_cases import best_score, random_candidates, with_required_edge


@given(seed=st.integers(0, 10_000), n=st.integers(2, 9), ties=st.booleans())
def test_proofs_agree_with_exhaustion(seed, n, ties):
    candidates = random_candidates(n, seed, sets=12, ties=ties)
    solution = solve(candidates, "exact", limits=Limits(20.0))
    assert solution.proved and solution.status == "optimal"
    assert solution.score == pytest.approx(best_score(candidates), abs=1e-9)
    assert solution.bound >= solution.score


@pytest.mark.parametrize("seed", range(3))
def test_required_edges(seed):
    candidates = with_required_edge(7, seed)
    solution = solve(candidates, "exact", limits=Limits(20.0))
    assert solution.proved
    assert solution.score == pytest.approx(best_score(candidates), abs=1e-9)


def test_a_bound_is_never_below_the_optimum_however_short_the_time():
    candidates = random_candidates(9, 5, sets=40)
    best = best_score(candidates)
    bounds = [upper_bound(candidates, seconds) for seconds in (0.0, 0.01, 0.05, 10.0)]
    assert all(bound.value >= best - 1e-9 and bound.best <= best + 1e-9 for bound in bounds)
    assert bounds[-1].value == pytest.approx(best, abs=2.0)
    assert bounds[-1].cuts > 0


def test_a_bound_of_nothing():
    assert upper_bound(random_candidates(0, 0), 1.0).value == 0.0


def test_a_bound_needs_a_time():
    with pytest.raises(SettingError, match="give 0 or more"):
        upper_bound(random_candidates(2, 0), -1.0)


def test_large_scores_lose_no_proof():
    """Scores far from 0 leave few digits for their differences; the bound's margin covers that."""
    candidates = random_candidates(8, 2, sets=12)
    far = replace(candidates, scores=candidates.scores - 1e7)
    solution = solve(far, "exact", limits=Limits(20.0))
    assert solution.proved
    assert solution.score == pytest.approx(best_score(far), abs=1e-6)


def test_twins_are_a_setting():
    candidates = random_candidates(6, 0)
    scores = {
        solve(candidates, solver_named("exact", twins=twins)).score for twins in (True, False)
    }
    assert len(scores) == 1


def test_nothing_is_annealed_after_a_proof_or_after_the_time():
    """The status is that of the part that ended the search."""
    proved = solve(random_candidates(6, 0), "auto", limits=Limits(None))
    assert proved.proved and proved.status == "optimal"
    over = solve(random_candidates(20, 0), "auto", limits=Limits(0.0))
    assert not over.proved and "moves" not in over.statistics
