"""The best of all networks, slowly: every choice of candidate sets, or every set of vertices that may come first."""

from collections.abc import Sequence
from functools import cache
from itertools import product

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
        sum(score for _, score in chosen) for chosen in product(*lists) if acyclic([members for members, _ in chosen])
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
    return sum(score_inside(lists[vertex], set(order[:place])) for place, vertex in enumerate(order))
