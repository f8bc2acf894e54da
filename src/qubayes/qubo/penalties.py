"""Penalties above proved bounds: on edges against the order, cyclic triangles, third subsets.

`tight` takes the bounds of docs/theory.md §3 and §4 (Theorem 2 of §5 proves them enough), `paper`
the three numbers of the paper.

What is penalised, what the penalty must exceed, where docs/theory.md proves it, and by what:

    edge against the order            l_ij (`order_losses`)      Lemma 1, Thm 2 (c)  u r
    required edge against the order   first(i)                   Thm 2 (b)           r, linear
    cyclic triangle of r bits         min of D (`order_bounds`)  Thm 2 (a)           products of r
    third subset of a vertex:
      g < 0 (at most two subsets, or a third never gains)        Lemma 2             nothing
      pairs in use hold no triangle   `unused_bound`             Lemma 3             u u', unused
      otherwise                       g (`third_gain`)           Lemma 2             slack bit z
      constrained form                `excess_bound`             Lemma 4             lambda

Each candidate set is written by one representation, a pair of subsets: such pairs are in use, the
others unused."""

from collections.abc import Mapping
from math import inf
from typing import NamedTuple

import numpy as np

from ..foundation.arrays import AnyArray, Bools, Floats, SmallInts
from ..foundation.errors import QubayesError
from ..foundation.graph import reachable
from ..foundation.jit import kernel
from ..foundation.workers import Workers, run
from .gains import Parents, RelativeSets, parent_losses, representations, subset_gains
from .order_bits import OrderBits

PENALTIES = ("tight", "paper")
KINDS = {  # of penalties, for which a factor may be given, and their fields
    "order": ("edges", "required", "triangles"),
    "edge": ("edges", "required"),
    "triangle": ("triangles",),
    "slack": ("at_most_two",),
}
MARGIN = 1.01  # bounds are strict; 1 % is far above the rounding of a sum of scores
# least penalty relative to the largest bound: raising one is sound, and keeps the coefficient range
# small
FLOOR = 0.01
# A third subset that loses less than this may gain by rounding: scores are rounded sums.
ROUNDING_OF_GAINS = 1e-9


class Penalties(NamedTuple):
    """Penalty coefficients of all violations."""

    edges: Floats  # (edges,) delta2: a subset holds this possible parent though it comes later
    required: Floats  # (required edges,) the same for a required parent
    triangles: Floats  # (t,) delta1: a directed triangle of r bits
    # (n,) xi with a z bit; without one, for two active subsets that represent no candidate set
    at_most_two: Floats
    has_slack: Bools  # (n,) whether the vertex has a z bit


class SubsetLimit(NamedTuple):
    """The penalty that keeps a vertex at two active subsets."""

    bound: float  # the penalty must exceed it; -inf where no penalty is needed
    slack: bool  # whether the vertex needs a slack bit


class VertexGains(NamedTuple):
    """Gains of one vertex over its base, and how its candidate sets are written by subsets."""

    singles: Floats  # (mu,) gain of each subset
    pairs: Floats  # (mu (mu - 1) / 2,) gain of each union of two, lexicographic
    limit: SubsetLimit
    # (candidate sets of the vertex, 3) numbers of the set and of its two subsets, equal if one
    representations: SmallInts


class Chosen(NamedTuple):
    """One representation of each candidate set, and the graph of their pairs of subsets."""

    rows: SmallInts  # (candidate sets, 3) the set and two of its subsets, equal if one
    # (mu, mu) whether two subsets represent a candidate set; empty if there is a triangle
    joined: Bools
    has_triangle: bool


def tight(
    relative: RelativeSets, order: OrderBits, gains: list[VertexGains], step: float | None = None
) -> Penalties:
    """Return penalties just above their bounds, at least FLOOR of the largest, in whole steps."""
    bounds = order_bounds(relative, order)
    floor = FLOOR * max((float(part.max()) for part in bounds if part.size), default=0.0)
    limits = np.array([vertex.limit.bound for vertex in gains])
    needed = np.isfinite(limits)
    has_slack = np.array([vertex.limit.slack for vertex in gains], dtype=np.bool_)
    at_most_two = np.where(needed, _raised(np.where(needed, limits, 0.0), floor, step), 0.0)
    edges, required, triangles = (_raised(part, floor, step) for part in bounds)
    return Penalties(edges, required, triangles, at_most_two, has_slack & needed)


def _raised(bounds: Floats, floor: float, step: float | None) -> Floats:
    """Return MARGIN times the bounds, at least the floor, rounded up to the step or to a fine grid.

    On the grid sums of millions are exact, so coefficients that cancel are exactly zero.
    """
    if step is None and (not bounds.size or floor <= 0.0):
        return bounds  # none, or all are 0
    grid = step or 2.0 ** (np.floor(np.log2(floor)) - 12)
    raised: Floats = np.ceil(np.maximum(bounds, floor or grid) * MARGIN / grid) * grid
    return raised


def paper(relative: RelativeSets, order: OrderBits, gains: list[VertexGains]) -> Penalties:
    """Return the paper's penalties (paper, Section 5.2), and a z bit per vertex.

    delta1 = 1.1 delta0, delta2 = 1.1 (n - 2) delta1, xi = 1.1 xi0. xi0 = -3 min over vertices and
    pairs of subsets, the empty one among them, of pi bar (Lemma `sufficient1`). Where edges are
    required (never in the paper) a vertex answers for its required ancestors too. For n = 2 the
    printed delta2 is zero and lets a cycle through: n - 2 is then taken as 1."""
    n = relative.candidates.n
    steepest = 0.0
    for vertex in gains:
        j, k = np.triu_indices(len(vertex.singles), 1)
        synergies = vertex.pairs - vertex.singles[j] - vertex.singles[k]
        steepest = max(steepest, vertex.singles.max(initial=0.0), synergies.max(initial=0.0))
    # the best set of a vertex comes first
    most = relative.gains[relative.candidates.families.vertex_start[:-1]]
    delta1 = 1.1 * float(_with_ancestors(most, relative.required, order).max(initial=0.0))
    delta2 = 1.1 * max(n - 2, 1) * delta1
    xi = 1.1 * (3.0 * float(steepest))
    return Penalties(
        edges=np.full(len(relative.parents.vertices), delta2),
        required=np.full(len(relative.required.vertices), delta2),
        triangles=np.full(len(order.triangles), delta1),
        at_most_two=np.full(n, xi),
        has_slack=np.ones(n, np.bool_),
    )


def scaled(
    penalties: Penalties, scale: Mapping[str, float], step: float | None = None
) -> Penalties:
    """Return the penalties times the factors of their kinds, rounded up to whole steps."""
    changed = penalties._asdict()
    for kind, factor in scale.items():
        for field in KINDS[kind]:
            changed[field] = changed[field] * factor
    if step is not None:  # where all gains are rounded to 0, a penalty is still one step
        least = {"at_most_two": np.where(penalties.has_slack, step, 0.0)}
        for field in (*KINDS["order"], *KINDS["slack"]):
            steps = np.ceil(np.round(changed[field] / step, 6)) * step
            changed[field] = np.maximum(steps, least.get(field, step))
    return Penalties(**changed)


def weak_kinds(
    penalties: Penalties, relative: RelativeSets, order: OrderBits, gains: list[VertexGains]
) -> tuple[str, ...]:
    """Return the kinds (edge, triangle, slack) with a penalty at or below its proved bound."""
    edges, required, triangles = order_bounds(relative, order)
    bounds = {  # -inf: an edge without an order bit has no penalty
        "edges": np.where(order.has_bit(relative.parents), edges, -inf),
        "required": np.where(order.has_bit(relative.required), required, -inf),
        "triangles": triangles,
        "at_most_two": np.array([vertex.limit.bound for vertex in gains]),
    }
    weak = {name for name, bound in bounds.items() if (getattr(penalties, name) <= bound).any()}
    return tuple(kind for kind in ("edge", "triangle", "slack") if weak & set(KINDS[kind]))


def order_bounds(relative: RelativeSets, order: OrderBits) -> tuple[Floats, Floats, Floats]:
    """Return the bounds of edges, required edges and triangles (docs/theory.md, Theorem 2)."""
    parents, required = relative.parents, relative.required
    edges, vertices = order_losses(relative, order)
    first = _with_ancestors(vertices, required, order)
    ordered = order.has_bit(parents)
    last = np.zeros(len(first))
    np.add.at(last, parents.vertices[ordered], edges[ordered])
    last[required.vertices[order.has_bit(required)]] = inf  # a required parent cannot go to the end
    corner = np.minimum(first, last)[order.corners()]
    return edges, first[required.children], corner.min(axis=1, initial=inf)


def order_losses(relative: RelativeSets, order: OrderBits) -> tuple[Floats, Floats]:
    """Return the most that vertices can lose with their parents (docs/theory.md §3).

    (edges,) with each possible parent; (n,) with all possible parents at once that share an order
    bit with the vertex."""
    n = relative.candidates.n
    ordered = order.has_bit(relative.parents)
    edges = np.zeros(len(ordered))
    vertices = np.zeros(n)
    for vertex in range(n):
        own = slice(*relative.parents.start[vertex : vertex + 2])
        sets, _ = relative.sets_of(vertex)
        edges[own], vertices[vertex] = parent_losses(sets, relative.gains_of(vertex), ordered[own])
    return edges, vertices


def _with_ancestors(values: Floats, required: Parents, order: OrderBits) -> Floats:
    """Return (n,) the sum over a vertex and its ancestors by required edges with an order bit."""
    bound = order.has_bit(required)
    if not bound.any():
        return values
    upward = np.zeros((len(values), len(values)), np.bool_)
    upward[required.children[bound], required.vertices[bound]] = True
    sums: Floats = np.where(reachable(upward), values, 0.0).sum(axis=1)
    return sums


def vertex_gains(relative: RelativeSets, workers: Workers) -> list[VertexGains]:
    """Return the gains of every vertex, computed on all cores."""
    n = relative.candidates.n
    found: dict[int, VertexGains] = dict(run(gains_of_vertex, relative, range(n), workers))
    return [found[vertex] for vertex in range(n)]


def gains_of_vertex(relative: RelativeSets, vertex: int) -> VertexGains:
    """Return the gains of one vertex."""
    chosen = choose_representations(relative, vertex)
    singles, pairs = subset_gains(relative, vertex)
    first_set = relative.candidate_sets.vertex_start[vertex]
    first_subset = relative.subset_sets.vertex_start[vertex]
    rows = chosen.rows + np.array([first_set, first_subset, first_subset], np.int32)
    return VertexGains(singles, pairs, subset_limit(singles, pairs, chosen), rows)


def needs_slack(relative: RelativeSets, vertex: int) -> bool:
    """Return whether the vertex has a z bit with tight penalties; its gains are not kept."""
    chosen = choose_representations(relative, vertex)
    return chosen.has_triangle and subset_limit(*subset_gains(relative, vertex), chosen).slack


def choose_representations(relative: RelativeSets, vertex: int) -> Chosen:
    """Return one representation of each candidate set of the vertex, and the graph of the pairs.

    The greedy choice (sets with the fewest representations first) avoids triangles; where it fails,
    the first representation of each set is chosen."""
    candidates, subsets = relative.sets_of(vertex)
    listed = representations(candidates, subsets)
    mu = len(subsets.sizes)
    if len(listed) and listed[:, 1].min() < 0:
        name = relative.candidates.names[vertex]
        raise QubayesError(
            f"a candidate set of {name} is not a union of two of its subsets; cover them again"
        )
    numbers = listed[:, 0]
    first = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1])[: len(listed)])
    # the other sets are subsets themselves
    unions = np.flatnonzero(listed[first, 1] != listed[first, 2])
    failed = Chosen(listed[first], np.zeros((0, 0), np.bool_), True)
    if 4 * len(unions) > mu * mu:  # Mantel: a graph without triangles has at most mu^2 / 4 edges
        return failed
    counts = np.diff(np.append(first, len(listed)))
    chosen = first.copy()
    joined = np.zeros((mu, mu), np.bool_)
    neighbours = [0] * mu  # of each subset, as the bits of a number
    for number in unions[np.argsort(counts[unions], kind="stable")].tolist():
        row = int(first[number])
        row = _without_triangle(listed, range(row, row + int(counts[number])), neighbours)
        if row < 0:
            return failed
        chosen[number] = row
        _, j, k = listed[row].tolist()
        neighbours[j] |= 1 << k
        neighbours[k] |= 1 << j
        joined[j, k] = joined[k, j] = True
    return Chosen(listed[chosen], joined, False)


def _without_triangle(listed: SmallInts, rows: range, neighbours: list[int]) -> int:
    """Return the first of the rows whose two subsets have no common neighbour; -1 without one."""
    for row in rows:
        _, j, k = listed[row].tolist()
        if not neighbours[j] & neighbours[k]:
            return row
    return -1


def subset_limit(singles: Floats, pairs: Floats, chosen: Chosen) -> SubsetLimit:
    """Return the penalty that keeps a vertex with these gains at two active subsets."""
    slack_bound = third_gain(singles, pairs)
    if slack_bound < -ROUNDING_OF_GAINS:
        return SubsetLimit(-inf, False)
    bound = slack_bound if chosen.has_triangle else unused_bound(singles, pairs, chosen.joined)
    return SubsetLimit(max(bound, 0.0), chosen.has_triangle)


def pair_index(j: AnyArray, k: AnyArray, mu: int) -> AnyArray:
    """Return the lexicographic index of each pair {j, k} of mu subsets."""
    low, high = np.minimum(j, k), np.maximum(j, k)
    return np.asarray(low * (2 * mu - low - 1) // 2 + high - low - 1)


def third_gain(singles: Floats, pairs: Floats) -> float:
    """Return an upper bound on the gain of each active subset beyond two (docs/theory.md, Lemma 2).

    -inf for at most two subsets. Subsets leave one by one, each time one that can gain little among
    those left. Any three or more active subsets contain a first to leave, and its gain is at most
    the bound for each one beyond two."""
    mu = len(singles)
    return float(_third_gain(singles, pairs, np.ones(mu, np.bool_), np.empty(mu)))


def excess_bound(singles: Floats, pairs: Floats) -> float:
    """Return what a penalty on each active subset beyond two must exceed (docs/theory.md, Lemma 4).

    The lesser of g (mu - 1) / 2, g of Lemma 2, and of the most that any subset gains among all the
    others."""
    mu = len(singles)
    if mu <= 2:
        return 0.0
    gains = []
    for b in range(mu):
        others = np.delete(np.arange(mu), b)
        joint = pairs[pair_index(np.full(mu - 1, b), others, mu)]
        synergies = np.maximum(joint - singles[b] - singles[others], 0.0)
        added = np.maximum(joint - singles[others], 0.0)
        gains.append(float(synergies.sum() + (added - synergies).max()))
    return max(0.0, min(max(gains), third_gain(singles, pairs) * (mu - 1) / 2))


def unused_bound(singles: Floats, pairs: Floats, joined: Bools) -> float:
    """Return what interactions of unused pairs must exceed, without a triangle of joined pairs.

    See docs/theory.md, Lemma 3. Among k active subsets one is joined to t others, 2 t <= k. It
    gains at most half its own score for each unjoined one if t = 0, f(b∪j) - f(j) if t = 1; t > 1
    occurs only in the 2-core of the joined pairs."""
    b, j = np.nonzero(joined)
    added = pairs[pair_index(b, j, len(singles))] - singles[j]
    core = np.ones(len(joined), np.bool_)
    while (leaving := core & ((joined & core).sum(axis=1) < 2)).any():
        core &= ~leaving
    in_core = [_gain_of(b, singles, pairs, core & joined[b]) for b in np.flatnonzero(core).tolist()]
    return float(max(0.5 * singles.max(), added.max(initial=-inf), *in_core))


@kernel
def _gain_of(b: int, singles: Floats, pairs: Floats, there: Bools) -> float:
    """max over j != l, both there, of max(0, f(b∪j) - f(j)) + f(b∪l) - f(b) - f(l), or -inf."""
    mu = len(singles)
    first = next_first = -inf  # the two largest of max(0, f(b∪j) - f(j))
    first_at = -1
    pull = next_pull = -inf  # the two largest of f(b∪l) - f(b) - f(l)
    pull_at = -1
    for j in range(mu):
        if j == b or not there[j]:
            continue
        low, high = min(b, j), max(b, j)
        joint = pairs[low * (2 * mu - low - 1) // 2 + high - low - 1]  # pair_index
        added = max(0.0, joint - singles[j])
        if added > first:
            next_first = first
            first = added
            first_at = j
        elif added > next_first:
            next_first = added
        synergy = joint - singles[b] - singles[j]
        if synergy > pull:
            next_pull = pull
            pull = synergy
            pull_at = j
        elif synergy > next_pull:
            next_pull = synergy
    if first_at != pull_at:
        return first + pull
    return max(first + next_pull, next_first + pull)


@kernel
def _third_gain(singles: Floats, pairs: Floats, there: Bools, gains: Floats) -> float:
    """`third_gain`; `there` (all True) and `gains` are room for the subsets that are left."""
    mu = len(singles)
    for b in range(mu):
        gains[b] = _gain_of(b, singles, pairs, there)
    bound = -inf
    for _ in range(mu - 2):
        # gains fall as others leave, so stale ones are good enough to choose by
        chosen = np.argmin(gains)
        bound = max(bound, _gain_of(chosen, singles, pairs, there))
        there[chosen] = False
        gains[chosen] = inf
    return bound
