"""A picture of a small QUBO, as in the paper's Figure 2: bits as circles, products as lines."""

from html import escape
from typing import NamedTuple

import numpy as np

from ..foundation.arrays import Bools
from ..foundation.errors import SettingError
from ..qubo import Formulation

MOST_BITS = 60  # more cannot be read
_RADIUS, _STEP, _GAP, _ROW, _MARGIN = 20, 84, 36, 150, 60
_COLOURS = ("#3b6fb6", "#c2571a", "#2f8f5b", "#8d4fa8", "#b0892a", "#c03f6e", "#3a8ea5", "#6b6b6b")


class _Bit(NamedTuple):
    label: str
    x: float
    y: float
    colour: str
    active: bool


def draw_model(formulation: Formulation, state: Bools | None = None) -> str:
    """An SVG of the bits (u above, r in the middle, z below) and their couplers; bits set in `state` are white."""
    check_drawable(formulation)
    bits = _placed(formulation, np.zeros(formulation.qubo.bits, np.bool_) if state is None else state)
    width = max((bit.x for bit in bits), default=0) + _MARGIN
    height = max((bit.y for bit in bits), default=0) + _MARGIN
    lines = [_line(bits, *coupler) for coupler in _couplers(formulation)]
    circles = [_circle(bit) for bit in bits]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" font-family="system-ui, sans-serif" role="img" aria-label="The bits of a QUBO">'
    )
    return "\n".join([head, '<rect width="100%" height="100%" fill="#ffffff"/>', *lines, *circles, "</svg>", ""])


def check_drawable(formulation: Formulation) -> None:
    """Raise if there are too many bits for a picture."""
    if formulation.qubo.bits > MOST_BITS:
        raise SettingError(
            f"a picture of {formulation.qubo.bits} bits cannot be read; at most {MOST_BITS} are drawn: "
            "write the model to a .bqm file instead"
        )


def _placed(formulation: Formulation, state: Bools) -> list[_Bit]:
    """The bits in rows by kind; a vertex has one colour for its u and z bits."""
    kinds = _kinds(formulation)
    rows: dict[str, list[int]] = {"u": [], "r": [], "z": []}
    for number, (kind, _) in enumerate(kinds):
        rows[kind].append(number)
    widths = {kind: _offsets([kinds[number][1] for number in row]) for kind, row in rows.items()}
    widest = max((offsets[-1] for offsets in widths.values() if offsets), default=0.0)
    labels = formulation.labels
    placed: dict[int, _Bit] = {}
    height = 0
    for kind, row in rows.items():
        if not row:
            continue
        shift = _MARGIN + (widest - widths[kind][-1]) / 2
        for number, offset in zip(row, widths[kind], strict=True):
            colour = "#555555" if kind == "r" else _COLOURS[kinds[number][1] % len(_COLOURS)]
            placed[number] = _Bit(labels[number], shift + offset, _MARGIN + height, colour, bool(state[number]))
        height += _ROW
    return [placed[number] for number in range(len(kinds))]


def _kinds(formulation: Formulation) -> list[tuple[str, int]]:
    """(kind, group) of each bit: groups of u and z bits are their vertices."""
    sizes = formulation.subsets.families.sizes
    u = [("u", int(vertex)) for vertex in np.repeat(np.arange(len(sizes)), sizes)]
    r = [("r", 0) for _ in formulation.order.pairs]
    return [*u, *r, *(("z", int(vertex)) for vertex in formulation.slack_vertices)]


def _offsets(groups: list[int]) -> list[float]:
    """Places along a row, with a gap between groups."""
    found: list[float] = []
    for place, group in enumerate(groups):
        gap = _GAP if place and group != groups[place - 1] else 0
        found.append(found[-1] + _STEP + gap if place else 0.0)
    return found


def _couplers(formulation: Formulation) -> list[tuple[int, int, float]]:
    qubo = formulation.qubo
    rows = np.repeat(np.arange(qubo.bits), np.diff(qubo.indptr))
    upper = rows < qubo.indices
    ends = zip(rows[upper].tolist(), qubo.indices[upper].tolist(), qubo.weights[upper].tolist(), strict=True)
    return list(ends)


def _line(bits: list[_Bit], first: int, second: int, weight: float) -> str:
    """A curve between two bits: straight between rows, bent inside one; dashed if the product lowers the energy."""
    a, b = bits[first], bits[second]
    bend = 0.0 if a.y != b.y else 26 + 0.16 * abs(a.x - b.x)
    dash = ' stroke-dasharray="5 4"' if weight < 0 else ""
    middle = f"{(a.x + b.x) / 2:g} {(a.y + b.y) / 2 - bend:g}"
    title = escape(f"{weight:.4g} · {a.label} · {b.label}")
    return (
        f'<path d="M{a.x:g} {a.y:g} Q{middle} {b.x:g} {b.y:g}" fill="none" stroke="#9aa0a6" stroke-width="1.4"{dash}>'
        f"<title>{title}</title></path>"
    )


def _circle(bit: _Bit) -> str:
    fill = "#ffffff" if bit.active else "#d4d7db"
    return (
        f'<g><circle cx="{bit.x:g}" cy="{bit.y:g}" r="{_RADIUS}" fill="{fill}" stroke="{bit.colour}" '
        f'stroke-width="{3 if bit.active else 1.5}"/>'
        f'<text x="{bit.x:g}" y="{bit.y + 4:g}" font-size="12" text-anchor="middle" fill="#202124">'
        f"{1 if bit.active else 0}</text>"
        f'<text x="{bit.x:g}" y="{bit.y + _RADIUS + 16:g}" font-size="11" text-anchor="middle" fill="#202124" '
        f'paint-order="stroke" stroke="#ffffff" stroke-width="3">{escape(bit.label)}</text></g>'
    )
