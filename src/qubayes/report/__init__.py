"""What a person looks at: the picture of a network, and a page about a run."""

from .drawing import draw, write_drawing
from .page import render, write_report
from .report import Bits, Consensus, Outcome, Report, VertexFacts
from .strengths import edge_strengths

__all__ = [
    "Bits",
    "Consensus",
    "Outcome",
    "Report",
    "VertexFacts",
    "draw",
    "edge_strengths",
    "render",
    "write_drawing",
    "write_report",
]
