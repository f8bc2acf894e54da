"""Order bits r: pairs of vertices whose order the QUBO decides, and triangles to keep acyclic.

`scc` is the paper's E, all pairs inside a strongly connected component of the candidate graph;
`chordal` keeps only the pairs of a vertex elimination, which are enough (docs/theory.md §2). In an
elimination the vertices leave one after another, and each joins its predecessors to its successors
when it leaves. Kernels hold the arcs as bit sets: arcs[0, a] holds b, and arcs[1, b] holds a, for
each arc a -> b."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

import numpy as np

from ..candidates import Candidates
from ..foundation.arrays import AnyArray, Bools, Floats, Ints, SmallInts, Words, frozen
from ..foundation.errors import SettingError
from ..foundation.graph import strong_components
from ..foundation.jit import inlined, inner, kernel
from ..foundation.words import popcount
from .gains import Parents

ORDERS = ("chordal", "scc")
GOLDEN = (5**0.5 - 1) / 2
TURNING_SWEEPS = 30  # over all pairs, each of which may be turned round
GREEDY_STARTS = 3  # elimination orders of each greedy kind
MOST_EXACT_COSTS = 300  # vertices up to which greedy costs are kept exact
ELIMINATION_MOVES = 20_000  # at most, of the annealing of an elimination order
ELIMINATION_WORDS = 4e9  # that annealing may touch in a component: about two seconds
# Temperatures relative to the number of pairs: about 1 % fewer pairs than min-fill on large
# instances.
HOTTEST = 1 / 500
COLDEST = 1 / 20_000


@dataclass(frozen=True, slots=True)
class OrderStatus:
    """What is known of samples with less energy than the best known network."""

    proved: bool  # the order bits forbid every cycle, so the least energy is minus the best score
    walks: int = 0  # that found no such sample, since the last one that was found
    moves: int = 0  # of each of these walks
    found: int = 0  # such samples, each of which led to more order bits or to a better network
    certified: bool = False  # proved by a certificate, with fewer order bits than by default

    def __str__(self) -> str:
        """Return what `qubayes formulate` prints."""
        if self.certified:
            return "exact, proved by a certificate"
        if self.proved:
            return "proved exact"
        if not self.walks:
            return "not proved exact"
        return f"no state below the best network in {self.walks:,} walks of {self.moves:,} moves"


PROVED_ORDER = OrderStatus(True)


class OrderBits(NamedTuple):
    """The order bits of a QUBO: bit p is 1 if pairs[p, 0] comes before pairs[p, 1]."""

    pairs: SmallInts  # (p, 2) ascending by smaller, then larger vertex; either may come first
    triangles: SmallInts  # (t, 3) the order bits of ab, bc and ac for vertices a < b < c
    # (c, 2) pairs without a bit that must not be joined both ways
    coupled: SmallInts = frozen(np.empty((0, 2), np.int32))

    def corners(self) -> SmallInts:
        """Return (t, 3) the vertices a < b < c of each triangle."""
        low, high = self.pairs.min(axis=1), self.pairs.max(axis=1)
        ab, bc, _ = self.triangles.T
        return np.column_stack([low[ab], high[ab], high[bc]])

    @property
    def ascending(self) -> Bools:
        """(p,) whether the pair is written smaller vertex first."""
        return self.pairs[:, 0] < self.pairs[:, 1]

    def pair_of(self, first: AnyArray, second: AnyArray) -> Ints:
        """Return the order bit of each pair of vertices, given in either order; -1 without one."""
        if not len(self.pairs):
            return np.full(len(first), -1)
        width = int(self.pairs.max()) + 1
        keys = self.pairs.min(axis=1).astype(np.int64) * width + self.pairs.max(axis=1)
        low, high = np.minimum(first, second).astype(np.int64), np.maximum(first, second)
        places = np.minimum(np.searchsorted(keys, low * width + high), len(keys) - 1)
        found = (keys[places] == low * width + high) & (high < width)
        return np.where(found, places, -1)

    def of_edges(self, edges: Parents) -> tuple[Ints, Bools]:
        """Return (edges,) the order bit of each edge or -1, and whether 1 puts the parent first."""
        bits = self.pair_of(edges.vertices, edges.children)
        return bits, np.append(self.pairs[:, 0], -1)[bits] == edges.vertices

    def has_bit(self, edges: Parents) -> Bools:
        """Return (edges,) whether each edge has an order bit."""
        return self.of_edges(edges)[0] >= 0

    def allows(self, r: Bools, edges: Parents) -> Bools:
        """Return (edges,) whether each edge has no order bit, or one that puts the parent first."""
        bits, parent_first = self.of_edges(edges)
        allowed: Bools = (bits < 0) | (np.append(r, False)[bits] == parent_first)
        return allowed

    def cyclic(self, r: Bools) -> Bools:
        """Return (t,) whether these order bits make each triangle a directed cycle."""
        ab, bc, ac = (r == self.ascending)[self.triangles].T
        cyclic: Bools = (ab == bc) & (ab != ac)
        return cyclic


def order_bits_of(pairs: AnyArray, corners: AnyArray) -> OrderBits:
    """Return order bits of these ascending pairs, and triangles with these corners a < b < c."""
    a, b, c = corners.T
    order = OrderBits(frozen(pairs.astype(np.int32)), np.empty((0, 3), np.int32))
    triangles = np.column_stack([order.pair_of(a, b), order.pair_of(b, c), order.pair_of(a, c)])
    return order._replace(triangles=frozen(triangles.astype(np.int32)))


def well_formed(order: OrderBits, n: int) -> bool:
    """Return whether these are order bits of n vertices; for arrays from a file.

    Pairs are written smaller vertex first, each once and ascending; a triangle names the three
    pairs of its corners.
    """
    if not (_are_pairs(order.pairs, n) and _are_pairs(order.coupled, n)):
        return False
    triangles = order.triangles
    if triangles.ndim != 2 or triangles.shape[1] != 3:
        return False
    if not ((triangles >= 0) & (triangles < len(order.pairs))).all():
        return False
    ab, bc, ac = (order.pairs[side] for side in triangles.T)
    meet = (ab[:, 1] == bc[:, 0]) & (ab[:, 0] == ac[:, 0]) & (bc[:, 1] == ac[:, 1])
    return bool(meet.all())


def _are_pairs(pairs: SmallInts, n: int) -> bool:
    """Return whether these are different pairs of n vertices, each and all ascending."""
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        return False
    first, second = pairs.astype(np.int64).T
    inside = (first >= 0) & (first < second) & (second < n)
    return bool(inside.all() and (np.diff(first * n + second) > 0).all())


class Filled(NamedTuple):
    """The useful arcs of an elimination: those that can be part of what closes a cycle."""

    sequence: Ints  # in which the vertices leave
    useful: Bools  # (n, n) whether a -> b is useful
    pairs: int  # unordered pairs with a useful arc


def choose_order(candidates: Candidates, kind: str, seed: int = 0) -> OrderBits:
    """Return the order bits of the candidate graph, whose arcs go from all parents to children."""
    pairs = [np.empty((0, 2), np.int64)]
    corners = [np.empty((0, 3), np.int64)]
    for component, filled in eliminations(candidates, kind, seed):
        pairs.append(component[np.argwhere(np.triu(filled.useful | filled.useful.T))])
        corners += [component[its] for its in _triangles_of(filled)]
    all_pairs = np.concatenate(pairs)
    all_corners = np.concatenate(corners)
    return order_bits_of(
        all_pairs[np.lexsort(all_pairs.T[::-1])], all_corners[np.lexsort(all_corners.T[::-1])]
    )


def _triangles_of(filled: Filled) -> Iterator[Ints]:
    """Yield by v the triangles with useful arcs p -> v -> q and p -> q, v the first to leave."""
    arcs = filled.useful
    here = np.ones(len(arcs), np.bool_)
    for v in filled.sequence.tolist():
        here[v] = False
        around = np.flatnonzero((arcs[v] | arcs[:, v]) & here)
        closing = arcs[around, v][:, None] & arcs[v, around] & arcs[np.ix_(around, around)]
        p, q = around[np.array(np.nonzero(np.triu(closing | closing.T)))]
        yield np.sort(np.column_stack([np.full(len(p), v), p, q]), axis=1)


def eliminations(candidates: Candidates, kind: str, seed: int = 0) -> Iterator[tuple[Ints, Filled]]:
    """Yield the vertices of each component with a cycle, and the arcs that need order bits."""
    if kind not in ORDERS:
        raise SettingError(f"order = {kind!r}; choose one of {', '.join(ORDERS)}")
    arcs = candidates.families.arcs()
    for component in strong_components(arcs):
        size = len(component)
        if size == 1:
            continue
        if kind == "chordal":
            yield component, best_elimination(arcs[np.ix_(component, component)], seed)
        else:
            everything = ~np.eye(size, dtype=np.bool_)
            yield component, Filled(np.arange(size), everything, size * (size - 1) // 2)


def balanced(order: OrderBits, deltas: Floats) -> OrderBits:
    """Orient each pair to keep linear coefficients small; `deltas` are penalties of triangles.

    A triangle that is transitive in the chosen directions costs delta (w + x y - x w - y w), w its
    long side; one that is cyclic in them costs delta (1 - x - y - w + x y + x w + y w). Written all
    ascending, as in the paper, a pair that is the long side of hundreds of triangles has hundreds
    of times delta as its linear coefficient. Here the start is vertices spread on a circle, each
    before those on the half circle ahead of it (in a regular tournament everything cancels); then
    single pairs are turned round while the sum of fourth powers of the coefficients falls."""
    if not len(order.triangles):
        return order
    low, high = order.pairs.min(axis=1), order.pairs.max(axis=1)
    signs = np.where((high - low) * GOLDEN % 1.0 < 0.5, 1.0, -1.0)  # 1: ascending, -1: descending
    sides = order.triangles.ravel()  # entry 3 t + s is side s of triangle t
    entries = np.argsort(sides, kind="stable")
    triangle, side = np.divmod(entries[:, None], 3)
    two = np.array([[1, 2], [0, 2], [0, 1]])[side[:, 0]]
    others = order.triangles[triangle, two]  # that each pair meets in triangles
    ab_bc = two + side == 1  # the sides ab (0) and bc (1), whose product has the other sign
    # minus half the interaction, both ascending
    pulls = np.where(ab_bc, -0.5, 0.5) * deltas[triangle]
    start = 2 * np.concatenate([[0], np.cumsum(np.bincount(sides, minlength=len(signs)))])
    linear = np.zeros(len(signs))
    _turn(start, others.ravel(), pulls.ravel(), signs, linear, TURNING_SWEEPS)
    ascending = np.column_stack([low, high])
    pairs = np.where(signs[:, None] > 0, ascending, ascending[:, ::-1])
    return order._replace(pairs=frozen(pairs.astype(np.int32)))


@kernel
def _turn(
    start: Ints, others: SmallInts, pulls: Floats, signs: Floats, linear: Floats, sweeps: int
) -> None:
    """Turn single pairs round while the sum of fourth powers of linear coefficients falls."""
    for p in range(len(signs)):
        for e in range(start[p], start[p + 1]):
            linear[p] += pulls[e] * signs[p] * signs[others[e]]
    for _ in range(sweeps):
        turned = False
        for p in range(len(signs)):
            change = 0.0
            for e in range(start[p], start[p + 1]):
                old = linear[others[e]]
                new = old - 2.0 * pulls[e] * signs[p] * signs[others[e]]
                change += (new * new) * (new * new) - (old * old) * (old * old)
            if change < 0.0:
                for e in range(start[p], start[p + 1]):
                    linear[others[e]] -= 2.0 * pulls[e] * signs[p] * signs[others[e]]
                signs[p] = -signs[p]
                linear[p] = -linear[p]
                turned = True
        if not turned:
            break


def best_elimination(adjacency: Bools, seed: int = 0) -> Filled:
    """Return an elimination with few pairs: the best of several greedy ones, annealed."""
    random = np.random.default_rng(np.random.SeedSequence(seed))
    return annealed(adjacency, greedy_elimination(adjacency, random), random)


def greedy_elimination(adjacency: Bools, random: np.random.Generator) -> Filled:
    """Return the elimination whose sequence joins the fewest pairs, of several greedy ones."""
    n = len(adjacency)
    arcs = packed_arcs(adjacency)
    neighbours = arcs[0] | arcs[1]
    noises = random.random((GREEDY_STARTS, n))
    thorough = n <= MOST_EXACT_COSTS
    sequences = [greedy_sequence(neighbours, noise, False, thorough) for noise in noises]
    sequences += [greedy_sequence(neighbours, noise, True, thorough) for noise in noises]
    return eliminate(adjacency, min(sequences, key=lambda sequence: count_pairs(arcs, sequence)))


def annealed(adjacency: Bools, start: Filled, random: np.random.Generator) -> Filled:
    """Return the better of an elimination and the one that annealing makes of it."""
    n = len(adjacency)
    arcs = packed_arcs(adjacency)
    tries = int(min(ELIMINATION_MOVES, ELIMINATION_WORDS / (n * n * arcs.shape[2])))
    moves = random.integers(n, size=(tries, 2))
    allowances = random.exponential(size=tries) * temperatures(tries, start.pairs)
    found = eliminate(adjacency, anneal_sequence(arcs, start.sequence, moves, allowances))
    return min(start, found, key=lambda filled: filled.pairs)


def temperatures(tries: int, pairs: int) -> Floats:
    """Return temperatures that fall by a factor, from HOTTEST to COLDEST times the pairs."""
    hot, cold = (share * max(500, pairs) for share in (HOTTEST, COLDEST))
    falling: Floats = hot * (cold / hot) ** (np.arange(tries) / tries)
    return falling


def packed_arcs(adjacency: Bools) -> Words:
    """Return (2, n, words): the successors and the predecessors of each vertex as bit sets."""
    n = len(adjacency)
    padded = np.zeros((2, n, -(-n // 64) * 64), np.bool_)
    padded[0, :, :n] = adjacency
    padded[1, :, :n] = adjacency.T
    return np.packbits(padded, axis=2, bitorder="little").view(np.uint64)


def eliminate(adjacency: Bools, sequence: Ints) -> Filled:
    """Return the useful arcs when the vertices leave in this sequence.

    Called twice for a component, so in Python, where a row of arcs is the bits of a number.
    """
    n, leaving = len(adjacency), sequence.tolist()
    outward, inward = _filled_arcs(adjacency, leaving)
    useful_in = [0] * n
    useful_out = [0] * n
    useful = np.zeros((n, n), np.bool_)
    for v in reversed(leaving):
        both = outward[v] & inward[v]
        for b in _members(outward[v] | inward[v]):
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
    return Filled(sequence, useful, int(np.triu(useful | useful.T).sum()))


def _filled_arcs(adjacency: Bools, leaving: list[int]) -> tuple[list[int], list[int]]:
    """Return the successors and the predecessors of each vertex when it leaves."""
    successors, predecessors = packed_arcs(adjacency)
    outward = [int.from_bytes(row.tobytes(), "little") for row in successors]
    inward = [int.from_bytes(row.tobytes(), "little") for row in predecessors]
    later = -1  # all vertices: every bit is 1
    for v in leaving:
        later ^= 1 << v
        outward[v] &= later
        inward[v] &= later
        for a in _members(inward[v]):
            outward[a] = (outward[a] | outward[v]) & ~(1 << a)
        for b in _members(outward[v]):
            inward[b] = (inward[b] | inward[v]) & ~(1 << b)
    return outward, inward


def _members(bits: int) -> Iterator[int]:
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def count_pairs(arcs: Words, sequence: Ints) -> int:
    """Return the number of pairs joined in an elimination: an upper bound on the useful ones."""
    return int(_count_pairs(arcs, *_scratch(arcs), sequence, len(sequence) ** 2))


def greedy_sequence(neighbours: Words, noise: Floats, by_degree: bool, thorough: bool) -> Ints:
    """Return a sequence in which each vertex adds few pairs (or has few neighbours) when it leaves.

    Ties are decided by `noise`, numbers below 1.
    Costs are kept exact everywhere if `thorough`, else only next to the vertex that left.
    """
    n = len(neighbours)
    sequence = np.empty(n, np.int64)
    costs, stale = np.zeros(n), np.ones(n, np.bool_)
    _choose_greedily(neighbours.copy(), noise, by_degree, thorough, costs, stale, sequence)
    return sequence


def anneal_sequence(arcs: Words, sequence: Ints, moves: Ints, allowances: Floats) -> Ints:
    """Return the best sequence met while moves (from, to a place) are accepted by Metropolis' rule.

    The energy is the number of pairs; move k is accepted if it adds at most allowances[k], which
    are exponential draws times the temperature."""
    states: Ints = np.stack([sequence] * 3)
    _anneal(arcs, *_scratch(arcs), states, moves, allowances.astype(np.int64))
    best: Ints = states[0]
    return best


def _scratch(arcs: Words) -> tuple[Words, Words]:
    """Return a copy of the arcs for an elimination, and (2, words) the set of all vertices."""
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


@inlined
def _degree(row: Words) -> Any:
    """Return the number of neighbours in the row."""
    degree = 0
    for w in range(len(row)):
        degree += popcount(row[w])
    return degree


@inlined
def _missing_pairs(v: int, rows: Words) -> Any:
    """Return the number of ordered pairs of neighbours of v without an edge between them."""
    missing = -_degree(rows[v])  # each neighbour misses itself
    for b in range(len(rows)):
        if _has(rows[v], b):
            for w in range(rows.shape[1]):
                missing += popcount(rows[v, w] & ~rows[b, w])
    return missing


@kernel
def _choose_greedily(
    rows: Words,
    noise: Floats,
    by_degree: bool,
    thorough: bool,
    costs: Floats,
    stale: Bools,
    sequence: Ints,
) -> None:
    """Fill the sequence; `rows` are changed, all vertices `stale` at first."""
    n = len(rows)
    for t in range(n):
        chosen, least = t, inf
        for v in range(n):
            if stale[v] and costs[v] != inf:
                costs[v] = _degree(rows[v]) if by_degree else _missing_pairs(v, rows)
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


@kernel
def _anneal(
    arcs: Words, scratch: Words, later: Words, states: Ints, moves: Ints, allowances: Ints
) -> None:
    """Leave the best sequence in states[0]; all three (best, current, trial) hold the start."""
    best = states[0]
    here, trial = states[1], states[2]
    least = now = _count_pairs(arcs, scratch, later, here, len(here) ** 2)
    for k in range(len(moves)):
        source, target = moves[k, 0], moves[k, 1]
        limit = now + allowances[k]
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
                for t in range(len(here)):
                    best[t] = here[t]


@kernel
def _count_pairs(arcs: Words, scratch: Words, later: Words, sequence: Ints, limit: int) -> Any:
    """Return the number of pairs joined in this elimination, or a number above `limit`.

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
