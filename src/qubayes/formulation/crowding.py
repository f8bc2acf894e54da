"""What keeps a vertex at two active subsets: how strong a penalty, and with or without a z bit (docs/theory.md §4)."""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ..arrays import Bools, Floats, SmallInts

TOLERANCE = 1e-9  # a third subset that loses less than this is not trusted to lose: scores are sums with rounding


class Crowding(NamedTuple):
    """How a vertex is kept at two active subsets, or at pairs that some candidate set uses."""

    bound: float  # what the penalty must exceed; -inf where none is needed
    slack: bool  # whether it goes with a z bit


def crowding(singles: Floats, pairs: Floats, joined: Bools, has_triangle: bool) -> Crowding:
    """The penalty that a vertex with these gains needs; `joined` are the pairs of subsets that candidate sets use."""
    slack_bound = third_gain(singles, pairs)
    if slack_bound < -TOLERANCE:
        return Crowding(-np.inf, False)
    bound = slack_bound if has_triangle else unused_bound(singles, pairs, joined)
    return Crowding(max(float(bound), 0.0), has_triangle)


@njit(nogil=True, cache=True)
def pair_index(j: int, k: int, mu: int) -> Any:
    """Where the pair of j and k stands in lexicographic order."""
    low, high = min(j, k), max(j, k)
    return low * (2 * mu - low - 1) // 2 + high - low - 1


@njit(nogil=True, cache=True)
def _gain_of(b: int, singles: Any, pairs: Any, there: Any) -> Any:
    """max over j != l, both there, of max(0, f(b|j) - f(j)) + f(b|l) - f(b) - f(l); -inf if there are no such two."""
    mu = len(singles)
    first, second, first_at = -np.inf, -np.inf, -1  # of max(0, f(b|j) - f(j))
    pull, next_pull, pull_at = -np.inf, -np.inf, -1  # of f(b|l) - f(b) - f(l)
    for j in range(mu):
        if j == b or not there[j]:
            continue
        joint = pairs[pair_index(b, j, mu)]
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
def third_gain(singles: Floats, pairs: Floats) -> Any:
    """A bound on what active subsets beyond two can gain, each; -inf where there are at most two subsets.

    Subsets leave one by one, each time one that can gain little among those still there. Any three or more active
    subsets contain a first to leave, and what that one gains is at most the bound for each one beyond two.
    """
    mu = len(singles)
    there = np.ones(mu, np.bool_)
    gains = np.empty(mu)
    for b in range(mu):
        gains[b] = _gain_of(b, singles, pairs, there)
    bound = -np.inf
    for _ in range(mu - 2):
        chosen = int(np.argmin(gains))  # gains fall as others leave: stale ones are good enough to choose by
        bound = max(bound, _gain_of(chosen, singles, pairs, there))
        there[chosen] = False
        gains[chosen] = np.inf
    return bound


@njit(nogil=True, cache=True)
def unused_bound(singles: Floats, pairs: Floats, joined: Bools) -> Any:
    """What the couplers of pairs that are not joined must exceed, where the joined ones form no triangle.

    Active subsets have one that is joined to t of the k - 1 others, 2 t <= k. It gains at most half its own score for
    each unjoined one if t = 0, f(b|j) - f(j) if t = 1; t > 1 only happens in the 2-core of the joined pairs.
    """
    mu = len(singles)
    core = _two_core(joined)
    bound = 0.5 * singles.max()
    for b in range(mu):
        for j in range(mu):
            if joined[b, j]:
                bound = max(bound, pairs[pair_index(b, j, mu)] - singles[j])
        if core[b]:
            bound = max(bound, _gain_of(b, singles, pairs, core & joined[b]))
    return bound


@njit(nogil=True, cache=True)
def _two_core(joined: Any) -> Any:
    """The vertices that remain when those with at most one neighbour leave until there are none."""
    core = np.ones(len(joined), np.bool_)
    changed = True
    while changed:
        changed = False
        for b in range(len(joined)):
            if core[b] and (joined[b] & core).sum() < 2:
                core[b] = False
                changed = True
    return core


@njit(nogil=True, cache=True)
def choose_pairs(ways: SmallInts, first: int, mu: int) -> Any:
    """(chosen, joined, has_triangle): one row of `ways` for each candidate set, and the graph of the pairs in them.

    The greedy choice (sets with the fewest ways first) avoids triangles; where it cannot, the first ways are chosen.
    """
    starts = [0 for _ in range(0)]
    for row in range(len(ways)):
        if row == 0 or ways[row, 0] != ways[row - 1, 0]:
            starts.append(row)
    begin = np.array([*starts, len(ways)])
    chosen = begin[:-1].copy()
    needed = 0
    for row in chosen:
        needed += ways[row, 1] != ways[row, 2]
    if 4 * needed > mu * mu:  # Mantel: a graph without triangles has at most mu^2 / 4 edges
        return chosen, np.zeros((0, 0), np.bool_), True
    joined = np.zeros((mu, mu), np.bool_)
    for number in np.argsort(begin[1:] - begin[:-1], kind="mergesort"):
        fits = False
        for row in range(begin[number], begin[number + 1]):
            j, k = ways[row, 1] - first, ways[row, 2] - first
            fits = j == k or not (joined[j] & joined[k]).any()
            if fits:
                joined[j, k] = joined[k, j] = j != k
                chosen[number] = row
                break
        if not fits:
            return begin[:-1].copy(), joined, True
    return chosen, joined, False
