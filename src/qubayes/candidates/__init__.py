"""Candidate parent sets: `identify` finds all up to a size, `Growing` finds promising ones."""

from ..foundation.families import Families
from .budget import affordable, is_large, most_parents, sizes, warn_of_most
from .candidate_files import ENDINGS, check_output, read_candidates, rename, write_candidates
from .candidates import Candidates, Stamp, example, tolerance
from .forecast import Forecast, forecasts, largest_that_fits
from .growing import Growing
from .identify import CandidateSearch, fingerprint, identify, identify_until, stamp_of
from .knowledge import Knowledge, allowed_for, read_knowledge
from .prune import prune, restrict, with_larger
from .slack import SLACK, SlackSets, slack_sets

__all__ = [
    "ENDINGS",
    "SLACK",
    "CandidateSearch",
    "Candidates",
    "Families",
    "Forecast",
    "Growing",
    "Knowledge",
    "SlackSets",
    "Stamp",
    "affordable",
    "allowed_for",
    "check_output",
    "example",
    "fingerprint",
    "forecasts",
    "identify",
    "identify_until",
    "is_large",
    "largest_that_fits",
    "most_parents",
    "prune",
    "read_candidates",
    "read_knowledge",
    "rename",
    "restrict",
    "sizes",
    "slack_sets",
    "stamp_of",
    "tolerance",
    "warn_of_most",
    "with_larger",
    "write_candidates",
]
