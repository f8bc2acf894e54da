"""Cluster cuts: the inequalities that keep cycles out of the integer program over families (docs/exact.md).

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
from scipy.sparse.csgraph import dijkstra

from ..arrays import AnyArray, Bools, Floats, Ints, SmallInts
from ..jit import leaf

Bytes = npt.NDArray[np.uint8]
SHORTEST_WALK = 24  # flips of one search for a violated cluster
TABU = 6  # flips for which a vertex that was flipped stays as it is
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
    def count(self) -> int:
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
    start = np.concatenate([first.start, first.start[-1] + second.start[1:]])
    return Cuts(start, *(np.concatenate(pair) for pair in zip(first[1:], second[1:], strict=True)))


def chosen_cuts(cuts: Cuts, which: AnyArray | slice) -> Cuts:
    """These of the cuts."""
    sizes = np.diff(cuts.start)[which]
    start = np.concatenate([[0], np.cumsum(sizes)])
    clusters = np.arange(start[-1]) + np.repeat(cuts.start[:-1][which] - start[:-1], sizes)
    return Cuts(start, cuts.inside[clusters], cuts.needs[clusters], cuts.odd[which], cuts.divisors[which])


def coefficients(sets: Sets, which: Ints, cuts: Cuts) -> tuple[SmallInts, SmallInts, Floats]:
    """(cut, place in which, coefficient) of the sets among `which`, cut by cut, where it is not 0."""
    room = min(len(which) * cuts.count, 1 << 20)
    while True:
        rows, places, values = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room)
        count = _fill_coefficients(sets, which, cuts, rows, places, values)
        if count <= room:
            return rows[:count].copy(), places[:count].copy(), values[:count].copy()
        room = count


@leaf
def _fill_coefficients(sets, which, cuts, rows, places, values):
    """Write as many as there is room for; their number."""
    count = 0
    for cut in range(len(cuts.divisors)):
        for place in range(len(which)):
            value = _coefficient(sets, which[place], cuts, cut)
            if value > 0:
                if count < len(rows):
                    rows[count], places[count], values[count] = cut, place, value
                count += 1
    return count


@leaf
def _coefficient(sets, number, cuts, cut):
    owner = sets.owners[number]
    crossed = np.int64(cuts.odd[cut, owner])
    for cluster in range(cuts.start[cut], cuts.start[cut + 1]):
        if cuts.inside[cluster, owner]:
            met = 0
            for i in range(sets.start[number], sets.start[number + 1]):
                met += cuts.inside[cluster, sets.members[i]]
            if met >= cuts.needs[cluster]:
                crossed += 1
    return crossed // cuts.divisors[cut]


def prices(sets: Sets, allowed: Bools, cuts: Cuts, weights: Floats) -> Floats:
    """(sets,) loss + sum of weight times coefficient; infinite for sets that are not allowed.

    For each vertex, the clusters around it are bits of a row for each possible parent; a set crosses those in the union
    of its members' rows (for k = 2: what two members share). Cuts of one cluster share words, and bytes look up sums of
    weights; a zero-half cut has a word of its own, whose bits are counted.
    """
    n = len(sets.vertex_start) - 1
    halves = np.flatnonzero(cuts.divisors == 2)
    words = (cuts.count - len(halves) + 63) // 64
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

    rows: npt.NDArray[np.uint64]  # (n, words)
    single: npt.NDArray[np.uint64]  # (words,) the bits of clusters with k = 1
    table: Floats  # (bytes of many cuts, 256) sums of weights
    halves: Floats  # (zero-half cuts,) weights
    odd: Ints  # (zero-half cuts,) whether the vertex's row is in the sum


@leaf
def _fill_prices(sets, allowed, cuts, weights, work, values):
    words = len(work.single) - len(work.halves)
    for vertex in range(len(sets.vertex_start) - 1):
        work.rows[:] = 0
        work.single[:] = 0
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


@leaf
def _put(cuts, cluster, work, word, place):
    """Write one cluster as a bit."""
    bit = np.uint64(1) << np.uint64(place)
    for other in range(work.rows.shape[0]):
        if cuts.inside[cluster, other]:
            work.rows[other, word] |= bit
    if cuts.needs[cluster] == 1:
        work.single[word] |= bit


@leaf
def _tabulate(table, count, weight):
    """Sums over the bits of a byte with one bit more: those without it, plus its weight."""
    byte, place = count >> 3, count & 7
    if place == 0:
        table[byte, 0] = 0.0
    for value in range(1 << place):
        table[byte, value + (1 << place)] = table[byte, value] + weight


@leaf
def _price(sets, number, work, used, words, halves):
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


class Support(NamedTuple):
    """The sets with a positive value in a solution of the relaxation, and for each vertex those that contain it."""

    owners: SmallInts  # (s,)
    start: Ints  # (s + 1,)
    members: SmallInts
    values: Floats  # (s,)
    own_start: Ints  # (n + 1,) sets own_start[v] .. own_start[v+1]-1 are those of v
    child_start: Ints  # (n + 1,)
    children: SmallInts  # sets that contain v: children[child_start[v] : child_start[v+1]]


def support_of(sets: Sets, numbers: Ints, values: Floats) -> Support:
    """The support made of these sets, which come in ascending order."""
    n = len(sets.vertex_start) - 1
    sizes = sets.start[numbers + 1] - sets.start[numbers]
    start = np.concatenate([[0], np.cumsum(sizes)])
    owner_of_member = np.repeat(np.arange(len(numbers), dtype=np.int32), sizes)
    members = sets.members[np.arange(start[-1]) - start[owner_of_member] + sets.start[numbers][owner_of_member]]
    owners = sets.owners[numbers]
    by_member = np.argsort(members, kind="stable")
    return Support(
        owners,
        start,
        members,
        values,
        np.searchsorted(owners, np.arange(n + 1)),
        np.searchsorted(members[by_member], np.arange(n + 1)),
        owner_of_member[by_member],
    )


class Cluster(NamedTuple):
    """A cluster under way."""

    inside: Bytes  # (n,)
    met: Ints  # (s,) members inside of each set of the support
    change: Floats  # (n,) of the mass when this vertex enters or leaves
    until: Ints  # (n,) step until which the vertex stays as it is


def violated_clusters(support: Support, need: int, least: float) -> tuple[Cuts, Floats]:
    """Clusters whose cut the solution violates by `least` or more, worst first, and by how much.

    Short tabu searches, which flip one vertex of the cluster at a time, start from the edges of the support and from
    its likeliest cycles. Of a solution without fractions every cycle is found.
    """
    n = len(support.own_start) - 1
    starts = starting_clusters(support)
    found, violations, best = np.zeros_like(starts), np.zeros(len(starts)), np.zeros(n, np.uint8)
    sizes = (n, len(support.owners), n, n)
    cluster = Cluster(*map(np.zeros, sizes, (np.uint8, np.int64, np.float64, np.int64)))
    count = _search_clusters(support, starts, need, least, cluster, best, found, violations)
    if not count:
        return no_cuts(n), violations[:0]
    found, first = np.unique(found[:count], axis=0, return_index=True)
    order = np.argsort(-violations[first], kind="stable")
    return cluster_cuts(found[order], need), violations[first][order]


def starting_clusters(support: Support) -> Bytes:
    """The pairs of vertices with an edge between them, and a cycle through each edge that is as likely as can be.

    With y(u, v), the sum of the values of v's sets that hold u, a cycle has at most sum (1 - y) of its vertices' mass
    on sets that miss the cycle: a shortest path with these lengths, and an edge from its end to its start.
    """
    n = len(support.own_start) - 1
    values = edge_values(support)
    tails, heads = np.nonzero(values)
    lengths = np.maximum(1.0 - values[tails, heads], 1e-9)
    distance, before = dijkstra(csr_matrix((lengths, (tails, heads)), shape=(n, n)), return_predecessors=True)
    starts = np.zeros((len(tails), n), np.uint8)
    rows = np.arange(len(tails))
    starts[rows, tails] = starts[rows, heads] = 1
    closing = np.flatnonzero(distance[heads, tails] + lengths < 1.0)
    cycles = np.zeros((len(closing), n), np.uint8)
    origins, places = heads[closing], tails[closing]
    for _ in range(n):  # walk back along all paths at once
        cycles[np.arange(len(closing)), places] = 1
        places = np.where(places == origins, places, before[origins, places])
    return np.unique(np.concatenate([starts, cycles]), axis=0)


def edge_values(support: Support) -> Floats:
    """(n, n) the sum of the values of the child's sets that hold the parent, by parent and child."""
    n, sizes = len(support.own_start) - 1, np.diff(support.start)
    values = np.zeros((n, n))
    np.add.at(values, (support.members, np.repeat(support.owners, sizes)), np.repeat(support.values, sizes))
    return values


@leaf
def _search_clusters(support, starts, need, least, cluster, best, found, violations):
    """Write the cluster and the violation of each search that found one; their number."""
    count = 0
    for start in range(len(starts)):
        lowest = _walk(support, need, cluster, starts, start, best)
        if need - lowest >= least:
            for vertex in range(len(best)):
                found[count, vertex] = best[vertex]
            violations[count] = need - lowest
            count += 1
    return count


@leaf
def _walk(support, need, cluster, starts, start, best):
    """The least mass on a walk from a cluster; its own cluster is written to `best`."""
    inside, met, change, until = cluster
    inside[:] = 0
    met[:] = 0
    change[:] = 0.0
    until[:] = 0
    for number in range(len(support.owners)):
        change[support.owners[number]] += support.values[number]
    mass, size, lowest = 0.0, 0, np.inf
    n = len(inside)
    for step in range(-n, SHORTEST_WALK + n // 4):
        if step < 0:
            if not starts[start, step + n]:
                continue
            vertex = step + n
            until[vertex] = TABU
        else:
            if size > need and mass < lowest:
                lowest = mass
                for other in range(n):
                    best[other] = inside[other]
            vertex = _next(change, until, step)
            if vertex < 0:
                break
            until[vertex] = step + 1 + TABU
        mass += change[vertex]
        _flip(support, need, cluster, vertex)
        size += 2 * int(inside[vertex]) - 1
    return lowest


@leaf
def _next(change, until, step):
    """The vertex whose flip lowers the mass most, or raises it least."""
    vertex = -1
    for other in range(len(change)):
        if until[other] <= step and (vertex < 0 or change[other] < change[vertex]):
            vertex = other
    return vertex


@leaf
def _flip(support, need, cluster, vertex):
    """Let the vertex enter or leave: take away what its sets and those with it contribute, and add it anew."""
    own = support.own_start[vertex + 1] - support.own_start[vertex]
    first = support.child_start[vertex] - own
    for sign in (-1.0, 1.0):
        for i in range(first, support.child_start[vertex + 1]):
            mine = i < support.child_start[vertex]
            number = support.own_start[vertex] + i - first if mine else support.children[i]
            if sign > 0.0 and not mine:
                cluster.met[number] += 2 * int(cluster.inside[vertex]) - 1
            _weigh(support, need, cluster, number, sign * support.values[number])
        if sign < 0.0:
            cluster.inside[vertex] ^= 1


@leaf
def _weigh(support, need, cluster, number, value):
    """Add what one set contributes to the changes of its vertex and its members."""
    inside, met, change, _ = cluster
    owner = support.owners[number]
    if met[number] < need:
        change[owner] += -value if inside[owner] else value
    if inside[owner]:
        for i in range(support.start[number], support.start[number + 1]):
            member = support.members[i]
            if inside[member]:
                if met[number] == need:
                    change[member] += value
            elif met[number] == need - 1:
                change[member] -= value
