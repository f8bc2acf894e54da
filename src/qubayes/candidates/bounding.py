"""The kernel `find_sets`: sets of the last level that may hold a candidate set, by upper bounds.

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
three is least[1]. If bound B is not above it, V is left out without counting; otherwise the bound
by counts decides. If only {0, 1, 3} passes of {0, 1, 2}, {0, 1, 3}, {0, 2, 3} and {1, 2, 3}, then
x_start = [0, 1, 1, 1] and xs = [3].

Rows are one-hot: the weight of a row stands in the column of each of its states, in 16 bits. The
counts of all x in a group of rows are the sum of the rows of the group. Rows are grouped by the
state of P; of y only the rows in a rarer state are summed, and the others of the group are in its
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
from .scanning import FORBIDDEN, REQUIRED, Below, Constraints, Rule, base_rank, common_length

# How many counts below 4, below 8, below 16, and of any size, make one index of the table of terms.
COUNTS_AN_INDEX = (4, 3, 2, 1)
# Rows of TermBounds.children; the first two are those of TermBounds.by_cells.
LOG, INVERSE, RATIO = range(3)


class WideRows(NamedTuple):
    """One-hot rows. The commonest state of each variable has the last code."""

    codes: AnyArray  # (n, R) uint32
    onehot: AnyArray  # (R * pitch,) uint16; the column after the last state: weight of the row
    pitch: int
    start: Ints  # (n + 1,) first column of each variable; the last: column of the weights
    # rows in which a variable is not in its commonest state, one variable after the other
    rare: AnyArray
    rare_state: AnyArray  # its state there
    rare_start: Ints  # (n + 1,) where each variable begins in `rare`


class Groups(NamedTuple):
    """One-hot rows with the memory of one thread. Depth d: groups of rows by the first d of P."""

    rows: WideRows
    label: AnyArray  # (k-1, R) uint32: group of each row; 0: the row is alone in its state
    sizes: Ints  # (k-1, 2) number of groups; of rows alone in their state
    total: AnyArray  # (k-1, groups * pitch) uint16: sum of the rows of each group
    sums: AnyArray  # uint16: sum of the rows of each group and state of the next member
    new_label: AnyArray  # uint32: label of each group and state
    cells_of: Ints  # (4, cells) cells of two rows and more, by size: below 4, 8, 16; the others
    number: Ints  # (4,) how many there are of each kind
    indices: AnyArray  # uint16: rows of indices of the table
    columns: Ints  # packed sum of each column


class PairBits(NamedTuple):
    """Rows as bits with the memory of one thread. Row `mask`: exactly these members of P are 1."""

    bits: Bits
    of_p: Ints  # (2^(k-2),) number of rows
    of_x: AnyArray  # (2^(k-2), n) uint32: number of rows in which x is 1 too
    of_both: AnyArray  # (2^(k-2), n) uint32 [, i]: number of rows in which y and x are 1 too
    place: Ints  # (2^(k-2),) where the all-ones counts of the members, y and x begin in bits.ones
    with_y: Words  # (words,) rows in which all members of P, and y, are 1


class TermBounds(NamedTuple):
    """Bounds on terms by a number of cells n and moments M0, M1 of the counts, packed together."""

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


class BoundScratch(NamedTuple):
    """Memory of one thread for both forms of rows. [., i] is of x = y + 1 + i."""

    members: Ints  # (k,) P, y and x
    starts: Ints  # (k, k) parts of ranks that hold for a whole P
    shared: Floats  # (k, n) [t, x]: best score of child v_t with subsets of P - v_t + x
    # (k, n) [t, i]: best score of child v_t with any proper subset of V - v_t
    best_subset_scores: Floats
    packed: Ints  # (n,) [i]: packed sum of the terms of V
    by_x: Floats  # (6, n) the rows of ByX


class ByX(NamedTuple):
    """The rows of BoundScratch.by_x, for each x: of V."""

    least: Floats  # what its terms must exceed
    most: Floats  # bound B on its terms
    n_cells: Floats
    m0: Floats
    m1: Floats
    gain: Floats  # the most that a child can gain


@kernel
def find_sets(
    prefixes: SmallInts,
    groups: Groups | None,
    bits: PairBits | None,
    rule: Rule,
    bounds: TermBounds,
    constraints: Constraints | None,
    below: Below,
    scratch: BoundScratch,
    x_start: Ints,
    xs: SmallInts,
) -> int:
    """Set xs[x_start[p] .. x_start[p+1]-1] to the x for which prefix p and x may hold a candidate.

    Exactly one of `groups` and `bits` is given. Prefixes are P and y, in lexicographic order.
    Returns the number of sets whose terms were bounded by counting."""
    n = len(rule.children)
    m = prefixes.shape[1] - 1
    members = scratch.members
    by_x = _rows(scratch.by_x)
    by_child = rule.formula.spread == OBSERVED and rule.formula.prior > 0.0  # the prior of a cell
    known = 0  # how many members of P are those of the prefix before
    found = 0
    counted = 0
    for p in range(len(prefixes)):
        known = common_length(members, prefixes[p], known)
        if known < m:
            _set_prefix(known, n, prefixes[p], groups, bits, below, scratch)
            known = m
        members[m] = prefixes[p, m]
        first = members[m] + 1
        width = n - first
        pair = first - below.binomials[2, first] - (n - 1)  # the part of y and x in ranks, less i
        _set_best_subset_scores(m, pair, width, below, bounds, scratch)
        if constraints is not None:
            _forbid(m, width, constraints, scratch)
        if by_child:
            _set_least_terms_of_all(m, width, scratch)
        else:
            _set_least_terms(m, pair, width, rule, bounds, below, scratch)
        low, high = _open_range(by_x.least, width)
        if low < high:
            counted += high - low
            alone = 0
            if bits is not None:  # None is a type to numba: one branch is compiled
                _count_bits(m, pair, low, high, bits, bounds, scratch)
            if groups is not None:
                alone = _count_rows(m, first + low, first + high, groups, bounds, scratch)
            _unpack(width, alone, bounds, scratch)
            if by_child:
                _set_gains_by_child(m, pair, width, rule, bounds, below, scratch)
            else:
                _set_gains(m, width, rule, bounds, scratch)
            for i in range(low, high):
                if by_x.gain[i] > 0.0:
                    xs[found] = first + i
                    found += 1
        x_start[p + 1] = found
    return counted


@inner
def _set_prefix(
    known: int,
    n: int,
    prefix: SmallInts,
    groups: Groups | None,
    bits: PairBits | None,
    below: Below,
    scratch: BoundScratch,
) -> None:
    """Set P to all but the last of the prefix; its first `known` members are set already."""
    m = len(prefix) - 1
    for t in range(known, m):
        scratch.members[t] = prefix[t]
        if bits is not None:
            add_to_prefix(t, scratch.members[t], bits.bits)
        if groups is not None:
            _split(t, scratch.members[t], groups)
    _set_ranks(n, m, below, scratch)
    if bits is not None:
        _start_bits(n, m, below, bits, scratch)


@inner
def _set_ranks(n: int, m: int, below: Below, scratch: BoundScratch) -> None:
    """Set the parts of ranks that P makes, by what is left out of it."""
    members = scratch.members
    starts = scratch.starts
    binomials = below.binomials
    first = members[m - 1] + 1
    for t in range(m):
        for u in range(m):
            if u != t:  # P - t - u + (y, x)
                starts[t, u] = base_rank(members, m, t, u, m, binomials)
        starts[t, t] = base_rank(members, m, t, -1, m + 1, binomials)  # P - t + (y, x)
        starts[t, m] = base_rank(members, m, t, -1, m, binomials) - (n - 1)  # P - t + x
        row = scratch.shared[t, first:]
        best = below.best[members[t], starts[t, m] + first :]
        for i in range(len(row)):
            row[i] = best[i]
    starts[m, 0] = base_rank(members, m, -1, -1, m, binomials)  # P
    starts[m, 1] = base_rank(members, m, -1, -1, m + 1, binomials) - (n - 1)  # P + x


@inlined
def _open_range(least: Floats, width: int) -> tuple[int, int]:
    """Return the range of x outside of which no set can pass."""
    low = 0
    high = width
    while low < high and least[low] == inf:
        low += 1
    while low < high and least[high - 1] == inf:
        high -= 1
    return low, high


@inlined
def _set_best_subset_scores(
    m: int, pair: int, width: int, below: Below, bounds: TermBounds, scratch: BoundScratch
) -> None:
    """Set the best score of the proper subsets of each child's parents, for every x."""
    starts = scratch.starts
    bests = scratch.best_subset_scores
    y = scratch.members[m]
    for t in range(m):
        row = bests[t]
        shared = scratch.shared[t]
        of_y = shared[y]
        of_x = shared[y + 1 :]
        for i in range(width):
            row[i] = max(of_y, of_x[i])
        for u in range(m):
            if u != t:
                _raise(row, below.best[scratch.members[t], starts[t, u] + pair :], width)
    rank = starts[m, 0]
    best_of_y = below.best[y]
    best_of_x = bounds.best[rank, y + 1 :]
    child_y = bests[m]
    child_x = bests[m + 1]
    for i in range(width):
        child_y[i] = best_of_y[rank]
        child_x[i] = best_of_x[i]
    for u in range(m):
        _raise(child_y, best_of_y[starts[u, m] + y + 1 :], width)
        _raise(child_x, bounds.best[starts[u, m] + y, y + 1 :], width)


@inlined
def _raise(row: Floats, others: Floats, width: int) -> None:
    """Raise each number of the row to the other number there, if that is larger."""
    for i in range(width):
        row[i] = max(row[i], others[i])


@inner
def _forbid(m: int, width: int, constraints: Constraints, scratch: BoundScratch) -> None:
    """Set the best subset scores of families that are not allowed to +inf: nothing beats that."""
    members = scratch.members
    for i in range(width):
        members[m + 1] = members[m] + 1 + i
        for t in range(m + 2):
            child = members[t]
            held = 0
            barred = m + 1 > constraints.limits[child]["most"]
            for u in range(m + 2):
                if u != t:
                    edge = constraints.edges[child, members[u]]
                    barred = barred or edge == FORBIDDEN
                    held += edge == REQUIRED
            if barred or held < constraints.limits[child]["required"]:
                scratch.best_subset_scores[t, i] = inf


@inlined
def _set_least_terms_of_all(m: int, width: int, scratch: BoundScratch) -> None:
    """Set the least best score of the children: where it is +inf, no child is left.

    Where the prior depends on the child, so does what the terms must exceed; `_set_gains_by_child`
    compares."""
    least = scratch.by_x[0]
    for i in range(width):
        least[i] = inf
    for t in range(m + 2):
        best = scratch.best_subset_scores[t]
        for i in range(width):
            least[i] = min(least[i], best[i])


@inner
def _set_least_terms(
    m: int,
    pair: int,
    width: int,
    rule: Rule,
    bounds: TermBounds,
    below: Below,
    scratch: BoundScratch,
) -> None:
    """Set what the terms of V must exceed for some child to gain; +inf where they cannot."""
    by_x = _rows(scratch.by_x)
    for i in range(width):
        by_x.least[i] = inf
        by_x.most[i] = inf
    free = rule.formula.penalty * rule.children[scratch.members[m]]["states"]
    for t in range(m):
        free *= rule.children[scratch.members[t]]["states"]
    for t in range(m + 1):
        _lower_to_terms_of(t, m, pair, width, free, rule, bounds, below, scratch)
    _lower_to_terms_of_x(m, width, free, rule, bounds, below, scratch)


@inlined
def _lower_to_terms_of(
    t: int,
    m: int,
    pair: int,
    width: int,
    free: float,
    rule: Rule,
    bounds: TermBounds,
    below: Below,
    scratch: BoundScratch,
) -> None:
    """Lower the least and the most terms to those by the child v_t, whose parents are V - v_t."""
    first = scratch.members[m] + 1
    child = scratch.members[t]
    parents = scratch.starts[t, t] + pair if t < m else scratch.starts[m, 1] + first
    terms = below.terms[rule.children[child]["column"], parents:]
    joint = below.terms[0, parents:]
    cells = below.cells[parents:]
    best = scratch.best_subset_scores[t]
    states = rule.children["states"][first:]
    by_x = _rows(scratch.by_x)
    ratio = bounds.children[RATIO, child]
    parameters = free * (1.0 - 1.0 / rule.children[child]["states"])
    for i in range(width):
        by_x.least[i] = min(by_x.least[i], best[i] + terms[i] + parameters * states[i])
        by_x.most[i] = min(by_x.most[i], joint[i] - cells[i] * ratio)


@inlined
def _lower_to_terms_of_x(
    m: int,
    width: int,
    free: float,
    rule: Rule,
    bounds: TermBounds,
    below: Below,
    scratch: BoundScratch,
) -> None:
    """Lower the least and the most terms to those by the child x, whose parents are P + {y}.

    It comes last: where the most terms do not exceed the least ones, these become +inf.
    """
    first = scratch.members[m] + 1
    parents = scratch.starts[m, 1] + first - 1
    joint = below.terms[0, parents]
    cells = below.cells[parents]
    best = scratch.best_subset_scores[m + 1]
    states = rule.children["states"][first:]
    columns = rule.children["column"][first:]
    ratios = bounds.children[RATIO, first:]
    by_x = _rows(scratch.by_x)
    for i in range(width):
        terms = below.terms[columns[i], parents]
        by_x.least[i] = min(by_x.least[i], best[i] + terms + free * (states[i] - 1.0))
        by_x.most[i] = min(by_x.most[i], joint - cells * ratios[i])
        if by_x.most[i] + bounds.rounding <= by_x.least[i]:
            by_x.least[i] = inf


@inlined
def _unpack(width: int, alone: int, bounds: TermBounds, scratch: BoundScratch) -> None:
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
    """Return the rows of `BoundScratch.by_x` by name; views cost nothing."""
    return ByX(numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5])


@inlined
def _most_terms(by_x: ByX, i: int, share: float, log_share: float) -> float:
    """Return the bound on the terms of V by its counts, with this share of the prior a cell."""
    most: float = by_x.m0[i] + by_x.m1[i] * share + by_x.n_cells[i] * log_share
    return most


@inlined
def _set_gains(m: int, width: int, rule: Rule, bounds: TermBounds, scratch: BoundScratch) -> None:
    """Set the most that a child can gain by V, by the bound of V by its counts, for every x."""
    first = scratch.members[m] + 1
    by_x = _rows(scratch.by_x)
    logs = bounds.children[LOG, first:]
    inverses = bounds.children[INVERSE, first:]
    share = rule.formula.prior
    log_share = log(share) if share > 0.0 else 0.0
    # If the prior is not divided among the cells, M1 is 0 and each cell has the whole of it.
    shared = 1.0 if rule.formula.spread == DECLARED and share > 0.0 else 0.0
    for t in range(m + 1):
        share *= bounds.children[INVERSE, scratch.members[t]]
        log_share -= shared * bounds.children[LOG, scratch.members[t]]
    for i in range(width):
        most = _most_terms(by_x, i, share * inverses[i], log_share - shared * logs[i])
        by_x.gain[i] = most - by_x.least[i]


@inner
def _set_gains_by_child(
    m: int,
    pair: int,
    width: int,
    rule: Rule,
    bounds: TermBounds,
    below: Below,
    scratch: BoundScratch,
) -> None:
    """Set the same where the prior depends on the child: the most that any child can gain."""
    by_x = _rows(scratch.by_x)
    free = rule.formula.penalty
    for t in range(m + 1):
        free *= rule.children[scratch.members[t]]["states"]
    for i in range(width):
        by_x.gain[i] = -inf
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
    scratch: BoundScratch,
) -> None:
    """Raise the gains to those of the child v_t, whose parents are V - v_t."""
    first = scratch.members[m] + 1
    child = scratch.members[t]
    parents = scratch.starts[t, t] + pair if t < m else scratch.starts[m, 1] + first
    terms = below.terms[0, parents:]
    cells = below.cells[parents:]
    best = scratch.best_subset_scores[t]
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
        by_x.gain[i] = max(by_x.gain[i], most - best[i] - terms[i] - costs * states[i])


@inlined
def _raise_to_gains_of_x(
    m: int,
    width: int,
    free: float,
    rule: Rule,
    bounds: TermBounds,
    below: Below,
    scratch: BoundScratch,
) -> None:
    """Raise the gains to those of the child x, whose parents are P + {y} for every x."""
    first = scratch.members[m] + 1
    parents = scratch.starts[m, 1] + first - 1
    terms = below.terms[0, parents]
    cells = below.cells[parents]
    best = scratch.best_subset_scores[m + 1]
    states = rule.children["states"][first:]
    logs = bounds.children[LOG, first:]
    inverses = bounds.children[INVERSE, first:]
    by_x = _rows(scratch.by_x)
    share = rule.formula.prior * bounds.by_cells[INVERSE, cells]
    log_share = log(rule.formula.prior) - bounds.by_cells[LOG, cells]
    for i in range(width):
        most = _most_terms(by_x, i, share * inverses[i], log_share - logs[i])
        by_x.gain[i] = max(by_x.gain[i], most - best[i] - terms - free * (states[i] - 1.0))


@inner
def _sum_rows(depth: int, y: int, column: int, stride: int, groups: Groups) -> None:
    """Set `sums`: a row of `stride` counts, from `column` on, for each group and state of y."""
    rows = groups.rows
    sums = groups.sums
    label = groups.label[depth]
    n_groups = groups.sizes[depth, 0]
    states = rows.start[y + 1] - rows.start[y]
    size_at = rows.start[-1] - column
    rare = rows.rare[rows.rare_start[y] : rows.rare_start[y + 1]]
    rare_state = rows.rare_state[rows.rare_start[y] : rows.rare_start[y + 1]]
    for i in range((n_groups + 1) * states * stride):
        sums[i] = 0
    for j in range(len(rare)):
        cell = np.int64(label[rare[j]]) * states + np.int64(rare_state[j])
        add(sums, cell * stride, rows.onehot, np.int64(rare[j]) * rows.pitch + column, stride)
    for g in range(1, n_groups + 1):
        commonest = ((g + 1) * states - 1) * stride
        move(sums, commonest, groups.total[depth], g * rows.pitch + column, stride)
        for q in range(1, states):
            other = commonest - q * stride
            if sums[other + size_at] > 0:
                subtract(sums, commonest, sums, other, stride)


@inner
def _split(depth: int, y: int, groups: Groups) -> None:
    """Split the groups at `depth` by y, into depth + 1."""
    rows = groups.rows
    column = rows.start[y + 1]
    states = column - rows.start[y]
    size_at = rows.start[-1] - column
    stride = (size_at + LANES) & -LANES
    _sum_rows(depth, y, column, stride, groups)
    sums = groups.sums
    new_label = groups.new_label
    fresh = 0
    alone = groups.sizes[depth, 1]
    for cell in range((groups.sizes[depth, 0] + 1) * states):
        size = sums[cell * stride + size_at]
        new_label[cell] = 0
        if cell >= states:  # rows of group 0 are alone already
            alone += size == 1
            if size > 1:
                fresh += 1
                new_label[cell] = fresh
                place = fresh * rows.pitch + column
                move(groups.total[depth + 1], place, sums, cell * stride, stride)
    groups.sizes[depth + 1, 0] = fresh
    groups.sizes[depth + 1, 1] = alone
    old = groups.label[depth]
    label = groups.label[depth + 1]
    codes = rows.codes[y]
    for row in range(len(label)):
        label[row] = new_label[np.uint64(old[row]) * np.uint64(states) + np.uint64(codes[row])]


@inlined
def _count_rows(
    m: int, first: int, last: int, groups: Groups, bounds: TermBounds, scratch: BoundScratch
) -> int:
    """Set the packed moments of P + {y, x} for x in first .. last-1.

    Returns the number of rows alone in their state of P + {y}."""
    rows = groups.rows
    columns = groups.columns
    y = scratch.members[m]
    column = rows.start[first]
    stride = (rows.start[-1] - column + LANES) & -LANES
    _sum_rows(m, y, column, stride, groups)
    alone = _sort_cells(m, rows.start[y + 1] - rows.start[y], rows.start[-1] - column, groups)
    _sum_columns(rows.start[last] - column, stride, groups, bounds)
    for x in range(first, last):
        total = 0
        for c in range(rows.start[x] - column, rows.start[x + 1] - column):
            total += columns[c]
        scratch.packed[x - y - 1] = total
    return int(alone)


@inlined
def _sort_cells(depth: int, states: int, size_at: int, groups: Groups) -> int:
    """List the cells of two rows and more by their size; return the number of rows alone."""
    number = groups.number
    stride = (size_at + LANES) & -LANES
    alone: int = groups.sizes[depth, 1]
    for kind in range(len(number)):
        number[kind] = 0
    for cell in range(states, (groups.sizes[depth, 0] + 1) * states):
        size = groups.sums[cell * stride + size_at]
        # without branches, which the processor could not predict
        kind = (size > 3) + (size > 7) + (size > 15)
        groups.cells_of[kind, number[kind]] = cell
        number[kind] += size > 1
        alone += size == 1
    return alone


@inlined
def _sum_columns(width: int, stride: int, groups: Groups, bounds: TermBounds) -> None:
    """Set the packed sum of each of `width` columns: the terms of its counts in all cells."""
    columns = groups.columns
    for c in range(width):
        columns[c] = 0
    for kind in range(len(groups.number)):
        n_rows = _pack(kind, stride, groups)
        table = bounds.table[bounds.start[kind] :]
        for j in range(n_rows):
            row = groups.indices[j * stride :]
            for c in range(width):
                columns[c] += table[row[c]]


@inlined
def _pack(kind: int, stride: int, groups: Groups) -> int:
    """Set the rows of indices, each of several rows of counts of this kind; return their number."""
    n_rows = 0
    room = 0
    for j in range(groups.number[kind]):
        counts = groups.cells_of[kind, j] * stride
        if room == 0:
            move(groups.indices, n_rows * stride, groups.sums, counts, stride)
            n_rows += 1
            room = len(COUNTS_AN_INDEX) - kind
        else:
            append(kind + 2, groups.indices, (n_rows - 1) * stride, groups.sums, counts, stride)
        room -= 1
    return n_rows


@inner
def _start_bits(n: int, m: int, below: Below, pairs: PairBits, scratch: BoundScratch) -> None:
    """Set the counts of P and of all P + {x}."""
    bits = pairs.bits
    members = scratch.members
    first = members[m - 1] + 1
    set_prefix_cells(members, m, below.binomials, bits)
    for mask in range(1 << m):
        size = popcount(mask) + 2  # of these members, y and x
        place = bits.start[size] + below.binomials[size, 0] - 1
        for t in range(m):
            if mask >> t & 1:
                place -= below.binomials[size, members[t] + 1]
                size -= 1
        pairs.of_p[mask] = bits.cells[mask]
        pairs.place[mask] = place
        cells = pairs.of_x[mask, first:]
        ones = bits.ones[bits.bases[mask] + first :]
        for i in range(n - first):
            cells[i] = ones[i]
    _make_exact(m, pairs.of_x[:, first:], n - first)


@inner
def _make_exact(m: int, cells: AnyArray, width: int) -> None:
    """Turn the counts of "all of mask are 1" into those of "exactly mask is 1", for every x."""
    for t in range(m):
        for mask in range(1 << m):
            if not mask >> t & 1:
                row = cells[mask]
                more = cells[mask | 1 << t]
                for i in range(width):
                    row[i] -= more[i]


@inner
def _count_bits(
    m: int,
    pair: int,
    low: int,
    high: int,
    pairs: PairBits,
    bounds: TermBounds,
    scratch: BoundScratch,
) -> None:
    """Set the packed moments of P + {y, x} for x = y + 1 + i with i in low .. high-1."""
    y = scratch.members[m]
    width = high - low
    table = bounds.table
    packed = scratch.packed[low:]
    _count_both(m, y, pair + low, y + 1 + low, width, pairs)
    for i in range(width):
        packed[i] = 0
    for mask in range(1 << m):
        with_x = pairs.of_x[mask, y + 1 + low :]
        with_both = pairs.of_both[mask]
        with_y = np.uint32(pairs.of_x[mask, y])
        without = np.uint32(pairs.of_p[mask]) - with_y
        for i in range(width):
            one = with_both[i]
            zero = with_x[i] - one
            packed[i] += table[one] + table[zero] + table[with_y - one] + table[without - zero]


@inlined
def _count_both(m: int, y: int, pair: int, first: int, width: int, pairs: PairBits) -> None:
    """Set the numbers of rows in which y and x are 1 for x = first, first + 1, ..., by mask."""
    bits = pairs.bits
    both = pairs.with_y
    all_ones = (1 << m) - 1
    for mask in range(all_ones):
        row = pairs.of_both[mask]
        ones = bits.ones[pairs.place[mask] + pair :]
        for i in range(width):
            row[i] = ones[i]
    for w in range(len(both)):
        both[w] = bits.prefix[m, w] & bits.rows[y, w]
    rows = bits.rows[first:]
    row = pairs.of_both[all_ones]
    for i in range(width):
        number = 0
        for w in range(len(both)):
            number += popcount(both[w] & rows[i, w])
        row[i] = number
    _make_exact(m, pairs.of_both, width)
