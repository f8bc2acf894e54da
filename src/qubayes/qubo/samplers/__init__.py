"""Solvers of the QUBO, and dimod samplers of it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .dimod_bridge import DigitalAnnealingSampler, DimodSampler, SimulatedAnnealingSampler

__all__ = ["DigitalAnnealingSampler", "DimodSampler", "SimulatedAnnealingSampler"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(".dimod_bridge", __name__), name)  # on first use: it needs dimod
