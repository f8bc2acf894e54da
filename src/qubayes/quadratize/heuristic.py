"""Small families without a proof: several starts, each improved by local search and pruned.

- merge: the pair of factors that most terms share becomes one factor, again and again;
- parity: a colouring of the variables by two colours, with an even number of either in each term of
  degree four, solves linear equations over GF(2); the pairs of one colour represent every term of
  degree three and four;
- growth: the search runs on the terms inside a few variables, then takes in more variables, those
  that complete most terms first: the pattern of the first ones spreads.
"""

import heapq
import random
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import chain, combinations
from operator import or_
from typing import NamedTuple

import numpy as np

from ..foundation.arrays import Bools
from .decomposition import (
    Assumptions,
    Mask,
    Pair,
    SubsetIndex,
    bits,
    closed_sets,
    closures,
    in_order,
    possible_roots,
    proper_subsets,
    singletons,
)
from .integer_program import representations
from .local_search import OptionRows, improve

# Terms up to this degree offer all their shared subsets to the local search, longer ones what
# merging found.
SHORT = 6
MOST_OPTIONS = 600_000  # options of all rows of the local search
# Steps of local search, not a time, so that results can be repeated.
MOST_STEPS = 40_000
STEPS_PER_SET = 400
# Work of merging with other ties; the local search combines what several runs found.
MERGES = 300_000
MERGES_LONG = 3_000_000  # with long terms, where merging decides
RUNS = 40
COMBINED = 6  # best runs that are offered to the local search
COLOURINGS = 1024  # parity colourings that are compared, beside those of a basis
MOST_TERMS_TO_GROW = (
    10_000  # terms of degree three or four, at most, for the growth start: some seconds
)
# Of the growth start: a seed that is not optimal spreads its faults.
SEED_VARIABLES = 10
SEED_STEPS = 20_000
GROWTH_FACTOR = 1.1  # by which the variables grow, three at least


def quick_family(terms: Sequence[Mask], assumptions: Assumptions) -> set[Mask]:
    """Return the smaller of two pruned families: of the merge start and of the parity start."""
    starts = [merge_frequent(terms)]
    parity = parity_pairs(terms) if assumptions != "terms-exclusive" else None
    if parity is not None:
        starts.append(parity)
    return min((prune(singletons(terms) | start, terms, assumptions) for start in starts), key=len)


def searched_family(terms: Sequence[Mask], assumptions: Assumptions, enough: int = 0) -> set[Mask]:
    """Return the smallest family found from all starts; stop at one of at most `enough` sets."""
    return smallest_of(_families(terms, assumptions), enough)


def smallest_of(families: Iterable[set[Mask]], enough: int = 0) -> set[Mask]:
    """Return the first of the smallest families; stop at one of at most `enough` sets."""
    best: set[Mask] | None = None
    for family in families:
        if best is None or len(family) < len(best):
            best = family
        if len(best) <= enough:
            break
    return best or set()


def _families(terms: Sequence[Mask], assumptions: Assumptions) -> Iterator[set[Mask]]:
    """Yield families that satisfy the assumptions, the cheapest start first."""
    exclusive = assumptions == "terms-exclusive"
    short = not exclusive and _longest(terms) <= 4
    parity = parity_pairs(terms) if short else None
    if parity is not None:
        yield singletons(terms) | parity
    merged = _merge_runs(terms)
    family = singletons(terms) | merged[0]
    if exclusive:
        family = prune(family, terms, assumptions)
    problem = choice_problem(terms, set().union(family, *merged), assumptions)
    starts = [family] if parity is None else [family, singletons(terms) | parity]
    for start in starts:
        yield prune(start if problem is None else problem.improved(start), terms, assumptions)
    if (
        short
        and problem is not None
        and sum(t.bit_count() > 2 for t in terms) <= MOST_TERMS_TO_GROW
    ):
        start = singletons(terms) | grown_products(terms, assumptions)
        yield prune(problem.improved(start), terms, assumptions)


def _longest(terms: Iterable[Mask]) -> int:
    """Return the degree of the longest term."""
    return max((t.bit_count() for t in terms), default=0)


def _merge_runs(terms: Sequence[Mask]) -> list[set[Mask]]:
    """Return the products of the best of several runs of merging, the fewest first."""
    work = sum(t.bit_count() ** 3 for t in terms) // 2 + 1
    allowed = MERGES if _longest(terms) <= SHORT else MERGES_LONG
    runs = range(min(RUNS, max(1, allowed // work)))
    return sorted((merge_frequent(terms, run) for run in runs), key=len)[:COMBINED]


def parity_pairs(terms: Iterable[Mask]) -> set[Mask] | None:
    """Return the fewest pairs of one colour inside terms, over parity colourings.

    None if there are none to compare.

    In a parity colouring each term of degree four has an even number of variables of either colour.
    So it splits into two pairs of one colour, and of three variables two have the same colour."""
    terms = [t for t in terms if t.bit_count() > 2]
    if _longest(terms) > 4:
        return None
    basis = _colouring_basis(terms)
    pairs = sorted(set(chain.from_iterable(combinations(bits(t), 2) for t in terms)))
    if len(basis) < 2 or not pairs:
        return None
    mixes = np.random.default_rng(0).integers(0, 2, (COLOURINGS, len(basis)))
    colourings = (np.vstack([np.eye(len(basis), dtype=np.int64), mixes]) @ np.array(basis)) % 2
    first, second = np.array(pairs).T
    alike: list[Bools] = [colours[first] == colours[second] for colours in colourings]
    best = min(alike, key=np.count_nonzero)
    return {1 << a | 1 << b for (a, b), same in zip(pairs, best.tolist(), strict=True) if same}


def _colouring_basis(terms: Sequence[Mask]) -> list[list[int]]:
    """Return a basis of the parity colourings, each as the colour of every element.

    They are the null space of the terms of degree four over GF(2); without such terms they are all
    colourings."""
    pivots: dict[int, Mask] = {}  # leading element -> row of the echelon form
    for row in terms:
        reduced = row if row.bit_count() == 4 else 0
        while reduced and reduced.bit_length() - 1 in pivots:
            reduced ^= pivots[reduced.bit_length() - 1]
        if reduced:
            pivots[reduced.bit_length() - 1] = reduced
    elements = list(bits(reduce(or_, terms, 0)))
    basis = []
    for free in elements:
        if free not in pivots:
            colouring = 1 << free
            for lead in sorted(pivots):
                colouring |= ((pivots[lead] & colouring).bit_count() & 1) << lead
            basis.append([colouring >> e & 1 for e in range(elements[-1] + 1)])
    return basis


def grown_products(terms: Sequence[Mask], assumptions: Assumptions) -> set[Mask]:
    """Return products for terms of degree four or less, searched for few variables at a time."""
    terms = [t for t in terms if t.bit_count() > 2]
    order = _growth_order(terms)
    kept = 0
    size = 0
    chosen = set[Mask]()
    while size < len(order):
        old = kept
        size = max(SEED_VARIABLES, size + 3, int(size * GROWTH_FACTOR))
        kept = sum(1 << e for e in order[:size])
        inside = [t for t in terms if t & ~kept == 0]
        problem = choice_problem(inside, chosen, assumptions)
        if problem is not None:
            new = {s for s in problem.sets if s.bit_count() == 2 and s & ~old}
            steps = max(20 * len(new), 2_000 if old else SEED_STEPS)
            chosen = problem.improved(chosen | new, steps) - problem.closed
    return chosen


def _growth_order(terms: Sequence[Mask]) -> list[int]:
    """Return the variables: next the one that completes the most terms with those before it.

    Of equals, the one that nearly completes the most."""
    inside: dict[int, list[int]] = defaultdict(list)
    for number, term in enumerate(terms):
        for element in bits(term):
            inside[element].append(number)
    missing = list(terms)
    last = Counter[int]()
    nearly = Counter({element: len(own) for element, own in inside.items()})
    order: list[int] = []
    while len(order) < len(inside):
        chosen = max(inside.keys() - set(order), key=lambda e: (last[e], nearly[e], -e))
        order.append(chosen)
        for number in inside[chosen]:
            missing[number] &= ~(1 << chosen)
            left = missing[number]
            if left.bit_count() == 1:
                last[left.bit_length() - 1] += 1
            elif left.bit_count() == 2:
                nearly.update(dict.fromkeys(bits(left), len(terms)))
    return order


def merge_frequent(terms: Iterable[Mask], run: int = 0) -> set[Mask]:
    """Return products from repeatedly replacing the pair of factors that most terms share.

    Ties go to the smaller pair in run 0, to a pair drawn with the run's number in other runs.
    """
    draw = random.Random(run)
    merging = _Merging(terms)
    heap = [
        (-len(numbers), draw.random() if run else 0.0, pair)
        for pair, numbers in merging.users.items()
    ]
    heapq.heapify(heap)
    products: set[Mask] = set()
    while heap:
        count, tie, pair = heapq.heappop(heap)
        uses = len(merging.users[pair])
        if uses != -count:  # terms that used the pair have merged one of its factors since
            if uses:
                heapq.heappush(heap, (-uses, tie, pair))
            continue
        products.add(pair[0] | pair[1])
        for other in merging.merge(pair):
            uses = len(merging.users[other])
            heapq.heappush(heap, (-uses, draw.random() if run else 0.0, other))
    return products


class _Merging:
    """The factors of each term, and the terms that use each pair of factors."""

    def __init__(self, terms: Iterable[Mask]) -> None:
        self.factors: dict[int, set[Mask]] = {}
        self.users: dict[Pair, set[int]] = defaultdict(set)
        for number, term in enumerate(terms):
            if term.bit_count() > 2:
                self.factors[number] = singletons([term])
                self._count(number)

    def _count(self, number: int) -> None:
        for pair in combinations(sorted(self.factors[number]), 2):
            self.users[pair].add(number)

    def merge(self, pair: Pair) -> list[Pair]:
        """Replace the pair by its product in all terms that use it; return the pairs with it."""
        product = pair[0] | pair[1]
        touched: set[Pair] = set()
        for number in sorted(self.users[pair]):
            parts = self.factors[number]
            for old in combinations(sorted(parts), 2):
                self.users[old].discard(number)
            parts ^= {*pair, product}
            if len(parts) > 2:
                self._count(number)
                touched |= {(min(part, product), max(part, product)) for part in parts - {product}}
        return sorted(touched)


class ChoiceProblem(NamedTuple):
    """The choice of sets beside the closed ones."""

    sets: tuple[Mask, ...]
    closed: set[Mask]
    rows: OptionRows

    def improved(self, family: Collection[Mask], steps: int | None = None) -> set[Mask]:
        """Return a family that satisfies all rows; at most as large as the given, gaps filled."""
        rows = self.rows
        start = np.array([s in family for s in self.sets], dtype=np.bool_)
        complete = start[rows.first] & ((rows.second < 0) | start[rows.second])
        gaps = (np.add.reduceat(complete, rows.start[:-1]) == 0) & (rows.guard < 0)
        filling = rows.start[1:][gaps] - 1  # the last option: of a term of degree four two pairs
        second = rows.second[filling]
        start[rows.first[filling]] = True
        start[second[second >= 0]] = True
        if steps is None:
            steps = min(MOST_STEPS, STEPS_PER_SET * len(start))
        best = improve(rows, start, steps)
        return self.closed | {s for s, taken in zip(self.sets, best, strict=True) if taken}


def choice_problem(
    terms: Sequence[Mask], known: set[Mask], assumptions: Assumptions
) -> ChoiceProblem | None:
    """Return the problem of the local search; None if it has no rows or too many options.

    With Assumption 2 all singletons are closed, each product is a row that its own choice requires,
    and a set that one term alone could use is not better than a pair. Without it, only the
    singletons among the terms are closed, and a term may be in the family itself."""
    exclusive = assumptions == "terms-exclusive"
    closed = closed_sets(terms, assumptions) if exclusive else singletons(terms)
    required = [t for t in terms if t.bit_count() > 2 or not singletons([t]) <= closed]
    if not required:
        return None
    offered = known | _shared_subsets(required, with_pairs=not exclusive)
    if exclusive:
        offered |= set(required)
    index = SubsetIndex(offered - closed)
    sets = in_order(index.family)
    place = {s: i for i, s in enumerate(sets)}
    guards = [(t, -1) for t in required]
    if not exclusive:
        guards += [(s, place[s]) for s in sets if s.bit_count() > 2]
    rows = _RowLists(place)
    for mask, guard in guards:
        found = representations(mask, closed, index.inside(mask))
        itself = [mask] if exclusive else []
        rows.add([*found.single, *itself], found.pairs, guard)
        if len(rows.first) > MOST_OPTIONS:
            return None
    return ChoiceProblem(sets, closed, rows.as_arrays())


def _shared_subsets(terms: Iterable[Mask], *, with_pairs: bool) -> set[Mask]:
    """Return the proper subsets of two or more short terms; and, if wanted, the pairs of one."""
    uses: dict[Mask, int] = defaultdict(int)
    for term in terms:
        if term.bit_count() <= SHORT:
            for subset in proper_subsets(term):
                uses[subset] += 1
    return {s for s, count in uses.items() if count > 1 or (with_pairs and s.bit_count() == 2)}


class _RowLists:
    """The rows of a choice problem as they are collected; see `OptionRows`."""

    def __init__(self, place: Mapping[Mask, int]) -> None:
        self._place = place
        self.start = [0]
        self.guard: list[int] = []
        self.first: list[int] = []
        self.second: list[int] = []

    def add(self, single: Sequence[Mask], pairs: Sequence[Pair], guard: int) -> None:
        """Add a row with these options."""
        self.first += [self._place[s] for s in single]
        self.second += [-1] * len(single)
        self.first += [self._place[a] for a, _ in pairs]
        self.second += [self._place[b] for _, b in pairs]
        self.start.append(len(self.first))
        self.guard.append(guard)

    def as_arrays(self) -> OptionRows:
        """Return the rows for the local search."""
        lists = (self.start, self.guard, self.first, self.second)
        return OptionRows(*(np.array(values, dtype=np.int64) for values in lists))


def prune(family: Collection[Mask], terms: Sequence[Mask], assumptions: Assumptions) -> set[Mask]:
    """Return the family without sets that can be removed one by one while the assumptions hold.

    Larger sets are tried first; where singletons may go too, also smaller ones first, and the
    smaller result is kept."""
    kept = closed_sets(terms, assumptions)
    order = [s for s in in_order(family) if s not in kept]
    orders = [order[::-1], order] if any(s.bit_count() == 1 for s in order) else [order[::-1]]
    results = []
    for sequence in orders:
        pruning = _Pruning(family, terms, assumptions)
        before = -1
        while before != len(sequence):  # a set may be free once another has become a root
            before = len(sequence)
            for mask in sequence:
                pruning.try_without(mask)
            sequence = [mask for mask in sequence if mask in pruning.index.family]
        results.append(pruning.index.family)
    return min(results, key=len)


class _Pruning:
    """A family with a representation of each term and set, and the users of each set."""

    def __init__(
        self, family: Collection[Mask], terms: Sequence[Mask], assumptions: Assumptions
    ) -> None:
        self.index = SubsetIndex(family)
        self.terms = set(terms)
        self.splitting = assumptions != "terms-exclusive"
        self.chosen: dict[Mask, Pair | None] = {}
        self.users: dict[Mask, set[Mask]] = defaultdict(set)
        roots = possible_roots(family)
        for mask in {*self.terms, *(family if self.splitting else ())}:
            needs_pair = mask not in roots and (self.splitting or mask not in self.index.family)
            self._use(mask, self.index.first_pair(mask) if needs_pair else None)

    def _use(self, mask: Mask, pair: Pair | None) -> None:
        for part in self.chosen.get(mask) or ():
            self.users[part].discard(mask)
        self.chosen[mask] = pair
        for part in pair or ():
            self.users[part].add(mask)

    def try_without(self, mask: Mask) -> None:
        """Remove the set if all its users, and the term that it is, have another representation."""
        self.index.remove(mask)
        changed: dict[Mask, Pair | None] = {}
        for user in sorted(self.users[mask]) + ([mask] if mask in self.terms else []):
            pair = self.index.first_pair(user)
            if pair is None:
                stays = self.splitting and user in self.index.family
                # not a root
                if not (
                    stays and user in closures(s for s in self.index.family if s & user).values()
                ):
                    self.index.add(mask)
                    return
            changed[user] = pair
        for user, pair in changed.items():
            self._use(user, pair)
        if mask not in self.terms:
            self._use(mask, None)
