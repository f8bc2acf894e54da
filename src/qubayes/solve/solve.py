"""The verb of the stage: the best network of candidate parent sets that a solver finds."""

import math
from dataclasses import fields
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import Ints
from ..candidates import Candidates
from ..cluster import Workers
from ..errors import ConstraintError, QubayesError, SettingError
from ..families import VertexSet
from ..formulation import Formulation, decode, encode_sets
from ..network import Network
from ..network.network import find_cycle
from ..progress import OnProgress, silent
from .choices import best_inside, parents_of
from .ready import make_ready
from .run import Ending, Limits, Run, Solver, stopping
from .solution import Solution

if TYPE_CHECKING:
    from .bound import Bound

# Where each solver lives, by its name (design §7). Loaded on first use.
SOLVERS = {
    "anneal": ("anneal", "Anneal"),
    "digital": ("digital", "Digital"),
    "sa": ("sa", "SimulatedAnnealing"),
    "bqp": ("bqp", "QuadraticProgram"),
    "hillclimb": ("hillclimb", "HillClimb"),
    "order-sa": ("order_sa", "OrderAnnealing"),
    "asobs": ("asobs", "AcyclicSelection"),
    "exact": ("exact", "Exact"),
    "auto": ("auto", "ExactThenAnneal"),
    "dimod": ("sampler", "DimodSampler"),
}


def solver_named(name: str, **settings: Any) -> Solver:
    """The solver with these settings; the others keep their defaults."""
    if name not in SOLVERS:
        raise SettingError(f"solver {name!r} is unknown; choose one of {', '.join(SOLVERS)}")
    module, kind = SOLVERS[name]
    made: Any = getattr(import_module(f".{module}", __package__), kind)
    known = [field.name for field in fields(made)]
    for setting in settings:
        if setting not in known:
            raise SettingError(f"{name} has no setting {setting!r}; it has {', '.join(known) or 'none'}")
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
    Interrupted, it returns the best network so far. Kernels are compiled, or loaded, before the time limit begins.
    """
    chosen = solver_named(solver) if isinstance(solver, str) else solver
    limits = limits or Limits()
    formulation = problem if isinstance(problem, Formulation) else None
    candidates = formulation.candidates if formulation else problem
    assert isinstance(candidates, Candidates)
    check(candidates)
    if chosen.takes == "formulation" and formulation is None:
        raise SettingError(f"{chosen.name} solves the QUBO; formulate the candidates first, and give the formulation")
    if limits.moves is not None and not chosen.counts:
        raise SettingError(f"{chosen.name} counts no moves; give it a time limit")
    make_ready(chosen.name)
    found = _bound(candidates, bound_seconds, on_progress)
    run = Run(candidates, limits, workers or Workers(), _start(candidates, start), on_progress, chosen.name)
    run.tighten(min(bound, found.value))
    run.stop[0] = found.interrupted
    ending = _search(chosen, formulation if chosen.takes == "formulation" else candidates, run)
    return _solution(candidates, formulation, run, chosen.name, ending)


def _bound(candidates: Candidates, seconds: float, on_progress: OnProgress) -> "Bound":
    """A bound on the score of every network, for which this many seconds may be spent."""
    from .bound import Bound, upper_bound

    if seconds <= 0:
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
    parents = parents_of(candidates, run.choice)
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
        path = " -> ".join(names[vertex] for vertex in (*cycle, cycle[0]))
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
    parents: dict[int, VertexSet] = {}
    for name, found in network.parent_names().items():
        parents[place[name]] = tuple(sorted(place[parent] for parent in found))
    whole = [{*parents[v], *candidates.base(v)} for v in range(candidates.n)]
    if cycle := find_cycle([tuple(members) for members in whole]):
        path = " -> ".join(candidates.names[vertex] for vertex in (*cycle, cycle[0]))
        raise ConstraintError(f"the starting network and the required edges form the cycle {path}; start from another")
    return best_inside(candidates, whole)
