"""Cell counts of sets of variables: the prefix of a set once, then each further member.

Where every variable has at most two observed states, rows are bits; otherwise rows carry the label of their state.
"""

from typing import Any, NamedTuple

import numpy as np

from ..foundation.arrays import Ints, SmallInts
from ..foundation.jit import inner
from ..foundation.words import popcount
from .tables import Below, Bits, Labels, Rows

_FEW_CELLS = 64  # below this a histogram of counts costs more than it saves
ACTIVE, LABELS, SINGLES = range(3)  # columns of Scratch.sizes
_HISTOGRAM = 4096  # counts from here on are rare (N / 4096 of them at most) and listed one by one


class Scratch(NamedTuple):
    """Room for the counts of one thread. Depth d holds the partition by the first d members of the prefix."""

    labels: SmallInts  # (k, R) state of each active row
    active: SmallInts  # (k, R) rows that share their state with another row
    sizes: Ints  # (k, 3) numbers of active rows, of labels, and of rows alone in their state (they stay so)
    cells: SmallInts  # (most cells,) all zero between calls
    histogram: SmallInts  # (4096,) place of a count in `values`, plus one; all zero between calls
    values: SmallInts  # cell counts of the set
    times: SmallInts  # how often each occurs


def make_scratch(k: int, data: Rows, most_cells: int) -> Scratch:
    """Scratch for level k, with the partition by nothing at depth 0."""
    n_rows, n_words = data.codes.shape[1], data.bits.shape[1]
    half = 1 << (k - 1) if n_words else 0
    most_values = max(2 * half, _FEW_CELLS + _HISTOGRAM + data.total // _HISTOGRAM + 2)
    scratch = Scratch(
        labels=np.zeros((k, n_rows), np.int32),
        active=np.empty((k, n_rows), np.int32),
        sizes=np.zeros((k, 3), np.int64),
        cells=np.zeros(most_cells, np.int32),
        histogram=np.zeros(_HISTOGRAM, np.int32),
        values=np.empty(most_values, np.int32),
        times=np.empty(most_values, np.int32),
    )
    scratch.active[0] = np.arange(n_rows)
    scratch.sizes[0, ACTIVE], scratch.sizes[0, LABELS] = n_rows, 1
    scratch.times[: 2 * half] = 1
    return scratch


def make_bits(k: int, data: Rows) -> Bits | None:
    """The data as bits, with room for the counts of one thread; None if some variable has more than two states."""
    n_words, half = data.bits.shape[1], 1 << (k - 1)
    if not n_words:
        return None
    prefix = np.full((k, n_words), ~np.uint64(0))
    return Bits(data.bits, prefix, np.zeros(half, np.int32), np.zeros(half, np.int64))


@inner
def add_to_prefix(depth: int, x: int, bits: Bits) -> None:
    """Set the rows of the prefix at depth + 1: those at `depth` in which x is 1."""
    for w in range(bits.rows.shape[1]):
        bits.prefix[depth + 1, w] = bits.prefix[depth, w] & bits.rows[x, w]


@inner
def add_member(depth: int, x: int, data: Labels, scratch: Scratch) -> None:
    """Split the partition at `depth` by variable x, into depth + 1."""
    r = data.observed[x]
    column = data.codes[x]
    label, row = scratch.labels[depth], scratch.active[depth]
    n = scratch.sizes[depth, ACTIVE]
    for t in range(n):
        scratch.cells[label[t] * r + column[row[t]]] += data.weights[row[t]]
    fresh = 0
    kept = 0
    single = scratch.sizes[depth, SINGLES]
    for t in range(n):
        cell = label[t] * r + column[row[t]]
        if scratch.cells[cell] == 1:
            single += 1
            scratch.cells[cell] = 0
            continue
        if scratch.cells[cell] > 0:  # first visit: the weight gives way to −1 − label
            scratch.cells[cell] = -1 - fresh
            fresh += 1
        scratch.labels[depth + 1, kept] = -1 - scratch.cells[cell]
        scratch.active[depth + 1, kept] = row[t]
        kept += 1
    for t in range(n):
        scratch.cells[label[t] * r + column[row[t]]] = 0
    scratch.sizes[depth + 1, ACTIVE] = kept
    scratch.sizes[depth + 1, LABELS] = fresh
    scratch.sizes[depth + 1, SINGLES] = single


@inner
def count_rows(depth: int, x: int, data: Labels, scratch: Scratch) -> int:
    """Set scratch.values and .times to the cell counts of prefix + {x}; returns how many there are."""
    r = data.observed[x]
    column = data.codes[x]
    label, row, cells = scratch.labels[depth], scratch.active[depth], scratch.cells
    values, times = scratch.values, scratch.times
    n_active = scratch.sizes[depth, ACTIVE]
    if data.merged:
        for t in range(n_active):
            cells[label[t] * r + column[row[t]]] += data.weights[row[t]]
    else:
        for t in range(n_active):
            cells[label[t] * r + column[row[t]]] += 1
    n_cells = scratch.sizes[depth, LABELS] * r
    n_values = 0
    if scratch.sizes[depth, SINGLES]:
        values[0] = 1
        times[0] = scratch.sizes[depth, SINGLES]
        n_values = 1
    if n_cells <= _FEW_CELLS:
        for cell in range(n_cells):
            values[n_values] = cells[cell]
            times[n_values] = 1
            n_values += 1
            cells[cell] = 0
        return n_values
    scratch.histogram[1] = n_values
    if n_cells <= n_active:
        for cell in range(n_cells):
            n_values = _tally(cells[cell], n_values, scratch)
            cells[cell] = 0
    else:
        for t in range(n_active):
            cell = label[t] * r + column[row[t]]
            n_values = _tally(cells[cell], n_values, scratch)
            cells[cell] = 0
    for t in range(n_values):
        if values[t] < _HISTOGRAM:
            scratch.histogram[values[t]] = 0
    return n_values


@inner
def _tally(value: int, n_values: int, scratch: Scratch) -> int:
    if value == 0:
        return n_values
    if value < _HISTOGRAM:
        place = scratch.histogram[value]
        if place > 0:
            scratch.times[place - 1] += 1
            return n_values
        scratch.histogram[value] = n_values + 1
    scratch.values[n_values] = value
    scratch.times[n_values] = 1
    return n_values + 1


@inner
def base_rank(prefix: Ints, length: int, skip: int, skip_too: int, size: int, below: Below) -> int:
    """Lexicographic rank of a set of `size` that starts with the prefix less the positions skip and skip_too.

    If one member x is still to come, subtract n − 1 − x.
    """
    rank = below.sizes[size] - 1
    place = 0
    for j in range(length):
        if j != skip and j != skip_too:
            rank -= below.drop[size - place, prefix[j]]
            place += 1
    return rank


@inner
def set_prefix_cells(k: int, prefix: Ints, chosen: Ints, n: int, below: Below, bits: Bits) -> None:
    """Cell counts of the prefix by bit mask, and where the all-ones counts of (mask of the prefix) + {x} begin."""
    length = k - 1
    none = prefix[0] * 0 - 1
    for mask in range(1 << length):
        size: Any = np.int64(0)  # a literal would let numba compile base_rank twice
        for t in range(length):
            if mask >> t & 1:
                chosen[size] = prefix[t]
                size += 1
        start = below.ones_start[size]
        bits.prefix_cells[mask] = below.ones[start + base_rank(chosen, size, none, none, size, below)]
        if size < length:
            start = below.ones_start[size + 1] - (n - 1)
            bits.ones_base[mask] = start + base_rank(chosen, size, none, none, size + 1, below)
    _only(length, bits.prefix_cells)


@inner
def _only(length: int, cells: SmallInts) -> None:
    """From "all of mask are 1" to "exactly mask is 1", in place."""
    for t in range(length):
        for mask in range(1 << length):
            if not mask >> t & 1:
                cells[mask] -= cells[mask | (1 << t)]


@inner
def count_bits(length: int, x: int, bits: Bits, below: Below, values: SmallInts) -> int:
    """Set values to the cell counts of prefix + {x}; returns the number of rows in which all are 1."""
    half = 1 << length
    all_ones = 0
    for w in range(bits.rows.shape[1]):
        all_ones += popcount(bits.prefix[length, w] & bits.rows[x, w])
    for mask in range(half - 1):
        values[mask] = below.ones[bits.ones_base[mask] + x]
    values[half - 1] = all_ones
    _only(length, values)
    for mask in range(half):
        values[half + mask] = bits.prefix_cells[mask] - values[mask]
    return all_ones
