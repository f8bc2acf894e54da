"""The picture of the bits of a small QUBO, as in the paper's Figure 2."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, cycle, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..foundation.arrays import Bools
from ..foundation.errors import SettingError
from ..foundation.files import replacing
from ..foundation.graph import find_cycle
from ..network import Network
from .drawing import head_path, line_path, xml_text
from .layers import Edge
from .layout import BOX_HEIGHT, FONT_SIZE, Layout, lay_out

if TYPE_CHECKING:  # the picture of a network needs no QUBO
    from ..qubo import Formulation

Point = tuple[float, float]

MOST_BITS_DRAWN = 60  # more cannot be read
_RADIUS = 20
_STEP = 84  # between the middles of neighbours in a row
_GAP = 36  # more between bits of different vertices
_ROW_HEIGHT = 150
_BORDER = 60
_COLOURS = ("#3b6fb6", "#c2571a", "#2f8f5b", "#8d4fa8", "#b0892a", "#c03f6e", "#3a8ea5", "#6b6b6b")


def draw_model(formulation: "Formulation", state: Bools | None = None) -> str:
    """Return an SVG of the bits (u above, r in the middle, z below) and their couplers.

    Bits set in `state` are white. A coupler that lowers the energy is dashed. Beside the bits is
    the network of the state. Each of its edges has a colour, which the subset bit that holds it,
    its order bit and their coupler have as well."""
    layout = None if state is None else _layout_of(formulation, state)
    colours: dict[Edge, str] = {}
    if layout is not None:
        colours = dict(zip(sorted(layout.curves), cycle(_COLOURS), strict=False))
    places = _places(formulation, layout.width if layout else 0.0)
    width = max((x for x, _ in places), default=0.0) + _BORDER
    height = max((y for _, y in places), default=0.0) + _BORDER
    if layout is not None:
        height = max(height, layout.height)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" font-family="system-ui, sans-serif" role="img" '
        'aria-label="The bits of a QUBO">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    if layout is not None:
        parts += _coloured_network(layout, colours, (height - layout.height) / 2)
    values = [False] * len(places) if state is None else state.tolist()
    about = [
        [edge for edge in edges if edge in colours] for edges in _edges_of_bits(formulation, values)
    ]
    parts += _couplers(formulation, places, about, colours)
    for place, label, edges, value in zip(places, formulation.labels, about, values, strict=True):
        parts.append(_bit(*place, label, [colours[edge] for edge in edges], value))
    return "\n".join([*parts, "</svg>", ""])


def _layout_of(formulation: "Formulation", state: Bools) -> Layout | None:
    """Return the picture of the network of the state; None if it has a cycle."""
    from ..qubo.decoding import closure_sets  # the picture of a network needs no QUBO

    candidates = formulation.candidates
    parents = candidates.families.sets_at(closure_sets(formulation, state))
    return None if find_cycle(parents) else lay_out(Network(candidates.names, parents))


def _places(formulation: "Formulation", network_width: float) -> list[Point]:
    """Return the middle of each bit: a centred row for each kind, right of the network."""
    owners = formulation.subsets.families.owners.tolist()
    no_owners = [-1] * len(formulation.order.pairs)
    rows = [row for row in (owners, no_owners, formulation.slack_vertices.tolist()) if row]
    steps = [_steps(row) for row in rows]
    widest = max(map(sum, steps), default=0)
    left = _BORDER + network_width
    places: list[Point] = []
    for k, step in enumerate(steps):
        start = left + (widest - sum(step)) / 2
        places += [(start + x, _BORDER + k * _ROW_HEIGHT) for x in accumulate(step, initial=0)]
    return places


def _steps(owners: Sequence[int]) -> list[int]:
    """Return the distances between neighbours in a row of bits of these vertices."""
    return [_STEP + _GAP * (vertex != before) for before, vertex in pairwise(owners)]


def _edges_of_bits(formulation: "Formulation", values: Sequence[bool]) -> Iterator[list[Edge]]:
    """Yield the edges that each bit is about: those of a chosen subset, both of a pair, none."""
    families = formulation.subsets.families
    for bit, vertex in enumerate(families.owners.tolist()):
        yield [(parent, vertex) for parent in families.set_at(bit)] if values[bit] else []
    for a, b in formulation.order.pairs.tolist():
        yield [(a, b), (b, a)]
    for _ in formulation.slack_vertices:
        yield []


def _couplers(
    formulation: "Formulation",
    places: Sequence[Point],
    about: Sequence[Sequence[Edge]],
    colours: Mapping[Edge, str],
) -> Iterator[str]:
    """Yield the couplers; one between two bits that are about the same edge has its colour."""
    from ..machines import upper_triangle  # the picture of a network needs no QUBO

    labels = formulation.labels
    columns = [column.tolist() for column in upper_triangle(formulation.qubo)]
    for first, second, weight in zip(*columns, strict=True):
        title = f"{weight:.4g} · {labels[first]} · {labels[second]}"
        shared = [edge for edge in about[first] if edge in about[second]]
        colour = colours[shared[0]] if shared else None
        yield _coupler(places[first], places[second], title, colour, dashed=weight < 0)


def _coloured_network(layout: Layout, colours: Mapping[Edge, str], top: float) -> Iterator[str]:
    """Yield the boxes and edges of a network, each edge in its colour."""
    yield f'<g transform="translate(0 {top:g})">'
    for edge, points in layout.curves.items():
        colour = colours[edge]
        yield f'<path d="{line_path(points)}" fill="none" stroke="{colour}" stroke-width="3"/>'
        yield f'<path d="{head_path(points, 3.0)}" fill="{colour}"/>'
    boxes = zip(layout.x.tolist(), layout.y.tolist(), layout.widths.tolist(), strict=True)
    for label, (x, y, width) in zip(layout.labels, boxes, strict=True):
        corner = f'x="{x - width / 2:.1f}" y="{y - BOX_HEIGHT / 2:.1f}"'
        size = f'width="{width:.1f}" height="{BOX_HEIGHT:g}"'
        text = f'x="{x:.1f}" y="{y + 0.35 * FONT_SIZE:.1f}" font-size="{FONT_SIZE:g}"'
        yield (
            f'<rect {corner} {size} rx="7" fill="#ffffff" stroke="#555555"/>'
            f'<text {text} text-anchor="middle" fill="#202124">{xml_text(label)}</text>'
        )
    yield "</g>"


def _coupler(start: Point, end: Point, title: str, colour: str | None, *, dashed: bool) -> str:
    """Return the line between two bits: straight between rows, bent inside one."""
    x0, y0 = start
    x1, y1 = end
    bend = 0.0 if y0 != y1 else 26 + 0.16 * abs(x0 - x1)
    middle = f"{(x0 + x1) / 2:g} {(y0 + y1) / 2 - bend:g}"
    line = 'stroke="#9aa0a6" stroke-width="1.4"'
    if colour is not None:
        line = f'stroke="{colour}" stroke-width="3"'
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    return (
        f'<path d="M{x0:g} {y0:g} Q{middle} {x1:g} {y1:g}" fill="none" '
        f"{line}{dash}><title>{xml_text(title)}</title></path>"
    )


def _bit(x: float, y: float, label: str, colours: Sequence[str], active: bool) -> str:
    """Return a bit: a circle, its outline in arcs of the colours, its value and its label."""
    fill = "#ffffff" if active else "#d4d7db"
    thickness = "3" if active else "1.5"
    arcs = "".join(_arc(x, y, k, len(colours), colour) for k, colour in enumerate(colours))
    text = 'text-anchor="middle" fill="#202124"'
    return (
        f'<g><circle cx="{x:g}" cy="{y:g}" r="{_RADIUS}" fill="{fill}" stroke="#555555" '
        f'stroke-width="{thickness}"/>{arcs}'
        f'<text x="{x:g}" y="{y + 4:g}" font-size="12" {text}>{int(active)}</text>'
        f'<text x="{x:g}" y="{y + _RADIUS + 16:g}" font-size="11" {text} '
        f'paint-order="stroke" stroke="#ffffff" stroke-width="3">{xml_text(label)}</text></g>'
    )


def _arc(x: float, y: float, k: int, count: int, colour: str) -> str:
    """Return the k-th of `count` equal arcs of the circle around (x, y)."""
    around = 2 * np.pi * _RADIUS
    length = around / count
    half = f"a{_RADIUS} {_RADIUS} 0 1 1"
    return (
        f'<path d="M{x - _RADIUS:g} {y:g}{half} {2 * _RADIUS} 0{half} {-2 * _RADIUS} 0" '
        f'fill="none" stroke="{colour}" stroke-width="4" '
        f'stroke-dasharray="{length:.2f} {around - length:.2f}" '
        f'stroke-dashoffset="{-k * length:.2f}"/>'
    )


def write_model_drawing(formulation: "Formulation", path: str | Path) -> None:
    """Write `draw_model` in the state of the best network that is found in 10 s."""
    from ..search import Limits, solve  # the picture of a network needs no solver

    if formulation.qubo.bits > MOST_BITS_DRAWN:
        raise SettingError(
            f"a picture of {formulation.qubo.bits} bits cannot be read; at most {MOST_BITS_DRAWN} "
            "are drawn: "
            "write the model to a .bqm file instead"
        )
    picture = draw_model(formulation, solve(formulation, "exact", limits=Limits(10.0)).bits)
    with replacing(path) as file:
        file.write(picture)
