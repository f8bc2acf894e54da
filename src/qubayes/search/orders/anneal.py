"""`anneal`: annealing of H with moves that keep every constraint (design §7).

A move takes a vertex to another place of the order (all its r bits at once), and every vertex to its best candidate
set that the order allows (its u bits and z at once): the state is always a network, and its energy minus its score.
Twins are eliminated first; each strongly connected component is searched on its own, by a population.
"""

import math
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...candidates import Candidates
from ...foundation.arrays import Ints
from ...foundation.errors import SettingError
from ...foundation.families import VertexSet
from ..components import Part, join, split
from ..exact.small import LARGEST, best_of_all
from ..exact.twins import Reduced, whole, without_twins
from ..run import Ending, Run
from .population import Population

_PREPARATION = 4e-8  # seconds for each member of a candidate set before the first move; with 54 million 2 to 3 s
_PLANNED = 0.95  # of the time that is left; what is over is for another round, a short one
_TWINS = 4e-7  # seconds for each of them to find and eliminate twins


@dataclass(frozen=True, slots=True)
class Anneal:
    """Annealing over orders. Temperatures are in units of the score: 1 is a factor of e in probability.

    A small component is not searched but solved, by dynamic programming.
    """

    hot: float | None = None  # unless given, by the differences between sets
    cold: float = 0.03
    walks: int = 4  # at once; with a time limit at least one for each thread
    twins: bool = True  # whether twins are eliminated first

    name: ClassVar[str] = "anneal"
    takes: ClassVar[str] = "candidates"
    counts: ClassVar[str] = "insertion moves, each a draw over all places of a vertex"

    def __post_init__(self) -> None:
        if not (0 < self.cold < math.inf and (self.hot is None or self.cold <= self.hot < math.inf)):
            raise SettingError(f"temperatures from {self.hot} down to {self.cold}; give hot >= cold > 0")
        if self.walks < 1:
            raise SettingError(f"walks = {self.walks}; give 1 or more")

    def __call__(self, candidates: Candidates, run: Run, /) -> Ending:
        """Solve or search every component, in turn, until the limit."""
        if run.left < _PREPARATION * len(candidates.families.members):
            return Ending("the time limit is too short to begin; the start is returned")
        twins = self.twins and run.left > _TWINS * len(candidates.families.members)
        walks = self.walks if run.moves is not None else max(self.walks, run.workers.count)
        with ThreadPoolExecutor(min(run.workers.count, walks)) as pool:
            search = _Search(without_twins(candidates) if twins else whole(candidates), run, self, walks, pool)
            while not (run.proved or run.over or search.done):
                search.advance()
        return Ending(search.sentence, search.figures)


class _Search:
    """The components and what was found for each."""

    def __init__(self, reduced: Reduced, run: Run, settings: Anneal, walks: int, pool: Executor) -> None:
        self.reduced, self.candidates, self.run, self.pool = reduced, reduced.candidates, run, pool
        self.stop = np.zeros(1, np.bool_)  # what the kernels look at
        self.parts = split(self.candidates)
        small = [part for part in self.parts if len(part.vertices) <= LARGEST]
        large = [part for part in self.parts if len(part.vertices) > LARGEST]
        self.solved = [best_of_all(part.families, part.scores) for part in small]
        self.parts, self.populations = large + small, []
        for part, seed in zip(large, np.random.SeedSequence(run.seed).spawn(len(large)), strict=True):
            if run.over:
                return
            parents = _parents_inside(run.candidates, part, run.start)
            temperatures = (max(settings.cold, settings.hot or _hot(part)), settings.cold)
            self.populations.append(Population(part.families, part.scores, parents, temperatures, walks, seed))
        self._tell()
        self._tighten(small)

    @property
    def done(self) -> bool:
        """Whether all moves are made, or there is nothing to search."""
        return not self.populations or (self.run.moves is not None and self.moves >= self.run.moves)

    @property
    def moves(self) -> int:
        """Moves made so far, in all components."""
        return sum(population.moves for population in self.populations)

    @property
    def figures(self) -> dict[str, int]:
        """What was counted."""
        return {"moves": self.moves, "components": len(self.parts), "solved_components": len(self.solved)}

    @property
    def sentence(self) -> str:
        """How the search ended."""
        if self.run.proved:
            return "proved optimal"
        if self.run.over:
            return "time limit reached; best so far returned"
        return "number of moves reached" if self.populations else "every component solved, up to rounding"

    def advance(self) -> None:
        """Go on in the component that had the fewest moves for its size."""
        open_ones = [population for population in self.populations if not population.perfect] or self.populations
        chosen = min(open_ones, key=lambda population: population.moves / population.vertices)
        most = None if self.run.moves is None else self.run.moves - self.moves
        pace = chosen.moves / chosen.seconds if chosen.seconds else math.inf
        left = _PLANNED * self.run.left * pace if most is None else most
        share = chosen.vertices / sum(population.vertices for population in open_ones)
        if chosen.advance(share * left, most, self.pool, self.stop, self._watch):
            self._tell()

    def _watch(self) -> None:
        self.stop[0] = self.run.over
        if self.run.moves is None:
            self.run.report()
        else:
            self.run.report(done=self.moves, total=self.run.moves)

    def _tell(self) -> None:
        """Offer the best of every component together."""
        choices = [population.best.choice for population in self.populations] + self.solved
        self.run.offer(self.reduced.sources[join(self.candidates, self.parts, choices)])

    def _tighten(self, solved: list[Part]) -> None:
        """A solved component gives no more than its best; any other vertex no more than its best set."""
        scores = self.candidates.scores[self.candidates.families.vertex_start[:-1]].copy()
        for part, choice in zip(solved, self.solved, strict=True):
            scores[part.vertices] = part.scores[choice]
        self.run.tighten(math.fsum([*scores.tolist(), self.reduced.slack]))


def _parents_inside(candidates: Candidates, part: Part, choice: Ints) -> list[VertexSet]:
    """The parents inside the part that the choice gives its vertices, in local numbers."""
    place = {vertex: k for k, vertex in enumerate(part.vertices.tolist())}
    everyone = candidates.families.sets_at(choice)
    return [tuple(place[parent] for parent in everyone[vertex] if parent in place) for vertex in place]


def _hot(part: Part) -> float:
    """At this temperature walks cross from one good region to another; found by trial on data of 1000 rows."""
    start = part.families.vertex_start
    return max(2.0, 0.03 * float((part.scores[start[:-1]] - part.scores[start[1:] - 1]).mean()))
