"""Candidate parent sets by comparing all pairs, and the choice of possible parents: slow and obvious."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations
from math import exp, log

from .scores import prior_counts

ScoredSet = tuple[tuple[int, ...], float]


def prune(lists: Sequence[Sequence[ScoredSet]]) -> list[list[ScoredSet]]:
    """The sets that beat every proper subset among those given by more than the tolerance, best first, per vertex."""
    return [
        _prune_one([(tuple(sorted(parents)), score) for parents, score in family])
        for family in lists
    ]


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
    """The candidate sets of each of n vertices among all sets of at most m parents (`CPS` in the paper).

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


def partner_score(rows, arities, child, parents, name, ess=1.0):
    """The local score with two parents, its terms to first order around the prior of a family of average arities."""
    cells, joint = (
        Counter((row[parents[0]], row[parents[1]], row[child]) for row in rows),
        Counter(),
    )
    for (first, second, _), count in cells.items():
        joint[first, second] += count
    seen = [len({row[v] for row in rows}) for v in range(len(arities))]
    declared, r = arities[parents[0]] * arities[parents[1]], arities[child]
    if name in ("bic", "aic", "loglik"):
        price = {"bic": 0.5 * log(len(rows)), "aic": 1.0, "loglik": 0.0}[name]
        return sum(c * log(c / joint[key[:2]]) for key, c in cells.items()) - price * declared * (
            r - 1
        )
    numbers = seen if name == "bds" else arities
    average = exp(2 * sum(map(log, numbers)) / len(numbers))
    states, number = (seen[child], len(joint)) if name == "bds" else (r, declared)
    own = prior_counts(name, ess, (number, states), (number, states))
    around = prior_counts(name, ess, (average, states), (average, states))
    joints, cell = zip(own, around, strict=True)

    def term(count, prior, around):
        return log(prior) + sum(
            log(t + around) + (prior - around) / (t + around) for t in range(1, count)
        )

    total = sum(term(count, *cell) for count in cells.values())
    return total - sum(term(count, *joints) for count in joint.values())


def possible_parents(alone, paired, allowed, most, limit):
    """(parents kept, whether there was no tie) of a child: a third by their scores alone, and two partners for each.

    `alone` and `paired` score one and two parents; a child of at most one parent keeps the best
    single ones."""
    ranked, sure, margin = sorted(allowed, key=lambda j: (-alone(j), j)), [], 1e-9

    def cut(scores, place):
        sure.append(not 0 < place < len(scores) or scores[place - 1] - scores[place] > margin)

    best = [alone(j) for j in ranked]
    cut(best, most)
    if limit < 2:
        return ranked[:most], all(sure)
    count = -(-most // 3)
    # partners are chosen in the order of the single parents
    for place in range(1, min(count, len(best) - 1) + 1):
        cut(best, place)
    kept = ranked[:count]
    for single in ranked[:count]:
        for _ in range(2):
            left = sorted(
                (j for j in allowed if j not in kept), key=lambda j: (-paired(single, j), j)
            )
            if left and len(kept) < most:
                cut([paired(single, j) for j in left], 1)
                kept.append(left[0])
    more = [j for j in ranked if j not in kept][: most - len(kept)]
    return kept + more, all(sure)
