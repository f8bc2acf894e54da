"""Branch and bound over the covers of a small core: it finds a smaller cover, or proves that there is none."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ...foundation.arrays import Bools, Ints
from ...foundation.jit import inner, kernel
from .cover_program import row_representations
from .reductions import Core

MOST_COLUMNS = 62  # a set of columns is a word


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
    kinds = zip(core.row_partners.tolist(), core.fixed.tolist(), core.open.tolist(), strict=True)
    masks, starts = core.partners.tolist(), core.row_start.tolist()
    words = [1 << column if column >= 0 else 0 for column in core.row_columns.tolist()]
    own = []
    for kind, first, last in zip(kinds, starts, starts[1:], strict=False):
        alone, pairs = _positions(tuple(masks[kind[0] : kind[0] + last - first]), kind[1], kind[2])
        own.append([words[first + p] for p in alone] + [words[first + p] | words[first + q] for p, q in pairs])
    own.sort(key=len)
    start = np.cumsum([0, *map(len, own)])
    return RowRepresentations(start, np.array([word for row in own for word in row], np.int64))


@lru_cache(maxsize=1000)
def _positions(partners: tuple[int, ...], fixed: int, opened: int) -> tuple[list[int], list[tuple[int, int]]]:
    """Return the representations of a kind of row, by position: rows of few kinds make up a core."""
    return row_representations(list(partners), fixed, opened)


@kernel
def _branch(rows: RowRepresentations, tree: OpenNodes, nodes: int) -> bool:
    """Visit at most `nodes` nodes; return whether `tree.best` is proved smallest.

    A node branches on the representations of a row. A cover belongs to the first one that it contains: later nodes bar
    the columns of earlier representations of one column.
    """
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
