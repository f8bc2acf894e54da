"""A search tree over the covers of a small core: it finds a smaller one, or shows that there is none."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ...foundation.arrays import Bools, Ints
from ...foundation.jit import inner, kernel
from .presolve import Core
from .program import ways

MOST_COLUMNS = 62  # a set of columns is a word


class Ways(NamedTuple):
    """The ways to cover each row, as sets of one or two columns; rows with few ways come first."""

    start: Ints  # (rows + 1,)
    columns: Ints  # (start[-1],)


class Tree(NamedTuple):
    """Nodes that are still to be visited, and the smallest cover so far."""

    chosen: Ints  # (depth,) columns taken
    barred: Ints  # (depth,) columns that are not to be taken
    spent: Ints  # (depth,) how many were taken
    best: Ints  # (2,) the columns of the smallest cover, and its size


def smallest_cover(core: Core, known: Bools, nodes: int) -> tuple[Bools, bool]:
    """The smallest cover found, starting from a known one, and whether the tree shows that none is smaller."""
    ways, size = ways_of(core), int(known.sum())
    depth = 1 + size * int(np.diff(ways.start).max())
    word = int((np.int64(1) << np.flatnonzero(known)).sum())
    chosen, barred, spent = np.zeros((3, depth), np.int64)
    tree = Tree(chosen, barred, spent, np.array([word, size]))
    proved = _grow(ways, tree, nodes)
    return (tree.best[0] >> np.arange(len(known)) & 1).astype(np.bool_), proved


def ways_of(core: Core) -> Ways:
    """The ways of a core with at most MOST_COLUMNS columns."""
    kinds = zip(core.row_partners.tolist(), core.fixed.tolist(), core.open.tolist(), strict=True)
    masks, starts = core.partners.tolist(), core.row_start.tolist()
    words = [1 << column if column >= 0 else 0 for column in core.row_columns.tolist()]
    own = []
    for kind, first, last in zip(kinds, starts, starts[1:], strict=False):
        alone, pairs = _positions(tuple(masks[kind[0] : kind[0] + last - first]), kind[1], kind[2])
        own.append([words[first + p] for p in alone] + [words[first + p] | words[first + q] for p, q in pairs])
    own.sort(key=len)
    start = np.cumsum([0, *map(len, own)])
    return Ways(start, np.array([way for row in own for way in row], np.int64))


@lru_cache(maxsize=1000)
def _positions(partners: tuple[int, ...], fixed: int, opened: int) -> tuple[list[int], list[tuple[int, int]]]:
    """The ways of a kind of row, by position: rows of few kinds make up a core."""
    return ways(list(partners), fixed, opened)


@kernel
def _grow(ways: Ways, tree: Tree, nodes: int) -> bool:
    """Whether no cover is smaller than `tree.best`: so many nodes may be visited to find one.

    A node branches on the ways of a row. A cover belongs to the first way that it contains: later nodes bar the columns
    of earlier ways of one column.
    """
    top = 1
    for _ in range(nodes):
        top -= 1
        row = _row_to_branch_on(ways, tree, top)
        if row == -1:
            tree.best[0], tree.best[1] = tree.chosen[top], tree.spent[top]
        if row >= 0:
            chosen, barred, spent = tree.chosen[top], tree.barred[top], tree.spent[top]
            for place in range(ways.start[row], ways.start[row + 1]):
                way = ways.columns[place]
                rest = way & ~chosen
                if way & barred == 0:
                    single = rest & (rest - 1) == 0
                    tree.chosen[top], tree.barred[top] = chosen | way, barred
                    tree.spent[top] = spent + (1 if single else 2)
                    top += 1
                    if single:
                        barred |= rest
        if top == 0:
            return True
    return False


@inner
def _row_to_branch_on(ways: Ways, tree: Tree, top: int) -> int:
    """An uncovered row with the fewest ways; -1 if all are covered by fewer than the best, -2 if they cannot be."""
    chosen, barred, allowed = tree.chosen[top], tree.barred[top], tree.best[1] - 1 - tree.spent[top]
    used, needed, best, fewest = np.int64(0), 0, -1, len(ways.columns) + 1
    for row in range(len(ways.start) - 1):
        reach, cheapest, count = np.int64(0), 3, 0
        for place in range(ways.start[row], ways.start[row + 1]):
            way = ways.columns[place]
            rest = way & ~chosen
            if rest == 0:
                cheapest = 0
                break
            cost = 1 if rest & (rest - 1) == 0 else 2
            if way & barred == 0 and cost <= allowed:
                reach |= rest
                cheapest = min(cheapest, cost)
                count += 1
        if cheapest == 0:
            continue
        if count == 0:
            return -2
        if count < fewest:
            best, fewest = row, count
        if reach & used == 0:  # rows without common columns cost the cheapest of their ways each
            used |= reach
            needed += cheapest
            if needed > allowed:
                return -2
    return best if allowed >= 0 else -2
