"""Minor embedding of a QUBO in the graph of a quantum annealer (Appendix D.6)."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np

from ..foundation.arrays import Ints, frozen
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
    found: bool
    impossible: bool  # True if it is proved that none exists
    status: str  # a sentence
    chain_start: Ints = field(repr=False)  # (bits + 1,), or (1,) if none was found
    qubits: Ints = field(repr=False)  # (physical qubits,) by bit

    @property
    def physical_qubits(self) -> int:
        """Number of qubits used; 0 if no embedding was found."""
        return len(self.qubits)

    @property
    def longest_chain(self) -> int:
        """Qubits of the longest chain; 0 if no embedding was found."""
        return int(np.diff(self.chain_start).max(initial=0))

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
            lines.append(f"{self.physical_qubits:,} physical qubits, longest chain {self.longest_chain}")
        return lines

    def chain(self, bit: int) -> tuple[int, ...]:
        """Return the qubits of one bit."""
        return tuple(self.qubits[slice(*self.chain_start[bit : bit + 2])].tolist())


def embed(qubo: Qubo, topology: str, *, timeout: float = 60.0, seed: int = 0) -> Embedding:
    """Return an embedding of the QUBO's graph in the annealer's, found by minorminer's heuristic and checked.

    The same seed gives the same embedding unless the time runs out. That none is found proves nothing, except if there
    are fewer qubits than bits, or fewer couplers than the QUBO has.
    """
    if not 0 < timeout < 1e9:
        raise SettingError(f"timeout = {timeout}; a positive number of seconds is allowed")
    if not 0 <= seed < 2**63:
        raise SettingError(f"seed = {seed}; an integer from 0 to 2^63 - 1 is allowed")
    graph = target_graph(topology)
    sizes = graph.number_of_nodes(), graph.number_of_edges()
    result = Embedding(topology, *sizes, qubo.bits, qubo.couplers, False, False, "", _ints([0]), _ints([]))
    reason = ""
    if qubo.bits > sizes[0]:
        reason = f"{qubo.bits:,} bits, {sizes[0]:,} qubits"
    elif qubo.couplers > sizes[1]:  # each coupler of the QUBO needs one of its own
        reason = f"{qubo.couplers:,} couplers, {sizes[1]:,} in the machine"
    if reason:
        return replace(result, impossible=True, status=f"does not fit {topology}: {reason}")
    chains = _chains(qubo, graph, timeout, seed)
    if chains is None:
        status = f"no embedding into {topology} found within {timeout:g} s; one may exist"
        return replace(result, status=status)
    _verify(qubo, graph, chains)
    start = np.concatenate([[0], np.cumsum([len(chain) for chain in chains])])
    qubits = [qubit for chain in chains for qubit in chain]
    status = f"fits {topology}: {len(qubits)} of {sizes[0]} qubits"
    return replace(result, found=True, status=status, chain_start=_ints(start), qubits=_ints(qubits))


def target_graph(topology: str) -> Any:
    """Return the graph `family:size` of an annealer without defects, with integer nodes."""
    family, _, size = topology.partition(":")
    if family not in _FAMILIES or not (size.isascii() and size.isdigit() and len(size) < 4):
        raise SettingError(f"topology {topology[:40]!r}; pegasus:16, zephyr:12 or chimera:16, for example, are allowed")
    least, most = _FAMILIES[family]
    if not least <= int(size) <= most:
        raise SettingError(f"topology {topology!r}; sizes from {least} to {most} are allowed for {family}")
    return getattr(optional("dwave_networkx", "embedding", "embed"), f"{family}_graph")(int(size))


def _chains(qubo: Qubo, graph: Any, timeout: float, seed: int) -> list[list[int]] | None:
    """Return one chain for each bit, or None. Bits without couplers take any free qubit."""
    rows, cols, _ = upper_triangle(qubo)
    edges = list(zip(rows.tolist(), cols.tolist(), strict=True))
    found: dict[int, Iterable[int]] = {}
    if edges:
        finder = optional("minorminer", "embedding", "embed").find_embedding
        found = finder(edges, list(graph.edges), timeout=timeout, random_seed=seed % 2**31, threads=1)
        if not found:
            return None
    used = {qubit for chain in found.values() for qubit in chain}
    free = iter(sorted(set(graph.nodes) - used))
    chains: list[list[int]] = []
    for bit in range(qubo.bits):
        chain = sorted(found[bit]) if bit in found else list(islice(free, 1))
        if not chain:
            return None
        chains.append(chain)
    return chains


def _verify(qubo: Qubo, graph: Any, chains: list[list[int]]) -> None:
    """Raise unless chains are connected, disjoint, and joined by couplers: a fault of the heuristic."""
    networkx = optional("networkx", "embedding", "embed")
    owner = {qubit: bit for bit, chain in enumerate(chains) for qubit in chain}
    if len(owner) != sum(len(chain) for chain in chains):
        raise RuntimeError("minorminer returned chains that overlap")
    if not all(networkx.is_connected(graph.subgraph(chain)) for chain in chains):
        raise RuntimeError("minorminer returned a chain that is not connected")
    joined = {(owner[p], owner[q]) for p, q in graph.edges if p in owner and q in owner}
    rows, cols, _ = upper_triangle(qubo)
    if not all((i, j) in joined or (j, i) in joined for i, j in zip(rows.tolist(), cols.tolist(), strict=True)):
        raise RuntimeError("minorminer returned chains that lack a coupler")


def _ints(values: Any) -> Ints:
    array: Ints = frozen(np.array(values, np.int64))
    return array
