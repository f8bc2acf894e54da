"""Contents of the page about a run, and the strengths of edges."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ..foundation.errors import QubayesError
from ..network import Network
from .layers import Edge

if TYPE_CHECKING:  # a picture alone needs no kernels
    from ..candidates import Candidates

Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """Score of the network and what is proved about it."""

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
    """Numbers of bits of a QUBO by kind."""

    u: int  # subsets of parents
    r: int  # order of two vertices
    z: int  # at most two subsets

    @property
    def total(self) -> int:
        """All bits."""
        return self.u + self.r + self.z


@dataclass(frozen=True, slots=True)
class VertexFacts:
    """Row of the table of vertices; unknown values are None."""

    gain: float | None = None  # score with its parents less the score without any
    candidates: int | None = None  # number of candidate parent sets
    subsets: int | None = None  # number of candidate parent subsets


@dataclass(frozen=True, slots=True)
class Consensus:
    """Edges of the consensus of bootstrap samples."""

    samples: int
    frequencies: Mapping[Edge, float]  # of each edge: share of the samples that join the two, in either direction


@dataclass(frozen=True, slots=True)
class Report:
    """Contents of the page. Only the network is required; the page omits what is missing."""

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
        vertices = range(self.network.n)
        for edge in self.consensus.frequencies if self.consensus else ():
            if not all(vertex in vertices for vertex in edge):
                raise QubayesError(
                    f"edge {edge} of the consensus of a network of {self.network.n}; give pairs of its vertices"
                )


def edge_strengths(candidates: "Candidates", parents: Sequence[Sequence[int]]) -> dict[Edge, float]:
    """Return for each edge (parent, child) the loss of score when it is dropped.

    The loss is the best score inside the parents of the child less the best one without that parent; it is infinite for
    a required edge, without which no candidate set is left.
    """
    if len(parents) != candidates.n:
        raise QubayesError(
            f"parents of {len(parents)} vertices but candidates of {candidates.n}; give those of one run"
        )
    return {
        (parent, child): loss
        for child, chosen in enumerate(parents)
        for parent, loss in _losses(candidates, child, chosen).items()
    }


def network_strengths(candidates: "Candidates", network: Network) -> dict[Edge, float]:
    """Return `edge_strengths` of a network whose variables are those of the candidates, in any order."""
    if odd := set(candidates.names) ^ set(network.names):
        raise QubayesError(
            f"{min(odd)!r} is in only one of the network and the candidates; give candidates of the same variables"
        )
    vertex = [network.names.index(name) for name in candidates.names]  # of the candidates -> of the network
    place = {v: k for k, v in enumerate(vertex)}
    found = edge_strengths(candidates, [[place[p] for p in network.parents[v]] for v in vertex])
    return {(vertex[parent], vertex[child]): loss for (parent, child), loss in found.items()}


def _losses(candidates: "Candidates", child: int, chosen: Sequence[int]) -> dict[int, float]:
    inside = _sets_inside(candidates, child, chosen)
    best = max((score for _, score in inside), default=-math.inf)
    if best == -math.inf:
        required = ", ".join(candidates.names[v] for v in candidates.base(child))
        raise QubayesError(
            f"no candidate set of {candidates.names[child]!r} lies inside its parents; they must hold all of {required}"
        )
    return {
        parent: best - max((score for members, score in inside if parent not in members), default=-math.inf)
        for parent in chosen
    }


def _sets_inside(candidates: "Candidates", child: int, chosen: Sequence[int]) -> list[tuple[frozenset[int], float]]:
    """Return (set, score) of the candidate sets of the child that are subsets of the chosen one."""
    vertex_start, set_start, members = candidates.families
    first, last = vertex_start[child : child + 2]
    bounds = set_start[first : last + 1]
    allowed = np.isin(members[bounds[0] : bounds[-1]], np.asarray(chosen, dtype=members.dtype))
    count = np.concatenate([[0], np.cumsum(allowed)])[bounds - bounds[0]]
    hits = first + np.flatnonzero(np.diff(count) == np.diff(bounds))
    return [(frozenset(members[set_start[k] : set_start[k + 1]].tolist()), float(candidates.scores[k])) for k in hits]
