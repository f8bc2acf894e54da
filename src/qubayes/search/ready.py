"""Kernels compiled, or loaded, before the clock of a solver starts, or while it stands: a limit is for searching."""

from functools import cache

from ..candidates.example import example
from ..foundation.progress import silent
from ..foundation.workers import Workers
from ..qubo import formulate
from ..qubo.subsets import cover
from .orders.insertions import improve
from .orders.order_problem import order_problem
from .run import Limits, Run

# What each solver is tried on: (vertices, moves). The annealer needs no kernels for fewer than 15 vertices; `exact`
# ends with a proof, our sampler after so many sweeps. The others have no kernels of ours.
TRIED = {
    "anneal": (16, 100),
    "asobs": (8, 1),
    "digital": (8, 1),
    "dimod": (8, None),
    "exact": (8, None),
    "hillclimb": (8, 1),
    "order-sa": (8, 1),
    "sa": (8, 1),
}


@cache
def make_ready(name: str) -> None:
    """Let the solver of this name, if it is one of ours, solve a small example once.

    `exact`, and `auto` which begins with it, leave out the `search` over orders: easy proofs do without, and what they
    need of it they make ready themselves.
    """
    solver = "exact" if name == "auto" else name
    if solver in TRIED:
        _try_out(solver, *TRIED[solver])
    elif name == "search":
        candidates = example()
        improve(order_problem(candidates.families, candidates.scores), range(candidates.n), 1)


def _try_out(name: str, vertices: int, moves: int | None) -> None:
    from .solve import solver_named

    solver, candidates = solver_named(name), example(vertices)
    start = candidates.families.vertex_start[1:] - 1
    run = Run(candidates, Limits(None, moves), Workers(1), start, silent, name)
    solver(formulate(candidates, cover(candidates)) if solver.takes == "formulation" else candidates, run)
