"""Candidate sets of scores computed elsewhere (files, own functions); from data: `identify.py`.

A candidate set beats each of its proper subsets (paper, Definition `CPS`). Only the sets that are
given compete. The 2^k - 1 proper subsets of a set of k parents are looked up in a hash table;
where they far outnumber the sets of its vertex, the set is compared with each of those instead."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations

import numpy as np

from ..foundation.arrays import Bools, Floats, Ints, SmallInts, frozen
from ..foundation.errors import ConstraintError, FormatError
from ..foundation.families import Families, VertexSet, neighbours
from ..foundation.jit import inner, kernel
from ..foundation.words import slot_of, table_slots
from .candidates import Candidates, Stamp, in_order, tolerance
from .knowledge import Allowed, Knowledge, refuse_ancestors

_FINE, _OUTSIDE, _REPEATED, _COLLISION = range(4)


def prune(
    names: Sequence[str],
    lists: Sequence[Sequence[tuple[VertexSet, float]]],
    stamp: Stamp | None = None,
) -> Candidates:
    """Return the candidate sets among lists of (parent set, score), one list per vertex."""
    families = Families.of([[parents for parents, _ in family] for family in lists])
    scores = np.array([score for family in lists for _, score in family], dtype=np.float64)
    return prune_families(tuple(names), families, scores, stamp or Stamp())


def with_order(candidates: Candidates, before: Sequence[tuple[int, int]]) -> Candidates:
    """Return candidate sets whose networks have an order with a before b for each pair (a, b).

    Each set of b gets the member a, which every network needs first; of two sets that become one,
    the better counts. A network of the sets themselves that has the order is a network of these,
    and the other way round."""
    if not before:
        return candidates
    first: list[set[int]] = [set() for _ in candidates.names]
    for a, b in before:
        first[b].add(a)
    lists: list[list[tuple[VertexSet, float]]] = []
    for vertex in range(candidates.n):
        best: dict[VertexSet, float] = {}
        for members, score in candidates.of(vertex):  # the best comes first
            best.setdefault(tuple(sorted({*members, *first[vertex]})), score)
        lists.append(list(best.items()))
    return replace(prune(candidates.names, lists, candidates.stamp), plain=candidates)


def with_larger(candidates: Candidates, grown: Candidates) -> Candidates:
    """Return all sets of at most m parents, and the larger grown sets that beat all of these.

    No kernel is needed: a larger set is never contained in one of the others, and grown sets beat
    their grown subsets already."""
    most = candidates.stamp.max_parents or 0
    own, others = candidates.plain or candidates, grown.plain or grown
    larger: list[tuple[int, VertexSet, float]] = []
    for vertex in range(own.n):
        known = dict(own.of(vertex))
        margin = tolerance(known[own.base(vertex)])
        for members, score in others.of(vertex):
            if len(members) > most and _beats_smaller(members, score - margin, known, most):
                larger.append((vertex, members, score))
    families = own.families
    added = [members for _, members, _ in larger]
    return in_order(
        own.names,
        np.concatenate([families.owners, np.array([v for v, _, _ in larger], np.int64)]),
        np.concatenate([families.set_sizes, np.array(list(map(len, added)), np.int64)]),
        np.concatenate([families.members, np.array(list(chain(*added)), np.int32)]),
        np.concatenate([own.scores, np.array([score for _, _, score in larger])]),
        replace(candidates.stamp, grown=len(larger)),
    )


def _beats_smaller(
    members: VertexSet, score: float, known: Mapping[VertexSet, float], most: int
) -> bool:
    """Return whether the score exceeds that of every known subset of at most this size."""
    for size in range(most + 1):
        for subset in combinations(members, size):
            if known.get(subset, -np.inf) >= score:
                return False
    return True


def restrict(candidates: Candidates, knowledge: Knowledge) -> Candidates:
    """Return the candidate sets that prior knowledge allows, with negative priors and order.

    The best network of them is the best of all that is allowed. A set that is not listed scores at
    most as much as a listed subset, which is allowed too, and loses no more by negative priors.
    With required edges and positive priors this does not hold: a listed subset may lack the
    parent, so they are refused."""
    _refuse_what_needs_data(knowledge)
    if candidates.plain is not None:
        raise ConstraintError(
            "the candidate sets hold an order of variables already; give all knowledge at once"
        )
    most = int(candidates.families.set_sizes.max(initial=0))
    resolved = knowledge.resolve(candidates.names, most)
    found = _only_allowed(candidates, resolved)
    if resolved.priors:
        found = _with_priors(found, resolved.prior_matrix())
    return with_order(found, resolved.before)


def _refuse_what_needs_data(knowledge: Knowledge) -> None:
    """Raise if the knowledge can make a set best that a file of candidate sets leaves out."""
    refuse_ancestors(knowledge)
    remedy = (
        "needs scores that a file of candidate sets leaves out; find candidate sets from data with"
        " `qubayes candidates --knowledge`, or `qubayes learn`"
    )
    for parent, child, nats in knowledge.priors:
        if nats > 0.0:
            raise ConstraintError(f"the prior {nats:g} of {parent} -> {child} {remedy}")
    if knowledge.required:
        raise ConstraintError(f"the required edge {' -> '.join(knowledge.required[0])} {remedy}")


def _only_allowed(candidates: Candidates, resolved: Allowed) -> Candidates:
    """Return the sets of allowed parents within the limit of their vertex."""
    families = candidates.families
    owners = families.owners
    allowed = np.zeros((candidates.n, candidates.n), np.bool_)
    for vertex, parents in enumerate(resolved.allowed):
        allowed[vertex, list(parents)] = True
    forbidden = families.sets_of_members[~allowed[families.member_owners, families.members]]
    fits = families.set_sizes <= np.array(resolved.limits, np.int64)[owners]
    fits[forbidden] = False
    kept = np.flatnonzero(fits)
    lost = np.setdiff1d(families.vertex_start[1:] - 1, kept)  # the last set of a vertex is its base
    if len(lost):
        name = candidates.names[int(owners[lost[0]])]
        raise ConstraintError(
            f"the smallest set of {name!r} in the file has a forbidden parent; "
            "allow it, or list a set without it"
        )
    return replace(
        candidates, families=families.chosen(kept), scores=frozen(candidates.scores[kept])
    )


def _with_priors(candidates: Candidates, priors: Floats) -> Candidates:
    """Return the candidate sets with the logarithms of priors of edges in their scores."""
    lists: list[list[tuple[VertexSet, float]]] = []
    for vertex in range(candidates.n):
        family = []
        for members, score in candidates.of(vertex):
            family.append((members, score + float(priors[vertex, list(members)].sum())))
        lists.append(family)
    return prune(candidates.names, lists, candidates.stamp.with_priors())


def prune_families(
    names: tuple[str, ...], families: Families, scores: Floats, stamp: Stamp
) -> Candidates:
    """Return the candidate sets among scored parent sets whose members may come in any order."""
    if len(set(names)) != len(names) or len(names) != families.n:
        raise FormatError(
            f"{families.n} lists of sets for {len(set(names))} different names; "
            "give one for each variable"
        )
    families = _checked(names, families, scores)
    kept = np.zeros(len(scores), dtype=np.bool_)
    # Other words in every run, so that no file can be made whose hashes collide.
    words = np.random.default_rng().integers(-(2**63), 2**63, size=len(names) + 1, dtype=np.int64)
    sums = np.cumsum(np.concatenate([words[-1:], words[families.members]]))
    hashes = sums[families.set_start[1:]] - sums[families.set_start[:-1]] + words[-1]
    for vertex, name in enumerate(names):
        # A collision has a probability of 2^-64: take other words.
        if _mark(vertex, name, families, scores, hashes, words, kept) == _COLLISION:
            return prune_families(names, families, scores, stamp)
    numbers = np.flatnonzero(kept)
    chosen = families.chosen(numbers)
    owners = chosen.owners.astype(np.int64)
    return in_order(names, owners, chosen.set_sizes, chosen.members, scores[numbers], stamp)


def _checked(names: tuple[str, ...], families: Families, scores: Floats) -> Families:
    """Return the sets with ascending members; raise unless they are sets of other variables."""
    starts = families.set_start
    owners = families.member_owners
    members = families.members
    same = neighbours(starts) if len(starts) > 1 else np.zeros(0, np.bool_)
    if not (np.diff(members) > 0)[same].all():
        owner_sets = np.repeat(np.arange(len(scores)), np.diff(starts))
        members = members[np.lexsort((members, owner_sets))]

    def first(wrong: Bools) -> Iterator[tuple[str, int, int]]:
        """Yield (child, number of the set in its list, member) for the first wrong member."""
        for place in np.flatnonzero(wrong)[:1].tolist():
            number = int(
                np.searchsorted(starts, place, side="right") - families.vertex_start[owners[place]]
            )
            yield names[owners[place]], number, int(members[place])

    for child, _, parent in first((members < 0) | (members >= len(names))):
        raise FormatError(
            f"variable {child!r} has the parent number {parent}; allowed are 0 to {len(names) - 1}"
        )
    for child, number, _ in first(members == owners):
        raise FormatError(
            f"variable {child!r} is its own parent in set {number} of its list; leave that set out"
        )
    for child, number, parent in first(same & (np.diff(members) == 0)):
        raise FormatError(
            f"variable {child!r}: parent {names[parent]!r} comes twice in set {number} of its list"
        )
    for bad in np.flatnonzero(np.isnan(scores) | (scores == np.inf))[:1].tolist():
        name = names[int(np.searchsorted(families.vertex_start, bad, side="right")) - 1]
        raise FormatError(
            f"variable {name!r}: the score of a parent set is {scores[bad]}; "
            "allowed are finite numbers, and -inf for a set that may not be used"
        )
    return families._replace(members=members)


def _mark(
    vertex: int,
    name: str,
    families: Families,
    scores: Floats,
    hashes: Ints,
    words: Ints,
    kept: Bools,
) -> int:
    """Set which sets of the vertex are candidate sets; return _FINE or _COLLISION."""
    first, last = families.vertex_start[vertex : vertex + 2].tolist()
    if first == last:
        raise FormatError(
            f"variable {name!r} has no parent set; give at least the score without parents"
        )
    base = first + int(np.argmin(np.diff(families.set_start[first : last + 1])))
    slots = table_slots(last - first)
    keys = np.zeros(slots, np.int64)
    places = np.empty(slots, np.int32)
    margin = tolerance(float(scores[base]))
    fault, which = _find_survivors(
        first, last, base, margin, families, scores, hashes, words, keys, places, kept
    )
    number = which - first + 1
    if fault == _OUTSIDE:
        raise FormatError(
            f"variable {name!r}: its smallest parent set is not contained in set {number} of its "
            "list; add the score without parents, or that of the required parents alone"
        )
    if fault == _REPEATED:
        raise FormatError(
            f"variable {name!r}: set {number} of its list came before; give each parent set once"
        )
    if scores[base] == -np.inf:
        raise FormatError(
            f"variable {name!r}: its smallest parent set scores -inf; "
            "allowed are finite numbers there"
        )
    return int(fault)


@inner
def _contains(families: Families, larger: int, smaller: int) -> bool:
    """Return whether the one set contains the other, or equals it."""
    start = families.set_start
    members = families.members
    i = start[larger]
    stop = start[larger + 1]
    for j in range(start[smaller], start[smaller + 1]):
        while i < stop and members[i] < members[j]:
            i += 1
        if i == stop or members[i] != members[j]:
            return False
    return True


@kernel
def _find_survivors(
    first: int,
    last: int,
    base: int,
    margin: float,
    families: Families,
    scores: Floats,
    hashes: Ints,
    words: Ints,
    keys: Ints,
    places: SmallInts,
    kept: Bools,
) -> tuple[int, int]:
    """Set whether each set first .. last-1 beats all its proper subsets by more than the margin.

    The base always does. Returns (fault, set); `keys` and `places` are an empty hash table.
    """
    for which in range(first, last):
        if not _contains(families, which, base):
            return _OUTSIDE, which
        slot = slot_of(keys, hashes[which])
        if keys[slot] != 0:
            other = places[slot]
            same = _contains(families, which, other) and _contains(families, other, which)
            return (_REPEATED if same else _COLLISION), which
        keys[slot] = hashes[which]
        places[slot] = which
    for which in range(first, last):
        if which == base:
            kept[which] = True
        elif not scores[which] > scores[base] + margin:
            kept[which] = False
        elif _has_fewer_subsets(families, which, last - first):
            kept[which] = _beats_subsets(families, scores, which, margin, words, keys, places)
        else:
            kept[which] = _beats_sets_inside(families, scores, which, first, last, margin)
    return _FINE, first


@inner
def _has_fewer_subsets(families: Families, which: int, sets: int) -> bool:
    """Return whether the subsets of the set are few beside the sets of the vertex."""
    size = int(families.set_start[which + 1] - families.set_start[which])
    return size < 24 and (1 << size) <= 8 * sets


@inner
def _beats_sets_inside(
    families: Families, scores: Floats, which: int, first: int, last: int, margin: float
) -> bool:
    """Return whether the set beats all others that it contains; looks at each set of the vertex."""
    for other in range(first, last):
        beaten = other != which and not scores[which] > scores[other] + margin
        if beaten and _contains(families, which, other):
            return False
    return True


@inner
def _beats_subsets(
    families: Families,
    scores: Floats,
    which: int,
    margin: float,
    words: Ints,
    keys: Ints,
    places: SmallInts,
) -> bool:
    """Return whether the set beats its proper subsets; looks each of them up in the hash table."""
    members = families.members[families.set_start[which] : families.set_start[which + 1]]
    everything = (1 << len(members)) - 1
    chosen = 0
    key = words[-1]
    for step in range(1, everything + 1):  # a Gray code: each step adds or removes one member
        bit = 0
        while not (step >> bit) & 1:
            bit += 1
        chosen ^= 1 << bit
        word = words[members[bit]]
        key = key + word if (chosen >> bit) & 1 else key - word
        slot = slot_of(keys, key)
        if chosen == everything or keys[slot] == 0:
            continue
        other = places[slot]
        if not scores[which] > scores[other] + margin and _contains(families, which, other):
            return False
    return True
