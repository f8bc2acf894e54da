"""Files that hold the graph alone: DOT, bnlearn's model strings, adjacency matrices as CSV.

DOT is read as programs write it for networks: statements of nodes and of edges `a -> b -> c`, with or without
attributes, and defaults. Subgraphs, ports and undirected edges are refused.
"""

import csv
import io
import re
from collections.abc import Container
from itertools import pairwise
from typing import NoReturn

from ..foundation.errors import FormatError
from .network import Edge, Network

_DOT_SPACE = re.compile(r"(?:\s++|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/|(?<![^\n])#[^\n]*+)*+")
_DOT_TOKEN = re.compile(
    r'->|--|[{}\[\];,=:]|"((?:[^"\\]++|\\.)*+)"|-?(?:\.[0-9]++|[0-9]++(?:\.[0-9]*+)?)|\w++', re.DOTALL
)


def dot_text(network: Network, undirected: Container[Edge] = frozenset()) -> str:
    """Return the graph as DOT; the edges (parent, child) in `undirected` without direction."""
    quoted = ['"' + name.replace('"', '\\"') + '"' for name in network.names]
    lines = ["digraph {", *(f"  {name};" for name in quoted)]
    for child, parents in enumerate(network.parents):
        for parent in parents:
            lines.append(f"  {quoted[parent]} -> {quoted[child]}{' [dir=none]' * ((parent, child) in undirected)};")
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
            self.fail(f"{self.text[self.position : self.position + 20]!r} is not understood; put names in quotes")
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
            self.fail(f"{token or 'the end of the file'!r} where a statement of a node or an edge must stand")
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
                self.fail(f"{sign!r}; a network has edges 'a -> b' alone, names with signs in quotes")
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
    parts = (f"{name}|{':'.join(its)}" if its else name for name, its in network.parent_names().items())
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
                raise FormatError(f"{len(rows[0])} names in the header but more rows; an adjacency matrix is square")
    except csv.Error as error:
        raise FormatError(f"not CSV: {error}") from None
    if len(rows) < 2:
        raise FormatError(f"{len(rows)} lines; give a header of names and a row of 0 and 1 for each")
    header, *rows = rows
    with_names = len(header) == len(rows) + 1 or (len(header) == len(rows) and len(rows[0]) == len(rows) + 1)
    names = header[1:] if len(header) == len(rows) + 1 else header
    if len(names) != len(rows):
        raise FormatError(f"{len(header)} names in the header but {len(rows)} rows; an adjacency matrix is square")
    if len(set(names)) != len(names):
        raise FormatError("a name stands twice in the header; give each vertex its own")
    edges = []
    for place, (name, row) in enumerate(zip(names, rows, strict=True), start=1):
        if with_names and row[:1] != [name]:
            raise FormatError(f"row {place}: begins with {str(row[:1])[:60]}; expected {name!r}, as in the header")
        entries = [entry.strip() for entry in (row[1:] if with_names else row)]
        if len(entries) != len(names):
            raise FormatError(f"row {place}: {len(entries)} entries under {len(names)} names")
        if wrong := [entry for entry in entries if entry not in ("0", "1", "0.0", "1.0")]:
            raise FormatError(f"row {place}: {wrong[0][:40]!r} where 0 or 1 must stand")
        edges += [(name, child) for child, entry in zip(names, entries, strict=True) if entry[0] == "1"]
    return Network.from_edges(names, edges)
