"""Coordinates of the picture: boxes in rows, parents above children, smooth curves.

Inside the rows, edges are as straight as the widths of the boxes allow.
"""

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise

import numpy as np

from ..foundation.arrays import Floats, Ints, frozen
from ..network import Network
from .layers import Edge, Layers, layered, minimiser, ordered

FONT_SIZE = 13.0
FONT_FAMILY = (
    "Inter, 'Segoe UI', 'Helvetica Neue', Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"
)
LONGEST_LABEL = 28  # characters of a name that the picture shows; the tooltip shows the full name

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
_WIDEST_ASPECT = 3.0  # width to height; beyond it rows move apart
# height to width; beyond it columns of a large picture move apart, as far as a screen is wide
_TALLEST_ASPECT = 1.0
_LARGE = 100  # nodes of a large picture; a short chain may be a column

_GAP = 14.0  # between the boxes of neighbours in a row
_LANE = 11.0  # between two edges that pass a row side by side
_PORT = 11.0  # between the ends of edges at one vertex
_BALANCING = 12
_LARGEST_PROGRAM = 4_000  # nodes, for which the linear program takes some 3 s
_RELAXING = 30
# Straightness of a link between two bends matters most, of one between two vertices least (Gansner
# et al. 1993).
_WEIGHTS = (1.0, 2.0, 8.0)

Ports = dict[Edge, float]  # of a link, upper and lower node: how far from the node's middle it ends
# for each node: neighbour above or below, offset from it, weight
Pulls = list[list[tuple[int, float, float]]]
Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """Boxes and curves in pixels, y downwards.

    Boxes are BOX_HEIGHT high and do not touch; no curve crosses a box."""

    labels: tuple[str, ...]
    x: Floats = field(repr=False)  # (n,) middle of each box
    y: Floats = field(repr=False)  # (n,)
    widths: Floats = field(repr=False)  # (n,)
    # from the bottom of the parent's box to the top of the child's
    curves: dict[Edge, Points] = field(repr=False)
    width: float = 0.0
    height: float = 0.0


def lay_out(network: Network, *, largest_program: int = _LARGEST_PROGRAM) -> Layout:
    """Return the layered picture of the network, the same for the same network.

    Connected components are laid out one by one and packed. Rows have the least total edge length
    (unless they get too wide), orders inside rows few crossings, and places inside rows the
    straightest edges."""
    labels = tuple(map(shortened, network.names))
    widths = [max(text_width(label), 16.0) + 2 * _PADDING for label in labels]
    x, y = np.zeros(network.n), np.zeros(network.n)
    curves: dict[Edge, Points] = {}
    laid_out = [
        _lay_out_component(network.parents, members, widths, largest_program)
        for members in components(network.parents)
    ]
    corners, size = _packed([part.size for part in laid_out])
    for part, (left, top) in zip(laid_out, corners, strict=True):
        x[part.members], y[part.members] = part.x + left, part.y + top
        for edge, points in part.curves.items():
            curves[edge] = tuple((round(px + left, 1), round(py + top, 1)) for px, py in points)
    return Layout(labels, frozen(x), frozen(y), frozen(np.array(widths)), curves, *size)


def components(parents: Sequence[Sequence[int]]) -> list[Ints]:
    """Return the vertices of each connected component, ascending.

    Components are in the order of their first vertices."""
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


def _lay_out_component(
    parents: Sequence[Sequence[int]], members: Ints, widths: Sequence[float], largest_program: int
) -> _Component:
    """Return the picture of the connected component of these members."""
    own = [widths[v] for v in members.tolist()]
    if len(members) == 1:
        size = (own[0], BOX_HEIGHT)
        return _Component(members, np.array([own[0] / 2]), np.array([BOX_HEIGHT / 2]), {}, size)
    index = {v: k for k, v in enumerate(members.tolist())}
    own_parents = []
    for v in members.tolist():
        own_parents.append([index[p] for p in parents[v]])
    # A row may hold 1.5 times as many vertices as give full rows of 3 boxes' height the wanted
    # aspect.
    widest = math.ceil(1.5 * math.sqrt(_ASPECT * len(own) ** 2 * 3 * BOX_HEIGHT / sum(own)))
    layers = layered(own_parents, widest)
    rows = ordered(layers)
    x, leaving, entering = placed(layers, rows, own, largest_program)
    half = np.zeros(layers.nodes)
    half[: layers.vertices] = np.array(own) / 2
    y = _heights(layers, rows, x)
    # A tower gets more distance between its columns: boxes stay as wide, and so stay apart.
    if layers.nodes > _LARGE:
        x *= max(1.0, float(np.ptp(y)) / (_TALLEST_ASPECT * max(float(np.ptp(x)), 1.0)))
    x -= (x - half).min()
    curves: dict[Edge, Points] = {}
    for nodes in layers.chains.values():
        edge = int(members[nodes[0]]), int(members[nodes[-1]])
        ends = leaving[nodes[0], nodes[1]], entering[nodes[-2], nodes[-1]]
        curves[edge] = _curve(nodes, x, y, ends)
    size = float((x + half).max()), float(y.max()) + BOX_HEIGHT / 2
    return _Component(members, x[: layers.vertices], y[: layers.vertices], curves, size)


def _curve(nodes: Sequence[int], x: Floats, y: Floats, ends: tuple[float, float]) -> Points:
    """Return the points of an edge: vertical beside the boxes of the rows that it passes.

    `ends`: how far from the middles of its vertices it leaves and enters."""
    upper, *bends, lower = nodes
    half = BOX_HEIGHT / 2
    points = [(float(x[upper]) + ends[0], float(y[upper]) + half)]
    for bend in bends:
        points.append((float(x[bend]), float(y[bend]) - half))
        points.append((float(x[bend]), float(y[bend]) + half))
    points.append((float(x[lower]) + ends[1], float(y[lower]) - half))
    return tuple(points)


def _heights(layers: Layers, rows: Sequence[Sequence[int]], x: Floats) -> Floats:
    """Return the vertical middle (nodes,) of each node.

    Rows whose links are wide are further apart.

    A picture that is still too wide gets up to 2.5 times the distance, one that is too tall down to
    0.65 times."""
    gaps = []
    for row in rows[:-1]:
        extents = [abs(x[node] - x[other]) for node in row for other in layers.below[node]]
        far = max(0.13 * float(np.quantile(extents, 0.9)), 0.06 * max(extents))
        gaps.append(float(np.clip(30 + far, 40, 190)))
    width, boxes = float(np.ptp(x)), len(rows) * BOX_HEIGHT
    least, most = (
        (height - boxes) / sum(gaps) for height in (width / _WIDEST_ASPECT, _TALLEST_ASPECT * width)
    )
    stretch = float(np.clip(least, 1.0, 2.5))
    if layers.nodes > _LARGE and most < 1.0:
        stretch = max(most, 0.65)
    y = np.zeros(layers.nodes)
    for k, row in enumerate(rows):
        y[list(row)] = (k + 0.5) * BOX_HEIGHT + stretch * sum(gaps[:k])
    return y


def _packed(
    sizes: Sequence[tuple[float, float]],
) -> tuple[list[tuple[float, float]], tuple[float, float]]:
    """Return the upper left corner of each rectangle and the size of all.

    They stand on centred shelves, the highest first.

    Single boxes stand on shelves of their own below the others.
    """
    area = sum((width + _BETWEEN) * (height + _BETWEEN) for width, height in sizes)
    shelf_width = max([math.sqrt(area * _ASPECT), *(width for width, _ in sizes)], default=0.0)
    shelves: list[list[int]] = []
    left = 0.0
    for k in sorted(range(len(sizes)), key=lambda k: (-sizes[k][1], k)):
        width, height = sizes[k]
        first_single = (
            height == BOX_HEIGHT and bool(shelves) and sizes[shelves[-1][0]][1] > BOX_HEIGHT
        )
        if not shelves or first_single or left + width > shelf_width:
            shelves.append([])
            left = 0.0
        shelves[-1].append(k)
        left += width + _BETWEEN
    corners = [(0.0, 0.0)] * len(sizes)
    widths = [sum(sizes[k][0] for k in shelf) + _BETWEEN * (len(shelf) - 1) for shelf in shelves]
    widest, top = max(widths, default=0.0), _MARGIN
    for shelf, shelf_wide in zip(shelves, widths, strict=True):
        height = sizes[shelf[0]][1]
        left = _MARGIN + (widest - shelf_wide) / 2
        for k in shelf:
            corners[k] = (left, top)
            left += sizes[k][0] + _BETWEEN
        top += height + _BETWEEN
    return corners, (
        widest + 2 * _MARGIN,
        max(top - _BETWEEN, 0.0) + _MARGIN if shelves else 2 * _MARGIN,
    )


def ports(
    layers: Layers, rows: Sequence[Sequence[int]], widths: Sequence[float]
) -> tuple[Ports, Ports]:
    """Return where links leave their upper node and where they enter the lower.

    They are in the order of the rows."""
    place = {node: k for row in rows for k, node in enumerate(row)}
    leaving: Ports = {}
    entering: Ports = {}
    for node in range(layers.nodes):
        width = widths[node] if node < layers.vertices else 0.0
        below = sorted(layers.below[node], key=place.__getitem__)
        above = sorted(layers.above[node], key=place.__getitem__)
        for other, x in zip(below, _spread(len(below), width), strict=True):
            leaving[node, other] = x
        for other, x in zip(above, _spread(len(above), width), strict=True):
            entering[other, node] = x
    return leaving, entering


def _spread(count: int, width: float) -> list[float]:
    """Return `count` places around 0, _PORT apart if the width allows it."""
    step = min(_PORT, 0.7 * width / max(count - 1, 1))
    return [step * (k - (count - 1) / 2) for k in range(count)]


def placed(
    layers: Layers,
    rows: Sequence[Sequence[int]],
    widths: Sequence[float],
    largest_program: int = _LARGEST_PROGRAM,
) -> tuple[Floats, Ports, Ports]:
    """Return the horizontal middle (nodes,) of every node, and the ports of the links.

    The places minimise the weighted sum of the links' horizontal extents by a linear program; then
    each vertex moves to the middle of its equally good places. Very large pictures minimise the sum
    of squares instead, row by row."""
    leaving, entering = ports(layers, rows, widths)
    pulls = _pulls(layers, leaving, entering)
    if layers.nodes > largest_program:
        return _relaxed(layers, rows, widths, pulls), leaving, entering
    x = _straightest(
        layers, rows, widths, {link: leaving[link] - entering[link] for link in leaving}
    )
    _balance(layers, rows, x, widths, pulls)
    return x, leaving, entering


def _straightest(
    layers: Layers, rows: Sequence[Sequence[int]], widths: Sequence[float], offsets: Ports
) -> Floats:
    """Return places that minimise the sum of w |x_upper - x_lower + offset| over the links.

    Neighbours in a row keep their distances: x_right - x_left >= distance. The linear program has a
    variable d for the extent of each link, and three kinds of rows:

        x_upper - x_lower - d <= -offset
        x_lower - x_upper - d <= offset
        x_left - x_right <= -distance
    """
    links = list(chain.from_iterable(map(pairwise, layers.chains.values())))
    neighbours = list(chain.from_iterable(map(pairwise, rows)))
    shifts = np.array([offsets[link] for link in links])
    distances = np.array([distance(layers, widths, *pair) for pair in neighbours])
    upper, lower = np.array(links).T
    left, right = np.array(neighbours, dtype=np.int64).reshape(-1, 2).T
    count = len(links)
    link = np.arange(count)
    extent = layers.nodes + link
    pair = 2 * count + np.arange(len(left))
    entries = [
        (1.0, link, upper),
        (-1.0, link, lower),
        (-1.0, link, extent),
        (-1.0, count + link, upper),
        (1.0, count + link, lower),
        (-1.0, count + link, extent),
        (1.0, pair, left),
        (-1.0, pair, right),
    ]
    limits = np.concatenate([-shifts, shifts, -distances])
    bends = (upper >= layers.vertices).astype(int) + (lower >= layers.vertices)
    cost = np.concatenate([np.zeros(layers.nodes), np.array(_WEIGHTS)[bends]])
    return minimiser(cost, _matrix(entries), limits)[: layers.nodes].copy()


def _matrix(entries: Sequence[tuple[float, Ints, Ints]]) -> tuple[Floats, Ints, Ints]:
    """Return (values, rows, columns) of the entries; each value is given with its places."""
    values = [np.full(len(rows), value) for value, rows, _ in entries]
    rows = [rows for _, rows, _ in entries]
    columns = [columns for _, _, columns in entries]
    return np.concatenate(values), np.concatenate(rows), np.concatenate(columns)


def distance(layers: Layers, widths: Sequence[float], left: int, right: int) -> float:
    """Return the least distance between the middles of two neighbours in a row."""
    if left >= layers.vertices and right >= layers.vertices:
        return _LANE
    return _GAP + sum(widths[node] / 2 for node in (left, right) if node < layers.vertices)


def _pulls(layers: Layers, leaving: Ports, entering: Ports) -> Pulls:
    pulls: Pulls = [[] for _ in range(layers.nodes)]
    for link, start in leaving.items():
        upper, lower = link
        weight = _WEIGHTS[(upper >= layers.vertices) + (lower >= layers.vertices)]
        pulls[upper].append((lower, entering[link] - start, weight))
        pulls[lower].append((upper, start - entering[link], weight))
    return pulls


def _relaxed(
    layers: Layers, rows: Sequence[Sequence[int]], widths: Sequence[float], pulls: Pulls
) -> Floats:
    """Return places by block descent.

    Each row minimises the squares of its links, given the other rows.

    With the distances of neighbours subtracted, that is an isotonic regression.
    """
    # imported here: other pictures need no scipy, whose import is slow
    from scipy.optimize import isotonic_regression

    distances = [
        np.cumsum([0.0, *(distance(layers, widths, *pair) for pair in pairwise(row))])
        for row in rows
    ]
    x = np.zeros(layers.nodes)
    for row, offsets in zip(rows, distances, strict=True):
        x[list(row)] = offsets - offsets[-1] / 2
    for turn in range(_RELAXING):
        for k in range(len(rows)) if turn % 2 == 0 else reversed(range(len(rows))):
            sums = []
            totals = []
            for node in rows[k]:
                sums.append(sum((x[n] + offset) * weight for n, offset, weight in pulls[node]))
                totals.append(sum(weight for *_, weight in pulls[node]))
            weights = np.array(totals)
            wishes = np.array(sums) / weights
            found = isotonic_regression(wishes - distances[k], weights=weights)
            x[list(rows[k])] = found.x + distances[k]
    return x


def _balance(
    layers: Layers, rows: Sequence[Sequence[int]], x: Floats, widths: Sequence[float], pulls: Pulls
) -> None:
    """Move each vertex to the middle of its best places, as far as its neighbours allow."""
    places = x.tolist()
    for turn in range(_BALANCING):
        for row in rows if turn % 2 == 0 else reversed(rows):
            for k, node in enumerate(row):
                if node >= layers.vertices:
                    continue
                wishes = [(places[n] + offset, weight) for n, offset, weight in pulls[node]]
                low, high = _best_interval(wishes)
                place = (low + high) / 2
                if k > 0:
                    left = row[k - 1]
                    place = max(place, places[left] + distance(layers, widths, left, node))
                if k < len(row) - 1:
                    right = row[k + 1]
                    place = min(place, places[right] - distance(layers, widths, node, right))
                places[node] = place
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


def shortened(name: str) -> str:
    """Return the name without its middle if it is long.

    Either end may distinguish machine-made names."""
    visible = "".join(
        " " if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs") else c for c in name
    )
    if len(visible) <= LONGEST_LABEL:
        return visible
    head = (LONGEST_LABEL - 1) * 2 // 3
    return f"{visible[:head]}…{visible[head + 1 - LONGEST_LABEL :]}"


def text_width(text: str) -> float:
    """Return an upper bound in pixels of the width of a label in the usual sans-serif fonts."""
    visible = [c for c in text if not unicodedata.combining(c)]
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in visible)
    other = sum(_EM.get(c, 0.8) for c in visible if unicodedata.east_asian_width(c) not in "WF")
    return FONT_SIZE * (1.05 * wide + other)
