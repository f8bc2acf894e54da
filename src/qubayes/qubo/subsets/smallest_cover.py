"""Smallest covers of a core: an integer program on HiGHS, and branch and bound for few columns.

The program is that of the paper's Appendix C.1 without Assumption 2: minimise sum v_V, where for
each open set W
    sum of v_V over the V that cover W alone + sum of y_{W,{V,V'}} over the pairs that cover W
    together >= 1, sum of y_{W,{V,V'}} over V' <= v_V   for each V.
The paper writes rho for y and links it by 2 rho <= v + v' <= 1 + rho. Here W chooses one of its
representations, which has the same integer solutions (each union V u V' belongs to one W only) and
a tighter relaxation."""

from collections.abc import Iterator
from functools import lru_cache
from itertools import chain, combinations
from typing import Any, NamedTuple

import numpy as np

from ...foundation.arrays import AnyArray, Bools, Floats, Ints
from ...foundation.environment import sparse
from ...foundation.highs import Highs, LinearModel
from ...foundation.jit import inlined, inner, kernel
from .reductions import Core

NO_LIMIT = 2**31 - 1
MOST_COLUMNS = 62  # columns of branch and bound, where a set of columns is a word
ALL_COVERED = -1  # in place of a row: all rows of the node are covered
FATHOMED = -2  # in place of a row: no cover below the node is smaller than the best


class CoverProgram(NamedTuple):
    """min sum of the first `choices` variables, matrix @ x >= lower, 0 <= x <= 1; some integer."""

    matrix: Any  # (constraints, variables) scipy.sparse.csr_array
    lower: Floats  # (constraints,)
    choices: int

    @property
    def costs(self) -> Floats:
        """(variables,) 1 for choices, 0 for the others."""
        return (np.arange(self.matrix.shape[1]) < self.choices).astype(np.float64)


class ProgramSolution(NamedTuple):
    """The best solution and bound that HiGHS found."""

    chosen: Bools  # (choices,)
    feasible: bool  # False: HiGHS stopped without a solution
    bound: float  # lower bound on every integer solution


def program_of(core: Core) -> CoverProgram:
    """Return the integer program of a core."""
    entries = _Entries(rows=len(core.fixed), columns=len(core.columns))
    for pattern, rows in _rows_by_pattern(core):
        _add_rows(entries, core, pattern, rows)
    matrix = entries.matrix()
    lower = (np.arange(matrix.shape[0]) < len(core.fixed)).astype(np.float64)
    return CoverProgram(matrix, lower, len(core.columns))


class _Pattern(NamedTuple):
    """What rows have in common that have the same representations by positions."""

    partners: tuple[int, ...]  # masks of `Core.partners`
    fixed: int
    opened: int


class _Entries:
    """The entries of a sparse matrix that grows, collected in blocks."""

    def __init__(self, rows: int, columns: int) -> None:
        self._shape = [rows, columns]
        self._rows: list[AnyArray] = []
        self._columns: list[AnyArray] = []
        self._values: list[Floats] = []

    def add(self, rows: AnyArray, columns: AnyArray, value: float) -> None:
        """Set the entries at the given places to the value."""
        self._rows.append(rows)
        self._columns.append(columns)
        self._values.append(np.full(len(rows), value))

    def new_rows(self, count: int) -> Ints:
        """Return the numbers of this many further rows."""
        return self._grow(0, count)

    def new_columns(self, count: int) -> Ints:
        """Return the numbers of this many further columns."""
        return self._grow(1, count)

    def _grow(self, axis: int, count: int) -> Ints:
        first = self._shape[axis]
        self._shape[axis] += count
        return np.arange(first, first + count)

    def matrix(self) -> Any:
        """Return the matrix in compressed rows."""
        places = np.concatenate(self._rows), np.concatenate(self._columns)
        shape = tuple(self._shape)
        return sparse.coo_array((np.concatenate(self._values), places), shape=shape).tocsr()


def _rows_by_pattern(core: Core) -> Iterator[tuple[_Pattern, Ints]]:
    """Yield each pattern of the core's rows with the rows that have it."""
    parts = core.row_partners, np.diff(core.row_start), core.fixed, core.open
    kinds, label = np.unique(np.stack(parts, axis=1), axis=0, return_inverse=True)
    label = label.reshape(-1)  # numpy 2.0 gives a column
    order = np.argsort(label, kind="stable")
    groups = np.split(order, np.cumsum(np.bincount(label))[:-1])
    for (first, length, fixed, opened), rows in zip(kinds.tolist(), groups, strict=True):
        partners = core.partners[first : first + length].tolist()
        yield _Pattern(tuple(partners), fixed, opened), rows


def _add_rows(entries: _Entries, core: Core, pattern: _Pattern, rows: Ints) -> None:
    """Add the constraints of rows with one pattern: some representation has all sets chosen."""
    alone, pairs = row_representations(*pattern)
    columns = core.row_columns[core.row_start[rows][:, None] + np.arange(len(pattern.partners))]
    for position in alone:
        entries.add(rows, columns[:, position], 1.0)
    selectors = {pair: entries.new_columns(len(rows)) for pair in pairs}  # y
    for selector in selectors.values():
        entries.add(rows, selector, 1.0)
    for position in sorted(set[int]().union(*pairs)):
        links = entries.new_rows(len(rows))
        entries.add(links, columns[:, position], 1.0)
        for pair, selector in selectors.items():
            if position in pair:
                entries.add(links, selector, -1.0)


@lru_cache(maxsize=1000)  # rows of few kinds make up a core
def row_representations(
    partners: tuple[int, ...], fixed: int, opened: int
) -> tuple[list[int], list[tuple[int, int]]]:
    """Return the open positions that cover a row alone, and the pairs of others that cover it."""
    places = [p for p in range(len(partners)) if opened >> p & 1]
    alone = [p for p in places if partners[p] & (fixed | 1 << p)]
    others = [p for p in places if p not in alone]
    pairs = [(p, q) for p, q in combinations(others, 2) if partners[p] >> q & 1]
    return alone, pairs


def solve_program(
    program: CoverProgram,
    *,
    start: Bools,
    seconds: float = 60.0,
    nodes: int = NO_LIMIT,
    stop: Bools | None = None,
) -> ProgramSolution:
    """Return what HiGHS finds within the limits from a known cover; `stop[0]` ends it early.

    Nodes stop it at the same place on every machine; seconds are a safety net.
    """
    integer = np.arange(program.matrix.shape[1]) < program.choices
    model = LinearModel(
        program.costs, program.matrix, row_lower=program.lower, upper=1.0, integer=integer
    )
    # The objective is a whole number: a gap below one is a proof.
    highs = Highs(mip_abs_gap=0.999, mip_rel_gap=0.0, mip_max_nodes=nodes).load(model)
    highs.start_from(np.arange(len(start)), start)
    solved = highs.solve(seconds, stop)
    return ProgramSolution(
        solved.values[: program.choices] > 0.5, solved.feasible, max(solved.bound, 0.0)
    )


def dual_bound(program: CoverProgram, duals: Floats, transposed: Any = None) -> float:
    """Return lower . y + sum min(0, cost - matrix' y), y = max(duals, 0): a bound for any duals."""
    y = np.maximum(duals, 0.0)
    prices = (program.matrix.T if transposed is None else transposed) @ y
    # No product of two vectors: BLAS would take every core for it, and they have work.
    return float((program.lower * y).sum() + np.minimum(0.0, program.costs - prices).sum())


class RowRepresentations(NamedTuple):
    """Representations of each row, as sets of one or two columns; rows with few come first."""

    start: Ints  # (rows + 1,)
    columns: Ints  # (start[-1],)


class OpenNodes(NamedTuple):
    """Nodes still to be visited, and the smallest cover so far."""

    chosen: Ints  # (depth,) columns taken
    barred: Ints  # (depth,) columns that are not to be taken
    spent: Ints  # (depth,) number of columns taken
    best: Ints  # (2,) the columns of the smallest cover, and its size


def smallest_cover(core: Core, known: Bools, nodes: int) -> tuple[Bools, bool]:
    """Return the smallest cover found from a known one on, and whether it is proved smallest."""
    rows = representations_of(core)
    size = int(known.sum())
    depth = 1 + size * int(np.diff(rows.start).max())
    word = int((np.int64(1) << np.flatnonzero(known)).sum())
    chosen, barred, spent = np.zeros((3, depth), np.int64)
    tree = OpenNodes(chosen, barred, spent, np.array([word, size]))
    proved = _branch(rows, tree, nodes)
    return (tree.best[0] >> np.arange(len(known)) & 1).astype(np.bool_), proved


def representations_of(core: Core) -> RowRepresentations:
    """Return the representations of the rows of a core with at most MOST_COLUMNS columns."""
    masks = core.partners.tolist()
    starts = core.row_start.tolist()
    words = [1 << column if column >= 0 else 0 for column in core.row_columns.tolist()]
    own = []
    kinds = zip(core.row_partners.tolist(), core.fixed.tolist(), core.open.tolist(), strict=True)
    for row, (at, fixed, opened) in enumerate(kinds):
        inside = words[starts[row] : starts[row + 1]]
        partners = tuple(masks[at : at + len(inside)])
        alone, pairs = row_representations(partners, fixed, opened)
        singles = [inside[p] for p in alone]
        own.append(singles + [inside[p] | inside[q] for p, q in pairs])
    own.sort(key=len)
    start = np.cumsum([0, *map(len, own)])
    return RowRepresentations(start, np.fromiter(chain.from_iterable(own), np.int64))


@kernel
def _branch(rows: RowRepresentations, tree: OpenNodes, nodes: int) -> bool:
    """Visit at most `nodes` nodes; return whether `tree.best` is proved smallest.

    A node branches on the representations of a row. A cover belongs to the first one that it
    contains: later nodes bar the columns of earlier representations of one column."""
    top = 1
    for _ in range(nodes):
        top -= 1
        row = _row_to_branch_on(rows, tree, top)
        if row == ALL_COVERED:
            tree.best[0] = tree.chosen[top]
            tree.best[1] = tree.spent[top]
        if row >= 0:
            top = _add_children(rows, tree, row, top)
        if top == 0:
            return True
    return False


@inlined
def _add_children(rows: RowRepresentations, tree: OpenNodes, row: int, top: int) -> int:
    """Replace the node by one for each representation of the row; return the number of nodes."""
    chosen = tree.chosen[top]
    barred = tree.barred[top]
    spent = tree.spent[top]
    for place in range(rows.start[row], rows.start[row + 1]):
        two = rows.columns[place]
        if two & barred == 0:
            rest = two & ~chosen
            single = rest & (rest - 1) == 0
            tree.chosen[top] = chosen | two
            tree.barred[top] = barred
            tree.spent[top] = spent + (1 if single else 2)
            top += 1
            if single:
                barred |= rest
    return top


@inner
def _row_to_branch_on(rows: RowRepresentations, tree: OpenNodes, top: int) -> int:
    """Return an uncovered row with the fewest representations, or ALL_COVERED or FATHOMED."""
    chosen = tree.chosen[top]
    barred = tree.barred[top]
    allowed = tree.best[1] - 1 - tree.spent[top]
    used = 0
    needed = 0
    best = ALL_COVERED
    fewest = len(rows.columns) + 1
    for row in range(len(rows.start) - 1):
        reach, cheapest, count = _choices_of(rows, row, chosen, barred, allowed)
        if cheapest == 0:
            continue
        if count == 0:
            return FATHOMED
        if count < fewest:
            best = row
            fewest = count
        if reach & used == 0:  # rows without common columns cost their cheapest representation each
            used |= reach
            needed += cheapest
            if needed > allowed:
                return FATHOMED
    return best if allowed >= 0 else FATHOMED


@inlined
def _choices_of(
    rows: RowRepresentations, row: int, chosen: int, barred: int, allowed: int
) -> tuple[int, int, int]:
    """Return the columns that may cover a row, the cost of the cheapest way, and their number."""
    reach = 0
    cheapest = 3
    count = 0
    for place in range(rows.start[row], rows.start[row + 1]):
        two = rows.columns[place]
        rest = two & ~chosen
        if rest == 0:
            return reach, 0, count
        cost = 1 if rest & (rest - 1) == 0 else 2
        if two & barred == 0 and cost <= allowed:
            reach |= rest
            cheapest = min(cheapest, cost)
            count += 1
    return reach, cheapest, count
