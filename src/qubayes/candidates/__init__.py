"""The parent sets that a best network can use, and their scores."""

from .candidate_files import check_output, read_candidates, rename, write_candidates
from .candidates import Candidates, Stamp, example, tolerance
from .identify import Search, fingerprint, identify
from .knowledge import Knowledge, read_knowledge
from .prune import prune, restrict

__all__ = [
    "Candidates",
    "Knowledge",
    "Search",
    "Stamp",
    "check_output",
    "example",
    "fingerprint",
    "identify",
    "prune",
    "read_candidates",
    "read_knowledge",
    "rename",
    "restrict",
    "tolerance",
    "write_candidates",
]
