"""Horizontal places of the nodes: edges as straight as the widths of the nodes allow."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from ..foundation.arrays import Floats
from .layers import Edge, Layers, minimiser

_GAP = 14.0  # between the boxes of neighbours in a row
_LANE = 11.0  # between two edges that pass a row side by side
_PORT = 11.0  # between the ends of edges at one vertex
_BALANCING = 12
_LARGEST_PROGRAM = 4_000  # nodes; the linear program of a picture with so many takes some 3 s
_RELAXING = 30
# Straightness of a link between two bends matters most, of one between two vertices least (Gansner et al. 1993).
_WEIGHTS = (1.0, 2.0, 8.0)

Ports = dict[Edge, float]  # of a link, upper and lower node: how far from the node's middle it ends


def ports(layers: Layers, rows: Sequence[Sequence[int]], widths: Sequence[float]) -> tuple[Ports, Ports]:
    """Return where links leave their upper node and where they enter the lower: in the order of the rows."""
    place = {node: k for row in rows for k, node in enumerate(row)}
    leaving: Ports = {}
    entering: Ports = {}
    for node in range(layers.nodes):
        width = widths[node] if node < layers.vertices else 0.0
        below = sorted(layers.below[node], key=place.__getitem__)
        above = sorted(layers.above[node], key=place.__getitem__)
        leaving.update(((node, other), x) for other, x in zip(below, _spread(len(below), width), strict=True))
        entering.update(((other, node), x) for other, x in zip(above, _spread(len(above), width), strict=True))
    return leaving, entering


def _spread(count: int, width: float) -> list[float]:
    """Return `count` places around 0, _PORT apart if the width allows it."""
    step = min(_PORT, 0.7 * width / max(count - 1, 1))
    return [step * (k - (count - 1) / 2) for k in range(count)]


def placed(layers: Layers, rows: Sequence[Sequence[int]], widths: Sequence[float]) -> tuple[Floats, Ports, Ports]:
    """Return the horizontal middle (nodes,) of every node, and the ports of the links.

    The places minimise the weighted sum of the links' horizontal extents by a linear program; then each vertex moves to
    the middle of its equally good places. Very large pictures minimise the sum of squares instead, row by row.
    """
    leaving, entering = ports(layers, rows, widths)
    if layers.nodes > _LARGEST_PROGRAM:
        return _relaxed(layers, rows, widths, _pulls(layers, leaving, entering)), leaving, entering
    links = [link for chain in layers.chains.values() for link in pairwise(chain)]
    offsets = np.array([leaving[link] - entering[link] for link in links])
    neighbours = [pair for row in rows for pair in pairwise(row)]
    distances = np.array([_distance(layers, widths, *pair) for pair in neighbours])
    x = _straightest(layers, links, offsets, neighbours, distances)
    _balance(layers, rows, x, widths, _pulls(layers, leaving, entering))
    return x, leaving, entering


def _distance(layers: Layers, widths: Sequence[float], left: int, right: int) -> float:
    """Return the least distance between the middles of two neighbours in a row."""
    if left >= layers.vertices and right >= layers.vertices:
        return _LANE
    return _GAP + sum(widths[node] / 2 for node in (left, right) if node < layers.vertices)


def _straightest(
    layers: Layers, links: list[Edge], offsets: Floats, neighbours: list[Edge], distances: Floats
) -> Floats:
    """Return argmin over x of sum w |x_upper - x_lower + offset|, x_right - x_left >= distance for neighbours."""
    nodes, count = layers.nodes, len(links)
    upper, lower = np.array(links).T
    left, right = np.array(neighbours, dtype=np.int64).reshape(-1, 2).T
    link, pair = np.arange(count), 2 * count + np.arange(len(left))
    one, same = np.ones(count), np.ones(len(left))
    # Rows: x_upper - x_lower - d <= -offset, x_lower - x_upper - d <= offset, x_left - x_right <= -distances.
    values = np.concatenate([one, -one, -one, -one, one, -one, same, -same])
    rows = np.concatenate([link, link, link, count + link, count + link, count + link, pair, pair])
    columns = np.concatenate([upper, lower, nodes + link, upper, lower, nodes + link, left, right])
    bends = (upper >= layers.vertices).astype(int) + (lower >= layers.vertices)
    cost = np.concatenate([np.zeros(nodes), np.array(_WEIGHTS)[bends]])
    limits = np.concatenate([-offsets, offsets, -distances])
    return minimiser(cost, (values, rows, columns), limits)[:nodes].copy()


Pulls = list[list[tuple[int, float, float]]]  # for each node: neighbour above or below, offset from it, weight


def _pulls(layers: Layers, leaving: Ports, entering: Ports) -> Pulls:
    pulls: Pulls = [[] for _ in range(layers.nodes)]
    for link, start in leaving.items():
        upper, lower = link
        weight = _WEIGHTS[(upper >= layers.vertices) + (lower >= layers.vertices)]
        pulls[upper].append((lower, entering[link] - start, weight))
        pulls[lower].append((upper, start - entering[link], weight))
    return pulls


def _relaxed(layers: Layers, rows: Sequence[Sequence[int]], widths: Sequence[float], pulls: Pulls) -> Floats:
    """Return places by block descent: each row minimises the squares of its links, given the other rows.

    With the distances of neighbours subtracted, that is an isotonic regression.
    """
    from scipy.optimize import isotonic_regression  # other pictures need no scipy

    distances = [np.cumsum([0.0, *(_distance(layers, widths, *pair) for pair in pairwise(row))]) for row in rows]
    x = np.zeros(layers.nodes)
    for row, offsets in zip(rows, distances, strict=True):
        x[list(row)] = offsets - offsets[-1] / 2
    for turn in range(_RELAXING):
        for k in range(len(rows)) if turn % 2 == 0 else reversed(range(len(rows))):
            weights = np.array([sum(weight for *_, weight in pulls[node]) for node in rows[k]])
            wishes = np.array([sum((x[n] + offset) * w for n, offset, w in pulls[node]) for node in rows[k]]) / weights
            x[list(rows[k])] = isotonic_regression(wishes - distances[k], weights=weights).x + distances[k]
    return x


def _balance(layers: Layers, rows: Sequence[Sequence[int]], x: Floats, widths: Sequence[float], pulls: Pulls) -> None:
    """Move each vertex to the middle of the interval of its best places, as far as its neighbours allow."""
    places = x.tolist()
    for turn in range(_BALANCING):
        for row in rows if turn % 2 == 0 else reversed(rows):
            for k, node in enumerate(row):
                if node < layers.vertices:
                    low, high = _best_interval([(places[n] + offset, weight) for n, offset, weight in pulls[node]])
                    wish = (low + high) / 2
                    if k > 0:
                        wish = max(wish, places[row[k - 1]] + _distance(layers, widths, row[k - 1], node))
                    if k < len(row) - 1:
                        wish = min(wish, places[row[k + 1]] - _distance(layers, widths, node, row[k + 1]))
                    places[node] = wish
    x[:] = places


def _best_interval(pulls: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the interval of places that minimise the weighted sum of distances to the pulls."""
    pulls = sorted(pulls)
    half = sum(weight for _, weight in pulls) / 2
    passed = 0.0
    for k, (place, weight) in enumerate(pulls):
        passed += weight
        if passed == half:
            return place, pulls[k + 1][0]
        if passed > half:
            return place, place
    return 0.0, 0.0
