"""The kernel that finds the sets of the last level that may hold a candidate, by an upper bound on their terms.

Most sets of the last level hold no candidate. A set is V = P + {y, x}, P of k-2 members. For each P
and y an upper bound on the sum of the terms of V is computed for all x together; only the sets
whose bound passes are counted and judged exactly (`scanning.py`). docs/candidates.md, "Bounds at
the last level", proves the bounds: "By subsets (bound B)" is in `_set_least_terms`, "By counts" in
`_set_gains` and, where the prior depends on the child, `_set_gains_by_child`.

An example with n = 4 variables and k = 3. P has m = k - 2 = 1 member; the prefixes (P, y) are (0,
1), (0, 2), (1, 2). For (0, 1), x is 2 or 3, and V is {0, 1, 2} or {0, 1, 3}. Row t of
`best_subset_scores` belongs to the t-th member of V as the child. For x = 3: row 0 is the best
score of child 0 with {}, {1} or {3}; row 1 that of child 1 with {}, {0} or {3}; row 2 that of child
3 with {}, {0} or {1}. The score of child 0 with {1, 3} is terms(V) - terms({1, 3}) - penalty. So
terms(V) must exceed row 0 + terms({1, 3}) + penalty, or the like for child 1 or 3: the least of the
three is least_terms[1]. If bound B is not above it, V is left out without counting; otherwise the
bound by counts decides. If only {0, 1, 3} passes of {0, 1, 2}, {0, 1, 3}, {0, 2, 3} and {1, 2, 3},
then x_start = [0, 1, 1, 1] and xs = [3].

Rows are one-hot: the weight of a row stands in the column of each of its states, in 16 bits. The
counts of all x in a group of rows are the sum of the rows of the group. Rows are grouped by the
state of P; of y only the rows in a rarer state are summed, and what is left of the group is in its
commonest state. Where all variables have at most two observed states, rows are bits and counts
follow from those of smaller sets.

Loops over x run over i = x - y - 1 from 0 and read slices that begin at x = y + 1: numba then knows
that no index is negative, and LLVM makes vector instructions of them (andes, m = 3: 20 instead of
37 ns a set). What is called for every y is inlined where passing its arrays on would cost more than
its loops."""

from math import inf, log
from typing import NamedTuple

import numpy as np

from ..foundation.arrays import AnyArray, Floats, Ints, SmallInts, Words
from ..foundation.jit import inlined, inner, kernel
from ..foundation.words import LANES, add, append, move, popcount, subtract
from ..scores.score import DECLARED, OBSERVED
from .counting import Bits, add_to_prefix, set_prefix_cells
from .scanning import (
    FORBIDDEN,
    REQUIRED,
    Below,
    Constraints,
    Rule,
    base_rank,
)

# how many counts below 4, below 8, below 16, and of any size, make one index of the table
PACKED = (4, 3, 2, 1)
# rows of TermBounds.children; the first two are those of TermBounds.by_cells
LOG, INVERSE, RATIO = range(3)
LEAST, MOST, GAIN = 0, 1, 5  # rows of Scratch.by_x, as in ByX


class WideRows(NamedTuple):
    """One-hot rows. The commonest state of each variable has the last code."""

    codes: AnyArray  # (n, R) uint32
    # (R * pitch,) uint16; the column after the last state holds the weight of the row
    onehot: AnyArray
    pitch: int
    start: Ints  # (n + 1,) first column of each variable
    # rows in which a variable is not in its commonest state, one variable after the other
    rare: AnyArray
    rare_state: AnyArray  # its state there
    rare_start: Ints  # (n + 1,) where each variable begins in `rare`


class TermBounds(NamedTuple):
    """What bounds the terms of a set: number of cells n, moments M0 and M1 of the counts, packed into one integer."""

    # packed terms of the counts 0 .. N, then those of four, three and two small counts together
    table: Ints
    start: Ints  # (4,) where the terms of four, three, two counts and of one begin in the table
    widths: Ints  # (2,) bits of n and of M1
    units: Floats  # (2,) of M0 and M1
    rounding: float  # allowance for the rounding of the bound and of the exact score
    # (3, n) of the states in the prior, log and inverse; what a cell takes from a subset (bound B)
    children: Floats
    by_cells: Floats  # (2, N + 1) log and inverse of a number of cells
    best: Floats  # (C(n, k-2), n) Below.best transposed, to be read along x


class Scratch(NamedTuple):
    """Memory of one thread. Depth d is the partition by the first d members of P."""

    label: AnyArray  # (k-1, R) uint32: group of each row; 0: the row is alone in its state
    groups: Ints  # (k-1, 2) number of groups; of rows alone in their state
    total: AnyArray  # (k-1, groups * pitch) uint16: sum of the rows of each group
    sums: AnyArray  # uint16: sum of the rows of each group and state of the next member
    new_label: AnyArray  # uint32: label of each group and state
    cells_of: Ints  # (4, cells) cells of two rows and more, by size: below 4, 8, 16; the others
    number: Ints  # (4,) how many there are of each kind
    indices: AnyArray  # uint16: rows of indices of the table
    columns: Ints  # packed sum of each column
    packed: Ints  # (n,) [i]: packed sum of x = y + 1 + i
    members: Ints  # (k,)
    starts: Ints  # (k, k) parts of ranks that hold for a whole P
    shared: Floats  # (k, n) [t, x]: best score of child v_t with subsets of P − v_t + x
    # (k, n) [t, i]: best score of child v_t with any proper subset of V − v_t
    best_subset_scores: Floats
    # (6, n) [., i]: what the terms of V must exceed, their bound B, n, M0, M1, most that a child
    # can gain
    by_x: Floats
    # (2, 2^(k-2), n) uint32, bits: rows in which exactly these members of P, and x, are 1; and y
    # and x
    cells: AnyArray
    # (2, 2^(k-2)) bits: rows in which exactly these members of P are 1; where they, y and x are in
    # `ones`
    masks: Ints
    both: Words  # (words,) bits: rows in which all members of P, and y, are 1


class ByX(NamedTuple):
    """The rows of Scratch.by_x, for each x: of V."""

    least: Floats  # what its terms must exceed
    most: Floats  # bound B on its terms
    n_cells: Floats
    m0: Floats
    m1: Floats
    gain: Floats  # the most that a child can gain


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

    Exactly one of `wide` and `bits` is given. Prefixes are P and y, in lexicographic order. Returns
    the number of sets whose terms were bounded by counting."""
    n, m = len(rule.children), prefixes.shape[1] - 1
    members, least_terms, gains = scratch.members, scratch.by_x[LEAST], scratch.by_x[GAIN]
    # whether the prior depends on the child
    by_child = rule.formula.spread == OBSERVED and rule.formula.prior > 0.0
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
                    _split(t, members[t], n, wide, scratch)
        if not same:
            _set_ranks(n, m, below, scratch)
            if bits is not None:
                _start_bits(n, m, below, bits, scratch)
        members[m] = prefixes[p, m]
        first = members[m] + 1
        width, pair = n - first, first - below.binomials[2, first] - (n - 1)
        _set_best_subset_scores(m, pair, width, below, bounds, scratch)
        if constraints is not None:
            _forbid(m, width, constraints, scratch)
        _set_least_terms(m, pair, width, by_child, rule, bounds, below, scratch)
        low, high = 0, width
        while low < high and least_terms[low] == inf:
            low += 1
        while low < high and least_terms[high - 1] == inf:
            high -= 1
        if low < high:
            counted += high - low
            alone = 0
            if bits is not None:
                _count_bits(m, pair, low, high, bits, bounds, scratch)
            if wide is not None:
                alone = _count_rows(m, first + low, first + high, n, wide, bounds, scratch)
            _unpack(width, alone, bounds, scratch)
            if by_child:
                _set_gains_by_child(m, pair, width, rule, bounds, below, scratch)
            else:
                _set_gains(m, width, rule, bounds, scratch)
            for i in range(low, high):
                if gains[i] > 0.0:
                    xs[found] = first + i
                    found += 1
        x_start[p + 1] = found
    return counted


@inner
def _set_ranks(n: int, m: int, below: Below, scratch: Scratch) -> None:
    """Set the parts of ranks that P makes, by what is left out of it."""
    members, starts, binomials, first = (
        scratch.members,
        scratch.starts,
        below.binomials,
        scratch.members[m - 1] + 1,
    )
    for t in range(m):
        for u in range(m):
            if u != t:  # P − t − u + (y, x)
                starts[t, u] = base_rank(members, m, t, u, m, binomials)
        starts[t, t] = base_rank(members, m, t, -1, m + 1, binomials)  # P − t + (y, x)
        starts[t, m] = base_rank(members, m, t, -1, m, binomials) - (n - 1)  # P − t + x
        row, best = scratch.shared[t, first:], below.best[members[t], starts[t, m] + first :]
        for i in range(len(row)):
            row[i] = best[i]
    starts[m, 0] = base_rank(members, m, -1, -1, m, binomials)  # P
    starts[m, 1] = base_rank(members, m, -1, -1, m + 1, binomials) - (n - 1)  # P + x


@inlined
def _set_best_subset_scores(
    m: int, pair: int, width: int, below: Below, bounds: TermBounds, scratch: Scratch
) -> None:
    """Set the best score of the proper subsets of each child's parents, for every x."""
    starts, bests, y = scratch.starts, scratch.best_subset_scores, scratch.members[m]
    for t in range(m):
        row, shared = bests[t], scratch.shared[t]
        of_y, of_x = shared[y], shared[y + 1 :]
        for i in range(width):
            row[i] = max(of_y, of_x[i])
        for u in range(m):
            if u != t:
                _raise(row, below.best[scratch.members[t], starts[t, u] + pair :], width)
    rank, of_y, row = starts[m, 0], bests[m], bests[m + 1]
    best_of_y, best_of_x = below.best[y], bounds.best[rank, y + 1 :]
    for i in range(width):
        of_y[i], row[i] = best_of_y[rank], best_of_x[i]
    for u in range(m):
        _raise(of_y, best_of_y[starts[u, m] + y + 1 :], width)
        _raise(row, bounds.best[starts[u, m] + y, y + 1 :], width)


@inlined
def _raise(row: Floats, others: Floats, width: int) -> None:
    """Raise each number of the row to the other number there, if that is larger."""
    for i in range(width):
        row[i] = max(row[i], others[i])


@inner
def _forbid(m: int, width: int, constraints: Constraints, scratch: Scratch) -> None:
    """Set the best subset scores of families that prior knowledge rules out to +inf: nothing beats that."""
    members, edges = scratch.members, constraints.edges
    for i in range(width):
        members[m + 1] = members[m] + 1 + i
        for t in range(m + 2):
            child, held = members[t], 0
            barred = m + 1 > constraints.limits[child]["most"]
            for u in range(m + 2):
                if u != t:
                    barred = barred or edges[child, members[u]] == FORBIDDEN
                    held += edges[child, members[u]] == REQUIRED
            if barred or held < constraints.limits[child]["required"]:
                scratch.best_subset_scores[t, i] = inf


@inner
def _set_least_terms(
    m: int,
    pair: int,
    width: int,
    by_child: bool,
    rule: Rule,
    bounds: TermBounds,
    below: Below,
    scratch: Scratch,
) -> None:
    """Set what the terms of V must exceed for some child to gain; +inf where they cannot.

    Where the prior depends on the child, least terms differ by child: +inf only if no child is
    left."""
    members, starts, bests, children = (
        scratch.members,
        scratch.starts,
        scratch.best_subset_scores,
        rule.children,
    )
    least_terms, most_terms, y = scratch.by_x[LEAST], scratch.by_x[MOST], members[m]
    states = children["states"][y + 1 :]
    for i in range(width):
        least_terms[i] = most_terms[i] = inf
    if by_child:
        for t in range(m + 2):
            for i in range(width):
                least_terms[i] = min(least_terms[i], bests[t, i])
        return
    free = rule.formula.penalty * children[y]["states"]
    for t in range(m):
        free *= children[members[t]]["states"]
    for t in range(m + 1):
        child, row = members[t], bests[t]
        place = starts[t, t] + pair if t < m else starts[m, 1] + y + 1
        terms, cells = below.terms[children[child]["column"], place:], below.cells[place:]
        joint, ratio = below.terms[0, place:], bounds.children[RATIO, child]
        parameters = free * (1.0 - 1.0 / children[child]["states"])
        for i in range(width):
            least_terms[i] = min(least_terms[i], row[i] + terms[i] + parameters * states[i])
            most_terms[i] = min(most_terms[i], joint[i] - cells[i] * ratio)
    row, rank = bests[m + 1], starts[m, 1] + y
    classes, ratios = children["column"][y + 1 :], bounds.children[RATIO, y + 1 :]
    for i in range(width):
        terms_of_x = below.terms[classes[i], rank]
        least_terms[i] = min(least_terms[i], row[i] + terms_of_x + free * (states[i] - 1.0))
        most_terms[i] = min(most_terms[i], below.terms[0, rank] - below.cells[rank] * ratios[i])
        if most_terms[i] + bounds.rounding <= least_terms[i]:
            least_terms[i] = inf


@inlined
def _unpack(width: int, alone: int, bounds: TermBounds, scratch: Scratch) -> None:
    """Set the number of cells, M0 (raised by what rounding may take) and M1 of V, for every x."""
    n_bits, m1_bits = bounds.widths
    m0_unit, m1_unit = bounds.units
    packed = scratch.packed
    by_x = _rows(scratch.by_x)
    for i in range(width):
        by_x.n_cells[i] = (packed[i] & ((1 << n_bits) - 1)) + alone
        by_x.m1[i] = ((packed[i] >> n_bits) & ((1 << m1_bits) - 1)) * m1_unit
        by_x.m0[i] = (packed[i] >> (n_bits + m1_bits)) * m0_unit + bounds.rounding


@inlined
def _rows(numbers: Floats) -> ByX:
    """Return the rows of `Scratch.by_x` by name; views cost nothing."""
    return ByX(numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5])


@inlined
def _most_terms(by_x: ByX, i: int, share: float, log_share: float) -> float:
    """Return the bound on the terms of V by its counts, if each cell has this share of the prior."""
    most: float = by_x.m0[i] + by_x.m1[i] * share + by_x.n_cells[i] * log_share
    return most


@inlined
def _set_gains(m: int, width: int, rule: Rule, bounds: TermBounds, scratch: Scratch) -> None:
    """Set the most that a child can gain by V, by the bound of V by its counts, for every x."""
    first = scratch.members[m] + 1
    by_x = _rows(scratch.by_x)
    logs = bounds.children[LOG, first:]
    inverses = bounds.children[INVERSE, first:]
    share = rule.formula.prior
    log_share = log(share) if share > 0.0 else 0.0
    # else M1 is 0: the whole prior in a cell
    shared = 1.0 if rule.formula.spread == DECLARED and share > 0.0 else 0.0
    for t in range(m + 1):
        share *= bounds.children[INVERSE, scratch.members[t]]
        log_share -= shared * bounds.children[LOG, scratch.members[t]]
    for i in range(width):
        most = _most_terms(by_x, i, share * inverses[i], log_share - shared * logs[i])
        by_x.gain[i] = most - by_x.least[i]


@inner
def _set_gains_by_child(
    m: int, pair: int, width: int, rule: Rule, bounds: TermBounds, below: Below, scratch: Scratch
) -> None:
    """Set the same where the prior depends on the child: the most that any child can gain."""
    gains = scratch.by_x[GAIN]
    free = rule.formula.penalty
    for t in range(m + 1):
        free *= rule.children[scratch.members[t]]["states"]
    for i in range(width):
        gains[i] = -inf
    for t in range(m + 1):
        _raise_to_gains_of(t, m, pair, width, free, rule, bounds, below, scratch)
    _raise_to_gains_of_x(m, width, free, rule, bounds, below, scratch)


@inlined
def _raise_to_gains_of(
    t: int,
    m: int,
    pair: int,
    width: int,
    free: float,
    rule: Rule,
    bounds: TermBounds,
    below: Below,
    scratch: Scratch,
) -> None:
    """Raise the gains to those of the child v_t, whose parents are V − v_t."""
    first = scratch.members[m] + 1
    child = scratch.members[t]
    parents = scratch.starts[t, t] + pair if t < m else scratch.starts[m, 1] + first
    terms = below.terms[0, parents:]
    cells = below.cells[parents:]
    bests = scratch.best_subset_scores[t]
    states = rule.children["states"][first:]
    by_x = _rows(scratch.by_x)
    share = rule.formula.prior * bounds.children[INVERSE, child]
    log_share = log(rule.formula.prior) - bounds.children[LOG, child]
    logs = bounds.by_cells[LOG]
    inverses = bounds.by_cells[INVERSE]
    costs = free * (1.0 - 1.0 / rule.children[child]["states"])
    for i in range(width):
        number = np.uint32(cells[i])
        most = _most_terms(by_x, i, share * inverses[number], log_share - logs[number])
        by_x.gain[i] = max(by_x.gain[i], most - bests[i] - terms[i] - costs * states[i])


@inlined
def _raise_to_gains_of_x(
    m: int, width: int, free: float, rule: Rule, bounds: TermBounds, below: Below, scratch: Scratch
) -> None:
    """Raise the gains to those of the child x, whose parents are P + {y} for every x."""
    first = scratch.members[m] + 1
    parents = scratch.starts[m, 1] + first - 1
    terms = below.terms[0, parents]
    cells = below.cells[parents]
    bests = scratch.best_subset_scores[m + 1]
    states = rule.children["states"][first:]
    logs = bounds.children[LOG, first:]
    inverses = bounds.children[INVERSE, first:]
    by_x = _rows(scratch.by_x)
    share = rule.formula.prior * bounds.by_cells[INVERSE, cells]
    log_share = log(rule.formula.prior) - bounds.by_cells[LOG, cells]
    for i in range(width):
        most = _most_terms(by_x, i, share * inverses[i], log_share - logs[i])
        by_x.gain[i] = max(by_x.gain[i], most - bests[i] - terms - free * (states[i] - 1.0))


@inner
def _sum_rows(
    depth: int, y: int, column: int, stride: int, size_at: int, wide: WideRows, scratch: Scratch
) -> None:
    """Set `sums`: a row of counts, from `column` on, for each group and state of y; the commonest state is the last."""
    sums, label, states = scratch.sums, scratch.label[depth], wide.start[y + 1] - wide.start[y]
    begin, end, groups = wide.rare_start[y], wide.rare_start[y + 1], scratch.groups[depth, 0]
    rare, rare_state = wide.rare[begin:end], wide.rare_state[begin:end]
    for i in range((groups + 1) * states * stride):
        sums[i] = 0
    for j in range(len(rare)):
        cell = np.int64(label[rare[j]]) * states + np.int64(rare_state[j])
        add(sums, cell * stride, wide.onehot, np.int64(rare[j]) * wide.pitch + column, stride)
    for g in range(1, groups + 1):
        rest = ((g + 1) * states - 1) * stride
        move(sums, rest, scratch.total[depth], g * wide.pitch + column, stride)
        for q in range(1, states):
            if sums[rest - q * stride + size_at] > 0:
                subtract(sums, rest, sums, rest - q * stride, stride)


@inner
def _split(depth: int, y: int, n: int, wide: WideRows, scratch: Scratch) -> None:
    """Split the partition at `depth` by y, into depth + 1."""
    column, states = wide.start[y + 1], wide.start[y + 1] - wide.start[y]
    size_at = wide.start[n] - column
    stride = (size_at + LANES) & -LANES
    _sum_rows(depth, y, column, stride, size_at, wide, scratch)
    sums, total, new_label = scratch.sums, scratch.total[depth + 1], scratch.new_label
    fresh, alone = 0, scratch.groups[depth, 1]
    for cell in range((scratch.groups[depth, 0] + 1) * states):
        new_label[cell] = 0
        if cell >= states:  # rows of group 0 are alone already
            alone += sums[cell * stride + size_at] == 1
            if sums[cell * stride + size_at] > 1:
                fresh += 1
                new_label[cell] = fresh
                move(total, fresh * wide.pitch + column, sums, cell * stride, stride)
    scratch.groups[depth + 1, 0], scratch.groups[depth + 1, 1] = fresh, alone
    old, label, codes = scratch.label[depth], scratch.label[depth + 1], wide.codes[y]
    for row in range(len(label)):
        label[row] = new_label[np.uint64(old[row]) * np.uint64(states) + np.uint64(codes[row])]


@inner
def _count_rows(
    m: int, first: int, last: int, n: int, wide: WideRows, bounds: TermBounds, scratch: Scratch
) -> int:
    """Set the packed moments of P + {y, x} for x in first .. last-1; return the number of rows alone in P + {y}."""
    y, column, columns, number = (
        scratch.members[m],
        wide.start[first],
        scratch.columns,
        scratch.number,
    )
    size_at, width, states = (
        wide.start[n] - column,
        wide.start[last] - column,
        wide.start[y + 1] - wide.start[y],
    )
    stride, alone = (size_at + LANES) & -LANES, scratch.groups[m, 1]
    _sum_rows(m, y, column, stride, size_at, wide, scratch)
    for kind in range(len(number)):
        number[kind] = 0
    for cell in range(states, (scratch.groups[m, 0] + 1) * states):
        size = scratch.sums[cell * stride + size_at]
        # without branches, which the processor could not predict
        kind = (size > 3) + (size > 7) + (size > 15)
        scratch.cells_of[kind, number[kind]] = cell
        number[kind] += size > 1
        alone += size == 1
    for c in range(width):
        columns[c] = 0
    for kind in range(len(number)):
        n_rows, table = _pack(kind, stride, scratch), bounds.table[bounds.start[kind] :]
        for j in range(n_rows):
            row = scratch.indices[j * stride :]
            for c in range(width):
                columns[c] += table[row[c]]
    for x in range(first, last):
        total = 0
        for c in range(wide.start[x] - column, wide.start[x + 1] - column):
            total += columns[c]
        scratch.packed[x - y - 1] = total
    return int(alone)


@inlined
def _pack(kind: int, stride: int, scratch: Scratch) -> int:
    """Set the rows of indices, each of several rows of counts of this kind; return how many there are."""
    n_rows, room = 0, 0
    for j in range(scratch.number[kind]):
        counts = scratch.cells_of[kind, j] * stride
        if room == 0:
            move(scratch.indices, n_rows * stride, scratch.sums, counts, stride)
            n_rows, room = n_rows + 1, len(PACKED) - kind
        else:
            append(kind + 2, scratch.indices, (n_rows - 1) * stride, scratch.sums, counts, stride)
        room -= 1
    return n_rows


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
        cells, ones = scratch.cells[0, mask, first:], bits.ones[bits.bases[mask] + first :]
        for i in range(n - first):
            cells[i] = ones[i]
    _exactly(m, scratch.cells[0, :, first:], n - first)


@inner
def _exactly(m: int, cells: AnyArray, width: int) -> None:
    """Turn the counts of "all of mask are 1" into those of "exactly mask is 1", for every x."""
    for t in range(m):
        for mask in range(1 << m):
            if not mask >> t & 1:
                row, more = cells[mask], cells[mask | 1 << t]
                for i in range(width):
                    row[i] -= more[i]


@inner
def _count_bits(
    m: int, pair: int, low: int, high: int, bits: Bits, bounds: TermBounds, scratch: Scratch
) -> None:
    """Set the packed moments of P + {y, x} for x = y + 1 + i with i in low .. high-1."""
    cells, both, table, y = scratch.cells[1], scratch.both, bounds.table, scratch.members[m]
    full, width, packed = (1 << m) - 1, high - low, scratch.packed[low:]
    for mask in range(full):
        row, place = cells[mask], scratch.masks[1, mask] + pair + low
        ones = bits.ones[place:]
        for i in range(width):
            row[i] = ones[i]
    for w in range(len(both)):
        both[w] = bits.prefix[m, w] & bits.rows[y, w]
    rows, row = bits.rows[y + 1 + low :], cells[full]
    for i in range(width):
        number = 0
        for w in range(len(both)):
            number += popcount(both[w] & rows[i, w])
        row[i] = number
        packed[i] = 0
    _exactly(m, cells, width)
    for mask in range(full + 1):
        with_x, with_both = scratch.cells[0, mask, y + 1 + low :], cells[mask]
        with_y = np.uint32(scratch.cells[0, mask, y])
        without = np.uint32(scratch.masks[0, mask]) - with_y
        for i in range(width):
            one = with_both[i]
            zero = with_x[i] - one
            packed[i] += table[one] + table[zero] + table[with_y - one] + table[without - zero]
