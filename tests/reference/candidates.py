"""Candidate parent sets by comparing all pairs: slow and obvious."""

from collections.abc import Callable, Sequence
from itertools import combinations

ScoredSet = tuple[tuple[int, ...], float]


def prune(lists: Sequence[Sequence[ScoredSet]]) -> list[list[ScoredSet]]:
    """The sets that beat every proper subset among those given by more than the tolerance, best first, per vertex."""
    return [_prune_one([(tuple(sorted(parents)), score) for parents, score in family]) for family in lists]


def _prune_one(family: Sequence[ScoredSet]) -> list[ScoredSet]:
    base, base_score = min(family, key=lambda scored: len(scored[0]))
    assert all(set(base) <= set(parents) for parents, _ in family)
    tolerance = 1e-10 + abs(base_score) / 2**46
    kept = [
        (parents, score)
        for parents, score in family
        if all(score > other + tolerance for subset, other in family if set(subset) < set(parents))
    ]
    return sorted(kept, key=lambda scored: (-scored[1], len(scored[0]), scored[0]))


def candidate_sets(
    score_function: Callable[[int, tuple[int, ...]], float],
    n: int,
    m: int,
    required: Sequence[Sequence[int]] | None = None,
    allowed: Sequence[Sequence[int]] | None = None,
) -> list[list[ScoredSet]]:
    """The candidate sets of each of n vertices among all sets of at most m parents (Definition 2).

    With `required` and `allowed`, a set of vertex i is required[i] and some of allowed[i].
    """
    lists = []
    for child in range(n):
        base = tuple(required[child]) if required is not None else ()
        others = allowed[child] if allowed is not None else [v for v in range(n) if v != child]
        sets = [
            tuple(sorted(base + more))
            for size in range(m - len(base) + 1)
            for more in combinations(sorted(others), size)
        ]
        lists.append([(parents, score_function(child, parents)) for parents in sets])
    return prune(lists)
