"""Exact search: a best network with a proof, bounds for other solvers, and presolve."""

from .alternatives import Alternatives, alternatives
from .exact import Bound, Exact, ExactThenAnneal, Presolved, presolve, upper_bound

__all__ = ["Alternatives", "Bound", "Exact", "ExactThenAnneal", "Presolved", "alternatives", "presolve", "upper_bound"]
