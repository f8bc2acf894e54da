"""Network files: one table of formats, and the project's own format; networks of networkx, pgmpy and pyAgrum.

docs/networks.md says what each format can hold. To add one, write `parse(content) -> Network` and
`text(network) -> str`, and add a line to `_FORMATS`. Parsers raise errors without the path, which
`read_network` puts before them.

The project's own format (.json) holds everything that a network may have, and any names:

    {"format": "qubayes network", "version": 1, "about": {"score": -1234.5},
     "vertices": [{"name": "grass", "parents": ["rain"], "states": ["wet", "dry"],
                   "table": [[0.8, 0.2], [0.1, 0.9]]}]}

`states` and `table` are there for every vertex or for none; a row of the table belongs to one state
of the parents, the first parent slowest."""

import gzip
import json
import logging
import math
import re
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..data import Dataset
from ..foundation.environment import optional
from ..foundation.errors import FormatError, MissingPackageError, QubayesError, some
from ..foundation.files import ending, parse_json, read_bytes, read_text, replacing, shown
from .bif import bif_text, parse_bif
from .equivalence import cpdag
from .network import Edge, Network
from .other_formats import (
    MODELSTRING_FORBIDDEN,
    adjacency_text,
    dot_text,
    from_modelstring,
    graphml_text,
    modelstring_text,
    parse_adjacency,
    parse_dot,
    parse_graphml,
    parse_xmlbif,
    xmlbif_text,
)

if TYPE_CHECKING:
    import networkx as nx

log = logging.getLogger("qubayes")

# Unpacked, and for vertices. The largest network of the public repositories has 8 MB and 1041
# vertices; a hostile file of this size costs up to 25 times as much memory (empty JSON lists).
MOST_BYTES = 1 << 26
MOST_VERTICES = 100_000

_FORMAT, _VERSION = "qubayes network", 1


def json_text(network: Network, about: Mapping[str, Any] | None = None) -> str:
    """Return the network, and facts about it, as JSON with one line for each vertex."""
    head = {"format": _FORMAT, "version": _VERSION} | ({"about": dict(about)} if about else {})
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
        if network.tables is not None:
            table = network.tables[vertex]
            facts["table"] = table.reshape(-1, table.shape[-1]).tolist()
        lines.append(json.dumps(facts, ensure_ascii=False))
    vertices = ",\n  ".join(lines)
    return f'{start}, "vertices": [\n  {vertices}\n]}}\n'


def parse_json_network(text: str) -> Network:
    """Return the network of a JSON file."""
    vertices = _document(text)["vertices"]
    if not isinstance(vertices, list) or not all(map(_is_vertex, vertices)):
        raise FormatError(
            "'vertices' must be a list of objects with 'name' and a list of names, 'parents'"
        )
    for key in ("states", "table"):
        having = sum(key in vertex for vertex in vertices)
        if having not in (0, len(vertices)):
            raise FormatError(
                f"{having} of {len(vertices)} vertices have {key!r}; give it for all or for none"
            )
    names = [vertex["name"] for vertex in vertices]
    index = {name: place for place, name in enumerate(names)}
    for vertex in vertices:
        if unknown := [parent for parent in vertex["parents"] if parent not in index]:
            raise FormatError(
                f"{unknown[0]!r}, a parent of {vertex['name']!r}, is not a vertex; add it"
            )
    parents = tuple(tuple(index[parent] for parent in vertex["parents"]) for vertex in vertices)
    has_states, has_tables = (bool(vertices) and key in vertices[0] for key in ("states", "table"))
    states = tuple(tuple(vertex["states"]) for vertex in vertices) if has_states else None
    graph = Network(tuple(names), parents, states)
    if not has_tables:
        return graph
    if not has_states:
        raise FormatError("there are tables but no 'states'; give both or neither")
    tables = []
    for vertex, name in enumerate(names):
        *arities, arity = shape = graph.table_shape(vertex)
        rows, wanted = vertices[vertex]["table"], math.prod(arities)
        fine = isinstance(rows, list) and len(rows) == wanted
        fine = fine and all(isinstance(row, list) and len(row) == arity for row in rows)
        if not fine or any(
            type(p) not in (int, float) or not 0 <= p <= 1.1 for row in rows for p in row
        ):
            raise FormatError(
                f"the table of {name!r} must have {wanted} rows of {arity} probabilities"
            )
        tables.append(np.array(rows, dtype=np.float64).reshape(shape))
    return replace(graph, tables=tuple(tables))


def read_about(path: str | Path) -> dict[str, Any]:
    """Return the facts about the network that a .json file keeps beside it; {} if there are none."""
    try:
        about = _document(read_text(path, MOST_BYTES)).get("about", {})
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from None
    if not isinstance(about, dict):
        raise FormatError(f"{path}: 'about' must be an object")
    return about


def _document(text: str) -> dict[str, Any]:
    value = parse_json(text)
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
    """Return True if name, parents and states are text; a lone surrogate, which JSON can hold, is not."""
    if not isinstance(value, dict) or "name" not in value:
        return False
    parents, states = value.get("parents"), value.get("states", [])
    if not isinstance(parents, list) or not isinstance(states, list):
        return False
    return all(
        isinstance(text, str) and not _HALF.search(text)
        for text in (value["name"], *parents, *states)
    )


class _Format(NamedTuple):
    """How a file is read and written, and what it cannot hold."""

    parse: Callable[[Any], Network]
    text: Callable[[Network], str]
    forbidden: str = r"(?!)"  # pattern of names that it cannot hold
    why: str = ""
    tables: bool = False  # whether it holds states and probabilities
    needs_tables: bool = False
    binary: bool = False  # whether `parse` takes bytes, to find the encoding itself
    vertices: tuple[int, int] = (0, MOST_VERTICES)  # least and most
    # with edges without direction
    class_text: Callable[[Network, Container[Edge]], str] | None = None


_HALF = re.compile("[\ud800-\udfff]")  # half a character, which no file can hold
# not in XML, even as a reference
_EMPTY_OR_CONTROL = "\\A\\Z|[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"

_BIF = _Format(
    parse_bif,
    bif_text,
    tables=True,
    needs_tables=True,
    vertices=(1, MOST_VERTICES),
)
_XMLBIF = _Format(
    parse_xmlbif,
    xmlbif_text,
    _EMPTY_OR_CONTROL + r"|\A[ \t\r\n]|[ \t\r\n]\Z",
    "it is empty, has a control character, or begins or ends with a blank",
    tables=True,
    needs_tables=True,
    binary=True,
)
_GRAPHML = _Format(
    parse_graphml,
    graphml_text,
    _EMPTY_OR_CONTROL,
    "it is empty, or has a control character",
    binary=True,
    class_text=graphml_text,
)
_DOT = _Format(
    parse_dot, dot_text, r"[\\\0]", "it has a backslash or a NUL character", class_text=dot_text
)
_MODELSTRING = _Format(
    from_modelstring,
    modelstring_text,
    MODELSTRING_FORBIDDEN,
    "it is empty, or has one of [ ] | : or a NUL character",
    vertices=(1, MOST_VERTICES),
)
# Python's csv reader takes fields up to 131,072 characters; 5,000 vertices make 50 MB
_ADJACENCY = _Format(
    parse_adjacency,
    adjacency_text,
    r"\0|(?s:\A.{100001})",
    "it has a NUL character, or is too long",
    vertices=(1, 5_000),
    class_text=adjacency_text,
)
_FORMATS = {
    ".bif": _BIF,
    ".xmlbif": _XMLBIF,
    ".bifxml": _XMLBIF,
    ".xml": _XMLBIF,
    ".json": _Format(parse_json_network, json_text, tables=True),
    ".dot": _DOT,
    ".gv": _DOT,
    ".graphml": _GRAPHML,
    ".bnlearn": _MODELSTRING,
    ".csv": _ADJACENCY,
}
ENDINGS = tuple(_FORMATS)


def read_network(path: str | Path) -> Network:
    """Return the network in the file: .bif, .xmlbif (.bifxml, .xml), .json, .dot (.gv), .graphml, .bnlearn or .csv;
    or any of them with .gz."""
    chosen = _format(path)
    content = read_bytes(path, MOST_BYTES) if chosen.binary else read_text(path, MOST_BYTES)
    try:
        network = chosen.parse(content)
    except QubayesError as error:
        raise FormatError(f"{path}: {error}") from None
    if network.n > MOST_VERTICES:
        raise FormatError(f"{path}: {network.n} vertices; at most {MOST_VERTICES}")
    return replace(network, name=Path(path).name.removesuffix(".gz"))


def write_network(
    network: Network, path: str | Path, about: Mapping[str, Any] | None = None
) -> None:
    """Write the network in the format of the path's ending; packed if it ends in .gz. The file is whole or absent.

    `about`: facts such as score and stamp that a .json file keeps beside the network (`read_about`
    gives them back); the other formats have no place for them."""
    chosen = _format(path)
    _check_held(network, path)
    single = [
        name
        for name, states in zip(network.names, network.states or (), strict=False)
        if len(states) == 1
    ]
    if single and chosen.text is bif_text:
        log.warning(
            "%s: %s %s one state, with which pyAgrum reads no .bif file; it reads .bifxml",
            *(path, some(single), "has" if len(single) == 1 else "have"),
        )
    _write(json_text(network, about) if chosen.text is json_text else chosen.text(network), path)


def write_cpdag(network: Network, path: str | Path) -> None:
    """Write the equivalence class of the network: a graph whose reversible edges have no direction.

    In a .dot file they have `dir=none`, in .graphml `directed="false"`, in a .csv matrix a 1 in
    both directions."""
    text = _format(path).class_text
    if text is None:
        raise FormatError(
            f"{path}: the format cannot hold edges without direction; give .dot, .graphml or .csv"
        )
    _check_held(network, path)
    reversible = cpdag(network).undirected
    _write(text(network, {*reversible, *((b, a) for a, b in reversible)}), path)


def _write(text: str, path: str | Path) -> None:
    content = text.encode()
    if len(content) > MOST_BYTES:
        raise FormatError(
            f"{path} would hold {len(content)} bytes, more than the {MOST_BYTES} that are read back"
        )
    with replacing(path, binary=True) as file:
        # No time stamp: the same network gives the same file.
        file.write(
            gzip.compress(content, mtime=0) if Path(path).suffix.lower() == ".gz" else content
        )


def holds_tables(path: str | Path) -> bool:
    """Return True if the format of the path's ending keeps states and probabilities, not the graph alone."""
    return _format(path).tables


def check_network_path(
    path: str | Path, *, tables: bool = True, dataset: Dataset | None = None
) -> None:
    """Raise if no network, or none without probabilities, can be written there because of the path's ending.

    With a dataset, raise also if the format cannot hold a network of its variables. For use before
    a long search."""
    if dataset is not None:
        _check_names(dataset.names, dataset.states, path)
    if _format(path).needs_tables and not tables:
        raise FormatError(
            f"a {ending(path)} file needs probabilities, which take data: `qubayes learn` has them; here write .json,"
            " .dot, .graphml, .bnlearn or .csv"
        )


def _format(path: str | Path) -> _Format:
    try:
        return _FORMATS[ending(path)]
    except KeyError:
        raise FormatError(
            f"{path} has no ending of a network file; allowed are {', '.join(_FORMATS)} (with or without .gz)"
        ) from None


def _check_held(network: Network, path: str | Path) -> None:
    """Raise if the format cannot hold the network. Sizes are checked before the text is made: a number needs three
    bytes."""
    chosen, kind = _format(path), ending(path)
    numbers = sum(table.size for table in network.tables or ()) if chosen.tables else 0
    if network.n > MOST_VERTICES or 3 * numbers > MOST_BYTES:
        raise FormatError(
            f"{network.n} vertices and {numbers} probabilities are too many for a {kind} file; at most"
            f" {MOST_VERTICES} and {MOST_BYTES // 3}"
        )
    if chosen.needs_tables and network.tables is None:
        raise FormatError(
            f"a {kind} file needs probabilities and this network has none; fit it to data first (`qubayes.fit`), or"
            " write .json, .dot, .graphml, .bnlearn or .csv"
        )
    _check_names(network.names, network.states or (), path)


def _check_names(names: Sequence[str], states: Sequence[Sequence[str]], path: str | Path) -> None:
    """Raise if the format cannot hold these names and states, or this number of vertices."""
    chosen, kind = _format(path), ending(path)
    least, most = chosen.vertices
    if not least <= len(names) <= most:
        raise FormatError(
            f"a {kind} file of {len(names)} vertices; from {least} to {most} are written: use .json instead"
        )
    forbidden = re.compile(chosen.forbidden)
    for name in (*names, *(state for its in states if chosen.tables for state in its)):
        if _HALF.search(name):
            raise FormatError(f"no file can hold the name {name!r} (half a character); rename it")
        if forbidden.search(name):
            found = f"a {kind} file cannot hold the name {shown(name, 80)} ({chosen.why})"
            raise FormatError(f"{found}; write .json instead, or rename it")


def _package(name: str) -> Any:
    """Return the module of a package of others; raise if it is not installed."""
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise MissingPackageError(
            f"{package} cannot be imported ({error}); run: pip install {package}"
        ) from None


def to_networkx(network: Network, graph: "nx.DiGraph | None" = None) -> "nx.DiGraph":
    """Return the graph with the vertices' names as nodes; without attributes, so that any format can hold it.

    The nodes and edges are added to a new graph, or to the one that is given.
    """
    graph = (
        optional("networkx", "a graph of networkx", "networkx").DiGraph()
        if graph is None
        else graph
    )
    graph.add_nodes_from(network.names)
    graph.add_edges_from(network.edges)
    return graph


def from_networkx(graph: "nx.DiGraph") -> Network:
    """Return the network with the graph's nodes as vertices; a node that is not text is named str(node)."""
    if not graph.is_directed():
        raise QubayesError("an undirected networkx graph; give a DiGraph")
    nodes = list(graph.nodes)
    index = {node: vertex for vertex, node in enumerate(nodes)}
    parents = tuple(tuple(index[parent] for parent in graph.predecessors(node)) for node in nodes)
    return Network(tuple(map(str, nodes)), parents)


def to_pgmpy(network: Network) -> Any:
    """Return a pgmpy DiscreteBayesianNetwork: the graph, and a TabularCPD for each vertex if there are tables."""
    tabular = _package("pgmpy.factors.discrete").TabularCPD
    model = to_networkx(network, _package("pgmpy.models").DiscreteBayesianNetwork())
    if network.tables is None or network.states is None:
        return model
    for vertex, (its, table) in enumerate(zip(network.parents, network.tables, strict=True)):
        states = {network.names[v]: list(network.states[v]) for v in (vertex, *its)}
        values = table.reshape(-1, table.shape[-1]).T
        arities = list(table.shape[:-1])
        given = [network.names[p] for p in its]
        model.add_cpds(
            tabular(
                network.names[vertex],
                table.shape[-1],
                values,
                given or None,
                arities or None,
                states,
            )
        )
    return model


def from_pgmpy(model: Any) -> Network:
    """Return the network of a pgmpy model; with tables if every node has a TabularCPD. Names become text."""
    nodes = list(model.nodes)
    index = {node: vertex for vertex, node in enumerate(nodes)}
    factors = [model.get_cpds(node) for node in nodes]
    if not nodes or any(factor is None for factor in factors):
        return from_networkx(model)
    parents = tuple(tuple(index[name] for name in factor.variables[1:]) for factor in factors)
    own_states = [factor.state_names[node] for node, factor in zip(nodes, factors, strict=True)]
    tables = []
    for factor, its in zip(factors, parents, strict=True):
        values = np.asarray(factor.values, dtype=np.float64)
        # a factor may list the states of a parent in another order
        for axis, parent in enumerate(its, start=1):
            listed = factor.state_names[nodes[parent]]
            if listed != own_states[parent]:
                values = values.take(
                    [listed.index(state) for state in own_states[parent]], axis=axis
                )
        tables.append(np.moveaxis(values, 0, -1))
    states = tuple(tuple(map(str, its)) for its in own_states)
    return Network(tuple(map(str, nodes)), parents, states, tuple(tables))


def to_pyagrum(network: Network) -> Any:
    """Return a pyAgrum BayesNet: labelled variables, the arcs and the probabilities."""
    gum = _package("pyagrum")
    states, tables = network.parameters
    model = gum.BayesNet(network.name or "network")
    for name, its in zip(network.names, states, strict=True):
        model.add(gum.LabelizedVariable(name, name, list(its)))
    for edge in network.edges:
        model.addArc(*edge)
    for name, parents, table in zip(network.names, network.parents, tables, strict=True):
        cpt = model.cpt(name)
        own = [*(network.names[p] for p in parents), name]
        model.cpt(name).fillWith(
            table.transpose([own.index(axis) for axis in reversed(cpt.names)]).ravel().tolist()
        )
    return model
