"""Lower bounds on the size of a cover: the relaxation of the integer program, tightened by cuts on six elements.

For any set A of elements, the members of a cover that lie in A cover the candidate sets that lie in A. Two singletons
are no triple, so whatever covers a triple contains one of its pairs, or the triple itself. Hence the members in A with
two or three elements are at least as many as the pairs that are needed to put one into each triple in A, a number that
a table gives for six elements. For all twenty triples it is 6 (Turan: a graph on six vertices without a triangle has at
most nine of the fifteen edges), while the relaxation is content with 20 / 4 = 5.
"""

import math
from functools import lru_cache
from itertools import combinations, permutations
from typing import Any, NamedTuple

import numpy as np

from ..arrays import AnyArray, Bools, Floats, Ints
from ..jit import leaf
from .incidence import Incidence, table_starts
from .presolve import Core
from .program import Limits, Program, dual_bound, program_of, solver_of

SIX = 6
TRIPLES = tuple(combinations(range(SIX), 3))
STARTS = 5000  # sets of elements that are grown at once
CUTS = 2000  # a round
PAIRS = 0b0110100  # positions of {a, b}, {a, c}, {b, c} in {a, b, c}: masks 3, 5, 6, less one


class Triples(NamedTuple):
    """The part of a core that the cuts speak of."""

    itself: (
        AnyArray  # (n, n, n) the open column {a, b, c} of a row, the number of columns if it is not open, -1 if no row
    )
    column: Ints  # (n, n) the open column {a, b}, or the number of columns
    rows: Ints  # (triples, 3) elements of each such row


def packing_bound(core: Core) -> int:
    """Number of rows, chosen greedily, no two of which share an open column: each needs a column of its own."""
    order = np.argsort(np.bitwise_count(core.open), kind="stable")
    return int(_pack(core, order, np.zeros(len(core.columns), np.bool_)))


@leaf
def _pack(core: Core, order: Ints, used: Bools) -> int:
    found = 0
    for index in range(len(order)):
        first, last = core.row_start[order[index]], core.row_start[order[index] + 1]
        free = True
        for place in range(first, last):
            free &= core.row_columns[place] < 0 or not used[core.row_columns[place]]
        if free:
            found += 1
            for place in range(first, last):
                if core.row_columns[place] >= 0:
                    used[core.row_columns[place]] = True
    return found


def relaxation_bound(core: Core, incidence: Incidence, *, size: int, rounds: int, iterations: int) -> int:
    """A lower bound on every cover of the core; it stops when it proves that `size` is the smallest."""
    program = program_of(core)
    solver = solver_of(program, Limits(iterations=iterations), integer=False)
    triples = triples_of(core, incidence)
    random, best = np.random.default_rng(0), 0.0
    for _ in range(rounds + 1):
        solver.run()
        solution = solver.getSolution()
        best = max(best, dual_bound(program, np.array(solution.row_dual)))
        if whole(best) >= size or not len(triples.rows):
            break
        cuts = violated_cuts(triples, np.array(solution.col_value)[: program.choices], random)
        if not len(cuts):
            break
        program = add_cuts(solver, program, triples, cuts)
    return min(size, whole(best))


def whole(bound: float) -> int:
    """The smallest whole number that is not below the bound, but for rounding of sums."""
    return math.ceil(bound - 1e-6)


def triples_of(core: Core, incidence: Incidence) -> Triples:
    """The rows of three elements none of whose pairs is closed."""
    count = int(incidence.members.max(initial=-1)) + 1
    first, sizes = incidence.set_start[core.columns], np.diff(incidence.set_start)[core.columns]
    pairs = np.flatnonzero(sizes == 2)
    column = np.full((count, count), len(core.columns))
    a, b = incidence.members[first[pairs]], incidence.members[first[pairs] + 1]
    column[a, b] = column[b, a] = pairs
    rows = np.flatnonzero((core.row_table == table_starts()[3]) & (core.fixed & PAIRS == 0))
    itself = core.row_columns[core.row_start[rows] + 6]
    sets = incidence.row_columns[incidence.row_start[core.rows[rows] + 1] - 1]
    elements = incidence.members[incidence.set_start[sets][:, None] + np.arange(3)]
    cube = np.full((count, count, count), -1)
    for order in permutations(range(3)):
        cube[tuple(elements[:, order].T)] = np.where(itself >= 0, itself, len(core.columns))
    return Triples(cube, column, elements)


def violated_cuts(triples: Triples, values: Floats, random: np.random.Generator) -> Ints:
    """(cuts, 6) sets of elements whose pairs carry less than they must, the most violated first.

    Grown from random triples, element by element, each time by the element that gives the largest violation.
    """
    weight = np.append(values, 0.0)
    weights = (weight[triples.column], np.where(triples.itself >= 0, weight[triples.itself], 0.0))
    grown = triples.rows[random.choice(len(triples.rows), min(STARTS, len(triples.rows)), replace=False)]
    for _ in range(SIX - 3):
        excess = _excess(triples, weights, grown)
        excess += random.uniform(0.0, 1e-3, excess.shape)
        np.put_along_axis(excess, grown, -np.inf, axis=1)
        grown = np.concatenate([grown, excess.argmax(axis=1)[:, None]], axis=1)
    excess = np.take_along_axis(_excess(triples, weights, grown[:, :-1]), grown[:, -1:], axis=1)[:, 0]
    cuts, first = np.unique(np.sort(grown, axis=1), axis=0, return_index=True)
    excess = excess[first]
    order = np.argsort(-excess, kind="stable")[:CUTS]
    return cuts[order[excess[order] > 0.02]]


def _excess(triples: Triples, weights: tuple[Floats, Floats], grown: Ints) -> Floats:
    """(sets, n) by how much the subsets of grown + {e} carry less than they must, for every element e."""
    pairs, itself = weights
    pattern = np.zeros((len(grown), len(pairs)), dtype=np.int64)
    carried = np.zeros((len(grown), len(pairs)))
    size = grown.shape[1]
    for a, b in combinations(range(size), 2):
        carried += pairs[grown[:, a], grown[:, b]][:, None] + itself[grown[:, a], grown[:, b]]
        pattern |= (triples.itself[grown[:, a], grown[:, b]] >= 0).astype(np.int64) << TRIPLES.index((a, b, size))
    for t in combinations(range(size), 3):
        where = tuple(grown[:, t].T)
        carried += itself[where][:, None]
        pattern |= (triples.itself[where] >= 0).astype(np.int64)[:, None] << TRIPLES.index(t)
    for a in range(size):
        carried += pairs[grown[:, a]]
    return smallest_edge_covers()[pattern] - carried


def add_cuts(solver: Any, program: Program, triples: Triples, cuts: Ints) -> Program:
    """The program with one more constraint per cut; the solver gets them too."""
    from scipy.sparse import csr_array, vstack

    parts = [triples.column[tuple(cuts[:, pair].T)] for pair in combinations(range(SIX), 2)]
    inside = np.stack([triples.itself[tuple(cuts[:, t].T)] for t in TRIPLES], axis=1)  # (cuts, 20)
    lower = smallest_edge_covers()[((inside >= 0).astype(np.int64) << np.arange(len(TRIPLES))).sum(axis=1)].astype(
        float
    )
    columns = np.concatenate([np.stack(parts, axis=1), inside], axis=1)
    used = (columns >= 0) & (columns < program.choices)
    starts = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
    index, ones = columns[used].astype(np.int32), np.ones(int(used.sum()))
    solver.addRows(len(cuts), lower, np.full(len(cuts), np.inf), len(index), starts[:-1].astype(np.int32), index, ones)
    rows = csr_array((ones, index, starts), shape=(len(cuts), program.matrix.shape[1]))
    return Program(vstack([program.matrix, rows], format="csr"), np.append(program.lower, lower), program.choices)


@lru_cache(maxsize=1)
def smallest_edge_covers() -> AnyArray:
    """For each set of triples of six elements (20 bits) the least number of pairs that meet them all in a pair."""
    edges = list(combinations(range(SIX), 2))
    meets = [sum(1 << t for t, triple in enumerate(TRIPLES) if set(edge) <= set(triple)) for edge in edges]
    covered, sizes = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.uint8)
    for mask in meets:
        covered, sizes = np.concatenate([covered, covered | mask]), np.concatenate([sizes, sizes + 1])
    best = np.full(2 ** len(TRIPLES), 255, dtype=np.uint8)
    np.minimum.at(best, covered, sizes)
    for bit in range(len(TRIPLES)):  # what covers more also covers less
        halves = best.reshape(-1, 2, 2**bit)
        np.minimum(halves[:, 0], halves[:, 1], out=halves[:, 0])
    return best
