"""Strongly connected components of the candidate graph, each a problem of its own.

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


class Component(NamedTuple):
    """The candidate sets of one component, in local numbers: best first inside a vertex, its base last."""

    vertices: Ints  # (k,) ascending; local vertex v is vertices[v]
    families: Families
    scores: Floats  # (sets,)
    numbers: Ints  # (sets,) of the candidate sets


def split(candidates: Candidates) -> list[Component]:
    """Return the components of two vertices or more, largest first; `join` handles the other vertices."""
    found = [vertices for vertices in strong_components(candidates.families.arcs()) if len(vertices) > 1]
    if len(found) == 1 and len(found[0]) == candidates.n:
        everything = np.arange(len(candidates.scores))
        return [Component(frozen(found[0]), candidates.families, candidates.scores, frozen(everything))]
    found.sort(key=lambda vertices: (-len(vertices), int(vertices[0])))
    return [_component(candidates, vertices) for vertices in found]


def join(candidates: Candidates, components: Sequence[Component], choices: Sequence[Ints]) -> Ints:
    """Return the choice for all vertices from one for each component; a vertex in none takes its best set."""
    choice = candidates.families.vertex_start[:-1].copy()
    for component, local in zip(components, choices, strict=True):
        choice[component.vertices] = component.numbers[local]
    return choice


def _component(candidates: Candidates, vertices: Ints) -> Component:
    place = np.full(candidates.n, -1, np.int32)
    place[vertices] = np.arange(len(vertices), dtype=np.int32)
    found = [_projected(candidates.families, vertex, place) for vertex in vertices.tolist()]
    numbers = np.concatenate([numbers for numbers, _, _ in found])
    families = Families(
        frozen(np.cumsum([0, *(len(numbers) for numbers, _, _ in found)], dtype=np.int64)),
        frozen(np.cumsum(np.concatenate([[0], *(sizes for _, sizes, _ in found)]), dtype=np.int64)),
        frozen(np.concatenate([members for _, _, members in found])),
    )
    return Component(frozen(vertices), families, frozen(candidates.scores[numbers]), frozen(numbers))


def _projected(families: Families, vertex: int, place: SmallInts) -> tuple[Ints, Ints, SmallInts]:
    """Return (number, size, members inside) of the vertex's sets: of equal ones the best, and none below the base."""
    first, last = families.vertex_start[vertex : vertex + 2].tolist()
    start = families.set_start[first : last + 1]
    sizes, members = np.diff(start), place[families.members[start[0] : start[-1]]]
    inside = members >= 0
    if inside.all():
        return np.arange(first, last), sizes, members
    owners = np.repeat(np.arange(last - first), sizes)[inside]
    members, sizes = members[inside], np.bincount(owners, minlength=last - first)
    keep = _first_of_equals(owners, members, sizes)
    # Every set contains the base: the first set with as few members inside equals it there and beats all later ones.
    keep[int(np.argmax(sizes == sizes[-1])) + 1 :] = False
    return first + np.flatnonzero(keep), sizes[keep], members[keep[owners]]


def _first_of_equals(owners: Ints, members: SmallInts, sizes: Ints) -> Bools:
    """Return (sets,) whether no set before it has the same members."""
    table = np.full((len(sizes), int(sizes.max(initial=0))), -1, np.int32)
    starts = np.cumsum(sizes) - sizes
    table[owners, np.arange(len(owners)) - starts[owners]] = members
    first = np.zeros(len(sizes), np.bool_)
    first[np.unique(table, axis=0, return_index=True)[1]] = True
    return first
