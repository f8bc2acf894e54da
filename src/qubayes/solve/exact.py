"""`exact`: the best network with a proof (GOB in the paper): an integer program over families with cluster cuts."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..arrays import Ints
from ..candidates import Candidates
from .branching import branch
from .choices import parents_of
from .component import ROOT, Component
from .parts import Part, join, split
from .run import Ending, Run


@dataclass(frozen=True, slots=True)
class Exact:
    """Column generation and cuts at the root, then branch and bound; each component apart (design §7, docs/exact.md)."""

    name: ClassVar[str] = "exact"
    takes: ClassVar[str] = "candidates"
    counts: ClassVar[str] = ""

    def __call__(self, candidates: Candidates, run: Run, /) -> Ending:
        """Search for a proof."""
        proof = Proof(candidates, run)
        proof.relax()
        nodes = proof.branch()
        figures = {"nodes": nodes, **proof.figures}
        if run.proved:
            return Ending("optimal", figures)
        return Ending("time limit reached; best so far returned", figures)


class Proof:
    """The components of the candidates under proof; what they find goes to the run."""

    def __init__(self, candidates: Candidates, run: Run) -> None:
        self._candidates, self._run = candidates, run
        self.parts = split(candidates)[::-1]
        order = topological_order(candidates, run.choice)
        tolerance = 0.5e-9 * max(1.0, abs(run.score)) / max(1, len(self.parts))
        self.components = [
            Component(part, _inside(order, part), tolerance, self._changed) for part in self.parts
        ]
        alone = np.ones(candidates.n, np.bool_)
        for part in self.parts:
            alone[part.vertices] = False
        self._top = candidates.scores[candidates.families.vertex_start[:-1]][alone].tolist()
        self._changed()

    @property
    def figures(self) -> dict[str, int]:
        """What was counted."""
        return {
            "rounds": sum(each.rounds for each in self.components),
            "cuts": sum(each.found_cuts for each in self.components),
            "sets_left": sum(int(each.alive.sum()) for each in self.components),
        }

    def relax(self) -> None:
        """Solve the relaxation of every component, the smallest first."""
        for each in self.components:
            each.search(each.best.order, 1000 * each.n, self._run.seed, hot=10.0)
            each.relax(self._run, each.alive, ROOT)

    def branch(self) -> int:
        """Prove what the relaxation left open; the number of nodes."""
        return sum(branch(each, self._run) for each in self.components if not each.proved)

    def _changed(self) -> None:
        """Tell the run of a better network or bound."""
        if len(getattr(self, "components", ())) < len(self.parts):
            return
        self._run.offer(join(self._candidates, self.parts, [each.best.choice for each in self.components]))
        self._run.tighten(math.fsum([*self._top, *(each.bound for each in self.components)]))
        self._run.report(f"score {self._run.score:,.3f}, bound {self._run.bound:,.3f}")


def topological_order(candidates: Candidates, choice: Ints) -> Ints:
    """The vertices, parents first."""
    parents = parents_of(candidates, choice)
    order: list[int] = []
    placed = np.zeros(candidates.n, np.bool_)
    while len(order) < candidates.n:
        ready = [v for v in range(candidates.n) if not placed[v] and placed[list(parents[v])].all()]
        placed[ready] = True
        order.extend(ready)
    return np.array(order, np.int64)


def _inside(order: Ints, part: Part) -> Ints:
    """The order of the part's vertices, in local numbers."""
    place = np.full(len(order), -1)
    place[part.vertices] = np.arange(len(part.vertices))
    local = place[order]
    return local[local >= 0]
