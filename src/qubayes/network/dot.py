"""DOT: the graph alone, as Graphviz draws it. All names are written in quotes.

Read is what programs write for networks: statements of nodes and of edges `a -> b -> c`, with or without attributes,
and defaults. Subgraphs, ports and edges without direction are refused.
"""

import re
from itertools import pairwise
from pathlib import Path
from typing import NoReturn

from ..foundation.errors import FormatError
from ..foundation.files import read_text
from .assembly import MOST_BYTES, from_edges, unholdable
from .network import Network

_SPACE = re.compile(r"(?:\s++|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/|(?<![^\n])#[^\n]*+)*+")
_TOKEN = re.compile(r'->|--|[{}\[\];,=:]|"((?:[^"\\]++|\\.)*+)"|-?(?:\.[0-9]++|[0-9]++(?:\.[0-9]*+)?)|\w++', re.DOTALL)


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
    scanner = _Scanner(path, read_text(path, MOST_BYTES))
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


class _Scanner:
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
        space = _SPACE.match(self.text, self.position)
        assert space is not None
        self.position = space.end()
        match = _TOKEN.match(self.text, self.position)
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
