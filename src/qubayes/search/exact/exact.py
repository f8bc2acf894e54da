"""The solvers `exact` and `auto`, and the functions `upper_bound` and `presolve`."""

import math
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, ClassVar

from ...candidates import Candidates
from ...foundation.errors import SettingError
from ...foundation.progress import OnProgress, silent
from ...foundation.summary import aligned
from ...foundation.workers import Workers
from ..orders.anneal import Anneal
from ..reduction import Reduced, with_required_edges, without_twins
from ..run import Ending, Limits, Run, check, warm_up
from ..solve import Solution
from .branching import branch
from .certificate import write_certificate
from .component_proof import BranchNode
from .plan import PLAN, Plan
from .proof import Proof


@dataclass(frozen=True, slots=True)
class Exact:
    """The best network with a proof (GOB in the paper), by an integer program over parent sets.

    Columns and cluster cuts are added as needed, then branch and bound; each component apart
    (docs/exact.md)."""

    # Whether twins are eliminated first; never where a certificate is written.
    twins: bool = True
    # File for the certificate of the proof (docs/certificates.md).
    certificate: str | PathLike[str] | None = None

    name: ClassVar[str] = "exact"
    takes: ClassVar[str] = "candidates"
    counts: ClassVar[str] = ""

    def prepare(self) -> "Exact":
        """Compile the kernels, except those of the search over orders, which easy proofs skip."""
        warm_up(Exact, moves=None)
        return self

    def __call__(self, candidates: Candidates, run: Run, /) -> Ending:
        """Search for a proof."""
        return prove(candidates, run, twins=self.twins, certificate=self.certificate)


def prove(
    candidates: Candidates,
    run: Run,
    *,
    twins: bool = True,
    certificate: str | PathLike[str] | None = None,
    plan: Plan = PLAN,
) -> Ending:
    """Search for the best network with a proof, as the plan says, and write its certificate."""
    proof = Proof(without_twins(candidates, twins and certificate is None), run, plan)
    if certificate is not None:
        for component in proof.components:
            component.tree = component.node = BranchNode()
    proof.prove()
    left = [component for component in proof.components if not component.proved]
    nodes = sum(branch(component, run) for component in left if not component.too_large)
    statistics = {"nodes": nodes, **proof.statistics}
    if not run.proved:
        too_large = any(component.too_large for component in left)
        return Ending(f"{_obstacle(run, too_large)}; best so far returned", statistics)
    if certificate is None:
        return Ending("optimal", statistics)
    file, sentence = write_certificate(proof, run, certificate)
    return Ending(f"optimal; {sentence}", statistics, file)


def _obstacle(run: Run, too_large: bool) -> str:
    """Return why the proof is missing."""
    if run.over:
        return "time limit reached"
    if too_large:
        return "a component has too many variables for a proof"
    return "the linear program could not be solved"


@dataclass(frozen=True, slots=True)
class ExactThenAnneal:
    """`exact` for a share of the time, then `anneal` from its network until time or patience ends.

    Most networks of a few dozen variables are proved in the first part. For the others it returns a
    bound, so that the annealer's result has a gap."""

    share: float = 0.3  # of the time limit that the proof may take
    patience: float = 3.0  # of the annealing, see `Anneal`; inf for the whole time limit

    name: ClassVar[str] = "auto"
    takes: ClassVar[str] = "candidates"
    counts: ClassVar[str] = ""

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise SettingError(f"share = {self.share}; give a number from 0 to 1")
        Anneal(patience=self.patience)  # raises

    def prepare(self) -> "ExactThenAnneal":
        """Compile the kernels of `exact`; those of `anneal` are compiled when it begins."""
        Exact().prepare()
        return self

    def __call__(self, candidates: Candidates, run: Run, /) -> Ending:
        """Run both solvers in turn."""
        seconds = math.inf if run.limits.seconds is None else self.share * run.left
        with run.shortened(seconds):
            proof = Exact()(candidates, run)
        if run.proved or run.over:
            return proof
        with run.paused():
            annealer = Anneal(patience=self.patience).prepare()
        annealed = annealer(candidates, run)
        return replace(annealed, statistics={**proof.statistics, **annealed.statistics})


@dataclass(frozen=True, slots=True)
class Bound:
    """No network of the candidates scores more than `value`."""

    value: float
    best: float  # score of the best network found on the way
    cuts: int
    seconds: float
    interrupted: bool = False


def upper_bound(
    candidates: Candidates, seconds: float, *, on_progress: OnProgress = silent
) -> Bound:
    """Return the bound of the relaxation with cluster cuts, as far as it is solved in this time.

    An interrupt ends the work early; the bound so far is returned.
    """
    if not seconds >= 0:
        raise SettingError(f"{seconds} s for a bound; give 0 or more")
    run = Run(candidates, Limits(seconds), Workers(1), None, on_progress, "bound")
    proof = _relaxed(candidates, run, twins=True)
    return Bound(run.bound, run.score, proof.statistics["cuts"], run.elapsed, bool(run.stop[0]))


@dataclass(frozen=True, slots=True)
class Presolved:
    """Candidates with fewer sets, among whose networks is a best network of the original ones.

    Every vertex keeps its name. The members that all its remaining sets share have become its base
    (its required parents). The best score is the same; where twins were eliminated, up to the
    rounding within which their scores agree."""

    original: Candidates = field(repr=False)
    reduced: Reduced = field(repr=False)
    score: float  # of the best network found on the way
    bound: float  # no network scores more
    seconds: float
    interrupted: bool = False

    @property
    def candidates(self) -> Candidates:
        """The remaining candidates."""
        return self.reduced.candidates

    @property
    def twins(self) -> tuple[tuple[int, int], ...]:
        """(twin, its representative) of each vertex that was eliminated."""
        return self.reduced.twins

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
        before, after = self.original.total, self.candidates.total
        rows = [("known", f"parents of {self.fixed} of {self.original.n} variables")]
        if self.twins:
            pairs = [f"{names[twin]} of {names[other]}" for twin, other in self.twins]
            rows.append(("twins", ", ".join(pairs)))
        best = f"{self.score:,.2f}; no network scores above {self.bound:,.2f}"
        rows += [("best score", best), ("time", f"{self.seconds:.2f} s")]
        return [f"{after:,} of {before:,} candidate sets are left.", "", *aligned(rows)]

    def restore(self, solution: Solution) -> Solution:
        """Return the solution as one of the original candidates."""
        choice = self.reduced.invert(solution.choice)
        bound = min(solution.bound + self.reduced.rounding, self.bound)
        return replace(
            solution,
            parents=self.original.parents_at(choice),
            choice=choice,
            empty_score=math.fsum((self.original.plain or self.original).base_scores.tolist()),
            bound=max(solution.score, bound),
            required=self.original.required,
        )


def presolve(
    candidates: Candidates,
    seconds: float = 60.0,
    *,
    twins: bool = True,
    on_progress: OnProgress = silent,
) -> Presolved:
    """Return the candidates without sets that reduced costs exclude and, if `twins`, without twins.

    A set is removed if the multipliers of the relaxation prove every network with it worse than a
    known one, if required edges make it impossible, or if a representative of twins or a parent
    outside its component makes it superfluous. An interrupted presolve returns what it has proved
    so far.

    >>> from qubayes.candidates import example
    >>> presolved = presolve(example(), seconds=5)
    >>> presolved.candidates.total < presolved.original.total
    True
    """
    check(candidates)
    run = Run(candidates, Limits(seconds), Workers(1), None, on_progress, "presolve")
    proof = _relaxed(candidates, run, twins)
    left = with_required_edges(proof.reduced, proof.kept)
    bound = max(run.bound, run.score)
    return Presolved(candidates, left, run.score, bound, run.elapsed, bool(run.stop[0]))


def _relaxed(candidates: Candidates, run: Run, twins: bool) -> Proof:
    """Return the proof as far as the relaxation goes in the time of the run."""
    with run.paused():
        Exact().prepare()
    with run.interrupt.listening():
        proof = Proof(without_twins(candidates, twins), run)
        proof.relax()
    return proof
