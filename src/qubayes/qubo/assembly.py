"""Assembly of the QUBO from its terms: score, at most two subsets of a vertex, and ordering."""

from typing import NamedTuple

import numpy as np

from ..foundation.arrays import AnyArray, Bools, Floats, Ints, SmallInts
from ..machines.qubo import Qubo, check_bits, qubo_from_couplers
from .gains import Parents, RelativeSets
from .order_bits import OrderBits
from .penalties import Penalties, VertexGains, pair_index


class QuboPart(NamedTuple):
    """offset + h.x + sum of weights over pairs of binary variables; a pair may be repeated."""

    h: Floats  # (bits,)
    rows: SmallInts
    cols: SmallInts
    weights: Floats
    offset: float = 0.0


def summed(*parts: QuboPart) -> Qubo:
    """Return the QUBO that is the sum of the parts."""
    return qubo_from_couplers(
        np.sum([part.h for part in parts], axis=0),
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.cols for part in parts]),
        np.concatenate([part.weights for part in parts]),
        float(sum(part.offset for part in parts)),
    )


def assemble(
    relative: RelativeSets, order: OrderBits, gains: list[VertexGains], penalties: Penalties
) -> Qubo:
    """Return H(u, r, z): the score with its at-most-two penalties and the ordering terms."""
    first_r = relative.subsets.total
    first_z = first_r + len(order.pairs)
    bits = first_z + int(penalties.has_slack.sum())
    check_bits(bits)
    return summed(
        score_terms(bits, relative, gains, penalties),
        slack_terms(bits, first_z, relative, penalties),
        *order_terms(bits, first_r, relative, order, penalties),
        coupled_terms(bits, relative, order, penalties),
    )


def slack_bits(first_z: int, has_slack: Bools) -> Ints:
    """Return (n,) the z bit of each vertex, -1 where it has none."""
    return np.where(has_slack, first_z + np.cumsum(has_slack) - 1, -1)


def score_terms(
    bits: int, relative: RelativeSets, gains: list[VertexGains], penalties: Penalties | None
) -> QuboPart:
    """Return -sum f(j) u_j - sum (f(j|k) - f(j) - f(k)) u_j u_k (paper: O bar), with penalties.

    They keep a vertex at two active subsets. With a z bit they are on all pairs of the vertex;
    without one, on unused pairs, whose interactions are raised to 0 before. Without `penalties`
    there are none."""
    h = np.zeros(bits)
    ends = np.cumsum([0, *(len(vertex.pairs) for vertex in gains)])
    rows = np.empty(ends[-1], np.int32)
    cols = np.empty(ends[-1], np.int32)
    weights = np.empty(ends[-1])
    starts = relative.subset_sets.vertex_start.tolist()
    for vertex, own in enumerate(gains):
        first, mu = starts[vertex], len(own.singles)
        here = slice(ends[vertex], ends[vertex + 1])
        h[first : first + mu] = -own.singles
        j, k = np.triu_indices(mu, 1)
        rows[here] = j + first
        cols[here] = k + first
        couplers = weights[here]
        np.add(own.singles[j], own.singles[k], out=couplers)
        couplers -= own.pairs
        if penalties is not None:
            penalty = penalties.at_most_two[vertex]
            if penalties.has_slack[vertex]:
                couplers += penalty
            elif penalty != 0.0:
                unused = _unused_pairs(own, first)
                couplers[unused] = np.maximum(couplers[unused], 0.0) + penalty
    return QuboPart(h, rows, cols, weights, -float(relative.candidates.base_scores.sum()))


def _unused_pairs(own: VertexGains, first: int) -> Bools:
    """Return (pairs,) whether each pair of the vertex's subsets represents no candidate set."""
    j, k = own.representations[:, 1:].T - first
    unused = np.ones(len(own.pairs), np.bool_)
    unused[pair_index(j[j != k], k[j != k], len(own.singles))] = False
    return unused


def slack_terms(bits: int, first_z: int, relative: RelativeSets, penalties: Penalties) -> QuboPart:
    """Return sum_i xi_i z_i (1 - sum_j u_ij); `score_terms` adds xi_i sum_{j<k} u_ij u_ik."""
    z_bits = slack_bits(first_z, penalties.has_slack)
    owners = relative.subset_sets.owners
    h = np.zeros(bits)
    h[z_bits[penalties.has_slack]] = penalties.at_most_two[penalties.has_slack]
    u = np.flatnonzero(penalties.has_slack[owners]).astype(np.int32)
    return QuboPart(h, u, z_bits[owners[u]].astype(np.int32), -penalties.at_most_two[owners[u]])


def order_terms(
    bits: int, first_r: int, relative: RelativeSets, order: OrderBits, penalties: Penalties
) -> tuple[QuboPart, QuboPart]:
    """Return the ordering part (paper: C bar): edges against the order, and cyclic triangles.

    An edge costs delta2 u r where the parent is the pair's second vertex, delta2 u (1 - r) where it
    is its first; a required edge the same with u = 1."""
    subsets = relative.subset_sets
    r_of_edges, signed_of_edges = _signed(order, relative.parents, penalties.edges)
    edges = relative.edges_in(subsets)
    ordered = r_of_edges[edges] >= 0
    edges = edges[ordered]
    u = subsets.sets_of_members[ordered]
    signed = signed_of_edges[edges]
    h = _added(bits, u, np.maximum(-signed, 0.0))
    fixed_r, fixed = _signed(order, relative.required, penalties.required)
    bound = fixed_r >= 0
    h += _added(bits, first_r + fixed_r[bound], fixed[bound])
    offset = float(np.maximum(-fixed[bound], 0.0).sum())
    r = (first_r + r_of_edges[edges]).astype(np.int32)
    consistency = QuboPart(h, u, r, signed, offset)
    return consistency, triangle_terms(bits, first_r, order, penalties.triangles)


def coupled_terms(
    bits: int, relative: RelativeSets, order: OrderBits, penalties: Penalties
) -> QuboPart:
    """Return delta2 u u' for coupled pairs {a, b}: u a subset of b with a, u' one of a with b."""
    edges = relative.edges_in(relative.subset_sets)
    by_edge = np.argsort(edges, kind="stable")
    u, edges = relative.subset_sets.sets_of_members[by_edge], edges[by_edge]
    rows = [np.empty(0, np.int32)]
    cols = [np.empty(0, np.int32)]
    weights = [np.empty(0)]
    for there, back in zip(*_coupled_edges(relative, order), strict=True):
        first = u[slice(*np.searchsorted(edges, [there, there + 1]))]
        second = u[slice(*np.searchsorted(edges, [back, back + 1]))]
        rows.append(np.repeat(first, len(second)))
        cols.append(np.tile(second, len(first)))
        penalty = max(penalties.edges[there], penalties.edges[back])
        weights.append(np.full(len(first) * len(second), penalty))
    return QuboPart(
        np.zeros(bits), np.concatenate(rows), np.concatenate(cols), np.concatenate(weights)
    )


def coupled_pairs(relative: RelativeSets, order: OrderBits) -> int:
    """Return the number of interactions of `coupled_terms`."""
    edges = relative.edges_in(relative.subset_sets)
    holding = np.bincount(edges, minlength=len(relative.parents.vertices)).astype(np.float64)
    there, back = _coupled_edges(relative, order)
    return int((holding[there] * holding[back]).sum())


def _coupled_edges(relative: RelativeSets, order: OrderBits) -> tuple[Ints, Ints]:
    """Return (c,) the edge from a to b, and the edge from b to a, of each coupled pair {a, b}."""
    keys, n = relative.parents.keys, relative.candidates.n
    a, b = order.coupled.astype(np.int64).T
    return np.searchsorted(keys, b * n + a), np.searchsorted(keys, a * n + b)


def _signed(order: OrderBits, edges: Parents, deltas: Floats) -> tuple[Ints, Floats]:
    """Return (edges,) the order bit or -1, and delta, negative where 1 puts the parent first."""
    r, parent_first = order.of_edges(edges)
    return r, np.where(parent_first, -deltas, deltas)


def triangle_terms(bits: int, first_r: int, order: OrderBits, deltas: Floats) -> QuboPart:
    """Return delta1 R(r_ab, r_bc, r_ac), R(x, y, w) = w + x y - x w - y w (paper, eq. 5).

    A pair that is written descending has 1 - r in place of r. That is w + x y - x w - y w again,
    with w the long side, or 1 - x - y - w + x y + x w + y w for a triangle that is cyclic in the
    directions as written."""
    ab, bc, ac = (first_r + order.triangles).T
    x, y, w = np.where(order.ascending, 1.0, -1.0)[order.triangles].T
    cyclic = (x == y) & (x != w)
    long = np.select([x == y, x == w], [ac, ab], bc)
    h = _added(bits, long[~cyclic], deltas[~cyclic])
    for side in (ab, bc, ac):
        h -= _added(bits, side[cyclic], deltas[cyclic])
    rows = np.concatenate([ab, ab, bc]).astype(np.int32)
    cols = np.concatenate([bc, ac, ac]).astype(np.int32)
    weights = np.concatenate([deltas * x * y, -deltas * x * w, -deltas * y * w])
    return QuboPart(h, rows, cols, weights, float(deltas[cyclic].sum()))


def _added(bits: int, places: AnyArray, values: Floats) -> Floats:
    """Return (bits,) zeros with the values added at their places."""
    h = np.zeros(bits)
    np.add.at(h, places, values)
    return h
