"""The one wrapper of HiGHS: linear and mixed-integer programs, on one thread with a fixed seed.

Solve a program once:

    solved = Highs(solver="simplex").load(program).solve(seconds=60.0, stop=stop)
    if solved.optimal: use(solved.values)

Solve a program that grows, each time from the last basis: keep the `Highs`, call `add_rows`,
`add_columns`, `delete_rows` or `bound_columns`, then `solve` again. Options of HiGHS are given by
their names, to the constructor or, for limits such as `simplex_iteration_limit` or `mip_max_nodes`,
to `solve`.

Matrices are `Compressed`, or scipy.sparse arrays, of which the same names are read.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from .arrays import AnyArray, Bools, Floats, Ints
from .environment import highspy

NEVER = np.zeros(1, np.bool_)
_ALWAYS = {"output_flag": False, "threads": 1, "parallel": "off", "random_seed": 0}


class Compressed(NamedTuple):
    """A matrix in compressed rows, or in compressed columns.

    Row i has data[k] in column indices[k], for indptr[i] <= k < indptr[i + 1]. For small matrices
    it is quicker than scipy.sparse, which checks its arguments."""

    shape: tuple[int, int]
    indptr: Ints
    indices: Ints
    data: Floats

    @staticmethod
    def of(dense: AnyArray) -> "Compressed":
        """Return the entries that are not 0, by rows."""
        rows, columns = np.nonzero(dense)
        indptr = np.searchsorted(rows, np.arange(len(dense) + 1))
        return Compressed(
            (dense.shape[0], dense.shape[1]),
            indptr,
            columns,
            dense[rows, columns].astype(np.float64),
        )


class LinearModel(NamedTuple):
    """Minimise costs . x where row_lower <= matrix @ x <= row_upper and lower <= x <= upper.

    Some of x may have to be integer."""

    costs: Floats  # (columns,)
    matrix: Any  # (rows, columns) in compressed rows
    row_lower: Floats | float = -math.inf  # (rows,), or one bound for all of them
    row_upper: Floats | float = math.inf
    lower: Floats | float = 0.0  # (columns,), or one bound for all of them
    upper: Floats | float = math.inf
    integer: Bools | None = None  # (columns,) which columns are integer; None: a linear program


class Solved(NamedTuple):
    """The state in which HiGHS stopped."""

    values: Floats  # (columns,)
    duals: Floats | None  # (rows,) multipliers; None if HiGHS has none
    bound: float  # proved lower bound of a mixed-integer program; -inf if HiGHS has none
    feasible: bool  # the values satisfy all rows
    optimal: bool


class Highs:
    """A program inside HiGHS. It keeps its basis from one `solve` to the next."""

    def __init__(self, **options: Any) -> None:
        self._highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        self._integer = False
        self._stop = stop = [NEVER]
        for event in (
            self._highs.cbSimplexInterrupt,
            self._highs.cbIpmInterrupt,
            self._highs.cbMipInterrupt,
        ):
            event.subscribe(lambda event: event.interrupt(bool(stop[0][0])))
        self._set({**_ALWAYS, **options})

    def _set(self, options: dict[str, Any]) -> None:
        for option, value in options.items():
            if self._highs.setOptionValue(option, value) != highspy.HighsStatus.kOk:
                raise AssertionError(f"HiGHS rejects the option {option} = {value!r}")

    def load(self, program: LinearModel) -> "Highs":
        """Put this program in place of the present one; return self."""
        rows, columns = program.matrix.shape
        model: Any = highspy.HighsLp()
        model.num_row_ = rows
        model.num_col_ = columns
        model.col_cost_ = np.asarray(program.costs, np.float64)
        model.col_lower_ = _each(program.lower, columns)
        model.col_upper_ = _each(program.upper, columns)
        model.row_lower_ = _each(program.row_lower, rows)
        model.row_upper_ = _each(program.row_upper, rows)
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_ = program.matrix.indptr.astype(np.int32)
        model.a_matrix_.index_ = program.matrix.indices.astype(np.int32)
        model.a_matrix_.value_ = program.matrix.data.astype(np.float64)
        self._integer = program.integer is not None
        if program.integer is not None:
            kinds = highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger
            model.integrality_ = [kinds[integer] for integer in program.integer.tolist()]
        self._highs.passModel(model)
        return self

    def add_rows(
        self, matrix: Any, lower: Floats | float = -math.inf, upper: Floats | float = math.inf
    ) -> None:
        """Add the rows of a matrix (new rows, columns) in compressed rows."""
        count, (start, places, values) = matrix.shape[0], _parts(matrix)
        self._highs.addRows(
            count, _each(lower, count), _each(upper, count), len(places), start, places, values
        )

    def add_columns(
        self,
        costs: Floats,
        matrix: Any,
        lower: Floats | float = 0.0,
        upper: Floats | float = math.inf,
    ) -> None:
        """Add the columns of a matrix (rows, new columns) in compressed columns."""
        count, (start, places, values) = len(costs), _parts(matrix)
        low, high = _each(lower, count), _each(upper, count)
        self._highs.addCols(
            count, np.asarray(costs, np.float64), low, high, len(places), start, places, values
        )

    def delete_rows(self, rows: AnyArray) -> None:
        """Delete the rows with these numbers, ascending; later rows move up."""
        self._highs.deleteRows(len(rows), rows.astype(np.int32))

    def bound_columns(
        self, columns: AnyArray, lower: Floats | float, upper: Floats | float
    ) -> None:
        """Change the bounds of the columns with these numbers."""
        count = len(columns)
        self._highs.changeColsBounds(
            count, columns.astype(np.int32), _each(lower, count), _each(upper, count)
        )

    def start_from(self, columns: AnyArray, values: AnyArray) -> None:
        """Give values of some columns as the first solution; HiGHS completes the others."""
        self._highs.setSolution(len(columns), columns.astype(np.int32), values.astype(np.float64))

    @property
    def clock(self) -> float:
        """Seconds that HiGHS has run so far."""
        return float(self._highs.getRunTime())

    @property
    def basis(self) -> Any:
        """The basis of the simplex method; assign it to return to it."""
        return self._highs.getBasis()

    @basis.setter
    def basis(self, basis: Any) -> None:
        self._highs.setBasis(basis)

    def forget_basis(self) -> None:
        """Let the next `solve` begin from scratch, as a remedy for numerical trouble."""
        self._highs.clearSolver()

    def solve(self, seconds: float = math.inf, stop: Bools | None = None, **limits: Any) -> Solved:
        """Solve until the optimum, until time or another limit is reached, or until stop[0] is set.

        Limits of earlier calls stay until they are given again. HiGHS reads `stop` in its own
        callbacks: pauses by the clock would change the vertex in which the simplex method ends, and
        with it all that follows."""
        self._stop[0] = NEVER if stop is None else stop
        self._set({**limits, "time_limit": self.clock + seconds})
        self._highs.run()
        status = self._highs.getModelStatus()
        info, solution = self._highs.getInfo(), self._highs.getSolution()
        return Solved(
            np.array(solution.col_value),
            np.array(solution.row_dual) if solution.dual_valid else None,
            info.mip_dual_bound
            if self._integer and np.isfinite(info.mip_dual_bound)
            else -math.inf,
            info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible,
            status == highspy.HighsModelStatus.kOptimal,
        )


def _each(value: Floats | float, count: int) -> Floats:
    return np.ascontiguousarray(np.broadcast_to(np.asarray(value, np.float64), count))


def _parts(matrix: Any) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return (start, places, values) of a compressed matrix as HiGHS takes them."""
    return (
        matrix.indptr[:-1].astype(np.int32),
        matrix.indices.astype(np.int32),
        matrix.data.astype(np.float64),
    )
