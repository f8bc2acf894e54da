"""Representatives of twins: of two variables with the same scores, one can be a sink.

Write s for the exchange of a and b. They are twins if every set P of every vertex v has a partner s(P) among the sets
of s(v) with the same score, and no set contains both. Then some best network has b without children and with its best
set: exchange a and b if b comes first, replace b by its representative a in every set (a precedes all children of b),
and let b, which has no child now, take its best set (proof in docs/exact.md).
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from ...candidates import Candidates, tolerance
from ...foundation.arrays import AnyArray, Floats, Ints, SmallInts, Words, frozen

_MOST = 100  # vertices that a vertex is compared with: the first with as many sets


class Reduced(NamedTuple):
    """Candidates with the same best score, and the number of the original set of each set."""

    candidates: Candidates
    sources: Ints  # (sets,)
    slack: float  # the best score fell by at most this, by the rounding of the scores
    twins: tuple[tuple[int, int], ...]  # (twin, its representative) in the order of elimination


def whole(candidates: Candidates) -> Reduced:
    """Return the candidates as they are."""
    return Reduced(candidates, frozen(np.arange(len(candidates.scores))), 0.0, ())


def without_twins(candidates: Candidates) -> Reduced:
    """Return the candidates in which every twin of an earlier vertex is a sink with its best set."""
    pairs = _alike(candidates)
    if not pairs:  # spares the table, which takes about twice the candidates' memory
        return whole(candidates)
    table = SetTable(candidates)
    found = _find_twins(table, pairs)
    if not found:
        return whole(candidates)
    kept, gone = np.ones(len(candidates.scores), np.bool_), np.zeros(candidates.n, np.bool_)
    for twin, _, _ in found:
        first, last = candidates.families.vertex_start[twin : twin + 2].tolist()
        best = first + int(np.argmax(kept[first:last]))
        kept[first:best] = kept[best + 1 : last] = False
        gone[twin] = True
        holding = table.holding(twin)
        kept[holding[~gone[table.owners[holding]]]] = False
    sources = np.flatnonzero(kept)
    slack = 2.0 * sum(difference for _, _, difference in found)  # each set changes at most twice
    twins = tuple((twin, other) for twin, other, _ in found)
    return Reduced(select_sets(candidates, sources), frozen(sources), slack, twins)


def select_sets(candidates: Candidates, numbers: Ints) -> Candidates:
    """Select sets by number, ascending; the last kept set of each vertex must be inside all its others."""
    families, scores = candidates.families.chosen(numbers), frozen(candidates.scores[numbers])
    return replace(candidates, families=families, scores=scores)


class SetTable:
    """The sets as rows, found by their members through sorted hashes. Takes about twice the candidates' memory."""

    def __init__(self, candidates: Candidates) -> None:
        families, n = candidates.families, candidates.n
        self.families, self.scores = families, candidates.scores
        sizes = np.diff(families.set_start)
        self.owners: SmallInts = np.repeat(np.arange(n, dtype=np.int32), families.sizes)
        self.rows: SmallInts = np.full((len(sizes), max(1, int(sizes.max(initial=0)))), n, np.int32)
        for place in range(int(sizes.max(initial=0))):
            longer = np.flatnonzero(sizes > place)
            self.rows[longer, place] = families.members[families.set_start[longer] + place]
        ones = np.ones(len(families.members), np.bool_)
        by_member = csr_matrix((ones, families.members, families.set_start), shape=(len(sizes), n)).tocsc()
        self._holders, self._start = by_member.indices, by_member.indptr
        del sizes, ones, by_member  # large, and more is allocated below
        self._member_keys = np.random.Generator(np.random.PCG64(0)).integers(0, 2**64, size=n + 1, dtype=np.uint64)
        self._member_keys[n] = 0
        self._shift = np.uint64(64 - n.bit_length())
        self._marked = np.zeros(len(self.rows), np.bool_)
        self._hashes = self._hash(self.owners, self.rows)
        self._order = np.argsort(self._hashes, kind="stable")
        self._hashes.sort()
        self.margins = _margins(candidates)

    def holding(self, vertex: int) -> AnyArray:
        """Return the sets that contain the vertex."""
        return self._holders[self._start[vertex] : self._start[vertex + 1]]

    def hold_both(self, a: int, b: int) -> bool:
        """True if some set contains both vertices."""
        self._marked[self.holding(a)] = True
        both = bool(self._marked[self.holding(b)].any())
        self._marked[self.holding(a)] = False
        return both

    def exchanged(self, numbers: AnyArray, a: int, b: int) -> tuple[SmallInts, SmallInts]:
        """Return owners and rows of the sets after the exchange of a and b."""
        swap = np.arange(len(self.families.vertex_start), dtype=np.int32)
        swap[[a, b]] = b, a
        return swap[self.owners[numbers]], np.sort(swap[self.rows[numbers]], axis=1)

    def find(self, owners: SmallInts, rows: SmallInts) -> Ints:
        """Return the number of each of these sets; -1 if it is not in the table."""
        hashes = self._hash(owners, rows)
        places = np.searchsorted(self._hashes, hashes)
        numbers = self._order[np.minimum(places, len(self._order) - 1)]
        same = (self.owners[numbers] == owners) & (self.rows[numbers] == rows).all(axis=1)
        return np.where(same, numbers, -1)

    def _hash(self, owners: SmallInts, rows: SmallInts) -> Words:
        """Return hashes with the owner's number in front: look-ups for one vertex stay close together in memory."""
        hashes: Words = np.zeros(len(rows), np.uint64)
        for place in range(rows.shape[1]):
            hashes += self._member_keys[rows[:, place]]
        hashes >>= np.uint64(64) - self._shift
        hashes |= owners.astype(np.uint64) << self._shift
        return hashes


def _margins(candidates: Candidates) -> Floats:
    """Return (n,) the difference up to which two scores of a vertex may be equal but for rounding."""
    rows = candidates.stamp.rows or 0
    return np.array([8.0 * tolerance(score, rows) for score in candidates.base_scores.tolist()])


def _alike(candidates: Candidates) -> list[tuple[int, int]]:
    """Return (vertex, earlier vertex) with equally many sets, equally many sets that contain them, and equal scores."""
    start, margins = candidates.families.vertex_start, _margins(candidates)
    scores = np.split(candidates.scores, start[1:-1])
    held = np.bincount(candidates.families.members, minlength=candidates.n)
    groups: dict[tuple[int, int], list[int]] = {}
    pairs = []
    for vertex, size in enumerate(candidates.families.sizes.tolist()):
        group = groups.setdefault((size, int(held[vertex])), [])
        for other in group[:_MOST] if size > 1 else ():
            if np.abs(scores[vertex] - scores[other]).max() <= margins[vertex] + margins[other]:
                pairs.append((vertex, other))
        group.append(vertex)
    return pairs


def _find_twins(table: SetTable, pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int, float]]:
    """Return (twin, representative, largest change of a score by their exchange), each twin once, ascending."""
    found: dict[int, tuple[int, int, float]] = {}
    for vertex, other in pairs:
        if vertex not in found and other not in found:
            difference = _exchange_difference(table, other, vertex)
            if difference is not None:
                found[vertex] = vertex, other, difference
    return list(found.values())


def _exchange_difference(table: SetTable, a: int, b: int) -> float | None:
    """Return the largest change of a network's score by the exchange of a and b; None if they are not twins."""
    start = table.families.vertex_start
    if table.hold_both(a, b):
        return None
    own = [np.arange(start[v], start[v + 1]) for v in (a, b)]
    numbers = np.concatenate([table.holding(a), table.holding(b), *own])  # repeated numbers do no harm
    partners = table.find(*table.exchanged(numbers, a, b))
    if (partners < 0).any():
        return None
    differences, owners = np.abs(table.scores[numbers] - table.scores[partners]), table.owners[numbers]
    if (differences > table.margins[owners]).any():
        return None
    largest = np.zeros(len(start) - 1)
    np.maximum.at(largest, owners, differences)
    return float(largest.sum())
