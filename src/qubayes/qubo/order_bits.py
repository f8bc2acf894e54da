"""Order bits r: the pairs of vertices whose order the QUBO decides, and the triangles that must not be cyclic.

`scc` is the paper's E, all pairs inside a strongly connected component of the candidate graph; `chordal` keeps only the
pairs of a vertex elimination, which are enough (docs/theory.md §2).
"""

from typing import NamedTuple

import numpy as np

from ..foundation.arrays import AnyArray, Bools, Floats, Ints, SmallInts, frozen
from ..foundation.errors import SettingError
from ..foundation.graph import strong_components
from ..foundation.jit import kernel
from .elimination import best_elimination
from .relative_sets import RelativeSets

ORDERS = ("chordal", "scc")
GOLDEN = (5**0.5 - 1) / 2
SWEEPS = 30  # of turning pairs round


class Order(NamedTuple):
    """r bit p says that pairs[p, 0] comes before pairs[p, 1]; triangles name the r bits of (ab, bc, ac), a < b < c."""

    pairs: SmallInts  # (p, 2) ascending by smaller, then larger vertex; either may come first
    triangles: SmallInts  # (t, 3)

    def corners(self) -> SmallInts:
        """Return (t, 3) the vertices a < b < c of each triangle."""
        low, high = self.pairs.min(axis=1), self.pairs.max(axis=1)
        ab, bc = self.triangles[:, 0], self.triangles[:, 1]
        return np.column_stack([low[ab], high[ab], high[bc]])

    @property
    def ascending(self) -> Bools:
        """(p,) whether the pair is written smaller vertex first."""
        return self.pairs[:, 0] < self.pairs[:, 1]

    def pair_of(self, first: AnyArray, second: AnyArray) -> Ints:
        """Return the r bit of each pair of vertices, given in either order; -1 where there is none."""
        if not len(self.pairs):
            return np.full(len(first), -1)
        width = int(self.pairs.max()) + 1
        keys = self.pairs.min(axis=1).astype(np.int64) * width + self.pairs.max(axis=1)
        low, high = np.minimum(first, second).astype(np.int64), np.maximum(first, second)
        places = np.minimum(np.searchsorted(keys, low * width + high), len(keys) - 1)
        found = (keys[places] == low * width + high) & (high < width)
        return np.where(found, places, -1)


def choose_order(relative: RelativeSets, kind: str, seed: int = 0) -> Order:
    """Return the order bits of the candidate graph (an arc from each possible or required parent to its child)."""
    if kind not in ORDERS:
        raise SettingError(f"order = {kind!r}; choose one of {', '.join(ORDERS)}")
    n = relative.candidates.n
    arcs = np.zeros((n, n), np.bool_)
    for parents in (relative.parents, relative.required):
        arcs[parents.vertices, parents.children] = True
    all_pairs, all_corners = [np.empty((0, 2), np.int64)], [np.empty((0, 3), np.int64)]
    for component in strong_components(arcs):
        if len(component) > 1:
            useful, sequence = ~np.eye(len(component), dtype=np.bool_), np.arange(len(component))
            if kind == "chordal":
                sequence, useful, _ = best_elimination(arcs[np.ix_(component, component)], seed)
            all_pairs.append(component[np.argwhere(np.triu(useful | useful.T))])
            all_corners.append(component[_corners(useful, sequence)])
    pairs, corners = np.concatenate(all_pairs), np.concatenate(all_corners)
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    a, b, c = corners[np.lexsort((corners[:, 2], corners[:, 1], corners[:, 0]))].T
    order = Order(frozen(pairs.astype(np.int32)), np.empty((0, 3), np.int32))
    triangles = np.column_stack([order.pair_of(a, b), order.pair_of(b, c), order.pair_of(a, c)])
    return order._replace(triangles=frozen(triangles.astype(np.int32)))


def _corners(arcs: Bools, sequence: Ints) -> Ints:
    """Return the triangles {p, v, q} with useful arcs p -> v -> q and p -> q, where v is the first to leave."""
    here = np.ones(len(arcs), np.bool_)
    corners = [np.empty((0, 3), np.int64)]
    for v in sequence.tolist():
        here[v] = False
        around = np.flatnonzero((arcs[v] | arcs[:, v]) & here)
        closing = arcs[around, v][:, None] & arcs[v, around] & arcs[np.ix_(around, around)]
        p, q = around[np.array(np.nonzero(np.triu(closing | closing.T)))]
        corners.append(np.column_stack([np.full(len(p), v), p, q]))
    return np.sort(np.concatenate(corners), axis=1)


def balanced(order: Order, deltas: Floats) -> Order:
    """Return the same pairs, each written the way round that keeps linear coefficients small; triangles weigh `deltas`.

    A triangle that is transitive in the chosen directions costs delta (w + x y - x w - y w), w its long side; one that
    is cyclic in them costs delta (1 - x - y - w + x y + x w + y w). Written all ascending, as in the paper, a pair that
    is the long side of hundreds of triangles has hundreds of times delta as its linear coefficient. Here the start is
    vertices spread on a circle, each before those on the half circle ahead of it (in a regular tournament everything
    cancels); then single pairs are turned round while the sum of fourth powers of the coefficients falls.
    """
    if not len(order.triangles):
        return order
    low, high = order.pairs.min(axis=1), order.pairs.max(axis=1)
    signs = np.where((high - low) * GOLDEN % 1.0 < 0.5, 1.0, -1.0)  # 1: ascending, -1: descending
    start, others, pulls = _meetings(order, deltas)
    _turn(start, others, pulls, signs, np.zeros(len(signs)), SWEEPS)
    pairs = np.where(signs[:, None] > 0, np.column_stack([low, high]), np.column_stack([high, low]))
    return order._replace(pairs=frozen(pairs.astype(np.int32)))


def _meetings(order: Order, deltas: Floats) -> tuple[Ints, SmallInts, Floats]:
    """Return (start, others, pulls): for each pair those that it meets in triangles, in the order of the triangles.

    A pull is minus half the coupler of the two pairs where both are written ascending.
    """
    sides = order.triangles.ravel()  # entry 3 t + s is side s of triangle t
    entries = np.argsort(sides, kind="stable")
    two = np.array([[1, 2], [0, 2], [0, 1]])[entries % 3]
    others = order.triangles[entries[:, None] // 3, two]
    ab_bc = two + entries[:, None] % 3 == 1  # the sides ab (0) and bc (1), whose product has the other sign
    pulls = np.where(ab_bc, -0.5, 0.5) * deltas[entries[:, None] // 3]
    start = 2 * np.concatenate([[0], np.cumsum(np.bincount(sides, minlength=len(order.pairs)))])
    return start, others.ravel(), pulls.ravel()


@kernel
def _turn(start: Ints, others: SmallInts, pulls: Floats, signs: Floats, linear: Floats, sweeps: int) -> None:
    """Turn single pairs round while the sum of the fourth powers of the linear coefficients falls."""
    for p in range(len(signs)):
        for e in range(start[p], start[p + 1]):
            linear[p] += pulls[e] * signs[p] * signs[others[e]]
    for _ in range(sweeps):
        turned = False
        for p in range(len(signs)):
            change = 0.0
            for e in range(start[p], start[p + 1]):
                old = linear[others[e]]
                new = old - 2.0 * pulls[e] * signs[p] * signs[others[e]]
                change += (new * new) * (new * new) - (old * old) * (old * old)
            if change < 0.0:
                for e in range(start[p], start[p + 1]):
                    linear[others[e]] -= 2.0 * pulls[e] * signs[p] * signs[others[e]]
                signs[p], linear[p], turned = -signs[p], -linear[p], True
        if not turned:
            break
