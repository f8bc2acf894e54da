"""Candidate sets and subsets relative to each vertex's base, in local numbers.

A possible parent of a vertex has a small local number 1, 2, ... (its place in the vertex's list of possible parents),
so that a set of them packs into one 64-bit key. Required parents (the vertex's base) are left out of every set.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..candidates import Candidates
from ..foundation.arrays import Floats, Ints, SmallInts, frozen
from ..foundation.errors import QubayesError
from ..foundation.families import Families, VertexSet
from .subsets import Subsets

MOST_SETS = 2**31 - 1  # candidate sets are numbered by 32-bit integers
UnionScores = Callable[[int, Sequence[VertexSet]], Sequence[float]]
"""Log scores of a vertex with each of these parent sets, for the true scores of unions of subsets."""


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
    """Candidates and subsets without the bases: what the bits and coefficients of a formulation are made of."""

    candidates: Candidates
    subsets: Subsets
    parents: Parents  # possible parents beyond the bases
    required: Parents  # the bases
    candidate_sets: Families  # members are local numbers
    subset_sets: Families  # members are local numbers
    gains: Floats  # (sets,) score of each candidate set minus that of its base
    union_scores: UnionScores | None = None

    def sets_of(self, vertex: int) -> tuple[LocalSets, LocalSets]:
        """Return the candidate sets and the subsets of a vertex; refuse those that do not fit into 63-bit keys."""
        possible = int(self.parents.start[vertex + 1] - self.parents.start[vertex])
        width = possible.bit_length()
        found = []
        for families in (self.candidate_sets, self.subset_sets):
            first, last = families.vertex_start[vertex : vertex + 2]
            sets = LocalSets(frozen(families.set_start[first : last + 1]), families.members, width)
            if (largest := int(sets.sizes.max(initial=0))) * width > 63:
                raise QubayesError(
                    f"a set of {largest} parents among {possible} possible ones is too large to index; use a smaller "
                    "maximum number of parents"
                )
            found.append(sets)
        return found[0], found[1]

    def gains_of(self, vertex: int) -> Floats:
        """Return the gains of the candidate sets of a vertex."""
        start = self.candidate_sets.vertex_start
        return self.gains[start[vertex] : start[vertex + 1]]

    @property
    def largest_set(self) -> int:
        """The maximum number of parents; where it is unknown, the size of the largest candidate set."""
        sizes = np.diff(self.candidates.families.set_start)
        return self.candidates.stamp.max_parents or int(sizes.max(initial=0))


def relate(candidates: Candidates, subsets: Subsets, union_scores: UnionScores | None = None) -> RelativeSets:
    """Return the candidates and subsets relative to the bases; raise for subsets of other sets or variables."""
    check_sets(len(candidates.scores))
    families, n = candidates.families, candidates.n
    bases = families.chosen(families.vertex_start[1:] - 1)
    required = Parents(bases.set_start, bases.members)
    keys = _edge_keys(families)
    optional = ~np.isin(keys, required.keys)
    kept = np.concatenate([[0], np.cumsum(optional)])
    free = Families(families.vertex_start, frozen(kept[families.set_start]), frozen(families.members[optional]))
    possible = np.unique(keys[optional])
    start = np.searchsorted(possible, np.arange(n + 1) * n)
    parents = Parents(frozen(start), frozen((possible % max(n, 1)).astype(np.int32)))
    chosen = subsets.families
    if candidates.names != subsets.names:
        raise QubayesError("candidates and subsets are of different variables; cover these candidates first")
    if not (known := np.isin(_edge_keys(chosen), possible)).all():
        vertex = candidates.names[chosen.member_owners[~known][0]]
        raise QubayesError(f"a subset of {vertex} has a member that no candidate set of it has; cover it again")
    if np.diff(chosen.set_start).min(initial=1) == 0:
        raise QubayesError("a subset is empty; subsets hold one parent or more")
    local = []
    for sets in (free, chosen):
        numbers = np.searchsorted(possible, _edge_keys(sets)) - start[sets.member_owners] + 1
        local.append(sets._replace(members=frozen(numbers.astype(np.int32))))
    gains = candidates.scores - np.repeat(candidates.base_scores, families.sizes)
    return RelativeSets(candidates, subsets, parents, required, local[0], local[1], frozen(gains), union_scores)


def check_sets(sets: int) -> None:
    """Raise if this many candidate sets cannot be numbered by 32-bit integers."""
    if sets > MOST_SETS:
        raise QubayesError(f"{sets} candidate sets; at most {MOST_SETS} can be formulated: allow fewer parents")


def _edge_keys(families: Families) -> Ints:
    """Return (members,) a number of the edge from each member to the vertex of its set."""
    return families.member_owners * families.n + families.members
