"""Branch and bound over the relaxation; a branching decides whether an edge is in the network."""

import heapq
import math
from typing import NamedTuple

import numpy as np

from ...foundation.arrays import Bools, Ints
from ..run import Run
from .proof import NODE, ComponentProof
from .relaxation import Point
from .separation import edge_values

PROBED = 8  # edges whose two sides are bounded before one is chosen (strong branching)
PROBE_ITERATIONS = 100


class Node(NamedTuple):
    """An open node: networks of these sets, which lose at least `loss`."""

    loss: float
    serial: int
    allowed: Bools


class Side(NamedTuple):
    """One side of a branching."""

    loss: float
    allowed: Bools
    solved: bool = False  # its best network is known


def branch(component: ComponentProof, run: Run) -> int:
    """Search until the best network of the component is proved or the time is up; return the number of nodes."""
    if run.over:
        return 0
    component.shrink()
    heap = [Node(component.loss, 0, component.alive.copy())]
    count, closed = 0, math.inf
    while heap and not run.over:
        node = heapq.heappop(heap)
        if component.closes(node.loss):
            closed = min(closed, node.loss)
            break
        component.raise_loss(min(node.loss, closed))
        sides = _sides(component, run, node)
        if sides is None:
            heapq.heappush(heap, node)
            break
        for side in sides:
            count += 1
            if side.solved or component.closes(side.loss):
                closed = min(closed, side.loss)
            else:
                heapq.heappush(heap, Node(side.loss, count, side.allowed))
        run.report(f"score {run.score:,.3f}, bound {run.bound:,.3f}, {len(heap)} open nodes")
    if component.closes(min((node.loss for node in heap), default=math.inf)):
        component.raise_loss(min(closed, *(node.loss for node in heap), component.cutoff))
    return count


def _sides(component: ComponentProof, run: Run, node: Node) -> list[Side] | None:
    """Relax the node; return its two sides, or one if it needs no branching, or None if the time was up."""
    relaxed = component.relax(run, node.allowed & component.alive, NODE)
    loss = max(node.loss, relaxed.loss)
    if component.closes(loss):
        return [Side(loss, relaxed.allowed)]
    if not relaxed.finished or relaxed.point is None:
        return None
    component.search(run, component.order_of(relaxed.point), 100, node.serial)
    return _branched(component, run, Side(loss, relaxed.allowed), relaxed.point)


def _branched(component: ComponentProof, run: Run, side: Side, point: Point) -> list[Side]:
    """Return the two sides of the edge that raises the bound most."""
    edges = fractional_edges(component, point)[:PROBED]
    if not len(edges):  # a network, which the search over orders has met, or cycles, which the added cuts exclude
        solved = component.best_of_order(component.order_of(point))
        return [side._replace(solved=component.loss_of(solved) <= component.loss_of_point(point) + 1e-6)]
    best, best_merit = [], -1.0
    basis = component.relaxation.basis
    for parent, child in edges.tolist():
        sides = [
            _probed(component, run, side, allowed, basis)
            for allowed in split_on_edge(component, side.allowed, parent, child)
        ]
        gains = [max(min(each.loss, component.cutoff) - side.loss, 1e-6) for each in sides]
        merit = gains[0] * gains[1]
        if merit > best_merit:
            best, best_merit = sides, merit
        if run.over or any(component.closes(each.loss) for each in sides):
            break
    return best


def _probed(component: ComponentProof, run: Run, side: Side, allowed: Bools, basis: object) -> Side:
    """Return the side with the bound of a few steps of the simplex method."""
    if not np.logical_or.reduceat(allowed, component.sets.vertex_start[:-1]).all():
        return Side(math.inf, allowed)
    relaxation = component.relaxation
    relaxation.allow(allowed)
    relaxation.basis = basis
    point = relaxation.solve(run.left, run.stop, PROBE_ITERATIONS)
    if point is None:
        return Side(side.loss, allowed)
    bounded = relaxation.bounded(point.weights, allowed)
    return Side(max(side.loss, bounded.loss), allowed & (bounded.with_set <= component.cutoff + component.tolerance))


def fractional_edges(component: ComponentProof, point: Point) -> Ints:
    """Return (edges, 2) parent and child of the edges with a fractional value, those nearest to a half first."""
    values = edge_values(component.support(point))
    parents, children = np.nonzero((values > 1e-5) & (values < 1 - 1e-5))
    distance = np.abs(values[parents, children] - 0.5)
    return np.column_stack([parents, children])[np.argsort(distance, kind="stable")]


def split_on_edge(component: ComponentProof, allowed: Bools, parent: int, child: int) -> tuple[Bools, Bools]:
    """Return the sets that networks with the edge can use, and those that networks without it can use."""
    with_edge, without = allowed.copy(), allowed.copy()
    its, contains = _containing(component, child, parent)
    with_edge[its] &= contains
    without[its] &= ~contains
    its, contains = _containing(component, parent, child)
    with_edge[its] &= ~contains
    return with_edge, without


def _containing(component: ComponentProof, vertex: int, member: int) -> tuple[slice, Bools]:
    """Return the sets of the vertex, and whether each contains the member."""
    sets = component.sets
    first, last = sets.vertex_start[vertex : vertex + 2].tolist()
    start = sets.start[first : last + 1]
    found = np.concatenate([[0], np.cumsum(sets.members[start[0] : start[-1]] == member)])
    return slice(first, last), np.diff(found[start - start[0]]) > 0
