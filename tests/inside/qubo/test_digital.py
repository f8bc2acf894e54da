"""Parallel trial against a slow reference with the same random numbers, and networks through `solve`."""

import os
import signal
import threading
from itertools import combinations, islice
from types import SimpleNamespace

import numpy as np
import pytest

from formulation_cases import candidates_of, random_scores, split_subsets
from qubayes import SettingError
from qubayes.foundation.workers import Workers
from qubayes.qubo import constrain, decode, energy, formulate, qubo_from_couplers
from qubayes.qubo.samplers import digital
from qubayes.qubo.samplers.digital import BitGroups, Tempering, replica_from, sum_of_qubos, try_all
from qubayes.qubo.samplers.flips import FlipModel, halting
from qubayes.qubo.samplers.states import NetworkOffers, with_slack
from qubayes.search import Limits, solve, solver_named
from reference import annealing as reference
from reference import energies as exhaustive
from solve_cases import TickingClock

GO_ON = np.zeros(1, np.bool_)
NO_SEED = np.random.SeedSequence(0)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("beta", [0.05, 0.5, 4.0])
def test_parallel_trial_is_that_of_the_reference(seed, beta):
    random = np.random.default_rng(seed)
    n = int(random.integers(1, 40))
    h = random.normal(size=n) * 3
    couplers = {
        pair: float(random.normal()) for pair in combinations(range(n), 2) if random.random() < 0.3
    }
    rows, cols = np.array(list(couplers), dtype=np.int64).reshape(-1, 2).T
    qubo = qubo_from_couplers(h, rows, cols, list(couplers.values()))
    ranges = [(0, n // 2), (n // 2, n)] if n > 4 else []
    groups = BitGroups.of(ranges, n)
    replica = replica_from(qubo, np.zeros(n, np.bool_), groups, 2, np.random.SeedSequence(seed))
    draws = reference.Draws(*replica.draws.words.tolist())
    slow = reference.parallel_trial(h, couplers, [range(*r) for r in ranges], 2, beta, draws)
    couplings = FlipModel.of(qubo).couplings
    for bits, offset in islice(slow, 300):
        assert try_all(couplings, groups, replica, (beta, 1 / beta), 1, GO_ON) == 1
        assert (replica.walk.sign[:n] < 0).tolist() == [bool(bit) for bit in bits]
        assert replica.offset[0] == pytest.approx(offset)
    assert replica.walk.energy[0] == pytest.approx(
        reference.energy(h, couplers, 0.0, bits), abs=1e-9
    )


def test_one_of_the_accepted_is_taken_uniformly():
    """Flips that lower the energy are always accepted: each of them is as likely, whatever it gains."""
    n = 40
    h = np.where(np.arange(n) % 4 == 0, -1.0 - np.arange(n), 1e9)
    qubo = qubo_from_couplers(h, [], [], [])
    couplings, groups = FlipModel.of(qubo).couplings, BitGroups.of([], n)
    taken = np.zeros(n)
    for seed in range(3000):
        replica = replica_from(qubo, np.zeros(n), groups, 2, np.random.SeedSequence(seed))
        try_all(couplings, groups, replica, (1.0, 1.0), 1, GO_ON)
        taken[int(np.flatnonzero(replica.walk.sign[:n] < 0)[0])] += 1
    assert not taken[h > 0].any()
    expected = 3000 / 10
    assert ((taken[h < 0] - expected) ** 2 / expected).sum() < 9 + 4 * np.sqrt(18)


def test_groups_are_never_overfull():
    random = np.random.default_rng(1)
    n, ranges = 30, [(0, 10), (10, 25)]
    qubo = qubo_from_couplers(-np.ones(n), [], [], [])
    groups = BitGroups.of(ranges, n)
    replica = replica_from(qubo, random.random(n) < 0.05, groups, 2, np.random.SeedSequence(2))
    couplings = FlipModel.of(qubo).couplings
    for _ in range(200):
        try_all(couplings, groups, replica, (0.5, 2.0), 5, GO_ON)
        state = replica.walk.sign[:n] < 0
        for number, (first, last) in enumerate(ranges):
            assert state[first:last].sum() == 2 - replica.slack[number] <= 2
            shut = np.isinf(replica.wall[first:last])
            assert (
                shut
                == (
                    ~state[first:last]
                    if state[first:last].sum() == 2
                    else np.zeros(last - first, bool)
                )
            ).all()
    assert energy(qubo, replica.walk.best) == replica.walk.best_energy[0] == -9.0


def test_exchange_keeps_replicas_and_brings_low_energies_to_low_temperatures():
    random = np.random.default_rng(4)
    i, j = np.triu_indices(24, 1)
    qubo = qubo_from_couplers(random.normal(size=24), i, j, random.normal(size=len(i)))
    tempering = Tempering(
        FlipModel.of(qubo), BitGroups.of([], 24), [np.zeros(24)] * 6, np.random.SeedSequence(1)
    )
    coldest = []
    halt = np.zeros(1, np.bool_)
    with halting(halt, 2) as pool:
        for _ in range(60):
            tempering.advance(pool, 50, 0.3, lambda: 1.0, halt)
            coldest.append([float(tempering.replicas[p].walk.energy[0]) for p in tempering._places])
    assert sorted(tempering._places) == list(range(6))
    assert tempering.iterations == 3000
    means = np.mean(coldest[20:], axis=0)
    assert means[-1] < means[0] - 2
    least = min(float(energy(qubo, state)) for state in tempering.bests)
    assert tempering.best[0] == pytest.approx(least)


def test_full_groups_are_shut_from_the_start():
    qubo, groups = (
        qubo_from_couplers(np.ones(30), [], [], []),
        BitGroups.of([(0, 10), (12, 25)], 30),
    )
    replica = replica_from(
        qubo, np.isin(np.arange(30), [3, 7, 13, 27]), groups, 2, np.random.SeedSequence(2)
    )
    assert replica.slack.tolist() == [0, 1]
    assert np.flatnonzero(np.isinf(replica.wall)).tolist() == [0, 1, 2, 4, 5, 6, 8, 9]
    assert (
        try_all(FlipModel.of(qubo).couplings, groups, replica, (1.0, 1.0), 5, np.ones(1, np.bool_))
        == 0
    )


@pytest.mark.parametrize("count", [1, 2, 5])
def test_tempering_is_that_of_the_definition(count):
    """Replicas, temperatures and exchanges of neighbours, even and odd ones in turn, from the same random numbers."""
    random = np.random.default_rng(4)
    i, j = np.triu_indices(24, 1)
    model = FlipModel.of(
        qubo_from_couplers(random.normal(size=24), i, j, random.normal(size=len(i)))
    )
    groups, halt = BitGroups.of([(0, 12), (12, 20)], 24), np.zeros(1, np.bool_)
    tempering = Tempering(model, groups, [np.zeros(24)] * count, np.random.SeedSequence(1))
    own, *streams = np.random.SeedSequence(1).spawn(count + 1)
    draw = np.random.default_rng(own)
    places = [replica_from(model.qubo, np.zeros(24), groups, 2, seed) for seed in streams]
    exchanges = 0
    with halting(halt, 2) as pool:
        for number in range(1, 41):
            coldest = 0.05 * number
            tempering.advance(pool, 7, coldest, lambda: 1.0, halt)
            betas = [coldest * digital.SPREAD ** (k / max(count - 1, 1) - 1) for k in range(count)]
            betas[-1] = coldest
            for replica, beta in zip(places, betas, strict=True):
                try_all(model.couplings, groups, replica, (beta, 1 / beta), 7, halt)
            for k in range(number % 2, count - 1, 2):
                energies = [float(places[k + more].walk.energy[0]) for more in (0, 1)]
                odds = np.exp(min(0.0, (betas[k] - betas[k + 1]) * (energies[0] - energies[1])))
                if draw.random() < odds:
                    exchanges += 1
                    places[k], places[k + 1] = places[k + 1], places[k]
                    places[k].offset[0] = places[k + 1].offset[0] = 0.0
            found = [tempering.replicas[place] for place in tempering._places]
            for ours, theirs in zip(found, places, strict=True):
                assert ours.walk.sign.tolist() == theirs.walk.sign.tolist()
                assert (
                    ours.offset[0] == pytest.approx(theirs.offset[0])
                    and (ours.slack == theirs.slack).all()
                )
    assert tempering.iterations == 40 * 7 and exchanges >= 5 * (count - 1)


@pytest.mark.parametrize("bits", [0, 1, 2**10, 2**14, 2**18, 2**22])
def test_exchanges_are_neither_rare_nor_frequent(bits):
    tempering = Tempering(
        FlipModel.of(qubo_from_couplers([1.0], [], [], [])), BitGroups.of([], 1), [], NO_SEED
    )
    tempering.model = SimpleNamespace(qubo=SimpleNamespace(bits=bits))
    periods = digital.FLIPS_PER_EXCHANGE // bits if bits else 2**60
    assert tempering.period == (16 if periods < 16 else 4096 if periods > 4096 else periods)


def problem(seed: int, n: int = 5, required: int = 0, **kinds: str):
    random = np.random.default_rng(seed)
    scores = random_scores(random, n, 3 if n < 5 else 2, 0.4, required)
    candidates = candidates_of(scores)
    return scores, formulate(candidates, split_subsets(random, candidates), **kinds)


@pytest.mark.parametrize("seed", range(5))
def test_states_of_the_constrained_form_are_states_of_the_qubo(seed):
    _, formulation = problem(seed, 4)
    form = constrain(formulation)
    qubo = sum_of_qubos(form.score, form.cycles)
    random = np.random.default_rng(seed)
    for _ in range(100):
        bits = np.zeros(qubo.bits, np.bool_)
        for first, last in np.lib.stride_tricks.sliding_window_view(
            formulation.subsets.families.vertex_start, 2
        ).tolist():
            if last > first:
                bits[random.integers(first, last, 2)] = True
        bits[formulation.subsets.total :] = (
            random.random(qubo.bits - formulation.subsets.total) < 0.5
        )
        decoded = decode(formulation, with_slack(formulation, bits))
        assert {v.constraint for v in decoded.violations} <= {"edge", "required", "triangle"}
        assert decoded.energy <= float(energy(qubo, bits)) + 1e-9


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kinds", [{}, {"order": "scc", "penalty": "paper"}])
def test_the_optimum_of_small_problems_is_found(seed, kinds):
    scores, formulation = problem(seed, 4, required=seed % 2, **kinds)
    solution = solve(formulation, "digital", limits=Limits(None, moves=20_000, seed=seed))
    assert solution.score == pytest.approx(exhaustive.best_score_of_dags(scores))
    assert solution.energy == pytest.approx(-solution.score)
    assert solution.statistics["iterations"] == 20_000


def test_a_number_of_moves_gives_the_same_with_any_number_of_threads():
    _, formulation = problem(7, 6)
    found = [
        solve(
            formulation,
            "digital",
            limits=Limits(None, moves=3_000, seed=4),
            workers=Workers(threads),
        )
        for threads in (1, 2, 2)
    ]
    assert len({(f.score, f.choice.tobytes(), f.status) for f in found}) == 1


def test_few_iterations_and_one_replica():
    _, formulation = problem(1)
    for moves in (0, 1, 3):
        solution = solve(
            formulation, solver_named("digital", replicas=1), limits=Limits(None, moves=moves)
        )
        assert solution.statistics["iterations"] == moves
        assert solution.status.startswith(f"1 replica, {moves} iterations")


def test_a_time_limit_is_kept(set_clock):
    _, formulation = problem(2)
    clock = TickingClock(0.1)
    set_clock(clock)
    solution = solve(formulation, "digital", limits=Limits(60.0))
    assert 50.0 <= clock.seconds < 80.0  # some time is kept for reading states
    assert solution.statistics["iterations"] > 0


def test_an_interrupt_returns_the_best_so_far():
    _, formulation = problem(2)
    solve(formulation, "digital", limits=Limits(0.1))
    threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT)).start()
    solution = solve(formulation, "digital", limits=Limits(60.0))
    assert solution.interrupted
    assert solution.score > solution.empty_score


@pytest.mark.parametrize(
    "wrong",
    [
        {"first_temperature": 0.1},
        {"last_temperature": 0.0},
        {"replicas": 0},
        {"first_temperature": float("inf")},
    ],
)
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(SettingError):
        solver_named("digital", **wrong)
    assert (
        solver_named("digital", first_temperature=2.0, last_temperature=2.0, replicas=1).replicas
        == 1
    )


def test_temperatures_fall_with_the_iterations_and_better_states_are_offered(monkeypatch):
    """Each call of `advance` is a share of the run here."""
    _, formulation = problem(4, 6)
    calls, energies, reads = [], [], []
    advance, read = Tempering.advance, NetworkOffers.offer

    def advanced(self, pool, iterations, beta, *more):
        calls.append((iterations, beta))
        advance(self, pool, iterations, beta, *more)
        energies.append(self.best[0])

    def recorded(self, bits):
        reads.append(len(calls))
        return read(self, bits)

    solver_named("digital").prepare()
    monkeypatch.setattr(digital, "FLIPS_PER_EXCHANGE", 0)
    monkeypatch.setattr(digital, "SHARES", 12)
    monkeypatch.setattr(Tempering, "advance", advanced)
    monkeypatch.setattr(NetworkOffers, "offer", recorded)
    solver = solver_named("digital", first_temperature=50.0, last_temperature=2.0, replicas=2)
    solution = solve(formulation, solver, limits=Limits(None, moves=12 * 16 - 5))
    assert solution.status.startswith("2 replicas, 187 iterations")
    assert [iterations for iterations, _ in calls] == [16] * 11 + [11]
    progress = 16 * np.arange(12) / 187
    assert [beta for _, beta in calls] == pytest.approx(0.02 * 25.0**progress)
    better = [
        k + 1 for k, energy in enumerate(energies) if energy < min(energies[:k], default=np.inf)
    ]
    assert reads == [*better, 12, 12] and 1 < len(better) < 12


@pytest.mark.parametrize("reserve", [10.0, 60.0])
def test_temperatures_fall_with_the_time(monkeypatch, set_clock, reserve):
    _, formulation = problem(4, 6)
    clock, asked, left, betas, reports = SimpleNamespace(now=200.0), [], [], [], []

    def advanced(self, pool, iterations, beta, look, halt):
        betas.append(beta)
        clock.now += 5.0
        left.append(look())

    def reserved(run, seconds):
        asked.append(seconds)
        return reserve

    solver_named("digital").prepare()
    set_clock(lambda: clock.now)
    monkeypatch.setattr(Tempering, "advance", advanced)
    monkeypatch.setattr(digital, "reserved_seconds", reserved)
    for cost, replicas in ((0.25, 4), (0.5, 4), (0.25, 1)):
        monkeypatch.setattr(digital, "offer_first", lambda offers, model, start, cost=cost: cost)
        solver = solver_named(
            "digital", first_temperature=50.0, last_temperature=2.0, replicas=replicas
        )
        solve(formulation, solver, limits=Limits(60.0), on_progress=reports.append)
    assert [seconds / asked[0] for seconds in asked] == [1.0, 2.0, 0.25] and asked[0] > 1.0
    steps = int(60.0 - reserve) // 5
    assert betas == pytest.approx([*0.02 * 25.0 ** (0.1 * np.arange(steps))] * 3)
    assert left == pytest.approx([60.0 - reserve - 5.0 * k for k in range(1, steps + 1)] * 3)
    assert {report.total for report in reports} == ({1.0} if steps else set())


@pytest.mark.parametrize("stage", ["offer_first", "constrain"])
def test_a_limit_that_is_too_short_to_begin_is_told(monkeypatch, set_clock, stage):
    """The time is up after the first state is read, or after the constrained form is made."""
    _, formulation = problem(2)
    clock, original = SimpleNamespace(now=0.0), getattr(digital, stage)

    def slowly(*arguments):
        clock.now += 100.0
        return original(*arguments)

    solver_named("digital").prepare()
    set_clock(lambda: clock.now)
    monkeypatch.setattr(digital, stage, slowly)
    solution = solve(formulation, "digital", limits=Limits(60.0))
    assert solution.status == "the time limit is too short to begin; best so far returned"
    assert [solution.statistics[name] for name in ("iterations", "replicas", "repaired")] == [
        0,
        4,
        0,
    ]
    assert solution.statistics["raw_score"] is solution.statistics["repaired_score"] is None
    assert solution.statistics["before_annealing"] == solution.score


def test_a_time_limit_ends_counted_iterations(set_clock):
    _, formulation = problem(2)
    solver_named("digital").prepare()
    set_clock(TickingClock(0.1))
    solution = solve(formulation, "digital", limits=Limits(60.0, moves=2**50))
    assert solution.status.startswith("time limit reached before the last iteration; 4 replicas")
