"""The best of all networks, slowly: every choice of candidate sets, or every set of vertices that may come first."""

from collections.abc import Sequence
from functools import cache
from itertools import combinations, product
from math import exp, fsum, prod

Sets = Sequence[tuple[tuple[int, ...], float]]  # (members, score) of one vertex


def acyclic(parents: Sequence[Sequence[int]]) -> bool:
    """Whether the vertices can be taken away one by one, each without parents among those that are left."""
    left = set(range(len(parents)))
    while free := [vertex for vertex in left if not left & set(parents[vertex])]:
        left -= set(free)
    return not left


def best_by_exhaustion(lists: Sequence[Sets]) -> float:
    """The largest score of an acyclic choice of one set for each vertex; -inf if there is none."""
    scores = [
        sum(score for _, score in chosen)
        for chosen in product(*lists)
        if acyclic([members for members, _ in chosen])
    ]
    return max(scores, default=float("-inf"))


def best_by_subsets(lists: Sequence[Sets]) -> float:
    """The same by recursion over the set of vertices that come first."""

    @cache
    def best(first: frozenset[int]) -> float:
        if not first:
            return 0.0
        return max(best(first - {v}) + score_inside(lists[v], first - {v}) for v in first)

    return best(frozenset(range(len(lists))))


def score_inside(sets: Sets, allowed: frozenset[int] | set[int]) -> float:
    """The largest score of a set whose members are all allowed; -inf if there is none."""
    return max((score for members, score in sets if set(members) <= allowed), default=float("-inf"))


def score_of_order(lists: Sequence[Sets], order: Sequence[int]) -> float:
    """The sum over the vertices of the largest score of a set among those that come before."""
    return sum(
        score_inside(lists[vertex], set(order[:place])) for place, vertex in enumerate(order)
    )


def edge_probabilities(lists: Sequence[Sets]) -> tuple[float, dict[tuple[int, int], float]]:
    """The sum of exp(score) over all acyclic choices, and the share of it with each edge (parent, child)."""
    total, shares = 0.0, dict[tuple[int, int], float]()
    for chosen in product(*lists):
        if acyclic([members for members, _ in chosen]):
            weight = exp(fsum(score for _, score in chosen))
            total += weight
            for child, (members, _) in enumerate(chosen):
                for parent in members:
                    shares[parent, child] = shares.get((parent, child), 0.0) + weight
    return total, {edge: share / total for edge, share in shares.items()}


def sum_by_layers(lists: Sequence[Sets]) -> float:
    """The same sum by layers: each network once, by the longest path that leads to each vertex.

    All terms are positive: a vertex of the next layer has a parent in the last one and none outside
    the earlier ones."""
    everything = frozenset(range(len(lists)))

    @cache
    def inside(vertex: int, allowed: frozenset[int]) -> float:
        return fsum(exp(score) for members, score in lists[vertex] if set(members) <= allowed)

    @cache
    def rest(placed: frozenset[int], last: frozenset[int]) -> float:
        if placed == everything:
            return 1.0
        left = sorted(everything - placed)
        weight = {
            v: inside(v, placed) - (inside(v, placed - last) if placed else 0.0) for v in left
        }
        layers = (
            frozenset(layer)
            for size in range(1, len(left) + 1)
            for layer in combinations(left, size)
        )
        return fsum(
            prod(weight[v] for v in layer) * rest(placed | layer, layer) for layer in layers
        )

    return rest(frozenset(), frozenset())


def right_pairs(
    parents: Sequence[Sequence[int]], probability: dict[tuple[int, int], float]
) -> float:
    """The expected number of pairs for which the network has the true edge, or rightly none."""
    total = 0.0
    for a, b in combinations(range(len(parents)), 2):
        forth, back = probability.get((a, b), 0.0), probability.get((b, a), 0.0)
        total += forth if a in parents[b] else back if b in parents[a] else 1.0 - forth - back
    return total
