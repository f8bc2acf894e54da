"""Structure learning of Bayesian networks, with a proof or a gap, and as a compact QUBO.

    data ──> candidates ──┬──> search ──> network ──> report   which network is best? (learn)
                          └──> qubo ────> samplers, machines   the same as a QUBO (formulate)

`read` data, `identify` candidate parent sets, `solve` for the best network, `fit` its parameters;
`score`, `judge` or `compare` networks; `formulate` the QUBO and `decode` an annealer's answer.
`learn` goes from data to the network in one call. docs/modules.md lists all modules."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from .foundation.errors import (
    ConstraintError,
    DataError,
    FormatError,
    MissingPackageError,
    NoResultError,
    QubayesError,
    ServiceError,
    SettingError,
    TooLargeError,
)

if TYPE_CHECKING:
    from .candidates import (
        Candidates,
        CandidateSearch,
        Knowledge,
        read_candidates,
        write_candidates,
    )
    from .candidates.identify import identify
    from .data import Dataset, ReadSettings
    from .data.example_tables import example
    from .data.read import read
    from .foundation.workers import Workers
    from .learning import Confidence, Judgement, Learned, LearnSettings, bootstrap, plan
    from .learning.estimator import BayesianNetworkEstimator as BayesianNetworkEstimator
    from .learning.judge import judge
    from .learning.pipeline import learn
    from .learning.posterior import Posterior, posterior
    from .network import (
        Network,
        compare,
        cpdag,
        fit,
        log_likelihood,
        read_network,
        sample,
        score,
        write_network,
    )
    from .quadratize import quadratize
    from .qubo import Formulation, decode, formulate
    from .qubo.subsets import Subsets
    from .qubo.subsets.cover import cover
    from .report import write_drawing, write_report
    from .scores import LocalScore, Score, local_score
    from .search import Limits, Solution
    from .search.exact import Alternatives
    from .search.exact.alternatives import alternatives
    from .search.exact.exact import presolve, upper_bound
    from .search.solve import solve

__version__ = "0.1.0"

# Where each name lives. Loaded on first use: importing qubayes alone loads no numba, polars or
# dimod.
_HOMES = {
    "candidates": (
        "Candidates",
        "Knowledge",
        "CandidateSearch",
        "identify",
        "read_candidates",
        "write_candidates",
    ),
    "foundation.workers": ("Workers",),
    "data": ("Dataset", "ReadSettings", "example", "read"),
    "qubo": ("Formulation", "decode", "formulate"),
    "learning": (
        "Confidence",
        "Judgement",
        "Learned",
        "LearnSettings",
        "bootstrap",
        "judge",
        "learn",
        "plan",
    ),
    "learning.estimator": ("BayesianNetworkEstimator",),
    "learning.posterior": ("Posterior", "posterior"),
    "network": (
        "Network",
        "compare",
        "cpdag",
        "fit",
        "log_likelihood",
        "read_network",
        "sample",
        "score",
        "write_network",
    ),
    "report": ("write_drawing", "write_report"),
    "scores": ("LocalScore", "Score", "local_score"),
    "search": ("Limits", "Solution", "solve"),
    "search.exact": ("Alternatives", "alternatives", "presolve", "upper_bound"),
    "qubo.subsets": ("Subsets", "cover"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Alternatives",
    "CandidateSearch",
    "Candidates",
    "Confidence",
    "ConstraintError",
    "DataError",
    "Dataset",
    "FormatError",
    "Formulation",
    "Judgement",
    "Knowledge",
    "LearnSettings",
    "Learned",
    "Limits",
    "LocalScore",
    "MissingPackageError",
    "Network",
    "NoResultError",
    "Posterior",
    "QubayesError",
    "ReadSettings",
    "Score",
    "ServiceError",
    "SettingError",
    "Solution",
    "Subsets",
    "TooLargeError",
    "Workers",
    "__version__",
    "alternatives",
    "bootstrap",
    "compare",
    "cover",
    "cpdag",
    "decode",
    "example",
    "fit",
    "formulate",
    "identify",
    "judge",
    "learn",
    "local_score",
    "log_likelihood",
    "plan",
    "posterior",
    "presolve",
    "quadratize",
    "read",
    "read_candidates",
    "read_network",
    "sample",
    "score",
    "solve",
    "upper_bound",
    "write_candidates",
    "write_drawing",
    "write_network",
    "write_report",
]
# not in __all__: `from qubayes import *` does without scikit-learn
_ESTIMATOR = "BayesianNetworkEstimator"


def __getattr__(name: str) -> Any:
    if name == "quadratize":  # a module that can be called as the function of its name
        return import_module(".quadratize", __name__)
    if name not in _HOME_OF:
        raise AttributeError(f"module 'qubayes' has no attribute {name!r}")
    value = getattr(import_module(f".{_HOME_OF[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, _ESTIMATOR] if find_spec("sklearn") else __all__)
