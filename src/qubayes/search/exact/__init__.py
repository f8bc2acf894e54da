"""Exact search: a best network with a proof, bounds for other solvers, and presolve."""

from .alternatives import Alternatives, alternatives
from .certificate import SCALE, save_certificate, signed
from .exact import Bound, Exact, ExactThenAnneal, Presolved, presolve, upper_bound
from .sums import (
    MOST_SUMMED_VERTICES,
    NetworkSums,
    consensus,
    edges_of,
    sum_component,
    sum_networks,
)

__all__ = [
    "MOST_SUMMED_VERTICES",
    "SCALE",
    "Alternatives",
    "Bound",
    "Exact",
    "ExactThenAnneal",
    "NetworkSums",
    "Presolved",
    "alternatives",
    "consensus",
    "edges_of",
    "presolve",
    "save_certificate",
    "signed",
    "sum_component",
    "sum_networks",
    "upper_bound",
]
