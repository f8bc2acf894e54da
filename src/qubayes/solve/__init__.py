"""Stage 6: the best network of the candidate sets. One module for each solver; all share `Run` and `Solution`."""

from .run import Ending, Limits, Run, Solver
from .solution import Solution
from .solve import SOLVERS, solve, solver_named

__all__ = ["SOLVERS", "Ending", "Limits", "Run", "Solution", "Solver", "solve", "solver_named"]
