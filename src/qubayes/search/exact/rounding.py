"""Round a solution of the relaxation to an order of the vertices."""

from collections.abc import Sequence

import numpy as np

from ...foundation.arrays import Ints
from ...foundation.families import VertexSet
from .cuts import Support

_BEHIND = 1e6  # keeps a vertex behind its required parents; values of a vertex sum to 1


def greedy_order(support: Support, required: Sequence[VertexSet]) -> Ints:
    """Return the order in which each next vertex has the most value on sets of earlier vertices.

    A vertex never comes before its required parents."""
    n = support.families.n
    missing = support.families.set_sizes  # members of each set that are not in the order
    ready = np.zeros(n)  # value of the sets whose members are all in the order
    np.add.at(ready, support.owners[missing == 0], support.values[missing == 0])
    waiting = {vertex for vertex, parents in enumerate(required) if parents}
    ready[list(waiting)] -= _BEHIND
    order: list[int] = []
    for _ in range(n):
        vertex = int(np.argmax(ready))
        order.append(vertex)
        ready[vertex] = -np.inf
        containing = support.children_of(vertex)
        missing[containing] -= 1
        complete = containing[missing[containing] == 0]
        np.add.at(ready, support.owners[complete], support.values[complete])
        freed = {other for other in waiting if {*required[other]} <= {*order}}
        ready[list(freed)] += _BEHIND
        waiting -= freed
    return np.array(order, np.int64)
