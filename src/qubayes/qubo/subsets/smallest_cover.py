"""Smallest covers of a core: an integer program on HiGHS, and branch and bound for few columns.

The program is that of the paper's Appendix C.1 without Assumption 2: minimise sum v_V, where for
each open set W
    sum of v_V over the V that cover W alone + sum of y_{W,{V,V'}} over the pairs that cover W
    together >= 1, sum of y_{W,{V,V'}} over V' <= v_V   for each V.
The paper writes rho for y and links it by 2 rho <= v + v' <= 1 + rho. Here W chooses one of its
representations, which has the same integer solutions (each union V u V' belongs to one W only) and
a tighter relaxation."""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...foundation.arrays import AnyArray, Bools, Floats, Ints
from ...foundation.environment import sparse
from ...foundation.highs import Highs, LinearModel
from ...foundation.jit import inner, kernel
from .reductions import Core

NO_LIMIT = 2**31 - 1
MOST_COLUMNS = 62  # columns of branch and bound, where a set of columns is a word


class CoverProgram(NamedTuple):
    """minimise the sum of the first `choices` variables, matrix @ x >= lower, 0 <= x <= 1, those variables integer."""

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
    rows, columns = len(core.fixed), len(core.columns)
    choices = columns
    patterns = np.stack([core.row_partners, np.diff(core.row_start), core.fixed, core.open], axis=1)
    kinds, label = np.unique(patterns, axis=0, return_inverse=True)
    label = label.reshape(-1)  # numpy 2.0 gives a column
    order = np.argsort(label, kind="stable")
    # for many rows with the same pattern at once
    entries: list[tuple[AnyArray, AnyArray, float]] = []
    groups = np.split(order, np.cumsum(np.bincount(label))[:-1])
    for (first, length, fixed, opened), group in zip(kinds.tolist(), groups, strict=True):
        alone, pairs = row_representations(
            tuple(core.partners[first : first + length].tolist()), fixed, opened
        )
        own, many = (
            core.row_columns[core.row_start[group][:, None] + np.arange(length)],
            np.arange(len(group)),
        )
        entries += [(group, own[:, p], 1.0) for p in alone]
        selectors = {pair: columns + index * len(group) + many for index, pair in enumerate(pairs)}
        columns += len(pairs) * len(group)
        entries += [(group, selector, 1.0) for selector in selectors.values()]
        for p in sorted({p for pair in pairs for p in pair}):
            entries.append((rows + many, own[:, p], 1.0))
            entries += [
                (rows + many, selector, -1.0) for pair, selector in selectors.items() if p in pair
            ]
            rows += len(group)
    row, column = (np.concatenate([entry[field] for entry in entries]) for field in (0, 1))
    value = np.concatenate([np.full(len(entry[0]), entry[2]) for entry in entries])
    matrix = sparse.coo_array((value, (row, column)), shape=(rows, columns)).tocsr()
    return CoverProgram(matrix, (np.arange(rows) < len(core.fixed)).astype(np.float64), choices)


@lru_cache(maxsize=1000)  # rows of few kinds make up a core
def row_representations(
    partners: tuple[int, ...], fixed: int, opened: int
) -> tuple[list[int], list[tuple[int, int]]]:
    """Return the open positions that cover a row alone, and the pairs of other open positions that cover it."""
    places = [p for p in range(len(partners)) if opened >> p & 1]
    alone = [p for p in places if partners[p] & (fixed | 1 << p)]
    others = [p for p in places if p not in alone]
    return alone, [(p, q) for p in others for q in others if p < q and partners[p] >> q & 1]


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
    """Return lower . y + sum min(0, cost - matrix' y) for y = max(duals, 0): a lower bound for any duals."""
    y = np.maximum(duals, 0.0)
    prices = (program.matrix.T if transposed is None else transposed) @ y
    # No product of two vectors: BLAS would take every core for it, and they have work.
    return float((program.lower * y).sum() + np.minimum(0.0, program.costs - prices).sum())


class RowRepresentations(NamedTuple):
    """Representations of each row, as sets of one or two columns; rows with few representations come first."""

    start: Ints  # (rows + 1,)
    columns: Ints  # (start[-1],)


class OpenNodes(NamedTuple):
    """Nodes still to be visited, and the smallest cover so far."""

    chosen: Ints  # (depth,) columns taken
    barred: Ints  # (depth,) columns that are not to be taken
    spent: Ints  # (depth,) number of columns taken
    best: Ints  # (2,) the columns of the smallest cover, and its size


def smallest_cover(core: Core, known: Bools, nodes: int) -> tuple[Bools, bool]:
    """Return the smallest cover found, starting from a known one, and whether it is proved smallest."""
    rows, size = representations_of(core), int(known.sum())
    depth = 1 + size * int(np.diff(rows.start).max())
    word = int((np.int64(1) << np.flatnonzero(known)).sum())
    chosen, barred, spent = np.zeros((3, depth), np.int64)
    tree = OpenNodes(chosen, barred, spent, np.array([word, size]))
    proved = _branch(rows, tree, nodes)
    return (tree.best[0] >> np.arange(len(known)) & 1).astype(np.bool_), proved


def representations_of(core: Core) -> RowRepresentations:
    """Return the representations of the rows of a core with at most MOST_COLUMNS columns."""
    masks, starts = core.partners.tolist(), core.row_start.tolist()
    words = [1 << column if column >= 0 else 0 for column in core.row_columns.tolist()]
    own = []
    kinds = zip(core.row_partners.tolist(), core.fixed.tolist(), core.open.tolist(), strict=True)
    for row, (at, fixed, opened) in enumerate(kinds):
        first, length = starts[row], starts[row + 1] - starts[row]
        alone, pairs = row_representations(tuple(masks[at : at + length]), fixed, opened)
        own.append(
            [words[first + p] for p in alone]
            + [words[first + p] | words[first + q] for p, q in pairs]
        )
    own.sort(key=len)
    start = np.cumsum([0, *map(len, own)])
    return RowRepresentations(start, np.array([word for row in own for word in row], np.int64))


@kernel
def _branch(rows: RowRepresentations, tree: OpenNodes, nodes: int) -> bool:
    """Visit at most `nodes` nodes; return whether `tree.best` is proved smallest.

    A node branches on the representations of a row. A cover belongs to the first one that it
    contains: later nodes bar the columns of earlier representations of one column."""
    top = 1
    for _ in range(nodes):
        top -= 1
        row = _row_to_branch_on(rows, tree, top)
        if row == -1:
            tree.best[0], tree.best[1] = tree.chosen[top], tree.spent[top]
        if row >= 0:
            chosen, barred, spent = tree.chosen[top], tree.barred[top], tree.spent[top]
            for place in range(rows.start[row], rows.start[row + 1]):
                two = rows.columns[place]
                rest = two & ~chosen
                if two & barred == 0:
                    single = rest & (rest - 1) == 0
                    tree.chosen[top], tree.barred[top] = chosen | two, barred
                    tree.spent[top] = spent + (1 if single else 2)
                    top += 1
                    if single:
                        barred |= rest
        if top == 0:
            return True
    return False


@inner
def _row_to_branch_on(rows: RowRepresentations, tree: OpenNodes, top: int) -> int:
    """Return an uncovered row with the fewest representations; -1 if all are covered, -2 if the node is fathomed."""
    chosen, barred, allowed = tree.chosen[top], tree.barred[top], tree.best[1] - 1 - tree.spent[top]
    used, needed, best, fewest = 0, 0, -1, len(rows.columns) + 1
    for row in range(len(rows.start) - 1):
        reach, cheapest, count = 0, 3, 0
        for place in range(rows.start[row], rows.start[row + 1]):
            two = rows.columns[place]
            rest = two & ~chosen
            if rest == 0:
                cheapest = 0
                break
            cost = 1 if rest & (rest - 1) == 0 else 2
            if two & barred == 0 and cost <= allowed:
                reach |= rest
                cheapest = min(cheapest, cost)
                count += 1
        if cheapest == 0:
            continue
        if count == 0:
            return -2
        if count < fewest:
            best, fewest = row, count
        if reach & used == 0:  # rows without common columns cost their cheapest representation each
            used |= reach
            needed += cheapest
            if needed > allowed:
                return -2
    return best if allowed >= 0 else -2
