"""`bqp` (the paper's GOQ): binary quadratic programming with inequalities (Appendix D.4) on SCIP or Gurobi."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...foundation.errors import MissingPackageError, QubayesError, SettingError
from ...foundation.graph import find_cycle
from ...search.run import Ending, Run
from .. import Formulation, encode_sets
from ..assembly import ConstrainedForm, Row, constrain, order_rows, subset_rows
from ..decoding import closure_sets

BACKENDS = ("auto", "scip", "gurobi")
PACKAGES = {"scip": "pyscipopt", "gurobi": "gurobipy"}


class LicenceError(QubayesError):
    """Gurobi is installed, but its licence is missing or too small for the model."""


class ConstrainedProgram(NamedTuple):
    """Minimise `form.score` over the bits u and r such that every row holds."""

    formulation: Formulation
    form: ConstrainedForm
    rows: list[Row]  # at most two subsets for each vertex, linear ordering, consistency

    @property
    def groups(self) -> list[tuple[int, int]]:
        """(first, last + 1) u bits of each vertex."""
        return list(pairwise(self.formulation.subsets.families.vertex_start.tolist()))

    def start(self, run: Run) -> list[float]:
        """Return the value of each bit in the best network so far."""
        values: list[float] = encode_sets(self.formulation, run.choice)[: len(self.form.labels)].astype(float).tolist()
        return values

    def offer(self, run: Run, values: Sequence[float]) -> None:
        """Give the run the network of these u bits, unless it has a cycle within the backend's tolerances."""
        choice = closure_sets(self.formulation, np.asarray(values) > 0.5)
        if not find_cycle(run.candidates.families.sets_at(choice)):
            run.offer(choice)


@dataclass(frozen=True, slots=True)
class QuadraticProgram:
    """The constrained form of the formulation, solved to proved optimality or until the limit.

    `auto` uses Gurobi if it is installed and its licence allows the model, else SCIP. Gurobi takes the products u_j u_k
    as they are. SCIP's objective is linear, so each product becomes a variable; since at most two subsets of a vertex
    are active, one inequality for each subset and one for each vertex describe the products exactly (`bqp_scip`). The
    backend's bound tightens the run's; both stop only at a gap of 0, not at their default gaps.
    """

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
            import_module(f".bqp_{backend}", __package__)
            if backend == "gurobi":
                from .bqp_gurobi import limited_in_size

                with suppress(LicenceError):  # the search reports it, or uses SCIP
                    limited_in_size()
        return self

    def __call__(self, formulation: Formulation, run: Run, /) -> Ending:
        """Build the program and solve it by the backend."""
        backends, program = self._backends(), None
        if "gurobi" in backends:
            from .bqp_gurobi import check_licence, solve_with_gurobi

            try:
                check_licence(formulation)
                program = _program(formulation, run)
                return solve_with_gurobi(program, run)
            except LicenceError:
                if "scip" not in backends:
                    raise
        from .bqp_scip import solve_with_scip

        return solve_with_scip(program or _program(formulation, run), run)

    def _backends(self) -> list[str]:
        """Return the installed backends, in the order of preference; raise without any."""
        asked = ["gurobi", "scip"] if self.backend == "auto" else [self.backend]
        found = [backend for backend in asked if find_spec(PACKAGES[backend])]
        if not found:
            raise MissingPackageError(
                f"bqp needs {PACKAGES[asked[-1]]}, which is not installed; pip install 'qubayes[{asked[-1]}]'"
            )
        return found


def _program(formulation: Formulation, run: Run) -> ConstrainedProgram:
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


def not_built(run: Run, backend: str) -> Ending:
    """Return the ending of a run that was over before the model was built."""
    return Ending(f"time limit reached while the model was built for {backend}; the start is returned", {})
