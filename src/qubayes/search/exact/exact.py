"""`exact`: the best network with a proof (GOB in the paper): an integer program over families with cluster cuts."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...candidates import Candidates
from ...foundation.arrays import Ints
from ...foundation.graph import topological_order
from ..components import Part, join, split
from ..run import Ending, Run
from .branching import branch
from .component import ROOT, Component, Effort
from .twins import Reduced, whole, without_twins


@dataclass(frozen=True, slots=True)
class Exact:
    """Columns and cuts as they are needed, then branch and bound; each component apart (docs/exact.md)."""

    twins: bool = True  # whether twins are eliminated first

    name: ClassVar[str] = "exact"
    takes: ClassVar[str] = "candidates"
    counts: ClassVar[str] = ""

    def __call__(self, candidates: Candidates, run: Run, /) -> Ending:
        """Search for a proof."""
        proof = Proof(without_twins(candidates) if self.twins else whole(candidates), run)
        proof.relax()
        nodes = proof.branch()
        figures = {"nodes": nodes, **proof.figures}
        if run.proved:
            return Ending("optimal", figures)
        reason = "time limit reached" if run.over else "the linear program could not be solved"
        return Ending(f"{reason}; best so far returned", figures)


class Proof:
    """The components of the candidates under proof; what they find goes to the run."""

    def __init__(self, reduced: Reduced, run: Run) -> None:
        self.reduced, self._run = reduced, run
        candidates = reduced.candidates
        self.parts = split(candidates)[::-1]
        order = np.array(topological_order(run.candidates.families.sets_at(run.choice)))
        tolerance = 0.5e-9 * max(1.0, abs(run.score)) / max(1, len(self.parts))
        self.components = [Component(part, _inside(order, part), tolerance, self._changed) for part in self.parts]
        self._alone = np.ones(candidates.n, np.bool_)
        for part in self.parts:
            self._alone[part.vertices] = False
        self._top = candidates.scores[candidates.families.vertex_start[:-1]][self._alone].tolist()
        self._changed()

    @property
    def figures(self) -> dict[str, int]:
        """What was counted."""
        return {
            "rounds": sum(each.rounds for each in self.components),
            "cuts": sum(each.found_cuts for each in self.components),
            "sets_left": sum(int(each.alive.sum()) for each in self.components),
        }

    @property
    def bound(self) -> float:
        """No network scores more."""
        return math.fsum([*self._top, *(each.bound for each in self.components), self.reduced.slack])

    @property
    def kept(self) -> Ints:
        """The sets of the reduced candidates that a best network can use, ascending."""
        alone = self.reduced.candidates.families.vertex_start[:-1][self._alone]
        pairs = zip(self.parts, self.components, strict=True)
        return np.sort(np.concatenate([alone, *(part.numbers[each.numbers[each.alive]] for part, each in pairs)]))

    def relax(self, effort: Effort = ROOT) -> None:
        """Solve the relaxation of every component, the smallest first."""
        for each in self.components:
            if self._run.over:
                break
            if each.needs_search(self._run, effort):
                each.begin_search(self._run)
            each.relax(self._run, each.alive, effort)

    def branch(self) -> int:
        """Prove what the relaxation left open; the number of nodes."""
        return sum(branch(each, self._run) for each in self.components if not each.proved)

    def _changed(self) -> None:
        """Tell the run of a better network or bound."""
        if len(getattr(self, "components", ())) < len(self.parts):
            return
        choice = join(self.reduced.candidates, self.parts, [each.best.choice for each in self.components])
        self._run.offer(self.reduced.sources[choice])
        self._run.tighten(self.bound)
        self._run.report(f"score {self._run.score:,.3f}, bound {self._run.bound:,.3f}")


def _inside(order: Ints, part: Part) -> Ints:
    """The order of the part's vertices, in local numbers."""
    place = np.full(len(order), -1)
    place[part.vertices] = np.arange(len(part.vertices))
    local = place[order]
    return local[local >= 0]
