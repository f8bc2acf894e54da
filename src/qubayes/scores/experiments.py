"""`Experiments`: the engine of tables with interventions; a row in which a variable was set leaves
its family (Cooper and Yoo, UAI 1999).

The experiment replaces what usually determines the variable, so such a row tells nothing of its
parents; it does tell of its children. Each family is scored as if its rows were the whole table."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..data.dataset import Dataset
from ..foundation.arrays import Floats, Ints, SmallInts
from .engine import Engine
from .score import Score


def groups_of_children(dataset: Dataset) -> list[Ints]:
    """Return the variables in groups that were set in the same rows."""
    if dataset.interventions is None:
        return [np.arange(dataset.n)]
    _, group = np.unique(dataset.interventions, axis=0, return_inverse=True)
    group = group.reshape(-1)
    return [np.flatnonzero(group == each) for each in range(int(group.max()) + 1)]


def rows_of_child(dataset: Dataset, child: int) -> Dataset:
    """Return the rows in which the child was not set, as a table without interventions."""
    marks = dataset.interventions
    plain = replace(dataset, interventions=None)
    if marks is None or not marks[child].any():
        return plain
    return plain.take(np.flatnonzero(~marks[child]))


class Experiments:
    """Scores each family on the rows in which its child was not set (an `Engine`)."""

    def __init__(self, dataset: Dataset, score: Score) -> None:
        self.n = dataset.n
        self.rows = dataset.rows
        self._score = score
        self._tables: list[Dataset] = []
        self._engines: dict[int, Engine] = {}
        self._group = np.zeros(dataset.n, np.int64)
        for number, children in enumerate(groups_of_children(dataset)):
            self._group[children] = number
            self._tables.append(rows_of_child(dataset, int(children[0])))

    def _engine_of(self, child: int) -> Engine:
        """Return the engine of the rows of this child, made when it is first asked for."""
        group = int(self._group[child])
        if group not in self._engines:
            self._engines[group] = self._score.engine(self._tables[group])
        return self._engines[group]

    def local(self, child: int, parents: Sequence[int]) -> float:
        """Return the local score of the child with these parents, from its definition."""
        return self._engine_of(child).local(child, parents)

    def pairs(self, children: Ints) -> Floats:
        """(children, n) scores with each single parent; with the child itself: without parents."""
        scores = np.empty((len(children), self.n))
        for group in np.unique(self._group[children]):
            places = np.flatnonzero(self._group[children] == group)
            own = children[places]
            scores[places] = self._engine_of(int(own[0])).pairs(own)
        return scores

    def extensions(self, child: int, sets: SmallInts, others: Ints | None) -> Floats:
        """(sets, others + 1) scores with each set and one more parent; last: the set alone."""
        return self._engine_of(child).extensions(child, sets, others)
