"""The constrained form on Gurobi, its products in the objective."""

from typing import Any

import gurobipy
import numpy as np
from gurobipy import GRB
from scipy.sparse import csr_matrix

from ..formulation.qubo import upper_triangle
from .bqp import LicenceError, Program, ended, not_built
from .run import Ending, Run

TOO_LARGE, NO_LICENCE = GRB.Error.SIZE_LIMIT_EXCEEDED, GRB.Error.NO_LICENSE


def solve_with_gurobi(program: Program, run: Run) -> Ending:
    """Search until optimality, the time limit or an interrupt."""
    try:
        with gurobipy.Env(params={"OutputFlag": 0}) as environment, gurobipy.Model(env=environment) as model:
            return _solve(model, program, run)
    except gurobipy.GurobiError as error:
        if error.errno == TOO_LARGE:
            raise LicenceError(
                f"the model has {len(program.form.labels):,} variables and {len(program.rows):,} constraints, too many "
                "for this Gurobi licence (without one 2,000, or 200 variables with products, are allowed); get a full "
                "licence, or set the backend to scip"
            ) from error
        if error.errno == NO_LICENCE:
            raise LicenceError(f"Gurobi has no licence ({error}); get one, or set the backend to scip") from error
        raise


def _solve(model: Any, program: Program, run: Run) -> Ending:
    bits = _build(model, program)
    if run.over:
        return not_built(run, "Gurobi")
    bits.Start = np.array(program.start(run))
    # The bound must reach the score: the default gap of 1e-4 of the score is more than most edges are worth.
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
        run.stop[0] = True  # Gurobi heard the interrupt itself
    if model.SolCount:
        program.offer(run, bits.X.tolist())
    if optimal or model.Status in (GRB.TIME_LIMIT, GRB.INTERRUPTED):
        run.tighten(-model.ObjBound)
    figures = {"backend": "Gurobi", "nodes": int(model.NodeCount), "variables": len(program.form.labels)}
    return ended(run, "Gurobi", optimal, figures)


def _build(model: Any, program: Program) -> Any:
    score, count = program.form.score, len(program.form.labels)
    bits = model.addMVar(count, vtype=GRB.BINARY)
    low, high, weights = upper_triangle(score)
    quadratic = csr_matrix((weights, (low, high)), shape=(count, count))
    model.setMObjective(quadratic, score.h, score.offset, sense=GRB.MINIMIZE)
    if program.rows:
        rows = np.repeat(np.arange(len(program.rows)), [len(row.weights) for row in program.rows])
        columns = np.array([bit for row in program.rows for bit in row.weights])
        entries = np.array([weight for row in program.rows for weight in row.weights.values()])
        matrix = csr_matrix((entries, (rows, columns)), shape=(len(program.rows), count))
        senses = np.array([row.sense[0] for row in program.rows])
        model.addMConstr(matrix, bits, senses, np.array([row.bound for row in program.rows]))
    return bits
