"""The linear relaxation of the integer program over families, on HiGHS; columns and cuts are added as needed.

Minimise sum loss(v, P) x(v, P) such that each vertex v has one set P, and for each cut
    sum of coefficient(v, P) x(v, P) <= rhs.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from ...foundation.arrays import Bools, Floats, Ints, Words
from ...foundation.highs import Compressed, Highs, LinearModel, Solved
from ...foundation.jit import inner, kernel
from .cuts import ClusterCuts, ScoredSets, coefficients, no_cuts

# share of all that is added: far more than the rounding of fewer than 8,000 sums (docs/exact.md)
ROUNDING = 2.0**-40


class Point(NamedTuple):
    """A solution of the relaxation."""

    values: Floats  # (columns,)
    weights: Floats  # (cuts,) multipliers, at least 0
    optimal: bool


class Bounded(NamedTuple):
    """Lagrangian bounds: every network loses at least `loss`, and one that uses a set at least `with_set`."""

    loss: float
    with_set: Floats  # (sets,) infinite for sets that are not allowed
    prices: Floats  # (sets,) loss plus weights times coefficients; infinite likewise
    cuts: ClusterCuts  # those with a weight
    weights: Floats  # (cuts,) their multipliers


class LinearRelaxation:
    """The relaxation with its present columns and cuts.

    The first n columns stand for no set: column v satisfies the row of vertex v at a price above
    the loss of any network, so that the program is feasible with any choice of sets."""

    def __init__(self, sets: ScoredSets, scale: float) -> None:
        self.sets, self.n, self._scale = sets, sets.families.n, scale
        self.columns = np.zeros(0, np.int64)  # numbers of the sets that are in
        self.is_in = np.zeros(len(sets.losses), np.bool_)
        self.cuts = no_cuts(self.n)
        # Multiples of vertex rows subtracted from each cut, so that the commonest coefficient of a
        # vertex is 0.
        self._shifts = np.zeros((0, self.n))
        price = 1.0 + 2.0 * sets.losses[sets.families.vertex_start[1:] - 1].sum()
        identity = Compressed(
            (self.n, self.n), np.arange(self.n + 1), np.arange(self.n), np.ones(self.n)
        )
        self._highs = Highs(solver="simplex", dual_feasibility_tolerance=1e-9)
        self._highs.load(
            LinearModel(np.full(self.n, price), identity, row_lower=1.0, row_upper=1.0, upper=1.0)
        )

    def add_sets(self, numbers: Ints) -> None:
        """Add the columns of these sets, none of which is present."""
        count, owners = len(numbers), self.sets.owners[numbers]
        # Only the rows of cuts are made from a dense matrix: those of 10,000 vertices would take
        # gigabytes.
        dense = coefficients(self.sets, numbers, self.cuts) - self._shifts[:, owners]
        in_cuts = Compressed.of(dense.T)
        # before what a set has in cuts comes its 1 in the row of its vertex
        first = in_cuts.indptr[:-1]
        matrix = Compressed(
            (self.n + self.cuts.total, count),
            in_cuts.indptr + np.arange(count + 1),
            np.insert(self.n + in_cuts.indices, first, owners),
            np.insert(in_cuts.data, first, 1.0),
        )
        self._highs.add_columns(self.sets.losses[numbers], matrix, upper=1.0)
        self.columns = np.concatenate([self.columns, numbers])
        self.is_in[numbers] = True

    def add_cuts(self, cuts: ClusterCuts) -> None:
        """Add these cuts."""
        owners = self.sets.owners[self.columns]
        order = np.argsort(owners, kind="stable")
        present, first = np.unique(owners[order], return_index=True)
        dense = coefficients(self.sets, self.columns, cuts)
        shifts = np.zeros((cuts.total, self.n))
        if len(present):
            by_owner = dense[:, order]
            values = range(1 + int(dense.max(initial=0)))
            counts = [
                np.add.reduceat(by_owner == value, first, axis=1, dtype=np.int32)
                for value in values
            ]
            shifts[:, present] = np.argmax(counts, axis=0)
        matrix = Compressed.of(np.concatenate([-shifts, dense - shifts[:, owners]], axis=1))
        self._highs.add_rows(matrix, upper=cuts.rhs - shifts.sum(axis=1))
        self.cuts = self.cuts.join(cuts)
        self._shifts = np.concatenate([self._shifts, shifts])

    def drop_cuts(self, dropped: Bools) -> None:
        """Remove these cuts."""
        self._highs.delete_rows(self.n + np.flatnonzero(dropped))
        self.cuts, self._shifts = self.cuts.select(~dropped), self._shifts[~dropped]

    def allow(self, allowed: Bools) -> None:
        """Fix the sets that are not allowed to 0."""
        places = self.n + np.arange(len(self.columns))
        self._highs.bound_columns(places, 0.0, allowed[self.columns].astype(np.float64))

    def solve(self, seconds: float, stop: Bools, iterations: int = 2**31 - 1) -> Point | None:
        """Return the optimum, or the point where time, run or iterations ended; None if HiGHS has no multipliers.

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
        return Point(
            solved.values[self.n :], np.maximum(-solved.duals[self.n :], 0.0), solved.optimal
        )

    @property
    def basis(self) -> Any:
        """The basis of the simplex method; assign it to return there while sets and cuts are the same."""
        return self._highs.basis

    @basis.setter
    def basis(self, basis: Any) -> None:
        self._highs.basis = basis

    def bounded(self, weights: Floats, allowed: Bools) -> Bounded:
        """Return the Lagrangian bounds of these multipliers over all allowed sets, present in the program or not."""
        active = weights > 0.0
        return lagrangian(
            self.sets, self.cuts.select(active), weights[active], allowed, self._scale
        )


def lagrangian(
    sets: ScoredSets, cuts: ClusterCuts, weights: Floats, allowed: Bools, scale: float
) -> Bounded:
    """Return the Lagrangian bounds of these cuts and multipliers over all allowed sets.

    The rounding of what is added up is taken off the bound; `scale` is the sum of the vertices'
    best |scores|."""
    values = prices(sets, allowed, cuts, weights)
    least = np.minimum.reduceat(values, sets.families.vertex_start[:-1])
    paid = math.fsum((weights * cuts.rhs).tolist())
    loss = math.fsum(least.tolist()) - paid - ROUNDING * (scale + float(weights @ cuts.sizes))
    with np.errstate(invalid="ignore"):  # a vertex without an allowed set: inf - inf
        return Bounded(loss, loss + (values - least[sets.owners]), values, cuts, weights)


def prices(sets: ScoredSets, allowed: Bools, cuts: ClusterCuts, weights: Floats) -> Floats:
    """Return (sets,) loss + sum of weight times coefficient; infinite for sets that are not allowed.

    For each vertex, the clusters that contain it are bits of a word for each possible parent. A set
    crosses the clusters in the union of its members' words (for k = 2: the bits that two members
    share). Cuts of one cluster share words, and the sums of their weights are looked up by bytes; a
    zero-half cut has a word of its own, whose bits are counted."""
    n, halves = sets.families.n, np.flatnonzero(cuts.divisors == 2)
    words = (cuts.total - len(halves) + 63) // 64
    values = np.full(len(sets.losses), np.inf)
    work = PricingTables(
        np.zeros((n, words + len(halves)), np.uint64),
        np.zeros(words + len(halves), np.uint64),
        np.zeros((words * 8, 256)),
        np.zeros(len(halves)),
        np.zeros(len(halves), np.int64),
    )
    fill_prices(sets, allowed, cuts, weights, work, values)
    return values


class PricingTables(NamedTuple):
    """The cuts around one vertex as bits; words of many cuts first, then one for each zero-half cut."""

    rows: Words  # (n, words)
    single: Words  # (words,) the bits of clusters with k = 1
    table: Floats  # (bytes of many cuts, 256) sums of weights
    halves: Floats  # (zero-half cuts,) weights
    odd: Ints  # (zero-half cuts,) whether the vertex's row is in the sum


@kernel
def fill_prices(
    sets: ScoredSets,
    allowed: Bools,
    cuts: ClusterCuts,
    weights: Floats,
    work: PricingTables,
    values: Floats,
) -> None:
    words, first = len(work.single) - len(work.halves), sets.families.vertex_start
    for vertex in range(len(first) - 1):
        for word in range(len(work.single)):
            work.single[word] = 0
            for other in range(len(work.rows)):
                work.rows[other, word] = 0
        count, halves = 0, 0
        for cut in range(len(weights)):
            if cuts.divisors[cut] == 1:
                if cuts.inside[cuts.start[cut], vertex]:
                    _put(cuts, cuts.start[cut], work, count >> 6, count & 63)
                    byte, place = count >> 3, count & 7
                    if place == 0:
                        work.table[byte, 0] = 0.0
                    # sums over the bits of a byte, extended by one bit
                    for value in range(1 << place):
                        work.table[byte, value + (1 << place)] = (
                            work.table[byte, value] + weights[cut]
                        )
                    count += 1
            else:
                bits = 0
                for cluster in range(cuts.start[cut], cuts.start[cut + 1]):
                    if cuts.inside[cluster, vertex]:
                        _put(cuts, cluster, work, words + halves, bits)
                        bits += 1
                if bits:
                    work.halves[halves], work.odd[halves] = weights[cut], cuts.odd[cut, vertex]
                    halves += 1
        for number in range(first[vertex], first[vertex + 1]):
            if allowed[number]:
                values[number] = sets.losses[number] + _price(
                    sets, number, work, (count + 63) >> 6, words, halves
                )


@inner
def _put(cuts: ClusterCuts, cluster: int, work: PricingTables, word: int, place: int) -> None:
    """Set the bit of one cluster in the words of its members."""
    bit = np.uint64(1) << np.uint64(place)
    for other in range(work.rows.shape[0]):
        if cuts.inside[cluster, other]:
            work.rows[other, word] |= bit
    if cuts.needs[cluster] == 1:
        work.single[word] |= bit


@inner
def _price(
    sets: ScoredSets, number: int, work: PricingTables, used: int, words: int, halves: int
) -> float:
    """Return the sum of weight times coefficient over the cuts around the vertex."""
    start, members, total = sets.families.set_start, sets.families.members, 0.0
    for index in range(used + halves):
        word = index if index < used else words + index - used
        once, twice = np.uint64(0), np.uint64(0)
        for i in range(start[number], start[number + 1]):
            row = work.rows[members[i], word]
            twice |= once & row
            once |= row
        bits = (once & work.single[word]) | (twice & ~work.single[word])
        if index < used:
            byte = word * 8
            while bits:
                total += work.table[byte, bits & np.uint64(255)]
                bits >>= np.uint64(8)
                byte += 1
        elif bits:
            crossed = work.odd[index - used]
            while bits:
                bits &= bits - np.uint64(1)
                crossed += 1
            total += work.halves[index - used] * (crossed // 2)
    return total
