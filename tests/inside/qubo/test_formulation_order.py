"""Order bits: enough to forbid every cycle, and fewer than the paper's."""

from itertools import combinations, product

import networkx as nx
import numpy as np
import pytest

from formulation_cases import candidates_of, random_scores
from qubayes import SettingError
from qubayes.qubo import energy, order_bits
from qubayes.qubo.assembly import summed, triangle_terms
from qubayes.qubo.order_bits import (
    OrderBits,
    anneal_sequence,
    annealed,
    balanced,
    best_elimination,
    choose_order,
    count_pairs,
    eliminate,
    greedy_elimination,
    greedy_sequence,
    packed_arcs,
    temperatures,
)
from reference import eliminations
from reference import energies as reference


def scores_of(parents: dict[int, list[int]], n: int) -> list[dict[frozenset[int], float]]:
    """Candidate sets of one parent each."""
    return [
        {frozenset(): -1.0} | {frozenset([p]): 0.0 for p in parents.get(v, [])} for v in range(n)
    ]


def arcs_of(scores) -> set[tuple[int, int]]:
    return {
        (parent, child)
        for child, known in enumerate(scores)
        for parents in known
        for parent in parents
    }


def consistent_arcs(arcs, order: OrderBits, r) -> list[frozenset[int]]:
    """The parents that the r bits allow: an arc without an r bit is free."""
    first = {tuple(pair): bool(bit) for pair, bit in zip(order.pairs.tolist(), r, strict=True)}
    n = 1 + max((max(arc) for arc in arcs), default=0)
    allowed = [set() for _ in range(n)]
    for a, b in arcs:
        if first.get((a, b), True) and not first.get((b, a), False):
            allowed[b].add(a)
    return [frozenset(members) for members in allowed]


def cyclic_triangle(order: OrderBits, r) -> bool:
    return any(r[ab] == r[bc] != r[ac] for ab, bc, ac in order.triangles.tolist())


@pytest.mark.parametrize("kind", ["chordal", "scc"])
@pytest.mark.parametrize("seed", range(40))
def test_no_cyclic_triangle_means_no_cycle_at_all(kind, seed):
    """All orientations: whatever arcs they allow together form no cycle, and every DAG is allowed by some."""
    random = np.random.default_rng(seed)
    n = int(random.integers(3, 7))
    arcs = {
        (a, b)
        for a, b in product(range(n), repeat=2)
        if a != b and random.random() < random.choice([0.2, 0.4, 0.7])
    }
    scores = scores_of({b: [a for a, c in arcs if c == b] for b in range(n)}, n)
    order = choose_order(candidates_of(scores), kind)
    if len(order.pairs) > 13:
        pytest.skip("too many orientations to try them all")
    for r in product([0, 1], repeat=len(order.pairs)):
        if not cyclic_triangle(order, r):
            assert reference.is_acyclic(consistent_arcs(arcs, order, r))


@pytest.mark.parametrize("kind", ["chordal", "scc"])
def test_every_linear_order_is_allowed(kind):
    scores = random_scores(np.random.default_rng(0), 9, 2, 0.3)
    order = choose_order(candidates_of(scores), kind)
    for seed in range(50):
        position = np.random.default_rng(seed).permutation(9)
        r = position[order.pairs[:, 0]] < position[order.pairs[:, 1]]
        assert not cyclic_triangle(order, r)


def test_paper_pairs_are_those_of_the_components():
    for seed in range(30):
        scores = random_scores(np.random.default_rng(seed), 8, 2, 0.04)
        order = choose_order(candidates_of(scores), "scc")
        pairs = reference.strongly_connected_pairs(scores)
        components = order_bits.eliminations(candidates_of(scores), "scc")
        assert sum(filled.pairs for _, filled in components) == len(pairs)
        assert order.pairs.tolist() == [list(pair) for pair in pairs]
        assert order.corners().tolist() == [list(corner) for corner in reference.triangles(pairs)]


def test_the_bit_of_a_pair_is_found_by_its_vertices():
    random = np.random.default_rng(0)
    for count in (0, 1, 5, 21):
        chosen = sorted(random.permutation(list(combinations(range(7), 2)))[:count].tolist())
        written = [pair[:: random.choice([1, -1])] for pair in chosen]
        order = OrderBits(np.array(written, np.int32).reshape(-1, 2), np.empty((0, 3), np.int32))
        first, second = np.array(list(product(range(9), repeat=2))).T
        expected = [
            chosen.index(sorted(pair)) if sorted(pair) in chosen else -1
            for pair in zip(first, second, strict=True)
        ]
        assert order.pair_of(first, second).tolist() == expected


def both_ways(pairs) -> dict[int, list[int]]:
    parents: dict[int, list[int]] = {}
    for a, b in pairs:
        parents.setdefault(a, []).append(b)
        parents.setdefault(b, []).append(a)
    return parents


def test_a_cycle_of_four_needs_a_chord():
    """The adjacent pairs alone would let the cycle through; one chord is enough."""
    ring = [(0, 1), (1, 2), (2, 3), (3, 0)]
    order = choose_order(candidates_of(scores_of(both_ways(ring), 4)), "chordal")
    assert len(order.pairs) == 5 and len(order.triangles) == 2


def test_pairs_on_no_cycle_need_no_bit():
    """A DAG needs none; cycles that share a vertex only their own pairs; one-way arcs no fill among parents."""
    dag = {b: list(range(b)) for b in range(6)}
    assert len(choose_order(candidates_of(scores_of(dag, 6)), "chordal").pairs) == 0
    bow = both_ways([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (2, 4)])
    chordal, scc = (
        choose_order(candidates_of(scores_of(bow, 5)), kind) for kind in ("chordal", "scc")
    )
    assert (len(chordal.pairs), len(scc.pairs)) == (6, 10)
    # 1, 2, 3 -> 0 -> 4 -> 1, 2, 3: no pair among 1, 2, 3
    star = {0: [1, 2, 3], 1: [4], 2: [4], 3: [4], 4: [0]}
    pairs = choose_order(candidates_of(scores_of(star, 5)), "chordal").pairs.tolist()
    assert len(pairs) == 7 and not any(set(pair) <= {1, 2, 3} for pair in pairs)


@pytest.mark.parametrize("seed", range(10))
def test_two_way_arcs_give_a_chordal_graph(seed):
    random = np.random.default_rng(seed)
    graph = nx.gnp_random_graph(30, float(random.choice([0.08, 0.2, 0.5])), seed=seed)
    order = choose_order(candidates_of(scores_of(both_ways(graph.edges), 30)), "chordal")
    filled = nx.Graph(order.pairs.tolist())
    assert nx.is_chordal(filled) and {frozenset(e) for e in graph.edges} <= {
        frozenset(e) for e in filled.edges
    }
    corners = reference.triangles([tuple(pair) for pair in order.pairs.tolist()])
    assert order.corners().tolist() == [list(corner) for corner in corners]


@pytest.mark.parametrize("seed", range(10))
def test_cheap_count_bounds_the_useful_pairs(seed):
    random = np.random.default_rng(seed)
    n = int(random.integers(2, 80))
    adjacency = random.random((n, n)) < random.choice([0.05, 0.2])
    np.fill_diagonal(adjacency, False)
    both = adjacency | adjacency.T
    sequence = random.permutation(n)
    useful = eliminate(adjacency, sequence).pairs
    assert useful <= count_pairs(packed_arcs(adjacency), sequence)
    assert eliminate(both, sequence).pairs == count_pairs(packed_arcs(both), sequence)
    for by_degree, thorough in product((False, True), repeat=2):
        assert sorted(
            greedy_sequence(packed_arcs(both)[0], random.random(n), by_degree, thorough)
        ) == list(range(n))
    best = best_elimination(adjacency, 0)
    assert best.pairs <= useful and best.pairs == (best.useful | best.useful.T).sum() // 2
    np.testing.assert_array_equal(best.sequence, best_elimination(adjacency, 0).sequence)


def random_graph(
    random: np.random.Generator, n: int, density: float
) -> tuple[np.ndarray, set[tuple[int, int]]]:
    """The matrix of a directed graph, and its arcs."""
    adjacency = random.random((n, n)) < density
    np.fill_diagonal(adjacency, False)
    return adjacency, {(a, b) for a, b in np.argwhere(adjacency).tolist()}


GRAPHS = [
    (n, density, seed)
    for n, density in ((5, 0.8), (8, 0.3), (12, 0.6), (65, 0.04))
    for seed in range(6)
]


@pytest.mark.parametrize("n, density, seed", GRAPHS)
def test_an_elimination_is_its_definition(n, density, seed):
    random = np.random.default_rng(seed)
    adjacency, arcs = random_graph(random, n, density)
    sequence = random.permutation(n)
    order = sequence.tolist()
    found, useful = eliminate(adjacency, sequence), eliminations.useful(arcs, order)
    assert {(a, b) for a, b in np.argwhere(found.useful).tolist()} == useful
    assert found.pairs == len(eliminations.pairs_of(useful)) and found.sequence.tolist() == order
    assert count_pairs(packed_arcs(adjacency), sequence) == len(
        eliminations.pairs_of(eliminations.joined(arcs, order))
    )


@pytest.mark.parametrize("n, density, seed", GRAPHS)
def test_greedy_sequences_take_the_least_cost(n, density, seed):
    random = np.random.default_rng(seed)
    adjacency, _ = random_graph(random, n, density)
    # without noise the first of equals
    both, noise = adjacency | adjacency.T, random.random(n) * (seed % 2)
    near = {v: set(np.flatnonzero(both[v]).tolist()) for v in range(n)}
    for by_degree, thorough in product((False, True), repeat=2):
        found = greedy_sequence(packed_arcs(both)[0], noise, by_degree, thorough).tolist()
        assert found == eliminations.greedy(near, noise, by_degree, thorough)


@pytest.mark.parametrize(
    "n, density, seed", [(5, 0.6, 0), (9, 0.3, 1), (9, 0.2, 2), (9, 0.5, 3), (66, 0.03, 4)]
)
def test_annealing_takes_every_move_that_adds_at_most_its_allowance(n, density, seed):
    random = np.random.default_rng(seed)
    adjacency, arcs = random_graph(random, n, density)
    moves, allowances, taken = random.integers(n, size=(60, 2)), random.exponential(1.5, size=60), 0
    start = random.permutation(n)
    for count in range(0, 60, 6 if n < 60 else 30):
        found = anneal_sequence(
            packed_arcs(adjacency), start, moves[:count], allowances[:count]
        ).tolist()
        assert found == eliminations.annealed(
            arcs, start.tolist(), moves[:count].tolist(), allowances[:count]
        )
        taken += found != start.tolist()
    assert taken


def test_the_greedy_elimination_has_the_sequence_with_the_fewest_pairs():
    for seed in range(6):
        adjacency, _ = random_graph(np.random.default_rng(seed), 24, 0.12)
        arcs, neighbours = packed_arcs(adjacency), packed_arcs(adjacency | adjacency.T)[0]
        noises = np.random.default_rng(seed).random((order_bits.GREEDY_STARTS, 24))
        counts = []
        for by_degree, noise in product((False, True), noises):
            sequence = greedy_sequence(neighbours, noise, by_degree, True)
            counts.append(count_pairs(arcs, sequence))
        found = greedy_elimination(adjacency, np.random.default_rng(seed))
        assert count_pairs(arcs, found.sequence) == min(counts)


def test_the_elimination_with_the_fewest_pairs_is_returned():
    """Of the best of the sequences to start from, and of what annealing made of it."""
    random = np.random.default_rng(0)
    adjacency, _ = random_graph(random, 24, 0.12)
    adjacency |= adjacency.T
    arcs = packed_arcs(adjacency)
    worse = max(
        (random.permutation(24) for _ in range(50)),
        key=lambda sequence: count_pairs(arcs, sequence),
    )
    start = eliminate(adjacency, worse)
    found = annealed(adjacency, start, np.random.default_rng(1))
    assert found.pairs < start.pairs
    random = np.random.default_rng(1)  # the same moves
    tries = order_bits.ELIMINATION_MOVES
    moves = random.integers(24, size=(tries, 2))
    allowances = random.exponential(size=tries) * temperatures(tries, start.pairs)
    expected = anneal_sequence(arcs, worse, moves, allowances)
    assert found.sequence.tolist() == expected.tolist()
    unbeaten = start._replace(pairs=found.pairs - 1)
    assert annealed(adjacency, unbeaten, np.random.default_rng(1)) is unbeaten
    first = greedy_elimination(adjacency, np.random.default_rng(np.random.SeedSequence(0)))
    assert best_elimination(adjacency, 0).pairs <= first.pairs


@pytest.mark.parametrize("pairs", [1000, 8000])
def test_temperatures_fall_evenly(pairs):
    found = temperatures(40, pairs)
    assert len(found) == 40 and found[0] == pytest.approx(order_bits.HOTTEST * pairs)
    np.testing.assert_allclose(
        found[1:] / found[:-1], (order_bits.COLDEST / order_bits.HOTTEST) ** (1 / 40)
    )
    # few pairs: not below those of a larger graph
    assert temperatures(40, 2)[0] == temperatures(40, 3)[0] > 0


@pytest.mark.parametrize("seed", range(4))
def test_pairs_are_turned_round_while_the_sum_of_fourth_powers_falls(seed):
    """From vertices on a circle, a golden section apart, each before those of the half circle ahead of it."""
    random = np.random.default_rng(seed)
    scores = random_scores(random, 9, 2, 0.1 if seed else 0.9)
    order = choose_order(candidates_of(scores), "chordal" if seed else "scc")
    deltas = random.integers(1, 40, size=len(order.triangles)) / 64  # sums are exact

    def linear(pairs):
        written = order._replace(pairs=np.array(pairs, np.int32))
        return triangle_terms(len(pairs), 0, written, deltas).h.tolist()

    circle = np.arange(9) * (np.sqrt(5) - 1) / 2
    start = [
        (a, b) if (circle[b] - circle[a]) % 1 < 0.5 else (b, a) for a, b in order.pairs.tolist()
    ]
    found = list(map(tuple, balanced(order, deltas).pairs.tolist()))
    assert found == eliminations.turned(start, linear) != start


def test_a_pair_whose_turn_changes_nothing_stays():
    signs = np.ones(1)
    order_bits._turn(
        np.zeros(2, np.int64), np.empty(0, np.int32), np.empty(0), signs, np.zeros(1), 1
    )
    assert signs.tolist() == [1.0]


def test_turning_pairs_round_changes_only_how_bits_are_written():
    """The cycle part of both ways of writing agrees on every state, and the linear coefficients become far smaller."""
    random = np.random.default_rng(0)
    everything = candidates_of(scores_of(both_ways(combinations(range(40), 2)), 40))
    order = choose_order(everything, "scc")
    deltas = 1.0 + random.integers(8, size=len(order.triangles)) / 8
    turned = balanced(order, deltas)
    assert {frozenset(pair) for pair in turned.pairs.tolist()} == {
        frozenset(pair) for pair in order.pairs.tolist()
    }
    assert 0 < turned.ascending.sum() < len(turned.pairs) and order.ascending.all()
    plain, other = (triangle_terms(len(order.pairs), 0, each, deltas) for each in (order, turned))
    assert np.abs(other.h).max() * 5 < np.abs(plain.h).max()
    first, second = summed(plain), summed(other)
    for _ in range(20):
        state = random.random(len(order.pairs)) < 0.5
        assert energy(first, state) == pytest.approx(
            float(energy(second, state == turned.ascending))
        )


def test_unknown_kind_is_refused():
    with pytest.raises(SettingError, match="chordal, scc"):
        choose_order(candidates_of([{frozenset(): 0.0}]), "all")
