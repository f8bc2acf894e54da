"""The project's own format of networks: JSON that holds all that a network may have, and any names.

    {"format": "qubayes network", "version": 1, "about": {"score": -1234.5},
     "vertices": [{"name": "grass", "parents": ["rain"], "states": ["wet", "dry"], "table": [[0.8, 0.2], [0.1, 0.9]]}]}

`states` and `table` are there for every vertex or for none; a row of the table belongs to one state of the parents,
the first parent slowest.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..foundation.arrays import Floats
from ..foundation.errors import FormatError
from ..foundation.files import parse_json, read_text, shown
from .assembly import MOST_BYTES, assembled, check_axes
from .network import Network

_FORMAT, _VERSION = "qubayes network", 1


def json_text(network: Network, about: Mapping[str, Any] | None = None) -> str:
    """The network, and facts about it, as JSON with one line for each vertex."""
    head = {"format": _FORMAT, "version": _VERSION} | ({"about": dict(about)} if about else {})
    try:
        start = json.dumps(head, ensure_ascii=False, allow_nan=False)[:-1]
    except (TypeError, ValueError, RecursionError) as error:
        raise FormatError(f"what is said about the network cannot be written: {error}; give plain JSON") from error
    lines = ",\n  ".join(json.dumps(_facts(network, v), ensure_ascii=False) for v in range(network.n))
    return f'{start}, "vertices": [\n  {lines}\n]}}\n'


def _facts(network: Network, vertex: int) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "name": network.names[vertex],
        "parents": [network.names[p] for p in network.parents[vertex]],
    }
    if network.states is not None:
        facts["states"] = network.states[vertex]
    if network.tables is not None:
        table = network.tables[vertex]
        facts["table"] = table.reshape(-1, table.shape[-1]).tolist()
    return facts


def read_json(path: str | Path) -> Network:
    """The network in a .json file of ours."""
    vertices = _document(path)["vertices"]
    if not isinstance(vertices, list) or not all(map(_is_vertex, vertices)):
        raise FormatError(f"{path}: 'vertices' must be a list of objects with 'name' and a list of names, 'parents'")
    names = [vertex["name"] for vertex in vertices]
    index = {name: place for place, name in enumerate(names)}
    for vertex in vertices:
        for parent in vertex["parents"]:
            if parent not in index:
                raise FormatError(f"{path}: {parent!r}, a parent of {vertex['name']!r}, is no vertex; add it")
    parents = [[index[parent] for parent in vertex["parents"]] for vertex in vertices]
    states = [vertex["states"] for vertex in vertices] if _all_have(path, vertices, "states") else None
    graph = assembled(path, names, parents, states)
    if not _all_have(path, vertices, "table"):
        return graph
    if graph.states is None:
        raise FormatError(f"{path}: there are tables but no 'states'; give both or neither")
    arities = graph.arities.tolist()
    tables = [
        _table(path, v, [arities[p] for p in its], arities[place])
        for place, (v, its) in enumerate(zip(vertices, parents, strict=True))
    ]
    return assembled(path, names, parents, states, tables)


def read_about(path: str | Path) -> dict[str, Any]:
    """The facts about the network that a .json file keeps beside it; {} if there are none."""
    about = _document(path).get("about", {})
    if not isinstance(about, dict):
        raise FormatError(f"{path}: 'about' must be an object")
    return about


def _document(path: str | Path) -> dict[str, Any]:
    text = read_text(path, MOST_BYTES)
    try:
        value = parse_json(text)
    except FormatError as error:
        raise FormatError(f"{path} is {error}") from None
    if not isinstance(value, dict) or value.get("format") != _FORMAT or "vertices" not in value:
        raise FormatError(f"{path} is no network; it must hold an object with 'format': '{_FORMAT}' and 'vertices'")
    if value.get("version") != _VERSION:
        raise FormatError(f"{path} has version {shown(value.get('version'))}; this program reads {_VERSION}")
    return value


def _is_vertex(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and _is_name(value.get("name"))
        and _are_names(value.get("parents"))
        and _are_names(value.get("states", []))
    )


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_name, value))


def _is_name(value: Any) -> bool:
    """Whether it is text; JSON can spell halves of characters, which are none and cannot be printed."""
    return isinstance(value, str) and not any("\ud800" <= sign <= "\udfff" for sign in value)


def _all_have(path: str | Path, vertices: list[dict[str, Any]], key: str) -> bool:
    having = sum(key in vertex for vertex in vertices)
    if having not in (0, len(vertices)):
        raise FormatError(f"{path}: {having} of {len(vertices)} vertices have {key!r}; give it for all or for none")
    return having > 0


def _table(path: str | Path, vertex: dict[str, Any], arities: list[int], arity: int) -> Floats:
    """The rows of the table with an axis for each parent."""
    check_axes(path, vertex["name"], len(arities) + 1)
    rows, wanted = vertex["table"], math.prod(arities)
    fine = isinstance(rows, list) and len(rows) == wanted and all(_is_row(row, arity) for row in rows)
    if not fine:
        raise FormatError(f"{path}: the table of {vertex['name']!r} must have {wanted} rows of {arity} probabilities")
    return np.array(rows, dtype=np.float64).reshape(*arities, arity)


def _is_row(row: Any, arity: int) -> bool:
    return isinstance(row, list) and len(row) == arity and all(map(_is_probability, row))


def _is_probability(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= 1.1  # Network says what is wrong with the sum
