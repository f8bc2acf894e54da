"""Order bits that hold a cluster: with them no cycle inside it is possible (docs/theory.md §11).

The vertices of the cluster leave one by one. When v leaves, each predecessor p and each successor q
other than p need order bits for pv, vq and pq, and p -> q becomes an arc. Arcs inside the cluster
that are on no cycle do not count. Two vertices need no bit: the QUBO forbids that each is a parent
of the other. Sets of vertices are bits of whole numbers."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ..foundation.arrays import Bools
from ..foundation.graph import strong_components
from .order_walk import Pair


class Held(NamedTuple):
    """The pairs that need order bits if the vertices of a cluster leave in this sequence."""

    sequence: tuple[int, ...]
    pairs: frozenset[Pair]


def hold(arcs: Bools, cluster: Sequence[int], known: Iterable[Pair] = ()) -> Held:
    """Return pairs whose order bits hold the cluster, few beside those known.

    `arcs[a, b]` is true if a may be a parent of b. At each step that vertex leaves which needs the
    fewest pairs that are not known."""
    leaving = _Leaving(arcs, cluster, known)
    sequence = []
    pairs: set[Pair] = set()
    while leaving.rest:
        v = min(leaving.rest, key=leaving.cost)
        pairs.update(leaving.leave(v))
        sequence.append(cluster[v])
    return Held(tuple(sequence), frozenset(pairs))


class _Leaving:
    """The arcs between the vertices of a cluster that have not left, numbered by their place."""

    def __init__(self, arcs: Bools, cluster: Sequence[int], known: Iterable[Pair]) -> None:
        self._cluster = cluster
        inside = _on_cycles(arcs[np.ix_(cluster, cluster)])
        self._successors = [_as_bits(row) for row in inside]
        self._predecessors = [_as_bits(column) for column in inside.T]
        self._known = [0] * len(cluster)
        place = {vertex: k for k, vertex in enumerate(cluster)}
        for a, b in known:
            if a in place and b in place:
                self._known[place[a]] |= 1 << place[b]
                self._known[place[b]] |= 1 << place[a]
        self.rest = list(range(len(cluster)))

    def cost(self, v: int) -> int:
        """Return about how many pairs without a known bit are needed if v leaves now."""
        into, out = self._around(v)
        missing = (into | out) & ~self._known[v]
        cost = missing.bit_count()
        for p in _members(into):
            cost += (out & ~(1 << p) & ~self._known[p]).bit_count()
        return cost

    def leave(self, v: int) -> list[Pair]:
        """Let v leave; return the pairs that need order bits for that."""
        into, out = self._around(v)
        found = [self._pair(v, other) for other in _members(into | out)]
        for p in _members(into):
            others = out & ~(1 << p)
            found += [self._pair(p, q) for q in _members(others)]
            self._successors[p] |= others
            for q in _members(others):
                self._predecessors[q] |= 1 << p
        self.rest.remove(v)
        for other in self.rest:
            self._successors[other] &= ~(1 << v)
            self._predecessors[other] &= ~(1 << v)
        return found

    def _around(self, v: int) -> tuple[int, int]:
        """Return the predecessors and the successors of v that a path p -> v -> q can have."""
        into, out = self._predecessors[v], self._successors[v]
        if into == out and into.bit_count() == 1:
            return 0, 0
        return (into, out) if into and out else (0, 0)

    def _pair(self, a: int, b: int) -> Pair:
        first, second = self._cluster[a], self._cluster[b]
        return (first, second) if first < second else (second, first)


def _on_cycles(arcs: Bools) -> Bools:
    """Return the arcs that are on a cycle."""
    component = np.zeros(len(arcs), np.int64)
    for number, vertices in enumerate(strong_components(arcs)):
        component[vertices] = number
    on_cycles: Bools = arcs & (component[:, None] == component)
    return on_cycles


def _as_bits(row: Bools) -> int:
    return sum(1 << place for place in np.flatnonzero(row).tolist())


def _members(bits: int) -> Iterator[int]:
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
