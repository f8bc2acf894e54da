"""Separation: cuts that a solution of the relaxation violates.

Cluster cuts are found by short tabu searches on the support of the solution. Zero-half cuts are half the sum of cluster
cuts and vertex rows, rounded down (Caprara and Fischetti 1996): a sum of rows is worth rounding if its right-hand side
is odd, and violated if the slack of its rows and the values of the sets with an odd coefficient add up to less than 1.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra

from ...foundation.arrays import AnyArray, Floats, Ints, SmallInts
from ...foundation.jit import inner, kernel
from .cuts import MOST_CLUSTERS, Bytes, ClusterCuts, ScoredSets, cluster_cuts, coefficients, no_cuts

SHORTEST_WALK = 24  # flips of one search for a violated cluster
TABU = 6  # flips for which a flipped vertex stays as it is
MOST_SLACK = 0.3  # of a row in a zero-half sum
LOOKS = 30  # times that the rows are examined during elimination


class Support(NamedTuple):
    """The sets with a positive value in a solution of the relaxation, and for each vertex those that contain it."""

    owners: SmallInts  # (s,)
    start: Ints  # (s + 1,)
    members: SmallInts
    values: Floats  # (s,)
    own_start: Ints  # (n + 1,) sets own_start[v] .. own_start[v+1]-1 are those of v
    child_start: Ints  # (n + 1,)
    children: SmallInts  # sets that contain v: children[child_start[v] : child_start[v+1]]


def support_of(sets: ScoredSets, numbers: Ints, values: Floats) -> Support:
    """Return the support made of these sets, given in ascending order."""
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
    """State of a tabu search for a cluster."""

    inside: Bytes  # (n,)
    met: Ints  # (s,) members inside of each set of the support
    change: Floats  # (n,) of the mass when this vertex enters or leaves
    until: Ints  # (n,) step until which the vertex stays as it is
    best: Bytes  # (n,) the cluster with the least mass so far


def violated_clusters(support: Support, need: int, least: float) -> tuple[ClusterCuts, Floats]:
    """Select the cluster cuts that the solution violates by `least` or more, worst first; return them and by how much.

    Tabu searches, which flip one vertex of the cluster at a time, start from the edges of the support and from its
    cycles of largest value. In a solution without fractions every cycle is found.
    """
    n = len(support.own_start) - 1
    starts = starting_clusters(support)
    found, violations = np.zeros_like(starts), np.zeros(len(starts))
    met = np.zeros(len(support.owners), np.int64)
    cluster = Cluster(np.zeros(n, np.uint8), met, np.zeros(n), np.zeros(n, np.int64), np.zeros(n, np.uint8))
    count = _search_clusters(support, starts, need, least, cluster, found, violations)
    if not count:
        return no_cuts(n), violations[:0]
    found, first = np.unique(found[:count], axis=0, return_index=True)
    order = np.argsort(-violations[first], kind="stable")
    return cluster_cuts(found[order], need), violations[first][order]


def starting_clusters(support: Support) -> Bytes:
    """Return the pairs of vertices with an edge between them, and for each edge a cycle of largest value through it.

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
    for _ in range(n):  # follow all paths back at once
        cycles[np.arange(len(closing)), places] = 1
        places = np.where(places == origins, places, before[origins, places])
    return np.unique(np.concatenate([starts, cycles]), axis=0)


def edge_values(support: Support) -> Floats:
    """Return (n, n) the sum of the values of the child's sets that contain the parent, by parent and child."""
    n, sizes = len(support.own_start) - 1, np.diff(support.start)
    values = np.zeros((n, n))
    np.add.at(values, (support.members, np.repeat(support.owners, sizes)), np.repeat(support.values, sizes))
    return values


@kernel
def _search_clusters(
    support: Support, starts: Bytes, need: int, least: float, cluster: Cluster, found: Bytes, violations: Floats
) -> int:
    """Write the cluster and violation of each search that found one; return how many there are."""
    best, count = cluster.best, 0
    for start in range(len(starts)):
        lowest = _walk(support, need, cluster, starts, start)
        if need - lowest >= least:
            for vertex in range(len(best)):
                found[count, vertex] = best[vertex]
            violations[count] = need - lowest
            count += 1
    return count


@inner
def _walk(support: Support, need: int, cluster: Cluster, starts: Bytes, start: int) -> float:
    """Return the least mass that a search from a cluster meets; its cluster is `cluster.best`."""
    inside, met, change, until, best = cluster
    mass, size, lowest = 0.0, 0, np.inf
    n = len(inside)
    for vertex in range(n):
        inside[vertex], change[vertex], until[vertex] = 0, 0.0, 0
    for number in range(len(support.owners)):
        met[number] = 0
        change[support.owners[number]] += support.values[number]
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
        size += 1 if inside[vertex] else -1
    return lowest


@inner
def _next(change: Floats, until: Ints, step: int) -> int:
    """Return the vertex whose flip lowers the mass most, or raises it least; -1 if all are tabu."""
    vertex = -1
    for other in range(len(change)):
        if until[other] <= step and (vertex < 0 or change[other] < change[vertex]):
            vertex = other
    return vertex


@inner
def _flip(support: Support, need: int, cluster: Cluster, vertex: int) -> None:
    """Let the vertex enter or leave: subtract what its sets and those with it contribute, flip, and add it again."""
    own = support.own_start[vertex + 1] - support.own_start[vertex]
    first = support.child_start[vertex] - own
    for sign in (-1.0, 1.0):
        for i in range(first, support.child_start[vertex + 1]):
            mine = i < support.child_start[vertex]
            number = support.own_start[vertex] + i - first if mine else support.children[i]
            if sign > 0.0 and not mine:
                cluster.met[number] += 1 if cluster.inside[vertex] else -1
            _weigh(support, need, cluster, number, sign * support.values[number])
        if sign < 0.0:
            cluster.inside[vertex] ^= 1


@inner
def _weigh(support: Support, need: int, cluster: Cluster, number: int, value: float) -> None:
    """Add the contribution of one set to the changes of its vertex and its members."""
    inside, met, change, _, _ = cluster
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


def zero_half_cuts(
    sets: ScoredSets, numbers: Ints, values: Floats, cuts: ClusterCuts, least: float
) -> tuple[ClusterCuts, Floats]:
    """Select the zero-half cuts that are violated by `least` or more, worst first; return them and by how much.

    Rows are combined by Gaussian elimination modulo 2, sets of large value first, so that these get even coefficients.
    """
    cuts = cuts.select(cuts.divisors == 1)
    rows, places, _ = coefficients(sets, numbers, cuts)
    slack = cuts.rhs - np.bincount(rows, values[places], minlength=cuts.total)
    tight = slack < MOST_SLACK
    index = np.cumsum(tight) - 1
    kept = tight[rows]
    n, columns, count = len(sets.vertex_start) - 1, len(numbers), int(tight.sum())
    matrix = np.zeros((count + n, columns), np.uint8)
    matrix[index[rows[kept]], places[kept]] = 1
    matrix[count + sets.owners[numbers], np.arange(columns)] = 1
    sides = np.concatenate([cuts.rhs[tight] % 2, np.ones(n, np.int64)]).astype(np.uint8)
    slacks = np.concatenate([np.maximum(slack[tight], 0.0), np.zeros(n)])
    sums, violations = _odd_sums(matrix, sides, slacks, values, least)
    return _cuts_of(sums, violations, cuts.select(tight))


def _odd_sums(matrix: Bytes, sides: Bytes, slacks: Floats, values: Floats, least: float) -> tuple[Bytes, Floats]:
    """Return (sums, rows) which rows each violated sum contains, and by how much it is violated."""
    rows = len(matrix)
    # Each packed row: which rows are in the sum, then its coefficients, then its right-hand side.
    packed = np.packbits(np.concatenate([np.eye(rows, dtype=np.uint8), matrix, sides[:, None]], axis=1), axis=1)
    costs = np.concatenate([slacks, values, [0.0]]).astype(np.float32)
    found: dict[bytes, tuple[Bytes, float]] = {}
    free = np.ones(rows, np.bool_)
    order = np.argsort(-values, kind="stable")
    whole = int((values > 1.0 - 1e-6).sum())  # while one of these has an odd coefficient, nothing is violated
    every = 1 + (len(order) - whole) // LOOKS
    for step, column in enumerate((rows + order).tolist()):
        if step >= whole and (step - whole) % every == 0:
            _record_violated(packed, costs, least, found)
        hit = np.flatnonzero(packed[:, column >> 3] >> (7 - (column & 7)) & 1)
        pivots = hit[free[hit]]
        if len(pivots):
            pivot = int(pivots[np.argmin(slacks[pivots])])
            free[pivot] = False
            packed[hit[hit != pivot]] ^= packed[pivot]
    _record_violated(packed, costs, least, found)
    if not found:
        return np.zeros((0, rows), np.uint8), np.zeros(0)
    sums, violations = zip(*found.values(), strict=True)
    return np.stack(sums), np.array(violations)


def _record_violated(packed: Bytes, costs: AnyArray, least: float, found: dict[bytes, tuple[Bytes, float]]) -> None:
    """Keep the rows with an odd right-hand side that are violated now."""
    last = len(costs) - 1
    odd = np.flatnonzero(packed[:, last >> 3] >> (7 - (last & 7)) & 1)
    bits = np.unpackbits(packed[odd], axis=1, count=last)
    violations = 0.5 * (1.0 - bits.astype(np.float32) @ costs[:-1])
    for row in np.flatnonzero(violations >= least).tolist():
        chosen = bits[row, : len(packed)]
        found.setdefault(chosen.tobytes(), (chosen, float(violations[row])))


def _cuts_of(sums: Bytes, violations: Floats, cuts: ClusterCuts) -> tuple[ClusterCuts, Floats]:
    """Return the cuts of these sums of cluster cuts (first columns) and vertex rows, worst first."""
    count = cuts.total
    sizes = sums[:, :count].sum(axis=1, dtype=np.int64)
    order = np.argsort(-violations, kind="stable")
    order = order[(sizes[order] <= MOST_CLUSTERS) & (sizes[order] > 0)]
    if not len(order):
        return no_cuts(cuts.odd.shape[1]), violations[:0]
    clusters = np.nonzero(sums[order, :count])[1]
    start = np.concatenate([[0], np.cumsum(sizes[order])])
    halves = np.full(len(order), 2)
    return ClusterCuts(start, cuts.inside[clusters], cuts.needs[clusters], sums[order, count:], halves), violations[
        order
    ]
