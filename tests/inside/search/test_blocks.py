"""Block Gibbs steps, against all networks of four variables."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import chi2

from posterior_cases import matrix, random_lists, sets_from, shifted
from qubayes.search.posterior import blocks
from qubayes.search.posterior.tables import Tables
from reference.networks import acyclic, edge_probabilities


def test_blocks_of_all_variables_draw_independent_networks():
    """Steps with blocks of four alone: successive networks of 4 variables are independent draws."""
    lists = random_lists(4, 1, 0.7)
    sets = sets_from(lists)
    problem = Tables(sets)
    table = problem.at(1.0)
    state = blocks.new_state(table, problem.bases, np.random.SeedSequence(0))
    scratch = blocks.new_scratch(table)
    weights = {}
    for chosen in product(*[range(*sets.families.vertex_start[v : v + 2]) for v in range(4)]):
        if acyclic(sets.families.sets_at(chosen)):
            weights[chosen] = math.exp(sets.scores[list(chosen)].sum())
    assert len(weights) == 543
    seen = dict.fromkeys(weights, 0)
    whole = np.array([0.0, 0.0, 0.0, 1.0])
    number = 40_000
    for _ in range(number):
        blocks.run_steps(table, problem.partners(), np.arange(4), whole, state, scratch, 1)
        seen[tuple(state.choice.tolist())] += 1
    total = sum(weights.values())
    expected = np.array([number * weight / total for weight in weights.values()])
    often = expected >= 5.0
    counts = np.array(list(seen.values()), float)
    parts = (counts - expected)[often] ** 2 / expected[often]
    assert chi2.sf(parts.sum(), often.sum() - 1) > 1e-4


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_every_size_of_block_is_right(size):
    lists = random_lists(4, 2, 1.0)
    _, shares = edge_probabilities(shifted(lists))
    problem = Tables(sets_from(lists))
    table = problem.at(1.0)
    state = blocks.new_state(table, problem.bases, np.random.SeedSequence(1))
    sizes = np.array([float(each == size) for each in range(1, 5)]).cumsum()
    steps = 100_000
    scratch = blocks.new_scratch(table)
    blocks.run_steps(table, problem.partners(), np.arange(4), sizes, state, scratch, steps)
    assert np.abs(state.counts / steps - matrix(shares, 4)).max() < 0.012
