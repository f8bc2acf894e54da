"""Strongly connected components of the candidate graph, each a problem of its own (design §7).

Edges between components follow one order in every network, so a parent outside its child's component is always
allowed: of each set only the members inside the component matter.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..candidates import Candidates
from ..foundation.arrays import Bools, Floats, Ints, SmallInts, frozen
from ..foundation.families import Families
from ..foundation.graph import strong_components


class Part(NamedTuple):
    """The sets of one component, in local numbers: best first inside a vertex, its base last."""

    vertices: Ints  # (k,) ascending; local vertex v is vertices[v]
    families: Families
    scores: Floats  # (sets,)
    numbers: Ints  # (sets,) of the candidate sets that they come from


def split(candidates: Candidates) -> list[Part]:
    """The components of two vertices or more, largest first; see `join` for the other vertices."""
    found = [vertices for vertices in strong_components(candidates.families.arcs()) if len(vertices) > 1]
    if len(found) == 1 and len(found[0]) == candidates.n:
        everything = np.arange(len(candidates.scores))
        return [Part(frozen(found[0]), candidates.families, candidates.scores, frozen(everything))]
    parts = [_part(candidates, vertices) for vertices in found]
    return sorted(parts, key=lambda part: (-len(part.vertices), int(part.vertices[0])))


def join(candidates: Candidates, parts: Sequence[Part], choices: Sequence[Ints]) -> Ints:
    """The choice for all vertices from one for each part; a vertex in no part takes its best set."""
    choice = candidates.families.vertex_start[:-1].copy()
    for part, local in zip(parts, choices, strict=True):
        choice[part.vertices] = part.numbers[local]
    return choice


def _members_of(families: Families, vertex: int) -> SmallInts:
    """The members of all sets of the vertex, one set after the other."""
    first, last = families.set_start[families.vertex_start[vertex : vertex + 2]]
    return families.members[first:last]


def _part(candidates: Candidates, vertices: Ints) -> Part:
    place = np.full(candidates.n, -1, np.int32)
    place[vertices] = np.arange(len(vertices), dtype=np.int32)
    found = [_projected(candidates.families, vertex, place) for vertex in vertices.tolist()]
    numbers = np.concatenate([numbers for numbers, _, _ in found])
    families = Families(
        frozen(np.cumsum([0, *(len(numbers) for numbers, _, _ in found)], dtype=np.int64)),
        frozen(np.cumsum(np.concatenate([[0], *(sizes for _, sizes, _ in found)]), dtype=np.int64)),
        frozen(np.concatenate([members for _, _, members in found])),
    )
    return Part(frozen(vertices), families, frozen(candidates.scores[numbers]), frozen(numbers))


def _projected(families: Families, vertex: int, place: SmallInts) -> tuple[Ints, Ints, SmallInts]:
    """(number, size, members inside) of the vertex's sets: of equal ones the best, and none that the base equals."""
    first, last = families.vertex_start[vertex : vertex + 2].tolist()
    sizes = np.diff(families.set_start[first : last + 1])
    members = place[_members_of(families, vertex)]
    inside = members >= 0
    if inside.all():
        return np.arange(first, last), sizes, members
    owners = np.repeat(np.arange(last - first), sizes)[inside]
    members, sizes = members[inside], np.bincount(owners, minlength=last - first)
    keep = _first_of_equals(owners, members, sizes)
    # Every set contains the base: the first with as few members inside equals it there and beats what follows.
    keep[int(np.argmax(sizes == sizes[-1])) + 1 :] = False
    return first + np.flatnonzero(keep), sizes[keep], members[keep[owners]]


def _first_of_equals(owners: Ints, members: SmallInts, sizes: Ints) -> Bools:
    """Whether no set before it has the same members."""
    table = np.full((len(sizes), int(sizes.max(initial=0))), -1, np.int32)
    starts = np.cumsum(sizes) - sizes
    table[owners, np.arange(len(owners)) - starts[owners]] = members
    first = np.zeros(len(sizes), np.bool_)
    first[np.unique(table, axis=0, return_index=True)[1]] = True
    return first
