"""Sums of log-gamma terms over the cells of a set of variables."""

from math import lgamma, log, log1p

from ..foundation.arrays import Floats
from ..foundation.jit import inner
from ..scores.score import LARGE, STIRLING
from .tables import Below, Counts

TABLE_WIDTH = 1024  # counts below this are looked up, larger ones use lgamma: 8 KB a row stay in cache
SMALL_PRIOR = 1 / 64  # up to this prior the power series below is exact to double precision
_S1, _S3, _S5, _S7, _S9 = STIRLING
SERIES = 8  # its number of coefficients: the first one left out is at most 64**-8 / 8 = 4e-16


@inner
def _find(keys: Floats, key: float) -> int:
    low, high = 0, len(keys)
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low if low < len(keys) and keys[low] == key else -1


@inner
def term(value: int, prior: float) -> float:
    """lnΓ(value + prior) − lnΓ(prior); value log value where the prior is 0 (score.rising, for kernels)."""
    if value == 0:
        return 0.0
    if prior == 0.0:
        return value * log(value)
    if prior < LARGE:
        return lgamma(value + prior) - lgamma(prior)
    both = value + prior  # by Stirling's series: of two log-gammas only rounding would be left
    return value * log(both) - value + (prior - 0.5) * log1p(value / prior) + _stirling(both) - _stirling(prior)


@inner
def _stirling(x: float) -> float:
    s = 1.0 / (x * x)
    return ((((_S9 * s + _S7) * s + _S5) * s + _S3) * s + _S1) / x


@inner
def sum_by_table(row: int, prior: float, table: Floats, counts: Counts) -> float:
    """Σ times · (lnΓ(value + prior) − lnΓ(prior)); with prior 0, Σ times · value log value."""
    values, times, n_values = counts
    total = 0.0
    width = table.shape[1] if row >= 0 else 0
    for t in range(n_values):
        value = values[t]
        total += times[t] * (table[row, value] if value < width else term(value, prior))
    return total


@inner
def _set_moments(series: Floats, counts: Counts, moments: Floats) -> None:
    """moments[p] = Σ times · series[value, p]: after this a sum of terms is a polynomial in the prior."""
    values, times, n_values = counts
    for p in range(SERIES):
        moments[p] = 0.0
    for t in range(n_values):
        value = values[t]
        if 0 < value < len(series):
            for p in range(SERIES):
                moments[p] += times[t] * series[value, p]


@inner
def _sum_by_moments(prior: float, n_cells: int, width: int, moments: Floats, counts: Counts) -> float:
    """Σ times · (lnΓ(value + prior) − lnΓ(prior)) for a small prior, as lnΓ(prior) = lnΓ(1 + prior) − log(prior)."""
    values, times, n_values = counts
    total = 0.0
    for p in range(SERIES - 1, -1, -1):
        total = total * prior + moments[p]
    for t in range(n_values):
        if values[t] >= width:
            total += times[t] * (lgamma(values[t] + prior) - lgamma(1.0 + prior))
    return total + n_cells * log(prior)


@inner
def sum_terms(key: float, prior: float, n_cells: int, below: Below, moments: Floats, counts: Counts) -> float:
    """Σ times · (lnΓ(value + prior) − lnΓ(prior)) by whichever way is fastest; key = ess / prior."""
    if 0.0 < prior <= SMALL_PRIOR:
        if moments[0] != moments[0]:  # not computed for this set yet
            _set_moments(below.series, counts, moments)
        return _sum_by_moments(prior, n_cells, len(below.series), moments, counts)
    return sum_by_table(_find(below.keys, key), prior, below.table, counts)
