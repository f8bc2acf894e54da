"""The population of anneal: rounds that grow, a last one that fits, crossover that takes the best of each region."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest

from qubayes.foundation.families import Families
from qubayes.foundation.workers import Workers
from qubayes.search import Limits
from qubayes.search.orders import anneal
from qubayes.search.orders.anneal import CROSSOVER, STARTS, SWEEPS, Ahead, Cooling, OrderWalk, Population, restarts
from qubayes.search.orders.insertions import best_of
from qubayes.search.orders.walks import order_problem
from qubayes.search.reduction import best_of_all
from qubayes.search.run import Run
from solve_cases import random_candidates

NEVER = np.zeros(1, np.bool_)
REGION = 11  # vertices


@pytest.fixture
def pool():
    with ThreadPoolExecutor(2) as made:
        yield made


def regions():
    """Two problems side by side, as one."""
    both = [random_candidates(REGION, seed, sets=15) for seed in (1, 2)]
    lists = [list(both[0].families.sets_of(v)) for v in range(REGION)]
    lists += [[tuple(m + REGION for m in members) for members in both[1].families.sets_of(v)] for v in range(REGION)]
    return both, Families.of(lists), np.concatenate([each.scores for each in both])


def population(families, scores, *, count=4, seed=0):
    nothing = [()] * families.n
    return Population(families, scores, nothing, (5.0, 0.03), count, np.random.SeedSequence(seed))


def order_of(candidates):
    """An order of the best network of all, by exhaustion of subsets."""
    choice = best_of_all(candidates.families, candidates.scores)
    parents = [set(candidates.families.set_at(number)) for number in choice.tolist()]
    order: list[int] = []
    while len(order) < candidates.n:
        order += [v for v in range(candidates.n) if v not in order and parents[v] <= {*order}][:1]
    return order, float(candidates.scores[choice].sum())


def test_crossover_takes_the_best_of_each_region(pool):
    both, families, scores = regions()
    (one, best_one), (two, best_two) = (order_of(candidates) for candidates in both)
    found = population(families, scores)
    worst = list(range(REGION))
    elite = [
        best_of(found.problem, [*one, *(v + REGION for v in worst)]),
        best_of(found.problem, [*worst, *(v + REGION for v in two)]),
    ]
    assert max(ordered.score for ordered in elite) < best_one + best_two - 0.1
    found.elite, found.best = elite, elite[0]
    found.round = found.crossover(20_000)
    assert len(found.round.walks[0].problem.scores) <= 3 * 2 * REGION
    while found.round is not None:
        found.advance(1e9, None, pool, NEVER, lambda: None)
    assert found.best.score == pytest.approx(best_one + best_two, abs=1e-9)
    assert found.elite[0] is found.best


def test_rounds_grow_and_the_last_takes_what_is_left(pool):
    _, families, scores = regions()
    found = population(families, scores)
    lengths = []
    for _ in range(3):
        lengths.append(found.next_round(1e9).moves)
    assert lengths == [SWEEPS * families.n * 2**k for k in range(3)]
    planned = SWEEPS * families.n * 2**3
    left = 1.5 * planned * found.count * (1 + CROSSOVER)
    assert found.next_round(left).moves == pytest.approx(1.5 * planned, abs=1)
    assert found.next_round(0.0).moves == families.n


def test_moves_are_counted_to_the_last(pool):
    _, families, scores = regions()
    found = population(families, scores, count=3)
    for most in (1, 2, 1000, 7):
        before = found.moves
        found.advance(10_000.0, most, pool, NEVER, lambda: None)
        assert found.moves - before == most


@pytest.mark.parametrize("steps", [0, 1, 4, 9, 40])
def test_walks_that_run_ahead_make_the_same_moves(pool, monkeypatch, steps):
    """As on a cluster, but in this process: slice by slice what threads find, also where the last slice is cut."""
    monkeypatch.setattr(anneal, "SLICE", 30)
    _, families, scores = regions()
    here, there = population(families, scores), population(families, scores)
    run = Run(random_candidates(3, 0), Limits(None), Workers(1))
    there.ahead = Ahead(run, there.problem, there.cold, there.bases)
    for most in [None] * steps + [4 * 17 + 1]:
        for each in (here, there):
            each.advance(10_000.0, most, pool, NEVER, lambda: None)
        assert here.moves == there.moves and here.best.score == there.best.score
        assert [each.score for each in here.elite] == [each.score for each in there.elite]
        for one, other in zip(*(each.round.walks if each.round else [] for each in (here, there)), strict=True):
            assert one.state.totals[1] == other.state.totals[1] and (one.state.best == other.state.best).all()


def test_walks_cool_from_their_temperature_to_the_last(pool):
    _, families, scores = regions()
    found = population(families, scores, count=len(STARTS))
    for _ in range(30):
        found.advance(1e9, None, pool, NEVER, lambda: None)
    last = found.next_round(1e9)
    assert [walk.coolings[0].hot for walk in last.walks] == [5.0 * share for _, share in STARTS]
    assert last.walks[1].state.order.tolist() == found.best.order.tolist()
    assert last.walks[0].state.totals[1] < found.best.score  # restarts continue from their own best
    assert [sum(cooling.moves for cooling in walk.coolings) for walk in last.walks] == [last.moves] * len(STARTS)


@pytest.mark.parametrize(("length", "count"), [(100, 1), (266, 1), (267, 3), (400, 4), (4000, 31)])
def test_restarts_and_what_follows_take_all_moves(length, count):
    coolings = restarts((8.0, 0.03), 100, length)
    assert len(coolings) == count
    assert sum(cooling.moves for cooling in coolings) == length
    assert {(cooling.begin, cooling.hot) for cooling in coolings[:-1]} <= {("random", 8.0)}
    assert coolings[-1][:2] == (("random", 8.0) if count == 1 else ("best", 2.0))


def test_no_cooling_is_heated():
    assert [cooling.hot for cooling in restarts((0.05, 0.03), 100, 400)] == [0.05, 0.05, 0.05, 0.03]


def test_a_single_walk_is_cooled_slowly(pool):
    _, families, scores = regions()
    (walk,) = population(families, scores, count=1).next_round(1e9).walks
    assert len(walk.coolings) == 1


def test_a_walk_keeps_the_best_order_of_its_coolings():
    """The last cooling begins at it: one move as cold as can be, which does not leave it for a worse one."""
    _, families, scores = regions()
    problem, bases = order_problem(families, scores), [()] * families.n
    coolings = [*[Cooling("random", 5.0, 60)] * 5, Cooling("best", 0.03, 1)]
    walk = OrderWalk(problem, range(families.n), coolings, np.random.SeedSequence(3))
    made, seen = 0, []
    while walk.coolings:
        made += walk.advance(7, 0.03, bases, NEVER)
        seen.append(best_of(problem, walk.state.order).score)
    assert made == 301
    assert walk.state.totals[1] == pytest.approx(best_of(problem, walk.state.best).score)
    assert max(seen) <= walk.state.totals[1] + 1e-6
    assert seen[-1] == pytest.approx(walk.state.totals[1])
    assert seen[-2] < seen[-1] - 0.1  # the last restart was not the best


def test_every_problem_has_arrays_of_the_same_types():
    """Kernels are compiled for each combination of types anew, and what can be written to has another type."""
    _, families, scores = regions()
    scores, start = scores.copy(), families.vertex_start.copy()
    families = families._replace(vertex_start=start)
    whole, some = order_problem(families, scores), population(families, scores).crossover(100).walks[0].problem
    assert not any(array.flags.writeable for problem in (whole, some) for array in problem)
    assert [array.dtype for array in whole] == [array.dtype for array in some]
    assert scores.flags.writeable and start.flags.writeable  # the caller's arrays are left alone


def test_the_elite_is_distinct_and_sorted(pool):
    _, families, scores = regions()
    found = population(families, scores)
    for _ in range(30):
        found.advance(1e9, None, pool, NEVER, lambda: None)
    ranks = [ordered.score for ordered in found.elite]
    assert len(ranks) <= 2 * found.count and all(a - b > 1e-7 for a, b in pairwise(ranks))
    assert ranks[0] == pytest.approx(found.best.score)


def test_one_set_of_many():
    _, families, _ = regions()
    lists = [list(families.sets_of(v)) for v in range(families.n)]
    flat = [members for family in lists for members in family]
    assert [families.set_at(number) for number in range(len(flat))] == flat
    numbers = np.unique(np.concatenate([families.vertex_start[1:] - 1, np.arange(0, len(flat), 3)]))
    kept = families.chosen(numbers)
    owner = np.repeat(np.arange(families.n), families.sizes)[numbers]
    assert [kept.set_at(k) for k in range(len(numbers))] == [flat[number] for number in numbers.tolist()]
    assert np.repeat(np.arange(families.n), kept.sizes).tolist() == owner.tolist()
