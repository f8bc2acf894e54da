"""Sums of a score's terms over the cell counts of a set of variables, for kernels.

Cell counts come as two rows of one array: the values, and how often each occurs. Terms of counts
below `TABLE_WIDTH` are looked up by their prior, or, where the prior is small, summed as a power
series whose coefficients serve every prior of the same set."""

from functools import lru_cache
from math import lgamma, log
from typing import NamedTuple

import numpy as np

from ..foundation.arrays import Floats, SmallInts
from ..foundation.jit import inner
from .score import Formula, priors, rising, stirling

# counts below this are looked up, larger ones use lgamma: 8 KB a row stay in cache
TABLE_WIDTH = 1024
SMALL_PRIOR = 1 / 64  # up to this prior the power series is exact to double precision
# number of coefficients of the series: the first one left out is at most 64**-8 / 8 = 4e-16
SERIES = 8
MOST_TABLE_ROWS = 1 << 14  # 128 MB; terms of further priors are computed on the fly
VALUES, TIMES = range(2)  # rows of counts

for _function in (stirling, rising, priors):  # kernels may call these plain functions
    inner(_function)


class TermTables(NamedTuple):
    """Tabulated terms of a score."""

    # (rows,) ascending: formula.prior / prior of each row of `terms`; where that prior is not small
    keys: Floats
    terms: Floats  # (rows, width) lnΓ(c + prior) − lnΓ(prior), or c log c
    # (width, SERIES) coefficients of prior^0, prior^1, ... in lnΓ(c + prior) − lnΓ(1 + prior)
    series: Floats


def term_tables(formula: Formula, keys: Floats, rows: int) -> TermTables:
    """Return the tables for these keys and counts up to the number of rows."""
    width = min(rows, TABLE_WIDTH - 1) + 1
    kept = keys[(formula.prior == 0.0) | (keys * SMALL_PRIOR <= formula.prior)][:MOST_TABLE_ROWS]
    terms = np.array([term_row(width, prior) for prior in (formula.prior / kept).tolist()])
    return TermTables(kept, terms.reshape(len(kept), width), power_series(width))


@lru_cache(maxsize=1024)  # every level of a search asks for some of the same rows
def term_row(width: int, prior: float) -> Floats:
    """(width,) terms of the counts 0, 1, ..., for one prior."""
    return np.array([rising(count, prior) for count in range(width)])


@lru_cache(maxsize=4)
def power_series(width: int) -> Floats:
    """Return (width, SERIES) the coefficient of s^p in Σ_{0<j<c} log(j + s).

    It follows from log(j + s) = log j − Σ_p (−s/j)^p / p."""
    j = np.arange(1, width - 1, dtype=float)
    terms = np.zeros((width, SERIES))
    terms[2:, 0] = np.log(j)
    for p in range(1, SERIES):
        terms[2:, p] = (-1) ** (p + 1) / (p * j**p)
    return np.cumsum(terms, axis=0)


@inner
def sum_terms(
    key: float,
    prior: float,
    n_cells: int,
    tables: TermTables,
    moments: Floats,
    counts: SmallInts,
    n_values: int,
) -> float:
    """Return Σ times · term(value, prior), by table, power series or one by one.

    key = formula.prior / prior. moments[p] becomes Σ times · series[value, p], with which the sum
    is a polynomial in the prior; moments[0] is NaN until then."""
    total = 0.0
    if not 0.0 < prior <= SMALL_PRIOR:
        row = _find(tables.keys, key)
        width = tables.terms.shape[1] if row >= 0 else 0
        for t in range(n_values):
            value = counts[VALUES, t]
            total += counts[TIMES, t] * (
                tables.terms[row, value] if value < width else rising(value, prior)
            )
        return total
    if moments[0] != moments[0]:
        for p in range(SERIES):
            moments[p] = 0.0
        for t in range(n_values):
            value = counts[VALUES, t]
            if 0 < value < len(tables.series):
                for p in range(SERIES):
                    moments[p] += counts[TIMES, t] * tables.series[value, p]
    for p in range(SERIES - 1, -1, -1):
        total = total * prior + moments[p]
    for t in range(n_values):
        if counts[VALUES, t] >= len(tables.series):
            total += counts[TIMES, t] * (lgamma(counts[VALUES, t] + prior) - lgamma(1.0 + prior))
    return total + n_cells * log(prior)  # as lnΓ(prior) = lnΓ(1 + prior) − log(prior)


@inner
def _find(keys: Floats, key: float) -> int:
    """Return the place of the key, -1 if it is absent."""
    low, high = 0, len(keys)
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low if low < len(keys) and keys[low] == key else -1
