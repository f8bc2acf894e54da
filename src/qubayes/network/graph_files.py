"""Files that hold the graph alone: DOT, bnlearn's model strings, adjacency matrices as CSV.

DOT is read as programs write it for networks: statements of nodes and of edges `a -> b -> c`, with or without
attributes, and defaults. Subgraphs, ports and undirected edges are refused.
"""

import csv
import io
import re
from itertools import pairwise
from pathlib import Path
from typing import NoReturn

from ..foundation.errors import FormatError
from ..foundation.files import read_text
from .assembly import MOST_BYTES, from_edges, unholdable
from .network import Network

_DOT_SPACE = re.compile(r"(?:\s++|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/|(?<![^\n])#[^\n]*+)*+")
_DOT_TOKEN = re.compile(
    r'->|--|[{}\[\];,=:]|"((?:[^"\\]++|\\.)*+)"|-?(?:\.[0-9]++|[0-9]++(?:\.[0-9]*+)?)|\w++', re.DOTALL
)


def dot_text(network: Network) -> str:
    """The graph as a DOT file."""
    for name in network.names:
        if "\\" in name or "\0" in name:
            raise unholdable(".dot", name, "it has a backslash or a NUL character")
    quoted = ['"' + name.replace('"', '\\"') + '"' for name in network.names]
    lines = ["digraph {", *(f"  {name};" for name in quoted)]
    for child, parents in enumerate(network.parents):
        lines += (f"  {quoted[parent]} -> {quoted[child]};" for parent in parents)
    return "\n".join([*lines, "}"]) + "\n"


def read_dot(path: str | Path) -> Network:
    """The graph in a DOT file; attributes are passed over, but for `dir`: edges without direction are refused."""
    scanner = _DotScanner(path, read_text(path, MOST_BYTES))
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
    return from_edges(path, list(names), edges)


class _DotScanner:
    """A place in the text, and what follows it."""

    def __init__(self, path: str | Path, text: str) -> None:
        self.path = path
        self.text = text
        self.position = 0
        self.name: str | None = None  # the last token as a name; None for signs
        self.direction = "forward"  # what `edge [dir=...]` says of the edges that follow

    def fail(self, problem: str) -> NoReturn:
        """Raise a FormatError that names the file and the line."""
        line = self.text.count("\n", 0, self.position) + 1
        raise FormatError(f"{self.path}, line {line}: {problem}")

    def peek(self) -> str:
        """The next token as it stands; "" at the end of the text."""
        space = _DOT_SPACE.match(self.text, self.position)
        assert space is not None
        self.position = space.end()
        match = _DOT_TOKEN.match(self.text, self.position)
        if match is None and self.position < len(self.text):
            self.fail(f"{self.text[self.position : self.position + 20]!r} is not understood; put names in quotes")
        return match[0] if match else ""

    def next(self) -> str | None:
        """The next token as it stands; None at the end of the text."""
        token = self.peek()
        self.position += len(token)
        self.name = None
        if token.startswith('"'):
            self.name = token[1:-1].replace("\\\n", "").replace('\\"', '"')
        elif token and (token[0].isalnum() or token[0] in "_.-") and token not in ("->", "--"):
            self.name = token
        return token or None

    def expect_name(self) -> str:
        """The next token, which must be a name."""
        token = self.next()
        if self.name is None:
            self.fail(f"{token or 'the end of the file'!r} where a name must stand")
        return self.name

    def open_graph(self) -> None:
        """Pass over what comes before the statements."""
        token = (self.next() or "").lower()
        if token == "strict":
            token = (self.next() or "").lower()
        if token == "graph":
            self.fail("an undirected graph; a network is a digraph")
        if token != "digraph":
            self.fail("no 'digraph'; this is no DOT file, or an empty one")
        if self.peek() != "{":
            self.expect_name()
        if self.next() != "{":
            self.fail("'{' must stand after the name of the digraph")

    def statement(self, token: str | None) -> list[str]:
        """The names in a statement that begins with the token, each a parent of the next; [] for a default."""
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
        """The names of `first -> second -> ...` and its attributes."""
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
        """The attributes in the lists that follow."""
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


_PART = re.compile(r"\s*\[([^][|:]+)(?:\|([^][|]+))?\]")


def to_modelstring(network: Network) -> str:
    """`[A][C][B|A][D|A:C]`, in the order of the vertices."""
    for name in network.names:
        if not name or any(sign in name for sign in "[]|:\0"):
            raise unholdable(".bnlearn", name, "it is empty, or has one of [ ] | : or a NUL character")
    parts = (f"{name}|{':'.join(its)}" if its else name for name, its in network.parent_names().items())
    return "".join(f"[{part}]" for part in parts)


def from_modelstring(text: str) -> Network:
    """The graph that a model string tells; white space between the brackets is passed over."""
    return _parsed("the model string", text)


def modelstring_text(network: Network) -> str:
    """A file that holds the model string alone."""
    if not network.n:
        raise FormatError("a .bnlearn file cannot hold a network without vertices; write .json instead")
    return to_modelstring(network) + "\n"


def read_modelstring(path: str | Path) -> Network:
    """The network in a file that holds a model string."""
    return _parsed(path, read_text(path, MOST_BYTES))


def _parsed(path: str | Path, text: str) -> Network:
    families: list[tuple[str, list[str]]] = []
    place, end = 0, len(text.rstrip())
    while place < end:
        match = _PART.match(text, place)
        if match is None:
            raise FormatError(
                f"{path}: {text[place : place + 30].strip()!r} where [vertex] or [vertex|parent:parent] must stand"
            )
        families.append((match[1], match[2].split(":") if match[2] else []))
        place = match.end()
    if not families:
        raise FormatError(f"{path}: no vertex; a model string looks like [A][C][B|A][D|A:C]")
    names = [name for name, _ in families]
    known = set(names)
    for name, parents in families:
        for parent in parents:
            if parent not in known:
                raise FormatError(f"{path}: {parent!r}, a parent of {name!r}, has no [ ] of its own; add it")
    return from_edges(path, names, ((parent, name) for name, parents in families for parent in parents))


_MOST_VERTICES = 5_000  # 50 MB of zeros and ones
_LONGEST_NAME = 100_000  # Python's csv reader takes fields up to 131,072 characters


def adjacency_text(network: Network) -> str:
    """The matrix, all names in quotes. The order of the parents of a vertex becomes that of the columns."""
    n = network.n
    if not 1 <= n <= _MOST_VERTICES:
        raise FormatError(f"a .csv matrix of {n} vertices; from 1 to {_MOST_VERTICES} are written: use .json instead")
    for name in network.names:
        if "\0" in name or len(name) > _LONGEST_NAME:
            raise unholdable(".csv", name, "it has a NUL character, or is too long")
    children: list[list[int]] = [[] for _ in range(n)]
    for child, parents in enumerate(network.parents):
        for parent in parents:
            children[parent].append(child)
    lines = [",".join('"' + name.replace('"', '""') + '"' for name in network.names)]
    for its in children:
        row = ["0"] * n
        for child in its:
            row[child] = "1"
        lines.append(",".join(row))
    return "\n".join(lines) + "\n"


def read_adjacency(path: str | Path) -> Network:
    """The network in a matrix of 0 and 1 with a header of names; a first column of names may be there too."""
    header, *rows = _cells(path)
    with_names = len(header) == len(rows) + 1 or (len(header) == len(rows) and len(rows[0]) == len(rows) + 1)
    names = header[1:] if len(header) == len(rows) + 1 else header
    if len(names) != len(rows):
        raise FormatError(f"{path}: {len(header)} names over {len(rows)} rows; an adjacency matrix is square")
    if len(set(names)) != len(names):
        raise FormatError(f"{path}: a name stands twice in the header; give each vertex its own")
    edges = []
    for place, (name, row) in enumerate(zip(names, rows, strict=True)):
        if with_names and row[:1] != [name]:
            raise FormatError(f"{path}, row {place + 1}: begins with {str(row[:1])[:60]}; {name!r} must stand there")
        entries = row[1:] if with_names else row
        if len(entries) != len(names):
            raise FormatError(f"{path}, row {place + 1}: {len(entries)} entries under {len(names)} names")
        edges += [(name, child) for child, entry in zip(names, entries, strict=True) if _is_edge(path, place, entry)]
    return from_edges(path, names, edges)


def _is_edge(path: str | Path, place: int, entry: str) -> bool:
    entry = entry.strip()
    if entry not in ("0", "1", "0.0", "1.0"):
        raise FormatError(f"{path}, row {place + 1}: {entry[:40]!r} where 0 or 1 must stand")
    return entry[0] == "1"


def _cells(path: str | Path) -> list[list[str]]:
    text = read_text(path, MOST_BYTES)
    rows: list[list[str]] = []
    try:
        for row in csv.reader(io.StringIO(text, newline=""), strict=True):
            if row:
                rows.append(row)
            if rows and len(rows) > len(rows[0]) + 1:
                raise FormatError(f"{path}: {len(rows[0])} names over more rows; an adjacency matrix is square")
    except csv.Error as error:
        raise FormatError(f"{path} is no CSV: {error}") from None
    if len(rows) < 2:
        raise FormatError(f"{path}: {len(rows)} lines; give a header of names and a row of 0 and 1 for each")
    return rows
