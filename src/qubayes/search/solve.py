"""The verb of the room: find the best network of candidate parent sets by a solver."""

import math
from typing import Any

import numpy as np

from ..candidates import Candidates
from ..foundation.arrays import Ints
from ..foundation.errors import ConstraintError, QubayesError, SettingError
from ..foundation.graph import cycle_path, find_cycle
from ..foundation.progress import OnProgress, silent, stopping
from ..foundation.workers import Workers
from ..network import Network
from .registry import is_solver, load, solver_named
from .run import Ending, Formulated, Limits, Run, Solver, candidates_of, check, is_number
from .solution import Solution, solution_of


def solve(
    problem: Candidates | Formulated,
    solver: str | Solver = "anneal",
    *,
    limits: Limits | None = None,
    start: Network | None = None,
    bound: float = math.inf,
    bound_seconds: float = 0.0,
    workers: Workers | None = None,
    on_progress: OnProgress = silent,
) -> Solution:
    """Return the best network that the solver finds within the limits, from `start` if it is given.

    A `bound` on the score of every network gives the result a gap, and ends the search once it is reached;
    `bound_seconds` are spent on finding one before the search.

    Solvers of the QUBO (`digital`, `sa`, `bqp`, `dimod`) need a formulation; the others take it or the candidates
    alone. With a formulation the result has its bits, and their energy is checked to be -score. An interrupted search
    returns the best network so far. Kernels are compiled, and packages and files loaded, before the time limit begins.

    >>> from qubayes.candidates import example
    >>> best = solve(example(), "exact")
    >>> found = solve(example(), "anneal", limits=Limits(seconds=None, moves=1000, seed=1), bound=best.bound)
    >>> best.status, found.proved, found.score == best.score
    ('optimal', True, True)
    """
    chosen: Any = solver_named(solver) if isinstance(solver, str) else solver
    limits = Limits() if limits is None else limits
    model = isinstance(problem, Candidates) or (hasattr(problem, "candidates") and hasattr(problem, "state_of"))
    for name, value, right, what in (
        ("the problem", problem, model, "candidates (read_candidates reads files of them), or a formulation"),
        ("the solver", chosen, is_solver(chosen), "a name, or what solver_named returns"),
        ("limits", limits, isinstance(limits, Limits), "Limits(seconds, moves, seed)"),
        ("start", start, start is None or isinstance(start, Network), "a Network (read_network reads files of them)"),
    ):
        if not right:
            raise SettingError(f"{name} is of type {type(value).__name__}; give {what}")
    candidates = candidates_of(problem)
    check(candidates)
    if chosen.takes == "formulation" and isinstance(problem, Candidates):
        raise SettingError(f"{chosen.name} solves the QUBO; formulate the candidates first, and give the formulation")
    if limits.moves is not None and not chosen.counts:
        raise SettingError(f"{chosen.name} counts no moves; give it a time limit")
    if not (is_number(bound) and bound > -math.inf):
        raise SettingError(f"bound = {bound!r}; give a number that no network's score exceeds, or leave it out")
    if not (is_number(bound_seconds) and 0 <= bound_seconds < math.inf):
        raise SettingError(f"{bound_seconds!r} s for a bound; give 0 or more")
    if limits.seconds != 0:
        chosen = chosen.prepare()
    interrupted = False
    if bound_seconds > 0:  # loaded here: HiGHS is needed for nothing else in this module
        found = load("qubayes.search.exact:upper_bound")(candidates, bound_seconds, on_progress=on_progress)
        bound, interrupted = min(bound, found.value), found.interrupted
    run = Run(candidates, limits, workers or Workers(), _start(candidates, start), on_progress, chosen.name)
    run.tighten(bound)
    run.stop[0] = interrupted
    ending = _search(chosen, problem, run)
    if (run.choice < 0).any() or find_cycle(candidates.families.sets_at(run.choice)):
        raise AssertionError(
            f"internal error: {chosen.name} returned a network with a cycle or without a required parent; please "
            "report it"
        )
    return solution_of(
        problem,
        run.choice,
        bound=run.bound,
        solver=chosen.name,
        seed=run.seed,
        seconds=run.elapsed,
        status=ending.status,
        interrupted=bool(run.stop[0]),
        trace=tuple(run.trace),
        statistics=ending.statistics,
    )


def _start(candidates: Candidates, network: Network | None) -> Ints | None:
    """Return the best candidate sets inside the parents of the network; None without a network."""
    if network is None:
        return None
    missing = set(candidates.names) ^ set(network.names)
    if missing:
        raise QubayesError(
            f"{min(missing)!r} is in only one of the candidates and the starting network; give one of the same"
        )
    place = {name: vertex for vertex, name in enumerate(candidates.names)}
    allowed = np.zeros((candidates.n, candidates.n), np.bool_)
    for vertex, name in enumerate(network.names):
        allowed[place[name], [place[network.names[parent]] for parent in network.parents[vertex]]] = True
        allowed[vertex, list(candidates.base(vertex))] = True
    if cycle := find_cycle([np.flatnonzero(row).tolist() for row in allowed]):
        path = cycle_path(cycle, candidates.names)
        raise ConstraintError(f"the starting network and the required edges form the cycle {path}; start from another")
    return candidates.families.best_inside(allowed)


def _search(solver: Solver, problem: Any, run: Run) -> Ending:
    """Run the solver; an interrupt, or a limit of no time, leaves the best network so far."""
    if not len(run.choice):
        return Ending("no variables")
    if run.over:
        reason = "interrupted before the search" if run.stop[0] else "no time to search"
        return Ending(f"{reason}; the start is returned")
    with stopping(run.stop):
        try:
            ending = solver(problem if solver.takes == "formulation" else run.candidates, run)
        except KeyboardInterrupt:  # of a second Ctrl-C, or of the receiver of progress
            run.stop[0] = True
            ending = Ending("")
    return Ending("interrupted; best so far returned", ending.statistics) if run.stop[0] else ending
