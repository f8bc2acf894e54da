"""The dimod composite: polynomials through samplers of quadratic models."""

import dimod
import dimod.testing
import pytest
from hypothesis import given

from qubayes import SettingError
from qubayes.quadratize import DecomposedQuadratizationComposite, quadratize
from reference import polynomials as oracle
from test_quadratize import EXAMPLE, polynomials


@pytest.fixture
def sampler():
    return DecomposedQuadratizationComposite(dimod.ExactSolver())


def test_it_is_a_composite(sampler):
    dimod.testing.assert_composite_api(sampler)
    assert isinstance(sampler, dimod.ComposedPolySampler)


@given(terms=polynomials(variables=5, terms=5))
def test_best_sample_is_the_minimum_and_energies_are_the_polynomials(terms):
    sampler = DecomposedQuadratizationComposite(dimod.ExactSolver())
    samples = sampler.sample_poly(dimod.BinaryPolynomial(terms, "BINARY"))
    assert samples.first.energy == oracle.minimum(terms)
    for datum in samples.data():
        assert datum.energy == oracle.value(terms, datum.sample)
        assert set(datum.sample) == set(oracle.variables(terms))


def test_satisfied_means_that_every_bit_is_its_product(sampler):
    poly = dimod.BinaryPolynomial(EXAMPLE, "BINARY")
    sets = dict(zip(quadratize(poly).decoder.bits, quadratize(poly).sets, strict=True))
    samples = sampler.sample_poly(poly, keep_penalty_variables=True)
    right = 0
    for datum in samples.data():
        state = {**datum.sample}
        products = all(
            state[bit] == min(state[v] for v in s)
            for bit, s in sets.items()
            if bit not in poly.variables
        )
        if products and datum.penalty_satisfaction:
            right += 1
    assert right == samples.record.penalty_satisfaction.sum() == len(oracle.unions(sets.values()))
    kept = sampler.sample_poly(poly, discard_unsatisfied=True)
    assert len(kept) == right and kept.record.penalty_satisfaction.all()


def test_spins_come_back_as_spins(sampler):
    h, j = {"a": -0.5, "b": 0.25}, {("a", "b", "c"): -1.75, ("b", "c", "d"): 1.0, ("a", "d"): 0.5}
    samples = sampler.sample_hising(h, j)
    exact = dimod.ExactPolySolver().sample_hising(h, j)
    assert samples.vartype is dimod.SPIN
    assert samples.first.energy == pytest.approx(exact.first.energy)
    poly = dimod.BinaryPolynomial.from_hising(h, j)
    for datum in samples.data():
        assert datum.energy == pytest.approx(poly.energy(datum.sample))


def test_exclusive_terms_are_satisfied_with_two_sets_at_most(sampler):
    terms = {("a", "b", "c"): -5.0, ("a", "b", "d"): -4.0, ("c", "d"): -3.0, ("b", "c", "d"): -2.0}
    poly = dimod.BinaryPolynomial(terms, "BINARY")
    samples = sampler.sample_poly(
        poly, quadratize_options={"assumptions": "terms-exclusive"}, keep_penalty_variables=True
    )
    result = quadratize(terms, assumptions="terms-exclusive")
    for bits in oracle.states(result.model.variables):
        active = sum(bits[b] for b in result.decoder.bits)
        row = [[bits[label] for label in result.decoder.labels]]
        satisfied = bool(result.decoder.satisfied_rows(__import__("numpy").array(row))[0])
        counter = bits[result.decoder.counter]
        assert satisfied == ((active, counter) in {(0, 0), (1, 0), (1, 1), (2, 1)})
    assert (
        samples.record.penalty_satisfaction.any() and not samples.record.penalty_satisfaction.all()
    )


def test_an_initial_state_is_given_in_the_polynomials_variables():
    seen = {}

    class Recorder(dimod.ExactSolver):
        def sample(self, bqm, initial_state=None, **parameters):
            seen.update(initial_state)
            return super().sample(bqm, **parameters)

    state = {1: 1, 2: 1, 3: 1, 4: 0}
    DecomposedQuadratizationComposite(Recorder()).sample_poly(
        dimod.BinaryPolynomial(EXAMPLE, "BINARY"), initial_state=state
    )
    assert quadratize(EXAMPLE).decoder.decode(seen) == state
    assert quadratize(EXAMPLE).model.energy(seen) == oracle.value(EXAMPLE, state)


def test_number_of_occurrences_and_timing_are_kept():
    sampler = DecomposedQuadratizationComposite(dimod.RandomSampler())
    samples = sampler.sample_poly(dimod.BinaryPolynomial(EXAMPLE, "BINARY"), num_reads=7)
    assert samples.record.num_occurrences.sum() == 7
    assert set(samples.info["timing"]) == {"preprocessing_ns", "sampling_ns", "postprocessing_ns"}
    assert samples.info["quadratization"]["bits"] == 3


def test_unknown_options_are_refused(sampler):
    with pytest.raises(SettingError, match="strength"):
        sampler.sample_poly(
            dimod.BinaryPolynomial(EXAMPLE, "BINARY"), quadratize_options={"strength": 3}
        )


def test_small_polynomials_pass_through(sampler):
    assert (
        sampler.sample_poly(
            dimod.BinaryPolynomial({"a": -1.0, "ab": 2.0, (): 3.0}, "BINARY")
        ).first.energy
        == 2.0
    )
    assert sampler.sample_hubo({("a", "b"): -1.0}).first.sample == {"a": 1, "b": 1}
