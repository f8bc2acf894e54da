"""`Discrete`: the engine of discrete columns; parent sets are scored by counts."""

from collections.abc import Sequence
from functools import cached_property
from threading import local as thread_local

import numpy as np

from ..data.dataset import Dataset
from ..data.rows import have_many_equal, merge_rows
from ..foundation.arrays import AnyArray, Floats, Ints, SmallInts
from .extensions import (
    MOST_OTHERS,
    Hot,
    Tables,
    make_scratch,
    make_tables,
    one_hot,
    score_extensions,
)
from .pairs import Bitmaps, bitmaps, score_pairs
from .score import OBSERVED, Score, local_score

# With at most this number of variables, pairs are scored as extensions of the empty set: that is as
# fast, and saves the compilation of a kernel.
_FEW = 200
_MANY_CELLS = 10_000_000  # of a table: of more, pairs are counted as bits in any case
_MERGED = 0.25  # at most this share of the rows is different where equal rows are merged
_NOTHING = np.zeros((1, 0), np.int32)  # the empty set


class Discrete:
    """Scores parent sets of a table whose columns are all discrete (an `Engine`)."""

    def __init__(self, dataset: Dataset, score: Score) -> None:
        self.dataset = dataset
        self.score = score
        self.n = dataset.n
        self.rows = dataset.rows
        self._formula = score.formula(self.rows)
        self._states = dataset.arities
        self._threads = thread_local()

    def __reduce__(self) -> tuple[type["Discrete"], tuple[Dataset, Score]]:
        """Leave tables and one-hot rows behind when the engine is sent to another process."""
        return Discrete, (self.dataset, self.score)

    @property
    def _tables(self) -> Tables:
        """The tables of terms of this thread."""
        if not hasattr(self._threads, "tables"):
            self._threads.tables = make_tables(self.rows)
        tables: Tables = self._threads.tables
        return tables

    @cached_property
    def _table(self) -> tuple[AnyArray, SmallInts]:
        """The rows, and how often each counts; no weights if each counts once."""
        codes, weights = self.dataset.codes, self.dataset.weights
        if weights is not None:
            return merge_rows(codes, weights, 1.0)
        if have_many_equal(codes, _MERGED):
            return merge_rows(codes, None, _MERGED)
        return codes, np.zeros(0, np.int32)

    @property
    def stored_rows(self) -> int:
        """Number of rows that are read for a score."""
        return int(self._table[0].shape[1])

    @cached_property
    def _bits(self) -> Bitmaps:
        return bitmaps(self.dataset.codes, self._states)

    @cached_property
    def _prior_states(self) -> Ints:
        """(n,) number of states of each child that a prior is spread over."""
        if self._formula.spread != OBSERVED:
            return self._states
        seen = [len(np.unique(column)) for column in self.dataset.codes]
        return np.maximum(np.array(seen, np.int64), 1)

    def local(self, child: int, parents: Sequence[int]) -> float:
        """Return the local score, from its definition."""
        return local_score(self.dataset, child, parents, self.score)

    def pairs(self, children: Ints) -> Floats:
        """(children, n) scores with each single parent; with the child itself: without parents."""
        scores = np.empty((len(children), self.n))
        cells = self.n * self.stored_rows
        if self.dataset.weights is not None or (self.n <= _FEW and cells <= _MANY_CELLS):
            for row, child in zip(scores, children.tolist(), strict=True):
                found = self.extensions(child, _NOTHING, None)[0]
                row[:] = found[:-1]
                row[child] = found[-1]
            return scores
        widest = int(self._states.max(initial=1))
        score_pairs(
            children,
            self.rows,
            self._states,
            self._formula,
            self._bits,
            self._tables,
            np.zeros((widest, widest), np.int32),
            scores,
        )
        return scores

    def extensions(self, child: int, sets: SmallInts, others: Ints | None) -> Floats:
        """(sets, others + 1) scores with each set and one more parent; last: the set alone."""
        blocks = self._all_hot if others is None else self._hot_blocks(others)
        variables = np.arange(self.n) if others is None else others
        found = [self._scan(child, sets, hot) for hot in blocks]
        scores = np.concatenate([*(part[:, :-1] for part in found), found[-1][:, -1:]], axis=1)
        of_set, _, repeated = np.nonzero(sets[:, :, None] == variables)
        scores[of_set, repeated] = scores[of_set, -1]
        scores[:, :-1][:, variables == child] = -np.inf
        return scores

    def _hot_blocks(self, others: Ints) -> list[Hot]:
        """Return the one-hot rows of these variables, in blocks; a thread keeps its last ones."""
        threads = self._threads
        if getattr(threads, "others", None) is not others:
            threads.blocks = self._make_blocks(others)
            threads.others = others
        blocks: list[Hot] = threads.blocks
        return blocks

    def _make_blocks(self, others: Ints) -> list[Hot]:
        starts = range(0, max(len(others), 1), MOST_OTHERS)
        parts = [others[start : start + MOST_OTHERS] for start in starts]
        return [one_hot(self._table[0], self._states, part) for part in parts]

    @cached_property
    def _all_hot(self) -> list[Hot]:
        return self._make_blocks(np.arange(self.n))

    def _scan(self, child: int, sets: SmallInts, hot: Hot) -> Floats:
        """Return the scores of the sets with each variable of `hot`, and alone."""
        codes, weights = self._table
        most_states = int(self._states.max(initial=1))
        scores = np.empty((len(sets), len(hot.states) + 1))
        score_extensions(
            child,
            int(self._prior_states[child]),
            sets,
            codes,
            weights,
            self._states,
            self._formula,
            hot,
            self._tables,
            make_scratch(codes.shape[1], most_states, hot),
            scores,
        )
        return scores
