"""The Markov equivalence class of a network: what its graph says about independence, and no more.

Two networks are equivalent if they have the same skeleton and the same v-structures (Verma & Pearl). The class is
drawn as a partly directed graph, the CPDAG: an edge has a direction iff it has that direction in every member.
"""

from dataclasses import dataclass

from .network import Network

Edge = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Cpdag:
    """The equivalence class of a network: edges that every member directs alike, and edges that can be turned."""

    names: tuple[str, ...]
    directed: tuple[Edge, ...]  # (parent, child), ascending
    undirected: tuple[Edge, ...]  # (smaller, larger), ascending

    @property
    def n(self) -> int:
        """Number of vertices."""
        return len(self.names)

    @property
    def edges(self) -> int:
        """Number of edges, directed or not."""
        return len(self.directed) + len(self.undirected)


def skeleton(network: Network) -> frozenset[Edge]:
    """The pairs (smaller, larger) of adjacent vertices."""
    return frozenset(
        (min(parent, child), max(parent, child)) for child, its in enumerate(network.parents) for parent in its
    )


def v_structures(network: Network) -> frozenset[tuple[int, int, int]]:
    """The triples (a, child, b), a < b, where a and b are parents of the child and not adjacent."""
    adjacent = skeleton(network)
    return frozenset(
        (a, child, b)
        for child, its in enumerate(network.parents)
        for a in its
        for b in its
        if a < b and (a, b) not in adjacent
    )


def cpdag(network: Network) -> Cpdag:
    """The equivalence class of the network.

    Chickering's labelling (UAI 1995): vertices in topological order, so that every edge that may compel another has
    its label already. Cost: the sum of the squared numbers of parents.

    >>> chain = cpdag(Network(("a", "b", "c"), ((), (0,), (1,))))
    >>> collider = cpdag(Network(("a", "b", "c"), ((), (0, 2), ())))
    >>> chain.directed, chain.undirected, collider.directed
    ((), ((0, 1), (1, 2)), ((0, 1), (2, 1)))
    """
    order = network.order
    place = {vertex: k for k, vertex in enumerate(order)}
    parents = tuple(frozenset(its) for its in network.parents)
    compelled: list[frozenset[int]] = [frozenset()] * network.n  # of the parents of each vertex
    for vertex in order:
        if parents[vertex]:
            last = max(parents[vertex], key=place.__getitem__)
            compelled[vertex] = _compelled(parents[vertex], last, parents[last], compelled[last])
    edges = [(parent, child) for child, its in enumerate(network.parents) for parent in its]
    directed = sorted((a, b) for a, b in edges if a in compelled[b])
    undirected = sorted((min(a, b), max(a, b)) for a, b in edges if a not in compelled[b])
    return Cpdag(network.names, tuple(directed), tuple(undirected))


def _compelled(
    parents: frozenset[int], last: int, above: frozenset[int], compelled_above: frozenset[int]
) -> frozenset[int]:
    """Those parents of a vertex whose edges into it are directed in the class; `above` are the parents of the last.

    All are if the last parent has a compelled parent that is not one of the vertex's (w -> last - vertex, else a new
    v-structure), or if some other parent is apart from the last one (a v-structure; as the last in the order it has
    only parents to be adjacent to). Otherwise only what is compelled into the last parent is compelled here too.
    """
    if not compelled_above <= parents or parents - above - {last}:
        return parents
    return compelled_above
