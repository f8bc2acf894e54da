"""Elimination of the vertices of a directed graph, one after another, and the pairs that it makes (docs/theory.md §2).

A vertex that leaves joins each of its predecessors to each of its successors. Rows of arcs are sets of bits in words.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ..arrays import Bools, Floats, Ints, Words


class Filled(NamedTuple):
    """The useful arcs of an elimination: outward[a] holds b iff the arc a -> b can be part of what closes a cycle."""

    outward: Words  # (n, words)
    inward: Words  # (n, words)
    pairs: int  # unordered pairs with a useful arc


@njit(nogil=True, cache=True)
def _ones(word: Any) -> Any:
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit(nogil=True, cache=True)
def _has(row: Any, b: int) -> Any:
    return (row[b >> 6] >> np.uint64(b & 63)) & np.uint64(1) != np.uint64(0)


@njit(nogil=True, cache=True)
def _set(row: Any, b: int) -> None:
    row[b >> 6] |= np.uint64(1) << np.uint64(b & 63)


@njit(nogil=True, cache=True)
def _clear(row: Any, b: int) -> None:
    row[b >> 6] &= ~(np.uint64(1) << np.uint64(b & 63))


@njit(nogil=True, cache=True)
def _meets(row: Any, other: Any) -> Any:
    for w in range(len(row)):  # noqa: SIM110 - a bare loop is what numba compiles
        if row[w] & other[w] != np.uint64(0):
            return True
    return False


@njit(nogil=True, cache=True)
def packed(adjacency: Bools) -> Words:
    """The rows of a square 0/1 matrix as bit sets."""
    n = len(adjacency)
    rows = np.zeros((n, (n + 63) // 64), np.uint64)
    for a in range(n):
        for b in range(n):
            if adjacency[a, b]:
                _set(rows[a], b)
    return rows


@njit(nogil=True, cache=True)
def eliminate(outward: Words, sequence: Ints) -> Filled:
    """The useful arcs when the vertices leave in this sequence."""
    n, words = outward.shape
    out, into = outward.copy(), transposed(outward)
    later = np.zeros(words, np.uint64)
    for v in range(n):
        _set(later, v)
    for t in range(n):
        v = sequence[t]
        _clear(later, v)
        _leave(out, into, later, v)
    useful_out, useful_into = np.zeros_like(out), np.zeros_like(out)
    pairs = 0
    for t in range(n - 1, -1, -1):
        pairs += _keep_useful(out, into, useful_out, useful_into, sequence[t])
    return Filled(useful_out, useful_into, pairs)


@njit(nogil=True, cache=True)
def _leave(out: Any, into: Any, later: Any, v: int) -> None:
    """Join the predecessors of v to its successors; rows of v then hold only vertices that are still there."""
    words = len(later)
    for w in range(words):
        out[v, w] &= later[w]
        into[v, w] &= later[w]
    _join(out, into[v], out[v])
    _join(into, out[v], into[v])


@njit(nogil=True, cache=True)
def _join(rows: Any, members: Any, added: Any) -> None:
    """Add the set `added` to the row of each member, but never a vertex to its own row."""
    for w in range(len(members)):
        word = members[w]
        while word != np.uint64(0):
            lowest = word & (~word + np.uint64(1))
            b = 64 * w + _ones(lowest - np.uint64(1))
            word ^= lowest
            for x in range(len(added)):
                rows[b, x] |= added[x]
            _clear(rows[b], b)


@njit(nogil=True, cache=True)
def count_pairs(outward: Words, inward: Words, sequence: Ints, limit: int) -> Any:
    """Pairs joined by an arc when the vertices leave in this sequence; something above `limit` if there are more.

    An upper bound on the useful ones, and much cheaper.
    """
    n, words = outward.shape
    out, into = outward.copy(), inward.copy()
    later = np.zeros(words, np.uint64)
    for v in range(n):
        _set(later, v)
    pairs = 0
    for t in range(n):
        v = sequence[t]
        _clear(later, v)
        _leave(out, into, later, v)
        complete = True
        for w in range(words):
            pairs += _ones(out[v, w] | into[v, w])
            complete = complete and out[v, w] == later[w] and into[v, w] == later[w]
        if complete:  # so is the rest from now on
            return pairs + (n - t - 1) * (n - t - 2) // 2
        if pairs > limit:
            break
    return pairs


@njit(nogil=True, cache=True)
def transposed(rows: Words) -> Words:
    """The rows of the arcs turned round."""
    result = np.zeros_like(rows)
    for a in range(len(rows)):
        for b in range(len(rows)):
            if _has(rows[a], b):
                _set(result[b], a)
    return result


@njit(nogil=True, cache=True)
def _keep_useful(out: Any, into: Any, useful_out: Any, useful_into: Any, v: int) -> Any:
    """Mark the useful arcs between v and the vertices that left after it; the number of pairs they make."""
    pairs = 0
    for b in range(len(out)):
        leaves, enters = _has(out[v], b), _has(into[v], b)
        both = leaves and enters
        leaves = leaves and (both or _meets(useful_into[b], into[v]))
        enters = enters and (both or _meets(useful_out[b], out[v]))
        if leaves:
            _set(useful_out[v], b)
        if enters:
            _set(useful_into[v], b)
        pairs += leaves or enters
    for b in range(len(out)):
        if _has(useful_out[v], b):
            _set(useful_into[b], v)
        if _has(useful_into[v], b):
            _set(useful_out[b], v)
    return pairs


@njit(nogil=True, cache=True)
def greedy_sequence(neighbours: Words, noise: Floats, by_degree: bool, thorough: bool) -> Ints:
    """A sequence in which each vertex of an undirected graph adds few pairs (or has few neighbours) when it leaves.

    Ties by `noise`. Costs are kept up to date everywhere if `thorough`, else only next to the vertex that left.
    """
    n = len(neighbours)
    rows = neighbours.copy()
    cost, stale, there = np.zeros(n), np.ones(n, np.bool_), np.ones(n, np.bool_)
    sequence = np.empty(n, np.int64)
    for t in range(n):
        chosen, least = -1, np.inf
        for v in range(n):
            if not there[v]:
                continue
            if stale[v]:
                cost[v] = _cost(rows, v, by_degree)
                stale[v] = thorough
            if cost[v] + noise[v] < least:
                chosen, least = v, cost[v] + noise[v]
        sequence[t] = chosen
        there[chosen] = False
        _join(rows, rows[chosen], rows[chosen])
        for b in range(n):
            if _has(rows[chosen], b):
                _clear(rows[b], chosen)
                stale[b] = True
    return sequence


@njit(nogil=True, cache=True)
def _cost(rows: Any, v: int, by_degree: bool) -> Any:
    """Neighbours of v, or pairs among them that are not neighbours."""
    degree, missing = 0, 0
    for w in range(rows.shape[1]):
        degree += _ones(rows[v, w])
    if by_degree:
        return float(degree)
    for b in range(len(rows)):
        if _has(rows[v], b):
            for w in range(rows.shape[1]):
                missing += _ones(rows[v, w] & ~rows[b, w])
    return (missing - degree) / 2  # each neighbour misses itself


@njit(nogil=True, cache=True)
def anneal_sequence(outward: Words, sequence: Ints, moves: Ints, draws: Floats, hot: float, cold: float) -> Ints:
    """The best sequence met while moves (from place, to place) are taken or left by Metropolis' rule.

    The energy is the number of pairs, the temperature falls from `hot` to `cold`; `draws` are exponential.
    """
    n, inward = len(sequence), transposed(outward)
    best, here, trial = sequence.copy(), sequence.copy(), sequence.copy()
    least = now = count_pairs(outward, inward, here, n * n)
    for k in range(len(moves)):
        source, target = moves[k]
        step = 1 if target > source else -1
        for t in range(source, target, step):
            trial[t] = here[t + step]
        trial[target] = here[source]
        limit = now + int(draws[k] * hot * (cold / hot) ** (k / len(moves)))
        pairs = count_pairs(outward, inward, trial, limit)
        low, high = min(source, target), max(source, target) + 1
        if pairs > limit:
            trial[low:high] = here[low:high]
            continue
        now = pairs
        here[low:high] = trial[low:high]
        if now < least:
            least = now
            best[:] = here
    return best
