"""Drawings of networks as SVG and PNG files."""

import re
from collections.abc import Container, Iterable, Mapping
from html import escape
from itertools import pairwise

import numpy as np

from ..foundation.environment import how_to_install
from ..foundation.errors import MissingPackageError
from ..network import Network
from .layers import Edge
from .layout import BOX_HEIGHT, FONT_FAMILY, FONT_SIZE, Points, lay_out

_ARROW = 9.0
_THINNEST = 1.2  # widths of lines
_THICKEST = 6.0
_PLAIN = 1.6  # without a strength
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
    """Return the SVG path of a curve, vertical at every point.

    It ends where the arrow head begins."""
    x, y = points[0]
    last_x, last_y = points[-1]
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
    layout = lay_out(network)
    strengths = strengths or {}
    widths = thicknesses(layout.curves, strengths)
    size = f'width="{layout.width:.0f}" height="{layout.height:.0f}"'
    box = f"0 0 {layout.width:.1f} {layout.height:.1f}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="{box}">',
        f"<title>{xml_text(network.name or 'Bayesian network')}</title>",
        f"<style>{_STYLE}</style>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    for edge, points in layout.curves.items():
        parent, child = (network.names[vertex] for vertex in edge)
        directed = edge not in undirected
        title = f"{parent} {'→' if directed else '—'} {child}"
        if edge in strengths:
            title += f": {strengths[edge]:,.2f}"
        parts.append(_edge(points, widths[edge], title, directed=directed))
    boxes = zip(layout.x.tolist(), layout.y.tolist(), layout.widths.tolist(), strict=True)
    for name, label, place in zip(network.names, layout.labels, boxes, strict=True):
        parts.append(_node(name, label, *place))
    return "\n".join([*parts, "</svg>\n"])


def _edge(points: Points, width: float, title: str, *, directed: bool) -> str:
    """Return the line of an edge with its title, and its arrow head if it is directed."""
    line = f'<path d="{line_path(points, directed=directed)}" stroke-width="{width:g}"/>'
    head = f'<path class="head" d="{head_path(points, width)}"/>' if directed else ""
    return f'<g class="edge"><title>{xml_text(title)}</title>{line}{head}</g>'


def _node(name: str, label: str, x: float, y: float, width: float) -> str:
    """Return the box of a vertex, its label and its name as the title."""
    corner = f'x="{x - width / 2:.1f}" y="{y - BOX_HEIGHT / 2:.1f}"'
    box = f'<rect {corner} width="{width:.1f}" height="{BOX_HEIGHT:g}" rx="7"/>'
    text = f'<text x="{x:.1f}" y="{y + 0.35 * FONT_SIZE:.1f}">{xml_text(label)}</text>'
    return f'<g class="node"><title>{xml_text(name)}</title>{box}{text}</g>'


def xml_text(text: str) -> str:
    """Return the text as XML; characters that XML does not allow become U+FFFD."""
    known = "".join(c if c.isprintable() or c in " \t\n" else "\ufffd" for c in text)
    return escape(known, quote=False)  # that of xml.sax would import the clients of HTTP


def png(picture: str) -> bytes:
    """Return the SVG document as PNG at twice its size, or less if a side would be too long."""
    try:
        from resvg_py import svg_to_bytes
    except ImportError:
        raise MissingPackageError(
            f"PNG needs the package resvg-py; {how_to_install('png')}, or give a name that ends in "
            ".svg"
        ) from None
    letter = bytes(svg_to_bytes(svg_string=_LETTER))
    blank = bytes(svg_to_bytes(svg_string=_LETTER.replace("H", " ")))
    if letter == blank:
        raise MissingPackageError(
            "no font is installed, so labels would be blank; "
            "install one (Debian: fonts-dejavu-core), or give .svg"
        )
    sizes = re.findall(r'(?:width|height)="(\d+)"', picture)[:2]
    width, height = (float(size) for size in sizes)
    scale = min(_SCALE, _LARGEST_SIDE / max(width, height))
    return bytes(svg_to_bytes(svg_string=picture, width=max(1, round(width * scale))))
