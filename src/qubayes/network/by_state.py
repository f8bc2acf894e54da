"""Linear Gaussian parameters by states: one `Linear` for each combination of discrete parents."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log, pi

import numpy as np

from ..foundation.arrays import AnyArray, Floats, Ints, frozen
from ..foundation.errors import QubayesError
from ..scores import PRIOR, Prior, covariances_of, shrunken
from .linear import Linear, fit_linear


@dataclass(frozen=True, slots=True, eq=False)
class ByState:
    """The distribution of a continuous variable given discrete parents, and maybe continuous ones.

    The arrays have one axis for each discrete parent; `weights` has a last axis for the continuous
    ones. Both are in the order of the vertex's parents.

    >>> heights = ByState(np.array([0.0, 5.0]), np.array([[1.0], [2.0]]), np.array([1.0, 0.5]))
    >>> heights[1,]
    Linear(intercept=5.0, weights=(2.0,), deviation=0.5)
    """

    intercepts: Floats  # (arities of the discrete parents...)
    weights: Floats  # (arities of the discrete parents..., continuous parents)
    deviations: Floats  # (arities of the discrete parents...)

    def __post_init__(self) -> None:
        for name in ("intercepts", "weights", "deviations"):
            array = np.array(getattr(self, name), dtype=np.float64)
            object.__setattr__(self, name, frozen(array))
        shape = self.intercepts.shape
        if not shape or self.deviations.shape != shape or self.weights.shape[:-1] != shape:
            raise QubayesError(
                f"intercepts of shape {shape}, weights of {self.weights.shape} and deviations of"
                f" {self.deviations.shape}; give one of each for each combination of states"
            )
        if not (np.isfinite(self.intercepts).all() and np.isfinite(self.weights).all()):
            raise QubayesError("intercepts or weights that are not finite; give finite numbers")
        positive = (self.deviations > 0.0) & (self.deviations < np.inf)
        if not positive.all():
            raise QubayesError(
                f"the standard deviation {self.deviations[~positive].flat[0]}; give a finite number"
                " above 0"
            )

    @classmethod
    def of(cls, linears: Sequence[Linear], arities: Sequence[int]) -> "ByState":
        """Return the parameters of all combinations of states, the last parent fastest."""
        shape = tuple(arities)
        return cls(
            np.array([linear.intercept for linear in linears]).reshape(shape),
            np.array([linear.weights for linear in linears]).reshape(*shape, -1)
            if linears[0].weights
            else np.zeros((*shape, 0)),
            np.array([linear.deviation for linear in linears]).reshape(shape),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ByState):
            return NotImplemented
        return (
            np.array_equal(self.intercepts, other.intercepts)
            and np.array_equal(self.weights, other.weights)
            and np.array_equal(self.deviations, other.deviations)
        )

    def __hash__(self) -> int:
        return hash((self.intercepts.tobytes(), self.weights.tobytes(), self.deviations.tobytes()))

    def __getitem__(self, states: tuple[int, ...]) -> Linear:
        """Return the parameters for one state of each discrete parent, by number."""
        intercept = float(self.intercepts[states])
        weights = tuple(self.weights[states].tolist())
        return Linear(intercept, weights, float(self.deviations[states]))

    def __iter__(self) -> Iterator[Linear]:
        """Yield the parameters of all combinations of states, the last parent fastest."""
        for states in np.ndindex(self.arities):
            yield self[states]

    @property
    def arities(self) -> tuple[int, ...]:
        """Number of states of each discrete parent."""
        return tuple(self.intercepts.shape)

    @property
    def size(self) -> int:
        """Number of parameters."""
        return self.intercepts.size + self.weights.size + self.deviations.size

    def mean(self, codes: Sequence[AnyArray], numbers: Floats) -> Floats:
        """Return (rows,) the mean given the states and the numbers of the parents.

        Both are (parents, rows)."""
        cells = tuple(codes)
        found: Floats = self.intercepts[cells] + np.einsum("rk,kr->r", self.weights[cells], numbers)
        return found

    def log_likelihood(
        self,
        cells: Floats,
        codes: Sequence[AnyArray],
        numbers: Floats,
        times: Ints | None = None,
    ) -> float:
        """Return the log density of the cells of the variable given those of its parents.

        With `times` each row counts that often."""
        deviations = self.deviations[tuple(codes)]
        errors = (cells - self.mean(codes, numbers)) / deviations
        densities = -0.5 * log(2.0 * pi) - np.log(deviations) - 0.5 * errors * errors
        return float(densities.sum() if times is None else densities @ times)

    def changed(
        self, places: Ints, intercepts: Floats, weights: Floats, deviations: Floats
    ) -> "ByState":
        """Return the parameters with others at these places, in the order of iteration."""
        arrays = []
        for old, new in (
            (self.intercepts, intercepts),
            (self.weights, weights),
            (self.deviations, deviations),
        ):
            array = old.copy()
            array.reshape(self.intercepts.size, *new.shape[1:])[places] = new
            arrays.append(array)
        return ByState(*arrays)

    def reordered(self, axes: Sequence[int], order: Sequence[int]) -> "ByState":
        """Return the same parameters for discrete and continuous parents in these orders."""
        weights = self.weights.transpose([*axes, len(axes)])[..., list(order)]
        return ByState(self.intercepts.transpose(axes), weights, self.deviations.transpose(axes))


def fit_by_state(
    cells: Floats,
    codes: Sequence[AnyArray],
    arities: Sequence[int],
    names: Sequence[str],
    times: Ints | None = None,
    prior: Prior = PRIOR,
) -> ByState:
    """Return the parameters of the last row of `cells`, (family, rows), by discrete parents.

    They are those of the covariances that the score of a mixed table takes (`scores/parts.py`): a
    row that is like the other parts is added to each. Combinations of states that do not occur get
    the regression of the whole table. With `times` each row counts that often."""
    shape = tuple(arities)
    common = fit_linear(cells, len(cells) - 1, range(len(cells) - 1), names, times)
    means = np.average(cells, axis=1, weights=times)
    deviations = np.sqrt(np.average((cells - means[:, None]) ** 2, axis=1, weights=times))
    scaled = (cells - means[:, None]) / deviations[:, None]
    joint = np.ravel_multi_index([np.asarray(column, np.int64) for column in codes], shape)
    present, labels = np.unique(joint, return_inverse=True)
    counts, centres, covariances = covariances_of(scaled, labels.reshape(-1), times)
    whole = covariances_of(scaled, np.zeros(len(joint), np.int64), times)[2][0]
    matrices, _ = shrunken(counts, covariances, whole, prior)
    slopes = np.linalg.solve(matrices[:, :-1, :-1], matrices[:, :-1, -1:])[..., 0]
    left = matrices[:, -1, -1] - np.einsum("jp,jp->j", slopes, matrices[:, :-1, -1])
    weights = slopes * deviations[-1] / deviations[:-1]
    centres = means + centres * deviations
    intercepts = centres[:, -1] - np.einsum("jp,jp->j", weights, centres[:, :-1])
    found = ByState(
        np.full(shape, common.intercept),
        np.broadcast_to(common.weights, (*shape, len(common.weights))),
        np.full(shape, common.deviation),
    )
    return found.changed(present, intercepts, weights, np.sqrt(left) * deviations[-1])
