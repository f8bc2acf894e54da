"""Tables of the bounds at the last level: whether they pay, how they are made, which sets pass."""

from math import prod
from typing import NamedTuple

import numpy as np

from ..foundation.arrays import Floats, Ints, SmallInts
from ..foundation.jit import is_compiled
from ..foundation.words import LANES, aligned
from ..scores.score import EACH, Formula
from ..scores.sums import term_row
from .bounding import (
    COUNTS_AN_INDEX,
    BoundScratch,
    Groups,
    PairBits,
    TermBounds,
    WideRows,
    find_sets,
)
from .counting import Bits, Rows
from .scanning import Below, Constraints, Rule

MOST_BOUNDED_ROWS = 60_000  # counts and indices of the table of bounds are 16-bit integers
_LARGEST_ARRAY = 1 << 28  # bytes of one-hot rows, and of each array of a thread
# of the exact count of a set, by rows and by bits
_SECONDS_A_ROW = 1.5e-9
_SECONDS_A_WORD = 8e-9
# seconds of exact counting that make it worth loading, and compiling, the kernel
_WORTH_LOADING = 0.3
_WORTH_COMPILING = 5.0


class Bounds(NamedTuple):
    """The bounds of the sets of the last level, for all threads."""

    wide: WideRows | None  # None: rows are bits
    terms: TermBounds
    sizes: "GroupSizes"


class GroupSizes(NamedTuple):
    """How much memory a thread needs for the groups of rows."""

    groups: int  # most groups of a P
    pairs: int  # most pairs of a group and a state of y
    index_rows: int  # most rows of indices of the table


def exist(k: int, rows: Rows, formula: Formula) -> bool:
    """Return whether there are bounds for sets of k variables."""
    prices_nothing = formula.prior == 0.0 and formula.penalty == 0.0  # every set is a candidate set
    return k >= 3 and rows.total <= MOST_BOUNDED_ROWS and not prices_nothing


def pay(sets: int, rows: Rows, kernel: object = find_sets) -> bool:
    """Return whether bounds save more seconds than loading or compiling their kernel takes."""
    words = rows.bits.shape[1]
    seconds = sets * (words * _SECONDS_A_WORD if words else rows.codes.shape[1] * _SECONDS_A_ROW)
    if seconds <= _WORTH_LOADING:
        return False
    return seconds > _WORTH_COMPILING or is_compiled(kernel)


def make_bounds(
    k: int, rows: Rows, rule: Rule, best: Floats, *, largest_array: int = _LARGEST_ARRAY
) -> Bounds | None:
    """Return the bounds for the sets of k variables; None where they would take too much memory."""
    sizes = _group_sizes(k, rows)
    wide = None
    if not rows.bits.shape[1]:
        n_rows = rows.codes.shape[1]
        pitch = int(rows.observed.sum()) + 1 + 2 * LANES
        widest = max(n_rows, k * (sizes.groups + 1), sizes.pairs + 1)
        if 2 * pitch * widest > largest_array:
            return None
        wide = _wide_rows(rows)
    return Bounds(wide, _term_bounds(k, rows, rule, best), sizes)


def _group_sizes(k: int, rows: Rows) -> GroupSizes:
    """Return the most groups, pairs and rows of indices of any P and y."""
    n_rows = rows.codes.shape[1]
    states = np.sort(rows.observed)[:-k:-1].tolist()  # the k - 1 largest numbers
    # A group has a weight of two or more.
    most = n_rows if len(rows.weights) else n_rows // 2
    joint = prod(states)
    pairs = max((min(joint // of_y, most) + 1) * of_y for of_y in states)  # any may be y
    return GroupSizes(min(joint, most), pairs, min(n_rows, pairs) + 1)


def _wide_rows(rows: Rows) -> WideRows:
    """Return the rows one-hot."""
    n, n_rows = rows.codes.shape
    weights = rows.weights if len(rows.weights) else np.ones(n_rows, np.int32)
    start = np.concatenate([[0], np.cumsum(rows.observed)]).astype(np.int64)
    onehot = aligned(n_rows, int(start[-1]) + 1 + LANES)
    onehot[:, start[-1]] = weights
    codes = np.zeros((n, n_rows), np.uint32)
    rare = []
    for i in range(n):
        code = rows.codes[i].astype(np.int64)
        onehot[np.arange(n_rows), start[i] + code] = weights
        common = np.bincount(code, weights=weights).argmax()
        codes[i] = np.where(code == common, rows.observed[i] - 1, code - (code > common))
        rare.append(np.flatnonzero(code != common).astype(np.uint32))
    return WideRows(
        codes=codes,
        onehot=onehot.reshape(-1),
        pitch=onehot.shape[1],
        start=start,
        rare=np.concatenate(rare),
        rare_state=np.concatenate([codes[i][rare[i]] for i in range(n)]),
        rare_start=np.cumsum([0, *map(len, rare)]).astype(np.int64),
    )


def _term_bounds(k: int, rows: Rows, rule: Rule, best: Floats) -> TermBounds:
    """Return the table of packed terms and what else the bounds need."""
    m0, m1 = _moments(rule.formula, rows.total)
    n_bits = rows.total.bit_length()
    # The sum of M1 is at most N / 2, in units of 1/32.
    m1_bits = 0 if _has_one_prior(rule.formula) else n_bits + 5
    m0_unit = 2.0 ** (n_bits + m1_bits + int(np.ceil(np.log2(m0[-1] + 2))) - 62)
    m1_unit = 1 / 32
    packed = np.ceil(m0 / m0_unit).astype(np.int64) << (n_bits + m1_bits)
    packed += np.ceil(m1 / m1_unit).astype(np.int64) << n_bits
    packed[1:] += 1  # a cell
    table, start = _table_of_sums(packed)
    states = rule.children["prior_states"]
    numbers = np.maximum(np.arange(rows.total + 1), 1)
    return TermBounds(
        table=table,
        start=start,
        widths=np.array([n_bits, m1_bits]),
        units=np.array([m0_unit, m1_unit]),
        rounding=_rounding(k, rule, rows.total),
        children=np.array([np.log(states), 1 / states, _ratios(rule)]),
        by_cells=np.array([np.log(numbers), 1 / numbers]),
        best=np.ascontiguousarray(best.T),
    )


def _has_one_prior(formula: Formula) -> bool:
    """Return whether the prior of a cell is the same for all sets: then no M1 is needed."""
    return formula.prior == 0.0 or formula.spread == EACH


def _moments(formula: Formula, total: int) -> tuple[Floats, Floats]:
    """Return M0 and M1 of the counts 0 .. N."""
    counts = np.arange(total + 1, dtype=float)
    m1 = np.zeros(total + 1)
    if formula.prior == 0.0:
        return counts * np.log(np.maximum(counts, 1)), m1
    if _has_one_prior(formula):  # lnΓ(c + s) - lnΓ(1 + s)
        return np.append(0.0, term_row(total, 1.0 + formula.prior)), m1
    m1[2:] = np.cumsum(1.0 / np.arange(1, total))
    return np.append(0.0, term_row(total, 1.0)), m1  # the same with s = 0


def _table_of_sums(packed: Ints) -> tuple[Ints, Ints]:
    """Return the table of packed terms, and where the sums of several small counts begin in it."""
    parts = [packed]
    start = np.zeros(len(COUNTS_AN_INDEX), np.int64)
    for kind, together in enumerate(COUNTS_AN_INDEX[:-1]):
        small = np.resize(packed[: 4 << kind], 4 << kind)
        sums = np.zeros(1, np.int64)
        for _ in range(together):
            sums = np.add.outer(sums, small).ravel()
        start[kind] = sum(map(len, parts))
        parts.append(sums)
    return np.concatenate(parts), start


def _ratios(rule: Rule) -> Floats:
    """Return what a cell takes from the terms of a subset without each child (bound B)."""
    states = rule.children["prior_states"]
    if not _has_one_prior(rule.formula):
        ratios: Floats = np.log(states)
        return ratios
    if rule.formula.prior > 0.0:
        return np.full_like(states, np.log(rule.class_states[0]))
    return np.zeros_like(states)


def _rounding(k: int, rule: Rule, total: int) -> float:
    """Return an allowance for the rounding of sums of terms of k variables."""
    prior = rule.formula.prior
    largest = 0.0  # of |log of a prior|
    if prior > 0.0:
        states = rule.children["prior_states"]
        largest = abs(np.log(prior)) + np.log(np.sort(states)[-k:]).sum() + np.log(total)
    return float(2.0**-40 * total * (np.log(total + 1.0 + prior) + largest + 1.0))


def _make_groups(k: int, rows: WideRows, sizes: GroupSizes) -> Groups:
    """Return the one-hot rows with memory for a thread; at depth 0 all rows are one group."""
    n_rows = rows.codes.shape[1]
    pitch = -(-(rows.pitch + LANES) // LANES) * LANES
    groups = Groups(
        rows=rows,
        label=np.ones((k - 1, n_rows), np.uint32),
        sizes=np.zeros((k - 1, 2), np.int64),
        total=aligned(k - 1, (sizes.groups + 1) * pitch),
        sums=aligned((sizes.pairs + 1) * pitch),
        new_label=np.zeros(sizes.pairs, np.uint32),
        cells_of=np.zeros((len(COUNTS_AN_INDEX), sizes.pairs + 1), np.int64),
        number=np.zeros(len(COUNTS_AN_INDEX), np.int64),
        indices=aligned(sizes.index_rows * pitch),
        columns=np.zeros(pitch, np.int64),
    )
    groups.sizes[0, 0] = 1
    onehot = rows.onehot.reshape(n_rows, rows.pitch)
    groups.total[0, rows.pitch : 2 * rows.pitch] = onehot.sum(axis=0)
    return groups


def _make_pairs(k: int, n: int, bits: Bits) -> PairBits:
    """Return the rows as bits with memory for a thread."""
    masks = 1 << (k - 2)
    return PairBits(
        bits=bits,
        of_p=np.zeros(masks, np.int64),
        of_x=np.zeros((masks, n), np.uint32),
        of_both=np.zeros((masks, n), np.uint32),
        place=np.zeros(masks, np.int64),
        with_y=np.zeros(bits.rows.shape[1], np.uint64),
    )


def _make_scratch(k: int, n: int) -> BoundScratch:
    """Return memory for a thread."""
    return BoundScratch(
        members=np.zeros(k, np.int64),
        starts=np.zeros((k, k), np.int64),
        shared=np.zeros((k, n)),
        best_subset_scores=np.zeros((k, n)),
        packed=np.zeros(n, np.int64),
        by_x=np.zeros((6, n)),
    )


def sets_to_judge(
    prefixes: SmallInts,
    bits: Bits | None,
    rule: Rule,
    bounds: Bounds,
    constraints: Constraints | None,
    below: Below,
) -> tuple[Ints, SmallInts, int]:
    """Return (x_start, xs, counted): the sets that may hold a candidate set.

    They are prefix p and x for each x of xs[x_start[p] .. x_start[p+1]-1]. The terms of `counted`
    sets were bounded by counting.
    """
    n = len(rule.children)
    k = prefixes.shape[1] + 1
    x_start = np.zeros(len(prefixes) + 1, np.int64)
    xs = np.empty(int((n - 1 - prefixes[:, -1]).sum()), np.int32)
    groups = None if bounds.wide is None else _make_groups(k, bounds.wide, bounds.sizes)
    pairs = None if bits is None else _make_pairs(k, n, bits)
    scratch = _make_scratch(k, n)
    counted = find_sets(
        prefixes, groups, pairs, rule, bounds.terms, constraints, below, scratch, x_start, xs
    )
    return x_start, xs, int(counted)
