"""Stage 2: how well a parent set explains a variable."""

from .score import NAMES, Score, local_score

__all__ = ["NAMES", "Score", "local_score"]
