"""The grammar of LP files: from lines to a program of numbered variables."""

import math
import re
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, TypeAlias

from ..foundation.errors import FormatError
from .terms import MAX_BITS

_NAME = r"[A-DF-Za-df-z!\"#$%&(),;?@_'{}~][A-Za-z0-9!\"#$%&(),.;?@_'{}~]{0,254}"
_TOKEN = re.compile(
    rf"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>{_NAME})|(?P<sign><=|>=|=<|=>|[-+*^<>=/:\[\]]))"
)
_SENSES = {"<": "<=", "<=": "<=", "=<": "<=", ">": ">=", ">=": ">=", "=>": ">=", "=": "=="}
_SECTIONS = {
    "minimize": "min", "minimise": "min", "minimum": "min", "min": "min",
    "maximize": "max", "maximise": "max", "maximum": "max", "max": "max",
    "subject to": "rows", "such that": "rows", "st": "rows", "s.t.": "rows", "st.": "rows",
    "bounds": "bounds", "bound": "bounds",
    "binary": "BINARY", "binaries": "BINARY", "bin": "BINARY",
    "general": "INTEGER", "generals": "INTEGER", "gen": "INTEGER", "integer": "INTEGER", "integers": "INTEGER",
    "end": "end",
}  # fmt: skip
_REFUSED = {"semi-continuous", "semi", "semis", "sos", "sos1", "sos2", "pwlobj", "general constraints"}
_INFINITIES = {"inf", "infinity"}
_WORDS = {*_SECTIONS, *_REFUSED, *_INFINITIES, "free", "subject", "to", "such", "that", "obj"}


Kind: TypeAlias = Literal["BINARY", "INTEGER", "REAL"]


class Expression(NamedTuple):
    """sum weights_k x_variables_k + sum quadratic_k x_rows_k x_cols_k + constant, of numbered variables."""

    variables: list[int]
    weights: list[float]
    rows: list[int]
    cols: list[int]
    quadratic: list[float]
    constant: float


class Constraint(NamedTuple):
    """left sense right."""

    name: str
    left: Expression
    sense: str  # "<=", ">=", "=="
    right: float


class LinearProgram(NamedTuple):
    """What stands in an LP file; the objective is minimised."""

    names: list[str]  # in the order in which they occur
    objective: Expression
    constraints: list[Constraint]
    kinds: dict[str, Kind]  # others are real
    bounds: dict[str, tuple[float, float]]

    def kind_of(self, name: str) -> tuple[Kind, float, float | None]:
        """(kind, lower bound, upper bound) of a variable; no upper bound: None."""
        kind: Kind = self.kinds.get(name, "REAL")
        if kind == "BINARY":
            return kind, 0.0, 1.0
        lower, upper = self.bounds.get(name, (0.0, math.inf))
        return kind, lower, None if math.isinf(upper) else upper


def is_name(text: str) -> bool:
    """Whether a variable can have this name in an LP file and no reader takes it for something else."""
    return re.fullmatch(_NAME, text) is not None and text.lower() not in _WORDS


def parse_lp(lines: Iterable[str], comments: list[str]) -> LinearProgram:
    """The program in the lines; the comments go to the list."""
    parser = _Parser()
    section = ""
    held: list[str] = []  # tokens of the section
    for line in lines:
        text, _, comment = line.partition("\\")
        if comment:
            comments.append(comment.strip())
        found, rest = _section(text)
        if found:
            parser.finish(section, held)
            section, held = found, []
        held.extend(_tokens(rest))
    parser.finish(section, held)
    if section != "end":
        raise FormatError("the file does not end with `End`")
    return parser.program()


def _section(line: str) -> tuple[str, str]:
    """(section that this line opens, what follows on it); ("", line) if it opens none."""
    text = line.strip().lower()
    if text in _REFUSED:
        raise FormatError(f"a section {text!r}; only linear and quadratic terms, bounds, binary and general are read")
    return (_SECTIONS[text], "") if text in _SECTIONS else ("", line)


def _tokens(line: str) -> Iterator[str]:
    at, text = 0, line.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if not match:
            raise FormatError(f"{text[at : at + 40].strip()!r} is no number, name or sign of the LP format")
        yield match[match.lastgroup or 0]
        at = match.end()


class _Parser:
    """Sections come in, the program grows."""

    def __init__(self) -> None:
        self._index: dict[str, int] = {}
        self._objective: Expression | None = None
        self._constraints: list[Constraint] = []
        self._kinds: dict[str, Kind] = {}
        self._bounds: dict[str, tuple[float, float]] = {}

    def program(self) -> LinearProgram:
        """What was read."""
        objective = self._objective or Expression([], [], [], [], [], 0.0)
        return LinearProgram(list(self._index), objective, self._constraints, self._kinds, self._bounds)

    def finish(self, section: str, tokens: list[str]) -> None:
        """Take a whole section."""
        if section in ("", "end"):
            if tokens:
                raise FormatError(f"{tokens[0][:40]!r} stands outside every section")
        elif section in ("min", "max"):
            self._take_objective(tokens, 1.0 if section == "min" else -1.0)
        elif section == "rows":
            self._take_constraints(tokens)
        elif section == "bounds":
            self._take_bounds(tokens)
        else:
            for name in tokens:
                self._number(name)
                self._kinds[name] = "BINARY" if section == "BINARY" else "INTEGER"

    def _take_objective(self, tokens: list[str], sign: float) -> None:
        if self._objective is not None:
            raise FormatError("two objectives")
        at = 2 if tokens[1:2] == [":"] else 0
        expression, at = self._expression(tokens, at)
        if at != len(tokens):
            raise FormatError(f"{tokens[at][:40]!r} in the objective")
        self._objective = expression if sign > 0 else _negated(expression)

    def _take_constraints(self, tokens: list[str]) -> None:
        at = 0
        while at < len(tokens):
            name = f"c{len(self._constraints)}"
            if tokens[at + 1 : at + 2] == [":"]:
                name, at = tokens[at], at + 2
            left, at = self._expression(tokens, at)
            sense = _SENSES.get(tokens[at]) if at < len(tokens) else None
            if sense is None:
                raise FormatError(f"the constraint {name[:40]!r} has no <=, >= or =")
            right, at = _constant(tokens, at + 1)
            if math.isinf(right):
                raise FormatError(f"the constraint {name[:40]!r} with an infinite right side")
            self._constraints.append(Constraint(name, left._replace(constant=0.0), sense, right - left.constant))

    def _take_bounds(self, tokens: list[str]) -> None:
        """`l <= x <= u`, `x <= u`, `x >= l`, `x = v`, `x free`."""
        at = 0
        while at < len(tokens):
            left: float | None = None
            sense = ""
            if not _is_variable(tokens[at]):
                left, at = _constant(tokens, at)
                sense, at = _sense(tokens, at)
            name = tokens[at] if at < len(tokens) else ""
            self._number(name)
            at += 1
            if left is not None:
                self._bound(name, {"<=": ">=", ">=": "<=", "==": "=="}[sense], left)
            if tokens[at : at + 1] and tokens[at].lower() == "free" and left is None:
                self._bounds[name] = (-math.inf, math.inf)
                at += 1
            elif at < len(tokens) and tokens[at] in _SENSES:
                sense, at = _sense(tokens, at)
                right, at = _constant(tokens, at)
                self._bound(name, sense, right)
            elif left is None:
                raise FormatError(f"{name[:40]!r} in the bounds without a bound")

    def _bound(self, name: str, sense: str, value: float) -> None:
        lower, upper = self._bounds.get(name, (0.0, math.inf))
        self._bounds[name] = (lower if sense == "<=" else value, upper if sense == ">=" else value)

    def _number(self, name: str) -> int:
        """The number of the variable, a new one if it is new."""
        if not _is_variable(name):
            raise FormatError(f"{name[:40]!r} where a variable is needed")
        if len(self._index) >= MAX_BITS:
            raise FormatError(f"more than {MAX_BITS:,} variables")
        return self._index.setdefault(name, len(self._index))

    def _expression(self, tokens: list[str], at: int) -> tuple[Expression, int]:
        """(the expression that begins here, where it ends)."""
        variables: list[int] = []
        weights: list[float] = []
        rows: list[int] = []
        cols: list[int] = []
        quadratic: list[float] = []
        constant = 0.0
        while at < len(tokens) and not _ends(tokens, at):
            weight, at = _coefficient(tokens, at)
            if tokens[at : at + 1] == ["["]:
                at = self._quadratic(tokens, at + 1, weight, (rows, cols, quadratic))
            elif at < len(tokens) and _is_variable(tokens[at]) and not _ends(tokens, at):
                variables.append(self._number(tokens[at]))
                weights.append(weight)
                at += 1
            else:
                constant += weight
        return Expression(variables, weights, rows, cols, quadratic, constant), at

    def _quadratic(
        self, tokens: list[str], at: int, factor: float, result: tuple[list[int], list[int], list[float]]
    ) -> int:
        """Take `... ]` or `... ] / 2` into the lists; where it ends."""
        first = len(result[2])
        while tokens[at : at + 1] != ["]"]:
            weight, at = _coefficient(tokens, at)
            i = self._number(tokens[at] if at < len(tokens) else "")
            if tokens[at + 1 : at + 3] == ["^", "2"]:
                j = i
            elif tokens[at + 1 : at + 2] == ["*"]:
                j = self._number(tokens[at + 2] if at + 2 < len(tokens) else "")
            else:
                raise FormatError("inside [ ] only terms `x * y` and `x ^ 2` are allowed")
            at += 3
            result[0].append(i)
            result[1].append(j)
            result[2].append(weight)
        at += 1
        if tokens[at : at + 2] == ["/", "2"]:
            factor, at = factor / 2, at + 2
        result[2][first:] = [factor * weight for weight in result[2][first:]]
        return at


def _ends(tokens: list[str], at: int) -> bool:
    """Whether an expression ends here: before a sense, or before the name of the next constraint."""
    return tokens[at] in _SENSES or tokens[at + 1 : at + 2] == [":"]


def _coefficient(tokens: list[str], at: int) -> tuple[float, int]:
    """(signed number, 1 if there is only a sign or nothing; where it ends)."""
    start, sign = at, 1.0
    while at < len(tokens) and tokens[at] in "+-":
        sign, at = -sign if tokens[at] == "-" else sign, at + 1
    if at < len(tokens) and (tokens[at][0].isdigit() or tokens[at][0] == "."):
        return sign * _finite(tokens[at]), at + 1
    if at >= len(tokens) or not (tokens[at] == "[" or _is_variable(tokens[at])):
        raise FormatError(f"{' '.join(tokens[start : at + 1])[:40]!r} where a term is needed")
    return sign, at


def _constant(tokens: list[str], at: int) -> tuple[float, int]:
    """(signed number or infinity, where it ends)."""
    sign = 1.0
    while at < len(tokens) and tokens[at] in "+-":
        sign, at = -sign if tokens[at] == "-" else sign, at + 1
    text = tokens[at].lower() if at < len(tokens) else ""
    if text in _INFINITIES:
        return sign * math.inf, at + 1
    if not text or not (text[0].isdigit() or text[0] == "."):
        raise FormatError(f"{text[:40]!r} where a number is needed")
    return sign * _finite(text), at + 1


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise FormatError(f"the number {text[:40]} is too large for a float")
    return value


def _sense(tokens: list[str], at: int) -> tuple[str, int]:
    sense = _SENSES.get(tokens[at]) if at < len(tokens) else None
    if sense is None:
        raise FormatError("a bound without <=, >= or =")
    return sense, at + 1


def _is_variable(token: str) -> bool:
    return re.fullmatch(_NAME, token) is not None and token.lower() not in _INFINITIES


def _negated(expression: Expression) -> Expression:
    weights, quadratic = ([-w for w in part] for part in (expression.weights, expression.quadratic))
    return expression._replace(weights=weights, quadratic=quadratic, constant=-expression.constant)
