"""The picture of a network as coordinates: boxes in rows, parents above children, edges as smooth curves."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..foundation.arrays import Floats, Ints, frozen
from ..network import Network
from .labels import shortened, text_width
from .layers import Edge, Layers, layered
from .ordering import ordered
from .placing import Ports, placed

BOX_HEIGHT = 30.0
_PADDING = 11.0  # beside the label in its box
_MARGIN = 24.0  # around the picture
_BETWEEN = 36.0  # between parts that no edge joins
_ASPECT = 1.7  # width to height that packing aims at
_WIDEST_ASPECT = 3.0  # beyond it rows move apart

Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """Boxes and curves in pixels, y downwards. Boxes are BOX_HEIGHT high and do not touch; no curve crosses a box."""

    labels: tuple[str, ...]
    x: Floats = field(repr=False)  # (n,) middle of each box
    y: Floats = field(repr=False)  # (n,)
    widths: Floats = field(repr=False)  # (n,)
    curves: dict[Edge, Points] = field(repr=False)  # from the bottom of the parent's box to the top of the child's
    width: float = 0.0
    height: float = 0.0


def lay_out(network: Network) -> Layout:
    """The layered picture of the network, the same for the same network.

    Parts that no edge joins are laid out one by one and packed. Rows have the least total length of edges (unless
    they get too wide), orders inside rows few crossings, and places inside rows the straightest edges
    (Sugiyama, Tagawa & Toda 1981; Gansner et al. 1993).
    """
    labels = tuple(map(shortened, network.names))
    widths = [max(text_width(label), 16.0) + 2 * _PADDING for label in labels]
    x, y = np.zeros(network.n), np.zeros(network.n)
    curves: dict[Edge, Points] = {}
    parts = [_part(network.parents, members, widths) for members in components(network.parents)]
    corners, size = _packed([part.size for part in parts])
    for part, (left, top) in zip(parts, corners, strict=True):
        x[part.members], y[part.members] = part.x + left, part.y + top
        for edge, points in part.curves.items():
            curves[edge] = tuple((round(px + left, 1), round(py + top, 1)) for px, py in points)
    return Layout(labels, frozen(x), frozen(y), frozen(np.array(widths)), curves, *size)


def components(parents: Sequence[Sequence[int]]) -> list[Ints]:
    """The vertices of each connected part, ascending; parts by their first vertex."""
    root = list(range(len(parents)))

    def find(vertex: int) -> int:
        while root[vertex] != vertex:
            root[vertex] = vertex = root[root[vertex]]
        return vertex

    for child, its_parents in enumerate(parents):
        for parent in its_parents:
            low, high = sorted((find(parent), find(child)))
            root[high] = low
    members: dict[int, list[int]] = {}
    for vertex in range(len(parents)):
        members.setdefault(find(vertex), []).append(vertex)
    return [np.array(part, dtype=np.int64) for part in members.values()]


@dataclass(frozen=True, slots=True)
class _Part:
    """A connected part of the picture, its upper left corner at (0, 0)."""

    members: Ints
    x: Floats
    y: Floats
    curves: dict[Edge, Points]
    size: tuple[float, float]


def _part(parents: Sequence[Sequence[int]], members: Ints, widths: Sequence[float]) -> _Part:
    own = [widths[v] for v in members.tolist()]
    if len(members) == 1:
        return _Part(members, np.array([own[0] / 2]), np.array([BOX_HEIGHT / 2]), {}, (own[0], BOX_HEIGHT))
    index = {v: k for k, v in enumerate(members.tolist())}
    layers = layered([[index[p] for p in parents[v]] for v in members.tolist()], _widest(own))
    rows = ordered(layers)
    x, *ends = placed(layers, rows, own)
    half = np.zeros(layers.nodes)
    half[: layers.vertices] = np.array(own) / 2
    x -= (x - half).min()
    y = _heights(layers, rows, x)
    curves = {
        (int(members[chain[0]]), int(members[chain[-1]])): _curve(chain, x, y, *ends)
        for chain in layers.chains.values()
    }
    size = float((x + half).max()), float(y.max()) + BOX_HEIGHT / 2
    return _Part(members, x[: layers.vertices], y[: layers.vertices], curves, size)


def _widest(widths: Sequence[float]) -> int:
    """Vertices that a row may hold: half as many again as would give the picture its aspect if all rows were full."""
    row_height = 3 * BOX_HEIGHT
    return math.ceil(1.5 * math.sqrt(_ASPECT * len(widths) ** 2 * row_height / sum(widths)))


def _heights(layers: Layers, rows: Sequence[Sequence[int]], x: Floats) -> Floats:
    """(nodes,) the vertical middle of each node; more room between rows whose links run far sideways.

    A picture that would be a strip all the same gets up to 2.5 times the room.
    """
    gaps = [_gap([abs(x[node] - x[other]) for node in row for other in layers.below[node]]) for row in rows[:-1]]
    wanted = float(np.ptp(x)) / _WIDEST_ASPECT - len(rows) * BOX_HEIGHT
    stretch = float(np.clip(wanted / sum(gaps), 1.0, 2.5))
    y = np.zeros(layers.nodes)
    for k, row in enumerate(rows):
        y[list(row)] = (k + 0.5) * BOX_HEIGHT + stretch * sum(gaps[:k])
    return y


def _gap(extents: Sequence[float]) -> float:
    far = max(0.13 * float(np.quantile(extents, 0.9)), 0.06 * max(extents))
    return float(np.clip(30 + far, 40, 190))


def _curve(chain: tuple[int, ...], x: Floats, y: Floats, leaving: Ports, entering: Ports) -> Points:
    """The points that the edge passes: down through the rows between, upright beside the boxes there."""
    upper, lower = chain[0], chain[-1]
    first = (float(x[upper]) + leaving[upper, chain[1]], float(y[upper]) + BOX_HEIGHT / 2)
    last = (float(x[lower]) + entering[chain[-2], lower], float(y[lower]) - BOX_HEIGHT / 2)
    bends = [(float(x[b]), float(y[b]) + side * BOX_HEIGHT / 2) for b in chain[1:-1] for side in (-1, 1)]
    return (first, *bends, last)


def _packed(sizes: Sequence[tuple[float, float]]) -> tuple[list[tuple[float, float]], tuple[float, float]]:
    """The upper left corner of each rectangle, and the size of all: shelf by shelf, the highest first."""
    area = sum((width + _BETWEEN) * (height + _BETWEEN) for width, height in sizes)
    shelf_width = max([math.sqrt(area * _ASPECT), *(width for width, _ in sizes)], default=0.0)
    corners = [(0.0, 0.0)] * len(sizes)
    left = top = shelf_height = right = 0.0
    for k in sorted(range(len(sizes)), key=lambda k: (-sizes[k][1], k)):
        width, height = sizes[k]
        if left > 0 and left + width > shelf_width:
            left, top, shelf_height = 0.0, top + shelf_height + _BETWEEN, 0.0
        corners[k] = (left + _MARGIN, top + _MARGIN)
        right, shelf_height = max(right, left + width), max(shelf_height, height)
        left += width + _BETWEEN
    return corners, (right + 2 * _MARGIN, top + shelf_height + 2 * _MARGIN)
