"""Cluster cuts and zero-half cuts of the integer program over families (docs/exact.md).

In a network the first k vertices of a cluster C, in topological order, have fewer than k parents inside C each. So at
most |C| - k of its vertices v *cross* it: take a set with k members or more in C,

    sum over v in C, over sets P of v with |P & C| >= k, of x(v, P) <= |C| - k;

k = 1 for all clusters together is acyclicity. Half the sum of some of these inequalities, and of the rows "one set for
each vertex" of some vertices, with all coefficients and the right side rounded down, is a zero-half cut.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from ...foundation.arrays import AnyArray, Bools, Floats, Ints, SmallInts, Words, frozen
from ...foundation.jit import inner, kernel

Bytes = npt.NDArray[np.uint8]
MOST_CLUSTERS = 16  # in one zero-half cut; denser ones slow the simplex method down. At most 64: a bit each


class ScoredSets(NamedTuple):
    """The candidate sets of one component with their losses; set s belongs to vertex owners[s]."""

    vertex_start: Ints  # (n + 1,)
    owners: SmallInts  # (sets,)
    start: Ints  # (sets + 1,)
    members: SmallInts  # (start[-1],)
    losses: Floats  # (sets,) best score of the vertex minus this one; at least 0

    def select(self, which: Ints) -> "ScoredSets":
        """Select some of the sets, ascending."""
        sizes = np.diff(self.start)[which]
        start = np.concatenate([[0], np.cumsum(sizes)])
        places = np.arange(start[-1]) + np.repeat(self.start[which] - start[:-1], sizes)
        owners = self.owners[which]
        vertex_start = np.searchsorted(owners, np.arange(len(self.vertex_start)))
        arrays = (vertex_start, owners, start, self.members[places], self.losses[which])
        return ScoredSets(*map(frozen, arrays))


class ClusterCuts(NamedTuple):
    """Cuts made of clusters: cut c is the sum of the clusters start[c] .. start[c+1]-1.

    The coefficient of a set of v is (the number of these clusters that it crosses + odd[c, v]) // divisors[c].
    """

    start: Ints  # (cuts + 1,)
    inside: Bytes  # (clusters, n) 1 for the members
    needs: Ints  # (clusters,) k
    odd: Bytes  # (cuts, n) 1 for the vertices whose rows are in the sum
    divisors: Ints  # (cuts,) 1 for one cluster, 2 for a zero-half cut

    @property
    def total(self) -> int:
        """Number of cuts."""
        return len(self.divisors)

    @property
    def sizes(self) -> Ints:
        """(cuts,) the largest sum of coefficients of a choice, before the division."""
        clusters = np.concatenate([[0], np.cumsum(self.inside.sum(axis=1, dtype=np.int64))])
        sizes: Ints = np.diff(clusters[self.start]) + self.odd.sum(axis=1, dtype=np.int64)
        return sizes

    @property
    def rhs(self) -> Ints:
        """(cuts,) the right-hand sides."""
        needs = np.concatenate([[0], np.cumsum(self.needs)])
        rhs: Ints = (self.sizes - np.diff(needs[self.start])) // self.divisors
        return rhs

    def select(self, which: AnyArray | slice) -> "ClusterCuts":
        """Select some of the cuts."""
        sizes = np.diff(self.start)[which]
        start = np.concatenate([[0], np.cumsum(sizes)])
        clusters = np.arange(start[-1]) + np.repeat(self.start[:-1][which] - start[:-1], sizes)
        return ClusterCuts(start, self.inside[clusters], self.needs[clusters], self.odd[which], self.divisors[which])

    def join(self, other: "ClusterCuts") -> "ClusterCuts":
        """Return these cuts and then the others."""
        return ClusterCuts(
            np.concatenate([self.start, self.start[-1] + other.start[1:]]),
            np.concatenate([self.inside, other.inside]),
            np.concatenate([self.needs, other.needs]),
            np.concatenate([self.odd, other.odd]),
            np.concatenate([self.divisors, other.divisors]),
        )


def no_cuts(n: int) -> ClusterCuts:
    """Return an empty list of cuts on n vertices."""
    return cluster_cuts(np.zeros((0, n), np.uint8), 1)


def cluster_cuts(clusters: Bytes, need: int) -> ClusterCuts:
    """Return the cuts of these clusters with k = need."""
    count = len(clusters)
    ones = np.ones(count, np.int64)
    return ClusterCuts(np.arange(count + 1), clusters, need * ones, np.zeros_like(clusters), ones)


def coefficients(sets: ScoredSets, which: Ints, cuts: ClusterCuts) -> tuple[SmallInts, SmallInts, Floats]:
    """Return (cut, position in `which`, coefficient) of every coefficient that is not 0, cut by cut."""
    if not cuts.total or not len(which):
        return np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0)
    owners, sizes = sets.owners[which], sets.start[which + 1] - sets.start[which]
    start = np.concatenate([[0], np.cumsum(sizes)])
    members = sets.members[np.arange(start[-1]) + np.repeat(sets.start[which] - start[:-1], sizes)]
    holds = csr_matrix((np.ones(len(members), np.int32), members, start), shape=(len(which), cuts.inside.shape[1]))
    met = (holds @ cuts.inside.T).T  # (clusters, sets)
    crossed = (met >= cuts.needs[:, None]) & (cuts.inside[:, owners] > 0)
    sums = np.add.reduceat(crossed, cuts.start[:-1], axis=0, dtype=np.int64) + cuts.odd[:, owners]
    values = sums // cuts.divisors[:, None]
    rows, places = np.nonzero(values)
    return rows.astype(np.int32), places.astype(np.int32), values[rows, places].astype(np.float64)


def prices(sets: ScoredSets, allowed: Bools, cuts: ClusterCuts, weights: Floats) -> Floats:
    """Return (sets,) loss + sum of weight times coefficient; infinite for sets that are not allowed.

    For each vertex, the clusters that contain it are bits of a word for each possible parent. A set crosses the
    clusters in the union of its members' words (for k = 2: the bits that two members share). Cuts of one cluster share
    words, and the sums of their weights are looked up by bytes; a zero-half cut has a word of its own, whose bits are
    counted.
    """
    n = len(sets.vertex_start) - 1
    halves = np.flatnonzero(cuts.divisors == 2)
    words = (cuts.total - len(halves) + 63) // 64
    values = np.full(len(sets.losses), np.inf)
    work = PricingTables(
        np.zeros((n, words + len(halves)), np.uint64),
        np.zeros(words + len(halves), np.uint64),
        np.zeros((words * 8, 256)),
        np.zeros(len(halves)),
        np.zeros(len(halves), np.int64),
    )
    _fill_prices(sets, allowed, cuts, weights, work, values)
    return values


class PricingTables(NamedTuple):
    """The cuts around one vertex as bits; words of many cuts first, then one for each zero-half cut."""

    rows: Words  # (n, words)
    single: Words  # (words,) the bits of clusters with k = 1
    table: Floats  # (bytes of many cuts, 256) sums of weights
    halves: Floats  # (zero-half cuts,) weights
    odd: Ints  # (zero-half cuts,) whether the vertex's row is in the sum


@kernel
def _fill_prices(
    sets: ScoredSets, allowed: Bools, cuts: ClusterCuts, weights: Floats, work: PricingTables, values: Floats
) -> None:
    words = len(work.single) - len(work.halves)
    for vertex in range(len(sets.vertex_start) - 1):
        for word in range(len(work.single)):
            work.single[word] = 0
            for other in range(len(work.rows)):
                work.rows[other, word] = 0
        count, halves = 0, 0
        for cut in range(len(weights)):
            if cuts.divisors[cut] == 1:
                if cuts.inside[cuts.start[cut], vertex]:
                    _put(cuts, cuts.start[cut], work, count >> 6, count & 63)
                    _tabulate(work.table, count, weights[cut])
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
        for number in range(sets.vertex_start[vertex], sets.vertex_start[vertex + 1]):
            if allowed[number]:
                values[number] = sets.losses[number] + _price(sets, number, work, (count + 63) >> 6, words, halves)


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
def _tabulate(table: Floats, count: int, weight: float) -> None:
    """Extend the sums over the bits of a byte by one bit."""
    byte, place = count >> 3, count & 7
    if place == 0:
        table[byte, 0] = 0.0
    for value in range(1 << place):
        table[byte, value + (1 << place)] = table[byte, value] + weight


@inner
def _price(sets: ScoredSets, number: int, work: PricingTables, used: int, words: int, halves: int) -> float:
    """Return the sum of weight times coefficient over the cuts around the vertex."""
    total = 0.0
    for index in range(used + halves):
        word = index if index < used else words + index - used
        once, twice = np.uint64(0), np.uint64(0)
        for i in range(sets.start[number], sets.start[number + 1]):
            row = work.rows[sets.members[i], word]
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
