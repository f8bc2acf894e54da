"""Markov equivalence of networks: the CPDAG, and the distance between two networks.

Two networks are equivalent if they have the same skeleton and the same v-structures (Verma &
Pearl). The class is drawn as a partly directed graph, the CPDAG: an edge has a direction iff it has
that direction in every member."""

from collections.abc import Collection
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from ..foundation.arrays import Bools
from ..foundation.errors import QubayesError, some
from ..foundation.graph import edges_of
from .network import Edge, Network


@dataclass(frozen=True, slots=True)
class Cpdag:
    """The equivalence class of a network.

    `directed` are the edges that every member directs alike, `undirected` the reversible ones."""

    names: tuple[str, ...]
    directed: tuple[Edge, ...]  # (parent, child), ascending
    undirected: tuple[Edge, ...]  # (smaller, larger), ascending

    @property
    def n(self) -> int:
        """Number of vertices."""
        return len(self.names)

    @property
    def edges(self) -> list[tuple[str, str]]:
        """The edges by name: (parent, child) for the directed ones, then the reversible ones."""
        return [(self.names[a], self.names[b]) for a, b in (*self.directed, *self.undirected)]


def skeleton(network: Network) -> frozenset[Edge]:
    """Return the pairs (smaller, larger) of adjacent vertices."""
    return frozenset((min(edge), max(edge)) for edge in edges_of(network.parents))


def v_structures(network: Network) -> frozenset[tuple[int, int, int]]:
    """Return the triples (a, child, b), a < b, of a child and two parents that are not adjacent."""
    adjacent = skeleton(network)
    found = set()
    for child, its in enumerate(network.parents):
        for a, b in combinations(sorted(its), 2):
            if (a, b) not in adjacent:
                found.add((a, child, b))
    return frozenset(found)


def cpdag(network: Network, told: Bools | None = None) -> Cpdag:
    """Return the equivalence class of the network.

    `told[a, b]` says that experiments tell the direction of an edge between a and b, since one of
    the two was set where the other was not; the class is then that of Hauser and Bühlmann (JMLR
    2012), with fewer members. In a network of numbers and states, an edge from a state to a number
    keeps its direction in every member: no number is a parent of states.

    Chickering's labelling (UAI 1995): vertices in topological order, so that every edge that may
    compel another has its label already. Cost: the sum of the squared numbers of parents.

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
        its = parents[vertex]
        if its:
            # All edges into the vertex are compelled if its last parent has a compelled parent that
            # is not one of its own (w -> last - vertex, else a new v-structure), or if another of
            # its parents is not adjacent to the last one (a v-structure; being last in the order,
            # that one has only parents to be adjacent to). Otherwise only what is compelled into
            # the last parent is compelled here too.
            last = max(its, key=place.__getitem__)
            all_compelled = not compelled[last] <= its or its - parents[last] - {last}
            compelled[vertex] = its if all_compelled else compelled[last]
    edges = edges_of(network.parents)
    directed = sorted((a, b) for a, b in edges if a in compelled[b])
    undirected = sorted((min(a, b), max(a, b)) for a, b in edges if a not in compelled[b])
    if network.is_mixed:
        across = _across_kinds(network)
        told = across if told is None else told | across
    if told is not None:
        return _directed_by(network, {*directed, *(edge for edge in edges if told[edge])})
    return Cpdag(network.names, tuple(directed), tuple(undirected))


def _across_kinds(network: Network) -> Bools:
    """(n, n) whether one of two variables is discrete and the other continuous."""
    is_number = np.array([not states for states in network.states or ()])
    found: Bools = is_number[:, None] != is_number
    return found


def _directed_by(network: Network, known: set[Edge]) -> Cpdag:
    """Return the class in which these edges have their direction, and all that they imply."""
    edges = set(edges_of(network.parents))
    adjacent = skeleton(network)
    while new := {edge for edge in edges - known if _is_implied(edge, edges, known, adjacent)}:
        known |= new
    undirected = sorted((min(edge), max(edge)) for edge in edges - known)
    return Cpdag(network.names, tuple(sorted(known)), tuple(undirected))


def _is_implied(edge: Edge, edges: set[Edge], known: set[Edge], adjacent: frozenset[Edge]) -> bool:
    """Return whether the rules of Meek (UAI 1995) give the edge its direction.

    Turned round, it would make a new v-structure or a cycle of known edges. The rule of two parents
    that are not adjacent says nothing here: their v-structure is in the class without experiments.
    """
    a, b = edge

    def joined(x: int, y: int) -> bool:
        return (min(x, y), max(x, y)) in adjacent

    into_a = [c for c, child in known if child == a]
    into_b = [c for c, child in known if child == b]
    if any(not joined(c, b) for c in into_a) or any((a, c) in known for c in into_b):
        return True
    beside = [c for c in into_b if joined(a, c)]
    # d -> c -> b, where a is joined to both and d is not joined to b
    return any(
        (d, c) in known and joined(a, d) and not joined(d, b) for c in beside for d, _ in edges
    )


@dataclass(frozen=True, slots=True)
class Agreement:
    """How many edges two graphs share."""

    common: int
    learned: int
    truth: int

    @classmethod
    def of(cls, learned: frozenset[Any], truth: frozenset[Any]) -> "Agreement":
        """Return the counts of two sets of edges."""
        return cls(len(learned & truth), len(learned), len(truth))

    @property
    def precision(self) -> float:
        """The share of the learned edges that are true; 1 if none were learned."""
        return self.common / self.learned if self.learned else 1.0

    @property
    def recall(self) -> float:
        """The share of the true edges that were learned; 1 if there are none."""
        return self.common / self.truth if self.truth else 1.0

    @property
    def f1(self) -> float:
        """2 common / (learned + truth), the harmonic mean of precision and recall.

        1 if neither has an edge."""
        return 2 * self.common / (self.learned + self.truth) if self.learned + self.truth else 1.0

    def as_json(self) -> dict[str, Any]:
        """Return the counts and shares by name."""
        return {
            "common": self.common,
            "a": self.learned,
            "b": self.truth,
            "precision": self.precision,
            "recall": self.recall,
            "f1": self.f1,
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """A learned network compared with the true one.

    A structural Hamming distance counts the pairs of vertices between which something else stands:
    an edge to add, to remove or to turn counts one each; between equivalence classes also one to
    direct or to leave without direction."""

    distance: int  # structural Hamming distance of the graphs
    cpdag_distance: int  # the same of the equivalence classes
    missing: int  # edges of the truth between vertices that are not adjacent in the learned graph
    extra: int  # learned edges between vertices that are not adjacent in truth
    reversed: int  # edges with the other direction
    edges: Agreement  # directed edges
    skeleton: Agreement  # adjacent pairs
    # edges of the equivalence classes; the same pair with the same direction, or both without
    cpdag: Agreement

    def as_json(self) -> dict[str, Any]:
        """Return what `qubayes compare --json` prints."""
        return {
            "shd": self.distance,
            "shd_cpdag": self.cpdag_distance,
            "missing": self.missing,
            "extra": self.extra,
            "reversed": self.reversed,
            "edges": self.edges.as_json(),
            "skeleton": self.skeleton.as_json(),
            "cpdag": self.cpdag.as_json(),
        }

    def describe(self) -> list[str]:
        """Return the comparison in a few lines for people."""
        changes = f"{self.missing} missing, {self.extra} extra, {self.reversed} reversed"
        lines = [
            f"structural Hamming distance {self.distance} ({changes})",
            f"structural Hamming distance of the equivalence classes {self.cpdag_distance}",
            f"{'':16}{'common':>8}{'A':>8}{'B':>8}{'precision':>11}{'recall':>8}{'F1':>8}",
        ]
        for name, part in (
            ("directed edges", self.edges),
            ("skeleton", self.skeleton),
            ("class", self.cpdag),
        ):
            counts = f"{part.common:>8}{part.learned:>8}{part.truth:>8}"
            lines.append(
                f"{name:16}{counts}{part.precision:>11.3f}{part.recall:>8.3f}{part.f1:>8.3f}"
            )
        return lines


def compare(learned: Network, truth: Network) -> Comparison:
    """Return how the learned network differs from the true one.

    Vertices are matched by name; their order may differ.

    >>> truth = Network(("a", "b", "c"), ((), (0,), (1,)))
    >>> found = compare(Network(("a", "b", "c"), ((1,), (2,), ())), truth)
    >>> found.distance, found.reversed, found.cpdag_distance
    (2, 2, 0)
    """
    _check_same_vertices(set(learned.names), set(truth.names))
    found = frozenset(learned.edges)
    true = frozenset(truth.edges)
    found_pairs = frozenset(map(frozenset, found))
    true_pairs = frozenset(map(frozenset, true))
    found_class = _class_edges(cpdag(learned))
    true_class = _class_edges(cpdag(truth))
    pairs = len(found_pairs | true_pairs)
    distance = pairs - len(found & true)
    missing = len(true_pairs - found_pairs)
    extra = len(found_pairs - true_pairs)
    return Comparison(
        distance=distance,
        cpdag_distance=pairs - len(found_class & true_class),
        missing=missing,
        extra=extra,
        reversed=distance - missing - extra,
        edges=Agreement.of(found, true),
        skeleton=Agreement.of(found_pairs, true_pairs),
        cpdag=Agreement.of(found_class, true_class),
    )


def _check_same_vertices(ours: set[str], theirs: set[str]) -> None:
    """Raise unless the sets of names are equal."""
    parts = []
    for which, names in (("first", ours - theirs), ("second", theirs - ours)):
        if names:
            parts.append(f"only the {which} has {some(sorted(names))}")
    if parts:
        raise QubayesError(
            f"the networks have different vertices: {'; '.join(parts)}; "
            "compare networks of the same ones"
        )


def _class_edges(graph: Cpdag) -> frozenset[Collection[str]]:
    """Return the directed edges as tuples of names, the others as sets."""
    names = graph.names
    directed = [(names[a], names[b]) for a, b in graph.directed]
    undirected = [frozenset((names[a], names[b])) for a, b in graph.undirected]
    return frozenset((*directed, *undirected))
