"""`MeanScores`: the engine of a table whose missing cells were filled several times.

A score is the mean of those of the completed tables. It varies less with the draws than that of one
of them, so fewer edges are there by chance."""

from collections.abc import Sequence

import numpy as np

from ..data.dataset import Dataset
from ..foundation.arrays import Floats, Ints, SmallInts
from .score import Score


class MeanScores:
    """Scores parent sets by the mean over completed tables (an `Engine`)."""

    def __init__(self, dataset: Dataset, score: Score) -> None:
        self.n = dataset.n
        self.rows = dataset.rows
        self._engines = [score.engine(table) for table in dataset.completions]

    def local(self, child: int, parents: Sequence[int]) -> float:
        """Return the mean local score of the child with these parents."""
        return float(np.mean([engine.local(child, parents) for engine in self._engines]))

    def pairs(self, children: Ints) -> Floats:
        """(children, n) scores with each single parent; with the child itself: without parents."""
        return np.asarray(np.mean([engine.pairs(children) for engine in self._engines], axis=0))

    def extensions(self, child: int, sets: SmallInts, others: Ints | None) -> Floats:
        """(sets, others + 1) scores with each set and one more parent; last: the set alone."""
        found = [engine.extensions(child, sets, others) for engine in self._engines]
        return np.asarray(np.mean(found, axis=0))
