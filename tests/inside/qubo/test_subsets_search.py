"""The local search for covers: every step, and the groups of columns that it flips, by definition."""

import random

import numpy as np
import pytest
from subset_cases import problem, set_system

from qubayes.foundation.random import random_stream
from qubayes.qubo.subsets.cover_search import kicks_of, search, search_walk, walk_of
from qubayes.qubo.subsets.instance import incidence_of
from qubayes.qubo.subsets.reductions import CLOSED, core_of, reduce_to_cores
from reference.annealing import Draws
from reference.choices import Cover
from reference.covers import covers


def family(draw, sizes, elements, count):
    return [frozenset(draw.sample(range(elements), draw.choice(sizes))) for _ in range(count)]


def core_with(sets, closed):
    """The unreduced problem as a core, with the columns that satisfy the condition closed."""
    incidence, status, row_open = problem(sets)
    columns = incidence.sets(np.arange(incidence.columns))
    status[[closed(frozenset(own)) for own in columns]] = CLOSED
    for place, row in enumerate(set_system(sets).sets()):
        parts = [frozenset(own) for own in columns if closed(frozenset(own)) and {*own} <= {*row}]
        row_open[place] = not any(a | b == {*row} for a in parts for b in parts)
    return incidence, core_of(incidence, status, np.flatnonzero(row_open))


def slow_search(incidence, core, closed, seed):
    """The same search by definition, and its groups of columns."""
    own = incidence.row_columns[incidence.row_start[core.rows + 1] - 1]
    columns = [frozenset(members) for members in incidence.sets(core.columns)]
    inside = [[c for c in core.row_columns[a:b].tolist() if c >= 0]
              for a, b in zip(core.row_start[:-1], core.row_start[1:], strict=True)]  # fmt: skip
    kept = [frozenset(members) for members in incidence.sets(np.arange(incidence.columns))]
    rows = [frozenset(members) for members in incidence.sets(own)]
    slow = Cover(
        rows, columns, [c for c in kept if closed(c)], inside, Draws(*random_stream(seed).tolist())
    )
    groups = [[c] for c, members in enumerate(columns) if len(members) == 1]
    pairs = [c for c, members in enumerate(columns) if len(members) == 2]
    for e in sorted(frozenset().union(*(columns[c] for c in pairs))):
        groups.append([c for end in (min, max) for c in pairs if end(columns[c]) == e])
    return slow, [*groups, [c for c in range(len(columns)) if slow.score(c) == 0]]


CASES = {
    "pairs and triples": ((1, 2, 3, 3), 6, 14, lambda own: len(own) == 1),
    "nothing closed": ((2, 3), 5, 8, lambda own: False),
    "triples": ((3,), 6, 9, lambda own: own == {1}),
    "five elements": ((1, 3, 5), 6, 6, lambda own: own in ({0}, {1, 2})),
    "one row": ((4,), 4, 1, lambda own: False),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", range(3))
def test_every_step_is_its_definition(name, seed):
    sizes, elements, count, closed = CASES[name]
    incidence, core = core_with(family(random.Random(seed), sizes, elements, count), closed)
    for work in (1, 300, 2000):
        walk = walk_of(core, seed)
        slow, groups = slow_search(incidence, core, closed, seed)
        assert walk.score.tolist() == [slow.score(c) for c in range(len(core.columns))]
        kicks = kicks_of(core, incidence, walk.score)
        assert [own.tolist() for own in np.split(kicks.columns, kicks.start[1:-1])] == groups
        slow.search(groups, work, 7)
        search_walk(walk, kicks, work, 7)
        assert walk.tally.tolist() == [len(slow.chosen), len(slow.uncovered), slow.work, slow.step]
        assert walk.chosen[: walk.tally[0]].tolist() == slow.chosen
        assert walk.uncovered[: walk.tally[1]].tolist() == slow.uncovered
        assert (
            walk.rows["weight"][:-1].tolist() == slow.weight and walk.stamp.tolist() == slow.stamp
        )
        assert set(np.flatnonzero(walk.columns["best"][:-1]).tolist()) == slow.best
        assert walk.score.tolist() == [slow.score(c) for c in range(len(core.columns))]


def test_without_helpers_a_tenth_of_the_chosen_columns_is_flipped():
    """Every column covers a row alone: the last group is empty."""
    sets = [frozenset({e}) for e in range(12)] + family(random.Random(1), (2,), 12, 20)
    incidence, core = core_with(sets, lambda own: False)
    for column in core.columns.tolist():
        assert incidence.sets(np.array([column]))[0] in set_system(sets).sets()
    walk = walk_of(core, 2)
    slow, groups = slow_search(incidence, core, lambda own: False, 2)
    assert groups[-1] == []
    slow.search(groups, 3000, 5)
    search_walk(walk, kicks_of(core, incidence, walk.score), 3000, 5)
    assert (
        walk.chosen[: walk.tally[0]].tolist() == slow.chosen and walk.stamp.tolist() == slow.stamp
    )


def test_the_search_covers_a_reduced_core():
    sets = [frozenset({e}) for e in range(9)] + family(random.Random(3), (3,), 9, 40)
    incidence = incidence_of(set_system(sets))
    closed, (core,) = reduce_to_cores(incidence)
    chosen = search(core, incidence, work=20_000, seed=0)
    members = incidence.sets(np.concatenate([closed, core.columns[chosen]]))
    assert covers(sets, [frozenset(own) for own in members])
    np.testing.assert_array_equal(chosen, search(core, incidence, work=20_000, seed=0))
