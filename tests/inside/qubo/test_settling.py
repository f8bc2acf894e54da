"""Settling moves: by their definition, energies, and what they find that single flips do not."""

from itertools import combinations

import dimod
import numpy as np
import pytest

from qubayes import SettingError
from qubayes.qubo import energy, qubo_from_couplers
from qubayes.qubo.samplers import SimulatedAnnealingSampler
from qubayes.qubo.samplers.settling import MOST_FLIPS, SettlingMoves
from reference import annealing as reference

GO_ON = np.zeros(1, np.bool_)


def random_model(seed, n, density=0.4):
    random = np.random.default_rng(seed)
    couplers = {
        pair: float(random.normal())
        for pair in combinations(range(n), 2)
        if random.random() < density
    }
    h = random.normal(size=n)
    rows, columns = np.array(list(couplers), np.int64).reshape(-1, 2).T
    return h, couplers, qubo_from_couplers(h, rows, columns, list(couplers.values()), 1.5)


def settled(h, couplers, bits, first, limit):
    """The state after a move by definition: the steepest of the bits that wait flips next."""
    bits, before = list(bits), list(bits)
    flipped = [first]
    bits[first] ^= 1
    rise = reference.energy(h, couplers, 0.0, bits) - reference.energy(h, couplers, 0.0, before)

    def falling():
        rises = {i: reference.increment(h, couplers, bits, i) for i in waiting - set(flipped)}
        return {i: rise for i, rise in rises.items() if rise < -1e-9}

    def neighbours(bit):
        return {i for pair in couplers if bit in pair for i in pair if i != bit}

    waiting = neighbours(first)
    waiting &= set(falling())
    if rise + sum(falling().values()) <= limit:
        while len(flipped) <= MOST_FLIPS and (found := falling()):
            chosen = min(found, key=found.__getitem__)
            waiting = set(found) - {chosen}
            bits[chosen] ^= 1
            flipped.append(chosen)
            now = waiting | neighbours(chosen)
            waiting = now
            waiting &= set(falling())
    total = reference.energy(h, couplers, 0.0, bits) - reference.energy(h, couplers, 0.0, before)
    return bits if total <= limit else before


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("beta", [1e-9, 1.0, 1e9])
def test_moves_are_those_of_the_definition(seed, beta):
    n = 12
    h, couplers, qubo = random_model(seed, n)
    bits = np.random.default_rng(seed).integers(0, 2, n)
    moves = SettlingMoves(qubo, bits, np.random.SeedSequence(seed))
    draws = reference.Draws(*moves._draws.words.tolist())
    state = bits.tolist()
    for _ in range(20):
        picks, waits = draws.picks(n), draws.waits()
        moves.make(np.array([beta]), 1, GO_ON)
        state = settled(h, couplers, state, int(picks[0]), waits[0] / beta)
        assert moves.state.astype(int).tolist() == state


@pytest.mark.parametrize("seed", range(4))
def test_energies_follow_the_moves(seed):
    h, couplers, qubo = random_model(seed, 40)
    moves = SettlingMoves(qubo, np.zeros(40), np.random.SeedSequence(seed))
    least = float(energy(qubo, np.zeros(40)))
    for beta in np.geomspace(0.05, 20.0, 30).tolist():
        moves.make(np.array([beta]), 17, GO_ON)
        assert moves._walk.energy[0] == pytest.approx(float(energy(qubo, moves.state)), abs=1e-9)
        rises = [reference.increment(h, couplers, moves.state.astype(int), i) for i in range(40)]
        np.testing.assert_allclose((moves._walk.sign * moves._walk.field)[:40], rises, atol=1e-9)
        least = min(least, float(energy(qubo, moves.state)))
        assert float(energy(qubo, moves.best)) == pytest.approx(least)
    assert not moves._reactions.is_waiting.any()


def test_halted_moves_change_nothing():
    _, _, qubo = random_model(1, 20)
    moves = SettlingMoves(qubo, np.zeros(20), np.random.SeedSequence(1))
    moves.make(np.ones(3), 40, np.ones(1, np.bool_))
    assert not moves.state.any()


def assignment(n):
    """A random assignment of n things to n places, as bits with strong constraints."""
    cost = np.random.default_rng(0).uniform(0, 1, (n, n))
    model = dimod.BinaryQuadraticModel("BINARY")
    for i in range(n):
        for p in range(n):
            model.add_variable((i, p), cost[i, p])
    for k in range(n):
        for group in ([(k, p) for p in range(n)], [(i, k) for i in range(n)]):
            terms = [(variable, 1.0) for variable in group]
            model.add_linear_equality_constraint(terms, lagrange_multiplier=5.0, constant=-1.0)
    return model


def test_constraints_are_passed_that_stop_single_flips():
    model = assignment(10)
    sampler = SimulatedAnnealingSampler()
    common = {"num_reads": 4, "num_sweeps": 300, "beta_range": (2.0, 40.0), "seed": 1}
    flips = sampler.sample(model, **common)
    settles = sampler.sample(model, moves="settle", **common)
    assert settles.first.energy < flips.first.energy
    assert settles.record.energy.mean() < flips.record.energy.mean()
    again = sampler.sample(model, moves="settle", threads=1, **common)
    assert (again.record.sample == settles.record.sample).all()


def test_other_moves_are_refused():
    with pytest.raises(SettingError, match="moves = 'jump'; choose one of flip, settle"):
        SimulatedAnnealingSampler().sample(assignment(2), moves="jump")
