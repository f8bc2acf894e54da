"""Strongly connected components of the candidate graph, each a problem of its own (design §7).

Edges between components follow one order in every network, so a parent outside its child's component is always
allowed: of each set only the members inside the component matter.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from ..candidates import Candidates
from ..foundation.arrays import Bools, Floats, Ints, SmallInts, frozen
from ..foundation.families import Families


class Part(NamedTuple):
    """The sets of one component, in local numbers: best first inside a vertex, its base last."""

    vertices: Ints  # (k,) ascending; local vertex v is vertices[v]
    families: Families
    scores: Floats  # (sets,)
    numbers: Ints  # (sets,) of the candidate sets that they come from


def split(candidates: Candidates) -> list[Part]:
    """The components of two vertices or more, largest first; see `join` for the other vertices."""
    labels = component_labels(candidates)
    if candidates.n > 1 and labels.max() == 0:
        everything = np.arange(len(candidates.scores))
        return [Part(np.arange(candidates.n), candidates.families, candidates.scores, frozen(everything))]
    found = [np.flatnonzero(labels == label) for label in np.flatnonzero(np.bincount(labels, minlength=1) > 1)]
    parts = [_part(candidates, vertices) for vertices in found]
    return sorted(parts, key=lambda part: (-len(part.vertices), int(part.vertices[0])))


def join(candidates: Candidates, parts: Sequence[Part], choices: Sequence[Ints]) -> Ints:
    """The choice for all vertices from one for each part; a vertex in no part takes its best set."""
    choice = candidates.families.vertex_start[:-1].copy()
    for part, local in zip(parts, choices, strict=True):
        choice[part.vertices] = part.numbers[local]
    return choice


def component_labels(candidates: Candidates) -> Ints:
    """(n,) the number of each vertex's strongly connected component in the graph of all candidate edges."""
    edges = np.zeros((candidates.n, candidates.n), np.bool_)
    for vertex in range(candidates.n):
        edges[_members_of(candidates.families, vertex), vertex] = True
    labels: Ints = connected_components(csr_matrix(edges.astype(np.int8)), directed=True, connection="strong")[
        1
    ].astype(np.int64)
    return labels


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
