"""Relaxations and walks over order bits: docs/theory.md §10 over all states of small problems."""

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest

from formulation_cases import all_energies, candidates_of, random_scores, state_of, whole_subsets
from order_cases import HARMLESS, RING, best_relaxed_score, forward, pairs_of, problems
from qubayes.foundation.random import random_stream
from qubayes.foundation.workers import Workers
from qubayes.network import Network
from qubayes.qubo import Demand, OrderStatus, decode, encode_sets, energy, formulate
from qubayes.qubo.formulation import assembled
from qubayes.qubo.formulation_files import AssemblyInput
from qubayes.qubo.gains import relate
from qubayes.qubo.on_demand import (
    chords,
    known_network,
    missing_chords,
    order_on_demand,
    relaxed_order,
    shortest_cycles,
)
from qubayes.qubo.order_bits import PROVED_ORDER, eliminations
from qubayes.qubo.order_walk import OrderBitWalk
from reference import energies as reference
from reference.annealing import Draws


def relaxation(candidates, subsets, bits, near):
    """The QUBO with order bits for `bits` alone; other adjacent pairs are coupled."""
    arcs = candidates.families.arcs()
    both = sorted(pair for pair in near - bits if arcs[pair] and arcs[pair[::-1]])
    order = relaxed_order(bits, bits)._replace(coupled=np.array(both, np.int32).reshape(-1, 2))
    made = assembled(AssemblyInput(candidates, subsets, order, "tight", {}, None), None, Workers(1))
    return replace(made, order_status=OrderStatus(False))


def test_a_relaxation_keeps_every_network_and_its_minimum_is_its_definition():
    """Theorem A (i) to (iii), with random sets of order bits."""
    cyclic = coupled = 0
    for random, scores, candidates, subsets, default, near in problems(0, 40):
        bits = {pair for pair in default if random.random() < 0.6}
        made = relaxation(candidates, subsets, bits, near)
        coupled += len(made.order.coupled)
        energies = all_energies(made.qubo)
        assert energies.min() == pytest.approx(-best_relaxed_score(scores, bits, near))
        assert energies.min() <= -reference.best_score_of_orders(scores) + 1e-9
        for index in np.flatnonzero(energies <= energies.min() + 1e-9).tolist()[:20]:
            found = decode(made, state_of(index, made.qubo.bits))
            assert {violation.constraint for violation in found.violations} <= {"cycle"}
            assert found.energy == pytest.approx(-found.score)
            assert not any(
                v in found.parents[p] and p in found.parents[v]
                for v, p in combinations(range(len(scores)), 2)
            )
            cyclic += not found.feasible
        for _ in range(5):
            order = random.permutation(len(scores)).tolist()
            chosen = candidates.families.best_of_order(order)
            total = float(energy(made.qubo, encode_sets(made, chosen, order)))
            assert total == pytest.approx(-candidates.scores[chosen].sum())
    assert cyclic > 10 and coupled > 10


def test_more_order_bits_raise_the_minimum_up_to_that_of_the_default():
    for random, scores, candidates, subsets, default, near in problems(1, 25):
        bits: set = set()
        least = -np.inf
        for pair in random.permutation(sorted(default)).tolist():
            bits = bits | {tuple(pair)}
            energies = all_energies(relaxation(candidates, subsets, bits, near).qubo)
            assert energies.min() >= least - 1e-9
            least = energies.min()
        assert least == pytest.approx(-reference.best_score_of_orders(scores))


@pytest.mark.parametrize("required", [False, True])
def test_energies_of_the_walk_are_those_of_the_qubo_with_u_and_z_minimised_out(required):
    improved = 0
    for random, scores, candidates, subsets, default, near in problems(2, 12, required):
        bits = near | {pair for pair in default if random.random() < 0.5}
        made, walk = (
            relaxation(candidates, subsets, bits, near),
            OrderBitWalk(relate(candidates, subsets), relaxed_order(bits, bits)),
        )
        energies = all_energies(made.qubo)
        states = (np.arange(len(energies))[:, None] >> np.arange(made.qubo.bits)) & 1
        written = states[:, subsets.total : subsets.total + len(bits)] == made.order.ascending
        best = best_relaxed_score(scores, bits, near)
        numbers = (written << np.arange(len(bits))).sum(axis=1)
        least = np.full(1 << len(bits), np.inf)
        np.minimum.at(least, numbers, energies)
        for number in range(len(least)):
            r = state_of(number, len(bits))
            ascending = dict(zip(walk.directions(r), r.tolist(), strict=True))
            needed = [(p, v) for v, known in enumerate(scores) for p in reference.base_of(known)]
            if all(
                ascending.get((min(edge), max(edge)), edge[0] < edge[1]) == (edge[0] < edge[1])
                for edge in needed
            ):
                ab, bc, ac = r[walk.order.triangles].T
                if ((ab == bc) & (ab != ac)).any():  # the penalties of the QUBO are rounded up
                    assert -best - 1e-9 <= walk.energy_of(r) <= least[number] + 1e-9
                else:
                    assert walk.energy_of(r) == pytest.approx(least[number])
        start = walk.order_of(candidates.families.best_of_order(forward(scores)), {})
        found = walk.anneal(start, 200, 15.0, random_stream(0))
        assert walk.energy_of(found) == pytest.approx(least.min())
        improved += walk.energy_of(start) > walk.energy_of(found) + 1e-9
    assert improved > 3


def wide_problem(random):
    """More possible parents of a vertex than a word has bits."""
    scores = random_scores(random, 68, 1, 0.9)
    candidates = candidates_of(scores)
    _, near = pairs_of(candidates)
    bits = {tuple(pair) for pair in random.permutation(sorted(near))[:300].tolist()}
    return scores, candidates, whole_subsets(candidates), bits


def move_cases(case):
    """(scores, candidates, subsets, order bits) of problems to walk on."""
    if case == "wide":
        return [wide_problem(np.random.default_rng(0))]
    cases = []
    for random, scores, candidates, subsets, default, near in problems(11, 6, case == "required"):
        cases.append(
            (
                scores,
                candidates,
                subsets,
                near | {pair for pair in default if random.random() < 0.7},
            )
        )
    return cases


def walk_of(seed, scores, candidates, subsets, bits):
    """A walk, a random state that has the required edges, and the pairs that they leave free."""
    walk = OrderBitWalk(relate(candidates, subsets), relaxed_order(bits, bits))
    needed = [(p, v) for v, known in enumerate(scores) for p in reference.base_of(known)]
    fixed = [(min(edge), max(edge)) for edge in needed]
    movable = [p for p, pair in enumerate(walk.order.pairs.tolist()) if tuple(pair) not in fixed]
    r = walk.order_of(candidates.families.best_of_order(forward(scores)), {})
    r[movable] = np.random.default_rng(seed).random(len(movable)) < 0.5
    return walk, r, movable


@pytest.mark.parametrize("case", ["small", "required", "wide"])
def test_every_flip_of_the_walk_follows_metropolis_rule(case):
    """By the energies of all bits, with the same random numbers."""
    flips = rejected = noted = 0
    for seed, (scores, candidates, subsets, bits) in enumerate(move_cases(case)):
        walk, r, movable = walk_of(seed, scores, candidates, subsets, bits)
        state, stream, draws = (
            walk.start(r),
            random_stream(seed),
            Draws(*random_stream(seed).tolist()),
        )
        first = least = walk.energy_of(r)
        for number in range(60):
            walk.step(state, 2.0, 2, stream)
            for _ in range(2):
                trial, place = r.copy(), movable[draws.below(len(movable))]
                trial[place] = not trial[place]
                limit = -2.0 * np.log(((draws.word(0) >> 11) + 1) * 2.0**-53)
                accepted = walk.energy_of(trial) - walk.energy_of(r) <= limit
                r, flips, rejected = (
                    trial if accepted else r,
                    flips + accepted,
                    rejected + (not accepted),
                )
            assert state.r.tolist() == r.tolist(), number
            assert state.choice.tolist() == walk.choice_of(r).tolist()
            assert state.energies[0] == pytest.approx(walk.energy_of(r) - first, abs=1e-6)
            noted += walk.energy_of(r) < least - 1e-9
            least = min(least, walk.energy_of(r))
            assert walk.energy_of(state.best) == pytest.approx(least)
    assert flips > 20 and rejected > 5 and noted > 0


@pytest.mark.parametrize("case", ["small", "required", "wide"])
def test_every_move_of_a_vertex_follows_metropolis_rule(case):
    """An r bit is flipped, and the moving end passes those in between; by the energies of all bits."""
    moved = passed = rejected = 0
    for seed, (scores, candidates, subsets, bits) in enumerate(move_cases(case)):
        walk, r, movable = walk_of(seed, scores, candidates, subsets, bits)
        pairs = {tuple(pair): place for place, pair in enumerate(walk.order.pairs.tolist())}
        state, stream, draws = (
            walk.start(r),
            random_stream(seed),
            Draws(*random_stream(seed).tolist()),
        )
        for number in range(60):
            walk.move_vertices(state, 4.0, 1, stream)
            place = movable[draws.below(len(movable))]
            mover = walk.order.pairs[place].tolist()[draws.below(2)]
            limit = -4.0 * np.log(((draws.word(0) >> 11) + 1) * 2.0**-53)
            trial = passing(walk, pairs, r, place, mover, movable)
            accepted = walk.energy_of(trial) - walk.energy_of(r) <= limit
            passed += accepted and (trial != r).sum() > 1
            r, moved, rejected = (
                trial if accepted else r,
                moved + accepted,
                rejected + (not accepted),
            )
            assert state.r.tolist() == r.tolist(), number
            assert state.choice.tolist() == walk.choice_of(r).tolist()
            np.testing.assert_allclose(state.fields, walk.start(r).fields, atol=1e-6)
    assert moved > 20 and rejected > 0 and (passed > 5 or case == "wide")


def passing(walk, pairs, r, place, mover, movable):
    """The r bits when this pair is flipped, and the mover leaves every cyclic triangle that this makes."""
    trial = r.copy()
    trial[place] = not trial[place]
    a, b = walk.order.pairs[place].tolist()
    for corners in walk.order.triangles.tolist():
        low, middle, high = trial[corners]
        if place in corners and low == middle != high:
            third = (
                {v for side in corners for v in walk.order.pairs[side].tolist()} - {a, b}
            ).pop()
            side = pairs[min(mover, third), max(mover, third)]
            if side in movable:
                trial[side] = not trial[side]
    return trial


def test_a_vertex_passes_all_in_between():
    """On a complete order a move is an insertion: the others keep their order."""
    scores = random_scores(np.random.default_rng(3), 7, 2, 0.9)
    candidates = candidates_of(scores)
    everything = set(combinations(range(7), 2))
    walk = OrderBitWalk(
        relate(candidates, whole_subsets(candidates)), relaxed_order(everything, everything)
    )
    state, stream = walk.start(np.ones(21, np.bool_)), random_stream(1)
    order, far = list(range(7)), 0
    for _ in range(200):
        walk.move_vertices(state, 1e9, 1, stream)
        later = np.zeros((7, 7), int)
        later[tuple(walk.order.pairs.T)] = state.r
        later += np.tril(1 - later.T, -1)
        new = np.argsort(-later.sum(axis=1)).tolist()
        assert sorted(later.sum(axis=1)) == list(range(7))  # no cyclic triangle
        assert any(
            [v for v in new if v != mover] == [v for v in order if v != mover] for mover in range(7)
        )
        far += sum(abs(new.index(v) - order.index(v)) > 1 for v in order) > 0
        order = new
    assert far > 50


def test_chords_are_pairs_of_the_default_and_close_their_cycle():
    """Theorem B on cycles of random candidate graphs, over all directions of the pairs."""
    closed = 0
    for _, _, candidates, _, default, _ in problems(3, 60, most=40):
        place = np.zeros(candidates.n, np.int64)
        for component, filled in eliminations(candidates, "chordal"):
            place[component[filled.sequence]] = np.arange(len(component))
        arcs = candidates.families.arcs()
        for length in range(3, candidates.n + 1):
            for cycle in product(range(candidates.n), repeat=length):
                steps = [(cycle[i - 1], cycle[i]) for i in range(length)]
                if (
                    len(set(cycle)) < length
                    or cycle[0] != min(cycle)
                    or not all(arcs[step] for step in steps)
                ):
                    continue
                made = chords(list(cycle), place)
                assert made <= default and len(made) == 2 * length - 3
                order = relaxed_order(made, made)
                pairs = {tuple(pair): number for number, pair in enumerate(order.pairs.tolist())}
                for r in product((False, True), repeat=len(pairs)):
                    along = all(r[pairs[min(s), max(s)]] == (s[0] < s[1]) for s in steps)
                    if along:
                        assert any(
                            r[ab] == r[bc] != r[ac] for ab, bc, ac in order.triangles.tolist()
                        )
                closed += length > 3
    assert closed > 20


def test_a_vertex_with_two_possible_parents_needs_no_bits_of_its_own():
    """Theorem D (ii): its u and z bits at 0 and a quadratic polynomial of r in their place leave the minimum."""
    replaced = 0
    for _, scores, candidates, subsets, default, near in problems(8, 40):
        made = relaxation(candidates, subsets, default, near)
        energies, place = all_energies(made.qubo), made.qubo.bits - 1
        states = (np.arange(len(energies))[:, None] >> np.arange(place + 1)) & 1
        for vertex, known in enumerate(scores):
            parents = sorted(frozenset().union(*known))
            pairs = made.order.pair_of(np.array(parents, int), np.full(len(parents), vertex))
            if not 0 < len(parents) <= 2 or (pairs < 0).any():
                continue
            own = list(range(*subsets.families.vertex_start[vertex : vertex + 2]))
            own += [z for z in [int(made.z_bits[vertex])] if z >= 0]
            first = made.order.pairs[pairs, 0] == parents
            # whether each parent comes before the vertex
            x = states[:, subsets.total + pairs] == first
            gain = [reference.closure(known, frozenset([p])) - known[frozenset()] for p in parents]
            polynomial = -(x * gain).sum(axis=1)
            if len(parents) == 2:
                both = reference.closure(known, frozenset(parents)) - known[frozenset()]
                polynomial = polynomial - (both - sum(gain)) * x[:, 0] * x[:, 1]
            left = (states[:, own] == 0).all(axis=1)
            assert (energies + polynomial)[left].min() == pytest.approx(energies.min())
            replaced += 1
    assert replaced > 20


def test_shortest_cycles():
    parents = ((2, 4), (0,), (1,), (5,), (3,), (4,), (8,), (6,), (9,), (7,))
    cycles = shortest_cycles(parents)
    assert sorted(map(sorted, cycles[:2])) == [[0, 1, 2], [3, 4, 5]] and sorted(cycles[2]) == [
        6,
        7,
        8,
        9,
    ]
    for cycle in cycles:
        assert all(cycle[i - 1] in parents[cycle[i]] for i in range(len(cycle)))
    assert shortest_cycles(((), (0,), (0, 1))) == []
    place, short = np.arange(10), {(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)}
    assert missing_chords(cycles, place, set()) == short
    # a state may pay for a short cycle
    assert missing_chords(cycles, place, short) == chords(cycles[2], place)
    assert missing_chords(cycles, place, short | chords(cycles[2], place)) == set()


def test_a_ring_of_four_needs_its_chord():
    candidates = candidates_of(RING)
    subsets = whole_subsets(candidates)
    default, near = pairs_of(candidates)
    assert len(default) == 5 and len(near) == 4
    loose = relaxation(candidates, subsets, near, near)
    assert all_energies(loose.qubo).min() == pytest.approx(4.0)  # the ring, a directed cycle
    ring = tuple(((v - 1) % 4,) for v in range(4))
    state = next(
        state_of(index, loose.qubo.bits)
        for index in np.flatnonzero(all_energies(loose.qubo) < 4.0 + 1e-9)
        if decode(loose, state_of(index, loose.qubo.bits)).parents == ring
    )
    found = decode(loose, state, repair=True)
    assert [violation.constraint for violation in found.violations] == ["cycle"]
    assert "is a directed cycle" in str(found.violations[0])
    assert set(found.violations[0].vertices) == {"v0", "v1", "v2", "v3"}
    assert found.repaired.feasible and found.repaired.score == pytest.approx(
        reference.best_score_of_orders(RING)
    )
    made = formulate(candidates, subsets, order="adjacent")
    assert made.bits == formulate(candidates, subsets).bits and made.order_status == replace(
        PROVED_ORDER, found=1
    )


def test_a_walk_counts_if_it_has_full_length_and_finds_nothing():
    candidates = candidates_of(HARMLESS)
    relative = relate(candidates, whole_subsets(candidates))
    for sweeps, shorter in ((1, 0), (300, 4), (64, 3)):  # 4, 16, 64 and 256 sweeps come before 300
        reports = []
        _, status = order_on_demand(relative, Demand(None, 7, sweeps), Workers(1), reports.append)
        assert [report.done for report in reports] == [0] * shorter + list(range(1, 8))
        flips = max(1, sweeps * 4 // 400)
        assert status == OrderStatus(False, 7, 420 * (flips + 1), 0)
    expected = "no state below the best network in 7 walks of 840 moves"
    assert str(status) == expected and reports[-1].total == 7


def test_a_state_below_starts_the_count_again_and_gets_order_bits():
    candidates = candidates_of(RING)
    relative, reports = relate(candidates, whole_subsets(candidates)), []
    order, status = order_on_demand(relative, Demand(), Workers(1), reports.append)
    assert status == replace(PROVED_ORDER, found=1) and len(order.pairs) == 5
    assert [report.done for report in reports] == [0]


def test_walks_before_a_state_below_do_not_count():
    """All energies are far below the temperatures: a short walk meets the ring of ten by chance."""
    scores = [{frozenset(): -0.004, frozenset([(v - 1) % 10]): -0.001} for v in range(10)]
    candidates = candidates_of(scores)
    relative, counts = relate(candidates, whole_subsets(candidates)), []
    for seed in range(4):
        reports = []
        demand = Demand(None, 20, sweeps=1, seed=seed)
        _, status = order_on_demand(relative, demand, Workers(1), reports.append)
        assert status == replace(PROVED_ORDER, found=1)
        counts.append([report.done for report in reports])
    assert [0] in counts and [1, 0] in counts


def test_a_walk_ends_at_the_deadline():
    _, _, candidates, subsets, default, _ = next(problems(5, 1))
    walk = OrderBitWalk(relate(candidates, subsets), relaxed_order(default, default))
    start, streams = (
        walk.order_of(candidates.families.best_of_order(list(range(candidates.n))), {}),
        [],
    )
    for deadline in (np.inf, 0.0):  # the whole walk, and its first temperature
        streams.append(random_stream(0))
        walk.anneal(start, 4000, 15.0, streams[-1], deadline)
    assert not np.array_equal(*streams)


def test_a_network_without_required_edges_is_a_start():
    """Required edges come from knowledge, or from presolve, which turns what all sets share into required parents."""
    required = candidates_of(
        [{frozenset(): -1.0}, {frozenset([0]): -1.0, frozenset([0, 2]): -0.5}, {frozenset(): -2.0}]
    )
    for parents, expected in (
        (((), (), ()), (0,)),
        (((1,), (), ()), (0,)),
        (((), (2,), ()), (0, 2)),
    ):
        chosen = known_network(required, Demand(Network(("v0", "v1", "v2"), parents)), Workers(1))
        assert required.families.sets_at(chosen) == ((), expected, ())
    path = Network(("v0", "v1", "v2", "v3"), ((1,), (2,), (3,), ()))
    known = known_network(candidates_of(HARMLESS), Demand(path), Workers(1))
    assert candidates_of(HARMLESS).families.sets_at(known) == path.parents
