"""Simulated annealing: energies and statistics of its kernels, and networks through `solve`."""

import math
import os
import signal
import threading
import time
from itertools import combinations, pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulation_cases import candidates_of, random_scores, split_subsets, whole_subsets
from qubayes import SettingError
from qubayes.foundation.random import draws_of
from qubayes.foundation.workers import Workers
from qubayes.network import Network
from qubayes.qubo import encode_sets, energy, formulate, qubo_from_couplers
from qubayes.qubo.samplers import reads, sa
from qubayes.qubo.samplers.flips import (
    BLOCK,
    EXAMPLES,
    FlipModel,
    Schedule,
    _descend,
    couplings_of,
    descend,
    flip,
    halting,
    state_of,
    sweep_at_random,
    sweep_in_order,
    walk_from,
    watch,
)
from qubayes.qubo.samplers.reads import FlipMoves, Read, ReadPlan, TimeSlot, time_slots
from qubayes.qubo.samplers.states import (
    NetworkOffers,
    network_of_state,
    offer_first,
    reserved_seconds,
    start_state,
)
from qubayes.search import Limits, solve, solver_named
from qubayes.search.run import Run
from reference import annealing as reference
from reference import energies as exhaustive
from solve_cases import TickingClock

GO_ON = np.zeros(1, np.bool_)
FLIPS = solver_named("sa", flips=True)


def random_couplers(
    random: np.random.Generator, n: int, density: float
) -> dict[tuple[int, int], float]:
    return {
        pair: float(random.normal())
        for pair in combinations(range(n), 2)
        if random.random() < density
    }


def qubo_of(h, couplers, offset=0.0):
    rows, cols = np.array(list(couplers), dtype=np.int64).reshape(-1, 2).T
    return qubo_from_couplers(h, rows, cols, list(couplers.values()), offset)


@given(
    st.integers(0, 10**6), st.integers(1, 40), st.sampled_from([0.0, 0.1, 0.5, 1.0]), st.booleans()
)
def test_fields_follow_every_flip(seed, n, density, short):
    random = np.random.default_rng(seed)
    h, couplers = random.normal(size=n), random_couplers(random, n, density)
    if short:
        couplers = {pair: float(np.float32(weight)) for pair, weight in couplers.items()}
    qubo = qubo_of(h, couplers, 2.5)
    assert couplings_of(qubo).weights.dtype == (np.float32 if short or not couplers else np.float64)
    bits = random.integers(0, 2, n)
    walk, couplings = walk_from(qubo, bits), couplings_of(qubo)
    assert not len(walk.best)  # not kept unless asked
    for bit in random.integers(0, n, 12).tolist():
        flip(couplings, walk, bit)
        bits[bit] ^= 1
        rises = [reference.increment(h, couplers, bits, i) for i in range(n)]
        np.testing.assert_allclose((walk.sign * walk.field)[:n], rises, atol=1e-9)
        assert walk.energy[0] == pytest.approx(reference.energy(h, couplers, 2.5, bits), abs=1e-9)
        assert (state_of(walk, n) == bits).all()


def test_weights_are_of_32_bits_where_energies_change_by_at_most_the_tolerance():
    random = np.random.default_rng(0)
    couplers = random_couplers(random, 30, 0.5)
    error = sum(abs(weight - float(np.float32(weight))) for weight in couplers.values())
    qubo = qubo_of(random.normal(size=30), couplers)
    assert [FlipModel.of(qubo, share * error).kind for share in (0.0, 0.99, 1.01)] == [
        "float64",
        "float64",
        "float32",
    ]
    assert FlipModel.of(qubo_of(np.zeros(2), {(0, 1): 1e300}), 1e299).kind == "float64"
    assert {kind: FlipModel.of(example).kind for kind, example in EXAMPLES.items()} == {
        kind: kind for kind in EXAMPLES
    }


@given(st.integers(0, 10**6), st.integers(1, 30), st.booleans())
def test_a_descent_ends_where_no_flip_lowers_the_energy(seed, n, ties):
    random = np.random.default_rng(seed)
    h, couplers = random.normal(size=n), random_couplers(random, n, 0.4)
    if ties:
        h, couplers = np.round(h), {pair: round(weight) for pair, weight in couplers.items()}
    bits = random.integers(0, 2, n)
    found = descend(FlipModel.of(qubo_of(h, couplers)), bits).astype(int)
    assert min(reference.increment(h, couplers, found, i) for i in range(n)) >= -1e-9
    assert (
        reference.energy(h, couplers, 0.0, found) <= reference.energy(h, couplers, 0.0, bits) + 1e-9
    )


def test_rows_of_a_dense_model_are_stretches_and_of_a_sparse_one_are_not():
    dense = couplings_of(qubo_of(np.zeros(20), dict.fromkeys(combinations(range(20), 2), 1.0)))
    assert dense.stretches.tolist() == [[0, 20 * row, 20 * row + 20] for row in range(20)]
    rows = dense.long_weights.reshape(20, 20)
    assert (rows == 1 - np.eye(20)).all()  # 0 for the bit itself
    path = couplings_of(qubo_of(np.zeros(20), {(i, i + 1): 1.0 for i in range(19)}))
    assert len(path.columns) == 38
    assert not len(path.stretches)


@pytest.mark.parametrize("in_order", [True, False])
def test_states_at_a_fixed_temperature_are_boltzmann_distributed(in_order):
    random = np.random.default_rng(1)
    n, beta, samples = 5, 0.8, 20_000
    h, couplers = random.normal(size=n), random_couplers(random, n, 1.0)
    qubo = qubo_of(h, couplers)
    couplings, walk, draws = (
        couplings_of(qubo),
        walk_from(qubo, np.zeros(n)),
        draws_of(np.random.SeedSequence(3)),
    )
    counts, betas = np.zeros(2**n), np.full(12, beta)
    for _ in range(samples):
        if in_order:
            sweep_in_order(couplings, walk, draws, betas, GO_ON)
        else:
            sweep_at_random(couplings, walk, draws, betas, n, GO_ON)
        counts[int("".join(str(int(bit)) for bit in state_of(walk, n)), 2)] += 1
    expected = samples * np.array(reference.boltzmann(h, couplers, beta))
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert chi_square < 31 + 4 * np.sqrt(2 * 31)  # 31 degrees of freedom: mean 31, variance 62


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("tries", [0, 5, 16, 17])
def test_sweeps_are_those_of_the_definition(seed, tries):
    """State, energy and best state after each temperature, from the same random numbers; 0 tries: in order."""
    random = np.random.default_rng(seed)
    n = int(random.integers(1, 40))
    h, couplers = random.normal(size=n) * 2, random_couplers(random, n, 0.3)
    h[n // 2 :] += 6.0 * (seed % 2)  # blocks in which hardly any flip is possible at the end
    qubo, bits = qubo_of(h, couplers, 1.5), random.integers(0, 2, n)
    betas, draws = np.geomspace(0.05, 20.0, 40), draws_of(np.random.SeedSequence(seed))
    slow = reference.Draws(*draws.words.tolist())
    walk, couplings = walk_from(qubo, bits, keep_best=True), couplings_of(qubo)
    energies = [reference.energy(h, couplers, 1.5, bits)]
    best = bits.tolist()
    arguments = (h, couplers, bits.tolist(), betas.tolist())
    states = (
        reference.sweeps_at_random(*arguments, tries, slow)
        if tries
        else reference.sweeps_in_order(*arguments, slow)
    )
    for beta, state in zip(betas, states, strict=True):
        if tries:
            sweep_at_random(couplings, walk, draws, np.array([beta]), tries, GO_ON)
        else:
            sweep_in_order(couplings, walk, draws, np.array([beta]), GO_ON)
        assert state_of(walk, n).astype(int).tolist() == state
        energies.append(reference.energy(h, couplers, 1.5, state))
        if energies[-1] < min(energies[:-1]) - 1e-9:
            best = state
        assert walk.best.astype(int).tolist() == best
        assert [walk.energy[0], walk.best_energy[0]] == pytest.approx(
            [energies[-1], min(energies)], abs=1e-9
        )


def test_halted_sweeps_change_nothing():
    qubo = qubo_of(-np.ones(20), {})
    couplings, walk, draws = (
        couplings_of(qubo),
        walk_from(qubo, np.zeros(20)),
        draws_of(np.random.SeedSequence(1)),
    )
    sweep_in_order(couplings, walk, draws, np.ones(3), np.ones(1, np.bool_))
    sweep_at_random(couplings, walk, draws, np.ones(3), 40, np.ones(1, np.bool_))
    assert not state_of(walk, 20).any()


@pytest.mark.parametrize("n", [BLOCK - 1, BLOCK, BLOCK + 1])
def test_a_descent_flips_no_place_behind_the_bits(n):
    random = np.random.default_rng(4)
    model = FlipModel.of(qubo_of(random.normal(size=n), random_couplers(random, n, 0.3)))
    walk = walk_from(model.qubo, np.zeros(n))
    size = len(walk.sign)
    sign, field = np.ones(size + 8), np.full(size + 8, -1e9)
    sign[:size], field[:size] = walk.sign, walk.field
    _descend(model.couplings, walk._replace(sign=sign[:size], field=field[:size]), 1e-9)
    assert (sign[n:] == 1.0).all()
    assert (sign[:n] * field[:n] >= -1e-9).all()


@pytest.mark.parametrize("scale", [1e-13, 1.0, 1e13])
def test_a_descent_does_not_depend_on_the_scale(scale):
    random = np.random.default_rng(5)
    h, couplers = random.normal(size=20), random_couplers(random, 20, 0.4)
    scaled = {pair: scale * weight for pair, weight in couplers.items()}
    found = [
        descend(FlipModel.of(qubo_of(*model)), np.zeros(20))
        for model in ((h, couplers), (scale * h, scaled))
    ]
    assert found[0].tolist() == found[1].tolist()
    assert not descend(FlipModel.of(qubo_of(np.zeros(3), {})), np.zeros(3)).any()


def test_the_best_state_at_the_end_of_a_step_is_kept():
    random = np.random.default_rng(2)
    qubo = qubo_of(random.normal(size=30), random_couplers(random, 30, 0.4))
    couplings, walk, draws = (
        couplings_of(qubo),
        walk_from(qubo, np.zeros(30), keep_best=True),
        draws_of(np.random.SeedSequence(1)),
    )
    least = energy(qubo, np.zeros(30))
    for _ in range(200):
        sweep_in_order(couplings, walk, draws, np.array([0.5]), GO_ON)
        least = min(least, float(energy(qubo, state_of(walk, 30))))
    assert walk.best_energy[0] == pytest.approx(least)
    assert energy(qubo, walk.best) == pytest.approx(least)


def test_schedules():
    linear, geometric = Schedule(np.array([1.0, 3.0]), "linear"), Schedule(np.array([1.0, 100.0]))
    assert linear.steps(3).tolist() == [1.0, 2.0, 3.0]
    assert linear.at(0.25) == 1.5
    assert geometric.steps(3) == pytest.approx([1.0, 10.0, 100.0])
    assert geometric.at(0.5) == pytest.approx(10.0)
    assert geometric.steps(2) == pytest.approx([1.0, 100.0])
    assert geometric.steps(1).tolist() == [100.0]
    assert geometric.steps(0).tolist() == []
    custom = Schedule(np.array([5.0, 1.0, 2.0]), "custom")
    assert custom.steps(3).tolist() == [5.0, 1.0, 2.0] and custom.steps(0).tolist() == []
    assert custom.steps(6).tolist() == [5.0, 5.0, 1.0, 1.0, 2.0, 2.0]
    assert [custom.at(p) for p in (0.0, 0.5, 1.0)] == [5.0, 1.0, 2.0]
    # As printed: T0^(1 - t / limit).
    assert 1 / Schedule(1 / np.array([100.0, 1.0])).at(0.3) == pytest.approx(100**0.7)


def test_a_read_does_not_depend_on_how_it_is_cut():
    random = np.random.default_rng(3)
    model = FlipModel.of(qubo_of(random.normal(size=50), random_couplers(random, 50, 0.2)))
    plan = ReadPlan(Schedule(np.array([0.1, 3.0])), 37, 20, 7)

    def read():
        return Read(
            FlipMoves(model, np.zeros(50), np.random.SeedSequence(1)), plan, TimeSlot(0, 0), GO_ON
        )

    whole, parts = read().advance(), read()
    for part in range(1, 11):
        assert parts.advance(part / 10).steps_done == math.ceil(3.7 * part)
    assert (whole.moves.state == parts.moves.state).all()
    assert (whole.moves.best == parts.moves.best).all()
    assert whole.tries == parts.tries == 37 * 20 + 7


@pytest.mark.parametrize(("tries", "rest"), [(20, 0), (20, 1), (20, 7), (0, 0)])
def test_a_read_is_sweeps_at_its_temperatures(tries, rest):
    random = np.random.default_rng(3)
    model, seed = FlipModel.of(qubo_of(random.normal(size=30), random_couplers(random, 30, 0.2))), 1
    plan = ReadPlan(Schedule(np.array([0.1, 0.5])), 9, *((tries, rest) if tries else ()))
    read = Read(
        FlipMoves(model, np.zeros(30), np.random.SeedSequence(seed)), plan, TimeSlot(0, 0), GO_ON
    ).advance()
    walk, draws = walk_from(model.qubo, np.zeros(30)), draws_of(np.random.SeedSequence(seed))
    betas = np.geomspace(0.1, 0.5, 9)
    if tries:
        sweep_at_random(model.couplings, walk, draws, betas, tries, GO_ON)
        sweep_at_random(model.couplings, walk, draws, betas[-1:], rest, GO_ON)
    else:
        sweep_in_order(model.couplings, walk, draws, betas, GO_ON)
    assert read.moves.state.tolist() == state_of(walk, 30).tolist()
    assert read.tries == 9 * (tries or 30) + rest and read.progress == 1.0


def test_a_model_without_bits_is_read_at_once():
    moves = FlipMoves(
        FlipModel.of(qubo_of(np.zeros(0), {})), np.zeros(0), np.random.SeedSequence(1)
    )
    read = Read(moves, ReadPlan(Schedule(np.ones(2)), 5, 20, 3), TimeSlot(0, 0), GO_ON)
    assert read.progress == 1.0 and read.advance().tries == 0


def test_calls_of_kernels_grow_up_to_a_slice(set_clock):
    clock, sizes = SimpleNamespace(now=0.0), []
    set_clock(lambda: clock.now)

    def make(betas, tries, halt):
        sizes.append(len(betas))
        clock.now += reads.SECONDS_PER_CALL / 40 * len(betas)

    Read(
        SimpleNamespace(size=3, make=make),
        ReadPlan(Schedule(np.ones(2)), 300, 5),
        TimeSlot(0, 0),
        GO_ON,
    ).advance()
    assert sizes[:6] == [1, 2, 4, 8, 16, 32] and sum(sizes) == 300
    assert max(sizes) == pytest.approx(40, abs=1) and max(sizes[-2:]) < 50


def test_reads_share_the_time(set_clock):
    times = time_slots(3, 2, 10.0, 14.0)
    assert [(c.begin, c.end) for c in times] == [(10, 12), (10, 12), (12, 14)]
    assert [(c.begin, c.end) for c in time_slots(2, 2, 10.0, 14.0)] == [(10, 14)] * 2
    assert TimeSlot(1.0, 1.0).progress == 1.0
    for now, progress in ((10.0, 0.0), (11.0, 0.25), (20.0, 1.0)):
        set_clock(lambda now=now: now)
        assert TimeSlot(10.0, 14.0).progress == progress


def test_an_error_halts_and_cancels_other_threads():
    halt, begun = np.zeros(1, np.bool_), threading.Event()

    def wait_for_halt():
        begun.set()
        while not halt[0]:
            time.sleep(0.001)
        time.sleep(0.05)

    with pytest.raises(ValueError, match="in the block"), halting(halt, 1) as pool:
        futures = [pool.submit(wait_for_halt) for _ in range(2)]
        begun.wait()
        raise ValueError("in the block")
    assert [future.done() for future in futures] == [True, True]
    assert [future.cancelled() for future in futures] == [False, True]


@pytest.mark.parametrize(("left", "halted"), [(0.5, False), (0.0, True)])
def test_threads_are_watched(left, halted):
    """The clock is looked at again and again; once the time is up the threads are told."""
    halt, looks, enough = np.zeros(1, np.bool_), [], threading.Event()

    def look():
        looks.append(left)
        if len(looks) == 3:
            enough.set()
        return left

    with halting(halt, 1) as pool:
        assert watch([pool.submit(enough.wait, 5)], look, halt) == [True]
    assert bool(halt[0]) == halted and len(looks) >= 3


def problem(
    seed: int, n: int = 5, order: str = "chordal", penalty: str = "tight", required: int = 0
):
    random = np.random.default_rng(seed)
    scores = random_scores(random, n, 2, 0.4, required)
    candidates = candidates_of(scores)
    return scores, formulate(
        candidates, split_subsets(random, candidates), order=order, penalty=penalty
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("order", "penalty"), [("chordal", "tight"), ("scc", "paper")])
def test_the_optimum_of_small_problems_is_found(seed, order, penalty):
    scores, formulation = problem(seed, 4, order, penalty, required=seed % 2)
    solution = solve(formulation, FLIPS, limits=Limits(None, moves=400_000, seed=seed))
    assert solution.score == pytest.approx(exhaustive.best_score_of_dags(scores))
    assert solution.energy == pytest.approx(-solution.score)
    assert solution.statistics["flips_tried"] == 400_000


@pytest.mark.parametrize("flips", [False, True])
def test_a_number_of_moves_gives_the_same_with_any_number_of_threads(flips):
    _, formulation = problem(7, 6)
    solver = solver_named("sa", flips=flips, reads=3)
    found = [
        solve(
            formulation, solver, limits=Limits(None, moves=20_000, seed=4), workers=Workers(threads)
        )
        for threads in (1, 2, 2)
    ]
    assert (
        len(
            {(f.score, f.choice.tobytes(), tuple(score for _, score in f.trace)[-1]) for f in found}
        )
        == 1
    )
    assert all(f.status == found[0].status for f in found)


@pytest.mark.parametrize("solver", ["sa", FLIPS, "digital"])
@pytest.mark.parametrize("limits", [Limits(5.0), Limits(None, moves=1000)])
@pytest.mark.parametrize(
    ("scores", "best"),
    [
        ([{frozenset(): -1.0}], -1.0),
        ([{frozenset(): -1.0}, {frozenset(): -2.0}], -3.0),
        ([{frozenset(): -3.0, frozenset({1}): -1.0}, {frozenset(): -2.0}], -3.0),
        ([], 0.0),
    ],
)
def test_hardly_any_bits(solver, limits, scores, best):
    candidates = candidates_of(scores)
    formulation = formulate(candidates, whole_subsets(candidates))
    if formulation.qubo.bits and limits.seconds:
        solve(formulation, solver, limits=Limits(None, moves=10))  # kernels are compiled now
        limits = Limits(0.5)
    solution = solve(formulation, solver, limits=limits)
    assert solution.score == best


@pytest.mark.parametrize("solver", [FLIPS, "digital"])
def test_the_first_read_ends_with_a_descent_if_there_is_no_time(set_clock, solver):
    candidates = candidates_of([{frozenset(): -3.0, frozenset({1}): -1.0}, {frozenset(): -2.0}])
    formulation = formulate(candidates, whole_subsets(candidates))
    set_clock(TickingClock(1.0))
    solution = solve(formulation, solver, limits=Limits(9.0))
    assert solution.statistics.get("flips_tried", solution.statistics.get("iterations")) == 0
    assert solution.statistics["repaired"] == 0
    assert solution.score == solution.statistics["raw_score"] == -3.0


def reads_of(formulation, limits, count=1, reserve=0.0, threads=1):
    run = Run(formulation.candidates, limits, Workers(threads))
    model = FlipModel.of(formulation.qubo)
    start = np.zeros(formulation.qubo.bits, np.bool_)
    seeds = np.random.SeedSequence(1).spawn(count)
    moves = [FlipMoves(model, start, seed) for seed in seeds]
    return sa.make_reads(moves, Schedule(np.array([0.02, 0.5])), run, reserve, GO_ON)


@pytest.mark.parametrize(
    ("moves", "steps"), [(0, 0), (1, 1), (5, 1), (16, 1), (35, 2), (16 * 4096, 4096), (10**6, 4098)]
)
def test_counted_moves_are_made_at_some_thousand_temperatures(moves, steps):
    _, formulation = problem(1)
    (read,) = reads_of(formulation, Limits(None, moves=moves))
    assert read.plan.steps == steps and (read.plan.tries or 0) * steps + read.plan.rest == moves
    assert read.plan.schedule.betas.tolist() == pytest.approx([0.02, 0.5])
    assert read.slot.begin == read.slot.end


def test_reads_take_the_time_but_for_what_is_reserved(set_clock):
    _, formulation = problem(1)
    set_clock(lambda: 100.0)
    slots = [
        read.slot for read in reads_of(formulation, Limits(60.0), count=4, reserve=10.0, threads=2)
    ]
    assert slots == [(100.0, 125.0), (100.0, 125.0), (125.0, 150.0), (125.0, 150.0)]


def test_time_for_the_last_states_is_reserved(monkeypatch, calls_of, set_clock):
    _, formulation = problem(1)
    FLIPS.prepare()
    calls = calls_of(sa, "reserved_seconds")
    monkeypatch.setattr(sa, "offer_first", lambda offers, model, start: 0.25)
    for count, threads in ((1, 1), (2, 2), (3, 2), (4, 1)):
        limits, workers = Limits(None, moves=10), Workers(threads)
        solve(
            formulation, solver_named("sa", flips=True, reads=count), limits=limits, workers=workers
        )
    asked = [seconds for (_, seconds), _ in calls]
    assert [seconds / asked[0] for seconds in asked] == [1, 1, 2, 4] and asked[0] > 0.25
    set_clock(lambda: 100.0)
    run = Run(formulation.candidates, Limits(50.0), Workers(1))
    assert [reserved_seconds(run, seconds) for seconds in (3.0, 60.0)] == [3.0, pytest.approx(10.0)]
    assert reserved_seconds(Run(formulation.candidates, Limits(None), Workers(1)), 3.0) == 0.0


def test_the_best_state_is_offered_after_each_share(monkeypatch, calls_of):
    states = []
    _, formulation = problem(4, 6)
    FLIPS.prepare()
    calls, read = calls_of(Read, "advance"), NetworkOffers.offer

    def recorded(self, bits):
        states.append(tuple(bits.tolist()))
        return read(self, bits)

    monkeypatch.setattr(NetworkOffers, "offer", recorded)
    found = solve(
        formulation,
        solver_named("sa", flips=True, first_temperature=5.0),
        limits=Limits(None, moves=3000),
    )
    shares = np.arange(1, sa.SHARES + 1) / sa.SHARES
    assert [until for (_, until), _ in calls] == shares.tolist()
    assert found.statistics["reads"] == 1
    offered = states[:-1]  # the last one comes from a descent
    assert 2 <= len(offered) < sa.SHARES
    assert all(one != other for one, other in pairwise(offered))


def test_a_time_limit_ends_counted_moves(set_clock):
    _, formulation = problem(2)
    FLIPS.prepare()
    set_clock(TickingClock(2.0))
    solution = solve(formulation, FLIPS, limits=Limits(60.0, moves=2**50))
    assert solution.status.startswith("time limit reached before the last move; 1 read annealed")


def test_a_start_of_base_sets_is_all_zero(set_clock):
    _, formulation = problem(5)
    families = formulation.candidates.families
    base = families.vertex_start[1:] - 1
    run = Run(formulation.candidates, Limits(None), Workers(1))
    assert not start_state(formulation, run).any()
    vertex = int(np.argmax(families.sizes))
    other = Run(
        formulation.candidates, Limits(None), Workers(1), base - (np.arange(len(base)) == vertex)
    )
    assert (
        start_state(formulation, other).tolist() == encode_sets(formulation, other.start).tolist()
    )
    assert start_state(formulation, other)[: formulation.subsets.total].any()
    set_clock(TickingClock(1.0))
    assert (
        offer_first(
            NetworkOffers(formulation, run),
            FlipModel.of(formulation.qubo),
            start_state(formulation, run),
        )
        < 10.0
    )


@pytest.mark.parametrize(
    ("raw", "mended", "scores"),
    [
        ([-5.0, -4.0], [], ""),
        ([-5.0, -4.0], [-4.0, -6.0], ""),
        ([-5.0], [-4.0, -6.0], "; best score without repair -5.000000, with repair -4.000000"),
        ([], [-4.0], "; no state was feasible, with repair -4.000000"),
    ],
)
def test_messages_about_states(raw, mended, scores):
    _, formulation = problem(5)
    offers = NetworkOffers(formulation, Run(formulation.candidates, Limits(None), Workers(1)))
    offers._scores = {False: raw, True: mended}
    annealed = {"raw_score": max(raw, default=None), "repaired_score": max(mended, default=None)}
    assert offers.scores == {**annealed, "before_annealing": None}
    repaired = "broke constraints, repaired to the better network of two orders"
    assert offers.message(0, 1) == f"the best state is feasible{scores}"
    assert offers.message(0, 2) == f"all 2 best states are feasible{scores}"
    assert offers.message(1, 1) == f"the best state {repaired}{scores}"
    assert offers.message(1, 2) == f"1 of the 2 best states {repaired}{scores}"
    offers._before = [-7.0, -4.0]
    assert offers.message(0, 1) == f"the best state is feasible{scores}"
    offers._before = [-3.0, -7.0]
    known = "; a network known before annealing scores more, -3.000000"
    assert offers.message(0, 1) == f"the best state is feasible{scores}{known}"


@pytest.mark.parametrize("moves", [0, 1, 5, 17, 5000, 100_003])
def test_as_many_flips_are_tried_as_asked(moves):
    _, formulation = problem(1)
    solution = solve(formulation, FLIPS, limits=Limits(None, moves=moves))
    assert solution.statistics["flips_tried"] == moves
    assert "1 read annealed" in solution.status


def test_a_time_limit_is_kept(set_clock):
    _, formulation = problem(2)
    clock = TickingClock(0.1)
    set_clock(clock)
    solution = solve(formulation, FLIPS, limits=Limits(60.0))
    assert 50.0 <= clock.seconds < 80.0  # some time is kept for reading states
    assert solution.statistics["flips_tried"] > 10_000


def test_an_interrupt_returns_the_best_so_far():
    _, formulation = problem(3)
    solve(formulation, FLIPS, limits=Limits(0.1))
    threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT)).start()
    solution = solve(formulation, FLIPS, limits=Limits(60.0))
    assert solution.interrupted
    assert solution.score > solution.empty_score


def test_a_start_is_used():
    _, formulation = problem(5)
    best = solve(formulation, FLIPS, limits=Limits(None, moves=200_000))
    again = solve(
        formulation, FLIPS, limits=Limits(None, moves=0), start=Network(best.names, best.parents)
    )
    assert again.score == best.score


@pytest.mark.parametrize("solver", [FLIPS, "digital"])
@pytest.mark.parametrize("seed", [0, 1, 2, 8])
def test_what_is_known_before_annealing_is_no_result_of_it(solver, seed):
    """Without a move the only own state is the local minimum below the all-zero state."""
    _, formulation = problem(seed, 6)
    scores, zeros = formulation.candidates.scores, np.zeros(formulation.qubo.bits, np.bool_)
    known, own = (
        network_of_state(formulation, zeros),
        network_of_state(formulation, descend(FlipModel.of(formulation.qubo), zeros)),
    )
    found = solve(formulation, solver, limits=Limits(None, moves=0))
    annealed = scores[own.choice].sum()
    assert found.score == pytest.approx(scores[known.choice].sum()) and found.score > annealed + 1.0
    assert found.statistics["before_annealing"] == found.score
    assert found.statistics["repaired_score" if own.repaired else "raw_score"] == pytest.approx(
        annealed
    )
    assert found.statistics["raw_score" if own.repaired else "repaired_score"] is None
    assert found.status.endswith(
        f"a network known before annealing scores more, {found.score:,.6f}"
    )


def test_repairs_are_told():
    _, formulation = problem(5, 6)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("qubayes.qubo.samplers.sa.descend", lambda model, bits: bits)
        hot = solver_named("sa", flips=True, first_temperature=1e6, last_temperature=1e6, reads=2)
        found = solve(formulation, hot, limits=Limits(None, moves=64))
    assert found.status.startswith("2 reads annealed, 128 flips tried")
    mended = found.statistics["repaired_score"]
    assert (
        found.statistics["raw_score"] is None
        and found.statistics["before_annealing"] == found.score > mended
    )
    assert found.status.endswith(
        "2 of the 2 best states broke constraints, repaired to the better network of two orders; "
        f"no state was feasible, with repair {mended:,.6f}; "
        f"a network known before annealing scores more, {found.score:,.6f}"
    )
    cold = solver_named("sa", flips=True, last_temperature=0.01)
    assert solve(formulation, cold, limits=Limits(None, moves=200_000)).status.endswith(
        "the best state is feasible"
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"flips": True, "first_temperature": 0.5},
        {"first_temperature": 0.01},
        {"last_temperature": 0.0},
        {"reads": 0},
        {"first_temperature": float("inf")},
    ],
)
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(SettingError):
        solver_named("sa", **wrong)
    assert solver_named("sa", reads=1).reads == 1


def test_energies_of_large_terms_that_cancel_are_exact():
    random = np.random.default_rng(6)
    h, weights = random.normal(size=3000) * 1e9, random.normal(size=20_000) * 1e9
    ends = random.integers(0, 3000, (20_000, 2))
    pairs, first = np.unique(
        np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1), axis=0, return_index=True
    )
    h[0] -= h.sum() + weights[first].sum()
    qubo = qubo_from_couplers(h, pairs[:, 0], pairs[:, 1], weights[first])
    assert energy(qubo, np.ones(3000)) == pytest.approx(math.fsum([*h, *weights[first]]), abs=1e-12)
