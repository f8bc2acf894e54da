"""Order ideals: lower bounds that no network undercuts, and proofs that exhaustion confirms."""

import math
import tracemalloc

import numpy as np
import pytest
from test_proofs import every_cluster, proved, some_halves

from qubayes.candidates import Candidates
from qubayes.foundation.jit import kernel
from qubayes.foundation.workers import Workers
from qubayes.search import Limits, Run
from qubayes.search.exact import ideals
from qubayes.search.exact.component_proof import ComponentProof
from qubayes.search.exact.cuts import ClusterCuts, ScoredSets, no_cuts
from qubayes.search.exact.ideals import compile_ideals, greedy_duals, memory, search_ideals
from qubayes.search.exact.plan import PLAN
from qubayes.search.exact.relaxation import Bounded, lagrangian_bounds
from qubayes.search.reduction import split
from solve_cases import best_score, random_candidates, with_required_edge

# Many sets: the linear program is not tried first.
SEARCH = PLAN._replace(easy_sets=0)


def sets_of(candidates: Candidates) -> ScoredSets:
    return ScoredSets.of(candidates.families, candidates.scores)


def run_of(candidates: Candidates, limits: Limits | None = None) -> Run:
    return Run(candidates, limits or Limits(None), Workers(1))


def least_cost(candidates: Candidates) -> float:
    """The cost of the best network."""
    top = math.fsum(candidates.scores[candidates.families.vertex_start[:-1]].tolist())
    return top - best_score(candidates)


def random_bound(candidates: Candidates, seed: int) -> Bounded:
    """Multipliers of random cuts: clusters with k = 1 and 2, and zero-half cuts."""
    random, sets = np.random.default_rng(seed), sets_of(candidates)
    clusters = every_cluster(candidates.n, 1).join(every_cluster(candidates.n, 2))
    some = clusters.select(random.permutation(clusters.total)[:8])
    cuts = some.join(some_halves(clusters, seed, 6))
    weights = 2.0 * random.random(cuts.total)
    return lagrangian_bounds(sets, cuts, weights, np.ones(len(sets.costs), np.bool_), 100.0)


def everything(candidates: Candidates) -> np.ndarray:
    return np.ones(len(candidates.scores), np.bool_)


@pytest.mark.parametrize("seed", range(25))
def test_no_network_is_below_the_bound_of_a_search(seed):
    """With any multipliers and any threshold; from the optimum on the search finds it, in an order that has it."""
    candidates = random_candidates(6, seed, sets=8, ties=seed % 2 == 0)
    sets, bounded, optimum = (
        sets_of(candidates),
        random_bound(candidates, seed),
        least_cost(candidates),
    )
    for part in (0.0, 0.3, 0.7, 0.99):
        threshold = bounded.cost + part * (optimum - bounded.cost)
        found = search_ideals(
            sets, bounded, everything(candidates), threshold, 100, 100.0, run_of(candidates)
        )
        assert found.finished and found.best == math.inf
        assert threshold - 1e-7 < found.cost <= optimum
    found = search_ideals(
        sets, bounded, everything(candidates), optimum + 1e-6, 100, 100.0, run_of(candidates)
    )
    assert found.finished and found.best == pytest.approx(optimum, abs=1e-9)
    assert found.cost == pytest.approx(optimum, abs=1e-7)
    choice = candidates.families.best_of_order(found.order)
    assert candidates.scores[choice].sum() == pytest.approx(best_score(candidates), abs=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_the_bound_of_a_state_is_below_every_completion(seed):
    """For all sets of first vertices, by dynamic programming from the end; the empty one has the multipliers' bound."""
    n = 5
    candidates = random_candidates(n, seed, sets=6)
    sets, optimum = sets_of(candidates), least_cost(candidates)
    bounded = max(
        (scaled(random_bound(candidates, seed), sets, size) for size in (0.1, 0.3, 1.0)),
        key=lambda b: b.cost,
    )
    potential = ideals.Potential.of(sets, bounded)

    def inside(vertex: int, first: int) -> float:
        scored = candidates.of(vertex)
        return max(
            score for members, score in scored if all(first >> member & 1 for member in members)
        )

    top = [next(iter(candidates.of(vertex)))[1] for vertex in range(n)]
    rest = {2**n - 1: 0.0}
    for first in range(2**n - 2, -1, -1):
        others = [v for v in range(n) if not first >> v & 1]
        rest[first] = min(top[v] - inside(v, first) + rest[first | 1 << v] for v in others)
    assert rest[0] == pytest.approx(optimum)
    bounds, falls, fill_falls = {}, {}, kernel(ideals.fill_falls)
    for first in range(2**n):
        fall, steps = np.zeros(n), np.zeros(n, np.int64)
        bounds[first] = fill_falls(potential, np.uint64(first), fall, steps)
        falls[first] = fall
    assert bounds[0] == pytest.approx(bounded.cost, abs=1e-6) and bounds[2**n - 1] == pytest.approx(
        0.0
    )
    for first, bound in bounds.items():
        assert bound <= rest[first] + 1e-9
        for v in range(n):
            if not first >> v & 1:
                assert falls[first][v] == pytest.approx(bound - bounds[first | 1 << v], abs=1e-9)


def scaled(bounded: Bounded, sets: ScoredSets, size: float) -> Bounded:
    """The same cuts with smaller weights."""
    return lagrangian_bounds(
        sets, bounded.cuts, size * bounded.weights, np.ones(len(sets.costs), np.bool_), 100.0
    )


def test_a_potential_keeps_states_away():
    """The bound of the empty state is that of the multipliers: with them fewer states are met than without."""
    candidates = random_candidates(9, 1, sets=40)
    sets, allowed = sets_of(candidates), everything(candidates)
    plain = lagrangian_bounds(sets, no_cuts(9), np.zeros(0), allowed, 100.0)
    raised = greedy_duals(sets, plain, allowed, 100.0, 0)
    optimum = least_cost(candidates)
    states = [
        search_ideals(sets, bounded, allowed, optimum, 600, 100.0, run_of(candidates)).states
        for bounded in (plain, raised)
    ]
    assert states[1] <= states[0] / 2


@pytest.mark.parametrize("seed", range(10))
def test_greedy_duals_raise_a_sound_bound(seed):
    candidates = random_candidates(8, seed, sets=15)
    sets, allowed = sets_of(candidates), everything(candidates)
    bounded = lagrangian_bounds(sets, no_cuts(8), np.zeros(0), allowed, 100.0)
    raised = greedy_duals(sets, bounded, allowed, 100.0, seed)
    assert (raised.weights > 0).all() and (raised.cuts.needs == 1).all()
    assert 0.0 < raised.cost <= least_cost(candidates) + 1e-9
    if raised.cost < least_cost(candidates) - 1e-6:
        assert raised.cost > 0.3 * least_cost(candidates)
    given = random_bound(candidates, seed)
    assert (
        given.cost
        <= greedy_duals(sets, given, allowed, 100.0, seed).cost
        <= least_cost(candidates) + 1e-9
    )


def test_too_many_states_end_the_search():
    candidates = random_candidates(9, 1, sets=40)
    sets, allowed = sets_of(candidates), everything(candidates)
    plain = lagrangian_bounds(sets, no_cuts(9), np.zeros(0), allowed, 100.0)
    found = search_ideals(
        sets, plain, allowed, least_cost(candidates), 20, 100.0, run_of(candidates)
    )
    assert not found.finished and found.states == 20


def test_a_search_that_is_out_of_time_says_so():
    candidates = random_candidates(9, 1, sets=40)
    sets, allowed, run = (
        sets_of(candidates),
        everything(candidates),
        run_of(candidates, Limits(100.0)),
    )
    run.stop[0] = True
    plain = lagrangian_bounds(sets, no_cuts(9), np.zeros(0), allowed, 100.0)
    assert not search_ideals(sets, plain, allowed, least_cost(candidates), 600, 100.0, run).finished


def test_the_memory_is_known_beforehand():
    candidates = random_candidates(5, 1)
    sets, allowed = sets_of(candidates), everything(candidates)
    plain = lagrangian_bounds(sets, no_cuts(5), np.zeros(0), allowed, 100.0)
    compile_ideals()
    for most in (100_000, 700_000):
        tracemalloc.start()
        search_ideals(sets, plain, allowed, 100.0, most, 100.0, run_of(candidates))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert memory(most) <= peak <= memory(most) + 200_000
        assert memory(most) <= 36 * most


@pytest.mark.parametrize("n", [5, 9, 11])
def test_ideals_prove_without_a_linear_program(n):
    for seed in range(4):
        candidates = random_candidates(n, seed, sets=30)
        run, ending = proved(candidates, SEARCH, None)
        assert run.proved and run.score == pytest.approx(best_score(candidates), abs=1e-9)
        assert ending.statistics["rounds"] == ending.statistics["nodes"] == 0
        assert ending.statistics["states"] > 0 or n == 5  # where greedy duals may be enough


@pytest.mark.parametrize("seed", range(3))
def test_ideals_keep_required_edges(seed):
    candidates = with_required_edge(7, seed)
    run, _ = proved(candidates, SEARCH, None)
    assert run.proved and run.score == pytest.approx(best_score(candidates), abs=1e-9)


@pytest.mark.parametrize("most", [0, 3, 40])
def test_few_states_leave_a_bound_and_the_rest_to_branching(most):
    candidates = random_candidates(9, 0, sets=20)
    run, _ = proved(candidates, SEARCH._replace(states_per_round=most, most_states=most), None)
    assert run.proved and run.score == pytest.approx(best_score(candidates), abs=1e-9)


class Recorded(ComponentProof):
    """It notes the numbers of states that the stages of a search may have."""

    def search_stage(self, run, bounded, threshold, most):
        self.allowed = [*getattr(self, "allowed", []), most]
        return super().search_stage(run, bounded, threshold, most)


def test_finished_stages_raise_the_bound():
    """The last stage is never begun: the bound is that of an earlier one, above the multipliers' own."""
    candidates = random_candidates(10, 2, sets=40)
    plan = PLAN._replace(stages=(0.25, 0.5))
    component = Recorded(split(candidates)[0], np.arange(10), 1e-9, plan=plan)
    run = run_of(candidates)
    component.begin_search(run)
    plain = lagrangian_bounds(component.sets, no_cuts(10), np.zeros(0), component.alive, 100.0)
    component.keep_bound(plain)
    component.search_ideals(run, 10_000)
    optimum = least_cost(candidates)
    assert 0.5 * optimum - 1e-6 <= component.cost < optimum
    assert component.cutoff == pytest.approx(optimum)
    assert component.allowed == [10_000 // plan.first_stage_share, 10_000]


def test_the_path_does_not_depend_on_the_limit():
    """By counts alone, with branching and without, whatever limit is not reached."""
    candidates = random_candidates(13, 3, sets=80)
    for largest in (PLAN.order_graph_vertices, 0):
        plan = PLAN._replace(order_graph_vertices=largest)
        found = [proved(candidates, plan, seconds) for seconds in (300.0, None)]
        assert all(run.proved for run, _ in found)
        statistics = [ending.statistics for _, ending in found]
        assert statistics[0] == statistics[1]
    assert statistics[0]["nodes"] > 0


def test_cuts_of_the_root_stay_while_there_is_branching():
    candidates = random_candidates(14, 3, sets=120)
    plan = PLAN._replace(idle_rounds=1, order_graph_vertices=0)
    component = ComponentProof(split(candidates)[0], np.arange(14), 1e-9, plan=plan)
    run, kept = run_of(candidates), []
    component.prove(run)
    component.shrink()
    root: ClusterCuts = component.relaxation.cuts
    for _ in range(6):
        component.relax(run, plan.node, component.alive)
        kept.append(component.relaxation.cuts)
    assert root.total > 0
    for cuts in kept:
        assert (cuts.inside[: len(root.inside)] == root.inside).all() and cuts.total >= root.total
