"""The QUBO of flat arrays against dictionaries and sums over all states."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qubayes import QubayesError
from qubayes.machines import (
    Qubo,
    coefficient_range,
    energy,
    from_bqm,
    qubo_from_couplers,
    to_bqm,
    upper_triangle,
)

numbers = st.floats(-1e6, 1e6)


@st.composite
def raw_terms(draw, most_bits=5):
    bits = draw(st.integers(1, most_bits))
    h = draw(st.lists(numbers, min_size=bits, max_size=bits))
    index = st.integers(0, bits - 1)
    couplers = draw(st.lists(st.tuples(index, index, numbers), max_size=20))
    return h, couplers, draw(numbers)


def slow_energy(h, couplers, offset, state):
    """The sum of all terms whose bits are set, one after the other."""
    terms = [offset, *(w for w, x in zip(h, state, strict=True) if x)]
    return math.fsum([*terms, *(w for i, j, w in couplers if state[i] and state[j])])


def built(h, couplers, offset):
    rows, cols, weights = ([c[k] for c in couplers] for k in range(3))
    return qubo_from_couplers(h, np.array(rows, int), np.array(cols, int), weights, offset)


@given(raw_terms())
def test_energy_is_the_sum_of_the_terms(terms):
    h, couplers, offset = terms
    qubo = built(*terms)
    states = list(itertools.product([0, 1], repeat=len(h)))
    expected = [slow_energy(h, couplers, offset, state) for state in states]
    assert energy(qubo, states) == pytest.approx(expected, abs=1e-7)
    assert energy(qubo, states[-1]) == pytest.approx(expected[-1], abs=1e-7)


def test_energy_loses_nothing_to_cancellation():
    """Whole numbers of all magnitudes, most of which cancel: the energy is their sum, rounded once."""
    random = np.random.default_rng(0)
    for _ in range(100):
        bits = int(random.integers(3, 12))
        pairs = list(itertools.combinations(range(bits), 2))
        large = random.integers(-(2**52), 2**52, len(pairs) // 2) * 2.0 ** random.integers(
            0, 20, len(pairs) // 2
        )
        small = random.integers(-9, 9, len(pairs) - 2 * len(large))
        weights = random.permutation([*large, *-large, *small]) + 0.0
        terms = (
            random.integers(-9, 9, bits) + 0.0,
            [(*p, w) for p, w in zip(pairs, weights, strict=True)],
            0.0,
        )
        for state in ([1] * bits, random.integers(0, 2, bits).tolist()):
            assert energy(built(*terms), state) == slow_energy(*terms, state)


@given(raw_terms())
def test_both_triangles_are_sorted_and_mirror_each_other(terms):
    qubo = built(*terms)
    dense = np.zeros((qubo.bits, qubo.bits))
    for i in range(qubo.bits):
        row = slice(*qubo.indptr[i : i + 2])
        assert (np.diff(qubo.indices[row]) > 0).all()
        dense[i, qubo.indices[row]] = qubo.weights[row]
    assert np.array_equal(dense, dense.T)
    assert not dense.diagonal().any()
    assert (qubo.weights != 0).all()
    assert (qubo.indptr.dtype, qubo.indices.dtype, qubo.weights.dtype) == (
        np.int64,
        np.int32,
        np.float64,
    )
    rows, cols, weights = upper_triangle(qubo)
    assert np.array_equal(dense[rows, cols], weights)
    assert len(rows) == qubo.couplers


@given(raw_terms())
def test_dimod_agrees(terms):
    qubo = built(*terms)
    labels = [f"x{i}" for i in range(qubo.bits)]
    bqm = to_bqm(qubo, labels)
    back, names = from_bqm(bqm)
    assert list(names) == labels
    assert all(np.array_equal(a, b) for a, b in zip(qubo, back, strict=True))
    states = np.array(list(itertools.product([0, 1], repeat=qubo.bits)))
    assert energy(qubo, states) == pytest.approx(bqm.energies((states, labels)), abs=1e-7)


def test_spins_become_bits():
    import dimod

    bqm = dimod.BinaryQuadraticModel({"a": 1.5, "b": -2.0}, {("a", "b"): 0.5}, 0.25, "SPIN")
    qubo, labels = from_bqm(bqm)
    for a, b in itertools.product([0, 1], repeat=2):
        assert energy(qubo, [a, b]) == bqm.energy({"a": 2 * a - 1, "b": 2 * b - 1})
    assert labels == ("a", "b")


def test_pairs_that_cancel_vanish_and_pairs_of_one_bit_are_linear():
    qubo = qubo_from_couplers([1.0, 2.0], [0, 1, 1], [1, 0, 1], [3.0, -3.0, 4.0], 5.0)
    assert qubo.couplers == 0
    assert qubo.h.tolist() == [1.0, 6.0]
    assert coefficient_range(qubo) == (1.0, 6.0)


def test_range_of_nothing_and_of_couplers():
    assert coefficient_range(qubo_from_couplers([0.0], [], [], [])) == (0.0, 0.0)
    assert coefficient_range(qubo_from_couplers([0.0, -2.0], [0], [1], [-7.0])) == (2.0, 7.0)


def test_no_bits():
    qubo = qubo_from_couplers([], [], [], [], 2.5)
    assert energy(qubo, []) == 2.5
    assert energy(qubo, np.zeros((3, 0))).tolist() == [2.5] * 3


def test_arrays_are_read_only():
    qubo = qubo_from_couplers([1.0, 2.0], [0], [1], [3.0])
    with pytest.raises(ValueError):
        qubo.weights[0] = 1.0


@pytest.mark.parametrize(
    ("h", "rows", "cols", "weights", "offset"),
    [
        ([1.0], [0], [1], [1.0], 0.0),
        ([1.0, 2.0], [-1], [1], [1.0], 0.0),
        ([1.0, 2.0], [0.5], [1], [1.0], 0.0),
        ([1.0, 2.0], [0], [1], [math.nan], 0.0),
        ([1.0, math.inf], [0], [1], [1.0], 0.0),
        ([1.0, 2.0], [0], [1], [1.0], math.inf),
        ([1.0, 2.0], [0, 1], [1], [1.0], 0.0),
        ([[1.0, 2.0]], [0], [0], [1.0], 0.0),
    ],
)
def test_bad_terms_are_refused(h, rows, cols, weights, offset):
    with pytest.raises(QubayesError):
        qubo_from_couplers(h, rows, cols, weights, offset)


def test_bad_states_and_labels_are_refused():
    qubo: Qubo = qubo_from_couplers([1.0, 2.0], [0], [1], [3.0])
    with pytest.raises(QubayesError, match="2 bits"):
        energy(qubo, [1, 0, 1])
    with pytest.raises(QubayesError, match="labels"):
        to_bqm(qubo, ["a", "a"])
