"""Sums over all networks and the consensus, against exhaustion and against sums by layers."""

import math
from itertools import product

import numpy as np
import pytest

from qubayes import TooLargeError
from qubayes.candidates import Candidates, prune
from qubayes.foundation.workers import Workers
from qubayes.search import Limits, Run
from qubayes.search.exact import alternatives, consensus, sum_networks
from reference.networks import acyclic, edge_probabilities, right_pairs, sum_by_layers
from solve_cases import (
    random_candidates,
    small_candidates,
    sparse_candidates,
    with_required_edge,
)


def lists_of(
    candidates: Candidates, shift: float = 0.0
) -> list[list[tuple[tuple[int, ...], float]]]:
    return [
        [(members, score + shift) for members, score in candidates.of(v)]
        for v in range(candidates.n)
    ]


@pytest.mark.parametrize("seed", range(4))
def test_against_all_networks(seed):
    for candidates in small_candidates(seed):
        total, shares = edge_probabilities(lists_of(candidates, 20.0))
        found = sum_networks(candidates)
        assert found.log_mass + 20.0 * candidates.n == pytest.approx(math.log(total), abs=1e-10)
        for parent, child in product(range(candidates.n), repeat=2):
            assert found.edges[parent, child] == pytest.approx(
                shares.get((parent, child), 0.0), abs=1e-10
            )
        assert np.add.reduceat(
            found.families, candidates.families.vertex_start[:-1]
        ) == pytest.approx(1.0)


@pytest.mark.parametrize("make", [random_candidates, with_required_edge, sparse_candidates])
def test_eight_variables_against_sums_by_layers(make):
    candidates = make(8, 3)
    lists = lists_of(candidates, 20.0)
    total, found = sum_by_layers(lists), sum_networks(candidates)
    assert found.log_mass + 160.0 == pytest.approx(math.log(total), abs=1e-9)
    for child in (1, 6):
        parent = int(np.argmax(found.edges[:, child]))
        kept = [
            its if v != child else [(m, s) for m, s in its if parent in m]
            for v, its in enumerate(lists)
        ]
        assert found.edges[parent, child] == pytest.approx(sum_by_layers(kept) / total, abs=1e-9)


def test_scores_far_apart_neither_overflow_nor_vanish():
    free = random_candidates(6, 1, sets=5)
    far = Candidates(free.names, free.families, free.scores * 300.0 - 50_000.0)
    best = alternatives(far, 1)
    found = sum_networks(far)
    assert found.log_mass == pytest.approx(best.scores[0]) and best.left_out == pytest.approx(
        0.0, abs=1e-9
    )
    assert {edge for edge, share in best.edge_probabilities().items() if share > 0.5} == {
        (far.names[a], far.names[b]) for a, b in np.argwhere(found.edges > 0.5)
    }


@pytest.mark.parametrize("seed", range(3))
def test_the_mass_left_out_is_that_of_the_networks_not_listed(seed):
    candidates = random_candidates(5, seed, sets=6)
    total, _ = edge_probabilities(lists_of(candidates, 20.0))
    for best in (1, 5, 10**5):
        found = alternatives(candidates, best)
        listed = math.fsum(math.exp(score + 100.0) for score in found.scores)
        assert found.left_out == pytest.approx(1.0 - listed / total, abs=1e-9)
        share = found.edge_shares()
        assert np.abs(share - found.posterior.edges).max() <= found.left_out + 1e-9
    assert found.left_out == pytest.approx(0.0, abs=1e-9) and share == pytest.approx(
        found.posterior.edges, abs=1e-9
    )
    assert "certified" in "\n".join(found.describe())


def test_nothing_is_certified_without_the_sum():
    """A ring of 21 variables, each with the one before it as its only candidate parent."""
    ring = prune(
        [f"v{v}" for v in range(21)], [[(((v - 1) % 21,), -1.0), ((), -2.0)] for v in range(21)]
    )
    found = alternatives(ring, 5)
    assert found.posterior is None and found.left_out is None
    assert found.as_json()["posterior_edges"] is None
    text = "\n".join(found.describe())
    assert "certified" not in text and "is not bounded" in text
    with pytest.raises(TooLargeError, match="component of 21 variables"):
        sum_networks(ring)


def test_a_run_without_time_sums_nothing():
    candidates = random_candidates(5, 0)
    assert sum_networks(candidates, Run(candidates, Limits(0.0), Workers(1))) is None


@pytest.mark.parametrize("seed", range(12))
def test_the_consensus_is_the_best_of_all_networks(seed):
    random = np.random.default_rng(seed)
    edges = np.zeros((4, 4))
    for a in range(4):
        for b in range(a):
            edges[a, b], edges[b, a], _ = random.dirichlet([1.0, 1.0, 0.5])
    known = {(a, b): float(edges[a, b]) for a in range(4) for b in range(4)}
    every = [
        [tuple(p for p in range(4) if bits >> p & 1) for bits in range(16) if not bits >> v & 1]
        for v in range(4)
    ]
    best = max(right_pairs(graph, known) for graph in product(*every) if acyclic(graph))
    found = consensus(tuple("abcd"), edges)
    assert right_pairs(found.parents, known) == pytest.approx(best, abs=1e-7)


def test_edges_counted_by_class():
    """a - b in either direction is one class: counted once, half each way."""
    candidates = random_candidates(4, 2, ties=True)
    found = alternatives(candidates, within=50.0)
    shares = found.edge_shares(by_class=True)
    classes = found.classes()
    weights = np.array([math.exp(found.scores[its[0]] - found.scores[0]) for its in classes])
    joined = np.zeros((4, 4))
    for its, weight in zip(classes, weights / weights.sum(), strict=True):
        for child, members in enumerate(found.networks[its[0]]):
            for parent in members:
                joined[[parent, child], [child, parent]] += weight
    assert shares + shares.T == pytest.approx(joined)
    assert list(found.edge_probabilities(by_class=True).values()) == sorted(
        shares[shares > 0], reverse=True
    )


@pytest.mark.parametrize("seed", range(3))
def test_the_best_classes(seed):
    candidates = random_candidates(5, seed, ties=True)
    every = alternatives(candidates, 100_000)
    first = every.classes()
    found = alternatives(candidates, 3, classes=True)
    assert len(found.classes()) == 3 and found.networks == every.networks[: len(found.networks)]
    assert len(found.networks) == first[3][0] and found.floor == pytest.approx(
        every.scores[first[3][0]]
    )


def test_the_consensus_of_the_list():
    found = alternatives(random_candidates(5, 4), 10)
    assert (
        found.consensus()
        == consensus(found.names, found.posterior.edges)
        == found.posterior.consensus()
    )


def test_too_many_parents_for_the_consensus():
    n = 40
    edges = np.full((n, n), 0.49)
    with pytest.raises(TooLargeError, match="at most 16"):
        consensus(tuple(f"v{i}" for i in range(n)), edges)
