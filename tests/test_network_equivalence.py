"""Equivalence classes against the list of all graphs; comparisons against counting pairs."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings

from network_cases import graphs
from qubayes import QubayesError
from qubayes.data import Dataset
from qubayes.network import (
    Agreement,
    Network,
    compare,
    cpdag,
    skeleton,
    v_structures,
    vertex_scores,
)
from qubayes.scores import Score
from reference import network as reference


def network_of(n, edges):
    return Network(
        tuple("abcde"[:n]), tuple(tuple(p for p, c in sorted(edges) if c == v) for v in range(n))
    )


def edges_of(network):
    return frozenset((p, c) for c, its in enumerate(network.parents) for p in its)


@pytest.mark.parametrize(
    ("n", "number", "classes"), [(1, 1, 1), (2, 3, 2), (3, 25, 11), (4, 543, 185), (5, 29281, 8782)]
)
def test_every_graph_gives_what_all_of_its_class_share(n, number, classes):
    found = reference.classes(n)
    assert (sum(map(len, found)), len(found)) == (number, classes)
    for members in found:
        directed = reference.directed_in_all(members)
        undirected = {(min(edge), max(edge)) for edge in members[0] - directed}
        for edges in members:
            graph = cpdag(network_of(n, edges))
            assert graph.directed == tuple(sorted(directed)) and graph.undirected == tuple(
                sorted(undirected)
            )


@pytest.mark.parametrize(
    "score", [Score("bdeu", 1.0), Score("bic"), Score("aic"), Score("loglik")], ids=lambda s: s.name
)
def test_equivalent_networks_have_equal_scores(score):
    rng = np.random.default_rng(1)
    codes = np.array([rng.integers(0, r, 40) for r in (2, 3, 2, 2)], dtype=np.uint8)
    codes[3] ^= codes[0]
    data = Dataset(tuple("abcd"), tuple(tuple("012"[:r]) for r in (2, 3, 2, 2)), codes)
    totals = []
    for members in reference.classes(4)[::7]:
        scores = [vertex_scores(network_of(4, edges), data, score).sum() for edges in members]
        assert scores == pytest.approx([scores[0]] * len(members), rel=1e-12)
        totals.append(round(scores[0], 6))
    assert len(set(totals)) > len(totals) / 3  # other classes have other scores


@given(graphs(max_vertices=8))
@settings(max_examples=3 * settings.default.max_examples)
def test_skeleton_and_v_structures(network):
    adjacent, colliders = reference.signature(network.n, edges_of(network))
    assert {frozenset(pair) for pair in skeleton(network)} == adjacent
    assert all(a < b for a, b in skeleton(network))
    assert {(frozenset((a, b)), c) for a, c, b in v_structures(network)} == colliders
    found = cpdag(network)
    assert {(a, c) for a, c, _ in v_structures(network)} <= set(found.directed)


def test_no_vertices_and_no_edges():
    assert cpdag(Network((), ())).edges == []
    assert cpdag(Network(("a", "b"), ((), ()))).edges == []


def test_a_long_chain_is_undirected_and_a_collider_directs_what_follows():
    n = 2000
    chain = Network(tuple(map(str, range(n))), ((), *((v,) for v in range(n - 1))))
    assert len(cpdag(chain).undirected) == n - 1
    led = Network((*chain.names, "x"), ((), (0, n), *((v,) for v in range(1, n - 1)), ()))
    assert len(cpdag(led).directed) == n


def test_distances_of_all_pairs_of_graphs_of_three_vertices():
    every = list(reference.all_graphs(3))
    classes = {
        edges: reference.directed_in_all(members)
        for members in reference.classes(3)
        for edges in members
    }
    for learned, truth in itertools.product(every, every):
        found = compare(network_of(3, learned), network_of(3, truth))
        assert found.distance == reference.edits(3, learned, truth)
        assert found.missing + found.extra + found.reversed == found.distance
        assert found.edges == Agreement(len(learned & truth), len(learned), len(truth))
        marked = [
            classes[g] | {(b, a) for a, b in g - classes[g]} | (g - classes[g])
            for g in (learned, truth)
        ]
        assert found.cpdag_distance == reference.edits(3, *marked)
        pairs = [{frozenset(edge) for edge in graph} for graph in (learned, truth)]
        assert found.skeleton == Agreement(len(pairs[0] & pairs[1]), len(learned), len(truth))
        assert found.skeleton.learned - found.skeleton.common == found.extra
        same = sum(
            all(((a, b) in marked[0]) == ((a, b) in marked[1]) for a, b in (pair, pair[::-1]))
            for pair in [(0, 1), (0, 2), (1, 2)]
            if frozenset(pair) in pairs[0] & pairs[1]
        )
        assert found.cpdag == Agreement(same, len(learned), len(truth))


def test_precision_recall_and_f1():
    learned = Network(tuple("abc"), ((), (0,), (0, 1)))  # a>b a>c b>c
    truth = Network(tuple("abc"), ((), (0,), ()))  # a>b
    found = compare(learned, truth)
    assert (found.edges.precision, found.edges.recall, found.edges.f1) == (1 / 3, 1.0, 0.5)
    assert (found.distance, found.missing, found.extra, found.reversed) == (2, 0, 2, 0)
    empty = compare(Network(tuple("abc"), ((), (), ())), truth)
    assert (empty.edges.precision, empty.edges.recall, empty.edges.f1) == (1.0, 0.0, 0.0)
    assert compare(Network((), ()), Network((), ())).edges.f1 == 1.0


def test_equivalent_networks_differ_as_graphs_only():
    found = compare(Network(tuple("ab"), ((), (0,))), Network(tuple("ab"), ((1,), ())))
    assert (found.distance, found.reversed, found.cpdag_distance) == (1, 1, 0)
    assert (found.edges.f1, found.skeleton.f1, found.cpdag.f1) == (0.0, 1.0, 1.0)


@given(graphs())
def test_the_order_of_the_vertices_does_not_matter(network):
    n = network.n
    turned = Network(
        network.names[::-1], tuple(tuple(n - 1 - p for p in its) for its in network.parents[::-1])
    )
    found = compare(network, turned)
    assert (found.distance, found.cpdag_distance, found.edges.f1, found.cpdag.f1) == (
        0,
        0,
        1.0,
        1.0,
    )


def test_other_names_are_told():
    with pytest.raises(QubayesError, match="only the first has 'b'; only the second has 'c', 'd'"):
        compare(Network(tuple("ab"), ((), ())), Network(tuple("acd"), ((), (), ())))
    with pytest.raises(QubayesError, match="different vertices: only the second has 'b'; compare"):
        compare(Network(("a",), ((),)), Network(tuple("ab"), ((), ())))
