"""Solvers of the QUBO (`sa`, `digital`), also as dimod samplers; dimod samplers as solvers."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .dimod_bridge import (
        DigitalAnnealingSampler,
        DimodSampler,
        SimulatedAnnealingSampler,
        default_beta_range,
        qubo_of_bqm,
    )
    from .states import annealed_score, network_of_state

__all__ = [
    "DigitalAnnealingSampler",
    "DimodSampler",
    "SimulatedAnnealingSampler",
    "annealed_score",
    "default_beta_range",
    "network_of_state",
    "qubo_of_bqm",
]
_OF_STATES = ("annealed_score", "network_of_state")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # On first use: the bridge needs dimod, and both need compiled kernels.
    module = ".states" if name in _OF_STATES else ".dimod_bridge"
    return getattr(import_module(module, __name__), name)
