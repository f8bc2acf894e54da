"""The kernel that finds the sets of the last level that may hold a candidate, by an upper bound on their terms.

Most sets of the last level hold no candidate. A set is V = P + {y, x}, P of k-2 members. For each P and y an upper
bound on the sum of the terms of V is computed for all x together; only the sets whose bound passes are counted and
judged exactly (`scanning.py`). docs/candidates.md, "Bounds at the last level", proves the bounds: "By subsets (bound
B)" is in `_set_least_terms`, "By counts" in `_may_beat`.

An example with n = 4 variables and k = 3. P has m = k - 2 = 1 member; the prefixes (P, y) are (0, 1), (0, 2), (1, 2).
For (0, 1), x is 2 or 3, and V is {0, 1, 2} or {0, 1, 3}. Row t of `best_subset_scores` belongs to the t-th member of V
as the child. For x = 3: row 0 is the best score of child 0 with {}, {1} or {3}; row 1 that of child 1 with {}, {0} or
{3}; row 2 that of child 3 with {}, {0} or {1}. The score of child 0 with {1, 3} is terms(V) - terms({1, 3}) - penalty.
So terms(V) must exceed row 0 + terms({1, 3}) + penalty, or the like for child 1 or 3: the least of the three is
least_terms[3]. If bound B is not above it, V is left out without counting; otherwise the bound by counts decides. If
only {0, 1, 3} passes of {0, 1, 2}, {0, 1, 3}, {0, 2, 3} and {1, 2, 3}, then x_start = [0, 1, 1, 1] and xs = [3].

Rows are one-hot: the weight of a row stands in the column of each of its states, in 16 bits. The counts of all x in a
group of rows are the sum of the rows of the group. Rows are grouped by the state of P; of y only the rows in a rarer
state are summed, and what is left of the group is in its commonest state. Where all variables have at most two
observed states, rows are bits and counts follow from those of smaller sets.
"""

from math import inf, log
from typing import NamedTuple

import numpy as np

from ..foundation.arrays import AnyArray, Floats, Ints, SmallInts, Words
from ..foundation.jit import inner, kernel
from ..foundation.words import LANES, add, append, move, popcount, subtract
from ..scores.score import DECLARED, OBSERVED
from .counting import Bits, add_to_prefix, set_prefix_cells
from .scanning import (
    CLASS,
    FORBIDDEN,
    LIMIT,
    NEEDED,
    PRIOR_STATES,
    REQUIRED,
    STATES,
    Below,
    Constraints,
    Rule,
    base_rank,
)

PACKED = (4, 3, 2)  # how many counts below 4, below 8 and below 16 make one index of the table
LOG_STATES, RATIO = range(2)  # rows of TermBounds.children


class WideRows(NamedTuple):
    """One-hot rows. The commonest state of each variable has the last code."""

    codes: AnyArray  # (n, R) uint32
    onehot: AnyArray  # (R * pitch,) uint16; the column after the last state holds the weight of the row
    pitch: int
    start: Ints  # (n + 1,) first column of each variable
    rare: AnyArray  # rows in which a variable is not in its commonest state, one variable after the other
    rare_state: AnyArray  # its state there
    rare_start: Ints  # (n + 1,) where each variable begins in `rare`


class TermBounds(NamedTuple):
    """What bounds the terms of a set: number of cells n, moments M0 and M1 of the counts, packed into one integer."""

    table: Ints  # packed terms of the counts 0 .. N, then those of four, three and two small counts together
    seeds: AnyArray  # (4 * LANES,) uint16: what an index of four, three, two counts starts with; zeros
    widths: Ints  # (2,) bits of n and of M1
    units: Floats  # (2,) of M0 and M1
    rounding: float  # allowance for the rounding of the bound and of the exact score
    children: Floats  # (2, n) log of the states in the prior; what a cell takes from the terms of a subset (bound B)
    logs: Floats  # (N + 1,) log of a number of cells
    best: Floats  # (C(n, k-2), n) Below.best transposed, to be read along x


class Scratch(NamedTuple):
    """Memory of one thread. Depth d is the partition by the first d members of P."""

    label: AnyArray  # (k-1, R) uint32: group of each row; 0: the row is alone in its state
    groups: Ints  # (k-1, 2) number of groups; of rows alone in their state
    total: AnyArray  # (k-1, groups * pitch) uint16: sum of the rows of each group
    sums: AnyArray  # uint16: sum of the rows of each group and rarer state of the next member; the rest of a group
    new_label: AnyArray  # uint32: label of each group and state
    indices: AnyArray  # uint16: rows of indices of the table
    open: Ints  # (3, 2) number of counts in the open index row of each kind, and where it begins
    columns: Ints  # packed sum of each column
    packed: Ints  # (n,) packed sum of each x
    members: Ints  # (k,)
    starts: Ints  # (k, k) parts of ranks that hold for a whole P
    shared: Floats  # (k, n) [t, x]: best score of child v_t with subsets of P − v_t + x
    best_subset_scores: Floats  # (k, n) [t, x]: best score of child v_t with any proper subset of V − v_t
    term_range: Floats  # (2, n) least_terms, what the terms of V must exceed; most_terms, their bound B
    cells: SmallInts  # (2, 2^(k-2), n) bits: rows in which exactly these members of P, and x, are 1; and y and x
    masks: Ints  # (2, 2^(k-2)) bits: rows in which exactly these members of P are 1; where they, y and x are in `ones`
    both: Words  # (words,) bits: rows in which all members of P, and y, are 1


@kernel
def find_sets(
    prefixes: SmallInts,
    wide: WideRows | None,
    bits: Bits | None,
    rule: Rule,
    bounds: TermBounds,
    constraints: Constraints | None,
    below: Below,
    scratch: Scratch,
    x_start: Ints,
    xs: SmallInts,
) -> int:
    """Set xs[x_start[p] .. x_start[p+1]-1] to the x for which prefix p and x may hold a candidate.

    Exactly one of `wide` and `bits` is given. Prefixes are P and y, in lexicographic order. Returns the number of sets
    whose terms were bounded by counting.
    """
    n, m = rule.children.shape[1], prefixes.shape[1] - 1
    members, least_terms = scratch.members, scratch.term_range[0]
    found, counted = 0, 0
    for p in range(len(prefixes)):
        same = p > 0  # as the P before, up to here
        for t in range(m):
            same = same and members[t] == prefixes[p, t]
            if not same:
                members[t] = prefixes[p, t]
                if bits is not None:  # None is a type to numba: one branch is compiled
                    add_to_prefix(t, members[t], bits)
                if wide is not None:
                    _split(t, members[t], n, wide, bounds, scratch)
        if not same:
            _set_ranks(n, m, below, scratch)
            if bits is not None:
                _start_bits(n, m, below, bits, scratch)
        y = members[m] = np.int64(prefixes[p, m])
        pair = -below.binomials[2, y + 1] - (n - 1)  # plus x: what (y, x) adds to a rank
        _set_best_subset_scores(n, m, pair, below, bounds, scratch)
        if constraints is not None:
            _forbid(n, m, constraints, scratch)
        _set_least_terms(n, m, pair, rule, bounds, below, scratch)
        first, last = y + 1, n
        while first < last and least_terms[first] == inf:
            first += 1
        while first < last and least_terms[last - 1] == inf:
            last -= 1
        alone = 0
        if first < last:
            counted += last - first
            if bits is not None:
                _count_bits(m, pair, first, last, bits, bounds, scratch)
            if wide is not None:
                alone = _count_rows(m, first, last, n, wide, bounds, scratch)
        for x in range(first, last):
            if least_terms[x] < inf:
                members[m + 1] = x
                if _may_beat(m, pair, alone, rule, bounds, below, scratch):
                    xs[found] = x
                    found += 1
        x_start[p + 1] = found
    return counted


@inner
def _set_ranks(n: int, m: int, below: Below, scratch: Scratch) -> None:
    """Set the parts of ranks that P makes, by what is left out of it."""
    members, starts, binomials = scratch.members, scratch.starts, below.binomials
    for t in range(m):
        for u in range(m):
            if u != t:  # P − t − u + (y, x)
                starts[t, u] = base_rank(members, m, t, u, m, binomials)
        starts[t, t] = base_rank(members, m, t, -1, m + 1, binomials)  # P − t + (y, x)
        starts[t, m] = base_rank(members, m, t, -1, m, binomials) - (n - 1)  # P − t + x
        for x in range(members[m - 1] + 1, n):
            scratch.shared[t, x] = below.best[members[t], starts[t, m] + x]
    starts[m, 0] = base_rank(members, m, -1, -1, m, binomials)  # P
    starts[m, 1] = base_rank(members, m, -1, -1, m + 1, binomials) - (n - 1)  # P + x


@inner
def _set_best_subset_scores(n: int, m: int, pair: int, below: Below, bounds: TermBounds, scratch: Scratch) -> None:
    """Set the best score of the proper subsets of each child's parents, for every x."""
    starts, bests, y = scratch.starts, scratch.best_subset_scores, scratch.members[m]
    for t in range(m):
        best, row, shared = below.best[scratch.members[t]], bests[t], scratch.shared[t]
        of_y = shared[y]
        for x in range(y + 1, n):
            row[x] = max(of_y, shared[x])
        for u in range(m):
            if u != t:
                place = starts[t, u] + pair
                for x in range(y + 1, n):
                    row[x] = max(row[x], best[place + x])
    best, of_y, row, rank = below.best[y], bests[m], bests[m + 1], starts[m, 0]
    for x in range(y + 1, n):
        of_y[x], row[x] = best[rank], bounds.best[rank, x]
    for u in range(m):
        place, of_x = starts[u, m], bounds.best[starts[u, m] + y]
        for x in range(y + 1, n):
            of_y[x] = max(of_y[x], best[place + x])
            row[x] = max(row[x], of_x[x])


@inner
def _forbid(n: int, m: int, constraints: Constraints, scratch: Scratch) -> None:
    """Set the best subset scores of families that prior knowledge rules out to +inf: nothing beats that."""
    members, edges = scratch.members, constraints.edges
    for x in range(members[m] + 1, n):
        members[m + 1] = x
        for t in range(m + 2):
            child, held = members[t], 0
            barred = m + 1 > constraints.numbers[LIMIT, child]
            for u in range(m + 2):
                if u != t:
                    barred = barred or edges[child, members[u]] == FORBIDDEN
                    held += edges[child, members[u]] == REQUIRED
            if barred or held < constraints.numbers[NEEDED, child]:
                scratch.best_subset_scores[t, x] = inf


@inner
def _set_least_terms(n: int, m: int, pair: int, rule: Rule, bounds: TermBounds, below: Below, scratch: Scratch) -> None:
    """Set what the terms of V must exceed for some child to gain; +inf where they cannot.

    Where the prior depends on the child (OBSERVED), least terms differ by child: +inf only if no child is left.
    """
    members, starts, bests = scratch.members, scratch.starts, scratch.best_subset_scores
    least_terms, most_terms, states = scratch.term_range[0], scratch.term_range[1], rule.children[STATES]
    y, observed = members[m], rule.formula.spread == OBSERVED
    free = rule.formula.penalty * states[y]
    for t in range(m):
        free *= states[members[t]]
    for x in range(y + 1, n):
        least_terms[x] = most_terms[x] = inf
    for t in range(m + 1):
        child, row = members[t], bests[t]
        place = starts[t, t] + pair if t < m else starts[m, 1]
        column, ratio = int(rule.children[CLASS, child]), bounds.children[RATIO, child]
        parameters = free * (1.0 - 1.0 / states[child])
        if observed:
            for x in range(y + 1, n):
                least_terms[x] = min(least_terms[x], row[x])
        else:
            for x in range(y + 1, n):
                terms = below.terms[place + x, column]
                least_terms[x] = min(least_terms[x], row[x] + terms + parameters * states[x])
                most_terms[x] = min(most_terms[x], below.terms[place + x, 0] - below.cells[place + x] * ratio)
    row, rank = bests[m + 1], starts[m, 1] + y
    for x in range(y + 1, n):
        if observed:
            least_terms[x] = min(least_terms[x], row[x])
        else:
            terms = below.terms[rank, int(rule.children[CLASS, x])]
            least_terms[x] = min(least_terms[x], row[x] + terms + free * (states[x] - 1.0))
            most_terms[x] = min(most_terms[x], below.terms[rank, 0] - below.cells[rank] * bounds.children[RATIO, x])
            if most_terms[x] + bounds.rounding <= least_terms[x]:
                least_terms[x] = inf


@inner
def _may_beat(m: int, pair: int, alone: int, rule: Rule, bounds: TermBounds, below: Below, scratch: Scratch) -> bool:
    """Return whether the bound of V by its counts exceeds its least terms, or, for OBSERVED, those of some child."""
    members, starts, (spread, prior, penalty) = scratch.members, scratch.starts, rule.formula
    y, x = members[m], members[m + 1]
    packed, (n_bits, m1_bits) = scratch.packed[x], (bounds.widths[0], bounds.widths[1])
    n_cells = (packed & ((1 << n_bits) - 1)) + alone
    m1 = ((packed >> n_bits) & ((1 << m1_bits) - 1)) * bounds.units[1]
    upper = (packed >> (n_bits + m1_bits)) * bounds.units[0] + bounds.rounding
    log_prior, product = log(prior) if prior > 0.0 else 0.0, 1.0
    for t in range(m + 2):
        product *= rule.children[STATES, members[t]]
    if spread != OBSERVED:
        if spread == DECLARED and prior > 0.0:
            upper += m1 * (prior / product)
            for t in range(m + 2):
                log_prior -= bounds.children[LOG_STATES, members[t]]
        passes: bool = upper + n_cells * log_prior > scratch.term_range[0, x]
        return passes
    for t in range(m + 2):
        child = members[t]
        rank = starts[t, t] + pair + x if t < m else starts[m, 1] + (x if t == m else y)
        joint, parents = upper, below.cells[rank]
        if prior > 0.0:
            joint += m1 * (prior / (parents * rule.children[PRIOR_STATES, child]))
            joint += n_cells * (log_prior - bounds.logs[parents] - bounds.children[LOG_STATES, child])
        parameters = penalty * product * (1.0 - 1.0 / rule.children[STATES, child])
        if joint > scratch.best_subset_scores[t, x] + below.terms[rank, 0] + parameters:
            return True
    return False


@inner
def _sum_rows(
    depth: int, y: int, column: int, stride: int, wide: WideRows, bounds: TermBounds, scratch: Scratch
) -> None:
    """Set `sums`: a row of counts, from `column` on, for each group and rarer state of y."""
    rarer, label = wide.start[y + 1] - wide.start[y] - 1, scratch.label[depth]
    for i in range(rarer * stride, (scratch.groups[depth, 0] + 1) * rarer * stride, LANES):
        move(scratch.sums, i, bounds.seeds, 3 * LANES)
    for j in range(wide.rare_start[y], wide.rare_start[y + 1]):
        row = np.int64(wide.rare[j])
        target = (np.int64(label[row]) * rarer + np.int64(wide.rare_state[j])) * stride
        for i in range(0, stride, LANES):
            add(scratch.sums, target + i, wide.onehot, row * wide.pitch + column + i)


@inner
def _split(depth: int, y: int, n: int, wide: WideRows, bounds: TermBounds, scratch: Scratch) -> None:
    """Split the partition at `depth` by y, into depth + 1."""
    column, states = wide.start[y + 1], wide.start[y + 1] - wide.start[y]
    size_at = wide.start[n] - column
    stride = (size_at + LANES) // LANES * LANES
    _sum_rows(depth, y, column, stride, wide, bounds, scratch)
    sums, old_total, total, new_label = scratch.sums, scratch.total[depth], scratch.total[depth + 1], scratch.new_label
    fresh, alone = 0, scratch.groups[depth, 1]
    for cell in range((scratch.groups[depth, 0] + 1) * states):
        new_label[cell] = 0
    for g in range(1, scratch.groups[depth, 0] + 1):
        place = (fresh + 1) * wide.pitch + column
        for i in range(0, stride, LANES):
            move(total, place + i, old_total, g * wide.pitch + column + i)
            for q in range(states - 1):
                subtract(total, place + i, sums, (g * (states - 1) + q) * stride + i)
        for q in range(states - 1, -1, -1):  # the commonest state first: it is in its place already
            source = (g * (states - 1) + q) * stride
            size = np.int64(total[place + size_at]) if q == states - 1 else np.int64(sums[source + size_at])
            alone += size == 1
            if size > 1:
                fresh += 1
                new_label[g * states + q] = fresh
                if q < states - 1:
                    for i in range(0, stride, LANES):
                        move(total, fresh * wide.pitch + column + i, sums, source + i)
    scratch.groups[depth + 1, 0], scratch.groups[depth + 1, 1] = fresh, alone
    old, label, codes = scratch.label[depth], scratch.label[depth + 1], wide.codes[y]
    for row in range(len(label)):
        label[row] = new_label[np.uint64(old[row]) * np.uint64(states) + np.uint64(codes[row])]


@inner
def _count_rows(m: int, first: int, last: int, n: int, wide: WideRows, bounds: TermBounds, scratch: Scratch) -> int:
    """Set the packed moments of P + {y, x} for x in first .. last-1; return the number of rows alone in P + {y}."""
    y = scratch.members[m]
    column, rarer = wide.start[first], wide.start[y + 1] - wide.start[y] - 1
    size_at, width = wide.start[n] - column, wide.start[last] - column
    stride = (size_at + LANES) // LANES * LANES
    _sum_rows(m, y, column, stride, wide, bounds, scratch)
    sums, total, columns = scratch.sums, scratch.total[m], scratch.columns
    n_index, alone, groups = 0, int(scratch.groups[m, 1]), scratch.groups[m, 0]
    rest = (groups + 1) * rarer * stride  # where what is left of a group stands: its commonest state
    for g in range(1, groups + 1):
        for i in range(0, stride, LANES):
            move(sums, rest + i, total, g * wide.pitch + column + i)
        for q in range(rarer + 1):
            at = (g * rarer + q) * stride if q < rarer else rest
            size = np.int64(sums[at + size_at])
            if q < rarer and size > 0:
                for i in range(0, stride, LANES):
                    subtract(sums, rest + i, sums, at + i)
            alone += size == 1
            if size > 1:
                n_index = _add_index(size, at, stride, bounds, scratch, n_index)
    for kind in range(3):
        while scratch.open[kind, 0]:  # fill the open row with zeros
            for i in range(0, stride, LANES):
                append(kind + 2, scratch.indices, scratch.open[kind, 1] + i, bounds.seeds, 3 * LANES)
            scratch.open[kind, 0] = (scratch.open[kind, 0] + 1) % PACKED[kind]
    for c in range(width):
        columns[c] = 0
    for j in range(n_index):
        for c in range(width):
            columns[c] += bounds.table[scratch.indices[j * stride + c]]
    for x in range(first, last):
        packed = 0
        for c in range(wide.start[x] - column, wide.start[x + 1] - column):
            packed += columns[c]
        scratch.packed[x] = packed
    return alone


@inner
def _add_index(size: int, at: int, stride: int, bounds: TermBounds, scratch: Scratch, n_index: int) -> int:
    """Add a row of counts, none above `size`, at `at` of the sums, to the index rows; return how many there are."""
    index = scratch.indices
    if size >= 16:
        for i in range(0, stride, LANES):
            move(index, n_index * stride + i, scratch.sums, at + i)
        return n_index + 1
    kind = 2 if size >= 8 else 1 if size >= 4 else 0
    begins = int(scratch.open[kind, 0] == 0)
    if begins:
        scratch.open[kind, 1] = n_index * stride
        for i in range(0, stride, LANES):
            move(index, n_index * stride + i, bounds.seeds, kind * LANES)
    target = scratch.open[kind, 1]
    for i in range(0, stride, LANES):
        append(kind + 2, index, target + i, scratch.sums, at + i)
    scratch.open[kind, 0] = (scratch.open[kind, 0] + 1) % PACKED[kind]
    return n_index + begins


@inner
def _start_bits(n: int, m: int, below: Below, bits: Bits, scratch: Scratch) -> None:
    """Set the counts of P and of all P + {x}."""
    members, binomials, first = scratch.members, below.binomials, scratch.members[m - 1] + 1
    set_prefix_cells(members, m, binomials, bits)
    for mask in range(1 << m):
        size = popcount(mask)
        place, left = bits.start[size + 2] + binomials[size + 2, 0] - 1, size + 2
        for t in range(m):
            if mask >> t & 1:
                place -= binomials[left, members[t] + 1]
                left -= 1
        scratch.masks[0, mask], scratch.masks[1, mask] = bits.cells[mask], place
        for x in range(first, n):
            scratch.cells[0, mask, x] = bits.ones[bits.bases[mask] + x]
    _exactly(m, scratch.cells[0], first, n)


@inner
def _exactly(m: int, cells: SmallInts, first: int, last: int) -> None:
    """Turn the counts of "all of mask are 1" into those of "exactly mask is 1", for every x."""
    for t in range(m):
        for mask in range(1 << m):
            if not mask >> t & 1:
                for x in range(first, last):
                    cells[mask, x] -= cells[mask | 1 << t, x]


@inner
def _count_bits(m: int, pair: int, first: int, last: int, bits: Bits, bounds: TermBounds, scratch: Scratch) -> None:
    """Set the packed moments of P + {y, x} for x in first .. last-1."""
    cells, both, table, y = scratch.cells[1], scratch.both, bounds.table, scratch.members[m]
    full = (1 << m) - 1
    for mask in range(full):
        place = scratch.masks[1, mask] + pair
        for x in range(first, last):
            cells[mask, x] = bits.ones[place + x]
    for w in range(len(both)):
        both[w] = bits.prefix[m, w] & bits.rows[y, w]
    for x in range(first, last):
        ones = 0
        for w in range(len(both)):
            ones += popcount(both[w] & bits.rows[x, w])
        cells[full, x] = ones
        scratch.packed[x] = 0
    _exactly(m, cells, first, last)
    for mask in range(full + 1):
        with_y = scratch.cells[0, mask, y]
        without = scratch.masks[0, mask] - with_y
        for x in range(first, last):
            one = cells[mask, x]
            zero = scratch.cells[0, mask, x] - one
            scratch.packed[x] += table[one] + table[zero] + table[with_y - one] + table[without - zero]
