"""Files and requests for annealing machines."""

from .digital_annealer import (
    AnnealerParameters,
    AnnealerProblem,
    Inequalities,
    digital_annealer_json,
    inequalities_of,
    no_inequalities,
    problem_of,
)
from .model_files import ENDINGS, read_model, read_qubo, write_model, write_qubo

__all__ = [
    "ENDINGS",
    "AnnealerParameters",
    "AnnealerProblem",
    "Inequalities",
    "digital_annealer_json",
    "inequalities_of",
    "no_inequalities",
    "problem_of",
    "read_model",
    "read_qubo",
    "write_model",
    "write_qubo",
]
