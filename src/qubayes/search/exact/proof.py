"""`Proof`: the proofs of all components, their sum of bounds, and the best network of all."""

import math
from collections.abc import Callable

import numpy as np

from ...foundation.arrays import Ints
from ...foundation.graph import topological_order
from ..reduction import Components, Reduced, split
from ..run import Run
from .component_proof import ComponentProof
from .plan import PLAN, Plan

_SHARE_OF_SCORE = 0.5e-9  # how far from the best score the proofs of all components may end


class Proof:
    """The proofs of all components of the candidates; better networks and bounds go to the run."""

    def __init__(self, reduced: Reduced, run: Run, plan: Plan = PLAN) -> None:
        self.reduced = reduced
        self._run = run
        self._components = Components(reduced.candidates, split(reduced.candidates)[::-1])
        parts = self._components.parts
        order = np.array(topological_order(run.candidates.families.sets_at(run.choice)), np.int64)
        tolerance = _SHARE_OF_SCORE * max(1.0, abs(run.score)) / max(1, len(parts))
        self.components: list[ComponentProof] = []
        alone = np.ones(reduced.candidates.n, np.bool_)
        for part in parts:
            local_order = np.searchsorted(part.vertices, order[np.isin(order, part.vertices)])
            each = ComponentProof(part, local_order, tolerance, self._changed, plan)
            self.components.append(each)
            alone[part.vertices] = False
        self._best_alone = reduced.candidates.families.vertex_start[:-1][alone]
        self._changed()

    @property
    def statistics(self) -> dict[str, int]:
        """Counts of the search."""
        return {
            "rounds": sum(each.rounds for each in self.components),
            "cuts": sum(each.found_cuts for each in self.components),
            "states": sum(each.states for each in self.components),
            "sets_left": sum(int(each.alive.sum()) for each in self.components),
        }

    @property
    def bound(self) -> float:
        """No network scores more."""
        alone = self.reduced.candidates.scores[self._best_alone].tolist()
        return math.fsum([*alone, *(each.bound for each in self.components), self.reduced.rounding])

    @property
    def kept(self) -> Ints:
        """The sets of the reduced candidates that a best network can use, ascending."""
        alive = [each.component.numbers[each.numbers[each.alive]] for each in self.components]
        return np.sort(np.concatenate([self._best_alone, *alive]))

    def prove(self) -> None:
        """Prove every component without branching as far as possible, the smallest first."""
        self._each(lambda each: each.prove(self._run))

    def relax(self) -> None:
        """Solve the relaxation of every component thoroughly, the smallest first."""
        self._each(lambda each: each.relax_thoroughly(self._run))

    def _each(self, work: Callable[[ComponentProof], None]) -> None:
        for each in self.components:
            if not self._run.over:
                work(each)

    def _changed(self) -> None:
        """Report a better network or bound to the run."""
        choices = [each.best.choice for each in self.components]
        self._run.offer(self.reduced.invert(self._components.invert(choices)))
        self._run.tighten(self.bound)
        self._run.report(f"score {self._run.score:,.3f}, bound {self._run.bound:,.3f}")
