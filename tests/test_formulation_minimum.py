"""The least energy of H is minus the best score, only best networks reach it, and no penalty is larger than needed."""

import math
from dataclasses import replace

import numpy as np
import pytest

from formulation_cases import (
    candidates_of,
    crowded_scores,
    random_scores,
    split_subsets,
    state_of,
    subsets_of,
    whole_subsets,
)
from qubayes.foundation.workers import Workers
from qubayes.machines import upper_triangle
from qubayes.qubo import Formulation, Qubo, decode, formulate
from qubayes.qubo.assembly import assemble
from qubayes.qubo.penalties import MARGIN, vertex_gains
from reference import energies as reference

MODES = [("chordal", "tight"), ("scc", "paper"), ("scc", "tight"), ("chordal", "paper")]
MOST_BITS = 18


def all_energies(qubo: Qubo) -> np.ndarray:
    rows, cols, weights = upper_triangle(qubo)
    couplers = dict(
        zip(zip(rows.tolist(), cols.tolist(), strict=True), weights.tolist(), strict=True)
    )
    return reference.all_energies(qubo.h, couplers, qubo.offset)


def problems(seed: int):
    """(scores, candidates, subsets) of random problems without end: plain, with required edges, crowded."""
    random = np.random.default_rng(seed)
    while True:
        n, largest = int(random.integers(1, 6)), int(random.integers(1, 4))
        kind = random.integers(3)
        if kind == 2:
            scores = crowded_scores(random, max(n, 4), max(largest, 2))
        else:
            required = int(random.integers(1, 3)) if kind and n > 1 else 0
            scores = random_scores(
                random, n, largest, float(random.choice([0.1, 0.2, 0.3])), required
            )
        candidates = candidates_of(scores)
        yield (
            scores,
            candidates,
            whole_subsets(candidates)
            if random.random() < 0.2
            else split_subsets(random, candidates),
        )


def formulations(seed: int, count: int, order: str, penalty: str):
    """The first problems that are small enough to try every state."""
    for scores, candidates, subsets in problems(seed):
        formulation = formulate(candidates, subsets, order=order, penalty=penalty)
        if formulation.qubo.bits <= MOST_BITS:
            yield scores, formulation
            count -= 1
            if not count:
                return


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


def lowered(formulation: Formulation, **factors: float) -> Qubo:
    """The QUBO with the named penalties at these parts of their bounds."""
    penalties = formulation.penalties
    changed = {name: getattr(penalties, name) * factor / MARGIN for name, factor in factors.items()}
    gains = vertex_gains(formulation.relative, Workers(1))
    return assemble(formulation.relative, formulation.order, gains, penalties._replace(**changed))


def s(*members: int) -> frozenset[int]:
    return frozenset(members)


TIGHT = {
    "edges": ([{s(): -20.0, s(1): -10.0}, {s(): -20.0, s(0): -12.0}], None),
    "triangles": (
        [{s(): -20.0, s(2): -10.0}, {s(): -20.0, s(0): -10.0}, {s(): -20.0, s(1): -10.0}],
        None,
    ),
    "required": ([{s(): -20.0, s(1): -10.0}, {s(0): -20.0}], None),
    "at_most_two, a z bit": (
        [
            {s(): -20.0, s(1, 2): -10.0, s(1, 3): -10.0, s(2, 3): -10.0},
            {s(): 0.0},
            {s(): 0.0},
            {s(): 0.0},
        ],
        [[(1,), (2,), (3,)], [], [], []],
    ),
    "at_most_two, unused pairs": (
        [{s(): -20.0, s(1, 2): -10.0, s(2, 3): -10.0}, {s(): 0.0}, {s(): 0.0}, {s(): 0.0}],
        [[(1,), (2,), (3,)], [], [], []],
    ),
}


@pytest.mark.parametrize("name", TIGHT)
def test_a_penalty_below_its_bound_lets_a_wrong_state_win(name):
    scores, lists = TIGHT[name]
    candidates = candidates_of(scores)
    subsets = subsets_of(candidates, lists) if lists else whole_subsets(candidates)
    formulation = formulate(candidates, subsets)
    penalty, best = name.partition(",")[0], reference.best_score_of_orders(scores)
    assert formulation.penalties.has_slack.any() == (name == "at_most_two, a z bit")
    assert all_energies(lowered(formulation, **{penalty: 1.001})).min() == pytest.approx(-best)
    assert all_energies(lowered(formulation, **{penalty: 0.98})).min() < -best - 0.1


def test_no_penalty_lies_below_a_hundredth_of_the_largest_bound():
    """Two cycles of two vertices: the edges of one lose 1000 and 200, those of the other 3 and 0.001."""
    scores = [
        {s(): -2000.0, s(1): -1000.0},
        {s(): -2000.0, s(0): -1800.0},
        {s(): -9.0, s(3): -6.0},
        {s(): -9.0, s(2): -8.999},
    ]
    candidates = candidates_of(scores)
    edges = formulate(candidates, whole_subsets(candidates)).penalties.edges
    least, grid = 0.01 * 1000.0, 2.0 ** (3 - 12)  # 8 <= 0.01 * 1000 < 16
    wanted = [1000.0, 200.0, least, least]
    assert edges.tolist() == [math.ceil(round(bound * MARGIN / grid, 6)) * grid for bound in wanted]


def test_paper_penalties_below_their_bounds_let_a_wrong_state_win():
    """The paper's `sufficient1` and `sufficient2` ask for more than is needed: less lets a wrong state win."""
    broken = dict.fromkeys(("edges", "triangles", "at_most_two"), 0)
    for scores, formulation in formulations(3, 150, "scc", "paper"):
        best = reference.best_score_of_orders(scores)
        for penalty in broken:
            energies = all_energies(lowered(formulation, **{penalty: 0.1}))
            broken[penalty] += bool(energies.min() < -best - 1e-9)
    assert all(broken.values()), broken


def test_a_penalty_for_two_vertices_is_not_zero_in_paper_mode():
    candidates = candidates_of(TIGHT["edges"][0])
    formulation = formulate(candidates, whole_subsets(candidates), order="scc", penalty="paper")
    assert all_energies(formulation.qubo).min() == pytest.approx(30.0)


@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.parametrize("order,penalty", MODES)
def test_vertices_without_candidates(n, order, penalty):
    candidates = candidates_of([{s(): -float(v + 1)} for v in range(n)])
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
