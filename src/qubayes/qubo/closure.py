"""Closure scores: the gain of the best candidate set inside a set (design §5, docs/theory.md §1).

gain(W) = max { log S(C) - log S(base) : C a candidate set, C <= base | W }. Everything is about one vertex, on sets in
local numbers (`parents.py`). Kernels find sets by packed keys in open-addressing tables (key 0: a free slot). Where
there are few sets numpy is as fast, and nothing has to be compiled or loaded.
"""

from typing import Any, NamedTuple

import numpy as np

from ..foundation.arrays import AnyArray, Bools, Floats, Ints, SmallInts, frozen
from ..foundation.families import Families
from ..foundation.jit import inner, kernel

FEW_KEYS = 4_000  # up to which keys are looked up by numpy
FEW_COMPARISONS = 200_000  # of candidate sets with unions, up to which all are made


class Sets(NamedTuple):
    """Sets of possible parents of one vertex."""

    start: Ints  # (sets + 1,) into members
    members: SmallInts  # ascending inside a set, counted from 1
    width: int  # bits of a member in packed keys

    @staticmethod
    def of(families: Families, vertex: int, width: int) -> "Sets":
        """The sets of a vertex."""
        first, last = families.vertex_start[vertex : vertex + 2]
        return Sets(frozen(families.set_start[first : last + 1]), frozen(families.members), width)

    @property
    def sizes(self) -> Ints:
        """Number of members of each set."""
        return self.start[1:] - self.start[:-1]

    def member(self, place: int, sets: Ints) -> SmallInts:
        """The member at this place of each of these sets, which have that many."""
        return self.members[self.start[sets] + place]


def look_up(known: Sets, sought: Sets) -> SmallInts:
    """(sought, 2^largest) the number of the known set that is the part of a sought one chosen by a bit mask, or -1.

    Masks beyond the size of a sought set, and the empty set, are not found.
    """
    masks = 1 << int(sought.sizes.max(initial=0))
    few = masks * len(sought.start) + len(known.start) <= FEW_KEYS
    return look_up_sorted(known, sought) if few else look_up_hashed(known, sought)


def look_up_hashed(known: Sets, sought: Sets) -> SmallInts:
    """By a table of keys."""
    masks, size = 1 << int(sought.sizes.max(initial=0)), _table_size(len(known.start) - 1)
    found = np.full((len(sought.start) - 1, masks), -1, np.int32)
    _look_up(known, sought, np.zeros(size, np.int64), np.empty(size, np.int32), np.empty(masks, np.int64), found)
    return found


def look_up_sorted(known: Sets, sought: Sets) -> SmallInts:
    """By sorted keys."""
    found = np.full((len(sought.start) - 1, 1 << int(sought.sizes.max(initial=0))), -1, np.int32)
    whole, keys = np.zeros(len(known.sizes), np.int64), np.zeros(found.shape, np.int64)
    for place in range(int(known.sizes.max(initial=0))):
        longer = np.flatnonzero(known.sizes > place)
        whole[longer] = whole[longer] << known.width | known.member(place, longer)
    for place in range(int(sought.sizes.max(initial=0))):
        longer, half = np.flatnonzero(sought.sizes > place), 1 << place
        keys[longer, half : 2 * half] = keys[longer, :half] << sought.width | sought.member(place, longer)[:, None]
    order = np.argsort(whole)
    ascending = np.append(whole[order], -1)  # a key that nobody has, behind the last
    places = np.searchsorted(ascending[:-1], keys)
    there = (ascending[places] == keys) & (keys > 0)
    found[there] = order[places[there]]
    return found


def closure_gains(found: SmallInts, gains: Floats) -> Floats:
    """(sought, masks) gain of the best candidate set inside each part of each sought set; `found` by `look_up`."""
    rows, masks = found.shape
    best = np.where(found >= 0, gains[found], 0.0)
    bit = 1
    while bit < masks:
        halves = best.reshape(rows, masks // (2 * bit), 2, bit)
        np.maximum(halves[:, :, 1], halves[:, :, 0], out=halves[:, :, 1])
        bit *= 2
    return best


def single_gains(candidates: Sets, gains: Floats, subsets: Sets) -> Floats:
    """gain(U) of each subset U."""
    return np.ascontiguousarray(closure_gains(look_up(candidates, subsets), gains)[:, -1])


def parent_losses(candidates: Sets, gains: Floats, ordered: Bools) -> tuple[Floats, float]:
    """(loss, loss of all): what the vertex can lose at most with one possible parent, and with all `ordered` ones.

    loss[x] = max over candidate sets C with x of gain(C) - gain(C - x); the other: max of gain(C) - gain(C - ordered).
    """
    best, sizes = closure_gains(look_up(candidates, candidates), gains), candidates.sizes
    losses, rests = np.zeros(len(ordered)), (1 << sizes) - 1
    for t in range(int(sizes.max(initial=0))):
        sets = np.flatnonzero(sizes > t)
        members = candidates.member(t, sets) - 1
        without = best[sets, ((1 << sizes[sets]) - 1) ^ (1 << t)]
        np.maximum.at(losses, members, gains[sets] - without)
        rests[sets] ^= ordered[members].astype(np.int64) << t
    left = best[np.arange(len(sizes)), rests]
    return losses, float((gains - left).max(initial=0.0))


def representations(candidates: Sets, subsets: Sets) -> SmallInts:
    """Rows (set, U, V): each way to write a candidate set of the vertex as U | V, U <= V; V = U where U is the set.

    A set that is itself a subset is listed so and not otherwise; a set with no way at all is listed with U = V = -1;
    the base (relative: the empty set) is not listed.
    """
    found, sizes = look_up(subsets, candidates), candidates.sizes
    rows = [np.empty((0, 3), np.int32)]
    for size in range(1, int(sizes.max(initial=0)) + 1):
        sets = np.flatnonzero(sizes == size)
        whole = found[sets, (1 << size) - 1]
        rows.append(np.column_stack([sets, whole, whole])[whole >= 0])
        rows.append(_pairs_of(sets[whole < 0], found, size))
    listed = np.concatenate(rows).astype(np.int32)
    return listed[np.argsort(listed[:, 0], kind="stable")]


def _pairs_of(sets: Ints, found: SmallInts, size: int) -> AnyArray:
    """Rows (set, U, V) of these candidate sets, all of one size and none of them a subset."""
    first, second = _complements(size)
    U, V = found[np.ix_(sets, first)], found[np.ix_(sets, second)]
    hits = (U >= 0) & (V >= 0)
    where, way = np.nonzero(hits)
    U, V = U[where, way], V[where, way]
    none = sets[~hits.any(axis=1)]
    with_none = np.column_stack([none, np.full((len(none), 2), -1)])
    return np.concatenate([np.column_stack([sets[where], np.minimum(U, V), np.maximum(U, V)]), with_none])


def _complements(size: int) -> tuple[Ints, Ints]:
    """Pairs of bit masks s < t with s | t = all of `size` bits, neither empty nor all, in lexicographic order."""
    masks = np.arange(1, (1 << size) - 1)
    s, t = np.nonzero((masks[:, None] < masks) & ((masks[:, None] | masks) == (1 << size) - 1))
    return masks[s], masks[t]


def pair_gains(candidates: Sets, gains: Floats, subsets: Sets, singles: Floats) -> Floats:
    """gain(U | V) of each pair of subsets of the vertex, in lexicographic order."""
    few = len(gains) * len(singles) * (len(singles) - 1) // 2 <= FEW_COMPARISONS
    if few and max(_largest(candidates), _largest(subsets)) <= 63:
        return pair_gains_compared(candidates, gains, subsets)
    return pair_gains_by_rests(candidates, gains, subsets, singles)


def _largest(sets: Sets) -> int:
    return int(sets.members[sets.start[0] : sets.start[-1]].max(initial=0))


def pair_gains_by_rests(candidates: Sets, gains: Floats, subsets: Sets, singles: Floats) -> Floats:
    """A candidate set inside U | V lies inside U, inside V, or meets U and leaves a rest inside V - U.

    So for each U the rests of the candidate sets that meet it go into a table, and each V looks up the 2^|V - U| - 1
    sets inside V - U.
    """
    mu, size = len(singles), _table_size(len(gains))
    members = candidates.members[candidates.start[0] : candidates.start[-1]]
    most = max(_largest(candidates), _largest(subsets))
    masks = 1 << int(subsets.sizes.max(initial=0))
    rests = _Rests(np.zeros(size, np.int64), np.zeros(size), np.empty(size, np.int32), np.zeros(most + 1, np.bool_))
    result = np.empty(mu * (mu - 1) // 2)
    holders = _holders(candidates, members, most)
    _pair_gains(candidates, gains, subsets, singles, holders, rests, np.empty(masks, np.int64), result)
    return result


def pair_gains_compared(candidates: Sets, gains: Floats, subsets: Sets) -> Floats:
    """Each union is compared with each candidate set; both are the bits of words."""
    words = _as_words(subsets)
    first, second = np.triu_indices(len(words), 1)
    outside = _as_words(candidates) & ~(words[first] | words[second])[:, None]
    result: Floats = np.where(outside == 0, gains, 0.0).max(axis=1, initial=0.0)
    return result


def _as_words(sets: Sets) -> Ints:
    words = np.zeros(len(sets.sizes), np.int64)
    members = sets.members[sets.start[0] : sets.start[-1]].astype(np.int64)
    np.bitwise_or.at(words, np.repeat(np.arange(len(words)), sets.sizes), 1 << (members - 1))
    return words


class _Holders(NamedTuple):
    """The sets that hold each member: sets[start[x]:start[x + 1]]."""

    start: Ints
    sets: SmallInts


class _Rests(NamedTuple):
    """Best gain by rest C - U of the candidate sets C that meet a subset U and do not lie in it."""

    keys: Ints  # (slots,)
    best: Floats  # (slots,)
    used: SmallInts  # (slots,) the slots that hold a key, in the order in which they were taken
    inside: Bools  # (members + 1,) whether a member is in U


def _holders(sets: Sets, members: SmallInts, most: int) -> _Holders:
    owners = np.repeat(np.arange(len(sets.start) - 1, dtype=np.int32), sets.sizes)
    start = np.concatenate([[0], np.cumsum(np.bincount(members, minlength=most + 1))])
    return _Holders(start, owners[np.argsort(members, kind="stable")])


def _table_size(entries: int) -> int:
    """A power of two, so that at least half of the slots stay free."""
    return max(4, 1 << int(2 * entries - 1).bit_length())


@inner
def _slot(keys: Ints, key: int) -> int:
    """Where the key stands in the table, or the free slot where it would."""
    mask = len(keys) - 1
    place = ((key * -7046029254386353131) >> 29) & mask
    while keys[place] != 0 and keys[place] != key:
        place = (place + 1) & mask
    return place


@kernel
def _look_up(known: Sets, sought: Sets, keys: Ints, places: SmallInts, submasks: Ints, found: SmallInts) -> None:
    for number in range(len(known.start) - 1):
        key: Any = np.int64(0)  # not a literal: numba would compile what it is passed to once more
        for i in range(known.start[number], known.start[number + 1]):
            key = (key << known.width) | known.members[i]
        if key != 0:
            slot = _slot(keys, key)
            keys[slot], places[slot] = key, number
    for number in range(len(sought.start) - 1):
        submasks[0] = 0
        count = 1
        for i in range(sought.start[number], sought.start[number + 1]):
            for s in range(count):
                key = (submasks[s] << sought.width) | sought.members[i]
                submasks[count + s] = key
                slot = _slot(keys, key)
                if keys[slot] != 0:
                    found[number, count + s] = places[slot]
            count *= 2


@kernel
def _pair_gains(
    candidates: Sets,
    gains: Floats,
    subsets: Sets,
    singles: Floats,
    holders: _Holders,
    rests: _Rests,
    submasks: Ints,
    result: Floats,
) -> None:
    place, width = 0, candidates.width
    keys, best, inside = rests.keys, rests.best, rests.inside
    for j in range(len(singles)):
        for i in range(subsets.start[j], subsets.start[j + 1]):
            inside[subsets.members[i]] = True
        entries: Any = np.int64(0)
        for i in range(subsets.start[j], subsets.start[j + 1]):
            entries = _add_rests(subsets.members[i], candidates, gains, holders, rests, entries)
        for k in range(j + 1, len(singles)):
            value = max(singles[j], singles[k])
            submasks[0] = 0
            count = 1
            for i in range(subsets.start[k], subsets.start[k + 1]):
                member = subsets.members[i]
                if not inside[member]:
                    for s in range(count):
                        key = (submasks[s] << width) | member
                        submasks[count + s] = key
                        slot = _slot(keys, key)
                        if keys[slot] != 0:
                            value = max(value, best[slot])
                    count *= 2
            result[place] = value
            place += 1
        for entry in range(entries):
            keys[rests.used[entry]] = 0
        for i in range(subsets.start[j], subsets.start[j + 1]):
            inside[subsets.members[i]] = False


@inner
def _add_rests(member: int, candidates: Sets, gains: Floats, holders: _Holders, rests: _Rests, entries: int) -> int:
    """Put the candidate sets that hold this member of U, and no earlier one, into the table; the number of entries."""
    for h in range(holders.start[member], holders.start[member + 1]):
        number = holders.sets[h]
        key: Any = np.int64(0)
        met = 0
        for i in range(candidates.start[number], candidates.start[number + 1]):
            other = candidates.members[i]
            if not rests.inside[other]:
                key = (key << candidates.width) | other
            elif met == 0:
                met = other
        if key == 0 or met != member:  # inside U, or counted at its first member in U
            continue
        slot = _slot(rests.keys, key)
        if rests.keys[slot] == 0:
            rests.keys[slot], rests.best[slot] = key, gains[number]
            rests.used[entries] = slot
            entries += 1
        elif gains[number] > rests.best[slot]:
            rests.best[slot] = gains[number]
    return entries
