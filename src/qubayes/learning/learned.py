"""The result of `learn`: a network and the result of every stage that led to it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..candidates import Candidates
from ..data import Dataset
from ..foundation.environment import versions
from ..foundation.errors import QubayesError
from ..foundation.progress import OnProgress, silent
from ..foundation.workers import Workers
from ..network import Network
from ..report import Consensus, Outcome, Report, VertexFacts, draw, edge_strengths, write_report
from ..search import Solution
from .confidence import Confidence
from .settings import LearnSettings

if TYPE_CHECKING:
    from ..qubo import Formulation
    from ..qubo.subsets import Subsets


@dataclass(frozen=True)
class Learned:
    """A network with its parameters, and the result of every stage.

    The QUBO of the same problem is made when it is first asked for: `formulation`, `subsets`, `bits`, `paper_bits`.
    """

    settings: LearnSettings
    dataset: Dataset = field(repr=False)
    candidates: Candidates = field(repr=False)
    solution: Solution
    network: Network = field(repr=False)
    confidence: Confidence | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)  # of each stage
    interrupted: bool = False  # before the time limit, or before all bootstrap samples
    source: str | None = None  # name of the file that the data came from

    @cached_property
    def subsets(self) -> "Subsets":
        """The subsets that the u bits stand for."""
        from ..qubo import quick_subsets

        return quick_subsets(self.candidates)

    @cached_property
    def formulation(self) -> "Formulation":
        """The QUBO whose least energy is minus the best score."""
        from ..qubo import formulate

        return formulate(self.candidates, self.subsets)

    def formulate(self, workers: Workers | None = None, on_progress: OnProgress = silent) -> "Formulation":
        """Return `formulation`, made now with these workers if it was not made before."""
        if "formulation" not in self.__dict__:
            from ..qubo import quick_formulation

            made = quick_formulation(self.candidates, workers=workers, on_progress=on_progress)
            if made is None:
                raise QubayesError("interrupted while subsets were searched for; the QUBO was not made")
            self.keep_formulation(made)
        return self.formulation

    def keep_formulation(self, formulation: "Formulation") -> None:
        """Keep the formulation that the solver needed, so that it is not made again."""
        self.__dict__.update(formulation=formulation, subsets=formulation.subsets)

    @cached_property
    def bits(self) -> dict[str, int]:
        """The numbers of u, r and z bits of the QUBO and their total; the QUBO itself is not made for it."""
        from ..qubo import count_bits

        known = self.__dict__.get("formulation")
        return known.bits if known else count_bits(self.candidates, self.subsets)

    @property
    def paper_bits(self) -> dict[str, int]:
        """The bits that the paper's formulation has for the same subsets."""
        from ..qubo import count_bits

        return count_bits(self.candidates, self.subsets, order="scc", penalty="paper")

    def report(self, path: str | Path) -> None:
        """Write a page (HTML) that shows the network and all that is known of it."""
        write_report(self.report_contents(), path)

    def report_contents(self) -> Report:
        """Return everything that the page shows of the result."""
        solution, stamp, candidates = self.solution, self.solution.stamp, self.candidates
        score_name = stamp.score if stamp.ess is None else f"{stamp.score}, equivalent sample size {stamp.ess:g}"
        facts = ("score", "empty_score", "bound", "gap", "status", "solver", "seconds")
        gains = candidates.scores[solution.choice] - candidates.base_scores
        columns = gains.tolist(), candidates.per_vertex.tolist(), self.subsets.families.sizes.tolist()
        sections, confidence = self.provenance().items(), self.confidence
        confidences, consensus = {}, None
        if confidence:
            confidences = confidence.of_edges(self.network)
            consensus = Consensus(confidence.samples, confidence.of_edges(confidence.consensus))
        return Report(
            network=self.network,
            title=f"{self.source or 'Data'}: {self.dataset.n} variables, {self.dataset.rows:,} rows",
            outcome=Outcome(score_name=score_name, **{fact: getattr(solution, fact) for fact in facts}),
            strengths=edge_strengths(candidates, self.network.parents),
            confidences=confidences,
            consensus=consensus,
            trace=(*solution.trace, (solution.seconds, solution.score)),
            marginals=tuple(
                (np.bincount(codes, minlength=arity) / self.dataset.rows).tolist()
                for codes, arity in zip(self.dataset.codes, self.dataset.arities.tolist(), strict=True)
            ),
            bits=self.bits,
            paper_bits=self.paper_bits,
            vertices=tuple(VertexFacts(*row) for row in zip(*columns, strict=True)),
            provenance={name: {key: _plain(value) for key, value in values.items()} for name, values in sections},
        )

    def write_qubo(self, path: Path, workers: Workers | None = None, on_progress: OnProgress = silent) -> None:
        """Write the QUBO of the same problem; the ending chooses the format."""
        self.formulate(workers, on_progress).write(path)

    def provenance(self) -> dict[str, Any]:
        """Return data, settings and versions: what is needed to repeat the run."""
        return {
            "data": {
                "file": self.source,
                "checksum": self.dataset.checksum,
                "checksum_of": "sha256 of names, states and codes",
                "rows": self.dataset.rows,
                "dropped_rows": self.dataset.dropped,
                "variables": self.dataset.n,
                "arities_from": self.dataset.arities_from,
            },
            "settings": self.settings.as_json(),
            "versions": versions(),
            "seconds": {stage: round(seconds, 3) for stage, seconds in self.seconds.items()},
        }

    @property
    def _entered_qubo_wing(self) -> bool:
        """Whether subsets were found already, so that bits cost next to nothing."""
        return "subsets" in self.__dict__

    def describe(self) -> list[str]:
        """Return the result in a few lines for people; the QUBO only where it was made."""
        dataset, least, most = self.dataset, int(self.dataset.arities.min()), int(self.dataset.arities.max())
        states = f"{least} to {most}" if least < most else f"{most}"
        dropped = f"; {dataset.dropped:,} rows with missing values were dropped" if dataset.dropped else ""
        lines = [
            f"{dataset.rows:,} rows of {dataset.n} variables of {states} states{dropped}",
            f"{self.candidates.total:,} candidate parent sets",
            *self.solution.describe(),
        ]
        if self._entered_qubo_wing:
            paper = self.paper_bits["total"]
            lines.append(f"{self.bits['total']:,} bits; the paper's formulation has {paper:,} for the same subsets")
        if "formulation" in self.__dict__:
            _, energy = self.formulation.state_of(self.solution.choice)
            lines.append(f"energy of the network's state {energy:,.6f}, equal to minus its score")
        lines.append("; ".join(f"{stage} {seconds:.2f} s" for stage, seconds in self.seconds.items()))
        if self.confidence:
            edges, samples = len(self.confidence.consensus.edges), self.confidence.samples
            lines.append(f"consensus of {samples:,} bootstrap samples: {edges:,} edges, each in more than half of them")
        return lines

    def __str__(self) -> str:
        """Return the network and what is proved of it in one line."""
        solution, edges = self.solution, sum(map(len, self.network.parents))
        edges_told = f"{edges} edge{'s' * (edges != 1)}"
        return f"{self.dataset.n} variables, {edges_told}, score {solution.score:,.2f}, {solution.describe_gap()}"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the lines of `describe` and a picture of the network."""
        lines = "".join(f"<div>{escape(line)}</div>" for line in self.describe())
        picture = draw(self.network, edge_strengths(self.candidates, self.network.parents))
        return f'{lines}<div style="max-width: 900px; max-height: 640px; overflow: auto">{picture}</div>'

    def as_json(self) -> dict[str, Any]:
        """Return what `qubayes learn --json` prints; bits only where the QUBO was made."""
        return {
            **self.solution.as_json(),
            "interrupted": self.interrupted,
            "bits": {"ours": self.bits, "paper": self.paper_bits} if self._entered_qubo_wing else None,
            "provenance": self.provenance(),
            "confidence": self.confidence.as_json(self.network) if self.confidence else None,
        }


def _plain(value: Any) -> Any:
    """Return a value of the provenance as the report shows it; nested values become JSON text."""
    if value is None or isinstance(value, str | int | float):
        return value
    return json.dumps(value, default=str, ensure_ascii=False)
