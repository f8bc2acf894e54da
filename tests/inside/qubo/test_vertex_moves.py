"""Vertex moves: states and energies of the QUBO that they visit, replicas, limits."""

import numpy as np
import pytest

from formulation_cases import candidates_of, random_scores, split_subsets
from qubayes.candidates import example
from qubayes.foundation.workers import Workers
from qubayes.qubo import decode, encode_sets, energy, formulate
from qubayes.qubo.samplers.vertex_moves import (
    MOVES_PER_ROUND,
    REPLICAS,
    Ladder,
    Replicas,
    anneal_replicas,
    round_size,
)
from qubayes.search import Limits, solve, solver_named
from qubayes.search.orders.walks import order_problem
from reference import energies as exhaustive
from reference.networks import score_of_order
from solve_cases import TickingClock

GO_ON = np.zeros(1, np.bool_)
ORDERS = [("chordal", "tight"), ("scc", "paper")]


def problem(seed, n=5, order="chordal", penalty="tight", required=0):
    random = np.random.default_rng(seed)
    scores = random_scores(random, n, 2, 0.4, required)
    candidates = candidates_of(scores)
    subsets = split_subsets(random, candidates)
    return scores, formulate(candidates, subsets, order=order, penalty=penalty)


def replicas_of(candidates, seed=0):
    bases = [candidates.base(vertex) for vertex in range(candidates.n)]
    start = list(range(candidates.n))
    sets = order_problem(candidates.families, candidates.scores)
    return Replicas(sets, start, bases, np.random.SeedSequence(seed))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("order", "penalty"), ORDERS)
def test_the_optimum_is_found(seed, order, penalty):
    scores, formulation = problem(seed, 5, order, penalty, required=seed % 2)
    solution = solve(formulation, "sa", limits=Limits(None, moves=3000, seed=seed))
    assert solution.score == pytest.approx(exhaustive.best_score_of_dags(scores))
    assert solution.statistics["raw_score"] == solution.score
    assert solution.statistics["repaired_score"] is None
    assert solution.statistics["vertex_moves"] == 3000


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("order", "penalty"), ORDERS)
def test_every_state_is_the_best_of_its_order(seed, order, penalty):
    """Its energy, from the coefficients of the QUBO, is minus the score, and nothing is violated."""
    _, formulation = problem(seed, 4, order, penalty)
    candidates = formulation.candidates
    replicas = replicas_of(candidates, seed)
    lists = [list(candidates.of(vertex)) for vertex in range(4)]
    orders = set()
    for _ in range(20):
        replicas.advance(np.ones(REPLICAS), REPLICAS, GO_ON)
        for state in replicas._states:
            order = state.order.tolist()
            orders.add(tuple(order))
            chosen = candidates.families.best_of_order(order)
            assert state.choice.tolist() == chosen.tolist()
            decoded = decode(formulation, encode_sets(formulation, chosen, order))
            assert not decoded.violations
            assert decoded.energy == pytest.approx(-score_of_order(lists, order), abs=1e-8)
            assert state.totals[0] == pytest.approx(-decoded.energy, abs=1e-8)
    assert len(orders) > 4


def test_energies_of_states_of_a_large_qubo_are_those_that_are_annealed():
    """From the coefficients, on a whole instance."""
    candidates = example(40)
    formulation = formulate(candidates)
    replicas = replicas_of(candidates)
    for progress in np.linspace(0, 1, 10).tolist():
        replicas.advance(Ladder(6.0, 0.09).at(progress), 400, GO_ON)
        for state in replicas._states:
            bits = encode_sets(formulation, state.choice, state.order.tolist())
            assert float(energy(formulation.qubo, bits)) == pytest.approx(
                -state.totals[0], abs=1e-7
            )


def test_temperatures_fall_from_the_hottest_at_first_to_the_coldest_at_last():
    ladder = Ladder(6.0, 0.09)
    assert ladder.at(0.0)[[0, -1]] == pytest.approx([0.6, 6.0])
    assert ladder.at(1.0)[[0, -1]] == pytest.approx([0.09, 0.9])
    ratios = ladder.at(0.3)[1:] / ladder.at(0.3)[:-1]
    assert ratios == pytest.approx(np.full(REPLICAS - 1, ratios[0]))
    narrow = Ladder(2.0, 1.0)  # the ladder is as wide as the range allows
    assert narrow.at(0.0)[[0, -1]] == pytest.approx([1.0, 2.0])
    assert narrow.at(1.0)[[0, -1]] == pytest.approx([1.0, 2.0])


def test_exchanges_keep_the_joint_distribution():
    """Two vertices, two orders: each temperature sees both as often as Boltzmann's law says."""
    candidates = candidates_of([{frozenset(): -3.0, frozenset({1}): -2.0}, {frozenset(): -1.0}])
    replicas = replicas_of(candidates)
    temperatures = np.geomspace(0.5, 5.0, REPLICAS)
    rounds = 4000
    with_edge = np.zeros(REPLICAS)
    for _ in range(rounds):
        replicas.advance(temperatures, REPLICAS, GO_ON)
        scores = np.array([state.totals[0] for state in replicas._states])
        with_edge += scores > -3.5
    weights = np.exp(1.0 / temperatures)
    expected = rounds * weights / (1.0 + weights)
    deviation = np.sqrt(expected * (1.0 - expected / rounds))
    assert (np.abs(with_edge - expected) < 5.0 * deviation).all()


@pytest.mark.parametrize(
    ("moves", "size"),
    [
        (None, REPLICAS * MOVES_PER_ROUND),
        (0, REPLICAS),
        (100, REPLICAS),
        (4000, 80),
        (10**9, REPLICAS * MOVES_PER_ROUND),
    ],
)
def test_rounds_are_shorter_if_few_moves_are_counted(moves, size):
    assert round_size(moves) == size


@pytest.mark.parametrize("moves", [0, 1, 5, 17, 1003])
def test_as_many_moves_are_made_as_asked(moves):
    _, formulation = problem(1)
    solution = solve(formulation, "sa", limits=Limits(None, moves=moves))
    assert solution.statistics["vertex_moves"] == moves
    made = f"1 read annealed, {moves:,} vertex moves made; all states are feasible"
    assert solution.status in (made, f"the bound was reached: proved optimal; {made}")


def test_each_better_network_is_offered_when_it_is_found():
    candidates = example(12)
    replicas = replicas_of(candidates)
    offered = []

    def offer(choice):
        offered.append(candidates.scores[choice].sum())

    def progress():
        return replicas.moves / 4000

    before = replicas.score
    anneal_replicas(replicas, Ladder(6.0, 0.09), progress, 4000, offer, GO_ON)
    assert len(offered) > 1 and offered == sorted(offered) and offered[0] > before
    assert offered[-1] == pytest.approx(replicas.best.score)


def test_a_halted_read_makes_no_move():
    replicas = replicas_of(example(8))
    anneal_replicas(
        replicas, Ladder(6.0, 0.09), lambda: 0.0, None, lambda choice: None, np.ones(1, np.bool_)
    )
    assert replicas.moves == 0


def test_moves_begin_at_the_start():
    _, formulation = problem(7, 6)
    best = solve(formulation, "sa", limits=Limits(None, moves=20_000))
    again = solve(formulation, "sa", limits=Limits(None, moves=0), start=best.network)
    assert again.score == again.statistics["raw_score"] == best.score


def test_a_time_limit_is_kept(set_clock):
    _, formulation = problem(2, 8)
    solver_named("sa").prepare()
    clock = TickingClock(0.1)
    set_clock(clock)
    solution = solve(formulation, "sa", limits=Limits(60.0), workers=Workers(1))
    assert 58.0 <= clock.seconds < 65.0
    assert solution.statistics["vertex_moves"] > 10_000
