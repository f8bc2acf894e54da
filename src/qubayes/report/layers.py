"""Layers of the picture: rows, orders inside rows, and where long edges pass.

Rows of least total edge length by a linear program (Gansner et al. 1993). Orders with few crossings
by sweeps of means (Sugiyama, Tagawa & Toda 1981), then by moves of single nodes to their best place
in the row, and of whole edges to their best path through all rows, a shortest-path problem."""

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np

from ..foundation.arrays import Floats, Ints
from ..foundation.graph import children_of, edges_of, topological_order
from ..foundation.highs import Highs, LinearModel

Edge = tuple[int, int]  # parent, child
Rows = list[list[int]]

_SWEEPS = 24
_PATIENCE = 8  # sweeps without a gain after which to stop
_SIFT_EVERY = 3  # sweeps
_LARGE = 500  # nodes
_ROUNDS = 8  # rounds of moves of nodes and edges; most pictures need fewer


@dataclass(frozen=True, slots=True)
class Layers:
    """A layered graph: nodes 0 .. n-1 are vertices, the others are bends.

    Links join neighbouring rows.

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
    """Return the vertices in rows of at most `widest`, each below all its parents.

    The total edge length is small."""
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
            nodes = (parent, *bends, child)
            chains[parent, child] = nodes
            for upper, lower in pairwise(nodes):
                below[upper].append(lower)
                above[lower].append(upper)
    return Layers(
        tuple(map(tuple, rows)),
        tuple(map(tuple, above)),
        tuple(map(tuple, below)),
        chains,
        len(parents),
    )


def smallest_rows(parents: Sequence[Sequence[int]]) -> Ints:
    """Return rows (n,) from 0, children below parents, with the least sum of row differences.

    The matrix of this linear program is totally unimodular, so its basic solutions are integers.
    """
    edges = edges_of(parents)
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
    """Move each vertex with as many parents as children to its emptiest allowed row.

    The total edge length stays the same."""
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
        ready = sorted((v for v in waiting if wanted[v] <= row), key=lambda v: (-depth[v], v))[
            :widest
        ]
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
    """A matrix in compressed rows, as HiGHS takes it.

    Importing scipy would double the time of a picture."""

    indptr: Ints
    indices: Ints
    data: Floats
    shape: tuple[int, int]


def minimiser(cost: Any, entries: tuple[Any, Any, Any], limits: Floats) -> Floats:
    """Return a basic solution of: cost.x -> min, A x <= limits, x >= 0.

    A is given as (values, rows, columns).

    Solved by HiGHS's dual simplex on one thread, so the same program has the same solution.
    """
    values, rows, columns = entries
    by_row = np.argsort(rows, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(limits)))])
    matrix = SparseRows(start, columns[by_row], values[by_row], (len(limits), len(cost)))
    solved = Highs(solver="simplex").load(LinearModel(cost, matrix, row_upper=limits)).solve()
    if not solved.optimal:
        raise RuntimeError(
            f"HiGHS found no optimum of the layout's linear program with {len(limits)} rows"
        )
    return solved.values


def ordered(layers: Layers) -> Rows:
    """Return the rows in orders with few crossings.

    Three starts are improved by sweeps, then by moves.

    Of a large picture, only the start that is best after the sweeps is improved by moves.
    """
    starts = (
        _depth_first(layers),
        _depth_first(layers, upwards=True),
        [list(row) for row in layers.rows],
    )
    orders = [_Order(layers, _swept(layers, start)) for start in starts]
    if layers.nodes > _LARGE:
        orders = [min(orders, key=lambda order: crossings(layers, order.rows))]
    for order in orders:
        for _ in range(_ROUNDS):
            if order.sift() + order.reroute() == 0:
                break
    return min((order.rows for order in orders), key=lambda rows: crossings(layers, rows))


def crossings(layers: Layers, rows: Sequence[Sequence[int]]) -> int:
    """Return how many pairs of links cross."""
    total = 0
    for upper, lower in pairwise(rows):
        place = {node: k for k, node in enumerate(lower)}
        # ends of the links so far, ascending; those right of a new link's end cross it
        passed: list[int] = []
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
    for start in chain.from_iterable(layers.rows[::-1] if upwards else layers.rows):
        stack = [start]
        while stack:
            node = stack.pop()
            if not seen[node]:
                seen[node] = True
                rows[row_of[node]].append(node)
                stack.extend(reversed(onward[node]))
    return rows


def _swept(layers: Layers, rows: Rows) -> Rows:
    """Return the best order of sweeps down and up.

    Each row is sorted by the mean places of its nodes' neighbours in the row before it."""
    best = [row[:] for row in rows]
    fewest = crossings(layers, rows)
    last_gain = 0
    for sweep in range(1, _SWEEPS + 1):
        if sweep % 2 == 1:
            for k in range(1, len(rows)):
                _sort_by_means(rows[k], rows[k - 1], layers.above)
        else:
            for k in range(len(rows) - 2, -1, -1):
                _sort_by_means(rows[k], rows[k + 1], layers.below)
        if sweep % _SIFT_EVERY == 0:
            _Order(layers, rows).sift(1)
        count = crossings(layers, rows)
        if count < fewest:
            best = [row[:] for row in rows]
            fewest = count
            last_gain = sweep
        if fewest == 0 or sweep - last_gain >= _PATIENCE:
            break
    return best


def _sort_by_means(row: list[int], fixed: list[int], neighbours: Sequence[Sequence[int]]) -> None:
    """Sort the row by the mean place of each node's neighbours in the fixed row beside it."""
    place_of = {node: place for place, node in enumerate(fixed)}
    scale = len(fixed) / max(len(row), 1)
    means = {}
    for place, node in enumerate(row):
        places = [place_of[other] for other in neighbours[node]]
        means[node] = sum(places) / len(places) if places else place * scale
    row.sort(key=means.__getitem__)


class _Order:
    """An order of the rows, and the moves that remove crossings from it."""

    def __init__(self, layers: Layers, rows: Rows) -> None:
        self.layers, self.rows = layers, rows
        self.row_of = {node: k for k, row in enumerate(rows) for node in row}
        self.place = {node: i for row in rows for i, node in enumerate(row)}
        self._links: dict[int, Ints] = {}

    def links(self, k: int) -> Ints:
        """Return (nodes of row k, nodes of row k + 1) the number of links between two nodes."""
        if k not in self._links:
            counts = np.zeros((len(self.rows[k]), len(self.rows[k + 1])), dtype=np.int64)
            for i, node in enumerate(self.rows[k]):
                for other in self.layers.below[node]:
                    counts[i, self.place[other]] += 1
            self._links[k] = counts
        return self._links[k]

    def reorder(self, k: int, row: list[int]) -> None:
        """Put the nodes of row k in this order."""
        self._links.pop(k - 1, None)
        self._links.pop(k, None)
        self.rows[k] = row
        self.place.update((node, i) for i, node in enumerate(row))

    def sift(self, rounds: int = 8) -> int:
        """Move single nodes to the best place in their row until none can move.

        Return the crossings removed."""
        total, waiting = 0, set(range(len(self.rows)))
        for _ in range(rounds):
            moved: set[int] = set()
            for k in sorted(waiting):
                if gain := self.sift_row(k):
                    total += gain
                    moved.update((k - 1, k, k + 1))
            waiting = moved & set(range(len(self.rows)))
        return total

    def sift_row(self, k: int) -> int:
        """Move each node of the row once to its best place, the other rows fixed.

        Return the crossings removed."""
        sides = ([self.links(k)] if k + 1 < len(self.rows) else []) + (
            [self.links(k - 1).T] if k else []
        )
        # [a, b]: crossings of the links of a and b if a is left of b, less those if it is right of
        # b.
        excess = np.zeros((len(self.rows[k]), len(self.rows[k])), dtype=np.int64)
        for counts in sides:
            crossed = counts @ (np.cumsum(counts, axis=1) - counts).T
            excess += crossed - crossed.T
        order, gain = list(range(len(self.rows[k]))), 0
        for node in range(len(order)):
            here = order.index(node)
            others = order[:here] + order[here + 1 :]
            # of each place, less that of the first one
            costs = np.concatenate([[0], np.cumsum(excess[others, node])])
            best = int(costs.argmin())
            if costs[best] < costs[here]:
                gain += int(costs[here] - costs[best])
                order = [*others[:best], node, *others[best:]]
        if gain:
            self.reorder(k, [self.rows[k][i] for i in order])
        return gain

    def reroute(self) -> int:
        """Lay each long edge along the path with the fewest crossings.

        Return the crossings removed."""
        total = 0
        for nodes in sorted(self.layers.chains.values(), key=len, reverse=True):
            if len(nodes) > 2:
                total += self.reroute_edge(nodes)
        return total

    def reroute_edge(self, nodes: tuple[int, ...]) -> int:
        """Move the bends of one edge together; return the crossings removed.

        They follow a shortest path from row to row through the gaps between the nodes."""
        first = self.row_of[nodes[0]]
        costs = [self.crossing_costs(first + k, *ends) for k, ends in enumerate(pairwise(nodes))]
        places = [0, *(self.place[bend] for bend in nodes[1:-1]), 0]
        now = 0
        for cost, (here, there) in zip(costs, pairwise(places), strict=True):
            now += int(cost[here, there])
        least = costs[0][0]
        steps = []
        for cost in costs[1:]:
            sums = least[:, None] + cost
            steps.append(sums.argmin(axis=0))
            least = sums.min(axis=0)
        if least[0] >= now:
            return 0
        gap = 0
        for bend, step in zip(nodes[-2:0:-1], reversed(steps), strict=True):
            gap = int(step[gap])
            row = [node for node in self.rows[self.row_of[bend]] if node != bend]
            self.reorder(self.row_of[bend], [*row[:gap], bend, *row[gap:]])
        return now - int(least[0])

    def crossing_costs(self, k: int, upper: int, lower: int) -> Ints:
        """Return (places in row k, places in row k + 1) the crossings of a link between two places.

        A bend may lie in any gap of its row; a vertex has one place, and links that end there do
        not cross."""
        counts = self.links(k).copy()
        counts[self.place[upper], self.place[lower]] -= 1
        for axis, node in enumerate((upper, lower)):
            if node >= self.layers.vertices:
                counts = np.delete(counts, self.place[node], axis=axis)
        # [i, j]: among the first i and first j
        before = np.pad(counts.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
        rows, columns = (
            (slice(None), slice(None))
            if node >= self.layers.vertices
            else (slice(i, i + 1), slice(i + 1, i + 2))
            for node, i in ((upper, self.place[upper]), (lower, self.place[lower]))
        )
        left_of_upper, right_of_upper = before[rows[0]], before[-1:] - before[rows[1]]
        crossed: Ints = (left_of_upper[:, -1:] - left_of_upper[:, columns[1]]) + right_of_upper[
            :, columns[0]
        ]
        return crossed
