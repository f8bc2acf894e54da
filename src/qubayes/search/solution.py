"""What a solver returns: a network with its score, a bound where one is known, and how it was found."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..candidates import Stamp
from ..foundation.arrays import Bools, Ints
from ..foundation.families import VertexSet
from ..foundation.files import replacing
from ..network import Network


@dataclass(frozen=True, slots=True)
class Solution:
    """The best network that a solver found. Its score is the sum of its candidate sets' scores, summed afresh."""

    names: tuple[str, ...]
    parents: tuple[VertexSet, ...]
    choice: Ints = field(repr=False)  # (n,) number of the candidate set of each vertex
    score: float
    empty_score: float  # of the empty graph, or of the required edges alone
    bound: float  # no network of these candidate sets scores more
    solver: str
    seed: int
    seconds: float
    status: str  # a sentence: how the search ended
    interrupted: bool = False
    trace: tuple[tuple[float, float], ...] = field(default=(), repr=False)  # (seconds, score) of each improvement
    figures: Mapping[str, Any] = field(default_factory=dict)  # what the solver counted: moves, nodes, cuts
    bits: Bools | None = field(default=None, repr=False)  # the state of the QUBO, where there is one
    energy: float | None = None  # of `bits`; equal to -score
    stamp: Stamp = field(default_factory=Stamp)

    @property
    def network(self) -> Network:
        """The graph, without parameters."""
        return Network(self.names, self.parents)

    @property
    def proved(self) -> bool:
        """Whether no network of these candidate sets scores more, up to rounding."""
        return self.bound - self.score <= 1e-9 * max(1.0, abs(self.score))

    @property
    def gap(self) -> float:
        """How far the bound is above the score, in parts of the gain over the empty graph; 0 if proved."""
        if self.proved:
            return 0.0
        gain = self.score - self.empty_score
        return (self.bound - self.score) / gain if gain > 0 else float("inf")

    def write_trace(self, path: str | Path) -> None:
        """Write the score over time as CSV."""
        with replacing(path) as file:
            file.write("seconds,score\n")
            file.writelines(f"{seconds!r},{score!r}\n" for seconds, score in self.trace)

    def describe(self) -> list[str]:
        """Return the result in a few lines for people."""
        kind = self.stamp.score if self.stamp.ess is None else f"{self.stamp.score}, ess {self.stamp.ess:g}"
        edges = sum(map(len, self.parents))
        lines = [
            f"score {self.score:,.6f} ({kind}), {self.score - self.empty_score:,.6f} above no edges",
            f"{self.describe_gap()}; {edges:,} edge{'s' * (edges != 1)} among {len(self.names)} variables",
        ]
        if self.energy is not None and self.bits is not None:
            lines.append(f"energy {self.energy:,.6f} of {len(self.bits):,} bits, equal to minus the score")
        return [*lines, f"{self.solver}: {self.status} ({self.seconds:.2f} s)"]

    def describe_gap(self) -> str:
        """Return how far from optimal the network can be, in words."""
        if self.proved:
            return "proved optimal"
        if self.gap == float("inf"):
            return f"no network scores more than {self.bound:,.6f}"
        return f"gap {100 * self.gap:.3g} % of that: no network scores more than {self.bound:,.6f}"

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints (design §10)."""
        gap = self.gap
        return {
            "score": self.score,
            "empty_score": self.empty_score,
            "bound": self.bound,
            "gap": gap if gap != float("inf") else None,
            "proved": self.proved,
            "solver": self.solver,
            "seed": self.seed,
            "seconds": round(self.seconds, 3),
            "network": {name: list(found) for name, found in self.network.parent_names().items()},
            "status": self.status,
            "energy": self.energy,
            "bits": None if self.bits is None else len(self.bits),
            "figures": dict(self.figures),
            "score_name": self.stamp.score,
            "ess": self.stamp.ess,
        }
