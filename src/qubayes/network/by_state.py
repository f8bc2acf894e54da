"""Linear Gaussian parameters by states: one `Linear` for each combination of discrete parents."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log, pi

import numpy as np

from ..foundation.arrays import AnyArray, Floats, frozen
from ..foundation.errors import QubayesError
from .linear import Linear


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

    def log_likelihood(self, cells: Floats, codes: Sequence[AnyArray], numbers: Floats) -> float:
        """Return the log density of the cells of the variable given those of its parents."""
        deviations = self.deviations[tuple(codes)]
        errors = (cells - self.mean(codes, numbers)) / deviations
        constant = 0.5 * len(cells) * log(2.0 * pi) + float(np.log(deviations).sum())
        return float(-constant - 0.5 * (errors @ errors))

    def reordered(self, axes: Sequence[int], order: Sequence[int]) -> "ByState":
        """Return the same parameters for discrete and continuous parents in these orders."""
        weights = self.weights.transpose([*axes, len(axes)])[..., list(order)]
        return ByState(self.intercepts.transpose(axes), weights, self.deviations.transpose(axes))
