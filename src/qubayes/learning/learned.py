"""What was learned, with everything that led to it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..candidates import Candidates
from ..data import Dataset
from ..foundation.graph import strong_components
from ..network import Network
from ..qubo import Formulation, formulate
from ..qubo.subsets import Subsets
from ..report import versions
from ..search import Solution
from .confidence import Confidence
from .recipe import Recipe


@dataclass(frozen=True)
class Learned:
    """A network with its parameters, and the result of every stage on the way to it.

    The QUBO is made when it is asked for: to learn a network takes only the number of its bits.
    """

    recipe: Recipe
    dataset: Dataset = field(repr=False)
    candidates: Candidates = field(repr=False)
    subsets: Subsets = field(repr=False)  # the sets that the u bits stand for
    bits: Mapping[str, int]  # u, r and z bits of the formulation, and their total
    solution: Solution
    network: Network = field(repr=False)
    confidence: Confidence | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)  # of each stage
    interrupted: bool = False  # before the time limit, or before all resamplings
    source: str | None = None  # name of the file that the data came from
    given_formulation: Formulation | None = field(default=None, repr=False)  # the solver's, if it needed one

    @cached_property
    def formulation(self) -> Formulation:
        """The QUBO whose least energy is minus the best score."""
        return self.given_formulation or formulate(self.candidates, self.subsets)

    @property
    def paper_bits(self) -> dict[str, int]:
        """The bits that the paper's formulation has for the same subsets."""
        return paper_bits(self.candidates, self.subsets)

    def provenance(self) -> dict[str, Any]:
        """Data, settings and versions: what is needed to repeat the run."""
        return {
            "data": {
                "file": self.source,
                "checksum": self.dataset.checksum,
                "checksum_of": "sha256 of names, states and codes",
                "rows": self.dataset.rows,
                "variables": self.dataset.n,
                "arities_from": self.dataset.arities_from,
            },
            "settings": self.recipe.as_json(),
            "versions": versions(),
            "seconds": {stage: round(seconds, 3) for stage, seconds in self.seconds.items()},
        }

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints (design §10)."""
        confidence = self.confidence
        return {
            **self.solution.as_json(),
            "interrupted": self.interrupted,
            "bits": {"ours": dict(self.bits), "paper": self.paper_bits},
            "provenance": self.provenance(),
            "confidence": None
            if confidence is None
            else {
                "samples": confidence.samples,
                "edges": [
                    [self.network.names[parent], self.network.names[child], confidence.of(parent, child)]
                    for child, parents in enumerate(self.network.parents)
                    for parent in parents
                ],
                "consensus": {name: list(its) for name, its in confidence.consensus.parent_names().items()},
            },
        }


def paper_bits(candidates: Candidates, subsets: Subsets) -> dict[str, int]:
    """u, r and z bits of the paper's formulation: all pairs in a strongly connected component, a z for each vertex."""
    sizes = map(len, strong_components(candidates.families.arcs()))
    r = sum(size * (size - 1) // 2 for size in sizes)
    return {"u": subsets.total, "r": r, "z": candidates.n, "total": subsets.total + r + candidates.n}
