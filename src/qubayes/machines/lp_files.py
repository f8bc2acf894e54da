"""The LP format of mathematical programming: quadratic objective, constraints, bounds, kinds of variables.

Names are restricted there, and ours (`u[Smoker|Age,Sex]`) are no LP names: then bits are called x0, x1, ...,
constraints c0, c1, ..., and comments give the labels, which our reader restores. Our own reader, because dimod's
does not return on some damaged files.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import chain
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from ..foundation.errors import FormatError
from ..foundation.files import lines_of
from .lp_grammar import Expression, LinearProgram, is_name, parse_lp
from .qubo import Qubo
from .terms import Terms, checked, coupler_chunks, label_text, parsed_json

if TYPE_CHECKING:
    from dimod import ConstrainedQuadraticModel, QuadraticModel

_SENSES = {"<=": "<=", ">=": ">=", "==": "="}


def write_lp_qubo(qubo: Qubo, labels: Sequence[str] | None, file: IO[bytes]) -> None:
    """Write the QUBO as an objective of binary variables, streamed."""
    if np.isinf(2 * qubo.weights).any():
        raise FormatError("a coupler is so large that its double is no float; scale the model")
    names, comments = _names("label", "x", labels or [f"x{i}" for i in range(qubo.bits)])
    _write(file, comments)
    _write(file, ["Minimize\n obj:"])
    _write(file, _wrapped(f"{_signed(w)} {name}" for name, w in zip(names, qubo.h.tolist(), strict=True)))
    if qubo.couplers:
        _write(file, [" + ["])
        for rows, cols, weights in coupler_chunks(qubo):
            triples = zip(rows.tolist(), cols.tolist(), (2 * weights).tolist(), strict=True)
            _write(file, _wrapped(f"{_signed(w)} {names[i]} * {names[j]}" for i, j, w in triples))
        _write(file, [" ] / 2"])
    _write(file, [f" {_signed(qubo.offset)}", "Subject To", "Binary", *_wrapped(names), "End"])


def write_lp(model: "ConstrainedQuadraticModel", file: IO[bytes]) -> None:
    """Write a constrained model; an error for spins and soft constraints, which the format does not know."""
    from dimod import Vartype

    kinds = {v: model.vartype(v) for v in model.variables}
    if Vartype.SPIN in kinds.values() or any(c.lhs.is_soft() for c in model.constraints.values()):
        raise FormatError("an LP file knows no spins and no soft constraints; write a .cqm file")
    names, comments = _names("label", "x", list(model.variables))
    rows, row_comments = _names("constraint", "c", list(model.constraints))
    name_of = dict(zip(model.variables, names, strict=True))
    _write(file, [*comments, *row_comments, "Minimize\n obj:"])
    _write(file, _expression(model.objective, name_of, chosen=model.variables, halved=True))
    _write(file, [f" {_signed(float(model.objective.offset))}", "Subject To"])
    for row, constraint in zip(rows, model.constraints.values(), strict=True):
        right = float(constraint.rhs) - float(constraint.lhs.offset)
        left = _expression(constraint.lhs, name_of, chosen=constraint.lhs.variables, halved=False)
        _write(file, [f" {row}:", *left, f" {_SENSES[constraint.sense.value]} {right!r}"])
    numbers = [v for v, kind in kinds.items() if kind is not Vartype.BINARY]
    _write(file, ["Bounds"])
    _write(file, (f" {model.lower_bound(v)!s} <= {name_of[v]} <= {model.upper_bound(v)!s}" for v in numbers))
    _write(file, ["Binary", *_wrapped(name_of[v] for v, kind in kinds.items() if kind is Vartype.BINARY)])
    _write(file, ["General", *_wrapped(name_of[v] for v, kind in kinds.items() if kind is Vartype.INTEGER), "End"])


def read_lp(file: IO[bytes]) -> "ConstrainedQuadraticModel":
    """The constrained model in an LP file; what is to be maximised is negated."""
    from dimod import ConstrainedQuadraticModel, vartype_info  # type: ignore[attr-defined]

    program, labels, rows = _parsed(file)
    model: ConstrainedQuadraticModel = ConstrainedQuadraticModel()  # type: ignore[no-untyped-call]
    try:
        for name, label in zip(program.names, labels, strict=True):
            kind, lower, upper = program.kind_of(name)
            model.add_variable(kind, label, lower_bound=max(lower, vartype_info(kind).min), upper_bound=upper)
        model.set_objective(_quadratic(model, program, program.objective, labels))
        for name, left, sense, right in program.constraints:
            expression = _quadratic(model, program, left, labels)
            model.add_constraint_from_model(expression, sense, right, label=rows.get(name, name), copy=False)
    except (ValueError, OverflowError) as error:
        raise FormatError(f"no model that dimod takes: {error}") from error
    return model


def unconstrained_terms(file: IO[bytes]) -> Terms:
    """The objective of an LP file of binary variables without constraints."""
    program, labels, _ = _parsed(file)
    if program.constraints or any(program.kind_of(name)[0] != "BINARY" for name in program.names):
        raise FormatError("the model has constraints, or variables that are no bits; read it with read_model")
    objective = program.objective
    h = np.zeros(len(labels))
    i, w = np.array(objective.variables, np.int64), np.array(objective.weights)
    h[i] = -0.0  # the one start for which a sum of one term is that term, the sign of zero included
    np.add.at(h, i, w)
    rows, cols = np.array(objective.rows, np.int64), np.array(objective.cols, np.int64)
    weights = np.array(objective.quadratic)
    square = rows == cols
    np.add.at(h, rows[square], weights[square])
    return checked(Terms(h, rows[~square], cols[~square], weights[~square], objective.constant, labels))


def _parsed(file: IO[bytes]) -> tuple[LinearProgram, list[str], dict[str, str]]:
    """(program, label of each variable, labels of constraints by name)."""
    comments: list[str] = []
    program = parse_lp(lines_of(file), comments)
    found = {"label": {}, "constraint": {}}  # type: dict[str, dict[str, str]]
    for comment in comments:
        words = comment.split(maxsplit=3)
        if words[:1] == ["qubayes"]:
            label = parsed_json(words[3], "label of a comment") if len(words) == 4 and words[1] in found else None
            if not isinstance(label, str):
                raise FormatError(f"the comment {comment[:80]!r} is damaged")
            found[words[1]][words[2]] = label
    labels = [found["label"].get(name, name) for name in program.names]
    rows = {name: found["constraint"].get(name, name) for name, *_ in program.constraints}
    if len(set(labels)) != len(labels) or len(set(rows.values())) != len(program.constraints):
        raise FormatError("two variables or two constraints with the same label")
    return program, labels, rows


def _quadratic(
    model: "ConstrainedQuadraticModel", program: LinearProgram, expression: Expression, labels: list[str]
) -> "QuadraticModel":
    from dimod import QuadraticModel

    result = QuadraticModel()
    used = dict.fromkeys(chain(expression.variables, expression.rows, expression.cols))
    for index in used:
        label = labels[index]
        bounds = model.lower_bound(label), model.upper_bound(label)
        result.add_variable(model.vartype(label), label, lower_bound=bounds[0], upper_bound=bounds[1])
    for index, weight in zip(expression.variables, expression.weights, strict=True):
        result.add_linear(labels[index], weight)
    for i, j, weight in zip(expression.rows, expression.cols, expression.quadratic, strict=True):
        if i == j and program.kinds.get(program.names[i]) == "BINARY":
            result.add_linear(labels[i], weight)
        else:
            result.add_quadratic(labels[i], labels[j], weight)
    result.offset = expression.constant
    return result


def _expression(
    expression: Any, names: dict[Hashable, str], *, chosen: Iterable[Hashable], halved: bool
) -> Iterator[str]:
    """Lines of linear terms, zeros included (they keep the order of the variables), then of quadratic ones."""
    present = set(expression.variables)
    linear = ((names[v], float(expression.get_linear(v)) if v in present else 0.0) for v in chosen)
    yield from _wrapped(f"{_signed(weight)} {name}" for name, weight in linear)
    if expression.is_linear():
        return
    factor = 2.0 if halved else 1.0
    yield " + ["
    for u, v, weight in expression.iter_quadratic():
        if not np.isfinite(factor * float(weight)):
            raise FormatError("a coupler is so large that its double is no float; scale the model")
        yield f"  {_signed(factor * float(weight))} {names[u]} * {names[v]}"
    yield " ] / 2" if halved else " ]"


def _names(word: str, letter: str, labels: Sequence[Hashable]) -> tuple[list[str], list[str]]:
    """(names for the file, comments): the labels themselves if all are LP names, else x0, x1, ... and comments."""
    texts = [label for label in labels if isinstance(label, str)]
    if len(texts) != len(labels):
        raise FormatError("a label that is no text; relabel the variables and constraints, or write a .cqm file")
    if all(is_name(text) for text in texts):
        return texts, []
    names = [f"{letter}{i}" for i in range(len(texts))]
    return names, [f"\\ qubayes {word} {name} {label_text(text)}" for name, text in zip(names, texts, strict=True)]


def _signed(weight: float) -> str:
    """`+ 2.5`: the sign apart, as the format wants it."""
    text = repr(weight)
    return f"- {text[1:]}" if text.startswith("-") else f"+ {text}"


def _wrapped(parts: Iterable[str], width: int = 200) -> Iterator[str]:
    """Lines of about `width` characters; readers of the format refuse lines beyond 510."""
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


def _write(file: IO[bytes], lines: Iterable[str]) -> None:
    file.writelines(f"{line}\n".encode("ascii") for line in lines)
