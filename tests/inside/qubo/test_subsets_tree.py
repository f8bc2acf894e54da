"""The search tree of small cores: the optimum, or nothing said."""

import random
from importlib import import_module

import numpy as np
from subset_cases import problem, set_system

from qubayes.qubo.subsets import Budget
from qubayes.qubo.subsets.cover import CoverTask, cover_system
from qubayes.qubo.subsets.instance import incidence_of
from qubayes.qubo.subsets.reductions import core_of, reduce_to_cores
from qubayes.qubo.subsets.smallest_cover import MOST_COLUMNS, representations_of, smallest_cover
from reference.covers import covers, optimum

# the package has a function of this name
cover_module = import_module("qubayes.qubo.subsets.cover")


def whole(sets):
    """The problem without any reduction, as one core."""
    incidence, status, row_open = problem(sets)
    return incidence, core_of(incidence, status, np.flatnonzero(row_open))


def test_the_tree_finds_and_proves_the_optimum_from_any_cover():
    rng = random.Random(4)
    for _ in range(60):
        sets = [frozenset(rng.sample(range(5), rng.randint(1, 4))) for _ in range(7)]
        incidence, core = whole(sets)
        assert len(core.columns) <= MOST_COLUMNS
        chosen, proved = smallest_cover(core, np.ones(len(core.columns), dtype=np.bool_), 10**6)
        elements = set_system(sets).elements
        members = [
            frozenset(elements[list(own)].tolist()) for own in incidence.sets(core.columns[chosen])
        ]
        assert proved and covers(sets, members) and len(members) == optimum(sets), sets


def test_a_tree_that_grows_too_large_says_nothing():
    sets = [{e} for e in range(7)] + [
        {a, b, c} for a in range(7) for b in range(a) for c in range(b)
    ]
    _, (core,) = reduce_to_cores(incidence_of(set_system(sets)))
    known = np.ones(len(core.columns), dtype=np.bool_)
    few, proved = smallest_cover(core, known, 2)
    assert not proved and few.sum() == known.sum()
    best, proved = smallest_cover(core, known, 10**6)
    assert proved and best.sum() == 9  # Turan: 21 pairs less the 12 of a graph without triangles


def test_the_representations_of_a_row():
    """Of {0, 1, 2}: itself, two pairs, or a pair and the singleton that it lacks."""
    incidence, core = whole([{0, 1, 2}])
    rows = representations_of(core)
    sets = [frozenset(own) for own in incidence.sets(core.columns)]
    found = {
        frozenset(own for p, own in enumerate(sets) if word >> p & 1)
        for word in rows.columns.tolist()
        if word
    }
    full = frozenset({0, 1, 2})
    assert len(sets) == 7 and rows.start.tolist() == [0, len(found)]
    assert found == {frozenset({full})} | {
        frozenset({a, b}) for a in sets for b in sets if full not in (a, b) and a | b == full
    }


def test_small_families_are_settled_without_the_search(monkeypatch):
    """The search takes seconds to compile: where it is not needed it is not touched."""
    monkeypatch.setattr(cover_module, "search", None)
    rng = random.Random(6)
    task = CoverTask("auto", Budget(), 0, np.zeros(1, dtype=np.bool_))
    for _ in range(5):
        sets = [frozenset(rng.sample(range(8), rng.choice((1, 2, 3)))) for _ in range(25)]
        result = cover_system(task, set_system(sets))
        assert result.lower_bound == len(result.sets)
