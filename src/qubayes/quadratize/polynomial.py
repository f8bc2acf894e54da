"""Pseudo-Boolean polynomials of bits: checked, equal terms merged, variables in a fixed order."""

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any, TypeAlias

from ..foundation.errors import FormatError, QubayesError
from ..foundation.files import parse_json, read_text, shown

Variable: TypeAlias = Hashable
Term: TypeAlias = tuple[int, ...]  # ascending indices of variables


@dataclass(frozen=True, slots=True)
class Polynomial:
    """f(p) = constant + sum over terms V of coefficient(V) * prod over i in V of p_i, with bits p."""

    variables: tuple[Variable, ...]  # sorted; also those that only occur with coefficient 0
    terms: tuple[Term, ...]  # degree 1 and more, sorted, all different
    coefficients: tuple[float, ...]  # not 0
    constant: float

    @property
    def degree(self) -> int:
        """Number of variables of the longest term."""
        return max(map(len, self.terms), default=0)

    def energy(self, sample: Mapping[Variable, int]) -> float:
        """Return f at a state of the variables."""
        state = [bool(sample[v]) for v in self.variables]
        active = (c for t, c in zip(self.terms, self.coefficients, strict=True) if all(state[i] for i in t))
        return math.fsum([self.constant, *active])


def as_polynomial(given: Any) -> Polynomial:
    """Return the polynomial of a `dimod.BinaryPolynomial` of bits or a mapping {tuple of variables: coefficient}.

    A variable that repeats in a term counts once (x*x = x), terms of equal variables are added, zero sums are
    dropped.
    """
    if isinstance(given, Polynomial):
        return given
    vartype = getattr(given, "vartype", None)
    if vartype is not None and getattr(vartype, "name", vartype) != "BINARY":
        raise QubayesError(
            "a polynomial of spins was given where bits are expected; convert it first: poly.to_binary(copy=True)"
        )
    if not isinstance(given, Mapping):
        raise QubayesError(
            f"a {type(given).__name__} is no polynomial; "
            "give a dimod.BinaryPolynomial or {(variable, ...): coefficient}"
        )
    return from_terms((coefficient, variables) for variables, coefficient in given.items())


def from_terms(pairs: Iterable[tuple[Any, Any]]) -> Polynomial:
    """Return the polynomial with the given (coefficient, variables) pairs; their order does not matter."""
    sums: dict[frozenset[Variable], list[float]] = {}
    names: set[Variable] = set()
    for coefficient, variables in pairs:
        term = _term(variables)
        names |= term
        sums.setdefault(term, []).append(_finite(coefficient, variables))
    order = sorted_labels(names)
    index = {name: i for i, name in enumerate(order)}
    totals = {tuple(sorted(index[v] for v in term)): _total(values) for term, values in sums.items()}
    constant = totals.pop((), 0.0)
    kept = sorted((term, total) for term, total in totals.items() if total != 0.0)
    return Polynomial(tuple(order), tuple(t for t, _ in kept), tuple(c for _, c in kept), constant)


def read_polynomial(path: str | Path) -> Polynomial:
    """Return the polynomial of a JSON file: a list of [coefficient, [names...]]."""
    text = read_text(path)
    try:
        rows = parse_json(text)
    except FormatError as error:
        raise FormatError(f"{path} is {error}; give a list of [coefficient, [names...]]") from None
    if not isinstance(rows, list):
        raise FormatError(f"{path} holds a {type(rows).__name__}; give a list of [coefficient, [names...]]")
    for number, row in enumerate(rows, 1):
        if not (isinstance(row, list) and len(row) == 2 and isinstance(row[1], list)):
            raise FormatError(f"{path}, entry {number}: {shown(row)}; give [coefficient, [names...]]")
        if not all(isinstance(name, str | int) and not isinstance(name, bool) for name in row[1]):
            raise FormatError(f"{path}, entry {number}: names are strings or whole numbers, not {shown(row[1])}")
    return from_terms((row[0], row[1]) for row in rows)


def sorted_labels(labels: Iterable[Variable]) -> list[Variable]:
    """Return the labels by kind, then numbers by value and the rest by text."""
    return sorted(labels, key=_label_key)


def _label_key(label: Variable) -> tuple[str, float, str]:
    if isinstance(label, int | float):
        beyond = math.inf if label > 0 else -math.inf  # the float of a whole number may be too large to be one
        return ("", float(label) if abs(label) < 2**53 else beyond, repr(label))
    return (type(label).__name__, 0.0, label if isinstance(label, str) else repr(label))


def _term(variables: Any) -> frozenset[Variable]:
    if isinstance(variables, str | bytes) or not isinstance(variables, Iterable):
        raise QubayesError(
            f"term {variables!r} is no tuple of variables; a term of one variable is written ({variables!r},)"
        )
    return frozenset(variables)


def _finite(coefficient: Any, variables: Any) -> float:
    if isinstance(coefficient, Real) and not isinstance(coefficient, bool):
        try:
            value = float(coefficient)
        except OverflowError:
            value = math.inf
        if math.isfinite(value):
            return value
    raise QubayesError(f"coefficient {shown(coefficient)} of term {shown(tuple(variables))}; give a finite real number")


def _total(values: list[float]) -> float:
    try:
        return math.fsum(values)
    except OverflowError:
        raise QubayesError(
            "the coefficients of a repeated term add up past the largest float; scale the polynomial"
        ) from None
