"""What the page about a run shows."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..foundation.errors import QubayesError
from ..network import Network
from .layers import Edge

Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How good the network is, and how sure that is."""

    score: float
    score_name: str = "score"  # "BDeu, equivalent sample size 1"
    empty_score: float | None = None  # of the graph without edges
    bound: float | None = None  # no network scores more
    gap: float | None = None  # share of the gain over the empty graph that a better network could add at most
    status: str = ""  # a sentence
    solver: str = ""
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Bits:
    """Bits of a QUBO by kind (design §2.5)."""

    u: int  # subsets of parents
    r: int  # order of two vertices
    z: int  # at most two subsets

    @property
    def total(self) -> int:
        """All bits."""
        return self.u + self.r + self.z


@dataclass(frozen=True, slots=True)
class VertexFacts:
    """One row of the table of vertices; what is not known is None."""

    gain: float | None = None  # score with its parents less the score without any
    candidates: int | None = None  # number of candidate parent sets
    subsets: int | None = None  # number of candidate parent subsets


@dataclass(frozen=True, slots=True)
class Consensus:
    """The edges that most resamplings of the rows agree on."""

    samples: int
    frequencies: Mapping[Edge, float]  # of each edge: share of the samples that join the two, in either direction


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that the page shows. Only the network is needed; what is missing is left out of the page."""

    network: Network
    title: str = "Bayesian network"
    outcome: Outcome | None = None
    strengths: Mapping[Edge, float] = field(default_factory=dict)  # loss of score when the edge is dropped
    confidences: Mapping[Edge, float] = field(default_factory=dict)  # share of bootstrap samples with the edge
    consensus: Consensus | None = None
    undirected: frozenset[Edge] = frozenset()  # (parent, child): drawn without a direction
    trace: tuple[tuple[float, float], ...] = ()  # (seconds, best score so far)
    bits: Bits | None = None
    paper_bits: Bits | None = None  # of the paper's formulation for the same subsets
    vertices: tuple[VertexFacts, ...] = ()  # one for each vertex, or none
    provenance: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)  # section -> name -> value

    def __post_init__(self) -> None:
        if self.vertices and len(self.vertices) != self.network.n:
            raise QubayesError(
                f"facts of {len(self.vertices)} vertices for a network of {self.network.n}; give one for each, or none"
            )
        edges = {(parent, child) for child, parents in enumerate(self.network.parents) for parent in parents}
        for what, values in (
            ("strength", self.strengths),
            ("confidence", self.confidences),
            ("direction", self.undirected),
        ):
            if unknown := set(values) - edges:
                raise QubayesError(
                    f"the {what} of edge {min(unknown)}, which the network lacks; give edges of the network"
                )
        self._check_consensus()

    def _check_consensus(self) -> None:
        vertices = range(self.network.n)
        for edge in self.consensus.frequencies if self.consensus else ():
            if not all(vertex in vertices for vertex in edge):
                raise QubayesError(
                    f"edge {edge} of the consensus of a network of {self.network.n}; give pairs of its vertices"
                )
