"""What must and may be in an optimal family: Algorithm 1 of the paper, twins and cores (docs/quadratization.md)."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .family import Assumptions, Mask, bits, in_order, proper_subsets


class Twins(NamedTuple):
    """Elements that lie in the same terms, merged: some optimal family never separates them."""

    classes: tuple[Mask, ...]  # merged element -> its elements
    terms: tuple[Mask, ...]  # over merged elements

    def expand(self, mask: Mask) -> Mask:
        """The set of elements that a set of merged elements means."""
        return sum(self.classes[e] for e in bits(mask))  # classes are disjoint


def merge_twins(terms: Sequence[Mask], assumptions: Assumptions) -> Twins:
    """The terms over classes of twins; conventional quadratization needs every element on its own."""
    inside: dict[int, list[int]] = defaultdict(list)
    for number, term in enumerate(terms):
        for element in bits(term):
            inside[element].append(number)
    classes: dict[tuple[int, ...] | int, Mask] = defaultdict(int)
    for element in sorted(inside):
        classes[element if assumptions == "conventional" else tuple(inside[element])] |= 1 << element
    merged = [0] * len(terms)
    for position, mask in enumerate(classes.values()):
        for number in inside[(mask & -mask).bit_length() - 1]:
            merged[number] |= 1 << position
    return Twins(tuple(classes.values()), in_order(merged))


class Space(NamedTuple):
    """Algorithm 1's result: which sets are in the family, which may be, which terms are still to be represented."""

    terms: tuple[Mask, ...]
    closed: frozenset[Mask]  # V_close: singletons only
    open_terms: tuple[Mask, ...]  # W_open
    candidates: tuple[Mask, ...]  # V_open
    cores: dict[int, Mask]  # element -> intersection of the terms that hold it
    assumptions: Assumptions


def reduce_space(terms: Sequence[Mask], assumptions: Assumptions) -> Space:
    """Algorithm 1: closed sets, then the terms that they do not represent, then the subsets of those terms."""
    closed = closed_sets(terms, assumptions)
    open_terms = tuple(t for t in terms if t.bit_count() > 2 or not all(1 << e in closed for e in bits(t)))
    candidates = _candidates(open_terms, closed, assumptions)
    return Space(tuple(terms), frozenset(closed), open_terms, candidates, intersections(terms), assumptions)


def closed_sets(terms: Sequence[Mask], assumptions: Assumptions) -> set[Mask]:
    """Sets of every optimal family: row 2 of Algorithm 1, read as the paper's text explains it (the only way to
    represent a term).

    Every subset of an open term stays open, so a term of two or more elements always has another way than itself:
    what row 2 closes are the singletons among the terms, and a second round changes nothing. With Assumption 2, an
    element whose core is itself and that lies in no other element's core needs its singleton as well; with
    Assumption 3 every element does.
    """
    cores = intersections(terms)
    if assumptions == "conventional":
        return {1 << e for e in cores}
    closed = {term for term in terms if term.bit_count() == 1}
    if assumptions == "general":
        nested = {f for e, core in cores.items() for f in bits(core) if f != e}
        closed |= {1 << e for e, core in cores.items() if core == 1 << e and e not in nested}
    return closed


def intersections(terms: Iterable[Mask]) -> dict[int, Mask]:
    """Element -> intersection of the terms that hold it (its core)."""
    cores: dict[int, Mask] = {}
    for term in terms:
        for element in bits(term):
            cores[element] = cores.get(element, term) & term
    return dict(sorted(cores.items()))


def _candidates(open_terms: Sequence[Mask], closed: set[Mask], assumptions: Assumptions) -> tuple[Mask, ...]:
    """Row 4 of Algorithm 1. Without Assumption 2 a set inside one open term only may give way to that term (Algorithm
    2, row 3).
    """
    uses: dict[Mask, int] = defaultdict(int)
    for term in open_terms:
        for subset in proper_subsets(term):
            uses[subset] += 1
    once = assumptions == "terms-exclusive"
    kept = {subset for subset, number in uses.items() if number > once}
    return in_order((kept | set(open_terms)) - closed)


def pairs_estimate(terms: Iterable[Mask]) -> int:
    """About how many pairs of sets the integer program would name: 3^k / 2 for each subset of k elements of a term."""
    return sum(4 ** term.bit_count() // 2 for term in terms)


def counting_bound(terms: Sequence[Mask]) -> int:
    """ceil(-1/2 + sqrt(1 + 8 |F|) / 2): J sets have J (J + 1) / 2 unions of one or two."""
    sets = 0
    while sets * (sets + 1) // 2 < len(terms):
        sets += 1
    return sets


def simple_bound(terms: Sequence[Mask], assumptions: Assumptions) -> int:
    """A lower bound on J that costs nothing: the paper's count; the closed sets, and k - 2 products for a term of k
    of them.

    k - 2: if every set splits down to singletons, those below the term are built by unions of two. That takes k -
    1 unions, of which only the last, the term itself, need not be in the family.
    """
    closed = closed_sets(terms, assumptions)
    products = 0
    if assumptions != "terms-exclusive":
        products = max((t.bit_count() - 2 for t in terms if all(1 << e in closed for e in bits(t))), default=0)
    return max(counting_bound(terms), len(closed) + max(products, 0))
