"""Directed graphs: topological order, cycles, strongly connected components, reachability.

A graph is given by the parents of each vertex, or by a matrix `arcs` with arcs[a, b] for the arc a
-> b. Everything is numpy and plain Python: commands that only read networks load neither numba nor
scipy."""

from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, TypeVar

import numpy as np

from .arrays import Bools, Ints

Old = TypeVar("Old")
New = TypeVar("New")
_SHOWN = 8  # names of a cycle in a message


def topological_order(parents: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Return the vertices, parents before children, smallest index first.

    The result is shorter than `parents` if there is a cycle.

    >>> topological_order(((2,), (0,), ()))
    (2, 0, 1)
    """
    children = children_of(parents)
    missing = [len(its_parents) for its_parents in parents]
    ready = [vertex for vertex, count in enumerate(missing) if count == 0]
    heapify(ready)
    order = []
    while ready:
        order.append(heappop(ready))
        for child in children[order[-1]]:
            missing[child] -= 1
            if missing[child] == 0:
                heappush(ready, child)
    return tuple(order)


def edges_of(parents: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Return the edges (parent, child), by child.

    >>> edges_of(((2,), (2, 0), ()))
    [(2, 0), (2, 1), (0, 1)]
    """
    edges: list[tuple[int, int]] = []
    for child, its_parents in enumerate(parents):
        edges += [(parent, child) for parent in its_parents]
    return edges


def renamed(
    sets: Iterable[Iterable[Old]], name: Mapping[Old, New] | Sequence[New]
) -> list[tuple[New, ...]]:
    """Return the same sets with `name[member]` in place of each member.

    >>> renamed([(0, 1), (1,)], "ab")
    [('a', 'b'), ('b',)]
    """
    new_name: Any = name.__getitem__
    return [tuple(map(new_name, members)) for members in sets]


def children_of(parents: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the children of each vertex, ascending."""
    children: list[list[int]] = [[] for _ in parents]
    for child, its_parents in enumerate(parents):
        for parent in its_parents:
            children[parent].append(child)
    return children


def find_cycle(parents: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Return a directed cycle, each vertex a parent of the next and the last of the first, or ().

    >>> find_cycle(((2,), (0,), (1,), (0,)))
    (1, 2, 0)
    """
    rest = set(range(len(parents))) - set(topological_order(parents))
    if not rest:
        return ()
    # Every vertex in `rest` has a parent in `rest`: walking from parent to parent must return to a
    # vertex seen before.
    walk = [min(rest)]
    seen = {walk[0]: 0}
    while True:
        parent = min(p for p in parents[walk[-1]] if p in rest)
        if parent in seen:
            return tuple(reversed(walk[seen[parent] :]))
        seen[parent] = len(walk)
        walk.append(parent)


def cycle_path(cycle: Sequence[int], names: Sequence[str]) -> str:
    """Return the cycle as text for a message: "a -> b -> a", shortened if it is long."""
    path = [names[vertex] for vertex in (*cycle, cycle[0])]
    return " -> ".join([*path[: _SHOWN + 1], *["..."] * (len(cycle) > _SHOWN)])


def strong_components(arcs: Bools) -> list[Ints]:
    """Return the strongly connected components, each ascending, by their smallest vertices.

    Kosaraju's algorithm: a depth-first search along the arcs, then one against them that starts
    from the vertices that the first search left last. Each takes 2n steps, with numpy on rows of n
    arcs."""
    finished = [vertex for tree in _depth_first(arcs, range(len(arcs))) for vertex in tree]
    trees = _depth_first(np.ascontiguousarray(arcs.T), reversed(finished))
    return sorted((np.sort(tree) for tree in trees), key=lambda component: int(component[0]))


def _depth_first(arcs: Bools, roots: Iterable[int]) -> list[list[int]]:
    """Return the trees of a depth-first search, their vertices as the search leaves them."""
    unseen, trees = np.ones(len(arcs), np.bool_), []
    for root in roots:
        if not unseen[root]:
            continue
        tree, stack = [], [root]
        unseen[root] = False
        while stack:
            fresh = arcs[stack[-1]] & unseen
            vertex = int(fresh.argmax())
            if fresh[vertex]:
                unseen[vertex] = False
                stack.append(vertex)
            else:
                tree.append(stack.pop())
        trees.append(tree)
    return trees


def reachable(arcs: Bools) -> Bools:
    """Return (n, n) whether a path leads from a to b; every vertex reaches itself.

    Warshall's algorithm on bits."""
    n = len(arcs)
    reached = np.packbits(arcs | np.eye(n, dtype=np.bool_), axis=1)
    for vertex in range(n):
        before = reached[:, vertex >> 3] >> (7 - (vertex & 7)) & 1 == 1
        reached[before] |= reached[vertex]
    return np.unpackbits(reached, axis=1, count=n).astype(np.bool_)
