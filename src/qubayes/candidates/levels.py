"""Levels: level k scores all sets of k variables in blocks and fills the tables of level k + 1."""

from collections.abc import Sequence
from itertools import pairwise
from math import comb, log
from typing import NamedTuple

import numpy as np

from ..data.dataset import Dataset
from ..foundation.arrays import Floats, Ints, SmallInts
from ..foundation.families import VertexSet
from ..scores.score import DECLARED, EACH, OBSERVED, Score, local_score, rising
from ..scores.sums import SMALL_PRIOR, TermTables, term_tables
from . import bound_tables
from .bound_tables import Bounds, make_bounds, sets_to_judge
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
    Block,
    Constraints,
    Rule,
    make_visit,
    scan_prefixes,
)

# Candidate sets that a block has memory for; one that finds more is scanned again with more memory.
_FIRST_CAPACITY = 1 << 16


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
    # at the last level, where it pays: only the sets that may hold a candidate set are judged
    bounds: Bounds | None
    ones: SmallInts  # if rows are bits: rows in which all members are 1, for sets of 0, 1, ..., k-1

    @property
    def n(self) -> int:
        """Number of variables."""
        return len(self.rule.children)


class TablePart(NamedTuple):
    """The part of `Above` that one block fills, to be sent from another process."""

    first: int  # rank of its first set; the ranks of the others follow
    terms: Floats  # (classes, sets)
    cells: SmallInts  # (sets,)
    ones: SmallInts  # (sets,) if rows are bits
    where: Ints  # (sets * k,) places in `Above.best`, row by row
    best: Floats  # (sets * k,)

    def write(self, above: Above) -> None:
        """Write it to the tables of the level."""
        ranks = slice(self.first, self.first + len(self.cells))
        above.terms[:, ranks] = self.terms
        above.cells[ranks] = self.cells
        above.ones[ranks] = self.ones
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
    # Whether the prior of a state of the parents depends on the child.
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
    found = constraints_of(permitted)
    n = len(found.limits)
    every_edge = (found.edges == ALLOWED).sum() == n * (n - 1)
    one_limit = len(set(permitted.limits)) <= 1
    return None if every_edge and one_limit and not len(found.priors) else found


def constraints_of(permitted: Allowed) -> Constraints:
    """Return the prior knowledge in numbers."""
    n = len(permitted.limits)
    edges = np.full((n, n), ALLOWED, dtype=np.int8)
    for i in range(n):
        edges[i, list(permitted.excluded[i])] = FORBIDDEN
        edges[i, list(permitted.required[i])] = REQUIRED
    priors = permitted.prior_matrix()
    limits = np.zeros(n, LIMITS)
    limits["required"] = [len(parents) for parents in permitted.required]
    limits["most"] = permitted.limits
    limits["bonus"] = np.maximum(priors, 0.0).sum(axis=1)
    return Constraints(edges, limits, priors if priors.any() else np.zeros((0, 0)))


def start_level(rows: Rows, rule: Rule, constraints: Constraints | None, k_last: int) -> Level:
    """Return level 1: only the empty set is known below it."""
    n = len(rule.children)
    spread, count, _ = rule.formula
    priors = count * rule.class_states if spread == EACH else [count]
    binomials = np.empty((k_last + 2, n + 1), np.int64)
    for size in range(k_last + 2):
        binomials[size] = [comb(n - v, size) for v in range(n + 1)]
    below = Below(
        terms=np.array([[rising(rows.total, prior)] for prior in priors]),
        cells=np.ones(1, np.int32),
        best=np.zeros((n, 1)),
        binomials=binomials,
    )
    level = Level(
        k=1,
        heads=np.zeros((1, 0), np.int64),
        rows=rows,
        rule=rule,
        tables=term_tables(rule.formula, np.zeros(0), rows.total),
        constraints=constraints,
        below=below,
        bounds=None,
        ones=np.full(1, rows.total, np.int32),
    )
    return _with_tables(level)


def next_level(level: Level, above: Above) -> Level:
    """Return level k + 1, from the tables of level k."""
    k = level.k + 1
    below = Below(above.terms, above.cells, above.best, level.below.binomials)
    ones = np.concatenate([level.ones, above.ones])
    heads = extended(np.zeros((1, 0), np.int64), level.n, k, min(k - 1, 2)).astype(np.int64)
    return _with_tables(level._replace(k=k, heads=heads, below=below, ones=ones))


def with_bounds(level: Level) -> Level:
    """Return the level, which is the last one, with bounds on its sets, if they pay."""
    return make_bounded(level) if bounds_pay(level, level.k) else level


def make_bounded(level: Level) -> Level:
    """Return the level, which is the last one, with bounds; without where they need too much."""
    return level._replace(bounds=make_bounds(level.k, level.rows, level.rule, level.below.best))


def bounds_pay(level: Level, k: int) -> bool:
    """Return whether bounds pay at level k of the search of this level."""
    return bounds_exist(level, k) and bound_tables.pay(comb(level.n, k), level.rows)


def bounds_exist(level: Level, k: int) -> bool:
    """Return whether there are bounds at level k: none on scores with priors of edges."""
    has_priors = level.constraints is not None and len(level.constraints.priors) > 0
    return not has_priors and bound_tables.exist(k, level.rows, level.rule.formula)


def make_above(level: Level, *, last: bool) -> Above:
    """Return memory for the tables of the next level; none at the last level."""
    sets = 0 if last else comb(level.n, level.k)
    subsets = 0 if last else comb(level.n, level.k - 1)
    return Above(
        terms=np.empty((len(level.rule.class_states), sets)),
        cells=np.empty(sets, np.int32),
        best=np.empty((level.n, subsets)),
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
        return np.array([level.n])
    sets: Ints = level.below.binomials[level.k - length][level.heads[:, -1] + 1]
    return sets


def split(level: Level, sets_per_block: int) -> list[tuple[int, int]]:
    """Return ranges of heads of about equal work.

    They depend on the problem alone, never on the number of workers.
    """
    if len(level.heads) == 0:
        return []
    done = np.cumsum(sets_of_heads(level))
    cuts = np.searchsorted(done, np.arange(sets_per_block, int(done[-1]), sets_per_block)) + 1
    edges = np.unique(np.concatenate([[0], cuts, [len(done)]]))
    return [(int(a), int(b)) for a, b in pairwise(edges)]


def scan_block(
    shared: tuple[Level, Above], heads: tuple[int, int], *, capacity: int = _FIRST_CAPACITY
) -> Block:
    """Return the candidate sets among the sets that start with heads[0] .. heads[1]-1.

    The tables of the next level are filled for these sets.
    """
    level, above = shared
    k, rows = level.k, level.rows
    prefixes = prefixes_of(level, heads)
    visit = make_visit(k, level.n, rows)
    bits = bits_of(level) if rows.bits.shape[1] else None
    labels = make_labels(k, rows) if bits is None else None
    x_start = np.zeros(0, np.int64)
    xs = np.zeros(0, np.int32)
    if level.bounds is not None:
        x_start, xs, _ = sets_to_judge(
            prefixes, bits, level.rule, level.bounds, level.constraints, level.below
        )
    known = (level.rule, level.tables, level.constraints, level.below)
    while True:
        found = Block(np.empty((capacity, k), np.int32), np.empty(capacity))
        count = int(scan_prefixes(prefixes, x_start, xs, labels, bits, *known, above, found, visit))
        if count <= capacity:  # copies: the rest of the memory is free again
            return Block(found.families[:count].copy(), found.scores[:count].copy())
        capacity = count


def scan_block_elsewhere(level: Level, heads: tuple[int, int]) -> tuple[Block, TablePart]:
    """Return the candidate sets of a block, and the part of the tables that it fills (k >= 2)."""
    above = make_above(level, last=False)
    block = scan_block((level, above), heads)
    binomials = level.below.binomials
    sets = extended(level.heads[heads[0] : heads[1]], level.n, level.k, level.k).astype(np.int64)
    first = int(_ranks(sets[:1], binomials)[0])
    parents = [_ranks(np.delete(sets, t, axis=1), binomials) for t in range(level.k)]
    where = (sets * above.best.shape[1] + np.stack(parents, axis=1)).reshape(-1)
    ranks = slice(first, first + len(sets))
    part = TablePart(
        first=first,
        terms=above.terms[:, ranks],
        cells=above.cells[ranks],
        ones=above.ones[ranks],
        where=where,
        best=above.best.reshape(-1)[where],
    )
    return block, part


def _ranks(sets: Ints, binomials: Ints) -> Ints:
    """Return the lexicographic ranks of sets of one size, one in each row."""
    size = sets.shape[1]
    ranks = np.full(len(sets), binomials[size, 0] - 1)
    for j in range(size):
        ranks -= binomials[size - j][sets[:, j] + 1]
    return ranks


def bits_of(level: Level) -> Bits:
    """Return the rows of the level as bits, with memory for a thread."""
    start = np.concatenate([[0], np.cumsum(level.below.binomials[:, 0])])
    return make_bits(level.k, level.rows, level.ones, start)


def prefixes_of(level: Level, heads: tuple[int, int]) -> SmallInts:
    """Return the prefixes of the sets that start with heads[0] .. heads[1]-1, in order."""
    return extended(level.heads[heads[0] : heads[1]], level.n, level.k, level.k - 1)


def extended(heads: Ints, n: int, k: int, length: int) -> SmallInts:
    """Return (., length) first members of the sets of k variables with these heads, in order."""
    prefixes = heads
    for depth in range(heads.shape[1], length):
        first = prefixes[:, -1] + 1 if depth else np.zeros(1, np.int64)
        times = n - k + depth + 1 - first
        start = np.cumsum(times) - times
        more = np.arange(int(times.sum())) + np.repeat(first - start, times)
        prefixes = np.column_stack([np.repeat(prefixes, times, axis=0), more])
    return prefixes.astype(np.int32)
