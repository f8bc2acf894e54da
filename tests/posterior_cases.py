"""Parent sets of few variables, for tests of the posterior over networks."""

from itertools import combinations

import numpy as np

from qubayes.candidates import SlackSets
from qubayes.foundation.families import Families

NAMES = tuple("abcdefghijklmnop")


def shifted(lists):
    """The same sets with scores near 0, so that weights can be summed plainly."""
    tops = [max(score for _, score in its) for its in lists]
    return [[(m, score - top) for m, score in its] for its, top in zip(lists, tops, strict=True)]


def sets_from(lists) -> SlackSets:
    """Sets with given scores, best first."""
    lists = [sorted(its, key=lambda pair: -pair[1]) for its in lists]
    scores = np.array([score for its in lists for _, score in its])
    families = Families.of([[members for members, _ in its] for its in lists])
    none = np.zeros(len(scores))
    return SlackSets(NAMES[: len(lists)], families, scores, none, none == 0.0)


def matrix(shares, n: int) -> np.ndarray:
    return np.array([[shares.get((a, b), 0.0) for b in range(n)] for a in range(n)])


def random_lists(n: int, seed: int, deviation: float):
    random = np.random.default_rng(seed)
    lists = []
    for child in range(n):
        pool = [v for v in range(n) if v != child]
        sets = [its for size in range(n) for its in combinations(pool, size)]
        lists.append([(its, float(random.normal(0.0, deviation))) for its in sets])
    return lists
