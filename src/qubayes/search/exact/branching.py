"""Branch and bound over the relaxation: an edge is in the network, or it is not."""

import heapq
import math
from typing import NamedTuple

import numpy as np

from ...foundation.arrays import Bools, Ints
from ..run import Run
from .clusters import edge_values
from .component import NODE, Component
from .relaxation import Point

PROBED = 8  # edges whose two sides are looked at before one is chosen
PROBE_ITERATIONS = 100


class Node(NamedTuple):
    """A part of the search: networks of these sets, which lose at least `loss`."""

    loss: float
    serial: int
    allowed: Bools


class Side(NamedTuple):
    """One side of a branching."""

    loss: float
    allowed: Bools
    solved: bool = False  # its best network is known


def branch(component: Component, run: Run) -> int:
    """Search until the best network of the component is proved or the time is over; the number of nodes."""
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


def _sides(component: Component, run: Run, node: Node) -> list[Side] | None:
    """What is left of the node after a relaxation of its own: nothing, or two sides; None if the time was over."""
    relaxed = component.relax(run, node.allowed & component.alive, NODE)
    loss = max(node.loss, relaxed.loss)
    if component.closes(loss):
        return [Side(loss, relaxed.allowed)]
    if not relaxed.finished or relaxed.point is None:
        return None
    component.search(run, component.order_of(relaxed.point), 100, node.serial)
    return _branched(component, run, Side(loss, relaxed.allowed), relaxed.point)


def _branched(component: Component, run: Run, side: Side, point: Point) -> list[Side]:
    """The two sides of the edge that raises the bound most."""
    edges = fractional_edges(component, point)[:PROBED]
    if not len(edges):  # a network, seen by the search over orders; or cycles, which cuts that were added exclude
        solved = component.ordered(component.order_of(point))
        return [side._replace(solved=component.loss_of(solved) <= component.loss_of_point(point) + 1e-6)]
    best, best_merit = [], -1.0
    basis = component.relaxation.basis
    for parent, child in edges.tolist():
        sides = [
            _probed(component, run, side, allowed, basis)
            for allowed in both_ways(component, side.allowed, parent, child)
        ]
        gains = [max(min(each.loss, component.cutoff) - side.loss, 1e-6) for each in sides]
        merit = gains[0] * gains[1]
        if merit > best_merit:
            best, best_merit = sides, merit
        if run.over or any(component.closes(each.loss) for each in sides):
            break
    return best


def _probed(component: Component, run: Run, side: Side, allowed: Bools, basis: object) -> Side:
    """The side with the bound of a few steps of the simplex method."""
    if not _possible(component, allowed):
        return Side(math.inf, allowed)
    relaxation = component.relaxation
    relaxation.allow(allowed)
    relaxation.basis = basis
    point = relaxation.solve(run.left, run.stop, PROBE_ITERATIONS)
    if point is None:
        return Side(side.loss, allowed)
    bounded = relaxation.bounded(point.weights, allowed)
    return Side(max(side.loss, bounded.loss), allowed & (bounded.with_set <= component.cutoff + component.tolerance))


def _possible(component: Component, allowed: Bools) -> bool:
    return bool(np.logical_or.reduceat(allowed, component.sets.vertex_start[:-1]).all())


def fractional_edges(component: Component, point: Point) -> Ints:
    """(edges, 2) parent and child of the edges that the solution has in part, those nearest to a half first."""
    values = edge_values(component.support(point))
    parents, children = np.nonzero((values > 1e-5) & (values < 1 - 1e-5))
    distance = np.abs(values[parents, children] - 0.5)
    return np.column_stack([parents, children])[np.argsort(distance, kind="stable")]


def both_ways(component: Component, allowed: Bools, parent: int, child: int) -> tuple[Bools, Bools]:
    """The sets that networks with the edge can use, and those that networks without it can."""
    with_edge, without = allowed.copy(), allowed.copy()
    mine, holds = _holding(component, child, parent)
    with_edge[mine] &= holds
    without[mine] &= ~holds
    back, holds = _holding(component, parent, child)
    with_edge[back] &= ~holds
    return with_edge, without


def _holding(component: Component, vertex: int, member: int) -> tuple[slice, Bools]:
    """The sets of the vertex, and whether each holds the member."""
    sets = component.sets
    first, last = sets.vertex_start[vertex : vertex + 2].tolist()
    start = sets.start[first : last + 1]
    found = np.concatenate([[0], np.cumsum(sets.members[start[0] : start[-1]] == member)])
    return slice(first, last), np.diff(found[start - start[0]]) > 0
