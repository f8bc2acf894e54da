"""The order of the nodes inside each row, with few crossings of edges."""

from bisect import bisect_right, insort
from collections.abc import Sequence
from itertools import pairwise

from .layers import Layers

Rows = list[list[int]]

_SWEEPS = 24
_PATIENCE = 8  # sweeps without a gain after which to stop: the means settle or go round
_SWAP_EVERY = 3  # swapping after every sweep takes four times as long and leaves as many crossings
_SWAP_ROUNDS = 4


def ordered(layers: Layers) -> Rows:
    """The rows, each in an order that leaves few crossings: the best of three starts, each with sweeps and swaps."""
    starts = (_depth_first(layers), _depth_first(layers, upwards=True), [list(row) for row in layers.rows])
    return min((_improved(layers, start) for start in starts), key=lambda rows: crossings(layers, rows))


def crossings(layers: Layers, rows: Sequence[Sequence[int]]) -> int:
    """How many pairs of links cross."""
    return sum(_crossings_below(layers, upper, lower) for upper, lower in pairwise(rows))


def _crossings_below(layers: Layers, upper: Sequence[int], lower: Sequence[int]) -> int:
    place = {node: k for k, node in enumerate(lower)}
    passed: list[int] = []  # ends of the links so far, ascending; those right of a new link's end cross it
    total = 0
    for node in upper:
        ends = sorted(place[other] for other in layers.below[node])
        total += sum(len(passed) - bisect_right(passed, end) for end in ends)
        for end in ends:
            insort(passed, end)
    return total


def _depth_first(layers: Layers, *, upwards: bool = False) -> Rows:
    """The rows in the order in which a depth-first walk meets their nodes."""
    onward = layers.above if upwards else layers.below
    row_of = {node: k for k, row in enumerate(layers.rows) for node in row}
    rows: Rows = [[] for _ in layers.rows]
    seen = [False] * layers.nodes
    for start in (node for row in (layers.rows[::-1] if upwards else layers.rows) for node in row):
        stack = [start]
        while stack:
            node = stack.pop()
            if not seen[node]:
                seen[node] = True
                rows[row_of[node]].append(node)
                stack.extend(reversed(onward[node]))
    return rows


def _improved(layers: Layers, rows: Rows) -> Rows:
    """The best of the orders that sweeps down and up and exchanges of neighbours come by."""
    best, fewest, last_gain = [row[:] for row in rows], crossings(layers, rows), 0
    for sweep in range(1, _SWEEPS + 1):
        _sweep(layers, rows, downwards=sweep % 2 == 1)
        if sweep % _SWAP_EVERY == 0:
            _swap(layers, rows, _SWAP_ROUNDS)
        count = crossings(layers, rows)
        if count < fewest:
            best, fewest, last_gain = [row[:] for row in rows], count, sweep
        if fewest == 0 or sweep - last_gain >= _PATIENCE:
            break
    _swap(layers, best, 8 * _SWAP_ROUNDS)
    return best


def _sweep(layers: Layers, rows: Rows, *, downwards: bool) -> None:
    """Sort each row by the mean place of the neighbours in the row before it, one row after the other."""
    sequence = range(1, len(rows)) if downwards else range(len(rows) - 2, -1, -1)
    neighbours = layers.above if downwards else layers.below
    for k in sequence:
        fixed = {node: place for place, node in enumerate(rows[k - 1 if downwards else k + 1])}
        scale = len(fixed) / max(len(rows[k]), 1)
        keys = {}
        for place, node in enumerate(rows[k]):
            places = [fixed[other] for other in neighbours[node]]
            keys[node] = sum(places) / len(places) if places else place * scale
        rows[k].sort(key=keys.__getitem__)


def _swap(layers: Layers, rows: Rows, rounds: int) -> None:
    """Exchange neighbours in a row while that removes crossings."""
    place = {node: k for row in rows for k, node in enumerate(row)}
    above = [sorted(place[other] for other in others) for others in layers.above]
    below = [sorted(place[other] for other in others) for others in layers.below]
    changed = set(range(len(rows)))
    for _ in range(rounds):
        changed = {
            near for k in sorted(changed) if _swap_row(layers, rows[k], above, below) for near in (k - 1, k, k + 1)
        }
        changed &= set(range(len(rows)))
        if not changed:
            return


def _swap_row(layers: Layers, row: list[int], above: Rows, below: Rows) -> bool:
    swapped = False
    for k in range(len(row) - 1):
        left, right = row[k], row[k + 1]
        gain = _turns(above[left], above[right]) + _turns(below[left], below[right])
        if gain > 0:
            row[k], row[k + 1] = right, left
            swapped = True
    if swapped:
        place = {node: k for k, node in enumerate(row)}
        for other in {other for node in row for other in layers.above[node]}:
            below[other] = sorted(place[node] for node in layers.below[other])
        for other in {other for node in row for other in layers.below[node]}:
            above[other] = sorted(place[node] for node in layers.above[other])
    return swapped


def _turns(left: Sequence[int], right: Sequence[int]) -> int:
    """Crossings that go away less those that come when two neighbours with links to these places change places."""
    return sum((a > b) - (a < b) for a in left for b in right)
