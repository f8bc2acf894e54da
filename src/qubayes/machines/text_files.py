"""Text formats of one line per term: COO (`.coo`), qbsolv (`.qubo`), MatrixMarket (`.mtx`).

None of them knows labels, and none but ours an offset: both go into comments that begin with `qubayes`, which other
readers skip and ours understands. Floats are written with as many digits as they need to come back bit for bit.
"""

import io
import re
import warnings
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import IO, NamedTuple

import numpy as np

from ..foundation.arrays import AnyArray
from ..foundation.errors import FormatError
from ..foundation.files import lines_of
from .qubo import Qubo
from .terms import CHUNK, Terms, checked, checked_bits, coupler_chunks, label_text, parsed_json

_LINE = np.dtype([("i", np.int64), ("j", np.int64), ("w", np.float64)])


class _Comments(NamedTuple):
    """What the comments at the top of a file say."""

    lines: list[str]  # without their mark
    offset: float
    labels: dict[int, str]


def write_coo(qubo: Qubo, labels: Sequence[str] | None, file: IO[bytes]) -> None:
    """dimod's COO: `i j w`, and `i i w` for every bit. No exponents: dimod's reader knows none."""
    _write_lines(file, ["# vartype=BINARY", *_comments("#", qubo.offset, labels)])
    for chunk in chain([_diagonal(qubo)], coupler_chunks(qubo)):
        _write_terms(file, *chunk, scientific=False)


def read_coo(file: IO[bytes]) -> Terms:
    """The terms of a COO file; bits without a vartype header."""
    comments, lines = _opened(file, "#")
    found = [match[1] for line in comments.lines if (match := re.match(r"vartype[:=]\s*(\w+)", line.strip()))]
    if not set(found) <= {"BINARY", "SPIN"} or len(set(found)) > 1:
        raise FormatError(f"vartype {', '.join(found)}; one of BINARY, SPIN is allowed")
    i, j, w = _terms(lines)
    bits = max(int(max(i.max(), j.max())) + 1 if len(i) else 0, len(comments.labels))
    return _gathered(comments, bits, i, j, w, found[0] if found else "BINARY")


def write_qbsolv(qubo: Qubo, labels: Sequence[str] | None, file: IO[bytes]) -> None:
    """qbsolv's format: nodes (every bit), then couplers i < j."""
    counts = f"p qubo 0 {qubo.bits} {qubo.bits} {qubo.couplers}"
    _write_lines(file, [*_comments("c", qubo.offset, labels), counts])
    for chunk in chain([_diagonal(qubo)], coupler_chunks(qubo)):
        _write_terms(file, *chunk)


def read_qbsolv(file: IO[bytes]) -> Terms:
    """The terms of a qbsolv file, its counts checked."""
    comments, lines = _opened(file, "c")
    match = re.fullmatch(r"p\s+qubo\s+(?:0|unconstrained)\s+(\d{1,18})\s+(\d{1,18})\s+(\d{1,18})", next(lines, ""))
    if not match:
        raise FormatError("no line `p qubo 0 maxNodes nNodes nCouplers` before the terms")
    bits, nodes, couplers = (int(group) for group in match.groups())
    i, j, w = _terms(lines)
    if (i > j).any() or (i == j).sum() != nodes or len(i) != nodes + couplers:
        raise FormatError(f"the first line promises {nodes} lines `i i w` and {couplers} lines `i j w` with i < j")
    return _gathered(comments, bits, i, j, w)


def write_matrix_market(qubo: Qubo, labels: Sequence[str] | None, file: IO[bytes]) -> None:
    """A symmetric matrix A with x'Ax + offset = E(x): h on the diagonal, J/2 beside it, lower triangle, from 1."""
    if not np.array_equal(qubo.weights / 2 * 2, qubo.weights):
        raise FormatError("a coupler is so small that its half is no float; scale the model or choose another format")
    explanation = "energy = offset + x'Ax: h on the diagonal, half of each coupler on either side of it"
    head = ["%%MatrixMarket matrix coordinate real symmetric", f"% {explanation}"]
    size = f"{qubo.bits} {qubo.bits} {qubo.bits + qubo.couplers}"
    _write_lines(file, [*head, *_comments("%", qubo.offset, labels), size])
    for i, j, w in chain([_diagonal(qubo)], ((i, j, w / 2) for i, j, w in coupler_chunks(qubo))):
        _write_terms(file, j + 1, i + 1, w)


def read_matrix_market(file: IO[bytes]) -> Terms:
    """The terms of x'Ax for a real matrix in coordinate form, symmetric or general."""
    banner = file.readline(1000).decode("utf-8", "replace")
    match = re.fullmatch(
        r"%%MatrixMarket\s+matrix\s+coordinate\s+(?:real|integer)\s+(symmetric|general)", banner.strip()
    )
    if not match:
        raise FormatError("the first line is not `%%MatrixMarket matrix coordinate real symmetric` (or general)")
    comments, lines = _opened(file, "%")
    size = re.fullmatch(r"(\d{1,18})\s+(\d{1,18})\s+(\d{1,18})", next(lines, ""))
    if not size or size[1] != size[2]:
        raise FormatError("no line `n n entries` of a square matrix before the entries")
    i, j, w = _terms(lines)
    if len(i) != int(size[3]):
        raise FormatError(f"{len(i)} entries where the size line promises {int(size[3])}")
    if match[1] == "symmetric":
        if (i < j).any():
            raise FormatError("an entry above the diagonal of a symmetric matrix; only the lower triangle is stored")
        with np.errstate(over="ignore"):  # what overflows is refused below
            w[i != j] *= 2
    return _gathered(comments, int(size[1]), j - 1, i - 1, w)


def _comments(mark: str, offset: float, labels: Sequence[str] | None) -> Iterator[str]:
    yield f"{mark} qubayes offset {offset!r}"
    for i, label in enumerate(labels or ()):
        yield f"{mark} qubayes label {i} {label_text(label)}"


def _diagonal(qubo: Qubo) -> tuple[AnyArray, AnyArray, AnyArray]:
    bits = np.arange(qubo.bits)
    return bits, bits, qubo.h


def _write_lines(file: IO[bytes], lines: list[str]) -> None:
    file.write("".join(f"{line}\n" for line in lines).encode("ascii"))


def _write_terms(file: IO[bytes], i: AnyArray, j: AnyArray, w: AnyArray, *, scientific: bool | None = None) -> None:
    """`i j w` lines. Polars prints the shortest digits that come back, 15 times faster than `repr` in a loop."""
    import polars as pl

    frame = pl.DataFrame({"i": i, "j": j, "w": w})
    file.write(frame.write_csv(separator=" ", include_header=False, float_scientific=scientific).encode("ascii"))


def _opened(file: IO[bytes], mark: str) -> tuple[_Comments, Iterator[str]]:
    """The comments at the top, and the other lines, stripped, without blank ones and later comments."""
    lines = (line.strip() for line in lines_of(file))
    found: list[str] = []
    first = ""
    for first in lines:
        if first and not first.startswith(mark):
            break
        found.append(first[len(mark) :].strip())
    else:
        first = ""
    rest = (line for line in chain([first], lines) if line and not line.startswith(mark))
    return _understood(found), rest


def _understood(lines: list[str]) -> _Comments:
    """The comments with what ours among them say; an error if one of ours is damaged."""
    offset, labels = 0.0, {}
    for line in lines:
        words = line.split(maxsplit=3)
        if words[:1] != ["qubayes"]:
            continue
        if words[1:2] == ["offset"] and len(words) == 3:
            offset = _number(words[2])
        elif words[1:2] == ["label"] and len(words) == 4 and words[2].isascii() and words[2].isdigit():
            labels[int(words[2][:18])] = _label(words[3])
        else:
            raise FormatError(f'the comment {line[:80]!r} is none of `qubayes offset w`, `qubayes label i "text"`')
    return _Comments(lines, offset, labels)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise FormatError(f"{text[:40]!r} is no number") from error


def _label(text: str) -> str:
    label = parsed_json(text, "label of a bit")
    if not isinstance(label, str):
        raise FormatError(f"the label {text[:40]} of a bit is no text")
    return label


def _terms(lines: Iterator[str]) -> tuple[AnyArray, AnyArray, AnyArray]:
    """The columns of lines `i j w`."""
    chunks = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
    while block := list(islice(lines, CHUNK)):
        chunks.append(_columns_as_we_write(block) or _columns(block))
    i, j, w = (np.concatenate(parts) for parts in zip(*chunks, strict=True))
    return i, j, w


def _columns_as_we_write(block: list[str]) -> tuple[AnyArray, AnyArray, AnyArray] | None:
    """The columns by the reader that is 5 times as fast; None where the lines are not as plain as ours."""
    import polars as pl

    schema = {"i": pl.Int64, "j": pl.Int64, "w": pl.Float64}
    text = io.BytesIO("\n".join(block).encode())
    try:
        frame = pl.read_csv(text, separator=" ", has_header=False, schema=schema, quote_char=None)
    except pl.exceptions.PolarsError:
        return None
    if frame.height != len(block) or any(frame[name].null_count() for name in schema):
        return None
    i, j, w = (frame[name].to_numpy(writable=True) for name in schema)
    return i, j, w


def _columns(block: list[str]) -> tuple[AnyArray, AnyArray, AnyArray]:
    """The columns, whatever white space lies between them; an error for a line that is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # numpy only warns of a float where an integer belongs
            table = np.loadtxt(block, dtype=_LINE, comments=None, ndmin=1)
    except (ValueError, OverflowError, Warning) as error:
        raise FormatError(f"a line is not `i j weight`: {error}") from error
    return table["i"], table["j"], table["w"]


def _gathered(comments: _Comments, bits: int, i: AnyArray, j: AnyArray, w: AnyArray, vartype: str = "BINARY") -> Terms:
    """Lines `i i w` as linear terms, the others as couplers, labels in the order of the bits."""
    linear = i == j
    checked_bits(bits, len(i) + len(comments.labels))
    if len(i) and (min(i.min(), j.min()) < 0 or max(i.max(), j.max()) >= bits):
        raise FormatError(f"a line names a bit that the {bits} bits of the model do not contain")
    h = np.zeros(bits)
    h[i[linear]] = -0.0  # the one start for which a sum of one term is that term, the sign of zero included
    np.add.at(h, i[linear], w[linear])
    labels = [comments.labels[k] for k in sorted(comments.labels)] if comments.labels else None
    if labels and max(comments.labels) >= bits:
        raise FormatError(f"a label for bit {max(comments.labels)}; the model has {bits} bits")
    pairs = ~linear
    return checked(Terms(h, i[pairs], j[pairs], w[pairs], comments.offset, labels, vartype))
