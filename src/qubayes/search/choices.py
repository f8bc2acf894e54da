"""A network as a choice: for each vertex the number of one of its candidate sets."""

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from ..candidates import Candidates
from ..foundation.arrays import Bools, Ints
from ..foundation.families import Families, VertexSet


def parents_of(candidates: Candidates, choice: npt.ArrayLike) -> tuple[VertexSet, ...]:
    """The parents that the chosen candidate sets give each vertex."""
    chosen, families = np.asarray(choice, dtype=np.int64), candidates.families
    bounds = zip(families.set_start[chosen].tolist(), families.set_start[chosen + 1].tolist(), strict=True)
    return tuple(tuple(families.members[first:last].tolist()) for first, last in bounds)


def best_inside(candidates: Candidates, allowed: Sequence[Collection[int]]) -> Ints:
    """For each vertex the number of its best candidate set whose members are all allowed; its base must be."""
    choice = np.empty(candidates.n, np.int64)
    for vertex, members in enumerate(allowed):
        inside = np.zeros(candidates.n, np.bool_)
        inside[list(members)] = True
        choice[vertex] = first_inside(candidates.families, vertex, inside)
    return choice


def first_inside(families: Families, vertex: int, inside: Bools) -> int:
    """The number of the best candidate set of the vertex inside; sets come best first, the base last."""
    first, last = families.vertex_start[vertex : vertex + 2].tolist()
    start = families.set_start[first : last + 1]
    misses = np.concatenate([[0], np.cumsum(~inside[families.members[start[0] : start[-1]]])])
    fits = np.diff(misses[start - start[0]]) == 0
    if not fits.any():
        raise AssertionError(f"the required parents of vertex {vertex} are not allowed")
    return int(first + np.argmax(fits))


def best_of_order(families: Families, order: Ints) -> Ints:
    """For each vertex the number of its best candidate set whose members all come before it in the order."""
    inside, choice = np.zeros(families.n, np.bool_), np.empty(families.n, np.int64)
    for vertex in order.tolist():
        choice[vertex] = first_inside(families, vertex, inside)
        inside[vertex] = True
    return choice
