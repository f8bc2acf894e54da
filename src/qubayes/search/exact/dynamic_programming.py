"""The best network of a few vertices, by dynamic programming over the sets of vertices that come first in the order."""

import numpy as np

from ...foundation.arrays import Floats, Ints
from ...foundation.families import Families

LARGEST = 14  # vertices: 2^14 * 14 scores, some 20 ms


def best_of_all(families: Families, scores: Floats) -> Ints:
    """Return the candidate sets of an optimal network; n 2^n scores in memory (Silander and Myllymäki 2006)."""
    n = families.n
    best, set_of = _best_inside(families, scores)
    total = np.full(1 << n, -np.inf)
    total[0] = 0.0
    sink = np.zeros(1 << n, np.int64)
    everything = np.arange(1 << n)
    sizes = sum((everything >> vertex) & 1 for vertex in range(n))
    for size in range(1, n + 1):
        layer = everything[sizes == size]
        for vertex in range(n):
            with_vertex = layer[(layer >> vertex) & 1 == 1]
            without = with_vertex ^ (1 << vertex)
            value = total[without] + best[vertex, without]
            wins = value > total[with_vertex]
            total[with_vertex[wins]] = value[wins]
            sink[with_vertex[wins]] = vertex
    choice, rest = np.empty(n, np.int64), (1 << n) - 1
    while rest:  # from the last vertex of the order to the first
        vertex = int(sink[rest])
        rest ^= 1 << vertex
        choice[vertex] = set_of[vertex, rest]
    return choice


def _best_inside(families: Families, scores: Floats) -> tuple[Floats, Ints]:
    """Return (n, 2^n) the score and number of the best set of each vertex inside each set of vertices."""
    n = families.n
    best, number_of = np.full((n, 1 << n), -np.inf), np.full((n, 1 << n), -1)
    for vertex in range(n):
        first, last = families.vertex_start[vertex : vertex + 2].tolist()
        masks = [sum(1 << member for member in members) for members in families.sets_of(vertex)]
        for number, mask in zip(range(last - 1, first - 1, -1), reversed(masks), strict=True):  # the best comes last
            best[vertex, mask], number_of[vertex, mask] = scores[number], number
        for member in range(n):
            scored = best[vertex].reshape(-1, 2, 1 << member)
            numbered = number_of[vertex].reshape(-1, 2, 1 << member)
            wins = scored[:, 0] > scored[:, 1]
            scored[:, 1][wins] = scored[:, 0][wins]
            numbered[:, 1][wins] = numbered[:, 0][wins]
    return best, number_of
