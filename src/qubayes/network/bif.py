"""The Bayesian interchange format (.bif), in the dialects of bnlearn, JavaBayes, aGrUM and pgmpy.

Names may be quoted, commas are optional, `property` lines and comments are skipped, `default`
stands for the rows that are not given. `table` lists the numbers with the child's states slowest,
then the first parent, as BIF 0.15 does. The parser is our own because other readers misread some of
these dialects.

Names and states are written as identifiers that pyAgrum and pgmpy read. Where an identifier is not
the name itself, as for the interval `<7.1`, the name stands in a property, which other readers skip
and ours takes:

    variable fixed_acidity {
      type discrete [ 3 ] { below_7.1, from_7.1_to_8, from_8 };
      property qubayes_name = fixed acidity ;
      property qubayes_states = <7.1, 7.1..8, >=8 ;
    }
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import NoReturn
from urllib.parse import quote, unquote

import numpy as np

from ..foundation.arrays import Floats
from ..foundation.errors import FormatError
from ..foundation.graph import renamed
from .network import Network

# Only `default` lets a small file ask for a large table: this is 400 MB of it.
_LARGEST_TABLE = 50_000_000

_COMMENT = re.compile(r'"[^"\n]*"?|(?<![^\s;,{}()\[\]])(?://[^\n]*|/\*.*?(?:\*/|\Z))', re.DOTALL)
_TOKEN = re.compile(r'\s*+("[^"\n]*"|[{}()\[\];,|]|[^\s{}()\[\];,|"]++)')
_NAME = re.compile(r'"[^"\n]*"|[^\s,"]++')
_ROW = re.compile(r'\s*+\(((?:"[^"\n]*"|[^()"]++)*+)\)([-+.0-9eE,\s]*+);')
_NUMBERS = re.compile(r"([-+.0-9eE,\s]*+);")
_PROPERTY = re.compile(r'(?:"[^"]*+"|[^";{}]++)*+;')
_PUNCTUATION = frozenset("{}()[];,|")
# Identifiers that pyAgrum reads: it refuses 1.5, 1e5, letters beyond ASCII and the words of the
# format.
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*|-?[0-9]+|[0-9]+_[A-Za-z0-9_]*")
_KEYWORDS = frozenset(
    {"network", "variable", "probability", "property", "type", "discrete", "default", "table"}
)


def bif_text(network: Network) -> str:
    """Return the network as BIF, in the dialect of the Bayesian network repository."""
    states, tables = network.parameters
    names = _identifiers(network.names)
    labels = [_identifiers(its) for its in states]
    lines = ["network unknown {", "}"]
    for v, (name, its) in enumerate(zip(names, labels, strict=True)):
        lines += [f"variable {name} {{", f"  type discrete [ {len(its)} ] {{ {', '.join(its)} }};"]
        if name != network.names[v]:
            lines.append(f"  property qubayes_name = {_encoded(network.names[v])} ;")
        if its != list(states[v]):
            lines.append(f"  property qubayes_states = {', '.join(map(_encoded, states[v]))} ;")
        lines.append("}")
    for vertex, (parents, table) in enumerate(zip(network.parents, tables, strict=True)):
        given = f" | {', '.join(names[p] for p in parents)}" if parents else ""
        lines.append(f"probability ( {names[vertex]}{given} ) {{")
        rows = table.reshape(-1, table.shape[-1]).tolist()
        for configuration, numbers in zip(
            product(*(labels[p] for p in parents)), rows, strict=True
        ):
            start = f"({', '.join(configuration)})" if parents else "table"
            # repr gives every number back exactly
            lines.append(f"  {start} {', '.join(map(repr, numbers))};")
        lines.append("}")
    return "\n".join(lines) + "\n"


def _identifiers(texts: Sequence[str]) -> list[str]:
    """Return a different identifier for each text, the text itself where it is one."""
    found = [
        text if _IDENTIFIER.fullmatch(text) and text.lower() not in _KEYWORDS else ""
        for text in texts
    ]
    taken = set(found)
    for place, text in enumerate(texts):
        if found[place]:
            continue
        label = _identifier_like(text)
        while label in taken:
            label += "_"
        found[place] = label
        taken.add(label)
    return found


def _identifier_like(text: str) -> str:
    """Return an identifier that resembles the text: "below_3" for "<3"."""
    low, dots, high = text.partition("..")
    if dots:
        text = f"from_{low}_to_{high}"
    elif text.startswith("<"):
        text = f"below_{text[1:]}"
    elif text.startswith(">="):
        text = f"from_{text[2:]}"
    label = re.sub(r"[^A-Za-z0-9_.-]+", "_", text)
    if not _IDENTIFIER.fullmatch(label) or label.lower() in _KEYWORDS:
        return f"s_{label}"
    return label


def _encoded(text: str) -> str:
    """Return the text for a property: %2C for a comma, and so on."""
    return quote(text, safe=" <>=+" if text == text.strip(" ") else "<>=+")


@dataclass(slots=True)
class _Block:
    """One `probability` block as written; names are looked up when all variables are known."""

    position: int
    child: str
    parents: list[str]
    table: list[float] | None = None
    default: list[float] | None = None
    # position, parent states, numbers
    rows: list[tuple[int, list[str], list[float]]] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether the block has no numbers."""
        return self.table is None and self.default is None and not self.rows


def parse_bif(text: str) -> Network:
    """Return the network of a BIF file.

    One whose probability blocks are all empty has no tables."""
    parser = _Parser(text)
    parser.read_blocks()
    parser.check_names()
    names = []
    states = []
    for name in parser.variables:
        own_name, own_states = parser.originals[name]
        names.append(own_name)
        states.append(own_states)
    index = {name: vertex for vertex, name in enumerate(parser.variables)}
    blocks = [parser.blocks[name] for name in parser.variables]
    parents = tuple(renamed((block.parents for block in blocks), index))
    graph = Network(tuple(names), parents, tuple(states))
    if all(block.is_empty for block in blocks):
        return graph
    tables = [_table(parser, block, graph, vertex) for vertex, block in enumerate(blocks)]
    return replace(graph, tables=tuple(tables))


class _Parser:
    """A position in the text, and the blocks before it."""

    def __init__(self, text: str) -> None:
        self.position = 0
        self.text = text
        self.variables: dict[str, tuple[str, ...]] = {}
        # name and states that the identifiers stand for
        self.originals: dict[str, tuple[str, tuple[str, ...]]] = {}
        self.blocks: dict[str, _Block] = {}

        def blank(match: re.Match[str]) -> str:
            """Return a comment as white space with as many lines; a quoted name as it is."""
            if match[0].startswith('"'):
                return match[0]
            if match[0].startswith("/*") and not match[0].endswith("*/"):
                self.fail("a comment that is never closed with '*/'", match.start())
            return " " + "\n" * match[0].count("\n")

        if "//" in text or "/*" in text:
            self.text = _COMMENT.sub(blank, text)

    def read_blocks(self) -> None:
        """Read the whole text."""
        while (keyword := self.next()) is not None:
            if keyword == "network":
                self.network()
            elif keyword == "variable":
                self.variable()
            elif keyword == "probability":
                self.probability()
            else:
                self.fail(f"{keyword!r} where 'network', 'variable' or 'probability' must stand")

    def check_names(self) -> None:
        """Raise unless every block is about variables and every variable has a block."""
        if not self.variables:
            self.fail("no 'variable' block; this is not a BIF file, or an empty one")
        for block in self.blocks.values():
            for name in (block.child, *block.parents):
                if name not in self.variables:
                    self.fail(f"{name!r} is not declared by a 'variable' block", block.position)
        for name in self.variables:
            if name not in self.blocks:
                self.fail(f"variable {name!r} has no 'probability' block")

    def fail(self, problem: str, position: int | None = None) -> NoReturn:
        """Raise a FormatError that names the line."""
        line = self.text.count("\n", 0, self.position if position is None else position) + 1
        raise FormatError(f"line {line}: {problem}")

    def fail_at(self, token: str | None, wanted: str) -> NoReturn:
        """Raise a FormatError for a token that is not what is wanted."""
        self.fail(
            f"{'the end of the file' if token is None else repr(token)} where {wanted} must stand"
        )

    def next(self) -> str | None:
        """Return the next token, a name still in its quotes; None at the end of the text."""
        match = _TOKEN.match(self.text, self.position)
        if match is None:
            if self.text[self.position :].strip():
                self.fail("a quotation mark that is not closed on its line")
            return None
        self.position = match.end()
        return match[1]

    def expect(self, *wanted: str) -> None:
        """Skip the tokens `wanted`."""
        for each in wanted:
            found = self.next()
            if found != each:
                self.fail_at(found, repr(each))

    def name(self) -> str:
        """Return the next token, which must be a name, without its quotes."""
        found = self.next()
        if found is None or found in _PUNCTUATION or found == '""':
            self.fail_at(found, "a name")
        return found.strip('"')

    def names_until(self, end: str) -> tuple[list[str], list[str]]:
        """Return the names up to the token `end`: those before a bar, and those after it."""
        before: list[str] = []
        after: list[str] = []
        names = before
        while (found := self.next()) != end:
            if found == "|" and names is before:
                names = after
            elif found is None or found == '""' or (found in _PUNCTUATION and found != ","):
                self.fail_at(found, f"a name or {end!r}")
            elif found != ",":
                names.append(found.strip('"'))
        return before, after

    def parse(self, text: str) -> list[float]:
        """Return the numbers in a text of numbers, commas and white space."""
        try:
            return [float(number) for number in text.replace(",", " ").split()]
        except ValueError as error:
            self.fail(f"{error}; write probabilities as 0.25 or 2.5e-1")

    def numbers(self) -> list[float]:
        """Return the numbers up to the next semicolon."""
        match = _NUMBERS.match(self.text, self.position)
        if match is None:
            self.fail("numbers and then ';' must stand here")
        numbers = self.parse(match[1])
        self.position = match.end()
        return numbers

    def property(self) -> tuple[str, list[str]]:
        """Return the key and the values of a property `key = value, value ;`."""
        match = _PROPERTY.match(self.text, self.position)
        if match is None:
            self.fail("a property that does not end in ';'")
        self.position = match.end()
        key, _, values = match[0].removesuffix(";").partition("=")
        return key.strip(), [unquote(value.strip()) for value in values.split(",")]

    def network(self) -> None:
        """Skip the network's name and its properties."""
        while (found := self.next()) != "{":
            if found is None or found in _PUNCTUATION:
                self.fail_at(found, "the network's name or '{'")
        while (found := self.next()) != "}":
            if found != "property":
                self.fail_at(found, "'property' or '}'")
            self.property()

    def variable(self) -> None:
        """Read a variable and its states."""
        name = self.name()
        if name in self.variables:
            self.fail(f"variable {name!r} is declared a second time; give each its own name")
        self.expect("{")
        properties: dict[str, list[str]] = {}
        while (found := self.next()) != "}":
            if found == "property":
                key, values = self.property()
                properties[key] = values
                continue
            if found != "type" or name in self.variables:
                self.fail_at(found, "one 'type discrete', 'property' or '}'")
            self.expect("discrete", "[")
            count = self.name()
            self.expect("]", "{")
            states, conditions = self.names_until("}")
            self.expect(";")
            if conditions or not states or str(len(states)) != count:
                self.fail(
                    f"{name!r} declares [ {count} ] states and lists {len(states)}; put names with "
                    "spaces in quotes"
                )
            if len(set(states)) != len(states):
                self.fail(f"{name!r} lists a state twice; give each its own name")
            self.variables[name] = tuple(states)
        if name not in self.variables:
            self.fail(f"variable {name!r} has no 'type discrete' line")
        own = tuple(properties.get("qubayes_states", self.variables[name]))
        if len(own) != len(self.variables[name]):
            self.fail(
                f"{name!r} has {len(self.variables[name])} states and {len(own)} in its property "
                "qubayes_states"
            )
        self.originals[name] = ",".join(properties.get("qubayes_name", [name])), own

    def probability(self) -> None:
        """Read a probability block."""
        start = self.position
        self.expect("(")
        names, parents = self.names_until(")")
        if not names or (parents and len(names) != 1):
            self.fail("write 'probability ( child | parent, parent )', one child to a block")
        # JavaBayes writes no bar: the first name is the child.
        block = _Block(start, names[0], names[1:] or parents)
        if block.child in self.blocks:
            self.fail(f"a second probability block of {block.child!r}; keep one", start)
        self.blocks[block.child] = block
        self.expect("{")
        self.rows(block)
        while (found := self.next()) != "}":
            if found == "property":
                self.property()
            elif found == "table" and block.table is None:
                block.table = self.numbers()
            elif found == "default" and block.default is None:
                block.default = self.numbers()
            else:
                self.fail_at(found, "'(states) numbers;', one 'table', one 'default' or '}'")
            self.rows(block)

    def rows(self, block: _Block) -> None:
        """Read the rows `(states) numbers;` that follow."""
        while (row := _ROW.match(self.text, self.position)) is not None:
            self.position = row.start(1)
            states = [state.strip('"') for state in _NAME.findall(row[1])]
            block.rows.append((row.start(1), states, self.parse(row[2])))
            self.position = row.end()


def _table(parser: _Parser, block: _Block, graph: Network, vertex: int) -> Floats:
    """Return the numbers of the block with the parents' axes first and the child's last."""
    *arities, arity = shape = graph.table_shape(vertex)
    size = math.prod(shape)
    configurations = math.prod(arities)
    if block.table is not None:
        if block.rows or block.default or len(block.table) != size:
            parser.fail(
                f"{block.child!r} needs one table of {size} numbers, not {len(block.table)}",
                block.position,
            )
        return np.moveaxis(np.array(block.table).reshape(arity, *arities), 0, -1)
    if block.default is None and len(block.rows) != configurations:
        parser.fail(
            f"{block.child!r} has {len(block.rows)} of {configurations} rows and no 'default'",
            block.position,
        )
    if size > _LARGEST_TABLE:
        parser.fail(
            f"the table of {block.child!r} has {size} numbers; at most {_LARGEST_TABLE}",
            block.position,
        )
    if block.default is not None and len(block.default) != arity:
        parser.fail(f"'default' of {block.child!r} needs {arity} numbers", block.position)
    table = np.empty(shape)
    table[...] = block.default or np.nan
    _set_rows(parser, block, table)
    return table


def _set_rows(parser: _Parser, block: _Block, table: Floats) -> None:
    """Write the rows of the block into the table; raise for unknown states and second rows."""
    states_of = [parser.variables[name] for name in block.parents]
    indices = [{state: i for i, state in enumerate(states)} for states in states_of]
    arity = table.shape[-1]
    given: set[tuple[int, ...]] = set()
    for position, states, numbers in block.rows:
        if len(states) != len(indices) or len(numbers) != arity:
            parser.fail(
                f"a row of {block.child!r} needs {len(indices)} states and {arity} numbers",
                position,
            )
        for index, state, parent in zip(indices, states, block.parents, strict=True):
            if state not in index:
                parser.fail(f"{state!r} is not a state of {parent!r}", position)
        configuration = tuple(index[state] for index, state in zip(indices, states, strict=True))
        if configuration in given:
            parser.fail(f"a second row of {block.child!r} for ({', '.join(states)})", position)
        given.add(configuration)
        table[configuration] = numbers
