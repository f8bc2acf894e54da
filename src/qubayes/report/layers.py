"""Layers of the picture: which vertex is in which row, in which order, and where long edges pass the rows between.

Rows of least total edge length by a linear program; orders with few crossings by sweeps of means and exchanges of
neighbours (Sugiyama, Tagawa & Toda 1981; Gansner et al. 1993).
"""

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..foundation.arrays import Floats, Ints
from ..foundation.graph import children_of, topological_order
from ..foundation.highs import Highs, LinearModel

Edge = tuple[int, int]  # parent, child
Rows = list[list[int]]

_SWEEPS = 24
_PATIENCE = 8  # sweeps without a gain after which to stop
_SWAP_EVERY = 3  # swapping after every sweep takes four times as long and leaves as many crossings
_SWAP_ROUNDS = 4


@dataclass(frozen=True, slots=True)
class Layers:
    """A layered graph: nodes 0 .. n-1 are vertices, the others are bends; links join neighbouring rows.

    An edge that spans k rows is a chain of k links with k - 1 bends.
    """

    rows: tuple[tuple[int, ...], ...]  # nodes of each row, in any order
    above: tuple[tuple[int, ...], ...]  # for each node its neighbours in the row above
    below: tuple[tuple[int, ...], ...]
    chains: dict[Edge, tuple[int, ...]]  # the nodes of each edge, from parent to child
    vertices: int

    @property
    def nodes(self) -> int:
        """Number of vertices and bends."""
        return len(self.above)


def layered(parents: Sequence[Sequence[int]], widest: int) -> Layers:
    """Return the vertices in rows of at most `widest`, each below all its parents, with a small total edge length."""
    row_of = narrowed_rows(parents, balanced_rows(parents, smallest_rows(parents)), widest)
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
    by_row, upwards, downwards = (tuple(map(tuple, lists)) for lists in (rows, above, below))
    return Layers(by_row, upwards, downwards, chains, len(parents))


def smallest_rows(parents: Sequence[Sequence[int]]) -> Ints:
    """Return rows (n,) from 0 with row(child) > row(parent) for every edge and the least sum of row differences.

    The matrix of this linear program is totally unimodular, so its basic solutions are integers.
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


def balanced_rows(parents: Sequence[Sequence[int]], rows: Ints) -> Ints:
    """Move each vertex with as many parents as children to its emptiest allowed row: equal total length."""
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


def narrowed_rows(parents: Sequence[Sequence[int]], rows: Ints, widest: int) -> Ints:
    """Move vertices of rows with more than `widest` to the next row.

    Vertices with the longest path below them stay first: moving them would move the path too.
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


class SparseRows(NamedTuple):
    """A matrix in compressed rows, as HiGHS takes it; importing scipy would double the time of a picture."""

    indptr: Ints
    indices: Ints
    data: Floats
    shape: tuple[int, int]


def minimiser(cost: Any, entries: tuple[Any, Any, Any], limits: Floats) -> Floats:
    """Return a basic solution of: cost.x -> min, A x <= limits, x >= 0, with A given as (values, rows, columns).

    Solved by HiGHS's dual simplex on one thread, so the same program has the same solution.
    """
    values, rows, columns = entries
    by_row = np.argsort(rows, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(limits)))])
    matrix = SparseRows(start, columns[by_row], values[by_row], (len(limits), len(cost)))
    solved = Highs(solver="simplex").load(LinearModel(cost, matrix, row_upper=limits)).solve()
    if not solved.optimal:
        raise RuntimeError(f"HiGHS found no optimum of the layout's linear program with {len(limits)} rows")
    return solved.values


def ordered(layers: Layers) -> Rows:
    """Return the rows in orders with few crossings: the best of three starts, each improved by sweeps and swaps."""
    starts = (_depth_first(layers), _depth_first(layers, upwards=True), [list(row) for row in layers.rows])
    return min((_improved(layers, start) for start in starts), key=lambda rows: crossings(layers, rows))


def crossings(layers: Layers, rows: Sequence[Sequence[int]]) -> int:
    """Return how many pairs of links cross."""
    total = 0
    for upper, lower in pairwise(rows):
        place = {node: k for k, node in enumerate(lower)}
        passed: list[int] = []  # ends of the links so far, ascending; those right of a new link's end cross it
        for node in upper:
            ends = sorted(place[other] for other in layers.below[node])
            total += sum(len(passed) - bisect_right(passed, end) for end in ends)
            for end in ends:
                insort(passed, end)
    return total


def _depth_first(layers: Layers, *, upwards: bool = False) -> Rows:
    """Return the rows in the order in which a depth-first walk visits their nodes."""
    onward = layers.above if upwards else layers.below
    row_of = {node: k for k, row in enumerate(layers.rows) for node in row}
    rows: Rows = [[] for _ in layers.rows]
    seen = [False] * layers.nodes
    for start in (node for row in (layers.rows[::-1] if upwards else layers.rows) for node in row):
        stack = [start]
        while stack:
            node = stack.pop()
            if not seen[node]:
                seen[node] = True
                rows[row_of[node]].append(node)
                stack.extend(reversed(onward[node]))
    return rows


def _improved(layers: Layers, rows: Rows) -> Rows:
    """Return the best order found by sweeps down and up and exchanges of neighbours."""
    best, fewest, last_gain = [row[:] for row in rows], crossings(layers, rows), 0
    for sweep in range(1, _SWEEPS + 1):
        _sweep(layers, rows, downwards=sweep % 2 == 1)
        if sweep % _SWAP_EVERY == 0:
            _swap(layers, rows, _SWAP_ROUNDS)
        count = crossings(layers, rows)
        if count < fewest:
            best, fewest, last_gain = [row[:] for row in rows], count, sweep
        if fewest == 0 or sweep - last_gain >= _PATIENCE:
            break
    _swap(layers, best, 8 * _SWAP_ROUNDS)
    return best


def _sweep(layers: Layers, rows: Rows, *, downwards: bool) -> None:
    """Sort each row by the mean place of the neighbours in the row before it, one row after the other."""
    sequence = range(1, len(rows)) if downwards else range(len(rows) - 2, -1, -1)
    neighbours = layers.above if downwards else layers.below
    for k in sequence:
        fixed = {node: place for place, node in enumerate(rows[k - 1 if downwards else k + 1])}
        scale = len(fixed) / max(len(rows[k]), 1)
        keys = {}
        for place, node in enumerate(rows[k]):
            places = [fixed[other] for other in neighbours[node]]
            keys[node] = sum(places) / len(places) if places else place * scale
        rows[k].sort(key=keys.__getitem__)


def _swap(layers: Layers, rows: Rows, rounds: int) -> None:
    """Exchange neighbours in a row while that removes crossings."""
    place = {node: k for row in rows for k, node in enumerate(row)}
    above = [sorted(place[other] for other in others) for others in layers.above]
    below = [sorted(place[other] for other in others) for others in layers.below]
    changed = set(range(len(rows)))
    for _ in range(rounds):
        changed = {
            near for k in sorted(changed) if _swap_row(layers, rows[k], above, below) for near in (k - 1, k, k + 1)
        }
        changed &= set(range(len(rows)))
        if not changed:
            return


def _swap_row(layers: Layers, row: list[int], above: Rows, below: Rows) -> bool:
    swapped = False
    for k in range(len(row) - 1):
        left, right = row[k], row[k + 1]
        gain = _turns(above[left], above[right]) + _turns(below[left], below[right])
        if gain > 0:
            row[k], row[k + 1] = right, left
            swapped = True
    if swapped:
        place = {node: k for k, node in enumerate(row)}
        for other in {other for node in row for other in layers.above[node]}:
            below[other] = sorted(place[node] for node in layers.below[other])
        for other in {other for node in row for other in layers.below[node]}:
            above[other] = sorted(place[node] for node in layers.above[other])
    return swapped


def _turns(left: Sequence[int], right: Sequence[int]) -> int:
    """Return by how many crossings fall if two neighbours with links to these places are exchanged."""
    return sum((a > b) - (a < b) for a in left for b in right)
