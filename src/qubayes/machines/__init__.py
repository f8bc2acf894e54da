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
from .model_files import (
    CONSTRAINED_ENDINGS,
    ENDINGS,
    READABLE_ENDINGS,
    ommx_values,
    read_model,
    read_qubo,
    to_ommx,
    write_model,
    write_qubo,
)
from .qubo import ModelSize

__all__ = [
    "CONSTRAINED_ENDINGS",
    "ENDINGS",
    "KEY_VARIABLE",
    "READABLE_ENDINGS",
    "AnnealerParameters",
    "AnnealerProblem",
    "AnnealerSolutions",
    "DigitalAnnealer",
    "Embedding",
    "Inequalities",
    "ModelSize",
    "Patience",
    "digital_annealer_json",
    "embed",
    "inequalities_of",
    "ommx_values",
    "problem_of",
    "read_model",
    "read_qubo",
    "to_ommx",
    "write_model",
    "write_qubo",
]
