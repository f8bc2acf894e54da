"""Scores of pairs of parents, to find the partners of a single parent among all variables.

For each pair of a child and one of its best single parents, every other variable is scored as a
second parent. The rows of a cell are summed as one-hot vectors, which gives the counts of all
variables at once.

These scores rank partners only. In a term lnΓ(c + s) − lnΓ(s) = log s + Σ_{0<t<c} log(t + s) the
sum is taken to first order around the prior s of a family of average arities. That is exact where
all families have this prior; otherwise the error of a cell is below 0.83 times the square of the
difference of the priors, since Σ 1/t² < 1.65. The ranking is good where the prior of a cell is of
the order of 1 or less."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..foundation.arrays import AnyArray, Floats, Ints
from ..foundation.jit import inner, kernel
from ..scores.score import OBSERVED, Formula, priors

PARTNERS = 2  # of each single parent
MOST_SAMPLED_ROWS = 10_000  # partners are ranked on at most this number of rows, drawn at random
_BLOCK_COUNTS = 1 << 19  # of a block of one-hot rows: 1 MB stays in the cache of a core
TERM, SLOPE, SEEN = range(3)  # columns of a table of terms, and of sums of terms


class Pairs(NamedTuple):
    """The data in the form in which all pairs are scored, and the score."""

    codes: AnyArray  # (n, rows) observed states, numbered from 0
    kinds: Ints  # (n, 2) numbers of declared and of observed states
    formula: Formula
    weight: float = 1.0  # rows of the data for each of these rows
    times: Ints | None = None  # (rows,) how often each row counts, if not once

    @property
    def total(self) -> int:
        """Number of rows, each as often as it counts."""
        return self.codes.shape[1] if self.times is None else int(self.times.sum())

    @property
    def sample(self) -> "Pairs":
        """The same with at most MOST_SAMPLED_ROWS rows, drawn: every k-th would hide periods."""
        return self.sample_of(MOST_SAMPLED_ROWS)

    def sample_of(self, most: int) -> "Pairs":
        """Return the same with at most this number of rows, each of which counts once."""
        rows = self.total
        if rows <= most and self.times is None:
            return self
        drawn = np.arange(rows)
        if rows > most:
            drawn = np.sort(np.random.default_rng(0).choice(rows, most, replace=False))
        if self.times is not None:
            drawn = np.searchsorted(np.cumsum(self.times), drawn, side="right")
        codes = np.ascontiguousarray(self.codes[:, drawn])
        return self._replace(codes=codes, weight=rows / len(drawn), times=None)


def partner_scores(pairs: Pairs, children: Ints, singles: Ints) -> Floats:
    """Return (children, singles, n) scores of a child with a single parent and each other variable.

    Of a sample of rows, the terms are multiplied by its weight: penalties, and priors of edges, are
    those of all rows. The children have the same numbers of declared and of observed states;
    `singles` is (children, singles). Entries of the child itself and of the single parent mean
    nothing."""
    n, rows = pairs.codes.shape
    formula = pairs.formula
    observed = formula.spread == OBSERVED
    states, seen = pairs.kinds[children[0]].tolist()
    child_states = seen if observed else states
    reference = priors(formula, _usual_joint_states(pairs), child_states)
    tables = _tables(rows, reference)
    order, starts = _sorted_rows(pairs, children, singles, seen)
    scores = np.empty((len(order), n))
    single_states = pairs.kinds[singles.reshape(-1), 0][:, None].astype(float)
    for block in _blocks(pairs.kinds[:, 1] - 1, rows):
        sums = _sums_of_block(pairs, block, order, starts, seen, tables)
        declared = single_states * pairs.kinds[block, 0]
        joint: Any = np.maximum(sums[:, :, 1, SEEN], 1.0) if observed else declared
        per_cell, per_joint = priors(formula, joint, child_states)
        scores[:, block] = _sum_at(per_cell, reference[0], sums[:, :, 0])
        scores[:, block] -= _sum_at(per_joint, reference[1], sums[:, :, 1])
        scores[:, block] *= pairs.weight
        scores[:, block] -= formula.penalty * (states - 1) * declared
    return scores.reshape(*singles.shape, n)


def _sums_of_block(
    pairs: Pairs, block: Ints, order: AnyArray, starts: Ints, seen: int, tables: Floats
) -> Floats:
    """Return (pairs, variables, 2, 3) sums of terms with each variable of the block."""
    hot, first = _one_hot(pairs, block)
    sums = np.zeros((len(order), len(block), 2, 3))
    scratch = np.empty((2, hot.shape[1]), np.uint16)
    sum_terms_of_pairs(order, starts, seen, hot, first, tables, scratch, sums)
    return sums


def _usual_joint_states(pairs: Pairs) -> float:
    """Return the number of joint states of two parents of average (geometric mean) states."""
    numbers = pairs.kinds[:, 1 if pairs.formula.spread == OBSERVED else 0]
    return float(np.exp(2.0 * np.log(numbers).mean()))


def _sum_at(prior: Any, reference: float, sums: Floats) -> Floats:
    """Return the sum of the terms with this prior, from sums with the reference."""
    if reference == 0.0:
        return sums[..., TERM]
    found: Floats = (
        sums[..., TERM] + np.log(prior) * sums[..., SEEN] + (prior - reference) * sums[..., SLOPE]
    )
    return found


def _tables(rows: int, reference: tuple[float, float]) -> Floats:
    """Return (2, rows + 1, 3) terms of each count, for cells and for states of the parents."""
    tables = np.zeros((2, rows + 1, 3))
    counts = np.arange(1.0, rows + 1.0)
    for table, prior in zip(tables, reference, strict=True):
        table[1:, SEEN] = 1.0
        if prior == 0.0:
            table[1:, TERM] = counts * np.log(counts)
        else:
            table[2:, TERM] = np.cumsum(np.log(counts[:-1] + prior))
            table[2:, SLOPE] = np.cumsum(1.0 / (counts[:-1] + prior))
    return tables


def _sorted_rows(pairs: Pairs, children: Ints, singles: Ints, seen: int) -> tuple[AnyArray, Ints]:
    """Return (pairs, rows) rows sorted by cell, the states of single parent and child.

    And (pairs, cells + 1) where each cell begins.
    """
    rows = pairs.codes.shape[1]
    cells = int(pairs.kinds[singles, 1].max()) * seen
    order = np.empty((singles.size, rows), np.int32)
    starts = np.zeros((singles.size, cells + 1), np.int64)
    owners = np.repeat(children, singles.shape[1])
    for place, (child, single) in enumerate(zip(owners, singles.flat, strict=True)):
        cell = pairs.codes[single].astype(np.int64) * seen + pairs.codes[child]
        order[place] = np.argsort(cell, kind="stable")
        np.cumsum(np.bincount(cell, minlength=cells), out=starts[place, 1:])
    return order, starts


def _blocks(columns: Ints, rows: int) -> list[Ints]:
    """Return blocks of variables whose one-hot columns fit the cache."""
    place = np.cumsum(columns) // max(1, _BLOCK_COUNTS // max(rows, 1))
    return [np.flatnonzero(place == number) for number in np.unique(place)]


def _one_hot(pairs: Pairs, block: Ints) -> tuple[AnyArray, Ints]:
    """Return (rows, columns) 1 where a variable of the block has the state of the column.

    And (variables + 1) first columns. The first state of a variable has no column: its count
    follows from the others.
    """
    columns = pairs.kinds[block, 1] - 1
    first = np.concatenate(([0], np.cumsum(columns)))
    state = np.arange(1, first[-1] + 1) - np.repeat(first[:-1], columns)
    hot = pairs.codes[np.repeat(block, columns)] == state[:, None]
    return np.ascontiguousarray(hot.T, dtype=np.uint16), first


@kernel
def sum_terms_of_pairs(
    order: AnyArray,
    starts: Ints,
    seen: int,
    hot: AnyArray,
    first: Ints,
    tables: Floats,
    scratch: AnyArray,
    sums: Floats,
) -> None:
    """Add to `sums` (pairs, variables, 2, 3) the terms of all cells, and of all parents' states."""
    for pair in range(len(order)):
        for cell in range(starts.shape[1] - 1):
            state = cell % seen  # of the child
            if state == 0:
                _clear(scratch[1])
            begin = starts[pair, cell]
            end = starts[pair, cell + 1]
            if begin < end:
                _count(order[pair, begin:end], hot, scratch[0], scratch[1])
                _add_terms(scratch[0], end - begin, first, tables[0], sums[pair, :, 0])
            size = end - starts[pair, cell - state]
            if state == seen - 1 and size > 0:
                _add_terms(scratch[1], size, first, tables[1], sums[pair, :, 1])


@inner
def _clear(counts: Any) -> None:
    """Set all counts to 0."""
    for column in range(len(counts)):
        counts[column] = 0


@inner
def _count(rows: Any, hot: Any, counts: Any, totals: Any) -> None:
    """Set the sums of these one-hot rows, and add them to the totals."""
    columns = hot.shape[1]
    _clear(counts)
    whole = len(rows) // 4 * 4
    for k in range(0, whole, 4):  # four rows at a time: 1.5 times as fast
        a = hot[rows[k]]
        b = hot[rows[k + 1]]
        c = hot[rows[k + 2]]
        d = hot[rows[k + 3]]
        for column in range(columns):
            counts[column] += a[column] + b[column] + c[column] + d[column]
    for k in range(whole, len(rows)):
        for column in range(columns):
            counts[column] += hot[rows[k], column]
    for column in range(columns):
        totals[column] += counts[column]


@inner
def _add_terms(counts: Any, size: Any, first: Any, table: Any, sums: Any) -> None:
    """Add the terms of the counts of each variable; the count of its first state is the rest."""
    for variable in range(len(sums)):
        rest = size
        term = slope = seen = 0.0
        for column in range(first[variable], first[variable + 1]):
            count = np.int64(counts[column])
            rest -= count
            term += table[count, TERM]
            slope += table[count, SLOPE]
            seen += table[count, SEEN]
        sums[variable, TERM] += term + table[rest, TERM]
        sums[variable, SLOPE] += slope + table[rest, SLOPE]
        sums[variable, SEEN] += seen + table[rest, SEEN]


def choose_partners(scores: Floats, singles: Sequence[int], most: int) -> list[int]:
    """Return at most `most`: the single parents and, for each in turn, its PARTNERS best partners.

    `scores` is (singles, n); -inf marks variables that are not allowed."""
    kept = list(singles)
    for row in scores[: len(kept)]:
        for _ in range(PARTNERS):
            row[kept] = -np.inf
            best = int(row.argmax())
            if len(kept) < most and row[best] > -np.inf:
                kept.append(best)
    return kept
