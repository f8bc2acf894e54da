"""The constrained form on Gurobi, its products in the objective."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import gurobipy
import numpy as np
from gurobipy import GRB
from scipy.sparse import csr_matrix

from ...machines.qubo import upper_triangle
from ...search.run import Ending, Run
from .. import Formulation
from ..assembly import Row
from .bqp import ConstrainedProgram, LicenceError, ended, not_built

TOO_LARGE, NO_LICENCE = GRB.Error.SIZE_LIMIT_EXCEEDED, GRB.Error.NO_LICENSE
MOST, MOST_WITH_PRODUCTS = 2000, 200  # variables without a full licence; as many constraints as variables
ROWS = 1000  # added between two looks at the clock


@cache
def limited_in_size() -> bool:
    """Return True if the licence allows small models only. Tries the smallest that is too large: up to a second."""
    with _model() as model:
        bits = model.addMVar(MOST_WITH_PRODUCTS + 1, vtype=GRB.BINARY)
        model.setObjective(bits[0] * bits[1])
        try:
            model.optimize()
        except gurobipy.GurobiError as error:
            if error.errno != TOO_LARGE:
                raise
            return True
    return False


def check_licence(formulation: Formulation) -> None:
    """Raise if Gurobi will refuse the program, before it is built."""
    bits, rows = formulation.subsets.total + len(formulation.order.pairs), 2 * len(formulation.order.triangles)
    products = bool((formulation.subsets.families.sizes > 1).any())
    if limited_in_size() and (rows > MOST or bits > (MOST_WITH_PRODUCTS if products else MOST)):
        raise _too_large(bits, rows)


def solve_with_gurobi(program: ConstrainedProgram, run: Run) -> Ending:
    """Search until optimality, the time limit or an interrupt."""
    try:
        with _model() as model:
            return _solve(model, program, run)
    except gurobipy.GurobiError as error:
        if error.errno == TOO_LARGE:
            raise _too_large(len(program.form.labels), len(program.rows)) from error
        raise


@contextmanager
def _model() -> Iterator[Any]:
    """Open an empty model that prints nothing."""
    try:
        with gurobipy.Env(params={"OutputFlag": 0}) as environment, gurobipy.Model(env=environment) as model:
            yield model
    except gurobipy.GurobiError as error:
        if error.errno == NO_LICENCE:
            raise LicenceError(f"Gurobi has no licence ({error}); get one, or set the backend to scip") from error
        raise


def _too_large(variables: int, constraints: int) -> LicenceError:
    return LicenceError(
        f"the model has {variables:,} variables and {constraints:,} constraints or more, too many for this Gurobi "
        f"licence (without one {MOST:,}, or {MOST_WITH_PRODUCTS} variables with products, are allowed); get a full "
        "licence, or set the backend to scip"
    )


def _solve(model: Any, program: ConstrainedProgram, run: Run) -> Ending:
    bits = _build(model, program, run)
    if run.over:
        return not_built("Gurobi")
    bits.Start = np.array(program.start(run))
    # The bound must reach the score: the default gap, 1e-4 of the score, exceeds the gain of most edges.
    model.setParam("MIPGap", 0.0)
    model.setParam("MIPGapAbs", 1e-9)
    model.setParam("Threads", run.workers.count)
    model.setParam("Seed", run.seed % 2**31)
    if run.limits.seconds is not None:
        model.setParam("TimeLimit", run.left)

    def listen(model: Any, where: int) -> None:
        if where == GRB.Callback.MIPSOL:
            program.offer(run, model.cbGetSolution(bits.tolist()))
            run.tighten(-model.cbGet(GRB.Callback.MIPSOL_OBJBND))
        elif where == GRB.Callback.MIP:
            run.tighten(-model.cbGet(GRB.Callback.MIP_OBJBND))
        run.report()
        if run.over or run.proved:
            model.terminate()

    model.optimize(listen)
    optimal = model.Status == GRB.OPTIMAL
    if model.Status == GRB.INTERRUPTED and not (run.over or run.proved):
        run.stop[0] = True  # Gurobi caught the interrupt itself
    if model.SolCount:
        program.offer(run, bits.X.tolist())
    if optimal or model.Status in (GRB.TIME_LIMIT, GRB.INTERRUPTED):
        run.tighten(-model.ObjBound)
    statistics = {"backend": "Gurobi", "nodes": int(model.NodeCount), "variables": len(program.form.labels)}
    return ended(run, "Gurobi", optimal, statistics)


def _build(model: Any, program: ConstrainedProgram, run: Run) -> Any:
    """Return the bits of the model, which is complete unless the run is over."""
    score, count = program.form.score, len(program.form.labels)
    bits = model.addMVar(count, vtype=GRB.BINARY)
    low, high, weights = upper_triangle(score)
    quadratic = csr_matrix((weights, (low, high)), shape=(count, count))
    if run.over:
        return bits
    model.setMObjective(quadratic, score.h, score.offset, sense=GRB.MINIMIZE)
    for first in range(0, len(program.rows), ROWS):
        if run.over:
            break
        _add(model, bits, program.rows[first : first + ROWS])
    return bits


def _add(model: Any, bits: Any, some: list[Row]) -> None:
    rows = np.repeat(np.arange(len(some)), [len(row.weights) for row in some])
    columns = np.array([bit for row in some for bit in row.weights])
    entries = np.array([weight for row in some for weight in row.weights.values()])
    matrix = csr_matrix((entries, (rows, columns)), shape=(len(some), bits.shape[0]))
    senses = np.array([row.sense[0] for row in some])
    model.addMConstr(matrix, bits, senses, np.array([row.bound for row in some]))
