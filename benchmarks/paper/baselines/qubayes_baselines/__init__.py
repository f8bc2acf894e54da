"""The methods with which the paper compares its own: solvers `order-sa`, `asobs`, `hillclimb`, `bqp`; O'Gorman's QUBO.

The solvers are registered as entry points of the group "qubayes.solvers". O'Gorman's formulation is
called by name."""

from .ogorman import OGorman, formulate_ogorman, ogorman_bits

__all__ = ["OGorman", "formulate_ogorman", "ogorman_bits"]
