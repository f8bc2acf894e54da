"""How far a learned network is from the true one: distances, precision and recall."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..foundation.errors import QubayesError
from .equivalence import Cpdag, Edge, cpdag
from .network import Network
from .parameters import some

# What stands between two vertices a < b: "a>b", "b>a" or "a-b" for an edge that has no direction.
_Marks = Mapping[Edge, str]


@dataclass(frozen=True, slots=True)
class Agreement:
    """How many edges two graphs share."""

    common: int
    learned: int
    truth: int

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
        """2 common / (learned + truth), the harmonic mean of precision and recall; 1 if neither has an edge."""
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
    """A learned network beside the true one.

    A structural Hamming distance counts the pairs of vertices between which something else stands: an edge to add, to
    remove or to turn counts one each; between equivalence classes also one to direct or to leave without direction.
    """

    distance: int  # structural Hamming distance of the graphs
    cpdag_distance: int  # the same of the equivalence classes
    missing: int  # edges of the truth between vertices that are not adjacent in the learned graph
    extra: int  # learned edges between vertices that are not adjacent in truth
    reversed: int  # edges with the other direction
    edges: Agreement  # directed edges
    skeleton: Agreement  # adjacent pairs
    cpdag: Agreement  # edges of the equivalence classes; the same pair with the same direction, or both without

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
        for name, part in (("directed edges", self.edges), ("skeleton", self.skeleton), ("class", self.cpdag)):
            counts = f"{part.common:>8}{part.learned:>8}{part.truth:>8}"
            lines.append(f"{name:16}{counts}{part.precision:>11.3f}{part.recall:>8.3f}{part.f1:>8.3f}")
        return lines


def compare(learned: Network, truth: Network) -> Comparison:
    """How the learned network differs from the true one. Vertices are matched by name; their order may differ.

    >>> truth = Network(("a", "b", "c"), ((), (0,), (1,)))
    >>> found = compare(Network(("a", "b", "c"), ((1,), (2,), ())), truth)
    >>> found.distance, found.reversed, found.cpdag_distance
    (2, 2, 0)
    """
    _check_names(learned, truth)
    place = {name: vertex for vertex, name in enumerate(truth.names)}
    found, true = _graph_marks(learned, place), _graph_marks(truth, place)
    found_class, true_class = _class_marks(cpdag(learned), place), _class_marks(cpdag(truth), place)
    distance, missing, extra = _distance(found, true), len(true.keys() - found), len(found.keys() - true)
    return Comparison(
        distance=distance,
        cpdag_distance=_distance(found_class, true_class),
        missing=missing,
        extra=extra,
        reversed=distance - missing - extra,
        edges=_agreement(found, true),
        skeleton=Agreement(len(found.keys() & true.keys()), len(found), len(true)),
        cpdag=_agreement(found_class, true_class),
    )


def _check_names(learned: Network, truth: Network) -> None:
    ours, theirs = set(learned.names), set(truth.names)
    if ours != theirs:
        parts = [
            f"only the {which} has {some(sorted(names))}"
            for which, names in (("first", ours - theirs), ("second", theirs - ours))
            if names
        ]
        raise QubayesError(
            f"the networks have different vertices: {'; '.join(parts)}; compare networks of the same ones"
        )


def _graph_marks(network: Network, place: Mapping[str, int]) -> _Marks:
    at = [place[name] for name in network.names]
    return dict(_arrow(at[parent], at[child]) for child, its in enumerate(network.parents) for parent in its)


def _class_marks(graph: Cpdag, place: Mapping[str, int]) -> _Marks:
    at = [place[name] for name in graph.names]
    lines = {(min(at[a], at[b]), max(at[a], at[b])): "a-b" for a, b in graph.undirected}
    return lines | dict(_arrow(at[parent], at[child]) for parent, child in graph.directed)


def _arrow(parent: int, child: int) -> tuple[Edge, str]:
    return ((parent, child), "a>b") if parent < child else ((child, parent), "b>a")


def _distance(found: _Marks, true: _Marks) -> int:
    return sum(found.get(pair) != true.get(pair) for pair in found.keys() | true.keys())


def _agreement(found: _Marks, true: _Marks) -> Agreement:
    return Agreement(sum(true.get(pair) == mark for pair, mark in found.items()), len(found), len(true))
