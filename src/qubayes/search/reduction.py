"""Reductions of candidate sets that keep the best score: twins, required edges, components.

Twins are two variables that scores cannot tell apart. Write s for the exchange of a and b. They are
twins if every set P of every vertex v has a partner s(P) among the sets of s(v) with the same
score, and no set contains both. Then some best network has b without children and with its best
set: exchange a and b if b comes first, replace b by its representative a in every set (a precedes
all children of b), and let b, which has no child now, take its best set (proof in docs/exact.md).

Components: edges between strongly connected components of the candidate graph follow one order in
every network, so a parent outside its child's component is always allowed. Each component is a
problem of its own, in which only the members inside matter.

Every reduction returns an object whose `invert` turns a choice of its sets into one of the original
sets."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..candidates import Candidates, tolerance
from ..foundation.arrays import AnyArray, Bools, Floats, Ints, SmallInts, Words, frozen
from ..foundation.families import Families, VertexSet
from ..foundation.graph import reachable, strong_components

MOST_VERTICES_OF_BEST_OF_ALL = 14  # it is meant for: 2^14 * 14 scores, some 20 ms
_MOST_COMPARED = 100  # vertices that a vertex is compared with: the first with as many sets


class Reduced(NamedTuple):
    """Candidates with the same best score, and the way back to the original ones."""

    candidates: Candidates
    sources: Ints  # (sets,) for a base that is not a set, the best set inside it
    rounding: float  # the best score fell by at most this, by the rounding of the scores
    twins: tuple[tuple[int, int], ...]  # (twin, its representative) in the order of elimination

    def invert(self, choice: Ints) -> Ints:
        """Return the choice of original sets for one of these."""
        return frozen(self.sources[choice])


def without_twins(candidates: Candidates, eliminate: bool = True) -> Reduced:
    """Return the candidates in which every twin of an earlier vertex is a sink with its best set.

    With `eliminate` false, the candidates as they are.
    """
    pairs = _alike(candidates) if eliminate else []
    if pairs:
        table = SetTable(candidates)  # takes about twice the candidates' memory
        found = _twins(table, pairs)
        if found:
            return _eliminated(candidates, table, found)
    return Reduced(candidates, frozen(np.arange(len(candidates.scores))), 0.0, ())


class Twin(NamedTuple):
    """What a twin is exchanged with."""

    representative: int
    difference: float  # largest change of a network's score by the exchange


def _twins(table: "SetTable", pairs: list[tuple[int, int]]) -> dict[int, Twin]:
    """Return the twins among the pairs, in the order of their elimination."""
    found: dict[int, Twin] = {}
    for vertex, other in pairs:
        if vertex not in found and other not in found:
            difference = table.exchange_difference(other, vertex)
            if difference is not None:
                found[vertex] = Twin(other, difference)
    return found


def _eliminated(candidates: Candidates, table: "SetTable", found: dict[int, Twin]) -> Reduced:
    """Return the candidates in which each of these twins keeps its best set and is in no other."""
    kept = np.ones(len(candidates.scores), np.bool_)
    gone = np.zeros(candidates.n, np.bool_)
    for vertex in found:
        first, last = candidates.families.vertex_start[vertex : vertex + 2].tolist()
        best = first + int(np.argmax(kept[first:last]))
        kept[first:best] = False
        kept[best + 1 : last] = False
        gone[vertex] = True
        holding = table.holding(vertex)
        kept[holding[~gone[table.owners[holding]]]] = False
    sources = np.flatnonzero(kept)
    rounding = 2.0 * sum(twin.difference for twin in found.values())  # a set changes at most twice
    twins = tuple((vertex, twin.representative) for vertex, twin in found.items())
    return Reduced(select_sets(candidates, sources), frozen(sources), rounding, twins)


def select_sets(candidates: Candidates, numbers: Ints) -> Candidates:
    """Select sets by number, ascending; the last of each vertex must be inside all its others."""
    families = candidates.families.chosen(numbers)
    return replace(candidates, families=families, scores=frozen(candidates.scores[numbers]))


def _margins(candidates: Candidates) -> Floats:
    """Return (n,) the difference up to which scores of a vertex may be equal but for rounding."""
    rows = candidates.stamp.rows or 0
    return np.array([8.0 * tolerance(score, rows) for score in candidates.base_scores.tolist()])


def _alike(candidates: Candidates) -> list[tuple[int, int]]:
    """Return (vertex, earlier vertex) with equal scores, as many sets, and in as many sets."""
    margins = _margins(candidates)
    scores = np.split(candidates.scores, candidates.families.vertex_start[1:-1])
    held = np.bincount(candidates.families.members, minlength=candidates.n)
    groups: dict[tuple[int, int], list[int]] = {}
    pairs = []
    for vertex, size in enumerate(candidates.families.sizes.tolist()):
        group = groups.setdefault((size, int(held[vertex])), [])
        for other in group[:_MOST_COMPARED] if size > 1 else ():
            if np.abs(scores[vertex] - scores[other]).max() <= margins[vertex] + margins[other]:
                pairs.append((vertex, other))
        group.append(vertex)
    return pairs


class SetTable:
    """The sets as rows, found by their members through sorted hashes."""

    def __init__(self, candidates: Candidates) -> None:
        families = candidates.families
        n = families.n
        self._vertex_start = families.vertex_start
        self._scores = candidates.scores
        self._margins = _margins(candidates)
        self.owners = families.owners
        self._rows: SmallInts = families.padded()
        self._start, self._holders = families.by_member()
        self._member_keys = np.random.Generator(np.random.PCG64(0)).integers(
            0, 2**64, size=n + 1, dtype=np.uint64
        )
        self._member_keys[n] = 0
        self._shift = np.uint64(64 - n.bit_length())
        self._hashes = self._hash(self.owners, self._rows)
        self._order = np.argsort(self._hashes, kind="stable")
        self._hashes.sort()

    def holding(self, vertex: int) -> AnyArray:
        """Return the sets that contain the vertex."""
        return self._holders[self._start[vertex] : self._start[vertex + 1]]

    def exchange_difference(self, a: int, b: int) -> float | None:
        """Return the largest change of a score by the exchange of a and b; None if not twins."""
        with_a = self.holding(a)
        with_b = self.holding(b)
        if np.intersect1d(with_a, with_b, assume_unique=True).size:
            return None
        own = [np.arange(self._vertex_start[v], self._vertex_start[v + 1]) for v in (a, b)]
        numbers = np.concatenate([with_a, with_b, *own])  # repeated numbers do no harm
        swap = np.arange(len(self._vertex_start), dtype=np.int32)
        swap[[a, b]] = b, a
        owners = self.owners[numbers]
        partners = self._find(swap[owners], np.sort(swap[self._rows[numbers]], axis=1))
        if (partners < 0).any():
            return None
        differences = np.abs(self._scores[numbers] - self._scores[partners])
        if (differences > self._margins[owners]).any():
            return None
        largest = np.zeros(len(self._margins))
        np.maximum.at(largest, owners, differences)
        return float(largest.sum())

    def _find(self, owners: SmallInts, rows: SmallInts) -> Ints:
        """Return the number of each of these sets; -1 if it is not in the table."""
        places = np.searchsorted(self._hashes, self._hash(owners, rows))
        numbers = self._order[np.minimum(places, len(self._order) - 1)]
        same = (self.owners[numbers] == owners) & (self._rows[numbers] == rows).all(axis=1)
        return np.where(same, numbers, -1)

    def _hash(self, owners: SmallInts, rows: SmallInts) -> Words:
        """Return hashes with the owner's number in front.

        So look-ups for one vertex stay close together in memory."""
        hashes: Words = np.zeros(len(rows), np.uint64)
        for place in range(rows.shape[1]):
            hashes += self._member_keys[rows[:, place]]
        hashes >>= np.uint64(64) - self._shift
        hashes |= owners.astype(np.uint64) << self._shift
        return hashes


def with_required_edges(reduced: Reduced, kept: Ints) -> Reduced:
    """Return the kept sets (ascending, one or more of each vertex) that required edges allow.

    An edge is required if all kept sets of its child contain its parent. What the sets of a vertex
    share becomes its base; if that is not a set, it scores as the best set inside it."""
    candidates = reduced.candidates
    kept, required = _possible(candidates, kept)
    left = candidates.families.chosen(kept)
    bases = candidates.families.best_inside(required.T)
    lists: list[list[VertexSet]] = []
    numbers: list[int] = []
    for vertex in range(left.n):
        first, last = left.vertex_start[vertex : vertex + 2].tolist()
        sets = list(left.sets_of(vertex))
        numbers.extend(kept[first:last].tolist())
        base = tuple(np.flatnonzero(required[:, vertex]).tolist())
        if sets[-1] != base:
            sets.append(base)
            numbers.append(int(bases[vertex]))
        lists.append(sets)
    scores = frozen(candidates.scores[numbers])
    fewer = replace(candidates, families=Families.of(lists), scores=scores)
    return reduced._replace(candidates=fewer, sources=frozen(reduced.sources[numbers]))


def _possible(candidates: Candidates, kept: Ints) -> tuple[Ints, Bools]:
    """Return the kept sets without those that close a cycle of required edges; and these edges."""
    while True:
        families = candidates.families.chosen(kept)
        counts = np.zeros((families.n, families.n), np.int64)
        np.add.at(counts, (families.members, families.member_owners), 1)
        required = counts == families.sizes
        descendants = reachable(required)[families.member_owners, families.members]
        wrong = np.append(0, np.cumsum(descendants))  # members that the vertex is an ancestor of
        possible = np.diff(wrong[families.set_start]) == 0
        if possible.all():
            return kept, required
        kept = kept[possible]


class Component(NamedTuple):
    """The candidate sets of a component, in local numbers: best first, the base last."""

    vertices: Ints  # (k,) ascending; local vertex v is vertices[v]
    families: Families
    scores: Floats  # (sets,)
    numbers: Ints  # (sets,) of the candidate sets


def split(candidates: Candidates) -> list[Component]:
    """Return the components of two vertices or more, largest first."""
    families = candidates.families
    found = [vertices for vertices in strong_components(families.arcs()) if len(vertices) > 1]
    components = []
    for vertices in sorted(found, key=lambda vertices: (-len(vertices), int(vertices[0]))):
        inside, numbers = families.inside(vertices)
        if len(inside.members) < int(families.set_sizes[numbers].sum()):
            kept = _distinct(inside)
            inside = inside.chosen(kept)
            numbers = numbers[kept]
        scores = frozen(candidates.scores[numbers])
        components.append(Component(frozen(vertices), inside, scores, frozen(numbers)))
    return components


def _distinct(families: Families) -> Ints:
    """Return the numbers of the sets that neither equal a better one nor come after the base."""
    rows = np.column_stack([families.owners, families.padded()])
    first = np.sort(np.unique(rows, axis=0, return_index=True)[1])
    sizes = families.set_sizes
    # Every set contains the base: the first set with as few members equals it and beats all later
    # ones.
    as_few = np.flatnonzero(sizes == sizes[families.vertex_start[1:] - 1][families.owners])
    bases = as_few[np.searchsorted(as_few, families.vertex_start[:-1])]
    return first[first <= bases[families.owners[first]]]


class Components(NamedTuple):
    """Candidates as their components, and the way back from one choice for each of them."""

    candidates: Candidates
    parts: Sequence[Component]

    def invert(self, choices: Sequence[Ints]) -> Ints:
        """Return the choice for all vertices; a vertex in no component takes its best set."""
        choice = self.candidates.families.vertex_start[:-1].copy()
        for component, local in zip(self.parts, choices, strict=True):
            choice[component.vertices] = component.numbers[local]
        return choice


def best_of_all(families: Families, scores: Floats) -> Ints:
    """Return the sets of an optimal network, by dynamic programming (Silander and Myllymäki 2006).

    It keeps n 2^n scores in memory."""
    n = families.n
    best, number_of = _best_inside(families, scores)
    sink = _best_sinks(best)
    choice = np.empty(n, np.int64)
    rest = (1 << n) - 1
    while rest:  # from the last vertex of the order to the first
        vertex = int(sink[rest])
        rest ^= 1 << vertex
        choice[vertex] = number_of[vertex, rest]
    return choice


def _best_inside(families: Families, scores: Floats) -> tuple[Floats, Ints]:
    """Return (n, 2^n) score and number of the vertex's best set inside each set of vertices."""
    n = families.n
    best = np.full((n, 1 << n), -np.inf)
    number_of = np.full((n, 1 << n), -1)
    backwards = np.arange(len(scores))[::-1]  # of equal sets the last one assigned, the best, stays
    places = (families.owners[backwards], families.masks()[backwards])
    best[places] = scores[backwards]
    number_of[places] = backwards
    for vertex in range(n):
        for member in range(n):
            scored = best[vertex].reshape(-1, 2, 1 << member)
            numbered = number_of[vertex].reshape(-1, 2, 1 << member)
            wins = scored[:, 0] > scored[:, 1]
            scored[:, 1][wins] = scored[:, 0][wins]
            numbered[:, 1][wins] = numbered[:, 0][wins]
    return best, number_of


def _best_sinks(best: Floats) -> Ints:
    """Return (2^n,) the last vertex of a best order of each set of vertices."""
    n = len(best)
    total = np.full(1 << n, -np.inf)
    total[0] = 0.0
    sink = np.zeros(1 << n, np.int64)
    everything = np.arange(1 << n)
    sizes = np.bitwise_count(everything)
    for size in range(1, n + 1):
        layer = everything[sizes == size]
        for vertex in range(n):
            with_vertex = layer[(layer >> vertex) & 1 == 1]
            without = with_vertex ^ (1 << vertex)
            value = total[without] + best[vertex, without]
            wins = value > total[with_vertex]
            total[with_vertex[wins]] = value[wins]
            sink[with_vertex[wins]] = vertex
    return sink
