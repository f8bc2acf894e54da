"""Order bits: the pairs of vertices whose order the QUBO decides, and the triangles that must not be cyclic.

`scc` is the paper's E, all pairs inside a strongly connected component of the candidate graph; `chordal` keeps only the
pairs of a vertex elimination, which are enough (design §4, docs/theory.md §2).
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from ..arrays import AnyArray, Bools, Ints, SmallInts, Words, frozen
from ..errors import SettingError
from .elimination import Filled, _has, anneal_sequence, eliminate, greedy_sequence, packed, transposed
from .parents import Parents, Relative

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
    lists: list[Parents] = [relative.parents, relative.required]
    tails = np.concatenate([parents.vertices for parents in lists])
    heads = np.concatenate([parents.children for parents in lists])
    graph = csr_matrix((np.ones(len(tails)), (tails, heads)), shape=(n, n))
    count, labels = connected_components(graph, directed=True, connection="strong") if n else (0, np.empty(0))
    order = np.argsort(labels, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(labels, minlength=count))[:-1]) if n else []
    return [(part, graph[part][:, part].toarray() > 0) for part in parts if len(part) > 1]


def _ordered(part: Ints, arcs: Bools, kind: str, seed: int) -> tuple[SmallInts, SmallInts]:
    """(pairs, corners of triangles) inside one component, as vertices of the whole graph; `part` ascends."""
    n = len(part)
    if kind == "scc":
        everything = packed(~np.eye(n, dtype=np.bool_))
        pairs, corners = _pairs_and_corners(Filled(everything, everything, n * (n - 1) // 2), np.arange(n))
    else:
        outward = packed(arcs)
        sequence = elimination_sequence(outward, seed)
        pairs, corners = _pairs_and_corners(eliminate(outward, sequence), sequence)
    return part[pairs].astype(np.int32), part[corners].astype(np.int32)


def elimination_sequence(outward: Words, seed: int = 0) -> Ints:
    """A sequence that makes few pairs: the best of several greedy ones, annealed."""
    n, words = outward.shape
    random = np.random.default_rng(np.random.SeedSequence(seed))
    neighbours, thorough = outward | transposed(outward), n <= THOROUGH
    noises = 0.9 * random.random((GREEDY_STARTS, n))
    sequences = [
        greedy_sequence(neighbours, noise, by_degree, thorough) for by_degree in (False, True) for noise in noises
    ]
    best = min(sequences, key=lambda sequence: eliminate(outward, sequence).pairs)
    tries = int(min(20_000, SEARCH_WORK / (n * n * words)))
    moves, draws = random.integers(n, size=(tries, 2)), random.exponential(size=tries)
    pairs = max(500, eliminate(outward, best).pairs)
    annealed = anneal_sequence(outward, best, moves, draws, HOT * pairs, COLD * pairs)
    return min(best, annealed, key=lambda sequence: eliminate(outward, sequence).pairs)


@njit(nogil=True, cache=True)
def _pairs_and_corners(filled: Filled, sequence: Any) -> Any:
    """Pairs a < b with a useful arc; triangles {p, v, q} with useful p -> v -> q and p -> q, v the first to leave."""
    out, into, n = filled.outward, filled.inward, len(sequence)
    pairs, count = np.empty((filled.pairs, 2), np.int64), 0
    for a in range(n):
        for b in range(a + 1, n):
            if _has(out[a], b) or _has(out[b], a):
                pairs[count, 0], pairs[count, 1] = a, b
                count += 1
    corners = [(0, 0, 0) for _ in range(0)]
    left = np.zeros(n, np.bool_)
    for v in sequence:
        left[v] = True
        for p in range(n):
            if left[p] or not (_has(into[v], p) or _has(out[v], p)):
                continue
            for q in range(p + 1, n):
                if left[q]:
                    continue
                forward = _has(into[v], p) and _has(out[v], q) and _has(out[p], q)
                backward = _has(into[v], q) and _has(out[v], p) and _has(out[q], p)
                if forward or backward:
                    low, high = min(v, p), max(v, q)
                    corners.append((low, v + p + q - low - high, high))
    result = np.empty((len(corners), 3), np.int64)
    for t in range(len(corners)):
        result[t, 0], result[t, 1], result[t, 2] = corners[t]
    return pairs, result
