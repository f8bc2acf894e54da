"""Parts of the rows, by the states of discrete columns, and their covariances with a prior.

A `Prior` adds κ rows to each part. With S_j the covariance of part j, which has N_j of the N rows,
and S that of the whole table,

    W = 0.9 Σ_j N_j S_j / N + 0.1 S         covariance of the prior rows
    R_j = (N_j S_j + κ W) / (N_j + κ)       covariance that scores and parameters of part j use

So a part of few rows has a little of what all parts have in common, and none has a residual
variance of 0. How κ = 1 and 0.1 were chosen: docs/howto-mixed.md."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..foundation.arrays import AnyArray, Floats, Ints


class Prior(NamedTuple):
    """What is added to each part of the rows."""

    rows: float = 1.0  # κ; with 0 there is no prior, and thin parts have an infinite likelihood
    table: float = 0.1  # share of W that is the covariance of the whole table


PRIOR = Prior()


def split_rows(codes: AnyArray, arities: Sequence[int]) -> Ints:
    """Return (rows,) the part of each row: rows with the same codes are a part."""
    labels = np.zeros(codes.shape[1], np.int64)
    # numbered again each time, so that products of arities cannot overflow
    for column, arity in zip(codes, arities, strict=True):
        labels = np.unique(labels * arity + column, return_inverse=True)[1].reshape(-1)
    return labels


def covariances_of(
    cells: Floats, labels: Ints, times: Ints | None = None
) -> tuple[Floats, Floats, Floats]:
    """Return (parts,) rows, (parts, columns) means and (parts, columns, columns) covariances.

    With `times` each row counts that often."""
    counts = np.bincount(labels, times).astype(np.float64)
    columns, parts = len(cells), len(counts)
    means = np.empty((parts, columns))
    for k, column in enumerate(cells):
        weighted = column if times is None else column * times
        means[:, k] = np.bincount(labels, weighted, parts) / counts
    centred = cells - means[labels].T
    found = np.empty((parts, columns, columns))
    for a in range(columns):
        weighted = centred[a] if times is None else centred[a] * times
        for b in range(a, columns):
            found[:, a, b] = np.bincount(labels, weighted * centred[b], parts) / counts
            found[:, b, a] = found[:, a, b]
    return counts, means, found


def shrunken(
    counts: Floats, covariances: Floats, whole: Floats, prior: Prior = PRIOR
) -> tuple[Floats, Floats]:
    """Return the covariances R of the parts, and W of the prior; `whole` is that of the table."""
    common = np.tensordot(counts / counts.sum(), covariances, 1)
    added = (1.0 - prior.table) * common + prior.table * whole
    rows = counts[:, None, None]
    return (rows * covariances + prior.rows * added) / (rows + prior.rows), added
