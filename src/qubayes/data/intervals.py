"""Intervals of numbers as states: `<1.5`, `1.5..3`, `>=3`. An interval includes its lower bound."""

from collections.abc import Sequence
from itertools import pairwise
from math import inf

import numpy as np

from ..foundation.arrays import AnyArray, Floats, Ints
from ..settings import BinMethod
from .dataset import MISSING_STATE

_FEWEST_DIGITS = 3  # digits of a bound between two intervals


class Intervals(tuple[str, ...]):
    """Declared states that are intervals of numbers, possibly with a state for missing values."""

    __slots__ = ()

    @staticmethod
    def of(states: Sequence[str]) -> "Intervals | None":
        """Return the states if they are intervals, else None."""
        found = Intervals(states)
        return found if found.bounds else None

    @property
    def names(self) -> tuple[str, ...]:
        """The states without the one for missing values."""
        return tuple(state for state in self if state != MISSING_STATE)

    @property
    def bounds(self) -> list[float]:
        """The lower bounds of all intervals but the first; empty if states are not intervals."""
        names = self.names
        try:
            bounds = [float(name.removeprefix(">=").split("..")[0]) for name in names[1:]]
        except ValueError:
            return []
        if not bounds or interval_names(bounds, bounds[0]) != names:
            return []
        ascending = all(low < high for low, high in pairwise([-inf, *bounds, inf]))
        return bounds if ascending else []


def interval_names(bounds: list[float], least: float) -> tuple[str, ...]:
    """Return the names of the intervals between the bounds; of a single value, its own name."""
    texts = [repr(bound).removesuffix(".0") for bound in bounds]
    if not texts:
        return (repr(least).removesuffix(".0"),)
    return (f"<{texts[0]}", *(f"{low}..{high}" for low, high in pairwise(texts)), f">={texts[-1]}")


def cut(
    numbers: AnyArray | Sequence[int], counts: Ints, bins: int, method: BinMethod
) -> tuple[tuple[str, ...], Ints]:
    """Return the names of at most `bins` intervals, and the interval of each number.

    No interval is empty. `counts` are the rows of each number."""
    values = np.array([float(number) for number in numbers])
    # 0.0 and -0.0 are one number in two spellings
    ordered, places = np.unique(values, return_inverse=True)
    if method == "quantile" and len(ordered) > 1:
        edges = _quantiles(ordered, np.bincount(places, counts).astype(np.int64), bins)
    else:
        shares = np.arange(1, bins) / bins
        # in this form no difference can overflow
        edges = ordered[0] * (1 - shares) + ordered[-1] * shares
    firsts = np.searchsorted(ordered, edges, side="left")
    inside = (firsts > 0) & (firsts < len(ordered))
    firsts, chosen = np.unique(firsts[inside], return_index=True)
    between = zip(ordered[firsts - 1], ordered[firsts], edges[inside][chosen], strict=True)
    bounds = [_short_bound(*numbers_near_it) for numbers_near_it in between]
    codes: Ints = np.searchsorted(firsts, np.arange(len(ordered)), side="right")[places]
    return interval_names(bounds, float(ordered[0])), codes


def _quantiles(ordered: Floats, rows: Ints, bins: int) -> Floats:
    """Return the first value of each interval but the first.

    Interval k begins at the value that has nearest to a share k / `bins` of the rows below it: a
    value with most of the rows gets an interval of its own."""
    below = np.cumsum(rows)[:-1] * bins
    wanted = np.arange(1, bins) * int(rows.sum())
    right = np.minimum(np.searchsorted(below, wanted, side="left"), len(below) - 1)
    left = np.maximum(right - 1, 0)
    nearer = np.where(np.abs(below[left] - wanted) <= np.abs(below[right] - wanted), left, right)
    first: Floats = ordered[nearer + 1]
    return first


def _short_bound(below: float, first: float, edge: float) -> float:
    """Return a number near the edge with few digits that is above `below`, and `first` at most."""
    middle = below / 2 + first / 2
    for digits in range(_FEWEST_DIGITS, 17):
        for exact in (edge, middle):
            number = float(f"{exact:.{digits}g}")
            if below < number <= first:
                return number
    return float(first)
