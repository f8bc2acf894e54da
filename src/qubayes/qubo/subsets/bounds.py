"""Lower bounds on the size of a cover: disjoint rows, and the relaxation of the integer program with cuts.

Cuts are inequalities that every cover obeys and the relaxation does not. For any set A of elements,
the members of a cover that lie in A cover the candidate sets that lie in A. Two singletons do not
make a triple, so what covers a triple contains one of its pairs, or the triple itself. Hence the
members in A with two or three elements are at least as many as the pairs that are needed to put one
into each triple in A. For six elements a table gives this number. For all twenty triples it is 6
(Turan: a graph on six vertices without a triangle has at most nine of the fifteen edges), while the
relaxation is content with 20 / 4 = 5. For a set of k > 6 elements the inequalities of its k subsets
of k - 1 add up to one in which each pair is counted k - 2 times, each triple k - 3 times; divided
by k - 2 and rounded up it holds too, and is as good as Turan's bound if all triples are there."""

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, permutations
from typing import Any, NamedTuple

import numpy as np

from ...foundation.arrays import AnyArray, Bools, Floats, Ints, SmallInts
from ...foundation.environment import sparse
from ...foundation.jit import kernel
from .instance import Incidence, table_starts
from .reductions import Core
from .smallest_cover import CoverProgram, dual_bound, program_of

# steps of the relaxation between two rounds of cuts; the bound is then within 0.5 % of the
# relaxation's
ROUND = 200
FINISH = 500  # steps at the end; within 0.1 %
CHECK = 100  # steps between two evaluations of the bound
LONGEST = 1000  # steps after which an average is restarted in any case
# ratio of dual to primal steps; 1 and more take three times the steps on the vertices of chess, m =
# 3
BALANCE = 0.1
CLOSE = 1e-4  # a relative error at which to stop
SIX, MOST = 6, 8  # elements of a cut
# those of the first six come first
TRIPLES = tuple((a, b, c) for c in range(MOST) for b in range(c) for a in range(b))
SIXES = np.array(
    [
        [t for t, own in enumerate(TRIPLES) if not {i, j} & {*own}]
        for i, j in combinations(range(MOST), 2)
    ]
)
STARTS = 5000  # sets of elements that are grown at once
CUTS = 2000  # a round, of each number of elements
MOST_ELEMENTS = 256  # the cube of triples has 64 MB then
PAIRS = 0b0110100  # positions of {a, b}, {a, c}, {b, c} in {a, b, c}: masks 3, 5, 6, minus one
BITS = np.zeros((SIX, SIX, SIX), dtype=np.int64)  # the bit of each triple of six in the table
for _bit, _triple in enumerate(TRIPLES[:20]):
    BITS[_triple] = 1 << _bit
BITS.setflags(write=False)


def packing_bound(core: Core) -> int:
    """Return the number of rows, chosen greedily, no two of which share an open column: each needs its own column."""
    starts, columns = core.row_start.tolist(), core.row_columns.tolist()
    used: set[int] = set()
    found = 0
    for row in np.argsort(np.bitwise_count(core.open), kind="stable").tolist():
        own = [column for column in columns[starts[row] : starts[row + 1]] if column >= 0]
        if used.isdisjoint(own):
            used.update(own)
            found += 1
    return found


def relaxation_bound(core: Core, incidence: Incidence, *, size: int, rounds: int) -> int:
    """Return a lower bound on every cover of the core; stop once it proves that `size` is the smallest."""
    program, triples = program_of(core), triples_of(core, incidence)
    relaxation, random = CoverRelaxation.of(program), np.random.default_rng(0)
    enough, before = size - 1 + 1e-6, 0.0
    advance(relaxation, ROUND, enough=enough)
    for _ in range(rounds if len(triples.column) >= SIX else 0):
        reach = relaxation.bound + 2 * (relaxation.bound - before)
        if relaxation.bound > enough or rounded_up(reach) == rounded_up(relaxation.bound):
            break
        before = relaxation.bound
        found = violated_cuts(triples, relaxation.values[: program.choices], random)
        if not found:
            break
        used = (relaxation.duals > 1e-6) | (np.arange(len(relaxation.duals)) < len(program.lower))
        relaxation.keep_rows(used)
        relaxation.extend(with_cuts(relaxation.program, triples, found))
        advance(relaxation, ROUND, enough=enough)
    if rounded_up(relaxation.bound) < rounded_up(float(relaxation.values[: program.choices].sum())):
        advance(relaxation, FINISH, enough=enough)
    return min(size, rounded_up(relaxation.bound))


def rounded_up(bound: float) -> int:
    """Return the smallest integer that is not below the bound, but for the rounding of sums."""
    return math.ceil(bound - 1e-6)


@dataclass
class CoverRelaxation:
    """The point that the first-order method has reached, and the best bound so far."""

    program: CoverProgram
    values: Floats  # (variables,)
    duals: Floats  # (constraints,)
    bound: float = 0.0

    @staticmethod
    def of(program: CoverProgram) -> "CoverRelaxation":
        """Return the relaxation before the first step."""
        constraints, variables = program.matrix.shape
        return CoverRelaxation(program, np.zeros(variables), np.zeros(constraints))

    def keep_rows(self, used: Bools) -> None:
        """Drop the other constraints."""
        matrix, lower, choices = self.program
        self.program, self.duals = (
            CoverProgram(matrix[used], lower[used], choices),
            self.duals[used],
        )

    def extend(self, program: CoverProgram) -> None:
        """Continue at the same point of a program with more constraints at the end."""
        more = np.zeros(program.matrix.shape[0] - len(self.duals))
        self.program, self.duals = program, np.append(self.duals, more)

    def error(self, transposed: Any, values: Floats, duals: Floats) -> float:
        """Return the distance of a point from optimality, its gap and its violations; keep its bound if it is best."""
        program = self.program
        bound = dual_bound(program, duals, transposed)
        self.bound = max(self.bound, bound)
        missing = np.maximum(program.lower - program.matrix @ values, 0.0)
        return float(
            np.sqrt((values[: program.choices].sum() - bound) ** 2 + (missing * missing).sum())
        )


def advance(relaxation: CoverRelaxation, steps: int, *, enough: float) -> None:
    """Take primal-dual steps until the bound is enough, the point is nearly optimal, or the steps are used up.

    Primal-dual hybrid gradient with diagonal steps and restarts at averages (as in PDLP, Applegate
    et al. 2021). A step costs two products with the matrix. Added rows continue from the present
    point, which an interior point method cannot do; and any dual point gives a bound
    (`dual_bound`), so nothing depends on how far the method converged."""
    state, transposed = PrimalDual.of(relaxation)
    taken, least = 0, np.inf
    for _ in range(0, steps, CHECK):
        primal_dual_steps(state, CHECK)
        taken += CHECK
        points = [(state.values, state.duals), (state.value_sum / taken, state.dual_sum / taken)]
        errors = [relaxation.error(transposed, *point) for point in points]
        better = errors.index(min(errors))
        relaxation.values, relaxation.duals = points[better][0].copy(), points[better][1].copy()
        if relaxation.bound > enough or errors[better] < CLOSE * relaxation.bound:
            break
        if errors[better] < 0.5 * least or taken >= LONGEST:
            taken, least = 0, errors[better]
            state.values[:], state.duals[:] = relaxation.values, relaxation.duals
            state.value_sum[:], state.dual_sum[:] = 0.0, 0.0


class SignMatrix(NamedTuple):
    """A sparse matrix of 1 and -1 in compressed rows."""

    start: SmallInts  # (rows + 1,)
    entries: SmallInts  # the column of each entry, ~column where it is -1

    @staticmethod
    def of(matrix: Any) -> "SignMatrix":
        """Return the same matrix."""
        return SignMatrix(matrix.indptr, np.where(matrix.data > 0, matrix.indices, ~matrix.indices))


class PrimalDual(NamedTuple):
    """The program as the kernel sees it, the current point, and the sums of the points since the last restart.

    A fused kernel, not products by scipy: on cores of a hundred columns those take three times as
    long."""

    rows: SignMatrix
    columns: SignMatrix
    lower: Floats  # (constraints,)
    costs: Floats  # (variables,)
    row_steps: Floats  # (constraints,)
    column_steps: Floats  # (variables,)
    values: Floats  # (variables,)
    duals: Floats  # (constraints,)
    value_sum: Floats  # (variables,)
    dual_sum: Floats  # (constraints,)
    ahead: Floats  # (variables,) extrapolated values

    @staticmethod
    def of(relaxation: CoverRelaxation) -> tuple["PrimalDual", Any]:
        """Return the state of the kernel, and the transposed matrix."""
        program, values, duals = relaxation.program, relaxation.values, relaxation.duals
        transposed = program.matrix.T.tocsr()
        row_steps, column_steps = (
            1.0 / np.maximum(np.diff(part.indptr), 1) for part in (program.matrix, transposed)
        )
        state = PrimalDual(
            SignMatrix.of(program.matrix), SignMatrix.of(transposed), program.lower, program.costs, row_steps * BALANCE,
            column_steps / BALANCE, values.copy(), duals.copy(), np.zeros(len(values)), np.zeros(len(duals)),
            np.zeros(len(values)),
        )  # fmt: skip
        return state, transposed


@kernel
def primal_dual_steps(state: PrimalDual, count: int) -> None:
    """Move variables against their reduced costs, then duals against the slack of their rows one step ahead."""
    (
        rows,
        columns,
        lower,
        costs,
        row_steps,
        column_steps,
        values,
        duals,
        value_sum,
        dual_sum,
        ahead,
    ) = state
    for _ in range(count):
        for index in range(len(values)):
            price = 0.0
            for place in range(columns.start[index], columns.start[index + 1]):
                entry = columns.entries[place]
                price += duals[entry] if entry >= 0 else -duals[~entry]
            value = min(1.0, max(0.0, values[index] - column_steps[index] * (costs[index] - price)))
            ahead[index] = value + value - values[index]
            values[index] = value
            value_sum[index] += value
        for index in range(len(duals)):
            total = 0.0
            for place in range(rows.start[index], rows.start[index + 1]):
                entry = rows.entries[place]
                total += ahead[entry] if entry >= 0 else -ahead[~entry]
            duals[index] = max(0.0, duals[index] + row_steps[index] * (lower[index] - total))
            dual_sum[index] += duals[index]


class Triples(NamedTuple):
    """Rows and columns of a core that cuts consist of."""

    # (n, n, n) open column {a, b, c} of a row, the number of columns if it is not open, -1 if no
    # row
    itself: SmallInts
    column: SmallInts  # (n, n) the open column {a, b}, or the number of columns
    rows: SmallInts  # (triples, 3) elements of each such row


class ElementCuts(NamedTuple):
    """Sets of elements, all of one size, and the least number of pairs and triples inside them in a cover."""

    elements: SmallInts  # (cuts, k)
    lower: Floats  # (cuts,)


def triples_of(core: Core, incidence: Incidence) -> Triples:
    """Return the rows of three elements none of whose pairs is closed; none if there are too many elements."""
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
    pairs = np.flatnonzero(np.diff(incidence.set_start)[core.columns] == 2)
    ends = incidence.members[incidence.set_start[core.columns[pairs]][:, None] + np.arange(2)]
    known = np.isin(ends, names).all(axis=1)
    a, b = np.searchsorted(names, ends[known].T)
    column = np.full((len(names), len(names)), len(core.columns), dtype=np.int32)
    column[a, b] = column[b, a] = pairs[known]
    return Triples(cube, column, elements)


def violated_cuts(
    triples: Triples, values: Floats, random: np.random.Generator
) -> list[ElementCuts]:
    """Return cuts that the values violate, most violated first, by number of elements.

    Grown from random triples, element by element, each time by the element that gives the largest
    violation."""
    count = min(STARTS, len(triples.rows))
    grown = np.zeros((count, MOST), dtype=np.int32)
    grown[:, :3] = triples.rows[random.choice(len(triples.rows), count, replace=False)]
    loads = np.zeros((count, MOST + 1))
    noise = random.uniform(0.0, 1e-3, len(triples.column))
    _grow(
        triples.itself,
        triples.column,
        np.append(values, 0.0),
        smallest_edge_covers(),
        noise,
        grown,
        loads,
    )
    needed, found = pairs_needed(triples.itself, grown), []
    for size in range(SIX, min(MOST, len(triples.column)) + 1):
        excess = needed[size] - loads[:, size]
        violated = np.flatnonzero(excess > 0.02)
        sets, first = np.unique(np.sort(grown[violated, :size], axis=1), axis=0, return_index=True)
        best = np.argsort(-excess[violated[first]], kind="stable")[:CUTS]
        if len(best):
            found.append(
                ElementCuts(sets[best], needed[size][violated[first[best]]].astype(np.float64))
            )
    return found


@kernel
def _grow(
    itself: SmallInts,
    column: SmallInts,
    weight: Floats,
    table: AnyArray,
    noise: Floats,
    grown: AnyArray,
    loads: Floats,
) -> None:
    """Add elements to the first three of each set; note for each size the weight of the pairs and triples inside."""
    elements = len(column)
    for start in range(len(grown)):
        own = grown[start]
        pattern, carried = 1, weight[itself[own[0], own[1], own[2]]]
        for a in range(3):
            carried += weight[column[own[a], own[(a + 1) % 3]]]
        for size in range(3, min(len(own), elements)):
            best, most, pattern_then, carried_then = -1, -math.inf, pattern, carried
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
                            if size < SIX:
                                bits |= BITS[b, a, size]
                value = table[bits] - load if size < SIX else held / 3 - load
                value += noise[(e + start) % elements]
                if value > most and not taken:
                    best, most, pattern_then, carried_then = e, value, bits, load
            own[size], pattern, carried = best, pattern_then, carried_then
            loads[start, size + 1] = carried


def pairs_needed(itself: SmallInts, sets: SmallInts) -> dict[int, Ints]:
    """Return by size 6, 7, 8 a lower bound on the pairs that put one into each triple of the first elements of a set.

    By the table for each six of the eight elements, and by sums that are rounded up.
    """
    a, b, c = np.transpose(TRIPLES)
    present = itself[sets.T[a], sets.T[b], sets.T[c]] >= 0  # (triples, sets)
    # (sixes, 3, sets)
    packed = np.packbits(present[SIXES], axis=1, bitorder="little").astype(np.int32)
    i, j = np.triu_indices(MOST, 1)
    least = np.zeros((MOST, MOST, len(sets)), np.int64)  # of the six that are left without two
    least[i, j] = smallest_edge_covers()[packed[:, 0] | packed[:, 1] << 8 | packed[:, 2] << 16]
    least[j, i] = least[i, j]
    of_seven = (least.sum(axis=1) + 4) // 5  # without one
    return {6: least[6, 7], 7: of_seven[7], 8: (of_seven.sum(axis=0) + 5) // 6}


def with_cuts(program: CoverProgram, triples: Triples, found: list[ElementCuts]) -> CoverProgram:
    """Return the program with one more constraint per cut, at the end."""
    matrix = program.matrix
    indices, lengths = [matrix.indices], [np.diff(matrix.indptr)]
    for cuts in found:
        size = cuts.elements.shape[1]
        pairs = cuts.elements.T[list(combinations(range(size), 2))]  # (pairs, 2, cuts)
        inside = cuts.elements.T[list(combinations(range(size), 3))]
        columns = np.concatenate(
            [
                triples.column[pairs[:, 0], pairs[:, 1]],
                triples.itself[inside[:, 0], inside[:, 1], inside[:, 2]],
            ]
        ).T
        used = (columns >= 0) & (columns < program.choices)
        indices.append(columns[used])
        lengths.append(used.sum(axis=1))
    starts = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
    data = np.concatenate([matrix.data, np.ones(starts[-1] - len(matrix.data))])
    longer: Any = sparse.csr_array(
        (data, np.concatenate(indices), starts), shape=(len(starts) - 1, matrix.shape[1])
    )
    return CoverProgram(
        longer, np.concatenate([program.lower, *(cuts.lower for cuts in found)]), program.choices
    )


@lru_cache(maxsize=1)
def smallest_edge_covers() -> AnyArray:
    """Return for each set of triples of six elements (20 bits) the least number of pairs that meet them all."""
    triples, edges = TRIPLES[:20], combinations(range(SIX), 2)
    meets = [
        sum(1 << t for t, triple in enumerate(triples) if set(edge) <= set(triple))
        for edge in edges
    ]
    covered, sizes = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.uint8)
    for mask in meets:
        covered, sizes = (
            np.concatenate([covered, covered | mask]),
            np.concatenate([sizes, sizes + 1]),
        )
    best = np.full(2 ** len(triples), 255, dtype=np.uint8)
    np.minimum.at(best, covered, sizes)
    for bit in range(len(triples)):  # what covers more also covers less
        halves = best.reshape(-1, 2, 2**bit)
        np.minimum(halves[:, 0], halves[:, 1], out=halves[:, 0])
    return best
