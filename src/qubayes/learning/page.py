"""The page about a run of `learn`."""

import json
from collections.abc import Mapping
from typing import Any

from ..report import Bits, Outcome, Report, VertexFacts, edge_strengths
from .learned import Learned


def report_of(learned: Learned) -> Report:
    """Everything that the page shows of what was learned."""
    solution, parents = learned.solution, learned.network.parents
    edges = [(parent, child) for child, its in enumerate(parents) for parent in its]
    confidence = learned.confidence
    return Report(
        network=learned.network,
        title=f"Bayesian network of {learned.dataset.n} variables",
        outcome=_outcome(learned),
        strengths=edge_strengths(learned.candidates, parents),
        confidences={edge: confidence.of(*edge) for edge in edges} if confidence else {},
        trace=(*solution.trace, (solution.seconds, solution.score)),
        bits=_bits(learned.bits),
        paper_bits=_bits(learned.paper_bits),
        vertices=_vertices(learned),
        provenance=_provenance(learned),
    )


def _outcome(learned: Learned) -> Outcome:
    solution, stamp = learned.solution, learned.solution.stamp
    name = stamp.score if stamp.ess is None else f"{stamp.score}, equivalent sample size {stamp.ess:g}"
    return Outcome(
        score=solution.score,
        score_name=name,
        empty_score=solution.empty_score,
        bound=solution.bound,
        gap=solution.gap,
        status=solution.status,
        solver=solution.solver,
        seconds=solution.seconds,
    )


def _bits(bits: Mapping[str, int]) -> Bits:
    return Bits(bits["u"], bits["r"], bits["z"])


def _vertices(learned: Learned) -> tuple[VertexFacts, ...]:
    candidates = learned.candidates
    gains = candidates.scores[learned.solution.choice] - candidates.base_scores
    counts = zip(gains.tolist(), candidates.per_vertex.tolist(), learned.subsets.families.sizes.tolist(), strict=True)
    return tuple(VertexFacts(gain, sets, subsets) for gain, sets, subsets in counts)


def _provenance(learned: Learned) -> dict[str, dict[str, Any]]:
    """Sections of plain values; what is nested is told as JSON."""
    told = learned.provenance().items()
    return {section: {key: _plain(value) for key, value in values.items()} for section, values in told}


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int | float) else json.dumps(value, default=str)
