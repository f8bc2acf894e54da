"""Parent sets as kernels of the posterior read them, at any temperature."""

from functools import cached_property
from itertools import pairwise

import numpy as np

from ...candidates import SlackSets
from ...foundation.arrays import Floats, Ints, SmallInts
from ...foundation.graph import strong_components
from ..exact import edges_of
from .blocks import Table

_LEAST_LINK = 1e-3  # that a variable joins any block of its component, divided by their number


class Tables:
    """The parent sets of a problem: tables by inverse temperature, components, and partners."""

    def __init__(self, sets: SlackSets) -> None:
        self.sets = sets
        self._at: dict[float, Table] = {}

    def at(self, beta: float) -> Table:
        """Return the sets with the weights exp(beta * score)."""
        if beta not in self._at:
            scores = beta * self.sets.scores
            tails = _log_tails(self._start, scores)
            weights = np.exp(scores - scores[self._start[:-1]][self._owners])
            self._at[beta] = Table(self._start, self._members, scores, weights, tails)
        return self._at[beta]

    @cached_property
    def _start(self) -> Ints:
        return self.sets.families.vertex_start

    @cached_property
    def _members(self) -> SmallInts:
        return self.sets.families.padded()

    @cached_property
    def components(self) -> list[Ints]:
        """The strongly connected components of all edges in sets: they are independent."""
        return strong_components(self.sets.families.arcs())

    @cached_property
    def bases(self) -> Ints:
        """(n,) the smallest set of each variable: the required parents."""
        families = self.sets.families
        sizes = families.set_sizes
        starts = families.vertex_start
        places = [
            first + int(np.argmin(sizes[first:last])) for first, last in pairwise(starts.tolist())
        ]
        return np.array(places, np.int64)

    def alone(self) -> Floats:
        """(sets,) the probability of each set where nothing forbids cycles."""
        return np.exp(self.sets.scores - self.at(1.0).tails[self._start[:-1]][self._owners])

    @cached_property
    def _owners(self) -> Ints:
        return np.asarray(self.sets.families.owners, np.int64)

    def partners(self) -> Floats:
        """(n, n) cumulated weights with which others join the block of a variable.

        Others are in the same component. They are likely where an edge between the two is, in
        either direction, if nothing forbids cycles."""
        n = self.sets.n
        edges = edges_of(self.sets.families, self.alone())
        number = np.zeros(n, np.int64)
        for place, vertices in enumerate(self.components):
            number[vertices] = place
        weights = edges + edges.T + _LEAST_LINK / n
        weights[number[:, None] != number] = 0.0
        np.fill_diagonal(weights, 0.0)
        return np.cumsum(weights, axis=1)


def _log_tails(start: Ints, scores: Floats) -> Floats:
    """Return the logarithm of the sum of exp(score) of each set and those behind it."""
    tails = np.empty(len(scores))
    for first, last in pairwise(start.tolist()):
        tails[first:last] = np.logaddexp.accumulate(scores[first:last][::-1])[::-1]
    return tails
