"""Formats of other programs: DOT, model strings of bnlearn, adjacency matrices as CSV, GraphML, XMLBIF 0.3.

DOT is read as programs write it for networks: statements of nodes and of edges `a -> b -> c`, with
or without attributes, and defaults. Subgraphs, ports and undirected edges are refused.

XML is read without what makes it dangerous: entities, deep nesting, more elements than a network
has. In a table of XMLBIF the first GIVEN is slowest and the states of the child are fastest. A node
id of GraphML is the vertex's name."""

import csv
import io
import math
import re
from collections.abc import Container
from dataclasses import replace
from itertools import pairwise
from typing import NoReturn
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

import numpy as np

from ..foundation.errors import FormatError
from .network import Edge, Network

_DOT_SPACE = re.compile(r"(?:\s++|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/|(?<![^\n])#[^\n]*+)*+")
_DOT_TOKEN = re.compile(
    r'->|--|[{}\[\];,=:]|"((?:[^"\\]++|\\.)*+)"|-?(?:\.[0-9]++|[0-9]++(?:\.[0-9]*+)?)|\w++',
    re.DOTALL,
)
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


def dot_text(network: Network, undirected: Container[Edge] = frozenset()) -> str:
    """Return the graph as DOT; the edges (parent, child) in `undirected` without direction."""
    quoted = ['"' + name.replace('"', '\\"') + '"' for name in network.names]
    lines = ["digraph {", *(f"  {name};" for name in quoted)]
    for child, parents in enumerate(network.parents):
        for parent in parents:
            lines.append(
                f"  {quoted[parent]} -> {quoted[child]}{' [dir=none]' * ((parent, child) in undirected)};"
            )
    return "\n".join([*lines, "}"]) + "\n"


def parse_dot(text: str) -> Network:
    """Return the graph of a DOT file; attributes are skipped, but for `dir`: edges without direction are refused."""
    scanner = _DotScanner(text)
    scanner.open_graph()
    names: dict[str, None] = {}
    edges: list[tuple[str, str]] = []
    while (token := scanner.next()) != "}":
        if token in (";", ","):
            continue
        chain = scanner.statement(token)
        names.update(dict.fromkeys(chain))
        edges += pairwise(chain)
    if scanner.next() is not None:
        scanner.fail("something follows the graph; keep one graph in a file")
    return Network.from_edges(list(names), edges)


class _DotScanner:
    """A position in the text, and the tokens that follow it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.name: str | None = None  # the last token as a name; None for signs
        self.direction = "forward"  # what `edge [dir=...]` says of the edges that follow

    def fail(self, problem: str) -> NoReturn:
        """Raise a FormatError that names the line."""
        line = self.text.count("\n", 0, self.position) + 1
        raise FormatError(f"line {line}: {problem}")

    def peek(self) -> str:
        """Return the next token as it stands; "" at the end of the text."""
        space = _DOT_SPACE.match(self.text, self.position)
        assert space is not None
        self.position = space.end()
        match = _DOT_TOKEN.match(self.text, self.position)
        if match is None and self.position < len(self.text):
            self.fail(
                f"{self.text[self.position : self.position + 20]!r} is not understood; put names in quotes"
            )
        return match[0] if match else ""

    def next(self) -> str | None:
        """Return the next token as it stands; None at the end of the text."""
        token = self.peek()
        self.position += len(token)
        self.name = None
        if token.startswith('"'):
            self.name = token[1:-1].replace("\\\n", "").replace('\\"', '"')
        elif token and (token[0].isalnum() or token[0] in "_.-") and token not in ("->", "--"):
            self.name = token
        return token or None

    def expect_name(self) -> str:
        """Return the next token, which must be a name."""
        token = self.next()
        if self.name is None:
            self.fail(f"{token or 'the end of the file'!r} where a name must stand")
        return self.name

    def open_graph(self) -> None:
        """Skip what comes before the statements."""
        token = (self.next() or "").lower()
        if token == "strict":
            token = (self.next() or "").lower()
        if token == "graph":
            self.fail("an undirected graph; a network is a digraph")
        if token != "digraph":
            self.fail("no 'digraph'; this is not a DOT file, or an empty one")
        if self.peek() != "{":
            self.expect_name()
        if self.next() != "{":
            self.fail("'{' must stand after the name of the digraph")

    def statement(self, token: str | None) -> list[str]:
        """Return the names in a statement that begins with the token, each a parent of the next; [] for a default."""
        if self.name is None or token is None:
            self.fail(
                f"{token or 'the end of the file'!r} where a statement of a node or an edge must stand"
            )
        first = self.name
        if token.lower() == "subgraph":
            self.fail("subgraphs are not read; list nodes and edges alone")
        if token.lower() in ("graph", "node", "edge"):
            found = self.attributes()
            if token.lower() == "edge":
                self.direction = found.get("dir", self.direction)
            return []
        if self.peek() == "=":
            self.next()
            self.expect_name()
            return []
        return self.chain(first)

    def chain(self, first: str) -> list[str]:
        """Return the names of `first -> second -> ...` and its attributes."""
        names = [first]
        while self.peek() in ("->", "--", ":"):
            if (sign := self.next()) != "->":
                self.fail(
                    f"{sign!r}; a network has edges 'a -> b' alone, names with signs in quotes"
                )
            names.append(self.expect_name())
        direction = self.attributes().get("dir", self.direction)
        if len(names) > 1 and direction.lower() != "forward":
            self.fail(f"an edge with dir={direction[:20]}; give it the direction of its arrow")
        return names

    def attributes(self) -> dict[str, str]:
        """Return the attributes in the lists that follow."""
        found = {}
        while self.peek() == "[":
            self.next()
            while self.peek() != "]":
                key, value = self.expect_name(), "true"
                if self.peek() == "=":
                    self.next()
                    value = self.expect_name()
                found[key.lower()] = value
                if self.peek() in (",", ";"):
                    self.next()
            self.next()
        return found


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
    families: list[tuple[str, list[str]]] = []
    place, end = 0, len(text.rstrip())
    while place < end:
        match = _PART.match(text, place)
        if match is None:
            raise FormatError(
                f"{text[place : place + 30].strip()!r} where [vertex] or [vertex|parent:parent] must stand"
            )
        families.append((match[1], match[2].split(":") if match[2] else []))
        place = match.end()
    if not families:
        raise FormatError("no vertex; a model string looks like [A][C][B|A][D|A:C]")
    edges = [(parent, name) for name, parents in families for parent in parents]
    return Network.from_edges([name for name, _ in families], edges)


def adjacency_text(network: Network, undirected: Container[Edge] = frozenset()) -> str:
    """Return the adjacency matrix, all names in quotes. The order of parents becomes that of the columns.

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


def parse_adjacency(text: str) -> Network:
    """Return the graph of a matrix of 0 and 1 with a header of names; a first column of names may be there too."""
    rows: list[list[str]] = []
    try:
        for row in csv.reader(io.StringIO(text, newline=""), strict=True):
            if row:
                rows.append(row)
            if rows and len(rows) > len(rows[0]) + 1:
                raise FormatError(
                    f"{len(rows[0])} names in the header but more rows; an adjacency matrix is square"
                )
    except csv.Error as error:
        raise FormatError(f"not CSV: {error}") from None
    if len(rows) < 2:
        raise FormatError(
            f"{len(rows)} lines; give a header of names and a row of 0 and 1 for each"
        )
    header, *rows = rows
    with_names = len(header) == len(rows) + 1 or (
        len(header) == len(rows) and len(rows[0]) == len(rows) + 1
    )
    names = header[1:] if len(header) == len(rows) + 1 else header
    if len(names) != len(rows):
        raise FormatError(
            f"{len(header)} names in the header but {len(rows)} rows; an adjacency matrix is square"
        )
    if len(set(names)) != len(names):
        raise FormatError("a name stands twice in the header; give each vertex its own")
    edges = []
    for place, (name, row) in enumerate(zip(names, rows, strict=True), start=1):
        if with_names and row[:1] != [name]:
            raise FormatError(
                f"row {place}: begins with {str(row[:1])[:60]}; expected {name!r}, as in the header"
            )
        entries = [entry.strip() for entry in (row[1:] if with_names else row)]
        if len(entries) != len(names):
            raise FormatError(f"row {place}: {len(entries)} entries under {len(names)} names")
        if wrong := [entry for entry in entries if entry not in ("0", "1", "0.0", "1.0")]:
            raise FormatError(f"row {place}: {wrong[0][:40]!r} where 0 or 1 must stand")
        edges += [
            (name, child) for child, entry in zip(names, entries, strict=True) if entry[0] == "1"
        ]
    return Network.from_edges(names, edges)


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


def parse_xmlbif(content: bytes) -> Network:
    """Return the network of an XMLBIF file; without any TABLE it is a graph with states."""
    root = _Builder().parse(content)
    networks = root.findall("NETWORK") if root.tag == "BIF" else []
    if len(networks) != 1:
        raise FormatError(
            f"not an XMLBIF file; it must hold one NETWORK in a BIF element, not {root.tag!r}"
        )
    names, states = [], []
    for variable in networks[0].findall("VARIABLE"):
        names.append(_only(variable, "NAME"))
        # VALUE: version 0.2
        states.append(tuple(_texts(variable, "OUTCOME") or _texts(variable, "VALUE")))
        if variable.get("TYPE", "nature") != "nature":
            raise FormatError(
                f"{names[-1]!r} has TYPE {variable.get('TYPE')!r}; only 'nature' is a random variable"
            )
    index = {name: vertex for vertex, name in enumerate(names)}
    if len(index) < len(names):
        raise FormatError("two VARIABLE elements have the same name; give each its own name")
    # of each child the parents and the tables
    families: dict[str, tuple[list[str], list[str]]] = {}
    for definition in (*networks[0].findall("DEFINITION"), *networks[0].findall("PROBABILITY")):
        child, given, tables = (
            _only(definition, "FOR"),
            _texts(definition, "GIVEN"),
            _texts(definition, "TABLE"),
        )
        if child in families or len(tables) > 1:
            raise FormatError(f"{child!r} has a second DEFINITION or TABLE; keep one")
        if unknown := [name for name in (child, *given) if name not in index]:
            raise FormatError(f"{unknown[0]!r} in a DEFINITION is not a VARIABLE; declare it")
        families[child] = given, tables
    if lost := [name for name in names if name not in families]:
        raise FormatError(f"{lost[0]!r} has no DEFINITION")
    parents = tuple(tuple(index[name] for name in families[child][0]) for child in names)
    graph = Network(tuple(names), parents, tuple(states))
    if not any(tables for _, tables in families.values()):
        return graph
    parsed = []
    for vertex, name in enumerate(names):
        shape = graph.table_shape(vertex)
        try:
            numbers = [float(number) for number in " ".join(families[name][1]).split()]
        except ValueError as error:
            raise FormatError(f"the table of {name!r}: {str(error)[:80]}") from None
        if len(numbers) != (wanted := math.prod(shape)):
            raise FormatError(
                f"the table of {name!r} has {len(numbers)} numbers; its states and parents need {wanted}"
            )
        parsed.append(np.array(numbers).reshape(shape))
    return replace(graph, tables=tuple(parsed))


def _texts(element: Element, tag: str) -> list[str]:
    return [(part.text or "").strip(_BLANK) for part in element.findall(tag)]


def _only(element: Element, tag: str) -> str:
    found = _texts(element, tag)
    if len(found) != 1 or not found[0]:
        raise FormatError(
            f"{element.tag} has {len(found)} {tag} elements; it must have one, with text"
        )
    return found[0]
