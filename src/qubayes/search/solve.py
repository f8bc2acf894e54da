"""The verb of the stage: the best network of candidate parent sets that a solver finds."""

import math
from dataclasses import fields
from importlib import import_module
from typing import TYPE_CHECKING, Any, get_type_hints

import numpy as np

from ..candidates import Candidates
from ..foundation.arrays import Ints
from ..foundation.errors import ConstraintError, QubayesError, SettingError
from ..foundation.graph import cycle_path, find_cycle
from ..foundation.interrupt import stopping
from ..foundation.progress import OnProgress, silent
from ..foundation.workers import Workers
from ..network import Network
from ..qubo import Formulation, decode, encode_sets
from .ready import make_ready
from .run import Ending, Limits, Preparing, Run, Solver, is_number
from .settings import accepts, allowed
from .solution import Solution

if TYPE_CHECKING:
    from .exact.bound import Bound

# Where each solver lives, by its name (design §7). Loaded on first use.
SOLVERS = {
    "anneal": ("search.orders.anneal", "Anneal"),
    "digital": ("qubo.samplers.digital", "Digital"),
    "sa": ("qubo.samplers.sa", "SimulatedAnnealing"),
    "bqp": ("qubo.samplers.bqp", "QuadraticProgram"),
    "hillclimb": ("search.orders.hillclimb", "HillClimb"),
    "order-sa": ("search.orders.order_sa", "OrderAnnealing"),
    "asobs": ("search.orders.asobs", "AcyclicSelection"),
    "exact": ("search.exact.exact", "Exact"),
    "auto": ("search.auto", "ExactThenAnneal"),
    "dimod": ("qubo.samplers.dimod_bridge", "DimodSampler"),
}


def solver_named(name: str, **settings: Any) -> Solver:
    """The solver with these settings; the others keep their defaults."""
    if name not in SOLVERS:
        raise SettingError(f"solver {name!r} is unknown; choose one of {', '.join(SOLVERS)}")
    module, kind = SOLVERS[name]
    made: Any = getattr(import_module(f"qubayes.{module}"), kind)
    known, kinds = [field.name for field in fields(made)], get_type_hints(made)
    for setting, value in settings.items():
        if setting not in known:
            raise SettingError(f"{name} has no setting {setting!r}; it has {', '.join(known) or 'none'}")
        if not accepts(kinds[setting], value):
            raise SettingError(f"{name}: {setting} = {value!r}; give {allowed(kinds[setting])}")
    solver: Solver = made(**settings)
    return solver


def solve(
    problem: Candidates | Formulation,
    solver: str | Solver = "anneal",
    *,
    limits: Limits | None = None,
    start: Network | None = None,
    bound: float = math.inf,
    bound_seconds: float = 0.0,
    workers: Workers | None = None,
    on_progress: OnProgress = silent,
) -> Solution:
    """The best network that the solver finds within the limits, starting from `start` if it is given.

    A `bound` on every network's score, known from elsewhere, gives the result a gap and ends the search once it is
    reached; with `bound_seconds` that much time goes first into finding one.

    Solvers of the QUBO (`digital`, `sa`, `bqp`, `dimod`) need a formulation; the others take it or the candidates
    alone. Where a formulation is given the result has its bits, and their energy was checked to be -score.
    Interrupted, it returns the best network so far. Kernels, packages and files are loaded, or compiled, before the
    time limit begins.

    >>> from qubayes.candidates.example import example
    >>> best = solve(example(), "exact")
    >>> found = solve(example(), "anneal", limits=Limits(seconds=None, moves=1000, seed=1), bound=best.bound)
    >>> best.status, found.proved, found.score == best.score
    ('optimal', True, True)
    """
    chosen = solver_named(solver) if isinstance(solver, str) else solver
    limits = Limits() if limits is None else limits
    _check_kinds(problem, chosen, limits, start)
    formulation = problem if isinstance(problem, Formulation) else None
    candidates = problem.candidates if isinstance(problem, Formulation) else problem
    check(candidates)
    if chosen.takes == "formulation" and formulation is None:
        raise SettingError(f"{chosen.name} solves the QUBO; formulate the candidates first, and give the formulation")
    if limits.moves is not None and not chosen.counts:
        raise SettingError(f"{chosen.name} counts no moves; give it a time limit")
    _check_bound(bound, bound_seconds)
    if isinstance(chosen, Preparing):
        chosen = chosen.prepared()
    if limits.seconds != 0 and _has_kernels(chosen):
        make_ready(chosen.name)
    found = _bound(candidates, bound_seconds, on_progress)
    run = Run(candidates, limits, workers or Workers(), _start(candidates, start), on_progress, chosen.name)
    run.tighten(min(bound, found.value))
    run.stop[0] = found.interrupted
    ending = _search(chosen, formulation if chosen.takes == "formulation" else candidates, run)
    return _solution(candidates, formulation, run, chosen.name, ending)


def _has_kernels(solver: Solver) -> bool:
    """Whether there is something to compile: someone else's sampler has nothing of ours."""
    sampler = getattr(solver, "sampler", None)
    return sampler is None or type(sampler).__module__.startswith("qubayes.")


def _check_kinds(problem: object, solver: object, limits: object, start: object) -> None:
    """Raise unless each is what `solve` takes."""
    if not isinstance(problem, Candidates | Formulation):
        raise SettingError(
            f"the problem is of type {_kind(problem)}; give candidates (read_candidates reads files of them), or a "
            "formulation"
        )
    if not callable(solver) or not hasattr(solver, "takes"):
        raise SettingError(f"the solver is of type {_kind(solver)}; give a name, or what solver_named returns")
    if not isinstance(limits, Limits):
        raise SettingError(f"limits is of type {_kind(limits)}; give Limits(seconds, moves, seed)")
    if start is not None and not isinstance(start, Network):
        raise SettingError(f"start is of type {_kind(start)}; give a Network (read_network reads files of them)")


def _kind(value: object) -> str:
    return type(value).__name__


def _check_bound(bound: object, seconds: object) -> None:
    if not (is_number(bound) and bound > -math.inf):
        raise SettingError(f"bound = {bound!r}; give a number that no network's score exceeds, or leave it out")
    if not (is_number(seconds) and 0 <= seconds < math.inf):
        raise SettingError(f"{seconds!r} s for a bound; give 0 or more")


def _bound(candidates: Candidates, seconds: float, on_progress: OnProgress) -> "Bound":
    """A bound on the score of every network, for which this many seconds may be spent."""
    from .exact.bound import Bound, upper_bound

    if seconds == 0:
        return Bound(math.inf, -math.inf, cuts=0, seconds=0.0)
    return upper_bound(candidates, seconds, on_progress=on_progress)


def _search(solver: Solver, problem: Any, run: Run) -> Ending:
    """Let the solver run; interrupted, or with no time at all, the best so far stands."""
    if not len(run.choice):
        return Ending("no variables")
    if run.over:
        reason = "interrupted before the search" if run.stop[0] else "no time to search"
        return Ending(f"{reason}; the start is returned")
    with stopping(run.stop):
        try:
            ending = solver(problem, run)
        except KeyboardInterrupt:
            run.stop[0] = True
            ending = Ending("")
    if run.stop[0]:
        return Ending("interrupted; best so far returned", ending.figures)
    return ending


def _solution(candidates: Candidates, formulation: Formulation | None, run: Run, name: str, ending: Ending) -> Solution:
    parents = candidates.families.sets_at(run.choice)
    if cycle := find_cycle(parents):
        raise AssertionError(f"internal error: {name} returned a network with a cycle {cycle}; please report it")
    bits, energy = None, None
    if formulation is not None:
        decoded = decode(formulation, encode_sets(formulation, run.choice))
        # `decode` has checked that the energy is -score as far as the coefficients can be rounded.
        if decoded.violations or not np.isclose(decoded.score, run.score, rtol=1e-9, atol=1e-6):
            raise AssertionError(f"internal error: energy {decoded.energy} of a network with score {run.score}")
        bits, energy = decoded.bits, decoded.energy
    return Solution(
        names=candidates.names,
        parents=parents,
        choice=run.choice,
        score=run.score,
        empty_score=run.score_of(candidates.families.vertex_start[1:] - 1),
        bound=max(run.bound, run.score),
        solver=name,
        seed=run.seed,
        seconds=run.elapsed,
        status=ending.sentence,
        interrupted=bool(run.stop[0]),
        trace=tuple(run.trace),
        figures=ending.figures,
        bits=bits,
        energy=energy,
        stamp=candidates.stamp,
    )


def check(candidates: Candidates) -> None:
    """Raise unless there is a network: each vertex has a set, all scores are numbers, required edges have no cycle."""
    names = candidates.names
    if (candidates.families.sizes < 1).any():
        name = names[int(np.argmin(candidates.families.sizes))]
        raise QubayesError(f"{name!r} has no candidate set, not even the empty one; add its score without parents")
    infinite = np.flatnonzero(~np.isfinite(candidates.scores))
    if len(infinite):
        vertex = int(np.searchsorted(candidates.families.vertex_start, infinite[0], side="right")) - 1
        raise QubayesError(
            f"a candidate set of {names[vertex]!r} scores {candidates.scores[infinite[0]]}; allowed are finite "
            "numbers: leave out sets that may not be used"
        )
    if cycle := find_cycle([candidates.base(vertex) for vertex in range(candidates.n)]):
        path = cycle_path(cycle, names)
        raise ConstraintError(f"the required edges form the cycle {path}; no network has them all: remove one")


def _start(candidates: Candidates, network: Network | None) -> Ints:
    """The best candidate sets inside the parents of the network; the bases without one."""
    if network is None:
        return candidates.families.vertex_start[1:] - 1
    missing = set(candidates.names) ^ set(network.names)
    if missing:
        raise QubayesError(
            f"{min(missing)!r} is in only one of the candidates and the starting network; give one of the same"
        )
    place = {name: vertex for vertex, name in enumerate(candidates.names)}
    parents = [set(candidates.base(vertex)) for vertex in range(candidates.n)]
    for name, found in network.parent_names().items():
        parents[place[name]].update(place[parent] for parent in found)
    if cycle := find_cycle([tuple(members) for members in parents]):
        path = cycle_path(cycle, candidates.names)
        raise ConstraintError(f"the starting network and the required edges form the cycle {path}; start from another")
    return candidates.families.best_inside(parents)
