"""`asobs`: acyclic selection after every swap, and local optima before every restart."""

import numpy as np
import pytest

from qubayes.foundation.random import random_stream
from qubayes.search import Limits, solve
from qubayes.search.orders import order_problem
from qubayes_baselines.swaps import FOUND, PLACE, RESTARTS, selection, swap_neighbours
from reference import searches
from reference.annealing import Draws
from solve_cases import random_candidates, with_required_edge


def families_of(candidates):
    return [
        {frozenset(members): score for members, score in candidates.of(v)}
        for v in range(candidates.n)
    ]


def state_of(candidates, seed=0):
    problem = order_problem(candidates.families, candidates.scores)
    order = tuple(np.random.default_rng(seed).permutation(candidates.n).tolist())
    return problem, selection(candidates, order, random_stream(seed))


def chosen(candidates, state):
    return [frozenset(its) for its in candidates.families.sets_at(state.choice[0])]


@pytest.mark.parametrize("seed", range(6))
def test_selection_after_every_swap(seed):
    candidates = (
        with_required_edge(8, seed)
        if seed == 4
        else random_candidates(8, seed, sets=40, ties=seed == 5)
    )
    families, bases = families_of(candidates), candidates.families.vertex_start[1:] - 1
    problem, state = state_of(candidates, seed)
    assert state.best.tolist() == bases.tolist()
    draws, best, kept = Draws(*random_stream(seed).tolist()), -np.inf, []
    improved = later_parents = 0
    for _ in range(300):
        order, place, restarts = (
            state.order.tolist(),
            int(state.counts[PLACE]),
            int(state.counts[RESTARTS]),
        )
        again = place < 0 and not state.counts[FOUND]
        swap_neighbours(problem, state, 1)
        assert state.counts[RESTARTS] == restarts + again
        order = draws.shuffled(order) if again and restarts else order
        before = searches.acyclic_selection(families, order)
        trial = searches.swapped(order, *((place, place + 1) if place >= 0 else (6, 7)))
        after = searches.acyclic_selection(families, trial)
        scores = [searches.network_score(families, network) for network in (before, after)]
        better = scores[1] > scores[0] + 1e-9
        assert state.order.tolist() == (trial if better else order)
        network, score = (after, scores[1]) if better else (before, scores[0])
        assert chosen(candidates, state) == network
        assert score >= searches.order_score(families, state.order.tolist()) - 1e-9
        # the one of a restart as well
        for sets, each in zip((before, network), (scores[0], score), strict=True):
            if each > best + 1e-9:
                best, kept = each, sets
        assert state.totals.tolist() == pytest.approx([score, best])
        assert [frozenset(its) for its in candidates.families.sets_at(state.best)] == kept
        now = state.order.tolist()
        later_parents += any(
            now.index(p) > now.index(v) for v, its in enumerate(network) for p in its
        )
        improved += better
    assert improved > 3 and state.counts[RESTARTS] > 3 and later_parents > 50


@pytest.mark.parametrize("n", [70, 129])
def test_more_than_64_vertices(n):
    candidates = with_required_edge(n, 2, parent=3, child=68, most=2)
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
                other = searches.acyclic_selection(
                    families, searches.swapped(order, place, place + 1)
                )
                assert searches.network_score(families, other) <= state.totals[0] + 1e-9


def test_restarts_are_counted():
    solution = solve(random_candidates(6, 0), "asobs", limits=Limits(None, moves=1000))
    assert solution.statistics["moves"] == 1000 and solution.statistics["restarts"] > 4
