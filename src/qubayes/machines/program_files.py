"""Files of mathematical programs: quadratic objective, constraints, bounds, kinds of variables. LP and QPLIB.

LP: names are restricted, and ours (`u[Smoker|Age,Sex]`) do not fit: then bits are called x0, x1,
    ..., constraints c0, c1, ..., and comments give the labels. Files are read by dimod, 8 to 22
    times as fast as a reader in Python. Our writer streams a QUBO, keeps zero coefficients (they
    keep the order of the variables) and all digits of a float.

QPLIB: a file is a list of numbers in a fixed order; words behind the expected ones are comments. A
    listed entry q of (i, j) means q/2 x_i x_j, as in the published files and in the readers of OMMX
    (2.8) and Amplify. (The paper on QPLIB describes a symmetric matrix, in which an entry off the
    diagonal would count twice.) A name has no white space. If a label does not fit, variables are
    called x1, x2, ..., constraints c1, c2, ..., and comments behind the names hold the labels."""

import io
import json
import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import islice
from typing import IO, Any, NamedTuple

import numpy as np

from ..foundation.arrays import AnyArray, Floats
from ..foundation.environment import dimod
from ..foundation.errors import FormatError
from ..foundation.files import lines_of, parse_json, shown
from .qubo import ModelTerms, Qubo, check_labels, check_size, coupler_chunks
from .text_files import label_text, lines_of_terms, read_terms

_FLAGS = re.IGNORECASE | re.ASCII
_LP_NAME = re.compile(
    r"(?!inf|nan)[A-DF-Z!\"#$%&(),?@_'{}~][A-Z0-9!\"#$%&(),.?@_'{}~]{0,254}", _FLAGS
)
_KEYWORDS = {
    "minimize", "minimise", "minimum", "min", "maximize", "maximise", "maximum", "max", "obj", "subject", "to", "such",
    "that", "st", "s.t.", "st.", "bounds", "bound", "free", "binary", "binaries", "bin", "general", "generals", "gen",
    "integer", "integers", "semi", "semis", "sos", "sos1", "sos2", "s1", "s2", "pwlobj", "end",
}  # fmt: skip
# Patterns of text in lower case. They begin with a literal, which `re` finds 20 times as fast as
# alternatives.
_FIRST_WORD = re.compile(
    r"\s*(?:(?:min|max)(?:imize|imum)?|subject\s+to|such\s+that|st|s\.t\.)(?!\S)", re.ASCII
)
_OBJECTIVES = [
    re.compile(rf"{word}(?<!\S{word})(?:imize|imum)?(?!\S)", re.ASCII) for word in ("min", "max")
]
_MISREAD = [
    re.compile(r"sos(?<!\Ssos)[12]?(?!\S)", re.ASCII),
    re.compile(r"0x(?<![\w.]0x)"),
    re.compile(r"/\s*\*"),
]
_CONTROL = bytes(range(32)).translate(None, b"\t\n\r")
_ALLOWED = "allowed are the senses <=, >= and =, a quadratic objective as + [ ... ] / 2, and each section once"
_INFINITY = 1e300
_QPLIB_NAME = re.compile(r"[$&-~\"]{1,255}")  # no comment signs # ! %
_LABEL = "# qubayes label "
_KINDS = {"B": 2, "C": 0, "I": 1}  # the type of all variables: continuous, integer, binary


def write_lp_of_qubo(qubo: Qubo, labels: Sequence[str] | None, file: IO[bytes]) -> None:
    """Write the QUBO as an objective of binary variables, streamed."""
    if np.isinf(2 * qubo.weights).any():
        raise FormatError("twice a coupler is too large for a float; scale the model")
    names, comments = _names("label", "x", labels or [f"x{i}" for i in range(qubo.bits)])
    _write(file, comments)
    _write(file, ["Minimize\n obj:"])
    _write(
        file,
        _wrapped(f"{_signed(w)} {name}" for name, w in zip(names, qubo.h.tolist(), strict=True)),
    )
    if qubo.couplers:
        _write(file, [" + ["])
        for rows, cols, weights in coupler_chunks(qubo):
            triples = zip(rows.tolist(), cols.tolist(), (2 * weights).tolist(), strict=True)
            _write(file, _wrapped(f"{_signed(w)} {names[i]} * {names[j]}" for i, j, w in triples))
        _write(file, [" ] / 2"])
    _write(file, [f" {_signed(qubo.offset)}", "Subject To", "Binary", *_wrapped(names), "End"])


def write_lp(model: "dimod.ConstrainedQuadraticModel", file: IO[bytes]) -> None:
    """Write a constrained model; raise for spins and soft constraints, which the format does not have."""
    kinds = {v: model.vartype(v) for v in model.variables}
    if dimod.SPIN in kinds.values() or any(c.lhs.is_soft() for c in model.constraints.values()):
        raise FormatError("an LP file has no spins and no soft constraints; write a .cqm file")
    names, comments = _names("label", "x", list(model.variables))
    rows, row_comments = _names("constraint", "c", list(model.constraints))
    name_of = dict(zip(model.variables, names, strict=True))
    _write(file, [*comments, *row_comments, "Minimize\n obj:"])
    _write(file, _expression(model.objective, name_of, model.variables, halved=True))
    _write(file, [f" {_signed(float(model.objective.offset))}", "Subject To"])
    for row, constraint in zip(rows, model.constraints.values(), strict=True):
        rhs = float(constraint.rhs) - float(constraint.lhs.offset)
        left = _expression(constraint.lhs, name_of, constraint.lhs.variables, halved=False)
        _write(file, [f" {row}:", *left, f" {constraint.sense.value.replace('==', '=')} {rhs!r}"])
    numbers = [v for v, kind in kinds.items() if kind is not dimod.BINARY]
    _write(file, ["Bounds"])
    _write(
        file,
        (f" {model.lower_bound(v)!s} <= {name_of[v]} <= {model.upper_bound(v)!s}" for v in numbers),
    )
    _write(
        file, ["Binary", *_wrapped(name_of[v] for v, kind in kinds.items() if kind is dimod.BINARY)]
    )
    _write(
        file,
        [
            "General",
            *_wrapped(name_of[v] for v, kind in kinds.items() if kind is dimod.INTEGER),
            "End",
        ],
    )


def read_lp(file: IO[bytes]) -> "dimod.ConstrainedQuadraticModel":
    """Return the constrained model of an LP file; an objective to be maximised is negated."""
    text = file.read().decode("utf-8").replace("\r\n", "\n")
    content = re.sub(r"\\.*", "", text).rstrip()
    _check_content(content.lower())
    try:
        model = dimod.lp.load(io.BytesIO(content.encode()))
    except (ValueError, RuntimeError, IndexError) as error:
        raise FormatError(f"not an LP file that dimod reads ({error}); {_ALLOWED}") from error
    for v in model.variables:
        if not _LP_NAME.fullmatch(v):
            raise FormatError(f"{v[:40]!r} is not a name of a variable")
        if not model.lower_bound(v) <= model.upper_bound(v):
            raise FormatError(f"the bounds of {v[:40]!r} exclude each other")
    every = (np.ones((1, len(model.variables)), np.int8), list(model.variables))
    numbers = [float(model.objective.offset), *model.objective.energies(every)]
    for row in model.constraints.values():
        numbers += [row.rhs, row.lhs.offset, *(weight for _, weight in row.lhs.iter_linear())]
        numbers += [weight for _, _, weight in row.lhs.iter_quadratic()]
    if not np.isfinite(numbers).all():
        raise FormatError(
            "coefficients that are not finite, or add up to more than a float holds; scale the model, and rename "
            "variables that begin with inf or nan"
        )
    _restore_labels(model, text)
    return model


def _check_content(content: str) -> None:
    """Raise for text without `End`, and for what dimod's reader would take for something else.

    It skips text before the first keyword and a second objective, does not return from a NUL byte,
    takes other control characters for parts of names, 0x2 for a hexadecimal number and the 2 in + 2
    [ for a constant, skips the rest of a line after `;` and the text after `/*`, drops special
    ordered sets, and prints a line about indicator constraints."""
    if content[-4:].split()[-1:] != ["end"]:
        raise FormatError("the file does not end with `End`")
    if (
        not _FIRST_WORD.match(content)
        or sum(len(word.findall(content)) for word in _OBJECTIVES) > 1
    ):
        raise FormatError(
            "the file does not begin with Minimize, Maximize or Subject To, or has two objectives"
        )
    found = [match[0] for pattern in _MISREAD if (match := pattern.search(content))]
    found += [sign for sign in (";", "\r") if sign in content]
    found += [
        f"{sign} ["
        for part in content.split("[")[:-1]
        if (sign := part.rstrip()[-1:]) in "0123456789."
    ]
    found += [
        f"{sign} >" for part in content.split(">")[:-1] if (sign := part.rstrip()[-1:]) in "+-"
    ]
    raw = content.encode()
    if found or len(raw.translate(None, _CONTROL)) != len(raw):
        raise FormatError(
            f"{found[0] if found else 'a control character'!r} in an LP file; {_ALLOWED}"
        )


def _restore_labels(model: "dimod.ConstrainedQuadraticModel", text: str) -> None:
    """Give variables and constraints the labels of our comments, and constraints without a name c0, c1, ..."""
    labels: dict[str, dict[Hashable, str]] = {"label": {}, "constraint": {}}
    for comment in re.findall(r"\\\s*qubayes\b(.*)", text):
        match comment.split(maxsplit=2):
            case ["label" | "constraint" as kind, name, label] if isinstance(
                parse_json(label), str
            ):
                labels[kind][name] = parse_json(label)
            case _:
                raise FormatError(f"the comment `qubayes{comment[:80]}` is damaged")
    rows: dict[Hashable, str] = {
        row: f"c{row}" for row in model.constraints if isinstance(row, int)
    }
    rows |= {
        name: label for name, label in labels["constraint"].items() if name in model.constraints
    }
    variables = {name: label for name, label in labels["label"].items() if name in model.variables}
    for old, new in ((model.variables, variables), (model.constraints, rows)):
        if len({new.get(name, name) for name in old}) != len(old):
            raise FormatError("two variables or two constraints with the same label")
    model.relabel_variables(variables)
    model.relabel_constraints(rows)


def _expression(
    expression: Any, names: dict[Hashable, str], chosen: Iterable[Hashable], *, halved: bool
) -> Iterator[str]:
    """Yield lines of linear terms, zeros included, then of quadratic ones."""
    present = set(expression.variables)
    linear = ((names[v], float(expression.get_linear(v)) if v in present else 0.0) for v in chosen)
    yield from _wrapped(f"{_signed(weight)} {name}" for name, weight in linear)
    if expression.is_linear():
        return
    factor = 2.0 if halved else 1.0
    yield " + ["
    for u, v, weight in expression.iter_quadratic():
        if not np.isfinite(factor * float(weight)):
            raise FormatError("twice a coupler is too large for a float; scale the model")
        yield f"  {_signed(factor * float(weight))} {names[u]} * {names[v]}"
    yield " ] / 2" if halved else " ]"


def _names(kind: str, letter: str, labels: Sequence[Hashable]) -> tuple[list[str], list[str]]:
    """Return (names, comments): the labels themselves if all are LP names, else x0, x1, ... and their labels."""
    texts = _texts(labels)
    if all(_LP_NAME.fullmatch(text) and text.lower() not in _KEYWORDS for text in texts):
        return texts, []
    names = [f"{letter}{i}" for i in range(len(texts))]
    return names, [
        f"\\ qubayes {kind} {name} {label_text(text)}"
        for name, text in zip(names, texts, strict=True)
    ]


def _signed(weight: float) -> str:
    """Return the number with its sign apart: `+ 2.5`."""
    text = repr(weight)
    return f"- {text[1:]}" if text.startswith("-") else f"+ {text}"


def _wrapped(parts: Iterable[str], width: int = 200) -> Iterator[str]:
    """Yield lines of about `width` characters; readers of the format refuse lines beyond 510."""
    line: list[str] = []
    length = 0
    for part in parts:
        if length + len(part) > width and line:
            yield "  " + " ".join(line)
            line, length = [], 0
        line.append(part)
        length += len(part) + 1
    if line:
        yield "  " + " ".join(line)


def write_qplib_of_qubo(qubo: Qubo, labels: Sequence[str] | None, file: IO[bytes]) -> None:
    """Write the QUBO as a problem QBN: quadratic objective, binary variables, no constraints. Streamed."""
    if np.abs(qubo.weights).max(initial=0.0) > np.finfo(np.float64).max / 2:
        raise FormatError("twice a coupler is too large for a float; scale the model")
    _write(
        file,
        [
            "qubayes",
            "QBN",
            "minimize",
            qubo.bits,
            f"{qubo.couplers} # each entry q means q/2 x_i x_j",
        ],
    )
    for rows, cols, weights in coupler_chunks(qubo):
        file.write(lines_of_terms(2 * weights, cols + 1, rows + 1))
    _write_vector(file, 0.0, qubo.h)
    # constant, infinity, starting points
    _write(file, [repr(qubo.offset), _INFINITY, 0.0, 0, 0.0, 0])
    _write_names(file, "x", labels or ())
    _write_names(file, "c", ())


def write_qplib(model: "dimod.ConstrainedQuadraticModel", file: IO[bytes]) -> None:
    """Write a constrained model; raise for spins and soft constraints, which the format does not have."""
    numbers = {dimod.REAL: 0, dimod.INTEGER: 1, dimod.BINARY: 2}
    rows, place = list(model.constraints.values()), {v: k for k, v in enumerate(model.variables, 1)}
    if any(model.vartype(v) is dimod.SPIN for v in place) or any(row.lhs.is_soft() for row in rows):
        raise FormatError("a QPLIB file has no spins and no soft constraints; write a .cqm file")
    kinds = np.array([numbers[model.vartype(v)] for v in place], np.int64)
    kind = next((kind for kind, number in _KINDS.items() if (kinds == number).all()), "G")
    linear = all(row.lhs.is_linear() for row in rows)
    _write(
        file,
        [
            "qubayes",
            f"Q{kind}{'N' if not rows else 'L' if linear else 'Q'}",
            "minimize",
            len(place),
        ],
    )
    _write(file, [len(rows)] if rows else [])
    _write_entries(
        file,
        [(*_lower(place, u, v), 2.0 * float(w)) for u, v, w in model.objective.iter_quadratic()],
    )
    present = set(model.objective.variables)
    _write_vector(
        file,
        0.0,
        np.array([model.objective.get_linear(v) if v in present else 0.0 for v in place], float),
    )
    _write(file, [repr(float(model.objective.offset))])
    if rows:
        quadratic = [
            (k, u, v, w) for k, row in enumerate(rows, 1) for u, v, w in row.lhs.iter_quadratic()
        ]
        if not linear:
            _write_entries(
                file, [(k, *_lower(place, u, v), 2.0 * float(w)) for k, u, v, w in quadratic]
            )
        _write_entries(
            file,
            [(k, place[v], w) for k, row in enumerate(rows, 1) for v, w in row.lhs.iter_linear()],
        )
    _write(file, [_INFINITY])
    if rows:
        sides = np.array([float(row.rhs) - float(row.lhs.offset) for row in rows])
        senses = np.array([row.sense.value for row in rows])
        _write_vector(file, -_INFINITY, np.where(senses == "<=", -_INFINITY, sides))
        _write_vector(file, _INFINITY, np.where(senses == ">=", _INFINITY, sides))
    if kind != "B":
        _write_vector(file, 0.0, np.array([float(model.lower_bound(v)) for v in place]))
        _write_vector(file, 1.0, np.array([float(model.upper_bound(v)) for v in place]))
    if kind == "G":
        _write_vector(file, 2, kinds)
    # starting points of x, of y where there are constraints, and of z
    _write(file, [0.0, 0] * (3 if rows else 2))
    _write_names(file, "x", list(model.variables))
    _write_names(file, "c", list(model.constraints))


def read_qplib(file: IO[bytes]) -> "ModelTerms | dimod.ConstrainedQuadraticModel":
    """Return the terms of a problem of binary variables without constraints, else the constrained model.

    An objective to be maximised is negated. A row with two different bounds becomes two
    constraints."""
    source = _Source(file)
    source.word()  # the name of the problem
    kind, sense = source.word().upper(), source.word().lower()
    if not re.fullmatch("[LDCQ][CBMIG][NBLDCQ]", kind) or sense not in ("minimize", "maximize"):
        raise FormatError(
            f"{kind[:20]!r}, {sense[:20]!r}; a type such as QBL, and minimize or maximize are needed"
        )
    constrained = kind[2] in "LDCQ"
    n = source.count()
    m = source.count() if constrained else 0
    check_size(max(n, m))
    i, j, quadratic = source.entries(n, n, count=0 if kind[0] == "L" else None)
    linear, offset = source.vector(n), source.number()
    row_quadratic = source.entries(m, n, n, count=None if kind[2] in "DCQ" else 0)
    row_linear = source.entries(m, n, count=None if constrained else 0)
    infinity = source.number()
    sides = [source.vector(m) for _ in range(2)] if constrained else [np.empty(0)] * 2
    bounds = [np.zeros(n), np.ones(n)] if kind[1] == "B" else [source.vector(n) for _ in range(2)]
    types = source.vector(n) if kind[1] in "MG" else np.full(n, _KINDS[kind[1]])
    for length in (n, m, n) if constrained else (n, n):
        source.vector(length)  # starting points
    names, row_names = source.names(n), source.names(m)
    rows = _Rows(row_quadratic, row_linear, sides, row_names)
    check_size(max(n, m), source.lines)
    sign = 1.0 if sense == "minimize" else -1.0
    quadratic, linear, offset = sign * quadratic / 2, sign * linear, sign * offset
    labels = [names.get(k, f"x{k + 1}") for k in range(n)]
    if kind[1] == "B" and not m:
        bits = np.arange(n)
        entries = np.append(i, bits), np.append(j, bits), np.append(quadratic, linear)
        return ModelTerms.of_entries(n, entries, offset, labels if names else None)
    if not all(
        np.isfinite(array).all()
        for array in (quadratic, linear, offset, row_quadratic[-1], row_linear[-1])
    ):
        raise FormatError("a coefficient is infinite or not a number")
    model: dimod.ConstrainedQuadraticModel = _model_of_variables(labels, types, bounds)
    products = zip([labels[k] for k in i], [labels[k] for k in j], quadratic.tolist(), strict=True)
    model.set_objective([*products, *zip(labels, linear.tolist(), strict=True), (offset,)])
    for terms, sense_of_row, side, name in rows.constraints(labels, infinity):
        model.add_constraint_from_iterable(terms, sense_of_row, side, label=name)
    return model


class _Rows(NamedTuple):
    """The constraints as a file lists them: lower side <= sum of the entries of the row <= upper side."""

    quadratic: tuple[AnyArray, ...]  # row, i, j and twice the coefficient of each entry
    linear: tuple[AnyArray, ...]  # row, i and the coefficient of each entry
    sides: Sequence[Floats]  # lower and upper, each (rows,)
    names: dict[int, str]

    def constraints(
        self, labels: Sequence[str], infinity: float
    ) -> Iterator[tuple[list[Any], str, float, str]]:
        """Yield (terms, sense, right-hand side, name); two for a row with two different sides."""
        terms: list[list[tuple[Any, ...]]] = [[] for _ in self.sides[0]]
        for row, u, v, weight in zip(*(column.tolist() for column in self.quadratic), strict=True):
            terms[row].append((labels[u], labels[v], weight / 2))
        for row, v, weight in zip(*(column.tolist() for column in self.linear), strict=True):
            terms[row].append((labels[v], weight))
        for row, (low, high) in enumerate(
            zip(*(side.tolist() for side in self.sides), strict=True)
        ):
            name, both = self.names.get(row, f"c{row + 1}"), -infinity < low < high < infinity
            if low == high:
                yield terms[row], "==", low, name
            elif low > -infinity:
                yield terms[row], ">=", low, f"{name}.lower" if both else name
            if low != high and high < infinity:
                yield terms[row], "<=", high, f"{name}.upper" if both else name


def _model_of_variables(labels: Sequence[str], types: AnyArray, bounds: Sequence[Floats]) -> Any:
    """Return a constrained model with these variables and nothing else."""
    check_labels(labels, len(labels))
    model: Any = dimod.ConstrainedQuadraticModel()  # type: ignore[no-untyped-call]
    for label, number, low, high in zip(
        labels, types.tolist(), *(bound.tolist() for bound in bounds), strict=True
    ):
        if number == _KINDS["B"]:
            model.add_variable("BINARY", label)
        elif number in (_KINDS["C"], _KINDS["I"]) and low <= high:
            # dimod's limits
            vartype, most = ("REAL", 1e30) if number == _KINDS["C"] else ("INTEGER", 2.0**53 - 1)
            model.add_variable(
                vartype, label, lower_bound=max(low, -most), upper_bound=min(high, most)
            )
        else:
            raise FormatError(
                f"{label[:40]!r} has the type {number:g} and bounds from {low:g} to {high:g}"
            )
    return model


class _Source:
    """The numbers of a file in their order; indices are returned from 0."""

    def __init__(self, file: IO[bytes]) -> None:
        stripped = (line.strip() for line in lines_of(file))
        self._lines = (line for line in stripped if line and line[0] not in "#!%")
        self.lines = 0  # that were read

    def _next(self, what: str) -> str:
        line = next(self._lines, "")
        if not line:
            raise FormatError(f"the file ends where {what} is expected")
        self.lines += 1
        return line

    def word(self) -> str:
        """Return the first word of the next line."""
        return self._next("a word").split()[0]

    def count(self) -> int:
        """Return the number of entries or variables in the next line."""
        word = self.word()
        if not (word.isascii() and word.isdigit() and len(word) <= 18):
            raise FormatError(f"{word[:40]!r} where a count is expected")
        return int(word)

    def number(self) -> float:
        """Return the number in the next line."""
        word = self.word()
        try:
            return float(word)
        except ValueError:
            raise FormatError(f"{word[:40]!r} where a number is expected") from None

    def entries(self, *limits: int, count: int | None = None) -> tuple[AnyArray, ...]:
        """Return the columns of lines `index ... weight`, as many as the next line says, each index below its limit."""
        count = self.count() if count is None else count
        first: list[str] = []

        def terms() -> Iterator[str]:
            for line in islice(self._lines, count):
                words = line.split(None, len(limits) + 1)[: len(limits) + 1]
                if len(limits) != 2:  # `read_terms` reads two indices
                    first.append(words.pop(0) if len(limits) == 3 else "1")
                yield " ".join(words if len(limits) > 1 else [*first[-1:], *words])

        i, j, weights = read_terms(terms())
        if len(weights) != count:
            raise FormatError(f"the file ends inside a list of {count} entries")
        self.lines += count
        columns = (np.array(first, np.int64), i, j) if len(limits) == 3 else (i, j)[-len(limits) :]
        for column, limit in zip(columns, limits, strict=True):
            if len(column) and not 1 <= column.min() <= column.max() <= limit:
                raise FormatError(f"an index outside 1 to {limit}")
        return *(column - 1 for column in columns), weights

    def vector(self, length: int) -> Floats:
        """Return a vector that is given by a default and the entries that differ."""
        values = np.full(length, self.number())
        places, weights = self.entries(length)
        values[places] = weights
        return values

    def names(self, length: int) -> dict[int, str]:
        """Return the names that differ from x1, x2, ...; the labels behind them where there are any."""
        found: dict[int, str] = {}
        for _ in range(self.count()):
            place, name, comment = (*self._next("a name").split(None, 2), "")[:3]
            if not (place.isascii() and place.isdigit() and 1 <= int(place[:18]) <= length):
                raise FormatError(f"a name of number {place[:20]!r}; there are {length}")
            label = parse_json(comment.removeprefix(_LABEL)) if comment.startswith(_LABEL) else name
            if not isinstance(label, str):
                raise FormatError(f"the label {shown(label, 40)} is not a text")
            found[int(place) - 1] = label
        return found


def _lower(places: dict[Hashable, int], u: Hashable, v: Hashable) -> tuple[int, int]:
    """Return the numbers of two variables, the larger first."""
    return max(places[u], places[v]), min(places[u], places[v])


def _write_entries(file: IO[bytes], entries: Sequence[tuple[Any, ...]]) -> None:
    """Write the number of entries (index, ..., weight), then the entries."""
    if not np.isfinite([entry[-1] for entry in entries]).all():
        raise FormatError("a coefficient, or twice one, is too large for a float; scale the model")
    _write(
        file,
        [
            len(entries),
            *(" ".join(map(str, (*indices, float(weight)))) for *indices, weight in entries),
        ],
    )


def _write_vector(file: IO[bytes], default: float, values: AnyArray) -> None:
    """Write a vector as a default and the entries that differ."""
    places = np.flatnonzero(values != default)
    _write(file, [default, len(places)])
    file.write(lines_of_terms(values[places], places + 1))


def _write_names(file: IO[bytes], letter: str, labels: Sequence[Hashable]) -> None:
    """Write the labels as names, or, if one does not fit, x1, x2, ... with the labels as comments."""
    texts = _texts(labels)
    _write(file, [len(texts)])
    if all(_QPLIB_NAME.fullmatch(text) for text in texts):
        _write(file, (f"{k} {text}" for k, text in enumerate(texts, 1)))
    else:
        _write(
            file, (f"{k} {letter}{k} {_LABEL}{json.dumps(text)}" for k, text in enumerate(texts, 1))
        )


def _write(file: IO[bytes], lines: Iterable[object]) -> None:
    file.writelines(f"{line}\n".encode("ascii") for line in lines)


def _texts(labels: Sequence[Hashable]) -> list[str]:
    """Return the labels; raise if one is not text."""
    texts = [label for label in labels if isinstance(label, str)]
    if len(texts) != len(labels):
        raise FormatError(
            "a label is not text; relabel the variables and constraints, or write a .cqm file"
        )
    return texts
