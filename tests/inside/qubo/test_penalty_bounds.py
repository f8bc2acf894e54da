"""No penalty is larger than needed: just below its bound, a wrong sample has the least energy."""

import math
from itertools import combinations

import numpy as np
import pytest

from formulation_cases import (
    TIGHT,
    all_energies,
    candidates_of,
    formulations,
    s,
    subsets_of,
    whole_subsets,
)
from qubayes.foundation.workers import Workers
from qubayes.qubo import Formulation, Qubo, formulate
from qubayes.qubo.assembly import assemble
from qubayes.qubo.penalties import MARGIN, excess_bound, third_gain, vertex_gains
from reference import energies as reference


def lowered(formulation: Formulation, **factors: float) -> Qubo:
    """The QUBO with the named penalties at these parts of their bounds."""
    penalties = formulation.penalties
    changed = {name: getattr(penalties, name) * factor / MARGIN for name, factor in factors.items()}
    gains = vertex_gains(formulation.relative, Workers(1))
    return assemble(formulation.relative, formulation.order, gains, penalties._replace(**changed))


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


def test_bounds_of_the_excess_are_their_definition():
    random = np.random.default_rng(5)
    decided = [0, 0]
    for _ in range(200):
        mu = int(random.integers(3, 7))
        singles = random.integers(0, 9, mu) / 4
        joint = {
            p: max(singles[list(p)]) + random.integers(0, 9) / 4 for p in combinations(range(mu), 2)
        }

        def gain(subsets, singles=singles, joint=joint):
            return (
                sum(joint[p] for p in combinations(subsets, 2))
                - (len(subsets) - 2) * singles[list(subsets)].sum()
            )

        bound = excess_bound(singles, np.array(list(joint.values())))
        for size in range(3, mu + 1):
            for K in combinations(range(mu), size):
                best = max(joint[p] for p in combinations(K, 2))
                assert gain(K) - best <= bound * (size - 2) + 1e-9
        third = third_gain(singles, np.array(list(joint.values()))) * (mu - 1) / 2
        decided[int(bound < third - 1e-9)] += 1
    assert min(decided) > 10, decided
