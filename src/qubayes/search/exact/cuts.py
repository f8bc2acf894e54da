"""Cluster cuts and zero-half cuts of the integer program over parent sets, and their separation.

In a network the first k vertices of a cluster C, in topological order, have fewer than k parents
inside C each. So at most |C| - k of its vertices v *cross* it: take a set with k members or more in
C,

    sum over v in C, over sets P of v with |P & C| >= k, of x(v, P) <= |C| - k;

k = 1 for all clusters together is acyclicity. Half the sum of some of these inequalities, and of
the rows "one set for each vertex" of some vertices, with all coefficients and the right side
rounded down, is a zero-half cut.

Separation finds cuts that a solution of the relaxation violates. Cluster cuts are found by short
tabu searches on the support of the solution. A zero-half sum (Caprara and Fischetti 1996) is worth
rounding if its right-hand side is odd, and violated if the slack of its rows and the values of the
sets with an odd coefficient add up to less than 1 (docs/exact.md)."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...foundation.arrays import AnyArray, Floats, Ints, SmallInts, frozen
from ...foundation.environment import csgraph, sparse
from ...foundation.families import Families
from ...foundation.jit import inlined, inner, kernel

Bytes = npt.NDArray[np.uint8]
# In one zero-half cut; denser ones slow the simplex method down. At most 64: a bit each.
_CLUSTERS_OF_HALF = 16
_SHORTEST_WALK = 24  # flips of one search for a violated cluster
_TABU_STEPS = 6  # flips for which a flipped vertex stays as it is
_MOST_SLACK = 0.3  # of a row in a zero-half sum
_LOOKS = 30  # times that the rows are examined during elimination


class ScoredSets(NamedTuple):
    """The candidate sets of one component with their costs."""

    families: Families
    owners: SmallInts  # (sets,) the vertex that each set belongs to
    costs: Floats  # (sets,) best score of the vertex minus this one; at least 0

    @staticmethod
    def of(families: Families, scores: Floats) -> "ScoredSets":
        """Return these sets, of which the first of each vertex scores most."""
        owners = families.owners
        costs = scores[families.vertex_start[:-1]][owners] - scores
        return ScoredSets(families, frozen(owners), frozen(costs))

    def select(self, which: Ints) -> "ScoredSets":
        """Select some of the sets, ascending."""
        families = self.families.chosen(which)
        return ScoredSets(families, frozen(self.owners[which]), frozen(self.costs[which]))


class ClusterCuts(NamedTuple):
    """Cuts made of clusters: cut c is the sum of the clusters start[c] .. start[c+1]-1.

    The coefficient of a set of v is (the number of these clusters that it crosses + odd[c, v]) //
    divisors[c]."""

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
        return ClusterCuts(
            start,
            self.inside[clusters],
            self.needs[clusters],
            self.odd[which],
            self.divisors[which],
        )

    def join(self, other: "ClusterCuts") -> "ClusterCuts":
        """Return these cuts and then the others."""
        return ClusterCuts(
            np.concatenate([self.start, self.start[-1] + other.start[1:]]),
            np.concatenate([self.inside, other.inside]),
            np.concatenate([self.needs, other.needs]),
            np.concatenate([self.odd, other.odd]),
            np.concatenate([self.divisors, other.divisors]),
        )

    def among(self, vertices: Ints, n: int) -> "ClusterCuts":
        """Return the cuts on n vertices; vertex i of these cuts is vertices[i]."""
        inside = np.zeros((len(self.inside), n), np.uint8)
        inside[:, vertices] = self.inside
        odd = np.zeros((len(self.odd), n), np.uint8)
        odd[:, vertices] = self.odd
        return self._replace(inside=inside, odd=odd)


def no_cuts(n: int) -> ClusterCuts:
    """Return an empty list of cuts on n vertices."""
    return cluster_cuts(np.zeros((0, n), np.uint8), 1)


def cluster_cuts(clusters: Bytes, need: int) -> ClusterCuts:
    """Return the cuts of these clusters with k = need."""
    count = len(clusters)
    ones = np.ones(count, np.int64)
    return ClusterCuts(np.arange(count + 1), clusters, need * ones, np.zeros_like(clusters), ones)


def coefficients(sets: ScoredSets, which: Ints, cuts: ClusterCuts) -> Ints:
    """Return (cuts, which) the coefficients of these sets."""
    if not cuts.total or not len(which):
        return np.zeros((cuts.total, len(which)), np.int64)
    owners = sets.owners[which]
    chosen = sets.families.chosen(which)
    ones = np.ones(len(chosen.members), np.int32)
    rows = (ones, chosen.members, chosen.set_start)
    holds = sparse.csr_matrix(rows, shape=(len(which), sets.families.n))
    met = np.asarray(holds @ cuts.inside.T).T  # (clusters, sets)
    crossed = (met >= cuts.needs[:, None]) & (cuts.inside[:, owners] > 0)
    sums = np.add.reduceat(crossed, cuts.start[:-1], axis=0, dtype=np.int64) + cuts.odd[:, owners]
    values: Ints = sums // cuts.divisors[:, None]
    return values


class Support(NamedTuple):
    """The sets with a positive value in a solution, and for each vertex those that contain it."""

    families: Families  # of these sets
    owners: SmallInts  # (s,)
    values: Floats  # (s,)
    child_start: Ints  # (n + 1,)
    children: SmallInts  # sets that contain v: children[child_start[v] : child_start[v+1]]

    def children_of(self, vertex: int) -> SmallInts:
        """Return the numbers of the sets that contain the vertex."""
        return self.children[self.child_start[vertex] : self.child_start[vertex + 1]]


def support_of(sets: ScoredSets, numbers: Ints, values: Floats) -> Support:
    """Return the support made of these sets, given in ascending order."""
    families = sets.families.chosen(numbers)
    return Support(families, families.owners, values, *families.by_member())


class Cluster(NamedTuple):
    """State of a tabu search for a cluster."""

    inside: Bytes  # (n,)
    met: Ints  # (s,) members inside of each set of the support
    change: Floats  # (n,) of the mass when this vertex enters or leaves
    until: Ints  # (n,) step until which the vertex stays as it is
    best: Bytes  # (n,) the cluster with the least mass so far


def violated_clusters(support: Support, need: int, least: float) -> ClusterCuts:
    """Return cluster cuts that the solution violates by `least` or more, worst first.

    Tabu searches, which flip one vertex of the cluster at a time, start from the edges of the
    support and from its cycles of largest value. In a solution without fractions every cycle is
    found."""
    n = support.families.n
    starts = starting_clusters(support)
    found = np.zeros_like(starts)
    violations = np.zeros(len(starts))
    cluster = Cluster(
        inside=np.zeros(n, np.uint8),
        met=np.zeros(len(support.owners), np.int64),
        change=np.zeros(n),
        until=np.zeros(n, np.int64),
        best=np.zeros(n, np.uint8),
    )
    count = search_clusters(support, starts, need, least, cluster, found, violations)
    found, first = np.unique(found[:count], axis=0, return_index=True)
    return cluster_cuts(found[np.argsort(-violations[first], kind="stable")], need)


def starting_clusters(support: Support) -> Bytes:
    """Return the pairs with an edge, and for each edge a cycle of largest value through it.

    With y(u, v), the sum of the values of v's sets that hold u, a cycle has at most sum (1 - y) of
    its vertices' mass on sets that miss the cycle: a shortest path with these lengths, and an edge
    from its end to its start."""
    n = support.families.n
    values = edge_values(support)
    tails, heads = np.nonzero(values)
    lengths = np.maximum(1.0 - values[tails, heads], 1e-9)
    row_start = np.searchsorted(tails, np.arange(n + 1))
    graph = sparse.csr_matrix((lengths, heads, row_start), shape=(n, n))
    distance, before = csgraph.dijkstra(graph, return_predecessors=True)
    starts = np.zeros((len(tails), n), np.uint8)
    rows = np.arange(len(tails))
    starts[rows, tails] = 1
    starts[rows, heads] = 1
    closing = np.flatnonzero(distance[heads, tails] + lengths < 1.0)
    cycles = np.zeros((len(closing), n), np.uint8)
    origins = heads[closing]
    places = tails[closing]
    for _ in range(n):  # follow all paths back at once
        cycles[np.arange(len(closing)), places] = 1
        places = np.where(places == origins, places, before[origins, places])
    return np.unique(np.concatenate([starts, cycles]), axis=0)


def edge_values(support: Support) -> Floats:
    """Return (n, n), by parent and child, the value of the child's sets with the parent."""
    families = support.families
    values = np.zeros((families.n, families.n))
    edges = (families.members, families.member_owners)
    np.add.at(values, edges, support.values[families.sets_of_members])
    return values


@kernel
def search_clusters(
    support: Support,
    starts: Bytes,
    need: int,
    least: float,
    cluster: Cluster,
    found: Bytes,
    violations: Floats,
) -> int:
    """Write the cluster and violation of each search that found one; return how many there are."""
    count = 0
    for start in range(len(starts)):
        lowest = _walk(support, need, cluster, starts, start)
        if need - lowest >= least:
            for vertex in range(len(cluster.best)):
                found[count, vertex] = cluster.best[vertex]
            violations[count] = need - lowest
            count += 1
    return count


@inner
def _walk(support: Support, need: int, cluster: Cluster, starts: Bytes, start: int) -> float:
    """Return the least mass that a search from a cluster meets; its cluster is `cluster.best`."""
    n = len(cluster.inside)
    _clear(support, cluster)
    mass = 0.0
    size = 0
    lowest = np.inf
    for vertex in range(n):
        if starts[start, vertex]:
            cluster.until[vertex] = _TABU_STEPS
            mass += cluster.change[vertex]
            _flip(support, need, cluster, vertex)
            size += 1
    for step in range(_SHORTEST_WALK + n // 4):
        if size > need and mass < lowest:
            lowest = mass
            for other in range(n):
                cluster.best[other] = cluster.inside[other]
        vertex = _next_flip(cluster, step)
        if vertex < 0:
            break
        cluster.until[vertex] = step + 1 + _TABU_STEPS
        mass += cluster.change[vertex]
        _flip(support, need, cluster, vertex)
        size += 1 if cluster.inside[vertex] else -1
    return lowest


@inlined
def _clear(support: Support, cluster: Cluster) -> None:
    """Begin with an empty cluster."""
    for vertex in range(len(cluster.inside)):
        cluster.inside[vertex] = 0
        cluster.change[vertex] = 0.0
        cluster.until[vertex] = 0
    for number in range(len(support.owners)):
        cluster.met[number] = 0
        cluster.change[support.owners[number]] += support.values[number]


@inlined
def _next_flip(cluster: Cluster, step: int) -> Any:
    """Return the vertex whose flip lowers the mass most, or raises it least; -1 if none is free."""
    vertex = -1
    for other in range(len(cluster.inside)):
        free = cluster.until[other] <= step
        if free and (vertex < 0 or cluster.change[other] < cluster.change[vertex]):
            vertex = other
    return vertex


@inner
def _flip(support: Support, need: int, cluster: Cluster, vertex: int) -> None:
    """Add the vertex to the cluster or remove it, and update the changes of the mass.

    A set contributes to the changes of its vertex and, if that is inside, of its members: what the
    sets of the vertex and those that contain it contribute is subtracted, and added again after
    the flip."""
    own = support.families.vertex_start
    begin = support.child_start[vertex]
    end = support.child_start[vertex + 1]
    for number in range(own[vertex], own[vertex + 1]):
        _add(support, need, cluster, number, -1.0)
    for i in range(begin, end):
        _add(support, need, cluster, support.children[i], -1.0)
    cluster.inside[vertex] ^= 1
    step = 1 if cluster.inside[vertex] else -1
    for number in range(own[vertex], own[vertex + 1]):
        _add(support, need, cluster, number, 1.0)
    for i in range(begin, end):
        cluster.met[support.children[i]] += step
        _add(support, need, cluster, support.children[i], 1.0)


@inlined
def _add(support: Support, need: int, cluster: Cluster, number: int, sign: float) -> None:
    """Add what a set contributes to the changes of the mass, times the sign."""
    inside, met, change, _, _ = cluster
    families = support.families
    owner = support.owners[number]
    value = sign * support.values[number]
    if met[number] < need:
        change[owner] += -value if inside[owner] else value
    if inside[owner]:
        for k in range(families.set_start[number], families.set_start[number + 1]):
            member = families.members[k]
            if inside[member]:
                if met[number] == need:
                    change[member] += value
            elif met[number] == need - 1:
                change[member] -= value


def zero_half_cuts(
    sets: ScoredSets,
    numbers: Ints,
    values: Floats,
    cuts: ClusterCuts,
    least: float,
    most_clusters: int = _CLUSTERS_OF_HALF,
) -> ClusterCuts:
    """Return zero-half cuts that are violated by `least` or more, worst first.

    Rows are combined by Gaussian elimination modulo 2, sets of large value first, so that these get
    even coefficients."""
    n = sets.families.n
    cuts = cuts.select(cuts.divisors == 1)
    crossed = coefficients(sets, numbers, cuts)  # 0 or 1
    slack = cuts.rhs - crossed @ values
    tight = slack < _MOST_SLACK
    cuts = cuts.select(tight)
    # Rows of the cuts, then the rows "one set for each vertex".
    matrix = np.zeros((cuts.total + n, len(numbers)), np.uint8)
    matrix[: cuts.total] = crossed[tight]
    matrix[cuts.total + sets.owners[numbers], np.arange(len(numbers))] = 1
    sides = np.concatenate([cuts.rhs % 2, np.ones(n, np.int64)]).astype(np.uint8)
    slacks = np.append(np.maximum(slack[tight], 0.0), np.zeros(n))
    sums, violations = _odd_sums(matrix, sides, slacks, values, least)
    sizes = sums[:, : cuts.total].sum(axis=1, dtype=np.int64)
    order = np.argsort(-violations, kind="stable")
    order = order[(sizes[order] <= most_clusters) & (sizes[order] > 0)]
    clusters = np.nonzero(sums[order, : cuts.total])[1]
    return ClusterCuts(
        start=np.concatenate([[0], np.cumsum(sizes[order])]),
        inside=cuts.inside[clusters],
        needs=cuts.needs[clusters],
        odd=sums[order, cuts.total :],
        divisors=np.full(len(order), 2),
    )


def _odd_sums(
    matrix: Bytes, sides: Bytes, slacks: Floats, values: Floats, least: float
) -> tuple[Bytes, Floats]:
    """Return (sums, rows) which rows each violated sum contains, and by how much it is violated."""
    rows = len(matrix)
    # Each packed row: which rows are in the sum, then its coefficients, then its right-hand side.
    chosen = np.eye(rows, dtype=np.uint8)
    packed = np.packbits(np.concatenate([chosen, matrix, sides[:, None]], axis=1), axis=1)
    distances = np.concatenate([slacks, values, [0.0]]).astype(np.float32)
    found: dict[bytes, tuple[Bytes, float]] = {}
    free = np.ones(rows, np.bool_)
    order = np.argsort(-values, kind="stable")
    # While a set with value 1 has an odd coefficient, nothing is violated.
    ones = int((values > 1.0 - 1e-6).sum())
    every = 1 + (len(order) - ones) // _LOOKS
    for step, column in enumerate((rows + order).tolist()):
        if step >= ones and (step - ones) % every == 0:
            _record_violated(packed, distances, least, found)
        hit = np.flatnonzero(_bits(packed, column))
        pivots = hit[free[hit]]
        if len(pivots):
            pivot = int(pivots[np.argmin(slacks[pivots])])
            free[pivot] = False
            packed[hit[hit != pivot]] ^= packed[pivot]
    _record_violated(packed, distances, least, found)
    sums = np.array([its_rows for its_rows, _ in found.values()], np.uint8).reshape(-1, rows)
    return sums, np.array([violation for _, violation in found.values()])


def _bits(packed: Bytes, column: int) -> AnyArray:
    """Return (rows,) a column of packed rows."""
    return packed[:, column >> 3] >> (7 - (column & 7)) & 1


def _record_violated(
    packed: Bytes, distances: AnyArray, least: float, found: dict[bytes, tuple[Bytes, float]]
) -> None:
    """Keep the rows with an odd right-hand side that are violated now."""
    last = len(distances) - 1
    odd = np.flatnonzero(_bits(packed, last))
    bits = np.unpackbits(packed[odd], axis=1, count=last)
    violations = 0.5 * (1.0 - bits.astype(np.float32) @ distances[:-1])
    for row in np.flatnonzero(violations >= least).tolist():
        chosen = bits[row, : len(packed)]
        found.setdefault(chosen.tobytes(), (chosen, float(violations[row])))
