"""One self-contained HTML page about a run: it works offline and asks the network for nothing."""

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

from ..foundation.files import replacing
from .drawing import head_path, line_path, thicknesses
from .layout import BOX_HEIGHT, lay_out
from .report import Bits, Outcome, Report, Value

_LONGEST_TRACE = 2000  # points; more than a screen has pixels
_SECRET = re.compile(r"key|token|secret|password|credential", re.IGNORECASE)
_ESCAPES = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}


def write_report(report: Report, path: str | Path) -> None:
    """Write the page."""
    with replacing(path) as file:
        file.write(render(report))


def render(report: Report) -> str:
    """The page as text. Only our own style and script run: the policy names their checksums and allows nothing else.

    What comes from data is one JSON block, in which no character can end the block or begin markup.
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
    """JSON in ASCII without <, > and &: other characters are escaped, U+2028 and lone surrogates among them."""
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
    """The finite points, thinned out if there are very many; the first and the last stay."""
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
    """The edges of the consensus, most frequent first, and how the network has each of them."""
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
    """The entries; what is named like a secret is not shown, whoever put it there."""
    return [(name, "(hidden)" if _SECRET.search(name) else _value(value)) for name, value in entries.items()]


def _value(value: Value) -> Value:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _number(value: float | None) -> float | None:
    """The number if it is finite: JSON has no others."""
    return value if value is not None and math.isfinite(value) else None
