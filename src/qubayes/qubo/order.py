"""Order bits: the pairs of vertices whose order the QUBO decides, and the triangles that must not be cyclic.

`scc` is the paper's E, all pairs inside a strongly connected component of the candidate graph; `chordal` keeps only the
pairs of a vertex elimination, which are enough (design §4, docs/theory.md §2).
"""

from typing import NamedTuple

import numpy as np

from ..foundation.arrays import AnyArray, Bools, Ints, SmallInts, frozen
from ..foundation.errors import SettingError
from ..foundation.graph import strong_components
from .elimination import Filled, Graph, anneal_sequence, count_pairs, eliminate, greedy_sequence
from .parents import Relative

ORDERS = ("chordal", "scc")
GREEDY_STARTS = 3  # of each kind
THOROUGH = 300  # vertices up to which greedy costs are kept exact
SEARCH_WORK = 4e9  # words that annealing may touch in a component: about two seconds
HOT, COLD = 1 / 500, 1 / 20_000  # temperatures, in parts of the pairs: about 1 % fewer than min-fill on large instances


class Order(NamedTuple):
    """r bit p says that pairs[p, 0] comes before pairs[p, 1]; triangles name the r bits of (ab, bc, ac), a < b < c."""

    pairs: SmallInts  # (p, 2) ascending by smaller, then larger vertex; either may come first
    triangles: SmallInts  # (t, 3)

    def corners(self) -> SmallInts:
        """(t, 3) the vertices a < b < c of each triangle."""
        low, high = self.pairs.min(axis=1), self.pairs.max(axis=1)
        ab, bc = self.triangles[:, 0], self.triangles[:, 1]
        return np.column_stack([low[ab], high[ab], high[bc]])

    @property
    def ascending(self) -> Bools:
        """(p,) whether the pair is written smaller vertex first."""
        return self.pairs[:, 0] < self.pairs[:, 1]

    def pair_of(self, first: AnyArray, second: AnyArray) -> Ints:
        """The r bit of each pair of vertices, in either order; -1 where there is none."""
        if not len(self.pairs):
            return np.full(len(first), -1)
        width = int(self.pairs.max()) + 1
        keys = self.pairs.min(axis=1).astype(np.int64) * width + self.pairs.max(axis=1)
        low, high = np.minimum(first, second).astype(np.int64), np.maximum(first, second)
        places = np.minimum(np.searchsorted(keys, low * width + high), len(keys) - 1)
        found = (keys[places] == low * width + high) & (high < width)
        return np.where(found, places, -1)


def choose_order(relative: Relative, kind: str, seed: int = 0) -> Order:
    """The order bits of the candidate graph (an arc from each possible or required parent to its child)."""
    if kind not in ORDERS:
        raise SettingError(f"order = {kind!r}; choose one of {', '.join(ORDERS)}")
    n = len(relative.parents.start) - 1
    found = [_ordered(part, arcs, kind, seed) for part, arcs in _components(relative, n)]
    pairs = np.concatenate([np.empty((0, 2), np.int32), *(pairs for pairs, _ in found)])
    corners = np.concatenate([np.empty((0, 3), np.int32), *(corners for _, corners in found)])
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    corners = corners[np.lexsort((corners[:, 2], corners[:, 1], corners[:, 0]))]
    order = Order(frozen(pairs), np.empty((0, 3), np.int32))
    a, b, c = corners.T
    triangles = np.column_stack([order.pair_of(a, b), order.pair_of(b, c), order.pair_of(a, c)])
    return order._replace(triangles=frozen(triangles.astype(np.int32)))


def _components(relative: Relative, n: int) -> list[tuple[Ints, Bools]]:
    """(vertices, arcs among them) of each strongly connected component of two vertices or more."""
    arcs = np.zeros((n, n), np.bool_)
    for parents in (relative.parents, relative.required):
        arcs[parents.vertices, parents.children] = True
    return [(part, arcs[np.ix_(part, part)]) for part in strong_components(arcs) if len(part) > 1]


def _ordered(part: Ints, arcs: Bools, kind: str, seed: int) -> tuple[SmallInts, SmallInts]:
    """(pairs, corners of triangles) inside one component, as vertices of the whole graph; `part` ascends."""
    n = len(part)
    if kind == "scc":
        pairs, corners = _pairs_and_corners(~np.eye(n, dtype=np.bool_), np.arange(n))
    else:
        filled = best_elimination(Graph.of(arcs), seed)
        pairs, corners = _pairs_and_corners(filled.useful, filled.sequence)
    return part[pairs].astype(np.int32), part[corners].astype(np.int32)


def best_elimination(graph: Graph, seed: int = 0) -> Filled:
    """One that makes few pairs: the best of several greedy ones, annealed."""
    n, words = graph.outward.shape
    random = np.random.default_rng(np.random.SeedSequence(seed))
    neighbours, thorough = graph.outward | graph.inward, n <= THOROUGH
    noises = 0.9 * random.random((GREEDY_STARTS, n))
    sequences = [
        greedy_sequence(neighbours, noise, by_degree, thorough) for by_degree in (False, True) for noise in noises
    ]
    best = eliminate(graph, min(sequences, key=lambda sequence: count_pairs(graph, sequence)))
    tries = int(min(20_000, SEARCH_WORK / (n * n * words)))
    moves, draws = random.integers(n, size=(tries, 2)), random.exponential(size=tries)
    pairs = max(500, best.pairs)
    hot, cold = HOT * pairs, COLD * pairs
    allowances = draws * hot * (cold / hot) ** (np.arange(tries) / tries)
    annealed = eliminate(graph, anneal_sequence(graph, best.sequence, moves, allowances))
    return min(best, annealed, key=lambda filled: filled.pairs)


def _pairs_and_corners(arcs: Bools, sequence: Ints) -> tuple[Ints, Ints]:
    """Pairs a < b with a useful arc; triangles {p, v, q} with useful p -> v -> q and p -> q, v the first to leave."""
    here = np.ones(len(arcs), np.bool_)
    corners = [np.empty((0, 3), np.int64)]
    for v in sequence.tolist():
        here[v] = False
        around = np.flatnonzero((arcs[v] | arcs[:, v]) & here)
        closing = arcs[around, v][:, None] & arcs[v, around] & arcs[np.ix_(around, around)]
        p, q = around[np.array(np.nonzero(np.triu(closing | closing.T)))]
        corners.append(np.column_stack([np.full(len(p), v), p, q]))
    return np.argwhere(np.triu(arcs | arcs.T)), np.sort(np.concatenate(corners), axis=1)
