"""`order-sa`: sets and scores after every swap, and the odds of the orders."""

from collections import Counter
from itertools import islice
from math import exp, log

import numpy as np
import pytest

from qubayes import SettingError
from qubayes.candidates import Candidates
from qubayes.foundation.random import random_stream
from qubayes.search import Limits, solve, solver_named
from qubayes.search.orders import order_problem, random_order
from qubayes_baselines.swaps import swap_places, swap_state
from reference import searches
from reference.annealing import Draws
from solve_cases import best_score, random_candidates, with_required_edge


def families_of(candidates):
    return [
        {frozenset(members): score for members, score in candidates.of(v)}
        for v in range(candidates.n)
    ]


def state_of(candidates, seed=0):
    problem = order_problem(candidates.families, candidates.scores)
    start = random_order(
        [candidates.base(v) for v in range(candidates.n)], np.random.SeedSequence(seed)
    )
    return problem, swap_state(candidates, start, random_stream(seed))


@pytest.mark.parametrize("seed", range(4))
def test_sets_after_every_swap(seed):
    candidates = (
        with_required_edge(9, seed)
        if seed == 3
        else random_candidates(9, seed, sets=30, ties=seed == 2)
    )
    problem, state = state_of(candidates, seed)
    families, orders, best, kept = (
        families_of(candidates),
        set(),
        state.totals[0],
        state.choice.tolist(),
    )
    draws = Draws(*random_stream(seed).tolist())
    expected = searches.annealed_swaps(families, state.order.tolist(), draws, log(5.0), 0.0, 0.0)
    for _ in range(400):
        swap_places(problem, state, 1, log(5.0), 0.0, 0.0)
        order = state.order.tolist()
        assert order == next(expected)
        score = searches.order_score(families, order)
        if score > best + 1e-6:
            best, kept = score, state.choice.tolist()
        assert state.totals.tolist() == pytest.approx([score, best], abs=1e-9)
        assert candidates.scores[state.choice].sum() == pytest.approx(score, abs=1e-9)
        assert state.best.tolist() == kept
        assert [order.index(v) for v in range(9)] == state.place[:9].tolist()
        orders.add(tuple(order))
    assert len(orders) > 50


@pytest.mark.parametrize("done", [0.0, 0.3])
def test_swaps_while_the_temperature_falls(done):
    """The last moves are at temperature 1."""
    candidates = random_candidates(7, 4, sets=30)
    problem, state = state_of(candidates)
    draws = Draws(*random_stream(0).tolist())
    moves = searches.annealed_swaps(
        families_of(candidates), state.order.tolist(), draws, log(20.0), done, 1 / 200
    )
    swap_places(problem, state, 250, log(20.0), done, 1 / 200)
    assert state.order.tolist() == [*islice(moves, 250)][-1]


@pytest.mark.parametrize("done, temperature", [(0.0, 100.0), (0.5, 10.0), (1.0, 1.0), (1.5, 1.0)])
def test_odds_of_the_orders(done, temperature):
    candidates = random_candidates(4, 5, sets=7)
    scores = candidates.scores * temperature / 4  # so that the odds differ at every temperature
    scaled = Candidates(candidates.names, candidates.families, scores)
    problem = order_problem(scaled.families, scaled.scores)
    families = [
        {its: score * temperature / 4 for its, score in family.items()}
        for family in families_of(candidates)
    ]
    state = swap_state(scaled, (0, 1, 2, 3), random_stream(1))
    seen: Counter[tuple[int, ...]] = Counter()
    for _ in range(30_000):
        swap_places(problem, state, 2, log(100.0), done, 0.0)
        seen[tuple(state.order.tolist())] += 1
    scores = searches.order_scores(families)
    top = max(scores.values())
    odds = {order: exp((score - top) / temperature) for order, score in scores.items()}
    total = sum(odds.values())
    assert max(odds.values()) / min(odds.values()) > 3
    for order, weight in odds.items():
        assert seen[order] / 30_000 == pytest.approx(weight / total, abs=0.015)


def test_the_temperature_falls_within_a_slice():
    candidates = random_candidates(9, 1, sets=30)
    whole, sliced = state_of(candidates), state_of(candidates)
    swap_places(*whole, 1000, log(100.0), 0.0, 1e-3)
    for k in range(100):
        swap_places(*sliced, 10, log(100.0), k / 100, 1e-3)
    assert whole[1].order.tolist() == sliced[1].order.tolist()
    assert whole[1].totals.tolist() == sliced[1].totals.tolist()


def test_settings():
    for wrong in (0.99, float("inf")):
        with pytest.raises(SettingError, match="1 or more"):
            solver_named("order-sa", hot=wrong)
    assert solver_named("order-sa", hot=1).hot == 1
    with pytest.raises(SettingError, match="cools down over its limit"):
        solve(random_candidates(4, 0), "order-sa", limits=Limits(None))


@pytest.mark.parametrize("name", ["order-sa", "asobs"])
def test_few_variables(name):
    one = solve(random_candidates(1, 0), name, limits=Limits(None, moves=10))
    assert one.status == "one variable: nothing to order" and not one.statistics
    candidates = random_candidates(2, 3)
    two = solve(candidates, name, limits=Limits(None, moves=10))
    assert two.statistics["moves"] == 10 and two.score == pytest.approx(best_score(candidates))
