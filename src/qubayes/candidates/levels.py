"""The levels of the search: which sets are visited together, and the tables that pass from one level to the next."""

from functools import lru_cache
from itertools import pairwise
from math import comb
from typing import NamedTuple

import numpy as np

from ..foundation.arrays import Floats, Ints, SmallInts
from ..scores.score import rising
from .counting import make_bits, make_scratch
from .scanning import make_visit
from .scanning import scan as scan_heads
from .tables import BDEU, BDS, K2, LIKELIHOOD, Above, Below, Constraints, Found, Labels, Rows, Rule
from .terms import SERIES, SMALL_PRIOR, TABLE_WIDTH

_MOST_TABLE_ROWS = 1 << 14  # 128 MB; priors beyond these are computed on the fly
_FIRST_CAPACITY = 1 << 14  # candidates of a block; a block that finds more is scanned again with room for all


class Level(NamedTuple):
    """Everything that a block of level k needs."""

    k: int
    heads: Ints  # (heads, 0, 1 or 2) the first members of the sets, in lexicographic order
    rows: Rows
    rule: Rule
    constraints: Constraints | None
    below: Below


class Block(NamedTuple):
    """Candidates of one block of a level."""

    child: SmallInts  # (found,)
    parents: SmallInts  # (found, k-1)
    score: Floats  # (found,)


def start_level(rows: Rows, rule: Rule, constraints: Constraints | None, k_last: int) -> Level:
    """Level 1: only the empty set is known below it."""
    n = len(rule.declared)
    sizes = np.array([comb(n, s) for s in range(k_last + 2)], dtype=np.int64)
    drop = np.array([[comb(n - 1 - v, s) if v < n else 0 for v in range(n + 1)] for s in range(k_last + 2)], np.int64)
    priors = {BDEU: [rule.ess], BDS: [rule.ess], LIKELIHOOD: [0.0]}.get(rule.kind, rule.class_arity)
    below = Below(
        terms=np.array([[rising(rows.total, prior) for prior in priors]]),
        cells=np.ones(1, np.int32),
        best=np.zeros((n, 1)),
        ones=np.full(1, rows.total, np.int32),
        drop=drop,
        sizes=sizes,
        ones_start=np.concatenate([[0], np.cumsum(sizes[:-1])]).astype(np.int64),
        keys=np.zeros(0),
        table=np.zeros((0, 0)),
        series=_series(min(rows.total, TABLE_WIDTH - 1) + 1),
    )
    return _with_table(Level(1, _heads(n, 1), rows, rule, constraints, below))


def next_level(level: Level, above: Above) -> Level:
    """Level k + 1, from what level k left."""
    below = level.below._replace(
        terms=above.terms,
        cells=above.cells,
        best=above.best,
        ones=np.concatenate([level.below.ones, above.ones]) if len(above.ones) else level.below.ones,
    )
    k = level.k + 1
    return _with_table(level._replace(k=k, heads=_heads(len(level.rule.declared), k), below=below))


def make_above(level: Level, *, last: bool) -> Above:
    """Room for what the level leaves; none at the last level."""
    n, k = len(level.rule.declared), level.k
    if last:
        return Above(np.zeros((0, 1)), np.zeros(0, np.int32), np.zeros((n, 0)), np.zeros(0, np.int32))
    sets = comb(n, k)
    binary = level.rows.bits.shape[1] > 0
    return Above(
        terms=np.empty((sets, len(level.rule.class_arity))),
        cells=np.empty(sets, np.int32),
        best=np.empty((n, comb(n, k - 1))),
        ones=np.empty(sets if binary else 0, np.int32),
    )


def _with_table(level: Level) -> Level:
    """The level with the log-gamma terms of every prior above SMALL_PRIOR that its families use."""
    rule, keys = level.rule, _keys(level)
    keys = keys[keys * SMALL_PRIOR <= rule.ess][:_MOST_TABLE_ROWS]
    priors = {K2: [1.0], LIKELIHOOD: [0.0]}.get(rule.kind, rule.ess / keys)
    width = len(level.below.series)
    table = np.array([_rising_row(width, float(prior)) for prior in priors]).reshape(len(priors), width)
    return level._replace(below=level.below._replace(keys=keys, table=table))


def _keys(level: Level) -> Floats:
    """ess / prior of the terms of the level, ascending."""
    rule = level.rule
    if rule.kind == BDEU:
        products = np.ones(1)
        for _ in range(level.k):
            products = np.unique(np.outer(products, np.unique(rule.declared)))
            products = products[products * SMALL_PRIOR <= rule.ess]
        return products
    if rule.kind == BDS:
        return np.unique(np.outer(np.unique(level.below.cells), np.unique(rule.arities)))
    return np.zeros(0)


def _series(width: int) -> Floats:
    """series[c, p]: coefficient of s^p in Σ_{0<j<c} log(j + s), as log(j + s) = log j − Σ_p (−s/j)^p / p."""
    j = np.arange(1, width - 1, dtype=float)
    terms = np.zeros((width, SERIES))
    terms[2:, 0] = np.log(j)
    for p in range(1, SERIES):
        terms[2:, p] = (-1) ** (p + 1) / (p * j**p)
    return np.cumsum(terms, axis=0)


@lru_cache(maxsize=1024)  # levels ask for the same rows again
def _rising_row(width: int, prior: float) -> Floats:
    """(width,) `rising` of the counts 0, 1, ..."""
    return np.array([rising(count, prior) for count in range(width)])


def _heads(n: int, k: int) -> Ints:
    if k == 1:
        return np.zeros((1, 0), np.int64)
    if k == 2:
        return np.arange(n - 1).reshape(-1, 1)
    return np.stack(np.triu_indices(n - k + 2, 1), axis=1).astype(np.int64)


def sets_of_heads(level: Level) -> Ints:
    """How many sets of the level start with each head."""
    n, length = len(level.rule.declared), level.heads.shape[1]
    if length == 0:
        return np.array([n])
    sets: Ints = level.below.drop[level.k - length][level.heads[:, -1]]
    return sets


def split(level: Level, sets_per_block: int) -> list[tuple[int, int]]:
    """Ranges of heads of about equal work. They depend on the problem alone, never on the number of workers."""
    if len(level.heads) == 0:
        return []
    done = np.cumsum(sets_of_heads(level))
    cuts = np.searchsorted(done, np.arange(sets_per_block, int(done[-1]), sets_per_block)) + 1
    edges = np.unique(np.concatenate([[0], cuts, [len(done)]]))
    return [(int(a), int(b)) for a, b in pairwise(edges)]


def scan(level: Level, above: Above, heads: tuple[int, int]) -> Block:
    """The candidates among the sets that start with heads[0] .. heads[1]-1."""
    chosen = level.heads[heads[0] : heads[1]]
    k, rows, capacity = level.k, level.rows, _FIRST_CAPACITY
    labels, bits = Labels(rows.codes, rows.observed, rows.weights, rows.merged), make_bits(k, rows)
    scratch, visit = make_scratch(k, rows, most_cells(level)), make_visit(k, len(level.rule.declared))
    while True:
        found = Found(
            np.empty(capacity, np.int32), np.empty((capacity, max(1, level.k - 1)), np.int32), np.empty(capacity)
        )
        count = int(
            scan_heads(
                k, chosen, labels, bits, level.rule, level.constraints, level.below, above, found, scratch, visit
            )
        )
        if count <= capacity:
            return Block(found.child[:count], found.parents[:count, : level.k - 1], found.score[:count])
        capacity = count


def most_cells(level: Level) -> int:
    """An upper bound of the states of a prefix of k-1 variables times the states of one more."""
    largest = np.sort(level.rows.observed)[::-1].tolist()
    cells = 1
    for states in largest[: level.k - 1]:
        cells = min(cells * states, int(level.rows.codes.shape[1]))
    return max(1, cells) * int(largest[0])


def concatenate(blocks: list[Block], width: int) -> Block:
    """All blocks as one, parents padded to `width` with -1."""
    parents = [np.pad(b.parents, ((0, 0), (0, width - b.parents.shape[1])), constant_values=-1) for b in blocks]
    return Block(
        np.concatenate([b.child for b in blocks]), np.concatenate(parents), np.concatenate([b.score for b in blocks])
    )
