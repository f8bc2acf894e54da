"""Coordinates of the picture: boxes in rows, parents above children, edges as smooth curves; widths of labels."""

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..foundation.arrays import Floats, Ints, frozen
from ..network import Network
from .layers import Edge, Layers, layered, ordered
from .placing import Ports, placed

FONT_SIZE = 13.0
FONT_FAMILY = "Inter, 'Segoe UI', 'Helvetica Neue', Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"
LONGEST = 28  # characters of a name that the picture shows; the tooltip shows the full name

# Widths in em of the widest of these fonts (DejaVu Sans) by kind of character.
_KINDS = (
    (frozenset("iljtfrI.,:;'|!()[] /\\-"), 0.42),
    (frozenset("mwMW@%"), 1.0),
    (frozenset("ABCEFKLPRSTVXYZ"), 0.7),
    (frozenset("+=<>~#^&|"), 0.85),
    (frozenset('abcdeghknopqsuvxyz0123456789_$*?`"{}'), 0.64),
)
_EM = {character: em for characters, em in _KINDS for character in characters}

BOX_HEIGHT = 30.0
_PADDING = 11.0  # beside the label in its box
_MARGIN = 24.0  # around the picture
_BETWEEN = 36.0  # between connected components
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
    """Return the layered picture of the network, the same for the same network.

    Connected components are laid out one by one and packed. Rows have the least total edge length (unless they get too
    wide), orders inside rows few crossings, and places inside rows the straightest edges.
    """
    labels = tuple(map(shortened, network.names))
    widths = [max(text_width(label), 16.0) + 2 * _PADDING for label in labels]
    x, y = np.zeros(network.n), np.zeros(network.n)
    curves: dict[Edge, Points] = {}
    laid_out = [_lay_out_component(network.parents, members, widths) for members in components(network.parents)]
    corners, size = _packed([part.size for part in laid_out])
    for part, (left, top) in zip(laid_out, corners, strict=True):
        x[part.members], y[part.members] = part.x + left, part.y + top
        for edge, points in part.curves.items():
            curves[edge] = tuple((round(px + left, 1), round(py + top, 1)) for px, py in points)
    return Layout(labels, frozen(x), frozen(y), frozen(np.array(widths)), curves, *size)


def components(parents: Sequence[Sequence[int]]) -> list[Ints]:
    """Return the vertices of each connected component, ascending; components by their first vertex."""
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
class _Component:
    """The picture of a connected component, its upper left corner at (0, 0)."""

    members: Ints
    x: Floats
    y: Floats
    curves: dict[Edge, Points]
    size: tuple[float, float]


def _lay_out_component(parents: Sequence[Sequence[int]], members: Ints, widths: Sequence[float]) -> _Component:
    own = [widths[v] for v in members.tolist()]
    if len(members) == 1:
        return _Component(members, np.array([own[0] / 2]), np.array([BOX_HEIGHT / 2]), {}, (own[0], BOX_HEIGHT))
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
    return _Component(members, x[: layers.vertices], y[: layers.vertices], curves, size)


def _widest(widths: Sequence[float]) -> int:
    """Return how many vertices a row may hold: 1.5 times as many as give full rows the wanted aspect."""
    row_height = 3 * BOX_HEIGHT
    return math.ceil(1.5 * math.sqrt(_ASPECT * len(widths) ** 2 * row_height / sum(widths)))


def _heights(layers: Layers, rows: Sequence[Sequence[int]], x: Floats) -> Floats:
    """Return the vertical middle (nodes,) of each node; rows whose links are wide are further apart.

    A picture that is still too wide gets up to 2.5 times the distance.
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
    """Return the points of an edge: vertical beside the boxes of the rows between."""
    upper, lower = chain[0], chain[-1]
    first = (float(x[upper]) + leaving[upper, chain[1]], float(y[upper]) + BOX_HEIGHT / 2)
    last = (float(x[lower]) + entering[chain[-2], lower], float(y[lower]) - BOX_HEIGHT / 2)
    bends = [(float(x[b]), float(y[b]) + side * BOX_HEIGHT / 2) for b in chain[1:-1] for side in (-1, 1)]
    return (first, *bends, last)


def _packed(sizes: Sequence[tuple[float, float]]) -> tuple[list[tuple[float, float]], tuple[float, float]]:
    """Return the upper left corner of each rectangle and the size of all: on shelves, the highest first."""
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


def shortened(name: str) -> str:
    """Return the name without its middle if it is long: either end may distinguish machine-made names."""
    visible = "".join(" " if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs") else c for c in name)
    if len(visible) <= LONGEST:
        return visible
    head = (LONGEST - 1) * 2 // 3
    return f"{visible[:head]}…{visible[head + 1 - LONGEST :]}"


def text_width(text: str) -> float:
    """Return an upper bound in pixels of the width of a label in the usual sans-serif fonts."""
    visible = [c for c in text if not unicodedata.combining(c)]
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in visible)
    other = sum(_EM.get(c, 0.8) for c in visible if unicodedata.east_asian_width(c) not in "WF")
    return FONT_SIZE * (1.05 * wide + other)
