"""A Bayesian network: a directed acyclic graph with tables of conditional probabilities."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from html import escape
from itertools import islice, product
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ..data import code_of, column_like, make_frame, read_evidence, state_of
from ..foundation.arrays import AnyArray, Floats, Ints, frozen
from ..foundation.errors import DataError, QubayesError, SettingError, some
from ..foundation.graph import cycle_path, find_cycle, topological_order
from .inference import marginals_given

Edge: TypeAlias = tuple[int, int]  # parent and child, or two adjacent vertices
States: TypeAlias = tuple[tuple[str, ...], ...]
Tables: TypeAlias = tuple[Floats, ...]

# Sums of probabilities in files differ from 1 by rounding: 0.33, 0.33, 0.33 means thirds; 0.5, 0.4
# is a mistake.
_ROUNDING = 0.02
_MOST_DRAWN = 300  # vertices of a picture that a notebook shows unasked
MOST_AXES = 32  # axes of a table: some versions of numpy allow no more


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """A directed acyclic graph; discrete variables if it has `states`, parameters if `tables`.

    `tables[v]` has one axis per parent, in the order of `parents[v]`, and the states of v on the
    last axis. A row that sums to 1 only within the rounding of a file is scaled to 1.

    Networks are equal if names, edges, states and tables are, whatever the order of the parents.
    """

    names: tuple[str, ...]
    parents: tuple[tuple[int, ...], ...]  # indices, in the order of the axes of the table
    states: States | None = None
    tables: Tables | None = field(default=None, repr=False)  # (parent arities..., arity), read-only
    name: str = ""  # the file that it was read from
    # By name, the value of each state in the data of `fit`; not for columns of texts or intervals,
    # and in no file.
    values: Mapping[str, AnyArray] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._check_graph()
        self._check_states()
        if self.tables is not None:
            if self.states is None or len(self.tables) != self.n:
                raise QubayesError(
                    "tables need states, and one table for each vertex; "
                    "leave out tables for a graph"
                )
            tables = [_checked_table(self, vertex, its) for vertex, its in enumerate(self.tables)]
            object.__setattr__(self, "tables", tuple(tables))

    def _check_graph(self) -> None:
        """Raise unless names differ, parents are vertices and there is no cycle."""
        n = self.n
        if len(set(self.names)) != n:
            twice = Counter(self.names).most_common(1)[0][0]
            raise QubayesError(f"two vertices are named {twice!r}; give each its own name")
        if len(self.parents) != n:
            raise QubayesError(
                f"{n} names but parents of {len(self.parents)} vertices; give one tuple for each "
                "vertex"
            )
        for name, parents in zip(self.names, self.parents, strict=True):
            if len(set(parents)) != len(parents) or any(not 0 <= p < n for p in parents):
                raise QubayesError(
                    f"the parents of {name!r} are {parents}; give different indices from 0 to "
                    f"{n - 1}"
                )
        if cycle := find_cycle(self.parents):
            path = cycle_path(cycle, self.names)
            raise QubayesError(f"the network has a directed cycle, {path}; remove one of its edges")

    def _check_states(self) -> None:
        """Raise unless every vertex has states that differ, or none has any."""
        if self.states is None:
            return
        if len(self.states) != self.n:
            raise QubayesError(
                f"{self.n} names but states of {len(self.states)} vertices; give both or neither"
            )
        for name, states in zip(self.names, self.states, strict=True):
            if not states or len(set(states)) != len(states):
                raise QubayesError(
                    f"the states of {name!r} are {states}; give one or more, each once"
                )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Network):
            return NotImplemented
        if (self._graph, self.states) != (other._graph, other.states):
            return False
        if self.tables is None or other.tables is None:
            return self.tables is other.tables
        vertices = range(self.n)
        return all(np.array_equal(self._sorted_table(v), other._sorted_table(v)) for v in vertices)

    def __hash__(self) -> int:
        return hash((self._graph, self.states))

    @property
    def _graph(self) -> tuple[tuple[str, ...], tuple[frozenset[int], ...]]:
        """Names and sets of parents."""
        return self.names, tuple(map(frozenset, self.parents))

    def _sorted_table(self, vertex: int) -> Floats:
        """Return the table of the vertex with its parents in ascending order."""
        _, tables = self.parameters
        parents = self.parents[vertex]
        axes = sorted(range(len(parents)), key=parents.__getitem__)
        return tables[vertex].transpose([*axes, len(parents)])

    @classmethod
    def from_edges(cls, names: Sequence[str], edges: Iterable[tuple[str, str]]) -> "Network":
        """Return the graph with these edges (parent, child), by name; a repeated edge counts once.

        >>> Network.from_edges(["a", "b", "c"], [("c", "b"), ("a", "b")]).parents
        ((), (2, 0), ())
        """
        index = {name: vertex for vertex, name in enumerate(names)}
        parents: list[dict[int, None]] = [{} for _ in names]  # dictionaries keep the order
        for parent, child in edges:
            if unknown := [name for name in (parent, child) if name not in index]:
                raise QubayesError(
                    f"the edge {parent!r} -> {child!r} has {unknown[0]!r}, "
                    "which is not a vertex; add it"
                )
            parents[index[child]][index[parent]] = None
        return cls(tuple(names), tuple(map(tuple, parents)))

    @property
    def n(self) -> int:
        """Number of vertices."""
        return len(self.names)

    @property
    def edges(self) -> list[tuple[str, str]]:
        """The edges (parent, child), by name, in the order of the children."""
        return [
            (self.names[parent], name)
            for name, its in zip(self.names, self.parents, strict=True)
            for parent in its
        ]

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
                "this network has no probabilities; fit it to data first (`qubayes.fit`), or read "
                "it from a file with"
                " tables"
            )
        return self.states, self.tables

    def table_shape(self, vertex: int) -> tuple[int, ...]:
        """Return the shape of the vertex's table: the arities of its parents, and its own."""
        if len(self.parents[vertex]) >= MOST_AXES:
            raise QubayesError(
                f"{self.names[vertex]!r} has a table and {len(self.parents[vertex])} parents; at "
                f"most {MOST_AXES - 1}"
                " can have one"
            )
        if self.states is None:
            raise QubayesError("this network has no states; read it from a file that declares them")
        return tuple(len(self.states[v]) for v in (*self.parents[vertex], vertex))

    @property
    def order(self) -> tuple[int, ...]:
        """The vertices, parents before children.

        Among those that may come next, the smallest index."""
        return topological_order(self.parents)

    def parent_names(self) -> dict[str, tuple[str, ...]]:
        """Return the names of the parents of each vertex, by its name."""
        names = self.names
        return {
            names[v]: tuple(names[p] for p in parents) for v, parents in enumerate(self.parents)
        }

    def index(self, name: str) -> int:
        """Return the index of the vertex of this name."""
        if name not in self.names:
            close = get_close_matches(str(name), self.names, 1)
            hint = (
                f"did you mean {close[0]!r}?" if close else f"vertices are {some(self.names, 10)}"
            )
            raise QubayesError(f"the network has no vertex {name!r}; {hint}")
        return self.names.index(name)

    def __getitem__(self, name: str) -> "Vertex":
        """Return the vertex of this name: its parents, children, states and table.

        >>> Network.from_edges("abc", [("a", "c"), ("b", "c")])["c"].parents
        ('a', 'b')
        """
        vertex = self.index(name)
        names, parents = self.names, self.parents[vertex]
        children = tuple(v for v, its in enumerate(self.parents) if vertex in its)
        return Vertex(
            name,
            tuple(names[p] for p in parents),
            tuple(names[c] for c in children),
            None if self.states is None else self.states[vertex],
            None if self.states is None else tuple(self.states[p] for p in parents),
            None if self.tables is None else self.tables[vertex],
        )

    def markov_blanket(self, name: str) -> tuple[str, ...]:
        """Return the parents, the children and the other parents of the children.

        Given them, no other vertex matters.

        >>> Network.from_edges("abcd", [("a", "c"), ("b", "c"), ("c", "d")]).markov_blanket("a")
        ('b', 'c')
        """
        vertex = self.index(name)
        families = [{v, *its} for v, its in enumerate(self.parents) if v == vertex or vertex in its]
        return tuple(self.names[v] for v in sorted(set().union(*families) - {vertex}))

    def to_frame(self, name: str) -> Any:
        """Return the table of a vertex as a data frame (pandas, else polars).

        It has a row for each combination of the parents' states."""
        return self[name].to_frame()

    def probability(
        self, query: str | Mapping[str, Any] | None = None, /, *, given: Any = None, **states: Any
    ) -> Any:
        """Return the probability of these states given others.

        For a name alone, return the probability of each of its values.

        States are named as in `states`, or are values as in data: a number may lie in an interval,
        and True is "true". `given` is a mapping, or a row of a pandas frame, of which the columns
        that are not vertices and those that are asked for are ignored. Missing values are left out
        unless `missing` is a state. Values are those of `predict`. Exact, by variable elimination:
        TooLargeError where the graph is too dense for it.

        >>> tables = np.array([0.5, 0.5]), np.array([[1, 0], [0.5, 0.5]])
        >>> coin = Network(("a", "b"), ((), (0,)), (("0", "1"), ("0", "1")), tables)
        >>> coin.probability(b=1), coin.probability({"a": 1, "b": 1})
        (0.25, 0.25)
        >>> coin.probability("a", given={"b": 0})
        {'0': 0.6666666666666666, '1': 0.3333333333333333}
        """
        if isinstance(query, str):
            if states:
                raise SettingError(
                    f"a variable ({query!r}) and a state ({min(states)}) were given; give one or "
                    "the other"
                )
            vertex = self.index(query)
            found = self._posterior(vertex, self._evidence(given, {vertex}))[0]
            return dict(zip(self._values(vertex).tolist(), found.tolist(), strict=True))
        wanted = {self.index(name): value for name, value in {**(query or {}), **states}.items()}
        if not wanted:
            raise SettingError(
                'probability of nothing; give states such as probability(x="yes"), or a name'
            )
        codes = self._evidence(given, wanted.keys())
        # By the chain rule, so that no joint table of many vertices is needed.
        total = 1.0
        for vertex, value in wanted.items():
            code = self._code(vertex, value)
            total *= float(self._posterior(vertex, codes)[0, code]) if total else 0.0
            codes[vertex] = np.array([code])
        return total

    def predict_proba(self, data: Any, name: str) -> Floats:
        """Return (rows, states of the vertex) its probabilities given the rest of each row.

        `data` is a file, a frame or an array, as for `qubayes.read`; columns that are not vertices,
        the column of the vertex itself and missing values are ignored."""
        vertex = self.index(name)
        columns = {
            self.index(other): codes
            for other, codes in read_evidence(data, self).items()
            if other != name
        }
        if not columns:
            raise DataError(
                f"the data have no column that is a vertex besides {name!r}; vertices are "
                f"{some(self.names)}"
            )
        rows = len(next(iter(columns.values())))
        known = np.array([codes >= 0 for codes in columns.values()])
        found = np.empty((rows, len(self.parameters[0][vertex])))
        patterns, which = np.unique(known, axis=1, return_inverse=True)
        for pattern, observed in enumerate(patterns.T):
            here = which.ravel() == pattern
            evidence = {
                v: codes[here]
                for (v, codes), seen in zip(columns.items(), observed, strict=True)
                if seen
            }
            found[here] = self._posterior(vertex, evidence)
        return found

    def predict(self, data: Any, name: str) -> Any:
        """Return the most probable value of the vertex given the rest of each row of the data.

        Values are those of the column that the network was fitted to: truth values, numbers,
        categories, dates. Of intervals, of `missing` and of a network that was read from a file
        they are the names of the states. For a pandas or polars frame they are a Series, otherwise
        an array."""
        vertex = self.index(name)
        return column_like(
            data, name, self._values(vertex)[self.predict_proba(data, name).argmax(axis=1)]
        )

    def _values(self, vertex: int) -> AnyArray:
        """Return the value of each state of the vertex; names where the data had none."""
        return self.values.get(self.names[vertex], np.array(self.parameters[0][vertex]))

    def _evidence(self, given: Any, asked: Container[int]) -> dict[int, Ints]:
        """Return the state of each vertex that a mapping or a row gives, without missing values."""
        if given is None or isinstance(given, Mapping):
            values = {self.index(name): value for name, value in (given or {}).items()}
            if both := [vertex for vertex in values if vertex in asked]:
                raise SettingError(
                    f"{self.names[min(both)]!r} is asked for and given; leave it out of one"
                )
        elif getattr(given, "ndim", 0) == 1 and hasattr(given, "items"):  # a Series
            known = {
                self.names.index(str(name)): value
                for name, value in given.items()
                if str(name) in self.names
            }
            values = {vertex: value for vertex, value in known.items() if vertex not in asked}
        else:
            raise SettingError(
                f"given is of type {type(given).__name__}; give states by name, such as "
                f"{{'x': 'yes'}}, or a row of a"
                " pandas frame"
            )
        states, _ = self.parameters
        codes = {
            vertex: code_of(states[vertex], value, self.names[vertex])
            for vertex, value in values.items()
        }
        return {vertex: np.array([code]) for vertex, code in codes.items() if code >= 0}

    def _code(self, vertex: int, value: Any) -> int:
        """Return the state that a value names."""
        return state_of(self.parameters[0][vertex], value, self.names[vertex])

    def _posterior(self, query: int, evidence: Mapping[int, Ints]) -> Floats:
        found = marginals_given(self, query, evidence)
        if np.isnan(found).any():
            row = int(np.argmax(np.isnan(found).any(axis=1)))
            states = self.parameters[0]
            given = (
                f"{self.names[v]} = {states[v][codes[row]]}"
                for v, codes in list(evidence.items())[:5]
            )
            raise QubayesError(
                f"the network holds the evidence of row {row + 1} impossible ({', '.join(given)});"
                " leave out some of it, or fit the network with a prior such as bdeu"
            )
        return found

    def plot(self, path: str | Path | None = None) -> "Picture":
        """Return a picture of the graph, which notebooks show.

        It is written to a .svg or .png file if a path is given."""
        # `report` imports this package, so it is loaded when a picture is asked for.
        from ..report import draw, write_drawing

        if path is not None:
            write_drawing(self, Path(path))
        return Picture(draw(self))

    def _repr_svg_(self) -> str | None:
        """Return the picture that a notebook shows; None for a graph too large to be read."""
        return self.plot() if self.n <= _MOST_DRAWN else None

    def __str__(self) -> str:
        kind = "with probabilities" if self.tables is not None else "without probabilities"
        title = f"Network {self.name}".rstrip()
        shown = [
            f"  {child} <- {', '.join(its)}" for child, its in self.parent_names().items() if its
        ]
        more = [f"  and {len(shown) - 20} vertices more with parents"] if len(shown) > 20 else []
        return "\n".join(
            [f"{title}: {self.n} vertices, {len(self.edges)} edges, {kind}", *shown[:20], *more]
        )


class Picture(str):
    """An SVG document; notebooks show it."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


@dataclass(frozen=True, slots=True)
class Vertex:
    """A vertex of a network with names: parents, children, states and table."""

    name: str
    parents: tuple[str, ...]
    children: tuple[str, ...]
    states: tuple[str, ...] | None
    parent_states: States | None  # in the order of `parents`
    table: Floats | None = field(repr=False)  # (parent arities..., arity)

    def rows(self) -> Iterator[tuple[tuple[str, ...], dict[str, float]]]:
        """Yield (states of the parents, probability of each state) for each row of the table."""
        if self.table is None or self.states is None or self.parent_states is None:
            raise QubayesError(
                f"{self.name!r} has no probabilities; fit the network to data first (`qubayes.fit`)"
            )
        numbers = self.table.reshape(-1, len(self.states)).tolist()
        for given, row in zip(product(*self.parent_states), numbers, strict=True):
            yield given, dict(zip(self.states, row, strict=True))

    def to_frame(self) -> Any:
        """Return the table as a data frame (pandas, else polars).

        Its columns are the parents, then P(x=state)."""
        rows = list(self.rows())
        columns: dict[str, list[Any]] = {
            parent: [given[i] for given, _ in rows] for i, parent in enumerate(self.parents)
        }
        for state in self.states or ():
            columns[f"P({self.name}={state})"] = [row[state] for _, row in rows]
        return make_frame(columns)

    def __str__(self) -> str:
        lines = [f"{self.name} <- {', '.join(self.parents)}" if self.parents else self.name]
        if self.states is not None:
            lines.append(f"  states {some(self.states, 10)}")
        if self.table is not None:
            for given, row in islice(self.rows(), 20):
                numbers = ", ".join(f"{state}: {p:.4g}" for state, p in islice(row.items(), 10))
                condition = f"{', '.join(given)} -> " if given else ""
                more = ", ..." if len(row) > 10 else ""
                lines.append(f"  {condition}{numbers}{more}")
            if (size := self.table.size // self.table.shape[-1]) > 20:
                lines.append(f"  and {size - 20} rows more")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def _checked_table(network: Network, vertex: int, table: Floats) -> Floats:
    """Return the table read-only, each row with sum 1."""
    name = network.names[vertex]
    shape = network.table_shape(vertex)
    table = np.asarray(table, dtype=np.float64)
    if table.shape != shape:
        raise QubayesError(
            f"the table of {name!r} has shape {table.shape}; its states and parents make it {shape}"
        )
    totals = table.sum(axis=-1, keepdims=True)
    wrong = ~(np.abs(totals - 1.0) <= _ROUNDING)
    if not (table >= 0).all() or wrong.any():
        found = (
            f"a row with sum {totals[wrong].flat[0]:.6g}"
            if wrong.any()
            else f"{np.nanmin(table):.6g}"
        )
        raise QubayesError(
            f"the table of {name!r} holds {found}; probabilities are 0 or more and sum to 1"
        )
    # Rows that are right to the last digits stay as they are, so that writing and reading give the
    # same numbers.
    return frozen(np.where(np.abs(totals - 1.0) > 1e-9, table / totals, table))
