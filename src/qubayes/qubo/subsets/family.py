"""The candidate sets of one vertex, as the problem of covering sees them."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ...foundation.arrays import Ints, SmallInts
from ...foundation.errors import QubayesError
from ...foundation.families import Families, VertexSet


class Family(NamedTuple):
    """Distinct non-empty sets over the elements 0 .. len(elements) - 1, smaller first, then lexicographic.

    The order is canonical: it does not depend on the order in which the sets were given.
    """

    elements: SmallInts  # (k,) the vertex behind each element, ascending
    sizes: Ints  # (sets,) number of members of each set, ascending
    members: SmallInts  # (sum of sizes,) elements, ascending inside a set

    def sets(self) -> list[VertexSet]:
        """The sets, each as ascending elements."""
        members, stops = self.members.tolist(), np.cumsum(self.sizes).tolist()
        return [tuple(members[stop - size : stop]) for stop, size in zip(stops, self.sizes.tolist(), strict=True)]

    def named(self, sets: Iterable[VertexSet]) -> list[VertexSet]:
        """The same sets with vertices in place of elements."""
        elements = self.elements.tolist()
        return [tuple(elements[element] for element in members) for members in sets]


def family_of(families: Families, vertex: int) -> Family:
    """The sets {W \\ base} of one vertex, its base being the last set; the empty set and repetitions are left out."""
    first, last = int(families.vertex_start[vertex]), int(families.vertex_start[vertex + 1])
    if first == last:
        return _canonical(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32))
    starts = families.set_start[first : last + 1]
    members, sizes = families.members[starts[0] : starts[-1]], np.diff(starts)
    if sizes[-1]:
        members, sizes = _without_base(members, sizes, vertex)
    return _canonical(sizes, members)


def family_from(sets: Sequence[Iterable[int]]) -> Family:
    """The same form of sets that are given one by one."""
    lists = [sorted(set(members)) for members in sets]
    return _canonical(np.array([len(members) for members in lists], dtype=np.int64), _flat(lists))


def _flat(lists: Sequence[Sequence[int]]) -> SmallInts:
    return np.array([member for members in lists for member in members], dtype=np.int32)


def _without_base(members: SmallInts, sizes: Ints, vertex: int) -> tuple[SmallInts, Ints]:
    required = members[len(members) - sizes[-1] :]
    kept = np.isin(members, required, invert=True)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    remaining = np.bincount(owner[kept], minlength=len(sizes))
    if np.any(sizes - remaining != len(required)):
        raise QubayesError(
            f"vertex {vertex} has a candidate set without its required parents {tuple(required.tolist())}; "
            "every set must contain the last one"
        )
    return members[kept], remaining


def _canonical(sizes: Ints, members: SmallInts) -> Family:
    elements, numbers = np.unique(members, return_inverse=True)
    width = int(sizes.max(initial=0))
    filled = np.arange(width) < sizes[:, None]
    matrix = np.full((len(sizes), width), -1, dtype=np.int32)
    matrix[filled] = numbers
    order = np.lexsort((*matrix.T[::-1], sizes))
    matrix, sizes = matrix[order], sizes[order]
    fresh = np.ones(len(sizes), dtype=bool)
    fresh[1:] = np.any(matrix[1:] != matrix[:-1], axis=1)
    fresh &= sizes > 0
    matrix, sizes = matrix[fresh], sizes[fresh]
    return Family(elements.astype(np.int32), sizes, matrix[matrix >= 0])
