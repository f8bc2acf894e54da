"""Exact answers of a linear Gaussian network: its variables are jointly normal.

Every variable is its mean plus a weighted sum of independent standard normal noises, one for each
variable. The rows of these weights are a square root of the covariance: a QR decomposition of the
rows of the evidence and of the query gives the Cholesky factor of their covariance, of which the
last row holds the answer (the Schur complement). The covariance itself, of which small residual
variances would be differences of large numbers, is never made."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import erfc, isnan, sqrt
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..data import is_missing
from ..foundation.arrays import Floats
from ..foundation.errors import DataError, SettingError
from .inference import relevant
from .separation import boundary

if TYPE_CHECKING:
    from .network import Network


@dataclass(frozen=True, slots=True)
class Normal:
    """A normal distribution: its mean and its standard deviation.

    >>> Normal(0.0, 2.0).between(-2.0, 2.0)
    0.6826894921370859
    """

    mean: float
    deviation: float

    def between(self, low: float, high: float) -> float:
        """Return the probability of a value between the two; each may be infinite."""
        a = (low - self.mean) / self.deviation / sqrt(2.0)
        b = (high - self.mean) / self.deviation / sqrt(2.0)
        if a > 0.0:  # from the side of the nearer tail, so that small ones keep their digits
            return 0.5 * (erfc(a) - erfc(b))
        return 0.5 * (erfc(-b) - erfc(-a))


class _Regression(NamedTuple):
    """A variable as a linear function of others: what is expected of it given these."""

    mean: float  # where the others have their means
    means: Floats  # of the others
    weights: Floats  # of the others
    deviation: float

    def __call__(self, given: Floats) -> Floats:
        """Return (rows,) the expected values given (others, rows)."""
        expected: Floats = self.mean + self.weights @ (given - self.means[:, None])
        return expected


def _regression(network: "Network", query: int, others: list[int]) -> _Regression:
    """Return the distribution of the query given the others, from the joint normal."""
    means, roots = _joint(network, query, others)
    # the transposed Cholesky factor of the covariance
    triangle: Floats = np.asarray(np.linalg.qr(roots.T, mode="r"))
    weights: Floats = np.asarray(np.linalg.solve(triangle[:-1, :-1], triangle[:-1, -1]))
    return _Regression(float(means[-1]), means[:-1], weights, abs(float(triangle[-1, -1])))


def _joint(network: "Network", query: int, others: list[int]) -> tuple[Floats, Floats]:
    """Return the means of the others and of the query, and a square root of their covariance.

    It has a row for each of them and a column for the noise of each of their ancestors."""
    linears = network.linears
    needed = set(relevant(network, query, others))
    order = [vertex for vertex in network.order if vertex in needed]
    place = {vertex: k for k, vertex in enumerate(order)}
    means = np.zeros(len(order))
    roots = np.zeros((len(order), len(order)))
    for k, vertex in enumerate(order):
        linear = linears[vertex]
        parents = [place[parent] for parent in network.parents[vertex]]
        weights = np.array(linear.weights)
        means[k] = linear.intercept + weights @ means[parents]
        roots[k] = weights @ roots[parents]
        roots[k, k] = linear.deviation
    asked = [place[vertex] for vertex in (*others, query)]
    return means[asked], roots[asked]


def normal_of(network: "Network", query: int, given: Mapping[int, Any]) -> Normal:
    """Return the distribution of the query given values of others; missing ones are left out."""
    numbers = {
        vertex: number_of(network.names[vertex], value)
        for vertex, value in given.items()
        if not is_missing(value)
    }
    needed = boundary(network, query, numbers)
    found = _regression(network, query, needed)
    mean = found(np.array([numbers[vertex] for vertex in needed]).reshape(-1, 1))
    return Normal(float(mean[0]), found.deviation)


def normal_probability(
    network: "Network", wanted: Mapping[int, Any], given: Mapping[int, Any]
) -> float:
    """Return the probability that one variable lies in an interval."""
    if len(wanted) > 1:
        names = " and ".join(repr(network.names[vertex]) for vertex in wanted)
        raise SettingError(
            f"intervals of {names} were asked for; ask for one, and give the others as numbers"
        )
    [(vertex, interval)] = wanted.items()
    low, high = interval_of(network.names[vertex], interval)
    return normal_of(network, vertex, given).between(low, high)


def interval_of(name: str, value: Any) -> tuple[float, float]:
    """Return the ends of an interval that a user gives; None is an open end."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise SettingError(
            f"{name!r} is continuous, and a single value such as {value!r} has probability 0; give"
            f" an interval, (low, high), or ask for its distribution: probability({name!r})"
        )
    low = -np.inf if value[0] is None else number_of(name, value[0])
    high = np.inf if value[1] is None else number_of(name, value[1])
    if not low <= high:
        raise SettingError(f"the interval of {name!r} is {value}; give the lower end first")
    return float(low), float(high)


def number_of(name: str, value: Any) -> float:
    """Return a value of a continuous variable as a number."""
    if not isinstance(value, Real) or isnan(value):
        raise DataError(f"{value!r} was given for {name!r}, which is continuous; give a number")
    return float(value)


def predicted_means(network: "Network", query: int, columns: Mapping[int, Floats]) -> Floats:
    """Return (rows,) the mean of the query given the numbers of other vertices; NaN is missing."""
    others = np.array(list(columns.values()))
    vertices = np.array(list(columns))
    row_of = {vertex: row for row, vertex in enumerate(columns)}
    known = ~np.isnan(others)
    found = np.empty(others.shape[1])
    patterns, which = np.unique(known, axis=1, return_inverse=True)
    for pattern, observed in enumerate(patterns.T):
        here = which.ravel() == pattern
        needed = boundary(network, query, vertices[observed].tolist())
        regression = _regression(network, query, needed)
        found[here] = regression(others[[row_of[vertex] for vertex in needed]][:, here])
    return found
