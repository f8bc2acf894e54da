"""Which way round each r bit is written, so that the linear coefficients of the order bits stay small.

A triangle that is transitive in the chosen directions costs delta (w + x y - x w - y w), w its long side; one that is
cyclic in them costs delta (1 - x - y - w + x y + x w + y w). Written all ascending, as in the paper, every triangle is
transitive, and a pair that is the long side of hundreds has hundreds of times delta as its linear coefficient.
Directions in which each pair is as often long as it lies in cyclic triangles take that away; nothing else changes.
"""

from typing import NamedTuple

import numpy as np

from ..foundation.arrays import Floats, Ints, SmallInts, frozen
from ..foundation.jit import kernel
from .order import Order

GOLDEN = (5**0.5 - 1) / 2
SWEEPS = 30


def balanced(order: Order, deltas: Floats) -> Order:
    """The same pairs, each written the way round that keeps linear coefficients small; triangles weigh `deltas`.

    Starts from vertices spread on a circle, each before those on the half circle ahead of it (in a regular tournament
    everything cancels), then turns single pairs round while the sum of fourth powers falls.
    """
    if not len(order.triangles):
        return order
    low, high = order.pairs.min(axis=1), order.pairs.max(axis=1)
    ahead = np.where((high - low) * GOLDEN % 1.0 < 0.5, 1.0, -1.0)
    signs = _turned(order, deltas, ahead)
    pairs = np.where(signs[:, None] > 0, np.column_stack([low, high]), np.column_stack([high, low]))
    return order._replace(pairs=frozen(pairs.astype(np.int32)))


class _Meetings(NamedTuple):
    """For each pair those it meets in triangles, and minus half their coupler if both are written ascending."""

    start: Ints  # (pairs + 1,)
    others: SmallInts  # (6 triangles,)
    pulls: Floats  # (6 triangles,)


def _turned(order: Order, deltas: Floats, signs: Floats) -> Floats:
    """Signs (1: ascending, -1: descending) after turning pairs while the fourth powers of the linear terms fall."""
    pairs, triangles = len(order.pairs), order.triangles
    start = np.concatenate([[0], np.cumsum(2 * np.bincount(triangles.ravel(), minlength=pairs))])
    meetings = _Meetings(start, np.empty(start[-1], np.int32), np.empty(start[-1]))
    _turn(triangles, deltas, meetings, start[:-1].copy(), signs, np.zeros(pairs), SWEEPS)
    return signs


@kernel
def _turn(
    triangles: SmallInts, deltas: Floats, meetings: _Meetings, place: Ints, signs: Floats, linear: Floats, sweeps: int
) -> None:
    """Turn signs; the meetings are filled first, each pair's from its `place` on."""
    start, others, pulls = meetings
    for t in range(len(triangles)):
        for a in range(3):
            for b in range(3):
                if a != b:
                    pair = triangles[t, a]
                    others[place[pair]] = triangles[t, b]
                    pulls[place[pair]] = -0.5 * deltas[t] if a + b == 1 else 0.5 * deltas[t]
                    place[pair] += 1
    for p in range(len(signs)):
        for e in range(start[p], start[p + 1]):
            linear[p] += pulls[e] * signs[p] * signs[others[e]]
    for _ in range(sweeps):
        turned = 0
        for p in range(len(signs)):
            change = 0.0
            for e in range(start[p], start[p + 1]):
                old = linear[others[e]]
                new = old - 2.0 * pulls[e] * signs[p] * signs[others[e]]
                change += new**4 - old**4
            if change < 0.0:
                for e in range(start[p], start[p + 1]):
                    linear[others[e]] -= 2.0 * pulls[e] * signs[p] * signs[others[e]]
                signs[p], linear[p] = -signs[p], -linear[p]
                turned += 1
        if turned == 0:
            break
