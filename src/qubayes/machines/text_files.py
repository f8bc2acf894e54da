"""Text formats with one term on each line: COO (`.coo`), qbsolv (`.qubo`), MatrixMarket (`.mtx`).

They have no labels and no offset: both are written as comments that begin with `qubayes`, which
other programs skip. Floats are written with the digits that they need to come back bit for bit."""

import json
from collections.abc import Sequence
from typing import IO

import numpy as np

from ..foundation.arrays import AnyArray
from ..foundation.errors import FormatError
from .qubo import Qubo, coupler_chunks


def write_coo(qubo: Qubo, labels: Sequence[str] | None, file: IO[bytes]) -> None:
    """Write dimod's COO: `i j w`, and `i i w` for every bit.

    Without exponents, which dimod's reader does not know."""
    _write_lines(file, ["# vartype=BINARY", *_comments("#", qubo, labels)])
    bits = np.arange(qubo.bits)
    file.write(lines_of_terms(qubo.h, bits, bits, scientific=False))
    for rows, cols, weights in coupler_chunks(qubo):
        file.write(lines_of_terms(weights, rows, cols, scientific=False))


def write_qbsolv(qubo: Qubo, labels: Sequence[str] | None, file: IO[bytes]) -> None:
    """Write qbsolv's format: nodes (every bit), then couplers i < j."""
    sizes = f"p qubo 0 {qubo.bits} {qubo.bits} {qubo.couplers}"
    _write_lines(file, [*_comments("c", qubo, labels), sizes])
    bits = np.arange(qubo.bits)
    file.write(lines_of_terms(qubo.h, bits, bits))
    for rows, cols, weights in coupler_chunks(qubo):
        file.write(lines_of_terms(weights, rows, cols))


def write_matrix_market(qubo: Qubo, labels: Sequence[str] | None, file: IO[bytes]) -> None:
    """Write the lower triangle of a symmetric A with x'Ax + offset = E(x): diagonal h, others J/2.

    Rows and columns are counted from 1."""
    if not np.array_equal(qubo.weights / 2 * 2, qubo.weights):
        raise FormatError(
            "half of a coupler is too small for a float; scale the model or choose another format"
        )
    head = [
        "%%MatrixMarket matrix coordinate real symmetric",
        "% energy = offset + x'Ax: h on the diagonal, half of each coupler on either side of it",
    ]
    sizes = f"{qubo.bits} {qubo.bits} {qubo.bits + qubo.couplers}"
    _write_lines(file, [*head, *_comments("%", qubo, labels), sizes])
    places = np.arange(1, qubo.bits + 1)
    file.write(lines_of_terms(qubo.h, places, places))
    for rows, cols, weights in coupler_chunks(qubo):
        file.write(lines_of_terms(0.5 * weights, cols + 1, rows + 1))


def label_text(label: str) -> str:
    """Return the label as a JSON string in ASCII, on one line, for a comment."""
    text = json.dumps(label)
    return text.replace("vartype", "\\u0076artype")  # dimod looks for `vartype=` in comments of COO


def _comments(mark: str, qubo: Qubo, labels: Sequence[str] | None) -> list[str]:
    """Return the comments that hold the offset and the labels."""
    names = [f"{mark} qubayes label {k} {label_text(name)}" for k, name in enumerate(labels or ())]
    return [f"{mark} qubayes offset {qubo.offset!r}", *names]


def _write_lines(file: IO[bytes], lines: Sequence[str]) -> None:
    file.write("".join(f"{line}\n" for line in lines).encode("ascii"))


def lines_of_terms(weights: AnyArray, *indices: AnyArray, scientific: bool | None = None) -> bytes:
    """Return lines `index ... weight` with the shortest digits that come back.

    polars, if installed, is 15 times faster than the loop.
    """
    try:
        import polars as pl
    except ImportError:
        texts: list[object] = weights.tolist()
        if scientific is False:
            texts = [np.format_float_positional(x, trim="0") for x in weights]
        columns = [array.tolist() for array in indices]
        rows = [" ".join(map(str, row)) for row in zip(*columns, texts, strict=True)]
        return "".join(f"{row}\n" for row in rows).encode("ascii")
    frame = pl.DataFrame({**{str(k): array for k, array in enumerate(indices)}, "w": weights})
    text = frame.write_csv(separator=" ", include_header=False, float_scientific=scientific)
    return text.encode("ascii")
