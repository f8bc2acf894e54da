"""Edges that follow from the sets that are left: what all sets of a vertex share is required."""

from typing import NamedTuple

import numpy as np

from ...candidates import Candidates
from ...foundation.arrays import Bools, Floats, Ints, frozen
from ...foundation.families import Families, VertexSet
from ...foundation.graph import reachable
from ..exact.twins import chosen_sets


class Narrowed(NamedTuple):
    """Candidates whose bases are what all kept sets share, and where each of their sets comes from."""

    candidates: Candidates
    sources: Ints  # (sets,) number of the set that it stands for: the same one, or for a new base the best inside it


def narrowed(candidates: Candidates, kept: Ints) -> Narrowed:
    """The kept sets (ascending, at least one of each vertex) without those that required edges make impossible."""
    while True:
        left = chosen_sets(candidates, kept)
        required = shared_members(left.families)
        possible = ~_against(left.families, reachable(required))
        if possible.all():
            return _with_bases(candidates, left, kept, required)
        kept = kept[possible]


def shared_members(families: Families) -> Bools:
    """(n, n) whether all sets of the child hold the parent, by parent and child."""
    n = families.n
    owners = np.repeat(np.arange(n), np.diff(families.set_start[families.vertex_start]))
    counts = np.zeros((n, n), np.int64)
    np.add.at(counts, (families.members, owners), 1)
    shared: Bools = counts == families.sizes[None, :]
    return shared


def _against(families: Families, before: Bools) -> Bools:
    """(sets,) whether the set holds a vertex that its owner must come before."""
    owners = np.repeat(np.arange(families.n), np.diff(families.set_start[families.vertex_start]))
    wrong = np.concatenate([[0], np.cumsum(before[owners, families.members])])
    found: Bools = np.diff(wrong[families.set_start]) > 0
    return found


def _with_bases(candidates: Candidates, left: Candidates, kept: Ints, required: Bools) -> Narrowed:
    """`left` with the shared members as bases: their own set if it is there, else the best inside them stands in."""
    lists: list[list[VertexSet]] = []
    sources: list[int] = []
    for vertex in range(left.n):
        first, last = left.families.vertex_start[vertex : vertex + 2].tolist()
        sets = list(left.families.sets_of(vertex))
        base = tuple(np.flatnonzero(required[:, vertex]).tolist())
        sources.extend(kept[first:last].tolist())
        if sets[-1] != base:
            sets.append(base)
            sources.append(candidates.families.first_inside(vertex, required[:, vertex]))
        lists.append(sets)
    numbers = np.array(sources, np.int64)
    scores: Floats = frozen(candidates.scores[numbers])
    return Narrowed(Candidates(candidates.names, Families.of(lists), scores, candidates.stamp), frozen(numbers))
