"""Penalties on edges against the order and on cyclic triangles of order bits, each above its own proved bound.

`tight` takes the bounds of docs/theory.md §3, `paper` the three numbers of the paper. The bound of the at-most-two
penalty comes from `at_most_two.py`.
"""

from typing import NamedTuple

import numpy as np

from ..foundation.arrays import Bools, Floats
from ..foundation.graph import reachable
from .closure import VertexGains, parent_losses
from .order_bits import Order
from .relative_sets import Parents, RelativeSets

PENALTIES = ("tight", "paper")
MARGIN = 1.01  # bounds are strict; 1 % is far above the rounding of a sum of scores
FLOOR = 0.01  # least penalty relative to the largest bound: raising one is sound, and keeps the coefficient range small


class Losses(NamedTuple):
    """The most that vertices can lose with their ordered parents (docs/theory.md §3)."""

    edges: Floats  # (edges,) by possible parent: log S(C) minus the best inside C without it
    vertices: Floats  # (n,) with all possible parents at once that share an r bit with the vertex


class Penalties(NamedTuple):
    """Penalty coefficients of all violations."""

    edges: Floats  # (edges,) delta2: a subset holds this possible parent though it comes later
    required: Floats  # (required edges,) the same for a required parent
    triangles: Floats  # (t,) delta1: a directed triangle of r bits
    at_most_two: Floats  # (n,) xi with a z bit; without one, for two active subsets that represent no candidate set
    has_slack: Bools  # (n,) whether the vertex has a z bit


def order_losses(relative: RelativeSets, order: Order) -> Losses:
    """Return the most that each vertex can lose with each possible parent, and with all that share an r bit with it."""
    parents, n = relative.parents, relative.candidates.n
    ordered = order.pair_of(parents.vertices, parents.children) >= 0
    edges, vertices = np.zeros(len(ordered)), np.zeros(n)
    for vertex in range(n):
        own, sets = slice(*parents.start[vertex : vertex + 2]), relative.sets_of(vertex)[0]
        edges[own], vertices[vertex] = parent_losses(sets, relative.gains_of(vertex), ordered[own])
    return Losses(edges, vertices)


def order_bounds(losses: Losses, relative: RelativeSets, order: Order) -> tuple[Floats, Floats, Floats]:
    """Return what the penalties on edges, required edges and triangles must exceed (docs/theory.md, Theorem 2)."""
    parents, required = relative.parents, relative.required
    first = _with_ancestors(losses.vertices, required, order)
    ordered = order.pair_of(parents.vertices, parents.children) >= 0
    last = np.zeros(len(first))
    np.add.at(last, parents.vertices[ordered], losses.edges[ordered])
    bound = order.pair_of(required.vertices, required.children) >= 0
    last[required.vertices[bound]] = np.inf  # a required parent cannot go to the end
    corner = np.minimum(first, last)[order.corners()]
    return losses.edges, first[required.children], corner.min(axis=1, initial=np.inf)


def _with_ancestors(values: Floats, required: Parents, order: Order) -> Floats:
    """Return for each vertex the sum over it and all that must precede it through required edges with an r bit."""
    bound = order.pair_of(required.vertices, required.children) >= 0
    if not bound.any():
        return values
    upward = np.zeros((len(values), len(values)), np.bool_)
    upward[required.children[bound], required.vertices[bound]] = True
    sums: Floats = np.where(reachable(upward), values, 0.0).sum(axis=1)
    return sums


def tight(relative: RelativeSets, order: Order, gains: list[VertexGains]) -> Penalties:
    """Return penalties just above their own bounds, none below a hundredth of the largest."""
    bounds = order_bounds(order_losses(relative, order), relative, order)
    floor = FLOOR * max((float(part.max()) for part in bounds if part.size), default=0.0)
    limits = np.array([vertex.limit.bound for vertex in gains])
    needed = np.isfinite(limits)
    has_slack = np.array([vertex.limit.slack for vertex in gains], dtype=np.bool_)
    at_most_two = np.where(needed, _raised(np.where(needed, limits, 0.0), floor), 0.0)
    edges, required, triangles = (_raised(part, floor) for part in bounds)
    return Penalties(edges, required, triangles, at_most_two, has_slack & needed)


def _raised(bounds: Floats, floor: float) -> Floats:
    """Return MARGIN times the bounds, at least the floor, rounded up to a grid on which sums of millions are exact.

    On the grid, coefficients that cancel are exactly zero.
    """
    if not bounds.size or floor <= 0.0:
        return bounds * MARGIN
    grid = 2.0 ** (np.floor(np.log2(floor)) - 12)
    raised: Floats = np.ceil(np.maximum(bounds, floor) * MARGIN / grid) * grid
    return raised


def paper(relative: RelativeSets, order: Order, gains: list[VertexGains]) -> Penalties:
    """Return delta1 = 1.1 delta0, delta2 = 1.1 (n - 2) delta1, xi = 1.1 xi0 (Section 5.2), and a z bit per vertex.

    Where edges are required (never in the paper) a vertex answers for its required ancestors too. For n = 2 the printed
    delta2 is zero and lets a cycle through: n - 2 is then taken as 1.
    """
    n = relative.candidates.n
    most = relative.gains[relative.candidates.families.vertex_start[:-1]]  # the best set of a vertex comes first
    delta1 = 1.1 * float(_with_ancestors(most, relative.required, order).max(initial=0.0))
    delta2 = 1.1 * max(n - 2, 1) * delta1
    edges, required = np.full(len(relative.parents.vertices), delta2), np.full(len(relative.required.vertices), delta2)
    triangles = np.full(len(order.triangles), delta1)
    return Penalties(edges, required, triangles, np.full(n, 1.1 * _xi0(gains)), np.ones(n, np.bool_))


def _xi0(gains: list[VertexGains]) -> float:
    """Return -3 min over vertices and pairs of subsets, the empty one among them, of pi bar (Lemma `sufficient1`)."""
    steepest = 0.0
    for vertex in gains:
        j, k = np.triu_indices(len(vertex.singles), 1)
        synergies = vertex.pairs - vertex.singles[j] - vertex.singles[k]
        steepest = max(steepest, vertex.singles.max(initial=0.0), synergies.max(initial=0.0))
    return 3.0 * float(steepest)
