"""The verb of the stage: candidate sets that a best network can do without leave (docs/exact.md)."""

import math
from dataclasses import dataclass, field, replace

from ...candidates import Candidates
from ...foundation.arrays import Ints, frozen
from ...foundation.interrupt import stopping
from ...foundation.progress import OnProgress, silent
from ...foundation.workers import Workers
from ..exact.component import THOROUGH
from ..exact.exact import Proof
from ..exact.twins import whole, without_twins
from ..ready import make_ready
from ..run import Limits, Run
from ..solution import Solution
from ..solve import check
from .required import narrowed


@dataclass(frozen=True, slots=True)
class Presolved:
    """Candidates with fewer sets, a best network of the original ones among their networks.

    Every vertex keeps its name. What all its remaining sets share has become its base (its required parents): of a
    vertex with one set left that set. The best score is the same; where twins were eliminated, up to the rounding
    within which their scores agree.
    """

    original: Candidates = field(repr=False)
    candidates: Candidates
    sources: Ints = field(repr=False)  # (sets,) the number of the original set that each set stands for
    score: float  # of the best network that was met on the way
    bound: float  # no network scores more
    twins: tuple[tuple[int, int], ...]  # (twin, vertex that takes its place)
    slack: float  # by no more than this the best score may have fallen, by the rounding of twins' scores
    seconds: float
    interrupted: bool = False

    @property
    def fixed(self) -> int:
        """Number of vertices whose parents are known."""
        return int((self.candidates.families.sizes == 1).sum())

    def restore(self, solution: Solution) -> Solution:
        """The solution as one of the original candidates."""
        choice = frozen(self.sources[solution.choice])
        empty = self.original.base_scores
        return replace(
            solution,
            parents=self.original.families.sets_at(choice),
            choice=choice,
            empty_score=math.fsum(empty.tolist()),
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
    """The candidates without the sets that reduced costs exclude, and without twins unless they are to stay.

    A set leaves if the multipliers of the relaxation prove every network with it worse than one that is known, if
    required edges make it impossible, or if twins or parents outside its component make it needless. Interrupted, it
    returns what has been shown so far.

    >>> from qubayes.candidates.example import example
    >>> presolved = presolve(example(), seconds=5)
    >>> presolved.candidates.total < presolved.original.total
    True
    """
    check(candidates)
    make_ready("exact")
    bases = candidates.families.vertex_start[1:] - 1
    run = Run(candidates, Limits(seconds), workers or Workers(1), bases, on_progress, "presolve")
    reduced = without_twins(candidates) if twins else whole(candidates)
    proof = Proof(reduced, run)
    with stopping(run.stop):
        proof.relax(THOROUGH)
    kept = narrowed(reduced.candidates, proof.kept)
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
