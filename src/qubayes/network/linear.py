"""Linear Gaussian parameters: a variable is a weighted sum of its parents plus normal noise."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, log, pi

import numpy as np

from ..foundation.arrays import Floats, Ints
from ..foundation.errors import DataError, QubayesError, some

# A column of which less than this part of the variance is left, given other columns, is a linear
# function of them.
_LEAST_VARIANCE_LEFT = 1e-12


@dataclass(frozen=True, slots=True)
class Linear:
    """The distribution of a continuous variable given its parents.

    It is normal, with mean intercept + Σ weight · parent and this standard deviation.

    >>> Linear(1.0, (0.5, -2.0), 0.1).size
    4
    """

    intercept: float
    weights: tuple[float, ...]  # in the order of the parents
    deviation: float  # of what the parents leave open (residual standard deviation)

    def __post_init__(self) -> None:
        # as plain numbers, so that numpy's and Python's numbers make equal parameters
        object.__setattr__(self, "intercept", float(self.intercept))
        object.__setattr__(self, "weights", tuple(map(float, self.weights)))
        object.__setattr__(self, "deviation", float(self.deviation))
        if not all(map(isfinite, (self.intercept, *self.weights))):
            raise QubayesError(
                f"intercept {self.intercept}, weights {self.weights}; give finite numbers"
            )
        if not 0.0 < self.deviation < float("inf"):
            raise QubayesError(
                f"the standard deviation {self.deviation}; give a finite number above 0"
            )

    @property
    def size(self) -> int:
        """Number of parameters."""
        return len(self.weights) + 2

    def mean(self, parents: Floats) -> Floats:
        """Return (rows,) the mean given the cells of the parents, which are (parents, rows)."""
        return self.intercept + np.array(self.weights) @ parents

    def log_likelihood(self, cells: Floats, parents: Floats, weights: Ints | None = None) -> float:
        """Return the log density of the cells of the variable given those of the parents.

        With weights each row counts that often."""
        errors = (cells - self.mean(parents)) / self.deviation
        rows = len(cells) if weights is None else int(weights.sum())
        constant = rows * (0.5 * log(2.0 * pi) + log(self.deviation))
        weighted = errors if weights is None else errors * weights
        return float(-constant - 0.5 * (errors @ weighted))

    def reordered(self, order: Sequence[int]) -> "Linear":
        """Return the same parameters for the parents in this order."""
        return Linear(self.intercept, tuple(self.weights[i] for i in order), self.deviation)


def fit_linear(
    numbers: Floats,
    child: int,
    parents: Sequence[int],
    names: Sequence[str],
    row_weights: Ints | None = None,
) -> Linear:
    """Return the maximum likelihood parameters of a column of `numbers`, which is (n, rows).

    With weights each row counts that often. Raise where parameters are not determined: too few
    rows, or columns that depend on each other."""
    rows = numbers.shape[1] if row_weights is None else int(row_weights.sum())
    if rows < len(parents) + 2:
        raise DataError(
            f"{names[child]!r} has {len(parents)} parents and the data have {rows} rows;"
            f" give {len(parents) + 2} rows or more, or remove parents"
        )
    family = [*parents, child]
    means = np.average(numbers[family], axis=1, weights=row_weights)
    centred = numbers[family] - means[:, None]
    deviations = np.sqrt(np.average(centred * centred, axis=1, weights=row_weights))
    _check_vary(numbers, family, names)
    scaled = (centred / deviations[:, None]).T
    if row_weights is not None:
        scaled = scaled * np.sqrt(row_weights)[:, None]
    # Columns of R: what each variable takes from those before it, and what is left of it.
    triangle: Floats = np.asarray(np.linalg.qr(scaled, mode="r"))
    _check_independent(triangle, rows, [names[v] for v in family])
    weights = np.linalg.solve(triangle[:-1, :-1], triangle[:-1, -1])
    weights *= deviations[-1] / deviations[:-1]
    deviation = abs(triangle[-1, -1]) / np.sqrt(rows) * deviations[-1]
    return Linear(means[-1] - weights @ means[:-1], tuple(weights.tolist()), deviation)


def linear_of_moments(
    means: Floats, covariance: Floats, child: int, parents: Sequence[int]
) -> Linear:
    """Return the parameters of maximum likelihood given all means and covariances."""
    its = list(parents)
    weights = np.linalg.solve(covariance[np.ix_(its, its)], covariance[its, child])
    variance = float(covariance[child, child] - weights @ covariance[its, child])
    intercept = float(means[child] - weights @ means[its])
    return Linear(intercept, tuple(weights.tolist()), float(np.sqrt(variance)))


def _check_vary(numbers: Floats, family: Sequence[int], names: Sequence[str]) -> None:
    """Raise if a column has the same number in every row."""
    for vertex in family:
        if (numbers[vertex] == numbers[vertex, 0]).all():
            raise DataError(
                f"column {names[vertex]!r} is {numbers[vertex, 0]:g} in every row; leave it out"
            )


def _check_independent(triangle: Floats, rows: int, names: Sequence[str]) -> None:
    """Raise if a column of standard deviation 1 is a linear function of those before it."""
    for place, left in enumerate(np.diagonal(triangle) ** 2 / rows):
        if left > _LEAST_VARIANCE_LEFT:
            continue
        weights = np.linalg.solve(triangle[:place, :place], triangle[:place, place])
        others = [names[i] for i in np.flatnonzero(np.abs(weights) > 1e-6).tolist()]
        raise DataError(
            f"column {names[place]!r} is a linear function of {some(others)};"
            " remove it, or one of them"
        )
