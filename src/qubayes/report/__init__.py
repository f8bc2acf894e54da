"""Pictures of networks and the page about a run."""

from .drawing import draw, draw_model, write_model_drawing
from .report import (
    CloseNetworks,
    Consensus,
    Outcome,
    Report,
    VertexFacts,
    edge_strengths,
    network_strengths,
    render,
    reversible_edges,
    write_drawing,
    write_report,
)

__all__ = [
    "CloseNetworks",
    "Consensus",
    "Outcome",
    "Report",
    "VertexFacts",
    "draw",
    "draw_model",
    "edge_strengths",
    "network_strengths",
    "render",
    "reversible_edges",
    "write_drawing",
    "write_model_drawing",
    "write_report",
]
