"""Stage 3: the parent sets that a best network can use, and their scores."""

from .candidates import Candidates, Stamp

__all__ = ["Candidates", "Stamp"]
