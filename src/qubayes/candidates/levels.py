"""The levels of the search: which sets are visited together, and the tables that pass from one level to the next."""

from collections.abc import Sequence
from itertools import pairwise
from math import comb, log, prod
from typing import NamedTuple

import numpy as np

from ..data.dataset import Dataset
from ..foundation.arrays import Floats, Ints, SmallInts
from ..foundation.families import VertexSet
from ..foundation.jit import is_compiled
from ..foundation.words import LANES, aligned
from ..scores.score import DECLARED, EACH, OBSERVED, Formula, Score, local_score, rising
from ..scores.sums import SMALL_PRIOR, TermTables, term_row, term_tables
from .bounding import PACKED, Scratch, TermBounds, WideRows, find_sets
from .candidates import tolerance
from .counting import Bits, Rows, make_bits, make_labels
from .knowledge import Allowed
from .scanning import (
    ALLOWED,
    CHILD,
    FORBIDDEN,
    LIMITS,
    REQUIRED,
    Above,
    Below,
    Constraints,
    Found,
    Rule,
    make_visit,
)
from .scanning import scan as scan_prefixes

MOST_BOUNDED_ROWS = 60_000  # counts and indices of the table of bounds are 16-bit integers
_MOST_BYTES = 1 << 28  # bytes of one-hot rows, and of each array of a thread
_SECONDS_A_ROW, _SECONDS_A_WORD = 1.5e-9, 8e-9  # and set, of the exact count by rows and by bits
# seconds of exact counting that make it worth loading, and compiling, the bounds
_TO_LOAD, _TO_COMPILE = 0.3, 5.0
# candidates of a block; a block that finds more is scanned again with room for all
_FIRST_CAPACITY = 1 << 16


class Bounds(NamedTuple):
    """What bounds the sets of the last level."""

    wide: WideRows | None  # None: rows are bits
    terms: TermBounds
    # most groups of a P; most pairs of a group and a state; most index rows
    groups: tuple[int, int, int]


class Level(NamedTuple):
    """Everything that a block of level k needs."""

    k: int
    # (heads, 0, 1 or 2) first members of sets, lexicographic; a prefix has the first k - 1
    heads: Ints
    rows: Rows
    rule: Rule
    tables: TermTables
    constraints: Constraints | None
    below: Below
    # if only the sets that may hold a candidate are judged: at the last level, where it pays
    bounds: Bounds | None
    ones: SmallInts  # if rows are bits: rows in which all members are 1, for sets of 0, 1, ..., k-1


class Block(NamedTuple):
    """Candidates of one block of a level."""

    child: SmallInts  # (found,)
    parents: SmallInts  # (found, k-1)
    score: Floats  # (found,)

    def fits(self, n: int, k: int) -> bool:
        """Return whether the block holds sets of k-1 parents among n vertices, ascending, without their child."""
        child, parents = self.child, self.parents
        return (
            parents.shape[1] == k - 1
            and bool(((child >= 0) & (child < n)).all() and ((parents >= 0) & (parents < n)).all())
            and bool((np.diff(parents, axis=1) > 0).all() and (parents != child[:, None]).all())
            and bool(np.isfinite(self.score).all())
        )


class Left(NamedTuple):
    """What one block leaves for the next level, where it was scanned in another process."""

    first: int  # rank of its first set; the ranks of the others follow
    terms: Floats  # (classes, sets)
    cells: SmallInts  # (sets,)
    ones: SmallInts  # (sets,) if rows are bits
    where: Ints  # (sets * k,) places in `Above.best`, row by row
    best: Floats  # (sets * k,)

    def write(self, above: Above) -> None:
        """Write it to the tables of the level."""
        ranks = slice(self.first, self.first + len(self.cells))
        above.terms[:, ranks], above.cells[ranks], above.ones[ranks] = (
            self.terms,
            self.cells,
            self.ones,
        )
        above.best.reshape(-1)[self.where] = self.best


def prepare_rule(
    dataset: Dataset,
    rows: Rows,
    score: Score,
    required: Sequence[VertexSet],
    children: Sequence[int] | None = None,
) -> Rule:
    """Return the score in numbers; `required` has the required parents of each vertex.

    With `children` only these may have parents.
    """
    formula = score.formula(dataset.rows)
    states = dataset.arities.astype(float)
    in_prior = rows.observed.astype(float) if formula.spread == OBSERVED else states
    # whether the parents' prior depends on the child
    by_child = formula.spread == EACH and formula.prior > 0
    classes, place = np.unique(states if by_child else np.ones(dataset.n), return_inverse=True)
    records = np.zeros(dataset.n, CHILD)
    records["states"] = states
    records["prior_states"] = in_prior
    records["column"] = place
    if formula.prior > 0:
        records["cell_bound"] = [log(arity) for arity in in_prior.tolist()]
    for i in range(dataset.n) if children is None else children:
        records[i]["margin"] = tolerance(local_score(dataset, i, required[i], score), dataset.rows)
    return Rule(formula, records, classes)


def prepare_constraints(permitted: Allowed) -> Constraints | None:
    """Return the prior knowledge in numbers; None if every set is allowed."""
    n = len(permitted.limits)
    edges = np.full((n, n), ALLOWED, dtype=np.int8)
    for i in range(n):
        edges[i, list(permitted.excluded[i])] = FORBIDDEN
        edges[i, list(permitted.required[i])] = REQUIRED
    priors = permitted.prior_matrix()
    if (
        (edges == ALLOWED).sum() == n * (n - 1)
        and len(set(permitted.limits)) <= 1
        and not priors.any()
    ):
        return None
    limits = np.zeros(n, LIMITS)
    limits["required"] = [len(parents) for parents in permitted.required]
    limits["most"] = permitted.limits
    limits["bonus"] = np.maximum(priors, 0.0).sum(axis=1)
    return Constraints(edges, limits, priors if priors.any() else np.zeros((0, 0)))


def start_level(rows: Rows, rule: Rule, constraints: Constraints | None, k_last: int) -> Level:
    """Return level 1: only the empty set is known below it."""
    n, (spread, count, _) = len(rule.children), rule.formula
    priors = count * rule.class_states if spread == EACH else [count]
    below = Below(
        terms=np.array([[rising(rows.total, prior)] for prior in priors]),
        cells=np.ones(1, np.int32),
        best=np.zeros((n, 1)),
        binomials=np.array(
            [[comb(n - v, s) for v in range(n + 1)] for s in range(k_last + 2)], np.int64
        ),
    )
    ones = np.full(1, rows.total, np.int32)
    tables = term_tables(rule.formula, np.zeros(0), rows.total)
    return _with_tables(
        Level(1, np.zeros((1, 0), np.int64), rows, rule, tables, constraints, below, None, ones)
    )


def next_level(level: Level, above: Above) -> Level:
    """Return level k + 1, from what level k left."""
    k, n = level.k + 1, len(level.rule.children)
    below = Below(above.terms, above.cells, above.best, level.below.binomials)
    ones = np.concatenate([level.ones, above.ones])
    heads = _extended(np.zeros((1, 0), np.int64), n, k, min(k - 1, 2)).astype(np.int64)
    return _with_tables(level._replace(k=k, heads=heads, below=below, ones=ones))


def with_bounds(level: Level) -> Level:
    """Return the level, which is the last one, with bounds on its sets, if they pay."""
    if not bounds_pay(level, level.k):
        return level
    return level._replace(bounds=make_bounds(level.k, level.rows, level.rule, level.below.best))


def bounds_pay(level: Level, k: int) -> bool:
    """Return whether bounds pay at level k of the search of this level. Priors of edges have none."""
    if level.constraints is not None and len(level.constraints.priors) > 0:
        return False
    return pays(k, comb(len(level.rule.children), k), level.rows, level.rule.formula)


def make_above(level: Level, *, last: bool) -> Above:
    """Return memory for what the level leaves; none at the last level."""
    n, k = len(level.rule.children), level.k
    sets, subsets = (0, 0) if last else (comb(n, k), comb(n, k - 1))
    return Above(
        terms=np.empty((len(level.rule.class_states), sets)),
        cells=np.empty(sets, np.int32),
        best=np.empty((n, subsets)),
        ones=np.empty(sets if level.rows.bits.shape[1] else 0, np.int32),
    )


def _with_tables(level: Level) -> Level:
    """Return the level with the terms of every prior that its families use."""
    formula, children = level.rule.formula, level.rule.children
    keys = np.ones(1)
    if formula.spread == DECLARED:
        for _ in range(level.k):
            keys = np.unique(np.outer(keys, np.unique(children["states"])))
            keys = keys[keys * SMALL_PRIOR <= formula.prior]
    elif formula.spread == OBSERVED:
        keys = np.unique(np.outer(np.unique(level.below.cells), np.unique(level.rows.observed)))
    return level._replace(tables=term_tables(formula, keys, level.rows.total))


def sets_of_heads(level: Level) -> Ints:
    """Return the number of sets of the level that start with each head."""
    length = level.heads.shape[1]
    if length == 0:
        return np.array([len(level.rule.children)])
    sets: Ints = level.below.binomials[level.k - length][level.heads[:, -1] + 1]
    return sets


def split(level: Level, sets_per_block: int) -> list[tuple[int, int]]:
    """Return ranges of heads of about equal work. They depend on the problem alone, never on the number of workers."""
    if len(level.heads) == 0:
        return []
    done = np.cumsum(sets_of_heads(level))
    cuts = np.searchsorted(done, np.arange(sets_per_block, int(done[-1]), sets_per_block)) + 1
    edges = np.unique(np.concatenate([[0], cuts, [len(done)]]))
    return [(int(a), int(b)) for a, b in pairwise(edges)]


def scan(shared: tuple[Level, Above], heads: tuple[int, int]) -> Block:
    """Return the candidates among the sets of the level that start with heads[0] .. heads[1]-1."""
    level, above = shared
    k, n, rows, capacity = level.k, len(level.rule.children), level.rows, _FIRST_CAPACITY
    prefixes, visit = (
        _extended(level.heads[heads[0] : heads[1]], n, k, k - 1),
        make_visit(k, n, rows),
    )
    labels, bits = None, None
    if rows.bits.shape[1]:
        start = np.concatenate([[0], np.cumsum(level.below.binomials[:, 0])])
        bits = make_bits(k, rows, level.ones, start)
    else:
        labels = make_labels(k, rows)
    x_start, xs = np.zeros(0, np.int64), np.zeros(0, np.int32)
    if level.bounds is not None:
        x_start, xs = sets_to_judge(
            prefixes, n, rows, bits, level.rule, level.bounds, level.constraints, level.below
        )
    inputs = (
        prefixes,
        x_start,
        xs,
        labels,
        bits,
        level.rule,
        level.tables,
        level.constraints,
        level.below,
        above,
    )
    while True:
        found = Found(np.empty((capacity, k), np.int32), np.empty(capacity))
        count = int(scan_prefixes(*inputs, found, visit))
        if count <= capacity:
            families = found.families[:count].copy()  # the rest of the memory is free again
            return Block(families[:, 0], families[:, 1:], found.scores[:count].copy())
        capacity = count


def scan_apart(level: Level, heads: tuple[int, int]) -> tuple[Block, Left]:
    """Return the candidates of a block, as `scan` does, and what it leaves for the next level (k is 2 or more)."""
    above, k, n = make_above(level, last=False), level.k, len(level.rule.children)
    block = scan((level, above), heads)
    sets = _extended(level.heads[heads[0] : heads[1]], n, k, k).astype(np.int64)
    first, binomials = int(_ranks(sets[:1], level.below.binomials)[0]), level.below.binomials
    parents = [_ranks(np.delete(sets, t, axis=1), binomials) for t in range(k)]
    where = (sets * above.best.shape[1] + np.stack(parents, axis=1)).reshape(-1)
    ranks = slice(first, first + len(sets))
    return block, Left(
        first,
        above.terms[:, ranks],
        above.cells[ranks],
        above.ones[ranks],
        where,
        above.best.reshape(-1)[where],
    )


def _ranks(sets: Ints, binomials: Ints) -> Ints:
    """Return the lexicographic ranks of sets of one size, one in each row."""
    size = sets.shape[1]
    ranks = np.full(len(sets), binomials[size, 0] - 1)
    for j in range(size):
        ranks -= binomials[size - j][sets[:, j] + 1]
    return ranks


def _extended(heads: Ints, n: int, k: int, length: int) -> SmallInts:
    """(., length) the first `length` members of the sets of k variables that start with these heads, in order."""
    prefixes = heads
    for depth in range(heads.shape[1], length):
        first = prefixes[:, -1] + 1 if depth else np.zeros(1, np.int64)
        times = n - k + depth + 1 - first
        start = np.cumsum(times) - times
        more = np.arange(int(times.sum())) + np.repeat(first - start, times)
        prefixes = np.column_stack([np.repeat(prefixes, times, axis=0), more])
    return prefixes.astype(np.int32)


def pays(k: int, sets: int, rows: Rows, formula: Formula) -> bool:
    """Return whether bounds save more time than it takes to compile or load their kernel."""
    if k < 3 or rows.total > MOST_BOUNDED_ROWS or (formula.prior == 0.0 and formula.penalty == 0.0):
        return False  # with a score that prices nothing every set is a candidate
    words = rows.bits.shape[1]
    seconds = sets * (words * _SECONDS_A_WORD if words else rows.codes.shape[1] * _SECONDS_A_ROW)
    if seconds <= _TO_LOAD:
        return False
    return seconds > _TO_COMPILE or is_compiled(find_sets)


def make_bounds(k: int, rows: Rows, rule: Rule, best: Floats) -> Bounds | None:
    """Return the bounds for the sets of k variables; None where they would take too much memory."""
    n_rows, most = rows.codes.shape[1], np.sort(rows.observed)[:-k:-1].tolist()  # the k - 1 largest
    # a group has a weight of two or more
    most_groups = n_rows if len(rows.weights) else n_rows // 2
    groups = min(prod(most), most_groups)
    # any of them may be y
    pairs = max((min(prod(most) // states, most_groups) + 1) * states for states in most)
    pitch = int(rows.observed.sum()) + 1 + 2 * LANES
    if not rows.bits.shape[1]:
        widest = max(n_rows, k * (groups + 1), pairs + 1)
        if 2 * pitch * widest > _MOST_BYTES:
            return None
    wide = None if rows.bits.shape[1] else _wide_rows(rows)
    return Bounds(wide, _term_bounds(k, rows, rule, best), (groups, pairs, min(n_rows, pairs) + 1))


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
    return WideRows(
        codes, onehot.reshape(-1), onehot.shape[1], start, np.concatenate(rare), states, rare_start
    )


def _term_bounds(k: int, rows: Rows, rule: Rule, best: Floats) -> TermBounds:
    """Return the table of packed terms and what else the bounds need."""
    (spread, prior, _), total, counts = rule.formula, rows.total, np.arange(rows.total + 1)
    exact = prior == 0.0 or spread == EACH  # the prior is the same for all sets: no M1 is needed
    m1 = np.zeros(total + 1)
    if prior == 0.0:
        m0 = counts * np.log(np.maximum(counts, 1))
    else:  # lnΓ(c + s) − lnΓ(1 + s), with s = 0 where the prior is not the same for all sets
        m0 = np.append(0.0, term_row(total, 1.0 + (prior if exact else 0.0)))
    if not exact:
        m1[2:] = np.cumsum(1.0 / np.arange(1, total))
    n_bits = total.bit_length()
    m1_bits = 0 if exact else n_bits + 5  # the sum of M1 is at most N / 2, in units of 1/32
    units = (2.0 ** (n_bits + m1_bits + int(np.ceil(np.log2(m0[-1] + 2))) - 62), 1 / 32)
    packed = np.ceil(m0 / units[0]).astype(np.int64) << (n_bits + m1_bits)
    packed += (np.ceil(m1 / units[1]).astype(np.int64) << n_bits) + (counts > 0)
    parts, start = [packed], np.zeros(len(PACKED), np.int64)
    for kind, together in enumerate(PACKED[:-1]):  # then the sums of several small counts
        small, several = np.resize(packed[: 4 << kind], 4 << kind), np.zeros(1, np.int64)
        for _ in range(together):
            several = np.add.outer(several, small).ravel()
        start[kind] = sum(map(len, parts))
        parts.append(several)
    states = rule.children["prior_states"]
    ratios = np.zeros_like(states) if exact else np.log(states)
    largest = 0.0  # of |log of a prior|
    if prior > 0.0:
        largest = abs(np.log(prior)) + np.log(np.sort(states)[-k:]).sum() + np.log(total)
        ratios = np.full_like(states, np.log(rule.class_states[0])) if spread == EACH else ratios
    rounding = 2.0**-40 * total * (np.log(total + 1.0 + prior) + largest + 1.0)
    children, cells = np.array([np.log(states), 1 / states, ratios]), np.maximum(counts, 1)
    by_cells = np.array([np.log(cells), 1 / cells])
    widths, best = np.array([n_bits, m1_bits]), np.ascontiguousarray(best.T)
    return TermBounds(
        np.concatenate(parts), start, widths, np.array(units), rounding, children, by_cells, best
    )


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
        cells_of=ints(len(PACKED), pairs + 1),
        number=ints(len(PACKED)),
        columns=ints(pitch),
        packed=ints(n),
        members=ints(k),
        starts=ints(k, k),
        shared=np.zeros((k, n)),
        best_subset_scores=np.zeros((k, n)),
        by_x=np.zeros((6, n)),
        cells=np.zeros((2, subsets if wide is None else 0, n), np.uint32),
        masks=ints(2, subsets),
        both=np.zeros(rows.bits.shape[1], np.uint64),
    )
    scratch.groups[0, 0] = 1
    if wide:
        scratch.total[0, wide.pitch : 2 * wide.pitch] = wide.onehot.reshape(n_rows, wide.pitch).sum(
            axis=0
        )
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
    find_sets(
        prefixes, bounds.wide, bits, rule, bounds.terms, constraints, below, scratch, x_start, xs
    )
    return x_start, xs
