"""The QUBO H(u, r, z) of structure learning, its constrained form and its decoder."""

from ..machines.qubo import Qubo, coefficient_range, energy, from_bqm, qubo_from_couplers, to_bqm
from .answers import read_answer, states_of
from .constrained import ConstrainedForm, annealer_problem, constrain, to_cqm
from .decoding import (
    Decoded,
    best_sets,
    closure_sets,
    decode,
    energy_tolerance,
    implied_order,
    repaired_sets,
    weighted_order,
)
from .encoding import active_state, encode, encode_sets
from .formulation import (
    Coefficients,
    Formulation,
    count_bits,
    formulate,
    is_certified,
    quick_formulation,
    quick_subsets,
    read_formulation,
)
from .formulation_files import companion_of, write_formulation
from .gains import RelativeSets, data_scores, relate
from .on_demand import DEMAND, Demand
from .order_bits import OrderStatus
from .proved_order import PROVED
from .violations import Violation

__all__ = [
    "DEMAND",
    "PROVED",
    "Coefficients",
    "ConstrainedForm",
    "Decoded",
    "Demand",
    "Formulation",
    "OrderStatus",
    "Qubo",
    "RelativeSets",
    "Violation",
    "active_state",
    "annealer_problem",
    "best_sets",
    "closure_sets",
    "coefficient_range",
    "companion_of",
    "constrain",
    "count_bits",
    "data_scores",
    "decode",
    "encode",
    "encode_sets",
    "energy",
    "energy_tolerance",
    "formulate",
    "from_bqm",
    "implied_order",
    "is_certified",
    "qubo_from_couplers",
    "quick_formulation",
    "quick_subsets",
    "read_answer",
    "read_formulation",
    "relate",
    "repaired_sets",
    "states_of",
    "to_bqm",
    "to_cqm",
    "weighted_order",
    "write_formulation",
]
