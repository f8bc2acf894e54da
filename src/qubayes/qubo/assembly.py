"""Assembly of the QUBO from its score, at-most-two and ordering terms."""

from typing import NamedTuple

import numpy as np

from ..foundation.arrays import AnyArray, Bools, Floats, Ints, SmallInts
from ..machines.qubo import Qubo, check_bits, qubo_from_couplers
from .at_most_two import pair_index
from .closure import VertexGains
from .order_bits import Order
from .order_penalties import Penalties
from .relative_sets import Parents, RelativeSets


class QuadraticTerms(NamedTuple):
    """offset + h.x + sum of weights over pairs of bits; a pair may be repeated."""

    h: Floats  # (bits,)
    rows: SmallInts
    cols: SmallInts
    weights: Floats
    offset: float = 0.0


def joined(*parts: QuadraticTerms) -> QuadraticTerms:
    """Return the sum of the parts, their couplers one after another."""
    h = np.sum([part.h for part in parts], axis=0)
    rows, cols, weights = (np.concatenate([part[field] for part in parts]) for field in (1, 2, 3))
    return QuadraticTerms(h, rows, cols, weights, float(sum(part.offset for part in parts)))


def summed(*parts: QuadraticTerms) -> Qubo:
    """Return the QUBO that is the sum of the parts."""
    return qubo_from_couplers(*joined(*parts))


def assemble(relative: RelativeSets, order: Order, gains: list[VertexGains], penalties: Penalties) -> Qubo:
    """Return H(u, r, z): the score with its at-most-two penalties and the ordering terms."""
    first_r = len(relative.subset_sets.set_start) - 1
    first_z = first_r + len(order.pairs)
    bits = first_z + int(penalties.has_slack.sum())
    check_bits(bits)
    return summed(
        score_terms(bits, relative, gains, penalties),
        slack_terms(bits, first_z, relative, penalties),
        order_terms(bits, first_r, relative, order, penalties),
    )


def slack_bits(first_z: int, has_slack: Bools) -> Ints:
    """Return (n,) the z bit of each vertex, -1 where it has none."""
    return np.where(has_slack, first_z + np.cumsum(has_slack) - 1, -1)


def score_terms(
    bits: int, relative: RelativeSets, gains: list[VertexGains], penalties: Penalties | None
) -> QuadraticTerms:
    """Return -sum f(j) u_j - sum (f(j|k) - f(j) - f(k)) u_j u_k (paper: O bar) + at-most-two penalties on pairs.

    With a z bit the penalty is on all pairs of the vertex; without one, on unused pairs, whose couplers are raised to 0
    before. Without `penalties` there is none.
    """
    h = np.zeros(bits)
    ends = np.cumsum([0, *(len(vertex.pairs) for vertex in gains)])
    rows, cols, weights = np.empty(ends[-1], np.int32), np.empty(ends[-1], np.int32), np.empty(ends[-1])
    for vertex, (own, first) in enumerate(zip(gains, relative.subset_sets.vertex_start.tolist(), strict=False)):
        h[first : first + len(own.singles)] = -own.singles
        here = slice(ends[vertex], ends[vertex + 1])
        j, k = _pairs(len(own.singles))
        rows[here], cols[here] = j + first, k + first
        couplers = weights[here]
        np.add(own.singles[j], own.singles[k], out=couplers)
        couplers -= own.pairs
        if penalties is not None and penalties.has_slack[vertex]:
            couplers += penalties.at_most_two[vertex]
        elif penalties is not None and penalties.at_most_two[vertex] != 0.0:
            unused = _unused_pairs(own, first)
            couplers[unused] = np.maximum(couplers[unused], 0.0) + penalties.at_most_two[vertex]
    return QuadraticTerms(h, rows, cols, weights, -float(relative.candidates.base_scores.sum()))


def _pairs(mu: int) -> tuple[SmallInts, SmallInts]:
    """Return all j < k < mu in lexicographic order."""
    first = np.arange(mu, dtype=np.int32)
    j = np.repeat(first, first[::-1])
    begin = first.astype(np.int64) * (2 * mu - first - 1) // 2 - first - 1  # index of (j, k) minus k
    return j, (np.arange(len(j)) - begin[j]).astype(np.int32)


def _unused_pairs(gains: VertexGains, first: int) -> Bools:
    """Return whether each pair of subsets of a vertex represents no candidate set."""
    two = gains.representations[:, 1:] - first
    two = two[two[:, 0] != two[:, 1]]
    unused = np.ones(len(gains.pairs), np.bool_)
    unused[pair_index(two[:, 0], two[:, 1], len(gains.singles))] = False
    return unused


def slack_terms(bits: int, first_z: int, relative: RelativeSets, penalties: Penalties) -> QuadraticTerms:
    """Return sum_i xi_i z_i (1 - sum_j u_ij); the rest of the penalty, xi_i sum_{j<k} u_ij u_ik: `score_terms`."""
    z_bits, families = slack_bits(first_z, penalties.has_slack), relative.subset_sets
    owners = np.repeat(np.arange(families.n), families.sizes)
    h = np.zeros(bits)
    h[z_bits[penalties.has_slack]] = penalties.at_most_two[penalties.has_slack]
    u = np.flatnonzero(penalties.has_slack[owners]).astype(np.int32)
    return QuadraticTerms(h, u, z_bits[owners[u]].astype(np.int32), -penalties.at_most_two[owners[u]])


def order_terms(bits: int, first_r: int, relative: RelativeSets, order: Order, penalties: Penalties) -> QuadraticTerms:
    """Return the ordering part (paper: C bar): edges and required edges against the order, directed triangles."""
    return joined(
        _edge_terms(bits, first_r, relative, order, penalties.edges),
        _required_terms(bits, first_r, relative.required, order, penalties.required),
        triangle_terms(bits, first_r, order, penalties.triangles),
    )


def _edge_terms(bits: int, first_r: int, relative: RelativeSets, order: Order, deltas: Floats) -> QuadraticTerms:
    """Return delta2 u r where the parent is the pair's second vertex, delta2 u (1 - r) where it is its first."""
    subsets, parents = relative.subset_sets, relative.parents
    edges = parents.start[subsets.member_owners] + subsets.members - 1
    u = np.repeat(np.arange(len(subsets.set_start) - 1), np.diff(subsets.set_start))
    r = order.pair_of(parents.vertices, parents.children)[edges]
    ordered = r >= 0
    u, r, edges = u[ordered], r[ordered], edges[ordered]
    parent_is_second = order.pairs[r, 1] == parents.vertices[edges]
    h = _added(bits, u, np.where(parent_is_second, 0.0, deltas[edges]))
    signed = np.where(parent_is_second, deltas[edges], -deltas[edges])
    return QuadraticTerms(h, u.astype(np.int32), (first_r + r).astype(np.int32), signed)


def _required_terms(bits: int, first_r: int, required: Parents, order: Order, deltas: Floats) -> QuadraticTerms:
    """Return the same for an edge that is always present: delta r, or delta (1 - r)."""
    r = order.pair_of(required.vertices, required.children)
    ordered = r >= 0
    parent_is_second = order.pairs[r[ordered], 1] == required.vertices[ordered]
    signed = np.where(parent_is_second, deltas[ordered], -deltas[ordered])
    h, none = _added(bits, first_r + r[ordered], signed), np.empty(0, np.int32)
    return QuadraticTerms(h, none, none, np.empty(0), float(deltas[ordered][~parent_is_second].sum()))


def triangle_terms(bits: int, first_r: int, order: Order, deltas: Floats) -> QuadraticTerms:
    """Return delta1 R(r_ab, r_bc, r_ac), R(x, y, w) = w + x y - x w - y w, with 1 - r for a pair written descending.

    That is w + x y - x w - y w again, with w the long side, or 1 - x - y - w + x y + x w + y w for a triangle that is
    cyclic in the directions as written.
    """
    ab, bc, ac = (first_r + order.triangles).T
    x, y, w = np.where(order.ascending, 1.0, -1.0)[order.triangles].T
    cyclic = (x == y) & (x != w)
    long = np.select([x == y, x == w], [ac, ab], bc)
    h = _added(bits, long[~cyclic], deltas[~cyclic])
    for side in (ab, bc, ac):
        h -= _added(bits, side[cyclic], deltas[cyclic])
    rows, cols = np.concatenate([ab, ab, bc]), np.concatenate([bc, ac, ac])
    weights = np.concatenate([deltas * x * y, -deltas * x * w, -deltas * y * w])
    return QuadraticTerms(h, rows.astype(np.int32), cols.astype(np.int32), weights, float(deltas[cyclic].sum()))


def _added(bits: int, places: AnyArray, values: Floats) -> Floats:
    """Return (bits,) zeros with the values added at their places."""
    h = np.zeros(bits)
    np.add.at(h, places, values)
    return h
