"""The linear relaxation of the program over families, on HiGHS, with columns and cuts that come as they are needed.

minimise sum loss(v, P) x(v, P), each vertex one set, and for each cut of `clusters`
    sum of coefficient(v, P) x(v, P) <= right side.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from ...foundation.arrays import Bools, Floats, Ints, SmallInts
from .cut_rows import Cuts, Sets, chosen_cuts, coefficients, joined, no_cuts, prices

SLICE = 0.2  # seconds after which HiGHS is asked to stop, so that an interrupt is seen
ROUNDING = 2.0**-40  # of all that is added up: far more than the rounding of fewer than 8,000 sums (docs/exact.md)
OPTIONS: dict[str, Any] = {
    "output_flag": False,
    "threads": 1,
    "parallel": "off",
    "random_seed": 0,
    "solver": "simplex",
    "dual_feasibility_tolerance": 1e-9,
}


class Point(NamedTuple):
    """A solution of the relaxation."""

    values: Floats  # (columns,)
    weights: Floats  # (cuts,) multipliers, at least 0
    optimal: bool


class Bounded(NamedTuple):
    """What multipliers prove: every network loses at least `loss`, and with this set at least `with_set`."""

    loss: float
    with_set: Floats  # (sets,) infinite for sets that are not allowed
    prices: Floats  # (sets,) loss plus the weights of the cuts that the set crosses; infinite likewise


class Relaxation:
    """The program with the columns and cuts that it holds now.

    Its first n columns are no sets: they take a vertex's place at a price above any network's loss, so that the program
    is feasible whatever sets are in it.
    """

    def __init__(self, sets: Sets, scale: float) -> None:
        import highspy

        self.sets, self.n, self._scale = sets, len(sets.vertex_start) - 1, scale
        self.columns = np.zeros(0, np.int64)  # numbers of the sets that are in
        self.is_in = np.zeros(len(sets.losses), np.bool_)
        self.cuts = no_cuts(self.n)
        # Multiples of the vertices' rows that were taken off each cut: its commonest coefficient becomes 0.
        self._shifts = np.zeros((0, self.n))
        self._highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        self._statuses = highspy.HighsModelStatus
        for option, value in OPTIONS.items():
            self._highs.setOptionValue(option, value)
        n, ones = self.n, np.ones(self.n)
        price = 1.0 + 2.0 * sets.losses[sets.vertex_start[1:] - 1].sum()
        numbers = np.arange(n, dtype=np.int32)
        self._highs.addRows(n, ones, ones, 0, numbers[:0], numbers[:0], ones[:0])
        self._highs.addCols(n, price * ones, 0.0 * ones, ones, n, numbers, numbers, ones)

    def add_sets(self, numbers: Ints) -> None:
        """Put these sets, none of which is in, into the program."""
        count, owners = len(numbers), self.sets.owners[numbers]
        dense = np.zeros((self.n + self.cuts.total, count))
        dense[owners, np.arange(count)] = 1.0
        dense[self.n :] = self._dense(numbers, self.cuts) - self._shifts[:, owners]
        places, rows = np.nonzero(dense.T)
        start = np.searchsorted(places, np.arange(count)).astype(np.int32)
        zeros, ones, values = np.zeros(count), np.ones(count), dense[rows, places]
        self._highs.addCols(
            count, self.sets.losses[numbers], zeros, ones, len(rows), start, rows.astype(np.int32), values
        )
        self.columns = np.concatenate([self.columns, numbers])
        self.is_in[numbers] = True

    def add_cuts(self, cuts: Cuts) -> None:
        """Put these cuts into the program."""
        dense, owners = self._dense(self.columns, cuts), self.sets.owners[self.columns]
        shifts = _commonest(dense, owners, self.n)
        dense = np.concatenate([-shifts, dense - shifts[:, owners]], axis=1)
        rows, places = np.nonzero(dense)
        start = np.searchsorted(rows, np.arange(cuts.total)).astype(np.int32)
        low, high = np.full(cuts.total, -np.inf), cuts.rooms - shifts.sum(axis=1)
        self._highs.addRows(cuts.total, low, high, len(rows), start, places.astype(np.int32), dense[rows, places])
        self.cuts = joined(self.cuts, cuts)
        self._shifts = np.concatenate([self._shifts, shifts])

    def _dense(self, numbers: Ints, cuts: Cuts) -> Floats:
        """(cuts, sets) coefficients."""
        rows, places, values = coefficients(self.sets, numbers, cuts)
        dense = np.zeros((cuts.total, len(numbers)))
        dense[rows, places] = values
        return dense

    def drop_cuts(self, dropped: Bools) -> None:
        """Take these cuts out."""
        which = (self.n + np.flatnonzero(dropped)).astype(np.int32)
        self._highs.deleteRows(len(which), which)
        self.cuts, self._shifts = chosen_cuts(self.cuts, ~dropped), self._shifts[~dropped]

    def allow(self, allowed: Bools) -> None:
        """Let only the sets be used that are allowed."""
        count = len(self.columns)
        places = np.arange(self.n, self.n + count, dtype=np.int32)
        self._highs.changeColsBounds(count, places, np.zeros(count), allowed[self.columns].astype(np.float64))

    def solve(self, seconds: float, stop: Bools, iterations: int = 2**31 - 1) -> Point | None:
        """The optimum, or where the time, the run or the iterations ended; None if HiGHS has no multipliers then."""
        self._highs.setOptionValue("simplex_iteration_limit", iterations)
        end = self._highs.getRunTime() + seconds
        point = self._run(end, stop)
        if point is None and not stop[0] and self._highs.getRunTime() < end:
            self._highs.clearSolver()  # numerical trouble: once more from the beginning
            point = self._run(end, stop)
        return point

    def _run(self, end: float, stop: Bools) -> Point | None:
        """Run HiGHS in slices, longer and longer so that it gets on, until it is done or its clock says `end`."""
        length = SLICE
        while True:
            self._highs.setOptionValue("time_limit", min(end, self._highs.getRunTime() + length))
            self._highs.run()
            status = self._highs.getModelStatus()
            if status != self._statuses.kTimeLimit or stop[0] or self._highs.getRunTime() >= end:
                break
            length *= 1.5
        solution = self._highs.getSolution()
        weights = -np.array(solution.row_dual)[self.n :]
        if not solution.dual_valid or not np.isfinite(weights).all():
            return None
        values = np.array(solution.col_value)[self.n :]
        return Point(values, np.maximum(weights, 0.0), status == self._statuses.kOptimal)

    def basis(self) -> Any:
        """Where the simplex method stands."""
        return self._highs.getBasis()

    def return_to(self, basis: Any) -> None:
        """Go on from there; no column or cut has come or gone since."""
        self._highs.setBasis(basis)

    def bounded(self, weights: Floats, allowed: Bools) -> Bounded:
        """The Lagrangian bound of these multipliers over all sets that are allowed, in the program or not."""
        active = np.flatnonzero(weights > 0.0)
        cuts, weights = chosen_cuts(self.cuts, active), weights[active]
        values = prices(self.sets, allowed, cuts, weights)
        least = np.minimum.reduceat(values, self.sets.vertex_start[:-1])
        paid = math.fsum((weights * cuts.rooms).tolist())
        margin = ROUNDING * (self._scale + float(weights @ cuts.sizes))
        loss = math.fsum(least.tolist()) - paid - margin
        with np.errstate(invalid="ignore"):  # a vertex without an allowed set: infinite, and less infinite
            return Bounded(loss, loss + (values - least[self.sets.owners]), values)


def _commonest(dense: Floats, owners: SmallInts, n: int) -> Floats:
    """(cuts, n) the coefficient that most of the vertex's sets have in each cut; 0 for a vertex without sets."""
    order = np.argsort(owners, kind="stable")
    present, first = np.unique(owners[order], return_index=True)
    dense = dense[:, order]
    commonest = np.zeros((len(dense), n))
    if len(present):
        values = range(1 + int(dense.max(initial=0.0)))
        counts = [np.add.reduceat(dense == value, first, axis=1, dtype=np.int32) for value in values]
        commonest[:, present] = np.argmax(counts, axis=0)
    return commonest
