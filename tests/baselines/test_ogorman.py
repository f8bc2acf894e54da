"""O'Gorman et al.'s formulation: the counts of the paper's Baselines paragraph, and its least energy."""

from itertools import combinations

import numpy as np
import pytest

from formulation_cases import all_energies, candidates_of, random_scores, state_of
from qubayes import QubayesError
from qubayes.quadratize import quadratize
from qubayes.qubo import relate
from qubayes.qubo.subsets import cover
from qubayes_baselines import formulate_ogorman, ogorman_bits
from qubayes_baselines.ogorman import edge_subsets, products_of, score_monomials
from reference import energies as reference


def full_vertex(random: np.random.Generator, n: int, largest: int, density: float):
    """One vertex with sets of up to `largest` parents, at least one of that size; the others without parents."""
    scores = [{frozenset(): -1.0} for _ in range(n)]
    for size in range(1, largest + 1):
        for members in combinations(range(1, n), size):
            if size == largest or random.random() < density:
                inside = max(
                    score for known, score in scores[0].items() if known < frozenset(members)
                )
                scores[0][frozenset(members)] = inside + float(random.exponential(3.0)) + 0.01
    return scores


def counts(scores) -> int:
    """Edges, pairs of E, and auxiliary variables as the paper counts them."""
    total = len(reference.strongly_connected_pairs(scores))
    for known in scores:
        parents, largest = len(frozenset().union(*known)), max(map(len, known))
        auxiliary = {0: 0, 1: 1, 2: 2}.get(largest)
        if largest == 3:
            auxiliary = (parents - 1) ** 2 // 4 + 2
        if largest == 4:
            auxiliary = parents * (parents - 1) // 2 + 3
        total += parents + auxiliary
    return total


def test_bits_are_those_of_the_papers_formulas():
    degrees = set()
    for seed in range(40):
        random = np.random.default_rng(seed)
        scores = random_scores(random, 8, int(random.integers(1, 5)), 0.03)
        candidates = candidates_of(scores)
        baseline = formulate_ogorman(candidates)
        assert (
            baseline.qubo.bits
            == baseline.bits["total"]
            == counts(scores)
            == ogorman_bits(candidates)["total"]
        )
        assert len(set(baseline.labels)) == baseline.qubo.bits
        degrees |= set(baseline.sizes.degrees.tolist())
    assert degrees == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("parents", range(3, 12))
def test_products_reduce_every_term(parents):
    halves, everything = products_of(parents, 3), products_of(parents, 4)
    assert (
        len(halves) == (parents - 1) ** 2 // 4 and len(everything) == parents * (parents - 1) // 2
    )
    for triple in combinations(range(parents), 3):
        assert any(pair in halves for pair in combinations(triple, 2))
    assert products_of(parents, 2) == []


def least_energy_is_minus_the_best_score(scores, order: str) -> None:
    baseline = formulate_ogorman(candidates_of(scores), order=order)
    energies = all_energies(baseline.qubo)
    best = reference.best_score_of_orders(scores)
    assert energies.min() == pytest.approx(-best, abs=1e-9)
    for index in np.flatnonzero(energies <= energies.min() + 1e-9).tolist()[:20]:
        parents = [frozenset(p) for p in baseline.parents(state_of(index, baseline.qubo.bits))]
        assert reference.is_acyclic(parents)
        assert sum(
            reference.closure(k, p) for k, p in zip(scores, parents, strict=True)
        ) == pytest.approx(best)


@pytest.mark.parametrize("order", ["scc", "chordal"])
def test_least_energy_of_random_problems(order):
    done = 0
    for seed in range(200):
        random = np.random.default_rng(seed)
        n, largest = int(random.integers(2, 6)), int(random.integers(1, 5))
        scores = random_scores(
            random, n, largest, float(random.choice([0.03, 0.1, 0.2])), required=seed % 7 == 0
        )
        if counts_fit(scores):
            least_energy_is_minus_the_best_score(scores, order)
            done += 1
    assert done > 60


def counts_fit(scores) -> bool:
    return ogorman_bits(candidates_of(scores))["total"] <= 17


@pytest.mark.parametrize("largest,parents", [(3, 3), (3, 4), (3, 5), (4, 4), (4, 5)])
def test_least_energy_of_one_full_vertex(largest, parents):
    """All terms of degree three and four are there, so every product and both slack widths matter."""
    for seed in range(3):
        scores = full_vertex(np.random.default_rng(seed), parents + 1, largest, 0.5)
        least_energy_is_minus_the_best_score(scores, "scc")


def test_the_polynomial_equals_minus_the_gain():
    scores = full_vertex(np.random.default_rng(0), 7, 4, 0.4)
    members, weights = score_monomials(
        relate(candidates_of(scores), edge_subsets(candidates_of(scores))), 0, 6, 4
    )
    for size in range(5):
        for chosen in combinations(range(6), size):
            inside = [set(row[row >= 0]) <= set(chosen) for row in members]
            gain = (
                reference.closure(scores[0], frozenset(v + 1 for v in chosen))
                - scores[0][frozenset()]
            )
            assert weights[inside].sum() == pytest.approx(-gain, abs=1e-9)


@pytest.mark.parametrize(("largest", "density"), [(2, 0.6), (3, 0.3), (3, 0.8), (4, 0.1)])
def test_subsets_are_at_most_the_bits_of_a_quadratization_of_the_score(largest, density):
    """The paper says so of the smallest families of both: each candidate set is a term of the score's polynomial."""
    for seed in range(3):
        candidates = candidates_of(full_vertex(np.random.default_rng(seed), 6, largest, density))
        members, weights = score_monomials(
            relate(candidates, edge_subsets(candidates)), 0, 5, largest
        )
        terms = zip(
            (tuple(row[row >= 0].tolist()) for row in members), weights.tolist(), strict=True
        )
        quadratic = quadratize(
            {term: weight for term, weight in terms if abs(weight) > 1e-9},
            assumptions="conventional",
        )
        subsets = cover(candidates, method="ilp")
        assert quadratic.proved and subsets.proved.all() and subsets.total <= quadratic.bits


def test_five_parents_are_refused():
    with pytest.raises(QubayesError, match="at most 4"):
        formulate_ogorman(candidates_of(full_vertex(np.random.default_rng(0), 6, 5, 0.0)))


def test_what_is_printed_of_a_model_is_short():
    candidates = candidates_of(random_scores(np.random.default_rng(0), 5, 2, 0.3))
    assert repr(formulate_ogorman(candidates)) == "OGorman()"
