"""What `cover` does with its parts: limits, poor searches, interrupts, and the check of every cover."""

import os
import random
import signal
import time
from importlib import import_module
from itertools import combinations, combinations_with_replacement, count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from subset_cases import set_system

from qubayes.foundation.families import counting_bound
from qubayes.foundation.workers import Workers
from qubayes.qubo.subsets import Budget, cover, instance
from qubayes.qubo.subsets.bounds import relaxation_bound
from qubayes.qubo.subsets.cover import Covered, verified
from qubayes.qubo.subsets.instance import incidence_of, uncovered
from qubayes.qubo.subsets.reductions import reduce_to_cores
from qubayes.qubo.subsets.smallest_cover import ProgramSolution
from reference.covers import covers, optimum
from test_subsets import candidates_of, cover_of, families, random_family, triples

# the package has a function of this name
cover_module = import_module("qubayes.qubo.subsets.cover")


def test_rounds_of_cuts_raise_the_bound():
    sets = [frozenset({e}) for e in range(7)] + [
        frozenset({a, b, c}) for a in range(7) for b in range(a) for c in range(b)
    ]
    incidence = incidence_of(set_system(sets))
    _, (core,) = reduce_to_cores(incidence)
    bounds = [relaxation_bound(core, incidence, size=99, rounds=rounds) for rounds in (0, 3)]
    # 35 triples / 5; Turan: 21 pairs less the 12 of a graph without triangles
    assert bounds == [7, 9]


def test_what_is_smallest_among_some_subsets_bounds_nothing(monkeypatch):
    """Four blocks cover all unions of two; where some of the blocks are not looked at, more sets are needed."""
    monkeypatch.setattr(instance, "MOST_CLOSED", 6)
    blocks = [range(4 * block, 4 * block + 4) for block in range(4)]
    sets = [frozenset({*a, *b}) for a, b in combinations(blocks, 2)]
    members, bound = cover_of(sets)
    assert covers(sets, members) and covers(sets, [frozenset(block) for block in blocks])
    assert bound <= 4 < len(members)


@pytest.mark.parametrize("names", [range(30), range(29, -1, -1)])
def test_a_row_keeps_the_subsets_that_most_rows_share(names):
    """Of two blocks, one in three sets and one in two of them: as many as there are positions."""
    three, two = (frozenset(names[e] for e in own) for own in (range(8), range(8, 16)))
    rest = [frozenset(names[e] for e in own) for own in ((16, 17), (18, 19), (20, 21))]
    sets = [three | two, three | rest[0], three | rest[1], two | rest[2]]
    for positions, kept in ((1, set()), (2, {three}), (3, {three, two})):
        system = set_system(sets)
        incidence = incidence_of(system, positions)
        assert incidence.complete == (positions == 3)
        row = [frozenset(system.elements[list(own)].tolist()) for own in system.sets()].index(
            sets[0]
        )
        columns = incidence.row_columns[slice(*incidence.row_start[row : row + 2])].tolist()
        found = [
            incidence.members[slice(*incidence.set_start[c : c + 2])].tolist() for c in columns
        ]
        assert {frozenset(system.elements[own].tolist()) for own in found} == kept | {sets[0]}


@pytest.mark.parametrize("method", ["auto", "search"])
def test_a_poor_search_proves_nothing(method, monkeypatch):
    monkeypatch.setattr(cover_module, "TREE", 1)
    monkeypatch.setattr(
        cover_module,
        "search",
        lambda core, incidence, work, seed: np.ones(len(core.columns), np.bool_),
    )
    rng, worse = random.Random(5), 0
    for _ in range(20):
        sets = random_family(rng, elements=6, largest=4, count=8)
        members, bound = cover_of(sets, method=method, budget=Budget(program=0))
        assert covers(sets, members) and bound <= optimum(sets)
        worse += len(members) > optimum(sets)
    assert worse


class Searches:
    """Stands for `search`: notes its calls; `sizes` are the columns that the trials of each seed and the rest take."""

    def __init__(self, columns, sizes):
        self.columns, self.sizes, self.calls = columns, iter(sizes), []

    def __call__(self, core, incidence, work, seed):
        self.calls.append((work, seed, next(self.sizes)))
        return np.arange(self.columns) < self.calls[-1][2]


@pytest.mark.parametrize(
    "method, bound, trials, more, best",
    [
        ("search", 10, [50, 40, 60, 45, 70, 80], [42], 40),
        ("search", 40, [50, 40, 60, 45, 70, 80], [], 40),
        ("auto", 30, [50, 40, 60, 45, 70, 80], [41, 38], 38),
        ("auto", 39, [50, 40, 60, 45, 70, 80], [39], 39),
        ("auto", 40, [50, 40, 60, 45, 70, 80], [], 40),
    ],
)
def test_full_searches_follow_the_best_trials(method, bound, trials, more, best, monkeypatch):
    """One, or two where the gap is wide, and none once the bound is reached."""
    incidence = incidence_of(set_system(triples(random.Random(1), elements=14, count=150)))
    _, (core,) = reduce_to_cores(incidence)
    works = []
    for effort in (1.0, 2.0):
        searches = Searches(len(core.columns), [*trials, *more])
        monkeypatch.setattr(cover_module, "search", searches)
        monkeypatch.setattr(
            cover_module,
            "packing_bound",
            lambda core: min(bound, 35) if method == "auto" else bound,
        )
        monkeypatch.setattr(
            cover_module, "relaxation_bound", lambda core, incidence, size, rounds: min(size, bound)
        )
        task = cover_module.CoverTask(
            method, Budget(effort=effort, program=0), 0, np.zeros(1, np.bool_)
        )
        chosen, lower = cover_module._solve_core(task, core, incidence)
        assert (chosen.sum(), lower) == (best, bound) and len(searches.calls) == len(trials) + len(
            more
        )
        first, full = searches.calls[: len(trials)], searches.calls[len(trials) :]
        assert (
            len({seed for _, seed, _ in first}) == len(trials)
            and len({work for work, _, _ in first}) == 1
        )
        ranked = sorted(first, key=lambda call: call[2])
        assert [seed for _, seed, _ in full] == [seed for _, seed, _ in ranked[: len(more)]]
        assert all(work > first[0][0] for work, _, _ in full)
        works.append(searches.calls[-1][0])
    assert works[1] == pytest.approx(2 * works[0], abs=2)


@pytest.mark.parametrize("method", ["ilp", "ilp-only"])
def test_a_program_that_stops_early_is_not_believed(method, monkeypatch):
    """Its choice covers nothing; its bound is that of the optimum."""
    sets = [frozenset(own) for own in combinations(range(4), 3)] + [
        frozenset({e}) for e in range(4)
    ]
    best, closed = optimum(sets), 4 if method == "ilp" else 0  # the singletons

    def stopped(program, *, start, seconds, nodes, stop):
        return ProgramSolution(np.zeros(len(start), np.bool_), False, float(best - closed))

    monkeypatch.setattr(cover_module, "solve_program", stopped)
    members, bound = cover_of(sets, method=method)
    assert covers(sets, members) and bound == best < len(members)


def test_an_interrupt_stops_the_integer_program(monkeypatch):
    """Undisturbed, the program proves its cover; interrupted at its beginning, it returns a cover without a proof."""
    lists = [[*triples(random.Random(seed), elements=9, count=60), ()] for seed in range(2)]
    solve, settings = cover_module.solve_program, {"method": "ilp", "workers": Workers(2)}
    assert cover(candidates_of(*lists), **settings).proved.all()

    def interrupted(program, *, stop, **limits):
        os.kill(os.getpid(), signal.SIGINT)
        while not stop[0]:
            time.sleep(0.001)
        return solve(program, stop=stop, **limits)

    monkeypatch.setattr(cover_module, "solve_program", interrupted)
    result = cover(candidates_of(*lists), **settings)
    assert not result.complete
    assert not result.proved.any()
    for vertex, sets in enumerate(lists):
        assert covers(sets, [frozenset(members) for members in result.families.sets_of(vertex)])


@pytest.mark.parametrize("method", ["auto", "ilp", "ilp-only"])
def test_the_parts_of_the_time_add_up(method, set_clock):
    """By a clock that advances by one second whenever it is read."""
    clock = count(10**6)
    set_clock(lambda: float(next(clock)))
    result = cover(
        candidates_of([*triples(random.Random(4), elements=8, count=30), ()]), method=method
    )
    assert (
        min(result.preparing, result.solving) > 0
        and result.preparing + result.solving < result.seconds < 50
    )


def test_the_check_finds_what_is_missing():
    family = set_system([(0,), (0, 1), (1, 2), (0, 1, 2), tuple(range(60, 140))])
    assert uncovered(family, [(0,), (0, 1)]).tolist() == [False, False, True, True, True]
    with pytest.raises(AssertionError, match="2 of 5"):
        verified(family, Covered([(0,), (0, 1), family.sets()[-1]], 0))
    with pytest.raises(AssertionError, match="lower bound 6, size 5"):
        verified(family, Covered(family.sets(), 6))
    assert verified(family, Covered(family.sets(), 5)).lower_bound == 5


@pytest.mark.parametrize("count", [2, 3, 5])
def test_the_check_sees_every_two_members(count):
    """All unions of two are there, and all are needed: of disjoint members no two pairs have the same union."""
    members = [(2 * e, 2 * e + 1) for e in range(count)]
    sets = [a if a == b else (*a, *b) for a, b in combinations_with_replacement(members, 2)]
    assert not uncovered(set_system(sets), members).any()
    for gone in members:
        left = [own for own in members if own != gone]
        missing = {own for own in sets if {*gone} <= {*own}}
        found = uncovered(set_system(sets), left)
        assert {
            own for own, no in zip(set_system(sets).sets(), found, strict=True) if no
        } == missing


@given(
    sets=families,
    members=st.lists(st.frozensets(st.integers(0, 5), min_size=1, max_size=3), max_size=6),
)
def test_the_check_is_the_definition(sets, members):
    sets = [*sets, frozenset(range(6))]  # so that elements keep their numbers
    family = set_system(sets)
    missing = {
        frozenset(whole)
        for whole, gone in zip(
            family.sets(), uncovered(family, [tuple(sorted(m)) for m in members]), strict=True
        )
        if gone
    }
    unions = {a | b for a in members for b in members}
    assert missing == {whole for whole in sets if whole and whole not in unions}


def test_the_counting_bound():
    for sets in range(200):
        k = counting_bound(sets)
        assert k * (k + 1) // 2 >= sets and (k == 0 or (k - 1) * k // 2 < sets)
