"""Simulated annealing: energies and statistics of its kernels, and networks through `solve`."""

import math
import os
import signal
import threading
import time
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulation_cases import candidates_of, random_scores, split_subsets, whole_subsets
from qubayes.foundation.errors import SettingError
from qubayes.foundation.graph import topological_order
from qubayes.foundation.random import draws_of
from qubayes.foundation.workers import Workers
from qubayes.network import Network
from qubayes.qubo import decode, energy, formulate, qubo_from_couplers
from qubayes.qubo.samplers.flips import (
    EXAMPLES,
    FlipModel,
    Schedule,
    couplings_of,
    descend,
    flip,
    state_of,
    sweep_at_random,
    sweep_in_order,
    walk_from,
)
from qubayes.qubo.samplers.sa import FlipMoves, Read, ReadPlan, TimeSlot, VertexMoves, time_slots, vertex_problem
from qubayes.search import Limits, solve, solver_named
from reference import annealing as reference
from reference import energies as exhaustive
from reference.networks import score_of_order
from solve_cases import TickingClock

GO_ON = np.zeros(1, np.bool_)


def random_couplers(random: np.random.Generator, n: int, density: float) -> dict[tuple[int, int], float]:
    return {pair: float(random.normal()) for pair in combinations(range(n), 2) if random.random() < density}


def qubo_of(h, couplers, offset=0.0):
    rows, cols = np.array(list(couplers), dtype=np.int64).reshape(-1, 2).T
    return qubo_from_couplers(h, rows, cols, list(couplers.values()), offset)


@given(st.integers(0, 10**6), st.integers(1, 40), st.sampled_from([0.0, 0.1, 0.5, 1.0]), st.booleans())
def test_fields_follow_every_flip(seed, n, density, short):
    random = np.random.default_rng(seed)
    h, couplers = random.normal(size=n), random_couplers(random, n, density)
    if short:
        couplers = {pair: float(np.float32(weight)) for pair, weight in couplers.items()}
    qubo = qubo_of(h, couplers, 2.5)
    assert couplings_of(qubo).weights.dtype == (np.float32 if short or not couplers else np.float64)
    bits = random.integers(0, 2, n)
    walk, couplings = walk_from(qubo, bits), couplings_of(qubo)
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
    assert [FlipModel.of(qubo, share * error).kind for share in (0.0, 0.99, 1.01)] == ["float64", "float64", "float32"]
    assert FlipModel.of(qubo_of(np.zeros(2), {(0, 1): 1e300}), 1e299).kind == "float64"
    assert {kind: FlipModel.of(example).kind for kind, example in EXAMPLES.items()} == {kind: kind for kind in EXAMPLES}


@given(st.integers(0, 10**6), st.integers(1, 30), st.booleans())
def test_a_descent_ends_where_no_flip_lowers_the_energy(seed, n, ties):
    random = np.random.default_rng(seed)
    h, couplers = random.normal(size=n), random_couplers(random, n, 0.4)
    if ties:
        h, couplers = np.round(h), {pair: round(weight) for pair, weight in couplers.items()}
    bits = random.integers(0, 2, n)
    found = descend(FlipModel.of(qubo_of(h, couplers)), bits).astype(int)
    assert min(reference.increment(h, couplers, found, i) for i in range(n)) >= -1e-9
    assert reference.energy(h, couplers, 0.0, found) <= reference.energy(h, couplers, 0.0, bits) + 1e-9


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
    couplings, walk, draws = couplings_of(qubo), walk_from(qubo, np.zeros(n)), draws_of(np.random.SeedSequence(3))
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
    assert geometric.steps(1).tolist() == [100.0]
    assert geometric.steps(0).tolist() == []
    custom = Schedule(np.array([5.0, 1.0, 2.0]), "custom")
    assert custom.steps(3).tolist() == [5.0, 1.0, 2.0]
    assert [custom.at(p) for p in (0.0, 0.5, 1.0)] == [5.0, 1.0, 2.0]
    # As printed: T0^(1 - t / limit).
    assert 1 / Schedule(1 / np.array([100.0, 1.0])).at(0.3) == pytest.approx(100**0.7)


def test_a_read_does_not_depend_on_how_it_is_cut():
    random = np.random.default_rng(3)
    model = FlipModel.of(qubo_of(random.normal(size=50), random_couplers(random, 50, 0.2)))
    plan = ReadPlan(Schedule(np.array([0.1, 3.0])), 37, 20, 7)

    def read():
        return Read(FlipMoves(model, np.zeros(50), np.random.SeedSequence(1)), plan, TimeSlot(0, 0), GO_ON)

    whole, parts = read().advance(), read()
    for part in range(1, 11):
        parts.advance(part / 10)
    assert (whole.moves.state == parts.moves.state).all()
    assert (whole.moves.best == parts.moves.best).all()
    assert whole.tries == parts.tries == 37 * 20 + 7


def test_reads_share_the_time():
    times = time_slots(3, 2, 10.0, 14.0)
    assert [(c.begin, c.end) for c in times] == [(10, 12), (10, 12), (12, 14)]
    assert TimeSlot(1.0, 1.0).progress == 1.0


def problem(seed: int, n: int = 5, order: str = "chordal", penalty: str = "tight", required: int = 0):
    random = np.random.default_rng(seed)
    scores = random_scores(random, n, 2, 0.4, required)
    candidates = candidates_of(scores)
    return scores, formulate(candidates, split_subsets(random, candidates), order=order, penalty=penalty)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("order", "penalty"), [("chordal", "tight"), ("scc", "paper")])
def test_the_optimum_of_small_problems_is_found(seed, order, penalty):
    scores, formulation = problem(seed, 4, order, penalty, required=seed % 2)
    solution = solve(formulation, "sa", limits=Limits(None, moves=400_000, seed=seed))
    assert solution.score == pytest.approx(exhaustive.best_score_of_dags(scores))
    assert solution.energy == pytest.approx(-solution.score)
    assert solution.statistics["flips_tried"] == 400_000


def test_a_number_of_moves_gives_the_same_with_any_number_of_threads():
    _, formulation = problem(7, 6)
    solver = solver_named("sa", reads=3)
    found = [
        solve(formulation, solver, limits=Limits(None, moves=20_000, seed=4), workers=Workers(threads))
        for threads in (1, 2, 2)
    ]
    assert len({(f.score, f.choice.tobytes(), tuple(score for _, score in f.trace)[-1]) for f in found}) == 1
    assert all(f.status == found[0].status for f in found)


@pytest.mark.parametrize("solver", ["sa", "digital"])
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


@pytest.mark.parametrize("solver", ["sa", "digital"])
def test_the_first_read_ends_with_a_descent_if_there_is_no_time(monkeypatch, solver):
    candidates = candidates_of([{frozenset(): -3.0, frozenset({1}): -1.0}, {frozenset(): -2.0}])
    formulation = formulate(candidates, whole_subsets(candidates))
    monkeypatch.setattr(time, "perf_counter", TickingClock(1.0))
    solution = solve(formulation, solver, limits=Limits(9.0))
    assert solution.statistics.get("flips_tried", solution.statistics.get("iterations")) == 0
    assert solution.score == solution.statistics["raw_score"] == -3.0


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("order", "penalty"), [("chordal", "tight"), ("scc", "paper")])
def test_vertex_moves_find_the_optimum(seed, order, penalty):
    scores, formulation = problem(seed, 5, order, penalty, required=seed % 2)
    solver = solver_named("sa", vertex_moves=True)
    solution = solve(formulation, solver, limits=Limits(None, moves=3000, seed=seed))
    assert solution.score == pytest.approx(exhaustive.best_score_of_dags(scores))
    assert solution.statistics["raw_score"] == solution.score and solution.statistics["repaired_score"] is None
    assert solution.statistics["vertex_moves"] == 3000


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("order", "penalty"), [("chordal", "tight"), ("scc", "paper")])
def test_every_state_of_vertex_moves_is_the_best_of_its_order(seed, order, penalty):
    _, formulation = problem(seed, 4, order, penalty, required=seed % 2)
    vertices = vertex_problem(formulation, Workers(1))
    np.testing.assert_allclose(vertices.scores, formulation.candidates.scores, atol=1e-9)
    start = topological_order([formulation.candidates.base(v) for v in range(4)]) if seed % 2 else (3, 2, 1, 0)
    moves = VertexMoves(formulation, vertices, start, np.random.SeedSequence(seed))
    lists = [list(formulation.candidates.of(vertex)) for vertex in range(4)]
    orders = set()
    for _ in range(20):
        moves.make(np.ones(1), 1, GO_ON)
        orders.add(tuple(moves.order))
        decoded = decode(formulation, moves.best)
        assert not decoded.violations
        assert decoded.energy == pytest.approx(-score_of_order(lists, moves.order), abs=1e-8)
    assert len(orders) > 1


def test_vertex_moves_begin_at_the_start_and_are_the_same_with_any_number_of_threads():
    _, formulation = problem(7, 6)
    solver = solver_named("sa", vertex_moves=True, reads=3)
    found = [
        solve(formulation, solver, limits=Limits(None, moves=50, seed=4), workers=Workers(threads))
        for threads in (1, 2)
    ]
    assert found[0].choice.tolist() == found[1].choice.tolist()
    best = solve(formulation, "sa", limits=Limits(None, moves=200_000))
    again = solve(formulation, solver, limits=Limits(None, moves=0), start=best.network)
    assert again.score == again.statistics["raw_score"] == best.score


@pytest.mark.parametrize("moves", [0, 1, 5, 17, 5000, 100_003])
def test_as_many_flips_are_tried_as_asked(moves):
    _, formulation = problem(1)
    solution = solve(formulation, "sa", limits=Limits(None, moves=moves))
    assert solution.statistics["flips_tried"] == moves
    assert "1 read annealed" in solution.status


def test_a_time_limit_is_kept(monkeypatch):
    _, formulation = problem(2)
    clock = TickingClock(0.1)
    monkeypatch.setattr(time, "perf_counter", clock)
    solution = solve(formulation, "sa", limits=Limits(60.0))
    assert 50.0 <= clock.seconds < 80.0  # some time is kept for reading states
    assert solution.statistics["flips_tried"] > 10_000


def test_an_interrupt_returns_the_best_so_far():
    _, formulation = problem(3)
    solve(formulation, "sa", limits=Limits(0.1))
    threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT)).start()
    solution = solve(formulation, "sa", limits=Limits(60.0))
    assert solution.interrupted
    assert solution.score > solution.empty_score


def test_a_start_is_used():
    _, formulation = problem(5)
    best = solve(formulation, "sa", limits=Limits(None, moves=200_000))
    again = solve(formulation, "sa", limits=Limits(None, moves=0), start=Network(best.names, best.parents))
    assert again.score == best.score


def test_repairs_are_told():
    _, formulation = problem(5, 6)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("qubayes.qubo.samplers.sa.descend", lambda model, bits: bits)
        hot = solver_named("sa", first_temperature=1e6, last_temperature=1e6, reads=2)
        found = solve(formulation, hot, limits=Limits(None, moves=64))
    assert found.statistics["raw_score"] is None and found.statistics["repaired_score"] == found.score
    assert found.status.endswith(
        "2 of the 2 best states broke constraints, repaired to the better network of two orders; "
        f"no state was feasible, with repair {found.score:,.6f}"
    )
    cold = solver_named("sa", last_temperature=0.01)
    assert solve(formulation, cold, limits=Limits(None, moves=200_000)).status.endswith("the best state is feasible")


@pytest.mark.parametrize(
    "wrong",
    [
        {"first_temperature": 0.5},
        {"vertex_moves": True, "first_temperature": 0.01},
        {"last_temperature": 0.0},
        {"reads": 0},
        {"first_temperature": float("inf")},
    ],
)
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(SettingError):
        solver_named("sa", **wrong)


def test_energies_of_large_terms_that_cancel_are_exact():
    random = np.random.default_rng(6)
    h, weights = random.normal(size=3000) * 1e9, random.normal(size=20_000) * 1e9
    ends = random.integers(0, 3000, (20_000, 2))
    pairs, first = np.unique(np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1), axis=0, return_index=True)
    h[0] -= h.sum() + weights[first].sum()
    qubo = qubo_from_couplers(h, pairs[:, 0], pairs[:, 1], weights[first])
    assert energy(qubo, np.ones(3000)) == pytest.approx(math.fsum([*h, *weights[first]]), abs=1e-12)
@pytest.mark.parametrize("vertex_moves", [False, True])
def test_kernels_are_warmed_up_once(monkeypatch, vertex_moves):
    solver = solver_named("sa", vertex_moves=vertex_moves).prepare()
    monkeypatch.setattr(sa.SimulatedAnnealing, "__call__", None)
    solver.prepare()


