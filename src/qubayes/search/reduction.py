"""Reductions of candidate sets that keep the best score: twins, required edges and strongly connected components.

Twins are two variables that scores cannot tell apart. Write s for the exchange of a and b. They are
twins if every set P of every vertex v has a partner s(P) among the sets of s(v) with the same
score, and no set contains both. Then some best network has b without children and with its best
set: exchange a and b if b comes first, replace b by its representative a in every set (a precedes
all children of b), and let b, which has no child now, take its best set (proof in docs/exact.md).

Components: edges between components of the candidate graph follow one order in every network, so a
    parent outside its child's component is always allowed. Each component is a problem of its own,
    in which only the members inside matter."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..candidates import Candidates, tolerance
from ..foundation.arrays import AnyArray, Floats, Ints, SmallInts, Words, frozen
from ..foundation.families import Families, VertexSet
from ..foundation.graph import reachable, strong_components

LARGEST = 14  # vertices that `best_of_all` is meant for: 2^14 * 14 scores, some 20 ms
_MOST = 100  # vertices that a vertex is compared with: the first with as many sets


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
    table = SetTable(candidates) if pairs else None  # takes about twice the candidates' memory
    # representative, and largest change of a score by the exchange
    found: dict[int, tuple[int, float]] = {}
    for twin, other in pairs:
        if table is not None and twin not in found and other not in found:
            difference = table.exchange_difference(other, twin)
            if difference is not None:
                found[twin] = other, difference
    kept, gone = np.ones(len(candidates.scores), np.bool_), np.zeros(candidates.n, np.bool_)
    if table is None or not found:
        return Reduced(candidates, frozen(np.arange(len(kept))), 0.0, ())
    for twin in found:
        first, last = candidates.families.vertex_start[twin : twin + 2].tolist()
        best = first + int(np.argmax(kept[first:last]))
        kept[first:best] = kept[best + 1 : last] = False
        gone[twin] = True
        holding = table.holding(twin)
        kept[holding[~gone[table.owners[holding]]]] = False
    sources = np.flatnonzero(kept)
    # each set changes at most twice
    rounding = 2.0 * sum(difference for _, difference in found.values())
    twins = tuple((twin, other) for twin, (other, _) in found.items())
    return Reduced(select_sets(candidates, sources), frozen(sources), rounding, twins)


def select_sets(candidates: Candidates, numbers: Ints) -> Candidates:
    """Select sets by number, ascending; the last kept set of each vertex must be inside all its others."""
    families, scores = candidates.families.chosen(numbers), frozen(candidates.scores[numbers])
    return replace(candidates, families=families, scores=scores)


def _margins(candidates: Candidates) -> Floats:
    """Return (n,) the difference up to which two scores of a vertex may be equal but for rounding."""
    rows = candidates.stamp.rows or 0
    return np.array([8.0 * tolerance(score, rows) for score in candidates.base_scores.tolist()])


def _alike(candidates: Candidates) -> list[tuple[int, int]]:
    """Return (vertex, earlier vertex) with equally many sets, equally many sets that contain them, and equal scores."""
    start, margins = candidates.families.vertex_start, _margins(candidates)
    scores = np.split(candidates.scores, start[1:-1])
    held = np.bincount(candidates.families.members, minlength=candidates.n)
    groups: dict[tuple[int, int], list[int]] = {}
    pairs = []
    for vertex, size in enumerate(candidates.families.sizes.tolist()):
        group = groups.setdefault((size, int(held[vertex])), [])
        for other in group[:_MOST] if size > 1 else ():
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
        """Return the largest change of a network's score by the exchange of a and b; None if they are not twins."""
        if np.intersect1d(self.holding(a), self.holding(b), assume_unique=True).size:
            return None
        own = [np.arange(self._vertex_start[v], self._vertex_start[v + 1]) for v in (a, b)]
        # repeated numbers do no harm
        numbers = np.concatenate([self.holding(a), self.holding(b), *own])
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
        """Return hashes with the owner's number in front: look-ups for one vertex stay close together in memory."""
        hashes: Words = np.zeros(len(rows), np.uint64)
        for place in range(rows.shape[1]):
            hashes += self._member_keys[rows[:, place]]
        hashes >>= np.uint64(64) - self._shift
        hashes |= owners.astype(np.uint64) << self._shift
        return hashes


def with_required_edges(reduced: Reduced, kept: Ints) -> Reduced:
    """Return the kept sets (ascending, at least one of each vertex) without those that required edges exclude.

    An edge is required if all kept sets of its child contain its parent. What the sets of a vertex
    share becomes its base; if that is not a set, it scores as the best set inside it."""
    candidates = reduced.candidates
    while True:
        left = select_sets(candidates, kept)
        families, n = left.families, left.n
        counts = np.zeros((n, n), np.int64)
        np.add.at(counts, (families.members, families.member_owners), 1)
        required = counts == families.sizes  # by parent and child
        wrong = np.append(
            0, np.cumsum(reachable(required)[families.member_owners, families.members])
        )
        possible = np.diff(wrong[families.set_start]) == 0
        if possible.all():
            break
        kept = kept[possible]
    lists: list[list[VertexSet]] = []
    numbers: list[int] = []
    bases = candidates.families.best_inside(required.T)
    for vertex in range(n):
        first, last = families.vertex_start[vertex : vertex + 2].tolist()
        sets, base = (
            list(families.sets_of(vertex)),
            tuple(np.flatnonzero(required[:, vertex]).tolist()),
        )
        numbers.extend(kept[first:last].tolist())
        if sets[-1] != base:
            sets.append(base)
            numbers.append(int(bases[vertex]))
        lists.append(sets)
    fewer = replace(
        candidates, families=Families.of(lists), scores=frozen(candidates.scores[numbers])
    )
    return reduced._replace(candidates=fewer, sources=frozen(reduced.sources[numbers]))


class Component(NamedTuple):
    """The candidate sets of one component, in local numbers: best first inside a vertex, its base last."""

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
    """Return the numbers of the sets without those that equal a better one, or come after one that equals the base."""
    rows = np.column_stack([families.owners, families.padded()])
    first = np.sort(np.unique(rows, axis=0, return_index=True)[1])
    sizes = np.diff(families.set_start)
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
    """Return the candidate sets of an optimal network; n 2^n scores in memory (Silander and Myllymäki 2006)."""
    n = families.n
    # best set inside each set of vertices
    best, number_of = np.full((n, 1 << n), -np.inf), np.full((n, 1 << n), -1)
    for vertex in range(n):
        first, last = families.vertex_start[vertex : vertex + 2].tolist()
        masks = [sum(1 << member for member in members) for members in families.sets_of(vertex)]
        # the best comes last
        for number, mask in zip(range(last - 1, first - 1, -1), reversed(masks), strict=True):
            best[vertex, mask], number_of[vertex, mask] = scores[number], number
        for member in range(n):
            scored = best[vertex].reshape(-1, 2, 1 << member)
            numbered = number_of[vertex].reshape(-1, 2, 1 << member)
            wins = scored[:, 0] > scored[:, 1]
            scored[:, 1][wins] = scored[:, 0][wins]
            numbered[:, 1][wins] = numbered[:, 0][wins]
    total, sink = np.full(1 << n, -np.inf), np.zeros(1 << n, np.int64)
    total[0] = 0.0
    everything = np.arange(1 << n)
    sizes = sum((everything >> vertex) & 1 for vertex in range(n))
    for size in range(1, n + 1):
        layer = everything[sizes == size]
        for vertex in range(n):
            with_vertex = layer[(layer >> vertex) & 1 == 1]
            without = with_vertex ^ (1 << vertex)
            value = total[without] + best[vertex, without]
            wins = value > total[with_vertex]
            total[with_vertex[wins]] = value[wins]
            sink[with_vertex[wins]] = vertex
    choice, rest = np.empty(n, np.int64), (1 << n) - 1
    while rest:  # from the last vertex of the order to the first
        vertex = int(sink[rest])
        rest ^= 1 << vertex
        choice[vertex] = number_of[vertex, rest]
    return choice
