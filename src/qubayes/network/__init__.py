"""Bayesian networks: graph, equivalence class, parameters, comparison; files; samples."""

from .bif import read_bif
from .compare import Agreement, Comparison, compare
from .equivalence import Cpdag, cpdag, skeleton, v_structures
from .graph_files import from_modelstring, to_modelstring
from .json_files import read_about
from .network import Network
from .network_files import check_network_path, holds_tables, read_network, write_network
from .network_score import NetworkScore, score
from .packages import from_networkx, from_pgmpy, to_networkx, to_pgmpy
from .parameters import fit, log_likelihood, vertex_scores
from .sample import sample

__all__ = [
    "Agreement",
    "Comparison",
    "Cpdag",
    "Network",
    "NetworkScore",
    "check_network_path",
    "compare",
    "cpdag",
    "fit",
    "from_modelstring",
    "from_networkx",
    "from_pgmpy",
    "holds_tables",
    "log_likelihood",
    "read_about",
    "read_bif",
    "read_network",
    "sample",
    "score",
    "skeleton",
    "to_modelstring",
    "to_networkx",
    "to_pgmpy",
    "v_structures",
    "vertex_scores",
    "write_network",
]
