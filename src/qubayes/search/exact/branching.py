"""Branch and bound over the relaxation; a branching decides whether an edge is in the network."""

import heapq
import math
from typing import Any, NamedTuple

import numpy as np

from ...foundation.arrays import Bools, Ints
from ...foundation.families import Families
from ..run import Run
from .component_proof import BranchNode, ComponentProof
from .cuts import ScoredSets, edge_values
from .relaxation import Bounded, Point

_PROBED = 8  # edges whose two sides are bounded before one is chosen (strong branching)
_PROBE_ITERATIONS = 100  # of the simplex method, for each side
_LEAST_GAIN = 1e-6  # of the bound of a side: its product with the other side's gain is compared
_FRACTION = 1e-5  # an edge with a value nearer to 0 or 1 is not fractional
_SAME_COST = 1e-6  # a network that costs no more than the bound but for this is the best of a node


class Node(NamedTuple):
    """Networks of these sets, which cost at least `cost`."""

    cost: float
    allowed: Bools
    record: BranchNode | None = None  # for a certificate, if it is wanted
    solved: bool = False  # its best network is known
    bounded: Bounded | None = None  # by these multipliers, if they were found by probing


def branch(component: ComponentProof, run: Run) -> int:
    """Search until the best network is proved or the time is up; return the number of nodes."""
    if run.over:
        return 0
    component.shrink()
    root = Node(component.cost, component.alive.copy(), component.node)
    heap = [(root.cost, 0, root)]  # open nodes, the least cost first
    count = 0
    closed = math.inf  # the least cost of the nodes that need no further search
    while heap and not run.over and not component.closes(heap[0][0]):
        cost, serial, node = heapq.heappop(heap)
        component.raise_cost(min(cost, closed))
        found = expand(component, run, node, serial)
        if found is None:
            heapq.heappush(heap, (cost, serial, node))
            break
        for each in found:
            count += 1
            if each.solved or component.closes(each.cost):
                closed = min(closed, each.cost)
            else:
                heapq.heappush(heap, (each.cost, count, each))
        run.report(f"score {run.score:,.3f}, bound {run.bound:,.3f}, {len(heap)} open nodes")
    least = heap[0][0] if heap else math.inf
    if component.closes(least):
        component.raise_cost(min(closed, least, component.cutoff))
    return count


def expand(component: ComponentProof, run: Run, node: Node, seed: int) -> list[Node] | None:
    """Return the nodes that take the place of this one; None if the time was too short."""
    component.node = node.record
    plan = component.plan
    relaxed = component.relax(run, plan.node, node.allowed & component.alive)
    rest = Node(max(node.cost, relaxed.cost), relaxed.allowed, node.record)
    if component.closes(rest.cost):
        return [rest]
    if run.over or relaxed.point is None:
        return None
    order = component.order_of(relaxed.point)
    component.search(run, order, plan.node_moves, seed)
    edges = fractional_edges(component, relaxed.point)
    if len(edges):
        return _branched(component, run, rest, edges[:_PROBED])
    # An integer solution is a network, or has cycles, which the added cuts exclude. Pricing may
    # have stopped early, so the network need not be the best of the node.
    cost = component.cost_of(component.best_of_order(order))
    return [rest._replace(solved=relaxed.complete or cost <= rest.cost + _SAME_COST)]


def _branched(component: ComponentProof, run: Run, node: Node, edges: Ints) -> list[Node]:
    """Return the two sides of the best of these edges, with their records for a certificate."""
    edge, sides = best_sides(component, run, node, edges)
    if node.record is None:
        return sides
    records = node.record.branch(edge, [side.bounded for side in sides])
    return [side._replace(record=record) for side, record in zip(sides, records, strict=True)]


def best_sides(
    component: ComponentProof, run: Run, node: Node, edges: Ints
) -> tuple[tuple[int, int], list[Node]]:
    """Return the edge (parent, child) whose sides raise the bound most, and these sides."""
    best: list[Node] = []
    best_edge = (-1, -1)
    best_merit = -1.0
    basis = component.relaxation.basis
    for parent, child in edges.tolist():
        halves = split_on_edge(component.sets, node.allowed, parent, child)
        sides = [_probe(component, run, node.cost, half, basis) for half in halves]
        gains = [min(side.cost, component.cutoff) - node.cost for side in sides]
        merit = max(gains[0], _LEAST_GAIN) * max(gains[1], _LEAST_GAIN)
        if merit > best_merit:
            best_merit = merit
            best_edge = (parent, child)
            best = sides
        if run.over or any(component.closes(side.cost) for side in sides):
            break
    return best_edge, best


def _probe(component: ComponentProof, run: Run, cost: float, side: Bools, basis: Any) -> Node:
    """Return one side of a branching, with a bound from a few iterations of the simplex method."""
    first = component.sets.families.vertex_start[:-1]
    if not np.logical_or.reduceat(side, first).all():
        return Node(math.inf, side)  # a vertex without a set
    relaxation = component.relaxation
    relaxation.allow(side)
    relaxation.basis = basis
    point = relaxation.solve(run.left, run.stop, _PROBE_ITERATIONS)
    if point is None:
        return Node(cost, side)
    bounded = relaxation.bounded(point.weights, side)
    allowed = side & component.usable(bounded)
    return Node(max(cost, bounded.cost), allowed, bounded=bounded)


def fractional_edges(component: ComponentProof, point: Point) -> Ints:
    """Return (edges, 2) parent and child of edges with a fractional value, nearest to 1/2 first."""
    values = edge_values(component.support(point))
    parents, children = np.nonzero((values > _FRACTION) & (values < 1 - _FRACTION))
    distance = np.abs(values[parents, children] - 0.5)
    return np.column_stack([parents, children])[np.argsort(distance, kind="stable")]


def split_on_edge(sets: ScoredSets, allowed: Bools, parent: int, child: int) -> tuple[Bools, Bools]:
    """Return the sets for networks with the edge, and the sets for networks without it."""
    holds_parent = _holding(sets.families, parent)
    holds_child = _holding(sets.families, child)
    of_parent = sets.owners == parent
    of_child = sets.owners == child
    with_edge = allowed & (holds_parent | ~of_child) & ~(holds_child & of_parent)
    without = allowed & ~(holds_parent & of_child)
    return with_edge, without


def _holding(families: Families, vertex: int) -> Bools:
    """Return (sets,) whether the set contains the vertex."""
    holds = np.zeros(len(families.set_start) - 1, np.bool_)
    holds[families.sets_of_members[families.members == vertex]] = True
    return holds
