"""Penalties: per edge, per triangle and per vertex, with a proof (`tight`), or the paper's three numbers (`paper`)."""

from typing import NamedTuple

import numpy as np

from ..foundation.arrays import Bools, Floats
from ..foundation.graph import reachable
from .order import Order
from .parents import Parents, Relative

PENALTIES = ("tight", "paper")
MARGIN = 1.01  # bounds are strict; 1 % is far above the rounding of a sum of scores
FLOOR = (
    0.01  # no penalty lies below this part of the largest bound: raising one is always sound, and keeps the range small
)


class Losses(NamedTuple):
    """What vertices can lose at most with their ordered parents (docs/theory.md §3)."""

    edges: Floats  # (edges,) by possible parent: log S(C) less the best inside C without it
    vertices: Floats  # (n,) all possible parents that share an r bit with the vertex at once


class Penalties(NamedTuple):
    """Coefficients of everything that must not happen."""

    edges: Floats  # (edges,) delta2: a subset holds this possible parent though it comes later
    required: Floats  # (required edges,) the same for an edge that is always there
    triangles: Floats  # (t,) delta1: a directed triangle of r bits
    crowds: Floats  # (n,) xi with a z bit; without one, for two active subsets that no candidate set combines
    has_slack: Bools  # (n,) whether the vertex has a z bit


def order_bounds(losses: Losses, relative: Relative, order: Order) -> tuple[Floats, Floats, Floats]:
    """What the penalties on edges, required edges and triangles must exceed (docs/theory.md, Theorem 2)."""
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
    """For each vertex the sum over it and everything that must precede it through required edges with an r bit."""
    bound = order.pair_of(required.vertices, required.children) >= 0
    if not bound.any():
        return values
    upward = np.zeros((len(values), len(values)), np.bool_)
    upward[required.children[bound], required.vertices[bound]] = True
    sums: Floats = np.where(reachable(upward), values, 0.0).sum(axis=1)
    return sums


def tight(bounds: tuple[Floats, Floats, Floats], crowds: Floats, has_slack: Bools) -> Penalties:
    """Each penalty just above its own bound, none below a hundredth of the largest."""
    largest = max((float(part.max()) for part in bounds if part.size), default=0.0)
    edges, required, triangles = (_raised(part, FLOOR * largest) for part in bounds)
    needed = np.isfinite(crowds)
    crowds = np.where(needed, _raised(np.where(needed, crowds, 0.0), FLOOR * largest), 0.0)
    return Penalties(edges, required, triangles, crowds, has_slack & needed)


def _raised(bounds: Floats, floor: float) -> Floats:
    """MARGIN times the bounds, at least the floor, rounded up to a grid on which sums of millions are exact.

    So coefficients that cancel are zero, not the rounding of their terms.
    """
    if not bounds.size or floor <= 0.0:
        return bounds * MARGIN
    grid = 2.0 ** (np.floor(np.log2(floor)) - 12)
    raised: Floats = np.ceil(np.maximum(bounds, floor) * MARGIN / grid) * grid
    return raised


def paper(relative: Relative, order: Order, gains: Floats, xi0: float) -> Penalties:
    """delta1 = 1.1 delta0, delta2 = 1.1 (n - 2) delta1, xi = 1.1 xi0 (Section 5.2), and a z bit for every vertex.

    `gains` holds for each vertex the most that it gains over its base. Where edges are required (never in the paper) a
    vertex answers for its required ancestors too. For n = 2 the printed delta2 is zero and lets a cycle through:
    n - 2 is then taken as 1.
    """
    n = len(gains)
    delta1 = 1.1 * float(_with_ancestors(gains, relative.required, order).max(initial=0.0))
    delta2 = 1.1 * max(n - 2, 1) * delta1
    edges, required = np.full(len(relative.parents.vertices), delta2), np.full(len(relative.required.vertices), delta2)
    triangles = np.full(len(order.triangles), delta1)
    return Penalties(edges, required, triangles, np.full(n, 1.1 * xi0), np.ones(n, np.bool_))
