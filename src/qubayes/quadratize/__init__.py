"""Decomposed quadratization: any polynomial of bits as a quadratic model with few bits, and the way back."""

import sys
from types import ModuleType

from .model import Decoder
from .polynomial import Polynomial, as_polynomial, read_polynomial
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
    "Polynomial",
    "Quadratization",
    "TradeOff",
    "as_polynomial",
    "quadratize",
    "read_polynomial",
    "trade_off",
]


class _CallableModule(ModuleType):
    """`qubayes.quadratize` is this module and, when it is called, the function of the same name."""

    __call__ = staticmethod(quadratize)


sys.modules[__name__].__class__ = _CallableModule
