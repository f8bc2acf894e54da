"""Annealing machines: models as arrays, their files, the Digital Annealer, embedding."""

from .annealer_client import (
    KEY_VARIABLE,
    AnnealerSolutions,
    DigitalAnnealer,
    Patience,
    Reply,
)
from .digital_annealer import (
    AnnealerParameters,
    AnnealerProblem,
    Inequalities,
    digital_annealer_json,
    inequalities_of,
    problem_of,
)
from .embedding import Embedding, embed, target_graph
from .model_files import (
    CONSTRAINED_ENDINGS,
    MODEL_ENDINGS,
    read_model,
    read_qubo,
    write_model,
    write_qubo,
)
from .ommx_models import ommx_values, to_ommx
from .qubo import (
    MOST_BITS,
    ModelSize,
    Qubo,
    check_bits,
    coefficient_range,
    energy,
    from_bqm,
    qubo_from_couplers,
    to_bqm,
    upper_triangle,
)

__all__ = [
    "CONSTRAINED_ENDINGS",
    "KEY_VARIABLE",
    "MODEL_ENDINGS",
    "MOST_BITS",
    "AnnealerParameters",
    "AnnealerProblem",
    "AnnealerSolutions",
    "DigitalAnnealer",
    "Embedding",
    "Inequalities",
    "ModelSize",
    "Patience",
    "Qubo",
    "Reply",
    "check_bits",
    "coefficient_range",
    "digital_annealer_json",
    "embed",
    "energy",
    "from_bqm",
    "inequalities_of",
    "ommx_values",
    "problem_of",
    "qubo_from_couplers",
    "read_model",
    "read_qubo",
    "target_graph",
    "to_bqm",
    "to_ommx",
    "upper_triangle",
    "write_model",
    "write_qubo",
]
