"""The posterior over networks of given parent sets: exact sums, and block Gibbs sampling."""

from .draws import Draws, read_draws
from .sampling import OPEN_ERROR, Sampled, sample_networks

__all__ = ["OPEN_ERROR", "Draws", "Sampled", "read_draws", "sample_networks"]
