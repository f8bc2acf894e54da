"""The content of the report about a run of `learn`."""

import json
from collections.abc import Mapping
from typing import Any

from ..network import Network
from ..report import Bits, Consensus, Outcome, Report, VertexFacts, edge_strengths
from .confidence import Confidence
from .learned import Learned


def report_of(learned: Learned) -> Report:
    """Return everything that the page shows of the result."""
    solution, parents, confidence = learned.solution, learned.network.parents, learned.confidence
    return Report(
        network=learned.network,
        title=f"Bayesian network of {learned.dataset.n} variables",
        outcome=_outcome(learned),
        strengths=edge_strengths(learned.candidates, parents),
        confidences=_frequencies(confidence, learned.network) if confidence else {},
        consensus=Consensus(confidence.samples, _frequencies(confidence, confidence.consensus)) if confidence else None,
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


def _frequencies(confidence: Confidence, network: Network) -> dict[tuple[int, int], float]:
    """Return how often each edge of the network was found in the bootstrap samples."""
    edges = [(parent, child) for child, parents in enumerate(network.parents) for parent in parents]
    return {edge: confidence.of(*edge) for edge in edges}


def _bits(bits: Mapping[str, int]) -> Bits:
    return Bits(bits["u"], bits["r"], bits["z"])


def _vertices(learned: Learned) -> tuple[VertexFacts, ...]:
    candidates = learned.candidates
    gains = candidates.scores[learned.solution.choice] - candidates.base_scores
    counts = zip(gains.tolist(), candidates.per_vertex.tolist(), learned.subsets.families.sizes.tolist(), strict=True)
    return tuple(VertexFacts(gain, sets, subsets) for gain, sets, subsets in counts)


def _provenance(learned: Learned) -> dict[str, dict[str, Any]]:
    """Return sections of plain values; nested values become JSON text."""
    sections = learned.provenance().items()
    return {section: {key: _plain(value) for key, value in values.items()} for section, values in sections}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float):
        return value
    return json.dumps(value, default=str, ensure_ascii=False)
