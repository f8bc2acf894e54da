"""The enumeration of networks, with other limits than those of users."""

import math

import pytest

from qubayes.candidates import Candidates
from qubayes.foundation.workers import Workers
from qubayes.search import Limits, Run
from qubayes.search.exact.alternatives import Wanted, list_alternatives
from qubayes.search.exact.plan import PLAN
from solve_cases import best_score, random_candidates


def run_of(candidates: Candidates) -> Run:
    return Run(candidates, Limits(None), Workers(1))


@pytest.mark.parametrize("easy_sets", [0, 5000])
def test_larger_problems_agree_with_dynamic_programming(easy_sets):
    """The best score by dynamic programming, the next by forbidding each set of the best network in turn."""
    candidates = random_candidates(8, 2, sets=12)
    plan = PLAN._replace(easy_sets=easy_sets)
    wanted = Wanted(2, math.inf, classes=False)
    found = list_alternatives(candidates, run_of(candidates), wanted, plan=plan)
    assert found.scores[0] == pytest.approx(best_score(candidates))
    second = []
    for vertex, members in enumerate(found.networks[0]):
        sets = [each for each, _ in candidates.of(vertex)]
        scores = candidates.scores.copy()
        scores[candidates.families.vertex_start[vertex] + sets.index(members)] = -1e9
        second.append(best_score(Candidates(candidates.names, candidates.families, scores)))
    assert found.scores[1] == pytest.approx(max(second))


def test_too_many_networks_are_not_called_complete():
    candidates = random_candidates(5, 0)
    wanted = Wanted(None, math.log(1e6), classes=False)
    found = list_alternatives(candidates, run_of(candidates), wanted, most=5)
    assert not found.complete and "too many" in found.status and len(found.networks) <= 5
    assert "others may be missing" in found.describe()[0]
