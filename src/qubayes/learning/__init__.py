"""The composition of the stages from data to a network, and the confidence in its edges."""

from .confidence import Confidence, bootstrap
from .forecast import Forecast, largest_that_fits, plan
from .judge import Judgement, judge
from .learned import Learned
from .outputs import Outputs, RunFolder
from .pipeline import (
    blocks_file,
    decode_file,
    formulate_file,
    identify_file,
    learn,
    learn_with,
    solve_candidates,
    solve_file,
)
from .settings import FormulateSettings, LearnSettings, SolveSettings, limits_of

__all__ = [
    "Confidence",
    "Forecast",
    "FormulateSettings",
    "Judgement",
    "LearnSettings",
    "Learned",
    "Outputs",
    "RunFolder",
    "SolveSettings",
    "blocks_file",
    "bootstrap",
    "decode_file",
    "formulate_file",
    "identify_file",
    "judge",
    "largest_that_fits",
    "learn",
    "learn_with",
    "limits_of",
    "plan",
    "solve_candidates",
    "solve_file",
]
