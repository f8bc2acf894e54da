"""Cell counts of sets of variables: the prefix of a set once, then each further member.

Where every variable has at most two observed states, rows are bits; otherwise rows carry the label
of their state. Counts are written to two rows of one array: the values, and how often each occurs."""

from typing import Any, NamedTuple

import numpy as np

from ..data.dataset import Dataset
from ..foundation.arrays import AnyArray, Ints, SmallInts, Words
from ..foundation.errors import DataError
from ..foundation.jit import inner
from ..foundation.words import popcount
from ..scores.sums import TIMES, VALUES

MOST_COUNTED_ROWS = 2**31 - 1  # counts are 32-bit integers
_FEW_CELLS = 64  # below this a histogram of counts costs more than it saves
_HISTOGRAM = 4096  # counts from here on are rare (N / 4096 of them at most) and listed one by one
_LABEL, _ROW = range(2)  # planes of Labels.partition
_ACTIVE, _LABELS, _SINGLES = range(3)  # columns of Labels.sizes


class Rows(NamedTuple):
    """The data with their observed states only: as distinct rows, or as bits."""

    codes: AnyArray  # (n, R) distinct rows; (n, 0) if bits are used
    observed: Ints  # (n,) observed number of states
    weights: SmallInts  # (R,) how often each row occurs; (0,) if each occurs once
    # (n, words) rows in state 1, if every variable has at most two observed states; else (n, 0)
    bits: Words
    total: int  # N


class Labels(NamedTuple):
    """Rows with the scratch memory of one thread. Depth d holds the partition by the first d members of the prefix."""

    codes: AnyArray  # (n, R)
    observed: Ints  # (n,)
    weights: SmallInts  # (R,), or (0,)
    # (k, 2, R) uint32: label of the state of each active row (one that shares it), and the row
    partition: AnyArray
    # (k, 3) numbers of active rows, of labels, and of rows alone in their state (they stay so)
    sizes: Ints
    cells: SmallInts  # (2, most cells) counts, which are in the first row; all zero between calls
    # (4096,) place of a count among the values, plus one; all zero between calls
    histogram: SmallInts


class Bits(NamedTuple):
    """Rows as bits with the scratch memory of one thread, and the all-ones counts of smaller sets."""

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
            f"the data have {dataset.rows} rows; at most {MOST_COUNTED_ROWS} can be counted: take a sample of them"
        )


def prepare_rows(dataset: Dataset, *, as_bits: bool = True) -> Rows:
    """Return the data for counting; as bits, if that is asked for, where every variable has at most two states."""
    check_rows(dataset)
    codes, observed = np.empty_like(dataset.codes), np.ones(dataset.n, dtype=np.int64)
    for i, column in enumerate(dataset.codes):
        present = np.bincount(column, minlength=1) > 0
        codes[i] = (np.cumsum(present) - 1)[column]
        observed[i] = max(1, int(present.sum()))
    if as_bits and bool(np.all(observed <= 2)):
        padded = np.zeros((dataset.n, -(-dataset.rows // 64) * 64), dtype=np.uint8)
        padded[:, : dataset.rows] = codes
        bits = np.packbits(padded, axis=1, bitorder="little").view(np.uint64)
        return Rows(codes[:, :0], observed, np.zeros(0, np.int32), bits, dataset.rows)
    codes, weights = merge_rows(codes)
    return Rows(codes, observed, weights, np.zeros((dataset.n, 0), np.uint64), dataset.rows)


def merge_rows(codes: AnyArray) -> tuple[AnyArray, SmallInts]:
    """Return the distinct rows, as columns, and how often each occurs; no weights where each occurs once.

    Rows are sorted by a hash; only neighbours that are truly equal are merged, so a collision costs
    nothing but space."""
    n, rows = codes.shape
    keys = np.asarray(
        np.random.default_rng(0).integers(1, 2**63, size=n, dtype=np.int64), dtype=np.uint64
    )
    hashed: Words = np.zeros(rows, dtype=np.uint64)
    for i in range(n):
        hashed = (hashed ^ codes[i].astype(np.uint64)) * keys[i]
        hashed ^= hashed >> np.uint64(29)
    order = np.argsort(hashed, kind="stable")
    first = np.zeros(rows, dtype=bool)
    first[:1] = True
    for column in codes:
        ordered = column[order]
        first[1:] |= ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(first)
    if len(starts) > 0.9 * rows:  # not worth the weights
        return np.ascontiguousarray(codes), np.zeros(0, np.int32)
    return np.ascontiguousarray(codes[:, order[starts]]), np.diff(np.append(starts, rows)).astype(
        np.int32
    )


def make_counts(k: int, rows: Rows) -> SmallInts:
    """(2, most) memory for the cell counts of a set of k variables; bits give each count once."""
    most = 1 << k if rows.bits.shape[1] else _FEW_CELLS + _HISTOGRAM + rows.total // _HISTOGRAM + 2
    return np.ones((2, most), np.int32)


def make_labels(k: int, rows: Rows) -> Labels:
    """Return the rows with scratch memory for level k, and the partition by nothing at depth 0."""
    n_rows = rows.codes.shape[1]
    partition, sizes = np.zeros((k, 2, n_rows), np.uint32), np.zeros((k, 3), np.int64)
    partition[0, _ROW] = np.arange(n_rows)
    sizes[0, _ACTIVE], sizes[0, _LABELS] = n_rows, 1
    largest = np.sort(rows.observed)[::-1].tolist()
    most_labels = 1
    for states in largest[: k - 1]:
        most_labels = min(most_labels * states, n_rows)
    cells = np.zeros((2, max(1, most_labels) * max(largest, default=1)), np.int32)
    return Labels(
        rows.codes,
        rows.observed,
        rows.weights,
        partition,
        sizes,
        cells,
        np.zeros(_HISTOGRAM, np.int32),
    )


def make_bits(k: int, rows: Rows, ones: SmallInts, start: Ints) -> Bits:
    """Return the rows with scratch memory for level k."""
    prefix, half = np.full((k, rows.bits.shape[1]), ~np.uint64(0)), 1 << (k - 1)
    return Bits(rows.bits, prefix, np.zeros(half, np.int32), np.zeros(half, np.int64), ones, start)


@inner
def add_to_prefix(depth: int, x: int, bits: Bits) -> None:
    """Set the rows of the prefix at depth + 1: those at `depth` in which x is 1."""
    for w in range(bits.rows.shape[1]):
        bits.prefix[depth + 1, w] = bits.prefix[depth, w] & bits.rows[x, w]


@inner
def _fill_cells(depth: int, x: int, labels: Labels) -> None:
    """Set the first row of cells to the counts of the partition at `depth` split by variable x."""
    r, column, weights = np.uint64(labels.observed[x]), labels.codes[x], labels.weights
    label, row = labels.partition[depth, _LABEL], labels.partition[depth, _ROW]
    cells, other, n = labels.cells[0], labels.cells[1], labels.sizes[depth, _ACTIVE]
    n_cells, done = labels.sizes[depth, _LABELS] * labels.observed[x], 0
    # rows of one cell in succession wait for each other's sum: every other row is counted apart
    if n_cells <= n:
        for t in range(0, n - 1, 2):
            cells[label[t] * r + column[row[t]]] += weights[row[t]] if len(weights) else 1
            other[label[t + 1] * r + column[row[t + 1]]] += (
                weights[row[t + 1]] if len(weights) else 1
            )
        for cell in range(n_cells):
            cells[cell] += other[cell]
            other[cell] = 0
        done = n // 2 * 2
    for t in range(done, n):
        cells[label[t] * r + column[row[t]]] += weights[row[t]] if len(weights) else 1


@inner
def add_member(depth: int, x: int, labels: Labels) -> None:
    """Split the partition at `depth` by variable x, into depth + 1."""
    r, column, cells = np.uint64(labels.observed[x]), labels.codes[x], labels.cells[0]
    label, row = labels.partition[depth, _LABEL], labels.partition[depth, _ROW]
    next_label, next_row = labels.partition[depth + 1, _LABEL], labels.partition[depth + 1, _ROW]
    n, fresh, kept, single = labels.sizes[depth, _ACTIVE], 0, 0, labels.sizes[depth, _SINGLES]
    _fill_cells(depth, x, labels)
    for t in range(n):
        cell = label[t] * r + column[row[t]]
        if cells[cell] == 1:
            single += 1
            cells[cell] = 0
            continue
        if cells[cell] > 0:  # first visit: the weight gives way to −1 − label
            cells[cell] = -1 - fresh
            fresh += 1
        next_label[kept] = -1 - cells[cell]
        next_row[kept] = row[t]
        kept += 1
    for t in range(n):
        cells[label[t] * r + column[row[t]]] = 0
    labels.sizes[depth + 1, _ACTIVE] = kept
    labels.sizes[depth + 1, _LABELS] = fresh
    labels.sizes[depth + 1, _SINGLES] = single


@inner
def count_rows(depth: int, x: int, labels: Labels, counts: SmallInts) -> int:
    """Set the counts to those of the cells of prefix + {x}; returns how many there are."""
    r, column, cells = np.uint64(labels.observed[x]), labels.codes[x], labels.cells[0]
    label, row = labels.partition[depth, _LABEL], labels.partition[depth, _ROW]
    n_active, single = labels.sizes[depth, _ACTIVE], labels.sizes[depth, _SINGLES]
    _fill_cells(depth, x, labels)
    n_cells = labels.sizes[depth, _LABELS] * labels.observed[x]
    n_values = 0
    if single:
        counts[VALUES, 0], counts[TIMES, 0] = 1, single
        n_values = 1
    if n_cells <= _FEW_CELLS:
        for cell in range(n_cells):
            counts[VALUES, n_values], counts[TIMES, n_values] = cells[cell], 1
            n_values += 1
            cells[cell] = 0
        return n_values
    labels.histogram[1] = n_values
    every = n_cells <= n_active
    for t in range(n_cells if every else n_active):
        place: Any = np.uint64(t) if every else label[t] * r + column[row[t]]
        value = cells[place]
        cells[place] = 0
        if value > 0 and value < _HISTOGRAM and labels.histogram[value] > 0:
            counts[TIMES, labels.histogram[value] - 1] += 1
        elif value > 0:
            counts[VALUES, n_values], counts[TIMES, n_values] = value, 1
            n_values += 1
            if value < _HISTOGRAM:
                labels.histogram[value] = n_values
    for t in range(n_values):
        if counts[VALUES, t] < _HISTOGRAM:
            labels.histogram[counts[VALUES, t]] = 0
    return n_values


@inner
def set_prefix_cells(prefix: Ints, length: int, binomials: Ints, bits: Bits) -> None:
    """Set the cell counts of the prefix by bit mask, and where the all-ones counts of (mask) + {x} begin."""
    n = binomials.shape[1] - 1
    for mask in range(1 << length):
        size = popcount(mask)
        place = bits.start[size] + binomials[size, 0] - 1
        base = bits.start[size + 1] + binomials[size + 1, 0] - n
        left = size
        for t in range(length):
            if mask >> t & 1:
                place -= binomials[left, prefix[t] + 1]
                base -= binomials[left + 1, prefix[t] + 1]
                left -= 1
        bits.cells[mask], bits.bases[mask] = bits.ones[place], base
    _only(length, bits.cells)


@inner
def _only(length: int, cells: SmallInts) -> None:
    """Turn the counts of "all of mask are 1" into those of "exactly mask is 1", in place."""
    for t in range(length):
        for mask in range(1 << length):
            if not mask >> t & 1:
                cells[mask] -= cells[mask | (1 << t)]


@inner
def count_bits(length: int, x: int, bits: Bits, counts: SmallInts) -> int:
    """Set the counts to those of the cells of prefix + {x}; returns the number of rows in which all are 1."""
    half, values = 1 << length, counts[VALUES]
    all_ones = 0
    for w in range(bits.rows.shape[1]):
        all_ones += popcount(bits.prefix[length, w] & bits.rows[x, w])
    for mask in range(half - 1):
        values[mask] = bits.ones[bits.bases[mask] + x]
    values[half - 1] = all_ones
    _only(length, values)
    for mask in range(half):
        values[half + mask] = bits.cells[mask] - values[mask]
    return all_ones
