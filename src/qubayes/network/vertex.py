"""A vertex of a network by names, with its parameters as text and as a data frame."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from itertools import islice, product
from typing import Any

from ..data import make_frame
from ..foundation.arrays import Floats
from ..foundation.errors import QubayesError, some
from .by_state import ByState
from .linear import Linear

_MOST_LINES = 20  # rows of a table, or weights, that the text shows


@dataclass(frozen=True, slots=True)
class Vertex:
    """A vertex of a network with names: parents, children, states and parameters."""

    name: str
    parents: tuple[str, ...]
    children: tuple[str, ...]
    states: tuple[str, ...] | None  # none of a continuous variable: ()
    parent_states: tuple[tuple[str, ...], ...] | None  # in the order of `parents`
    table: Floats | None = field(repr=False)  # (parent arities..., arity)
    linear: Linear | None = None  # of a continuous variable
    by_state: ByState | None = None  # of a continuous variable with discrete parents

    def rows(self) -> Iterator[tuple[tuple[str, ...], dict[str, float]]]:
        """Yield (states of the parents, probability of each state) for each row of the table."""
        if self.linear is not None or self.by_state is not None:
            field = "linear" if self.by_state is None else "by_state"
            raise QubayesError(
                f"{self.name!r} is continuous and has no table; its parameters are in `{field}`"
            )
        if self.table is None or self.states is None or self.parent_states is None:
            raise QubayesError(
                f"{self.name!r} has no probabilities; fit the network to data first (`qubayes.fit`)"
            )
        numbers = self.table.reshape(-1, len(self.states)).tolist()
        for given, row in zip(product(*self.parent_states), numbers, strict=True):
            yield given, dict(zip(self.states, row, strict=True))

    @property
    def _discrete(self) -> tuple[int, ...]:
        """Places of the discrete parents among the parents."""
        return tuple(place for place, states in enumerate(self.parent_states or ()) if states)

    @property
    def _continuous(self) -> tuple[str, ...]:
        """Names of the continuous parents."""
        states = self.parent_states or ()
        return tuple(name for name, its in zip(self.parents, states, strict=True) if not its)

    def lines(self) -> Iterator[tuple[tuple[str, ...], Linear]]:
        """Yield (states of the discrete parents, parameters) of a continuous variable."""
        if self.by_state is None or self.parent_states is None:
            raise QubayesError(f"{self.name!r} has no parameters by states of parents")
        given = product(*(self.parent_states[place] for place in self._discrete))
        yield from zip(given, self.by_state, strict=True)

    def to_frame(self) -> Any:
        """Return the parameters as a data frame (pandas, else polars).

        The columns of a table are the parents, then P(x=state). Of a continuous variable the frame
        has the columns `term` and `value`: the intercept, the weight of each parent and the
        deviation. With discrete parents it has a column for each of these, then one for each
        term."""
        if self.by_state is not None:
            return self._frame_by_state()
        if self.linear is not None:
            terms = ["intercept", *self.parents, "deviation"]
            values = [self.linear.intercept, *self.linear.weights, self.linear.deviation]
            return make_frame({"term": terms, "value": values})
        rows = list(self.rows())
        columns: dict[str, list[Any]] = {}
        for i, parent in enumerate(self.parents):
            columns[parent] = [given[i] for given, _ in rows]
        for state in self.states or ():
            columns[f"P({self.name}={state})"] = [row[state] for _, row in rows]
        return make_frame(columns)

    def _frame_by_state(self) -> Any:
        """Return the parameters with a row for each combination of the discrete parents' states."""
        rows = list(self.lines())
        columns: dict[str, list[Any]] = {}
        for axis, place in enumerate(self._discrete):
            columns[self.parents[place]] = [states[axis] for states, _ in rows]
        columns["intercept"] = [linear.intercept for _, linear in rows]
        for k, parent in enumerate(self._continuous):
            columns[f"{parent} (weight)"] = [linear.weights[k] for _, linear in rows]
        columns["deviation"] = [linear.deviation for _, linear in rows]
        return make_frame(columns)

    def __str__(self) -> str:
        lines = [f"{self.name} <- {', '.join(self.parents)}" if self.parents else self.name]
        if self.states == ():
            lines.append("  continuous")
        elif self.states is not None:
            lines.append(f"  states {some(self.states, 10)}")
        if self.linear is not None:
            lines += self._linear_lines(self.linear)
        if self.by_state is not None:
            lines += self._lines_by_state(self.by_state)
        if self.table is not None:
            lines += self._table_lines(self.table)
        return "\n".join(lines)

    def _linear_lines(self, linear: Linear) -> list[str]:
        """Return the parameters, one in each line."""
        lines = [f"  intercept {linear.intercept:.4g}"]
        weights = zip(self.parents, linear.weights, strict=True)
        lines += [f"  {weight:+.4g} times {parent}" for parent, weight in weights][:_MOST_LINES]
        if len(self.parents) > _MOST_LINES:
            lines.append(f"  and {len(self.parents) - _MOST_LINES} parents more")
        return [*lines, f"  deviation {linear.deviation:.4g}"]

    def _lines_by_state(self, by_state: ByState) -> list[str]:
        """Return the parameters for the first combinations of states, one in each line."""
        lines = []
        for states, linear in islice(self.lines(), _MOST_LINES):
            weights = zip(self._continuous, linear.weights, strict=True)
            terms = "".join(f" {weight:+.4g} times {parent}" for parent, weight in weights)
            mean = f"{linear.intercept:.4g}{terms}"
            lines.append(f"  {', '.join(states)} -> {mean}, deviation {linear.deviation:.4g}")
        more = by_state.intercepts.size - _MOST_LINES
        return [*lines, f"  and {more} rows more"] if more > 0 else lines

    def _table_lines(self, table: Floats) -> list[str]:
        """Return the first rows of the table, one in each line."""
        lines = []
        for given, row in islice(self.rows(), _MOST_LINES):
            numbers = ", ".join(f"{state}: {p:.4g}" for state, p in islice(row.items(), 10))
            condition = f"{', '.join(given)} -> " if given else ""
            more = ", ..." if len(row) > 10 else ""
            lines.append(f"  {condition}{numbers}{more}")
        size = table.size // table.shape[-1]
        if size > _MOST_LINES:
            lines.append(f"  and {size - _MOST_LINES} rows more")
        return lines

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"
