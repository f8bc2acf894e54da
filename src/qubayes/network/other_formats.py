"""Formats of other programs: DOT, model strings, adjacency matrices, GraphML, XMLBIF 0.3.

DOT and adjacency matrices (CSV) are written only.

XML is read without what makes it dangerous: entities, deep nesting, more elements than a network
has. In a table of XMLBIF the first GIVEN is slowest and the states of the child are fastest. A node
id of GraphML is the vertex's name."""

import math
import re
from collections.abc import Collection, Container
from dataclasses import replace
from typing import NamedTuple, NoReturn
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

import numpy as np

from ..foundation.arrays import Floats
from ..foundation.errors import FormatError
from ..foundation.graph import renamed
from .network import Edge, Network

_DEEPEST = 100
# declarations of attributes: the parser compares each that has a default with all before it
_MOST_DECLARATIONS = 1000
_MOST_ELEMENTS = 5_000_000  # some 500 MB of them
_BLANK = " \t\r\n"
# A parser makes line feeds of carriage returns that are not escaped, and spaces of both in
# attributes. (saxutils would import the clients of HTTP: 8 ms at every start.)
_XML = str.maketrans(
    {
        "&": "&amp;",
        "<": "&lt;",
        ">": "&gt;",
        '"': "&quot;",
        "\r": "&#13;",
        "\n": "&#10;",
        "\t": "&#9;",
    }
)
_HEAD = '<?xml version="1.0" encoding="UTF-8"?>'


HALF_CHARACTER = re.compile("[\ud800-\udfff]")  # which no file can hold


def dot_text(network: Network, undirected: Container[Edge] = frozenset()) -> str:
    """Return the graph as DOT; the edges (parent, child) in `undirected` without direction."""
    quoted = ['"' + name.replace('"', '\\"') + '"' for name in network.names]
    lines = ["digraph {", *(f"  {name};" for name in quoted)]
    for child, parents in enumerate(network.parents):
        for parent in parents:
            kind = " [dir=none]" if (parent, child) in undirected else ""
            lines.append(f"  {quoted[parent]} -> {quoted[child]}{kind};")
    return "\n".join([*lines, "}"]) + "\n"


MODELSTRING_FORBIDDEN = r"\A\Z|[][|:\0]"  # pattern of names that a model string cannot hold
_PART = re.compile(r"\s*\[([^][|:]+)(?:\|([^][|]+))?\]")


def to_modelstring(network: Network) -> str:
    """Return `[A][C][B|A][D|A:C]`, in the order of the vertices."""
    if bad := [name for name in network.names if re.search(MODELSTRING_FORBIDDEN, name)]:
        raise FormatError(f"a model string cannot hold the name {bad[0]!r}; rename it")
    parts = (
        f"{name}|{':'.join(its)}" if its else name for name, its in network.parent_names().items()
    )
    return "".join(f"[{part}]" for part in parts)


def modelstring_text(network: Network) -> str:
    """Return a file that holds the model string alone."""
    return to_modelstring(network) + "\n"


def from_modelstring(text: str) -> Network:
    """Return the graph of a model string; white space between the brackets is skipped."""
    names: list[str] = []
    edges: list[tuple[str, str]] = []
    place = 0
    end = len(text.rstrip())
    while place < end:
        match = _PART.match(text, place)
        if match is None:
            wrong = text[place : place + 30].strip()
            raise FormatError(f"{wrong!r} where [vertex] or [vertex|parent:parent] must stand")
        names.append(match[1])
        if match[2]:
            edges += [(parent, match[1]) for parent in match[2].split(":")]
        place = match.end()
    if not names:
        raise FormatError("no vertex; a model string looks like [A][C][B|A][D|A:C]")
    return Network.from_edges(names, edges)


def adjacency_text(network: Network, undirected: Container[Edge] = frozenset()) -> str:
    """Return the adjacency matrix as CSV, all names in quotes.

    Edges (parent, child) in `undirected` have a 1 in both directions.
    """
    matrix = [["0"] * network.n for _ in network.names]
    for child, parents in enumerate(network.parents):
        for parent in parents:
            matrix[parent][child] = "1"
            if (parent, child) in undirected:
                matrix[child][parent] = "1"
    header = ['"' + name.replace('"', '""') + '"' for name in network.names]
    return "".join(",".join(row) + "\n" for row in (header, *matrix))


class _Builder:
    """Builds the tree of elements, names without namespaces; refuses what exceeds a limit."""

    def __init__(self) -> None:
        self.tree = TreeBuilder()
        self.depth = 0
        self.elements = 0
        self.declarations = 0

    def parse(self, content: bytes) -> Element:
        """Return the root element. Declarations of elements are skipped, entities refused."""
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        # a default in the DOCTYPE would be copied to every element
        parser.specified_attributes = True
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.CharacterDataHandler = self.tree.data
        parser.EntityDeclHandler = self.refuse_entity
        parser.AttlistDeclHandler = self.count_declaration
        try:
            parser.Parse(content, True)
        except (expat.ExpatError, LookupError, ValueError) as error:
            if isinstance(error, FormatError):
                raise
            raise FormatError(f"not well-formed XML: {error}") from None
        return self.tree.close()

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        self.elements += 1
        if self.depth > _DEEPEST or self.elements > _MOST_ELEMENTS:
            raise FormatError(
                f"it nests deeper than {_DEEPEST} or has more than {_MOST_ELEMENTS} elements"
            )
        self.tree.start(_local(name), {_local(key): value for key, value in attributes.items()})

    def end(self, name: str) -> None:
        self.depth -= 1
        self.tree.end(_local(name))

    def count_declaration(self, *_: object) -> None:
        self.declarations += 1
        if self.declarations > _MOST_DECLARATIONS:
            raise FormatError(
                f"it declares more than {_MOST_DECLARATIONS} attributes; leave out its DOCTYPE"
            )

    def refuse_entity(self, name: str, *_: object) -> NoReturn:
        raise FormatError(
            f"it declares the entity {name!r}; write what it stands for in its places"
        )


def _local(name: str) -> str:
    """Return the name without its namespace."""
    return name.rpartition(" ")[2]


def graphml_text(network: Network, undirected: Container[Edge] = frozenset()) -> str:
    """Return the graph as GraphML; the edges (parent, child) in `undirected` without direction."""
    ids = [f'"{name.translate(_XML)}"' for name in network.names]
    lines = [
        _HEAD,
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">',
        '<graph edgedefault="directed">',
    ]
    lines += (f"<node id={name}/>" for name in ids)
    for child, parents in enumerate(network.parents):
        for parent in parents:
            kind = ' directed="false"' if (parent, child) in undirected else ""
            lines.append(f"<edge source={ids[parent]} target={ids[child]}{kind}/>")
    return "\n".join([*lines, "</graph>", "</graphml>"]) + "\n"


def parse_graphml(content: bytes) -> Network:
    """Return the graph of a GraphML file; attributes of nodes and edges are skipped."""
    root = _Builder().parse(content)
    graphs = root.findall("graph") if root.tag == "graphml" else []
    if len(graphs) != 1:
        raise FormatError(
            f"not a GraphML file with one graph; its root is {root.tag!r} with {len(graphs)}"
        )
    [graph] = graphs
    if graph.find("hyperedge") is not None or graph.find("node/graph") is not None:
        raise FormatError("hyperedges or graphs in nodes; a network has plain directed edges")
    names = [_attribute(node, "id") for node in graph.findall("node")]
    default = "true" if graph.get("edgedefault") == "directed" else "false"
    edges = []
    for edge in graph.findall("edge"):
        parent, child = _attribute(edge, "source"), _attribute(edge, "target")
        if edge.get("directed", default) not in ("true", "1"):
            raise FormatError(
                f"the edge between {parent!r} and {child!r} is undirected; give it a direction"
            )
        edges.append((parent, child))
    return Network.from_edges(names, edges)


def _attribute(element: Element, key: str) -> str:
    value = element.get(key)
    if not value:
        raise FormatError(f"a {element.tag} without {key!r}; give it one")
    return value


def xmlbif_text(network: Network) -> str:
    """Return the network as XMLBIF."""

    def element(tag: str, text: str) -> str:
        return f"<{tag}>{text.translate(_XML)}</{tag}>"

    states, tables = network.parameters
    lines = [_HEAD, '<BIF VERSION="0.3">', "<NETWORK>", "<NAME>network</NAME>"]
    for name, its in zip(network.names, states, strict=True):
        outcomes = "".join(element("OUTCOME", state) for state in its)
        lines.append(f'<VARIABLE TYPE="nature">{element("NAME", name)}{outcomes}</VARIABLE>')
    for name, parents, table in zip(network.names, network.parents, tables, strict=True):
        given = "".join(element("GIVEN", network.names[p]) for p in parents)
        lines.append(f"<DEFINITION>{element('FOR', name)}{given}<TABLE>")
        lines += (" ".join(map(repr, row)) for row in table.reshape(-1, table.shape[-1]).tolist())
        lines.append("</TABLE></DEFINITION>")
    return "\n".join([*lines, "</NETWORK>", "</BIF>"]) + "\n"


class _Definition(NamedTuple):
    """The parents of a vertex and the text of its table, as a DEFINITION lists them."""

    parents: list[str]
    table: str | None


def parse_xmlbif(content: bytes) -> Network:
    """Return the network of an XMLBIF file; without any TABLE it is a graph with states."""
    root = _Builder().parse(content)
    networks = root.findall("NETWORK") if root.tag == "BIF" else []
    if len(networks) != 1:
        raise FormatError(
            f"not an XMLBIF file; it must hold one NETWORK in a BIF element, not {root.tag!r}"
        )
    [network] = networks
    states = _xmlbif_states(network)
    definitions = _xmlbif_definitions(network, states)
    index = {name: vertex for vertex, name in enumerate(states)}
    ordered = [definitions[name] for name in states]
    parents = tuple(renamed((its.parents for its in ordered), index))
    graph = Network(tuple(states), parents, tuple(states.values()))
    if all(definition.table is None for definition in ordered):
        return graph
    tables = [_xmlbif_table(graph, v, its.table or "") for v, its in enumerate(ordered)]
    return replace(graph, tables=tuple(tables))


def _xmlbif_states(network: Element) -> dict[str, tuple[str, ...]]:
    """Return the states of each VARIABLE by its name."""
    found: dict[str, tuple[str, ...]] = {}
    for variable in network.findall("VARIABLE"):
        name = _only(variable, "NAME")
        if variable.get("TYPE", "nature") != "nature":
            raise FormatError(
                f"{name!r} has TYPE {variable.get('TYPE')!r}; only 'nature' is a random variable"
            )
        if name in found:
            raise FormatError("two VARIABLE elements have the same name; give each its own name")
        # VALUE: version 0.2
        found[name] = tuple(_texts(variable, "OUTCOME") or _texts(variable, "VALUE"))
        if not found[name]:
            raise FormatError(f"{name!r} has no OUTCOME; give it one or more")
    return found


def _xmlbif_definitions(network: Element, known: Collection[str]) -> dict[str, _Definition]:
    """Return the DEFINITION of each vertex by its name; raise unless each has one."""
    found: dict[str, _Definition] = {}
    for definition in (*network.findall("DEFINITION"), *network.findall("PROBABILITY")):
        child = _only(definition, "FOR")
        parents = _texts(definition, "GIVEN")
        tables = _texts(definition, "TABLE")
        if child in found or len(tables) > 1:
            raise FormatError(f"{child!r} has a second DEFINITION or TABLE; keep one")
        if unknown := [name for name in (child, *parents) if name not in known]:
            raise FormatError(f"{unknown[0]!r} in a DEFINITION is not a VARIABLE; declare it")
        found[child] = _Definition(parents, tables[0] if tables else None)
    if lost := [name for name in known if name not in found]:
        raise FormatError(f"{lost[0]!r} has no DEFINITION")
    return found


def _xmlbif_table(graph: Network, vertex: int, text: str) -> Floats:
    """Return the numbers of a TABLE in the shape of the vertex's table."""
    name = graph.names[vertex]
    shape = graph.table_shape(vertex)
    try:
        numbers = [float(number) for number in text.split()]
    except ValueError as error:
        raise FormatError(f"the table of {name!r}: {str(error)[:80]}") from None
    if len(numbers) != math.prod(shape):
        raise FormatError(
            f"the table of {name!r} has {len(numbers)} numbers; "
            f"its states and parents need {math.prod(shape)}"
        )
    return np.array(numbers).reshape(shape)


def _texts(element: Element, tag: str) -> list[str]:
    return [(part.text or "").strip(_BLANK) for part in element.findall(tag)]


def _only(element: Element, tag: str) -> str:
    found = _texts(element, tag)
    if len(found) != 1 or not found[0]:
        raise FormatError(
            f"{element.tag} has {len(found)} {tag} elements; it must have one, with text"
        )
    return found[0]
