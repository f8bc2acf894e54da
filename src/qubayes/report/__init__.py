"""The HTML report of a run, and drawings of networks and QUBOs."""

from .drawing import draw
from .layout import Layout, lay_out
from .model_drawing import MOST_BITS_DRAWN, draw_model, write_model_drawing
from .report import (
    CloseNetworks,
    Consensus,
    EdgePosterior,
    EdgeShares,
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
    "MOST_BITS_DRAWN",
    "CloseNetworks",
    "Consensus",
    "EdgePosterior",
    "EdgeShares",
    "Layout",
    "Outcome",
    "Report",
    "VertexFacts",
    "draw",
    "draw_model",
    "edge_strengths",
    "lay_out",
    "network_strengths",
    "render",
    "reversible_edges",
    "write_drawing",
    "write_model_drawing",
    "write_report",
]
