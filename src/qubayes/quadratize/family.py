"""Families of sets and how they represent terms: Assumptions 1 to 3 of the paper, on bit masks of variables."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import combinations
from typing import Literal, NamedTuple, TypeAlias

Mask: TypeAlias = int  # bit i: variable i
Pair: TypeAlias = tuple[Mask, Mask]
Assumptions: TypeAlias = Literal["general", "terms-exclusive", "conventional"]


class Plan(NamedTuple):
    """A family and the use that is made of it."""

    sets: tuple[Mask, ...]  # by size, then value
    splits: Mapping[Mask, Pair]  # set -> two other sets whose union it is; a set that is not listed is a root
    pairs: Mapping[Mask, Pair]  # term -> two sets whose union it is; twice the same set where the term is in the family

    @property
    def roots(self) -> tuple[Mask, ...]:
        """The sets that no split defines."""
        return tuple(s for s in self.sets if s not in self.splits)


def bits(mask: Mask) -> Iterator[int]:
    """The positions of the ones of a mask, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def in_order(sets: Iterable[Mask]) -> tuple[Mask, ...]:
    """The sets by size, then by value."""
    return tuple(sorted(sets, key=lambda mask: (mask.bit_count(), mask)))


def proper_subsets(mask: Mask) -> Iterator[Mask]:
    """The subsets of a set other than itself and the empty set."""
    subset = (mask - 1) & mask
    while subset:
        yield subset
        subset = (subset - 1) & mask


def closures(family: Iterable[Mask]) -> dict[int, Mask]:
    """Element -> intersection of the sets that hold it."""
    result: dict[int, Mask] = {}
    for mask in family:
        for element in bits(mask):
            result[element] = result.get(element, mask) & mask
    return result


def possible_roots(family: Iterable[Mask]) -> set[Mask]:
    """The sets of the family with an element all of whose sets contain the set: Assumption 2 asks nothing of them.

    Compact form of Assumption 2 (design §8): a set has a minimal cover by two or more others iff each of its
    elements lies in a set of the family that does not contain it. So it has none iff it is the closure of one of
    its elements.
    """
    family = set(family)
    return {closure for closure in closures(family).values() if closure in family}


class Subsets:
    """Finds the sets of a family inside a given set: by listing subsets where they are few, through an index
    otherwise.
    """

    def __init__(self, family: Iterable[Mask]) -> None:
        self.family = set(family)
        self._by_element: dict[int, set[Mask]] = defaultdict(set)
        for mask in self.family:
            self._by_element[mask.bit_length() - 1].add(mask)

    def add(self, mask: Mask) -> None:
        """Put a set into the family."""
        self.family.add(mask)
        self._by_element[mask.bit_length() - 1].add(mask)

    def remove(self, mask: Mask) -> None:
        """Take a set out of the family."""
        self.family.remove(mask)
        self._by_element[mask.bit_length() - 1].remove(mask)

    def inside(self, mask: Mask) -> list[Mask]:
        """The sets of the family that are proper subsets of the given set, in a defined order."""
        if mask.bit_count() <= 8:
            return [s for s in proper_subsets(mask) if s in self.family]
        found = (s for e in bits(mask) for s in self._by_element[e] if s & ~mask == 0 and s != mask)
        return sorted(found, reverse=True)

    def sets_meeting(self, mask: Mask) -> list[Mask]:
        """The sets of the family that share an element with the given set."""
        return [s for s in self.family if s & mask]

    def pairs(self, mask: Mask) -> Iterator[Pair]:
        """Pairs of other sets of the family whose union is the given set, in a defined order."""
        return ((b, a) for a, b in combinations(self.inside(mask), 2) if a | b == mask)

    def first_pair(self, mask: Mask) -> Pair | None:
        """One such pair, or None."""
        return next(self.pairs(mask), None)


def holds(family: Collection[Mask], terms: Iterable[Mask], assumptions: Assumptions) -> bool:
    """Whether the family satisfies what is assumed: 1 always, 2 unless terms are exclusive, 3 if conventional."""
    subsets, elements = Subsets(family), 0
    for term in terms:
        elements |= term
        if term not in subsets.family and subsets.first_pair(term) is None:
            return False
    if assumptions == "conventional" and not all(1 << e in subsets.family for e in bits(elements)):
        return False
    roots = possible_roots(family)
    return assumptions == "terms-exclusive" or all(s in roots or subsets.first_pair(s) is not None for s in family)


def plan_for(family: Collection[Mask], terms: Iterable[Mask], assumptions: Assumptions) -> Plan:
    """A use of the family: terms through couplers that the splits need anyway where that can be."""
    subsets, roots = Subsets(family), possible_roots(family)
    splits: dict[Mask, Pair] = {}
    coupled: set[Pair] = set()
    if assumptions != "terms-exclusive":
        for mask in in_order(family):
            if mask not in roots:
                pair = _preferred(subsets.pairs(mask), coupled)
                splits[mask] = pair
                coupled |= {pair, _ordered(pair[0], mask), _ordered(pair[1], mask)}
    pairs: dict[Mask, Pair] = {}
    for term in in_order(terms):
        pairs[term] = (term, term) if term in subsets.family else _preferred(subsets.pairs(term), coupled)
        coupled.add(pairs[term])
    return Plan(in_order(family), splits, pairs)


def _preferred(pairs: Iterable[Pair], coupled: set[Pair]) -> Pair:
    """A pair that is coupled already; otherwise a pair without overlap, then the first."""
    return min((_ordered(*p) for p in pairs), key=lambda p: (p not in coupled, (p[0] & p[1]).bit_count(), p))


def _ordered(a: Mask, b: Mask) -> Pair:
    return (a, b) if (a.bit_count(), a) <= (b.bit_count(), b) else (b, a)


def couplers(plan: Plan) -> set[Pair]:
    """Pairs of sets that the model couples: terms, splits, and roots inside roots without another root between.

    Counted for the support alone: a coupler whose penalty weighs nothing for the given signs, or that cancels, counts.
    """
    result = {_ordered(*pair) for pair in plan.pairs.values() if pair[0] != pair[1]}
    for mask, (a, b) in plan.splits.items():
        result |= {_ordered(a, b), _ordered(a, mask), _ordered(b, mask)}
    return result | set(nested_roots(plan.roots))


def nested_roots(roots: Collection[Mask]) -> list[Pair]:
    """Pairs (inner, outer) of roots, inner inside outer, no other root between them."""
    subsets, result = Subsets(roots), []
    for outer in in_order(roots):
        inside = subsets.inside(outer)
        result += [(r, outer) for r in inside if not any(r & ~x == 0 and r != x for x in inside)]
    return result
