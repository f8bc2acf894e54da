"""The LP format of mathematical programming: quadratic objective, constraints, bounds, kinds of variables.

Names are restricted there, and ours (`u[Smoker|Age,Sex]`) do not fit: then bits are called x0, x1, ..., constraints c0,
c1, ..., and comments give the labels. Files are read by dimod, 8 to 22 times as fast as a reader in Python. Our writer
streams a QUBO, keeps zero coefficients (they keep the order of the variables) and all digits of a float.
"""

import io
import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import IO, Any

import numpy as np

from ..foundation.environment import dimod
from ..foundation.errors import FormatError
from ..foundation.files import parse_json
from .qubo import Qubo, coupler_chunks
from .text_files import label_text

_FLAGS = re.IGNORECASE | re.ASCII
_NAME = re.compile(r"(?!inf|nan)[A-DF-Z!\"#$%&(),?@_'{}~][A-Z0-9!\"#$%&(),.?@_'{}~]{0,254}", _FLAGS)
_KEYWORDS = {
    "minimize", "minimise", "minimum", "min", "maximize", "maximise", "maximum", "max", "obj", "subject", "to", "such",
    "that", "st", "s.t.", "st.", "bounds", "bound", "free", "binary", "binaries", "bin", "general", "generals", "gen",
    "integer", "integers", "semi", "semis", "sos", "sos1", "sos2", "s1", "s2", "pwlobj", "end",
}  # fmt: skip
# Patterns of text in lower case. They begin with a literal, which `re` finds 20 times as fast as alternatives.
_FIRST_WORD = re.compile(r"\s*(?:(?:min|max)(?:imize|imum)?|subject\s+to|such\s+that|st|s\.t\.)(?!\S)", re.ASCII)
_OBJECTIVES = [re.compile(rf"{word}(?<!\S{word})(?:imize|imum)?(?!\S)", re.ASCII) for word in ("min", "max")]
_MISREAD = [re.compile(r"sos(?<!\Ssos)[12]?(?!\S)", re.ASCII), re.compile(r"0x(?<![\w.]0x)"), re.compile(r"/\s*\*")]
_CONTROL = bytes(range(32)).translate(None, b"\t\n\r")
_ALLOWED = "allowed are the senses <=, >= and =, a quadratic objective as + [ ... ] / 2, and each section once"


def write_lp_of_qubo(qubo: Qubo, labels: Sequence[str] | None, file: IO[bytes]) -> None:
    """Write the QUBO as an objective of binary variables, streamed."""
    if np.isinf(2 * qubo.weights).any():
        raise FormatError("twice a coupler is too large for a float; scale the model")
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
    _write(file, (f" {model.lower_bound(v)!s} <= {name_of[v]} <= {model.upper_bound(v)!s}" for v in numbers))
    _write(file, ["Binary", *_wrapped(name_of[v] for v, kind in kinds.items() if kind is dimod.BINARY)])
    _write(file, ["General", *_wrapped(name_of[v] for v, kind in kinds.items() if kind is dimod.INTEGER), "End"])


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
        if not _NAME.fullmatch(v):
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

    It skips text before the first keyword and a second objective, does not return from a NUL byte, takes other control
    characters for parts of names, 0x2 for a hexadecimal number and the 2 in + 2 [ for a constant, skips the rest of a
    line after `;` and the text after `/*`, drops special ordered sets, and prints a line about indicator constraints.
    """
    if content[-4:].split()[-1:] != ["end"]:
        raise FormatError("the file does not end with `End`")
    if not _FIRST_WORD.match(content) or sum(len(word.findall(content)) for word in _OBJECTIVES) > 1:
        raise FormatError("the file does not begin with Minimize, Maximize or Subject To, or has two objectives")
    found = [match[0] for pattern in _MISREAD if (match := pattern.search(content))]
    found += [sign for sign in (";", "\r") if sign in content]
    found += [f"{sign} [" for part in content.split("[")[:-1] if (sign := part.rstrip()[-1:]) in "0123456789."]
    found += [f"{sign} >" for part in content.split(">")[:-1] if (sign := part.rstrip()[-1:]) in "+-"]
    raw = content.encode()
    if found or len(raw.translate(None, _CONTROL)) != len(raw):
        raise FormatError(f"{found[0] if found else 'a control character'!r} in an LP file; {_ALLOWED}")


def _restore_labels(model: "dimod.ConstrainedQuadraticModel", text: str) -> None:
    """Give variables and constraints the labels of our comments, and constraints without a name c0, c1, ..."""
    labels: dict[str, dict[Hashable, str]] = {"label": {}, "constraint": {}}
    for comment in re.findall(r"\\\s*qubayes\b(.*)", text):
        match comment.split(maxsplit=2):
            case ["label" | "constraint" as kind, name, label] if isinstance(parse_json(label), str):
                labels[kind][name] = parse_json(label)
            case _:
                raise FormatError(f"the comment `qubayes{comment[:80]}` is damaged")
    rows: dict[Hashable, str] = {row: f"c{row}" for row in model.constraints if isinstance(row, int)}
    rows |= {name: label for name, label in labels["constraint"].items() if name in model.constraints}
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
    texts = [label for label in labels if isinstance(label, str)]
    if len(texts) != len(labels):
        raise FormatError("a label is not text; relabel the variables and constraints, or write a .cqm file")
    if all(_NAME.fullmatch(text) and text.lower() not in _KEYWORDS for text in texts):
        return texts, []
    names = [f"{letter}{i}" for i in range(len(texts))]
    return names, [f"\\ qubayes {kind} {name} {label_text(text)}" for name, text in zip(names, texts, strict=True)]


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


def _write(file: IO[bytes], lines: Iterable[str]) -> None:
    file.writelines(f"{line}\n".encode("ascii") for line in lines)
