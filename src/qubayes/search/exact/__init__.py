"""Exact search: a best network with a proof, bounds for other solvers, and presolve."""

from .exact import Bound, Exact, ExactThenAnneal, Presolved, presolve, upper_bound

__all__ = ["Bound", "Exact", "ExactThenAnneal", "Presolved", "presolve", "upper_bound"]
