"""Small families without a proof: merge the most frequent pair of factors, improve by local search, prune.

The local search chooses sets so that each row has one of its options, a set or a pair of sets. Its moves drop and add
one set; rows without an option gain weight at each step, so that the search leaves local optima.
"""

import heapq
import random
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from ..foundation.arrays import Bools, Ints, Words
from ..foundation.jit import inner, kernel
from ..foundation.random import below, random_stream
from .decomposition import (
    Assumptions,
    Mask,
    Pair,
    SubsetIndex,
    closed_sets,
    closures,
    in_order,
    possible_roots,
    proper_subsets,
    singletons,
)
from .integer_program import representations

SHORT = 6  # terms up to this degree offer all their shared subsets to the local search, longer ones what merging found
OPTIONS = 600_000  # of all rows of the local search, at most
STEPS = 40_000  # of local search at most, STEPS_PER_SET for each set; not a time, so that results can be repeated
STEPS_PER_SET = 400
MERGES = 300_000  # work of merging with other ties; the local search combines what several runs found
MERGES_LONG = 3_000_000  # with long terms, where merging decides
RUNS = 40
COMBINED = 6  # best runs that are offered to the local search
TRIED = 25  # chosen sets examined before one is dropped


def quick_family(terms: Sequence[Mask], assumptions: Assumptions) -> set[Mask]:
    """Return a family that satisfies the assumptions: all singletons and products of two, pruned."""
    return prune(singletons(terms) | merge_frequent(terms), terms, assumptions)


def searched_family(terms: Sequence[Mask], assumptions: Assumptions) -> set[Mask]:
    """Return a family that satisfies the assumptions, improved by local search unless that is too large."""
    work = sum(t.bit_count() ** 3 for t in terms) // 2 + 1
    allowed = MERGES if all(t.bit_count() <= SHORT for t in terms) else MERGES_LONG
    runs = range(min(RUNS, max(1, allowed // work)))
    merged = sorted((merge_frequent(terms, run) for run in runs), key=len)[:COMBINED]
    family = singletons(terms) | merged[0]
    if assumptions == "terms-exclusive":
        family = prune(family, terms, assumptions)
    problem = choice_problem(terms, set().union(family, *merged), assumptions)
    if problem is not None:
        start = np.array([s in family for s in problem.sets], dtype=np.bool_)
        best = improve(problem.rows, start, min(STEPS, STEPS_PER_SET * len(start)))
        family = problem.closed | {s for s, taken in zip(problem.sets, best, strict=True) if taken}
    return prune(family, terms, assumptions)


def merge_frequent(terms: Iterable[Mask], run: int = 0) -> set[Mask]:
    """Return products from repeatedly replacing the pair of factors that most terms share by one factor.

    Ties go to the smaller pair in run 0, to a pair drawn with the run's number in other runs.
    """
    draw = random.Random(run)
    factors = {number: singletons([term]) for number, term in enumerate(terms) if term.bit_count() > 2}
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


class OptionRows(NamedTuple):
    """Row r is satisfied if one of its options start[r] .. start[r+1]-1 is complete, or its guard is not chosen."""

    start: Ints  # (rows + 1,)
    guard: Ints  # (rows,) a set, or -1: the row is always required
    first: Ints  # (options,) a set
    second: Ints  # (options,) another set, or -1: the first suffices


class ChoiceProblem(NamedTuple):
    """The choice of sets beside the closed ones."""

    sets: tuple[Mask, ...]
    closed: set[Mask]
    rows: OptionRows


def choice_problem(terms: Sequence[Mask], known: set[Mask], assumptions: Assumptions) -> ChoiceProblem | None:
    """Return the problem of the local search; None if it has no rows or too many options.

    With Assumption 2 all singletons are closed, each product is a row that its own choice requires, and a set that one
    term alone could use is not better than a pair. Without it, only the singletons among the terms are closed, and a
    term may be in the family itself.
    """
    exclusive = assumptions == "terms-exclusive"
    closed = closed_sets(terms, assumptions) if exclusive else singletons(terms)
    required = [t for t in terms if t.bit_count() > 2 or not singletons([t]) <= closed]
    uses: dict[Mask, int] = defaultdict(int)
    for term in required:
        for subset in proper_subsets(term) if term.bit_count() <= SHORT else ():
            uses[subset] += 1
    shared = {s for s, number in uses.items() if number > 1 or (s.bit_count() == 2 and not exclusive)}
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
    rows = OptionRows(*(np.array(values, dtype=np.int64) for values in (start, guard, first, second)))
    return ChoiceProblem(sets, closed, rows) if required else None


def prune(family: Collection[Mask], terms: Sequence[Mask], assumptions: Assumptions) -> set[Mask]:
    """Return the family without the sets that can be removed one by one while the assumptions hold.

    Larger sets are tried first; where singletons may go too, also smaller ones first, and the smaller result is kept.
    """
    kept = closed_sets(terms, assumptions)
    order = [s for s in in_order(family) if s not in kept]
    orders = [order[::-1], order] if any(s.bit_count() == 1 for s in order) else [order[::-1]]
    results = []
    for sequence in orders:
        pruning = _Pruning(family, terms, assumptions)
        for mask in sequence:
            pruning.try_without(mask)
        results.append(pruning.index.family)
    return min(results, key=len)


class _Pruning:
    """A family with a representation of each term and split, so that only the users of a removed set are examined."""

    def __init__(self, family: Collection[Mask], terms: Sequence[Mask], assumptions: Assumptions) -> None:
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
                if not (stays and user in closures(s for s in self.index.family if s & user).values()):  # not a root
                    self.index.add(mask)
                    return
            changed[user] = pair
        for user, pair in changed.items():
            self._use(user, pair)
        if mask not in self.terms:
            self._use(mask, None)


class SetUses(NamedTuple):
    """The rows seen from the sets."""

    row: Ints  # (options,) the row of each option
    start: Ints  # (sets + 1,)
    option: Ints  # (start[-1],) the options that name each set
    guarded: Ints  # (sets,) the row that is required only if the set is chosen, or -1


class ChoiceState(NamedTuple):
    """A choice and its consequences. The members of a list are its first elements; `place` is their index or -1."""

    chosen: Bools  # (sets,)
    picked: Ints  # (sets,) list of the chosen sets
    picked_place: Ints  # (sets,)
    stamp: Ints  # (sets,) step of the last change
    missing: Ints  # (options,) sets that the option lacks
    complete: Ints  # (rows,) number of complete options
    weight: Ints  # (rows,) grows while the row is unsatisfied
    unsatisfied: Ints  # (rows,) list of the unsatisfied rows
    unsatisfied_place: Ints  # (rows,)
    counts: Ints  # (2,) lengths of the two lists
    words: Words  # random stream


def improve(rows: OptionRows, chosen: Bools, steps: int) -> Bools:
    """Return a choice that satisfies all rows with at most as many sets as the given one, which must satisfy them."""
    sets, count = len(chosen), len(rows.guard)
    both = np.concatenate([rows.first, rows.second])
    named = both >= 0
    options = np.tile(np.arange(len(rows.first)), 2)[named]
    start = np.concatenate([[0], np.cumsum(np.bincount(both[named], minlength=sets))])
    guarded = np.full(sets, -1, dtype=np.int64)
    guarded[rows.guard[rows.guard >= 0]] = np.flatnonzero(rows.guard >= 0)
    row_of = np.repeat(np.arange(count), np.diff(rows.start))
    uses = SetUses(row_of, start.astype(np.int64), options[np.argsort(both[named], kind="stable")], guarded)
    missing = (~chosen[rows.first]).astype(np.int64) + ((rows.second >= 0) & ~chosen[rows.second])
    members = np.flatnonzero(chosen)
    picked, place = np.zeros(sets, dtype=np.int64), np.full(sets, -1, dtype=np.int64)
    picked[: len(members)], place[members] = members, np.arange(len(members))
    zeros = np.zeros(count, dtype=np.int64)
    state = ChoiceState(
        chosen.copy(), picked, place, np.full(sets, -9, dtype=np.int64), missing,
        np.bincount(row_of[missing == 0], minlength=count).astype(np.int64), zeros + 1, zeros.copy(), zeros - 1,
        np.array([len(members), 0]), random_stream(0),
    )  # fmt: skip
    best = chosen.copy()
    _search(rows, uses, state, steps, best)
    return best


@inner
def _set_unsatisfied(state: Any, row: Any, unsatisfied: Any) -> None:
    place = state.unsatisfied_place[row]
    if unsatisfied and place < 0:
        state.unsatisfied[state.counts[1]] = row
        state.unsatisfied_place[row] = state.counts[1]
        state.counts[1] += 1
    elif not unsatisfied and place >= 0:
        state.counts[1] -= 1
        last = state.unsatisfied[state.counts[1]]
        state.unsatisfied[place] = last
        state.unsatisfied_place[last] = place
        state.unsatisfied_place[row] = -1


@inner
def _flip(rows: Any, uses: Any, state: Any, changed: Any, step: Any) -> None:
    """Add the set if it is not chosen, drop it if it is."""
    add = not state.chosen[changed]
    state.chosen[changed] = add
    state.stamp[changed] = step
    if add:
        state.picked[state.counts[0]] = changed
        state.picked_place[changed] = state.counts[0]
        state.counts[0] += 1
    else:
        state.counts[0] -= 1
        last = state.picked[state.counts[0]]
        state.picked[state.picked_place[changed]] = last
        state.picked_place[last] = state.picked_place[changed]
        state.picked_place[changed] = -1
    for k in range(uses.start[changed], uses.start[changed + 1]):
        option = uses.option[k]
        row = uses.row[option]
        state.complete[row] -= state.missing[option] == 0
        state.missing[option] += -1 if add else 1
        state.complete[row] += state.missing[option] == 0
        guard = rows.guard[row]
        _set_unsatisfied(state, row, state.complete[row] == 0 and (guard < 0 or state.chosen[guard]))
    row = uses.guarded[changed]
    if row >= 0:
        _set_unsatisfied(state, row, add and state.complete[row] == 0)


@inner
def _gain(rows: Any, uses: Any, state: Any, candidate: Any) -> Any:
    """Return the weight of the rows that are satisfied with the set but not without it.

    A row with two options that hold the set is counted as if it had one.
    """
    chosen = state.chosen[candidate]
    total = 0
    for k in range(uses.start[candidate], uses.start[candidate + 1]):
        option = uses.option[k]
        row = uses.row[option]
        if chosen:
            guard = rows.guard[row]
            if state.missing[option] == 0 and state.complete[row] == 1 and (guard < 0 or state.chosen[guard]):
                total += state.weight[row]
        elif state.missing[option] == 1 and state.unsatisfied_place[row] >= 0:
            total += state.weight[row]
    row = uses.guarded[candidate]
    if row >= 0 and state.complete[row] == 0:
        total -= state.weight[row]
    return total


@inner
def _set_to_drop(rows: Any, uses: Any, state: Any, step: Any) -> Any:
    """Return the set of least gain among a few chosen sets, unchanged for two steps; the oldest of equals."""
    best, least = -1, 0
    for _ in range(TRIED):
        candidate = state.picked[below(state.words, state.counts[0])]
        if state.stamp[candidate] >= step - 2:
            continue
        gain = _gain(rows, uses, state, candidate)
        if best < 0 or gain < least or (gain == least and state.stamp[candidate] < state.stamp[best]):
            best, least = candidate, gain
    return best if best >= 0 else state.picked[below(state.words, state.counts[0])]


@inner
def _set_to_add(rows: Any, uses: Any, state: Any, step: Any) -> Any:
    """Return the set of most gain among those of a random unsatisfied row; the oldest of equals; -1 if none."""
    row = state.unsatisfied[below(state.words, state.counts[1])]
    best, most = -1, 0
    for option in range(rows.start[row], rows.start[row + 1]):
        for candidate in (rows.first[option], rows.second[option]):
            if candidate < 0 or state.chosen[candidate] or state.stamp[candidate] == step:
                continue
            gain = _gain(rows, uses, state, candidate)
            if best < 0 or gain > most or (gain == most and state.stamp[candidate] < state.stamp[best]):
                best, most = candidate, gain
    return best


@kernel
def _search(rows: Any, uses: Any, state: Any, steps: int, best: Any) -> None:
    """Put the smallest choice found into `best`: drop sets, add one for an unsatisfied row, raise the weights."""
    limit = state.counts[0]
    for step in range(steps):
        if state.counts[1] == 0:
            for k in range(len(best)):
                best[k] = state.chosen[k]
            limit = state.counts[0] - 1
            if limit < 0:
                break
        while state.counts[0] > 0 and state.counts[0] >= limit:  # one set may be added below the limit
            _flip(rows, uses, state, _set_to_drop(rows, uses, state, step), step)
        if state.counts[1] > 0:
            added = _set_to_add(rows, uses, state, step)
            if added >= 0:
                _flip(rows, uses, state, added, step)
        for k in range(state.counts[1]):
            state.weight[state.unsatisfied[k]] += 1
