"""A bound on the score of every network, so that any solver's result has a gap."""

from dataclasses import dataclass

from ...candidates import Candidates
from ...foundation.errors import SettingError
from ...foundation.interrupt import stopping
from ...foundation.progress import OnProgress, silent
from ...foundation.workers import Workers
from ..ready import make_ready
from ..run import Limits, Run
from .component import THOROUGH
from .exact import Proof
from .twins import without_twins


@dataclass(frozen=True, slots=True)
class Bound:
    """No network of the candidates scores more than `value`."""

    value: float
    best: float  # the best network that was met on the way
    cuts: int
    seconds: float
    interrupted: bool = False


def upper_bound(candidates: Candidates, seconds: float, *, on_progress: OnProgress = silent) -> Bound:
    """The bound of the relaxation with cluster cuts, as far as it is solved in this time (design §7).

    Interrupted, it returns the bound so far.
    """
    if not seconds >= 0:
        raise SettingError(f"{seconds} s for a bound; give 0 or more")
    make_ready("exact")
    run = bounding(candidates, seconds, on_progress)
    proof = Proof(without_twins(candidates), run) if candidates.n else None
    if proof:
        with stopping(run.stop):
            proof.relax(THOROUGH)
    return Bound(run.bound, run.score, proof.figures["cuts"] if proof else 0, run.elapsed, bool(run.stop[0]))


def bounding(candidates: Candidates, seconds: float, on_progress: OnProgress) -> Run:
    """A run of this many seconds that starts from the required edges alone."""
    bases = candidates.families.vertex_start[1:] - 1
    return Run(candidates, Limits(seconds), Workers(1), bases, on_progress, "bound")
