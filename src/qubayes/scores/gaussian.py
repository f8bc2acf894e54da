"""`Gaussian`: the engine of continuous columns; parent sets are scored by linear Gaussian models.

A child is a linear function of its parents plus normal noise. All scores depend on the data by one
matrix R: with the residual variance R(i|P) of the child i given the parents P,

    score = c[p] − a[p]/2 · log R(i|P) − b/2 · log det R_PP,   p = |P|.

- `bic`, `aic`, `loglik`: R is the covariance (divisor N), a = N, b = 0 and
  c[p] = −N/2 (1 + log 2π) − penalty (p + 2): p weights, an intercept and a variance.
- `bge` (Geiger and Heckerman 2002, as corrected by Kuipers, Moffa and Heckerman 2014): the log
  marginal likelihood under a normal-Wishart prior of mean weight 1 and n + 2 degrees of freedom.
  R is t·I plus N times the covariance, a[p] = N + p + 3, b = 1. The prior depends on units, so
  columns are divided by their standard deviations first."""

from collections.abc import Sequence
from math import lgamma, log, pi
from typing import Any, NamedTuple

import numpy as np

from ..data.dataset import Dataset
from ..foundation.arrays import Floats, Ints, SmallInts
from ..foundation.jit import inner, kernel
from .columns import LEAST_RESIDUAL
from .score import Score, bic_penalty

_MEAN_WEIGHT = 1.0  # rows that the prior of the means is worth (αμ)


class Moments(NamedTuple):
    """A Gaussian score in numbers; see the first lines of this file."""

    matrix: Floats  # (n, n) R
    constants: Floats  # (n,) c[p]
    weights: Floats  # (n,) a[p]
    determinant: float  # b
    shifts: Floats  # (n,) what is added to each score of a child: the units of its column


def moments_of(dataset: Dataset, name: str, penalty: float) -> Moments:
    """Return the score for the rows of the data; `penalty` is the cost of a parameter."""
    n, rows = dataset.n, dataset.rows
    deviations, covariance = dataset.moments
    p = np.arange(n, dtype=float)
    if name == "bge":
        return _bge(covariance, rows, p)
    constants = -0.5 * rows * (1.0 + log(2.0 * pi)) - penalty * (p + 2.0)
    shifts = -rows * np.log(deviations)
    return Moments(covariance, constants, np.full(n, float(rows)), 0.0, shifts)


def _bge(covariance: Floats, rows: int, p: Floats) -> Moments:
    """Return the marginal likelihood of columns of variance 1."""
    n = len(p)
    freedom = n + _MEAN_WEIGHT + 1.0  # degrees of freedom of the Wishart prior (αw)
    t = _MEAN_WEIGHT * (freedom - n - 1.0) / (_MEAN_WEIGHT + 1.0)
    prior = freedom - n + p + 1.0
    gammas = np.array([lgamma(0.5 * (rows + x)) - lgamma(0.5 * x) for x in prior.tolist()])
    constants = (
        0.5 * log(_MEAN_WEIGHT / (rows + _MEAN_WEIGHT))
        - 0.5 * rows * log(pi)
        + gammas
        + 0.5 * (freedom - n + 2.0 * p + 1.0) * log(t)
    )
    matrix = t * np.eye(n) + rows * covariance
    return Moments(matrix, constants, rows + prior, 1.0, np.zeros(n))


def moments_for(dataset: Dataset, score: Score) -> Moments:
    """Return a score of continuous columns for the data."""
    factor = {"bic": bic_penalty(dataset.rows), "aic": 1.0}.get(score.name, 0.0)
    return moments_of(dataset, score.name, score.penalty * factor)


class Gaussian:
    """Scores parent sets of a table whose columns are all numbers (an `Engine`)."""

    def __init__(self, dataset: Dataset, score: Score) -> None:
        self.n = dataset.n
        self.rows = dataset.rows
        self.moments = moments_for(dataset, score)

    def local(self, child: int, parents: Sequence[int]) -> float:
        """Return the local score of the child with these parents, from determinants."""
        matrix, constants, weights, determinant, shifts = self.moments
        members = list(parents)
        p = len(members)
        of_parents = float(np.linalg.slogdet(matrix[np.ix_(members, members)])[1])
        family = [*members, child]
        of_family = float(np.linalg.slogdet(matrix[np.ix_(family, family)])[1])
        residual = of_family - of_parents
        score = constants[p] - 0.5 * weights[p] * residual - 0.5 * determinant * of_parents
        return float(score + shifts[child])

    def pairs(self, children: Ints) -> Floats:
        """(children, n) scores with each single parent; with the child itself: without parents."""
        scores = np.empty((len(children), self.n))
        nothing = np.zeros((1, 0), np.int32)
        for row, child in zip(scores, children.tolist(), strict=True):
            found = self.extensions(child, nothing, None)[0]
            row[:] = found[:-1]
            row[child] = found[-1]
        return scores

    def extensions(self, child: int, sets: SmallInts, others: Ints | None) -> Floats:
        """(sets, others + 1) scores with each set and one more parent; last: the set alone."""
        scores = np.empty((len(sets), self.n + 1))
        rows = np.zeros((sets.shape[1] + 2, self.n))
        _score_extensions(child, sets, self.moments, rows, scores)
        scores += self.moments.shifts[child]
        return scores if others is None else scores[:, [*others, -1]]


@kernel
def _score_extensions(
    child: int, sets: SmallInts, moments: Moments, scratch: Floats, scores: Floats
) -> None:
    """Set scores[s] to those with the set s and each further parent; the last: the set alone."""
    matrix = moments.matrix
    constants = moments.constants
    weights = moments.weights
    n = len(matrix)
    residuals, covariances = scratch[-2], scratch[-1]
    for s in range(len(sets)):
        size, logs = _remove_parents(child, sets[s], matrix, scratch)
        alone = residuals[child]
        scores[s, n] = -np.inf
        if size >= 0:
            scores[s, n] = (
                constants[size]
                - 0.5 * weights[size] * np.log(alone)
                - 0.5 * moments.determinant * logs
            )
        for x in range(n):
            scores[s, x] = -np.inf
            least = LEAST_RESIDUAL * matrix[x, x]
            if x == child or size < 0 or size + 1 >= n or not residuals[x] > least:
                continue
            left = alone - covariances[x] * covariances[x] / residuals[x]
            if left > LEAST_RESIDUAL * matrix[child, child]:
                scores[s, x] = (
                    constants[size + 1]
                    - 0.5 * weights[size + 1] * np.log(left)
                    - 0.5 * moments.determinant * (logs + np.log(residuals[x]))
                )
        for member in sets[s]:
            if member >= 0:
                scores[s, member] = scores[s, n]


@inner
def _remove_parents(child: int, parents: Any, matrix: Floats, scratch: Floats) -> Any:
    """Set the residual variances, given the parents, and their covariances with the child.

    Returns the number of parents, -1 if they are linearly dependent, and the logarithm of their
    determinant. Each parent takes one step of a Cholesky decomposition, whose rows are kept."""
    n = len(matrix)
    residuals, covariances = scratch[-2], scratch[-1]
    for x in range(n):
        residuals[x] = matrix[x, x]
        covariances[x] = matrix[child, x]
    size = 0
    logs = 0.0
    for parent in parents:
        if parent < 0:
            continue
        if not residuals[parent] > LEAST_RESIDUAL * matrix[parent, parent]:
            return -1, 0.0
        logs += np.log(residuals[parent])
        root = np.sqrt(residuals[parent])
        row = scratch[size]
        for x in range(n):
            row[x] = matrix[parent, x]
        for before in range(size):
            factor = scratch[before, parent]
            for x in range(n):
                row[x] -= factor * scratch[before, x]
        for x in range(n):
            row[x] /= root
        of_child = row[child]
        for x in range(n):
            residuals[x] -= row[x] * row[x]
            covariances[x] -= of_child * row[x]
        size += 1
    if not residuals[child] > LEAST_RESIDUAL * matrix[child, child]:
        return -1, 0.0
    return size, logs
