"""Loops that count every small set of variables once and judge every family in it (design §3).

A *level* k visits all sets V of k variables in lexicographic order. V = P + {i} is a family of each of its members i,
so one count serves k families. A set is split into a *prefix* (all but its largest member) and that member x: the
prefix is counted once, x runs in the inner loop, and the lexicographic rank of any subset of V that holds x is a
constant plus x, so that the inner loop reads every table of the level below in memory order.
"""

from math import inf, lgamma, log
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ..arrays import AnyArray, Bools, Floats, Ints, SmallInts, Words

BDEU, BDS, K2, LIKELIHOOD = 0, 1, 2, 3
TABLE_WIDTH = 1024  # counts below this are looked up, larger ones use lgamma: 8 KB a row stay in cache
SMALL_PRIOR = 1 / 64  # up to this prior the power series below is exact to double precision
SERIES = 8  # its number of coefficients: the first one left out is at most 64**-8 / 8 = 4e-16
_FEW_CELLS = 64  # below this a histogram of counts costs more than it saves
_HISTOGRAM = 4096  # counts from here on are rare (N / 4096 of them at most) and listed one by one

kernel: Any = njit(nogil=True, cache=True)
# Called millions of times a second with many arrays. Without numba's reference counting (nothing is allocated here) a
# call is free: alarm m=4 took 6.5 µs a set with it, 3.3 µs without.
leaf: Any = njit(nogil=True, cache=True, _nrt=False)  # type: ignore[call-overload]


class Rows(NamedTuple):
    """The data, ready for counting. States are the observed ones only."""

    codes: AnyArray  # (n, R) distinct rows; (n, 0) if bits are used
    observed: Ints  # (n,) observed number of states
    weights: SmallInts  # (R,) how often each row occurs
    merged: bool  # whether some weight is above 1
    bits: Words  # (n, words) rows in state 1, if every variable has at most two observed states; else (n, 0)
    total: int  # N


class Rule(NamedTuple):
    """What is scored: kind, prior and price; and which parents are allowed."""

    kind: int
    ess: float
    price: float  # of one free parameter
    arities: Floats  # (n,) number of child states in the prior: observed for BDs, else declared
    declared: Floats  # (n,) declared arities
    arity_class: Ints  # (n,) which column of the parent terms a child uses
    class_arity: Floats  # (classes,)
    tolerance: Floats  # (n,) a set must beat its subsets by more than this
    constrained: bool
    allowed: Bools  # (n, n) allowed[i, j]: j may be a parent of i
    required: Bools  # (n, n)
    required_count: Ints  # (n,)
    limits: Ints  # (n,) largest number of parents


class Below(NamedTuple):
    """What is known of smaller sets when level k is visited, by lexicographic rank."""

    terms: Floats  # (C(n, k-1), classes) parent terms of sets of k-1
    cells: SmallInts  # (C(n, k-1),) number of observed states of sets of k-1
    best: Floats  # (n, C(n, k-2)) best score of any subset; +inf: no superset can be a candidate
    ones: SmallInts  # rows in which all members are 1, for sets of 0, 1, ..., k-1, one size after the other
    drop: Ints  # (k + 2, n + 1) drop[s, v] = C(n-1-v, s)
    sizes: Ints  # (k + 2,) C(n, s)
    ones_start: Ints  # (k + 2,) where sets of s begin in `ones`
    keys: Floats  # (rows,) ascending: ess / prior of each row of `table`; only priors above SMALL_PRIOR
    table: Floats  # (rows, width) lnΓ(c + prior) − lnΓ(prior), or c log c
    series: Floats  # (width, SERIES) coefficients of prior^0, prior^1, ... in lnΓ(c + prior) − lnΓ(1 + prior)


class Above(NamedTuple):
    """What level k leaves for level k + 1; empty arrays at the last level."""

    terms: Floats  # (C(n, k), classes)
    cells: SmallInts  # (C(n, k),)
    best: Floats  # (n, C(n, k-1))
    ones: SmallInts  # (C(n, k),)


Counts = tuple[SmallInts, SmallInts, int]  # (values, times, number of pairs): a multiset of cell counts


class Found(NamedTuple):
    """Candidate sets of one block, in the order of discovery."""

    child: SmallInts  # (capacity,)
    parents: SmallInts  # (capacity, k-1)
    score: Floats  # (capacity,)


@leaf
def _find(keys: Floats, key: float) -> int:
    low, high = 0, len(keys)
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low if low < len(keys) and keys[low] == key else -1


@leaf
def _term(value: int, prior: float) -> float:
    if value == 0:
        return 0.0
    if prior == 0.0:
        return value * log(value)
    return lgamma(value + prior) - lgamma(prior)


@leaf
def _sum_by_table(row: int, prior: float, table: Floats, counts: Counts) -> float:
    """Σ times · (lnΓ(value + prior) − lnΓ(prior)); with prior 0, Σ times · value log value."""
    values, times, n_values = counts
    total = 0.0
    width = table.shape[1] if row >= 0 else 0
    for t in range(n_values):
        value = values[t]
        term = table[row, value] if value < width else _term(value, prior)
        total += times[t] * term
    return total


@leaf
def _set_moments(series: Floats, counts: Counts, moments: Floats) -> None:
    """moments[p] = Σ times · series[value, p]: after this a sum of terms is a polynomial in the prior."""
    values, times, n_values = counts
    for p in range(SERIES):
        moments[p] = 0.0
    for t in range(n_values):
        value = values[t]
        if 0 < value < len(series):
            for p in range(SERIES):
                moments[p] += times[t] * series[value, p]


@leaf
def _sum_by_moments(prior: float, n_cells: int, width: int, moments: Floats, counts: Counts) -> float:
    """Σ times · (lnΓ(value + prior) − lnΓ(prior)) for a small prior, as lnΓ(prior) = lnΓ(1 + prior) − log(prior)."""
    values, times, n_values = counts
    total = 0.0
    for p in range(SERIES - 1, -1, -1):
        total = total * prior + moments[p]
    for t in range(n_values):
        if values[t] >= width:
            total += times[t] * (lgamma(values[t] + prior) - lgamma(1.0 + prior))
    return total + n_cells * log(prior)


@leaf
def _sum_terms(key: float, prior: float, n_cells: int, below: Below, moments: Floats, counts: Counts) -> float:
    if 0.0 < prior <= SMALL_PRIOR:
        if moments[0] != moments[0]:  # not computed for this set yet
            _set_moments(below.series, counts, moments)
        return _sum_by_moments(prior, n_cells, len(below.series), moments, counts)
    return _sum_by_table(_find(below.keys, key), prior, below.table, counts)


@leaf
def _base_rank(prefix: Ints, length: int, skip: int, skip_too: int, size: int, below: Below) -> int:
    """Rank of a set of `size` that starts with the prefix less the positions skip and skip_too.

    If one member is still to come, add drop[1, x] with a minus sign.
    """
    rank = below.sizes[size] - 1
    place = 0
    for j in range(length):
        if j != skip and j != skip_too:
            rank -= below.drop[size - place, prefix[j]]
            place += 1
    return rank


@leaf
def _thresholds(n: int, k: int, prefix: Ints, below: Below, rule: Rule, thresholds: Floats) -> None:
    """thresholds[t, x] = best of any proper subset of V − v_t for child v_t, V = prefix + {x}; +inf: not allowed."""
    length = k - 1
    first = prefix[length - 1] + 1 if length else 0
    for t in range(length):
        child = prefix[t]
        best = below.best[child]
        row = thresholds[t]
        start = best[_base_rank(prefix, length, t, -1, k - 2, below)] if k >= 2 else -inf
        for x in range(first, n):
            row[x] = start
        for u in range(length):
            if u != t:
                base = _base_rank(prefix, length, t, u, k - 2, below) - (n - 1)
                for x in range(first, n):
                    row[x] = max(row[x], best[base + x])
    row = thresholds[length]
    for x in range(first, n):
        row[x] = -inf
    for u in range(length):
        rank = _base_rank(prefix, length, u, -1, k - 2, below)
        for x in range(first, n):
            row[x] = max(row[x], below.best[x, rank])
    if rule.constrained:
        _forbid(n, k, prefix, first, rule, thresholds)


@leaf
def _bar(row: Floats, first: int) -> None:
    for x in range(first, len(row)):
        row[x] = inf


@leaf
def _forbid(n: int, k: int, prefix: Ints, first: int, rule: Rule, thresholds: Floats) -> None:
    length = k - 1
    for x in range(first, n):
        if length > rule.limits[x]:
            thresholds[length, x] = inf
    for t in range(length):
        if length > rule.limits[prefix[t]]:
            _bar(thresholds[t], first)
        for u in range(length):
            if u != t and not rule.allowed[prefix[t], prefix[u]]:
                _bar(thresholds[t], first)
        for x in range(first, n):
            if not rule.allowed[prefix[t], x]:
                thresholds[t, x] = inf
            if not rule.allowed[x, prefix[t]]:
                thresholds[length, x] = inf


@leaf
def _holds_required(members: Ints, k: int, t: int, rule: Rule) -> bool:
    """Whether V − v_t holds every required parent of v_t."""
    held = 0
    for u in range(k):
        if u != t and rule.required[members[t], members[u]]:
            held += 1
    return held == rule.required_count[members[t]]


@leaf
def _judge(
    members: Ints,
    k: int,
    counts: Counts,
    ranks: tuple[Ints, int],
    thresholds: Floats,
    below: Below,
    above: Above,
    rule: Rule,
    moments: Floats,
    found: Found,
    n_found: int,
) -> int:
    """Score the k families of V = members[:k], keep the candidates, leave what the next level needs."""
    values, times, n_values = counts
    parent_ranks, rank = ranks
    store = len(above.cells) > 0
    n_cells: Any = np.int64(0)
    for t in range(n_values):
        if values[t] > 0:
            n_cells += times[t]
    moments[0] = np.nan
    product = 1.0
    for t in range(k):
        product *= rule.declared[members[t]]
    joint = 0.0
    if rule.kind == BDEU:
        joint = _sum_terms(product, rule.ess / product, n_cells, below, moments, counts)
    elif rule.kind == K2:
        joint = _sum_by_table(0, 1.0, below.table, counts)
    elif rule.kind == LIKELIHOOD:
        joint = _sum_by_table(0, 0.0, below.table, counts)
    for t in range(k):
        child = members[t]
        threshold = thresholds[t, members[k - 1]]
        if threshold == inf:
            if store:
                above.best[child, parent_ranks[t]] = inf
            continue
        if rule.kind == BDS:
            key = below.cells[parent_ranks[t]] * rule.arities[child]
            joint = _sum_terms(key, rule.ess / key, n_cells, below, moments, counts)
        score = joint - below.terms[parent_ranks[t], rule.arity_class[child]]
        parameters = product / rule.declared[child] * (rule.declared[child] - 1.0)
        score -= rule.price * parameters
        if rule.constrained and not _holds_required(members, k, t, rule):
            if store:
                above.best[child, parent_ranks[t]] = -inf
            continue
        if score > threshold + rule.tolerance[child] or threshold == -inf:
            if n_found < len(found.child):
                found.child[n_found] = child
                found.score[n_found] = score
                place = 0
                for u in range(k):
                    if u != t:
                        found.parents[n_found, place] = members[u]
                        place += 1
            n_found += 1
        if store:
            best = max(score, threshold)
            # No superset can score more than this. Bayesian scores: read the rows of a parent state one by one; the
            # first row of each observed cell has predictive probability (α/r) / (α + rows so far) <= 1/r, the others
            # at most 1, and a superset has at least as many cells (proof: docs/candidates.md).
            bound = -rule.price * parameters if rule.kind == LIKELIHOOD else -n_cells * log(rule.arities[child])
            above.best[child, parent_ranks[t]] = inf if bound <= best else best
    if store:
        above.cells[rank] = n_cells
        _store_terms(n_cells, joint, counts, rank, below, above, rule, moments)
    return n_found


@leaf
def _store_terms(
    n_cells: int, joint: float, counts: Counts, rank: int, below: Below, above: Above, rule: Rule, moments: Floats
) -> None:
    """The terms of V as a parent set."""
    if rule.kind == BDEU or rule.kind == LIKELIHOOD:
        above.terms[rank, 0] = joint
    elif rule.kind == BDS:
        above.terms[rank, 0] = _sum_terms(float(n_cells), rule.ess / n_cells, n_cells, below, moments, counts)
    else:
        for c in range(len(rule.class_arity)):
            above.terms[rank, c] = _sum_by_table(-1, rule.class_arity[c], below.table, counts)


@leaf
def _refine(
    depth: int,
    x: int,
    data: Rows,
    labels: SmallInts,
    active: SmallInts,
    n_active: Ints,
    n_labels: Ints,
    singles: Ints,
    scratch: SmallInts,
) -> None:
    """Split the partition at `depth` by variable x into depth + 1; rows alone in their state never matter again."""
    r = data.observed[x]
    column = data.codes[x]
    n = n_active[depth]
    for t in range(n):
        cell = labels[depth, t] * r + column[active[depth, t]]
        scratch[cell] += data.weights[active[depth, t]]
    fresh = 0
    kept = 0
    single = singles[depth]
    for t in range(n):
        row = active[depth, t]
        cell = labels[depth, t] * r + column[row]
        if scratch[cell] == 1:
            single += 1
            scratch[cell] = 0
            continue
        if scratch[cell] > 0:  # first visit: the weight gives way to −1 − label
            scratch[cell] = -1 - fresh
            fresh += 1
        labels[depth + 1, kept] = -1 - scratch[cell]
        active[depth + 1, kept] = row
        kept += 1
    for t in range(n):
        scratch[labels[depth, t] * r + column[active[depth, t]]] = 0
    n_active[depth + 1] = kept
    n_labels[depth + 1] = fresh
    singles[depth + 1] = single


@leaf
def _count(
    depth: int,
    x: int,
    data: Rows,
    labels: SmallInts,
    active: SmallInts,
    n_active: int,
    n_labels: int,
    single: int,
    scratch: SmallInts,
    histogram: SmallInts,
    values: SmallInts,
    times: SmallInts,
) -> int:
    """The cell counts of prefix + {x} as (value, times); returns how many pairs."""
    r = data.observed[x]
    column = data.codes[x]
    label = labels[depth]
    row = active[depth]
    if data.merged:
        for t in range(n_active):
            scratch[label[t] * r + column[row[t]]] += data.weights[row[t]]
    else:
        for t in range(n_active):
            scratch[label[t] * r + column[row[t]]] += 1
    n_cells = n_labels * r
    n_values: Any = np.int64(0)
    if single:
        values[0] = 1
        times[0] = single
        n_values = 1
        histogram[1] = 1  # index in `values` plus one
    if n_cells <= _FEW_CELLS:
        for cell in range(n_cells):
            values[n_values] = scratch[cell]
            times[n_values] = 1
            n_values += 1
            scratch[cell] = 0
        histogram[1] = 0
        return n_values
    if n_cells <= n_active:
        for cell in range(n_cells):
            n_values = _tally(scratch[cell], histogram, values, times, n_values)
            scratch[cell] = 0
    else:
        for t in range(n_active):
            cell = label[t] * r + column[row[t]]
            n_values = _tally(scratch[cell], histogram, values, times, n_values)
            scratch[cell] = 0
    for t in range(n_values):
        if values[t] < _HISTOGRAM:
            histogram[values[t]] = 0
    return n_values


@leaf
def _tally(value: int, histogram: SmallInts, values: SmallInts, times: SmallInts, n_values: int) -> int:
    if value == 0:
        return n_values
    if value < _HISTOGRAM:
        place = histogram[value]
        if place > 0:
            times[place - 1] += 1
            return n_values
        histogram[value] = n_values + 1
    values[n_values] = value
    times[n_values] = 1
    return n_values + 1


@leaf
def _set_ranks(n: int, k: int, prefix: Ints, below: Below, bases: Ints) -> int:
    """bases[t] + x is the rank of V − v_t; bases[k-1] is the rank of the prefix itself; returns base of V."""
    length = k - 1
    for t in range(length):
        bases[t] = _base_rank(prefix, length, t, -1, k - 1, below) - (n - 1)
    bases[length] = _base_rank(prefix, length, -1, -1, k - 1, below)
    return _base_rank(prefix, length, -1, -1, k, below) - (n - 1)


@leaf
def _hopeless(k: int, x: int, thresholds: Floats) -> bool:
    hopeless = True
    for t in range(k):
        hopeless &= thresholds[t, x] == inf
    return hopeless


@kernel
def scan_rows(
    k: int, heads: Ints, data: Rows, rule: Rule, below: Below, above: Above, found: Found, most_cells: int
) -> int:
    """Visit every V of k variables that starts with one of `heads` (rows of 0, 1 or 2 members); any arities.

    Returns the number of candidates; those beyond the capacity of `found` are counted, not kept.
    """
    n, n_rows = data.codes.shape
    length = k - 1
    head_length = heads.shape[1]
    labels = np.zeros((k, n_rows), np.int32)
    active = np.empty((k, n_rows), np.int32)
    for t in range(n_rows):
        active[0, t] = t
    n_active, n_labels, singles = np.zeros(k, np.int64), np.zeros(k, np.int64), np.zeros(k, np.int64)
    n_active[0], n_labels[0] = n_rows, 1
    scratch = np.zeros(most_cells, np.int32)
    histogram = np.zeros(_HISTOGRAM, np.int32)
    values = np.empty(_FEW_CELLS + _HISTOGRAM + data.total // _HISTOGRAM + 2, np.int32)
    times = np.empty(len(values), np.int32)
    thresholds = np.empty((k, n))
    prefix, members = np.empty(k, np.int64), np.empty(k, np.int64)
    bases, parent_ranks = np.empty(k, np.int64), np.empty(k, np.int64)
    moments = np.empty(SERIES)
    store = len(above.cells) > 0
    n_found: Any = np.int64(0)  # not a literal: numba would compile what it is passed to once more
    for head in range(len(heads)):
        for depth in range(head_length):
            prefix[depth] = heads[head, depth]
            _refine(depth, prefix[depth], data, labels, active, n_active, n_labels, singles, scratch)
        depth = head_length
        following = prefix[head_length - 1] + 1 if head_length else 0
        while True:
            if depth < length and following <= n - (k - depth):
                prefix[depth] = following
                _refine(depth, following, data, labels, active, n_active, n_labels, singles, scratch)
                depth += 1
                following += 1
                continue
            if depth == length:
                _thresholds(n, k, prefix, below, rule, thresholds)
                base = _set_ranks(n, k, prefix, below, bases)
                for t in range(length):
                    members[t] = prefix[t]
                for x in range(prefix[length - 1] + 1 if length else 0, n):
                    if not store and _hopeless(k, x, thresholds):
                        continue
                    n_values = _count(
                        length, x, data, labels, active, n_active[length], n_labels[length], singles[length],
                        scratch, histogram, values, times,
                    )  # fmt: skip
                    members[length] = x
                    for t in range(length):
                        parent_ranks[t] = bases[t] + x
                    parent_ranks[length] = bases[length]
                    n_found = _judge(
                        members, k, (values, times, n_values), (parent_ranks, base + x), thresholds,
                        below, above, rule, moments, found, n_found,
                    )  # fmt: skip
            if depth == head_length:
                break
            depth -= 1
            following = prefix[depth] + 1
    return n_found


@leaf
def _intersect(some: Words, others: Words, both: Words) -> None:
    for w in range(len(some)):
        both[w] = some[w] & others[w]


@leaf
def _popcount(x: np.uint64) -> int:
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@kernel
def _prefix_cells(k: int, prefix: Ints, n: int, data: Rows, below: Below, bases: Ints, cells: SmallInts) -> None:
    """Cell counts of the prefix by bit mask, and where the all-ones counts of (mask of the prefix) + {x} begin."""
    length = k - 1
    chosen = np.empty(k, np.int64)
    for mask in range(1 << length):
        size = 0
        for t in range(length):
            if mask >> t & 1:
                chosen[size] = prefix[t]
                size += 1
        start = below.ones_start[size]
        cells[mask] = below.ones[start + _base_rank(chosen, size, -1, -1, size, below)]
        if size < length:
            bases[mask] = below.ones_start[size + 1] + _base_rank(chosen, size, -1, -1, size + 1, below) - (n - 1)
    _only(length, cells)


@leaf
def _only(length: int, cells: SmallInts) -> None:
    """From "all of mask are 1" to "exactly mask is 1", in place."""
    for t in range(length):
        for mask in range(1 << length):
            if not mask >> t & 1:
                cells[mask] -= cells[mask | (1 << t)]


@kernel
def scan_bits(k: int, heads: Ints, data: Rows, rule: Rule, below: Below, above: Above, found: Found) -> int:
    """As scan_rows, for at most two observed states: one AND and popcount a set, the rest by subtraction."""
    n, n_words = data.bits.shape
    length = k - 1
    head_length = heads.shape[1]
    joint_bits = np.empty((k, n_words), np.uint64)
    for w in range(n_words):
        joint_bits[0, w] = ~np.uint64(0)
    half = 1 << length
    cells = np.empty(half, np.int32)
    ones_base = np.zeros(half, np.int64)
    values, times = np.empty(2 * half, np.int32), np.empty(2 * half, np.int32)
    for t in range(2 * half):
        times[t] = 1
    thresholds = np.empty((k, n))
    prefix, members = np.empty(k, np.int64), np.empty(k, np.int64)
    bases, parent_ranks = np.empty(k, np.int64), np.empty(k, np.int64)
    moments = np.empty(SERIES)
    store = len(above.cells) > 0
    n_found: Any = np.int64(0)  # not a literal: numba would compile what it is passed to once more
    for head in range(len(heads)):
        for depth in range(head_length):
            prefix[depth] = heads[head, depth]
            _intersect(joint_bits[depth], data.bits[prefix[depth]], joint_bits[depth + 1])
        depth = head_length
        following = prefix[head_length - 1] + 1 if head_length else 0
        while True:
            if depth < length and following <= n - (k - depth):
                prefix[depth] = following
                _intersect(joint_bits[depth], data.bits[following], joint_bits[depth + 1])
                depth += 1
                following += 1
                continue
            if depth == length:
                _thresholds(n, k, prefix, below, rule, thresholds)
                base = _set_ranks(n, k, prefix, below, bases)
                _prefix_cells(k, prefix, n, data, below, ones_base, cells)
                for t in range(length):
                    members[t] = prefix[t]
                for x in range(prefix[length - 1] + 1 if length else 0, n):
                    if not store and _hopeless(k, x, thresholds):
                        continue
                    all_ones = 0
                    for w in range(n_words):
                        all_ones += _popcount(joint_bits[length, w] & data.bits[x, w])
                    for mask in range(half - 1):
                        values[mask] = below.ones[ones_base[mask] + x]
                    values[half - 1] = all_ones
                    _only(length, values)
                    for mask in range(half):
                        values[half + mask] = cells[mask] - values[mask]
                    if store:
                        above.ones[base + x] = all_ones
                    members[length] = x
                    for t in range(length):
                        parent_ranks[t] = bases[t] + x
                    parent_ranks[length] = bases[length]
                    n_found = _judge(
                        members, k, (values, times, 2 * half), (parent_ranks, base + x), thresholds,
                        below, above, rule, moments, found, n_found,
                    )  # fmt: skip
            if depth == head_length:
                break
            depth -= 1
            following = prefix[depth] + 1
    return n_found
