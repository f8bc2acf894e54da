"""Cluster cuts and zero-half cuts of the integer program over families, and their separation (docs/exact.md).

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
sets with an odd coefficient add up to less than 1."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...foundation.arrays import AnyArray, Floats, Ints, SmallInts, frozen
from ...foundation.environment import csgraph, sparse
from ...foundation.families import Families
from ...foundation.jit import inner, kernel

Bytes = npt.NDArray[np.uint8]
# in one zero-half cut; denser ones slow the simplex method down. At most 64: a bit each
MOST_CLUSTERS = 16
SHORTEST_WALK = 24  # flips of one search for a violated cluster
TABU = 6  # flips for which a flipped vertex stays as it is
MOST_SLACK = 0.3  # slack of a row in a zero-half sum
LOOKS = 30  # times that the rows are examined during elimination


class ScoredSets(NamedTuple):
    """The candidate sets of one component with their losses."""

    families: Families
    owners: SmallInts  # (sets,) the vertex that each set belongs to
    losses: Floats  # (sets,) best score of the vertex minus this one; at least 0

    @staticmethod
    def of(families: Families, scores: Floats) -> "ScoredSets":
        """Return these sets, of which the first of each vertex scores most."""
        owners = families.owners
        losses = scores[families.vertex_start[:-1]][owners] - scores
        return ScoredSets(families, frozen(owners), frozen(losses))

    def select(self, which: Ints) -> "ScoredSets":
        """Select some of the sets, ascending."""
        return ScoredSets(
            self.families.chosen(which), frozen(self.owners[which]), frozen(self.losses[which])
        )


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
    owners, chosen = sets.owners[which], sets.families.chosen(which)
    ones = np.ones(len(chosen.members), np.int32)
    holds = sparse.csr_matrix(
        (ones, chosen.members, chosen.set_start), shape=(len(which), sets.families.n)
    )
    met = np.asarray(holds @ cuts.inside.T).T  # (clusters, sets)
    crossed = (met >= cuts.needs[:, None]) & (cuts.inside[:, owners] > 0)
    sums = np.add.reduceat(crossed, cuts.start[:-1], axis=0, dtype=np.int64) + cuts.odd[:, owners]
    values: Ints = sums // cuts.divisors[:, None]
    return values


class Support(NamedTuple):
    """The sets with a positive value in a solution of the relaxation, and for each vertex those that contain it."""

    families: Families  # of these sets
    owners: SmallInts  # (s,)
    values: Floats  # (s,)
    child_start: Ints  # (n + 1,)
    children: SmallInts  # sets that contain v: children[child_start[v] : child_start[v+1]]


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
    n, starts = support.families.n, starting_clusters(support)
    found, violations = np.zeros_like(starts), np.zeros(len(starts))
    met = np.zeros(len(support.owners), np.int64)
    cluster = Cluster(
        np.zeros(n, np.uint8), met, np.zeros(n), np.zeros(n, np.int64), np.zeros(n, np.uint8)
    )
    count = search_clusters(support, starts, need, least, cluster, found, violations)
    found, first = np.unique(found[:count], axis=0, return_index=True)
    return cluster_cuts(found[np.argsort(-violations[first], kind="stable")], need)


def starting_clusters(support: Support) -> Bytes:
    """Return the pairs of vertices with an edge between them, and for each edge a cycle of largest value through it.

    With y(u, v), the sum of the values of v's sets that hold u, a cycle has at most sum (1 - y) of
    its vertices' mass on sets that miss the cycle: a shortest path with these lengths, and an edge
    from its end to its start."""
    n, values = support.families.n, edge_values(support)
    tails, heads = np.nonzero(values)
    lengths = np.maximum(1.0 - values[tails, heads], 1e-9)
    graph = sparse.csr_matrix(
        (lengths, heads, np.searchsorted(tails, np.arange(n + 1))), shape=(n, n)
    )
    distance, before = csgraph.dijkstra(graph, return_predecessors=True)
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
    families = support.families
    values = np.zeros((families.n, families.n))
    np.add.at(
        values,
        (families.members, families.member_owners),
        np.repeat(support.values, np.diff(families.set_start)),
    )
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
            vertex = -1  # whose flip lowers the mass most, or raises it least
            for other in range(n):
                if until[other] <= step and (vertex < 0 or change[other] < change[vertex]):
                    vertex = other
            if vertex < 0:
                break
            until[vertex] = step + 1 + TABU
        mass += change[vertex]
        _flip(support, need, cluster, vertex)
        size += 1 if inside[vertex] else -1
    return lowest


@inner
def _flip(support: Support, need: int, cluster: Cluster, vertex: int) -> None:
    """Let the vertex enter or leave: subtract what its sets and those with it contribute, flip, and add it again.

    A set contributes to the changes of its vertex and, if that is inside, of its members.
    """
    inside, met, change, _, _ = cluster
    families, own = support.families, support.families.vertex_start
    first = support.child_start[vertex] - (own[vertex + 1] - own[vertex])
    for sign in (-1.0, 1.0):
        for i in range(first, support.child_start[vertex + 1]):
            mine = i < support.child_start[vertex]
            number = own[vertex] + i - first if mine else support.children[i]
            if sign > 0.0 and not mine:
                met[number] += 1 if inside[vertex] else -1
            owner, value = support.owners[number], sign * support.values[number]
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
        if sign < 0.0:
            inside[vertex] ^= 1


def zero_half_cuts(
    sets: ScoredSets, numbers: Ints, values: Floats, cuts: ClusterCuts, least: float
) -> ClusterCuts:
    """Return zero-half cuts that are violated by `least` or more, worst first.

    Rows are combined by Gaussian elimination modulo 2, sets of large value first, so that these get
    even coefficients."""
    cuts = cuts.select(cuts.divisors == 1)
    crossed = coefficients(sets, numbers, cuts)  # 0 or 1
    slack = cuts.rhs - crossed @ values
    tight = slack < MOST_SLACK
    cuts, n, count = cuts.select(tight), sets.families.n, int(tight.sum())
    matrix = np.zeros((count + n, len(numbers)), np.uint8)
    matrix[:count] = crossed[tight]
    matrix[count + sets.owners[numbers], np.arange(len(numbers))] = 1
    sides = np.concatenate([cuts.rhs % 2, np.ones(n, np.int64)]).astype(np.uint8)
    sums, violations = _odd_sums(
        matrix, sides, np.append(np.maximum(slack[tight], 0.0), np.zeros(n)), values, least
    )
    sizes = sums[:, :count].sum(axis=1, dtype=np.int64)
    order = np.argsort(-violations, kind="stable")
    order = order[(sizes[order] <= MOST_CLUSTERS) & (sizes[order] > 0)]
    clusters = np.nonzero(sums[order, :count])[1]
    start = np.concatenate([[0], np.cumsum(sizes[order])])
    halves = np.full(len(order), 2)
    return ClusterCuts(
        start, cuts.inside[clusters], cuts.needs[clusters], sums[order, count:], halves
    )


def _odd_sums(
    matrix: Bytes, sides: Bytes, slacks: Floats, values: Floats, least: float
) -> tuple[Bytes, Floats]:
    """Return (sums, rows) which rows each violated sum contains, and by how much it is violated."""
    rows = len(matrix)
    # Each packed row: which rows are in the sum, then its coefficients, then its right-hand side.
    packed = np.packbits(
        np.concatenate([np.eye(rows, dtype=np.uint8), matrix, sides[:, None]], axis=1), axis=1
    )
    costs = np.concatenate([slacks, values, [0.0]]).astype(np.float32)
    found: dict[bytes, tuple[Bytes, float]] = {}
    free = np.ones(rows, np.bool_)
    order = np.argsort(-values, kind="stable")
    # while one of these has an odd coefficient, nothing is violated
    whole = int((values > 1.0 - 1e-6).sum())
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
    sums = np.array([chosen for chosen, _ in found.values()], np.uint8).reshape(-1, rows)
    return sums, np.array([violation for _, violation in found.values()])


def _record_violated(
    packed: Bytes, costs: AnyArray, least: float, found: dict[bytes, tuple[Bytes, float]]
) -> None:
    """Keep the rows with an odd right-hand side that are violated now."""
    last = len(costs) - 1
    odd = np.flatnonzero(packed[:, last >> 3] >> (7 - (last & 7)) & 1)
    bits = np.unpackbits(packed[odd], axis=1, count=last)
    violations = 0.5 * (1.0 - bits.astype(np.float32) @ costs[:-1])
    for row in np.flatnonzero(violations >= least).tolist():
        chosen = bits[row, : len(packed)]
        found.setdefault(chosen.tobytes(), (chosen, float(violations[row])))
