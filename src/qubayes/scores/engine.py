"""`Engine`: what a kind of data has to offer, scores of parent sets as numbers."""

from collections.abc import Sequence
from typing import Protocol

from ..foundation.arrays import Floats, Ints, SmallInts


class Engine(Protocol):
    """Scores parent sets of the variables of one table; made by `Score.engine`.

    Whoever grows or searches networks uses these methods and knows nothing of the data."""

    @property
    def n(self) -> int:
        """Number of variables."""

    @property
    def rows(self) -> int:
        """Number of rows."""

    def local(self, child: int, parents: Sequence[int]) -> float:
        """Return the local score of the child with these parents, from its definition."""

    def pairs(self, children: Ints) -> Floats:
        """(children, n) scores with each single parent; with the child itself: without parents."""

    def extensions(self, child: int, sets: SmallInts, others: Ints | None) -> Floats:
        """(sets, others + 1) scores with each set and one more parent; last: the set alone.

        Sets are filled up with -1; `others` are all variables where it is None. A score with a
        parent that the set has already is that of the set alone; one with the child itself is -inf.
        So is the score of a set that cannot be a parent set."""
