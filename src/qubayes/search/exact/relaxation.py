"""The linear relaxation of the integer program over families, on HiGHS; columns and cuts are added as needed.

Minimise sum loss(v, P) x(v, P) such that each vertex v has one set P, and for each cut
    sum of coefficient(v, P) x(v, P) <= rhs.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csc_array, csr_array, eye_array

from ...foundation.arrays import Bools, Floats, Ints, SmallInts
from ...foundation.highs import Highs, LinearModel, Solved
from .cuts import ClusterCuts, ScoredSets, coefficients, no_cuts, prices

ROUNDING = 2.0**-40  # of all that is added up: far more than the rounding of fewer than 8,000 sums (docs/exact.md)


class Point(NamedTuple):
    """A solution of the relaxation."""

    values: Floats  # (columns,)
    weights: Floats  # (cuts,) multipliers, at least 0
    optimal: bool


class Bounded(NamedTuple):
    """Lagrangian bounds: every network loses at least `loss`, and one that uses a set at least `with_set`."""

    loss: float
    with_set: Floats  # (sets,) infinite for sets that are not allowed
    prices: Floats  # (sets,) loss plus weights times coefficients; infinite likewise


class LinearRelaxation:
    """The relaxation with its present columns and cuts.

    The first n columns stand for no set: column v satisfies the row of vertex v at a price above the loss of any
    network, so that the program is feasible with any choice of sets.
    """

    def __init__(self, sets: ScoredSets, scale: float) -> None:
        self.sets, self.n, self._scale = sets, len(sets.vertex_start) - 1, scale
        self.columns = np.zeros(0, np.int64)  # numbers of the sets that are in
        self.is_in = np.zeros(len(sets.losses), np.bool_)
        self.cuts = no_cuts(self.n)
        # Multiples of vertex rows subtracted from each cut, so that the commonest coefficient of a vertex is 0.
        self._shifts = np.zeros((0, self.n))
        price = 1.0 + 2.0 * sets.losses[sets.vertex_start[1:] - 1].sum()
        identity = eye_array(self.n, format="csr")
        self._highs = Highs(solver="simplex", dual_feasibility_tolerance=1e-9)
        self._highs.load(LinearModel(np.full(self.n, price), identity, row_lower=1.0, row_upper=1.0, upper=1.0))

    def add_sets(self, numbers: Ints) -> None:
        """Add the columns of these sets, none of which is present."""
        count, owners = len(numbers), self.sets.owners[numbers]
        dense = np.zeros((self.n + self.cuts.total, count))
        dense[owners, np.arange(count)] = 1.0
        dense[self.n :] = self._dense(numbers, self.cuts) - self._shifts[:, owners]
        self._highs.add_columns(self.sets.losses[numbers], csc_array(dense), upper=1.0)
        self.columns = np.concatenate([self.columns, numbers])
        self.is_in[numbers] = True

    def add_cuts(self, cuts: ClusterCuts) -> None:
        """Add these cuts."""
        dense, owners = self._dense(self.columns, cuts), self.sets.owners[self.columns]
        shifts = _commonest(dense, owners, self.n)
        dense = np.concatenate([-shifts, dense - shifts[:, owners]], axis=1)
        self._highs.add_rows(csr_array(dense), upper=cuts.rhs - shifts.sum(axis=1))
        self.cuts = self.cuts.join(cuts)
        self._shifts = np.concatenate([self._shifts, shifts])

    def _dense(self, numbers: Ints, cuts: ClusterCuts) -> Floats:
        """Return (cuts, sets) the coefficients."""
        rows, places, values = coefficients(self.sets, numbers, cuts)
        dense = np.zeros((cuts.total, len(numbers)))
        dense[rows, places] = values
        return dense

    def drop_cuts(self, dropped: Bools) -> None:
        """Remove these cuts."""
        self._highs.delete_rows(self.n + np.flatnonzero(dropped))
        self.cuts, self._shifts = self.cuts.select(~dropped), self._shifts[~dropped]

    def allow(self, allowed: Bools) -> None:
        """Fix the sets that are not allowed to 0."""
        places = self.n + np.arange(len(self.columns))
        self._highs.bound_columns(places, 0.0, allowed[self.columns].astype(np.float64))

    def solve(self, seconds: float, stop: Bools, iterations: int = 2**31 - 1) -> Point | None:
        """Return the optimum, or the point where time, run or iterations ended; None if HiGHS has no multipliers.

        After numerical trouble HiGHS is run once more from scratch.
        """
        end = self._highs.clock + seconds
        point = self._point(self._highs.solve(seconds, stop, simplex_iteration_limit=iterations))
        if point is None and not stop[0] and self._highs.clock < end:
            self._highs.forget_basis()
            point = self._point(self._highs.solve(end - self._highs.clock, stop))
        return point

    def _point(self, solved: Solved) -> Point | None:
        if solved.duals is None or not np.isfinite(solved.duals[self.n :]).all():
            return None
        return Point(solved.values[self.n :], np.maximum(-solved.duals[self.n :], 0.0), solved.optimal)

    @property
    def basis(self) -> Any:
        """The basis of the simplex method; assign it to return there while sets and cuts are the same."""
        return self._highs.basis

    @basis.setter
    def basis(self, basis: Any) -> None:
        self._highs.basis = basis

    def bounded(self, weights: Floats, allowed: Bools) -> Bounded:
        """Return the Lagrangian bounds of these multipliers over all allowed sets, present in the program or not."""
        active = np.flatnonzero(weights > 0.0)
        cuts, weights = self.cuts.select(active), weights[active]
        values = prices(self.sets, allowed, cuts, weights)
        least = np.minimum.reduceat(values, self.sets.vertex_start[:-1])
        paid = math.fsum((weights * cuts.rhs).tolist())
        margin = ROUNDING * (self._scale + float(weights @ cuts.sizes))
        loss = math.fsum(least.tolist()) - paid - margin
        with np.errstate(invalid="ignore"):  # a vertex without an allowed set: inf - inf
            return Bounded(loss, loss + (values - least[self.sets.owners]), values)


def _commonest(dense: Floats, owners: SmallInts, n: int) -> Floats:
    """Return (cuts, n) the commonest coefficient of the vertex's sets in each cut; 0 for a vertex without sets."""
    order = np.argsort(owners, kind="stable")
    present, first = np.unique(owners[order], return_index=True)
    dense = dense[:, order]
    commonest = np.zeros((len(dense), n))
    if len(present):
        values = range(1 + int(dense.max(initial=0.0)))
        counts = [np.add.reduceat(dense == value, first, axis=1, dtype=np.int32) for value in values]
        commonest[:, present] = np.argmax(counts, axis=0)
    return commonest
