"""An engine that leaves out parent sets whose tables of probabilities are too large."""

from collections.abc import Sequence

import numpy as np

from ..foundation.arrays import Floats, Ints, SmallInts
from .engine import Engine


class LimitedTables:
    """The scores of another engine, without parents whose table has more than `most` cells.

    `states` are the numbers of states of the variables, 1 or less for numbers."""

    def __init__(self, engine: Engine, states: Ints, most: int) -> None:
        self.n = engine.n
        self.rows = engine.rows
        self._engine = engine
        self._most = most
        # the last one stands for the -1 that sets are filled up with
        self._states = np.append(np.maximum(states, 1), 1).astype(float)

    def local(self, child: int, parents: Sequence[int]) -> float:
        """Return the local score of the child with these parents, however large its table is."""
        return self._engine.local(child, parents)

    def pairs(self, children: Ints) -> Floats:
        """Return the scores with each single parent, however large their tables are."""
        return self._engine.pairs(children)

    def extensions(self, child: int, sets: SmallInts, others: Ints | None) -> Floats:
        """Return the scores with each set and one more parent; -inf for too large tables."""
        found = self._engine.extensions(child, sets, others)
        variables = np.arange(self.n) if others is None else others
        of_sets = self._states[sets].prod(axis=1) * self._states[child]
        cells = np.outer(of_sets, self._states[variables])
        of_set, _, repeated = np.nonzero(sets[:, :, None] == variables)
        cells[of_set, repeated] = 0.0
        found[:, :-1][cells > self._most] = -np.inf
        return found
