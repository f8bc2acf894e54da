"""Lists of sets of vertices, one list per vertex, in flat arrays.

Candidate parent sets and candidate parent subsets are both of this shape.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .arrays import AnyArray, Bools, Ints, SmallInts, Words, frozen
from .environment import sparse

VertexSet = tuple[int, ...]  # ascending indices
MEMBERS_AT_ONCE = 2**20  # members that are looked at together, in some 20 MB


class Families(NamedTuple):
    """For each vertex a list of vertex sets.

    The sets vertex_start[i] .. vertex_start[i+1]-1 belong to vertex i."""

    vertex_start: Ints  # (n + 1,)
    set_start: Ints  # (sets + 1,)
    members: SmallInts  # (set_start[-1],) ascending inside a set

    @staticmethod
    def of(lists: Sequence[Sequence[VertexSet]]) -> "Families":
        """Return the flat form of one list of sets per vertex."""
        sets = list(chain.from_iterable(lists))
        vertex_start = np.cumsum([0, *map(len, lists)], dtype=np.int64)
        set_start = np.cumsum([0, *map(len, sets)], dtype=np.int64)
        members = np.array(list(chain.from_iterable(sets)), dtype=np.int32)
        return Families(frozen(vertex_start), frozen(set_start), frozen(members))

    @property
    def n(self) -> int:
        """Number of vertices."""
        return len(self.vertex_start) - 1

    @property
    def sizes(self) -> Ints:
        """Number of sets of each vertex."""
        return np.diff(self.vertex_start)

    @property
    def member_owners(self) -> Ints:
        """(members,) the vertex of the set that each member belongs to."""
        return np.repeat(np.arange(self.n), np.diff(self.set_start[self.vertex_start]))

    @property
    def owners(self) -> SmallInts:
        """(sets,) the vertex that each set belongs to."""
        return np.repeat(np.arange(self.n, dtype=np.int32), self.sizes)

    @property
    def set_sizes(self) -> Ints:
        """(sets,) number of members of each set."""
        return np.diff(self.set_start)

    @property
    def sets_of_members(self) -> SmallInts:
        """(members,) the number of the set that each member is in."""
        return np.repeat(np.arange(len(self.set_start) - 1, dtype=np.int32), self.set_sizes)

    def masks(self) -> Words:
        """(sets,) each set as a word with the bit v for its member v, for at most 64 vertices."""
        masks = np.zeros(len(self.set_start) - 1, np.uint64)
        np.bitwise_or.at(
            masks, self.sets_of_members, np.uint64(1) << self.members.astype(np.uint64)
        )
        return masks

    def padded(self, kind: npt.DTypeLike = np.int32) -> AnyArray:
        """(sets, largest size, at least 1) the members of each set, filled up with n."""
        sizes = self.set_sizes
        rows = np.full((len(sizes), max(1, int(sizes.max(initial=0)))), self.n, kind)
        for place in range(int(sizes.max(initial=0))):
            longer = np.flatnonzero(sizes > place)
            rows[longer, place] = self.members[self.set_start[longer] + place]
        return rows

    def by_member(self) -> tuple[Ints, SmallInts]:
        """Return (start, sets): sets[start[v] : start[v + 1]] are the sets that contain v."""
        ones = np.ones(len(self.members), np.bool_)
        rows = sparse.csr_matrix(
            (ones, self.members, self.set_start), shape=(len(self.set_start) - 1, self.n)
        )
        columns = rows.tocsc()  # twice as fast as sorting the members
        return columns.indptr.astype(np.int64), columns.indices.astype(np.int32)

    def inside(self, vertices: Ints) -> tuple["Families", Ints]:
        """Return the sets of these vertices (ascending), renumbered, without other members.

        Also return the numbers that these sets have here."""
        place = np.full(self.n, -1, np.int32)
        place[vertices] = np.arange(len(vertices), dtype=np.int32)
        numbers = np.flatnonzero(place[self.owners] >= 0)
        own = self.chosen(numbers)
        members = place[own.members]
        kept = np.concatenate([[0], np.cumsum(members >= 0)])
        start = np.concatenate([[0], np.cumsum(self.sizes[vertices])])
        return Families(
            frozen(start), frozen(kept[own.set_start]), frozen(members[members >= 0])
        ), numbers

    def set_at(self, number: int) -> VertexSet:
        """Return the set with this number."""
        return tuple(self.members[self.set_start[number] : self.set_start[number + 1]].tolist())

    def sets_at(self, numbers: npt.ArrayLike) -> tuple[VertexSet, ...]:
        """Return the sets with these numbers."""
        chosen = np.asarray(numbers, dtype=np.int64)
        bounds = zip(
            self.set_start[chosen].tolist(), self.set_start[chosen + 1].tolist(), strict=True
        )
        return tuple(tuple(self.members[first:last].tolist()) for first, last in bounds)

    def first_inside(self, vertex: int, allowed: Bools) -> int:
        """Return the number of the vertex's first set of allowed members; -1 if there is none."""
        return int(self._first_inside(vertex, vertex + 1, allowed[None])[0])

    def best_inside(self, allowed: Bools) -> Ints:
        """Return for each vertex its first set of members that are allowed in its row, or -1."""
        starts = self.set_start[self.vertex_start]
        blocks = np.searchsorted(starts, np.arange(MEMBERS_AT_ONCE, starts[-1], MEMBERS_AT_ONCE))
        bounds = pairwise(np.unique([0, *blocks, self.n]).tolist())
        found = [self._first_inside(first, last, allowed[first:last]) for first, last in bounds]
        return np.concatenate([np.zeros(0, np.int64), *found])

    def _first_inside(self, first: int, last: int, allowed: Bools) -> Ints:
        """Return `best_inside` of the vertices first .. last-1, whose rows are given."""
        numbers = self.vertex_start[first : last + 1]
        start = self.set_start[numbers[0] : numbers[-1] + 1]
        owners = np.repeat(np.arange(last - first), np.diff(self.set_start[numbers]))
        missing = np.cumsum(~allowed[owners, self.members[start[0] : start[-1]]])
        inside = numbers[0] + np.flatnonzero(
            np.diff(np.concatenate([[0], missing])[start - start[0]]) == 0
        )
        found = np.append(inside, numbers[-1])[np.searchsorted(inside, numbers[:-1])]
        return np.where(found < numbers[1:], found, -1)

    def best_of_order(self, order: npt.ArrayLike) -> Ints:
        """Return for each vertex the number of its first set of members before it in the order."""
        place = np.empty(self.n, np.int64)
        place[np.asarray(order, dtype=np.int64)] = np.arange(self.n)
        return self.best_inside(place[None, :] < place[:, None])

    def arcs(self) -> Bools:
        """Return (n, n) whether some set of b holds a, at [a, b]."""
        arcs = np.zeros((self.n, self.n), np.bool_)
        for vertex in range(self.n):
            first, last = self.set_start[self.vertex_start[vertex : vertex + 2]]
            arcs[self.members[first:last], vertex] = True
        return arcs

    def chosen(self, numbers: Ints) -> "Families":
        """Return the sets with these numbers, given ascending, as families."""
        sizes = np.diff(self.set_start)[numbers]
        start = np.concatenate([[0], np.cumsum(sizes)])
        places = np.arange(start[-1]) + np.repeat(self.set_start[numbers] - start[:-1], sizes)
        return Families(
            frozen(np.searchsorted(numbers, self.vertex_start)),
            frozen(start),
            frozen(self.members[places]),
        )

    def sets_of(self, vertex: int) -> Iterator[VertexSet]:
        """Yield the sets of one vertex, in order."""
        first, last = int(self.vertex_start[vertex]), int(self.vertex_start[vertex + 1])
        bounds = self.set_start[first : last + 1].tolist()
        offset = bounds[0] if bounds else 0
        members = self.members[offset : bounds[-1] if bounds else 0].tolist()
        for start, stop in pairwise(bounds):
            yield tuple(members[start - offset : stop - offset])


def well_formed(families: Families) -> bool:
    """Return True if the arrays hold ascending sets of vertices, none with its own vertex.

    For arrays from outside: no numbers in them let anything be read beyond an array's end.
    """
    vertex_start, set_start, members = families
    return (
        _parts(vertex_start, len(set_start) - 1)
        and _parts(set_start, len(members))
        and bool(((members >= 0) & (members < families.n)).all())
        and bool((np.diff(members) > 0)[neighbours(set_start)].all())
        and not bool((members == families.member_owners).any())
    )


def neighbours(start: Ints) -> Bools:
    """Return (start[-1] - 1,) whether k and k + 1 are in the same part."""
    total = int(start[-1])
    same = np.ones(max(total - 1, 0), dtype=np.bool_)
    borders = start[1:-1]
    same[borders[(borders > 0) & (borders < total)] - 1] = False
    return same


def _parts(start: Ints, total: int) -> bool:
    """Return True if start cuts 0 .. total-1 into parts."""
    return bool(start[0] == 0 and start[-1] == total and (start[1:] >= start[:-1]).all())


def counting_bound(sets: int) -> int:
    """Return the least k with k (k + 1) / 2 >= sets: k sets have no more unions of at most two."""
    root = (math.isqrt(8 * sets + 1) - 1) // 2
    return root if root * (root + 1) // 2 >= sets else root + 1
