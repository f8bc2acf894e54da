"""The best network of candidate parent sets: `solve` runs a solver and returns a `Solution`.

`run` holds the contract of solvers, `registry` their names, `exact` the proof by integer programming, `orders` the
searches over orders. Solvers of the QUBO are in `qubayes.qubo.samplers`.
"""

from .registry import SOLVERS, solver_named
from .run import Ending, Limits, Run, Solver
from .solution import Solution, read_solution, write_solution
from .solve import solve

__all__ = [
    "SOLVERS",
    "Ending",
    "Limits",
    "Run",
    "Solution",
    "Solver",
    "read_solution",
    "solve",
    "solver_named",
    "write_solution",
]
