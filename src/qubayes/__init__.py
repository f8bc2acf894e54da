"""Structure learning of Bayesian networks through the smallest QUBO known."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .errors import QubayesError

if TYPE_CHECKING:
    from .candidates import Candidates
    from .cluster import Workers
    from .data import Dataset
    from .subsets import Subsets

__version__ = "0.1.0"

# Where each name lives. Loaded on first use: importing qubayes alone loads no numba, polars or dimod.
_HOMES = {
    "Candidates": "candidates",
    "Dataset": "data",
    "Subsets": "subsets",
    "Workers": "cluster",
}

__all__ = ["Candidates", "Dataset", "QubayesError", "Subsets", "Workers", "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'qubayes' has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value
