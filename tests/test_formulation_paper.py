"""`order="scc", penalty="paper"` is the paper's formulation to the coefficient."""

from itertools import combinations

import numpy as np
import pytest

from formulation_cases import all_energies, candidates_of, random_scores, split_subsets, state_of
from qubayes.candidates import Candidates, Stamp
from qubayes.qubo import decode, formulate
from reference import energies as reference


def paper_problem(scores, subsets, union_score) -> reference.PaperProblem:
    """delta1 = 1.1 delta0, delta2 = 1.1 (n - 2) delta1, xi = 1.1 xi0, from their definitions."""
    empty = frozenset()
    families = [
        [frozenset(members) for members in subsets.families.sets_of(i)] for i in range(len(scores))
    ]
    delta0 = max(score - known[empty] for known in scores for score in known.values())
    steepest = []
    for i, family in enumerate(families):
        score = lambda parents, i=i: union_score(i, parents)  # noqa: E731
        for U, V in [(U, V) for U in [empty, *family] for V in [empty, *family]]:
            sign = (-1) ** (1 + len({U, V}))
            steepest.append(sign * (score(U | V) - score(U) - score(V) + score(empty)))
    delta1 = 1.1 * delta0
    delta2, xi = 1.1 * (len(scores) - 2) * delta1, 1.1 * -3 * min(steepest)
    pairs = reference.strongly_connected_pairs(scores)
    return reference.PaperProblem(scores, families, pairs, delta1, delta2, xi, union_score)


def paper_energy_of(problem: reference.PaperProblem, state: np.ndarray) -> float:
    bits = iter(state.astype(int).tolist())
    u = [[next(bits) for _ in family] for family in problem.subsets]
    r = {pair: next(bits) for pair in problem.pairs}
    return reference.paper_energy(problem, u, r, list(bits))


def small_instances(count: int, seed: int):
    random = np.random.default_rng(seed)
    while count:
        scores = random_scores(random, int(random.integers(3, 6)), 3, 0.12)
        candidates = candidates_of(scores)
        subsets = split_subsets(random, candidates)
        if subsets.total and subsets.total + len(reference.strongly_connected_pairs(scores)) <= 12:
            yield scores, candidates, subsets
            count -= 1


def test_closure_coefficients():
    for scores, candidates, subsets in small_instances(25, 0):
        formulation = formulate(candidates, subsets, order="scc", penalty="paper")
        slow = paper_problem(
            scores,
            subsets,
            lambda i, parents: reference.closure(scores[i], parents),  # noqa: B023
        )
        bits = formulation.qubo.bits
        assert bits == subsets.total + candidates.n + len(slow.pairs)
        assert formulation.bits == {
            "u": subsets.total,
            "r": len(slow.pairs),
            "z": candidates.n,
            "total": bits,
        }
        assert formulation.order.pairs.tolist() == [list(pair) for pair in slow.pairs]
        energies = all_energies(formulation.qubo)
        at_most_two = [
            0,
            *(1 << b for b in range(bits)),
            *((1 << a) + (1 << b) for a, b in combinations(range(bits), 2)),
        ]
        for index in at_most_two:  # a quadratic function is known by its values there
            assert energies[index] == pytest.approx(
                paper_energy_of(slow, state_of(index, bits)), rel=1e-12, abs=1e-9
            )


def test_true_scores_of_unions():
    """The paper's log S_i(U | V), given by a callable; S_i(empty) beyond the largest allowed size."""

    def true_score(known, parents):
        if len(parents) > 3:
            return known[frozenset()]
        return known.get(parents, reference.closure(known, parents) - 0.37 * len(parents))

    lower = 0
    for scores, plain, subsets in small_instances(25, 1):
        candidates = Candidates(plain.names, plain.families, plain.scores, Stamp(max_parents=3))
        given = lambda i, sets: [true_score(scores[i], frozenset(parents)) for parents in sets]  # noqa: B023, E731
        slow = paper_problem(scores, subsets, lambda i, parents: true_score(scores[i], parents))  # noqa: B023
        best = reference.best_score_of_orders(scores)
        for penalty in ("paper", "tight"):
            formulation = formulate(
                candidates, subsets, order="scc", penalty=penalty, union_scores=given
            )
            energies = all_energies(formulation.qubo)
            assert energies.min() == pytest.approx(-best)
            for index in range(0, len(energies), 31):
                state = state_of(index, formulation.qubo.bits)
                if penalty == "paper":
                    assert energies[index] == pytest.approx(
                        paper_energy_of(slow, state), rel=1e-12, abs=1e-9
                    )
                found = decode(formulation, state)
                if found.feasible:
                    scored = sum(
                        true_score(k, frozenset(p))
                        for k, p in zip(scores, found.parents, strict=True)
                    )
                    assert scored == pytest.approx(found.score) == pytest.approx(-found.energy)
                    lower += any(
                        frozenset(p) not in k for k, p in zip(scores, found.parents, strict=True)
                    )
    assert lower  # some feasible state holds a union that is no candidate set
