"""`hillclimb` (the paper's HCS): greedy changes of single edges with a tabu list, kicked again and again."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import ClassVar

import numpy as np

from ...candidates import Candidates
from ...data import Dataset, read
from ...foundation.arrays import Ints, SmallInts, Words
from ...foundation.errors import QubayesError, SettingError
from ...foundation.families import VertexSet
from ...foundation.random import random_stream
from ...scores import NAMES, Score, is_score
from ..run import Ending, Run, warm_up
from .hillclimb_moves import KICKS, Sets, no_sets, sets_of
from .hillclimb_scores import Data, climb_data, climb_sets, data_of
from .hillclimb_state import BEST, CLIMBS, FIRST, KEY, SIZE, new_climb, parent_hashes, possible_edges
from .walks import Advance, Pace, walk_all


@dataclass(frozen=True, slots=True)
class HillClimb:
    """Add, delete or reverse the edge that gains most; a pair just changed is left alone for 10 changes.

    A climb goes on through changes for the worse until 10 of them have brought no better network. Then 10 random
    possible edges of the best network so far are changed (as far as they close no cycle), and the next climb begins.
    Possible are the edges in some candidate set.

    With a dataset, or the path of one, local scores are counted in it, by the score that the candidates are stamped
    with; what is found is offered as the best candidate sets inside the parents. Without one a vertex scores as its
    best candidate set inside its parents, and keeps only these parents: an edge more can put out another.
    """

    dataset: Dataset | str | PathLike[str] | None = field(default=None, repr=False)

    name: ClassVar[str] = "hillclimb"
    takes: ClassVar[str] = "candidates"
    counts: ClassVar[str] = "changed edges"

    def prepare(self) -> "HillClimb":
        """Compile the kernels, and read the data."""
        warm_up(HillClimb)
        return self if self.dataset is None else replace(self, dataset=read(self.dataset))

    def __call__(self, candidates: Candidates, run: Run, /) -> Ending:
        """Climb on every thread."""
        dataset = None if self.dataset is None else read(self.dataset)
        sets = sets_of(candidates) if dataset is None else None
        score = None if dataset is None else _score(candidates, dataset)
        edges, climbs = possible_edges(candidates), list[_Climber]()

        def make(number: int, seed: np.random.SeedSequence) -> Advance:
            if sets is not None:
                scored: Sets | Data = sets
            else:
                assert dataset is not None and score is not None
                scored = data_of(dataset, score, _most(candidates))
            climbs.append(_Climber(run, scored, edges, random_stream(seed), kick=KICKS if number else 0))
            return climbs[-1].advance

        ending = walk_all(run, make)
        found = sum(int(climber.climb.counts[CLIMBS]) for climber in climbs)
        return Ending(ending.status, {**ending.statistics, "climbs": found})


class _Climber:
    """One walk: climb after climb, the best network offered after each slice."""

    def __init__(self, run: Run, scored: Sets | Data, edges: SmallInts, random: Words, *, kick: int) -> None:
        self.run, self.candidates = run, run.candidates
        self.data = scored if isinstance(scored, Data) else None
        self.sets = scored if isinstance(scored, Sets) else no_sets(run.candidates)
        parents = run.candidates.families.sets_at(run.start)
        keys = run.start + 1 if self.data is None else _hashed(parents)
        self.climb = new_climb(parents, keys, _most(run.candidates), edges, random, kick=kick)
        self.offered, self.choice = keys.copy(), run.start.copy()

    def advance(self, moves: int, pace: Pace) -> None:
        """Make this many steps, and offer the best graph if it is new."""
        before = self.climb.totals[BEST]
        if self.data is None:
            climb_sets(self.sets, self.climb, moves)
        else:
            climb_data(self.data, self.sets, self.climb, moves)
        if self.climb.totals[BEST] > before:
            self.run.offer(self._choice())

    def _choice(self) -> Ints:
        """The best candidate sets inside the parents of the best graph; only what changed is looked up."""
        best = self.climb.lists[1]
        for vertex in np.flatnonzero(best[:, KEY] != self.offered).tolist():
            if self.data is None:
                self.choice[vertex] = best[vertex, KEY] - 1
            else:
                inside = np.zeros(self.candidates.n, np.bool_)
                inside[best[vertex, FIRST : FIRST + best[vertex, SIZE]]] = True
                self.choice[vertex] = self.candidates.families.first_inside(vertex, inside)
        self.offered[:] = best[:, KEY]
        return self.choice


def _most(candidates: Candidates) -> int:
    """Parents that a vertex may have: as the candidates are stamped, but room for every set."""
    sizes = np.diff(candidates.families.set_start)
    return max(candidates.stamp.max_parents or 0, int(sizes.max(initial=1)), 1)


def _hashed(parents: Sequence[VertexSet]) -> Ints:
    """The key of each vertex and its parents."""
    hashes = parent_hashes(len(parents))
    keys: Ints = hashes[0].copy()
    for vertex, members in enumerate(parents):
        for parent in members:
            keys[vertex] ^= hashes[1, parent]
    return keys


def _score(candidates: Candidates, dataset: Dataset) -> Score:
    """The score that the candidates are stamped with; raises unless it can be counted in the data."""
    if candidates.names != dataset.names:
        raise QubayesError("the data's columns are not the candidates' variables; give the data that they come from")
    stamp = candidates.stamp
    if not is_score(stamp.score):
        raise SettingError(
            f"the candidates' score is {stamp.score!r}; to climb on data it must be one of {', '.join(NAMES)}"
        )
    return Score(stamp.score, stamp.ess if stamp.ess is not None else 1.0)
