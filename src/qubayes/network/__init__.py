"""Bayesian networks: graph and probabilities, `fit` and inference, comparison, samples, files."""

from .by_state import ByState
from .equivalence import Agreement, Comparison, Cpdag, compare, cpdag, skeleton, v_structures
from .json_files import MOST_NETWORK_BYTES, read_about
from .linear import Linear
from .mixture import Mixture
from .network import Network, Picture
from .network_files import (
    NETWORK_ENDINGS,
    check_network_path,
    holds_tables,
    read_network,
    write_cpdag,
    write_network,
)
from .network_score import NetworkScore, score, told_by, vertex_scores
from .normal import Normal
from .other_formats import from_modelstring, to_modelstring
from .packages import from_networkx, from_pgmpy, to_networkx, to_pgmpy, to_pyagrum
from .parameters import (
    LARGEST_TABLES,
    fit,
    in_states_of,
    log_likelihood,
    sample,
    sample_dataset,
)
from .query import Answer, parsed_states, query
from .vertex import Vertex

__all__ = [
    "LARGEST_TABLES",
    "MOST_NETWORK_BYTES",
    "NETWORK_ENDINGS",
    "Agreement",
    "Answer",
    "ByState",
    "Comparison",
    "Cpdag",
    "Linear",
    "Mixture",
    "Network",
    "NetworkScore",
    "Normal",
    "Picture",
    "Vertex",
    "check_network_path",
    "compare",
    "cpdag",
    "fit",
    "from_modelstring",
    "from_networkx",
    "from_pgmpy",
    "holds_tables",
    "in_states_of",
    "log_likelihood",
    "parsed_states",
    "query",
    "read_about",
    "read_network",
    "sample",
    "sample_dataset",
    "score",
    "skeleton",
    "to_modelstring",
    "to_networkx",
    "to_pgmpy",
    "to_pyagrum",
    "told_by",
    "v_structures",
    "vertex_scores",
    "write_cpdag",
    "write_network",
]
