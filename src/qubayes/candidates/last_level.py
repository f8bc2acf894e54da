"""What the kernel of `bounding.py` works on, and where it is worth its compilation."""

from typing import NamedTuple

import numpy as np

from ..foundation.arrays import AnyArray, Floats, Ints, SmallInts
from ..foundation.jit import uncompiled
from ..foundation.words import LANES, aligned
from ..scores.score import EACH, Formula, rising
from .bounding import PACKED, Scratch, TermBounds, WideRows, find_sets
from .counting import Bits, Rows
from .scanning import PRIOR_STATES, Below, Constraints, Rule

MOST_ROWS = 60_000  # counts and indices of the table are 16-bit integers
_MOST_BYTES = 1 << 28  # of one-hot rows, and of each array of a thread
_SECONDS_A_ROW, _SECONDS_A_WORD = 1.5e-9, 8e-9  # and set, of the exact count by rows and by bits
_TO_LOAD, _TO_COMPILE = 0.3, 5.0  # seconds of exact counting that make it worth loading, and compiling, the kernel


class Bounds(NamedTuple):
    """What bounds the sets of the last level."""

    wide: WideRows | None  # None: rows are bits
    terms: TermBounds
    groups: tuple[int, int, int]  # most groups of a P; most pairs of a group and a state; most index rows


def pays(k: int, sets: int, rows: Rows, formula: Formula) -> bool:
    """Return whether bounds save more time than it takes to compile or load their kernel."""
    if k < 3 or rows.total > MOST_ROWS or (formula.prior == 0.0 and formula.penalty == 0.0):
        return False  # with a score that prices nothing every set is a candidate
    words = rows.bits.shape[1]
    seconds = sets * (words * _SECONDS_A_WORD if words else rows.codes.shape[1] * _SECONDS_A_ROW)
    if seconds <= _TO_LOAD:
        return False
    return seconds > _TO_COMPILE or find_sets.__module__ not in uncompiled or bool(find_sets.signatures)


def make_bounds(k: int, rows: Rows, rule: Rule, best: Floats) -> Bounds | None:
    """Return the bounds for the sets of k variables; None where they would take too much memory."""
    observed = np.sort(rows.observed)[::-1].tolist()
    groups, pairs = 1, 0
    for states in observed[: k - 1]:
        pairs = max(pairs, (groups + 1) * states)
        groups = max(1, min(groups * states, rows.codes.shape[1]))
    pitch = int(rows.observed.sum()) + 1 + 2 * LANES
    if not rows.bits.shape[1]:
        widest = max(rows.codes.shape[1], k * (groups + 1), 2 * pairs)
        if 2 * pitch * widest > _MOST_BYTES:
            return None
    wide = None if rows.bits.shape[1] else _wide_rows(rows)
    return Bounds(wide, _term_bounds(k, rows, rule, best), (groups, pairs, min(rows.codes.shape[1], pairs) + 4))


def _wide_rows(rows: Rows) -> WideRows:
    """Return the rows one-hot."""
    n, n_rows = rows.codes.shape
    weights = rows.weights if len(rows.weights) else np.ones(n_rows, np.int32)
    start = np.concatenate([[0], np.cumsum(rows.observed)]).astype(np.int64)
    onehot = aligned(n_rows, int(start[-1]) + 1 + LANES)
    onehot[:, start[-1]] = weights
    codes, rare = np.zeros((n, n_rows), np.uint32), []
    for i in range(n):
        code = rows.codes[i].astype(np.int64)
        onehot[np.arange(n_rows), start[i] + code] = weights
        common = np.bincount(code, weights=weights).argmax()
        codes[i] = np.where(code == common, rows.observed[i] - 1, code - (code > common))
        rare.append(np.flatnonzero(code != common).astype(np.uint32))
    states = np.concatenate([codes[i][rare[i]] for i in range(n)])
    rare_start = np.cumsum([0, *map(len, rare)]).astype(np.int64)
    return WideRows(codes, onehot.reshape(-1), onehot.shape[1], start, np.concatenate(rare), states, rare_start)


def _term_bounds(k: int, rows: Rows, rule: Rule, best: Floats) -> TermBounds:
    """Return the table of packed terms and what else the bounds need."""
    (spread, prior, _), total, counts = rule.formula, rows.total, np.arange(rows.total + 1)
    exact = prior == 0.0 or spread == EACH  # the prior is the same for all sets: no M1 is needed
    m1 = np.zeros(total + 1)
    if prior == 0.0:
        m0 = counts * np.log(np.maximum(counts, 1))
    else:  # lnΓ(c + s) − lnΓ(1 + s), with s = 0 where the prior is not the same for all sets
        m0 = np.array([0.0, *(rising(c, 1.0 + (prior if exact else 0.0)) for c in range(total))])
    if not exact:
        m1[2:] = np.cumsum(1.0 / np.arange(1, total))
    n_bits = total.bit_length()
    m1_bits = 0 if exact else n_bits + 5  # the sum of M1 is at most N / 2, in units of 1/32
    units = (2.0 ** (n_bits + m1_bits + int(np.ceil(np.log2(m0[-1] + 2))) - 62), 1 / 32)
    packed = np.ceil(m0 / units[0]).astype(np.int64) << (n_bits + m1_bits)
    packed += (np.ceil(m1 / units[1]).astype(np.int64) << n_bits) + (counts > 0)
    table, seeds = _with_small_counts(packed)
    states = rule.children[PRIOR_STATES]
    ratios = np.zeros_like(states) if exact else np.log(states)
    largest = 0.0  # of |log of a prior|
    if prior > 0.0:
        largest = abs(np.log(prior)) + np.log(np.sort(states)[-k:]).sum() + np.log(total)
        ratios = np.full_like(states, np.log(rule.class_states[0])) if spread == EACH else ratios
    slack = 2.0**-40 * total * (np.log(total + 1.0 + prior) + largest + 1.0)
    children = np.array([np.log(states), ratios])
    logs = np.log(np.maximum(counts, 1))
    return TermBounds(
        table, seeds, np.array([n_bits, m1_bits]), np.array(units), slack, children, logs, np.ascontiguousarray(best.T)
    )


def _with_small_counts(packed: Ints) -> tuple[Ints, AnyArray]:
    """Return the table with the sums of several small counts, and what indices of each kind start with."""
    parts, seeds, size = [packed], np.zeros((4, LANES), np.uint16), len(packed)
    for kind, together in enumerate(PACKED):
        small, several = np.resize(packed[: 4 << kind], 4 << kind), np.zeros(1, np.int64)
        for _ in range(together):
            several = np.add.outer(several, small).ravel()
        padding = -size % len(several)
        parts += [np.zeros(padding, np.int64), several]
        seeds[kind] = (size + padding) // len(several)
        size += padding + len(several)
    return np.concatenate(parts), seeds.reshape(-1)


def make_scratch(k: int, n: int, rows: Rows, bounds: Bounds) -> Scratch:
    """Return the memory of one thread."""
    groups, pairs, index_rows = bounds.groups
    n_rows, wide, subsets = rows.codes.shape[1], bounds.wide, 1 << (k - 2)
    pitch = -(-(wide.pitch + LANES) // LANES) * LANES if wide else 0

    def ints(*shape: int) -> Ints:
        return np.zeros(shape, np.int64)

    scratch = Scratch(
        label=np.ones((k - 1, n_rows), np.uint32),
        groups=ints(k - 1, 2),
        total=aligned(k - 1, (groups + 1) * pitch),
        sums=aligned((pairs + 1) * pitch),
        new_label=np.zeros(pairs, np.uint32),
        indices=aligned(index_rows * pitch),
        open=ints(3, 2),
        columns=ints(pitch),
        packed=ints(n),
        members=ints(k),
        starts=ints(k, k),
        shared=np.zeros((k, n)),
        need=np.zeros((k, n)),
        hurdle=np.zeros((2, n)),
        cells=np.zeros((2, subsets if wide is None else 0, n), np.int32),
        masks=ints(2, subsets),
        both=np.zeros(rows.bits.shape[1], np.uint64),
    )
    scratch.groups[0, 0] = 1
    if wide:
        scratch.total[0, wide.pitch : 2 * wide.pitch] = wide.onehot.reshape(n_rows, wide.pitch).sum(axis=0)
    return scratch


def sets_to_judge(
    prefixes: SmallInts,
    n: int,
    rows: Rows,
    bits: Bits | None,
    rule: Rule,
    bounds: Bounds,
    constraints: Constraints | None,
    below: Below,
) -> tuple[Ints, SmallInts]:
    """Return x_start and xs: the sets of prefix p and x in xs[x_start[p] .. x_start[p+1]-1] may hold a candidate."""
    k = prefixes.shape[1] + 1
    sets = int((n - 1 - prefixes[:, -1]).sum())
    x_start, xs = np.zeros(len(prefixes) + 1, np.int64), np.empty(sets, np.int32)
    scratch = make_scratch(k, n, rows, bounds)
    find_sets(prefixes, bounds.wide, bits, rule, bounds.terms, constraints, below, scratch, x_start, xs)
    return x_start, xs
