"""The parent sets that a best network can use, and their scores."""

from ..foundation.families import Families
from .budget import affordable, sizes, warn_of_most
from .candidate_files import ENDINGS, check_output, read_candidates, rename, write_candidates
from .candidates import Candidates, Stamp, example, tolerance
from .forecast import Forecast, forecasts, largest_that_fits
from .growing import Growing
from .identify import CandidateSearch, fingerprint, identify
from .knowledge import Knowledge, read_knowledge
from .prune import prune, restrict, with_larger

__all__ = [
    "ENDINGS",
    "CandidateSearch",
    "Candidates",
    "Families",
    "Forecast",
    "Growing",
    "Knowledge",
    "Stamp",
    "affordable",
    "check_output",
    "example",
    "fingerprint",
    "forecasts",
    "identify",
    "largest_that_fits",
    "prune",
    "read_candidates",
    "read_knowledge",
    "rename",
    "restrict",
    "sizes",
    "tolerance",
    "warn_of_most",
    "with_larger",
    "write_candidates",
]
