"""Families of sets that represent terms (paper, Assumptions 1 to 3), on bit masks of variables.

`holds` checks a family by definition. `reduce_space` is the paper's Algorithm 1: which sets are in
a smallest family, and which may be. Proofs are in docs/quadratization.md."""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import chain, combinations, permutations
from operator import or_
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from ..foundation.families import counting_bound

Mask: TypeAlias = int  # bit i: variable i
Pair: TypeAlias = tuple[Mask, Mask]
Assumptions: TypeAlias = Literal["general", "terms-exclusive", "conventional"]
Penalty: TypeAlias = Literal["tight", "paper"]

MOST_IN_TRIANGLES = 256  # elements of the triangle bound: its cube of triples takes 16 MB then


class Decomposition(NamedTuple):
    """A family of sets with a representation of each term and, unless it is a root, of each set."""

    sets: tuple[Mask, ...]  # by size, then value
    # set -> two other sets whose union it is; a set that is not listed is a root
    splits: Mapping[Mask, Pair]
    # term -> two sets whose union it is; twice the term itself if it is in the family
    pairs: Mapping[Mask, Pair]

    @property
    def roots(self) -> tuple[Mask, ...]:
        """The sets without a split."""
        return tuple(s for s in self.sets if s not in self.splits)

    def tree(self, term: Mask) -> set[Mask]:
        """Return the sets that the two sets of a term are built from, themselves included."""
        seen: set[Mask] = set()
        waiting = list(self.pairs[term])
        while waiting:
            mask = waiting.pop()
            if mask not in seen:
                seen.add(mask)
                waiting += self.splits.get(mask, ())
        return seen


def bits(mask: Mask) -> Iterator[int]:
    """Yield the positions of the ones of a mask, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def in_order(sets: Iterable[Mask]) -> tuple[Mask, ...]:
    """Return the sets by size, then by value."""
    return tuple(sorted(sets, key=lambda mask: (mask.bit_count(), mask)))


def ordered_pair(a: Mask, b: Mask) -> Pair:
    """Return the two sets by size, then by value."""
    return (a, b) if (a.bit_count(), a) <= (b.bit_count(), b) else (b, a)


def proper_subsets(mask: Mask) -> Iterator[Mask]:
    """Yield the subsets of a set other than itself and the empty set, descending."""
    subset = (mask - 1) & mask
    while subset:
        yield subset
        subset = (subset - 1) & mask


def singletons(terms: Iterable[Mask]) -> set[Mask]:
    """Return the singletons of all elements of the terms."""
    return {1 << element for element in bits(reduce(or_, terms, 0))}


def closures(family: Iterable[Mask]) -> dict[int, Mask]:
    """Return for each element the intersection of the sets that hold it (of terms: its core)."""
    result: dict[int, Mask] = {}
    for mask in family:
        for element in bits(mask):
            result[element] = result.get(element, mask) & mask
    return dict(sorted(result.items()))


def possible_roots(family: Collection[Mask]) -> set[Mask]:
    """Return the sets of which Assumption 2 demands nothing: the closures of their elements.

    A set has a minimal cover by two or more others iff each of its elements lies in a set of the
    family that does not contain it (Lemma 1), so it has none iff it is the closure of one of its
    elements."""
    return set(closures(family).values()).intersection(family)


class SubsetIndex:
    """A family in which the sets inside a given set are found quickly."""

    def __init__(self, family: Iterable[Mask]) -> None:
        self.family = set(family)
        self._by_last: dict[int, set[Mask]] = defaultdict(set)  # largest element -> sets
        for mask in self.family:
            self._by_last[mask.bit_length() - 1].add(mask)

    def add(self, mask: Mask) -> None:
        """Add a set to the family."""
        self.family.add(mask)
        self._by_last[mask.bit_length() - 1].add(mask)

    def remove(self, mask: Mask) -> None:
        """Remove a set from the family."""
        self.family.remove(mask)
        self._by_last[mask.bit_length() - 1].remove(mask)

    def inside(self, mask: Mask) -> list[Mask]:
        """Return the proper subsets of the given set that are in the family, descending."""
        if mask.bit_count() <= 8:
            return [s for s in proper_subsets(mask) if s in self.family]
        others = chain.from_iterable(self._by_last[e] for e in bits(mask))
        return sorted((s for s in others if s & ~mask == 0 and s != mask), reverse=True)

    def pairs(self, mask: Mask) -> Iterator[Pair]:
        """Yield the pairs of other sets of the family whose union is this set, in a fixed order."""
        return ((b, a) for a, b in combinations(self.inside(mask), 2) if a | b == mask)

    def first_pair(self, mask: Mask) -> Pair | None:
        """Return the first of `pairs`, or None."""
        return next(self.pairs(mask), None)


def holds(family: Collection[Mask], terms: Iterable[Mask], assumptions: Assumptions) -> bool:
    """Return whether the family satisfies Assumptions 1, 2 (shared terms) and 3 (conventional)."""
    index, terms = SubsetIndex(family), list(terms)
    if not all(term in index.family or index.first_pair(term) for term in terms):
        return False
    if assumptions == "conventional" and not singletons(terms) <= index.family:
        return False
    roots = possible_roots(family)
    return assumptions == "terms-exclusive" or all(
        s in roots or index.first_pair(s) for s in family
    )


def decompose(
    family: Collection[Mask], terms: Iterable[Mask], assumptions: Assumptions
) -> Decomposition:
    """Return a decomposition by the family; terms use couplers of the splits where possible."""
    index, roots = SubsetIndex(family), possible_roots(family)
    splits: dict[Mask, Pair] = {}
    coupled: set[Pair] = set()

    def preferred(mask: Mask) -> Pair:
        """A coupled pair; otherwise one without overlap; otherwise the first."""
        pairs = (ordered_pair(*pair) for pair in index.pairs(mask))
        return min(pairs, key=lambda p: (p not in coupled, (p[0] & p[1]).bit_count(), p))

    for mask in in_order(family) if assumptions != "terms-exclusive" else ():
        if mask not in roots:
            a, b = splits[mask] = preferred(mask)
            coupled |= {(a, b), ordered_pair(a, mask), ordered_pair(b, mask)}
    pairs: dict[Mask, Pair] = {}
    for term in in_order(terms):
        pairs[term] = (term, term) if term in index.family else preferred(term)
        coupled.add(pairs[term])
    return Decomposition(in_order(family), splits, pairs)


def couplers(decomposition: Decomposition, penalty: Penalty) -> set[Pair]:
    """Return the pairs of sets that the model couples for some coefficients of its terms.

    Both penalties couple the pairs of terms. The tight one couples the chosen splits and nested
    roots; the signs of the coefficients may spare some of them. The paper's couples every split and
    every inclusion."""
    result = {ordered_pair(*pair) for pair in decomposition.pairs.values() if pair[0] != pair[1]}
    if penalty == "tight":
        for mask, (a, b) in decomposition.splits.items():
            result |= {ordered_pair(a, b), ordered_pair(a, mask), ordered_pair(b, mask)}
        return result | set(nested_roots(decomposition.roots))
    index = SubsetIndex(decomposition.sets)
    for mask in decomposition.sets:
        result |= {ordered_pair(*pair) for pair in index.pairs(mask)} | {
            (s, mask) for s in index.inside(mask)
        }
    return result


def nested_roots(roots: Collection[Mask]) -> list[Pair]:
    """Return the pairs (inner, outer) of nested roots without a root between them."""
    index, result = SubsetIndex(roots), []
    for outer in in_order(roots):
        inside = index.inside(outer)
        result += [(r, outer) for r in inside if not any(r & ~x == 0 and r != x for x in inside)]
    return result


class MergedTerms(NamedTuple):
    """Terms over classes of twins, which lie in the same terms; some optimum keeps them whole."""

    classes: tuple[Mask, ...]  # class -> its elements
    terms: tuple[Mask, ...]  # over classes

    def expand(self, mask: Mask) -> Mask:
        """Return the set of elements of a set of classes."""
        return sum(self.classes[e] for e in bits(mask))  # classes are disjoint


def merge_twins(terms: Sequence[Mask], assumptions: Assumptions) -> MergedTerms:
    """Merge elements that lie in the same terms, unless every element must have its singleton."""
    inside: dict[int, list[int]] = defaultdict(list)
    for number, term in enumerate(terms):
        for element in bits(term):
            inside[element].append(number)
    classes: dict[tuple[int, ...] | int, Mask] = defaultdict(int)
    for element in sorted(inside):
        classes[element if assumptions == "conventional" else tuple(inside[element])] |= (
            1 << element
        )
    merged = [0] * len(terms)
    for position, mask in enumerate(classes.values()):
        for number in inside[(mask & -mask).bit_length() - 1]:
            merged[number] |= 1 << position
    return MergedTerms(tuple(classes.values()), in_order(merged))


class SearchSpace(NamedTuple):
    """Result of the paper's Algorithm 1: sets of every smallest family, choices, open terms."""

    closed: frozenset[Mask]  # V_close: singletons only
    open_terms: tuple[Mask, ...]  # W_open
    candidates: tuple[Mask, ...]  # V_open
    cores: dict[int, Mask]  # element -> intersection of the terms that hold it
    assumptions: Assumptions


def reduce_space(terms: Sequence[Mask], assumptions: Assumptions) -> SearchSpace:
    """Return the search space of the paper's Algorithm 1.

    It has the closed sets, the terms that these do not represent, and the subsets of those terms.
    Without Assumption 2 a set inside only one open term may be replaced by that term (the paper's
    Algorithm 2, row 3)."""
    closed = closed_sets(terms, assumptions)
    open_terms = tuple(t for t in terms if t.bit_count() > 2 or not singletons([t]) <= closed)
    uses: dict[Mask, int] = defaultdict(int)
    for term in open_terms:
        for subset in proper_subsets(term):
            uses[subset] += 1
    least = 2 if assumptions == "terms-exclusive" else 1
    candidates = {s for s, number in uses.items() if number >= least}.union(open_terms) - closed
    return SearchSpace(
        frozenset(closed), open_terms, in_order(candidates), closures(terms), assumptions
    )


def closed_sets(terms: Sequence[Mask], assumptions: Assumptions) -> set[Mask]:
    """Return sets of every smallest family: row 2 of the paper's Algorithm 1, by its text.

    A term of two or more elements has a second representation by its open subsets, so row 2 closes
    the singletons among the terms. Assumption 2 also requires {e} if the core of e is {e} and e is
    in no other core (Lemma 3); Assumption 3 requires every singleton."""
    if assumptions == "conventional":
        return singletons(terms)
    closed = {term for term in terms if term.bit_count() == 1}
    if assumptions == "general":
        cores = closures(terms)
        nested = reduce(or_, (core & ~(1 << e) for e, core in cores.items()), 0)
        closed |= {1 << e for e, core in cores.items() if core == 1 << e and not nested >> e & 1}
    return closed


def pairs_estimate(terms: Iterable[Mask]) -> int:
    """Return about how many pairs the integer program has: 3^k / 2 for k elements of a term."""
    return sum(4 ** term.bit_count() // 2 for term in terms)


def simple_bound(terms: Sequence[Mask], assumptions: Assumptions) -> int:
    """Return a lower bound of the number of sets: by counting, or closed sets and products.

    A term of k closed elements is built from singletons by k - 1 unions of two, if every set splits
    down to them. Only the last, the term itself, need not be in the family. Terms of three
    elements: `triangle_bound`."""
    closed, products = closed_sets(terms, assumptions), 0
    if assumptions != "terms-exclusive":
        products = max((t.bit_count() - 2 for t in terms if singletons([t]) <= closed), default=0)
        elements = {mask.bit_length() - 1 for mask in closed if mask.bit_count() == 1}
        products = max(products, triangle_bound([t for t in terms if t.bit_count() == 3], elements))
    return max(counting_bound(len(terms)), len(closed) + max(products, 0))


def triangle_bound(triples: Iterable[Mask], elements: Collection[int]) -> int:
    """Return a lower bound on the number of pairs in the family, if it holds the singletons.

    Each term of three such elements has a pair of the family inside it. So the other pairs of s
    elements are a graph whose triangles are *gaps*, triples that are not terms. If no pair lies in
    two gaps, it has s^2 / 4 edges at most; with g gaps it has (s^2 + sqrt(s^4 + 48 s g)) / 8 at
    most (docs/quadratization.md). The elements shrink by the one in the most gaps, and the best
    bound counts."""
    known = [t for t in triples if all(e in elements for e in bits(t))]
    uses = Counter(e for t in known for e in bits(t))
    place = {e: number for number, (e, _) in enumerate(uses.most_common(MOST_IN_TRIANGLES))}
    size = len(place)
    distinct = ~np.eye(size, dtype=np.bool_)
    gaps = distinct[:, :, None] & distinct[:, None, :] & distinct[None, :, :]
    for term in known:
        inside = [place[e] for e in bits(term) if e in place]
        if len(inside) == 3:
            for order in permutations(inside):
                gaps[order] = False
    per_pair = gaps.sum(axis=2)
    best = 0
    for kept in range(size, 3, -1):
        number = int(per_pair.sum()) // 6
        edges = (kept**2 + math.isqrt(kept**4 + 48 * kept * number)) // 8
        if per_pair.max() <= 1:
            edges = kept**2 // 4
        best = max(best, kept * (kept - 1) // 2 - edges)
        if number == 0:
            break
        worst = int(per_pair.sum(axis=1).argmax())
        per_pair = per_pair - gaps[:, :, worst]
        per_pair[worst] = 0
        per_pair[:, worst] = 0
        gaps[worst] = False
        gaps[:, worst] = False
        gaps[:, :, worst] = False
    return best
