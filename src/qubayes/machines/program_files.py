"""Writers of mathematical programs: quadratic objective, constraints, bounds, kinds of variables.

LP: names are restricted, and ours (`u[Smoker|Age,Sex]`) do not fit: then bits are called x0, x1,
    ..., constraints c0, c1, ..., and comments give the labels. A QUBO is streamed, with its zero
    coefficients (they keep the order of the variables) and all digits of a float.

QPLIB: a file is a list of numbers in a fixed order; words behind the expected ones are comments. A
    listed entry q of (i, j) means q/2 x_i x_j, as in the published files and in the readers of OMMX
    (2.8) and Amplify. (The paper on QPLIB describes a symmetric matrix, in which an entry off the
    diagonal would count twice.) A name has no white space. If a label does not fit, variables are
    called x1, x2, ..., constraints c1, c2, ..., and comments behind the names hold the labels."""

import json
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import IO, Any

import numpy as np

from ..foundation.arrays import AnyArray
from ..foundation.environment import dimod
from ..foundation.errors import FormatError
from .qubo import Qubo, coupler_chunks
from .text_files import label_text, lines_of_terms

_FLAGS = re.IGNORECASE | re.ASCII
_LP_NAME = re.compile(
    r"(?!inf|nan)[A-DF-Z!\"#$%&(),?@_'{}~][A-Z0-9!\"#$%&(),.?@_'{}~]{0,254}", _FLAGS
)
_LP_KEYWORDS = {
    "minimize", "minimise", "minimum", "min", "maximize", "maximise", "maximum", "max", "obj",
    "subject", "to", "such", "that", "st", "s.t.", "st.", "bounds", "bound", "free", "binary",
    "binaries", "bin", "general", "generals", "gen", "integer", "integers", "semi", "semis", "sos",
    "sos1", "sos2", "s1", "s2", "pwlobj", "end",
}  # fmt: skip
_LP_WIDTH = 200  # characters of a line; readers of the format refuse lines beyond 510
_TOO_LARGE = "twice a coupler is too large for a float; scale the model"
_INFINITY = 1e300
_QPLIB_NAME = re.compile(r"[$&-~\"]{1,255}")  # no comment signs # ! %
_QPLIB_KINDS = {"BINARY": "B", "REAL": "C", "INTEGER": "I"}
_QPLIB_NUMBERS = {"REAL": 0, "INTEGER": 1, "BINARY": 2}


def write_lp_of_qubo(qubo: Qubo, labels: Sequence[str] | None, file: IO[bytes]) -> None:
    """Write the QUBO as an objective of binary variables, streamed."""
    if np.isinf(2 * qubo.weights).any():
        raise FormatError(_TOO_LARGE)
    names, comments = _lp_names("label", "x", labels or [f"x{i}" for i in range(qubo.bits)])
    linear = zip(names, qubo.h.tolist(), strict=True)
    _write(file, [*comments, "Minimize\n obj:"])
    _write(file, _wrapped(f"{_signed(weight)} {name}" for name, weight in linear))
    if qubo.couplers:
        _write(file, [" + ["])
        for rows, cols, weights in coupler_chunks(qubo):
            products = zip(rows.tolist(), cols.tolist(), (2 * weights).tolist(), strict=True)
            terms = (f"{_signed(w)} {names[i]} * {names[j]}" for i, j, w in products)
            _write(file, _wrapped(terms))
        _write(file, [" ] / 2"])
    _write(file, [f" {_signed(qubo.offset)}", "Subject To", "Binary", *_wrapped(names), "End"])


def write_lp(model: "dimod.ConstrainedQuadraticModel", file: IO[bytes]) -> None:
    """Write a constrained model; raise for spins and soft constraints, which LP does not have."""
    if _has_spins_or_soft(model):
        raise FormatError("an LP file has no spins and no soft constraints; write a .cqm file")
    variables = list(model.variables)
    names, comments = _lp_names("label", "x", variables)
    rows, row_comments = _lp_names("constraint", "c", list(model.constraints))
    name_of = dict(zip(variables, names, strict=True))
    _write(file, [*comments, *row_comments, "Minimize\n obj:"])
    _write(file, _linear_terms(model.objective, name_of, variables))
    _write(file, _quadratic_terms(model.objective, name_of, factor=2.0, end=" ] / 2"))
    _write(file, [f" {_signed(float(model.objective.offset))}", "Subject To"])
    for row, constraint in zip(rows, model.constraints.values(), strict=True):
        left = constraint.lhs
        sense = constraint.sense.value.replace("==", "=")
        _write(file, [f" {row}:"])
        _write(file, _linear_terms(left, name_of, left.variables))
        _write(file, _quadratic_terms(left, name_of, factor=1.0, end=" ]"))
        _write(file, [f" {sense} {float(constraint.rhs) - float(left.offset)!r}"])
    kinds = {v: model.vartype(v) for v in variables}
    numbers = [v for v in variables if kinds[v] is not dimod.BINARY]
    bounds = [
        f" {model.lower_bound(v)!s} <= {name_of[v]} <= {model.upper_bound(v)!s}" for v in numbers
    ]
    binary = [name_of[v] for v in variables if kinds[v] is dimod.BINARY]
    integer = [name_of[v] for v in variables if kinds[v] is dimod.INTEGER]
    _write(file, ["Bounds", *bounds, "Binary", *_wrapped(binary)])
    _write(file, ["General", *_wrapped(integer), "End"])


def _has_spins_or_soft(model: "dimod.ConstrainedQuadraticModel") -> bool:
    """Return True if the model has spins or soft constraints."""
    spins = any(model.vartype(v) is dimod.SPIN for v in model.variables)
    return spins or any(row.lhs.is_soft() for row in model.constraints.values())


def _linear_terms(
    expression: Any, names: Mapping[Hashable, str], chosen: Iterable[Hashable]
) -> Iterator[str]:
    """Yield lines with the linear terms of the chosen variables, zeros included."""
    present = set(expression.variables)
    weights = ((v, float(expression.get_linear(v)) if v in present else 0.0) for v in chosen)
    return _wrapped(f"{_signed(weight)} {names[v]}" for v, weight in weights)


def _quadratic_terms(
    expression: Any, names: Mapping[Hashable, str], *, factor: float, end: str
) -> Iterator[str]:
    """Yield lines with the products of the expression, times the factor; none if it is linear."""
    if expression.is_linear():
        return
    yield " + ["
    for u, v, weight in expression.iter_quadratic():
        if not np.isfinite(factor * float(weight)):
            raise FormatError(_TOO_LARGE)
        yield f"  {_signed(factor * float(weight))} {names[u]} * {names[v]}"
    yield end


def _lp_names(kind: str, letter: str, labels: Sequence[Hashable]) -> tuple[list[str], list[str]]:
    """Return (names, comments): the labels, or x0, x1, ... and comments with the labels.

    The labels are taken if all are LP names."""
    texts = _texts(labels)
    if all(_LP_NAME.fullmatch(text) and text.lower() not in _LP_KEYWORDS for text in texts):
        return texts, []
    names = [f"{letter}{i}" for i in range(len(texts))]
    pairs = zip(names, texts, strict=True)
    return names, [f"\\ qubayes {kind} {name} {label_text(text)}" for name, text in pairs]


def _signed(weight: float) -> str:
    """Return the number with its sign apart: `+ 2.5`."""
    text = repr(weight)
    return f"- {text[1:]}" if text.startswith("-") else f"+ {text}"


def _wrapped(parts: Iterable[str]) -> Iterator[str]:
    """Yield the parts in lines of about `_LP_WIDTH` characters."""
    line: list[str] = []
    length = 0
    for part in parts:
        if length + len(part) > _LP_WIDTH and line:
            yield "  " + " ".join(line)
            line = []
            length = 0
        line.append(part)
        length += len(part) + 1
    if line:
        yield "  " + " ".join(line)


def write_qplib_of_qubo(qubo: Qubo, labels: Sequence[str] | None, file: IO[bytes]) -> None:
    """Write the QUBO as a problem QBN: quadratic objective, binary variables, no constraints.

    Streamed."""
    if np.abs(qubo.weights).max(initial=0.0) > np.finfo(np.float64).max / 2:
        raise FormatError(_TOO_LARGE)
    couplers = f"{qubo.couplers} # each entry q means q/2 x_i x_j"
    _write(file, ["qubayes", "QBN", "minimize", qubo.bits, couplers])
    for rows, cols, weights in coupler_chunks(qubo):
        file.write(lines_of_terms(2 * weights, cols + 1, rows + 1))
    _write_vector(file, 0.0, qubo.h)
    _write(file, [repr(qubo.offset), _INFINITY])
    _write_starting_points(file, 2)
    _write_names(file, "x", labels or ())
    _write_names(file, "c", ())


def write_qplib(model: "dimod.ConstrainedQuadraticModel", file: IO[bytes]) -> None:
    """Write a constrained model; raise for spins and soft constraints."""
    if _has_spins_or_soft(model):
        raise FormatError("a QPLIB file has no spins and no soft constraints; write a .cqm file")
    rows = list(model.constraints.values())
    places = {v: place for place, v in enumerate(model.variables, 1)}
    kind = _kind_of_variables(model)
    kind_of_rows = "N"
    if rows:
        kind_of_rows = "L" if all(row.lhs.is_linear() for row in rows) else "Q"
    _write(file, ["qubayes", f"Q{kind}{kind_of_rows}", "minimize", len(places)])
    if rows:
        _write(file, [len(rows)])
    _write_objective(file, model.objective, places)
    if kind_of_rows == "Q":
        _write_entries(file, _products_of_rows(rows, places))
    if rows:
        _write_entries(file, _linear_terms_of_rows(rows, places))
    _write(file, [_INFINITY])
    if rows:
        _write_sides(file, rows)
    _write_variables(file, model, kind)
    _write_starting_points(file, 3 if rows else 2)
    _write_names(file, "x", list(model.variables))
    _write_names(file, "c", list(model.constraints))


def _kind_of_variables(model: "dimod.ConstrainedQuadraticModel") -> str:
    """Return the letter of the kind that all variables are; G for several kinds."""
    letters = {_QPLIB_KINDS[model.vartype(v).name] for v in model.variables}
    if len(letters) > 1:
        return "G"
    return letters.pop() if letters else "B"


def _write_objective(file: IO[bytes], objective: Any, places: Mapping[Hashable, int]) -> None:
    """Write the products, the linear terms and the constant of the objective."""
    products = objective.iter_quadratic()
    _write_entries(file, [(*_lower(places, u, v), 2.0 * float(w)) for u, v, w in products])
    present = set(objective.variables)
    linear = [objective.get_linear(v) if v in present else 0.0 for v in places]
    _write_vector(file, 0.0, np.array(linear, float))
    _write(file, [repr(float(objective.offset))])


def _products_of_rows(
    rows: Sequence[Any], places: Mapping[Hashable, int]
) -> list[tuple[float, ...]]:
    """Return (row, i, j, twice the coefficient) of each product in a constraint."""
    return [
        (number, *_lower(places, u, v), 2.0 * float(weight))
        for number, row in enumerate(rows, 1)
        for u, v, weight in row.lhs.iter_quadratic()
    ]


def _linear_terms_of_rows(
    rows: Sequence[Any], places: Mapping[Hashable, int]
) -> list[tuple[float, ...]]:
    """Return (row, i, coefficient) of each linear term in a constraint."""
    return [
        (number, places[v], weight)
        for number, row in enumerate(rows, 1)
        for v, weight in row.lhs.iter_linear()
    ]


def _write_sides(file: IO[bytes], rows: Sequence[Any]) -> None:
    """Write the lower and the upper side of each constraint."""
    sides = np.array([float(row.rhs) - float(row.lhs.offset) for row in rows])
    senses = np.array([row.sense.value for row in rows])
    _write_vector(file, -_INFINITY, np.where(senses == "<=", -_INFINITY, sides))
    _write_vector(file, _INFINITY, np.where(senses == ">=", _INFINITY, sides))


def _write_variables(file: IO[bytes], model: "dimod.ConstrainedQuadraticModel", kind: str) -> None:
    """Write the bounds of the variables unless all are bits, and their kinds if these differ."""
    if kind != "B":
        lower = [float(model.lower_bound(v)) for v in model.variables]
        upper = [float(model.upper_bound(v)) for v in model.variables]
        _write_vector(file, 0.0, np.array(lower))
        _write_vector(file, 1.0, np.array(upper))
    if kind == "G":
        numbers = [_QPLIB_NUMBERS[model.vartype(v).name] for v in model.variables]
        _write_vector(file, 2, np.array(numbers))


def _write_starting_points(file: IO[bytes], vectors: int) -> None:
    """Write starting points of x, of y where there are constraints, and of z: all zero."""
    _write(file, [0.0, 0] * vectors)


def _lower(places: Mapping[Hashable, int], u: Hashable, v: Hashable) -> tuple[int, int]:
    """Return the numbers of two variables, the larger first."""
    return max(places[u], places[v]), min(places[u], places[v])


def _write_entries(file: IO[bytes], entries: Sequence[tuple[float, ...]]) -> None:
    """Write the number of entries (index, ..., weight), then the entries."""
    if not np.isfinite([entry[-1] for entry in entries]).all():
        raise FormatError("a coefficient, or twice one, is too large for a float; scale the model")
    _write(file, [len(entries)])
    _write(file, (" ".join(map(str, (*entry[:-1], float(entry[-1])))) for entry in entries))


def _write_vector(file: IO[bytes], default: float, values: AnyArray) -> None:
    """Write a vector as a default and the entries that differ."""
    places = np.flatnonzero(values != default)
    _write(file, [default, len(places)])
    file.write(lines_of_terms(values[places], places + 1))


def _write_names(file: IO[bytes], letter: str, labels: Sequence[Hashable]) -> None:
    """Write the labels as names, or x1, x2, ... with the labels as comments if one does not fit."""
    texts = _texts(labels)
    names = texts
    if not all(_QPLIB_NAME.fullmatch(text) for text in texts):
        labelled = enumerate(texts, 1)
        names = [f"{letter}{k} # qubayes label {json.dumps(text)}" for k, text in labelled]
    _write(file, [len(names), *(f"{k} {name}" for k, name in enumerate(names, 1))])


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
