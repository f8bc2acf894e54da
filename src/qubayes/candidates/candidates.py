"""Candidate parent sets with their local scores."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import log
from typing import Any

from ..foundation.arrays import Floats, Ints
from ..foundation.families import Families, VertexSet


@dataclass(frozen=True, slots=True)
class Stamp:
    """Where scores come from, so that two results are compared only if they mean the same."""

    score: str = "unknown"  # "bdeu", "bds", ...; "unknown" for files of other programs
    ess: float | None = None  # equivalent sample size, for the scores that have one
    max_parents: int | None = None
    rows: int | None = None
    arities: str = "unknown"  # what declared the number of states


def tolerance(base_score: float, rows: int = 0) -> float:
    """By more than this a set must beat each of its proper subsets to be a candidate set of the vertex.

    A set W is kept iff score(W) > best score of a proper subset + tolerance. 2^-46 of the base's score covers the
    rounding of a sum over the cells of a table, with which scores that are equal on paper come out apart. A score is
    the difference of two sums of the order N log N: where it is far smaller than they are (a variable that is nearly
    constant, in 300,000 rows), 2^-48 of that covers the rounding of theirs.
    """
    return 1e-10 + 2.0**-46 * abs(base_score) + 2.0**-48 * rows * log(max(rows, 1))


@dataclass(frozen=True, slots=True)
class Candidates:
    """The candidate parent sets of every vertex (Definition 2), best first.

    Inside a vertex, sets come in descending score (ties: smaller first, then lexicographic). The last one is the
    vertex's *base*: the empty set, or exactly the required parents. Every other set of the vertex contains the base
    and scores more.
    """

    names: tuple[str, ...]
    families: Families
    scores: Floats = field(repr=False)  # (sets,)
    stamp: Stamp = Stamp()

    @property
    def n(self) -> int:
        """Number of vertices."""
        return len(self.names)

    @property
    def total(self) -> int:
        """Number of candidate sets, the bases not counted (as the paper's Table D.2 counts)."""
        return int(self.families.sizes.sum()) - self.n

    @property
    def per_vertex(self) -> Ints:
        """Number of candidate sets of each vertex, its base not counted."""
        return self.families.sizes - 1

    def as_json(self) -> dict[str, Any]:
        """Return what `qubayes candidates --json` prints: numbers of sets, and the stamp."""
        return {
            "n": self.n,
            "rows": self.stamp.rows,
            "score": self.stamp.score,
            "ess": self.stamp.ess,
            "arities": self.stamp.arities,
            "m": self.stamp.max_parents,
            "total": self.total,
            "per_vertex": dict(zip(self.names, self.per_vertex.tolist(), strict=True)),
        }

    @property
    def base_scores(self) -> Floats:
        """Score of each vertex with its base alone; they sum to the score of the empty graph if nothing is required."""
        return self.scores[self.families.vertex_start[1:] - 1]

    def base(self, vertex: int) -> VertexSet:
        """The required parents of the vertex; () unless edges are required."""
        return self.families.set_at(int(self.families.vertex_start[vertex + 1]) - 1)

    def of(self, vertex: int) -> Iterator[tuple[VertexSet, float]]:
        """(parent set, score) of one vertex, best first, its base last."""
        first, last = self.families.vertex_start[vertex : vertex + 2]
        return zip(self.families.sets_of(vertex), self.scores[first:last].tolist(), strict=True)
