"""The HTML report of a run, which works offline and loads nothing; strengths of edges."""

import base64
import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..foundation.arrays import Bools
from ..foundation.errors import FormatError, QubayesError
from ..foundation.files import ending, replacing
from ..foundation.graph import renamed
from ..network import ByState, Linear, Network, cpdag
from ..network.bif import bif_text
from .drawing import draw, head_path, line_path, png, thicknesses
from .layers import Edge
from .layout import BOX_HEIGHT, lay_out

if TYPE_CHECKING:  # a picture alone needs no kernels
    from ..candidates import Candidates

Value = str | int | float | bool | None

_LONGEST_TRACE = 2000  # points; more than a screen has pixels
_LARGEST_TABLE = 2000  # numbers of a table that the page shows
_LARGEST_BIF = 50_000  # numbers; some 500 kB of text
_MOST_PROBABLE = 5000  # edges with a probability that the page shows
_MOST_STATES = 50  # states of a vertex that the page lists
_SECRET = re.compile(r"key|token|secret|password|credential", re.IGNORECASE)
_ESCAPES = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """Score of the network and what is proved about it."""

    score: float
    score_name: str = "score"  # "BDeu, equivalent sample size 1"
    empty_score: float | None = None  # of the graph without edges
    bound: float | None = None  # no network scores more
    # share of the gain over the empty graph that a better network could add at most
    gap: float | None = None
    status: str = ""  # a sentence
    solver: str = ""
    seconds: float | None = None


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
    # of each edge: share of the samples that join the two, in either direction
    frequencies: Mapping[Edge, float]


@dataclass(frozen=True, slots=True)
class CloseNetworks:
    """Networks close to the best, and the edges on which they do not agree."""

    networks: int
    facts: str  # sentences: what is listed, and what is certified
    probabilities: Mapping[Edge, float]  # of each edge in doubt


class EdgeShares(NamedTuple):
    """How probable an edge is."""

    probability: float  # in this direction
    error: float  # two standard errors of the sampling
    joined: float  # probability of an edge in either direction
    bootstrap: float | None = None  # share of bootstrap samples that join the two


@dataclass(frozen=True, slots=True)
class EdgePosterior:
    """Posterior probabilities of edges."""

    facts: str  # sentences: score, prior, parent sets, and whether the chains agree
    edges: Mapping[Edge, EdgeShares]


@dataclass(frozen=True, slots=True)
class Report:
    """Contents of the page. Only the network is required; the page omits what is missing."""

    network: Network
    title: str = "Bayesian network"
    outcome: Outcome | None = None
    # loss of score when the edge is dropped
    strengths: Mapping[Edge, float] = field(default_factory=dict)
    # share of bootstrap samples with the edge
    confidences: Mapping[Edge, float] = field(default_factory=dict)
    samples_are: str = "bootstrap"  # what the confidences are the shares of, in a word
    consensus: Consensus | None = None
    close: CloseNetworks | None = None
    posterior: EdgePosterior | None = None
    # the page opens with the equivalence class: no direction where equivalent networks differ
    class_only: bool = False
    told: Bools | None = None  # (n, n) pairs whose direction equivalent networks do not leave open
    # for each vertex the share of rows in each of its states, or none
    marginals: tuple[Sequence[float], ...] = ()
    trace: tuple[tuple[float, float], ...] = ()  # (seconds, best score so far)
    # of the QUBO: "u", "r", "z" and "total", as `Formulation.bits`
    bits: Mapping[str, int] | None = None
    paper_bits: Mapping[str, int] | None = None  # of the paper's formulation for the same subsets
    vertices: tuple[VertexFacts, ...] = ()  # one for each vertex, or none
    # section -> name -> value
    provenance: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.vertices and len(self.vertices) != self.network.n:
            raise QubayesError(
                f"facts of {len(self.vertices)} vertices for a network of {self.network.n}; give "
                "all, or none"
            )
        states = self.network.states or ()
        if self.marginals and list(map(len, self.marginals)) != list(map(len, states)):
            raise QubayesError(
                "marginals that do not fit the states of the network; give one share for each state"
            )
        self._check_edges()

    def _check_edges(self) -> None:
        """Raise unless strengths and confidences are of edges, and other shares of vertices."""
        edges: set[Edge] = set()
        for child, parents in enumerate(self.network.parents):
            edges.update((parent, child) for parent in parents)
        for what, values in (("strength", self.strengths), ("confidence", self.confidences)):
            if unknown := set(values) - edges:
                raise QubayesError(
                    f"the {what} of edge {min(unknown)}, which the network lacks; give edges of "
                    "the network"
                )
        vertices = range(self.network.n)
        compared: list[Edge] = []
        if self.consensus is not None:
            compared += self.consensus.frequencies
        if self.close is not None:
            compared += self.close.probabilities
        if self.posterior is not None:
            compared += self.posterior.edges
        for edge in compared:
            if not all(vertex in vertices for vertex in edge):
                raise QubayesError(
                    f"edge {edge} of the consensus or in doubt; the vertices are 0 to "
                    f"{self.network.n - 1}"
                )


def edge_strengths(candidates: "Candidates", parents: Sequence[Sequence[int]]) -> dict[Edge, float]:
    """Return for each edge (parent, child) the loss of score when it is dropped.

    The loss is the best score inside the parents of the child less the best one without that
    parent; it is infinite for a required edge, without which no candidate set is left."""
    if len(parents) != candidates.n:
        raise QubayesError(
            f"parents of {len(parents)} vertices but candidates of {candidates.n}; give those of "
            "one run"
        )
    candidates, losses = candidates.plain or candidates, dict[Edge, float]()
    vertex_start, set_start, members = candidates.families
    for child, chosen in enumerate(parents):
        first, last = vertex_start[child : child + 2]
        bounds = set_start[first : last + 1]
        allowed = np.isin(members[bounds[0] : bounds[-1]], np.asarray(chosen, dtype=members.dtype))
        count = np.concatenate([[0], np.cumsum(allowed)])[bounds - bounds[0]]
        # candidate sets inside the chosen one
        inside = first + np.flatnonzero(np.diff(count) == np.diff(bounds))
        if not len(inside):
            required = ", ".join(candidates.names[v] for v in candidates.base(child))
            raise QubayesError(
                f"no candidate set of {candidates.names[child]!r} lies inside its parents; "
                f"they must hold all of {required}"
            )
        best = candidates.scores[inside].max()
        for parent in chosen:
            without = [
                candidates.scores[k]
                for k in inside
                if parent not in members[set_start[k] : set_start[k + 1]]
            ]
            losses[parent, child] = float(best - max(without, default=-math.inf))
    return losses


def network_strengths(candidates: "Candidates", network: Network) -> dict[Edge, float]:
    """Return `edge_strengths` of a network whose variables are in any order."""
    if odd := set(candidates.names) ^ set(network.names):
        raise QubayesError(
            f"{min(odd)!r} is in only one of the network and the candidates; give candidates of "
            "the same variables"
        )
    # of the candidates -> of the network
    vertex = [network.names.index(name) for name in candidates.names]
    place = {v: k for k, v in enumerate(vertex)}
    parents = renamed((network.parents[v] for v in vertex), place)
    found = edge_strengths(candidates, parents)
    return {(vertex[parent], vertex[child]): loss for (parent, child), loss in found.items()}


def write_drawing(
    network: Network,
    path: str | Path,
    candidates: "Candidates | None" = None,
    *,
    class_only: bool = False,
) -> None:
    """Write the picture; the ending chooses the format: .svg, .png or .html.

    The .html page can be panned, zoomed and searched.

    With `candidates` of the same variables, edges are as thick as they are strong. With
    `class_only`, edges that equivalent networks turn round have no arrow head."""
    kind = ending(path)
    if kind not in (".svg", ".png", ".html"):
        raise FormatError(
            f"{Path(path).name} ends in none of .svg, .png, .html; give one of these endings"
        )
    strengths = network_strengths(candidates, network) if candidates is not None else {}
    if kind == ".html":
        title = network.name or "Bayesian network"
        write_report(Report(network, title, strengths=strengths, class_only=class_only), path)
        return
    picture = draw(network, strengths, reversible_edges(network) if class_only else frozenset())
    content = picture.encode() if kind == ".svg" else png(picture)
    with replacing(path, binary=True) as file:
        file.write(content)


def reversible_edges(network: Network, told: Bools | None = None) -> frozenset[Edge]:
    """Return the edges (parent, child) that some equivalent network has in the other direction."""
    return frozenset(
        (a, b) if a in network.parents[b] else (b, a) for a, b in cpdag(network, told).undirected
    )


def write_report(report: Report, path: str | Path) -> None:
    """Write the page."""
    with replacing(path) as file:
        file.write(render(report))


def render(report: Report) -> str:
    """Return the page as text.

    The content policy allows its own style and script by their checksums and nothing else.

    All data is in one block of JSON, in ASCII without <, > and &, so that no character can end the
    block."""
    page, style, script = (
        (files(__package__) / f"page.{kind}").read_text("utf-8") for kind in ("html", "css", "js")
    )
    sums = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (style, script)
    ]
    policy = (
        f"default-src 'none'; script-src 'sha256-{sums[1]}'; style-src 'sha256-{sums[0]}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    data = json.dumps(page_data(report), allow_nan=False, separators=(",", ":")).translate(_ESCAPES)
    parts = {"policy": policy, "style": style, "data": data, "script": script}
    # One pass: a placeholder inside what is filled in stays as it is.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], page)


def page_data(report: Report) -> dict[str, Any]:
    """Return what the script of the page draws, as JSON has it.

    Numbers that are not finite become None."""
    network = report.network
    consensus = None
    if report.consensus is not None:
        shares = _compared_edges(network, report.consensus.frequencies)
        consensus = {"samples": report.consensus.samples, "edges": shares}
    close = None
    if report.close is not None:
        shares = _compared_edges(network, report.close.probabilities)
        facts = report.close.facts
        close = {"networks": report.close.networks, "facts": facts, "edges": shares}
    both_bits = {"ours": report.bits, "paper": report.paper_bits}
    return {
        "title": report.title,
        "outcome": report.outcome and _finite(asdict(report.outcome)),
        "network": _network_data(report),
        "class_only": report.class_only,
        "samples_are": report.samples_are,
        "parameters": _parameters_data(report),
        "bif": _bif_of(network),
        "trace": _shortened_trace(report.trace),
        "bits": both_bits if any(both_bits.values()) else None,
        "vertices": [_finite(asdict(facts)) for facts in report.vertices] or None,
        "consensus": consensus,
        "close": close,
        "posterior": _posterior_data(report),
        "provenance": _provenance_data(report.provenance),
    }


def _posterior_data(report: Report) -> dict[str, Any] | None:
    """Return the probable edges, and the order of the vertices in the heat map."""
    if report.posterior is None:
        return None
    found = report.posterior.edges
    shares = {edge: its.probability for edge, its in found.items()}
    edges = []
    for edge in _compared_edges(report.network, shares)[:_MOST_PROBABLE]:
        its = found[edge["parent"], edge["child"]]
        numbers = {"error": its.error, "joined": its.joined, "bootstrap": its.bootstrap}
        edges.append({**edge, **numbers})
    return {"facts": report.posterior.facts, "edges": edges, "order": report.network.order}


def _bif_of(network: Network) -> str | None:
    """Return the network as BIF; None without tables, and where they are large."""
    if network.tables is None or sum(table.size for table in network.tables) > _LARGEST_BIF:
        return None
    try:
        return bif_text(network)
    except QubayesError:  # a name that BIF cannot hold
        return None


def _shortened_trace(trace: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the finite points, at most `_LONGEST_TRACE` and the last one."""
    points = [(float(x), float(y)) for x, y in trace if math.isfinite(x + y)]
    step = max(1, math.ceil(len(points) / _LONGEST_TRACE))
    return points[:-1:step] + points[-1:]


def _provenance_data(provenance: Mapping[str, Mapping[str, Any]]) -> list[list[Any]]:
    """Return (section, [(name, value), ...]); values whose names speak of secrets are hidden."""
    found: list[list[Any]] = []
    for section, entries in provenance.items():
        rows = []
        plain = {name: _plain(value) for name, value in entries.items()}
        for name, value in _finite(plain, str).items():
            rows.append((name, "(hidden)" if _SECRET.search(name) else value))
        found.append([section, rows])
    return found


def _plain(value: Any) -> Value:
    """Return a value as the page shows it; nested values as JSON without empty entries."""
    if value is None or isinstance(value, str | int | float):
        return value
    given = value
    if isinstance(value, dict):
        given = {name: each for name, each in value.items() if each}
    return json.dumps(given, default=str, ensure_ascii=False) if given else None


def _compared_edges(network: Network, shares: Mapping[Edge, float]) -> list[dict[str, Any]]:
    """Return the edges, most frequent first, and whether the network has them, turned or not."""
    found = []
    for (parent, child), share in sorted(shares.items(), key=lambda item: (-item[1], item[0])):
        learned = "absent"
        if parent in network.parents[child]:
            learned = "same"
        elif child in network.parents[parent]:
            learned = "turned"
        found.append({"parent": parent, "child": child, "frequency": share, "learned": learned})
    return found


def _finite(
    values: Mapping[str, Any], other: Callable[[float], Any] = lambda _: None
) -> dict[str, Any]:
    """Return the values; numbers that are not finite, which JSON lacks, become `other` of them."""
    return {
        k: other(v) if isinstance(v, float) and not math.isfinite(v) else v
        for k, v in values.items()
    }


def _network_data(report: Report) -> dict[str, Any]:
    """Return the boxes and the curves of the picture, with the facts about each edge."""
    layout = lay_out(report.network)
    reversible = reversible_edges(report.network, report.told)
    lines = thicknesses(layout.curves, report.strengths)
    weights = _weights(report.network)
    nodes = []
    for vertex, (name, label) in enumerate(zip(report.network.names, layout.labels, strict=True)):
        node = {
            "name": name,
            "label": label,
            "x": float(layout.x[vertex].round(1)),
            "y": float(layout.y[vertex].round(1)),
            "width": float(layout.widths[vertex].round(1)),
        }
        nodes.append(node)
    edges = []
    for edge, points in layout.curves.items():
        strength = report.strengths.get(edge)
        facts = {
            "parent": edge[0],
            "child": edge[1],
            "line": line_path(points),
            "head": head_path(points, lines[edge]),
            "end": points[-1][1],  # where the line ends without a head
            "reversible": edge in reversible,
            "forced": _is_forced(report.network, edge),
            "thickness": lines[edge],
            "strength": "required" if strength == math.inf else strength,
            "confidence": report.confidences.get(edge),
        }
        if edge in weights:
            facts["weight"] = _rounded([weights[edge]])[0]
        edges.append(_finite(facts))
    return {
        "width": round(layout.width, 1),
        "height": round(layout.height, 1),
        "box": BOX_HEIGHT,
        "nodes": nodes,
        "edges": edges,
    }


def _is_forced(network: Network, edge: Edge) -> bool:
    """Return whether the model allows this direction only: from states to numbers."""
    states = network.states
    return states is not None and bool(states[edge[0]]) != bool(states[edge[1]])


def _weights(network: Network) -> dict[Edge, float]:
    """Return the weight of each edge between continuous variables with parameters."""
    found = {}
    for child, parents in enumerate(network.parents):
        linear = None if network.tables is None else network.tables[child]
        if isinstance(linear, Linear):
            for parent, weight in zip(parents, linear.weights, strict=True):
                found[parent, child] = weight
    return found


def _parameters_data(report: Report) -> list[dict[str, Any]] | None:
    """Return the states of each vertex, their shares, and its table by rows.

    Large tables are left out. A continuous variable has weights instead."""
    network = report.network
    if network.states is None:
        return None
    shares: Sequence[Sequence[float] | None] = report.marginals or [None] * network.n
    found = []
    for vertex, states in enumerate(network.states):
        table = network.tables[vertex] if network.tables is not None else None
        rows = None
        if isinstance(table, np.ndarray) and table.size <= _LARGEST_TABLE:
            rows = [_rounded(row) for row in table.reshape(-1, len(states)).tolist()]
        marginal = shares[vertex]
        facts = {
            "states": states[:_MOST_STATES],
            "arity": len(states),
            "marginal": marginal and _rounded(marginal[:_MOST_STATES]),
            # in the order in which the rows count up, the last one fastest
            "given": network.parents[vertex],
            "table": rows,
        }
        if isinstance(table, Linear):
            facts["linear"] = {
                "intercept": _rounded([table.intercept])[0],
                "weights": _rounded(table.weights),
                "deviation": _rounded([table.deviation])[0],
            }
        if isinstance(table, ByState) and table.size <= _LARGEST_TABLE:
            discrete, continuous = network.split_parents(vertex)
            rows = [_rounded([x.intercept, *x.weights, x.deviation]) for x in table]
            facts["by_state"] = {"states": discrete, "numbers": continuous, "rows": rows}
        found.append(facts)
    return found


def _rounded(shares: Sequence[float]) -> list[float]:
    """Return the numbers with four digits."""
    return [float(f"{share:.4g}") for share in shares]
