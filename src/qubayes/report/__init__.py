"""Pictures of networks and the page about a run."""

from .drawing import draw
from .page import render, write_drawing, write_report
from .report import Bits, Consensus, Outcome, Report, VertexFacts, edge_strengths, network_strengths

__all__ = [
    "Bits",
    "Consensus",
    "Outcome",
    "Report",
    "VertexFacts",
    "draw",
    "edge_strengths",
    "network_strengths",
    "render",
    "write_drawing",
    "write_report",
]
