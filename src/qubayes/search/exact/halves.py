"""Zero-half cuts: half the sum of cluster cuts and vertex rows, rounded down (Caprara and Fischetti 1996).

The sum of rows S is worth rounding if its right side is odd, and violated if the slack of its rows and the values of
the sets with an odd coefficient add up to less than 1. Rows are combined by Gaussian elimination modulo 2, sets of
large value first, so that these get even coefficients.
"""

import numpy as np

from ...foundation.arrays import AnyArray, Floats, Ints
from .cut_rows import MOST_CLUSTERS, Bytes, Cuts, Sets, chosen_cuts, coefficients, no_cuts

MOST_SLACK = 0.3  # of a row that takes part
LOOKS = 30  # times that the rows are looked at on the way


def zero_half_cuts(sets: Sets, numbers: Ints, values: Floats, cuts: Cuts, least: float) -> tuple[Cuts, Floats]:
    """Cuts violated by `least` or more, worst first, and by how much, if these sets have these values."""
    cuts = chosen_cuts(cuts, cuts.divisors == 1)
    rows, places, _ = coefficients(sets, numbers, cuts)
    slack = cuts.rooms - np.bincount(rows, values[places], minlength=cuts.total)
    tight = slack < MOST_SLACK
    index = np.cumsum(tight) - 1
    kept = tight[rows]
    n, columns, count = len(sets.vertex_start) - 1, len(numbers), int(tight.sum())
    matrix = np.zeros((count + n, columns), np.uint8)
    matrix[index[rows[kept]], places[kept]] = 1
    matrix[count + sets.owners[numbers], np.arange(columns)] = 1
    sides = np.concatenate([cuts.rooms[tight] % 2, np.ones(n, np.int64)]).astype(np.uint8)
    slacks = np.concatenate([np.maximum(slack[tight], 0.0), np.zeros(n)])
    sums, violations = _odd_sums(matrix, sides, slacks, values, least)
    return _cuts_of(sums, violations, chosen_cuts(cuts, tight))


def _odd_sums(matrix: Bytes, sides: Bytes, slacks: Floats, values: Floats, least: float) -> tuple[Bytes, Floats]:
    """(sums, rows) of the rows whose sums, halved and rounded, are violated; and by how much."""
    rows = len(matrix)
    # From byte 0 on which rows are in the sum, then the sum itself, then its right side.
    packed = np.packbits(np.concatenate([np.eye(rows, dtype=np.uint8), matrix, sides[:, None]], axis=1), axis=1)
    costs = np.concatenate([slacks, values, [0.0]]).astype(np.float32)
    found: dict[bytes, tuple[Bytes, float]] = {}
    free = np.ones(rows, np.bool_)
    order = np.argsort(-values, kind="stable")
    whole = int((values > 1.0 - 1e-6).sum())  # while these are odd in some row nothing is violated
    every = 1 + (len(order) - whole) // LOOKS
    for step, column in enumerate((rows + order).tolist()):
        if step >= whole and (step - whole) % every == 0:
            _look(packed, costs, least, found)
        hit = np.flatnonzero(packed[:, column >> 3] >> (7 - (column & 7)) & 1)
        pivots = hit[free[hit]]
        if len(pivots):
            pivot = int(pivots[np.argmin(slacks[pivots])])
            free[pivot] = False
            packed[hit[hit != pivot]] ^= packed[pivot]
    _look(packed, costs, least, found)
    if not found:
        return np.zeros((0, rows), np.uint8), np.zeros(0)
    sums, violations = zip(*found.values(), strict=True)
    return np.stack(sums), np.array(violations)


def _look(packed: Bytes, costs: AnyArray, least: float, found: dict[bytes, tuple[Bytes, float]]) -> None:
    """Keep the rows with an odd right side that are violated now."""
    last = len(costs) - 1
    odd = np.flatnonzero(packed[:, last >> 3] >> (7 - (last & 7)) & 1)
    bits = np.unpackbits(packed[odd], axis=1, count=last)
    violations = 0.5 * (1.0 - bits.astype(np.float32) @ costs[:-1])
    for row in np.flatnonzero(violations >= least).tolist():
        chosen = bits[row, : len(packed)]
        found.setdefault(chosen.tobytes(), (chosen, float(violations[row])))


def _cuts_of(sums: Bytes, violations: Floats, cuts: Cuts) -> tuple[Cuts, Floats]:
    """The cuts of these sums of cluster cuts (first columns) and vertex rows."""
    count = cuts.total
    sizes = sums[:, :count].sum(axis=1, dtype=np.int64)
    order = np.argsort(-violations, kind="stable")
    order = order[(sizes[order] <= MOST_CLUSTERS) & (sizes[order] > 0)]
    if not len(order):
        return no_cuts(cuts.odd.shape[1]), violations[:0]
    clusters = np.nonzero(sums[order, :count])[1]
    start = np.concatenate([[0], np.cumsum(sizes[order])])
    halves = np.full(len(order), 2)
    return Cuts(start, cuts.inside[clusters], cuts.needs[clusters], sums[order, count:], halves), violations[order]
