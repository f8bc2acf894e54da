"""Minor embedding of a QUBO in the graph of a quantum annealer (paper, Appendix D.6)."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..foundation.environment import optional
from ..foundation.errors import SettingError
from .qubo import Qubo, upper_triangle

_FAMILIES = {"pegasus": (2, 32), "zephyr": (1, 32), "chimera": (1, 64)}  # least and largest size


@dataclass(frozen=True, slots=True)
class Embedding:
    """Chains of qubits for the bits of a QUBO, or the reason why there are none."""

    topology: str  # "pegasus:16"
    available_qubits: int
    available_couplers: int
    bits: int
    couplers: int
    status: str  # a sentence
    found: bool = False
    impossible: bool = False  # True if it is proved that none exists
    chains: tuple[tuple[int, ...], ...] = field(default=(), repr=False)  # qubits of each bit

    @property
    def physical_qubits(self) -> int:
        """Number of qubits used; 0 if no embedding was found."""
        return sum(map(len, self.chains))

    @property
    def longest_chain(self) -> int:
        """Qubits of the longest chain; 0 if no embedding was found."""
        return max(map(len, self.chains), default=0)

    def as_json(self) -> dict[str, Any]:
        """Return what `qubayes embed --json` prints of one embedding."""
        return {
            "topology": self.topology,
            "available_qubits": self.available_qubits,
            "available_couplers": self.available_couplers,
            "bits": self.bits,
            "couplers": self.couplers,
            "found": self.found,
            "impossible": self.impossible,
            "physical_qubits": self.physical_qubits if self.found else None,
            "longest_chain": self.longest_chain if self.found else None,
            "status": self.status,
        }

    def describe(self) -> list[str]:
        """Return the embedding in a few lines for people."""
        lines = [f"{self.bits:,} bits, {self.couplers:,} couplers", self.status]
        if self.found:
            lines.append(
                f"{self.physical_qubits:,} physical qubits, longest chain {self.longest_chain}"
            )
        return lines


def embed(qubo: Qubo, topology: str, *, timeout: float = 60.0, seed: int = 0) -> Embedding:
    """Return an embedding of the QUBO's graph in the annealer's, found by minorminer and checked.

    The same seed gives the same embedding unless the time runs out. That none is found proves
    nothing, except if there are fewer qubits than bits, or fewer couplers than the QUBO has."""
    if not 0 < timeout < 1e9:
        raise SettingError(f"timeout = {timeout}; a positive number of seconds is allowed")
    if not 0 <= seed < 2**63:
        raise SettingError(f"seed = {seed}; an integer from 0 to 2^63 - 1 is allowed")
    graph = target_graph(topology)
    qubits, couplers = graph.number_of_nodes(), graph.number_of_edges()
    sizes = topology, qubits, couplers, qubo.bits, qubo.couplers
    if qubo.bits > qubits:
        status = f"does not fit {topology}: {qubo.bits:,} bits, {qubits:,} qubits"
        return Embedding(*sizes, status, impossible=True)
    if qubo.couplers > couplers:  # each coupler of the QUBO needs one of its own
        status = f"does not fit {topology}: {qubo.couplers:,} couplers, {couplers:,} in the machine"
        return Embedding(*sizes, status, impossible=True)
    chains = _find_chains(qubo, graph, timeout, seed)
    if chains is None:
        return Embedding(
            *sizes, f"no embedding into {topology} found within {timeout:g} s; one may exist"
        )
    status = f"fits {topology}: {sum(map(len, chains))} of {qubits} qubits"
    return Embedding(*sizes, status, found=True, chains=chains)


def _find_chains(
    qubo: Qubo, graph: Any, timeout: float, seed: int
) -> tuple[tuple[int, ...], ...] | None:
    """Return the qubits of each bit; None if the heuristic found no embedding."""
    rows, cols, _ = upper_triangle(qubo)
    edges = list(zip(rows.tolist(), cols.tolist(), strict=True))
    found: dict[int, Iterable[int]] = {}
    if edges:
        search = optional("minorminer", "embedding", "embed").find_embedding
        found = search(
            edges, list(graph.edges), timeout=timeout, random_seed=seed % 2**31, threads=1
        )
        if not found:
            return None
    # a bit without couplers takes any free qubit
    single = [bit for bit in range(qubo.bits) if bit not in found]
    free = sorted(set(graph.nodes).difference(*found.values()))
    if len(single) > len(free):
        return None
    found |= {bit: [qubit] for bit, qubit in zip(single, free, strict=False)}
    chains = tuple(tuple(sorted(found[bit])) for bit in range(qubo.bits))
    _verify(edges, graph, chains)
    return chains


def target_graph(topology: str) -> Any:
    """Return the graph `family:size` of an annealer without defects, with integer nodes."""
    family, _, size = topology.partition(":")
    if family not in _FAMILIES or not (size.isascii() and size.isdigit() and len(size) < 4):
        raise SettingError(
            f"topology {topology[:40]!r}; pegasus:16, zephyr:12 or chimera:16, for example, are "
            "allowed"
        )
    least, most = _FAMILIES[family]
    if not least <= int(size) <= most:
        raise SettingError(
            f"topology {topology!r}; sizes from {least} to {most} are allowed for {family}"
        )
    return getattr(optional("dwave_networkx", "embedding", "embed"), f"{family}_graph")(int(size))


def _verify(
    edges: Iterable[tuple[int, int]], graph: Any, chains: tuple[tuple[int, ...], ...]
) -> None:
    """Raise unless chains are connected, disjoint, and joined by couplers."""
    networkx = optional("networkx", "embedding", "embed")
    owner = {qubit: bit for bit, chain in enumerate(chains) for qubit in chain}
    if len(owner) != sum(map(len, chains)):
        raise RuntimeError("minorminer returned chains that overlap")
    if not all(networkx.is_connected(graph.subgraph(chain)) for chain in chains):
        raise RuntimeError("minorminer returned a chain that is not connected")
    joined = {(owner[p], owner[q]) for p, q in graph.edges if p in owner and q in owner}
    if not all((i, j) in joined or (j, i) in joined for i, j in edges):
        raise RuntimeError("minorminer returned chains that lack a coupler")
