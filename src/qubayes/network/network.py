"""A Bayesian network: a directed acyclic graph, and the probabilities of each vertex given its parents."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from ..foundation.arrays import Floats, Ints, frozen
from ..foundation.errors import QubayesError
from ..foundation.graph import cycle_path, find_cycle, topological_order

States: TypeAlias = tuple[tuple[str, ...], ...]
Tables: TypeAlias = tuple[Floats, ...]

# Sums of probabilities in files differ from 1 by rounding: 0.33, 0.33, 0.33 means thirds; 0.5, 0.4 is a mistake.
_ROUNDING = 0.02
MOST_AXES = 32  # of a table: some versions of numpy allow no more


@dataclass(frozen=True, slots=True)
class Network:
    """A directed acyclic graph; with `states` its variables are discrete, with `tables` it has parameters.

    `tables[v]` has one axis per parent, in the order of `parents[v]`, and the states of v on the last axis. A row
    that sums to 1 only within the rounding of a file is scaled to 1.
    """

    names: tuple[str, ...]
    parents: tuple[tuple[int, ...], ...]  # indices, in the order of the axes of the table
    states: States | None = None
    tables: Tables | None = field(default=None, repr=False)  # (parent arities..., arity), read-only
    name: str = ""  # the file that it was read from

    def __post_init__(self) -> None:
        n = self.n
        if len(set(self.names)) != n:
            twice = Counter(self.names).most_common(1)[0][0]
            raise QubayesError(f"two vertices are named {twice!r}; give each its own name")
        if len(self.parents) != n:
            raise QubayesError(f"{n} names but parents of {len(self.parents)} vertices; give one tuple for each vertex")
        for name, parents in zip(self.names, self.parents, strict=True):
            if len(set(parents)) != len(parents) or any(not 0 <= p < n for p in parents):
                raise QubayesError(f"the parents of {name!r} are {parents}; give different indices from 0 to {n - 1}")
        if cycle := find_cycle(self.parents):
            path = cycle_path(cycle, self.names)
            raise QubayesError(f"the network has a directed cycle, {path}; remove one of its edges")
        if self.states is not None and len(self.states) != n:
            raise QubayesError(f"{n} names but states of {len(self.states)} vertices; give both or neither")
        for name, states in zip(self.names, self.states or (), strict=self.states is not None):
            if not states or len(set(states)) != len(states):
                raise QubayesError(f"the states of {name!r} are {states}; give one or more, each once")
        if self.tables is not None:
            if self.states is None or len(self.tables) != n:
                raise QubayesError("tables need states, and one table for each vertex; leave out tables for a graph")
            tables = (_checked_table(self, vertex, table) for vertex, table in enumerate(self.tables))
            object.__setattr__(self, "tables", tuple(tables))

    @classmethod
    def from_edges(cls, names: Sequence[str], edges: Iterable[tuple[str, str]]) -> "Network":
        """Return the graph with these edges (parent, child), by name; a repeated edge counts once.

        >>> Network.from_edges(["a", "b", "c"], [("c", "b"), ("a", "b")]).parents
        ((), (2, 0), ())
        """
        index = {name: vertex for vertex, name in enumerate(names)}
        parents: list[dict[int, None]] = [{} for _ in names]  # dictionaries keep the order
        for edge in edges:
            if unknown := [name for name in edge if name not in index]:
                raise QubayesError(
                    f"the edge {edge[0]!r} -> {edge[1]!r} has {unknown[0]!r}, which is not a vertex; add it"
                )
            parents[index[edge[1]]][index[edge[0]]] = None
        return cls(tuple(names), tuple(map(tuple, parents)))

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
    def parameters(self) -> tuple[States, Tables]:
        """States and tables; an error if the network has none."""
        if self.states is None or self.tables is None:
            raise QubayesError(
                "this network has no probabilities; fit it to data first (`qubayes.fit`), or read it from a file with"
                " tables"
            )
        return self.states, self.tables

    def table_shape(self, vertex: int) -> tuple[int, ...]:
        """Return the shape of the vertex's table: the arities of its parents, and its own; raise if it has none."""
        if len(self.parents[vertex]) >= MOST_AXES:
            raise QubayesError(
                f"{self.names[vertex]!r} has a table and {len(self.parents[vertex])} parents; at most {MOST_AXES - 1}"
                " can have one"
            )
        if self.states is None:
            raise QubayesError("this network has no states; read it from a file that declares them")
        return tuple(len(self.states[v]) for v in (*self.parents[vertex], vertex))

    @property
    def order(self) -> tuple[int, ...]:
        """The vertices, parents before children; among those that may come next, the smallest index."""
        return topological_order(self.parents)

    def parent_names(self) -> dict[str, tuple[str, ...]]:
        """Return the names of the parents of each vertex, by its name."""
        names = self.names
        return {names[v]: tuple(names[p] for p in parents) for v, parents in enumerate(self.parents)}


def _checked_table(network: Network, vertex: int, table: Floats) -> Floats:
    """Return the table read-only, each row with sum 1."""
    name, table, shape = network.names[vertex], np.asarray(table, dtype=np.float64), network.table_shape(vertex)
    if table.shape != shape:
        raise QubayesError(f"the table of {name!r} has shape {table.shape}; its states and parents make it {shape}")
    totals = table.sum(axis=-1, keepdims=True)
    wrong = ~(np.abs(totals - 1.0) <= _ROUNDING)
    if not (table >= 0).all() or wrong.any():
        found = f"a row with sum {totals[wrong].flat[0]:.6g}" if wrong.any() else f"{np.nanmin(table):.6g}"
        raise QubayesError(f"the table of {name!r} holds {found}; probabilities are 0 or more and sum to 1")
    # Rows that are right to the last digits stay as they are, so that writing and reading give the same numbers.
    return frozen(np.where(np.abs(totals - 1.0) > 1e-9, table / totals, table))
