"""What keeps a vertex at two active subsets: how strong a penalty, and with or without a z bit (docs/theory.md §4)."""

from math import inf
from typing import Any, NamedTuple

import numpy as np

from ..foundation.arrays import AnyArray, Bools, Floats, Ints, SmallInts
from ..foundation.jit import inner, kernel

TOLERANCE = 1e-9  # a third subset that loses less than this is not trusted to lose: scores are sums with rounding


class Crowding(NamedTuple):
    """How a vertex is kept at two active subsets, or at pairs that some candidate set uses."""

    bound: float  # what the penalty must exceed; -inf where none is needed
    slack: bool  # whether it goes with a z bit


class Chosen(NamedTuple):
    """One way to write each candidate set."""

    rows: Ints  # (candidate sets,) rows of the list of ways
    joined: Bools  # (mu, mu) pairs of subsets that are a way; not known where there is a triangle of them
    has_triangle: bool


def crowding(singles: Floats, pairs: Floats, chosen: Chosen) -> Crowding:
    """The penalty that a vertex with these gains needs, where candidate sets use the chosen pairs of subsets."""
    slack_bound = third_gain(singles, pairs)
    if slack_bound < -TOLERANCE:
        return Crowding(-inf, False)
    bound = slack_bound if chosen.has_triangle else unused_bound(singles, pairs, chosen.joined)
    return Crowding(max(bound, 0.0), chosen.has_triangle)


def pair_index(j: AnyArray, k: AnyArray, mu: int) -> AnyArray:
    """Where the pairs of j and k stand in lexicographic order."""
    low, high = np.minimum(j, k), np.maximum(j, k)
    return np.asarray(low * (2 * mu - low - 1) // 2 + high - low - 1)


def third_gain(singles: Floats, pairs: Floats) -> float:
    """A bound on what active subsets beyond two can gain, each; -inf where there are at most two subsets.

    Subsets leave one by one, each time one that can gain little among those still there. Any three or more active
    subsets contain a first to leave, and what that one gains is at most the bound for each one beyond two.
    """
    mu = len(singles)
    return float(_third_gain(singles, pairs, np.ones(mu, np.bool_), np.empty(mu)))


def unused_bound(singles: Floats, pairs: Floats, joined: Bools) -> float:
    """What the couplers of pairs that are not joined must exceed, where the joined ones form no triangle.

    Active subsets have one that is joined to t of the k - 1 others, 2 t <= k. It gains at most half its own score for
    each unjoined one if t = 0, f(b|j) - f(j) if t = 1; t > 1 only happens in the 2-core of the joined pairs.
    """
    b, j = np.nonzero(joined)
    added = pairs[pair_index(b, j, len(singles))] - singles[j]
    core = _two_core(joined)
    in_core = _gain_in(core, joined, singles, pairs, np.empty(len(singles), np.bool_)) if core.any() else -inf
    return float(max(0.5 * singles.max(), added.max(initial=-inf), in_core))


def _two_core(joined: Bools) -> Bools:
    """The vertices that remain when those with at most one neighbour leave until there are none."""
    core = np.ones(len(joined), np.bool_)
    while (leaving := core & ((joined & core).sum(axis=1) < 2)).any():
        core &= ~leaving
    return core


def choose_pairs(ways: SmallInts, mu: int) -> Chosen:
    """One row of `ways` for each candidate set, and the graph of the pairs in them.

    The greedy choice (sets with the fewest ways first) avoids triangles; where it cannot, the first ways are chosen.
    """
    numbers = ways[:, 0]
    first = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1])[: len(ways)])
    last = np.append(first[1:], len(ways))
    pairs = np.flatnonzero(ways[first, 1] != ways[first, 2])  # the others are subsets themselves
    nothing = np.zeros((0, 0), np.bool_)
    if 4 * len(pairs) > mu * mu:  # Mantel: a graph without triangles has at most mu^2 / 4 edges
        return Chosen(first, nothing, True)
    pairs = pairs[np.argsort((last - first)[pairs], kind="stable")]
    rows = _without_triangles(ways[:, 1:], first[pairs].tolist(), last[pairs].tolist())
    if rows is None:
        return Chosen(first, nothing, True)
    chosen, joined = first.copy(), np.zeros((mu, mu), np.bool_)
    chosen[pairs] = rows
    joined[ways[rows, 1], ways[rows, 2]] = True
    return Chosen(chosen, joined | joined.T, False)


def _without_triangles(ways: SmallInts, first: list[int], last: list[int]) -> list[int] | None:
    """A row of `ways` from each range, taken in turn, whose pairs form no triangle; None if that does not go well."""
    joined: dict[int, int] = {}  # the neighbours of a subset as the bits of a number
    rows = []
    for begin, end in zip(first, last, strict=True):
        for row, (j, k) in enumerate(ways[begin:end].tolist(), begin):
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
    """max over j != l, both there, of max(0, f(b|j) - f(j)) + f(b|l) - f(b) - f(l); -inf if there are no such two."""
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
    """The largest gain of a subset in the core among those in it that it is joined to."""
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
        chosen: Any = np.int64(0)  # gains fall as others leave: stale ones are good enough to choose by
        for b in range(mu):
            if gains[b] < gains[chosen]:
                chosen = b
        bound = max(bound, _gain_of(chosen, singles, pairs, there))
        there[chosen] = False
        gains[chosen] = inf
    return bound
