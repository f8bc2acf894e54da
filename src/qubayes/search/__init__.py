"""The best network of candidate parent sets: `solve` runs a solver and returns a `Solution`.

`run` holds the contract of solvers and their names, `exact` the proof by integer programming,
`orders` the searches over orders. Solvers of the QUBO are in `qubayes.qubo.samplers`."""

from ..foundation.stop import Reason
from .growth import Growth
from .run import (
    BASELINES,
    SOLVERS,
    WHERE_BASELINES_ARE,
    Ending,
    Limits,
    Run,
    Solver,
    registered,
    solver_named,
)
from .solve import Solution, read_solution, solve, write_solution

__all__ = [
    "BASELINES",
    "SOLVERS",
    "WHERE_BASELINES_ARE",
    "Ending",
    "Growth",
    "Limits",
    "Reason",
    "Run",
    "Solution",
    "Solver",
    "read_solution",
    "registered",
    "solve",
    "solver_named",
    "write_solution",
]
