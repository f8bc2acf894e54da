"""Bayesian networks: graph, states, parameters; files; samples."""

from .bif import read_bif
from .network import Network
from .sample import sample

__all__ = ["Network", "read_bif", "sample"]
