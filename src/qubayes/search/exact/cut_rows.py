"""Cuts: the inequalities that keep cycles out of the integer program over families (docs/exact.md).

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

from ...foundation.arrays import AnyArray, Bools, Floats, Ints, SmallInts, Words
from ...foundation.jit import inner, kernel

Bytes = npt.NDArray[np.uint8]
MOST_CLUSTERS = 16  # in one zero-half cut; denser ones slow the simplex method down. At most 64: a bit each


class Sets(NamedTuple):
    """The candidate sets of one component, as kernels take them: set s of vertex owners[s]."""

    vertex_start: Ints  # (n + 1,)
    owners: SmallInts  # (sets,)
    start: Ints  # (sets + 1,)
    members: SmallInts  # (start[-1],)
    losses: Floats  # (sets,) best score of the vertex minus this one; at least 0


class Cuts(NamedTuple):
    """Cuts made of clusters: cut c has the clusters start[c] .. start[c+1]-1.

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
        """(cuts,) the largest sum of coefficients that a choice can have, before the division."""
        clusters = np.concatenate([[0], np.cumsum(self.inside.sum(axis=1, dtype=np.int64))])
        sizes: Ints = np.diff(clusters[self.start]) + self.odd.sum(axis=1, dtype=np.int64)
        return sizes

    @property
    def rooms(self) -> Ints:
        """(cuts,) the right sides."""
        needs = np.concatenate([[0], np.cumsum(self.needs)])
        rooms: Ints = (self.sizes - np.diff(needs[self.start])) // self.divisors
        return rooms


def no_cuts(n: int) -> Cuts:
    """No cuts yet on n vertices."""
    return cluster_cuts(np.zeros((0, n), np.uint8), 1)


def cluster_cuts(clusters: Bytes, need: int) -> Cuts:
    """The cuts of these clusters with k = need."""
    count = len(clusters)
    ones = np.ones(count, np.int64)
    return Cuts(np.arange(count + 1), clusters, need * ones, np.zeros_like(clusters), ones)


def joined(first: Cuts, second: Cuts) -> Cuts:
    """The cuts of both."""
    return Cuts(
        np.concatenate([first.start, first.start[-1] + second.start[1:]]),
        np.concatenate([first.inside, second.inside]),
        np.concatenate([first.needs, second.needs]),
        np.concatenate([first.odd, second.odd]),
        np.concatenate([first.divisors, second.divisors]),
    )


def chosen_cuts(cuts: Cuts, which: AnyArray | slice) -> Cuts:
    """These of the cuts."""
    sizes = np.diff(cuts.start)[which]
    start = np.concatenate([[0], np.cumsum(sizes)])
    clusters = np.arange(start[-1]) + np.repeat(cuts.start[:-1][which] - start[:-1], sizes)
    return Cuts(start, cuts.inside[clusters], cuts.needs[clusters], cuts.odd[which], cuts.divisors[which])


def coefficients(sets: Sets, which: Ints, cuts: Cuts) -> tuple[SmallInts, SmallInts, Floats]:
    """(cut, place in which, coefficient) of the sets among `which`, cut by cut, where it is not 0."""
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


def prices(sets: Sets, allowed: Bools, cuts: Cuts, weights: Floats) -> Floats:
    """(sets,) loss + sum of weight times coefficient; infinite for sets that are not allowed.

    For each vertex, the clusters around it are bits of a row for each possible parent; a set crosses those in the union
    of its members' rows (for k = 2: what two members share). Cuts of one cluster share words, and bytes look up sums of
    weights; a zero-half cut has a word of its own, whose bits are counted.
    """
    n = len(sets.vertex_start) - 1
    halves = np.flatnonzero(cuts.divisors == 2)
    words = (cuts.total - len(halves) + 63) // 64
    values = np.full(len(sets.losses), np.inf)
    work = Work(
        np.zeros((n, words + len(halves)), np.uint64),
        np.zeros(words + len(halves), np.uint64),
        np.zeros((words * 8, 256)),
        np.zeros(len(halves)),
        np.zeros(len(halves), np.int64),
    )
    _fill_prices(sets, allowed, cuts, weights, work, values)
    return values


class Work(NamedTuple):
    """What pricing keeps of the cuts around one vertex; words of many cuts first, then those of zero-half cuts."""

    rows: Words  # (n, words)
    single: Words  # (words,) the bits of clusters with k = 1
    table: Floats  # (bytes of many cuts, 256) sums of weights
    halves: Floats  # (zero-half cuts,) weights
    odd: Ints  # (zero-half cuts,) whether the vertex's row is in the sum


@kernel
def _fill_prices(sets: Sets, allowed: Bools, cuts: Cuts, weights: Floats, work: Work, values: Floats) -> None:
    words = len(work.single) - len(work.halves)
    for vertex in range(len(sets.vertex_start) - 1):
        for word in range(len(work.single)):
            work.single[word] = 0
            for other in range(len(work.rows)):
                work.rows[other, word] = 0
        count, halves = np.int64(0), np.int64(0)  # literals would let numba compile what takes them twice
        for cut in range(len(weights)):
            if cuts.divisors[cut] == 1:
                if cuts.inside[cuts.start[cut], vertex]:
                    _put(cuts, cuts.start[cut], work, count >> 6, count & 63)
                    _tabulate(work.table, count, weights[cut])
                    count += 1
            else:
                bits = np.int64(0)
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
def _put(cuts: Cuts, cluster: int, work: Work, word: int, place: int) -> None:
    """Write one cluster as a bit."""
    bit = np.uint64(1) << np.uint64(place)
    for other in range(work.rows.shape[0]):
        if cuts.inside[cluster, other]:
            work.rows[other, word] |= bit
    if cuts.needs[cluster] == 1:
        work.single[word] |= bit


@inner
def _tabulate(table: Floats, count: int, weight: float) -> None:
    """Sums over the bits of a byte with one bit more: those without it, plus its weight."""
    byte, place = count >> 3, count & 7
    if place == 0:
        table[byte, 0] = 0.0
    for value in range(1 << place):
        table[byte, value + (1 << place)] = table[byte, value] + weight


@inner
def _price(sets: Sets, number: int, work: Work, used: int, words: int, halves: int) -> float:
    """Sum of weight times coefficient over the cuts around the vertex."""
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
