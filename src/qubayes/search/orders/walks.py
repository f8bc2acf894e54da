"""Candidate sets as arrays for searches over orders, and random orders.

The sets are rows of a table, best first inside a vertex, so that "the best set that the order
allows" is the first one that passes a test. For each edge parent -> child there is a list of the
child's sets that contain the parent."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...foundation.arrays import Floats, Ints, SmallInts, frozen
from ...foundation.environment import sparse
from ...foundation.errors import SettingError
from ...foundation.families import Families, VertexSet
from ...foundation.graph import renamed, topological_order
from ...foundation.jit import inner

_LARGEST = int(np.iinfo(np.uint16).max)  # vertices: a member is stored in 16 bits, and n for none
_GROUP = 1 << 18  # members of candidate sets that are sorted at once


class OrderProblem(NamedTuple):
    """Candidate sets, best first for each vertex, and for each edge the child's sets with it."""

    first: Ints  # (n + 1,) sets first[v] .. first[v + 1] - 1 belong to v
    scores: Floats  # (sets,)
    members: npt.NDArray[np.uint16]  # (sets, largest size), filled up with n
    # (sets, largest size) from the set to the next one without that member
    skip: npt.NDArray[np.uint16]
    edge_start: Ints  # (n + 1,) edges by parent
    child: SmallInts  # (edges,)
    list_start: Ints  # (edges,) the edge's sets are lists[list_start[e] : list_stop[e]], best first
    list_stop: Ints  # (edges,)
    lists: SmallInts  # (members,) numbers of sets

    @property
    def n(self) -> int:
        """Number of vertices."""
        return len(self.first) - 1


def order_problem(families: Families, scores: Floats, *, group: int = _GROUP) -> OrderProblem:
    """Return the sets of a component, or of all `Candidates`, in the form that kernels read.

    `group` members are sorted at once."""
    n = families.n
    if n > _LARGEST:
        raise SettingError(
            f"{n} variables in one component; the search over orders takes at most {_LARGEST}"
        )
    sizes, places = np.diff(families.set_start), families.set_start[families.vertex_start]
    members = np.full((len(sizes), int(sizes.max(initial=1))), n, np.uint16)
    skip, lists = np.ones_like(members), np.empty(len(families.members), np.int32)
    edges = [np.zeros((4, 0), np.int64)]  # parent, child, begin and end of its list
    cuts = np.unique([0, *np.searchsorted(places, np.arange(group, places[-1], group)), n]).tolist()
    for begin, end in pairwise(cuts):  # a group of vertices at a time bounds the memory
        sets = slice(*families.vertex_start[[begin, end]].tolist())
        used = np.arange(members.shape[1]) < sizes[sets, np.newaxis]
        listed = _list_edges(families, begin, end)
        members[sets][used] = families.members[places[begin] : places[end]]
        skip[sets][used] = listed.skip
        lists[places[begin] : places[end]] = listed.numbers
        edges.append(listed.edges)
    found = np.concatenate(edges, axis=1)
    parent, child, start, stop = found[:, np.argsort(found[0], kind="stable")]
    return OrderProblem(
        frozen(families.vertex_start[:]),
        # a view: kernels are compiled for read-only arrays, and the caller's array stays as it is
        frozen(scores[:]),
        frozen(members),
        frozen(skip),
        frozen(np.searchsorted(parent, np.arange(n + 1)).astype(np.int64)),
        frozen(child.astype(np.int32)),
        frozen(start),
        frozen(stop),
        frozen(lists),
    )


class _Listed(NamedTuple):
    edges: Ints  # (4, edges) parent, child, begin and end of its list
    numbers: SmallInts  # (members,) the lists of sets, by parent and child
    skip: npt.NDArray[np.uint16]  # (members,) of an `OrderProblem`, in the order of the members


def _list_edges(families: Families, begin: int, end: int) -> _Listed:
    """Return the lists of the edges into the vertices from `begin` up to `end`."""
    first, last = families.vertex_start[[begin, end]].tolist()
    start = families.set_start[first : last + 1]
    flat = families.members[start[0] : start[-1]]
    table: Any = sparse.csr_array(
        (np.arange(len(flat), dtype=np.int32), flat, start - start[0]),
        shape=(last - first, families.n),
    ).tocsc()
    parent = np.repeat(np.arange(families.n, dtype=np.int32), np.diff(table.indptr))
    child = np.repeat(
        np.arange(begin, end, dtype=np.int32), np.diff(families.vertex_start[begin : end + 1])
    )[table.indices]
    border = np.ones(len(flat) + 1, np.bool_)  # where another list begins
    border[1:-1] = (np.diff(parent) != 0) | (np.diff(child) != 0)
    gap = border.copy()  # where a run of consecutive sets begins
    gap[1:-1] |= np.diff(table.indices) != 1
    lists, runs = np.flatnonzero(border), np.flatnonzero(gap)
    skip = np.empty(len(flat), np.uint16)
    skip[table.data] = np.minimum(np.repeat(runs[1:], np.diff(runs)) - np.arange(len(flat)), 65535)
    edges = np.stack(
        [parent[lists[:-1]], child[lists[:-1]], start[0] + lists[:-1], start[0] + lists[1:]]
    )
    return _Listed(edges, table.indices + np.int32(first), skip)


def random_order(parents: Sequence[VertexSet], seed: np.random.SeedSequence) -> tuple[int, ...]:
    """Return a random order with parents first; the data's order of columns may hold the answer."""
    names: list[int] = np.random.default_rng(seed).permutation(len(parents)).tolist()
    vertex_of = dict(zip(names, range(len(parents)), strict=True))
    under_names = renamed((parents[vertex_of[name]] for name in range(len(parents))), names)
    return tuple(vertex_of[name] for name in topological_order(under_names))


@inner
def holds(members: Any, number: Any, vertex: Any) -> Any:
    """Return whether the vertex is a member of the set."""
    held = False
    for k in range(members.shape[1]):
        held |= members[number, k] == vertex
    return held
