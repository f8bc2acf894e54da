"""Candidate sets among scored parent sets: those that beat each of their proper subsets (Definition 2).

Only the sets that are given compete. A set of k parents asks a hash table for its 2^k - 1 proper subsets, or, where
these far outnumber the sets of its vertex, is compared with each of those.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..foundation.arrays import Bools, Floats, Ints, SmallInts, Words, frozen
from ..foundation.errors import FormatError
from ..foundation.families import Families, VertexSet
from ..foundation.jit import allocating_kernel
from .candidates import Candidates, Stamp, tolerance

_FINE, _UNKNOWN, _SELF, _REPEATED = range(4)
_LONG = 64  # members; sorting by insertion takes their square


class _Family(NamedTuple):
    """The parent sets of one vertex."""

    start: Ints  # (sets + 1,) into members
    members: SmallInts  # members of the sets of all vertices, ascending inside a set
    scores: Floats  # (sets,)
    hashes: Words  # (sets,) sum over members of their keys
    signatures: Words  # (sets,) bit v mod 64 for each member v


def prune(
    names: Sequence[str], lists: Sequence[Sequence[tuple[VertexSet, float]]], stamp: Stamp | None = None
) -> Candidates:
    """The candidate sets among lists of (parent set, score), one list per vertex."""
    families = Families.of([[parents for parents, _ in family] for family in lists])
    scores = np.array([score for family in lists for _, score in family], dtype=np.float64)
    return prune_families(tuple(names), families, scores, stamp or Stamp())


def prune_families(names: tuple[str, ...], families: Families, scores: Floats, stamp: Stamp) -> Candidates:
    """The candidate sets among scored parent sets whose members may come in any order."""
    if len(set(names)) != len(names) or len(names) != families.n:
        raise FormatError(
            f"{families.n} lists of sets for {len(set(names))} different names; give one for each variable"
        )
    families = _ordered(names, families)
    _check_scores(names, families, scores)
    keys = _keys(len(names))
    kept = np.zeros(len(scores), dtype=np.bool_)
    for vertex, name in enumerate(names):
        first, last = families.vertex_start[vertex : vertex + 2].tolist()
        kept[first:last] = _survivors_of(name, families, scores, slice(first, last), keys)
    return _canonical(names, families, scores, np.flatnonzero(kept), stamp)


def _ordered(names: tuple[str, ...], families: Families) -> Families:
    """The same sets with ascending members, once they are known to be sets of other variables."""
    members = families.members.astype(np.int32)  # a copy
    for which in np.flatnonzero(np.diff(families.set_start) > _LONG).tolist():
        members[slice(*families.set_start[which : which + 2])].sort()
    fault, vertex, where, other = _order_members(families.vertex_start, families.set_start, members)
    if fault == _FINE:
        return families._replace(members=members)
    child = names[vertex]
    if fault == _UNKNOWN:
        raise FormatError(f"variable {child!r} has the parent number {other}; allowed are 0 to {len(names) - 1}")
    if fault == _SELF:
        raise FormatError(f"variable {child!r} is its own parent in set {where + 1} of its list; leave that set out")
    raise FormatError(f"variable {child!r}: parent {names[other]!r} comes twice in set {where + 1} of its list")


@allocating_kernel
def _order_members(vertex_start: Ints, set_start: Ints, members: SmallInts) -> tuple[int, int, int, int]:
    """(fault, vertex, place of the set in its list, member); sorts the members of each set in place."""
    n = len(vertex_start) - 1
    for vertex in range(n):
        for which in range(vertex_start[vertex], vertex_start[vertex + 1]):
            place = which - vertex_start[vertex]
            first, last = set_start[which], set_start[which + 1]
            for i in range(first, last):
                member = members[i]
                if member < 0 or member >= n:
                    return _UNKNOWN, vertex, place, member
                if member == vertex:
                    return _SELF, vertex, place, member
                j = i
                while j > first and members[j - 1] > member:
                    members[j] = members[j - 1]
                    j -= 1
                members[j] = member
                if j > first and members[j - 1] == member:
                    return _REPEATED, vertex, place, member
    return _FINE, 0, 0, 0


def _check_scores(names: tuple[str, ...], families: Families, scores: Floats) -> None:
    bad = np.flatnonzero(np.isnan(scores) | (scores == np.inf))
    if len(bad):
        vertex = int(np.searchsorted(families.vertex_start, bad[0], side="right")) - 1
        raise FormatError(
            f"variable {names[vertex]!r}: the score of a parent set is {scores[bad[0]]}; allowed are finite numbers, "
            "and -inf for a set that may not be used"
        )


def _keys(n: int) -> Words:
    """(n,) random numbers whose sums tell sets apart nearly always; a lookup compares the members all the same."""
    # Others each time, so that no file can be made whose sets all meet in one place; the result is the same.
    return np.random.default_rng().integers(0, 2**64, size=n, dtype=np.uint64)


def _survivors_of(name: str, families: Families, scores: Floats, sets: slice, keys: Words) -> Bools:
    start = families.set_start[sets.start : sets.stop + 1]
    family = _Family(start, families.members, scores[sets], *_hash(start, families.members, keys))
    base = _base(name, family)
    table, twin = _table(family.start, family.members, family.hashes)
    if twin >= 0:
        raise FormatError(f"variable {name!r}: set {twin + 1} of its list came before; give each parent set once")
    margin = tolerance(float(family.scores[base]))
    kept: Bools = _survivors(family, table, keys, margin, base)
    return kept


@allocating_kernel
def _hash(start: Ints, members: SmallInts, keys: Words) -> tuple[Words, Words]:
    """(hash, signature) of each set."""
    sets = len(start) - 1
    hashes, signatures = np.zeros(sets, np.uint64), np.zeros(sets, np.uint64)
    for which in range(sets):
        for i in range(start[which], start[which + 1]):
            hashes[which] += keys[members[i]]
            signatures[which] |= np.uint64(1) << np.uint64(members[i] & 63)
    return hashes, signatures


def _base(name: str, family: _Family) -> int:
    """Index of the set that every other set of the vertex contains."""
    if not len(family.scores):
        raise FormatError(f"variable {name!r} has no parent set; give at least the score without parents")
    base = int(np.argmin(np.diff(family.start)))
    outside = _first_not_above(family, base)
    if outside >= 0:
        raise FormatError(
            f"variable {name!r}: its smallest parent set is not contained in set {outside + 1} of its list; "
            "add the score without parents, or that of the required parents alone"
        )
    if family.scores[base] == -np.inf:
        raise FormatError(f"variable {name!r}: its smallest parent set scores -inf; allowed are finite numbers there")
    return base


@allocating_kernel
def _contains(family: _Family, larger: int, smaller: int) -> bool:
    """Whether the one set contains the other, or equals it."""
    if family.signatures[smaller] & ~family.signatures[larger]:
        return False
    i, stop = family.start[larger], family.start[larger + 1]
    for j in range(family.start[smaller], family.start[smaller + 1]):
        while i < stop and family.members[i] < family.members[j]:
            i += 1
        if i == stop or family.members[i] != family.members[j]:
            return False
    return True


@allocating_kernel
def _first_not_above(family: _Family, base: int) -> int:
    """Index of the first set that does not contain the base; -1 if all do."""
    for which in range(len(family.scores)):
        if not _contains(family, which, base):
            return which
    return -1


@allocating_kernel
def _table(start: Ints, members: SmallInts, hashes: Words) -> tuple[SmallInts, int]:
    """An open hash table of set indices (-1: free slot), and the first set that came before (-1: none)."""
    slots = 4
    while slots < 2 * len(hashes):
        slots *= 2
    table = np.full(slots, -1, np.int32)
    for which in range(len(hashes)):
        size = start[which + 1] - start[which]
        slot = _slot(hashes[which], slots)
        while table[slot] >= 0:
            other = table[slot]
            same = hashes[other] == hashes[which] and start[other + 1] - start[other] == size
            for i in range(size if same else 0):
                same = same and members[start[other] + i] == members[start[which] + i]
            if same:
                return table, which
            slot = (slot + 1) & (slots - 1)
        table[slot] = which
    return table, -1


@allocating_kernel
def _slot(key: np.uint64, slots: int) -> int:
    return int(key >> np.uint64(32)) & (slots - 1)


@allocating_kernel
def _survivors(family: _Family, table: SmallInts, keys: Words, margin: float, base: int) -> Bools:
    """Whether each set beats all its proper subsets by more than the margin; the base always does."""
    sets = len(family.scores)
    kept = np.empty(sets, np.bool_)
    for which in range(sets):
        size = family.start[which + 1] - family.start[which]
        if which == base:
            kept[which] = True
        elif not family.scores[which] > family.scores[base] + margin:
            kept[which] = False
        elif size < 24 and (1 << size) <= 8 * sets:
            kept[which] = not _beaten_by_subset(family, table, keys, margin, which)
        else:
            kept[which] = not _beaten_by_any(family, margin, which)
    return kept


@allocating_kernel
def _beaten_by_any(family: _Family, margin: float, which: int) -> bool:
    """Whether some proper subset comes within the margin: compares with every set of the vertex."""
    score = family.scores[which]
    for other in range(len(family.scores)):
        if other != which and not score > family.scores[other] + margin and _contains(family, which, other):
            return True
    return False


@allocating_kernel
def _beaten_by_subset(family: _Family, table: SmallInts, keys: Words, margin: float, which: int) -> bool:
    """Whether some proper subset comes within the margin: looks each one up."""
    first = family.start[which]
    size = family.start[which + 1] - first
    score = family.scores[which]
    chosen, key = 0, np.uint64(0)
    for step in range(1, 1 << size):  # a Gray code: each step adds or removes one member
        bit = 0
        while not (step >> bit) & 1:
            bit += 1
        chosen ^= 1 << bit
        member_key = keys[family.members[first + bit]]
        key = key + member_key if (chosen >> bit) & 1 else key - member_key
        if chosen != (1 << size) - 1:
            other = _find(family, table, key, first, chosen)
            if other >= 0 and not score > family.scores[other] + margin:
                return True
    return False


@allocating_kernel
def _find(family: _Family, table: SmallInts, key: np.uint64, first: int, chosen: int) -> int:
    """Index of the set of those members from `first` on whose bit is chosen; -1 if there is none."""
    slots = len(table)
    slot = _slot(key, slots)
    while table[slot] >= 0:
        other = table[slot]
        if family.hashes[other] == key:
            i, stop, bit, same = family.start[other], family.start[other + 1], 0, True
            while same and chosen >> bit:
                if (chosen >> bit) & 1:
                    same = i < stop and family.members[i] == family.members[first + bit]
                    i += 1
                bit += 1
            if same and i == stop:
                return int(other)
        slot = (slot + 1) & (slots - 1)
    return -1


def _canonical(names: tuple[str, ...], families: Families, scores: Floats, kept: Ints, stamp: Stamp) -> Candidates:
    """The kept sets in the order that `Candidates` promises."""
    owners = np.searchsorted(families.vertex_start, kept, side="right") - 1
    sizes = np.diff(families.set_start)[kept]
    order = np.lexsort((sizes, -scores[kept], owners))
    kept, owners = _ties_in_order(families, scores, kept[order], owners[order]), owners[order]
    starts = families.set_start[kept]
    set_start = np.concatenate([[0], np.cumsum(families.set_start[kept + 1] - starts)])
    sources = np.repeat(starts - set_start[:-1], np.diff(set_start)) + np.arange(set_start[-1])
    vertex_start = np.searchsorted(owners, np.arange(len(names) + 1))
    flat = Families(frozen(vertex_start.astype(np.int64)), frozen(set_start), frozen(families.members[sources]))
    return Candidates(names, flat, frozen(scores[kept]), stamp)


def _ties_in_order(families: Families, scores: Floats, sets: Ints, owners: Ints) -> Ints:
    """The sets again, those of the same vertex, score and size in lexicographic order."""
    sizes = families.set_start[sets + 1] - families.set_start[sets]
    tied = (np.diff(owners) == 0) & (np.diff(sizes) == 0) & (np.diff(scores[sets]) == 0)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], tied.astype(np.int8), [0]])))
    sets = sets.copy()
    for first, last in edges.reshape(-1, 2).tolist():
        sets[first : last + 1] = sorted(sets[first : last + 1].tolist(), key=families.set_at)
    return sets
