"""The possible parents of every vertex, and its families of sets written in them.

Inside a vertex a possible parent is a small number 1, 2, ... (its place in the list of possible parents), so that a
set of them packs into one 64-bit key. Required parents (the vertex's base) are left out: sets are relative to it.
"""

from typing import NamedTuple

import numpy as np

from ..candidates import Candidates
from ..foundation.arrays import Ints, SmallInts, frozen
from ..foundation.errors import QubayesError
from ..foundation.families import Families
from .subsets import Subsets


class Parents(NamedTuple):
    """Possible parents of vertex i beyond its base: vertices[start[i]:start[i+1]], ascending."""

    start: Ints  # (n + 1,)
    vertices: SmallInts  # (start[-1],)

    @property
    def children(self) -> Ints:
        """The vertex on whose list each entry stands."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))


class Relative(NamedTuple):
    """Sets without their vertex's base, members by their place (from 1) in the vertex's list of possible parents."""

    parents: Parents
    candidates: Families
    subsets: Families
    required: Parents  # the bases


def relate(candidates: Candidates, subsets: Subsets | None = None) -> Relative:
    """Candidate sets and subsets (no subsets if none are given) relative to the bases, in local numbers."""
    required = _bases(candidates.families)
    free = _without(candidates.families, required)
    parents = _possible_parents(free)
    if subsets is not None:
        _check(candidates, subsets, parents)
    families = subsets.families if subsets is not None else Families.of([[]] * candidates.n)
    return Relative(parents, _localised(free, parents), _localised(families, parents), required)


def _owners(families: Families) -> Ints:
    """The vertex of each member of each set."""
    return np.repeat(np.arange(families.n), np.diff(families.set_start[families.vertex_start]))


def _bases(families: Families) -> Parents:
    last = families.vertex_start[1:] - 1
    sizes = families.set_start[last + 1] - families.set_start[last]
    start = np.concatenate([[0], np.cumsum(sizes)])
    places = np.repeat(families.set_start[last] - start[:-1], sizes) + np.arange(start[-1])
    return Parents(frozen(start), frozen(families.members[places]))


def _without(families: Families, required: Parents) -> Families:
    """The same sets without the members of their vertex's base."""
    if not len(required.vertices):
        return families
    n = families.n
    keep = ~np.isin(_owners(families) * n + families.members, required.children * n + required.vertices)
    kept = np.concatenate([[0], np.cumsum(keep)])
    return Families(families.vertex_start, frozen(kept[families.set_start]), frozen(families.members[keep]))


def _possible_parents(families: Families) -> Parents:
    keys = np.unique(_owners(families) * families.n + families.members)
    start = np.searchsorted(keys, np.arange(families.n + 1) * families.n)
    return Parents(frozen(start), frozen((keys % max(families.n, 1)).astype(np.int32)))


def _localised(families: Families, parents: Parents) -> Families:
    n = families.n
    owners = _owners(families)
    places = np.searchsorted(parents.children * n + parents.vertices, owners * n + families.members)
    return families._replace(members=frozen((places - parents.start[owners] + 1).astype(np.int32)))


def _check(candidates: Candidates, subsets: Subsets, parents: Parents) -> None:
    if candidates.names != subsets.names:
        raise QubayesError("candidates and subsets are of different variables; cover these candidates first")
    n, families = candidates.n, subsets.families
    known = np.isin(_owners(families) * n + families.members, parents.children * n + parents.vertices)
    if not known.all():
        vertex = candidates.names[_owners(families)[~known][0]]
        raise QubayesError(f"a subset of {vertex} has a member that no candidate set of it has; cover it again")
    if len(families.set_start) > 1 and np.diff(families.set_start).min() == 0:
        raise QubayesError("a subset is empty; subsets hold one parent or more")


def key_widths(relative: Relative) -> Ints:
    """Bits that a member needs in the keys of each vertex; sets that do not fit into 63 bits are refused."""
    widths = np.array([int(count).bit_length() for count in np.diff(relative.parents.start)], dtype=np.int64)
    for families in (relative.candidates, relative.subsets):
        sizes = np.diff(families.set_start)
        owners = np.repeat(np.arange(families.n), families.sizes)
        if sizes.size and (sizes * widths[owners]).max() > 63:
            raise QubayesError(
                f"a set of {int(sizes.max())} parents among {int(np.diff(relative.parents.start).max())} possible ones "
                "is too large to index; use a smaller maximum number of parents"
            )
    return widths
