"""A Bayesian network: a directed acyclic graph, and the probabilities of each vertex given its parents."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from ..foundation.arrays import Floats, Ints, frozen
from ..foundation.errors import QubayesError
from ..foundation.graph import cycle_path, find_cycle, topological_order

# Sums of probabilities in files differ from 1 by rounding: 0.33, 0.33, 0.33 means thirds; 0.5, 0.4 is a mistake.
_ROUNDING = 0.02


@dataclass(frozen=True, slots=True)
class Network:
    """A directed acyclic graph; with `states` its variables are discrete, with `tables` it has parameters.

    `tables[v]` has one axis per parent, in the order of `parents[v]`, and the states of v on the last axis. A row
    that sums to 1 only within the rounding of a file is scaled to 1.
    """

    names: tuple[str, ...]
    parents: tuple[tuple[int, ...], ...]  # indices, in the order of the axes of the table
    states: tuple[tuple[str, ...], ...] | None = None
    tables: tuple[Floats, ...] | None = field(default=None, repr=False)  # (parent arities..., arity), read-only
    name: str = ""  # the file that it was read from

    def __post_init__(self) -> None:
        _check_graph(self)
        if self.states is not None:
            _check_states(self)
        if self.tables is not None:
            object.__setattr__(self, "tables", tuple(_checked_table(self, v) for v in range(self.n)))

    @property
    def n(self) -> int:
        """Number of vertices."""
        return len(self.names)

    @property
    def edges(self) -> int:
        """Number of edges."""
        return sum(map(len, self.parents))

    @property
    def arities(self) -> Ints:
        """Number of states of each vertex."""
        if self.states is None:
            raise QubayesError("this network has no states; read it from a file that declares them")
        return np.array([len(states) for states in self.states], dtype=np.int64)

    @property
    def order(self) -> tuple[int, ...]:
        """The vertices, parents before children; among those that may come next, the smallest index."""
        return topological_order(self.parents)

    def parent_names(self) -> dict[str, tuple[str, ...]]:
        """The names of the parents of each vertex, by its name."""
        names = self.names
        return {names[v]: tuple(names[p] for p in parents) for v, parents in enumerate(self.parents)}


def _check_graph(network: Network) -> None:
    n = network.n
    if len(set(network.names)) != n:
        twice = Counter(network.names).most_common(1)[0][0]
        raise QubayesError(f"two vertices are named {twice!r}; give each its own name")
    if len(network.parents) != n:
        raise QubayesError(f"{n} names but parents of {len(network.parents)} vertices; give one tuple for each vertex")
    for name, parents in zip(network.names, network.parents, strict=True):
        if len(set(parents)) != len(parents) or any(not 0 <= p < n for p in parents):
            raise QubayesError(f"the parents of {name!r} are {parents}; give different indices from 0 to {n - 1}")
    if cycle := find_cycle(network.parents):
        raise QubayesError(
            f"the network has a directed cycle, {cycle_path(cycle, network.names)}; remove one of its edges"
        )


def _check_states(network: Network) -> None:
    assert network.states is not None
    if len(network.states) != network.n:
        raise QubayesError(f"{network.n} names but states of {len(network.states)} vertices; give both or neither")
    for name, states in zip(network.names, network.states, strict=True):
        if not states or len(set(states)) != len(states):
            raise QubayesError(f"the states of {name!r} are {states}; give one or more, each once")


def _checked_table(network: Network, vertex: int) -> Floats:
    """The table of the vertex, read-only, each row with sum 1."""
    if network.states is None or network.tables is None or len(network.tables) != network.n:
        raise QubayesError("tables need states, and one table for each vertex; leave out tables for a graph alone")
    name, table = network.names[vertex], np.asarray(network.tables[vertex], dtype=np.float64)
    shape = tuple(len(network.states[v]) for v in (*network.parents[vertex], vertex))
    if table.shape != shape:
        raise QubayesError(f"the table of {name!r} has shape {table.shape}; its states and parents make it {shape}")
    totals = table.sum(axis=-1, keepdims=True)
    wrong = ~(np.abs(totals - 1.0) <= _ROUNDING)
    if not (table >= 0).all() or wrong.any():
        found = f"a row with sum {totals[wrong].flat[0]:.6g}" if wrong.any() else f"{np.nanmin(table):.6g}"
        raise QubayesError(f"the table of {name!r} holds {found}; probabilities are 0 or more and sum to 1")
    # Rows that are right to the last digits stay as they are, so that writing and reading give the same numbers.
    return frozen(np.where(np.abs(totals - 1.0) > 1e-9, table / totals, table))
