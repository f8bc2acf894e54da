"""`learn` and its stages from data to a network; `judge`, bootstrap confidence, estimator."""

from ..candidates import Forecast, largest_that_fits
from ..settings import FormulateSettings, LearnSettings, SolveSettings, limits_of
from .confidence import Confidence, bootstrap
from .judge import Judgement, judge
from .learned import Learned, Outputs, RunFolder
from .pipeline import learn, learn_with
from .stages import (
    blocks_file,
    certified_scores,
    check_certified_model,
    decode_file,
    formulate_file,
    identify_file,
    is_model,
    plan,
    read_restricted,
    solve_candidates,
    solve_file,
)

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
    "certified_scores",
    "check_certified_model",
    "decode_file",
    "formulate_file",
    "identify_file",
    "is_model",
    "judge",
    "largest_that_fits",
    "learn",
    "learn_with",
    "limits_of",
    "plan",
    "read_restricted",
    "solve_candidates",
    "solve_file",
]
