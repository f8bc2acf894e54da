"""Decomposed quadratization: any polynomial of bits as a quadratic model with few bits."""

import sys
from types import ModuleType

from .decomposition import (
    Decomposition,
    bits,
    decompose,
    holds,
    merge_twins,
    nested_roots,
    simple_bound,
)
from .model import Decoder, Quadratic, exclusive_quadratic, paper_quadratic, tight_quadratic
from .polynomial import Polynomial, as_polynomial, canonical_order, read_polynomial
from .quadratize import (
    DecomposedQuadratizationComposite,
    Quadratization,
    TradeOff,
    quadratize,
    trade_off,
)

__all__ = [
    "Decoder",
    "DecomposedQuadratizationComposite",
    "Decomposition",
    "Polynomial",
    "Quadratic",
    "Quadratization",
    "TradeOff",
    "as_polynomial",
    "bits",
    "canonical_order",
    "decompose",
    "exclusive_quadratic",
    "holds",
    "merge_twins",
    "nested_roots",
    "paper_quadratic",
    "quadratize",
    "read_polynomial",
    "simple_bound",
    "tight_quadratic",
    "trade_off",
]


class _CallableModule(ModuleType):
    """`qubayes.quadratize` is this module and, when it is called, the function of the same name."""

    __call__ = staticmethod(quadratize)


sys.modules[__name__].__class__ = _CallableModule
