"""Constraints that a sample violates: at most two subsets, slack, edges, triangles."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..foundation.arrays import Bools, Ints
from .gains import Parents

if TYPE_CHECKING:
    from .formulation import Formulation

SENTENCES = {
    "subsets": "{0} has active subsets that no candidate set combines",
    "slack": "z[{0}] does not say whether two subsets of {0} are active",
    "edge": "{0} is a parent of {1} but comes after it",
    "required": "{0} is a required parent of {1} but comes after it",
    "triangle": "{0} comes before {1}, {1} before {2} and {2} before {0}",
}


class Violation(NamedTuple):
    """A violated constraint: `subsets`, `slack`, `edge`, `required`, `triangle` or `cycle`."""

    constraint: str
    vertices: tuple[str, ...]  # the vertex; parent and child; those of the cycle, in its order

    def __str__(self) -> str:
        if self.constraint == "cycle":
            return f"{' -> '.join((*self.vertices, self.vertices[0]))} is a directed cycle"
        return SENTENCES[self.constraint].format(*self.vertices)


def active_counts(formulation: "Formulation", samples: Bools) -> Ints:
    """Return (samples, n) the number of active subsets of each vertex."""
    u = samples[:, : formulation.subsets.total]
    sums = np.cumsum(np.pad(u, ((0, 0), (1, 0))), axis=1)
    return np.diff(sums[:, formulation.subsets.families.vertex_start], axis=1)


def subset_violations(
    formulation: "Formulation", state: Bools, constrained: bool
) -> list[Violation]:
    """Return vertices whose subsets or z bit cost energy; constrained: with more than two."""
    penalties = formulation.penalties
    active = active_counts(formulation, state[None])[0]
    wrong = active > 2
    if constrained:
        return _of_vertices(formulation, "subsets", wrong)
    penalised = penalties.at_most_two > 0
    for vertex in np.flatnonzero((active == 2) & ~penalties.has_slack & penalised).tolist():
        wrong[vertex] = not _represents_a_set(formulation, state, vertex)
    z = np.append(state, False)[formulation.z_bits]
    slack = ((active == 0) & z) | ((active == 2) & ~z)  # with one active subset z is free
    slack &= penalties.has_slack & penalised
    return [
        *_of_vertices(formulation, "subsets", wrong),
        *_of_vertices(formulation, "slack", slack),
    ]


def _of_vertices(formulation: "Formulation", constraint: str, wrong: Bools) -> list[Violation]:
    names = formulation.candidates.names
    return [Violation(constraint, (names[vertex],)) for vertex in np.flatnonzero(wrong).tolist()]


def _represents_a_set(formulation: "Formulation", state: Bools, vertex: int) -> bool:
    """Return whether the two active subsets of the vertex represent one of its candidate sets."""
    first, last = formulation.subsets.families.vertex_start[vertex : vertex + 2]
    own = slice(*formulation.candidates.families.vertex_start[vertex : vertex + 2])
    pair = first + np.flatnonzero(state[first:last])
    return bool((formulation.representations[own] == pair).all(axis=1).any())


def order_violations(formulation: "Formulation", state: Bools) -> list[Violation]:
    """Return each active or required edge against the order, and each cyclic triangle."""
    relative = formulation.relative
    r = state[formulation.first_r : formulation.first_z]
    active = state[relative.subset_sets.sets_of_members]
    edges = np.unique(relative.edges_in(relative.subset_sets)[active])
    required = np.arange(len(relative.required.vertices))
    return [
        *_of_edges(formulation, "edge", relative.parents, edges, r),
        *_of_edges(formulation, "required", relative.required, required, r),
        *_of_triangles(formulation, r),
    ]


def _of_edges(
    formulation: "Formulation", constraint: str, edges: Parents, present: Ints, r: Bools
) -> list[Violation]:
    """Return those of the present edges that are against the order."""
    names = formulation.candidates.names
    wrong = present[~formulation.order.allows(r, edges)[present]]
    ends = zip(edges.vertices[wrong].tolist(), edges.children[wrong].tolist(), strict=True)
    return [Violation(constraint, (names[parent], names[child])) for parent, child in ends]


def _of_triangles(formulation: "Formulation", r: Bools) -> list[Violation]:
    order, names = formulation.order, np.array(formulation.candidates.names, object)
    cyclic = order.cyclic(r)
    corners = order.corners()[cyclic]
    forward = (r == order.ascending)[order.triangles[cyclic, 0]]  # a before b
    cycles = np.where(forward[:, None], corners, corners[:, ::-1])
    return [Violation("triangle", tuple(cycle)) for cycle in names[cycles].tolist()]
