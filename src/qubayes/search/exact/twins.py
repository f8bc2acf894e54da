"""Twin elimination (design §6): of two variables that the scores cannot tell apart, one can be a sink.

Write s for the exchange of a and b. They are twins if every set P of every vertex v has a partner s(P) among the sets
of s(v) with the same score, and no set holds both. Then some best network has b without children and with its best
set: exchange a and b if b comes first, put a in the place of b in every set (a comes before all children of b), and
let b, which has no child now, take its best set (proof in docs/exact.md).
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from ...candidates import Candidates, tolerance
from ...foundation.arrays import AnyArray, Floats, Ints, SmallInts, Words, frozen

_MOST = 100  # vertices that one is compared with: those with as many sets, the first of them


class Reduced(NamedTuple):
    """Candidates with the same best score, and where each of their sets comes from."""

    candidates: Candidates
    sources: Ints  # (sets,) number of the candidate set that it stands for
    slack: float  # by no more than this the best score may have fallen: the rounding of the scores
    twins: tuple[tuple[int, int], ...]  # (twin, the vertex that takes its place) in the order of elimination


def whole(candidates: Candidates) -> Reduced:
    """The candidates as they are."""
    return Reduced(candidates, frozen(np.arange(len(candidates.scores))), 0.0, ())


def without_twins(candidates: Candidates) -> Reduced:
    """The candidates in which every twin of an earlier vertex is a sink with its best set."""
    pairs = _alike(candidates)
    if not pairs:
        return whole(candidates)  # before the table, which takes about twice the candidates' memory
    table = Table(candidates)
    found = find_twins(table, pairs)
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
    return Reduced(chosen_sets(candidates, sources), frozen(sources), slack, twins)


def chosen_sets(candidates: Candidates, numbers: Ints) -> Candidates:
    """The candidates with these sets alone, ascending; each vertex keeps one that all its others contain."""
    kept = candidates.families.chosen(numbers)
    return Candidates(candidates.names, kept, frozen(candidates.scores[numbers]), candidates.stamp)


class Table:
    """The sets as rows, found by their members. Takes about twice the candidates' memory, hence the small integers."""

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
        del sizes, ones, by_member
        self._member_keys = np.random.Generator(np.random.PCG64(0)).integers(0, 2**64, size=n + 1, dtype=np.uint64)
        self._member_keys[n] = 0
        self._shift = np.uint64(64 - n.bit_length())
        self._marked = np.zeros(len(self.rows), np.bool_)
        self._hashes = self._hash(self.owners, self.rows)
        self._order = np.argsort(self._hashes, kind="stable")
        self._hashes.sort()
        self.margins = _margins(candidates)

    def holding(self, vertex: int) -> AnyArray:
        """The sets that hold the vertex."""
        return self._holders[self._start[vertex] : self._start[vertex + 1]]

    def hold_both(self, a: int, b: int) -> bool:
        """Whether some set holds both vertices."""
        self._marked[self.holding(a)] = True
        both = bool(self._marked[self.holding(b)].any())
        self._marked[self.holding(a)] = False
        return both

    def exchanged(self, numbers: AnyArray, a: int, b: int) -> tuple[SmallInts, SmallInts]:
        """Owners and rows of the sets after the exchange of a and b."""
        swap = np.arange(len(self.families.vertex_start), dtype=np.int32)
        swap[[a, b]] = b, a
        return swap[self.owners[numbers]], np.sort(swap[self.rows[numbers]], axis=1)

    def find(self, owners: SmallInts, rows: SmallInts) -> Ints:
        """The number of each of these sets; -1 where there is none."""
        hashes = self._hash(owners, rows)
        places = np.searchsorted(self._hashes, hashes)
        numbers = self._order[np.minimum(places, len(self._order) - 1)]
        same = (self.owners[numbers] == owners) & (self.rows[numbers] == rows).all(axis=1)
        return np.where(same, numbers, -1)

    def _hash(self, owners: SmallInts, rows: SmallInts) -> Words:
        """The owner's number in front: sets of one vertex are looked for close to each other, in cached memory."""
        hashes: Words = np.zeros(len(rows), np.uint64)
        for place in range(rows.shape[1]):
            hashes += self._member_keys[rows[:, place]]
        hashes >>= np.uint64(64) - self._shift
        hashes |= owners.astype(np.uint64) << self._shift
        return hashes


def _margins(candidates: Candidates) -> Floats:
    """(n,) scores of a vertex that differ by no more than this may be equal but for rounding."""
    rows = candidates.stamp.rows or 0
    return np.array([8.0 * tolerance(score, rows) for score in candidates.base_scores.tolist()])


def _alike(candidates: Candidates) -> list[tuple[int, int]]:
    """(vertex, earlier vertex), ascending: with equally many sets, equally many that hold them, and equal scores."""
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


def find_twins(table: Table, pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int, float]]:
    """(twin, the vertex that takes its place, what the exchange may change a score by), each twin once, ascending."""
    found: dict[int, tuple[int, int, float]] = {}
    for vertex, other in pairs:
        if vertex not in found and other not in found:
            difference = exchange_difference(table, other, vertex)
            if difference is not None:
                found[vertex] = vertex, other, difference
    return list(found.values())


def exchange_difference(table: Table, a: int, b: int) -> float | None:
    """By how much the exchange of twins changes the score of a network at most; None if they are not twins."""
    start = table.families.vertex_start
    if table.hold_both(a, b):
        return None
    own = [np.arange(start[v], start[v + 1]) for v in (a, b)]
    numbers = np.concatenate([table.holding(a), table.holding(b), *own])  # some twice: no harm
    partners = table.find(*table.exchanged(numbers, a, b))
    if (partners < 0).any():
        return None
    differences, owners = np.abs(table.scores[numbers] - table.scores[partners]), table.owners[numbers]
    if (differences > table.margins[owners]).any():
        return None
    largest = np.zeros(len(start) - 1)
    np.maximum.at(largest, owners, differences)
    return float(largest.sum())
