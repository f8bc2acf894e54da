"""The project's own format of networks (.json).

It holds everything that a network may have, and any names:

    {"format": "qubayes network", "version": 1, "about": {"score": -1234.5},
     "vertices": [{"name": "grass", "parents": ["rain"], "states": ["wet", "dry"],
                   "table": [[0.8, 0.2], [0.1, 0.9]]}]}

`states` and parameters are there for every vertex or for none; a row of the table belongs to one
state of the parents, the first parent slowest. A continuous variable has no states, and weights of
its parents instead of a table:

    {"format": "qubayes network", "version": 1,
     "vertices": [{"name": "rain", "parents": [], "states": [],
                   "linear": {"intercept": 4.0, "weights": [], "deviation": 0.5}}]}

With discrete parents it has a list of these, `by_state`: one for each combination of the states of
its discrete parents, the first parent slowest. Weights are those of its continuous parents.

A file with the keys of pgmpy's JSON (`pgmpy_files`) is read as such."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..foundation.arrays import Floats
from ..foundation.errors import FormatError, QubayesError
from ..foundation.files import parse_json, read_text, shown
from .by_state import ByState
from .linear import Linear
from .network import Network, Parameters
from .other_formats import HALF_CHARACTER
from .pgmpy_files import is_of_pgmpy, network_of_pgmpy

# Of a file of any format, unpacked. The largest network of the public repositories has 8 MB and
# 1041 vertices; a hostile file of this size costs up to 25 times as much memory (empty JSON lists).
MOST_NETWORK_BYTES = 1 << 26
_FORMAT = "qubayes network"
_VERSION = 1


def json_text(network: Network, about: Mapping[str, Any] | None = None) -> str:
    """Return the network, and facts about it, as JSON with one line for each vertex."""
    head: dict[str, Any] = {"format": _FORMAT, "version": _VERSION}
    if about:
        head["about"] = dict(about)
    try:
        start = json.dumps(head, ensure_ascii=False, allow_nan=False)[:-1]
    except (TypeError, ValueError, RecursionError) as error:
        raise FormatError(
            f"the facts about the network cannot be written: {error}; give plain JSON"
        ) from error
    lines = []
    for vertex, (name, parents) in enumerate(network.parent_names().items()):
        facts: dict[str, Any] = {"name": name, "parents": parents}
        if network.states is not None:
            facts["states"] = network.states[vertex]
        table = None if network.tables is None else network.tables[vertex]
        if isinstance(table, Linear):
            facts["linear"] = asdict(table)
        elif isinstance(table, ByState):
            facts["by_state"] = [asdict(linear) for linear in table]
        elif table is not None:
            facts["table"] = table.reshape(-1, table.shape[-1]).tolist()
        lines.append(json.dumps(facts, ensure_ascii=False))
    vertices = ",\n  ".join(lines)
    return f'{start}, "vertices": [\n  {vertices}\n]}}\n'


def parse_json_network(text: str) -> Network:
    """Return the network of a JSON file."""
    value = parse_json(text)
    if is_of_pgmpy(value):
        return network_of_pgmpy(value)
    vertices = _checked_document(value)["vertices"]
    if not isinstance(vertices, list) or not all(map(_is_vertex, vertices)):
        raise FormatError(
            "'vertices' must be a list of objects with 'name' and a list of names, 'parents'"
        )
    has_states = _in_all_or_none(vertices, "states")
    has_parameters = _in_all_or_none(vertices, "table", "linear", "by_state")
    names = tuple(vertex["name"] for vertex in vertices)
    states = tuple(tuple(vertex["states"]) for vertex in vertices) if has_states else None
    graph = Network(names, _parents_by_index(vertices), states)
    if not has_parameters:
        return graph
    if not has_states:
        raise FormatError("there are tables but no 'states'; give both or neither")
    graph.check_parents_of_states()
    tables = [_json_parameters(graph, v, vertex) for v, vertex in enumerate(vertices)]
    return replace(graph, tables=tuple(tables))


def _in_all_or_none(vertices: Sequence[Mapping[str, Any]], *keys: str) -> bool:
    """Return True if all vertices have one of the keys, False if none has; raise otherwise."""
    having = sum(any(key in vertex for key in keys) for vertex in vertices)
    if having not in (0, len(vertices)):
        raise FormatError(
            f"{having} of {len(vertices)} vertices have {' or '.join(map(repr, keys))}; all must"
            " have one, or none"
        )
    return having > 0


def _json_parameters(graph: Network, vertex: int, facts: Mapping[str, Any]) -> Parameters:
    """Return the parameters of a vertex: a table, or for a continuous one linear ones."""
    name = graph.names[vertex]
    discrete, _ = graph.split_parents(vertex)
    key = "table"
    if graph.states is not None and not graph.states[vertex]:
        key = "by_state" if discrete else "linear"
    if key not in facts:
        raise FormatError(f"{name!r} has no {key!r}, which its states and parents ask for; give it")
    if key == "table":
        return _json_table(graph, vertex, facts[key])
    if key == "linear":
        return _json_linear(name, facts[key])
    return _json_by_state(graph, vertex, facts[key])


def _parents_by_index(vertices: Sequence[Mapping[str, Any]]) -> tuple[tuple[int, ...], ...]:
    """Return the indices of the parents of each vertex."""
    index = {vertex["name"]: place for place, vertex in enumerate(vertices)}
    for vertex in vertices:
        if unknown := [parent for parent in vertex["parents"] if parent not in index]:
            raise FormatError(
                f"{unknown[0]!r}, a parent of {vertex['name']!r}, is not a vertex; add it"
            )
    return tuple(tuple(index[parent] for parent in vertex["parents"]) for vertex in vertices)


def _json_table(graph: Network, vertex: int, rows: Any) -> Floats:
    """Return the rows in the shape of the vertex's table."""
    *arities, arity = shape = graph.table_shape(vertex)
    count = math.prod(arities)
    fine = isinstance(rows, list) and len(rows) == count
    if not fine or not all(_is_row(row, arity) for row in rows):
        raise FormatError(
            f"the table of {graph.names[vertex]!r} must have {count} rows of {arity} probabilities"
        )
    return np.array(rows, dtype=np.float64).reshape(shape)


def _json_linear(name: str, facts: Any) -> Linear:
    """Return the intercept, the weights and the deviation of a continuous vertex."""
    if isinstance(facts, dict) and facts.keys() == {"intercept", "weights", "deviation"}:
        weights = facts["weights"]
        if isinstance(weights, list) and all(
            type(number) in (int, float)
            for number in (facts["intercept"], *weights, facts["deviation"])
        ):
            try:
                return Linear(**facts)
            except (QubayesError, OverflowError) as error:
                raise FormatError(f"'linear' of {name!r}: {error}") from None
    raise FormatError(
        f"'linear' of {name!r} must hold the numbers 'intercept' and 'deviation', and 'weights', a"
        " list of numbers"
    )


def _json_by_state(graph: Network, vertex: int, rows: Any) -> ByState:
    """Return the parameters for each combination of the discrete parents' states."""
    name = graph.names[vertex]
    discrete, continuous = graph.split_parents(vertex)
    arities = [int(graph.arities[parent]) for parent in discrete]
    if not isinstance(rows, list) or len(rows) != math.prod(arities):
        raise FormatError(f"'by_state' of {name!r} must have {math.prod(arities)} rows")
    linears = [_json_linear(name, row) for row in rows]
    for linear in linears:
        if len(linear.weights) != len(continuous):
            raise FormatError(
                f"'by_state' of {name!r} has {len(linear.weights)} weights in a row; give one for"
                f" each of its {len(continuous)} continuous parents"
            )
    return ByState.of(linears, arities)


def _is_row(row: Any, arity: int) -> bool:
    """Return True for a list of probabilities of this length."""
    if not isinstance(row, list) or len(row) != arity:
        return False
    return all(type(p) in (int, float) and 0 <= p <= 1.1 for p in row)


def _checked_document(value: Any) -> dict[str, Any]:
    """Return a JSON document that is a network of ours; raise if it is not."""
    if not isinstance(value, dict) or value.get("format") != _FORMAT or "vertices" not in value:
        raise FormatError(
            f"not a network; it must hold an object with 'format': '{_FORMAT}' and 'vertices'"
        )
    if value.get("version") != _VERSION:
        raise FormatError(
            f"it has version {shown(value.get('version'))}; this program reads {_VERSION}"
        )
    return value


def _is_vertex(value: Any) -> bool:
    """Return True if name, parents and states are text.

    A lone surrogate, which JSON can hold, is not text."""
    if not isinstance(value, dict) or "name" not in value:
        return False
    parents = value.get("parents")
    states = value.get("states", [])
    if not isinstance(parents, list) or not isinstance(states, list):
        return False
    texts = (value["name"], *parents, *states)
    return all(isinstance(text, str) and not HALF_CHARACTER.search(text) for text in texts)


def read_about(path: str | Path) -> dict[str, Any]:
    """Return the facts that a .json file keeps beside the network; {} if there are none."""
    try:
        value = parse_json(read_text(path, MOST_NETWORK_BYTES))
        about = {} if is_of_pgmpy(value) else _checked_document(value).get("about", {})
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from None
    if not isinstance(about, dict):
        raise FormatError(f"{path}: 'about' must be an object")
    return about
