"""Inference in blocks of rows: the same probabilities, and the limit of a table."""

import numpy as np
import pytest

from network_cases import random_tables
from qubayes import TooLargeError
from qubayes.network import ByState, Network, sample_dataset
from qubayes.network.inference import marginals_given
from qubayes.network.mixture import posterior_of


def test_blocks_of_rows_and_the_largest_table():
    states = (("yes", "no"), ("off", "low", "high"), ("wet", "dry"))
    graph = Network(("rain", "sprinkler", "grass"), ((), (0,), (1, 0)), states)
    network = random_tables(graph, np.random.default_rng(1))
    codes = sample_dataset(network, 300, 1).codes.astype(np.int64)
    evidence = {0: codes[0], 2: codes[2]}
    whole = marginals_given(network, 1, evidence)
    assert whole.shape == (300, 3)
    assert (marginals_given(network, 1, evidence, 40) == whole).all()
    # as large as the table of grass: one row at a time
    assert (marginals_given(network, 1, evidence, 40, 12) == whole).all()
    assert (marginals_given(network, 1, evidence, 40, 11) == whole).all()
    assert marginals_given(network, 2, {}, 40, 12).shape == (1, 2)
    with pytest.raises(TooLargeError, match="12 numbers, at most 11"):
        marginals_given(network, 2, {}, 40, 11)


def test_a_mixture_of_too_many_parts_is_refused():
    tables = np.array([0.7, 0.3]), ByState(np.zeros(2), np.zeros((2, 0)), np.ones(2))
    network = Network(("s", "x"), ((), (0,)), (("a", "b"), ()), tables)
    assert posterior_of(network, 1, {}, {}, largest=2).weights.tolist() == [[0.7, 0.3]]
    with pytest.raises(TooLargeError, match="exact inference needs 2 numbers, at most 1"):
        posterior_of(network, 1, {}, {}, largest=1)
