"""Frequencies of edges and their consensus."""

from dataclasses import replace

import numpy as np
import pytest

from candidate_cases import dependent_data
from qubayes.candidates import CandidateSearch, identify
from qubayes.learning import bootstrap
from qubayes.learning.confidence import consensus, edge_frequencies
from qubayes.network import Network
from qubayes.search import solve

# Edge confidence


def test_frequencies_count_edges_that_may_go_either_way_half():
    chain, collider = ((), (0,), (1,)), ((), (0, 2), ())
    frequencies = edge_frequencies(
        [Network(("a", "b", "c"), parents) for parents in (chain, collider)]
    )
    expected = np.zeros((3, 3))
    expected[0, 1], expected[1, 0] = 0.25 + 0.5, 0.25
    expected[1, 2], expected[2, 1] = 0.25, 0.25 + 0.5
    assert (frequencies == expected).all()


def test_the_consensus_is_acyclic_and_takes_frequent_edges():
    frequencies = np.zeros((3, 3))
    frequencies[0, 1], frequencies[1, 2], frequencies[2, 0] = 0.9, 0.8, 0.7
    frequencies[1, 0] = 0.05
    network = consensus(("a", "b", "c"), frequencies)
    assert network.parents == ((), (0,), (1,))
    assert consensus(("a", "b", "c"), frequencies * 0.5).edges == []


def test_the_consensus_leaves_out_the_edge_that_closes_a_cycle_and_no_other():
    """The vertex 0 has the parent 3 when 2 -> 0 is tried."""
    frequencies = np.zeros((4, 4))
    frequencies[3, 0], frequencies[0, 1], frequencies[1, 2], frequencies[2, 0] = 0.9, 0.8, 0.7, 0.6
    assert consensus(tuple("abcd"), frequencies).parents == ((3,), (0,), (1,), ())


@pytest.mark.parametrize("share", [0.5, np.nextafter(0.5, 1)])
def test_the_consensus_takes_edges_of_more_than_half_of_the_networks(share):
    frequencies = np.zeros((3, 3))
    frequencies[0, 1] = share
    frequencies[1, 2] = frequencies[2, 1] = share / 2  # joined as often, either way
    assert consensus(("a", "b", "c"), frequencies).parents == (
        ((), (), ()) if share == 0.5 else ((), (0,), (1,))
    )


def test_each_sample_has_rows_of_its_own():
    """The rows of sample k are drawn, with replacement, from stream k of the seed."""
    weak, search, seed = dependent_data(5, 40, seed=2), CandidateSearch(2), 7
    networks = []
    for stream in np.random.SeedSequence(seed).spawn(6):
        rows = np.random.default_rng(stream).integers(weak.rows, size=weak.rows)
        sample = replace(weak, codes=weak.codes[:, rows])
        networks.append(solve(identify(sample, search), "exact").network)
    expected = edge_frequencies(networks)
    assert (bootstrap(weak, search, 6, seed=seed).frequencies == expected).all()
    assert ((expected > 0) & (expected < 1)).any() and len(
        {network.parents for network in networks}
    ) > 3
