"""The constrained form on SCIP, its products as variables."""

import threading
from contextlib import suppress
from itertools import combinations
from typing import Any

from pyscipopt import Eventhdlr, Model, quicksum
from pyscipopt.scip import PY_SCIP_EVENTTYPE as EVENT

from ...machines.qubo import upper_triangle
from ...search.run import Ending, Run
from .bqp import ConstrainedProgram, ended, not_built

LOOK_EVERY = 0.02  # seconds between looks at the limits


def solve_with_scip(program: ConstrainedProgram, run: Run) -> Ending:
    """Search until optimality, the time limit or an interrupt. SCIP runs in a thread: this one handles Ctrl-C."""
    if run.over:
        return not_built(run, "SCIP")
    model = Model()
    model.hideOutput()
    model.setParam("misc/catchctrlc", False)
    model.setParam("timing/clocktype", 2)  # wall clock
    model.setParam("randomization/randomseedshift", run.seed % 2**31)
    bits, products = _build(model, program, run)
    if run.over:
        return not_built(run, "SCIP")
    _start(model, program.start(run), bits, products)
    model.includeEventhdlr(_Listener(program, run, bits), "qubayes", "offers solutions and bounds")
    if run.limits.seconds is not None:
        model.setParam("limits/time", run.left)
    _optimize(model, run)
    optimal = model.getStatus() == "optimal"
    if not run.stop[0]:
        run.tighten(-model.getDualbound())
    statistics = {"backend": "SCIP", "nodes": model.getNTotalNodes(), "variables": len(bits) + len(products)}
    return ended(run, "SCIP", optimal, statistics)


def _optimize(model: Any, run: Run) -> None:
    thread = threading.Thread(target=model.optimizeNogil, daemon=True)
    thread.start()
    stop = False
    try:
        while thread.is_alive():
            thread.join(LOOK_EVERY)
            run.report()
            stop = stop or run.proved or run.over
            if stop:
                _interrupt(model)
    finally:
        while thread.is_alive():
            _interrupt(model)
            thread.join(LOOK_EVERY)


def _interrupt(model: Any) -> None:
    with suppress(Exception):  # SCIP is in a stage that cannot be interrupted; repeated at the next look
        model.interruptSolve()


def _build(model: Any, program: ConstrainedProgram, run: Run) -> tuple[list[Any], dict[tuple[int, int], Any]]:
    """Return the variables of the bits, and of the product of each pair of subsets of a vertex.

    Of a vertex with subsets j: Σ_k y_jk <= u_j for each j, and Σ_jk y_jk >= Σ_j u_j - 1. Since at most two u_j are 1,
    y_jk = u_j u_k in every feasible point with integer u, and the relaxation is the convex hull of these points: its
    corners are the choice of nothing, of one subset and of two.
    """
    score = program.form.score
    rows, columns, values = (array.tolist() for array in upper_triangle(score))
    weights = dict(zip(zip(rows, columns, strict=True), values, strict=True))
    model.addObjoffset(score.offset)
    bits = [model.addVar(vtype="B", obj=weight) for weight in score.h.tolist()]
    for number, row in enumerate(program.rows):
        if number % 100 == 0 and run.over:
            return bits, {}
        _add(model, quicksum(weight * bits[bit] for bit, weight in row.weights.items()), row.sense, row.bound)
    products: dict[tuple[int, int], Any] = {}
    for first, last in program.groups:
        if run.over:
            break
        pairs = list(combinations(range(first, last), 2))
        made = {pair: model.addVar(vtype="C", lb=0.0, ub=1.0, obj=weights.get(pair, 0.0)) for pair in pairs}
        partners: dict[int, list[Any]] = {bit: [] for bit in range(first, last)}
        for (low, high), product in made.items():
            partners[low].append(product)
            partners[high].append(product)
        if pairs:
            for bit, found in partners.items():
                _add(model, quicksum(found) - bits[bit], "<=", 0.0)
            _add(model, quicksum(made.values()) - quicksum(bits[first:last]), ">=", -1.0)
        products |= made
    return bits, products


def _add(model: Any, left: Any, sense: str, bound: float) -> None:
    if sense == "==":
        model.addCons(left == bound)
    elif sense == "<=":
        model.addCons(left <= bound)
    else:
        model.addCons(left >= bound)


def _start(model: Any, values: list[float], bits: list[Any], products: dict[tuple[int, int], Any]) -> None:
    solution = model.createSol()
    for bit, value in zip(bits, values, strict=True):
        model.setSolVal(solution, bit, value)
    for (low, high), product in products.items():
        model.setSolVal(solution, product, values[low] * values[high])
    model.addSol(solution)


class _Listener(Eventhdlr):
    """Offers every better solution, and the bound after every relaxation."""

    def __init__(self, program: ConstrainedProgram, run: Run, bits: list[Any]) -> None:
        self.program, self.run, self.bits = program, run, bits

    def eventinit(self) -> None:
        for event in (EVENT.BESTSOLFOUND, EVENT.NODESOLVED, EVENT.LPSOLVED):
            self.model.catchEvent(event, self)

    def eventexit(self) -> None:
        for event in (EVENT.BESTSOLFOUND, EVENT.NODESOLVED, EVENT.LPSOLVED):
            self.model.dropEvent(event, self)

    def eventexec(self, event: Any) -> None:
        if event.getType() == EVENT.BESTSOLFOUND:
            best = self.model.getBestSol()
            values = [self.model.getSolVal(best, bit) for bit in self.bits]
            self.program.offer(self.run, values)
        self.run.tighten(-self.model.getDualbound())
