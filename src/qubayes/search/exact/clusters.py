"""Violated cluster cuts: short searches on the support of a solution of the relaxation."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra

from ...foundation.arrays import Floats, Ints, SmallInts
from ...foundation.jit import inner, kernel
from .cut_rows import Bytes, Cuts, Sets, cluster_cuts, no_cuts

SHORTEST_WALK = 24  # flips of one search for a violated cluster
TABU = 6  # flips for which a vertex that was flipped stays as it is


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
    best: Bytes  # (n,) the cluster with the least mass so far


def violated_clusters(support: Support, need: int, least: float) -> tuple[Cuts, Floats]:
    """Clusters whose cut the solution violates by `least` or more, worst first, and by how much.

    Short tabu searches, which flip one vertex of the cluster at a time, start from the edges of the support and from
    its likeliest cycles. Of a solution without fractions every cycle is found.
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


@kernel
def _search_clusters(
    support: Support, starts: Bytes, need: int, least: float, cluster: Cluster, found: Bytes, violations: Floats
) -> int:
    """Write the cluster and the violation of each search that found one; their number."""
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
    """The least mass on a walk from a cluster; its cluster is `cluster.best`."""
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
    """The vertex whose flip lowers the mass most, or raises it least."""
    vertex = -1
    for other in range(len(change)):
        if until[other] <= step and (vertex < 0 or change[other] < change[vertex]):
            vertex = other
    return vertex


@inner
def _flip(support: Support, need: int, cluster: Cluster, vertex: int) -> None:
    """Let the vertex enter or leave: take away what its sets and those with it contribute, and add it anew."""
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
    """Add what one set contributes to the changes of its vertex and its members."""
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
