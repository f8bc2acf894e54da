"""Parts of a quadratic function over the bits, before they are summed into one QUBO."""

from typing import NamedTuple

import numpy as np

from ..foundation.arrays import AnyArray, Floats, Ints, SmallInts
from ..machines.qubo import Qubo, qubo_from_couplers
from .crowding import pair_index
from .order import Order
from .parents import Parents, Relative
from .penalties import Penalties


class Terms(NamedTuple):
    """offset + sum h + sum of weights over pairs of bits; pairs may repeat."""

    h: Floats  # (bits,)
    rows: SmallInts
    cols: SmallInts
    weights: Floats
    offset: float = 0.0


def summed(*parts: Terms) -> Qubo:
    """The QUBO that is the sum of the parts."""
    h = np.sum([part.h for part in parts], axis=0)
    rows, cols, weights = (np.concatenate([part[field] for part in parts]) for field in (1, 2, 3))
    return qubo_from_couplers(h, rows, cols, weights, float(sum(part.offset for part in parts)))


def score_terms(bits: int, blocks: list["Block"], offset: float) -> Terms:
    """offset - sum f(j) u_j - sum (f(j|k) - f(j) - f(k)) u_j u_k + penalties on pairs (paper: O bar)."""
    h = np.zeros(bits)
    ends = np.cumsum([0, *(len(block.pairs) for block in blocks)])
    rows, cols, weights = np.empty(ends[-1], np.int32), np.empty(ends[-1], np.int32), np.empty(ends[-1])
    for block, begin, end in zip(blocks, ends, ends[1:], strict=False):
        h[block.first : block.first + len(block.singles)] = -block.singles
        _write_block(block, rows[begin:end], cols[begin:end], weights[begin:end])
    return Terms(h, rows, cols, weights, offset)


class Block(NamedTuple):
    """The u bits of one vertex: their gains, and a penalty on pairs."""

    first: int  # number of the vertex's first u bit
    singles: Floats  # (mu,)
    pairs: Floats  # (mu (mu - 1) / 2,) lexicographic
    extra: float  # added to the couplers of all pairs (xi) or, without a z bit, of the unused ones, raised to 0 before
    slack: bool  # whether the vertex has a z bit
    used: SmallInts  # (sets, 2) pairs of bits that candidate sets use, by their numbers


def _write_block(block: Block, rows: SmallInts, cols: SmallInts, weights: Floats) -> None:
    mu = len(block.singles)
    j, k = _pairs(mu)
    np.add(j, block.first, out=rows)
    np.add(k, block.first, out=cols)
    np.add(block.singles[j], block.singles[k], out=weights)
    weights -= block.pairs
    if block.slack:
        weights += block.extra
    elif block.extra != 0.0:
        joined = block.used[block.used[:, 0] != block.used[:, 1]] - block.first
        unused = np.ones(len(weights), np.bool_)
        unused[pair_index(joined[:, 0], joined[:, 1], mu)] = False
        weights[unused] = np.maximum(weights[unused], 0.0) + block.extra


def _pairs(mu: int) -> tuple[SmallInts, SmallInts]:
    """All j < k < mu in lexicographic order."""
    first = np.arange(mu, dtype=np.int32)
    j = np.repeat(first, first[::-1])
    begin = first.astype(np.int64) * (2 * mu - first - 1) // 2 - first - 1  # place of (j, k) less k
    return j, (np.arange(len(j)) - begin[j]).astype(np.int32)


def slack_terms(bits: int, z_bits: Ints, owners: Ints, crowds: Floats) -> Terms:
    """sum_i xi_i z_i (1 - sum_j u_ij); the rest of the penalty, xi_i sum_{j<k} u_ij u_ik, stands in the blocks."""
    h = np.zeros(bits)
    with_slack = np.flatnonzero(z_bits >= 0)
    h[z_bits[with_slack]] = crowds[with_slack]
    u = np.flatnonzero(z_bits[owners] >= 0).astype(np.int32)
    return Terms(h, u, z_bits[owners[u]].astype(np.int32), -crowds[owners[u]])


def cycle_terms(bits: int, first_r: int, relative: Relative, order: Order, penalties: Penalties) -> Terms:
    """The ordering part (paper: C bar): directed triangles, and edges against the order."""
    parts = (
        _edge_terms(bits, first_r, relative, order, penalties.edges),
        _required_terms(bits, first_r, relative.required, order, penalties.required),
        triangle_terms(bits, first_r, order, penalties.triangles),
    )
    h = np.sum([part.h for part in parts], axis=0)
    rows, cols, weights = (np.concatenate([part[field] for part in parts]) for field in (1, 2, 3))
    return Terms(h, rows, cols, weights, sum(part.offset for part in parts))


def _edge_terms(bits: int, first_r: int, relative: Relative, order: Order, deltas: Floats) -> Terms:
    """delta2 u r where the parent is the pair's second vertex, delta2 u (1 - r) where it is its first."""
    subsets, parents = relative.subsets, relative.parents
    owners = np.repeat(np.arange(subsets.n), np.diff(subsets.set_start[subsets.vertex_start]))
    edges = parents.start[owners] + subsets.members - 1
    u = np.repeat(np.arange(len(subsets.set_start) - 1), np.diff(subsets.set_start))
    r = order.pair_of(parents.vertices, parents.children)[edges]
    ordered = r >= 0
    u, r, edges, owners = u[ordered], r[ordered], edges[ordered], owners[ordered]
    parent_is_second = order.pairs[r, 1] == parents.vertices[edges]
    h = _added(bits, u, np.where(parent_is_second, 0.0, deltas[edges]))
    signed = np.where(parent_is_second, deltas[edges], -deltas[edges])
    return Terms(h, u.astype(np.int32), (first_r + r).astype(np.int32), signed)


def _required_terms(bits: int, first_r: int, required: Parents, order: Order, deltas: Floats) -> Terms:
    """The same for an edge that is always there: delta r, or delta (1 - r)."""
    r = order.pair_of(required.vertices, required.children)
    ordered = r >= 0
    parent_is_second = order.pairs[r[ordered], 1] == required.vertices[ordered]
    signed = np.where(parent_is_second, deltas[ordered], -deltas[ordered])
    h = _added(bits, first_r + r[ordered], signed)
    none = np.empty(0, np.int32)
    return Terms(h, none, none, np.empty(0), float(deltas[ordered][~parent_is_second].sum()))


def triangle_terms(bits: int, first_r: int, order: Order, deltas: Floats) -> Terms:
    """delta1 R(r_ab, r_bc, r_ac), R(x, y, w) = w + x y - x w - y w, with 1 - r for a pair written descending.

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
    return Terms(h, rows.astype(np.int32), cols.astype(np.int32), weights, float(deltas[cyclic].sum()))


def _added(bits: int, places: AnyArray, values: Floats) -> Floats:
    """(bits,) zeros with the values added at their places."""
    h = np.zeros(bits)
    np.add.at(h, places, values)
    return h
