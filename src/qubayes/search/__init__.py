"""Stage 6: the best network of the candidate sets. One module for each solver; all share `Run` and `Solution`."""

from typing import TYPE_CHECKING, Any

from .run import Ending, Limits, Run, Solver
from .solution import Solution
from .solve import SOLVERS, solve, solver_named

if TYPE_CHECKING:
    from ..qubo.samplers.dimod_bridge import DigitalAnnealingSampler, DimodSampler, SimulatedAnnealingSampler

# Loaded on first use: they need dimod.
_HOMES = {
    "DigitalAnnealingSampler": "..qubo.samplers.dimod_bridge",
    "DimodSampler": "..qubo.samplers.dimod_bridge",
    "SimulatedAnnealingSampler": "..qubo.samplers.dimod_bridge",
}

__all__ = [
    "SOLVERS",
    "DigitalAnnealingSampler",
    "DimodSampler",
    "Ending",
    "Limits",
    "Run",
    "SimulatedAnnealingSampler",
    "Solution",
    "Solver",
    "solve",
    "solver_named",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'qubayes.search' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name], __name__), name)
