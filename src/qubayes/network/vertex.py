"""A vertex of a network by names, with its parameters as text and as a data frame."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from itertools import islice, product
from typing import Any

from ..data import make_frame
from ..foundation.arrays import Floats
from ..foundation.errors import QubayesError, some
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

    def rows(self) -> Iterator[tuple[tuple[str, ...], dict[str, float]]]:
        """Yield (states of the parents, probability of each state) for each row of the table."""
        if self.linear is not None:
            raise QubayesError(
                f"{self.name!r} is continuous and has no table; its parameters are in `linear`"
            )
        if self.table is None or self.states is None or self.parent_states is None:
            raise QubayesError(
                f"{self.name!r} has no probabilities; fit the network to data first (`qubayes.fit`)"
            )
        numbers = self.table.reshape(-1, len(self.states)).tolist()
        for given, row in zip(product(*self.parent_states), numbers, strict=True):
            yield given, dict(zip(self.states, row, strict=True))

    def to_frame(self) -> Any:
        """Return the parameters as a data frame (pandas, else polars).

        The columns of a table are the parents, then P(x=state). Of a continuous variable the frame
        has the columns `term` and `value`: the intercept, the weight of each parent and the
        deviation."""
        if self.linear is not None:
            terms = ["intercept", *self.parents, "deviation"]
            values = [self.linear.intercept, *self.linear.weights, self.linear.deviation]
            return make_frame({"term": terms, "value": values})
        rows = list(self.rows())
        columns: dict[str, list[Any]] = {
            parent: [given[i] for given, _ in rows] for i, parent in enumerate(self.parents)
        }
        for state in self.states or ():
            columns[f"P({self.name}={state})"] = [row[state] for _, row in rows]
        return make_frame(columns)

    def __str__(self) -> str:
        lines = [f"{self.name} <- {', '.join(self.parents)}" if self.parents else self.name]
        if self.states == ():
            lines.append("  continuous")
        elif self.states is not None:
            lines.append(f"  states {some(self.states, 10)}")
        if self.linear is not None:
            lines += self._linear_lines(self.linear)
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
