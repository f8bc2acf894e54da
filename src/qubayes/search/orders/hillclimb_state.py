"""A network that climbs: its graph, what every toggled edge would score, and what was scored before.

Few arrays, each with several uses, as compiling a kernel takes longer with every array that it is given.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...candidates import Candidates
from ...foundation.arrays import Floats, Ints, SmallInts, Words
from ...foundation.families import VertexSet
from ...foundation.graph import topological_order
from ...foundation.jit import kernel

MEMORY = 64 << 20  # bytes for rows that were scored before

SIZE, KEY, FIRST = range(3)  # columns of `lists` and `entries`
PARENTS, ANCESTORS, BEST_PARENTS, BEST_ANCESTORS, POSSIBLE = range(5)  # planes of `bits`
STEPS, STALL, KICK, CLIMBS, CHANGED = range(5)  # of `counts`
TOTAL, CLIMB_BEST, BEST = range(3)  # of `totals`


class Climb(NamedTuple):
    """One climb after another; kernels write it.

    A key says which parents a vertex has: the number of its candidate set + 1, or a hash of the vertex and its parents.
    Row v < n of the table (`scores`, `entries`) belongs to vertex v as it is; the rows after are what was scored
    before, by key. `scores[v, j]` is the score of v with the edge j -> v toggled, -inf if that is not allowed;
    `scores[v, v]` is its score as it is.
    """

    lists: Ints  # (2, n, 2 + most) of the graph, and of the best: number of parents, key, parents in any order
    bits: Words  # (5, n, words) bit j of row v: j is a parent, an ancestor of v; so in the best; j -> v is possible
    scores: Floats  # (rows, n)
    entries: Ints  # (rows, 2 + 2n) number of edges that may be toggled, key, set that each gives, edges best first
    edges: SmallInts  # (edges, 2) child and parent of each possible edge
    hashes: Ints  # (2, n) random words of each vertex as a child and as a parent
    tabu: Ints  # (n, n) the step from which a pair may be changed again
    changed: Ints  # (n + 2, 3) child, parent and the new set of changes to come; then the vertices that await rows
    counts: Ints  # (5,) steps, steps since the climb's best, edges of the kick still to change, climbs, changed
    totals: Floats  # (3,) score of the graph, of the best of this climb, of the best of all
    random: Words  # (2, 1)
    scratch: Ints  # (2, n)


def possible_edges(candidates: Candidates) -> SmallInts:
    """(edges, 2) child and parent of every edge in a candidate set, those that are required left out."""
    families = candidates.families
    found = np.zeros((candidates.n, candidates.n), np.bool_)
    for vertex in range(candidates.n):
        first, last = families.set_start[families.vertex_start[vertex : vertex + 2]]
        found[vertex] = np.bincount(families.members[first:last], minlength=candidates.n) > 0
        found[vertex, list(candidates.base(vertex))] = False
    # In rows, whatever their number: kernels are compiled for one layout, and `argwhere` gives columns.
    return np.ascontiguousarray(np.argwhere(found), dtype=np.int32)


def new_climb(
    parents: Sequence[VertexSet], keys: Ints, most: int, edges: SmallInts, random: Words, *, kick: int
) -> Climb:
    """A climb from these parents, not scored yet; first `kick` random edges are to be changed."""
    n = len(parents)
    lists, bits = np.zeros((2, n, FIRST + most), np.int64), np.zeros((5, n, -(-n // 64)), np.uint64)
    for vertex in topological_order(parents):
        lists[0, vertex, KEY] = keys[vertex]
        for parent in parents[vertex]:
            _put(lists, bits, vertex, parent)
            inherit(bits, vertex, parent)
    words = np.uint64(1) << (edges[:, 1] & 63).astype(np.uint64)
    np.bitwise_or.at(bits[POSSIBLE], (edges[:, 0], edges[:, 1] >> 6), words)
    rows = n + max(n, MEMORY // max(1, 24 * n))
    changed = np.zeros((n + 2, 3), np.int64)
    changed[:n, 0] = np.arange(n)
    return Climb(
        lists=lists,
        bits=bits,
        scores=np.empty((rows, n)),
        entries=np.zeros((rows, FIRST + 2 * n), np.int64),
        edges=edges,
        hashes=parent_hashes(n),
        tabu=np.zeros((n, n), np.int64),
        changed=changed,
        counts=np.array([0, 0, kick, 0, n]),
        totals=np.full(3, -np.inf),
        random=random,
        scratch=np.zeros((2, n), np.int64),
    )


def parent_hashes(n: int) -> Ints:
    """Random words by which parents are told apart: among 10^6 sets two share a hash with a chance of 1e-7."""
    return np.random.default_rng(0).integers(1, 2**63, (2, n), dtype=np.int64)


def _put(lists: Ints, bits: Words, vertex: int, parent: int) -> None:
    lists[0, vertex, FIRST + lists[0, vertex, SIZE]] = parent
    lists[0, vertex, SIZE] += 1
    bits[PARENTS, vertex, parent >> 6] |= np.uint64(1 << (parent & 63))


@kernel
def has(bits: Any, plane: int, vertex: Any, other: Any) -> Any:
    """Whether the bit of `other` is set in the vertex's row of a plane."""
    return (bits[plane, vertex, other >> 6] >> np.uint64(other & 63)) & np.uint64(1) != 0


@kernel
def inherit(bits: Any, vertex: Any, parent: Any) -> None:
    """Add the parent and its ancestors to the ancestors of the vertex."""
    for word in range(bits.shape[2]):
        bits[ANCESTORS, vertex, word] |= bits[ANCESTORS, parent, word]
    bits[ANCESTORS, vertex, parent >> 6] |= np.uint64(1) << np.uint64(parent & 63)


@kernel
def renew_ancestors(climb: Any, vertex: Any) -> None:
    """Ancestors of the vertex, whose parents changed, and of its descendants, each once all its parents have theirs."""
    bits, waits, waiting = climb.bits, climb.scratch[0], climb.scratch[1]
    left = 0
    for other in range(len(waits)):
        waits[other] = 0
        if other == vertex or has(bits, ANCESTORS, other, vertex):
            waits[other], waiting[left] = 1, other
            left += 1
    while left:
        kept = 0
        for k in range(left):
            other = waiting[k]
            parents = climb.lists[0, other]
            ready = True
            for p in range(FIRST, FIRST + parents[SIZE]):
                ready = ready and waits[parents[p]] == 0
            if not ready:
                waiting[kept] = other
                kept += 1
                continue
            waits[other] = 0
            for word in range(bits.shape[2]):
                bits[ANCESTORS, other, word] = np.uint64(0)
            for p in range(FIRST, FIRST + parents[SIZE]):
                inherit(bits, other, parents[p])
        left = kept


@kernel
def copy_graph(climb: Any, start: int, end: int) -> None:
    """Write the graph over the best (0, 1), or the best over the graph (1, 0)."""
    for vertex in range(climb.lists.shape[1]):
        for k in range(climb.lists.shape[2]):
            climb.lists[end, vertex, k] = climb.lists[start, vertex, k]
        for k in range(climb.bits.shape[2]):
            climb.bits[2 * end + PARENTS, vertex, k] = climb.bits[2 * start + PARENTS, vertex, k]
            climb.bits[2 * end + ANCESTORS, vertex, k] = climb.bits[2 * start + ANCESTORS, vertex, k]


@kernel
def copy_row(climb: Any, start: Any, end: Any) -> None:
    """Write one row of the table over another."""
    for k in range(climb.scores.shape[1]):
        climb.scores[end, k] = climb.scores[start, k]
    for k in range(climb.entries.shape[1]):
        climb.entries[end, k] = climb.entries[start, k]
