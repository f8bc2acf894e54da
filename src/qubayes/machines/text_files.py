"""Text formats with one term on each line: COO (`.coo`), qbsolv (`.qubo`), MatrixMarket (`.mtx`).

They have no labels and no offset: we write both as comments that begin with `qubayes`, which other
readers skip. Floats are written with the digits that they need to come back bit for bit. Only COO
is read.

COO is read here, not by dimod: `dimod.serialization.coo` skips damaged lines without an error,
knows no exponents, and takes four times as long (14.7 s against 3.8 s for 960,000 couplers)."""

import io
import json
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import IO, NamedTuple

import numpy as np

from ..foundation.arrays import AnyArray
from ..foundation.errors import FormatError
from ..foundation.files import lines_of, parse_json
from .qubo import CHUNK, ModelTerms, Qubo, coupler_chunks

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?inf|nan")


class _Header(NamedTuple):
    """The comments at the top of a file."""

    comments: list[str]  # without `#`
    labels: dict[int, str]
    offset: float = 0.0

    def terms(
        self, bits: int, i: AnyArray, j: AnyArray, w: AnyArray, vartype: str = "BINARY"
    ) -> ModelTerms:
        """Return the terms of lines `i j w` with the offset and the labels of the comments."""
        labels = [self.labels[bit] for bit in sorted(self.labels)] or None
        if labels and max(self.labels) >= bits:
            raise FormatError(f"a label for bit {max(self.labels)}; the model has {bits} bits")
        return ModelTerms.of_entries(bits, (i, j, w), self.offset, labels, vartype)


def write_coo(qubo: Qubo, labels: Sequence[str] | None, file: IO[bytes]) -> None:
    """Write dimod's COO: `i j w`, and `i i w` for every bit. No exponents: dimod's reader does not know them."""
    _write_header(file, "#", qubo.offset, labels, before=["# vartype=BINARY"])
    _write_terms(file, qubo, scientific=False)


def read_coo(file: IO[bytes]) -> ModelTerms:
    """Return the terms of a COO file; of bits if it names no vartype."""
    header, lines = _read_header(file)
    found = {
        match[1] for line in header.comments if (match := re.match(r"vartype[:=]\s*(\w+)", line))
    }
    if not found <= {"BINARY", "SPIN"} or len(found) > 1:
        raise FormatError(f"vartype {', '.join(sorted(found))}; one of BINARY, SPIN is allowed")
    i, j, w = read_terms(lines)
    bits = max(int(max(i.max(), j.max())) + 1 if len(i) else 0, len(header.labels))
    return header.terms(bits, i, j, w, found.pop() if found else "BINARY")


def write_qbsolv(qubo: Qubo, labels: Sequence[str] | None, file: IO[bytes]) -> None:
    """Write qbsolv's format: nodes (every bit), then couplers i < j."""
    sizes = f"p qubo 0 {qubo.bits} {qubo.bits} {qubo.couplers}"
    _write_header(file, "c", qubo.offset, labels, after=[sizes])
    _write_terms(file, qubo)


def write_matrix_market(qubo: Qubo, labels: Sequence[str] | None, file: IO[bytes]) -> None:
    """Write the lower triangle, from 1, of a symmetric A with x'Ax + offset = E(x): diagonal h, off-diagonal J/2."""
    if not np.array_equal(qubo.weights / 2 * 2, qubo.weights):
        raise FormatError(
            "half of a coupler is too small for a float; scale the model or choose another format"
        )
    explanation = (
        "% energy = offset + x'Ax: h on the diagonal, half of each coupler on either side of it"
    )
    before = ["%%MatrixMarket matrix coordinate real symmetric", explanation]
    sizes = f"{qubo.bits} {qubo.bits} {qubo.bits + qubo.couplers}"
    _write_header(file, "%", qubo.offset, labels, before=before, after=[sizes])
    _write_terms(file, qubo, lower=True)


def label_text(label: str) -> str:
    """Return the label as a JSON string in ASCII, on one line, for a comment."""
    # dimod searches comments of COO for `vartype=`
    return json.dumps(label).replace("vartype", "\\u0076artype")


def _write_header(
    file: IO[bytes],
    mark: str,
    offset: float,
    labels: Sequence[str] | None,
    *,
    before: Sequence[str] = (),
    after: Sequence[str] = (),
) -> None:
    names = (
        f"{mark} qubayes label {bit} {label_text(label)}" for bit, label in enumerate(labels or ())
    )
    lines = chain(before, [f"{mark} qubayes offset {offset!r}"], names, after)
    file.write("".join(f"{line}\n" for line in lines).encode("ascii"))


def _write_terms(
    file: IO[bytes], qubo: Qubo, *, lower: bool = False, scientific: bool | None = None
) -> None:
    """Write lines `i j w` of every bit and of the couplers; `lower`: lines `j+1 i+1 w`, couplers halved."""
    bits = np.arange(qubo.bits)
    halved = 0.5 if lower else 1.0
    for i, j, w in chain(
        [(bits, bits, qubo.h)], ((i, j, halved * w) for i, j, w in coupler_chunks(qubo))
    ):
        rows, cols = (j + 1, i + 1) if lower else (i, j)
        file.write(lines_of_terms(w, rows, cols, scientific=scientific))


def lines_of_terms(weights: AnyArray, *indices: AnyArray, scientific: bool | None = None) -> bytes:
    """Return lines `index ... weight` with the shortest digits that come back.

    polars, if installed, is 15 times faster than the loop.
    """
    try:
        import polars as pl
    except ImportError:
        texts = (
            weights.tolist()
            if scientific is not False
            else [np.format_float_positional(x, trim="0") for x in weights]
        )
        rows = zip(*(array.tolist() for array in indices), texts, strict=True)
        return "".join(" ".join(map(str, row)) + "\n" for row in rows).encode("ascii")
    frame = pl.DataFrame({**{str(k): array for k, array in enumerate(indices)}, "w": weights})
    return frame.write_csv(separator=" ", include_header=False, float_scientific=scientific).encode(
        "ascii"
    )


def _read_header(file: IO[bytes]) -> tuple[_Header, Iterator[str]]:
    """Return the comments at the top, and the other lines, stripped, without blank ones and later comments.

    Comments that begin with `qubayes` hold offset and labels; a damaged one raises an error.
    """
    lines = (line.strip() for line in lines_of(file))
    header, first = _Header([], {}), ""
    for line in lines:
        if line and not line.startswith("#"):
            first = line
            break
        comment = line[1:].strip()
        header.comments.append(comment)
        match comment.split(maxsplit=3):
            case ["qubayes", "offset", number] if _NUMBER.fullmatch(number):
                header = header._replace(offset=float(number))
            case ["qubayes", "label", bit, text] if bit.isascii() and bit.isdigit():
                header.labels[int(bit[:18])] = parse_json(text)
            case ["qubayes", *_]:
                raise FormatError(
                    f'comment {comment[:80]!r}; give `qubayes offset w` or `qubayes label i "text"`'
                )
    if not all(isinstance(label, str) for label in header.labels.values()):
        raise FormatError("a label in the comments is not text")
    return header, (line for line in chain([first], lines) if line and not line.startswith("#"))


def read_terms(lines: Iterator[str]) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return the columns of lines `i j w`."""
    chunks: list[tuple[AnyArray, ...]] = [
        (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    ]
    while block := list(islice(lines, CHUNK)):
        chunks.append(_columns(block))
    i, j, w = (np.concatenate(parts) for parts in zip(*chunks, strict=True))
    return i, j, w


def _columns(block: list[str]) -> tuple[AnyArray, ...]:
    """Return the columns of lines `i j w`; raise for a line of another form.

    polars, if installed, reads lines with single spaces 5 times as fast as numpy reads those with
    any white space."""
    with suppress(ImportError):
        import polars as pl

        schema = {"i": pl.Int64, "j": pl.Int64, "w": pl.Float64}
        text = io.BytesIO("\n".join(block).encode())
        with suppress(pl.exceptions.PolarsError):
            frame = pl.read_csv(
                text, separator=" ", has_header=False, schema=schema, quote_char=None
            )
            if frame.height == len(block) and not any(frame[name].null_count() for name in schema):
                return tuple(frame[name].to_numpy(writable=True) for name in schema)
    dtype = np.dtype([("i", np.int64), ("j", np.int64), ("w", np.float64)])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # numpy only warns of a float where an integer is needed
            table = np.loadtxt(block, dtype=dtype, comments=None, ndmin=1)
    except (ValueError, OverflowError, Warning) as error:
        raise FormatError(f"a line is not `i j weight`: {error}") from error
    return table["i"], table["j"], table["w"]
