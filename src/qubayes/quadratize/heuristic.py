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
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import combinations
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

# terms up to this degree offer all their shared subsets to the local search, longer ones what
# merging found
SHORT = 6
OPTIONS = 600_000  # options of all rows of the local search, at most
# steps of local search at most, STEPS_PER_SET for each set; not a time, so that results can be
# repeated
STEPS = 40_000
STEPS_PER_SET = 400
# work of merging with other ties; the local search combines what several runs found
MERGES = 300_000
MERGES_LONG = 3_000_000  # with long terms, where merging decides
RUNS = 40
COMBINED = 6  # best runs that are offered to the local search
COLOURINGS = 1024  # parity colourings that are compared, beside those of a basis
GROWN = 10_000  # terms of degree three or four, at most, for the growth start: some seconds
# of the growth start: a seed that is not optimal spreads its faults
SEED_VARIABLES, SEED_STEPS = 10, 20_000
GROWTH = 1.1  # factor by which the variables grow, three at least


def quick_family(terms: Sequence[Mask], assumptions: Assumptions) -> set[Mask]:
    """Return a family that satisfies the assumptions: the smaller of the merge start and the parity start, pruned."""
    starts = [
        merge_frequent(terms),
        parity_pairs(terms) if assumptions != "terms-exclusive" else None,
    ]
    families = [
        prune(singletons(terms) | start, terms, assumptions)
        for start in starts
        if start is not None
    ]
    return min(families, key=len)


def searched_family(terms: Sequence[Mask], assumptions: Assumptions, enough: int = 0) -> set[Mask]:
    """Return the smallest family found from all starts; stop at a family of at most `enough` sets."""
    best: set[Mask] | None = None
    for family in _families(terms, assumptions):
        if best is None or len(family) < len(best):
            best = family
        if len(best) <= enough:
            break
    return best or set()


def _families(terms: Sequence[Mask], assumptions: Assumptions) -> Iterator[set[Mask]]:
    """Yield families that satisfy the assumptions, the cheapest start first."""
    short = assumptions != "terms-exclusive" and all(t.bit_count() <= 4 for t in terms)
    parity = parity_pairs(terms) if short else None
    if parity is not None:
        yield singletons(terms) | parity
    work = sum(t.bit_count() ** 3 for t in terms) // 2 + 1
    allowed = MERGES if all(t.bit_count() <= SHORT for t in terms) else MERGES_LONG
    runs = range(min(RUNS, max(1, allowed // work)))
    merged = sorted((merge_frequent(terms, run) for run in runs), key=len)[:COMBINED]
    family = singletons(terms) | merged[0]
    if assumptions == "terms-exclusive":
        family = prune(family, terms, assumptions)
    problem = choice_problem(terms, set().union(family, *merged), assumptions)
    yield prune(family if problem is None else problem.improved(family), terms, assumptions)
    if parity is not None:
        family = singletons(terms) | parity
        yield prune(family if problem is None else problem.improved(family), terms, assumptions)
    if short and problem is not None and sum(t.bit_count() > 2 for t in terms) <= GROWN:
        yield prune(
            problem.improved(singletons(terms) | grown_products(terms, assumptions)),
            terms,
            assumptions,
        )


def parity_pairs(terms: Iterable[Mask]) -> set[Mask] | None:
    """Return the fewest pairs of one colour inside terms, over parity colourings; None if there are none to compare.

    In a parity colouring each term of degree four has an even number of variables of either colour.
    So it splits into two pairs of one colour, and of three variables two have the same colour. Such
    colourings are the null space of the terms over GF(2); with no such term they are all
    colourings."""
    terms = [t for t in terms if t.bit_count() > 2]
    if any(t.bit_count() > 4 for t in terms):
        return None
    elements = sorted({e for t in terms for e in bits(t)})
    pivots: dict[int, Mask] = {}  # leading element -> row of the echelon form
    for row in terms:
        reduced = row if row.bit_count() == 4 else 0
        while reduced and reduced.bit_length() - 1 in pivots:
            reduced ^= pivots[reduced.bit_length() - 1]
        if reduced:
            pivots[reduced.bit_length() - 1] = reduced
    basis = []
    for free in (e for e in elements if e not in pivots):
        colouring = 1 << free
        for lead in sorted(pivots):
            colouring |= ((pivots[lead] & colouring).bit_count() & 1) << lead
        basis.append([colouring >> e & 1 for e in range(elements[-1] + 1)])
    pairs = sorted({(a, b) for t in terms for a, b in combinations(bits(t), 2)})
    if len(basis) < 2 or not pairs:
        return None
    vectors, ends = np.array(basis), np.array(pairs).T
    mixes = np.random.default_rng(0).integers(0, 2, (COLOURINGS, len(basis)))
    colourings = (np.vstack([np.eye(len(basis), dtype=np.int64), mixes]) @ vectors) % 2
    alike: list[Bools] = [own[ends[0]] == own[ends[1]] for own in colourings]
    best = min(alike, key=np.count_nonzero)
    return {1 << a | 1 << b for (a, b), same in zip(pairs, best.tolist(), strict=True) if same}


def grown_products(terms: Sequence[Mask], assumptions: Assumptions) -> set[Mask]:
    """Return products for terms of degree four or less by a search that takes in the variables a few at a time."""
    terms = [t for t in terms if t.bit_count() > 2]
    order = _growth_order(terms)
    kept, size, chosen = 0, 0, set[Mask]()
    while size < len(order):
        old, size = kept, max(SEED_VARIABLES, size + 3, int(size * GROWTH))
        kept = sum(1 << e for e in order[:size])
        inside = [t for t in terms if t & ~kept == 0]
        problem = choice_problem(inside, chosen, assumptions)
        if problem is not None:
            new = {s for s in problem.sets if s.bit_count() == 2 and s & ~old}
            steps = max(20 * len(new), 2_000 if old else SEED_STEPS)
            chosen = problem.improved(chosen | new, steps) - problem.closed
    return chosen


def _growth_order(terms: Sequence[Mask]) -> list[int]:
    """Return the variables: next the one that completes the most terms with those before it, of equals nearly so."""
    inside: dict[int, list[int]] = defaultdict(list)
    for number, term in enumerate(terms):
        for element in bits(term):
            inside[element].append(number)
    missing, order = list(terms), list[int]()
    last, nearly = (
        Counter[int](),
        Counter[int]({element: len(own) for element, own in inside.items()}),
    )
    while len(order) < len(inside):
        chosen = max(inside.keys() - set(order), key=lambda e: (last[e], nearly[e], -e))
        order.append(chosen)
        for number in inside[chosen]:
            missing[number] &= ~(1 << chosen)
            left = missing[number]
            if left.bit_count() == 1:
                last[left.bit_length() - 1] += 1
            elif left.bit_count() == 2:
                nearly.update({e: len(terms) for e in bits(left)})
    return order


def merge_frequent(terms: Iterable[Mask], run: int = 0) -> set[Mask]:
    """Return products from repeatedly replacing the pair of factors that most terms share by one factor.

    Ties go to the smaller pair in run 0, to a pair drawn with the run's number in other runs.
    """
    draw = random.Random(run)
    factors = {
        number: singletons([term]) for number, term in enumerate(terms) if term.bit_count() > 2
    }
    users: dict[Pair, set[int]] = defaultdict(set)
    for number, parts in factors.items():
        for pair in combinations(sorted(parts), 2):
            users[pair].add(number)
    heap = [(-len(numbers), draw.random() if run else 0.0, pair) for pair, numbers in users.items()]
    heapq.heapify(heap)
    products: set[Mask] = set()
    while heap:
        count, tie, pair = heapq.heappop(heap)
        if -count != len(users[pair]):
            if users[pair]:
                heapq.heappush(heap, (-len(users[pair]), tie, pair))
            continue
        product = pair[0] | pair[1]
        products.add(product)
        touched: set[Pair] = set()
        for number in sorted(users[pair]):
            parts = factors[number]
            for old in combinations(sorted(parts), 2):
                users[old].discard(number)
            parts ^= {*pair, product}
            for new in combinations(sorted(parts), 2) if len(parts) > 2 else ():
                users[new].add(number)
                if product in new:
                    touched.add(new)
        for other in sorted(touched):
            heapq.heappush(heap, (-len(users[other]), draw.random() if run else 0.0, other))
    return products


class ChoiceProblem(NamedTuple):
    """The choice of sets beside the closed ones."""

    sets: tuple[Mask, ...]
    closed: set[Mask]
    rows: OptionRows

    def improved(self, family: Collection[Mask], steps: int | None = None) -> set[Mask]:
        """Return a family that satisfies all rows, with no more sets than the given one with its gaps filled."""
        rows, start = self.rows, np.array([s in family for s in self.sets], dtype=np.bool_)
        complete = start[rows.first] & ((rows.second < 0) | start[rows.second])
        gaps = (np.add.reduceat(complete, rows.start[:-1]) == 0) & (rows.guard < 0)
        filling = rows.start[1:][gaps] - 1  # the last option: of a term of degree four two pairs
        start[rows.first[filling]] = True
        start[rows.second[filling][rows.second[filling] >= 0]] = True
        best = improve(
            rows, start, min(STEPS, STEPS_PER_SET * len(start)) if steps is None else steps
        )
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
    uses: dict[Mask, int] = defaultdict(int)
    for term in required:
        for subset in proper_subsets(term) if term.bit_count() <= SHORT else ():
            uses[subset] += 1
    shared = {
        s for s, number in uses.items() if number > 1 or (s.bit_count() == 2 and not exclusive)
    }
    index = SubsetIndex((shared | known | (set(required) if exclusive else set())) - closed)
    sets = in_order(index.family)
    place = {s: i for i, s in enumerate(sets)}
    guarded = [(s, place[s]) for s in sets if s.bit_count() > 2 and not exclusive]
    start, guard, first, second = [0], list[int](), list[int](), list[int]()
    for mask, its_guard in [(t, -1) for t in required] + guarded:
        found = representations(mask, closed, index.inside(mask))
        single = [*found.single, *([mask] if exclusive else [])]
        first += [place[s] for s in single] + [place[a] for a, _ in found.pairs]
        second += [-1] * len(single) + [place[b] for _, b in found.pairs]
        start.append(len(first))
        guard.append(its_guard)
        if len(first) > OPTIONS:
            return None
    rows = OptionRows(
        *(np.array(values, dtype=np.int64) for values in (start, guard, first, second))
    )
    return ChoiceProblem(sets, closed, rows) if required else None


def prune(family: Collection[Mask], terms: Sequence[Mask], assumptions: Assumptions) -> set[Mask]:
    """Return the family without sets that can be removed one by one while the assumptions hold, until none can.

    Larger sets are tried first; where singletons may go too, also smaller ones first, and the
    smaller result is kept."""
    kept = closed_sets(terms, assumptions)
    order = [s for s in in_order(family) if s not in kept]
    orders = [order[::-1], order] if any(s.bit_count() == 1 for s in order) else [order[::-1]]
    results = []
    for sequence in orders:
        pruning, before = _Pruning(family, terms, assumptions), -1
        while before != len(sequence):  # a set may be free once another has become a root
            before = len(sequence)
            for mask in sequence:
                pruning.try_without(mask)
            sequence = [mask for mask in sequence if mask in pruning.index.family]
        results.append(pruning.index.family)
    return min(results, key=len)


class _Pruning:
    """A family with a representation of each term and split, so that only the users of a removed set are examined."""

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
