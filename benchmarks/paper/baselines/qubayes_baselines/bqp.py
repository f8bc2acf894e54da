"""`bqp` (the paper's GOQ): binary quadratic programming with inequalities (paper, Appendix D.4) on SCIP or Gurobi."""

import operator
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import combinations, pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from qubayes import MissingPackageError, QubayesError, SettingError
from qubayes.foundation.environment import sparse
from qubayes.foundation.graph import find_cycle
from qubayes.machines.qubo import upper_triangle
from qubayes.qubo import ConstrainedForm, Formulation, closure_sets, constrain, encode_sets
from qubayes.qubo.constrained import Row, order_rows, subset_rows
from qubayes.search.run import Ending, Run

BACKENDS = ("auto", "scip", "gurobi")
PACKAGES = {"scip": "pyscipopt", "gurobi": "gurobipy"}
COMPARE = {"==": operator.eq, "<=": operator.le, ">=": operator.ge}
LOOK_EVERY = 0.02  # seconds between looks at the limits
# variables without a full licence; as many constraints as variables
MOST, MOST_WITH_PRODUCTS = 2000, 200
ROWS = 1000  # added to Gurobi's model between two looks at the clock


class LicenceError(QubayesError):
    """Gurobi is installed, but its licence is missing or too small for the model."""


class ConstrainedProgram(NamedTuple):
    """Minimise `form.score` over the bits u and r such that every row holds."""

    formulation: Formulation
    form: ConstrainedForm
    rows: list[Row]  # at most two subsets for each vertex, linear ordering, consistency

    def start(self, run: Run) -> list[float]:
        """Return the value of each bit in the best network so far."""
        values: list[float] = (
            encode_sets(self.formulation, run.choice)[: len(self.form.labels)]
            .astype(float)
            .tolist()
        )
        return values

    def offer(self, run: Run, values: Sequence[float]) -> None:
        """Give the run the network of these u bits, unless it has a cycle within the backend's tolerances."""
        choice = closure_sets(self.formulation, np.asarray(values) > 0.5)
        if not find_cycle(run.candidates.families.sets_at(choice)):
            run.offer(choice)


@dataclass(frozen=True, slots=True)
class QuadraticProgram:
    """The constrained form of the formulation, solved to proved optimality or until the limit.

    `auto` uses Gurobi if it is installed and its licence allows the model, else SCIP. Gurobi takes
    the products u_j u_k as they are. SCIP's objective is linear, so each product becomes a
    variable; since at most two subsets of a vertex are active, one inequality for each subset and
    one for each vertex describe the products exactly. The backend's bound tightens the run's; both
    stop only at a gap of 0, not at their default gaps."""

    backend: str = "auto"

    name: ClassVar[str] = "bqp"
    takes: ClassVar[str] = "formulation"
    counts: ClassVar[str] = ""

    def __post_init__(self) -> None:
        if self.backend not in BACKENDS:
            raise SettingError(f"backend = {self.backend!r}; choose one of {', '.join(BACKENDS)}")

    def prepare(self) -> "QuadraticProgram":
        """Load the packages and ask Gurobi for the limits of its licence; return the solver itself."""
        for backend in self._backends():
            import_module(PACKAGES[backend])
            if backend == "gurobi":
                with suppress(LicenceError):  # the search reports it, or uses SCIP
                    gurobi_limited_in_size()
        return self

    def __call__(self, formulation: Formulation, run: Run, /) -> Ending:
        """Build the program and solve it by the backend."""
        backends, program = self._backends(), None
        if "gurobi" in backends:
            try:
                check_gurobi_licence(formulation)
                program = constrained_program(formulation, run)
                return solve_with_gurobi(program, run)
            except LicenceError:
                if "scip" not in backends:
                    raise
        return solve_with_scip(program or constrained_program(formulation, run), run)

    def _backends(self) -> list[str]:
        """Return the installed backends, in the order of preference; raise without any."""
        asked = ["gurobi", "scip"] if self.backend == "auto" else [self.backend]
        found = [backend for backend in asked if find_spec(PACKAGES[backend])]
        if not found:
            raise MissingPackageError(
                f"bqp needs {PACKAGES[asked[-1]]}, which is not installed; pip install {PACKAGES[asked[-1]]}"
            )
        return found


def constrained_program(formulation: Formulation, run: Run) -> ConstrainedProgram:
    """Return the program; without all of its rows if the run is over before."""
    form = constrain(formulation, run.workers)
    rows = list(subset_rows(form))
    for row in order_rows(formulation):
        rows.append(row)
        if len(rows) % 1000 == 0 and run.over:
            break
    return ConstrainedProgram(formulation, form, rows)


def ended(run: Run, backend: str, optimal: bool, statistics: dict[str, Any]) -> Ending:
    """Return the ending of a backend."""
    if optimal:
        return Ending(f"proved optimal by {backend}, to its tolerances", statistics)
    if run.proved:
        return Ending("the bound was reached: proved optimal", statistics)
    return Ending(f"time limit reached in {backend}; best so far returned", statistics)


def not_built(backend: str) -> Ending:
    """Return the ending of a run that was over before the model was built."""
    return Ending(
        f"time limit reached while the model was built for {backend}; the start is returned", {}
    )


def solve_with_scip(program: ConstrainedProgram, run: Run) -> Ending:
    """Search with SCIP until optimality, the time limit or an interrupt, the products being variables."""
    from pyscipopt import Eventhdlr, Model
    from pyscipopt.scip import PY_SCIP_EVENTTYPE as EVENT

    class Listener(Eventhdlr):
        """Offers every better solution, and the bound after every relaxation."""

        def eventinit(self) -> None:
            for event in (EVENT.BESTSOLFOUND, EVENT.NODESOLVED, EVENT.LPSOLVED):
                self.model.catchEvent(event, self)

        def eventexit(self) -> None:
            for event in (EVENT.BESTSOLFOUND, EVENT.NODESOLVED, EVENT.LPSOLVED):
                self.model.dropEvent(event, self)

        def eventexec(self, event: Any) -> None:
            if event.getType() == EVENT.BESTSOLFOUND:
                best = self.model.getBestSol()
                program.offer(run, [self.model.getSolVal(best, bit) for bit in bits])
            run.tighten(-self.model.getDualbound())

    if run.over:
        return not_built("SCIP")
    model = Model()
    model.hideOutput()
    model.setParam("misc/catchctrlc", False)
    model.setParam("timing/clocktype", 2)  # wall clock
    model.setParam("randomization/randomseedshift", run.seed % 2**31)
    bits, products = build_scip_model(model, program, run)
    if run.over:
        return not_built("SCIP")
    model.includeEventhdlr(Listener(), "qubayes", "offers solutions and bounds")
    if run.limits.seconds is not None:
        model.setParam("limits/time", run.left)
    _optimize(model, run)
    if not run.stop[0]:
        run.tighten(-model.getDualbound())
    statistics = {
        "backend": "SCIP",
        "nodes": model.getNTotalNodes(),
        "variables": len(bits) + len(products),
    }
    return ended(run, "SCIP", model.getStatus() == "optimal", statistics)


def _optimize(model: Any, run: Run) -> None:
    """Run SCIP in a thread, since this one handles Ctrl-C, and interrupt it when the run is over."""
    thread = threading.Thread(target=model.optimizeNogil, daemon=True)
    thread.start()
    over = False
    try:
        while thread.is_alive() and not over:
            thread.join(LOOK_EVERY)
            run.report()
            over = run.proved or run.over
    finally:
        while thread.is_alive():
            # SCIP is in a stage that cannot be interrupted; repeated at the next look
            with suppress(Exception):
                model.interruptSolve()
            thread.join(LOOK_EVERY)


def build_scip_model(
    model: Any, program: ConstrainedProgram, run: Run
) -> tuple[list[Any], dict[tuple[int, int], Any]]:
    """Add variables, rows and the start; return the bits, and the product of each pair of subsets of a vertex.

    Of a vertex with subsets j: Σ_k y_jk <= u_j for each j, and Σ_jk y_jk >= Σ_j u_j - 1. Since at
    most two u_j are 1, y_jk = u_j u_k in every feasible point with integer u, and the relaxation is
    the convex hull of these points: its corners are the choice of nothing, of one subset and of
    two. The model is incomplete if the run is over before."""
    from pyscipopt import quicksum

    score = program.form.score
    rows, columns, values = (array.tolist() for array in upper_triangle(score))
    weights = dict(zip(zip(rows, columns, strict=True), values, strict=True))
    model.addObjoffset(score.offset)
    bits = [model.addVar(vtype="B", obj=weight) for weight in score.h.tolist()]
    for number, row in enumerate(program.rows):
        if number % 100 == 0 and run.over:
            return bits, {}
        total = quicksum(weight * bits[bit] for bit, weight in row.weights.items())
        model.addCons(COMPARE[row.sense](total, row.bound))
    products: dict[tuple[int, int], Any] = {}
    for first, last in pairwise(program.formulation.subsets.families.vertex_start.tolist()):
        if run.over:
            return bits, products
        if last - first < 2:
            continue
        pairs = list(combinations(range(first, last), 2))
        made = {
            pair: model.addVar(vtype="C", lb=0.0, ub=1.0, obj=weights.get(pair, 0.0))
            for pair in pairs
        }
        for bit in range(first, last):
            others = (other for other in range(first, last) if other != bit)
            model.addCons(
                quicksum(made[min(bit, other), max(bit, other)] for other in others) - bits[bit]
                <= 0.0
            )
        model.addCons(quicksum(made.values()) - quicksum(bits[first:last]) >= -1.0)
        products |= made
    start, solution = program.start(run), model.createSol()
    for bit, value in zip(bits, start, strict=True):
        model.setSolVal(solution, bit, value)
    for (low, high), product in products.items():
        model.setSolVal(solution, product, start[low] * start[high])
    model.addSol(solution)
    return bits, products


@cache
def gurobi_limited_in_size() -> bool:
    """Return True if the licence allows small models only. Tries the smallest that is too large: up to a second."""
    import gurobipy

    with _gurobi_model() as model:
        bits = model.addMVar(MOST_WITH_PRODUCTS + 1, vtype=gurobipy.GRB.BINARY)
        model.setObjective(bits[0] * bits[1])
        try:
            model.optimize()
        except gurobipy.GurobiError as error:
            if error.errno != gurobipy.GRB.Error.SIZE_LIMIT_EXCEEDED:
                raise
            return True
    return False


def check_gurobi_licence(formulation: Formulation) -> None:
    """Raise if Gurobi will refuse the program, before it is built."""
    bits, rows = (
        formulation.subsets.total + len(formulation.order.pairs),
        2 * len(formulation.order.triangles),
    )
    products = bool((formulation.subsets.families.sizes > 1).any())
    if gurobi_limited_in_size() and (
        rows > MOST or bits > (MOST_WITH_PRODUCTS if products else MOST)
    ):
        raise _too_large(bits, rows)


@contextmanager
def _gurobi_model() -> Iterator[Any]:
    """Open an empty model that prints nothing."""
    import gurobipy

    try:
        with (
            gurobipy.Env(params={"OutputFlag": 0}) as environment,
            gurobipy.Model(env=environment) as model,
        ):
            yield model
    except gurobipy.GurobiError as error:
        if error.errno == gurobipy.GRB.Error.NO_LICENSE:
            raise LicenceError(
                f"Gurobi has no licence ({error}); get one, or set the backend to scip"
            ) from error
        raise


def _too_large(variables: int, constraints: int) -> LicenceError:
    return LicenceError(
        f"the model has {variables:,} variables and {constraints:,} constraints or more, too many for this Gurobi "
        f"licence (without one {MOST:,}, or {MOST_WITH_PRODUCTS} variables with products, are allowed); get a full "
        "licence, or set the backend to scip"
    )


def solve_with_gurobi(program: ConstrainedProgram, run: Run) -> Ending:
    """Search with Gurobi until optimality, the time limit or an interrupt, the products in the objective."""
    import gurobipy

    codes = gurobipy.GRB

    def listen(model: Any, where: int) -> None:
        if where == codes.Callback.MIPSOL:
            program.offer(run, model.cbGetSolution(bits.tolist()))
            run.tighten(-model.cbGet(codes.Callback.MIPSOL_OBJBND))
        elif where == codes.Callback.MIP:
            run.tighten(-model.cbGet(codes.Callback.MIP_OBJBND))
        run.report()
        if run.over or run.proved:
            model.terminate()

    try:
        with _gurobi_model() as model:
            bits = build_gurobi_model(model, program, run)
            if run.over:
                return not_built("Gurobi")
            model.optimize(listen)
            optimal = model.Status == codes.OPTIMAL
            if model.Status == codes.INTERRUPTED and not (run.over or run.proved):
                run.stop[0] = True  # Gurobi caught the interrupt itself
            if model.SolCount:
                program.offer(run, bits.X.tolist())
            if optimal or model.Status in (codes.TIME_LIMIT, codes.INTERRUPTED):
                run.tighten(-model.ObjBound)
            statistics = {
                "backend": "Gurobi",
                "nodes": int(model.NodeCount),
                "variables": len(program.form.labels),
            }
            return ended(run, "Gurobi", optimal, statistics)
    except gurobipy.GurobiError as error:
        if error.errno == codes.Error.SIZE_LIMIT_EXCEEDED:
            raise _too_large(len(program.form.labels), len(program.rows)) from error
        raise


def build_gurobi_model(model: Any, program: ConstrainedProgram, run: Run) -> Any:
    """Add variables, rows, the start and the settings; return the bits. Incomplete if the run is over before."""
    import gurobipy

    score, count = program.form.score, len(program.form.labels)
    bits = model.addMVar(count, vtype=gurobipy.GRB.BINARY)
    low, high, weights = upper_triangle(score)
    quadratic = sparse.csr_matrix((weights, (low, high)), shape=(count, count))
    if run.over:
        return bits
    model.setMObjective(quadratic, score.h, score.offset, sense=gurobipy.GRB.MINIMIZE)
    for first in range(0, len(program.rows), ROWS):
        if run.over:
            return bits
        some = program.rows[first : first + ROWS]
        rows = np.repeat(np.arange(len(some)), [len(row.weights) for row in some])
        columns = np.array([bit for row in some for bit in row.weights])
        entries = np.array([weight for row in some for weight in row.weights.values()])
        matrix = sparse.csr_matrix((entries, (rows, columns)), shape=(len(some), count))
        senses = np.array([row.sense[0] for row in some])
        model.addMConstr(matrix, bits, senses, np.array([row.bound for row in some]))
    bits.Start = np.array(program.start(run))
    # The bound must reach the score: the default gap, 1e-4 of the score, exceeds the gain of most
    # edges.
    for name, value in (("MIPGap", 0.0), ("MIPGapAbs", 1e-9), ("Threads", run.workers.count)):
        model.setParam(name, value)
    model.setParam("Seed", run.seed % 2**31)
    if run.limits.seconds is not None:
        model.setParam("TimeLimit", run.left)
    return bits
