"""Labels, the order of terms and the hash seed decide nothing but names."""

import json
import os
import random
import subprocess
import sys

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import polynomials as instances
from qubayes.quadratize import as_polynomial, canonical_order, polynomial, quadratize
from reference.polynomials import variables

SCRIPT = """
import json, sys
from qubayes.quadratize import quadratize
for given in json.load(sys.stdin):
    for mode in ("optimal", "greedy") if len(given[0][1]) < 7 else ("greedy",):
        for assumptions in ("general", "conventional", "terms-exclusive"):
            result = quadratize({tuple(t): c for c, t in given}, mode=mode, assumptions=assumptions)
            model = result.model
            print(result.sets, result.status, list(model.linear.items()), list(model.quadratic.items()))
            print(list(model.variables), result.decoder.to_json())
"""


def random_terms(names, terms, degrees, seed, coefficients=(-2.0, -1.0, 1.0, 3.0)):
    draw = random.Random(seed)
    result = {}
    while len(result) < terms:
        result[tuple(sorted(draw.sample(names, draw.choice(degrees))))] = draw.choice(coefficients)
    return result


def shuffled(terms, seed):
    """The same polynomial, its terms and the variables inside them in another order."""
    draw = random.Random(seed)
    items = list(terms.items())
    draw.shuffle(items)
    return {tuple(draw.sample(t, len(t))): c for t, c in items}


def renamed(terms, names):
    return {tuple(names[v] for v in t): c for t, c in terms.items()}


def facts(result):
    """Everything of a result but the order of its parts, with canonical positions for variables."""
    order = canonical_order(result.polynomial).order
    place = {result.polynomial.variables[v]: position for position, v in enumerate(order)}
    label = {
        bit: frozenset(place[v] for v in s)
        for bit, s in zip(result.decoder.bits, result.sets, strict=True)
    }
    linear = {label.get(v, "counter"): w for v, w in result.model.linear.items()}
    quadratic = {
        frozenset(label.get(v, "counter") for v in edge): w
        for edge, w in result.model.quadratic.items()
    }
    return linear, quadratic, result.lower_bound, result.proved, result.status


POLYNOMIALS = {
    "random": random_terms(list("abcdefgh"), 16, (2, 3, 4), 0),
    "equal coefficients": random_terms(list("abcdefgh"), 14, (3, 4), 1, (1.0,)),
    "symmetric": dict.fromkeys(
        [
            ("a", "b", "c"),
            ("b", "c", "d"),
            ("c", "d", "a"),
            ("d", "a", "b"),
            ("a",),
            ("b",),
            ("c",),
            ("d",),
        ],
        1.0,
    ),
    "cycle": {
        ("abcdefg"[i], "abcdefg"[(i + 1) % 7], "abcdefg"[(i + 2) % 7]): 1.0 for i in range(7)
    },
    "long": random_terms(list("abcdefghijk"), 6, (7,), 2),
    "labs": instances.labs(9),
    "ring": instances.labs(8, periodic=True),
    "torus": instances.toric_code(3),
    "one-hot": dict.fromkeys(instances.one_hot_products(4, 3), 1.0),
}


CASES = [
    (name, mode)
    for name in POLYNOMIALS
    for mode in ("optimal", "greedy")
    if (name, mode) != ("long", "optimal")
]


@pytest.mark.parametrize(("name", "mode"), CASES)
def test_renaming_variables_renames_the_result(name, mode):
    """Up to symmetries of the polynomial: the results are equal in canonical positions."""
    terms = POLYNOMIALS[name]
    first = quadratize(terms, mode=mode)
    assert first.structural
    for seed in range(3):
        labels = variables(terms)
        images = random.Random(seed).sample([*range(100), *"zyxwvut", ("t", 1)], len(labels))
        names = dict(zip(labels, images, strict=True))
        assert facts(quadratize(shuffled(renamed(terms, names), seed), mode=mode)) == facts(first)


@pytest.mark.parametrize(("name", "mode"), CASES)
def test_order_of_terms_does_not_matter(name, mode):
    results = [quadratize(shuffled(POLYNOMIALS[name], seed), mode=mode) for seed in range(3)]
    for result in results[1:]:
        assert result.sets == results[0].sets and result.model == results[0].model
        assert list(result.model.variables) == list(results[0].model.variables)


def test_hash_seed_does_not_matter():
    names = ("random", "symmetric", "long")
    given = [[[c, list(t)] for t, c in shuffled(POLYNOMIALS[name], 1).items()] for name in names]
    printed = set()
    for seed in ("0", "2024"):
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT], input=json.dumps(given), capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )  # fmt: skip
        printed.add(run.stdout)
    assert len(printed) == 1 and printed.pop().count("\n") == 2 * 3 * 5


@given(st.integers(0, 10**6), st.integers(3, 7), st.sampled_from([(1.0,), (1.0, 2.0)]))
def test_canonical_order_gives_the_same_polynomial(seed, size, coefficients):
    draw = random.Random(seed)
    names = list("abcdefg")[:size]
    terms = random_terms(names, draw.randint(1, size), (2, 3), seed, coefficients)
    images = dict(zip(names, draw.sample(range(50), size), strict=True))
    forms = []
    for poly in map(as_polynomial, (terms, shuffled(renamed(terms, images), seed))):
        order = canonical_order(poly)
        assert order.structural and sorted(order.order) == list(range(len(poly.variables)))
        place = {v: i for i, v in enumerate(order.order)}
        pairs = zip(poly.terms, poly.coefficients, strict=True)
        forms.append(sorted((tuple(sorted(place[v] for v in t)), c) for t, c in pairs))
    assert forms[0] == forms[1]


def cycles(*lengths):
    """Disjoint cycles."""
    return nx.disjoint_union_all([nx.cycle_graph(length) for length in lengths])


REGULAR = {
    "cycles": cycles(3, 4, 5),
    "equal cycles": cycles(3, 3, 6),
    "cubic": nx.random_regular_graph(3, 10, seed=0),
    "of degree four": nx.random_regular_graph(4, 10, seed=2),
    "without symmetries": nx.frucht_graph(),
    "McGee": nx.LCF_graph(24, [12, 7, -7], 8),
    "prism and utility": nx.disjoint_union(
        nx.circular_ladder_graph(3), nx.complete_bipartite_graph(3, 3)
    ),
}


@pytest.mark.parametrize("name", REGULAR)
def test_canonical_order_where_colours_do_not_tell_variables_apart(name):
    """Refinement gives all variables of a regular graph one colour, though no symmetry exchanges all of them."""
    edges, forms = list(REGULAR[name].edges), set()
    for seed in range(6):
        images = dict(enumerate(random.Random(seed).sample(range(50), len(REGULAR[name]))))
        poly = as_polynomial(shuffled(renamed(dict.fromkeys(edges, 1.0), images), seed))
        order = canonical_order(poly)
        place = {v: i for i, v in enumerate(order.order)}
        assert order.structural
        forms.add(tuple(sorted(tuple(sorted(place[v] for v in t)) for t in poly.terms)))
    assert len(forms) == 1


def test_symmetries_that_move_a_fixed_variable_tell_nothing():
    """On a cycle of six with a rotation by two and the reflection at 0."""
    search = polynomial._Refinement(as_polynomial({(i, (i + 1) % 6): 1.0 for i in range(6)}))
    search.symmetries = [{i: (i + 2) % 6 for i in range(6)}, {i: -i % 6 for i in range(6)}]
    assert {v for v in range(6) if search.reachable([0], (), v)} == {0, 2, 4}
    assert {v for v in range(6) if search.reachable([1], (), v)} == {1, 3, 5}
    assert {v for v in range(6) if search.reachable([1], (0,), v)} == {1, 5}
    assert {v for v in range(6) if search.reachable([1, 2], (0, 3), v)} == {1, 2, 4, 5}
    assert {v for v in range(6) if search.reachable([1], (0, 2), v)} == {1}


def test_symmetries_spare_the_search():
    """A long cycle has no two variables that can be swapped; a rotation and a reflection settle its order."""
    poly = as_polynomial({(i, (i + 1) % 400): 1.0 for i in range(400)})
    assert canonical_order(poly).structural
    assert not canonical_order(
        poly, 10_000
    ).structural  # the work ran out before every start was tried
