"""The linear relaxation of the integer program over parent sets, with columns and cuts as needed.

Minimise sum cost(v, P) x(v, P) such that each vertex v has one set P, and for each cut
    sum of coefficient(v, P) x(v, P) <= right side.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from ...foundation.arrays import Bools, Floats, Ints, SmallInts, Words
from ...foundation.highs import Compressed, Highs, LinearModel, Solved
from ...foundation.jit import inlined, inner, kernel
from .cuts import ClusterCuts, ScoredSets, coefficients, no_cuts

# Share of all that is added: far more than the rounding of fewer than 8,000 sums (docs/exact.md).
ROUNDING_SHARE = 2.0**-40


class Point(NamedTuple):
    """A solution of the relaxation."""

    values: Floats  # (columns,)
    weights: Floats  # (cuts,) multipliers, at least 0
    optimal: bool


class Bounded(NamedTuple):
    """Lagrangian bounds: every network costs at least `cost`; with a set, at least `with_set`."""

    cost: float
    with_set: Floats  # (sets,) infinite for sets that are not allowed
    lagrangian: Floats  # (sets,) Lagrangian costs, likewise
    cuts: ClusterCuts  # those with a weight
    weights: Floats  # (cuts,) their multipliers


class LinearRelaxation:
    """The relaxation with its present columns and cuts.

    The first n columns stand for no set: column v satisfies the row of vertex v at a cost above
    that of any network, so that the program is feasible with any choice of sets."""

    def __init__(self, sets: ScoredSets, scale: float) -> None:
        n = sets.families.n
        self.sets = sets
        self.n = n
        self._scale = scale
        self.columns = np.zeros(0, np.int64)  # numbers of the sets that are in
        self.is_in = np.zeros(len(sets.costs), np.bool_)
        self.cuts = no_cuts(n)
        # Multiples of vertex rows subtracted from each cut, so that the commonest coefficient of a
        # vertex is 0.
        self._shifts = np.zeros((0, n))
        above = 1.0 + 2.0 * sets.costs[sets.families.vertex_start[1:] - 1].sum()
        identity = Compressed((n, n), np.arange(n + 1), np.arange(n), np.ones(n))
        model = LinearModel(np.full(n, above), identity, row_lower=1.0, row_upper=1.0, upper=1.0)
        self._highs = Highs(solver="simplex", dual_feasibility_tolerance=1e-9)
        self._highs.load(model)

    def add_sets(self, numbers: Ints) -> None:
        """Add the columns of these sets, none of which is present."""
        count = len(numbers)
        owners = self.sets.owners[numbers]
        # Only the rows of cuts are made from a dense matrix: those of 10,000 vertices would take
        # gigabytes. A column has a 1 in the row of its vertex, then its coefficients in cuts.
        dense = coefficients(self.sets, numbers, self.cuts) - self._shifts[:, owners]
        in_cuts = Compressed.of(dense.T)
        first = in_cuts.indptr[:-1]
        matrix = Compressed(
            (self.n + self.cuts.total, count),
            in_cuts.indptr + np.arange(count + 1),
            np.insert(self.n + in_cuts.indices, first, owners),
            np.insert(in_cuts.data, first, 1.0),
        )
        self._highs.add_columns(self.sets.costs[numbers], matrix, upper=1.0)
        self.columns = np.concatenate([self.columns, numbers])
        self.is_in[numbers] = True

    def add_cuts(self, cuts: ClusterCuts) -> None:
        """Add these cuts."""
        owners = self.sets.owners[self.columns]
        dense = coefficients(self.sets, self.columns, cuts)
        shifts = self._commonest(dense, owners)
        matrix = Compressed.of(np.concatenate([-shifts, dense - shifts[:, owners]], axis=1))
        self._highs.add_rows(matrix, upper=cuts.rhs - shifts.sum(axis=1))
        self.cuts = self.cuts.join(cuts)
        self._shifts = np.concatenate([self._shifts, shifts])

    def _commonest(self, dense: Ints, owners: SmallInts) -> Floats:
        """Return (cuts, n) the commonest coefficient of each vertex's columns, or 0."""
        shifts = np.zeros((len(dense), self.n))
        order = np.argsort(owners, kind="stable")
        present, first = np.unique(owners[order], return_index=True)
        if len(present):
            by_owner = dense[:, order]
            counts = [
                np.add.reduceat(by_owner == value, first, axis=1, dtype=np.int32)
                for value in range(1 + int(dense.max(initial=0)))
            ]
            shifts[:, present] = np.argmax(counts, axis=0)
        return shifts

    def drop_cuts(self, dropped: Bools) -> None:
        """Remove these cuts."""
        self._highs.delete_rows(self.n + np.flatnonzero(dropped))
        self.cuts = self.cuts.select(~dropped)
        self._shifts = self._shifts[~dropped]

    def allow(self, allowed: Bools) -> None:
        """Fix the sets that are not allowed to 0."""
        places = self.n + np.arange(len(self.columns))
        self._highs.bound_columns(places, 0.0, allowed[self.columns].astype(np.float64))

    def solve(self, seconds: float, stop: Bools, iterations: int = 2**31 - 1) -> Point | None:
        """Return the optimum, or the point where a limit was reached; None without multipliers.

        After numerical trouble HiGHS is run once more from scratch.
        """
        end = self._highs.clock + seconds
        point = self._point(self._highs.solve(seconds, stop, simplex_iteration_limit=iterations))
        if point is None and not stop[0] and self._highs.clock < end:
            self._highs.forget_basis()
            point = self._point(self._highs.solve(end - self._highs.clock, stop))
        return point

    def _point(self, solved: Solved) -> Point | None:
        if solved.duals is None or not np.isfinite(solved.duals[self.n :]).all():
            return None
        weights = np.maximum(-solved.duals[self.n :], 0.0)
        return Point(solved.values[self.n :], weights, solved.optimal)

    @property
    def basis(self) -> Any:
        """The basis of the simplex method; assign it to return to it."""
        return self._highs.basis

    @basis.setter
    def basis(self, basis: Any) -> None:
        self._highs.basis = basis

    def bounded(self, weights: Floats, allowed: Bools) -> Bounded:
        """Return the Lagrangian bounds of these multipliers over all allowed sets."""
        active = weights > 0.0
        cuts = self.cuts.select(active)
        return lagrangian_bounds(self.sets, cuts, weights[active], allowed, self._scale)


def lagrangian_bounds(
    sets: ScoredSets, cuts: ClusterCuts, weights: Floats, allowed: Bools, scale: float
) -> Bounded:
    """Return the Lagrangian bounds of these cuts and multipliers over all allowed sets.

    The rounding of what is added up is taken off the bound; `scale` is the sum of the vertices'
    best |scores|."""
    values = lagrangian_costs(sets, allowed, cuts, weights)
    least = np.minimum.reduceat(values, sets.families.vertex_start[:-1])
    paid = math.fsum((weights * cuts.rhs).tolist())
    margin = ROUNDING_SHARE * (scale + float(weights @ cuts.sizes))
    cost = math.fsum(least.tolist()) - paid - margin
    with np.errstate(invalid="ignore"):  # a vertex without an allowed set: inf - inf
        return Bounded(cost, cost + (values - least[sets.owners]), values, cuts, weights)


def lagrangian_costs(
    sets: ScoredSets, allowed: Bools, cuts: ClusterCuts, weights: Floats
) -> Floats:
    """Return (sets,) cost + sum of weight times coefficient; infinite if not allowed.

    For each vertex, the clusters that contain it are bits of a word for each possible parent. A set
    crosses the clusters in the union of its members' words (for k = 2: the bits that two members
    share). Cuts of one cluster share words, and the sums of their weights are looked up by bytes; a
    zero-half cut has a word of its own, whose bits are counted."""
    n = sets.families.n
    halves = int((cuts.divisors == 2).sum())
    words = (cuts.total - halves + 63) // 64
    values = np.full(len(sets.costs), np.inf)
    near = NearCuts(
        np.zeros((n, words + halves), np.uint64),
        np.zeros(words + halves, np.uint64),
        np.zeros((words * 8, 256)),
        np.zeros(halves),
        np.zeros(halves, np.int64),
    )
    fill_lagrangian_costs(sets, allowed, cuts, weights, near, values)
    return values


class NearCuts(NamedTuple):
    """The cuts around one vertex as bits: words of many cuts, then one for each zero-half cut."""

    rows: Words  # (n, words)
    single: Words  # (words,) the bits of clusters with k = 1
    table: Floats  # (bytes of many cuts, 256) sums of weights
    halves: Floats  # (zero-half cuts,) weights
    odd: Ints  # (zero-half cuts,) whether the vertex's row is in the sum


@kernel
def fill_lagrangian_costs(
    sets: ScoredSets,
    allowed: Bools,
    cuts: ClusterCuts,
    weights: Floats,
    near: NearCuts,
    values: Floats,
) -> None:
    """Write the Lagrangian costs of the allowed sets."""
    first = sets.families.vertex_start
    words = len(near.single) - len(near.halves)
    for vertex in range(len(first) - 1):
        clusters, halves = _gather(vertex, words, cuts, weights, near)
        used = (clusters + 63) >> 6
        for number in range(first[vertex], first[vertex + 1]):
            if allowed[number]:
                values[number] = sets.costs[number] + _paid(sets, number, near, used, words, halves)


@inlined
def _gather(vertex: int, words: int, cuts: ClusterCuts, weights: Floats, near: NearCuts) -> Any:
    """Write the cuts around the vertex; return the numbers of cluster and zero-half cuts."""
    for word in range(len(near.single)):
        near.single[word] = 0
        for other in range(len(near.rows)):
            near.rows[other, word] = 0
    clusters = 0
    halves = 0
    for cut in range(len(weights)):
        first = cuts.start[cut]
        if cuts.divisors[cut] == 2:
            if _put_half(vertex, cut, words + halves, cuts, near):
                near.halves[halves] = weights[cut]
                near.odd[halves] = cuts.odd[cut, vertex]
                halves += 1
        elif cuts.inside[first, vertex]:
            _put(cuts, first, near, clusters >> 6, clusters & 63)
            _extend_sums(near.table, clusters, weights[cut])
            clusters += 1
    return clusters, halves


@inlined
def _extend_sums(table: Floats, place: int, weight: float) -> None:
    """Extend the sums of weights over the bits of a byte by one bit."""
    byte = place >> 3
    bit = 1 << (place & 7)
    if bit == 1:
        table[byte, 0] = 0.0
    for value in range(bit):
        table[byte, value + bit] = table[byte, value] + weight


@inlined
def _put_half(vertex: int, cut: int, word: int, cuts: ClusterCuts, near: NearCuts) -> int:
    """Write the clusters of a zero-half cut that contain the vertex; return their number."""
    bits = 0
    for cluster in range(cuts.start[cut], cuts.start[cut + 1]):
        if cuts.inside[cluster, vertex]:
            _put(cuts, cluster, near, word, bits)
            bits += 1
    return bits


@inner
def _put(cuts: ClusterCuts, cluster: int, near: NearCuts, word: int, place: int) -> None:
    """Set the bit of one cluster in the words of its members."""
    bit = np.uint64(1) << np.uint64(place)
    for other in range(near.rows.shape[0]):
        if cuts.inside[cluster, other]:
            near.rows[other, word] |= bit
    if cuts.needs[cluster] == 1:
        near.single[word] |= bit


@inner
def _paid(
    sets: ScoredSets, number: int, near: NearCuts, used: int, words: int, halves: int
) -> float:
    """Return the sum of weight times coefficient over the cuts around the vertex."""
    start = sets.families.set_start
    members = sets.families.members
    total = 0.0
    for index in range(used + halves):
        word = index if index < used else words + index - used
        once = np.uint64(0)
        twice = np.uint64(0)
        for i in range(start[number], start[number + 1]):
            row = near.rows[members[i], word]
            twice |= once & row
            once |= row
        bits = (once & near.single[word]) | (twice & ~near.single[word])
        if index < used:
            byte = word * 8
            while bits:
                total += near.table[byte, bits & np.uint64(255)]
                bits >>= np.uint64(8)
                byte += 1
        elif bits:
            crossed = near.odd[index - used]
            while bits:
                bits &= bits - np.uint64(1)
                crossed += 1
            total += near.halves[index - used] * (crossed // 2)
    return total
