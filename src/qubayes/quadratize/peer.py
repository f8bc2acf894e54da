"""dimod's own reduction as a yardstick: where a result is not proved minimal, it must not have more bits than
dimod's.
"""

from collections.abc import Mapping
from typing import Any

from dimod.higherorder.polynomial import BinaryPolynomial
from dimod.higherorder.utils import reduce_binary_polynomial

from .family import Mask
from .polynomial import Polynomial, Variable


def smaller_by_dimod(given: Any, masks: Mapping[Variable, Mask], sets: int) -> set[Mask] | None:
    """The family of `dimod.make_quadratic` on the same input if it has fewer than `sets` sets, else None.

    `masks` gives the bit of each variable of a term. dimod breaks ties by hash order, so a family that comes from
    here may change with PYTHONHASHSEED; the caller says so in the status.
    """
    if isinstance(given, Polynomial):
        terms = ([given.variables[v] for v in term] for term in given.terms)
        given = {tuple(term): c for term, c in zip(terms, given.coefficients, strict=True)}
    polynomial = given if isinstance(given, BinaryPolynomial) else BinaryPolynomial(given, "BINARY")
    nonzero = BinaryPolynomial({t: c for t, c in polynomial.items() if c}, "BINARY")
    _, products = reduce_binary_polynomial(nonzero)
    known: dict[Variable, Mask] = dict(masks)
    for (first, second), product in products:
        known[product] = known[first] | known[second]
    family = set(known.values())
    return family if len(family) < sets else None
