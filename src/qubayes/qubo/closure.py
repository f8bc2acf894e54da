"""Closure gains: the gain of the best candidate set inside a set (docs/theory.md §1).

gain(W) = max { log S(C) - log S(base) : C a candidate set, C <= base | W }. From them come the gains of subsets and of
their unions, the losses of parents, and the representations of candidate sets by subsets. Every function concerns one
vertex, on sets in local numbers (`relative_sets.py`).
"""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from ..foundation.arrays import Bools, Floats, Ints, SmallInts
from ..foundation.families import VertexSet
from ..foundation.jit import inner, kernel
from ..foundation.words import slot_of, table_slots
from .relative_sets import LocalSets, RelativeSets


def subset_gains(relative: RelativeSets, vertex: int) -> tuple[Floats, Floats]:
    """Return (singles, pairs): the gains of the subsets of a vertex, and of their pairwise unions."""
    if relative.union_scores is None:
        (candidates, subsets), gains = relative.sets_of(vertex), relative.gains_of(vertex)
        singles = np.ascontiguousarray(closure_gains(look_up(candidates, subsets), gains)[:, -1])
        return singles, pair_gains(candidates, gains, subsets, singles)
    sets = list(relative.subsets.families.sets_of(vertex))
    unions = [*sets, *(tuple({*first, *second}) for first, second in combinations(sets, 2))]
    true = union_gains(relative, vertex, unions)
    return true[: len(sets)], true[len(sets) :]


def union_gains(relative: RelativeSets, vertex: int, unions: Sequence[VertexSet]) -> Floats:
    """Return log S(base | union) - log S(base) by the given scores; 0 where the set is too large (paper, §2.1)."""
    assert relative.union_scores is not None
    base, gains = relative.candidates.base(vertex), np.zeros(len(unions))
    parents = [tuple(sorted({*base, *union})) for union in unions]
    small = [k for k, union in enumerate(unions) if union and len(parents[k]) <= relative.largest_set]
    if small:
        scores = np.asarray(relative.union_scores(vertex, [parents[k] for k in small]))
        gains[small] = scores - relative.candidates.base_scores[vertex]
    return gains


def look_up(known: LocalSets, sought: LocalSets) -> SmallInts:
    """Return (sought, 2^largest): the number of the known set that is the part of a sought set chosen by a bit mask.

    -1 where that part is not known, is empty, or the mask exceeds the size of the sought set.
    """
    masks = 1 << int(sought.sizes.max(initial=0))
    known_keys, keys = np.zeros(len(known.sizes), np.int64), np.zeros((len(sought.sizes), masks), np.int64)
    for place in range(int(known.sizes.max(initial=0))):
        longer = np.flatnonzero(known.sizes > place)
        known_keys[longer] = known_keys[longer] << known.width | known.member(place, longer)
    for place in range(int(sought.sizes.max(initial=0))):
        longer, half = np.flatnonzero(sought.sizes > place), 1 << place
        keys[longer, half : 2 * half] = keys[longer, :half] << sought.width | sought.member(place, longer)[:, None]
    order = np.argsort(known_keys)
    ascending = np.append(known_keys[order], -1)  # -1 is the key of no set
    asked = np.flatnonzero(keys)
    wanted = keys.ravel()[asked]
    places = np.searchsorted(ascending[:-1], wanted)
    there = ascending[places] == wanted
    found = np.full(keys.shape, -1, np.int32)
    found.ravel()[asked[there]] = order[places[there]]
    return found


def closure_gains(found: SmallInts, gains: Floats) -> Floats:
    """Return (sought, masks): the gain of the best candidate set inside each part of each set; `found` by `look_up`."""
    rows, masks = found.shape
    best = np.where(found >= 0, gains[found], 0.0)
    bit = 1
    while bit < masks:
        halves = best.reshape(rows, masks // (2 * bit), 2, bit)
        np.maximum(halves[:, :, 1], halves[:, :, 0], out=halves[:, :, 1])
        bit *= 2
    return best


def parent_losses(candidates: LocalSets, gains: Floats, ordered: Bools) -> tuple[Floats, float]:
    """Return the most that the vertex can lose with each possible parent, and with all `ordered` ones at once.

    loss[x] = max over candidate sets C with x of gain(C) - gain(C - x); the other: max of gain(C) - gain(C - ordered).
    """
    best, sizes = closure_gains(look_up(candidates, candidates), gains), candidates.sizes
    losses, rests = np.zeros(len(ordered)), (1 << sizes) - 1
    for place in range(int(sizes.max(initial=0))):
        sets = np.flatnonzero(sizes > place)
        members = candidates.member(place, sets) - 1
        without = best[sets, ((1 << sizes[sets]) - 1) ^ (1 << place)]
        np.maximum.at(losses, members, gains[sets] - without)
        rests[sets] ^= ordered[members].astype(np.int64) << place
    left = best[np.arange(len(sizes)), rests]
    return losses, float((gains - left).max(initial=0.0))


def representations(candidates: LocalSets, subsets: LocalSets) -> SmallInts:
    """Return rows (set, U, V): each representation U | V, U <= V, of a candidate set; V = U where U is the set.

    A set that is itself a subset is listed that way only; a set without a representation is listed with U = V = -1;
    the base (relative to itself: the empty set) is not listed.
    """
    found, sizes = look_up(subsets, candidates), candidates.sizes
    rows = [np.empty((0, 3), np.int32)]
    for size in range(1, int(sizes.max(initial=0)) + 1):
        sets, whole = np.flatnonzero(sizes == size), (1 << size) - 1
        itself = found[sets, whole]
        rows.append(np.column_stack([sets, itself, itself])[itself >= 0])
        sets, masks = sets[itself < 0], np.arange(1, whole)
        first, second = np.nonzero((masks[:, None] < masks) & ((masks[:, None] | masks) == whole))
        U, V = found[np.ix_(sets, masks[first])], found[np.ix_(sets, masks[second])]
        where, column = np.nonzero((U >= 0) & (V >= 0))
        U, V = U[where, column], V[where, column]
        rows.append(np.column_stack([sets[where], np.minimum(U, V), np.maximum(U, V)]))
        none = np.delete(sets, where)
        rows.append(np.column_stack([none, np.full((len(none), 2), -1)]))
    listed = np.concatenate(rows).astype(np.int32)
    return listed[np.argsort(listed[:, 0], kind="stable")]


class _Holders(NamedTuple):
    """Candidate sets by member: sets[start[x]:start[x + 1]] hold the member x."""

    start: Ints
    sets: SmallInts


class _Rests(NamedTuple):
    """Hash table: the best gain by rest C - U of the candidate sets C that meet a subset U and do not lie in it."""

    keys: Ints  # (slots,)
    best: Floats  # (slots,)
    used: SmallInts  # (slots,) slots that hold a key
    inside: Bools  # (members + 1,) whether a member is in U


def pair_gains(candidates: LocalSets, gains: Floats, subsets: LocalSets, singles: Floats) -> Floats:
    """Return gain(U | V) of each pair of subsets of the vertex, in lexicographic order.

    A candidate set inside U | V lies inside U, inside V, or meets U and leaves a rest inside V - U. So for each U the
    rests of the candidate sets that meet it go into a table, and each V looks up the 2^|V - U| - 1 sets inside V - U.
    """
    mu, slots = len(singles), table_slots(len(gains))
    members = candidates.members[candidates.start[0] : candidates.start[-1]]
    most = 1 << candidates.width
    owners = np.repeat(np.arange(len(gains), dtype=np.int32), candidates.sizes)
    start = np.concatenate([[0], np.cumsum(np.bincount(members, minlength=most))])
    holders = _Holders(start, owners[np.argsort(members, kind="stable")])
    rests = _Rests(np.zeros(slots, np.int64), np.zeros(slots), np.empty(slots, np.int32), np.zeros(most, np.bool_))
    keys, pairs = np.zeros(1 << int(subsets.sizes.max(initial=0)), np.int64), np.empty(mu * (mu - 1) // 2)
    _pair_gains(candidates, gains, subsets, singles, holders, rests, keys, pairs)
    return pairs


@kernel
def _pair_gains(
    candidates: LocalSets,
    gains: Floats,
    subsets: LocalSets,
    singles: Floats,
    holders: _Holders,
    rests: _Rests,
    parts: Ints,
    pairs: Floats,
) -> None:
    """Fill `pairs`; `parts` is scratch for the keys of the parts of V - U, and parts[0] = 0 that of the empty one."""
    pair = 0
    for j in range(len(singles)):
        U = subsets.members[subsets.start[j] : subsets.start[j + 1]]
        for member in U:
            rests.inside[member] = True
        entries = _enter_rests(U, candidates, gains, holders, rests)
        for k in range(j + 1, len(singles)):
            V = subsets.members[subsets.start[k] : subsets.start[k + 1]]
            pairs[pair] = max(singles[j], singles[k], _best_rest(V, candidates.width, rests, parts))
            pair += 1
        for entry in range(entries):
            rests.keys[rests.used[entry]] = 0
        for member in U:
            rests.inside[member] = False


@inner
def _enter_rests(U: SmallInts, candidates: LocalSets, gains: Floats, holders: _Holders, rests: _Rests) -> int:
    """Enter the rests of the candidate sets that meet U into the table; return the number of entries."""
    entries = 0
    for member in U:
        for h in range(holders.start[member], holders.start[member + 1]):
            number, key = holders.sets[h], 0
            for c in range(candidates.start[number], candidates.start[number + 1]):
                if not rests.inside[candidates.members[c]]:
                    key = (key << candidates.width) | candidates.members[c]
            slot = slot_of(rests.keys, key)
            if key != 0 and rests.keys[slot] == 0:
                rests.keys[slot], rests.best[slot], rests.used[entries] = key, gains[number], slot
                entries += 1
            elif key != 0:
                rests.best[slot] = max(rests.best[slot], gains[number])
    return entries


@inner
def _best_rest(V: SmallInts, width: int, rests: _Rests, parts: Ints) -> float:
    """Return the best gain of a rest inside V - U; 0 if there is none."""
    value, count = 0.0, 1
    for member in V:
        if not rests.inside[member]:
            for part in range(count):
                key = (parts[part] << width) | member
                parts[count + part] = key
                slot = slot_of(rests.keys, key)
                if rests.keys[slot] != 0:
                    value = max(value, rests.best[slot])
            count *= 2
    return value
