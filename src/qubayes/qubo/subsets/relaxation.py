"""The relaxation of a program by first-order steps on both sides, for bounds that need not be exact.

Primal-dual hybrid gradient steps with diagonal steps and restarts at averages (as in PDLP, Applegate et al. 2021). A
step costs two products with the matrix. Added rows go on from where the solver stands, which an interior point method
cannot do; and any dual point gives a bound (`program.dual_bound`), so nothing depends on how far it converged.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...foundation.arrays import AnyArray, Floats, SmallInts
from ...foundation.jit import kernel
from .program import Program, dual_bound

CHECK = 100  # steps between two looks at the bound
LONGEST = 1000  # steps after which an average begins anew whatever it has reached
BALANCE = 0.1  # of dual to primal step lengths; 1 and more take three times the steps on the families of chess, m = 3
CLOSE = 1e-4  # a relative error at which to stop
# One array in place of many, as in `presolve`.
ROW = np.dtype([("start", np.int64), ("lower", np.float64), ("step", np.float64), ("sum", np.float64)])
COLUMN = np.dtype(
    [("start", np.int64), ("cost", np.float64), ("step", np.float64), ("value", np.float64), ("sum", np.float64)]
)


class Steps(NamedTuple):
    """The program as the kernel sees it, and where it stands."""

    rows: AnyArray  # (constraints + 1,) of ROW
    columns: AnyArray  # (variables + 1,) of COLUMN
    row_entries: SmallInts  # variables of each constraint, ~variable where the coefficient is -1
    column_entries: SmallInts  # constraints of each variable, likewise
    duals: Floats  # (constraints,)
    ahead: Floats  # (variables,) extrapolated values


@dataclass
class Relaxation:
    """Where the solver stands, and the best bound so far."""

    program: Program
    values: Floats  # (variables,)
    duals: Floats  # (constraints,)
    bound: float = 0.0

    def extended(self, program: Program) -> "Relaxation":
        """The same with more constraints at the end."""
        more = np.zeros(program.matrix.shape[0] - len(self.duals))
        return self.of(program, np.append(self.duals, more))

    def of(self, program: Program, duals: Floats) -> "Relaxation":
        """The same with other constraints; the bound stays."""
        return Relaxation(program, self.values, duals, self.bound)


def relaxation_of(program: Program) -> Relaxation:
    """The relaxation before the first step."""
    constraints, variables = program.matrix.shape
    return Relaxation(program, np.zeros(variables), np.zeros(constraints))


def advance(relaxation: Relaxation, steps: int, *, enough: float) -> None:
    """Take steps until the bound is enough, or as good as the values are, or as many as allowed."""
    state, transposed = _state(relaxation)
    taken, least = 0, np.inf
    for _ in range(0, steps, CHECK):
        _step(state, CHECK, BALANCE)
        taken += CHECK
        points = [
            (state.columns["value"][:-1], state.duals),
            (state.columns["sum"][:-1] / taken, state.rows["sum"][:-1] / taken),
        ]
        errors = [_look(relaxation, transposed, *point) for point in points]
        better = errors.index(min(errors))
        relaxation.values, relaxation.duals = points[better][0].copy(), points[better][1].copy()
        if relaxation.bound > enough or errors[better] < CLOSE * relaxation.bound:
            break
        if errors[better] < 0.5 * least or taken >= LONGEST:
            taken, least = 0, errors[better]
            state.columns["value"][:-1], state.duals[:] = relaxation.values, relaxation.duals
            state.columns["sum"], state.rows["sum"] = 0.0, 0.0


def _state(relaxation: Relaxation) -> tuple[Steps, Any]:
    """The state of the kernel, and the transposed matrix."""
    matrix, transposed = relaxation.program.matrix, relaxation.program.matrix.T.tocsr()
    rows, columns = np.zeros(matrix.shape[0] + 1, ROW), np.zeros(matrix.shape[1] + 1, COLUMN)
    for records, part in ((rows, matrix), (columns, transposed)):
        records["start"] = part.indptr
        records["step"][:-1] = 1.0 / np.maximum(np.diff(part.indptr), 1)
    rows["lower"][:-1] = relaxation.program.lower
    columns["cost"][: relaxation.program.choices] = 1.0
    columns["value"][:-1] = relaxation.values
    entries = [np.where(part.data > 0, part.indices, ~part.indices).astype(np.int32) for part in (matrix, transposed)]
    duals, ahead = relaxation.duals.copy(), np.zeros(matrix.shape[1])
    return Steps(rows, columns, entries[0], entries[1], duals, ahead), transposed


def _look(relaxation: Relaxation, transposed: Any, values: Floats, duals: Floats) -> float:
    """How far the point is from optimal: its gap and what it violates. Keeps its bound if it is the best."""
    program = relaxation.program
    bound = dual_bound(program, duals, transposed)
    relaxation.bound = max(relaxation.bound, bound)
    missing = np.maximum(program.lower - program.matrix @ values, 0.0)
    return float(np.sqrt((values[: program.choices].sum() - bound) ** 2 + (missing * missing).sum()))


@kernel
def _step(state: Steps, count: int, balance: float) -> None:
    """So many steps: variables against their reduced costs, then constraints against their slack one step ahead."""
    rows, columns, row_entries, column_entries, duals, ahead = state
    for _ in range(count):
        for index in range(len(ahead)):
            column, price = columns[index], 0.0
            for place in range(column.start, columns[index + 1].start):
                entry = column_entries[place]
                price += duals[entry] if entry >= 0 else -duals[~entry]
            value = min(1.0, max(0.0, column.value - column.step / balance * (column.cost - price)))
            ahead[index] = value + value - column.value
            column.value = value
            column.sum += value
        for index in range(len(duals)):
            row, total = rows[index], 0.0
            for place in range(row.start, rows[index + 1].start):
                entry = row_entries[place]
                total += ahead[entry] if entry >= 0 else -ahead[~entry]
            duals[index] = max(0.0, duals[index] + row.step * balance * (row.lower - total))
            row.sum += duals[index]
