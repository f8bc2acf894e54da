"""The paper's lemmas and limitations that no single function stands for, by linear algebra and by exhaustion."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formulation_cases import candidates_of
from qubayes.machines import energy
from qubayes.quadratize import Decoder, Quadratic, bits, decompose, holds, paper_quadratic
from qubayes.qubo import encode_sets, formulate
from qubayes.qubo.assembly import summed, triangle_terms
from qubayes.qubo.order_bits import OrderBits
from reference import polynomials as oracle


def quadratic_monomials(states):
    """(states, monomials) 1, q_i and q_i q_j at each state."""
    rows = np.array(states, dtype=float)
    pairs = combinations(range(rows.shape[1]), 2)
    return np.column_stack([np.ones(len(rows)), rows, *(rows[:, i] * rows[:, j] for i, j in pairs)])


@pytest.mark.parametrize("k", [2, 3, 4, 5, 6])
def test_no_quadratic_polynomial_sees_three_covering_sets(k):
    """Lemma exist0: one that is 0 wherever a bit is 0 is 0 everywhere, if there are three bits or more."""
    states = [state for state in product((0, 1), repeat=k) if not all(state)]
    monomials = quadratic_monomials(states)
    vanishing = monomials.shape[1] - np.linalg.matrix_rank(monomials)
    assert vanishing == (1 if k == 2 else 0)  # of two bits: their product


def test_a_penalty_on_two_covering_sets_sees_them_apart_when_the_third_is_active():
    """Lemma exist1: phi(0, 0, 1) + phi(1, 1, 1) - phi(1, 0, 1) - phi(0, 1, 1) is phi(1, 1, 0), which is not 0."""
    zero = quadratic_monomials([(0, 0, 0), (1, 0, 0), (0, 1, 0)])
    low, high, one, other, both = quadratic_monomials(
        [(0, 0, 1), (1, 1, 1), (1, 0, 1), (0, 1, 1), (1, 1, 0)]
    )
    functional = low + high - one - other - both
    stacked = np.vstack([zero, functional])
    # it follows from the three zeros
    assert np.linalg.matrix_rank(stacked) == np.linalg.matrix_rank(zero)


@pytest.mark.parametrize(("off", "on"), [(1.0, 1.0), (3.0, 0.5), (2.0, 0.0)])
def test_our_product_penalty_obeys_the_lemma(off, on):
    penalty = Quadratic()
    penalty.add_product_penalty(off, on, 3, (1, 2))

    def phi(a, b, c):
        bits = {1: a, 2: b, 3: c}
        linear = sum(weight * bits[s] for s, weight in penalty.linear.items())
        return linear + sum(
            weight * bits[s] * bits[t] for (s, t), weight in penalty.couplers.items()
        )

    assert phi(0, 0, 0) == phi(1, 0, 0) == phi(0, 1, 0) == 0 != phi(1, 1, 0)
    assert phi(0, 0, 1) + phi(1, 1, 1) - phi(1, 0, 1) - phi(0, 1, 1) == phi(1, 1, 0)


def covering_penalty(family, state):
    """h_0 of Lemma barc0: inactive sets times their minimal covers by active sets."""
    active = [s for s, on in zip(family, state, strict=True) if on]
    covered = 0
    for chosen in (s for s, on in zip(family, state, strict=True) if not on):
        for cover in oracle.subsets(active, least=1):
            smaller = [cover - {s} for s in cover]
            covered += chosen <= frozenset().union(*cover) and not any(
                chosen <= frozenset().union(*part) for part in smaller
            )
    return covered


@given(st.lists(st.frozensets(st.integers(0, 3), min_size=1), min_size=1, max_size=5, unique=True))
def test_without_the_covering_penalty_every_bit_is_its_product(family):
    """Lemma barc0, and its converse: h_0 = 0 iff each bit is the product of its set's decoded variables."""
    variables = tuple(sorted(set().union(*family)))
    bits = tuple(f"q{number}" for number in range(len(family)))
    decoder = Decoder(
        variables, bits, tuple(tuple(sorted(s)) for s in family), (True,) * len(family)
    )
    states = list(product((0, 1), repeat=len(family)))
    satisfied = decoder.satisfied_rows(np.array(states))
    assert satisfied.tolist() == [covering_penalty(family, state) == 0 for state in states]


@given(st.lists(st.integers(1, 31), min_size=1, max_size=6, unique=True))
def test_the_papers_penalty_vanishes_where_the_covering_penalty_does(family):
    """Lemma barc1, and its converse: with Assumption 2, h = 0 iff h_0 = 0."""
    assume(holds(family, family, "general"))
    g2 = paper_quadratic(decompose(family, family, "general"), dict.fromkeys(family, 1.0))
    sets = [frozenset(bits(mask)) for mask in family]
    for state in product((0, 1), repeat=len(family)):
        on = dict(zip(family, state, strict=True))
        # without the terms, of weight 1
        linear = sum((weight - 1.0) * on[s] for s, weight in g2.linear.items())
        h = linear + sum(weight * on[s] * on[t] for (s, t), weight in g2.couplers.items())
        assert h == pytest.approx(0.0, abs=1e-9) or h > 1.0
        assert (h < 0.5) == (covering_penalty(sets, state) == 0)


@pytest.mark.parametrize("vertices", [3, 4, 5])
def test_a_flip_removes_cyclic_triangles(vertices):
    """Lemma const_r: with a directed triangle some order bit can be flipped so that T falls; T counts the triangles."""
    pairs = list(combinations(range(vertices), 2))
    triangles = [
        [pairs.index(p) for p in ((a, b), (b, c), (a, c))]
        for a, b, c in combinations(range(vertices), 3)
    ]
    order = OrderBits(np.array(pairs, np.int32), np.array(triangles, np.int32))
    qubo = summed(triangle_terms(len(pairs), 0, order, np.ones(len(triangles))))
    states = np.array(list(product((0, 1), repeat=len(pairs))))
    values = energy(qubo, states)
    cyclic = [sum(state[x] == state[y] != state[w] for x, y, w in triangles) for state in states]
    assert values.tolist() == cyclic
    numbers = np.arange(len(states))
    lowest = np.min([values[numbers ^ (1 << bit)] for bit in range(len(pairs))], axis=0)
    assert (lowest[values > 0] < values[values > 0]).all()


def test_from_one_candidate_set_to_another_takes_up_to_four_flips():
    """Limitation 2: all pairs of four parents are covered by the four singletons, two active at a time."""
    scores = {pair: 1.0 + number for number, pair in enumerate(combinations(range(1, 5), 2))}
    formulation = formulate(candidates_of([{**scores, (): 0.0}, *({(): 0.0} for _ in range(4))]))
    states = {}
    for number, pair in enumerate(formulation.candidates.families.sets_of(0)):
        chosen = np.add(formulation.candidates.families.vertex_start[:-1], (number, 0, 0, 0, 0))
        states[pair] = encode_sets(formulation, chosen)[: formulation.bits["u"]]
    distances = {(a, b): int((states[a] != states[b]).sum()) for a in states for b in states}
    assert distances[(1, 2), (3, 4)] == 4 == max(distances.values())
