"""A Bayesian network: a directed acyclic graph with a distribution of each vertex."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ..foundation.arrays import AnyArray, Floats, Ints
from ..foundation.errors import DataError, QubayesError, option, some
from ..foundation.graph import cycle_path, edges_of, find_cycle, renamed, topological_order
from . import answers
from .by_state import ByState
from .linear import Linear
from .parameter_checks import checked_parameters, same_parameters
from .separation import separated
from .vertex import Vertex

Edge: TypeAlias = tuple[int, int]  # parent and child, or two adjacent vertices
States: TypeAlias = tuple[tuple[str, ...], ...]
Tables: TypeAlias = tuple[Floats, ...]
Parameters: TypeAlias = Floats | Linear | ByState  # of one vertex

_MOST_DRAWN = 300  # vertices of a picture that a notebook shows unasked
MOST_AXES = 32  # axes of a table: some versions of numpy allow no more


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """A directed acyclic graph; its variables are known if it has `states`, parameters if `tables`.

    A discrete variable v has `states[v]`, and `tables[v]` has one axis per parent, in the order of
    `parents[v]`, and the states of v on the last axis. A row that sums to 1 only within the
    rounding of a file is scaled to 1. A continuous variable has no states, `states[v] == ()`, and
    `tables[v]` is a `Linear`; with discrete parents it is a `ByState`, one `Linear` for each
    combination of their states. A discrete variable with a table has discrete parents only.

    Networks are equal if names, edges, states and tables are; the order of parents does not matter.
    """

    names: tuple[str, ...]
    parents: tuple[tuple[int, ...], ...]  # indices, in the order of the axes of the table
    states: States | None = None
    # (parent arities..., arity), read-only; or a Linear, or a ByState
    tables: tuple[Parameters, ...] | None = field(default=None, repr=False)
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
            self.check_parents_of_states()
            tables = [
                checked_parameters(self, vertex, its) for vertex, its in enumerate(self.tables)
            ]
            object.__setattr__(self, "tables", tuple(tables))

    def _check_graph(self) -> None:
        """Raise unless names differ, parents are vertices and the graph is acyclic."""
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
        """Raise unless the states of each vertex differ."""
        if self.states is None:
            return
        if len(self.states) != self.n:
            raise QubayesError(
                f"{self.n} names but states of {len(self.states)} vertices; give both or neither"
            )
        for name, states in zip(self.names, self.states, strict=True):
            if len(set(states)) != len(states):
                raise QubayesError(f"the states of {name!r} are {states}; give each once")

    def check_parents_of_states(self) -> None:
        """Raise if a discrete variable has a continuous parent, for which there is no table."""
        states = self.states or ()
        for vertex, parents in enumerate(self.parents):
            wrong = [parent for parent in parents if states and not states[parent]]
            if wrong and states[vertex]:
                name, parent = self.names[vertex], self.names[wrong[0]]
                raise DataError(
                    f"{name!r} has states and its parent {parent!r} is continuous, and no table"
                    " takes numbers; turn the edge round, or cut the column with"
                    f" {option('bins', {parent: 3})}"
                )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Network):
            return NotImplemented
        if (self._graph, self.states) != (other._graph, other.states):
            return False
        if self.tables is None or other.tables is None:
            return self.tables is other.tables
        return all(
            same_parameters(self._sorted_table(v), other._sorted_table(v)) for v in range(self.n)
        )

    def __hash__(self) -> int:
        return hash((self._graph, self.states))

    @property
    def _graph(self) -> tuple[tuple[str, ...], tuple[frozenset[int], ...]]:
        """Names and sets of parents."""
        return self.names, tuple(map(frozenset, self.parents))

    def _sorted_table(self, vertex: int) -> Parameters:
        """Return the parameters of the vertex with its parents in ascending order."""
        assert self.tables is not None  # networks without parameters are equal by their graphs
        table = self.tables[vertex]
        if isinstance(table, ByState):
            discrete, continuous = self.split_parents(vertex)
            return table.reordered(_order_of(discrete), _order_of(continuous))
        parents = self.parents[vertex]
        axes = _order_of(parents)
        if isinstance(table, Linear):
            return table.reordered(axes)
        return table.transpose([*axes, len(parents)])

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
        names = self.names
        return [(names[parent], names[child]) for parent, child in edges_of(self.parents)]

    @property
    def arities(self) -> Ints:
        """Number of states of each vertex."""
        if self.states is None:
            raise QubayesError("this network has no states; read it from a file that declares them")
        return np.array([len(states) for states in self.states], dtype=np.int64)

    @property
    def is_continuous(self) -> bool:
        """Whether all variables are continuous."""
        return bool(self.states) and not any(self.states or ())

    @property
    def is_mixed(self) -> bool:
        """Whether some variables are continuous and others discrete."""
        return () in (self.states or ()) and not self.is_continuous

    def split_parents(self, vertex: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the discrete and the continuous parents of a vertex, in their order."""
        if self.states is None:
            return self.parents[vertex], ()
        states = self.states
        discrete = tuple(parent for parent in self.parents[vertex] if states[parent])
        continuous = tuple(parent for parent in self.parents[vertex] if not states[parent])
        return discrete, continuous

    @property
    def discrete_part(self) -> "Network":
        """The network of the discrete variables alone, whose parents must be discrete."""
        states = self.states or ((),) * self.n
        kept = [vertex for vertex, its in enumerate(states) if its]
        place = {vertex: number for number, vertex in enumerate(kept)}
        tables = None
        if self.tables is not None:
            tables = tuple(self.tables[vertex] for vertex in kept)
        return Network(
            tuple(self.names[vertex] for vertex in kept),
            tuple(tuple(place[parent] for parent in self.parents[vertex]) for vertex in kept),
            tuple(states[vertex] for vertex in kept),
            tables,
            values=self.values,
        )

    @property
    def parameters(self) -> tuple[States, Tables]:
        """States and tables of discrete variables; an error if the network has none."""
        states, tables = self.all_parameters
        if () in states:
            raise QubayesError(
                f"{self.names[states.index(())]!r} is continuous and has no table of probabilities;"
                f" cut the columns of the data with {option('bins', 3)} for a network of states"
            )
        return states, tuple(table for table in tables if isinstance(table, np.ndarray))

    @property
    def linears(self) -> tuple[Linear, ...]:
        """Parameters of the continuous variables; an error if there are discrete variables."""
        states, tables = self.all_parameters
        for name, its in zip(self.names, states, strict=True):
            if its:
                raise QubayesError(f"{name!r} is discrete and has no weights")
        return tuple(table for table in tables if isinstance(table, Linear))

    @property
    def all_parameters(self) -> tuple[States, tuple[Parameters, ...]]:
        """States and parameters of all variables; an error if the network has none."""
        if self.states is None or self.tables is None:
            raise QubayesError(
                "this network has no probabilities; fit it to data first (`qubayes.fit`), or read "
                "it from a file with tables"
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
        return dict(zip(self.names, renamed(self.parents, self.names), strict=True))

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
        """Return the vertex of this name: its parents, children, states and parameters.

        >>> Network.from_edges("abc", [("a", "c"), ("b", "c")])["c"].parents
        ('a', 'b')
        """
        vertex = self.index(name)
        names, parents = self.names, self.parents[vertex]
        children = tuple(v for v, its in enumerate(self.parents) if vertex in its)
        table = None if self.tables is None else self.tables[vertex]
        return Vertex(
            name,
            tuple(names[p] for p in parents),
            tuple(names[c] for c in children),
            None if self.states is None else self.states[vertex],
            None if self.states is None else tuple(self.states[p] for p in parents),
            table if isinstance(table, np.ndarray) else None,
            table if isinstance(table, Linear) else None,
            table if isinstance(table, ByState) else None,
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

    def separated(
        self,
        x: str | Iterable[str],
        y: str | Iterable[str],
        given: str | Iterable[str] = (),
    ) -> bool:
        """Return True if the graph separates x from y given others (d-separation).

        Then x and y are independent given these, for any parameters. Each argument is a name or
        several.

        >>> sprinkler = Network.from_edges("abc", [("a", "c"), ("b", "c")])
        >>> sprinkler.separated("a", "b"), sprinkler.separated("a", "b", given="c")
        (True, False)
        """
        return separated(self, x, y, given)

    def to_frame(self, name: str) -> Any:
        """Return the parameters of a vertex as a data frame (pandas, else polars).

        A table has a row for each combination of the parents' states; of a continuous variable the
        rows are the intercept, the weight of each parent and the deviation."""
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

        For the name of a continuous variable, return its `Normal`: mean and deviation given the
        others, exact; where states of discrete variables are left open, a `Mixture` of normals,
        which has a mean and a deviation, too. An interval of one, (low, high), has a probability;
        None is an open end.

        >>> tables = np.array([0.5, 0.5]), np.array([[1, 0], [0.5, 0.5]])
        >>> coin = Network(("a", "b"), ((), (0,)), (("0", "1"), ("0", "1")), tables)
        >>> coin.probability(b=1), coin.probability({"a": 1, "b": 1})
        (0.25, 0.25)
        >>> coin.probability("a", given={"b": 0})
        {'0': 0.6666666666666666, '1': 0.3333333333333333}
        >>> lines = Linear(0.0, (), 1.0), Linear(1.0, (2.0,), 1.0)
        >>> line = Network(("a", "b"), ((), (0,)), ((), ()), lines)
        >>> line.probability("b", given={"a": 1.5}), line.probability(b=(1.0, None))
        (Normal(mean=4.0, deviation=1.0), 0.5)
        """
        return answers.probability(self, query, given, states)

    def predict_proba(self, data: Any, name: str) -> Floats:
        """Return (rows, states of the vertex) its probabilities given the rest of each row.

        `data` is a file, a frame or an array, as for `qubayes.read`; columns that are not vertices,
        the column of the vertex itself and missing values are ignored."""
        return answers.predict_proba(self, data, name)

    def predict(self, data: Any, name: str) -> Any:
        """Return the most probable value of the vertex given the rest of each row of the data.

        Values are those of the column that the network was fitted to: truth values, numbers,
        categories, dates. Of intervals, of `missing` and of a network that was read from a file
        they are the names of the states. Of a continuous variable it is the mean. For a pandas or
        polars frame they are a Series, otherwise an array."""
        return answers.predict(self, data, name)

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
        what = "parameters" if () in (self.states or ()) else "probabilities"
        kind = f"with {what}" if self.tables is not None else f"without {what}"
        title = f"Network {self.name}".rstrip()
        shown = [
            f"  {child} <- {', '.join(its)}" for child, its in self.parent_names().items() if its
        ]
        more = [f"  and {len(shown) - 20} vertices more with parents"] if len(shown) > 20 else []
        return "\n".join(
            [f"{title}: {self.n} vertices, {len(self.edges)} edges, {kind}", *shown[:20], *more]
        )


def _order_of(parents: Sequence[int]) -> list[int]:
    """Return the places of the parents in ascending order of the parents."""
    return sorted(range(len(parents)), key=parents.__getitem__)


class Picture(str):
    """An SVG document; notebooks show it."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)
