"""Exact search: a best network with a proof, bounds for other solvers, and presolve."""

from .alternatives import Alternatives, alternatives
from .exact import Bound, Exact, ExactThenAnneal, Presolved, presolve, upper_bound
from .posterior import Posterior, consensus, posterior

__all__ = [
    "Alternatives",
    "Bound",
    "Exact",
    "ExactThenAnneal",
    "Posterior",
    "Presolved",
    "alternatives",
    "consensus",
    "posterior",
    "presolve",
    "upper_bound",
]
