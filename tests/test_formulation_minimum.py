"""The least energy of H is minus the best score, and only best networks reach it."""

from dataclasses import replace

import numpy as np
import pytest

from formulation_cases import (
    MODES,
    all_energies,
    candidates_of,
    formulations,
    random_scores,
    split_subsets,
    state_of,
    whole_subsets,
)
from qubayes.foundation.workers import Workers
from qubayes.qubo import decode, formulate
from reference import energies as reference

TWO_WAYS = [
    {frozenset(): -20.0, frozenset([1]): -10.0},
    {frozenset(): -20.0, frozenset([0]): -12.0},
]


@pytest.mark.parametrize("order,penalty", MODES)
def test_every_minimiser_is_a_best_network(order, penalty):
    kept_by = set()
    for scores, formulation in formulations(1, 120, order, penalty):
        energies = all_energies(formulation.qubo)
        best = reference.best_score_of_orders(scores)
        assert energies.min() == pytest.approx(-best, abs=1e-9)
        for index in np.flatnonzero(energies <= energies.min() + 1e-9).tolist()[:20]:
            found = decode(formulation, state_of(index, formulation.qubo.bits))
            parents = [frozenset(members) for members in found.parents]
            assert found.feasible, found.violations
            assert reference.is_acyclic(parents)
            assert sum(known[p] for known, p in zip(scores, parents, strict=True)) == pytest.approx(
                best, abs=1e-9
            )
        kept_by |= set(
            zip(formulation.penalties.at_most_two > 0, formulation.penalties.has_slack, strict=True)
        )
    if penalty == "tight":
        # nothing, unused pairs, a z bit
        assert kept_by == {(False, False), (True, False), (True, True)}


@pytest.mark.parametrize("order,penalty", MODES)
def test_no_energy_lies_below_that_of_the_network_it_holds(order, penalty):
    """What the proof says of every state without a violation: energy = -score (decode asserts it), and of no other."""
    feasible = 0
    for _, formulation in formulations(2, 8, order, penalty):
        energies = all_energies(formulation.qubo)
        random = np.random.default_rng(0)
        for index in random.integers(len(energies), size=200).tolist():
            found = decode(formulation, state_of(index, formulation.qubo.bits))
            assert found.energy == pytest.approx(energies[index], abs=1e-9)
            if found.feasible:
                assert found.energy == pytest.approx(-found.score, abs=1e-9)
                feasible += 1
    assert feasible > 100


def test_best_scores_of_all_dags_and_of_all_orders_agree():
    assert [len(reference.all_dags(n)) for n in range(1, 6)] == [1, 3, 25, 543, 29281]
    for n, required in [(1, 0), (2, 0), (3, 1), (4, 2), (5, 0)]:
        scores = random_scores(np.random.default_rng(n), n, 3, 0.3, required)
        assert reference.best_score_of_dags(scores) == pytest.approx(
            reference.best_score_of_orders(scores)
        )


def test_a_penalty_for_two_vertices_is_not_zero_in_paper_mode():
    candidates = candidates_of(TWO_WAYS)
    formulation = formulate(candidates, whole_subsets(candidates), order="scc", penalty="paper")
    assert all_energies(formulation.qubo).min() == pytest.approx(30.0)


@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.parametrize("order,penalty", MODES)
def test_vertices_without_candidates(n, order, penalty):
    candidates = candidates_of([{frozenset(): -float(v + 1)} for v in range(n)])
    formulation = formulate(candidates, whole_subsets(candidates), order=order, penalty=penalty)
    assert formulation.bits["u"] == formulation.bits["r"] == 0
    assert decode(formulation, np.zeros(formulation.qubo.bits)).score == -n * (n + 1) / 2


def test_threads_do_not_change_the_result():
    scores = random_scores(np.random.default_rng(5), 12, 3, 0.05)
    candidates = candidates_of(scores)
    subsets = split_subsets(np.random.default_rng(6), candidates)
    one, two = (formulate(candidates, subsets, workers=Workers(threads)) for threads in (1, 2))
    for first, second in zip(one.qubo, two.qubo, strict=True):
        np.testing.assert_array_equal(first, second)
    assert replace(one, seconds=0.0).bits == replace(two, seconds=0.0).bits
