"""Stage 3: the parent sets that a best network can use, and their scores."""

from .candidate_files import check_output, read_candidates, write_candidates
from .candidates import Candidates, Stamp, tolerance
from .identify import Search, identify

__all__ = [
    "Candidates",
    "Search",
    "Stamp",
    "check_output",
    "identify",
    "read_candidates",
    "tolerance",
    "write_candidates",
]
