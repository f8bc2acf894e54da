"""Elimination of the vertices of a directed graph, one after another, and the pairs that it makes (docs/theory.md §2).

A vertex that leaves joins each of its predecessors to each of its successors. Rows of arcs are sets of bits in words.
"""

from collections.abc import Iterator
from math import inf
from typing import Any, NamedTuple

import numpy as np

from ..foundation.arrays import Bools, Floats, Ints, Words
from ..foundation.jit import inner, kernel
from ..foundation.words import popcount


class Graph(NamedTuple):
    """The arcs of a directed graph: outward[a] holds b iff there is an arc a -> b, inward[b] then holds a."""

    outward: Words  # (n, words)
    inward: Words  # (n, words)

    @staticmethod
    def of(adjacency: Bools) -> "Graph":
        """The graph with an arc a -> b where adjacency[a, b]."""
        return Graph(_packed(adjacency), _packed(adjacency.T))

    def copy(self) -> "Graph":
        """The same arcs in arrays of their own."""
        return Graph(self.outward.copy(), self.inward.copy())


class Filled(NamedTuple):
    """The useful arcs of an elimination: those that can be part of what closes a cycle."""

    sequence: Ints  # in which the vertices leave
    useful: Bools  # (n, n) whether a -> b is one
    pairs: int  # unordered pairs with a useful arc


class Spare(NamedTuple):
    """Room for an elimination."""

    graph: Graph  # a copy, which the elimination uses up
    everything: Words  # (words,) the set of all vertices
    later: Words  # (words,) those that have not left


def _packed(adjacency: Bools) -> Words:
    """The rows of a 0/1 matrix as bit sets."""
    rows, n = adjacency.shape
    padded = np.zeros((rows, -(-n // 64) * 64), np.bool_)
    padded[:, :n] = adjacency
    return np.packbits(padded, axis=1, bitorder="little").view(np.uint64)


def eliminate(graph: Graph, sequence: Ints) -> Filled:
    """The useful arcs when the vertices leave in this sequence.

    Called twice for a component, so in Python, where a row of arcs is the bits of a number.
    """
    outward, inward = _numbers(graph.outward), _numbers(graph.inward)
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
    useful_out, useful_in, pairs = [0] * n, [0] * n, 0
    for v in reversed(leaving):
        both, either = outward[v] & inward[v], outward[v] | inward[v]
        for b in _members(either):
            bit = 1 << b
            leaves = outward[v] & bit and (both & bit or useful_in[b] & inward[v])
            enters = inward[v] & bit and (both & bit or useful_out[b] & outward[v])
            if leaves:
                useful_out[v] |= bit
                useful_in[b] |= 1 << v
            if enters:
                useful_in[v] |= bit
                useful_out[b] |= 1 << v
            pairs += bool(leaves or enters)
    packed = np.frombuffer(b"".join(row.to_bytes(-(-n // 8), "little") for row in useful_out), np.uint8)
    useful = np.unpackbits(packed.reshape(n, -(-n // 8)), axis=1, count=n, bitorder="little").astype(np.bool_)
    return Filled(sequence, useful, pairs)


def _numbers(rows: Words) -> list[int]:
    return [int.from_bytes(row.tobytes(), "little") for row in rows]


def _members(bits: int) -> Iterator[int]:
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def count_pairs(graph: Graph, sequence: Ints) -> int:
    """Pairs joined by an arc when the vertices leave in this sequence: a bound on the useful ones, and much cheaper."""
    none = np.zeros(0, np.int64)
    return int(_anneal(graph, _spare(graph), np.stack([sequence] * 3), none.reshape(0, 2), none))


def greedy_sequence(neighbours: Words, noise: Floats, by_degree: bool, thorough: bool) -> Ints:
    """A sequence in which each vertex of an undirected graph adds few pairs (or has few neighbours) when it leaves.

    Ties by `noise`. Costs are kept up to date everywhere if `thorough`, else only next to the vertex that left.
    """
    n = len(neighbours)
    sequence, costs, stale = np.full(n, -1), np.zeros(n), np.ones(n, np.bool_)
    _choose_greedily(neighbours.copy(), noise, by_degree, thorough, costs, stale, sequence)
    return sequence


def anneal_sequence(graph: Graph, sequence: Ints, moves: Ints, allowances: Floats) -> Ints:
    """The best sequence met while moves (from place, to place) are taken or left by Metropolis' rule.

    The energy is the number of pairs; move k is taken if it adds no more than allowances[k], which are exponential
    draws times the temperature.
    """
    states: Ints = np.stack([sequence] * 3)
    _anneal(graph, _spare(graph), states, moves, allowances.astype(np.int64))
    best: Ints = states[0]
    return best


def _spare(graph: Graph) -> Spare:
    everything = _packed(np.ones((1, len(graph.outward)), np.bool_))[0]
    return Spare(graph.copy(), everything, everything.copy())


@inner
def _has(row: Words, b: int) -> Any:
    return (row[b >> 6] >> np.uint64(b & 63)) & np.uint64(1) != np.uint64(0)


@inner
def _clear(row: Words, b: int) -> None:
    row[b >> 6] &= ~(np.uint64(1) << np.uint64(b & 63))


@inner
def _leave(graph: Graph, later: Words, v: int) -> None:
    """Join the predecessors of v to its successors; rows of v then hold only vertices that are still there."""
    out, into = graph.outward[v], graph.inward[v]
    for w in range(len(later)):
        out[w] &= later[w]
        into[w] &= later[w]
    _join(graph.outward, into, out)
    _join(graph.inward, out, into)


@inner
def _join(rows: Words, members: Words, added: Words) -> None:
    """Add the set `added` to the row of each member, but never a vertex to its own row."""
    for w in range(len(members)):
        word = members[w]
        while word != np.uint64(0):
            lowest = word & (~word + np.uint64(1))
            b = 64 * w + popcount(lowest - np.uint64(1))
            word ^= lowest
            row = rows[b]
            for x in range(len(added)):
                row[x] |= added[x]
            _clear(row, b)


@kernel
def _choose_greedily(
    rows: Words, noise: Floats, by_degree: bool, thorough: bool, costs: Floats, stale: Bools, sequence: Ints
) -> None:
    """Fill the sequence. `rows` are used up; all are `stale` at first; a vertex that left has an infinite cost."""
    n = len(rows)
    for t in range(n):
        chosen: Any = np.int64(-1)
        least = inf
        for v in range(n):
            if costs[v] == inf:
                continue
            if stale[v]:
                costs[v] = _cost(rows, v, by_degree)
                stale[v] = thorough
            if costs[v] + noise[v] < least:
                chosen, least = v, costs[v] + noise[v]
        sequence[t] = chosen
        costs[chosen] = inf
        _join(rows, rows[chosen], rows[chosen])
        for b in range(n):
            if _has(rows[chosen], b):
                _clear(rows[b], chosen)
                stale[b] = True


@inner
def _cost(rows: Words, v: int, by_degree: bool) -> float:
    """Neighbours of v, or pairs among them that are not neighbours."""
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
def _anneal(graph: Graph, spare: Spare, states: Ints, moves: Ints, allowances: Ints) -> Any:
    """The least number of pairs met; states (the best, the present one, a trial) all hold the first sequence."""
    n, best, here, trial = states.shape[1], states[0], states[1], states[2]
    least = now = _count_pairs(graph, spare, here, n * n)
    for k in range(len(moves)):
        source, target = moves[k, 0], moves[k, 1]
        step = 1 if target > source else -1
        for t in range(source, target, step):
            trial[t] = here[t + step]
        trial[target] = here[source]
        limit = now + allowances[k]
        pairs = _count_pairs(graph, spare, trial, limit)
        taken = pairs <= limit
        for t in range(min(source, target), max(source, target) + 1):
            if taken:
                here[t] = trial[t]
            else:
                trial[t] = here[t]
        if taken:
            now = pairs
            if now < least:
                least = now
                for t in range(n):
                    best[t] = here[t]
    return least


@inner
def _count_pairs(graph: Graph, spare: Spare, sequence: Ints, limit: int) -> Any:
    """Pairs joined by an arc when the vertices leave in this sequence; something above `limit` if there are more."""
    n, words = graph.outward.shape
    out, into, later = spare.graph.outward, spare.graph.inward, spare.later
    for w in range(words):
        later[w] = spare.everything[w]
    for v in range(n):
        for w in range(words):
            out[v, w] = graph.outward[v, w]
            into[v, w] = graph.inward[v, w]
    pairs = 0
    for t in range(n):
        v = sequence[t]
        _clear(later, v)
        _leave(spare.graph, later, v)
        complete = True
        for w in range(words):
            pairs += popcount(out[v, w] | into[v, w])
            complete = complete and out[v, w] == later[w] and into[v, w] == later[w]
        if complete:  # so is the rest from now on
            return pairs + (n - t - 1) * (n - t - 2) // 2
        if pairs > limit:
            break
    return pairs
