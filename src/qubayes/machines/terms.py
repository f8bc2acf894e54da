"""What the readers of all quadratic formats return, and how model files are opened."""

import gzip
import json
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..foundation.arrays import AnyArray, Floats
from ..foundation.errors import FormatError
from ..foundation.files import parse_json, replacing
from .qubo import Qubo, from_bqm, qubo_from_couplers, upper_triangle

if TYPE_CHECKING:
    from dimod import BinaryQuadraticModel

# No machine takes more (the largest hybrid service: 5,000,000). Readers refuse more, so that a damaged header
# cannot ask for all of the memory.
MAX_BITS = 10_000_000

# More than these cost gigabytes: a file of a few lines that speaks of them is damaged.
MANY_BITS = 1_000_000

# Couplers that are formatted at once: a few dozen megabytes.
CHUNK = 1 << 20


class Terms(NamedTuple):
    """A quadratic function as it stands in a file: pairs in any order, perhaps repeated, perhaps of spins."""

    h: AnyArray  # (n,)
    rows: AnyArray  # (couplers,)
    cols: AnyArray  # (couplers,)
    weights: AnyArray  # (couplers,)
    offset: float
    labels: Sequence[Hashable] | None  # None: the file names no bits, they are 0..n-1
    vartype: str = "BINARY"  # or "SPIN"


def bqm_of(terms: Terms) -> "BinaryQuadraticModel":
    """The function as a `dimod.BinaryQuadraticModel`, in the file's own vartype and precision."""
    from dimod import BinaryQuadraticModel, Vartype

    n = len(terms.h)
    quadratic = terms.rows, terms.cols, terms.weights
    order = list(range(n)) if terms.labels is None else terms.labels
    return BinaryQuadraticModel.from_numpy_vectors(
        terms.h, quadratic, terms.offset, Vartype[terms.vartype], variable_order=order, dtype=terms.h.dtype
    )


def qubo_of(terms: Terms) -> tuple[Qubo, tuple[str, ...]]:
    """The function over bits as flat arrays, and the labels as text."""
    if terms.vartype == "SPIN":
        return from_bqm(bqm_of(terms))
    labels = range(len(terms.h)) if terms.labels is None else terms.labels
    qubo = qubo_from_couplers(terms.h, terms.rows, terms.cols, terms.weights, terms.offset)
    return qubo, tuple(str(label) for label in labels)


def checked(terms: Terms) -> Terms:
    """The same terms if every coefficient is finite, every pair names bits and labels are distinct; else an error."""
    n = len(terms.h)
    if not (np.isfinite(terms.h).all() and np.isfinite(terms.weights).all() and np.isfinite(terms.offset)):
        raise FormatError("a coefficient is infinite or not a number")
    if len(terms.rows) and (
        min(terms.rows.min(), terms.cols.min()) < 0 or max(terms.rows.max(), terms.cols.max()) >= n
    ):
        raise FormatError(f"a coupler names a bit outside 0 to {n - 1}")
    if terms.labels is not None and (len(terms.labels) != n or len(set(terms.labels)) != n):
        raise FormatError(f"{len(terms.labels)} labels, {len(set(terms.labels))} of them distinct, for {n} bits")
    return terms


def checked_bits(bits: int, terms: int | None = None) -> int:
    """The number itself if a model can have so many bits, and one of so many terms has a reason to."""
    if not 0 <= bits <= MAX_BITS:
        raise FormatError(f"{bits} bits; 0 to {MAX_BITS:,} are allowed")
    if terms is not None and bits > max(MANY_BITS, 10 * terms):
        raise FormatError(f"{bits:,} bits and {terms:,} terms; beyond {MANY_BITS:,} bits a tenth of them needs a term")
    return bits


def coupler_chunks(qubo: Qubo) -> Iterator[tuple[AnyArray, AnyArray, Floats]]:
    """(i, j, J_ij) with i < j in ascending order, in chunks of bounded size."""
    cuts = np.searchsorted(qubo.indptr, np.arange(0, len(qubo.indices), 2 * CHUNK), side="right") - 1
    bounds = [*dict.fromkeys(cuts.tolist()), qubo.bits]
    for start, stop in pairwise(bounds):
        yield upper_triangle(qubo, start, stop)


def label_text(label: str) -> str:
    """The label on one line of ASCII: a JSON string in which no reader finds a keyword."""
    # dimod looks for `vartype=` in the comments of COO files, wherever it stands.
    return json.dumps(label).replace("vartype", "\\u0076artype")


@contextmanager
def writing(path: str | Path) -> Iterator[IO[bytes]]:
    """A file for bytes that appears at `path` when it is whole; packed if its name ends in `.gz`."""
    path = Path(path)
    with replacing(path, binary=True) as file:
        if path.suffix.lower() != ".gz":
            yield file
            return
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:  # no clock: same bytes each time
            yield packed  # type: ignore[misc]


def read_exactly(file: IO[bytes], size: int, what: str) -> bytes:
    """The next `size` bytes; an error if the file ends before. Memory grows with what is there, not with `size`."""
    parts: list[bytes] = []
    while size > 0:
        part = file.read(min(size, 1 << 24))
        if not part:
            raise FormatError(f"the file ends inside its {what}")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def parsed_json(text: str | bytes, what: str) -> Any:
    """The JSON value; an error if there is none."""
    try:
        return parse_json(text)
    except FormatError as error:
        raise FormatError(f"the {what} is {error}") from None
