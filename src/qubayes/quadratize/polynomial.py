"""Pseudo-Boolean polynomials of bits, checked and with equal terms merged; canonical order."""

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, pairwise
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..foundation.arrays import AnyArray, Floats, Ints
from ..foundation.errors import FormatError, QubayesError
from ..foundation.files import parse_json, read_text, shown

Variable: TypeAlias = Hashable
Term: TypeAlias = tuple[int, ...]  # ascending indices of variables

# Visits of variables of terms before remaining ties are broken by labels: about two seconds.
REFINEMENT_WORK = 5_000_000


@dataclass(frozen=True, slots=True)
class Polynomial:
    """f(p) = constant + sum over terms V of coefficient(V) * prod over i in V of bits p_i."""

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
        summands = [self.constant]
        for term, coefficient in zip(self.terms, self.coefficients, strict=True):
            if all(map(state.__getitem__, term)):
                summands.append(coefficient)
        return math.fsum(summands)

    def energies(self, states: AnyArray) -> Floats:
        """Return f of each row, a state of `variables`."""
        energies = np.full(len(states), self.constant)
        for term, coefficient in zip(self.terms, self.coefficients, strict=True):
            energies += coefficient * states[:, term].all(axis=1)
        return energies


def as_polynomial(given: Any) -> Polynomial:
    """Return the polynomial of a `dimod.BinaryPolynomial` of bits or of {variables: coefficient}.

    The variables of a term are a tuple. A variable that repeats in a term counts once (x*x = x),
    terms of equal variables are added, zero sums are dropped."""
    if isinstance(given, Polynomial):
        return given
    vartype = getattr(given, "vartype", None)
    if vartype is not None and getattr(vartype, "name", vartype) != "BINARY":
        raise QubayesError(
            "a polynomial of spins was given where bits are expected; "
            "convert it first: poly.to_binary(copy=True)"
        )
    if not isinstance(given, Mapping):
        raise QubayesError(
            f"a {type(given).__name__} is not a polynomial; "
            "give a dimod.BinaryPolynomial or {(variable, ...): coefficient}"
        )
    return from_terms((coefficient, variables) for variables, coefficient in given.items())


def from_terms(pairs: Iterable[tuple[Any, Any]]) -> Polynomial:
    """Return the polynomial with the given (coefficient, variables) pairs, in any order."""
    sums: dict[frozenset[Variable], list[float]] = {}
    for coefficient, variables in pairs:
        term = _checked_term(variables)
        sums.setdefault(term, []).append(_checked_coefficient(coefficient, variables))
    order = sorted(frozenset[Variable]().union(*sums), key=_label_key)
    index = {name: i for i, name in enumerate(order)}
    totals: dict[Term, float] = {}
    for term, values in sums.items():
        try:
            totals[tuple(sorted(map(index.__getitem__, term)))] = math.fsum(values)
        except OverflowError:
            raise QubayesError(
                "the coefficients of a repeated term add up past the largest float; "
                "scale the polynomial"
            ) from None
    constant = totals.pop((), 0.0)
    kept = {term: totals[term] for term in sorted(totals) if totals[term] != 0.0}
    return Polynomial(tuple(order), tuple(kept), tuple(kept.values()), constant)


def _checked_term(variables: Any) -> frozenset[Variable]:
    """Return the variables of a term; raise unless they are a collection."""
    if isinstance(variables, str | bytes) or not isinstance(variables, Iterable):
        raise QubayesError(
            f"term {variables!r} is not a tuple of variables; "
            f"a term of one variable is written ({variables!r},)"
        )
    return frozenset(variables)


def _checked_coefficient(coefficient: Any, variables: Iterable[Variable]) -> float:
    """Return the coefficient of a term; raise unless it is a finite number."""
    value = math.nan
    if isinstance(coefficient, Real) and not isinstance(coefficient, bool):
        with suppress(OverflowError):
            value = float(coefficient)
    if not math.isfinite(value):
        given = shown(coefficient)
        where = shown(tuple(variables))
        raise QubayesError(f"coefficient {given} of term {where}; give a finite real number")
    return value


def _label_key(label: Variable) -> tuple[str, float, str]:
    """Return the key that sorts labels by kind, then numbers by value and the rest by text."""
    if isinstance(label, int | float):
        # the float of a whole number may be too large to be one
        beyond = math.inf if label > 0 else -math.inf
        return ("", float(label) if abs(label) < 2**53 else beyond, repr(label))
    return (type(label).__name__, 0.0, label if isinstance(label, str) else repr(label))


def read_polynomial(path: str | Path) -> Polynomial:
    """Return the polynomial of a JSON file: a list of [coefficient, [names...]]."""
    text = read_text(path)
    try:
        rows = parse_json(text)
    except FormatError as error:
        raise FormatError(f"{path} is {error}; give a list of [coefficient, [names...]]") from None
    if not isinstance(rows, list):
        raise FormatError(
            f"{path} holds a {type(rows).__name__}; give a list of [coefficient, [names...]]"
        )
    for number, row in enumerate(rows, 1):
        if not (isinstance(row, list) and len(row) == 2 and isinstance(row[1], list)):
            raise FormatError(
                f"{path}, entry {number}: {shown(row)}; give [coefficient, [names...]]"
            )
        if not all(isinstance(name, str | int) and not isinstance(name, bool) for name in row[1]):
            raise FormatError(
                f"{path}, entry {number}: names are strings or whole numbers, not {shown(row[1])}"
            )
    return from_terms((row[0], row[1]) for row in rows)


class CanonicalOrder(NamedTuple):
    """Variables in an order that depends on the structure of the polynomial, not on labels."""

    order: tuple[int, ...]  # position -> index of the variable
    structural: bool  # False: the work limit was reached and labels broke some ties


def canonical_order(polynomial: Polynomial, work: int = REFINEMENT_WORK) -> CanonicalOrder:
    """Return the canonical order; if `structural`, the same for relabelled polynomials.

    Colour refinement: a term's colour is its coefficient with the colours of its variables, a
    variable's colour is the multiset of the colours of its terms. Ties that remain are broken by
    individualisation: each tied variable in turn gets a colour of its own, and the smallest of the
    resulting polynomials is kept. Of variables that a known symmetry of the polynomial exchanges,
    one is tried. Ties that remain after `work` visits of variables are broken by labels."""
    search = _Refinement(polynomial, work)
    search.descend(search.refine([0] * len(polynomial.variables)), ())
    return CanonicalOrder(tuple(search.best_order), search.complete)


class _Lists(NamedTuple):
    """Lists of numbers in one array."""

    start: list[int]  # (lists + 1,)
    owner: Ints  # (members,) the list of each member
    members: Ints

    @staticmethod
    def of(lists: list[list[int]]) -> "_Lists":
        """Return the flat form."""
        sizes = [len(own) for own in lists]
        start = np.cumsum([0, *sizes]).tolist()
        owner = np.repeat(np.arange(len(lists)), sizes)
        return _Lists(start, owner, np.fromiter(chain.from_iterable(lists), np.int64))

    def ranked(self, first: list[int], colours: list[int]) -> list[int]:
        """Return the rank of each list, by `first`, then by the sorted colours of its members.

        Keys are bytes: whole numbers with the highest byte first compare as they do.
        """
        values = np.array(colours, dtype=np.int64)[self.members]
        text = values[np.lexsort((values, self.owner))].astype(">i8").tobytes()
        heads = np.array(first, dtype=">i8").tobytes()
        keys = [
            heads[8 * i : 8 * i + 8] + text[8 * a : 8 * b]
            for i, (a, b) in enumerate(pairwise(self.start))
        ]
        ranks = {key: rank for rank, key in enumerate(sorted(set(keys)))}
        return [ranks[key] for key in keys]


class _Refinement:
    """Search tree of individualisations; keeps the leaf with the smallest certificate."""

    def __init__(self, polynomial: Polynomial, work: int = REFINEMENT_WORK) -> None:
        values = {c: rank for rank, c in enumerate(sorted(set(polynomial.coefficients)))}
        self.ranks = {
            t: values[c] for t, c in zip(polynomial.terms, polynomial.coefficients, strict=True)
        }
        self.terms_of: dict[int, list[Term]] = defaultdict(list)
        for term in self.ranks:
            for variable in term:
                self.terms_of[variable].append(term)
        self.in_terms = _Lists.of([list(term) for term in self.ranks])
        number = {term: place for place, term in enumerate(self.ranks)}
        variables = range(len(polynomial.variables))
        own = [list(map(number.__getitem__, self.terms_of[v])) for v in variables]
        self.in_variables = _Lists.of(own)
        self.work = work  # visits that are left
        self.complete = True  # False: some ties were broken by labels
        self.best_certificate: list[tuple[Term, int]] | None = None
        self.best_order: list[int] = []
        # permutations of the variables: two leaves with one certificate
        self.symmetries: list[dict[int, int]] = []

    def refine(self, colours: list[int]) -> list[int]:
        """Return the coarsest stable colouring that is finer than the given one."""
        classes, term_ranks = 0, list(self.ranks.values())
        while classes != (now := len(set(colours))):
            classes = now
            self.work -= len(self.in_terms.members) + 1
            colours = self.in_variables.ranked(colours, self.in_terms.ranked(term_ranks, colours))
        return colours

    def descend(self, colours: list[int], fixed: tuple[int, ...]) -> None:
        """Visit the leaves below a stable colouring in which these variables were singled out."""
        while True:
            cells = _cells(colours)
            tied = next((cell for cell in cells if len(cell) > 1), None)
            if tied is None:
                self.visit([cell[0] for cell in cells])
                return
            apart = self.not_swappable(tied)
            if len(apart) > 1:
                break
            # All orders of swappable variables are equivalent.
            fixed += tuple(tied)
            colours = self.refine(_singled_out(colours, tied))
        for number, variable in enumerate(apart):
            if number and self.reachable(apart[:number], fixed, variable):
                continue
            if number and self.work < 0:
                self.complete = False
                return
            self.descend(self.refine(_singled_out(colours, [variable])), (*fixed, variable))

    def not_swappable(self, tied: list[int]) -> list[int]:
        """Return one variable of each class of variables that can be swapped."""
        apart: list[int] = []
        for variable in tied:
            self.work -= len(apart)
            if not any(self.swappable(variable, other) for other in apart):
                apart.append(variable)
        return apart

    def visit(self, order: list[int]) -> None:
        """Keep the order if its certificate is the smallest so far; if equal, keep the symmetry."""
        self.work -= len(self.in_terms.members)
        place = {variable: position for position, variable in enumerate(order)}
        placed = (tuple(sorted(map(place.__getitem__, term))) for term in self.ranks)
        certificate = sorted(zip(placed, self.ranks.values(), strict=True))
        if certificate == self.best_certificate:
            self.symmetries.append(dict(zip(self.best_order, order, strict=True)))
        elif self.best_certificate is None or certificate < self.best_certificate:
            self.best_certificate = certificate
            self.best_order = order

    def reachable(self, tried: list[int], fixed: tuple[int, ...], variable: int) -> bool:
        """Return whether a symmetry that keeps the fixed variables maps a tried one to this one."""
        maps = [symmetry for symmetry in self.symmetries if all(symmetry[v] == v for v in fixed)]
        orbit = list(tried)
        for member in orbit:  # grows while it is read
            orbit += {symmetry[member] for symmetry in maps} - set(orbit)
        return variable in orbit

    def swappable(self, a: int, b: int) -> bool:
        """Return whether swapping the two variables leaves the polynomial as it is."""
        swap = {a: b, b: a}
        for term in self.terms_of[a] + self.terms_of[b]:
            swapped = tuple(sorted(swap.get(v, v) for v in term))
            if self.ranks.get(swapped) != self.ranks[term]:
                return False
        return True


def _cells(colours: list[int]) -> list[list[int]]:
    """Return the variables of each colour, by colour."""
    cells: dict[int, list[int]] = defaultdict(list)
    for variable, colour in enumerate(colours):
        cells[colour].append(variable)
    return [cells[colour] for colour in sorted(cells)]


def _singled_out(colours: list[int], variables: list[int]) -> list[int]:
    """Return the colouring in which the variables come first in their class, in the given order."""
    step = len(variables) + 1
    place = {variable: number for number, variable in enumerate(variables)}
    return [
        step * colour + place.get(variable, len(variables))
        for variable, colour in enumerate(colours)
    ]
