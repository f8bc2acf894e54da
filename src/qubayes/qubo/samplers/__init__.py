"""Solvers of the QUBO."""
