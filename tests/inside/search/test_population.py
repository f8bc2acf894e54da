"""The population of anneal: rounds that grow, a last one that fits, crossover that takes the best of each region."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from annealing_cases import large, lists_of
from qubayes.candidates import Candidates
from qubayes.foundation.families import Families
from qubayes.foundation.workers import Workers
from qubayes.search import Limits, Reason
from qubayes.search.orders import anneal
from qubayes.search.orders.anneal import (
    CROSSOVER,
    SAME,
    STARTS,
    SWEEPS,
    Anneal,
    Cooling,
    OrderWalk,
    Population,
    restarts,
)
from qubayes.search.orders.insertions import anneal_order, best_of, order_state, restart_at
from qubayes.search.orders.walks import order_problem, random_order
from qubayes.search.reduction import best_of_all, without_twins
from qubayes.search.run import Run
from reference.networks import best_by_subsets
from solve_cases import TickingClock, random_candidates

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
    lists += [
        [tuple(m + REGION for m in members) for members in both[1].families.sets_of(v)]
        for v in range(REGION)
    ]
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
    worst = [*range(1, REGION), 0]  # the first vertex of each region is not at its base
    elite = [
        best_of(found.problem, [*one, *(v + REGION for v in worst)]),
        best_of(found.problem, [*worst, *(v + REGION for v in two)]),
    ]
    assert max(ordered.score for ordered in elite) < best_one + best_two - 0.1
    found.elite, found.best = elite, elite[0]
    found.round = found.crossover(20_000)
    used = {
        *(families.vertex_start[1:] - 1).tolist(),
        *elite[0].choice.tolist(),
        *elite[1].choice.tolist(),
    }
    assert found.round.walks[0].problem.scores.tolist() == scores[sorted(used)].tolist()
    assert found.round.moves == int(CROSSOVER * 20_000) and found.crossover(1).moves == 1
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
    found.rounds = 3
    assert found.next_round(left * 2.5 / 1.5).moves == planned  # another, longer one fits
    assert found.next_round(0.0).moves == families.n


def test_moves_are_counted_to_the_last(pool):
    _, families, scores = regions()
    found = population(families, scores, count=3)
    for most in (1, 2, 1000, 7):
        before = found.moves
        found.advance(10_000.0, most, pool, NEVER, lambda: None)
        assert found.moves - before == most


def test_walks_cool_from_their_temperature_to_the_last(pool):
    _, families, scores = regions()
    found = population(families, scores, count=len(STARTS))
    for _ in range(30):
        found.advance(1e9, None, pool, NEVER, lambda: None)
    last = found.next_round(1e9)
    assert [walk.coolings[0].hot for walk in last.walks] == [5.0 * share for _, share in STARTS]
    assert [walk.coolings[0].begin for walk in last.walks] == ["random", "here", "here", "here"]
    assert last.walks[0].coolings[0].moves == SWEEPS * families.n < last.moves
    assert last.walks[0].state.totals[1] < found.best.score  # restarts continue from their own best
    assert [sum(cooling.moves for cooling in walk.coolings) for walk in last.walks] == [
        last.moves
    ] * len(STARTS)


@pytest.mark.parametrize(("length", "count"), [(100, 1), (266, 1), (267, 3), (400, 4), (4000, 31)])
def test_restarts_and_what_follows_take_all_moves(length, count):
    coolings = restarts((8.0, 0.03), 100, length)
    assert len(coolings) == count
    assert sum(cooling.moves for cooling in coolings) == length
    assert {(cooling.begin, cooling.hot) for cooling in coolings[:-1]} <= {("random", 8.0)}
    assert coolings[-1][:2] == (("random", 8.0) if count == 1 else ("best", 2.0))


def test_no_cooling_is_heated():
    assert [cooling.hot for cooling in restarts((0.05, 0.03), 100, 400)] == [0.05, 0.05, 0.05, 0.03]


def test_walks_begin_at_the_best_or_in_the_elite(pool):
    _, families, scores = regions()
    found, begun = population(families, scores), set()
    found.elite = [
        best_of(found.problem, np.random.default_rng(seed).permutation(families.n))
        for seed in range(5)
    ]
    for _ in range(8):
        _, best, *elite = (tuple(walk.state.order.tolist()) for walk in found.next_round(1e9).walks)
        assert best == tuple(found.best.order.tolist())
        begun.update(elite)
    assert begun <= {tuple(ordered.order.tolist()) for ordered in found.elite} and len(begun) > 2


def test_a_single_walk_is_cooled_slowly():
    _, families, scores = regions()
    alone, two = (population(families, scores, count=count) for count in (1, 2))
    alone.rounds = two.rounds = 3
    assert len(alone.next_round(1e9).walks[0].coolings) == 1
    assert len(two.next_round(1e9).walks[0].coolings) > 1


@pytest.mark.parametrize("first", [90, 25, 40, 55])
def test_a_walk_makes_its_coolings_in_turn(first):
    """Three coolings, in one slice or in two, against the calls of the kernel."""
    _, families, scores = regions()
    problem, bases, order = order_problem(families, scores), [()] * families.n, range(families.n)
    coolings = [Cooling("here", 5.0, 40), Cooling("random", 3.0, 30), Cooling("best", 1.0, 20)]
    walk = OrderWalk(problem, order, coolings, np.random.SeedSequence(3))
    assert [walk.advance(moves, 0.03, bases, NEVER) for moves in (first, 90 - first)] == [
        first,
        90 - first,
    ]
    streams = np.random.SeedSequence(3).spawn(2)
    state, done = order_state(problem, order, streams[0]), 0
    for begin, hot, length in coolings:
        if begin != "here":
            restart_at(
                problem, state, state.best if begin == "best" else random_order(bases, streams[1])
            )
        factor = (0.03 / hot) ** (1 / length)
        cut = min(max(first - done, 0), length)
        anneal_order(problem, state, hot, factor, cut, NEVER)
        anneal_order(problem, state, hot * factor**cut, factor, length - cut, NEVER)
        done += length
    assert (
        walk.state.order.tolist() == state.order.tolist()
        and walk.state.best.tolist() == state.best.tolist()
    )
    assert walk.state.random.tolist() == state.random.tolist()
    assert walk.state.totals.tolist() == pytest.approx(state.totals.tolist(), abs=1e-9)


def test_a_crossover_follows_each_round_of_an_elite(pool, set_clock):
    """All moves of a round are made before the next one; each call looks at the clock twice."""
    set_clock(SimpleNamespace(perf_counter=TickingClock(1.0)), "qubayes.search.orders.anneal")
    _, families, scores = regions()
    found, kinds, calls = population(families, scores), [], 0
    while len(kinds) < 6:
        found.advance(1e9, None, pool, NEVER, lambda: None)
        present, moves, calls = found.round, found.moves, calls + 1
        kinds.append(present.crossover if present else None)
        if present is None:
            assert moves == sum(
                found.count
                * (SWEEPS * families.n * 2**k + int(CROSSOVER * SWEEPS * families.n * 2**k))
                for k in range(found.rounds)
            )
    assert kinds == [True, None] * 3 and found.seconds == calls


@pytest.mark.parametrize("sets", [1, 2])
def test_a_crossover_needs_two_networks(pool, sets):
    families = Families.of([[()], [(0,), ()][2 - sets :]])
    found = population(families, np.array([0.0, 1.0, 0.0])[: 1 + sets], seed=1)
    worse = best_of(found.problem, [1, 0])
    found.elite, found.best = [worse], worse
    assert found.advance(1e9, None, pool, NEVER, lambda: None) == (sets == 2)
    assert len(found.elite) == sets and (found.round is not None) == (sets == 2)


def test_the_limit_of_the_score():
    both, families, scores = regions()
    found = population(families, scores)
    tops = [max(score for _, score in each.of(vertex)) for each in both for vertex in range(REGION)]
    assert found.limit == pytest.approx(sum(tops), abs=1e-9)


@pytest.mark.parametrize(
    ("limit", "difference"), [(1e6, 1e-3), (-1e6, 1e-3), (0.5, 1e-9), (1.5, 1.5e-9)]
)
def test_a_limit_is_reached_up_to_rounding(monkeypatch, limit, difference):
    _, families, scores = regions()
    found = population(families, scores)
    monkeypatch.setattr(Population, "limit", limit)
    for share in (0.0, 0.9, 1.1):
        found.best = found.best._replace(score=limit - share * difference)
        assert found.perfect == (share < 1)


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
    whole, some = (
        order_problem(families, scores),
        population(families, scores).crossover(100).walks[0].problem,
    )
    assert not any(array.flags.writeable for problem in (whole, some) for array in problem)
    assert [array.dtype for array in whole] == [array.dtype for array in some]
    assert scores.flags.writeable and start.flags.writeable  # the caller's arrays are left alone


def test_the_best_of_the_elite_stay():
    _, families, scores = regions()
    found = population(families, scores, count=2)

    def ranked(*scores):
        return [found.best._replace(score=score) for score in scores]

    found.elite = ranked(2 * SAME, -4.0)
    found.update_elite(ranked(-1.0, SAME, -1.0 - SAME / 2, -7.0))
    assert [ordered.score for ordered in found.elite] == [2 * SAME, -1.0, -4.0, -7.0]
    found.update_elite(ranked(-2.0, 3.0))
    assert [ordered.score for ordered in found.elite] == [3.0, 2 * SAME, -1.0, -2.0]


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
    assert [kept.set_at(k) for k in range(len(numbers))] == [
        flat[number] for number in numbers.tolist()
    ]
    assert np.repeat(np.arange(families.n), kept.sizes).tolist() == owner.tolist()


class Part(SimpleNamespace):
    """A population that keeps what it was asked to advance by."""

    def advance(self, left, most, pool, stop, watch):
        watch()
        self.asked = left, most, bool(stop[0])
        return False


def component_search(candidates, run, settings=None):
    return anneal._ComponentSearch(without_twins(candidates), run, settings or Anneal(), 4, None)


@pytest.mark.parametrize(
    ("perfect", "moves", "chosen", "share"),
    [
        ((False, False, False), (1, 200, 400), 0, 1 / 6),
        ((True, False, False), (0, 200, 400), 1, 2 / 5),
        ((True, False, False), (0, 200, 270), 2, 3 / 5),
        ((True, True, True), (10, 15, 40), 1, 2 / 6),
    ],
)
def test_the_component_with_the_fewest_moves_for_its_size_is_next(perfect, moves, chosen, share):
    candidates = random_candidates(3, 0)
    parts = [
        Part(perfect=done, moves=made, vertices=10 * (k + 1), seconds=2.0 if k else 0.0, asked=None)
        for k, (done, made) in enumerate(zip(perfect, moves, strict=True))
    ]
    for limit, over in ((None, True), (1000, False)):
        run = Run(candidates, Limits(60.0, limit), Workers(1))
        search = component_search(candidates, run)
        search.populations = parts
        search.run = SimpleNamespace(left=30.0, over=over, moves=limit, report=lambda **made: None)
        search.advance()
        pace = moves[chosen] / 2.0 if chosen else np.inf
        left = anneal._PLANNED * 30.0 * pace if limit is None else limit - sum(moves)
        assert parts[chosen].asked == (
            pytest.approx(share * left),
            None if limit is None else limit - sum(moves),
            over,
        )
        assert [part.asked for k, part in enumerate(parts) if k != chosen] == [None, None]


def test_every_component_has_a_first_round_whatever_the_patience(set_clock):
    clock = SimpleNamespace(now=100.0)
    set_clock(lambda: clock.now)
    candidates = random_candidates(20, 1, sets=20)
    search = component_search(
        candidates, Run(candidates, Limits(60.0), Workers(1)), Anneal(patience=2.0)
    )
    clock.now = 150.0
    assert not search.stop()
    for population in search.populations:
        population.cooled = True
    assert search.stop() and search.ending.reason is Reason.FINISHED
    assert search.ending.status == "no better network in the last 50 s of annealing"


def test_the_time_of_the_best_network_is_kept(set_clock):
    clock = SimpleNamespace(now=100.0)
    set_clock(lambda: clock.now)
    candidates = random_candidates(20, 1, sets=20)
    run = Run(candidates, Limits(60.0), Workers(1))
    clock.now = 103.0
    search = component_search(candidates, run)
    start = search.populations[0].best
    again = Run(candidates, Limits(60.0), Workers(1), start=start.choice)
    clock.now = 105.0
    assert (
        component_search(candidates, again).patience.improved == 0.0
    )  # nothing better than the start
    clock.now = 110.0
    search.populations[0].best = best_of(search.populations[0].problem, list(range(20)))
    assert search.populations[0].best.score > start.score
    search._offer()
    assert search.patience.improved == 7.0


def hot_of(scores, **settings):
    """The temperature at which walks over a ring of 20 vertices with three sets each begin."""
    ring = Families.of([[((v + 1) % 20,), ((v + 2) % 20,), ()] for v in range(20)])
    candidates = Candidates(
        tuple(f"v{v}" for v in range(20)), ring, np.array(scores, float).ravel()
    )
    search = component_search(
        candidates, Run(candidates, Limits(60.0), Workers(1)), Anneal(**settings)
    )
    return search.populations[0].hot


def test_the_hot_temperature_is_proportional_to_the_differences_between_best_and_worst_sets():
    spread = np.array([[0.0, -1e4, -2e4 * (1 + v)] for v in range(20)])
    hot = hot_of(spread)
    assert hot_of(2 * spread) == pytest.approx(2 * hot)
    assert hot_of(spread - 1e3 * np.arange(20)[:, np.newaxis]) == pytest.approx(hot)
    assert hot_of(spread - [0.0, 5e3, 0.0]) == pytest.approx(hot)
    assert hot_of(spread, hot=7.0) == 7.0
    assert hot_of(1e-6 * spread, cold=50.0) == 50.0
    assert hot_of(1e-6 * spread) == hot_of(1e-7 * spread) < hot  # at least this much


@pytest.mark.parametrize("small_first", [False, True])
def test_components_up_to_the_largest_are_solved(small_first):
    """The bound is exact for these, and every vertex with its best set for the others; all scores are positive."""
    parts = [large(14, 2), large(15, 1)][:: 1 if small_first else -1]
    lists, scores, first = [], [], 0
    for part in parts:
        lists += [
            [tuple(m + first for m in members) for members in part.families.sets_of(v)]
            for v in range(part.n)
        ]
        scores.append(part.scores + 30.0)
        first += part.n
    candidates = Candidates(
        tuple(f"v{v}" for v in range(29)), Families.of(lists), np.concatenate(scores)
    )
    run = Run(candidates, Limits(60.0), Workers(1))
    search = component_search(candidates, run)
    assert [len(part.vertices) for part in search.components.parts] == [15, 14]
    (searched,) = (part for part in parts if part.n == 15)
    (solved,) = (part for part in parts if part.n == 14)
    tops = [max(score for _, score in searched.of(vertex)) for vertex in range(15)]
    assert run.bound == pytest.approx(sum(tops) + best_by_subsets(lists_of(solved)) + 29 * 30.0)
