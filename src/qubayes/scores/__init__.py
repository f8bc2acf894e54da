"""Local scores of parent sets: a `Score` by its name, and the `Engine` that it makes for data.

A score of discrete columns is a `Formula`: three numbers that say how a prior count is spread over
the cells of a contingency table and what a free parameter costs. Candidate sets, fitted
probabilities and `qubayes score` read these numbers; none of them looks at the name of a score. A
score that is not such a formula has an `Engine` of its own, as `gaussian.py` (see CONTRIBUTING.md).

To add a formula:

1. Add an entry to `FORMULAS` in `scores/score.py`: the score's name and a function of the
   equivalent sample size and the number of rows that returns its `Formula`. Describe it in the
   docstring of `Score`.
2. Add its definition to `tests/reference/scores.py`. The tests run over `NAMES`, and so compare the
   new score with its definition wherever it is used.

A package adds a score without a change here by an entry point that names such a function:

    [project.entry-points."qubayes.scores"]
    jeffreys = "my_package:jeffreys"

    def jeffreys(ess: float, rows: int) -> Formula:
        return Formula(EACH, 0.5)

`Score("jeffreys")` and `--score jeffreys` then work. Names of the package itself come first.

A score that is no formula can be a function of the user (`own.py`), also by an entry point, of the
group `qubayes.local_scores`.
"""

from .columns import check_independent
from .engine import Engine
from .limited import LimitedTables
from .own import LocalScore, ScoreFunction
from .parts import PRIOR, Prior, covariances_of, shrunken
from .score import (
    AUTO,
    DECLARED,
    EACH,
    ENGINES,
    FORMULAS,
    GAUSSIAN_NAMES,
    MIXED_NAMES,
    NAMES,
    OBSERVED,
    PENALISED,
    Formula,
    Score,
    is_score,
    local_score,
    score_title,
)

__all__ = [
    "AUTO",
    "DECLARED",
    "EACH",
    "ENGINES",
    "FORMULAS",
    "GAUSSIAN_NAMES",
    "MIXED_NAMES",
    "NAMES",
    "OBSERVED",
    "PENALISED",
    "PRIOR",
    "Engine",
    "Formula",
    "LimitedTables",
    "LocalScore",
    "Prior",
    "Score",
    "ScoreFunction",
    "check_independent",
    "covariances_of",
    "is_score",
    "local_score",
    "score_title",
    "shrunken",
]
