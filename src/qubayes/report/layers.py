"""Rows of the picture: which vertex stands in which row, and where long edges pass the rows between."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..foundation.arrays import Ints
from ..foundation.graph import children_of, topological_order
from .linear import minimiser

Edge = tuple[int, int]  # parent, child


@dataclass(frozen=True, slots=True)
class Layers:
    """A layered graph: nodes 0 .. n-1 are the vertices, the others are bends, and links join neighbouring rows.

    An edge that spans k rows is a chain of k links with k - 1 bends.
    """

    rows: tuple[tuple[int, ...], ...]  # nodes of each row, in an order yet without meaning
    above: tuple[tuple[int, ...], ...]  # for each node its neighbours in the row above
    below: tuple[tuple[int, ...], ...]
    chains: dict[Edge, tuple[int, ...]]  # the nodes of each edge, from parent to child
    vertices: int

    @property
    def nodes(self) -> int:
        """Number of vertices and bends."""
        return len(self.above)


def layered(parents: Sequence[Sequence[int]], widest: int) -> Layers:
    """The vertices in rows of at most `widest`, each below all its parents, edges short in total."""
    row_of = _narrowed(parents, _balanced(parents, smallest_rows(parents)), widest)
    above: list[list[int]] = [[] for _ in parents]
    below: list[list[int]] = [[] for _ in parents]
    rows: list[list[int]] = [[] for _ in range(int(row_of.max(initial=-1)) + 1)]
    for vertex, row in enumerate(row_of.tolist()):
        rows[row].append(vertex)
    chains = {}
    for child, its_parents in enumerate(parents):
        for parent in its_parents:
            bends = range(len(above), len(above) + int(row_of[child] - row_of[parent]) - 1)
            for row, bend in enumerate(bends, int(row_of[parent]) + 1):
                rows[row].append(bend)
            above.extend([] for _ in bends)
            below.extend([] for _ in bends)
            chains[parent, child] = chain = (parent, *bends, child)
            for upper, lower in pairwise(chain):
                below[upper].append(lower)
                above[lower].append(upper)
    return Layers(_frozen(rows), _frozen(above), _frozen(below), chains, len(parents))


def _frozen(lists: list[list[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple(map(tuple, lists))


def smallest_rows(parents: Sequence[Sequence[int]]) -> Ints:
    """(n,) rows from 0 with row(child) > row(parent) for every edge and the least sum of row differences.

    The matrix of this linear program is totally unimodular, so its basic solutions are whole numbers.
    """
    edges = [(parent, child) for child, its_parents in enumerate(parents) for parent in its_parents]
    if not edges:
        return np.zeros(len(parents), dtype=np.int64)
    upper, lower = np.array(edges).T
    each = np.arange(len(edges))
    signs = np.repeat([1.0, -1.0], len(edges))
    cost = np.bincount(lower, minlength=len(parents)) - np.bincount(upper, minlength=len(parents))
    entries = signs, np.tile(each, 2), np.concatenate([upper, lower])
    rows = np.rint(minimiser(cost, entries, -np.ones(len(edges)))).astype(np.int64)
    return np.asarray(rows - rows.min())


def _balanced(parents: Sequence[Sequence[int]], rows: Ints) -> Ints:
    """The rows after each vertex with as many parents as children went to the emptiest row that it may stand in.

    Its edges get longer above by as much as they get shorter below, so the total length stays.
    """
    rows, children = rows.copy(), children_of(parents)
    crowd = np.bincount(rows).tolist()
    for vertex, its_parents in enumerate(parents):
        if its_parents and len(its_parents) == len(children[vertex]):
            first = max(int(rows[p]) for p in its_parents) + 1
            last = min(int(rows[c]) for c in children[vertex])
            crowd[rows[vertex]] -= 1
            rows[vertex] = min(range(first, last), key=lambda row: (crowd[row], row))
            crowd[rows[vertex]] += 1
    return rows


def _narrowed(parents: Sequence[Sequence[int]], rows: Ints, widest: int) -> Ints:
    """The rows after those with too many vertices passed the rest on to the next, so that the picture is no strip.

    Vertices with the longest way below them stay first: to move them down would push all of it down.
    """
    if np.bincount(rows).max(initial=0) <= widest:
        return rows
    children, rows = children_of(parents), rows.copy()
    depth = [0] * len(parents)
    for vertex in reversed(topological_order(parents)):
        depth[vertex] = max((depth[child] + 1 for child in children[vertex]), default=0)
    missing = [len(its_parents) for its_parents in parents]
    wanted = rows.tolist()
    waiting = {vertex for vertex, count in enumerate(missing) if count == 0}
    row = 0
    while waiting:
        ready = sorted((v for v in waiting if wanted[v] <= row), key=lambda v: (-depth[v], v))[:widest]
        waiting.difference_update(ready)
        for vertex in ready:
            rows[vertex] = row
            for child in children[vertex]:
                missing[child] -= 1
                if missing[child] == 0:
                    waiting.add(child)
        row += 1
    return rows
