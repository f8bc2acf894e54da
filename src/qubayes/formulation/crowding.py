"""What keeps a vertex at two active subsets: how strong a penalty, and with or without a z bit (docs/theory.md §4)."""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ..arrays import Floats, SmallInts

TOLERANCE = 1e-9  # a third subset that loses less than this is not trusted to lose: scores are sums with rounding


class Crowding(NamedTuple):
    """Bounds on what a third active subset of a vertex can gain."""

    least: float  # in the best order of dropping subsets: the bound on the penalty xi
    largest: float  # whichever subset is dropped


@njit(nogil=True, cache=True)
def pair_index(j: int, k: int, mu: int) -> Any:
    """Where the pair j < k stands in lexicographic order."""
    return j * (2 * mu - j - 1) // 2 + k - j - 1


@njit(nogil=True, cache=True)
def _gain_of(b: int, singles: Any, pairs: Any, there: Any) -> Any:
    """max over j != l, both there, of max(0, f(b|j) - f(j)) + f(b|l) - f(b) - f(l); -inf if there are no such two."""
    mu = len(singles)
    first, second, first_at = -np.inf, -np.inf, -1  # of max(0, f(b|j) - f(j))
    pull, next_pull, pull_at = -np.inf, -np.inf, -1  # of f(b|l) - f(b) - f(l)
    for j in range(mu):
        if j == b or not there[j]:
            continue
        joint = pairs[pair_index(min(b, j), max(b, j), mu)]
        added, synergy = max(0.0, joint - singles[j]), joint - singles[b] - singles[j]
        if added > first:
            first, second, first_at = added, first, j
        elif added > second:
            second = added
        if synergy > pull:
            pull, next_pull, pull_at = synergy, pull, j
        elif synergy > next_pull:
            next_pull = synergy
    if first_at != pull_at:
        return first + pull
    return max(first + next_pull, second + pull)


@njit(nogil=True, cache=True)
def crowding(singles: Floats, pairs: Floats) -> Crowding:
    """The two bounds of a vertex with these gains; -inf where no three subsets exist.

    `least`: subsets leave one by one, each time one that can gain little among those still there. Any three or more
    active subsets contain a first to leave, and what that one gains is at most the bound for each one beyond two.
    """
    mu = len(singles)
    there = np.ones(mu, np.bool_)
    gains = np.empty(mu)
    for b in range(mu):
        gains[b] = _gain_of(b, singles, pairs, there)
    largest = gains.max() if mu > 2 else -np.inf
    least = -np.inf
    for _ in range(mu - 2):
        chosen = int(np.argmin(gains))  # gains fall as others leave: stale ones are good enough to choose by
        least = max(least, _gain_of(chosen, singles, pairs, there))
        there[chosen] = False
        gains[chosen] = np.inf
    return Crowding(least, largest)


@njit(nogil=True, cache=True)
def choose_pairs(ways: SmallInts, first: int, mu: int) -> Any:
    """(chosen, degree): one row of `ways` for each candidate set, and the largest degree of the graph of chosen pairs.

    The pairs chosen have no triangle among them if the greedy choice finds such; otherwise degree is -1 and the first
    way of each set is chosen.
    """
    starts = [0 for _ in range(0)]
    for row in range(len(ways)):
        if row == 0 or ways[row, 0] != ways[row - 1, 0]:
            starts.append(row)
    begin = np.array([*starts, len(ways)])
    sets = len(starts)
    chosen = begin[:-1].copy()
    needed = 0
    for number in range(sets):
        needed += ways[begin[number], 1] != ways[begin[number], 2]
    if 4 * needed > mu * mu:  # Mantel: a graph without triangles has at most mu^2 / 4 edges
        return chosen, -1
    joined = np.zeros((mu, mu), np.bool_)
    picked = chosen.copy()
    for number in np.argsort(begin[1:] - begin[:-1], kind="mergesort"):  # fewest ways first
        fits = False
        for row in range(begin[number], begin[number + 1]):
            j, k = ways[row, 1] - first, ways[row, 2] - first
            if j == k or not (joined[j] & joined[k]).any():
                fits = True
                if j != k:
                    joined[j, k] = joined[k, j] = True
                picked[number] = row
                break
        if not fits:
            return chosen, -1
    degree = 0
    for j in range(mu):
        degree = max(degree, joined[j].sum())
    return picked, degree


def crowd_bound(crowd: Crowding, degree: int) -> float:
    """What the penalty must exceed: xi with a z bit (degree -1), or the one on pairs that no candidate set uses.

    Without a z bit: some one of k active subsets has at least ceil(k/2) - 1 unused pairs (k - 2 if the degree is 0 or
    1), so twice (once) the bound for k - 2 subsets too many is enough. -inf where no penalty is needed.
    """
    if crowd.least < -TOLERANCE:
        return -np.inf
    return max(crowd.least if degree < 0 else crowd.largest * (1.0 if degree <= 1 else 2.0), 0.0)
