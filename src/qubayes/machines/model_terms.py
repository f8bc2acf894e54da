"""Quadratic terms as a file lists them: the common result of the readers of quadratic formats."""

import json
from collections.abc import Hashable, Sequence
from typing import IO, TYPE_CHECKING, NamedTuple

import numpy as np

from ..foundation.arrays import AnyArray
from ..foundation.errors import FormatError
from .qubo import Qubo, from_bqm, qubo_from_couplers

if TYPE_CHECKING:
    from dimod import BinaryQuadraticModel

# No machine takes more bits (the largest hybrid service: 5,000,000). A damaged header may claim any number.
MAX_BITS = 10_000_000
# Above this, a model needs at least one term for every ten bits: a file of a few lines that claims more is damaged.
MANY_BITS = 1_000_000


class ModelTerms(NamedTuple):
    """A quadratic function of bits or spins; pairs in any order, perhaps repeated."""

    h: AnyArray  # (n,)
    rows: AnyArray  # (couplers,)
    cols: AnyArray  # (couplers,)
    weights: AnyArray  # (couplers,)
    offset: float
    labels: Sequence[Hashable] | None  # None: 0..n-1
    vartype: str = "BINARY"  # or "SPIN"

    def checked(self) -> "ModelTerms":
        """Return the terms; raise unless coefficients are finite, pairs name bits and labels are distinct."""
        n, pairs = len(self.h), np.concatenate([self.rows, self.cols])
        if not (np.isfinite(self.h).all() and np.isfinite(self.weights).all() and np.isfinite(self.offset)):
            raise FormatError("a coefficient is infinite or not a number")
        if len(pairs) and not 0 <= pairs.min() <= pairs.max() < n:
            raise FormatError(f"a coupler names a bit outside 0 to {n - 1}")
        if self.labels is not None and (len(self.labels) != n or len(set(self.labels)) != n):
            raise FormatError(f"{len(self.labels)} labels, {len(set(self.labels))} of them distinct, for {n} bits")
        return self

    def bqm(self) -> "BinaryQuadraticModel":
        """Return the function as dimod's model, of the same vartype and precision."""
        from dimod import BinaryQuadraticModel, Vartype

        labels = list(range(len(self.h))) if self.labels is None else self.labels
        quadratic, vartype = (self.rows, self.cols, self.weights), Vartype[self.vartype]
        return BinaryQuadraticModel.from_numpy_vectors(
            self.h, quadratic, self.offset, vartype, variable_order=labels, dtype=self.h.dtype
        )

    def qubo(self) -> tuple[Qubo, tuple[str, ...]]:
        """Return (QUBO, labels as text)."""
        if self.vartype == "SPIN":
            return from_bqm(self.bqm())
        labels = range(len(self.h)) if self.labels is None else self.labels
        qubo = qubo_from_couplers(self.h, self.rows, self.cols, self.weights, self.offset)
        return qubo, tuple(str(label) for label in labels)


def split_diagonal(
    bits: int,
    entries: tuple[AnyArray, AnyArray, AnyArray],
    offset: float,
    labels: Sequence[Hashable] | None,
    vartype: str = "BINARY",
) -> ModelTerms:
    """Return the terms of entries (i, j, w): those with i = j are linear, the others couplers."""
    i, j, w = entries
    check_size(bits, len(i) + len(labels or ()))
    if len(i) and not 0 <= min(i.min(), j.min()) <= max(i.max(), j.max()) < bits:
        raise FormatError(f"an entry names a bit outside 0 to {bits - 1}")
    linear, h = i == j, np.zeros(bits)
    h[i[linear]] = -0.0  # -0.0 + w = w for every w, also for -0.0
    np.add.at(h, i[linear], w[linear])
    return ModelTerms(h, i[~linear], j[~linear], w[~linear], offset, labels, vartype).checked()


def check_size(bits: int, terms: int | None = None) -> None:
    """Raise if a file claims more bits than any model has, or than its number of terms explains."""
    if not 0 <= bits <= MAX_BITS:
        raise FormatError(f"{bits} bits; 0 to {MAX_BITS:,} are allowed")
    if terms is not None and bits > max(MANY_BITS, 10 * terms):
        raise FormatError(f"{bits:,} bits and {terms:,} terms; beyond {MANY_BITS:,} bits a tenth of them needs a term")


def label_text(label: str) -> str:
    """Return the label as a JSON string in ASCII, on one line, for a comment."""
    # dimod searches the comments of COO files for `vartype=`.
    return json.dumps(label).replace("vartype", "\\u0076artype")


def read_exactly(file: IO[bytes], size: int, what: str) -> bytes:
    """Return the next `size` bytes; raise if the file ends earlier. Memory grows with the file, not with `size`."""
    parts: list[bytes] = []
    while size > 0:
        part = file.read(min(size, 1 << 24))
        if not part:
            raise FormatError(f"the file ends inside its {what}")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
