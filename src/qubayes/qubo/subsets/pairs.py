"""The smallest cover when no candidate set has more than two elements: a closed form (design §6)."""

import numpy as np

from ...foundation.families import VertexSet
from .family import Family


def cover_pairs(family: Family) -> list[VertexSet]:
    """A smallest cover of sets with one or two elements, by components of the graph whose edges are the pairs.

    If T are the singletons that are chosen, a pair costs a member unless both its ends are in T, so the cost is |T| and
    the number of edges not inside T. Contracting a non-empty T leaves a connected graph of v - |T| + 1 vertices, so at
    least v - |T| edges are not inside T, and the cost is at least v; T = everything attains it. T empty costs the
    number of edges, which is less than v only for a tree. So a component costs v members, or v - 1 if it is a tree
    without a singleton that is itself a candidate.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    count, singles = len(family.elements), int(np.searchsorted(family.sizes, 2))
    pairs = family.members[singles:].reshape(-1, 2)
    graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(count, count))
    components, label = connected_components(graph, directed=False)
    forced = np.zeros(components, dtype=bool)
    forced[label[family.members[:singles]]] = True
    edges = np.bincount(label[pairs[:, 0]], minlength=components)
    by_pairs = (edges < np.bincount(label, minlength=components)) & ~forced
    chosen_singles = np.flatnonzero(~by_pairs[label])
    chosen_pairs = pairs[by_pairs[label[pairs[:, 0]]]]
    return [(element,) for element in chosen_singles.tolist()] + [(a, b) for a, b in chosen_pairs.tolist()]
