"""OMMX instances: the same energies and constraints as dimod's model, by exhaustion, and the way back."""

import itertools
from types import SimpleNamespace

import dimod
import pytest

import qubayes as qb
from qubayes import FormatError
from qubayes.machines import ommx_values, to_ommx

try:
    import ommx.v1 as ommx
except ImportError:
    ommx = None
with_ommx = pytest.mark.skipif(ommx is None, reason="ommx is not installed")


def model_of_bits():
    x, y, z = dimod.Binaries(["u[Smoker|Age,Sex]", "r[Age<Sex]", "b"])
    model = dimod.ConstrainedQuadraticModel()
    model.set_objective(0.1 * x * y - 3 * z + y * z + 2.5)
    model.add_constraint(x + y + z <= 2, label="at-most-two[Smoker]")
    model.add_constraint(2 * x - y >= 0, label="order")
    model.add_constraint(x * y - z + 1 == 0, label="equal")
    return model


def states_of(model):
    return [
        dict(zip(model.variables, bits, strict=True))
        for bits in itertools.product([0, 1], repeat=3)
    ]


@with_ommx
def test_every_state_has_the_value_and_the_constraints_of_the_model():
    model = model_of_bits()
    instance = ommx.Instance.from_bytes(to_ommx(model).to_bytes())
    assert [variable.name for variable in instance.decision_variables] == list(model.variables)
    assert [row.name for row in instance.constraints] == ["at-most-two[Smoker]", "order", "equal"]
    kept = set()
    for state in states_of(model):
        found = instance.evaluate(dict(enumerate(state.values())))
        assert found.objective == pytest.approx(model.objective.energy(state), abs=1e-12)
        for row, evaluated in zip(model.constraints.values(), found.constraints, strict=True):
            sign = -1 if row.sense.value == ">=" else 1
            assert evaluated.evaluated_value == sign * (row.lhs.energy(state) - row.rhs)
        assert found.feasible == model.check_feasible(state)
        assert ommx_values(found) == [state]
        kept.add(found.feasible)
    assert kept == {True, False}


@with_ommx
def test_samples_come_back_by_label():
    model = model_of_bits()
    states = states_of(model)
    samples = {number: dict(enumerate(state.values())) for number, state in enumerate(states)}
    assert ommx_values(to_ommx(model).evaluate_samples(samples)) == states


@with_ommx
def test_numbers_keep_their_bounds_and_spins_become_bits():
    n, r = (
        dimod.Integer("n", lower_bound=-3, upper_bound=8),
        dimod.Real("r", lower_bound=-1.5, upper_bound=2.5),
    )
    model = dimod.ConstrainedQuadraticModel()
    model.set_objective(n * n / 3 - r)
    n, r = to_ommx(model).decision_variables
    assert (n.bound.lower, n.bound.upper, r.bound.lower, r.bound.upper) == (-3, 8, -1.5, 2.5)
    spins = dimod.BinaryQuadraticModel({"s": 1.0, "t": 0.0}, {("s", "t"): -2.0}, 0.5, "SPIN")
    instance = to_ommx(spins)
    for bits in itertools.product([0, 1], repeat=2):
        expected = spins.energy(dict(zip("st", (2 * bit - 1 for bit in bits), strict=True)))
        assert instance.evaluate(dict(enumerate(bits))).objective == pytest.approx(expected)


@with_ommx
def test_what_ommx_does_not_have_is_refused():
    spins = dimod.ConstrainedQuadraticModel()
    spins.set_objective(1.0 * dimod.Spin("s"))
    with pytest.raises(FormatError, match="is a spin"):
        to_ommx(spins)
    soft = dimod.ConstrainedQuadraticModel()
    soft.add_constraint(dimod.Binary("x") <= 0, label="may be broken", weight=2.0)
    with pytest.raises(FormatError, match="'may be broken' is soft"):
        to_ommx(soft)


def variable(number, name, value, *subscripts):
    return SimpleNamespace(id=number, name=name, subscripts=list(subscripts), value=value)


def test_bits_that_an_adapter_adds_are_left_out():
    """The form of an answer of ommx-openjij-adapter 2.9.3, which writes inequalities with bits of its own."""
    added = [
        variable(2, "ommx.slack", 0.0, 0),
        variable(3, "ommx.log_encode", 1.0, 2, 0),
        variable(4, "ommx.log_encode", 0.0, 2, 1),
    ]
    solutions = {
        number: SimpleNamespace(
            decision_variables=[variable(0, "u[a]", x), variable(1, "u[b]", y), *added]
        )
        for number, (x, y) in {1: (0.0, 1.0), 0: (1.0, 0.0)}.items()
    }
    answer = SimpleNamespace(sample_ids=[1, 0], get=solutions.__getitem__)
    assert ommx_values(answer) == [{"u[a]": 1.0, "u[b]": 0.0}, {"u[a]": 0.0, "u[b]": 1.0}]
    assert ommx_values(solutions[1]) == [{"u[a]": 0.0, "u[b]": 1.0}]


@with_ommx
@pytest.mark.parametrize("ordering", ["penalties", "inequalities"])
def test_the_answer_of_a_real_adapter_is_decoded(ordering):
    adapter = pytest.importorskip("ommx_openjij_adapter")
    dataset = qb.read("examples/wine.csv", bins=3)
    candidates = qb.identify(dataset, qb.CandidateSearch(2))
    formulation = qb.formulate(candidates)
    answer = adapter.OMMXOpenJijSAAdapter.sample(
        formulation.to_ommx(ordering=ordering), num_reads=3, seed=1
    )
    samples = formulation.decode(ommx_values(answer), repair=True)
    assert len(samples) == 3
    for sample in samples:
        network = qb.Network(candidates.names, sample.final.parents)
        assert qb.score(network, dataset).total == pytest.approx(sample.final.score)
