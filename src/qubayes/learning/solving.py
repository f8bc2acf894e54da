"""Solve candidate sets with everything around the solver: presolve, formulation, and the way back."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..candidates import Candidates
from ..foundation.progress import OnProgress, silent
from ..foundation.workers import Workers
from ..network import Network
from ..search import Limits, Solution, Solver, solve, solver_named
from ..search.exact import presolve


@dataclass(frozen=True, slots=True)
class SolveSettings:
    """Settings of `solve_candidates`, shared with `qubayes solve`."""

    solver: str = "anneal"
    options: Mapping[str, Any] = field(default_factory=dict)  # settings of the solver, by name
    limits: Limits = field(default_factory=Limits)
    bound_seconds: float = 0.0  # spent on a bound before the search
    presolve_seconds: float = 0.0  # spent on removing candidate sets that no optimum needs
    formulate: bool | None = None  # check energy = -score on the QUBO; None: for `anneal` and the solvers of QUBOs
    order: str = "chordal"  # of the QUBO
    penalty: str = "tight"  # of the QUBO
    cover: str = "auto"  # how the subsets of the QUBO are found

    def needs_formulation(self, solver: Solver) -> bool:
        """Return whether the QUBO is made."""
        wanted = self.formulate if self.formulate is not None else solver.name == "anneal"
        return solver.takes == "formulation" or wanted


def solve_candidates(
    candidates: Candidates,
    settings: SolveSettings,
    *,
    start: Network | None = None,
    workers: Workers | None = None,
    on_progress: OnProgress = silent,
) -> Solution:
    """Return the best network of the candidate sets; presolve and the formulation of the QUBO are done on the way.

    Interrupted before the search, it returns the start.
    """
    solver = solver_named(settings.solver, **settings.options)
    problem: Any = candidates
    presolved = None
    if settings.presolve_seconds:
        presolved = presolve(candidates, settings.presolve_seconds, on_progress=on_progress)
        if presolved.interrupted:
            return _interrupted(candidates, settings, start)
        problem = presolved.candidates
    if settings.needs_formulation(solver):
        from ..qubo import quick_formulation  # the QUBO wing, which other solvers do without

        problem = quick_formulation(problem, settings.order, settings.penalty, settings.cover, workers, on_progress)
        if problem is None:
            return _interrupted(candidates, settings, start)
    solution = solve(
        problem,
        solver,
        limits=settings.limits,
        start=start,
        bound_seconds=settings.bound_seconds,
        workers=workers,
        on_progress=on_progress,
    )
    return presolved.restore(solution) if presolved else solution


def _interrupted(candidates: Candidates, settings: SolveSettings, start: Network | None) -> Solution:
    """Return the start as the solution of a run that was interrupted before the search."""
    found = solve(candidates, "exact", limits=Limits(0.0, None, settings.limits.seed), start=start)
    status = "interrupted before the search; the start is returned"
    return replace(found, interrupted=True, status=status, solver=settings.solver, statistics={})
