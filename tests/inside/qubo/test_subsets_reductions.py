"""Each reduction leaves a smallest cover: Algorithm 2 row by row, and the exact reductions."""

import random
from itertools import combinations

import numpy as np
import pytest
from subset_cases import problem, set_system

from qubayes.qubo.subsets import reductions
from qubayes.qubo.subsets.bounds import TRIPLES, smallest_edge_covers
from qubayes.qubo.subsets.cover_search import _pivots, search, walk_of
from qubayes.qubo.subsets.instance import incidence_of, pivot_table, table_starts
from qubayes.qubo.subsets.reductions import (
    CLOSED,
    OPEN,
    core_of,
    covering_positions,
    reduce_exactly,
    reduce_to_cores,
)
from qubayes.qubo.subsets.smallest_cover import program_of, solve_program
from reference.covers import covers, optimum, subsets_of

ROWS = ["exclude_lonely", "close_forced", "drop_covered", "drop_useless", "close_unrepresentable"]


def random_family(rng):
    elements = rng.randint(3, 6)
    count, largest = rng.randint(1, 8), min(elements, 4)
    return sorted(
        {frozenset(rng.sample(range(elements), rng.randint(1, largest))) for _ in range(count)},
        key=sorted,
    )


def named(sets, incidence, columns):
    elements = set_system(sets).elements
    return [
        frozenset(elements[list(members)].tolist())
        for members in incidence.sets(np.asarray(columns))
    ]


def least(sets, incidence, status, row_open, *, with_rows):
    """The smallest cover in the space that is left; open rows themselves are always at hand before row 7."""
    space = np.flatnonzero(status == OPEN)
    if with_rows:
        space = np.union1d(space, reductions.own_columns(incidence)[row_open])
    closed = named(sets, incidence, np.flatnonzero(status == CLOSED))
    return optimum(sets, named(sets, incidence, space), closed)


@pytest.mark.parametrize("seed", range(4))
def test_each_row_of_algorithm_2_keeps_an_optimum(seed):
    rng = random.Random(seed)
    for _ in range(25):
        sets = random_family(rng)
        state, best = problem(sets), optimum(sets)
        for _ in range(3):
            for row in ROWS:
                getattr(reductions, row)(*state)
                assert least(sets, *state, with_rows=True) == best, (sets, row)
        reductions.reopen(*state)
        assert least(sets, *state, with_rows=False) == best, (sets, "reopen")
        status, row_open = reductions.reduce_as_paper(state[0])
        assert least(sets, state[0], status, row_open, with_rows=False) == best, sets


def test_each_row_of_algorithm_2_does_something():
    """A row that never changed anything could not fail the test above."""
    rng, changes = random.Random(0), dict.fromkeys([*ROWS, "reopen"], 0)
    for _ in range(100):
        state = problem(random_family(rng))
        for row in [*ROWS, *ROWS, "reopen"]:
            before = state[1].copy(), state[2].copy()
            getattr(reductions, row)(*state)
            changes[row] += any(
                not np.array_equal(a, b) for a, b in zip(before, state[1:], strict=True)
            )
    assert all(changes.values()), changes


def printed_row_2(sets, closed, space):
    """Row 2 of Algorithm 1 by the letter: representations by two open sets are ignored."""
    forced = set()
    for whole in sets:
        only = [
            part
            for part in space
            if part == whole or any(part | other == whole for other in closed)
        ]
        forced |= set(only) if len(only) == 1 else set()
    return forced


def test_row_2_as_printed_loses_the_optimum():
    sets = [frozenset(s) for s in [{0}, {0, 1}, {0, 2}, {0, 1, 2}, {0, 1, 2, 3}]]
    space = subsets_of(sets)
    assert optimum(sets) == 4
    lonely = [part for part in space if sum(part <= whole for whole in sets) <= 1]
    space = [part for part in space if part not in lonely]
    forced = printed_row_2(sets, set(), space)
    assert optimum(sets, {*space, *sets}, forced) == 5
    status, row_open = reductions.reduce_as_paper(problem(sets)[0])
    assert least(sets, problem(sets)[0], status, row_open, with_rows=False) == 4


@pytest.mark.parametrize("seed", range(4))
def test_exact_reductions_keep_an_optimum(seed):
    rng = random.Random(100 + seed)
    for _ in range(40):
        sets = random_family(rng)
        state = problem(sets)
        reduce_exactly(*state)
        assert least(sets, *state, with_rows=False) == optimum(sets), sets


@pytest.mark.parametrize(
    "seed", [195, 295, 344, 352, 944, 988, 1246, 1315, 1495, 1664, 1752, 1852, 2679, 2859]
)
def test_rows_that_others_imply_keep_an_optimum(seed):
    """One family in 200 has such a row: it is dropped, and no closed columns cover it."""
    rng = random.Random(seed)
    sets = [frozenset(rng.sample(range(5), rng.randint(1, 4))) for _ in range(8)]
    incidence, status, row_open = problem(sets)
    reduce_exactly(incidence, status, row_open)
    assert (~row_open & ~covering_positions(incidence, status)[2]).any()
    assert least(sets, incidence, status, row_open, with_rows=False) == optimum(sets)
    closed, cores = reduce_to_cores(incidence)
    sizes = [
        solve_program(program_of(core), start=np.ones(len(core.columns), bool)).chosen
        for core in cores
    ]
    assert len(closed) + sum(int(chosen.sum()) for chosen in sizes) == optimum(sets)


def test_cores_add_up():
    rng = random.Random(7)
    several = 0
    for _ in range(150):
        sets = random_family(rng)
        sets += [frozenset(e + 10 for e in members) for members in random_family(rng)]
        incidence = incidence_of(set_system(sets))
        closed, cores = reduce_to_cores(incidence)
        several += len(cores) > 1
        chosen = [closed] + [
            core.columns[search(core, incidence, work=10_000, seed=0)] for core in cores
        ]
        members = named(sets, incidence, np.concatenate(chosen))
        assert covers(sets, members)
        if cores:
            exact = len(closed) + sum(
                round(
                    solve_program(program_of(core), start=np.zeros(len(core.columns), bool)).bound
                )
                for core in cores
            )
            assert exact == optimum([s for s in sets if max(s) < 10]) + optimum(
                [s for s in sets if min(s) >= 10]
            )
    assert several


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_the_table_of_pivots_is_the_definition(size):
    full, rng = 2**size - 1, random.Random(size)

    def covered(state):
        inside = [mask for mask in range(1, full + 1) if state >> (mask - 1) & 1]
        return any(a | b == full for a in inside for b in inside)

    for state in [0, 2**full - 1, *(rng.randrange(2**full) for _ in range(300))]:
        word = int(pivot_table()[table_starts()[size] + state])
        assert (word < 0) == covered(state)
        pivots = sum(1 << p for p in range(full) if covered(state) != covered(state ^ 1 << p))
        assert word & (2**63 - 1) == pivots


def test_states_without_a_table_are_looked_at_alike():
    rng = random.Random(9)
    incidence, status, _ = problem([frozenset(range(4))])
    walk = walk_of(core_of(incidence, status, np.arange(1)), 0)
    walk = walk._replace(rows=walk.rows.view(np.recarray))
    for state in [0, 2**15 - 1, *(rng.randrange(2**15) for _ in range(500))]:
        assert _pivots(walk, 0, state) == pivot_table()[table_starts()[4] + state]


@pytest.mark.parametrize("seed", range(3))
def test_six_element_cuts_are_true(seed):
    """The table of cuts against exhaustion over sets of pairs."""
    rng = random.Random(seed)
    pairs = [set(pair) for pair in combinations(range(6), 2)]
    chosen = [t for t in range(20) if rng.random() < rng.choice((0.3, 0.7))]
    needed = next(
        k
        for k in range(16)
        if any(
            all(any(pair <= set(TRIPLES[t]) for pair in own) for t in chosen)
            for own in combinations(pairs, k)
        )
    )
    assert smallest_edge_covers()[sum(1 << t for t in chosen)] == needed
    assert smallest_edge_covers()[2**20 - 1] == 6
