"""Lower bounds on the size of a cover: disjoint rows, and a linear relaxation with cuts.

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
from ...foundation.jit import inlined, kernel
from .instance import Incidence, table_starts
from .reductions import Core
from .smallest_cover import CoverProgram, dual_bound, program_of

# Steps of the relaxation between two rounds of cuts; the bound is then within 0.5 % of it.
STEPS_PER_ROUND = 200
FINISH = 500  # steps at the end; within 0.1 %
CHECK = 100  # steps between two evaluations of the bound
RESTART = 1000  # steps after which an average is restarted in any case
# Ratio of dual to primal steps; 1 and more take three times the steps on chess, m = 3.
BALANCE = 0.1
CLOSE = 1e-4  # a relative error at which to stop
SIX = 6  # elements of the smallest cut
CUT_ELEMENTS = 8  # elements of the largest cut
# Those of the first six elements come first.
TRIPLES = tuple(sorted(combinations(range(CUT_ELEMENTS), 3), key=lambda triple: triple[::-1]))


def _triples_without(pair: tuple[int, int]) -> list[int]:
    """Return the numbers of the triples that are disjoint from the pair."""
    return [number for number, own in enumerate(TRIPLES) if set(own).isdisjoint(pair)]


SIXES = np.array([_triples_without(pair) for pair in combinations(range(CUT_ELEMENTS), 2)])
GROWN = 5000  # sets of elements that are grown at once
CUTS = 2000  # a round, of each number of elements
MOST_ELEMENTS = 256  # the cube of triples has 64 MB then
PAIRS = 0b0110100  # positions of {a, b}, {a, c}, {b, c} in {a, b, c}: masks 3, 5, 6, minus one
BITS = np.zeros((SIX, SIX, SIX), dtype=np.int64)  # the bit of each triple of six in the table
for _bit, _triple in enumerate(TRIPLES[:20]):
    BITS[_triple] = 1 << _bit
BITS.setflags(write=False)


def packing_bound(core: Core) -> int:
    """Return the number of rows, chosen greedily, no two of which share an open column."""
    starts = core.row_start.tolist()
    columns = core.row_columns.tolist()
    used: set[int] = set()
    found = 0
    for row in np.argsort(np.bitwise_count(core.open), kind="stable").tolist():
        own = [column for column in columns[starts[row] : starts[row + 1]] if column >= 0]
        if used.isdisjoint(own):
            used.update(own)
            found += 1
    return found


def relaxation_bound(
    core: Core, incidence: Incidence, *, size: int, rounds: int, most_elements: int = MOST_ELEMENTS
) -> int:
    """Return a lower bound on every cover of the core; stop once it proves `size` the smallest.

    A core of more than `most_elements` elements gets no cuts."""
    program = program_of(core)
    triples = triples_of(core, incidence, most_elements)
    relaxation = CoverRelaxation.of(program)
    random = np.random.default_rng(0)
    enough = size - 1 + 1e-6
    before = 0.0
    advance(relaxation, STEPS_PER_ROUND, enough=enough)
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
        advance(relaxation, STEPS_PER_ROUND, enough=enough)
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
        self.program = CoverProgram(matrix[used], lower[used], choices)
        self.duals = self.duals[used]

    def extend(self, program: CoverProgram) -> None:
        """Continue at the same point of a program with more constraints at the end."""
        more = np.zeros(program.matrix.shape[0] - len(self.duals))
        self.program = program
        self.duals = np.append(self.duals, more)

    def error(self, transposed: Any, values: Floats, duals: Floats) -> float:
        """Return how far a point is from optimal: its gap and violations. Keep the best bound."""
        program = self.program
        bound = dual_bound(program, duals, transposed)
        self.bound = max(self.bound, bound)
        missing = np.maximum(program.lower - program.matrix @ values, 0.0)
        gap = values[: program.choices].sum() - bound
        return float(np.sqrt(gap**2 + (missing * missing).sum()))


def advance(relaxation: CoverRelaxation, steps: int, *, enough: float) -> None:
    """Take primal-dual steps until the bound is enough or the point is nearly optimal.

    Primal-dual hybrid gradient with diagonal steps and restarts at averages (as in PDLP, Applegate
    et al. 2021). A step costs two products with the matrix. Added rows continue from the present
    point, which an interior point method cannot do; and any dual point gives a bound
    (`dual_bound`), so nothing depends on how far the method converged."""
    state, transposed = PrimalDual.of(relaxation)
    taken = 0
    least = np.inf
    for _ in range(0, steps, CHECK):
        primal_dual_steps(state, CHECK)
        taken += CHECK
        points = [(state.values, state.duals), (state.value_sum / taken, state.dual_sum / taken)]
        errors = [relaxation.error(transposed, *point) for point in points]
        better = errors.index(min(errors))
        values, duals = points[better]
        relaxation.values = values.copy()
        relaxation.duals = duals.copy()
        if relaxation.bound > enough or errors[better] < CLOSE * relaxation.bound:
            break
        if errors[better] < 0.5 * least or taken >= RESTART:
            taken = 0
            least = errors[better]
            state.values[:] = relaxation.values
            state.duals[:] = relaxation.duals
            state.value_sum[:] = 0.0
            state.dual_sum[:] = 0.0


class SignMatrix(NamedTuple):
    """A sparse matrix of 1 and -1 in compressed rows."""

    start: SmallInts  # (rows + 1,)
    entries: SmallInts  # the column of each entry, ~column where it is -1

    @staticmethod
    def of(matrix: Any) -> "SignMatrix":
        """Return the same matrix."""
        return SignMatrix(matrix.indptr, np.where(matrix.data > 0, matrix.indices, ~matrix.indices))


class PrimalDual(NamedTuple):
    """The program as the kernel sees it, the current point, and sums since the last restart.

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
        program = relaxation.program
        matrix = program.matrix
        transposed = matrix.T.tocsr()
        state = PrimalDual(
            rows=SignMatrix.of(matrix),
            columns=SignMatrix.of(transposed),
            lower=program.lower,
            costs=program.costs,
            row_steps=1.0 / np.maximum(np.diff(matrix.indptr), 1) * BALANCE,
            column_steps=1.0 / np.maximum(np.diff(transposed.indptr), 1) / BALANCE,
            values=relaxation.values.copy(),
            duals=relaxation.duals.copy(),
            value_sum=np.zeros(matrix.shape[1]),
            dual_sum=np.zeros(matrix.shape[0]),
            ahead=np.zeros(matrix.shape[1]),
        )
        return state, transposed


@kernel
def primal_dual_steps(state: PrimalDual, count: int) -> None:
    """Move variables against their reduced costs, then duals against the slack of their rows."""
    for _ in range(count):
        _primal_step(state)
        _dual_step(state)


@inlined
def _primal_step(state: PrimalDual) -> None:
    """Move the variables, and extrapolate their moves."""
    columns = state.columns
    for index in range(len(state.values)):
        price = 0.0
        for place in range(columns.start[index], columns.start[index + 1]):
            entry = columns.entries[place]
            price += state.duals[entry] if entry >= 0 else -state.duals[~entry]
        before = state.values[index]
        moved = before - state.column_steps[index] * (state.costs[index] - price)
        value = min(1.0, max(0.0, moved))
        state.ahead[index] = value + value - before
        state.values[index] = value
        state.value_sum[index] += value


@inlined
def _dual_step(state: PrimalDual) -> None:
    """Move the duals by the extrapolated variables."""
    rows = state.rows
    for index in range(len(state.duals)):
        total = 0.0
        for place in range(rows.start[index], rows.start[index + 1]):
            entry = rows.entries[place]
            total += state.ahead[entry] if entry >= 0 else -state.ahead[~entry]
        moved = state.duals[index] + state.row_steps[index] * (state.lower[index] - total)
        state.duals[index] = max(0.0, moved)
        state.dual_sum[index] += state.duals[index]


class Triples(NamedTuple):
    """Rows and columns of a core that cuts consist of."""

    # (n, n, n) open column {a, b, c} of a row; the number of columns if not open; -1: no row
    itself: SmallInts
    column: SmallInts  # (n, n) the open column {a, b}, or the number of columns
    rows: SmallInts  # (triples, 3) elements of each such row


class ElementCuts(NamedTuple):
    """Element sets of one size, and the least number of pairs and triples in them in a cover."""

    elements: SmallInts  # (cuts, k)
    lower: Floats  # (cuts,)


def triples_of(core: Core, incidence: Incidence, most_elements: int = MOST_ELEMENTS) -> Triples:
    """Return the rows of three elements without a closed pair; none for too many elements."""
    rows = np.flatnonzero((core.row_table == table_starts()[3]) & (core.fixed & PAIRS == 0))
    sets = incidence.row_columns[incidence.row_start[core.rows[rows] + 1] - 1]
    members = incidence.members[incidence.set_start[sets][:, None] + np.arange(3)]
    names, numbers = np.unique(members, return_inverse=True)
    if len(names) > most_elements:
        rows = rows[:0]
        numbers = numbers[:0]
        names = names[:0]
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
    count = min(GROWN, len(triples.rows))
    grown = np.zeros((count, CUT_ELEMENTS), dtype=np.int32)
    grown[:, :3] = triples.rows[random.choice(len(triples.rows), count, replace=False)]
    loads = np.zeros((count, CUT_ELEMENTS + 1))
    noise = random.uniform(0.0, 1e-3, len(triples.column))
    pool = GrowthPool(triples.itself, triples.column, np.append(values, 0.0), noise)
    grow_sets(pool, smallest_edge_covers(), grown, loads)
    needed = pairs_needed(triples.itself, grown)
    found = []
    for size in range(SIX, min(CUT_ELEMENTS, len(triples.column)) + 1):
        excess = needed[size] - loads[:, size]
        violated = np.flatnonzero(excess > 0.02)
        sets, first = np.unique(np.sort(grown[violated, :size], axis=1), axis=0, return_index=True)
        best = np.argsort(-excess[violated[first]], kind="stable")[:CUTS]
        if len(best):
            lower = needed[size][violated[first[best]]].astype(np.float64)
            found.append(ElementCuts(sets[best], lower))
    return found


class GrowthPool(NamedTuple):
    """What sets of elements are grown from; the first two are those of `Triples`."""

    itself: SmallInts
    column: SmallInts
    weight: Floats  # (columns + 1,) value of each open column, and 0
    noise: Floats  # (n,) breaks ties


@kernel
def grow_sets(pool: GrowthPool, table: AnyArray, grown: AnyArray, loads: Floats) -> None:
    """Add elements to the first three of each set; note for each size the weight inside."""
    column = pool.column
    elements = len(column)
    for start in range(len(grown)):
        own = grown[start]
        pattern = 1
        carried = pool.weight[pool.itself[own[0], own[1], own[2]]]
        for a in range(3):
            carried += pool.weight[column[own[a], own[(a + 1) % 3]]]
        for size in range(3, min(len(own), elements)):
            best = -1
            most = -math.inf
            best_pattern = pattern
            best_load = carried
            for e in range(elements):
                held, bits, load, taken = _with_element(pool, own, size, e, pattern, carried)
                value = table[bits] - load if size < SIX else held / 3 - load
                value += pool.noise[(e + start) % elements]
                if value > most and not taken:
                    best = e
                    most = value
                    best_pattern = bits
                    best_load = load
            own[size] = best
            pattern = best_pattern
            carried = best_load
            loads[start, size + 1] = carried


@inlined
def _with_element(
    pool: GrowthPool, own: AnyArray, size: int, e: int, pattern: int, load: float
) -> tuple[int, int, float, bool]:
    """Return what element e adds to a set: triples, pattern, weight; and whether it is inside."""
    held = 0
    taken = False
    for a in range(size):
        taken |= own[a] == e
        load += pool.weight[pool.column[own[a], e]]
        for b in range(a):
            third = pool.itself[own[b], own[a], e]
            if third >= 0:
                held += 1
                load += pool.weight[third]
                if size < SIX:
                    pattern |= BITS[b, a, size]
    return held, pattern, load, taken


def pairs_needed(itself: SmallInts, sets: SmallInts) -> dict[int, Ints]:
    """Return by size 6, 7, 8 a lower bound on the pairs that meet the triples of first elements.

    By the table for each six of the eight elements, and by sums that are rounded up.
    """
    a, b, c = np.transpose(TRIPLES)
    present = itself[sets.T[a], sets.T[b], sets.T[c]] >= 0  # (triples, sets)
    packed = np.packbits(present[SIXES], axis=1, bitorder="little").astype(np.int32)
    i, j = np.triu_indices(CUT_ELEMENTS, 1)
    least = np.zeros(
        (CUT_ELEMENTS, CUT_ELEMENTS, len(sets)), np.int64
    )  # of the six that are left without two
    patterns = packed[:, 0] | packed[:, 1] << 8 | packed[:, 2] << 16  # (sixes, sets)
    least[i, j] = smallest_edge_covers()[patterns]
    least[j, i] = least[i, j]
    of_seven = (least.sum(axis=1) + 4) // 5  # without one
    return {6: least[6, 7], 7: of_seven[7], 8: (of_seven.sum(axis=0) + 5) // 6}


def with_cuts(program: CoverProgram, triples: Triples, found: list[ElementCuts]) -> CoverProgram:
    """Return the program with one more constraint per cut, at the end."""
    matrix = program.matrix
    indices = [matrix.indices]
    lengths = [np.diff(matrix.indptr)]
    for cuts in found:
        columns = _columns_inside(triples, cuts)
        used = (columns >= 0) & (columns < program.choices)
        indices.append(columns[used])
        lengths.append(used.sum(axis=1))
    starts = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
    data = np.concatenate([matrix.data, np.ones(starts[-1] - len(matrix.data))])
    entries = data, np.concatenate(indices), starts
    longer: Any = sparse.csr_array(entries, shape=(len(starts) - 1, matrix.shape[1]))
    lower = np.concatenate([program.lower, *(cuts.lower for cuts in found)])
    return CoverProgram(longer, lower, program.choices)


def _columns_inside(triples: Triples, cuts: ElementCuts) -> SmallInts:
    """Return (cuts, pairs + triples) the columns of the pairs and triples inside each cut."""
    elements = cuts.elements.T
    a, b = elements[list(combinations(range(len(elements)), 2))].transpose(1, 0, 2)
    pairs = triples.column[a, b]
    a, b, c = elements[list(combinations(range(len(elements)), 3))].transpose(1, 0, 2)
    return np.concatenate([pairs, triples.itself[a, b, c]]).T


@lru_cache(maxsize=1)
def smallest_edge_covers() -> AnyArray:
    """Return for each set of triples of six elements (20 bits) the fewest pairs that meet all."""
    triples = TRIPLES[:20]
    covered = np.zeros(1, dtype=np.int64)
    sizes = np.zeros(1, dtype=np.uint8)
    for edge in combinations(range(SIX), 2):
        met = sum(1 << t for t, triple in enumerate(triples) if set(edge) <= set(triple))
        covered = np.concatenate([covered, covered | met])
        sizes = np.concatenate([sizes, sizes + 1])
    best = np.full(2 ** len(triples), 255, dtype=np.uint8)
    np.minimum.at(best, covered, sizes)
    for bit in range(len(triples)):  # what covers more also covers less
        halves = best.reshape(-1, 2, 2**bit)
        np.minimum(halves[:, 0], halves[:, 1], out=halves[:, 0])
    return best
