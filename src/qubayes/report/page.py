"""Self-contained HTML page about a run; it works offline and loads nothing."""

import base64
import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..foundation.errors import FormatError
from ..foundation.files import ending, replacing
from ..network import Network
from .drawing import draw, head_path, line_path, png, thicknesses
from .layers import Edge
from .layout import BOX_HEIGHT, lay_out
from .report import Bits, Outcome, Report, Value

_LONGEST_TRACE = 2000  # points; more than a screen has pixels
_SECRET = re.compile(r"key|token|secret|password|credential", re.IGNORECASE)
_ESCAPES = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}


def write_report(report: Report, path: str | Path) -> None:
    """Write the page."""
    with replacing(path) as file:
        file.write(render(report))


def write_drawing(
    network: Network,
    path: str | Path,
    strengths: Mapping[Edge, float] | None = None,
    undirected: frozenset[Edge] = frozenset(),
) -> None:
    """Write the picture; the ending chooses the format: .svg, .png, or .html for a page to pan, zoom and search."""
    kind = ending(path)
    if kind not in (".svg", ".png", ".html"):
        raise FormatError(f"{Path(path).name} ends in none of .svg, .png, .html; give one of these endings")
    if kind == ".html":
        title = network.name or "Bayesian network"
        write_report(Report(network, title, strengths=strengths or {}, undirected=undirected), path)
        return
    picture = draw(network, strengths, undirected)
    content = picture.encode() if kind == ".svg" else png(picture)
    with replacing(path, binary=True) as file:
        file.write(content)


def render(report: Report) -> str:
    """Return the page as text. The content policy allows its own style and script by their checksums and nothing else.

    All data is in one JSON block, in which no character can end the block or begin markup.
    """
    style, script = _own("page.css"), _own("page.js")
    policy = (
        f"default-src 'none'; script-src '{_checksum(script)}'; style-src '{_checksum(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    parts = {"policy": policy, "style": style, "data": _json(_content(report)), "script": script}
    # One pass: a placeholder inside what is filled in stays as it is.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _own("page.html"))


def _own(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


def _checksum(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _json(value: Any) -> str:
    """Return JSON in ASCII without <, > and &; U+2028 and lone surrogates are escaped too."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).translate(_ESCAPES)


def _content(report: Report) -> dict[str, Any]:
    return {
        "title": report.title,
        "outcome": _outcome(report.outcome),
        "network": _network(report),
        "trace": _trace(report.trace),
        "bits": _both_bits(report),
        "vertices": [{k: _number(v) for k, v in asdict(facts).items()} for facts in report.vertices] or None,
        "consensus": _consensus(report),
        "provenance": [[name, _shown(entries)] for name, entries in report.provenance.items()],
    }


def _outcome(outcome: Outcome | None) -> dict[str, Any] | None:
    if outcome is None:
        return None
    return {
        "score": _number(outcome.score),
        "scoreName": outcome.score_name,
        "emptyScore": _number(outcome.empty_score),
        "bound": _number(outcome.bound),
        "gap": _number(outcome.gap),
        "status": outcome.status,
        "solver": outcome.solver,
        "seconds": _number(outcome.seconds),
    }


def _network(report: Report) -> dict[str, Any]:
    network, layout = report.network, lay_out(report.network)
    lines = thicknesses(layout.curves, report.strengths)
    places = zip(
        network.names, layout.labels, layout.x.tolist(), layout.y.tolist(), layout.widths.tolist(), strict=True
    )
    return {
        "width": round(layout.width, 1),
        "height": round(layout.height, 1),
        "box": BOX_HEIGHT,
        "nodes": [
            {"name": name, "label": label, "x": round(x, 1), "y": round(y, 1), "width": round(width, 1)}
            for name, label, x, y, width in places
        ],
        "edges": [
            {
                "parent": parent,
                "child": child,
                "line": line_path(points, directed=(parent, child) not in report.undirected),
                "head": None if (parent, child) in report.undirected else head_path(points, lines[parent, child]),
                "thickness": lines[parent, child],
                "strength": _strength(report.strengths.get((parent, child))),
                "confidence": _number(report.confidences.get((parent, child))),
            }
            for (parent, child), points in layout.curves.items()
        ],
    }


def _strength(strength: float | None) -> float | str | None:
    return "required" if strength == math.inf else _number(strength)


def _trace(trace: tuple[tuple[float, float], ...]) -> list[tuple[float, float]]:
    """Return the finite points, at most _LONGEST_TRACE of them with the first and the last."""
    points = [(float(seconds), float(score)) for seconds, score in trace if math.isfinite(seconds + score)]
    step = max(1, math.ceil(len(points) / _LONGEST_TRACE))
    return points[:-1:step] + points[-1:]


def _both_bits(report: Report) -> dict[str, Any] | None:
    if report.bits is None and report.paper_bits is None:
        return None
    return {"ours": _bits(report.bits), "paper": _bits(report.paper_bits)}


def _bits(bits: Bits | None) -> dict[str, int] | None:
    return None if bits is None else {"u": bits.u, "r": bits.r, "z": bits.z, "total": bits.total}


def _consensus(report: Report) -> dict[str, Any] | None:
    """Return the edges of the consensus, most frequent first, with their state in the network."""
    if report.consensus is None:
        return None
    found = sorted(report.consensus.frequencies.items(), key=lambda item: (-item[1], item[0]))
    return {
        "samples": report.consensus.samples,
        "edges": [
            {"parent": parent, "child": child, "frequency": share, "learned": _learned(report, parent, child)}
            for (parent, child), share in found
        ],
    }


def _learned(report: Report, parent: int, child: int) -> str:
    if parent in report.network.parents[child]:
        return "same"
    return "turned" if child in report.network.parents[parent] else "absent"


def _shown(entries: Mapping[str, Value]) -> list[tuple[str, Value]]:
    """Return the entries; values whose names look like secrets are hidden."""
    return [(name, "(hidden)" if _SECRET.search(name) else _value(value)) for name, value in entries.items()]


def _value(value: Value) -> Value:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _number(value: float | None) -> float | None:
    """Return the number if it is finite, else None: JSON has no infinities."""
    return value if value is not None and math.isfinite(value) else None
