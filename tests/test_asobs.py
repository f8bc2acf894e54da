"""`asobs`: acyclic selection after every swap, and local optima before every restart."""

import numpy as np
import pytest

from qubayes.foundation.random import random_stream
from qubayes.search import Limits, solve
from qubayes.search.orders.swaps import FOUND, PLACE, RESTARTS, selection, swap_neighbours
from qubayes.search.orders.walks import order_problem
from reference import searches
from solve_cases import random_candidates, with_required_edge


def families_of(candidates):
    return [{frozenset(members): score for members, score in candidates.of(v)} for v in range(candidates.n)]


def state_of(candidates, seed=0):
    problem = order_problem(candidates.families, candidates.scores)
    order = tuple(np.random.default_rng(seed).permutation(candidates.n).tolist())
    return problem, selection(candidates, order, random_stream(seed))


def chosen(candidates, state):
    return [frozenset(its) for its in candidates.families.sets_at(state.choice[0])]


def swapped(order, place):
    return [*order[:place], order[place + 1], order[place], *order[place + 2 :]]


@pytest.mark.parametrize("seed", range(5))
def test_selection_after_every_swap(seed):
    candidates = with_required_edge(8, seed) if seed == 4 else random_candidates(8, seed, sets=40)
    families = families_of(candidates)
    problem, state = state_of(candidates, seed)
    swap_neighbours(problem, state, 1)
    improved = later_parents = 0
    for _ in range(300):
        order, place, restarts = state.order.tolist(), int(state.counts[PLACE]), int(state.counts[RESTARTS])
        before = searches.network_score(families, searches.acyclic_selection(families, order))
        swap_neighbours(problem, state, 1)
        now = state.order.tolist()
        network = searches.acyclic_selection(families, now)
        assert chosen(candidates, state) == network
        score = searches.network_score(families, network)
        assert state.totals[0] == pytest.approx(score)
        assert score >= searches.order_score(families, now) - 1e-9
        later_parents += any(now.index(p) > now.index(v) for v, its in enumerate(network) for p in its)
        if place >= 0 and state.counts[RESTARTS] == restarts:
            trial = swapped(order, place)
            other = searches.network_score(families, searches.acyclic_selection(families, trial))
            assert now == (trial if other > before + 1e-9 else order)
            improved += now == trial
        assert state.totals[1] == pytest.approx(candidates.scores[state.best].sum())
    assert improved > 3 and state.counts[RESTARTS] > 3 and later_parents > 50


def test_more_than_64_vertices():
    candidates = random_candidates(70, 2, sets=30)
    families = families_of(candidates)
    problem, state = state_of(candidates)
    swap_neighbours(problem, state, 60)
    assert chosen(candidates, state) == searches.acyclic_selection(families, state.order.tolist())


def test_a_restart_comes_only_after_a_local_optimum():
    candidates = random_candidates(7, 9, sets=30)
    families = families_of(candidates)
    problem, state = state_of(candidates)
    optima = 0
    while optima < 5:
        swap_neighbours(problem, state, 1)
        if state.counts[PLACE] < 0 and not state.counts[FOUND]:
            optima += 1
            order = state.order.tolist()
            for place in range(6):
                other = searches.acyclic_selection(families, swapped(order, place))
                assert searches.network_score(families, other) <= state.totals[0] + 1e-9


def test_restarts_are_counted():
    solution = solve(random_candidates(6, 0), "asobs", limits=Limits(None, moves=1000))
    assert solution.statistics["moves"] == 1000 and solution.statistics["restarts"] > 4
