"""Candidate sets and subsets relative to each vertex's base, and their gains (docs/theory.md §1).

A possible parent of a vertex has a small local number 1, 2, ... (its place in the vertex's list of
possible parents), so that a set of them packs into one 64-bit key. Required parents (the vertex's
base) are left out of every set.

Closure gain: gain(W) = max { log S(C) - log S(base) : C a candidate set, C <= base | W }. From
these come the gains of subsets and of their unions, the losses of parents, and the representations
of candidate sets by subsets. With scores of unions computed from the data, `formulate` gives the
paper's H to the coefficient."""

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from ..candidates import Candidates
from ..data import Dataset
from ..foundation.arrays import Bools, Floats, Ints, SmallInts, frozen
from ..foundation.errors import QubayesError, SettingError, option
from ..foundation.families import Families, VertexSet
from ..foundation.jit import inlined, inner, kernel
from ..foundation.words import slot_of, table_slots
from ..scores import Score, local_score
from .subsets import Subsets

MOST_SETS = 2**31 - 1  # candidate sets are numbered by 32-bit integers
# Difference of a score on data from that of a file, relative and absolute: other programs write
# seven digits.
FILE_PRECISION = 1e-6
UnionScores = Callable[[int, Sequence[VertexSet]], Sequence[float]]
"""Log scores of a vertex with each of these parent sets, the unions of its subsets."""


class Parents(NamedTuple):
    """Parents of each vertex: vertices[start[i]:start[i + 1]] are those of vertex i, ascending."""

    start: Ints  # (n + 1,)
    vertices: SmallInts  # (start[-1],)

    @property
    def children(self) -> Ints:
        """(start[-1],) the child of each entry."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    @property
    def keys(self) -> Ints:
        """(start[-1],) a number of each edge, ascending."""
        return self.children * (len(self.start) - 1) + self.vertices


class LocalSets(NamedTuple):
    """Sets of possible parents of one vertex, in local numbers."""

    start: Ints  # (sets + 1,) into members
    members: SmallInts  # ascending inside a set, counted from 1
    width: int  # bits of a member in packed keys

    @property
    def sizes(self) -> Ints:
        """(sets,) number of members of each set."""
        return self.start[1:] - self.start[:-1]

    def member(self, place: int, sets: Ints) -> SmallInts:
        """Return the member at this place of each of these sets, all of which are large enough."""
        return self.members[self.start[sets] + place]


class RelativeSets(NamedTuple):
    """Candidate sets and subsets without the required parents (the bases of the vertices)."""

    candidates: Candidates
    subsets: Subsets
    parents: Parents  # possible parents beyond the bases
    required: Parents  # the bases
    candidate_sets: Families  # members are local numbers
    subset_sets: Families  # members are local numbers
    gains: Floats  # (sets,) score of each candidate set minus that of its base
    union_scores: UnionScores | None = None

    def sets_of(self, vertex: int) -> tuple[LocalSets, LocalSets]:
        """Return the candidate sets and subsets of a vertex; raise if one exceeds 63 bits."""
        return (
            self._local_sets(self.candidate_sets, vertex),
            self._local_sets(self.subset_sets, vertex),
        )

    def _local_sets(self, families: Families, vertex: int) -> LocalSets:
        """Return the sets of a vertex; raise if one does not fit in 63 bits."""
        possible = int(self.parents.start[vertex + 1] - self.parents.start[vertex])
        first, last = families.vertex_start[vertex : vertex + 2]
        start = frozen(families.set_start[first : last + 1])
        sets = LocalSets(start, families.members, possible.bit_length())
        largest = int(sets.sizes.max(initial=0))
        if largest * sets.width > 63:
            raise QubayesError(
                f"a set of {largest} parents among {possible} possible ones is too large to index; "
                "use a smaller maximum number of parents"
            )
        return sets

    def gains_of(self, vertex: int) -> Floats:
        """Return the gains of the candidate sets of a vertex."""
        start = self.candidate_sets.vertex_start
        return self.gains[start[vertex] : start[vertex + 1]]

    def edges_in(self, sets: Families) -> Ints:
        """Return (members,) the index in `parents` of each member of these local sets."""
        return self.parents.start[sets.member_owners] + sets.members - 1

    @property
    def largest_set(self) -> int:
        """The maximum number of parents; if unknown, the size of the largest candidate set."""
        sizes = self.candidates.families.set_sizes
        return self.candidates.stamp.max_parents or int(sizes.max(initial=0))


def relate(
    candidates: Candidates, subsets: Subsets, union_scores: UnionScores | None = None
) -> RelativeSets:
    """Return the sets without the bases; raise if the subsets are of other candidate sets."""
    check_sets(len(candidates.scores))
    families, n = candidates.families, candidates.n
    bases = families.chosen(families.vertex_start[1:] - 1)
    required = Parents(bases.set_start, bases.members)
    keys = _edge_keys(families)
    optional = ~np.isin(keys, required.keys)
    possible = np.unique(keys[optional])
    _check_subsets(candidates, subsets, possible)
    start = np.searchsorted(possible, np.arange(n + 1) * n)
    kept = np.concatenate([[0], np.cumsum(optional)])
    free = Families(
        families.vertex_start, frozen(kept[families.set_start]), families.members[optional]
    )
    return RelativeSets(
        candidates,
        subsets,
        Parents(frozen(start), frozen((possible % max(n, 1)).astype(np.int32))),
        required,
        _in_local_numbers(free, possible, start),
        _in_local_numbers(subsets.families, possible, start),
        frozen(candidates.scores - np.repeat(candidates.base_scores, families.sizes)),
        union_scores,
    )


def _check_subsets(candidates: Candidates, subsets: Subsets, possible: Ints) -> None:
    """Raise unless the subsets are sets of possible parents of the same variables."""
    if candidates.names != subsets.names:
        raise QubayesError(
            "candidates and subsets are of different variables; cover these candidates first"
        )
    chosen = subsets.families
    known = np.isin(_edge_keys(chosen), possible)
    if not known.all():
        vertex = candidates.names[chosen.member_owners[~known][0]]
        raise QubayesError(
            f"a subset of {vertex} has a member that no candidate set of it has; cover it again"
        )
    if chosen.set_sizes.min(initial=1) == 0:
        raise QubayesError("a subset is empty; subsets hold one parent or more")


def _in_local_numbers(sets: Families, possible: Ints, start: Ints) -> Families:
    """Return the sets with members numbered from 1 among the possible parents of their vertex."""
    numbers = np.searchsorted(possible, _edge_keys(sets)) - start[sets.member_owners] + 1
    return sets._replace(members=frozen(numbers.astype(np.int32)))


def check_sets(sets: int) -> None:
    """Raise if this many candidate sets cannot be numbered by 32-bit integers."""
    if sets > MOST_SETS:
        raise QubayesError(
            f"{sets} candidate sets; at most {MOST_SETS} can be formulated: allow fewer parents"
        )


def _edge_keys(families: Families) -> Ints:
    """Return (members,) a number of the edge from each member to the vertex of its set."""
    return families.member_owners * families.n + families.members


def data_scores(
    candidates: Candidates, dataset: Dataset, score: Score | None = None
) -> UnionScores:
    """Return local scores on the data, by the score of the candidate sets unless one is given.

    Raise if the best set of a vertex does not have the score that its file says.
    """
    chosen = _score_for_unions(candidates, score)
    known = set(dataset.names)
    missing = [name for name in candidates.names if name not in known]
    if missing:
        raise SettingError(
            f"the data have no column {missing[0]!r}; "
            "give the data that the candidate sets come from"
        )
    column = [dataset.names.index(name) for name in candidates.names]
    found: dict[tuple[int, VertexSet], float] = {}

    def scores(vertex: int, sets: Sequence[VertexSet]) -> list[float]:
        for members in sets:
            if (vertex, members) not in found:
                parents = [column[parent] for parent in members]
                found[vertex, members] = local_score(dataset, column[vertex], parents, chosen)
        return [found[vertex, members] for members in sets]

    for vertex, first in enumerate(candidates.families.vertex_start[:-1].tolist()):
        on_data = scores(vertex, [candidates.families.set_at(first)])[0]
        in_file = float(candidates.scores[first])
        if not math.isclose(on_data, in_file, rel_tol=FILE_PRECISION, abs_tol=FILE_PRECISION):
            raise SettingError(
                f"the best set of {candidates.names[vertex]} scores {on_data:.6f} on these data by "
                f"{chosen.name} and {in_file:.6f} in the candidate sets; "
                "give the data, states and score that they come from"
            )
    return scores


def _score_for_unions(candidates: Candidates, score: Score | None) -> Score:
    """Return the score for unions of subsets; raise if data alone do not determine it."""
    stamp = candidates.stamp
    if candidates.plain is not None or stamp.has_priors:
        raise SettingError(
            "the candidate sets hold priors of edges or an order of variables, which scores on "
            f"data lack; leave out {option('data')}: "
            "a union then scores as the best candidate set inside it"
        )
    if score is None and stamp.score == "unknown":
        raise SettingError(
            "the candidate sets do not say by which score they were found; give it with --score"
        )
    return score or Score(stamp.score, stamp.ess or 1.0, stamp.penalty or 1.0)


def subset_gains(relative: RelativeSets, vertex: int) -> tuple[Floats, Floats]:
    """Return the gains of the subsets of a vertex, and of their pairwise unions."""
    if relative.union_scores is None:
        candidates, subsets = relative.sets_of(vertex)
        gains = relative.gains_of(vertex)
        singles = np.ascontiguousarray(closure_gains(look_up(candidates, subsets), gains)[:, -1])
        return singles, pair_gains(candidates, gains, subsets, singles)
    sets = list(relative.subsets.families.sets_of(vertex))
    unions = [*sets, *(tuple({*first, *second}) for first, second in combinations(sets, 2))]
    true = union_gains(relative, vertex, unions)
    return true[: len(sets)], true[len(sets) :]


def union_gains(relative: RelativeSets, vertex: int, unions: Sequence[VertexSet]) -> Floats:
    """Return log S(base | union) - log S(base) by the given scores (paper, Section 2.1).

    0 for an empty union, and for one that makes the set too large."""
    assert relative.union_scores is not None
    base = relative.candidates.base(vertex)
    parents = [tuple(sorted({*base, *union})) for union in unions]
    small = [
        k for k, union in enumerate(unions) if union and len(parents[k]) <= relative.largest_set
    ]
    gains = np.zeros(len(unions))
    if small:
        scores = np.asarray(relative.union_scores(vertex, [parents[k] for k in small]))
        gains[small] = scores - relative.candidates.base_scores[vertex]
    return gains


def look_up(known: LocalSets, sought: LocalSets) -> SmallInts:
    """Return (sought, 2^largest): the number of the known set that is this part of a sought set.

    Parts are given by bit masks. -1 if the part is not known or empty, or if the mask exceeds the
    size of the sought set.
    """
    known_keys = np.zeros(len(known.sizes), np.int64)
    for place in range(int(known.sizes.max(initial=0))):
        longer = np.flatnonzero(known.sizes > place)
        known_keys[longer] = known_keys[longer] << known.width | known.member(place, longer)
    keys = np.zeros((len(sought.sizes), 1 << int(sought.sizes.max(initial=0))), np.int64)
    for place in range(int(sought.sizes.max(initial=0))):
        longer = np.flatnonzero(sought.sizes > place)
        half = 1 << place
        members = sought.member(place, longer)[:, None]
        keys[longer, half : 2 * half] = keys[longer, :half] << sought.width | members
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
    """Return (sought, masks): the best gain of a candidate set inside each part, see `look_up`."""
    rows, masks = found.shape
    best = np.where(found >= 0, gains[found], 0.0)
    bit = 1
    while bit < masks:
        halves = best.reshape(rows, masks // (2 * bit), 2, bit)
        np.maximum(halves[:, :, 1], halves[:, :, 0], out=halves[:, :, 1])
        bit *= 2
    return best


def parent_losses(candidates: LocalSets, gains: Floats, ordered: Bools) -> tuple[Floats, float]:
    """Return the most that the vertex can lose with each possible parent, and with `ordered` ones.

    loss[x] = max over candidate sets C with x of gain(C) - gain(C - x); the other: max of gain(C) -
    gain(C - ordered)."""
    best = closure_gains(look_up(candidates, candidates), gains)
    sizes = candidates.sizes
    losses = np.zeros(len(ordered))
    rests = (1 << sizes) - 1
    for place in range(int(sizes.max(initial=0))):
        sets = np.flatnonzero(sizes > place)
        members = candidates.member(place, sets) - 1
        without = best[sets, ((1 << sizes[sets]) - 1) ^ (1 << place)]
        np.maximum.at(losses, members, gains[sets] - without)
        rests[sets] ^= ordered[members].astype(np.int64) << place
    without_ordered = best[np.arange(len(sizes)), rests]
    return losses, float((gains - without_ordered).max(initial=0.0))


def representations(candidates: LocalSets, subsets: LocalSets) -> SmallInts:
    """Return rows (set, U, V): each representation U | V, U <= V, of a candidate set.

    A set that is itself a subset is listed with U = V only; a set without a representation is
    listed with U = V = -1; the base (relative to itself: the empty set) is not listed."""
    found = look_up(subsets, candidates)
    rows = [np.empty((0, 3), np.int32)]
    for size in range(1, int(candidates.sizes.max(initial=0)) + 1):
        sets = np.flatnonzero(candidates.sizes == size)
        whole = (1 << size) - 1
        itself = found[sets, whole]
        rows.append(np.column_stack([sets, itself, itself])[itself >= 0])
        sets = sets[itself < 0]
        masks = np.arange(1, whole)
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
    """Hash table: best gain by rest C - U, for candidate sets C that meet a subset U."""

    keys: Ints  # (slots,)
    best: Floats  # (slots,)
    used: SmallInts  # (slots,) slots that hold a key
    inside: Bools  # (members + 1,) whether a member is in U


def pair_gains(candidates: LocalSets, gains: Floats, subsets: LocalSets, singles: Floats) -> Floats:
    """Return gain(U | V) of each pair of subsets of the vertex, in lexicographic order.

    A candidate set inside U | V lies inside U, inside V, or meets U and leaves a rest inside V - U.
    So for each U the rests of the candidate sets that meet it go into a table, and each V looks up
    the 2^|V - U| - 1 sets inside V - U."""
    mu = len(singles)
    members = candidates.members[candidates.start[0] : candidates.start[-1]]
    most = 1 << candidates.width
    owners = np.repeat(np.arange(len(gains), dtype=np.int32), candidates.sizes)
    start = np.concatenate([[0], np.cumsum(np.bincount(members, minlength=most))])
    holders = _Holders(start, owners[np.argsort(members, kind="stable")])
    slots = table_slots(len(gains))
    rests = _Rests(
        np.zeros(slots, np.int64),
        np.zeros(slots),
        np.empty(slots, np.int32),
        np.zeros(most, np.bool_),
    )
    parts = np.zeros(1 << int(subsets.sizes.max(initial=0)), np.int64)
    pairs = np.empty(mu * (mu - 1) // 2)
    _pair_gains(candidates, gains, subsets, singles, holders, rests, parts, pairs)
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
    """Fill `pairs`; `parts` has room for the keys of the parts of V - U, the first of them 0."""
    pair = 0
    for j in range(len(singles)):
        U = subsets.members[subsets.start[j] : subsets.start[j + 1]]
        for member in U:
            rests.inside[member] = True
        entries = _enter_rests(U, candidates, gains, holders, rests)
        for k in range(j + 1, len(singles)):
            least = max(singles[j], singles[k], 0.0)
            V = subsets.members[subsets.start[k] : subsets.start[k + 1]]
            pairs[pair] = _best_with(V, least, candidates.width, rests, parts)
            pair += 1
        for entry in range(entries):
            rests.keys[rests.used[entry]] = 0
        for member in U:
            rests.inside[member] = False


@inlined
def _best_with(V: SmallInts, least: float, width: int, rests: _Rests, parts: Ints) -> float:
    """Return the most that a candidate set with a part of V - U as its rest gains, or `least`."""
    value = least
    count = 1
    for member in V:
        if rests.inside[member]:
            continue
        for part in range(count):
            key = (parts[part] << width) | member
            parts[count + part] = key
            slot = slot_of(rests.keys, key)
            if rests.keys[slot] != 0:
                value = max(value, rests.best[slot])
        count *= 2
    return value


@inner
def _enter_rests(
    U: SmallInts, candidates: LocalSets, gains: Floats, holders: _Holders, rests: _Rests
) -> int:
    """Enter the rests of candidate sets that meet U into the table; return their number."""
    entries = 0
    for member in U:
        for number in holders.sets[holders.start[member] : holders.start[member + 1]]:
            key = 0
            for c in range(candidates.start[number], candidates.start[number + 1]):
                if not rests.inside[candidates.members[c]]:
                    key = (key << candidates.width) | candidates.members[c]
            slot = slot_of(rests.keys, key)
            if key != 0 and rests.keys[slot] == 0:
                rests.keys[slot] = key
                rests.best[slot] = gains[number]
                rests.used[entries] = slot
                entries += 1
            elif key != 0:
                rests.best[slot] = max(rests.best[slot], gains[number])
    return entries
