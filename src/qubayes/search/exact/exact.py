"""`exact`: the best network with a proof (GOB in the paper), by an integer program over families with cluster cuts."""

from dataclasses import dataclass
from typing import ClassVar

from ...candidates import Candidates
from ...foundation.errors import SettingError
from ...foundation.interrupt import stopping
from ...foundation.progress import OnProgress, silent
from ...foundation.workers import Workers
from ..run import Ending, Limits, Run, bases_of, warm_up
from .branching import branch
from .proof import THOROUGH, Proof
from .representatives import whole, without_twins


@dataclass(frozen=True, slots=True)
class Exact:
    """Columns and cuts as they are needed, then branch and bound; each component apart (docs/exact.md)."""

    twins: bool = True  # whether twins are eliminated first

    name: ClassVar[str] = "exact"
    takes: ClassVar[str] = "candidates"
    counts: ClassVar[str] = ""

    def prepare(self) -> "Exact":
        """Compile the kernels, except those of the search over orders, which easy proofs do without."""
        warm_up(Exact, moves=None)
        return self

    def __call__(self, candidates: Candidates, run: Run, /) -> Ending:
        """Search for a proof."""
        proof = Proof(without_twins(candidates) if self.twins else whole(candidates), run)
        proof.relax()
        nodes = sum(branch(component, run) for component in proof.components if not component.proved)
        statistics = {"nodes": nodes, **proof.statistics}
        if run.proved:
            return Ending("optimal", statistics)
        reason = "time limit reached" if run.over else "the linear program could not be solved"
        return Ending(f"{reason}; best so far returned", statistics)


@dataclass(frozen=True, slots=True)
class Bound:
    """No network of the candidates scores more than `value`."""

    value: float
    best: float  # score of the best network found on the way
    cuts: int
    seconds: float
    interrupted: bool = False


def upper_bound(candidates: Candidates, seconds: float, *, on_progress: OnProgress = silent) -> Bound:
    """Return the bound of the relaxation with cluster cuts, as far as it is solved in this time.

    An interrupt ends the work early; the bound so far is returned.
    """
    if not seconds >= 0:
        raise SettingError(f"{seconds} s for a bound; give 0 or more")
    Exact().prepare()
    run = Run(candidates, Limits(seconds), Workers(1), bases_of(candidates), on_progress, "bound")
    cuts = 0
    if candidates.n:
        proof = Proof(without_twins(candidates), run)
        with stopping(run.stop):
            proof.relax(THOROUGH)
        cuts = proof.statistics["cuts"]
    return Bound(run.bound, run.score, cuts, run.elapsed, bool(run.stop[0]))
