"""Inside proofs: cuts that no network violates, bounds that no network exceeds, branching."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, pairwise, permutations, product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qubayes.candidates import Candidates, Families, prune
from qubayes.foundation.arrays import Floats, Ints
from qubayes.foundation.graph import find_cycle
from qubayes.foundation.workers import Workers
from qubayes.search import Ending, Limits, Run
from qubayes.search.exact import component_proof, upper_bound
from qubayes.search.exact.branching import branch, fractional_edges, split_on_edge
from qubayes.search.exact.component_proof import BranchNode, ComponentProof
from qubayes.search.exact.cuts import (
    ClusterCuts,
    ScoredSets,
    cluster_cuts,
    coefficients,
    edge_values,
    no_cuts,
    support_of,
    violated_clusters,
    zero_half_cuts,
)
from qubayes.search.exact.exact import prove
from qubayes.search.exact.plan import PLAN, Effort, Plan
from qubayes.search.exact.proof import Proof
from qubayes.search.exact.relaxation import LinearRelaxation, Point, lagrangian_costs
from qubayes.search.reduction import split, without_twins
from solve_cases import best_score, random_candidates, sparse_candidates

# No order graph, and no cuts but those that a cycle needs: the tree has to do the work.
BRANCHING = PLAN._replace(order_graph_vertices=0, few_cuts=0, least_violation=0.9)
# None but the networks of the orders that solutions suggest.
NO_SEARCH = {"first_moves": 0, "node_moves": 0}


def component_of(candidates: Candidates, plan: Plan = PLAN) -> ComponentProof:
    """The largest component, nothing known of it yet."""
    part = split(candidates)[0]
    return ComponentProof(part, np.arange(len(part.vertices)), 1e-9, plan=plan)


def proved(candidates: Candidates, plan: Plan, seconds: float | None = 60.0) -> tuple[Run, Ending]:
    """The run and its end with this plan."""
    run = Run(candidates, Limits(seconds), Workers(1))
    return run, prove(candidates, run, plan=plan)


def run_of(candidates: Candidates, seconds: float) -> Run:
    """A run that starts from the required edges alone."""
    return Run(candidates, Limits(seconds), Workers(1))


def choices_of(sets: ScoredSets) -> list[tuple[int, ...]]:
    """Every choice of one set for each vertex."""
    return list(product(*(range(a, b) for a, b in pairwise(sets.families.vertex_start))))


def members_of(sets: ScoredSets, number: int) -> tuple[int, ...]:
    return sets.families.set_at(number)


def networks_of(sets: ScoredSets) -> list[tuple[int, ...]]:
    """The choices without a cycle."""
    return [
        choice
        for choice in choices_of(sets)
        if not find_cycle([members_of(sets, s) for s in choice])
    ]


def coefficient(sets: ScoredSets, cuts: ClusterCuts, cut: int, number: int) -> int:
    """The coefficient of a set in a cut, from the definition."""
    vertex, members = int(sets.owners[number]), set(members_of(sets, number))
    crossed = int(cuts.odd[cut, vertex])
    for cluster in range(cuts.start[cut], cuts.start[cut + 1]):
        inside = set(np.flatnonzero(cuts.inside[cluster]).tolist())
        crossed += vertex in inside and len(inside & members) >= cuts.needs[cluster]
    return crossed // int(cuts.divisors[cut])


def left_side(sets: ScoredSets, cuts: ClusterCuts, cut: int, choice: tuple[int, ...]) -> int:
    """The sum of the coefficients of the chosen sets."""
    return sum(coefficient(sets, cuts, cut, number) for number in choice)


def every_cluster(n: int, need: int) -> ClusterCuts:
    clusters = [c for size in range(need + 1, n + 1) for c in combinations(range(n), size)]
    inside = np.zeros((len(clusters), n), np.uint8)
    for row, cluster in enumerate(clusters):
        inside[row, list(cluster)] = 1
    return cluster_cuts(inside, need)


def some_halves(cuts: ClusterCuts, seed: int, count: int = 20) -> ClusterCuts:
    """Zero-half cuts of random sums."""
    random, n = np.random.default_rng(seed), cuts.odd.shape[1]
    found = no_cuts(n)
    for _ in range(count):
        which = np.sort(random.permutation(cuts.total)[: random.integers(1, 6)])
        odd = random.integers(0, 2, (1, n)).astype(np.uint8)
        clusters = np.array([0, len(which)])
        found = found.join(
            ClusterCuts(clusters, cuts.inside[which], cuts.needs[which], odd, np.array([2]))
        )
    return found


@pytest.mark.parametrize("seed", range(4))
def test_no_cut_removes_a_network(seed):
    sets = component_of(random_candidates(5, seed, sets=3)).sets
    n = sets.families.n
    clusters = every_cluster(n, 1).join(every_cluster(n, 2))
    cuts = clusters.join(some_halves(clusters, seed))
    for choice in networks_of(sets):
        assert all(left_side(sets, cuts, cut, choice) <= cuts.rhs[cut] for cut in range(cuts.total))


@pytest.mark.parametrize("seed", range(4))
def test_clusters_with_k_1_leave_networks_alone(seed):
    sets = component_of(random_candidates(5, seed, sets=3)).sets
    cuts = every_cluster(sets.families.n, 1)
    for choice in choices_of(sets):
        kept = all(left_side(sets, cuts, cut, choice) <= cuts.rhs[cut] for cut in range(cuts.total))
        assert kept == (not find_cycle([members_of(sets, number) for number in choice]))


@pytest.mark.parametrize("seed", range(4))
def test_coefficients_and_prices_follow_the_definition(seed):
    random = np.random.default_rng(seed)
    sets = component_of(random_candidates(6, seed, sets=8)).sets
    n = sets.families.n
    clusters = every_cluster(n, 1).join(every_cluster(n, 2))
    cuts = clusters.join(some_halves(clusters, seed))
    cuts = cuts.select(random.permutation(cuts.total))
    which = np.arange(len(sets.costs))
    table = coefficients(sets, which, cuts)
    for cut, room in enumerate(cuts.rhs.tolist()):
        own = slice(cuts.start[cut], cuts.start[cut + 1])
        whole = int(cuts.inside[own].sum()) - int(cuts.needs[own].sum()) + int(cuts.odd[cut].sum())
        assert room == whole // cuts.divisors[cut]
    weights = random.random(cuts.total)
    allowed = random.random(len(which)) < 0.8
    found = lagrangian_costs(sets, allowed, cuts, weights)
    for number in which.tolist():
        expected = [coefficient(sets, cuts, cut, number) for cut in range(cuts.total)]
        assert table[:, number].tolist() == expected
        price = sets.costs[number] + weights @ np.array(expected) if allowed[number] else math.inf
        assert found[number] == pytest.approx(price, rel=1e-12)


@pytest.mark.parametrize("size", [255, 256, 257])
def test_many_members_in_a_cluster(size):
    members = np.arange(1, size + 1, dtype=np.int32)
    n = size + 1
    families = Families(np.array([0] + [1] * n), np.array([0, size]), members)
    sets = ScoredSets(families, np.zeros(1, np.int32), np.zeros(1))
    assert coefficients(
        sets, np.array([0]), cluster_cuts(np.ones((1, n), np.uint8), 1)
    ).tolist() == [[1]]


@given(seed=st.integers(0, 10_000))
def test_the_bound_of_any_multipliers_is_sound(seed):
    random = np.random.default_rng(seed)
    sets = component_of(random_candidates(5, seed, sets=3)).sets
    n = sets.families.n
    clusters = every_cluster(n, 1).join(every_cluster(n, 2))
    cuts = clusters.select(random.permutation(clusters.total)[:6])
    relaxation = LinearRelaxation(sets, 100.0)
    relaxation.add_cuts(cuts.join(some_halves(clusters, seed, 3)))
    weights = 4 * random.random(relaxation.cuts.total) - 1  # those below 0 count as 0
    bounded = relaxation.bounded(weights, np.ones(len(sets.costs), np.bool_))
    for choice in networks_of(sets):
        loss = sets.costs[list(choice)].sum()
        assert loss >= bounded.cost
        assert all(loss >= bounded.with_set[number] for number in choice)


def two_vertices(losses: Sequence[float]) -> ScoredSets:
    """Each of the two wants the other for a parent and loses this without it."""
    return ScoredSets.of(
        Families.of([[(1,), ()], [(0,), ()]]), -np.array([0.0, losses[0], 0.0, losses[1]])
    )


@pytest.mark.parametrize("seed", range(20))
def test_the_margin_covers_the_rounding_of_the_multipliers(seed):
    """One cut many times: its weights are summed one by one, and the bound is the cost but for rounding."""
    random = np.random.default_rng(seed)
    weights = random.random(60)
    cuts = cluster_cuts(np.ones((60, 2), np.uint8), 1)
    price = float(
        lagrangian_costs(two_vertices((0.0, 0.0)), np.ones(4, np.bool_), cuts, weights)[0]
    )
    relaxation = LinearRelaxation(two_vertices((price, price)), 0.0)
    relaxation.add_cuts(cuts)
    bounded = relaxation.bounded(weights, np.ones(4, np.bool_))
    assert price - 1e-9 < bounded.cost <= price
    exact = 2 * Fraction(price) - sum(map(Fraction, weights.tolist()))
    assert Fraction(bounded.cost) <= exact and (bounded.with_set <= price).all()


@pytest.mark.parametrize("seed", range(20))
def test_the_margin_covers_the_rounding_of_the_scores(seed):
    """Scores far from 0, whose sums are rounded: the bound is no less than the exact sum."""
    random = np.random.default_rng(seed)
    scores = -1e7 - 10 * random.random((2, 2))
    scores.sort()
    candidates = prune(
        "ab",
        [[((1,), scores[0, 1]), ((), scores[0, 0])], [((0,), scores[1, 1]), ((), scores[1, 0])]],
    )
    component = component_of(candidates)
    component.relax(run_of(candidates, 600.0), PLAN.root)
    best = max(Fraction(scores[v, 1]) + Fraction(scores[1 - v, 0]) for v in range(2))
    assert best <= Fraction(component.bound) <= best + Fraction(1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_the_relaxation_is_solved(seed):
    """With all cuts and sets in it the bound is the optimum of the linear program, found by another solver."""
    from scipy.optimize import linprog

    sets = component_of(random_candidates(5, seed, sets=5)).sets
    n, cuts = sets.families.n, every_cluster(sets.families.n, 1)
    relaxation = LinearRelaxation(sets, 100.0)
    relaxation.add_sets(np.arange(0, len(sets.costs), 2))
    relaxation.add_cuts(cuts)
    relaxation.add_sets(np.arange(1, len(sets.costs), 2))
    point = relaxation.solve(10.0, np.zeros(1, np.bool_))
    assert point is not None and point.optimal
    table = coefficients(sets, np.arange(len(sets.costs)), cuts)
    one_each = (sets.owners[None, :] == np.arange(n)[:, None]).astype(float)
    known = linprog(sets.costs, table, cuts.rhs, one_each, np.ones(n))
    bounded = relaxation.bounded(point.weights, np.ones(len(sets.costs), np.bool_))
    assert bounded.cost == pytest.approx(known.fun, abs=1e-7)


@pytest.mark.parametrize("length", [2, 3, 7, 30])
def test_every_cycle_of_a_whole_solution_is_found(length):
    families = Families.of([[((v - 1) % length,), ()] for v in range(length)])
    sets = ScoredSets.of(families, np.tile([0.0, -1.0], length))
    support = support_of(sets, 2 * np.arange(length), np.ones(length))
    assert violated_clusters(support, 1, 1.0 - 1e-9).inside[0].all()


def violation(
    sets: ScoredSets, numbers: Ints, values: Floats, found: ClusterCuts, cut: int
) -> float:
    """By how much a point violates a cluster cut: k minus the value of its vertices' sets that do not cross it."""
    inside = set(np.flatnonzero(found.inside[cut]).tolist())
    point = zip(numbers.tolist(), values.tolist(), strict=True)
    missing = [
        v
        for s, v in point
        if int(sets.owners[s]) in inside and not coefficient(sets, found, cut, s)
    ]
    return int(found.needs[cut]) - sum(missing)


@pytest.mark.parametrize("need", [1, 2])
def test_clusters_that_are_found_are_violated(need):
    """The worst comes first."""
    total = 0
    for seed in range(8):
        random = np.random.default_rng(seed)
        sets = component_of(random_candidates(7, seed, sets=6)).sets
        numbers = np.sort(random.permutation(len(sets.costs))[:25])
        values = random.random(len(numbers))
        found = violated_clusters(support_of(sets, numbers, values), need, 0.01)
        violations = [violation(sets, numbers, values, found, cut) for cut in range(found.total)]
        assert (found.needs == need).all() and (found.divisors == 1).all()
        assert (np.diff(violations) <= 1e-9).all() and min(violations, default=1.0) >= 0.01 - 1e-9
        total += found.total
    assert total > (20 if need == 1 else 2)


@pytest.mark.parametrize("most", [3, 16])
def test_zero_half_cuts_that_are_found_are_violated(most):
    """By a point with one set for each vertex in all, in halves: half of the sum, rounded down, by the definition."""
    sizes: set[int] = set()
    for seed in range(20):
        random = np.random.default_rng(seed)
        sets = component_of(random_candidates(6, seed, sets=6)).sets
        first = sets.families.vertex_start.tolist()
        numbers = np.sort(
            np.concatenate([a + random.permutation(b - a)[:2] for a, b in pairwise(first)])
        )
        values = np.full(len(numbers), 0.5)
        base = every_cluster(sets.families.n, 1)
        fitting = [
            sum(
                v * coefficient(sets, base, cut, s)
                for s, v in zip(numbers.tolist(), values, strict=True)
            )
            <= rhs
            for cut, rhs in enumerate(base.rhs.tolist())
        ]
        found = zero_half_cuts(sets, numbers, values, base.select(np.array(fitting)), 0.01, most)
        left = [
            sum(0.5 * coefficient(sets, found, cut, s) for s in numbers.tolist())
            for cut in range(found.total)
        ]
        violations = [side - rhs for side, rhs in zip(left, found.rhs.tolist(), strict=True)]
        assert (
            violations == sorted(violations, reverse=True) and min(violations, default=1.0) >= 0.01
        )
        assert (found.divisors == 2).all() and (np.diff(found.start) > 0).all()
        sizes |= set(np.diff(found.start).tolist())
    assert max(sizes, default=0) <= most and (most == 3 or max(sizes) > 3)


def test_the_root_is_bounded_by_the_optimum():
    candidates = random_candidates(8, 3, sets=20, most=3)
    component = component_of(candidates)
    relaxed = component.relax(run_of(candidates, 20.0), PLAN.root)
    assert component.cost == relaxed.cost > 0.0
    assert component.bound >= best_score(candidates) - 1e-9


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("limit", ["easy_rounds", "easy_sets", "easy_vertices"])
def test_a_search_over_orders_helps_where_a_proof_is_not_near(limit, seed, monkeypatch, set_clock):
    """Its kernels are compiled while the clock stands, and the proof is the same with and without it."""
    clock = [0.0]

    def compile_order_search() -> None:
        clock[0] += 100.0

    candidates = random_candidates(8, seed)
    best = best_score(candidates)
    assert proved(candidates, PLAN)[0].score == pytest.approx(best, abs=1e-9)
    monkeypatch.setattr(component_proof, "compile_order_search", compile_order_search)
    set_clock(SimpleNamespace(perf_counter=lambda: clock[0]), "qubayes.foundation.stop")
    run, _ = proved(candidates, PLAN._replace(**{limit: -1}), 30.0)
    assert clock[0] >= 100.0
    assert run.proved and run.score == pytest.approx(best, abs=1e-9)
    assert run.trace[-1][0] == run.elapsed == 0.0


@pytest.mark.parametrize("seed", range(3))
def test_sets_are_added_to_the_program_as_they_are_needed(seed):
    candidates = random_candidates(8, seed, sets=40)
    run, _ = proved(candidates, PLAN._replace(first_sets=1))
    assert run.proved
    assert run.score == pytest.approx(best_score(candidates), abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_branching_proves_what_the_relaxation_leaves_open(seed):
    candidates = random_candidates(9, seed, sets=20)
    run, ending = proved(candidates, BRANCHING)
    assert ending.statistics["nodes"] > 0
    assert run.proved
    assert run.score == pytest.approx(best_score(candidates), abs=1e-9)


@pytest.mark.parametrize("plan", [PLAN, BRANCHING], ids=["all cuts", "cuts of whole cycles"])
@pytest.mark.parametrize(
    ("n", "sets", "seed"),
    [(6, 12, 0), (6, 12, 4), (7, 12, 0), (8, 15, 4), (9, 20, 0), (9, 20, 1), (9, 20, 4)],
)
def test_the_tree_proves_the_optimum_without_a_search_over_orders(n, sets, seed, plan):
    """From a poor network: no bound is below the optimum."""
    candidates = random_candidates(n, seed, sets=sets)
    best, bounds = best_score(candidates), []
    component = ComponentProof(
        split(candidates)[0],
        np.arange(n),
        1e-9,
        lambda: bounds.append(component.bound),
        plan._replace(**NO_SEARCH),
    )
    assert component.n == n and component.best.score < best - 1
    branch(component, run_of(candidates, 600.0))
    assert component.proved
    assert component.best.score == pytest.approx(best, abs=1e-9)
    assert min(bounds) >= best - 1e-9


def branchings(node: BranchNode) -> int:
    """Number of nodes of the tree that were branched on."""
    return bool(node.sides) + sum(map(branchings, node.sides))


@pytest.mark.parametrize("seed", range(8))
def test_sets_that_were_not_priced_leave_no_false_proof(seed):
    """Nodes end after one round with few of their sets in the program: a network of those need not be the best."""
    candidates = random_candidates(5, seed)
    plan = PLAN._replace(first_sets=1, node=Effort(1, 0, 0), **NO_SEARCH)
    component = component_of(candidates, plan)
    component.tree = component.node = BranchNode()
    assert component.n == 5
    nodes = branch(component, run_of(candidates, 600.0))
    # Each node has one round; it is followed by two nodes of an edge, or by itself with more cuts.
    assert nodes == component.rounds + branchings(component.tree)
    best = best_score(candidates)
    assert component.proved and component.bound >= best - 1e-9
    assert component.best.score == pytest.approx(best, abs=1e-9)


def test_both_sides_of_an_edge_hold_every_network():
    component = component_of(random_candidates(5, 1, sets=4))
    everything = np.ones(len(component.sets.costs), np.bool_)
    for parent, child in permutations(range(component.n), 2):
        with_edge, without = split_on_edge(component.sets, everything, parent, child)
        for choice in networks_of(component.sets):
            has = parent in members_of(component.sets, choice[child])
            assert (with_edge if has else without)[list(choice)].all()
            assert not (without if has else with_edge)[list(choice)].all()


def test_fractional_edges_are_those_between_0_and_1():
    component = component_of(random_candidates(5, 1, sets=4))
    values = np.zeros(len(component.relaxation.columns))
    first = component.sets.families.vertex_start[:-1]
    place = {number: p for p, number in enumerate(component.relaxation.columns.tolist())}
    values[[place[number] for number in first[1:].tolist()]] = 1.0
    values[[place[int(first[0])], place[int(first[0]) + 1]]] = 0.25, 0.75
    point = Point(values, np.zeros(0), True)
    edges = edge_values(component.support(point))
    found = {tuple(edge) for edge in fractional_edges(component, point).tolist()}
    assert found == {tuple(edge) for edge in np.argwhere((edges > 0) & (edges < 1)).tolist()}
    assert found and all(child == 0 for _, child in found)


@pytest.mark.parametrize("seed", range(3))
def test_required_edges_survive_branching(seed):
    """Sets that reduced costs remove, bases among them, do not let a vertex come before its required parents."""
    free = random_candidates(9, seed, sets=20)
    lists = [
        [(tuple(sorted({*members, *((v - 1,) if v % 3 else ())})), s) for members, s in free.of(v)]
        for v in range(9)
    ]
    forbidden = {v: {w for w in range(v + 1, 9) if w // 3 == v // 3} for v in range(9)}
    kept = [
        [(members, s) for members, s in lists[v] if not forbidden[v] & {*members}] for v in range(9)
    ]
    candidates = prune(
        free.names,
        [list(dict(sorted(family, key=lambda item: item[1])).items()) for family in kept],
    )
    run, _ = proved(candidates, BRANCHING)
    assert run.proved
    assert run.score == pytest.approx(best_score(candidates), abs=1e-9)


def test_twins_that_agree_but_for_rounding_leave_a_slack():
    """e and f prefer b to a and d to c by less than rounding may be: that is lost with b and d; the bound covers it."""
    unit, empty = 2.0**-24, ((), -1e6)
    first, second = ([((6,), -1e6 + gain), empty] for gain in (1, 2))
    e = [empty, ((0,), -1e6 + 3), ((1,), -1e6 + 3 + unit)]
    f = [empty, ((2,), -1e6 + 4), ((3,), -1e6 + 4 + unit)]
    candidates = prune("abcdefg", [first, first, second, second, e, f, [empty]])
    reduced = without_twins(candidates)
    assert reduced.twins == ((1, 0), (3, 2))
    best = best_score(candidates)
    assert best - best_score(reduced.candidates) == 2 * unit
    assert 2 * unit <= reduced.rounding <= 4 * unit
    assert upper_bound(candidates, 600.0).value == best


def test_a_component_of_too_many_vertices_has_the_bound_of_its_best_sets():
    plan = PLAN._replace(most_vertices=69, easy_vertices=0)  # orders are searched from the start
    candidates = random_candidates(70, 1, sets=6)
    assert [len(part.vertices) for part in split(candidates)] == [70]
    run, ending = proved(candidates, plan, 600.0)
    assert ending.status == "a component has too many variables for a proof; best so far returned"
    assert (ending.statistics["rounds"], ending.statistics["nodes"]) == (0, 0)
    top = candidates.scores[candidates.families.vertex_start[:-1]].sum()
    assert run.bound == pytest.approx(top)
    for most, better in ((69, False), (70, True)):
        relaxed = run_of(candidates, 60.0)
        Proof(without_twins(candidates), relaxed, plan._replace(most_vertices=most)).relax()
        assert (relaxed.bound < top - 1e-6) == better


def test_the_tolerances_of_all_components_add_up_to_a_part_of_the_score():
    candidates = sparse_candidates(30, 1)
    run = run_of(candidates, 10.0)
    score = run.score  # of the network from which the proof starts
    components = Proof(without_twins(candidates, False), run).components
    assert len(components) >= 3 and abs(score) > 100
    assert math.fsum(each.tolerance for each in components) == pytest.approx(
        0.5e-9 * abs(score), rel=1e-12, abs=0
    )


class Recorded(ComponentProof):
    """It notes the efforts of the relaxation, and makes none."""

    def relax(self, run, effort, among=None):
        self.efforts = [*getattr(self, "efforts", []), effort]


@pytest.mark.parametrize(("largest", "first"), [(7, PLAN.easy_rounds), (6, PLAN.root.rounds)])
def test_the_order_graph_is_searched_up_to_so_many_vertices(largest, first):
    """Then the first rounds are few; otherwise there is no search to end the proof, and rounds go on."""
    candidates = random_candidates(7, 0)
    plan = PLAN._replace(order_graph_vertices=largest)
    component = Recorded(split(candidates)[0], np.arange(7), 1e-9, plan=plan)
    assert component.n == 7
    component.prove(run_of(candidates, 60.0))
    assert component.efforts[0].rounds == first
    assert (component.states > 0) == (largest == 7)
