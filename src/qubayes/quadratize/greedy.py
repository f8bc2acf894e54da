"""Small families without a proof: merge the commonest pair, improve by local search, drop what is not needed."""

import heapq
import random
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..foundation.arrays import Ints
from .family import Assumptions, Mask, Pair, Subsets, bits, closures, in_order, possible_roots, proper_subsets
from .program import ways
from .reduction import closed_sets

if TYPE_CHECKING:
    from .local_search import Rows

SHORT = 6  # terms up to this degree offer all their shared subsets to the local search, longer ones what merging found
OPTIONS = 600_000  # of all rows of the local search
STEPS = (
    40_000  # of local search at most, and STEPS_PER_SET for each set; a number, not a time: the same result everywhere
)
STEPS_PER_SET = 400
MERGES = 300_000  # work spent on merging with other ties: what several runs found is combined by the local search
MERGES_LONG = 3_000_000  # with long terms, where merging decides
RUNS = 40
COMBINED = 6  # the best runs, offered to the local search


def quick_family(terms: Sequence[Mask], assumptions: Assumptions) -> set[Mask]:
    """A family that satisfies what is assumed: all singletons and products of two, pruned."""
    return prune(_singletons(terms) | merge_commonest(terms), terms, assumptions)


def searched_family(terms: Sequence[Mask], assumptions: Assumptions) -> set[Mask]:
    """A family that satisfies what is assumed, improved by local search unless there is too much to search."""
    work = sum(t.bit_count() ** 3 for t in terms) // 2 + 1
    allowed = MERGES if all(t.bit_count() <= SHORT for t in terms) else MERGES_LONG
    runs = range(min(RUNS, max(1, allowed // work)))
    merged = sorted((merge_commonest(terms, run) for run in runs), key=len)[:COMBINED]
    family = _singletons(terms) | merged[0]
    if assumptions == "terms-exclusive":
        family = prune(family, terms, assumptions)
    problem = _problem(terms, set().union(family, *merged), assumptions)
    if problem is not None:
        from .local_search import improve  # numba: seconds where it is not needed

        start = np.array([s in family for s in problem.sets], dtype=np.bool_)
        best = improve(problem.rows, start, min(STEPS, STEPS_PER_SET * len(start)))
        family = problem.closed | {s for s, taken in zip(problem.sets, best, strict=True) if taken}
    return prune(family, terms, assumptions)


def _singletons(terms: Iterable[Mask]) -> set[Mask]:
    return {1 << e for term in terms for e in bits(term)}


def merge_commonest(terms: Iterable[Mask], run: int = 0) -> set[Mask]:
    """Products from replacing, again and again, the pair of factors that most terms share by one factor.

    Ties fall to the smaller pair in run 0, to pairs drawn with the run's number otherwise.
    """
    draw = random.Random(run)
    factors = {number: {1 << e for e in bits(term)} for number, term in enumerate(terms) if term.bit_count() > 2}
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
        products.add(pair[0] | pair[1])
        touched = {p for number in sorted(users[pair]) for p in _merge(factors[number], pair, number, users)}
        for other in sorted(touched):
            heapq.heappush(heap, (-len(users[other]), draw.random() if run else 0.0, other))
    return products


def _merge(parts: set[Mask], pair: Pair, number: int, users: dict[Pair, set[int]]) -> list[Pair]:
    """Replace the pair by its product in one term; the pairs that the term has now and had not before."""
    for old in combinations(sorted(parts), 2):
        users[old].discard(number)
    parts -= set(pair)
    parts.add(pair[0] | pair[1])
    if len(parts) <= 2:
        return []
    now = list(combinations(sorted(parts), 2))
    for new in now:
        users[new].add(number)
    return [p for p in now if pair[0] | pair[1] in p]


class Problem(NamedTuple):
    """The choice of sets beside the closed ones, as rows that each ask for one of several sets or pairs."""

    sets: tuple[Mask, ...]
    closed: set[Mask]
    rows: "Rows"


def _problem(terms: Sequence[Mask], known: set[Mask], assumptions: Assumptions) -> Problem | None:
    """The rows of the search; None if there is nothing to search or too much.

    With Assumption 2 all singletons are closed, a product is a row as well (guarded by itself), and what one term
    alone could use is no better than a pair. Without it, only the singletons among the terms are closed and a term
    may stand for itself.
    """
    from .local_search import Rows

    exclusive = assumptions == "terms-exclusive"
    closed = closed_sets(terms, assumptions) if exclusive else _singletons(terms)
    asking = [t for t in terms if t.bit_count() > 2 or not all(1 << e in closed for e in bits(t))]
    offered = Subsets((_shared(asking, exclusive) | known | (set(asking) if exclusive else set())) - closed)
    sets = in_order(offered.family)
    place = {s: i for i, s in enumerate(sets)}
    guards, first, second, starts = [], [], [], [0]
    for mask, guard in [(t, -1) for t in asking] + [(s, place[s]) for s in sets if s.bit_count() > 2 and not exclusive]:
        found = ways(mask, closed, offered.inside(mask))
        alone = [*found.with_closed, *([mask] if exclusive else [])]
        first += [place[s] for s in alone] + [place[a] for a, _ in found.pairs]
        second += [-1] * len(alone) + [place[b] for _, b in found.pairs]
        starts.append(len(first))
        guards.append(guard)
        if len(first) > OPTIONS:
            return None
    return Problem(sets, closed, Rows(_ints(starts), _ints(guards), _ints(first), _ints(second))) if asking else None


def _shared(terms: Sequence[Mask], exclusive: bool) -> set[Mask]:
    """Subsets that short terms share, and their pairs unless terms are exclusive."""
    uses: dict[Mask, int] = defaultdict(int)
    for term in terms:
        for subset in proper_subsets(term) if term.bit_count() <= SHORT else ():
            uses[subset] += 1
    return {s for s, number in uses.items() if number > 1 or (s.bit_count() == 2 and not exclusive)}


def _ints(values: list[int]) -> Ints:
    return np.array(values, dtype=np.int64)


def prune(family: Collection[Mask], terms: Sequence[Mask], assumptions: Assumptions) -> set[Mask]:
    """The family without the sets that can go one after another with what is assumed still true.

    Larger sets go first; where singletons may go as well, smaller first is tried too and the smaller result is kept.
    """
    kept = closed_sets(terms, assumptions)
    order = [s for s in in_order(family) if s not in kept]
    result = _pruned(family, terms, assumptions, order[::-1])
    if any(s.bit_count() == 1 for s in order):
        result = min(result, _pruned(family, terms, assumptions, order), key=len)
    return result


def _pruned(
    family: Collection[Mask], terms: Sequence[Mask], assumptions: Assumptions, order: Sequence[Mask]
) -> set[Mask]:
    pruning = _Pruning(family, terms, assumptions)
    for mask in order:
        pruning.try_without(mask)
    return pruning.subsets.family


class _Pruning:
    """Remembers a representation of every term and split, so that only those that use a set are looked at when it
    goes.
    """

    def __init__(self, family: Collection[Mask], terms: Sequence[Mask], assumptions: Assumptions) -> None:
        self.subsets = Subsets(family)
        self.terms = set(terms)
        self.splitting = assumptions != "terms-exclusive"
        self.chosen: dict[Mask, Pair | None] = {}
        self.users: dict[Mask, set[Mask]] = defaultdict(set)
        roots = possible_roots(family)
        for mask in {*self.terms, *(family if self.splitting else ())}:
            self._use(mask, None if mask in roots or not self._asks(mask) else self.subsets.first_pair(mask))

    def _asks(self, mask: Mask) -> bool:
        """Whether the set needs a pair: a term outside the family, or a set of the family under Assumption 2."""
        return (self.splitting and mask in self.subsets.family) or (
            mask in self.terms and mask not in self.subsets.family
        )

    def _use(self, mask: Mask, pair: Pair | None) -> None:
        for part in self.chosen.get(mask) or ():
            self.users[part].discard(mask)
        self.chosen[mask] = pair
        for part in pair or ():
            self.users[part].add(mask)

    def try_without(self, mask: Mask) -> None:
        """Remove the set if every user of it, and the term that it is, can do without."""
        self.subsets.remove(mask)
        waiting = sorted(self.users[mask]) + ([mask] if mask in self.terms else [])
        renewed: dict[Mask, Pair | None] = {}
        for user in waiting:
            pair = self.subsets.first_pair(user)
            if pair is None and not self._root(user):
                self.subsets.add(mask)
                return
            renewed[user] = pair
        for user, pair in renewed.items():
            self._use(user, pair)
        if mask not in self.terms:
            self._use(mask, None)

    def _root(self, mask: Mask) -> bool:
        """Whether the set is in the family and the closure of one of its elements."""
        if mask not in self.subsets.family or not self.splitting:
            return False
        return mask in closures(self.subsets.sets_meeting(mask)).values()
