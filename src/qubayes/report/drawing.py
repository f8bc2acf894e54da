"""Pictures as SVG and PNG: a network; the bits of a small QUBO."""

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, cycle, pairwise
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

import numpy as np

from ..foundation.arrays import Bools
from ..foundation.environment import how_to_install
from ..foundation.errors import MissingPackageError, SettingError
from ..foundation.files import replacing
from ..foundation.graph import find_cycle
from ..network import Network
from .layers import Edge
from .layout import BOX_HEIGHT, FONT_FAMILY, FONT_SIZE, Layout, Points, lay_out

if TYPE_CHECKING:  # the picture of a network needs no QUBO
    from ..qubo import Formulation

_ARROW = 9.0
_THINNEST, _THICKEST, _PLAIN = 1.2, 6.0, 1.6
_SCALE = 2.0  # pixels of a PNG per unit of the picture, as on a screen with high resolution
_LARGEST_SIDE = 16_384  # pixels; more fails in most viewers

_LETTER = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20">'
    f'<text x="2" y="16" font-family="{FONT_FAMILY}">H</text></svg>'
)
_STYLE = f"""
.edge path {{ fill: none; stroke: #8a94a6; stroke-linecap: butt }}
.edge .head {{ fill: #8a94a6; stroke: none }}
.node rect {{ fill: #f4f7fc; stroke: #4a6fa5; stroke-width: 1.2 }}
.node text {{ fill: #16202e; font: {FONT_SIZE:g}px {FONT_FAMILY}; text-anchor: middle }}
"""


def thicknesses(edges: Iterable[Edge], strengths: Mapping[Edge, float]) -> dict[Edge, float]:
    """Return the width of each edge's line: it grows with the square root of its strength."""
    strongest = max((s for s in strengths.values() if np.isfinite(s)), default=0.0) or 1.0
    # a required edge has 1
    share = {edge: min(max(s / strongest, 0.0), 1.0) for edge, s in strengths.items()}
    wide = {
        edge: round(_THINNEST + (_THICKEST - _THINNEST) * float(np.sqrt(s)), 2)
        for edge, s in share.items()
    }
    return {edge: wide.get(edge, _PLAIN) for edge in edges}


def line_path(points: Points, *, directed: bool = True) -> str:
    """Return the SVG path of a curve, vertical at every point; it ends where the arrow head begins."""
    (x, y), (last_x, last_y) = points[0], points[-1]
    commands = [f"M{x:g} {y:g}"]
    end = last_x, last_y - (_ARROW - 1 if directed else 0)
    for (x0, y0), (x1, y1) in pairwise((*points[:-1], end)):
        middle = round((y0 + y1) / 2, 1)
        commands.append(
            f"V{y1:g}" if x0 == x1 else f"C{x0:g} {middle:g} {x1:g} {middle:g} {x1:g} {y1:g}"
        )
    return "".join(commands)


def head_path(points: Points, thickness: float) -> str:
    """Return the SVG path of the arrow head, which points down at the child's box."""
    x, y = points[-1]
    half = 3.0 + 0.5 * thickness
    return f"M{x - half:g} {y - _ARROW:g}H{x + half:g}L{x:g} {y:g}Z"


def draw(
    network: Network,
    strengths: Mapping[Edge, float] | None = None,
    undirected: Container[Edge] = frozenset(),
) -> str:
    """Return the picture of the network as an SVG document; strong edges have thick lines.

    `undirected`: edges (parent, child) to draw without an arrow head, such as those that the data
    cannot direct."""
    layout, strengths = lay_out(network), strengths or {}
    lines = thicknesses(layout.curves, strengths)
    size = f'width="{layout.width:.0f}" height="{layout.height:.0f}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {layout.width:.1f} {layout.height:.1f}">',
        f"<title>{_text(network.name or 'Bayesian network')}</title>",
        f"<style>{_STYLE}</style>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    for edge, points in layout.curves.items():
        directed = edge not in undirected
        title = f"{network.names[edge[0]]} {'→' if directed else '—'} {network.names[edge[1]]}"
        if edge in strengths:
            title += f": {strengths[edge]:,.2f}"
        line = f'<path d="{line_path(points, directed=directed)}" stroke-width="{lines[edge]:g}"/>'
        head = f'<path class="head" d="{head_path(points, lines[edge])}"/>' if directed else ""
        parts.append(f'<g class="edge"><title>{_text(title)}</title>{line}{head}</g>')
    for vertex, (name, shown) in enumerate(zip(network.names, layout.labels, strict=True)):
        x, y, width = (float(values[vertex]) for values in (layout.x, layout.y, layout.widths))
        corner = f'x="{x - width / 2:.1f}" y="{y - BOX_HEIGHT / 2:.1f}"'
        box = f'<rect {corner} width="{width:.1f}" height="{BOX_HEIGHT:g}" rx="7"/>'
        label = f'<text x="{x:.1f}" y="{y + 0.35 * FONT_SIZE:.1f}">{_text(shown)}</text>'
        parts.append(f'<g class="node"><title>{_text(name)}</title>{box}{label}</g>')
    return "\n".join([*parts, "</svg>\n"])


def _text(text: str) -> str:
    """Return the text as XML; characters that XML does not allow become U+FFFD."""
    return escape("".join(c if c.isprintable() or c in " \t\n" else "\ufffd" for c in text))


def png(picture: str) -> bytes:
    """Return the SVG document as PNG at twice its size, or less if a side would be too long."""
    try:
        from resvg_py import svg_to_bytes
    except ImportError:
        raise MissingPackageError(
            f"PNG needs the package resvg-py; {how_to_install('png')}, or give a name that ends in .svg"
        ) from None
    if bytes(svg_to_bytes(svg_string=_LETTER)) == bytes(
        svg_to_bytes(svg_string=_LETTER.replace("H", " "))
    ):
        raise MissingPackageError(
            "no font is installed, so labels would be blank; install one (Debian: fonts-dejavu-core), or give .svg"
        )
    width, height = (
        float(number) for number in re.findall(r'(?:width|height)="(\d+)"', picture)[:2]
    )
    scale = min(_SCALE, _LARGEST_SIDE / max(width, height))
    return bytes(svg_to_bytes(svg_string=picture, width=max(1, round(width * scale))))


# The picture of a QUBO, as in the paper's Figure 2.

MOST_BITS = 60  # more cannot be read
_RADIUS, _STEP, _GAP, _ROW, _BORDER = 20, 84, 36, 150, 60
Point = tuple[float, float]
_COLOURS = ("#3b6fb6", "#c2571a", "#2f8f5b", "#8d4fa8", "#b0892a", "#c03f6e", "#3a8ea5", "#6b6b6b")


def draw_model(formulation: "Formulation", state: Bools | None = None) -> str:
    """Return an SVG of the bits (u above, r in the middle, z below) and their couplers; bits set in `state` are white.

    A coupler that lowers the energy is dashed. Beside the bits is the network of the state. Each of
    its edges has a colour, which the subset bit that holds it, its order bit and their coupler have
    as well."""
    from ..machines.qubo import upper_triangle  # the picture of a network needs no QUBO

    labels, families = formulation.labels, formulation.subsets.families
    vertices = np.repeat(np.arange(families.n), families.sizes).tolist()  # of u bits
    rows = [
        row
        for row in (
            vertices,
            [-1] * len(formulation.order.pairs),
            formulation.slack_vertices.tolist(),
        )
        if row
    ]
    steps = [
        [_STEP + _GAP * (vertex != before) for before, vertex in pairwise(row)] for row in rows
    ]
    network = None if state is None else _network_of(formulation, state)
    layout = None if network is None else lay_out(network)
    colours = dict(zip(sorted(layout.curves), cycle(_COLOURS), strict=False)) if layout else {}
    left, widest = _BORDER + (layout.width if layout else 0.0), max(map(sum, steps), default=0)
    places = [
        (left + (widest - sum(step)) / 2 + offset, _BORDER + k * _ROW)
        for k, step in enumerate(steps)
        for offset in accumulate(step, initial=0)
    ]
    width, height = (
        max((place[axis] for place in places), default=0.0) + _BORDER for axis in (0, 1)
    )
    height = max(height, layout.height if layout else 0.0)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" font-family="system-ui, sans-serif" role="img" aria-label="The bits of a QUBO">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        *(_coloured_network(layout, colours, (height - layout.height) / 2) if layout else ()),
    ]
    states = [False] * len(labels) if state is None else state.tolist()
    edges = [
        *([(p, v) for p in families.set_at(bit) if states[bit]] for bit, v in enumerate(vertices)),
        *([(a, b), (b, a)] for a, b in formulation.order.pairs.tolist()),
        *([] for _ in formulation.slack_vertices),
    ]
    # edges of the network that each bit is about
    held = [[edge for edge in own if edge in colours] for own in edges]
    for first, second, weight in zip(
        *(each.tolist() for each in upper_triangle(formulation.qubo)), strict=True
    ):
        title = f"{weight:.4g} · {labels[first]} · {labels[second]}"
        colour = next((colours[edge] for edge in held[first] if edge in held[second]), None)
        parts.append(_coupler(places[first], places[second], title, colour, dashed=weight < 0))
    for place, label, own, active in zip(places, labels, held, states, strict=True):
        parts.append(_bit(*place, label, [colours[edge] for edge in own], active))
    return "\n".join([*parts, "</svg>", ""])


def _network_of(formulation: "Formulation", state: Bools) -> Network | None:
    """Return the network of the state; None if it has a cycle."""
    from ..qubo.decoding import closure_sets  # the picture of a network needs no QUBO

    candidates = formulation.candidates
    parents = candidates.families.sets_at(closure_sets(formulation, state))
    return None if find_cycle(parents) else Network(candidates.names, parents)


def _coloured_network(layout: Layout, colours: Mapping[Edge, str], top: float) -> Iterator[str]:
    """Yield the boxes and edges of a network, each edge in its colour."""
    yield f'<g transform="translate(0 {top:g})">'
    for edge, points in layout.curves.items():
        colour = colours[edge]
        yield f'<path d="{line_path(points)}" fill="none" stroke="{colour}" stroke-width="3"/>'
        yield f'<path d="{head_path(points, 3.0)}" fill="{colour}"/>'
    boxes = zip(
        layout.labels, layout.x.tolist(), layout.y.tolist(), layout.widths.tolist(), strict=True
    )
    for label, x, y, width in boxes:
        yield (
            f'<rect x="{x - width / 2:.1f}" y="{y - BOX_HEIGHT / 2:.1f}" width="{width:.1f}" height="{BOX_HEIGHT:g}" '
            f'rx="7" fill="#ffffff" stroke="#555555"/><text x="{x:.1f}" y="{y + 0.35 * FONT_SIZE:.1f}" '
            f'font-size="{FONT_SIZE:g}" text-anchor="middle" fill="#202124">{_text(label)}</text>'
        )
    yield "</g>"


def _coupler(start: Point, end: Point, title: str, colour: str | None, *, dashed: bool) -> str:
    """Return the line between two bits: straight between rows, bent inside one."""
    (x0, y0), (x1, y1) = start, end
    bend = 0.0 if y0 != y1 else 26 + 0.16 * abs(x0 - x1)
    line = (
        f'stroke="{colour}" stroke-width="3"' if colour else 'stroke="#9aa0a6" stroke-width="1.4"'
    )
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    return (
        f'<path d="M{x0:g} {y0:g} Q{(x0 + x1) / 2:g} {(y0 + y1) / 2 - bend:g} {x1:g} {y1:g}" fill="none" '
        f"{line}{dash}><title>{_text(title)}</title></path>"
    )


def _bit(x: float, y: float, label: str, colours: Sequence[str], active: bool) -> str:
    """Return a bit: a circle, its outline in arcs of the colours, its value and its label."""
    fill, thickness = ("#ffffff", "3") if active else ("#d4d7db", "1.5")
    around = 2 * np.pi * _RADIUS
    length = around / max(len(colours), 1)
    arcs = "".join(
        f'<path d="M{x - _RADIUS:g} {y:g}a{_RADIUS} {_RADIUS} 0 1 1 {2 * _RADIUS} 0a{_RADIUS} {_RADIUS} 0 1 1 '
        f'{-2 * _RADIUS} 0" fill="none" stroke="{colour}" stroke-width="4" '
        f'stroke-dasharray="{length:.2f} {around - length:.2f}" stroke-dashoffset="{-k * length:.2f}"/>'
        for k, colour in enumerate(colours)
    )
    return (
        f'<g><circle cx="{x:g}" cy="{y:g}" r="{_RADIUS}" fill="{fill}" stroke="#555555" '
        f'stroke-width="{thickness}"/>{arcs}'
        f'<text x="{x:g}" y="{y + 4:g}" font-size="12" text-anchor="middle" fill="#202124">{int(active)}</text>'
        f'<text x="{x:g}" y="{y + _RADIUS + 16:g}" font-size="11" text-anchor="middle" fill="#202124" '
        f'paint-order="stroke" stroke="#ffffff" stroke-width="3">{_text(label)}</text></g>'
    )


def write_model_drawing(formulation: "Formulation", path: str | Path) -> None:
    """Write `draw_model` in the state of the best network that is found in 10 s."""
    from ..search import Limits, solve  # the picture of a network needs no solver

    if formulation.qubo.bits > MOST_BITS:
        raise SettingError(
            f"a picture of {formulation.qubo.bits} bits cannot be read; at most {MOST_BITS} are drawn: "
            "write the model to a .bqm file instead"
        )
    picture = draw_model(formulation, solve(formulation, "exact", limits=Limits(10.0)).bits)
    with replacing(path) as file:
        file.write(picture)
