"""The relaxation and its cuts: never above the optimum, as good as an exact solver's, true for every cover."""

import random
from itertools import combinations, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import csr_array
from subset_cases import set_system

from qubayes.qubo.subsets import bounds
from qubayes.qubo.subsets.bounds import (
    CoverRelaxation,
    ElementCuts,
    GrowthPool,
    PrimalDual,
    advance,
    grow_sets,
    packing_bound,
    pairs_needed,
    primal_dual_steps,
    relaxation_bound,
    rounded_up,
    triples_of,
    violated_cuts,
    with_cuts,
)
from qubayes.qubo.subsets.instance import incidence_of
from qubayes.qubo.subsets.reductions import (
    CLOSED,
    EXCLUDED,
    OPEN,
    core_of,
    covering_positions,
    own_columns,
    reduce_to_cores,
)
from qubayes.qubo.subsets.smallest_cover import CoverProgram, dual_bound, program_of, solve_program


def largest_core(sets):
    incidence = incidence_of(set_system(sets))
    _, cores = reduce_to_cores(incidence)
    return incidence, max(cores, key=lambda core: len(core.rows))


def family(seed, *, elements, count):
    rng = random.Random(seed)
    singles = [{e} for e in range(elements) if rng.random() < 0.8]
    return singles + [
        set(rng.sample(range(elements), rng.choice((2, 3, 3, 3)))) for _ in range(count)
    ]


def exact_relaxation(program):
    cost = np.arange(program.matrix.shape[1]) < program.choices
    return linprog(cost, A_ub=-program.matrix, b_ub=-program.lower, bounds=(0, 1)).fun


@pytest.mark.parametrize("seed", range(4))
def test_the_bound_comes_close_to_the_relaxation_and_never_passes_it(seed):
    _, core = largest_core(family(seed, elements=12, count=120))
    program = program_of(core)
    relaxation, exact = CoverRelaxation.of(program), exact_relaxation(program)
    advance(relaxation, 1000, enough=np.inf)
    assert exact * 0.999 < relaxation.bound < exact + 1e-6


def disjoint_rows(core):
    """Rows with few open columns first, each one taken that shares none with those before."""
    rows = [
        {column for column in core.row_columns[first:last].tolist() if column >= 0}
        for first, last in zip(core.row_start, core.row_start[1:], strict=False)
    ]
    taken = []
    for row in sorted(rows, key=len):
        if all(row.isdisjoint(other) for other in taken):
            taken.append(row)
    return len(taken)


@pytest.mark.parametrize("elements", [6, 8, 10])
def test_disjoint_rows_need_a_column_each(elements):
    """As many as counting one by one finds, and never more than the smallest cover has."""
    with_closed = 0
    for seed in range(30):
        cores = reduce_to_cores(
            incidence_of(set_system(family(seed, elements=elements, count=3 * elements)))
        )[1]
        for core in cores:
            with_closed += bool((core.row_columns < 0).any())
            size = solve_program(
                program_of(core), start=np.ones(len(core.columns), dtype=bool)
            ).chosen.sum()
            assert packing_bound(core) == disjoint_rows(core) <= size
    assert with_closed


@pytest.mark.parametrize("seed", range(4))
def test_cuts_hold_for_a_smallest_cover_and_raise_the_relaxation(seed):
    incidence, core = largest_core(family(seed, elements=9, count=90))
    program, triples = program_of(core), triples_of(core, incidence)
    relaxation = CoverRelaxation.of(program)
    advance(relaxation, 500, enough=np.inf)
    found = violated_cuts(
        triples, relaxation.values[: program.choices], np.random.default_rng(seed)
    )
    assert found and all(len(part.lower) for part in found)
    longer = with_cuts(program, triples, found)
    start = np.ones(program.choices, dtype=bool)
    best, same = (solve_program(p, start=start).chosen for p in (program, longer))
    assert best.sum() == same.sum()
    assert exact_relaxation(longer) > exact_relaxation(program) + 0.01
    more = longer.matrix[len(program.lower) :]
    for cover in (best, same):
        assert np.all(more[:, : program.choices] @ cover >= longer.lower[len(program.lower) :])
    relaxation.extend(longer)
    advance(relaxation, 1000, enough=np.inf)
    assert exact_relaxation(longer) * 0.998 < relaxation.bound < exact_relaxation(longer) + 1e-6


@settings(max_examples=12)
@given(seed=st.integers(0, 10**6), rounds=st.integers(0, 4))
def test_the_bound_is_never_above_the_optimum(seed, rounds):
    incidence, core = largest_core(
        [*family(seed, elements=8, count=25), {20, 21}, {20, 22}, {21, 22}, {20, 21, 22}]
    )
    start = np.ones(len(core.columns), dtype=bool)
    outcome = solve_program(program_of(core), start=start)
    size = int(outcome.chosen.sum())
    assert relaxation_bound(core, incidence, size=10**6, rounds=rounds) <= size
    assert relaxation_bound(core, incidence, size=size, rounds=rounds) <= size


def some_core(seed, *, elements=7):
    """Sets of three with some of their subsets closed or excluded, often all of one element or of two."""
    rng, smallest = random.Random(seed), 1 + seed % 3
    incidence = incidence_of(
        set_system([own for k in (2, 3) for own in combinations(range(elements), k)])
    )
    status = np.full(incidence.columns, OPEN, dtype=np.int8)
    sizes, closing, excluding = (
        np.diff(incidence.set_start),
        rng.choice((0.0, 0.1)),
        rng.choice((0.0, 0.3)),
    )
    for column, size in enumerate(sizes.tolist()):
        if size < smallest:
            status[column] = EXCLUDED if size == 2 else rng.choice((CLOSED, EXCLUDED))
        elif size == 1:
            status[column] = rng.choice((OPEN, CLOSED, EXCLUDED))
        elif rng.random() < closing:
            status[column] = CLOSED
        elif rng.random() < excluding:
            status[column] = EXCLUDED
    alone, together, covered = covering_positions(incidence, status)
    triple = sizes[own_columns(incidence)] == 3
    rows = np.flatnonzero(~covered & triple & ((alone != 0) | (together != 0)))
    return incidence, core_of(incidence, status, rows)


@pytest.mark.parametrize("seed", range(12))
def test_cuts_name_every_open_pair_and_triple_inside_their_elements(seed):
    """By the definition: rows of three without a closed pair, their own columns, and the columns of their pairs."""
    incidence, core = some_core(seed)
    triples, program = triples_of(core, incidence), program_of(core)
    number = {frozenset(own): place for place, own in enumerate(incidence.sets(core.columns))}
    rows = [frozenset(own) for own in incidence.sets(own_columns(incidence)[core.rows])]
    fixed = [
        {frozenset(own) for p, own in enumerate(incidence.sets(columns)) if mask >> p & 1}
        for mask, columns in zip(
            core.fixed.tolist(),
            np.split(core_columns(core, incidence), core.row_start[1:-1]),
            strict=True,
        )
    ]
    known = {
        row for row, own in zip(rows, fixed, strict=True) if not any(len(part) == 2 for part in own)
    }
    names = sorted(set().union(*known)) if known else []
    for a, b, c in combinations(range(len(names)), 3):
        own = frozenset({names[a], names[b], names[c]})
        expected = number.get(own, len(core.columns)) if own in known else -1
        assert {int(triples.itself[order]) for order in permutations((a, b, c))} == {expected}
    for a, b in permutations(range(len(names)), 2):
        assert triples.column[a, b] == number.get(
            frozenset({names[a], names[b]}), len(core.columns)
        )
    if len(names) == 7:
        cut = ElementCuts(np.arange(7, dtype=np.int32)[None, :], np.ones(1))
        added = with_cuts(program, triples, [cut]).matrix[[-1]].indices.tolist()
        assert sorted(added) == sorted(
            place for own, place in number.items() if len(own) == 2 or own in known
        )


def core_columns(core, incidence):
    """The column at each position of the core's rows, in the incidence's numbers."""
    first, last = incidence.row_start[core.rows], incidence.row_start[core.rows + 1]
    return np.concatenate([incidence.row_columns[a:b] for a, b in zip(first, last, strict=True)])


@pytest.mark.parametrize("seed", range(12))
def test_closed_pairs_need_no_other(seed):
    """With pairs and singletons closed the bound is not above the optimum either."""
    incidence, core = some_core(seed)
    size = int(solve_program(program_of(core), start=np.ones(len(core.columns), bool)).chosen.sum())
    assert relaxation_bound(core, incidence, size=10**6, rounds=3) <= size


@pytest.mark.parametrize("seed", range(4))
def test_the_best_duals_attain_the_relaxation(seed):
    _, core = largest_core(family(seed, elements=9, count=60))
    program = program_of(core)
    cost = (np.arange(program.matrix.shape[1]) < program.choices).astype(float)
    solved = linprog(cost, A_ub=-program.matrix, b_ub=-program.lower, bounds=(0, 1))
    assert dual_bound(program, -solved.ineqlin.marginals) == pytest.approx(solved.fun)


def test_no_duals_give_more_than_the_optimum():
    """v >= y, y >= 1, v + w >= 0: the smallest v + w is 1."""
    program = CoverProgram(
        csr_array([[1.0, 0.0, -1.0], [0.0, 0.0, 1.0], [1.0, 1.0, 0.0]]),
        np.array([0.0, 1.0, 0.0]),
        2,
    )
    bounds = [
        dual_bound(program, np.array(duals))
        for duals in product((-2.0, -1.0, 0.0, 0.5, 1.0, 2.0), repeat=3)
    ]
    assert max(bounds) == dual_bound(program, np.array([1.0, 1.0, 0.0])) == 1.0


def fewest_pairs(triples):
    """The least number of pairs that put one into each triple, by exhaustion."""
    best = len(triples)

    def deepen(chosen, count):
        nonlocal best
        for triple in triples:
            pairs = [frozenset(pair) for pair in combinations(triple, 2)]
            if chosen.isdisjoint(pairs):
                if count + 1 < best:
                    for pair in pairs:
                        deepen(chosen | {pair}, count + 1)
                return
        best = count

    deepen(frozenset(), 0)
    return best


def needed(triples, size):
    cube = np.full((size, size, size), -1, dtype=np.int32)
    for triple in triples:
        for order in permutations(triple):
            cube[order] = 0
    own = np.zeros((1, 8), dtype=np.int32)
    own[0, :size] = np.arange(size)
    return pairs_needed(cube, own)[size][0]


@pytest.mark.parametrize("size", [6, 7, 8])
def test_the_number_of_pairs_inside_six_to_eight_elements(size):
    rng = random.Random(size)
    for _ in range(20):
        density = rng.choice((0.2, 0.3, 0.4) if size > 7 else (0.2, 0.5, 0.7))
        triples = [triple for triple in combinations(range(size), 3) if rng.random() < density]
        least = fewest_pairs(triples)
        assert needed(triples, size) <= least
        assert size > 6 or needed(triples, size) == least


def grown_by_definition(triples, weight, noise, start, number, most):
    """Elements that are added to three, and the weight of the pairs and triples inside, by size.

    Next comes the element with which the pairs that are needed exceed the weight most; of more than
    six elements a third of the added triples stands for the pairs."""

    def inside(own):
        pairs = sum(weight[triples.column[a, b]] for a, b in combinations(own, 2))
        held = [triple for triple in combinations(own, 3) if triples.itself[triple] >= 0]
        return held, pairs + sum(weight[triples.itself[triple]] for triple in held)

    own, loads = list(start), {}
    while len(own) < min(most, len(noise)):

        def excess(e, own=own):
            held, load = inside([*own, e])
            value = fewest_pairs(held) if len(own) < 6 else (len(held) - len(inside(own)[0])) / 3
            return value - load + noise[(e + number) % len(noise)]

        own = [*own, max((e for e in range(len(noise)) if e not in own), key=excess)]
        loads[len(own)] = inside(own)[1]
    return own, loads


@pytest.mark.parametrize("seed, elements", [(0, 9), (1, 9), (2, 7), (3, 6)])
def test_sets_of_elements_grow_by_the_most_violated(seed, elements):
    rng = np.random.default_rng(seed)
    sets = [{e} for e in range(elements)] + family(seed, elements=elements, count=9 * elements)
    incidence, core = largest_core(sets)
    triples = triples_of(core, incidence)
    weight = np.append(rng.integers(0, 9, len(core.columns)) / 8, 0.0)
    noise = rng.uniform(0.0, 1e-3, len(triples.column))
    grown, loads = np.zeros((12, 8), np.int32), np.zeros((12, 9))
    grown[:, :3] = triples.rows[rng.choice(len(triples.rows), 12)]
    pool = GrowthPool(triples.itself, triples.column, weight, noise)
    grow_sets(pool, bounds.smallest_edge_covers(), grown, loads)
    for number in range(12):
        start = grown[number, :3].tolist()
        own, load = grown_by_definition(triples, weight, noise, start, number, 8)
        assert grown[number, : len(own)].tolist() == own
        for size in range(4, len(own) + 1):
            assert loads[number, size] == pytest.approx(load[size])


def test_cuts_are_violated_and_come_once():
    """The most violated first, by the excess of what is needed over the values of the pairs and triples inside."""
    incidence, core = largest_core(
        [{e} for e in range(9)] + [set(own) for own in combinations(range(9), 3)]
    )
    triples, values = (
        triples_of(core, incidence),
        np.random.default_rng(1).uniform(0.0, 0.3, len(core.columns)),
    )
    weight, found = np.append(values, 0.0), violated_cuts(triples, values, np.random.default_rng(0))
    assert [cuts.elements.shape[1] for cuts in found] == [6, 7, 8]
    for cuts in found:
        size, excess = cuts.elements.shape[1], []
        for own, lower in zip(cuts.elements.tolist(), cuts.lower, strict=True):
            pairs, inside = combinations(own, 2), combinations(own, 3)
            load = sum(weight[triples.column[pair]] for pair in pairs) + sum(
                weight[triples.itself[t]] for t in inside
            )
            excess.append(lower - load)
            assert own == sorted(set(own)) and lower == size * (size - 1) // 2 - size * size // 4
        assert len({tuple(own) for own in cuts.elements.tolist()}) == len(cuts.lower) > 1
        assert min(excess) > 0 and excess == sorted(excess, reverse=True)


@pytest.mark.parametrize("seed", range(3))
def test_steps_of_the_first_order_method_are_its_definition(seed):
    """Projected steps with the duals, then with the extrapolated values."""
    rng = np.random.default_rng(seed)
    _, core = largest_core(family(seed, elements=8, count=30))
    relaxation = CoverRelaxation.of(program_of(core))
    relaxation.values[:], relaxation.duals[:] = (
        rng.random(len(relaxation.values)),
        rng.random(len(relaxation.duals)),
    )
    state, _ = PrimalDual.of(relaxation)
    matrix, lower, choices = relaxation.program
    x, y = relaxation.values, relaxation.duals
    costs, sums = np.arange(len(x)) < choices, [np.zeros(len(x)), np.zeros(len(y))]
    for _ in range(4):
        new = np.clip(x - state.column_steps * (costs - matrix.T @ y), 0.0, 1.0)
        y = np.maximum(y + state.row_steps * (lower - matrix @ (2 * new - x)), 0.0)
        x, sums = new, [sums[0] + new, sums[1] + y]
    primal_dual_steps(state, 4)
    for found, expected in zip(
        (state.values, state.duals, state.value_sum, state.dual_sum), (x, y, *sums), strict=True
    ):
        np.testing.assert_allclose(found, expected, atol=1e-12)
    lengths = np.diff(matrix.indptr), np.bincount(matrix.indices, minlength=len(x))
    products = np.outer(
        state.row_steps * np.maximum(lengths[0], 1), state.column_steps * np.maximum(lengths[1], 1)
    )
    np.testing.assert_allclose(products, 1.0)  # steps for which the method converges


def test_all_triples_need_as_many_pairs_as_turan_says():
    for size in (6, 7, 8):
        assert (
            needed(combinations(range(size), 3), size) == size * (size - 1) // 2 - size * size // 4
        )


def test_six_elements_are_enough_for_a_cut():
    """All twenty triples: 20 / 4 without a cut, 15 pairs less the 9 of a graph without triangles with one (Turan)."""
    incidence, core = largest_core(
        [{e} for e in range(6)] + [set(own) for own in combinations(range(6), 3)]
    )
    assert [relaxation_bound(core, incidence, size=99, rounds=rounds) for rounds in (0, 1)] == [
        5,
        6,
    ]


def test_too_many_elements_leave_the_relaxation_without_cuts():
    incidence, core = largest_core(
        [{e} for e in range(7)] + [set(own) for own in combinations(range(7), 3)]
    )
    assert [relaxation_bound(core, incidence, size=size, rounds=3) for size in (99, 9, 8)] == [
        9,
        9,
        8,
    ]
    assert relaxation_bound(core, incidence, size=99, rounds=3, most_elements=6) == 7


def test_the_whole_number_of_a_bound():
    assert [rounded_up(bound) for bound in (0.0, 2.9, 3.0, 3.0 + 1e-9, 3.01, 3.3)] == [
        0,
        3,
        3,
        3,
        4,
        4,
    ]
