"""Stage 5: the QUBO H(u, r, z), its constrained form, its decoder, and O'Gorman's formulation beside it."""

from ..machines.qubo import Qubo, coefficient_range, energy, from_bqm, qubo_from_couplers, to_bqm
from .assembly import ConstrainedForm, annealer_problem, constrain, to_cqm
from .decoding import Decoded, Violation, best_sets, decode, encode, encode_sets, implied_order
from .formulation import Formulation, count_bits, formulate, quick_formulation, quick_subsets
from .ogorman import OGorman, formulate_ogorman, ogorman_bits

__all__ = [
    "ConstrainedForm",
    "Decoded",
    "Formulation",
    "OGorman",
    "Qubo",
    "Violation",
    "annealer_problem",
    "best_sets",
    "coefficient_range",
    "constrain",
    "count_bits",
    "decode",
    "encode",
    "encode_sets",
    "energy",
    "formulate",
    "formulate_ogorman",
    "from_bqm",
    "implied_order",
    "ogorman_bits",
    "qubo_from_couplers",
    "quick_formulation",
    "quick_subsets",
    "to_bqm",
    "to_cqm",
]
