"""Presolve: remove candidate sets that some best network does not need (docs/exact.md)."""

import math
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from ...candidates import Candidates
from ...foundation.arrays import Bools, Ints, frozen
from ...foundation.families import Families, VertexSet
from ...foundation.graph import reachable
from ...foundation.interrupt import stopping
from ...foundation.progress import OnProgress, silent
from ...foundation.workers import Workers
from ..run import Limits, Run, bases_of, check
from ..solution import Solution
from .exact import Exact
from .proof import THOROUGH, Proof
from .representatives import select_sets, whole, without_twins


@dataclass(frozen=True, slots=True)
class Presolved:
    """Candidates with fewer sets, among whose networks is a best network of the original ones.

    Every vertex keeps its name. The members that all its remaining sets share have become its base (its required
    parents). The best score is the same; where twins were eliminated, up to the rounding within which their scores
    agree.
    """

    original: Candidates = field(repr=False)
    candidates: Candidates
    sources: Ints = field(repr=False)  # (sets,) number of the original set of each set
    score: float  # of the best network found on the way
    bound: float  # no network scores more
    twins: tuple[tuple[int, int], ...]  # (twin, its representative)
    slack: float  # the best score fell by at most this, by the rounding of twins' scores
    seconds: float
    interrupted: bool = False

    @property
    def fixed(self) -> int:
        """Number of vertices with one set left."""
        return int((self.candidates.families.sizes == 1).sum())

    def as_json(self) -> dict[str, Any]:
        """Return what `qubayes presolve --json` prints, without the bits of the QUBO."""
        names = self.original.names
        return {
            "n": self.original.n,
            "sets": {"before": self.original.total, "after": self.candidates.total},
            "fixed_vertices": self.fixed,
            "twins": {names[twin]: names[other] for twin, other in self.twins},
            "score": self.score,
            "bound": self.bound,
            "seconds": round(self.seconds, 3),
        }

    def describe(self) -> list[str]:
        """Return the result in a few lines for people."""
        names = self.original.names
        lines = [
            f"{self.candidates.total:,} of {self.original.total:,} candidate sets are left ({self.seconds:.3g} s)",
            f"the parents of {self.fixed} of {self.original.n} variables are known",
        ]
        if self.twins:
            lines.append("twins: " + ", ".join(f"{names[twin]} of {names[other]}" for twin, other in self.twins))
        return [*lines, f"best network met scores {self.score:,.6f}; none scores more than {self.bound:,.6f}"]

    def restore(self, solution: Solution) -> Solution:
        """Return the solution as one of the original candidates."""
        choice = frozen(self.sources[solution.choice])
        return replace(
            solution,
            parents=self.original.families.sets_at(choice),
            choice=choice,
            empty_score=math.fsum(self.original.base_scores.tolist()),
            bound=max(solution.score, min(solution.bound + self.slack, self.bound)),
        )


def presolve(
    candidates: Candidates,
    seconds: float = 60.0,
    *,
    twins: bool = True,
    workers: Workers | None = None,
    on_progress: OnProgress = silent,
) -> Presolved:
    """Return the candidates without the sets that reduced costs exclude and, if `twins`, without twins.

    A set is removed if the multipliers of the relaxation prove every network with it worse than a known one, if
    required edges make it impossible, or if a representative of twins or a parent outside its component makes it
    superfluous. An interrupted presolve returns what it has proved so far.

    >>> from qubayes.candidates.example import example
    >>> presolved = presolve(example(), seconds=5)
    >>> presolved.candidates.total < presolved.original.total
    True
    """
    check(candidates)
    Exact().prepare()
    run = Run(candidates, Limits(seconds), workers or Workers(1), bases_of(candidates), on_progress, "presolve")
    reduced = without_twins(candidates) if twins else whole(candidates)
    with stopping(run.stop):
        proof = Proof(reduced, run)
        proof.relax(THOROUGH)
    kept = with_required_edges(reduced.candidates, proof.kept)
    return Presolved(
        candidates,
        kept.candidates,
        frozen(reduced.sources[kept.sources]),
        run.score,
        max(run.bound, run.score),
        reduced.twins,
        reduced.slack,
        run.elapsed,
        bool(run.stop[0]),
    )


class Narrowed(NamedTuple):
    """Candidates whose bases are the members that all kept sets share."""

    candidates: Candidates
    sources: Ints  # (sets,) number of the original set; for a new base the best set inside it


def with_required_edges(candidates: Candidates, kept: Ints) -> Narrowed:
    """Return the kept sets (ascending, at least one of each vertex) without those that required edges exclude.

    An edge is required if all kept sets of its child contain its parent.
    """
    while True:
        left = select_sets(candidates, kept)
        required = shared_members(left.families)
        possible = ~_reversing(left.families, reachable(required))
        if possible.all():
            return _with_bases(candidates, left, kept, required)
        kept = kept[possible]


def shared_members(families: Families) -> Bools:
    """Return (n, n) whether all sets of the child contain the parent, by parent and child."""
    n = families.n
    owners = np.repeat(np.arange(n), np.diff(families.set_start[families.vertex_start]))
    counts = np.zeros((n, n), np.int64)
    np.add.at(counts, (families.members, owners), 1)
    shared: Bools = counts == families.sizes[None, :]
    return shared


def _reversing(families: Families, before: Bools) -> Bools:
    """Return (sets,) whether the set contains a vertex that its owner must precede."""
    owners = np.repeat(np.arange(families.n), np.diff(families.set_start[families.vertex_start]))
    wrong = np.concatenate([[0], np.cumsum(before[owners, families.members])])
    found: Bools = np.diff(wrong[families.set_start]) > 0
    return found


def _with_bases(candidates: Candidates, left: Candidates, kept: Ints, required: Bools) -> Narrowed:
    """Return `left` with the shared members as bases; a base that is not a set scores as the best set inside it."""
    lists: list[list[VertexSet]] = []
    sources: list[int] = []
    bases = candidates.families.best_inside(required.T)
    for vertex in range(left.n):
        first, last = left.families.vertex_start[vertex : vertex + 2].tolist()
        sets = list(left.families.sets_of(vertex))
        base = tuple(np.flatnonzero(required[:, vertex]).tolist())
        sources.extend(kept[first:last].tolist())
        if sets[-1] != base:
            sets.append(base)
            sources.append(int(bases[vertex]))
        lists.append(sets)
    numbers = np.array(sources, np.int64)
    reduced = replace(candidates, families=Families.of(lists), scores=frozen(candidates.scores[numbers]))
    return Narrowed(reduced, frozen(numbers))
