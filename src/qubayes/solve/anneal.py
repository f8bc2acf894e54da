"""`anneal`: annealing of H with moves that keep every constraint (design §7).

A move takes a vertex to another place of the order (all its r bits at once), and every vertex to its best candidate
set that the order allows (its u bits and z at once): the state is always a network, and its energy minus its score.
Twins are eliminated first; each strongly connected component is searched on its own, by replica exchange.
"""

import math
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..arrays import Floats, Ints
from ..candidates import Candidates
from ..errors import SettingError
from ..families import VertexSet
from .choices import parents_of
from .orders import order_problem
from .parts import Part, join, split
from .run import Ending, Run
from .small import LARGEST, best_of_all
from .tempering import Ladder, temperatures
from .twins import Reduced, whole, without_twins

_PREPARATION = 4e-8  # seconds for each member of a candidate set before the first move; with 54 million 2 to 3 s
_TWINS = 4e-7  # seconds for each of them to find and eliminate twins


@dataclass(frozen=True, slots=True)
class Anneal:
    """Replica exchange over orders. Temperatures are in units of the score: 1 is a factor of e in probability.

    A small component is not searched but solved, by dynamic programming.
    """

    hot: float = 100.0
    cold: float = 0.03
    replicas: int = 16
    twins: bool = True  # whether twins are eliminated first

    name: ClassVar[str] = "anneal"
    takes: ClassVar[str] = "candidates"
    counts: ClassVar[str] = "insertion moves, each a draw over all places of a vertex"

    def __post_init__(self) -> None:
        if not 0 < self.cold <= self.hot < math.inf:
            raise SettingError(f"temperatures from {self.hot} down to {self.cold}; give hot >= cold > 0")
        if self.replicas < 1:
            raise SettingError(f"replicas = {self.replicas}; give 1 or more")

    def __call__(self, candidates: Candidates, run: Run, /) -> Ending:
        """Solve or search every component, in turn, until the limit."""
        if run.left < _PREPARATION * len(candidates.families.members):
            return Ending("the time limit is too short to begin; the start is returned")
        ladder = temperatures(self.cold, self.hot, self.replicas)
        twins = self.twins and run.left > _TWINS * len(candidates.families.members)
        with ThreadPoolExecutor(min(run.workers.count, self.replicas)) as pool:
            search = _Search(without_twins(candidates) if twins else whole(candidates), run, ladder, pool)
            while not (run.proved or run.over or search.done):
                search.advance()
        return Ending(_sentence(run), search.figures)


class _Search:
    """The components and what was found for each."""

    def __init__(self, reduced: Reduced, run: Run, ladder: Floats, pool: Executor) -> None:
        self.reduced, self.candidates, self.run, self.pool = reduced, reduced.candidates, run, pool
        self.stop = np.zeros(1, np.bool_)  # what the kernels look at
        self.parts = split(self.candidates)
        small = [part for part in self.parts if len(part.vertices) <= LARGEST]
        large = [part for part in self.parts if len(part.vertices) > LARGEST]
        self.solved = [best_of_all(part.families, part.scores) for part in small]
        self.parts, self.ladders = large + small, []
        for part, seed in zip(large, np.random.SeedSequence(run.seed).spawn(len(large)), strict=True):
            if run.over:
                return
            parents = _parents_inside(run.candidates, part, run.start)
            self.ladders.append(Ladder(order_problem(part.families, part.scores), parents, ladder, seed))
        self._tell()
        self._tighten(small)

    @property
    def done(self) -> bool:
        """Whether all moves are made."""
        return self.run.moves is not None and self.moves >= self.run.moves

    @property
    def moves(self) -> int:
        """Moves made so far, in all components."""
        return sum(ladder.moves for ladder in self.ladders)

    @property
    def figures(self) -> dict[str, int]:
        """What was counted."""
        return {"moves": self.moves, "components": len(self.parts), "solved_components": len(self.solved)}

    def advance(self) -> None:
        """Make one round of moves in the component that had the fewest for its size."""
        open_ones = [ladder for ladder in self.ladders if not ladder.perfect] or self.ladders
        ladder = min(open_ones, key=lambda ladder: ladder.moves / ladder.vertices)
        left = None if self.run.moves is None else self.run.moves - self.moves
        if ladder.advance(left, self.pool, self.stop, self._watch):
            self._tell()

    def _watch(self) -> None:
        self.stop[0] = self.run.over
        if self.run.moves is None:
            self.run.report()
        else:
            self.run.report(done=self.moves, total=self.run.moves)

    def _tell(self) -> None:
        """Offer the best of every component together."""
        choices = [ladder.best.choice for ladder in self.ladders] + self.solved
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
    everyone = parents_of(candidates, choice)
    return [tuple(place[parent] for parent in everyone[vertex] if parent in place) for vertex in place]


def _sentence(run: Run) -> str:
    if run.proved:
        return "proved optimal"
    return "time limit reached; best so far returned" if run.over else "number of moves reached"
