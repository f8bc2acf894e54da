"""A search tree over the covers of a small core: it finds a smaller one, or shows that there is none."""

from typing import NamedTuple

import numpy as np

from ..arrays import Bools, Ints
from ..jit import leaf
from .presolve import Core

MOST_COLUMNS = 62  # a set of columns is a word
NONE, UNKNOWN = -1, -2  # instead of a set of columns


class Ways(NamedTuple):
    """The ways to cover each row, as sets of one or two columns; rows with few ways come first."""

    start: Ints  # (rows + 1,)
    columns: Ints  # (start[-1],)


class Stack(NamedTuple):
    """Nodes of the tree that are still to be visited."""

    chosen: Ints  # (depth,) columns taken
    barred: Ints  # (depth,) columns that are not to be taken
    allowed: Ints  # (depth,) how many more may be taken


def smallest_cover(core: Core, known: Bools, nodes: int) -> tuple[Bools, bool]:
    """The smallest cover found, starting from a known one, and whether the tree shows that none is smaller."""
    ways, best, outcome = ways_of(core), known, 0
    while outcome >= 0:
        size = int(best.sum())
        depth = 1 + size * int(np.diff(ways.start).max())
        outcome = _smaller(ways, Stack(*np.zeros((3, depth), np.int64)), size - 1, nodes)
        if outcome >= 0:
            best = (outcome >> np.arange(len(known)) & 1).astype(np.bool_)
    return best, outcome == NONE


def ways_of(core: Core) -> Ways:
    """The ways of a core with at most MOST_COLUMNS columns."""
    opened = np.bitwise_count(core.open).astype(np.int64)
    start, columns = np.zeros(len(opened) + 1, np.int64), np.zeros(int((opened * (opened + 1) // 2).sum()), np.int64)
    _fill_ways(core, np.arange(len(opened)), start, columns)
    order = np.argsort(np.diff(start), kind="stable")
    _fill_ways(core, order, start, columns)
    return Ways(start, columns)


@leaf
def _fill_ways(core: Core, order: Ints, start: Ints, columns: Ints) -> None:
    """Write the ways of the rows in this order."""
    end = 0
    for place in range(len(order)):
        row = order[place]
        first, partners, opened = core.row_start[row], core.row_partners[row], core.open[row]
        for p in range(core.row_start[row + 1] - first):
            if not opened >> p & 1:
                continue
            mates, one = core.partners[partners + p], np.int64(1) << core.row_columns[first + p]
            if mates & (core.fixed[row] | np.int64(1) << p):
                columns[end] = one
                end += 1
                continue
            for q in range(p):  # whatever covers the row with p, and not alone
                single = core.partners[partners + q] & (core.fixed[row] | np.int64(1) << q)
                if (mates & opened) >> q & 1 and not single:
                    columns[end] = one | np.int64(1) << core.row_columns[first + q]
                    end += 1
        start[place + 1] = end


@leaf
def _smaller(ways: Ways, stack: Stack, allowed: int, nodes: int) -> int:
    """A cover of at most `allowed` columns, or NONE, or UNKNOWN after so many nodes. Branches on a row's ways."""
    top, seen = 1, 0
    stack.chosen[0], stack.barred[0], stack.allowed[0] = 0, 0, allowed
    while top:
        seen += 1
        if seen > nodes:
            return -2
        top -= 1
        row = _row_to_branch_on(ways, stack, top)
        if row == -1:
            return int(stack.chosen[top])
        if row >= 0:
            top = _branch(ways, stack, top, row)
    return -1


@leaf
def _row_to_branch_on(ways: Ways, stack: Stack, top: int) -> int:
    """An uncovered row with the fewest ways; -1 if all are covered, -2 if they cannot be within what is allowed."""
    chosen, barred, allowed = stack.chosen[top], stack.barred[top], stack.allowed[top]
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
    return best


@leaf
def _branch(ways: Ways, stack: Stack, top: int, row: int) -> int:
    """Put a node for each way of the row in the place of the node at `top`; the new height of the stack.

    A cover belongs to the first way that it contains: later nodes bar the columns of earlier ways of one column.
    """
    chosen, barred, allowed = stack.chosen[top], stack.barred[top], stack.allowed[top]
    for place in range(ways.start[row], ways.start[row + 1]):
        way = ways.columns[place]
        rest = way & ~chosen
        single = rest & (rest - 1) == 0
        cost = 1 if single else 2
        if way & barred == 0 and cost <= allowed:
            stack.chosen[top], stack.barred[top], stack.allowed[top] = chosen | way, barred, allowed - cost
            top += 1
            if single:
                barred |= rest
    return top
