"""Elimination of the vertices of a directed graph, one after another, with few fill pairs (docs/theory.md §2).

When a vertex leaves, each of its predecessors is joined to each of its successors. Kernels hold the arcs as bit sets:
arcs[0, a] holds b, and arcs[1, b] holds a, for each arc a -> b.
"""

from collections.abc import Iterator
from math import inf
from typing import Any, NamedTuple

import numpy as np

from ..foundation.arrays import Bools, Floats, Ints, Words
from ..foundation.jit import inner, kernel
from ..foundation.words import popcount

GREEDY_STARTS = 3  # of each kind
THOROUGH = 300  # vertices up to which greedy costs are kept exact
SEARCH_WORK = 4e9  # words that annealing may touch in a component: about two seconds
HOT, COLD = 1 / 500, 1 / 20_000  # temperatures relative to the pairs: about 1 % fewer than min-fill on large instances


class Filled(NamedTuple):
    """The useful arcs of an elimination: those that can be part of what closes a cycle."""

    sequence: Ints  # in which the vertices leave
    useful: Bools  # (n, n) whether a -> b is useful
    pairs: int  # unordered pairs with a useful arc


def best_elimination(adjacency: Bools, seed: int = 0) -> Filled:
    """Return an elimination of the graph with few pairs: the best of several greedy ones, annealed."""
    arcs, n = packed_arcs(adjacency), len(adjacency)
    random = np.random.default_rng(np.random.SeedSequence(seed))
    neighbours, thorough = arcs[0] | arcs[1], n <= THOROUGH
    noises = 0.9 * random.random((GREEDY_STARTS, n))
    sequences = [
        greedy_sequence(neighbours, noise, by_degree, thorough) for by_degree in (False, True) for noise in noises
    ]
    best = eliminate(adjacency, min(sequences, key=lambda sequence: count_pairs(arcs, sequence)))
    tries = int(min(20_000, SEARCH_WORK / (n * n * arcs.shape[2])))
    moves, draws = random.integers(n, size=(tries, 2)), random.exponential(size=tries)
    pairs = max(500, best.pairs)
    hot, cold = HOT * pairs, COLD * pairs
    allowances = draws * hot * (cold / hot) ** (np.arange(tries) / tries)
    annealed = eliminate(adjacency, anneal_sequence(arcs, best.sequence, moves, allowances))
    return min(best, annealed, key=lambda filled: filled.pairs)


def packed_arcs(adjacency: Bools) -> Words:
    """Return (2, n, words): the successors and the predecessors of each vertex as bit sets."""
    n = len(adjacency)
    padded = np.zeros((2, n, -(-n // 64) * 64), np.bool_)
    padded[0, :, :n], padded[1, :, :n] = adjacency, adjacency.T
    return np.packbits(padded, axis=2, bitorder="little").view(np.uint64)


def eliminate(adjacency: Bools, sequence: Ints) -> Filled:
    """Return the useful arcs when the vertices leave in this sequence.

    Called twice for a component, so in Python, where a row of arcs is the bits of a number.
    """
    outward, inward = ([int.from_bytes(row.tobytes(), "little") for row in rows] for rows in packed_arcs(adjacency))
    n, leaving = len(outward), sequence.tolist()
    later = (1 << n) - 1
    for v in leaving:
        later ^= 1 << v
        outward[v] &= later
        inward[v] &= later
        for a in _members(inward[v]):
            outward[a] = (outward[a] | outward[v]) & ~(1 << a)
        for b in _members(outward[v]):
            inward[b] = (inward[b] | inward[v]) & ~(1 << b)
    useful_in, useful_out, pairs = [0] * n, [0] * n, 0
    useful = np.zeros((n, n), np.bool_)
    for v in reversed(leaving):
        both, either = outward[v] & inward[v], outward[v] | inward[v]
        for b in _members(either):
            bit = 1 << b
            leaves = outward[v] & bit and (both & bit or useful_in[b] & inward[v])
            enters = inward[v] & bit and (both & bit or useful_out[b] & outward[v])
            if leaves:
                useful_out[v] |= bit
                useful_in[b] |= 1 << v
                useful[v, b] = True
            if enters:
                useful_in[v] |= bit
                useful_out[b] |= 1 << v
                useful[b, v] = True
            pairs += bool(leaves or enters)
    return Filled(sequence, useful, pairs)


def _members(bits: int) -> Iterator[int]:
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def count_pairs(arcs: Words, sequence: Ints) -> int:
    """Return the number of pairs joined by an arc during the elimination: an upper bound on the useful ones."""
    none = np.zeros(0, np.int64)
    return int(_anneal(arcs, *_scratch(arcs), np.stack([sequence] * 3), none.reshape(0, 2), none))


def greedy_sequence(neighbours: Words, noise: Floats, by_degree: bool, thorough: bool) -> Ints:
    """Return a sequence in which each vertex adds few pairs (or has few neighbours) when it leaves, ties by `noise`.

    Costs are kept exact everywhere if `thorough`, else only next to the vertex that left.
    """
    n = len(neighbours)
    sequence, costs, stale = np.full(n, -1), np.zeros(n), np.ones(n, np.bool_)
    _choose_greedily(neighbours.copy(), noise, by_degree, thorough, costs, stale, sequence)
    return sequence


def anneal_sequence(arcs: Words, sequence: Ints, moves: Ints, allowances: Floats) -> Ints:
    """Return the best sequence met while moves (from place, to place) are accepted by Metropolis' rule.

    The energy is the number of pairs; move k is accepted if it adds at most allowances[k], which are exponential
    draws times the temperature.
    """
    states: Ints = np.stack([sequence] * 3)
    _anneal(arcs, *_scratch(arcs), states, moves, allowances.astype(np.int64))
    best: Ints = states[0]
    return best


def _scratch(arcs: Words) -> tuple[Words, Words]:
    """Return a copy of the arcs that an elimination may change, and (2, words) the set of all vertices, twice."""
    n = arcs.shape[1]
    everyone = np.packbits(np.arange(64 * arcs.shape[2]) < n, bitorder="little").view(np.uint64)
    return arcs.copy(), np.stack([everyone] * 2)


@inner
def _has(row: Words, b: int) -> Any:
    return (row[b >> 6] >> np.uint64(b & 63)) & np.uint64(1) != np.uint64(0)


@inner
def _clear(row: Words, b: int) -> None:
    row[b >> 6] &= ~(np.uint64(1) << np.uint64(b & 63))


@inner
def _join(rows: Words, members: Words, added: Words) -> None:
    """Add the set `added` to the row of each member, but never a vertex to its own row."""
    for w in range(len(members)):
        word = members[w]
        while word != np.uint64(0):
            lowest = word & (~word + np.uint64(1))
            b = 64 * w + popcount(lowest - np.uint64(1))
            word ^= lowest
            for x in range(len(added)):
                rows[b, x] |= added[x]
            rows[b, w] &= ~lowest


@kernel
def _choose_greedily(
    rows: Words, noise: Floats, by_degree: bool, thorough: bool, costs: Floats, stale: Bools, sequence: Ints
) -> None:
    """Fill the sequence. `rows` are used up; all are `stale` at first; a vertex that left has an infinite cost."""
    n = len(rows)
    for t in range(n):
        chosen, least = t, inf
        for v in range(n):
            if stale[v] and costs[v] != inf:
                costs[v] = _cost(rows, v, by_degree)
                stale[v] = thorough
            if costs[v] + noise[v] < least:
                chosen, least = v, costs[v] + noise[v]
        sequence[t] = chosen
        costs[chosen] = inf
        _leave(rows, chosen, stale)


@inner
def _leave(rows: Words, v: int, stale: Bools) -> None:
    """Join the neighbours of v to each other, remove v from their rows, and mark their costs as stale."""
    _join(rows, rows[v], rows[v])
    for b in range(len(rows)):
        if _has(rows[v], b):
            _clear(rows[b], v)
            stale[b] = True


@inner
def _cost(rows: Words, v: int, by_degree: bool) -> float:
    """Return the number of neighbours of v, or of pairs among them that are not neighbours."""
    degree, missing = 0, 0
    for w in range(rows.shape[1]):
        degree += popcount(rows[v, w])
    if by_degree:
        return float(degree)
    for b in range(len(rows)):
        if _has(rows[v], b):
            for w in range(rows.shape[1]):
                missing += popcount(rows[v, w] & ~rows[b, w])
    return (missing - degree) / 2  # each neighbour misses itself


@kernel
def _anneal(arcs: Words, scratch: Words, later: Words, states: Ints, moves: Ints, allowances: Ints) -> Any:
    """Return the least number of pairs met; states (best, current, trial) all hold the first sequence."""
    n, best, here, trial = states.shape[1], states[0], states[1], states[2]
    least = now = n * n
    for k in range(-1, len(moves)):  # -1: the first sequence itself
        source, target, limit = 0, 0, now
        if k >= 0:
            source, target, limit = moves[k, 0], moves[k, 1], now + allowances[k]
        step = 1 if target > source else -1
        for t in range(source, target, step):
            trial[t] = here[t + step]
        trial[target] = here[source]
        pairs = _count_pairs(arcs, scratch, later, trial, limit)
        accepted = pairs <= limit
        for t in range(min(source, target), max(source, target) + 1):
            if accepted:
                here[t] = trial[t]
            else:
                trial[t] = here[t]
        if accepted:
            now = pairs
            if now < least:
                least = now
                for t in range(n):
                    best[t] = here[t]
    return least


@inner
def _count_pairs(arcs: Words, scratch: Words, later: Words, sequence: Ints, limit: int) -> Any:
    """Return the number of pairs joined when the vertices leave in this sequence; stop early above `limit`.

    later[0] is used up: the vertices that have not left.
    """
    n, words = arcs.shape[1], arcs.shape[2]
    for w in range(words):
        later[0, w] = later[1, w]
    for side in range(2):
        for v in range(n):
            for w in range(words):
                scratch[side, v, w] = arcs[side, v, w]
    pairs = 0
    for t in range(n):
        v = sequence[t]
        _clear(later[0], v)
        complete = True
        for w in range(words):
            scratch[0, v, w] &= later[0, w]
            scratch[1, v, w] &= later[0, w]
            pairs += popcount(scratch[0, v, w] | scratch[1, v, w])
            complete &= scratch[0, v, w] == later[0, w] and scratch[1, v, w] == later[0, w]
        if complete:  # so are the rest
            return pairs + (n - t - 1) * (n - t - 2) // 2
        if pairs > limit:
            break
        for side in range(2):
            _join(scratch[side], scratch[1 - side, v], scratch[side, v])
    return pairs
