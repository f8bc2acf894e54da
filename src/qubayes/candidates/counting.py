"""Numbers of rows in each joint state of a set of variables: a prefix once, then each last member.

Where every variable has at most two observed states, rows are bits; otherwise rows carry the label
of their state. Counts are written to two rows of one array: the values, and how often each
occurs."""

from typing import Any, NamedTuple

import numpy as np

from ..data.dataset import Dataset
from ..data.rows import merge_rows
from ..foundation.arrays import AnyArray, Ints, Records, SmallInts, Words
from ..foundation.errors import DataError
from ..foundation.jit import inlined, inner
from ..foundation.words import popcount
from ..scores.sums import TIMES, VALUES

MOST_COUNTED_ROWS = 2**31 - 1  # counts are 32-bit integers
_FEW_CELLS = 64  # below this a histogram of counts costs more than it saves
_HISTOGRAM = 4096  # counts from here on are rare (N / 4096 of them at most) and listed one by one
_LABEL, _ROW = range(2)  # planes of Labels.partition
_SIZES = np.dtype(
    [
        ("active", np.int64),  # rows that share their state with another row
        ("labels", np.int64),  # states of the active rows
        ("singles", np.int64),  # rows alone in their state; they stay so
    ]
)


class Rows(NamedTuple):
    """The data with their observed states only: as distinct rows, or as bits."""

    codes: AnyArray  # (n, R) distinct rows; (n, 0) if bits are used
    observed: Ints  # (n,) observed number of states
    weights: SmallInts  # (R,) how often each row occurs; (0,) if each occurs once
    # (n, words) rows in state 1, if every variable has at most two observed states; else (n, 0)
    bits: Words
    total: int  # N


class Labels(NamedTuple):
    """Rows with the memory of one thread. Depth d: partition by the first d of the prefix."""

    codes: AnyArray  # (n, R)
    observed: Ints  # (n,)
    weights: SmallInts  # (R,), or (0,)
    partition: AnyArray  # (k, 2, R) uint32: label of the state of each active row, and the row
    sizes: Records  # (k,) _SIZES
    cells: SmallInts  # (2, most cells) counts, which are in the first row; all zero between calls
    # (4096,) place of a count among the values, plus one; all zero between calls
    histogram: SmallInts


class Bits(NamedTuple):
    """Rows as bits with the memory of one thread, and the all-ones counts of smaller sets."""

    rows: Words  # (n, words) rows in state 1
    prefix: Words  # (k, words) rows in which every member of the prefix is 1
    cells: SmallInts  # (2^(k-1),) rows in which exactly these members of the prefix are 1
    bases: Ints  # (2^(k-1),) plus x: place in `ones` of these members and x
    # rows in which all members are 1, for sets of 0, 1, ..., k-1 by rank, one size after the other
    ones: SmallInts
    start: Ints  # (k + 1,) where sets of this size begin in `ones`


def check_rows(dataset: Dataset) -> None:
    """Raise if a count of rows may not fit into its integer."""
    if dataset.rows > MOST_COUNTED_ROWS:
        raise DataError(
            f"the data have {dataset.rows} rows; at most {MOST_COUNTED_ROWS} can be counted: "
            "take a sample of them"
        )


def prepare_rows(dataset: Dataset, *, as_bits: bool = True) -> Rows:
    """Return the data for counting: as bits where every variable has at most two states.

    `as_bits=False`, and data with weights, give distinct rows in every case.
    """
    check_rows(dataset)
    codes = np.empty_like(dataset.codes)
    as_bits = as_bits and dataset.weights is None
    observed = np.ones(dataset.n, dtype=np.int64)
    for i, column in enumerate(dataset.codes):
        present = np.bincount(column, minlength=1) > 0
        codes[i] = (np.cumsum(present) - 1)[column]
        observed[i] = max(1, int(present.sum()))
    if as_bits and bool(np.all(observed <= 2)):
        padded = np.zeros((dataset.n, -(-dataset.rows // 64) * 64), dtype=np.uint8)
        padded[:, : dataset.rows] = codes
        bits = np.packbits(padded, axis=1, bitorder="little").view(np.uint64)
        return Rows(codes[:, :0], observed, np.zeros(0, np.int32), bits, dataset.rows)
    codes, weights = merge_rows(codes, dataset.weights)
    return Rows(codes, observed, weights, np.zeros((dataset.n, 0), np.uint64), dataset.rows)


def make_counts(k: int, rows: Rows) -> SmallInts:
    """Return (2, most) memory for the cell counts of k variables; bits give each count once."""
    if rows.bits.shape[1]:
        return np.ones((2, 1 << k), np.int32)
    rare = rows.total // _HISTOGRAM
    return np.ones((2, _FEW_CELLS + _HISTOGRAM + rare + 2), np.int32)


def make_labels(k: int, rows: Rows) -> Labels:
    """Return the rows with scratch memory for level k, and the partition by nothing at depth 0."""
    n_rows = rows.codes.shape[1]
    partition = np.zeros((k, 2, n_rows), np.uint32)
    partition[0, _ROW] = np.arange(n_rows)
    sizes = np.zeros(k, _SIZES)
    sizes[0] = (n_rows, 1, 0)
    largest = np.sort(rows.observed)[::-1].tolist()
    most_labels = 1
    for states in largest[: k - 1]:
        most_labels = min(most_labels * states, n_rows)
    cells = np.zeros((2, max(1, most_labels) * max(largest, default=1)), np.int32)
    histogram = np.zeros(_HISTOGRAM, np.int32)
    return Labels(rows.codes, rows.observed, rows.weights, partition, sizes, cells, histogram)


def make_bits(k: int, rows: Rows, ones: SmallInts, start: Ints) -> Bits:
    """Return the rows with scratch memory for level k."""
    masks = 1 << (k - 1)
    return Bits(
        rows=rows.bits,
        prefix=np.full((k, rows.bits.shape[1]), ~np.uint64(0)),
        cells=np.zeros(masks, np.int32),
        bases=np.zeros(masks, np.int64),
        ones=ones,
        start=start,
    )


@inner
def add_to_prefix(depth: int, x: int, bits: Bits) -> None:
    """Set the rows of the prefix at depth + 1: those at `depth` in which x is 1."""
    for w in range(bits.rows.shape[1]):
        bits.prefix[depth + 1, w] = bits.prefix[depth, w] & bits.rows[x, w]


@inner
def _fill_cells(depth: int, x: int, labels: Labels) -> None:
    """Set the first row of cells to the counts of the partition at `depth` split by variable x."""
    states = np.uint64(labels.observed[x])
    column = labels.codes[x]
    weights = labels.weights
    label = labels.partition[depth, _LABEL]
    row = labels.partition[depth, _ROW]
    cells = labels.cells[0]
    other = labels.cells[1]
    active = labels.sizes[depth]["active"]
    n_cells = labels.sizes[depth]["labels"] * labels.observed[x]
    done = 0
    # Rows of one cell in succession wait for each other's sum: every other row is counted apart.
    if n_cells <= active:
        for t in range(0, active - 1, 2):
            cells[label[t] * states + column[row[t]]] += _weight(weights, row[t])
            other[label[t + 1] * states + column[row[t + 1]]] += _weight(weights, row[t + 1])
        for cell in range(n_cells):
            cells[cell] += other[cell]
            other[cell] = 0
        done = active // 2 * 2
    for t in range(done, active):
        cells[label[t] * states + column[row[t]]] += _weight(weights, row[t])


@inlined
def _weight(weights: SmallInts, row: Any) -> Any:
    """Return how often the row occurs."""
    return weights[row] if len(weights) else 1


@inner
def add_member(depth: int, x: int, labels: Labels) -> None:
    """Split the partition at `depth` by variable x, into depth + 1."""
    states = np.uint64(labels.observed[x])
    column = labels.codes[x]
    cells = labels.cells[0]
    label = labels.partition[depth, _LABEL]
    row = labels.partition[depth, _ROW]
    next_label = labels.partition[depth + 1, _LABEL]
    next_row = labels.partition[depth + 1, _ROW]
    active = labels.sizes[depth]["active"]
    single = labels.sizes[depth]["singles"]
    fresh = 0
    kept = 0
    _fill_cells(depth, x, labels)
    for t in range(active):
        cell = label[t] * states + column[row[t]]
        if cells[cell] == 1:
            single += 1
            cells[cell] = 0
            continue
        if cells[cell] > 0:  # first visit: the count is replaced by -1 - label
            cells[cell] = -1 - fresh
            fresh += 1
        next_label[kept] = -1 - cells[cell]
        next_row[kept] = row[t]
        kept += 1
    for t in range(active):
        cells[label[t] * states + column[row[t]]] = 0
    sizes = labels.sizes[depth + 1]
    sizes["active"] = kept
    sizes["labels"] = fresh
    sizes["singles"] = single


@inner
def count_rows(depth: int, x: int, labels: Labels, counts: SmallInts) -> int:
    """Set the counts to those of the cells of prefix + {x}; return how many there are."""
    cells = labels.cells[0]
    single = labels.sizes[depth]["singles"]
    n_cells = labels.sizes[depth]["labels"] * labels.observed[x]
    _fill_cells(depth, x, labels)
    n_values = 0
    if single:
        counts[VALUES, 0] = 1
        counts[TIMES, 0] = single
        n_values = 1
    if n_cells <= _FEW_CELLS:
        for cell in range(n_cells):
            counts[VALUES, n_values] = cells[cell]
            counts[TIMES, n_values] = 1
            n_values += 1
            cells[cell] = 0
        return n_values
    return _count_by_value(depth, x, n_cells, n_values, labels, counts)


@inlined
def _count_by_value(
    depth: int, x: int, n_cells: int, n_values: int, labels: Labels, counts: SmallInts
) -> int:
    """Append each count that occurs in the cells, with how many cells have it; clear the cells."""
    states = np.uint64(labels.observed[x])
    column = labels.codes[x]
    cells = labels.cells[0]
    histogram = labels.histogram
    label = labels.partition[depth, _LABEL]
    row = labels.partition[depth, _ROW]
    active = labels.sizes[depth]["active"]
    every = n_cells <= active
    histogram[1] = n_values
    for t in range(n_cells if every else active):
        place: Any = np.uint64(t) if every else label[t] * states + column[row[t]]
        value = cells[place]
        cells[place] = 0
        if value > 0 and value < _HISTOGRAM and histogram[value] > 0:
            counts[TIMES, histogram[value] - 1] += 1
        elif value > 0:
            counts[VALUES, n_values] = value
            counts[TIMES, n_values] = 1
            n_values += 1
            if value < _HISTOGRAM:
                histogram[value] = n_values
    for t in range(n_values):
        if counts[VALUES, t] < _HISTOGRAM:
            histogram[counts[VALUES, t]] = 0
    return n_values


@inner
def set_prefix_cells(prefix: Ints, length: int, binomials: Ints, bits: Bits) -> None:
    """Set the cell counts of the prefix, and where the all-ones counts of (mask) + {x} begin."""
    n = binomials.shape[1] - 1
    for mask in range(1 << length):
        size = popcount(mask)
        place = bits.start[size] + binomials[size, 0] - 1
        base = bits.start[size + 1] + binomials[size + 1, 0] - n
        for t in range(length):
            if mask >> t & 1:
                place -= binomials[size, prefix[t] + 1]
                base -= binomials[size + 1, prefix[t] + 1]
                size -= 1
        bits.cells[mask] = bits.ones[place]
        bits.bases[mask] = base
    _make_exact(length, bits.cells)


@inner
def _make_exact(length: int, cells: SmallInts) -> None:
    """Turn the counts of "all of mask are 1" into those of "exactly mask is 1", in place."""
    for t in range(length):
        for mask in range(1 << length):
            if not mask >> t & 1:
                cells[mask] -= cells[mask | (1 << t)]


@inner
def count_bits(length: int, x: int, bits: Bits, counts: SmallInts) -> int:
    """Set the counts of the cells of prefix + {x}; return the rows in which all are 1."""
    masks = 1 << length
    values = counts[VALUES]
    all_ones = 0
    for w in range(bits.rows.shape[1]):
        all_ones += popcount(bits.prefix[length, w] & bits.rows[x, w])
    for mask in range(masks - 1):
        values[mask] = bits.ones[bits.bases[mask] + x]
    values[masks - 1] = all_ones
    _make_exact(length, values)
    for mask in range(masks):
        values[masks + mask] = bits.cells[mask] - values[mask]
    return all_ones
