"""Equal rows of a table: merged, with how often each occurs."""

import numpy as np

from ..foundation.arrays import AnyArray, Ints, SmallInts, Words

_SAMPLED = 4096  # rows by which it is seen that few are equal; fewer are not looked at


def merge_rows(
    codes: AnyArray, weights: Ints | None = None, most: float = 0.9
) -> tuple[AnyArray, SmallInts]:
    """Return the different rows, as columns, and how often each occurs.

    `weights` say how often each row counts. Where more than the share `most` of the rows are
    different, all rows are returned, and no weights unless some were given. Rows are sorted by a
    hash; only neighbours that are truly equal are merged, so a collision costs nothing but space.
    """
    n, rows = codes.shape
    given = np.ones(rows, np.int32) if weights is None else weights.astype(np.int32)
    keys = np.asarray(
        np.random.default_rng(0).integers(1, 2**63, size=n, dtype=np.int64), dtype=np.uint64
    )
    hashed: Words = np.zeros(rows, dtype=np.uint64)
    for i in range(n):
        hashed = (hashed ^ codes[i].astype(np.uint64)) * keys[i]
        hashed ^= hashed >> np.uint64(29)
    order = np.argsort(hashed, kind="stable")
    first = np.zeros(rows, dtype=bool)
    first[:1] = True
    for column in codes:
        ordered = column[order]
        first[1:] |= ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(first)
    if len(starts) > most * rows:  # not worth the weights
        nothing = np.zeros(0, np.int32)
        return np.ascontiguousarray(codes), nothing if weights is None else given
    return np.ascontiguousarray(codes[:, order[starts]]), np.add.reduceat(given[order], starts)


def have_many_equal(codes: AnyArray, most: float) -> bool:
    """Return whether at most this share of many rows seem to be different, judged by some."""
    rows = codes.shape[1]
    if rows <= _SAMPLED:
        return False
    drawn = np.random.default_rng(0).choice(rows, _SAMPLED, replace=False)
    seen = merge_rows(codes[:, drawn], most=1.0)[0].shape[1]
    # Of D different rows, equally frequent, a sample of s has about s^2 / 2D equal pairs.
    expected = _SAMPLED**2 / (2.0 * most * rows)
    return bool(_SAMPLED - seen >= 0.5 * expected)
