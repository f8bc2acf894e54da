"""XML files of networks: XMLBIF 0.3 and GraphML.

XML is read without what makes it dangerous: entities, deep nesting, more elements than a network has. In a table of
XMLBIF the first GIVEN is slowest and the states of the child are fastest. A node id of GraphML is the vertex's name.
"""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from ..foundation.arrays import Floats
from ..foundation.errors import FormatError
from ..foundation.files import read_bytes
from .assembly import MOST_BYTES, all_names, assembled, check_axes, from_edges, unholdable, with_tables
from .network import Network

_DEEPEST = 100
_MOST_DECLARATIONS = 1000  # of attributes: the parser compares each that has a default with all before it
_MOST_ELEMENTS = 5_000_000  # some 500 MB of them

# All that XML 1.0 has no way to write, not even as a reference.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def read_xml(path: str | Path) -> Element:
    """The root element, names without their namespace. Declarations of elements are passed over, entities refused."""
    content = read_bytes(path, MOST_BYTES)
    builder = _Builder(path)
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.specified_attributes = True  # a default in the DOCTYPE would be copied to every element
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.tree.data
    parser.EntityDeclHandler = builder.refuse_entity
    parser.AttlistDeclHandler = builder.count_declaration
    try:
        parser.Parse(content, True)
    except (expat.ExpatError, LookupError, ValueError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"{path} is no well-formed XML: {error}") from None
    return builder.tree.close()


class _Builder:
    """Takes what the parser finds, and counts it."""

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self.tree = TreeBuilder()
        self.depth = 0
        self.elements = 0
        self.declarations = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        self.elements += 1
        if self.depth > _DEEPEST or self.elements > _MOST_ELEMENTS:
            raise FormatError(f"{self.path} nests deeper than {_DEEPEST} or has more than {_MOST_ELEMENTS} elements")
        self.tree.start(local(name), {local(key): value for key, value in attributes.items()})

    def end(self, name: str) -> None:
        self.depth -= 1
        self.tree.end(local(name))

    def count_declaration(self, *_: object) -> None:
        self.declarations += 1
        if self.declarations > _MOST_DECLARATIONS:
            raise FormatError(f"{self.path} declares more than {_MOST_DECLARATIONS} attributes; leave out its DOCTYPE")

    def refuse_entity(self, name: str, *_: object) -> NoReturn:
        raise FormatError(f"{self.path} declares the entity {name!r}; write what it stands for in its places")


def local(name: str) -> str:
    """The name without its namespace."""
    return name.rpartition(" ")[2]


def check_xml_name(kind: str, name: str) -> None:
    """Raise if XML has no way to write the name."""
    if not name or _FORBIDDEN.search(name):
        raise unholdable(kind, name, "it is empty, or has a control character")


_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'


def graphml_text(network: Network) -> str:
    """The graph as a GraphML file."""
    for name in network.names:
        check_xml_name(".graphml", name)
    ids = [quoteattr(name) for name in network.names]
    lines = [_HEAD, '<graph edgedefault="directed">', *(f"<node id={name}/>" for name in ids)]
    for child, parents in enumerate(network.parents):
        lines += (f"<edge source={ids[parent]} target={ids[child]}/>" for parent in parents)
    return "\n".join([*lines, "</graph>", "</graphml>"]) + "\n"


def read_graphml(path: str | Path) -> Network:
    """The graph in a GraphML file; attributes of nodes and edges are passed over."""
    root = read_xml(path)
    graphs = root.findall("graph") if root.tag == "graphml" else []
    if len(graphs) != 1:
        raise FormatError(f"{path} is no GraphML file with one graph; its root is {root.tag!r} with {len(graphs)}")
    [graph] = graphs
    if graph.find("hyperedge") is not None or graph.find("node/graph") is not None:
        raise FormatError(f"{path} has hyperedges or graphs in nodes; a network has plain directed edges")
    names = [_attribute(path, node, "id") for node in graph.findall("node")]
    known = set(names)
    edges = list(_edges(path, graph))
    for edge in edges:
        for name in edge:
            if name not in known:
                raise FormatError(f"{path}: an edge leads to {name!r}, which is no node; add it")
    return from_edges(path, names, edges)


def _edges(path: str | Path, graph: Element) -> Iterator[tuple[str, str]]:
    default = graph.get("edgedefault") == "directed"
    for edge in graph.findall("edge"):
        parent, child = _attribute(path, edge, "source"), _attribute(path, edge, "target")
        if edge.get("directed", "true" if default else "false") not in ("true", "1"):
            raise FormatError(f"{path}: the edge between {parent!r} and {child!r} is undirected; give it a direction")
        yield parent, child


def _attribute(path: str | Path, element: Element, key: str) -> str:
    value = element.get(key)
    if not value:
        raise FormatError(f"{path}: a {element.tag} without {key!r}; give it one")
    return value


_BLANK = " \t\r\n"
_ESCAPES = {"\r": "&#13;"}  # a parser makes line feeds of carriage returns that are not escaped


def xmlbif_text(network: Network) -> str:
    """The network as an XMLBIF file."""
    states, tables = with_tables(".xmlbif", network)
    for name in all_names(network):
        check_xml_name(".xmlbif", name)
        if name != name.strip(_BLANK):
            raise unholdable(".xmlbif", name, "it begins or ends with a blank")
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<BIF VERSION="0.3">', "<NETWORK>", "<NAME>network</NAME>"]
    for name, its in zip(network.names, states, strict=True):
        outcomes = "".join(_element("OUTCOME", state) for state in its)
        lines.append(f'<VARIABLE TYPE="nature">{_element("NAME", name)}{outcomes}</VARIABLE>')
    for name, parents, table in zip(network.names, network.parents, tables, strict=True):
        given = "".join(_element("GIVEN", network.names[p]) for p in parents)
        lines.append(f"<DEFINITION>{_element('FOR', name)}{given}<TABLE>")
        lines += (" ".join(map(repr, row)) for row in table.reshape(-1, table.shape[-1]).tolist())
        lines.append("</TABLE></DEFINITION>")
    return "\n".join([*lines, "</NETWORK>", "</BIF>"]) + "\n"


def _element(tag: str, text: str) -> str:
    return f"<{tag}>{escape(text, _ESCAPES)}</{tag}>"


def read_xmlbif(path: str | Path) -> Network:
    """The network in an XMLBIF file; without any TABLE it is a graph with states."""
    network = _network(path)
    variables = dict(_variables(path, network))
    definitions = dict(_definitions(path, network))
    index = {name: vertex for vertex, name in enumerate(variables)}
    for child, (given, _) in definitions.items():
        for name in (child, *given):
            if name not in index:
                raise FormatError(f"{path}: {name!r} in a DEFINITION is no VARIABLE; declare it")
    if lost := [name for name in variables if name not in definitions]:
        raise FormatError(f"{path}: {lost[0]!r} has no DEFINITION")
    parents = [[index[name] for name in definitions[child][0]] for child in variables]
    states = list(variables.values())
    graph = assembled(path, list(variables), parents, states)
    if all(numbers is None for _, numbers in definitions.values()):
        return graph
    tables = [_table(path, name, definitions[name], variables) for name in variables]
    return assembled(path, graph.names, parents, states, tables)


def _network(path: str | Path) -> Element:
    root = read_xml(path)
    networks = root.findall("NETWORK") if root.tag == "BIF" else []
    if len(networks) != 1:
        raise FormatError(f"{path} is no XMLBIF file; it must hold one NETWORK in a BIF element, not {root.tag!r}")
    return networks[0]


def _variables(path: str | Path, network: Element) -> Iterator[tuple[str, list[str]]]:
    """The name and states of each variable."""
    seen = set()
    for variable in network.findall("VARIABLE"):
        name = _only(path, variable, "NAME")
        if name in seen:
            raise FormatError(f"{path}: two VARIABLE elements are named {name!r}; give each its own name")
        if variable.get("TYPE", "nature") != "nature":
            raise FormatError(f"{path}: {name!r} has TYPE {variable.get('TYPE')!r}; only 'nature' is a random variable")
        seen.add(name)
        outcomes = _texts(variable, "OUTCOME") or _texts(variable, "VALUE")  # VALUE: version 0.2
        yield name, outcomes


def _definitions(path: str | Path, network: Element) -> Iterator[tuple[str, tuple[list[str], list[float] | None]]]:
    """The child, parents and numbers of each definition."""
    seen = set()
    for definition in (*network.findall("DEFINITION"), *network.findall("PROBABILITY")):
        child = _only(path, definition, "FOR")
        if child in seen:
            raise FormatError(f"{path}: a second DEFINITION of {child!r}; keep one")
        seen.add(child)
        tables = _texts(definition, "TABLE")
        if len(tables) > 1:
            raise FormatError(f"{path}: {child!r} has {len(tables)} TABLE elements; keep one")
        yield child, (_texts(definition, "GIVEN"), _numbers(path, child, tables[0]) if tables else None)


def _texts(element: Element, tag: str) -> list[str]:
    return [(part.text or "").strip(_BLANK) for part in element.findall(tag)]


def _only(path: str | Path, element: Element, tag: str) -> str:
    found = _texts(element, tag)
    if len(found) != 1 or not found[0]:
        raise FormatError(f"{path}: a {element.tag} has {len(found)} {tag} elements with text; give it one")
    return found[0]


def _numbers(path: str | Path, child: str, text: str) -> list[float]:
    try:
        return [float(number) for number in text.split()]
    except ValueError as error:
        raise FormatError(f"{path}: the table of {child!r}: {str(error)[:80]}") from None


def _table(
    path: str | Path, child: str, definition: tuple[list[str], list[float] | None], states: dict[str, list[str]]
) -> Floats:
    given, numbers = definition
    check_axes(path, child, len(given) + 1)
    shape = [len(states[name]) for name in (*given, child)]
    if numbers is None or len(numbers) != math.prod(shape):
        found = 0 if numbers is None else len(numbers)
        raise FormatError(
            f"{path}: the table of {child!r} has {found} numbers; its states and parents need {math.prod(shape)}"
        )
    return np.array(numbers).reshape(shape)
