"""Structure learning of Bayesian networks, with a proof or a gap, and as a compact QUBO.

    data ──> candidates ──┬──> search ──> network ──> report      which network is best?   (learn)
                          └──> qubo ────> samplers, machines      the same as a QUBO       (formulate)

One verb for each room: `read` data, `identify` candidate parent sets, `solve` for the best network, `fit` its
parameters, `score`, `judge` or `compare` networks; `formulate` the QUBO and `decode` an annealer's answer. `learn`
walks the upper wing in one call.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .foundation.errors import QubayesError

if TYPE_CHECKING:
    from .candidates import Candidates, Knowledge, Search, read_candidates, write_candidates
    from .candidates.identify import identify
    from .data import Dataset, ReadSettings
    from .data.read import read
    from .foundation.workers import Workers
    from .learning import Confidence, Judgement, Learned, bootstrap
    from .learning.judge import judge
    from .learning.pipeline import learn
    from .network import Network, compare, cpdag, fit, log_likelihood, read_network, sample, score, write_network
    from .qubo import Formulation, decode, formulate
    from .qubo.subsets import Subsets
    from .qubo.subsets.cover import cover
    from .scores import Score, local_score
    from .search import Limits, Solution
    from .search.exact.alternatives import alternatives
    from .search.exact.exact import presolve, upper_bound
    from .search.exact.posterior import posterior
    from .search.solve import solve

__version__ = "0.1.0"

# Where each name lives. Loaded on first use: importing qubayes alone loads no numba, polars or dimod.
_HOMES = {
    "candidates": ("Candidates", "Knowledge", "Search", "identify", "read_candidates", "write_candidates"),
    "foundation.workers": ("Workers",),
    "data": ("Dataset", "ReadSettings", "read"),
    "qubo": ("Formulation", "decode", "formulate"),
    "learning": ("Confidence", "Judgement", "Learned", "bootstrap", "judge", "learn"),
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
    "scores": ("Score", "local_score"),
    "search": ("Limits", "Solution", "solve"),
    "search.exact": ("alternatives", "posterior", "presolve", "upper_bound"),
    "qubo.subsets": ("Subsets", "cover"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Candidates",
    "Confidence",
    "Dataset",
    "Formulation",
    "Judgement",
    "Knowledge",
    "Learned",
    "Limits",
    "Network",
    "QubayesError",
    "ReadSettings",
    "Score",
    "Search",
    "Solution",
    "Subsets",
    "Workers",
    "__version__",
    "alternatives",
    "bootstrap",
    "compare",
    "cover",
    "cpdag",
    "decode",
    "fit",
    "formulate",
    "identify",
    "judge",
    "learn",
    "local_score",
    "log_likelihood",
    "posterior",
    "presolve",
    "read",
    "read_candidates",
    "read_network",
    "sample",
    "score",
    "solve",
    "upper_bound",
    "write_candidates",
    "write_network",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'qubayes' has no attribute {name!r}")
    value = getattr(import_module(f".{_HOME_OF[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
