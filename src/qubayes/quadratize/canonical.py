"""Canonical order of the variables: it depends on the structure of the polynomial alone, not on labels.

Colour refinement: a term's colour is its coefficient with the colours of its variables, a variable's colour is the
multiset of the colours of its terms. Ties that remain are broken by individualisation: each tied variable in turn gets
a colour of its own, and the smallest of the resulting polynomials is kept. Of variables that can be swapped without
changing the polynomial, one is tried.
"""

from collections import defaultdict
from typing import NamedTuple

from .polynomial import Polynomial, Term

WORK = 2_000_000  # variables of terms visited before remaining ties are broken by labels: about two seconds


class CanonicalOrder(NamedTuple):
    """Variables in canonical order."""

    order: tuple[int, ...]  # position -> index of the variable
    structural: bool  # False: the work limit was reached and labels broke some ties


def canonical_order(polynomial: Polynomial) -> CanonicalOrder:
    """Return the canonical order: relabelled polynomials have the same one, up to relabelling, if `structural`."""
    search = _Refinement(polynomial)
    search.descend(search.refine([0] * len(polynomial.variables)))
    return CanonicalOrder(tuple(search.best_order), search.work >= 0)


class _Refinement:
    """Search tree of individualisations; keeps the leaf with the smallest certificate."""

    def __init__(self, polynomial: Polynomial) -> None:
        values = {c: rank for rank, c in enumerate(sorted(set(polynomial.coefficients)))}
        self.terms = polynomial.terms
        self.ranks = [values[c] for c in polynomial.coefficients]
        self.known = dict(zip(self.terms, self.ranks, strict=True))
        self.terms_of: dict[int, list[int]] = defaultdict(list)
        for number, term in enumerate(self.terms):
            for variable in term:
                self.terms_of[variable].append(number)
        self.work = WORK
        self.best_certificate: list[tuple[Term, int]] | None = None
        self.best_order: list[int] = []

    def refine(self, colours: list[int]) -> list[int]:
        """Return the coarsest stable colouring that is finer than the given one."""
        classes = len(set(colours))
        while True:
            self.work -= sum(map(len, self.terms)) + 1
            paint = [(rank, *sorted(colours[v] for v in t)) for t, rank in zip(self.terms, self.ranks, strict=True)]
            term_colours = _ranked(paint)
            keys = [(c, *sorted(term_colours[t] for t in self.terms_of[v])) for v, c in enumerate(colours)]
            colours = _ranked(keys)
            if len(set(colours)) == classes:
                return colours
            classes = len(set(colours))

    def descend(self, colours: list[int]) -> None:
        """Visit the leaves below a stable colouring."""
        while True:
            cells: dict[int, list[int]] = defaultdict(list)
            for variable, colour in enumerate(colours):
                cells[colour].append(variable)
            tied = next((cells[colour] for colour in sorted(cells) if len(cells[colour]) > 1), None)
            if tied is None:
                self._leaf([cells[colour][0] for colour in sorted(cells)])
                return
            apart = self._apart(tied)
            if len(apart) > 1:
                break
            colours = self.refine(_singled_out(colours, tied))  # all orders of swappable variables are equivalent
        for number, variable in enumerate(apart):
            if number and self.work < 0:
                return
            self.descend(self.refine(_singled_out(colours, [variable])))

    def _leaf(self, order: list[int]) -> None:
        place = {variable: position for position, variable in enumerate(order)}
        certificate = sorted(
            (tuple(sorted(place[v] for v in t)), rank) for t, rank in zip(self.terms, self.ranks, strict=True)
        )
        if self.best_certificate is None or certificate < self.best_certificate:
            self.best_certificate, self.best_order = certificate, order

    def _apart(self, cell: list[int]) -> list[int]:
        """Return one variable of each class of variables of the cell that can be swapped with each other."""
        chosen: list[int] = []
        for variable in cell:
            self.work -= len(chosen)
            if not any(self._swappable(variable, other) for other in chosen):
                chosen.append(variable)
        return chosen

    def _swappable(self, a: int, b: int) -> bool:
        swap = {a: b, b: a}
        for number in self.terms_of[a] + self.terms_of[b]:
            image = tuple(sorted(swap.get(v, v) for v in self.terms[number]))
            if self.known.get(image) != self.ranks[number]:
                return False
        return True


def _singled_out(colours: list[int], variables: list[int]) -> list[int]:
    """Return the colouring in which the given variables come first in their class, in the given order."""
    step = len(variables) + 1
    place = {variable: number for number, variable in enumerate(variables)}
    return [step * colour + place.get(variable, len(variables)) for variable, colour in enumerate(colours)]


def _ranked(keys: list[tuple[int, ...]]) -> list[int]:
    ranks = {key: rank for rank, key in enumerate(sorted(set(keys)))}
    return [ranks[key] for key in keys]
