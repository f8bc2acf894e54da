"""Assembly of the QUBO, and of its constrained form (paper, Appendix D.4), from its terms.

The terms are those of the score, of at most two subsets, and of the ordering.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..foundation.arrays import AnyArray, Bools, Floats, Ints, SmallInts
from ..foundation.errors import SettingError
from ..foundation.workers import Workers
from ..machines import AnnealerProblem, inequalities_of
from ..machines.qubo import Qubo, check_bits, qubo_from_couplers, to_bqm
from .gains import Parents, RelativeSets
from .order_bits import Order
from .penalties import MARGIN, Penalties, VertexGains, excess_bound, pair_index, vertex_gains

if TYPE_CHECKING:
    from dimod import ConstrainedQuadraticModel

    from .formulation import Formulation

ORDERINGS = ("penalties", "inequalities")


class QuboPart(NamedTuple):
    """offset + h.x + sum of weights over pairs of bits; a pair may be repeated."""

    h: Floats  # (bits,)
    rows: SmallInts
    cols: SmallInts
    weights: Floats
    offset: float = 0.0


def summed(*parts: QuboPart) -> Qubo:
    """Return the QUBO that is the sum of the parts."""
    h = np.sum([part.h for part in parts], axis=0)
    rows, cols, weights = (np.concatenate([part[field] for part in parts]) for field in (1, 2, 3))
    return qubo_from_couplers(h, rows, cols, weights, float(sum(part.offset for part in parts)))


def assemble(
    relative: RelativeSets, order: Order, gains: list[VertexGains], penalties: Penalties
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
    """Return -sum f(j) u_j - sum (f(j|k) - f(j) - f(k)) u_j u_k (paper: O bar) + at-most-two penalties on pairs.

    With a z bit the penalty is on all pairs of the vertex; without one, on unused pairs, whose
    couplers are raised to 0 before. Without `penalties` there is none."""
    h = np.zeros(bits)
    ends = np.cumsum([0, *(len(vertex.pairs) for vertex in gains)])
    rows, cols, weights = (
        np.empty(ends[-1], np.int32),
        np.empty(ends[-1], np.int32),
        np.empty(ends[-1]),
    )
    for vertex, (own, first) in enumerate(
        zip(gains, relative.subset_sets.vertex_start.tolist(), strict=False)
    ):
        mu, here = len(own.singles), slice(ends[vertex], ends[vertex + 1])
        h[first : first + mu] = -own.singles
        j, k = np.triu_indices(mu, 1)
        rows[here], cols[here] = j + first, k + first
        couplers = weights[here]
        np.add(own.singles[j], own.singles[k], out=couplers)
        couplers -= own.pairs
        if penalties is not None and penalties.has_slack[vertex]:
            couplers += penalties.at_most_two[vertex]
        elif penalties is not None and penalties.at_most_two[vertex] != 0.0:
            j, k = own.representations[:, 1:].T - first
            unused = np.ones(len(couplers), np.bool_)
            unused[pair_index(j[j != k], k[j != k], mu)] = False
            couplers[unused] = np.maximum(couplers[unused], 0.0) + penalties.at_most_two[vertex]
    return QuboPart(h, rows, cols, weights, -float(relative.candidates.base_scores.sum()))


def slack_terms(bits: int, first_z: int, relative: RelativeSets, penalties: Penalties) -> QuboPart:
    """Return sum_i xi_i z_i (1 - sum_j u_ij); the rest of the penalty, xi_i sum_{j<k} u_ij u_ik: `score_terms`."""
    z_bits, families = slack_bits(first_z, penalties.has_slack), relative.subset_sets
    owners = np.repeat(np.arange(families.n), families.sizes)
    h = np.zeros(bits)
    h[z_bits[penalties.has_slack]] = penalties.at_most_two[penalties.has_slack]
    u = np.flatnonzero(penalties.has_slack[owners]).astype(np.int32)
    return QuboPart(h, u, z_bits[owners[u]].astype(np.int32), -penalties.at_most_two[owners[u]])


def order_terms(
    bits: int, first_r: int, relative: RelativeSets, order: Order, penalties: Penalties
) -> tuple[QuboPart, QuboPart]:
    """Return the ordering part (paper: C bar): edges and required edges against the order, directed triangles.

    An edge costs delta2 u r where the parent is the pair's second vertex, delta2 u (1 - r) where it
    is its first; a required edge the same with u = 1."""
    subsets, required = relative.subset_sets, relative.required
    edges = relative.parents.start[subsets.member_owners] + subsets.members - 1
    u = np.repeat(np.arange(len(subsets.set_start) - 1), np.diff(subsets.set_start))
    r, signed = _signed(order, relative.parents, penalties.edges)
    u, r, signed = u[r[edges] >= 0], r[edges][r[edges] >= 0], signed[edges][r[edges] >= 0]
    h = _added(bits, u, np.maximum(-signed, 0.0))
    fixed_r, fixed = _signed(order, required, penalties.required)
    h += _added(bits, first_r + fixed_r[fixed_r >= 0], fixed[fixed_r >= 0])
    offset = float(np.maximum(-fixed[fixed_r >= 0], 0.0).sum())
    consistency = QuboPart(h, u.astype(np.int32), (first_r + r).astype(np.int32), signed, offset)
    return consistency, triangle_terms(bits, first_r, order, penalties.triangles)


def coupled_terms(
    bits: int, relative: RelativeSets, order: Order, penalties: Penalties
) -> QuboPart:
    """Return delta2 u u' for each coupled pair {a, b}: a subset of b that holds a, and one of a that holds b."""
    subsets, parents, n = relative.subset_sets, relative.parents, relative.candidates.n
    u = np.repeat(np.arange(len(subsets.set_start) - 1), np.diff(subsets.set_start))
    edges = parents.start[subsets.member_owners] + subsets.members - 1
    u, edges = u[np.argsort(edges, kind="stable")], np.sort(edges)
    rows, cols, weights = [np.empty(0, np.int32)], [np.empty(0, np.int32)], [np.empty(0)]
    for a, b in order.coupled.astype(np.int64).tolist():
        there, back = np.searchsorted(parents.keys, [b * n + a, a * n + b])
        first, second = (
            u[slice(*np.searchsorted(edges, [edge, edge + 1]))] for edge in (there, back)
        )
        rows.append(np.repeat(first, len(second)).astype(np.int32))
        cols.append(np.tile(second, len(first)).astype(np.int32))
        weights.append(
            np.full(len(first) * len(second), max(penalties.edges[there], penalties.edges[back]))
        )
    return QuboPart(
        np.zeros(bits), np.concatenate(rows), np.concatenate(cols), np.concatenate(weights)
    )


def coupled_pairs(relative: RelativeSets, order: Order) -> int:
    """Return the number of couplers of `coupled_terms`."""
    subsets, parents, n = relative.subset_sets, relative.parents, relative.candidates.n
    edges = parents.start[subsets.member_owners] + subsets.members - 1
    holding = np.bincount(edges, minlength=len(parents.vertices))
    first, second = order.coupled.astype(np.int64).T
    there, back = (
        np.searchsorted(parents.keys, keys) for keys in (second * n + first, first * n + second)
    )
    return int((holding[there].astype(np.float64) * holding[back]).sum())


def _signed(order: Order, parents: Parents, deltas: Floats) -> tuple[Ints, Floats]:
    """Return for each edge its r bit, -1 without one, and delta, negative where the parent is the pair's first."""
    r = order.pair_of(parents.vertices, parents.children)
    parent_is_first = np.append(order.pairs[:, 0], -1)[r] == parents.vertices
    return r, np.where(parent_is_first, -deltas, deltas)


def triangle_terms(bits: int, first_r: int, order: Order, deltas: Floats) -> QuboPart:
    """Return delta1 R(r_ab, r_bc, r_ac), R(x, y, w) = w + x y - x w - y w, with 1 - r for a pair written descending.

    That is w + x y - x w - y w again, with w the long side, or 1 - x - y - w + x y + x w + y w for
    a triangle that is cyclic in the directions as written."""
    ab, bc, ac = (first_r + order.triangles).T
    x, y, w = np.where(order.ascending, 1.0, -1.0)[order.triangles].T
    cyclic = (x == y) & (x != w)
    long = np.select([x == y, x == w], [ac, ab], bc)
    h = _added(bits, long[~cyclic], deltas[~cyclic])
    for side in (ab, bc, ac):
        h -= _added(bits, side[cyclic], deltas[cyclic])
    rows, cols = np.concatenate([ab, ab, bc]), np.concatenate([bc, ac, ac])
    weights = np.concatenate([deltas * x * y, -deltas * x * w, -deltas * y * w])
    return QuboPart(
        h, rows.astype(np.int32), cols.astype(np.int32), weights, float(deltas[cyclic].sum())
    )


def _added(bits: int, places: AnyArray, values: Floats) -> Floats:
    """Return (bits,) zeros with the values added at their places."""
    h = np.zeros(bits)
    np.add.at(h, places, values)
    return h


class Row(NamedTuple):
    """A linear constraint: the sum of weights times bits is <=, >= or == the bound."""

    weights: dict[int, float]  # by bit
    sense: str
    bound: float
    label: str


@dataclass(frozen=True, slots=True)
class ConstrainedForm:
    """Minimise score + cycles such that at most two of each group of u bits are active. Bits: u, then r."""

    score: Qubo = field(repr=False)  # minus the score of the network
    cycles: Qubo = field(repr=False)  # the ordering part; 0 for a DAG with an order of it
    # (first, last + 1) u bits of each vertex with more than two
    groups: tuple[tuple[int, int], ...]
    names: tuple[str, ...]  # the vertex of each group
    # a sound penalty of each bit beyond two in a group (docs/theory.md, Lemma 4)
    lambdas: tuple[int, ...]
    labels: tuple[str, ...] = field(repr=False)


def constrain(formulation: "Formulation", workers: Workers | None = None) -> ConstrainedForm:
    """Return the constrained form of the same problem, with the same order bits and ordering penalties."""
    relative, starts = formulation.relative, formulation.subsets.families.vertex_start.tolist()
    first_r = formulation.subsets.total
    bits = first_r + len(formulation.order.pairs)
    gains = vertex_gains(relative, workers or Workers())
    limited = np.flatnonzero(formulation.subsets.families.sizes > 2).tolist()
    return ConstrainedForm(
        summed(score_terms(bits, relative, gains, None)),
        summed(
            *order_terms(bits, first_r, relative, formulation.order, formulation.penalties),
            coupled_terms(bits, relative, formulation.order, formulation.penalties),
        ),
        tuple((starts[vertex], starts[vertex + 1]) for vertex in limited),
        tuple(formulation.candidates.names[vertex] for vertex in limited),
        tuple(
            1 + int(MARGIN * excess_bound(gains[vertex].singles, gains[vertex].pairs))
            for vertex in limited
        ),
        formulation.labels[:bits],
    )


def to_cqm(
    formulation: "Formulation", *, ordering: str = "penalties"
) -> "ConstrainedQuadraticModel":
    """Return the constrained form as a model of dimod, the order kept by penalties or by inequalities."""
    from dimod import ConstrainedQuadraticModel

    if ordering not in ORDERINGS:
        raise SettingError(f"ordering = {ordering!r}; choose one of {', '.join(ORDERINGS)}")
    if ordering == "inequalities" and len(formulation.order.coupled):
        raise SettingError(
            f"order {formulation.order_kind} couples subsets directly; give ordering = penalties"
        )
    form = constrain(formulation)
    objective = to_bqm(form.score, form.labels)
    if ordering == "penalties":
        objective.update(to_bqm(form.cycles, form.labels))
    model = ConstrainedQuadraticModel.from_bqm(objective)
    for row in [
        *subset_rows(form),
        *(order_rows(formulation) if ordering == "inequalities" else ()),
    ]:
        terms = [(form.labels[bit], weight) for bit, weight in row.weights.items()]
        model.add_constraint_from_iterable(terms, row.sense, row.bound, label=row.label)
    return model


def subset_rows(form: ConstrainedForm) -> Iterator[Row]:
    """At most two active subsets of each vertex that has more."""
    for name, (first, last) in zip(form.names, form.groups, strict=True):
        yield Row(dict.fromkeys(range(first, last), 1.0), "<=", 2.0, f"subsets[{name}]")


def order_rows(formulation: "Formulation") -> Iterator[Row]:
    """Rows of Appendix D.4.

    0 <= r_ij + r_jk - r_ik <= 1; subsets of i with j <= 2 - 2 r_ij, subsets of j with i <= 2 r_ij.
    A pair that is written descending has 1 - r in the place of r.
    """
    names, first_r = formulation.candidates.names, formulation.subsets.total
    up, first = formulation.order.ascending.tolist(), formulation.order.pairs[:, 0].tolist()
    corners = formulation.order.corners().tolist()
    for (ab, bc, ac), corner in zip(formulation.order.triangles.tolist(), corners, strict=True):
        signed = [
            (pair, weight if up[pair] else -weight)
            for pair, weight in ((ab, 1.0), (bc, 1.0), (ac, -1.0))
        ]
        constant = sum(
            weight for pair, weight in ((ab, 1.0), (bc, 1.0), (ac, -1.0)) if not up[pair]
        )
        weights = {first_r + pair: weight for pair, weight in signed}
        label = ",".join(names[vertex] for vertex in corner)
        yield Row(weights, ">=", 0.0 - constant, f"backward[{label}]")
        yield Row(weights, "<=", 1.0 - constant, f"forward[{label}]")
    for child, parent, pair, holders in _holders(formulation):
        against = first[pair] == child  # r = 1 puts the child first
        weights = dict.fromkeys(holders, 1.0) | {first_r + pair: 2.0 if against else -2.0}
        yield Row(weights, "<=", 2.0 if against else 0.0, f"edge[{names[parent]}->{names[child]}]")
    required = formulation.relative.required
    pairs = formulation.order.pair_of(required.vertices, required.children).tolist()
    for parent, child, pair in zip(
        required.vertices.tolist(), required.children.tolist(), pairs, strict=True
    ):
        if pair >= 0:
            label = f"required[{names[parent]}->{names[child]}]"
            yield Row({first_r + pair: 1.0}, "==", float(first[pair] == parent), label)


def _holders(formulation: "Formulation") -> list[tuple[int, int, int, list[int]]]:
    """Return (child, parent, r bit, u bits of the child that hold the parent) of each possible edge with an r bit."""
    families, found = formulation.subsets.families, []
    for child, (first, last) in enumerate(pairwise(families.vertex_start.tolist())):
        holders: dict[int, list[int]] = {}
        for bit, subset in zip(range(first, last), families.sets_of(child), strict=True):
            for parent in subset:
                holders.setdefault(parent, []).append(bit)
        parents = np.array(sorted(holders), dtype=np.int64)
        pairs = formulation.order.pair_of(parents, np.full(len(parents), child)).tolist()
        found += [
            (child, v, pair, holders[v])
            for v, pair in zip(parents.tolist(), pairs, strict=True)
            if pair >= 0
        ]
    return found


def annealer_problem(formulation: "Formulation") -> AnnealerProblem:
    """Return the constrained form for Fujitsu's Digital Annealer: score, cycles and inequalities apart."""
    form = constrain(formulation)
    rows = [
        (range(first, last), [1.0] * (last - first), -2.0, weight)
        for (first, last), weight in zip(form.groups, form.lambdas, strict=True)
    ]
    return AnnealerProblem(form.score, form.cycles, inequalities_of(rows), form.labels)
