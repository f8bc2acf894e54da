"""XML files of networks: XMLBIF 0.3 and GraphML.

XML is read without what makes it dangerous: entities, deep nesting, more elements than a network has. In a table of
XMLBIF the first GIVEN is slowest and the states of the child are fastest. A node id of GraphML is the vertex's name.
"""

import math
from collections.abc import Container
from dataclasses import replace
from typing import NoReturn
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from ..foundation.errors import FormatError
from .network import Edge, Network

_DEEPEST = 100
_MOST_DECLARATIONS = 1000  # of attributes: the parser compares each that has a default with all before it
_MOST_ELEMENTS = 5_000_000  # some 500 MB of them
_BLANK = " \t\r\n"
_ESCAPES = {"\r": "&#13;"}  # a parser makes line feeds of carriage returns that are not escaped
_HEAD = '<?xml version="1.0" encoding="UTF-8"?>'


class _Builder:
    """Builds the tree of elements, names without their namespace, and refuses what exceeds a limit."""

    def __init__(self) -> None:
        self.tree = TreeBuilder()
        self.depth = 0
        self.elements = 0
        self.declarations = 0

    def parse(self, content: bytes) -> Element:
        """Return the root element. Declarations of elements are skipped, entities refused."""
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.specified_attributes = True  # a default in the DOCTYPE would be copied to every element
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
            raise FormatError(f"it nests deeper than {_DEEPEST} or has more than {_MOST_ELEMENTS} elements")
        self.tree.start(_local(name), {_local(key): value for key, value in attributes.items()})

    def end(self, name: str) -> None:
        self.depth -= 1
        self.tree.end(_local(name))

    def count_declaration(self, *_: object) -> None:
        self.declarations += 1
        if self.declarations > _MOST_DECLARATIONS:
            raise FormatError(f"it declares more than {_MOST_DECLARATIONS} attributes; leave out its DOCTYPE")

    def refuse_entity(self, name: str, *_: object) -> NoReturn:
        raise FormatError(f"it declares the entity {name!r}; write what it stands for in its places")


def _local(name: str) -> str:
    """Return the name without its namespace."""
    return name.rpartition(" ")[2]


def graphml_text(network: Network, undirected: Container[Edge] = frozenset()) -> str:
    """Return the graph as GraphML; the edges (parent, child) in `undirected` without direction."""
    ids = [quoteattr(name) for name in network.names]
    lines = [_HEAD, '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">', '<graph edgedefault="directed">']
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
        raise FormatError(f"not a GraphML file with one graph; its root is {root.tag!r} with {len(graphs)}")
    [graph] = graphs
    if graph.find("hyperedge") is not None or graph.find("node/graph") is not None:
        raise FormatError("hyperedges or graphs in nodes; a network has plain directed edges")
    names = [_attribute(node, "id") for node in graph.findall("node")]
    default = "true" if graph.get("edgedefault") == "directed" else "false"
    edges = []
    for edge in graph.findall("edge"):
        parent, child = _attribute(edge, "source"), _attribute(edge, "target")
        if edge.get("directed", default) not in ("true", "1"):
            raise FormatError(f"the edge between {parent!r} and {child!r} is undirected; give it a direction")
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
        return f"<{tag}>{escape(text, _ESCAPES)}</{tag}>"

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


def parse_xmlbif(content: bytes) -> Network:
    """Return the network of an XMLBIF file; without any TABLE it is a graph with states."""
    root = _Builder().parse(content)
    networks = root.findall("NETWORK") if root.tag == "BIF" else []
    if len(networks) != 1:
        raise FormatError(f"not an XMLBIF file; it must hold one NETWORK in a BIF element, not {root.tag!r}")
    [network] = networks
    states: dict[str, tuple[str, ...]] = {}
    for variable in network.findall("VARIABLE"):
        name = _only(variable, "NAME")
        if name in states:
            raise FormatError(f"two VARIABLE elements are named {name!r}; give each its own name")
        if variable.get("TYPE", "nature") != "nature":
            raise FormatError(f"{name!r} has TYPE {variable.get('TYPE')!r}; only 'nature' is a random variable")
        states[name] = tuple(_texts(variable, "OUTCOME") or _texts(variable, "VALUE"))  # VALUE: version 0.2
    definitions: dict[str, tuple[list[str], list[str]]] = {}  # of each child the parents and the tables
    for definition in (*network.findall("DEFINITION"), *network.findall("PROBABILITY")):
        child, given, tables = _only(definition, "FOR"), _texts(definition, "GIVEN"), _texts(definition, "TABLE")
        if child in definitions:
            raise FormatError(f"a second DEFINITION of {child!r}; keep one")
        if len(tables) > 1:
            raise FormatError(f"{child!r} has {len(tables)} TABLE elements; keep one")
        if unknown := [name for name in (child, *given) if name not in states]:
            raise FormatError(f"{unknown[0]!r} in a DEFINITION is not a VARIABLE; declare it")
        definitions[child] = given, tables
    if lost := [name for name in states if name not in definitions]:
        raise FormatError(f"{lost[0]!r} has no DEFINITION")
    index = {name: vertex for vertex, name in enumerate(states)}
    parents = tuple(tuple(index[name] for name in definitions[child][0]) for child in states)
    graph = Network(tuple(states), parents, tuple(states.values()))
    if not any(tables for _, tables in definitions.values()):
        return graph
    parsed = []
    for vertex, name in enumerate(states):
        shape = graph.table_shape(vertex)
        try:
            numbers = [float(number) for number in " ".join(definitions[name][1]).split()]
        except ValueError as error:
            raise FormatError(f"the table of {name!r}: {str(error)[:80]}") from None
        if len(numbers) != math.prod(shape):
            wanted = math.prod(shape)
            raise FormatError(f"the table of {name!r} has {len(numbers)} numbers; its states and parents need {wanted}")
        parsed.append(np.array(numbers).reshape(shape))
    return replace(graph, tables=tuple(parsed))


def _texts(element: Element, tag: str) -> list[str]:
    return [(part.text or "").strip(_BLANK) for part in element.findall(tag)]


def _only(element: Element, tag: str) -> str:
    found = _texts(element, tag)
    if len(found) != 1 or not found[0]:
        raise FormatError(f"{element.tag} has {len(found)} {tag} elements; it must have one, with text")
    return found[0]
