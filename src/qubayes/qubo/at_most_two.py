"""What keeps a vertex at two active subsets: the at-most-two penalty, with a slack bit z or without (theory.md §4).

Each candidate set is written by one representation, a pair of subsets. If the pairs in use hold no triangle, a penalty
on the unused pairs keeps a third subset out. Otherwise the vertex needs a slack bit, unless a third subset never gains.
"""

from math import inf
from typing import NamedTuple

import numpy as np

from ..foundation.arrays import AnyArray, Bools, Floats, Ints, SmallInts
from ..foundation.jit import inner, kernel

TOLERANCE = 1e-9  # a third subset that loses less than this may gain by rounding: scores are rounded sums


class AtMostTwo(NamedTuple):
    """The penalty that keeps a vertex at two active subsets."""

    bound: float  # the penalty must exceed it; -inf where no penalty is needed
    slack: bool  # whether the vertex needs a slack bit


class Chosen(NamedTuple):
    """One representation of each candidate set, and the graph of their pairs of subsets."""

    rows: Ints  # (candidate sets,) rows of the list of representations
    joined: Bools  # (mu, mu) whether two subsets represent a candidate set; empty if there is a triangle
    has_triangle: bool


def at_most_two(singles: Floats, pairs: Floats, chosen: Chosen) -> AtMostTwo:
    """Return the penalty that a vertex with these gains and representations needs."""
    slack_bound = third_gain(singles, pairs)
    if slack_bound < -TOLERANCE:
        return AtMostTwo(-inf, False)
    bound = slack_bound if chosen.has_triangle else unused_bound(singles, pairs, chosen.joined)
    return AtMostTwo(max(bound, 0.0), chosen.has_triangle)


def pair_index(j: AnyArray, k: AnyArray, mu: int) -> AnyArray:
    """Return the lexicographic index of each pair {j, k} of mu subsets."""
    low, high = np.minimum(j, k), np.maximum(j, k)
    return np.asarray(low * (2 * mu - low - 1) // 2 + high - low - 1)


def third_gain(singles: Floats, pairs: Floats) -> float:
    """Return an upper bound on the gain of each active subset beyond two (Lemma 2); -inf for at most two subsets.

    Subsets leave one by one, each time one that can gain little among those left. Any three or more active subsets
    contain a first to leave, and its gain is at most the bound for each one beyond two.
    """
    mu = len(singles)
    return float(_third_gain(singles, pairs, np.ones(mu, np.bool_), np.empty(mu)))


def unused_bound(singles: Floats, pairs: Floats, joined: Bools) -> float:
    """Return what the couplers of unused pairs must exceed, where the joined pairs hold no triangle (Lemma 3).

    Among k active subsets one is joined to t others, 2 t <= k. It gains at most half its own score for each unjoined
    one if t = 0, f(b|j) - f(j) if t = 1; t > 1 occurs only in the 2-core of the joined pairs.
    """
    b, j = np.nonzero(joined)
    added = pairs[pair_index(b, j, len(singles))] - singles[j]
    core = np.ones(len(joined), np.bool_)
    while (leaving := core & ((joined & core).sum(axis=1) < 2)).any():
        core &= ~leaving
    in_core = _gain_in(core, joined, singles, pairs, np.empty(len(singles), np.bool_)) if core.any() else -inf
    return float(max(0.5 * singles.max(), added.max(initial=-inf), in_core))


def choose_representations(listed: SmallInts, mu: int) -> Chosen:
    """Return one row (set, U, V) of the list for each candidate set, and the graph of the chosen pairs.

    The greedy choice (sets with the fewest representations first) avoids triangles; where it fails, the first
    representation of each set is chosen.
    """
    numbers = listed[:, 0]
    first = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1])[: len(listed)])
    last = np.append(first[1:], len(listed))
    pairs = np.flatnonzero(listed[first, 1] != listed[first, 2])  # the other sets are subsets themselves
    failed = Chosen(first, np.zeros((0, 0), np.bool_), True)
    if 4 * len(pairs) > mu * mu:  # Mantel: a graph without triangles has at most mu^2 / 4 edges
        return failed
    pairs = pairs[np.argsort((last - first)[pairs], kind="stable")]
    rows = _without_triangles(listed[:, 1:], first[pairs].tolist(), last[pairs].tolist())
    if rows is None:
        return failed
    chosen, joined = first.copy(), np.zeros((mu, mu), np.bool_)
    chosen[pairs] = rows
    joined[listed[rows, 1], listed[rows, 2]] = True
    return Chosen(chosen, joined | joined.T, False)


def _without_triangles(pairs: SmallInts, first: list[int], last: list[int]) -> list[int] | None:
    """Return a row of `pairs` from each range, chosen in turn so that no triangle arises; None if a range has none."""
    joined: dict[int, int] = {}  # the neighbours of a subset as the bits of a number
    rows = []
    for begin, end in zip(first, last, strict=True):
        for row, (j, k) in enumerate(pairs[begin:end].tolist(), begin):
            of_j, of_k = joined.get(j, 0), joined.get(k, 0)
            if not of_j & of_k:
                joined[j], joined[k] = of_j | 1 << k, of_k | 1 << j
                rows.append(row)
                break
        else:
            return None
    return rows


@inner
def _gain_of(b: int, singles: Floats, pairs: Floats, there: Bools) -> float:
    """max over j != l, both there, of max(0, f(b|j) - f(j)) + f(b|l) - f(b) - f(l); -inf without two such."""
    mu = len(singles)
    first, second, first_at = -inf, -inf, -1  # of max(0, f(b|j) - f(j))
    pull, next_pull, pull_at = -inf, -inf, -1  # of f(b|l) - f(b) - f(l)
    for j in range(mu):
        if j == b or not there[j]:
            continue
        low, high = min(b, j), max(b, j)
        joint = pairs[low * (2 * mu - low - 1) // 2 + high - low - 1]  # pair_index
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


@kernel
def _gain_in(core: Bools, joined: Bools, singles: Floats, pairs: Floats, there: Bools) -> float:
    """Return the largest gain of a subset in the core among those in the core that it is joined to."""
    most = -inf
    for b in range(len(core)):
        if core[b]:
            for j in range(len(core)):
                there[j] = core[j] and joined[b, j]
            most = max(most, _gain_of(b, singles, pairs, there))
    return most


@kernel
def _third_gain(singles: Floats, pairs: Floats, there: Bools, gains: Floats) -> float:
    mu = len(singles)
    for b in range(mu):
        gains[b] = _gain_of(b, singles, pairs, there)
    bound = -inf
    for _ in range(mu - 2):
        chosen = np.argmin(gains)  # gains fall as others leave, so stale ones are good enough to choose by
        bound = max(bound, _gain_of(chosen, singles, pairs, there))
        there[chosen] = False
        gains[chosen] = inf
    return bound
