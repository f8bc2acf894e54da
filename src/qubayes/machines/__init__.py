"""Files and requests for annealing machines."""

from .annealer_client import KEY_VARIABLE, AnnealerSolutions, DigitalAnnealer, Patience
from .digital_annealer import (
    AnnealerParameters,
    AnnealerProblem,
    Inequalities,
    digital_annealer_json,
    inequalities_of,
    problem_of,
)
from .embedding import Embedding, embed
from .model_files import ENDINGS, read_model, read_qubo, write_model, write_qubo

__all__ = [
    "ENDINGS",
    "KEY_VARIABLE",
    "AnnealerParameters",
    "AnnealerProblem",
    "AnnealerSolutions",
    "DigitalAnnealer",
    "Embedding",
    "Inequalities",
    "Patience",
    "digital_annealer_json",
    "embed",
    "inequalities_of",
    "problem_of",
    "read_model",
    "read_qubo",
    "write_model",
    "write_qubo",
]
