"""Branch and bound over the relaxation; a branching decides whether an edge is in the network."""

import heapq
import math
from typing import NamedTuple

import numpy as np

from ...foundation.arrays import Bools, Ints
from ..run import Run
from .cuts import ScoredSets, edge_values
from .proof import NODE, BranchNode, ComponentProof
from .relaxation import Bounded, Point

PROBED = 8  # edges whose two sides are bounded before one is chosen (strong branching)
PROBE_ITERATIONS = 100


class Node(NamedTuple):
    """An open node: networks of these sets, which lose at least `loss`."""

    loss: float
    serial: int
    allowed: Bools
    record: BranchNode | None  # for a certificate, if it is wanted


class Side(NamedTuple):
    """Networks of these sets, which lose at least `loss`."""

    loss: float
    allowed: Bools
    bounded: Bounded | None = None  # by these multipliers, if they were found by probing


def branch(component: ComponentProof, run: Run) -> int:
    """Search until the best network of the component is proved or the time is up; return the number of nodes."""
    if run.over:
        return 0
    component.shrink()
    heap = [Node(component.loss, 0, component.alive.copy(), component.node)]
    count, closed = 0, math.inf  # closed: the least loss of the nodes that need no further search
    while heap and not run.over and not component.closes(heap[0].loss):
        node = heapq.heappop(heap)
        component.raise_loss(min(node.loss, closed))
        component.node = node.record
        relaxed = component.relax(run, NODE, node.allowed & component.alive)
        loss, solved = max(node.loss, relaxed.loss), False
        sides, records = [Side(loss, relaxed.allowed)], [node.record]
        if not component.closes(loss):
            if run.over or relaxed.point is None:
                heapq.heappush(heap, node)
                break
            component.search(run, component.order_of(relaxed.point), 100, node.serial)
            edges = fractional_edges(component, relaxed.point)
            if len(edges):
                edge, sides = best_sides(component, run, loss, relaxed.allowed, edges[:PROBED])
                records = [None, None]
                if node.record is not None:
                    records = [*node.record.branch(edge, [side.bounded for side in sides])]
            # a network, or cycles, which the added cuts exclude; pricing may have stopped early
            else:
                network = component.best_of_order(component.order_of(relaxed.point))
                solved = relaxed.complete or component.loss_of(network) <= loss + 1e-6
        for side, record in zip(sides, records, strict=True):
            count += 1
            if solved or component.closes(side.loss):
                closed = min(closed, side.loss)
            else:
                heapq.heappush(heap, Node(side.loss, count, side.allowed, record))
        run.report(f"score {run.score:,.3f}, bound {run.bound:,.3f}, {len(heap)} open nodes")
    least = heap[0].loss if heap else math.inf
    if component.closes(least):
        component.raise_loss(min(closed, least, component.cutoff))
    return count


def best_sides(
    component: ComponentProof, run: Run, loss: float, allowed: Bools, edges: Ints
) -> tuple[tuple[int, int], list[Side]]:
    """Return the edge (parent, child) whose two sides raise the bound most, and these: with it, and without it."""
    best, best_edge, best_merit = list[Side](), (-1, -1), -1.0
    relaxation = component.relaxation
    basis = relaxation.basis
    for parent, child in edges.tolist():
        sides: list[Side] = []
        for side in split_on_edge(component.sets, allowed, parent, child):
            if not np.logical_or.reduceat(side, component.sets.families.vertex_start[:-1]).all():
                sides.append(Side(math.inf, side))
                continue
            relaxation.allow(side)
            relaxation.basis = basis
            point = relaxation.solve(run.left, run.stop, PROBE_ITERATIONS)
            if point is None:
                sides.append(Side(loss, side))
                continue
            bounded = relaxation.bounded(point.weights, side)
            alive = side & (bounded.with_set <= component.cutoff + component.tolerance)
            sides.append(Side(max(loss, bounded.loss), alive, bounded))
        gains = [max(min(each.loss, component.cutoff) - loss, 1e-6) for each in sides]
        if gains[0] * gains[1] > best_merit:
            best, best_edge, best_merit = sides, (parent, child), gains[0] * gains[1]
        if run.over or any(component.closes(each.loss) for each in sides):
            break
    return best_edge, best


def fractional_edges(component: ComponentProof, point: Point) -> Ints:
    """Return (edges, 2) parent and child of the edges with a fractional value, those nearest to a half first."""
    values = edge_values(component.support(point))
    parents, children = np.nonzero((values > 1e-5) & (values < 1 - 1e-5))
    distance = np.abs(values[parents, children] - 0.5)
    return np.column_stack([parents, children])[np.argsort(distance, kind="stable")]


def split_on_edge(sets: ScoredSets, allowed: Bools, parent: int, child: int) -> tuple[Bools, Bools]:
    """Return the sets that networks with the edge can use, and those that networks without it can use."""
    families, owners = sets.families, sets.owners
    set_of_member = np.repeat(np.arange(len(owners)), np.diff(families.set_start))
    holds_parent, holds_child = np.zeros((2, len(owners)), np.bool_)
    holds_parent[set_of_member[families.members == parent]] = True
    holds_child[set_of_member[families.members == child]] = True
    with_edge = allowed & (holds_parent | (owners != child)) & ~(holds_child & (owners == parent))
    without = allowed & ~(holds_parent & (owners == child))
    return with_edge, without
