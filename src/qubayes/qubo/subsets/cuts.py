"""Inequalities that every cover obeys and the relaxation of the integer program does not.

For any set A of elements, the members of a cover that lie in A cover the candidate sets that lie in A. Two singletons
are no triple, so whatever covers a triple contains one of its pairs, or the triple itself. Hence the members in A with
two or three elements are at least as many as the pairs that are needed to put one into each triple in A. For six
elements a table gives this number. For all twenty triples it is 6 (Turan: a graph on six vertices without a triangle
has at most nine of the fifteen edges), while the relaxation is content with 20 / 4 = 5. For a set of k > 6 elements the
inequalities of its k subsets of k - 1 add up to one in which each pair is counted k - 2 times, each triple k - 3 times;
divided by k - 2 and rounded up it holds too, and is as good as Turan's bound if all triples are there.
"""

from functools import lru_cache
from itertools import combinations, permutations
from typing import Any, NamedTuple

import numpy as np

from ...foundation.arrays import AnyArray, Floats, Ints, SmallInts
from ...foundation.jit import inner, kernel
from .incidence import Incidence, table_starts
from .presolve import Core
from .program import Program

SIX, MOST = 6, 8  # elements of a cut
TRIPLES = tuple((a, b, c) for c in range(SIX) for b in range(c) for a in range(b))  # also those of seven begin so
STARTS = 5000  # sets of elements that are grown at once
CUTS = 2000  # a round, of each number of elements
MOST_ELEMENTS = 256  # the cube of triples has 64 MB then
PAIRS = 0b0110100  # positions of {a, b}, {a, c}, {b, c} in {a, b, c}: masks 3, 5, 6, less one
BITS = np.zeros((SIX, SIX, SIX), dtype=np.int64)  # the bit of each triple of six in the table
for _bit, _triple in enumerate(TRIPLES):
    BITS[_triple] = 1 << _bit
BITS.setflags(write=False)


class Triples(NamedTuple):
    """The part of a core that the cuts speak of."""

    itself: SmallInts  # (n, n, n) open column {a, b, c} of a row, the number of columns if it is not open, -1 if no row
    column: SmallInts  # (n, n) the open column {a, b}, or the number of columns
    rows: SmallInts  # (triples, 3) elements of each such row


class Cuts(NamedTuple):
    """Sets of elements with as many members each, and how many pairs and triples inside them a cover has at least."""

    elements: SmallInts  # (cuts, k)
    lower: Floats  # (cuts,)


class Grown(NamedTuple):
    """Sets of elements, and for each number of elements the cut and by how much it is violated."""

    elements: SmallInts  # (sets, MOST)
    lower: Floats  # (sets, MOST + 1)
    excess: Floats  # (sets, MOST + 1)
    scratch: Ints  # (MOST,)


def triples_of(core: Core, incidence: Incidence) -> Triples:
    """The rows of three elements none of whose pairs is closed; none if there are too many elements."""
    rows = np.flatnonzero((core.row_table == table_starts()[3]) & (core.fixed & PAIRS == 0))
    sets = incidence.row_columns[incidence.row_start[core.rows[rows] + 1] - 1]
    members = incidence.members[incidence.set_start[sets][:, None] + np.arange(3)]
    names, numbers = np.unique(members, return_inverse=True)
    if len(names) > MOST_ELEMENTS:
        rows, numbers, names = rows[:0], numbers[:0], names[:0]
    elements: SmallInts = numbers.reshape(-1, 3).astype(np.int32)
    cube = np.full((len(names),) * 3, -1, dtype=np.int32)
    own = core.row_columns[core.row_start[rows] + 6]
    for order in permutations(range(3)):
        cube[tuple(elements[:, order].T)] = np.where(own >= 0, own, len(core.columns))
    return Triples(cube, _pair_columns(core, incidence, names), elements)


def _pair_columns(core: Core, incidence: Incidence, names: SmallInts) -> SmallInts:
    first, sizes = incidence.set_start[core.columns], np.diff(incidence.set_start)[core.columns]
    pairs = np.flatnonzero(sizes == 2)
    ends = incidence.members[first[pairs][:, None] + np.arange(2)]
    known = np.isin(ends, names).all(axis=1)
    a, b = np.searchsorted(names, ends[known].T)
    column = np.full((len(names), len(names)), len(core.columns), dtype=np.int32)
    column[a, b] = column[b, a] = pairs[known]
    return column


def violated_cuts(triples: Triples, values: Floats, random: np.random.Generator) -> list[Cuts]:
    """Cuts that the values violate, most violated first, by number of elements.

    Grown from random triples, element by element, each time by the element that gives the largest violation.
    """
    count = min(STARTS, len(triples.rows))
    grown = np.zeros((count, MOST), dtype=np.int32)
    grown[:, :3] = triples.rows[random.choice(len(triples.rows), count, replace=False)]
    lower, excess = np.zeros((2, count, MOST + 1))
    noise = random.uniform(0.0, 1e-3, len(triples.column))
    scratch = np.zeros(MOST, dtype=np.int64)
    _grow(triples, np.append(values, 0.0), smallest_edge_covers(), noise, Grown(grown, lower, excess, scratch))
    sizes = range(SIX, min(MOST, len(triples.column)) + 1)
    found = [_most_violated(grown[:, :size], lower[:, size], excess[:, size]) for size in sizes]
    return [cuts for cuts in found if len(cuts.lower)]


def _most_violated(elements: SmallInts, lower: Floats, excess: Floats) -> Cuts:
    order = np.flatnonzero(excess > 0.02)
    sets, first = np.unique(np.sort(elements[order], axis=1), axis=0, return_index=True)
    lower, excess = lower[order[first]], excess[order[first]]
    best = np.argsort(-excess, kind="stable")[:CUTS]
    return Cuts(sets[best], lower[best])


@kernel
def _grow(triples: Triples, weight: Floats, table: AnyArray, noise: Floats, sets: Grown) -> None:
    """Add elements to the first three of each set; note for each size the cut and by how much it is violated."""
    itself, column, _ = triples
    grown, lower, excess, scratch = sets
    elements = len(column)
    for start in range(len(grown)):
        own = grown[start]
        pattern = np.int64(1)
        carried = weight[itself[own[0], own[1], own[2]]]
        for a in range(3):
            carried += weight[column[own[a], own[(a + 1) % 3]]]
        for size in range(3, min(len(own), elements)):
            best, most, pattern_then, carried_then = -1, -1e9, pattern, carried
            for e in range(elements):
                held, bits, load, taken = 0, pattern, carried, False
                for a in range(size):
                    taken |= own[a] == e
                    load += weight[column[own[a], e]]
                    for b in range(a):
                        third = itself[own[b], own[a], e]
                        if third >= 0:
                            held += 1
                            load += weight[third]
                            if size < 6:
                                bits |= BITS[b, a, size]
                value = table[bits] - load if size < 6 else held / 3 - load
                value += noise[(e + start) % elements]
                if value > most and not taken:
                    best, most, pattern_then, carried_then = e, value, bits, load
            own[size], pattern, carried = best, pattern_then, carried_then
            if size >= 5:
                lower[start, size + 1] = _needed(itself, table, own, size + 1, scratch)
                excess[start, size + 1] = lower[start, size + 1] - carried


@kernel
def _needed(itself: SmallInts, table: AnyArray, own: SmallInts, size: int, parts: Ints) -> int:
    """Least number of pairs inside a set of 6, 7 or 8 elements, by the table and by rounding up sums."""
    if size == 6:
        return int(_least(itself, table, own, size, -1, -1))
    total = 0
    if size == 7:
        for i in range(7):
            total += _least(itself, table, own, size, i, -1)
        return (total + 4) // 5
    for i in range(8):
        parts[i] = 0
    for i in range(8):
        for j in range(i):
            least = _least(itself, table, own, size, i, j)
            parts[i] += least
            parts[j] += least
    for i in range(8):
        total += (parts[i] + 4) // 5
    return (total + 5) // 6


@inner
def _least(itself: SmallInts, table: AnyArray, own: SmallInts, size: int, i: int, j: int) -> int:
    """What the table says of the six elements that are left without the i-th and the j-th."""
    pattern, count = 0, 0
    for c in range(size):
        for b in range(c if c not in (i, j) else 0):
            for a in range(b if b not in (i, j) else 0):
                if a not in (i, j):
                    if itself[own[a], own[b], own[c]] >= 0:
                        pattern |= 1 << count
                    count += 1
    return int(table[pattern])


def with_cuts(program: Program, triples: Triples, found: list[Cuts]) -> Program:
    """The program with one more constraint per cut, at the end."""
    from scipy.sparse import csr_array

    matrix = program.matrix
    indices, lengths = [matrix.indices], [np.diff(matrix.indptr)]
    for cuts in found:
        size = cuts.elements.shape[1]
        pairs = cuts.elements.T[list(combinations(range(size), 2))]  # (pairs, 2, cuts)
        inside = cuts.elements.T[list(combinations(range(size), 3))]
        columns = np.concatenate(
            [triples.column[pairs[:, 0], pairs[:, 1]], triples.itself[inside[:, 0], inside[:, 1], inside[:, 2]]]
        ).T
        used = (columns >= 0) & (columns < program.choices)
        indices.append(columns[used])
        lengths.append(used.sum(axis=1))
    starts = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
    ones = np.ones(starts[-1] - len(matrix.data))
    data = np.concatenate([matrix.data, ones])
    whole: Any = csr_array((data, np.concatenate(indices), starts), shape=(len(starts) - 1, matrix.shape[1]))
    return Program(whole, np.concatenate([program.lower, *(cuts.lower for cuts in found)]), program.choices)


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
