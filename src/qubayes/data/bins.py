"""Continuous values cut into intervals."""

from collections.abc import Sequence
from itertools import pairwise
from math import inf

import numpy as np

from ..foundation.arrays import AnyArray, Floats, Ints
from .settings import BinMethod

_FEWEST_DIGITS = 3


def cut(numbers: AnyArray | Sequence[int], counts: Ints, bins: int, method: BinMethod) -> tuple[tuple[str, ...], Ints]:
    """The names of at most `bins` intervals that all hold rows, and the interval of each number.

    An interval holds its lower end: `<1.5`, `1.5..3`, `>=3`. `counts` are the rows of each number.
    """
    values = np.array([float(number) for number in numbers])
    ordered, places = np.unique(values, return_inverse=True)  # 0.0 and -0.0 are one number in two spellings
    rows = np.zeros(len(ordered), dtype=np.int64)
    np.add.at(rows, places, counts)
    edges = _quantile_edges(ordered, rows, bins) if method == "quantile" else _width_edges(ordered, bins)
    firsts = np.searchsorted(ordered, edges, side="left")
    inside = (firsts > 0) & (firsts < len(ordered))
    firsts, which = np.unique(firsts[inside], return_index=True)
    short = [
        _short_number(ordered[i - 1], ordered[i], edge) for i, edge in zip(firsts, edges[inside][which], strict=True)
    ]
    codes: Ints = np.searchsorted(firsts, np.arange(len(ordered)), side="right")[places]
    return _interval_names(short, float(ordered[0])), codes


def _quantile_edges(ordered: Floats, counts: Ints, bins: int) -> Floats:
    """The values that begin an interval: those with nearest to k rows of every `bins` below them.

    Nearest, so that a value with most of the rows gets an interval of its own.
    """
    below = np.cumsum(counts)[:-1] * bins  # of the second value, the third, ...
    if len(below) == 0:
        return ordered[:0]
    wanted = np.arange(1, bins) * int(counts.sum())
    right = np.minimum(np.searchsorted(below, wanted, side="left"), len(below) - 1)
    left = np.maximum(right - 1, 0)
    nearest = np.where(np.abs(below[left] - wanted) <= np.abs(below[right] - wanted), left, right)
    return np.asarray(ordered[nearest + 1])


def _width_edges(ordered: Floats, bins: int) -> Floats:
    """The bounds of equally wide intervals from the least to the greatest value."""
    shares = np.arange(1, bins) / bins
    return np.asarray(ordered[0] * (1 - shares) + ordered[-1] * shares)  # in this form no difference can overflow


def _short_number(below: float, first: float, edge: float) -> float:
    """A number near the edge with few digits that cuts the data alike: below < it <= first."""
    for digits in range(_FEWEST_DIGITS, 17):
        for target in (edge, below / 2 + first / 2):
            number = float(f"{target:.{digits}g}")
            if below < number <= first:
                return number
    return float(first)


def _interval_names(edges: list[float], least: float) -> tuple[str, ...]:
    if not edges:
        return (_shown(least),)
    inner = [f"{_shown(low)}..{_shown(high)}" for low, high in pairwise(edges)]
    return (f"<{_shown(edges[0])}", *inner, f">={_shown(edges[-1])}")


def edges_of(names: Sequence[str]) -> list[float] | None:
    """Where the intervals of these names begin, but for the first; None if the names are no intervals."""
    try:
        edges = [float(name.removeprefix(">=").split("..")[0]) for name in names[1:]]
    except ValueError:
        return None
    ascending = all(low < high for low, high in pairwise([-inf, *edges, inf]))
    return edges if edges and ascending and _interval_names(edges, edges[0]) == tuple(names) else None


def _shown(number: float) -> str:
    """The shortest text that reads back as the number, without a needless fraction."""
    text = repr(number)
    return text.removesuffix(".0")
