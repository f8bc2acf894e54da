"""`auto`: `exact` for a share of the time, then `anneal`."""

from dataclasses import dataclass
from typing import ClassVar

from ..candidates import Candidates
from ..foundation.errors import SettingError
from .exact.exact import Exact
from .orders.anneal import Anneal
from .run import Ending, Run


@dataclass(frozen=True, slots=True)
class ExactThenAnneal:
    """`exact` for a share of the time, then `anneal` from what it found, until its bound is reached or time is up.

    Most networks of a few dozen variables are proved in the first part; for the others it leaves a bound, so that the
    annealer's result has a gap.
    """

    share: float = 0.3  # of the time limit that the proof may take

    name: ClassVar[str] = "auto"
    takes: ClassVar[str] = "candidates"
    counts: ClassVar[str] = ""

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise SettingError(f"share = {self.share}; give a number from 0 to 1")

    def prepare(self) -> "ExactThenAnneal":
        """Compile the kernels of `exact`; those of `anneal` are compiled where it begins, if it does."""
        Exact().prepare()
        return self

    def __call__(self, candidates: Candidates, run: Run, /) -> Ending:
        """Run both solvers in turn."""
        with run.shortened(self.share * run.left if run.limits.seconds is not None else float("inf")):
            proof = Exact()(candidates, run)
        if run.proved or run.over:
            return proof
        with run.paused():
            annealer = Anneal().prepare()
        annealed = annealer(candidates, run)
        return Ending(annealed.status, {**proof.statistics, **annealed.statistics})
