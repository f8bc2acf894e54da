"""Whether parameters fit the variables of a network, and whether they are equal."""

from typing import TYPE_CHECKING

import numpy as np

from ..foundation.arrays import Floats, frozen
from ..foundation.errors import QubayesError
from .by_state import ByState
from .linear import Linear

if TYPE_CHECKING:
    from .network import Network, Parameters

# Sums of probabilities in files differ from 1 by rounding: 0.33, 0.33, 0.33 means thirds; 0.5, 0.4
# is a mistake.
_ROUNDING = 0.02


def same_parameters(a: "Parameters", b: "Parameters") -> bool:
    """Return True if the parameters are of the same kind and equal."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    return type(a) is type(b) and a == b


def checked_parameters(network: "Network", vertex: int, table: "Parameters") -> "Parameters":
    """Return the parameters of the vertex; raise unless they fit its states and parents."""
    name = network.names[vertex]
    if network.states is None or network.states[vertex]:
        if isinstance(table, Linear | ByState):
            raise QubayesError(f"{name!r} has states; give a table of probabilities")
        return _checked_table(network, vertex, table)
    discrete, continuous = network.split_parents(vertex)
    if discrete:
        return _checked_by_state(network, vertex, table)
    if not isinstance(table, Linear):
        raise QubayesError(
            f"{name!r} is continuous; give a Linear: intercept, weights and deviation"
        )
    if len(table.weights) != len(continuous):
        raise QubayesError(
            f"{name!r} has {len(continuous)} parents and {len(table.weights)} weights;"
            " give one weight for each parent"
        )
    return table


def _checked_by_state(network: "Network", vertex: int, table: "Parameters") -> ByState:
    """Return the parameters if they fit the discrete and the continuous parents."""
    name = network.names[vertex]
    discrete, continuous = network.split_parents(vertex)
    if not isinstance(table, ByState):
        raise QubayesError(
            f"{name!r} is continuous and its parent {network.names[discrete[0]]!r} has states;"
            " give a ByState: a Linear for each state"
        )
    states = network.states or ()
    shape = *(len(states[parent]) for parent in discrete), len(continuous)
    if table.weights.shape != shape:
        raise QubayesError(
            f"the weights of {name!r} have shape {table.weights.shape}; its parents make it {shape}"
        )
    return table


def _checked_table(network: "Network", vertex: int, table: Floats) -> Floats:
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
