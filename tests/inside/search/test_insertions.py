"""Moves of one vertex by insertion against naive rescoring; twins and small problems in the annealer."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annealing_cases import large, lists_of, problems
from formulation_cases import candidates_of, random_scores
from qubayes.candidates import Candidates
from qubayes.foundation.families import Families
from qubayes.foundation.random import below, random_stream
from qubayes.foundation.workers import Workers
from qubayes.search import Limits, solve
from qubayes.search.orders import anneal, insertions
from qubayes.search.orders.anneal import Anneal
from qubayes.search.orders.insertions import (
    _mark,
    anneal_order,
    best_of,
    improve,
    order_state,
    regroup,
    restart_at,
)
from qubayes.search.orders.walks import order_problem
from qubayes.search.reduction import best_of_all, without_twins
from qubayes.search.run import Run
from reference import searches
from reference.annealing import Draws
from reference.networks import acyclic, best_by_subsets, score_of_order
from solve_cases import random_candidates

NEVER = np.zeros(1, np.bool_)


def test_an_improvement_ends_between_slices():
    """It looks after every ten moves; a look that says so ends it."""
    candidates = random_candidates(20, 3, sets=30)
    for moves, most, slices, asked in ((1000, 4, [10] * 4, 5), (25, 99, [10, 10, 5], 3)):
        problem, state = state_of(candidates, range(20))
        looks = []

        def over(looks=looks, most=most):
            looks.append(1)
            return len(looks) > most

        work = 10 * len(problem.scores)
        found = improve(problem, range(20), moves, over=over, slice_work=work)
        cooling = 0.1 ** (1 / moves)
        for before, made in enumerate(slices):
            anneal_order(problem, state, cooling ** (10 * before), cooling, made, NEVER)
        assert found.order.tolist() == state.best.tolist()
        assert len(looks) == asked


def test_patience_begins_after_the_first_round():
    candidates = large(40)
    found = solve(
        candidates, Anneal(patience=1e-9, walks=2), limits=Limits(600.0), workers=Workers(1)
    )
    assert found.statistics["moves"] >= 2 * anneal.SWEEPS * 40
    assert found.status.startswith("no better network")


def a_start(candidates: Candidates) -> list[int]:
    """An order in which required parents come first."""
    left, order = set(range(candidates.n)), []
    while left:
        order.append(min(vertex for vertex in left if not left & set(candidates.base(vertex))))
        left.remove(order[-1])
    return order


def state_of(candidates: Candidates, order, seed=0):
    problem = order_problem(candidates.families, candidates.scores)
    return problem, order_state(problem, order, seed)


@given(problems(2, 7), st.sampled_from([1, 5, 1000]))
def test_the_problem_lists_the_sets_of_every_edge(candidates, group):
    problem = order_problem(candidates.families, candidates.scores, group=group)
    n = candidates.n
    sets = [
        (vertex, set(members))
        for vertex in range(n)
        for members in candidates.families.sets_of(vertex)
    ]
    for number, (vertex, its) in enumerate(sets):
        assert problem.first[vertex] <= number < problem.first[vertex + 1]
        assert [member for member in problem.members[number].tolist() if member < n] == sorted(its)
        for k, member in enumerate(sorted(its)):
            later = [
                other
                for other in range(number, problem.first[vertex + 1])
                if member not in sets[other][1]
            ]
            assert number + problem.skip[number, k] == min(later, default=problem.first[vertex + 1])
    lists = {}
    for parent in range(n):
        for edge in range(problem.edge_start[parent], problem.edge_start[parent + 1]):
            listed = problem.lists[problem.list_start[edge] : problem.list_stop[edge]].tolist()
            lists[parent, int(problem.child[edge])] = listed
    pairs = {(parent, vertex) for vertex, its in sets for parent in its}
    assert lists == {
        (p, v): [number for number, (vertex, its) in enumerate(sets) if vertex == v and p in its]
        for p, v in pairs
    }


@given(problems(2, 9), st.sampled_from([0.01, 0.5, 5.0, 500.0]), st.integers(0, 1000))
def test_every_move_gives_each_vertex_its_best_allowed_set(candidates, temperature, seed):
    problem, state = state_of(candidates, a_start(candidates), seed)
    lists, seen = lists_of(candidates), [state.totals[0]]
    for _ in range(40):
        anneal_order(problem, state, temperature, 1.0, 1, NEVER)
        assert sorted(state.order.tolist()) == list(range(candidates.n))
        assert state.place[state.order].tolist() == list(range(candidates.n))
        score = score_of_order(lists, state.order.tolist())
        assert state.totals[0] == pytest.approx(score, abs=1e-9)
        assert candidates.scores[state.choice].sum() == pytest.approx(score, abs=1e-9)
        seen.append(score)
    assert state.totals[1] == pytest.approx(max(seen), abs=1e-6)
    assert score_of_order(lists, state.best.tolist()) == pytest.approx(state.totals[1], abs=1e-9)


def families_of(candidates: Candidates) -> list[dict[frozenset[int], float]]:
    return [
        {frozenset(members): score for members, score in candidates.of(v)}
        for v in range(candidates.n)
    ]


@given(problems(2, 9), st.sampled_from([0.05, 1.0, 8.0]), st.integers(0, 1000))
def test_moves_are_those_of_the_definition(candidates, temperature, seed):
    """Order, sets, scores and the best order, from the same random numbers; each length is a call of its own."""
    start, families = a_start(candidates), families_of(candidates)
    draws = Draws(*random_stream(seed).tolist())
    moves = searches.insertions(
        families,
        start,
        draws,
        insertions._NOISE.tolist(),
        insertions._REGROUP_EVERY,
        temperature,
        0.95,
    )
    best, kept = searches.order_score(families, start), start
    for length, order in enumerate(itertools.islice(moves, 2 * insertions._REGROUP_EVERY + 3), 1):
        problem, state = state_of(candidates, start, seed)
        assert anneal_order(problem, state, temperature, 0.95, length, NEVER) == length
        assert state.order.tolist() == order
        assert state.place.tolist() == [
            *(order.index(vertex) for vertex in range(candidates.n)),
            -1,
        ]
        chosen = candidates.families.sets_at(state.choice)
        assert [frozenset(members) for members in chosen] == searches.sets_of_order(families, order)
        score = searches.order_score(families, order)
        if score > best + 1e-6:
            best, kept = score, order
        assert state.totals[0] == pytest.approx(score, abs=1e-9)
        assert state.totals[1] == pytest.approx(best, abs=1e-9)
        assert state.best.tolist() == kept


def test_noise_has_the_distribution_of_gumbel():
    """Its mean is Euler's constant, its variance pi^2 / 6, its third cumulant 2 zeta(3)."""
    noise = insertions._NOISE.astype(float)
    assert noise.mean() == pytest.approx(0.5772157, abs=1e-3)
    assert noise.var() == pytest.approx(math.pi**2 / 6, abs=1e-2)
    assert ((noise - noise.mean()) ** 3).mean() == pytest.approx(2.404, abs=0.1)


@pytest.mark.parametrize("moves", [0, 30])
def test_improve_cools_from_hot_to_cold(moves):
    candidates = large(20, 1)
    for seed in range(10):
        problem, state = state_of(candidates, range(20), seed)
        anneal_order(problem, state, 4.0, (0.2 / 4.0) ** (1 / 30), moves, NEVER)
        found = improve(problem, range(20), moves, seed=seed, hot=4.0, cold=0.2)
        assert found.order.tolist() == state.best.tolist()


def test_a_stop_ends_the_moves():
    problem, state = state_of(large(20, 1), range(20))
    assert anneal_order(problem, state, 1.0, 1.0, 100, np.ones(1, np.bool_)) == 0
    assert state.order.tolist() == list(range(20))


@given(problems(2, 7), st.integers(0, 1000))
def test_a_cold_move_goes_to_the_best_place_of_all(candidates, seed):
    problem, state = state_of(candidates, a_start(candidates), seed)
    lists = lists_of(candidates)
    for _ in range(10):
        vertex = below(state.random.copy(), candidates.n)
        rest = [v for v in state.order.tolist() if v != vertex]
        orders = [[*rest[:k], vertex, *rest[k:]] for k in range(candidates.n)]
        anneal_order(problem, state, 1e-7, 1.0, 1, NEVER)
        assert state.order.tolist() in orders
        assert state.totals[0] == pytest.approx(
            max(score_of_order(lists, order) for order in orders), abs=1e-5
        )


@given(problems(2, 9), st.integers(0, 1000), st.booleans())
def test_regrouping_loses_no_set(candidates, seed, late):
    problem, state = state_of(candidates, a_start(candidates), seed)
    anneal_order(problem, state, 5.0, 1.0, 10, NEVER)
    before, seeds = state.choice.copy(), {int(v) for v in state.order[: 1 + seed % 3]}
    state.marked[:] = [vertex in seeds for vertex in range(candidates.n + 1)]
    regroup(
        problem.members, state.order, state.place, state.choice, state.marked, state.passed, late
    )
    marked = state.marked.copy()
    restart_at(problem, state, state.order)
    assert sorted(state.order.tolist()) == list(range(candidates.n))
    assert (state.choice <= before).all()  # sets come best first
    assert not (state.choice < before)[~marked[:-1]].any()  # no other vertex is looked at again
    relatives = related(candidates, before, seeds, late)
    places = range(candidates.n - len(relatives), candidates.n) if late else range(len(relatives))
    assert {int(state.order[place]) for place in places} == relatives
    assert state.totals[0] == pytest.approx(
        score_of_order(lists_of(candidates), state.order.tolist()), abs=1e-9
    )


def related(candidates: Candidates, choice, seeds: set[int], descendants: bool) -> set[int]:
    """The seeds and their descendants, or their ancestors, in the network of these sets."""
    edges = {
        (p, v) for v, parents in enumerate(candidates.families.sets_at(choice)) for p in parents
    }
    found = set(seeds)
    for _ in range(candidates.n):
        found |= {v if descendants else p for p, v in edges if (p if descendants else v) in found}
    return found


def test_places_are_drawn_with_the_odds_of_their_scores():
    # b has its parent in the order a, b only: e^1 against e^0, or e^0.5 against e^0 at twice the
    # temperature.
    candidates = Candidates(("a", "b"), Families.of([[()], [(0,), ()]]), np.array([0.0, 1.0, 0.0]))
    for temperature in (1.0, 2.0):
        problem, state = state_of(candidates, [0, 1], 1)
        first = 0
        for _ in range(20_000):
            anneal_order(problem, state, temperature, 1.0, 1, NEVER)
            first += int(state.order[0] == 0)
        odds = np.exp(1 / temperature)
        assert first / 20_000 == pytest.approx(odds / (1 + odds), abs=0.02)


@given(problems(2, 8))
def test_small_problems_are_solved_by_dynamic_programming(candidates):
    choice = best_of_all(candidates.families, candidates.scores)
    assert candidates.scores[choice].sum() == pytest.approx(
        best_by_subsets(lists_of(candidates)), abs=1e-9
    )
    chosen = [list(candidates.families.sets_of(v)) for v in range(candidates.n)]
    starts = candidates.families.vertex_start[:-1]
    assert acyclic([chosen[v][choice[v] - starts[v]] for v in range(candidates.n)])


@given(problems(2, 9), st.integers(0, 1000))
def test_the_search_finds_the_best_of_all(candidates, seed):
    problem = order_problem(candidates.families, candidates.scores)
    found = improve(problem, a_start(candidates), 100_000, seed=seed, hot=30.0)
    assert found.score == pytest.approx(best_by_subsets(lists_of(candidates)), abs=1e-9)
    assert found.score == pytest.approx(
        score_of_order(lists_of(candidates), found.order.tolist()), abs=1e-9
    )


def test_twins_are_eliminated_if_there_is_time(calls_of, set_clock):
    Anneal().prepare()
    calls = calls_of(anneal, "without_twins")
    set_clock(lambda: 0.0)
    candidates, moves = large(20, 1), Limits(None, moves=10)
    members = len(candidates.families.members)
    for seconds in (0.9 * anneal._TWINS * members, 1.1 * anneal._TWINS * members):
        solve(candidates, Anneal(), limits=dataclasses.replace(moves, seconds=seconds))
    for settings in (Anneal(), Anneal(twins=False)):
        solve(candidates, settings, limits=moves)
    assert [eliminate for (_, eliminate), _ in calls] == [False, True, True, False]


@pytest.mark.parametrize(
    ("threads", "moves", "walks"), [(2, None, 4), (6, None, 6), (6, 10, 4), (2, 10, 4)]
)
def test_with_a_time_limit_there_is_a_walk_for_each_thread(threads, moves, walks):
    assert Anneal(walks=4).walks_of(Run(large(), Limits(60.0, moves), Workers(threads))) == walks


@pytest.mark.parametrize("twins", [False, True])
def test_twins_leave_before_the_search(monkeypatch, twins):
    monkeypatch.setattr("qubayes.search.orders.anneal.MOST_VERTICES_OF_BEST_OF_ALL", 1)
    scores = random_scores(np.random.default_rng(3), 5, 2, 0.8)
    copies = [
        {
            frozenset(members): score
            for parents, score in known.items()
            for members in itertools.product(*((2 * parent, 2 * parent + 1) for parent in parents))
        }
        for known in scores
        for _ in range(2)
    ]
    candidates = candidates_of(copies)
    assert len(without_twins(candidates).twins) == 5
    solution = solve(candidates, Anneal(twins=twins), limits=Limits(None, moves=50_000))
    assert solution.score == pytest.approx(best_by_subsets(lists_of(candidates)), abs=1e-9)
    parents = candidates.families.sets_at(solution.choice)
    used = {parent for found in parents for parent in found}
    assert bool(used & {1, 3, 5, 7, 9}) != twins


def test_no_table_is_made_where_no_two_vertices_are_alike(monkeypatch):
    monkeypatch.delattr("qubayes.search.reduction.SetTable")
    candidates = large(40, 3)
    assert without_twins(candidates).candidates is candidates


def test_twins_share_their_work():
    """Copies of a column tie exactly: whichever comes first serves the others."""
    random = np.random.default_rng(3)
    scores = random_scores(random, 5, 2, 0.8)
    doubled = [dict(known) for known in scores for _ in range(2)]
    copies = [
        {frozenset(2 * p + k for p in parents): s for parents, s in d.items() for k in (0, 1)}
        for d in doubled
    ]
    candidates = candidates_of(copies)
    problem = order_problem(candidates.families, candidates.scores)
    found = improve(problem, range(10), 50_000, hot=30.0)
    assert found.score == pytest.approx(best_by_subsets(lists_of(candidates)), abs=1e-9)


def test_a_restart_keeps_the_best_order():
    candidates = large(50, 9)
    lists, (one, two) = (
        lists_of(candidates),
        [np.random.default_rng(seed).permutation(50).tolist() for seed in (1, 2)],
    )
    scores = {tuple(order): score_of_order(lists, order) for order in (one, two)}
    problem, state = state_of(candidates, one)
    for order in (two, one):
        restart_at(problem, state, order)
        assert state.totals.tolist() == pytest.approx(
            [scores[tuple(order)], max(scores.values())], abs=1e-9
        )
        assert state.best.tolist() == list(max(scores, key=lambda order: scores[order]))
        assert best_of(problem, state.order).choice.tolist() == state.choice.tolist()
    assert best_of(problem, one).score == pytest.approx(scores[tuple(one)], abs=1e-9)


@pytest.mark.parametrize("parents", [False, True])
def test_a_vertex_is_marked_with_some_of_its_parents_or_children(parents):
    """Those whose bit of the word is set, by the last five bits of their number; never the place behind the last."""
    n, random = 70, np.random.default_rng(3)
    members = np.array(
        [random.permutation([v for v in range(n) if v != vertex])[:30] for vertex in range(n)]
    )
    choice, marked = np.arange(n), np.ones(n + 1, np.bool_)
    for word in (0, 2**32 - 1, 0x80000001, int(random.integers(2**32))):
        for vertex in (0, 31, 69):
            _mark(members, choice, marked, vertex, parents, np.uint64(word))
            near = [
                v for v in range(n) if (v in members[vertex] if parents else vertex in members[v])
            ]
            expected = {vertex, *(v for v in near if word >> v % 32 & 1)}
            assert set(np.flatnonzero(marked).tolist()) == expected
