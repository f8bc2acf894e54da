"""The Bayesian interchange format (.bif), in the dialects of bnlearn, JavaBayes, aGrUM and pgmpy.

Names may be quoted, commas are optional, `property` lines and comments are passed over, `default` stands for the rows
that are not given. `table` lists the numbers with the child's states slowest, then the first parent, as BIF 0.15 does.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import NoReturn

import numpy as np

from ..foundation.arrays import Floats
from ..foundation.errors import FormatError
from ..foundation.files import read_text
from .assembly import MOST_BYTES, assembled, check_axes, unholdable, with_tables
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
_PLAIN = re.compile(r"[\w.-]+")  # written without quotes, which most other readers do not know


def bif_text(network: Network) -> str:
    """The network as a BIF file, in the dialect of the Bayesian network repository."""
    states, tables = with_tables(".bif", network)
    if not network.n:
        raise FormatError("a .bif file cannot hold a network without vertices; write .json instead")
    names = [_written(name) for name in network.names]
    labels = [[_written(state) for state in its] for its in states]
    lines = ["network unknown {", "}"]
    for name, its in zip(names, labels, strict=True):
        lines += [f"variable {name} {{", f"  type discrete [ {len(its)} ] {{ {', '.join(its)} }};", "}"]
    for vertex, (parents, table) in enumerate(zip(network.parents, tables, strict=True)):
        given = f" | {', '.join(names[p] for p in parents)}" if parents else ""
        lines += [f"probability ( {names[vertex]}{given} ) {{", *_rows(table, [labels[p] for p in parents]), "}"]
    return "\n".join(lines) + "\n"


def _rows(table: Floats, labels: list[list[str]]) -> Iterator[str]:
    """The lines of a probability block; repr gives every number back exactly."""
    for given, numbers in zip(product(*labels), table.reshape(-1, table.shape[-1]).tolist(), strict=True):
        start = f"({', '.join(given)})" if given else "table"
        yield f"  {start} {', '.join(map(repr, numbers))};"


def _written(name: str) -> str:
    if _PLAIN.fullmatch(name):
        return name
    if not name:
        raise unholdable(".bif", name, "it is empty")
    for bad, called in (('"', "a quotation mark"), ("\n", "a line break"), ("\0", "a NUL character")):
        if bad in name:
            raise unholdable(".bif", name, f"it has {called}", ".json" if bad != '"' else ".xmlbif")
    return f'"{name}"'


@dataclass(slots=True)
class _Block:
    """One `probability` block as written; names are looked up when all variables are known."""

    position: int
    child: str
    parents: list[str]
    table: list[float] | None = None
    default: list[float] | None = None
    rows: list[tuple[int, list[str], list[float]]] = field(default_factory=list)  # position, parent states, numbers


def read_bif(path: str | Path) -> Network:
    """The network in a `.bif` or `.bif.gz` file. One whose probability blocks are all empty has no tables."""
    scanner = _Scanner(path, read_text(path, MOST_BYTES))
    variables: dict[str, tuple[str, ...]] = {}
    blocks: dict[str, _Block] = {}
    while (keyword := scanner.next()) is not None:
        if keyword == "network":
            scanner.skip_network()
        elif keyword == "variable":
            _read_variable(scanner, variables)
        elif keyword == "probability":
            _read_block(scanner, blocks)
        else:
            scanner.fail(f"{keyword!r} where 'network', 'variable' or 'probability' must stand")
    return _assemble(scanner, variables, blocks)


class _Scanner:
    """A place in the text, and what follows it."""

    def __init__(self, path: str | Path, text: str) -> None:
        self.path = path
        self.position = 0
        self.text = text
        if "//" in text or "/*" in text:
            self.text = _COMMENT.sub(self._blank, text)

    def fail(self, problem: str, position: int | None = None) -> NoReturn:
        """Raise a FormatError that names the file and the line."""
        line = self.text.count("\n", 0, self.position if position is None else position) + 1
        raise FormatError(f"{self.path}, line {line}: {problem}")

    def _blank(self, match: re.Match[str]) -> str:
        """A comment as white space with as many lines; a quoted name as it is."""
        if match[0].startswith('"'):
            return match[0]
        if match[0].startswith("/*") and not match[0].endswith("*/"):
            self.fail("a comment that is never closed with '*/'", match.start())
        return " " + "\n" * match[0].count("\n")

    def next(self) -> str | None:
        """The next token, a name still in its quotes; None at the end of the text."""
        match = _TOKEN.match(self.text, self.position)
        if match is None:
            if self.text[self.position :].strip():
                self.fail("a quotation mark that is not closed on its line")
            return None
        self.position = match.end()
        return match[1]

    def expect(self, wanted: str) -> None:
        """Pass over the token `wanted`."""
        found = self.next()
        if found != wanted:
            self.fail(f"{_shown(found)} where {wanted!r} must stand")

    def name(self) -> str:
        """The next token, which must be a name, without its quotes."""
        found = self.next()
        if found is None or found in _PUNCTUATION or found == '""':
            self.fail(f"{_shown(found)} where a name must stand")
        return found.strip('"')

    def names_until(self, end: str) -> tuple[list[str], list[str]]:
        """The names up to the token `end`, and those of them after a bar."""
        before: list[str] = []
        after: list[str] = []
        names = before
        while (found := self.next()) != end:
            if found == "|" and names is before:
                names = after
            elif found is None or found == '""' or (found in _PUNCTUATION and found != ","):
                self.fail(f"{_shown(found)} where a name or {end!r} must stand")
            elif found != ",":
                names.append(found.strip('"'))
        return before, after

    def numbers(self) -> list[float]:
        """The numbers up to the next semicolon."""
        match = _NUMBERS.match(self.text, self.position)
        if match is None:
            self.fail("numbers and then ';' must stand here")
        numbers = self.parse(match[1])
        self.position = match.end()
        return numbers

    def parse(self, text: str) -> list[float]:
        """The numbers in a text made of digits, signs, points, exponents, commas and white space."""
        try:
            return [float(number) for number in text.replace(",", " ").split()]
        except ValueError as error:
            self.fail(f"{error}; write probabilities as 0.25 or 2.5e-1")

    def row(self) -> tuple[int, list[str], list[float]] | None:
        """`(states) numbers;` as (position, states, numbers), or None if something else follows."""
        match = _ROW.match(self.text, self.position)
        if match is None:
            return None
        start = self.position = match.start(1)
        states = [state.strip('"') for state in _NAME.findall(match[1])]
        numbers = self.parse(match[2])
        self.position = match.end()
        return start, states, numbers

    def skip_property(self) -> None:
        """Pass over the rest of a property, its semicolon included."""
        match = _PROPERTY.match(self.text, self.position)
        if match is None:
            self.fail("a property that does not end in ';'")
        self.position = match.end()

    def skip_network(self) -> None:
        """Pass over the network's name and its properties."""
        while (found := self.next()) != "{":
            if found is None or found in _PUNCTUATION:
                self.fail(f"{_shown(found)} where the network's name or '{{' must stand")
        while (found := self.next()) != "}":
            if found != "property":
                self.fail(f"{_shown(found)} where 'property' or '}}' must stand")
            self.skip_property()


def _shown(token: str | None) -> str:
    return "the end of the file" if token is None else repr(token)


def _read_variable(scanner: _Scanner, variables: dict[str, tuple[str, ...]]) -> None:
    name = scanner.name()
    if name in variables:
        scanner.fail(f"variable {name!r} is declared a second time; give each its own name")
    scanner.expect("{")
    while (found := scanner.next()) != "}":
        if found == "property":
            scanner.skip_property()
        elif found == "type" and name not in variables:
            variables[name] = _read_states(scanner, name)
        else:
            scanner.fail(f"{_shown(found)} where one 'type discrete', 'property' or '}}' must stand")
    if name not in variables:
        scanner.fail(f"variable {name!r} has no 'type discrete' line")


def _read_states(scanner: _Scanner, name: str) -> tuple[str, ...]:
    scanner.expect("discrete")
    scanner.expect("[")
    count = scanner.name()
    scanner.expect("]")
    scanner.expect("{")
    states, conditions = scanner.names_until("}")
    scanner.expect(";")
    if conditions or not states or str(len(states)) != count:
        scanner.fail(f"{name!r} declares [ {count} ] states and lists {len(states)}; put names with spaces in quotes")
    if len(set(states)) != len(states):
        scanner.fail(f"{name!r} lists a state twice; give each its own name")
    return tuple(states)


def _read_block(scanner: _Scanner, blocks: dict[str, _Block]) -> None:
    start = scanner.position
    scanner.expect("(")
    names, parents = scanner.names_until(")")
    if not names or (parents and len(names) != 1):
        scanner.fail("write 'probability ( child | parent, parent )', one child to a block")
    # JavaBayes writes no bar: the first name is the child.
    block = _Block(start, names[0], names[1:] or parents)
    if block.child in blocks:
        scanner.fail(f"a second probability block of {block.child!r}; keep one", start)
    blocks[block.child] = block
    scanner.expect("{")
    _read_entries(scanner, block)


def _read_entries(scanner: _Scanner, block: _Block) -> None:
    while True:
        while (row := scanner.row()) is not None:
            block.rows.append(row)
        found = scanner.next()
        if found == "}":
            return
        if found == "property":
            scanner.skip_property()
        elif found == "table" and block.table is None:
            block.table = scanner.numbers()
        elif found == "default" and block.default is None:
            block.default = scanner.numbers()
        else:
            scanner.fail(f"{_shown(found)} where '(states) numbers;', one 'table', one 'default' or '}}' must stand")


def _assemble(scanner: _Scanner, variables: dict[str, tuple[str, ...]], blocks: dict[str, _Block]) -> Network:
    if not variables:
        scanner.fail("no 'variable' block; this is no BIF file, or an empty one")
    index = {name: i for i, name in enumerate(variables)}
    for block in blocks.values():
        for name in (block.child, *block.parents):
            if name not in index:
                scanner.fail(f"{name!r} is not declared by a 'variable' block", block.position)
    for name in variables:
        if name not in blocks:
            scanner.fail(f"variable {name!r} has no 'probability' block")
    ordered = [blocks[name] for name in variables]
    parents = tuple(tuple(index[name] for name in block.parents) for block in ordered)
    bare = all(block.table is None and block.default is None and not block.rows for block in ordered)
    states = tuple(variables.values())
    graph = assembled(scanner.path, tuple(variables), parents, states)
    if bare:
        return graph
    return assembled(
        scanner.path, graph.names, parents, states, [_table(scanner, block, variables) for block in ordered]
    )


def _table(scanner: _Scanner, block: _Block, variables: dict[str, tuple[str, ...]]) -> Floats:
    """The numbers of the block with the parents' axes first and the child's last."""
    arity = len(variables[block.child])
    arities = [len(variables[name]) for name in block.parents]
    check_axes(scanner.path, block.child, len(arities) + 1)
    size = math.prod(arities) * arity
    if block.table is not None:
        if block.rows or block.default or len(block.table) != size:
            scanner.fail(f"{block.child!r} needs one table of {size} numbers, not {len(block.table)}", block.position)
        return np.moveaxis(np.array(block.table).reshape(arity, *arities), 0, -1)
    if block.default is None and len(block.rows) * arity != size:
        wanted = math.prod(arities)
        scanner.fail(f"{block.child!r} has {len(block.rows)} of {wanted} rows and no 'default'", block.position)
    if size > _LARGEST_TABLE:
        scanner.fail(f"the table of {block.child!r} has {size} numbers; at most {_LARGEST_TABLE}", block.position)
    return _filled(scanner, block, variables).reshape(*arities, arity)


def _filled(scanner: _Scanner, block: _Block, variables: dict[str, tuple[str, ...]]) -> Floats:
    """(parent configurations, arity) from the rows, and from `default` where there is no row."""
    arity = len(variables[block.child])
    codes = [{state: i for i, state in enumerate(variables[name])} for name in block.parents]
    table = np.full((math.prod(map(len, codes)), arity), np.nan)
    given = np.zeros(len(table), dtype=bool)
    for position, states, numbers in block.rows:
        if len(states) != len(codes) or len(numbers) != arity:
            scanner.fail(f"a row of {block.child!r} needs {len(codes)} states and {arity} numbers", position)
        configuration = 0
        for code, state, parent in zip(codes, states, block.parents, strict=True):
            if state not in code:
                scanner.fail(f"{state!r} is no state of {parent!r}", position)
            configuration = configuration * len(code) + code[state]
        if given[configuration]:
            scanner.fail(f"a second row of {block.child!r} for ({', '.join(states)})", position)
        given[configuration] = True
        table[configuration] = numbers
    if block.default is not None:
        if len(block.default) != arity:
            scanner.fail(f"'default' of {block.child!r} needs {arity} numbers", block.position)
        table[~given] = block.default
    return table
