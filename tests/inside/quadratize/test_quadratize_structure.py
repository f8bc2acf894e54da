"""Structured polynomials: the bound of triangles, the parity and growth starts, and what they prove together."""

import random
from itertools import combinations

import numpy as np
import pytest

from benchmarks import polynomials as instances
from qubayes.quadratize import quadratize
from qubayes.quadratize.decomposition import (
    SubsetIndex,
    holds,
    in_order,
    singletons,
    triangle_bound,
)
from qubayes.quadratize.heuristic import grown_products, parity_pairs
from reference import polynomials as oracle
from test_quadratize import assert_exact, support


def masks(terms):
    names = {v: place for place, v in enumerate(oracle.variables(terms))}
    return in_order(sum(1 << names[v] for v in term) for term in terms if term)


def graphs(size):
    """(graphs, edges) all graphs on so many vertices, and (graphs, triples) their triangles."""
    pairs = list(combinations(range(size), 2))
    edges = (np.arange(2 ** len(pairs))[:, None] >> np.arange(len(pairs)) & 1).astype(bool)
    place = {pair: number for number, pair in enumerate(pairs)}
    sides = [
        [place[pair] for pair in combinations(triple, 2)] for triple in combinations(range(size), 3)
    ]
    return edges, edges[:, sides].all(axis=2)


@pytest.mark.parametrize("seed", range(3))
def test_the_sets_inside_a_set(seed):
    """Of few elements and of more than eight, which are found in two ways; after sets were added and removed."""
    random = np.random.default_rng(seed)
    family = {
        int(random.integers(1, 1 << 12) & random.integers(1, 1 << 12)) or 1 for _ in range(200)
    }
    index = SubsetIndex(family)
    for mask in list(family)[:20]:
        index.remove(mask)
    for mask in ((1 << 10) - 1, (1 << 12) - 1):
        index.add(mask)
    left = {*list(family)[20:], (1 << 10) - 1, (1 << 12) - 1}
    for mask in (*left, (1 << 11) - 1, 0b111111110000):
        assert index.inside(mask) == sorted(
            (s for s in left if s & mask == s and s != mask), reverse=True
        )


@pytest.mark.parametrize("size", [4, 5, 6])
def test_the_two_lemmas_on_edges_and_triangles(size):
    """No edge in two triangles: size^2 / 4 edges at most. Any graph: 3 triangles >= edges (4 edges / size - size)."""
    edges, triangles = graphs(size)
    number, inside = edges.sum(axis=1), triangles.sum(axis=1)
    assert (3 * size * inside >= number * (4 * number - size**2)).all()
    shared = np.zeros(edges.shape, np.int64)
    for column, triple in enumerate(combinations(range(size), 3)):
        for pair in combinations(triple, 2):
            shared[:, list(combinations(range(size), 2)).index(pair)] += triangles[:, column]
    assert number[shared.max(axis=1) <= 1].max() == size**2 // 4


@pytest.mark.parametrize("size", [4, 5, 6])
def test_the_triangle_bound_is_never_above_the_fewest_pairs(size):
    """Against all graphs of pairs that are left out: none of their triangles is a term."""
    edges, triangles = graphs(size)
    number, draw, tight = edges.sum(axis=1), random.Random(size), 0
    triples = [sum(1 << e for e in triple) for triple in combinations(range(size), 3)]
    for _ in range(100):
        chosen = np.array([draw.random() < draw.choice((0.4, 0.8, 0.95)) for _ in triples])
        fewest = edges.shape[1] - number[~triangles[:, chosen].any(axis=1)].max()
        bound = triangle_bound(
            [t for t, taken in zip(triples, chosen, strict=True) if taken], range(size)
        )
        assert bound <= fewest
        tight += bound == fewest > 0
    assert tight > 10


@pytest.mark.parametrize("seed", range(12))
def test_the_bound_is_never_above_the_smallest_family(seed):
    """Of four variables with their linear terms, by exhaustion over all families."""
    draw = random.Random(seed)
    triples = [t for t in combinations("abcd", 3) if draw.random() < 0.8]
    terms = dict.fromkeys([*"abcd", *triples, *([tuple("abcd")] if seed % 2 else [])], 1.0)
    terms = {tuple(term): c for term, c in terms.items()}
    result = quadratize(terms, mode="greedy")
    assert (
        result.lower_bound
        <= len(oracle.smallest_families(support(terms), "general")[0])
        <= len(result.sets)
    )


@pytest.mark.parametrize("n", range(4, 25))
def test_the_premises_of_the_theorem_on_labs(n):
    """Every linear term; a triple that is not a term is a progression of step above n / 4; a pair is in one of them."""
    terms = set(instances.labs(n))
    assert {(v,) for v in range(n)} <= terms
    gaps = [triple for triple in combinations(range(n), 3) if triple not in terms]
    for a, b, c in gaps:
        assert c - b == b - a > n / 4 and a < b - a and a + 3 * (b - a) >= n
    pairs = [pair for gap in gaps for pair in combinations(gap, 2)]
    assert len(pairs) == len(set(pairs))


@pytest.mark.parametrize("n", [*range(4, 16), 21, 32, 45])
def test_labs_is_proved_minimal(n):
    result = quadratize(instances.relabelled(instances.labs(n), n))
    assert len(result.sets) == result.lower_bound == (n + 1) ** 2 // 4 and result.proved


@pytest.mark.parametrize("n", [4, 5, 6])
def test_labs_keeps_every_energy(n):
    terms = instances.labs(n)
    assert_exact(terms, quadratize(terms))


@pytest.mark.parametrize(
    ("terms", "sets"),
    [
        (instances.toric_code(6), 144),
        (instances.chain(40), 80),
        (instances.xorsat(50, 100), 191),
        (instances.one_hot_products(4, 5), 70),
        (instances.labs(30, periodic=True), 240),
    ],
    ids=["toric code", "chain", "xorsat", "one-hot", "periodic labs"],
)
def test_supports_with_structure_are_proved_minimal(terms, sets):
    results = [quadratize(instances.relabelled(terms, seed)) for seed in range(2)]
    for result in results:
        assert result.proved and result.structural and len(result.sets) == sets


def test_arrays_of_low_autocorrelation():
    terms = instances.labs_2d(7, 7)
    result = quadratize(terms, mode="greedy")
    assert len(result.sets) <= 625 and 500 < result.lower_bound < 625
    family, own = (
        {sum(1 << v for v in variables) for variables in sets if variables}
        for sets in (result.sets, terms)
    )
    assert holds(family, own, "general")


@pytest.mark.parametrize(
    "terms", [instances.labs(11), instances.toric_code(4), instances.labs_2d(3, 4)]
)
def test_pairs_of_one_colour_represent_all_terms(terms):
    own = masks(terms)
    pairs = parity_pairs(own)
    assert pairs and all(pair.bit_count() == 2 for pair in pairs)
    assert holds(singletons(own) | pairs, own, "general")


def test_no_parity_without_two_colours_or_with_long_terms():
    assert parity_pairs(masks(dict.fromkeys(combinations(range(6), 4)))) is None
    assert parity_pairs(masks({tuple(range(5)): 1.0, (0, 1, 2): 1.0})) is None
    assert parity_pairs([0b11, 0b1]) is None


@pytest.mark.parametrize("n", [11, 16, 24])
def test_growth_finds_the_pattern_without_colours(n):
    own = masks(instances.labs(n))
    family = singletons(own) | grown_products(own, "general")
    assert holds(family, own, "general") and len(family) <= 1.02 * ((n + 1) ** 2 // 4)
