"""Cluster cuts: the inequalities that keep cycles out of the integer program over families (docs/exact.md).

In a network the first k vertices of a cluster C, in topological order, have fewer than k parents inside C each. So

    sum over v in C, over sets P of v with |P & C| < k, of x(v, P) >= k

holds for every cluster and every k >= 1; k = 1 for all clusters together is acyclicity.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..arrays import AnyArray, Bools, Floats, Ints, SmallInts
from ..jit import leaf

Bytes = npt.NDArray[np.uint8]
SHORTEST_WALK = 24  # flips of one search for a violated cluster
TABU = 6  # flips for which a vertex that was flipped stays as it is


class Sets(NamedTuple):
    """The candidate sets of one component, as kernels take them: set s of vertex owners[s]."""

    vertex_start: Ints  # (n + 1,)
    owners: SmallInts  # (sets,)
    start: Ints  # (sets + 1,)
    members: SmallInts  # (start[-1],)
    losses: Floats  # (sets,) best score of the vertex minus this one; at least 0


class Cuts(NamedTuple):
    """Cluster cuts: row c is a cluster and its k."""

    inside: Bytes  # (cuts, n) 1 for the members
    needs: Ints  # (cuts,) k

    @property
    def rooms(self) -> Ints:
        """(cuts,) |C| - k: how many vertices of the cluster may have k parents or more inside it."""
        sizes: Ints = self.inside.sum(axis=1, dtype=np.int64) - self.needs
        return sizes


def no_cuts(n: int) -> Cuts:
    """No cuts yet on n vertices."""
    return Cuts(np.zeros((0, n), np.uint8), np.zeros(0, np.int64))


def joined(first: Cuts, second: Cuts) -> Cuts:
    """The cuts of both."""
    return Cuts(np.concatenate([first.inside, second.inside]), np.concatenate([first.needs, second.needs]))


def chosen_cuts(cuts: Cuts, which: AnyArray) -> Cuts:
    """These of the cuts."""
    return Cuts(cuts.inside[which], cuts.needs[which])


def crossings(sets: Sets, which: Ints, cuts: Cuts) -> tuple[SmallInts, SmallInts]:
    """(cut, place in which) of each set among `which` that has k members or more in the cluster of its vertex."""
    rows, places = np.empty(0, np.int32), np.empty(0, np.int32)
    count = _fill_crossings(sets, which, cuts, rows, places)
    rows, places = np.empty(count, np.int32), np.empty(count, np.int32)
    _fill_crossings(sets, which, cuts, rows, places)
    return rows, places


@leaf
def _fill_crossings(sets: Sets, which: Ints, cuts: Cuts, rows: SmallInts, places: SmallInts) -> int:
    """Write as many as there is room for; their number."""
    count = 0
    for cut in range(len(cuts.needs)):
        for place in range(len(which)):
            if _crosses(sets, which[place], cuts, cut):
                if count < len(rows):
                    rows[count], places[count] = cut, place
                count += 1
    return count


@leaf
def _crosses(sets: Sets, number: int, cuts: Cuts, cut: int) -> bool:
    if not cuts.inside[cut, sets.owners[number]]:
        return False
    met = 0
    for i in range(sets.start[number], sets.start[number + 1]):
        met += cuts.inside[cut, sets.members[i]]
    return bool(met >= cuts.needs[cut])


def prices(sets: Sets, alive: Bools, cuts: Cuts, weights: Floats) -> Floats:
    """(sets,) loss + sum of the weights of the cuts that the set crosses; infinite for sets that are not alive.

    Of each vertex the cuts around it are bits of a row for each possible parent; a set's row is the union of its
    members' (for k = 2: what two members share), and its bytes look up sums of weights.
    """
    n, words = len(sets.vertex_start) - 1, (len(weights) + 63) // 64
    values = np.full(len(sets.losses), np.inf)
    single = np.zeros(words, np.uint64)
    _fill_prices(sets, alive, cuts, weights, np.zeros((n, words), np.uint64), np.zeros((words * 8, 256)), single, values)
    return values


@leaf
def _fill_prices(sets, alive, cuts, weights, rows, table, single, values):
    for vertex in range(len(sets.vertex_start) - 1):
        used = _gather(cuts, weights, vertex, rows, table, single)
        for number in range(sets.vertex_start[vertex], sets.vertex_start[vertex + 1]):
            if alive[number]:
                values[number] = sets.losses[number] + _crossed(sets, number, rows, table, single, used)


@leaf
def _gather(cuts: Cuts, weights: Floats, vertex: int, rows: AnyArray, table: Floats, single: AnyArray) -> int:
    """Fill the rows of bits and the sums by byte with the cuts around the vertex; the number of words used."""
    rows[:] = 0
    single[:] = 0
    count = 0
    for cut in range(len(weights)):
        if weights[cut] > 0.0 and cuts.inside[cut, vertex]:
            bit = np.uint64(1) << np.uint64(count & 63)
            for other in range(rows.shape[0]):
                if cuts.inside[cut, other]:
                    rows[other, count >> 6] |= bit
            if cuts.needs[cut] == 1:
                single[count >> 6] |= bit
            byte, place = count >> 3, count & 7
            if place == 0:
                table[byte, 0] = 0.0
            for value in range(1 << place):  # entries with this bit: those without it, plus its weight
                table[byte, value + (1 << place)] = table[byte, value] + weights[cut]
            count += 1
    return (count + 63) >> 6


@leaf
def _crossed(sets: Sets, number: int, rows: AnyArray, table: Floats, single: AnyArray, used: int) -> float:
    total = 0.0
    for word in range(used):
        once, twice = np.uint64(0), np.uint64(0)
        for i in range(sets.start[number], sets.start[number + 1]):
            row = rows[sets.members[i], word]
            twice |= once & row
            once |= row
        bits = (once & single[word]) | (twice & ~single[word])
        byte = word * 8
        while bits:
            total += table[byte, bits & np.uint64(255)]
            bits >>= np.uint64(8)
            byte += 1
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

    Each edge of the support starts a short tabu search; it flips one vertex of the cluster at a time.
    """
    n = len(support.own_start) - 1
    heads = support.owners[np.repeat(np.arange(len(support.owners)), np.diff(support.start))]
    edges = np.unique(np.column_stack([support.members, heads]).astype(np.int64), axis=0)
    found, violations, best = np.zeros((len(edges), n), np.uint8), np.zeros(len(edges)), np.zeros(n, np.uint8)
    sizes = (n, len(support.owners), n, n)
    cluster = Cluster(*map(np.zeros, sizes, (np.uint8, np.int64, np.float64, np.int64)))
    count = _search_clusters(support, edges, need, least, cluster, best, found, violations)
    if not count:
        return no_cuts(n), violations[:0]
    found, violations = found[:count], violations[:count]
    found, first = np.unique(found, axis=0, return_index=True)
    order = np.argsort(-violations[first], kind="stable")
    return Cuts(found[order], np.full(len(found), need)), violations[first][order]


@leaf
def _search_clusters(support, edges, need, least, cluster, best, found, violations):
    """Write the cluster and the violation of each search that found one; their number."""
    count = 0
    for start in range(len(edges)):
        lowest = _walk(support, need, cluster, edges[start, 0], edges[start, 1], best)
        if need - lowest >= least:
            for vertex in range(len(best)):
                found[count, vertex] = best[vertex]
            violations[count] = need - lowest
            count += 1
    return count


@leaf
def _walk(support, need, cluster, tail, head, best):
    """The least mass on a walk from two vertices; its cluster is written to `best`."""
    inside, met, change, until = cluster
    inside[:] = 0
    met[:] = 0
    change[:] = 0.0
    until[:] = 0
    for number in range(len(support.owners)):
        change[support.owners[number]] += support.values[number]
    mass, size, lowest = 0.0, 0, np.inf
    for step in range(SHORTEST_WALK + len(inside) // 4):
        vertex = tail if step == 0 else head if step == 1 else _next(change, until, step)
        if vertex < 0:
            break
        until[vertex] = step + 1 + TABU
        mass += change[vertex]
        _flip(support, need, cluster, vertex)
        size += 2 * int(inside[vertex]) - 1
        if size > need and mass < lowest:
            lowest = mass
            for other in range(len(best)):
                best[other] = inside[other]
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
