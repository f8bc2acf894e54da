"""The best network over parent sets that are grown while it is searched: a network at once, better with every second.

1. Pairs: the sets of at most one parent, and the best network of these.
2. Beams: sets of more parents, grown from the best pairs.
3. Rounds: annealing over orders on all known sets, then new sets around the best network, and
   partners from among all variables in the first rounds.

Rounds are counted in moves, so the result depends on the seed alone unless a limit of time ends
them. Nothing is proved."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from ..candidates import Candidates, Growing, Stamp
from ..candidates.knowledge import Allowed
from ..foundation.progress import OnProgress, Progress, silent
from ..foundation.workers import Workers
from ..network import Network
from ..scores import Engine
from .run import Limits
from .solve import Solution, solve

NARROW, WIDE = 4, 64  # sets of each size in the first beams and in the last ones
_FIRST_MOVES = 10  # for each variable, of annealing over single parents
_MOVES = 50  # for each variable, of the first round of annealing
_MORE = 1.3  # times as many moves in each round
_PARTNER_ROUNDS = 3  # rounds that look for partners among all variables
_SINGLES = 10  # best single parents whose partners are looked for in the first round


@dataclass(frozen=True, slots=True)
class Growth:
    """The best network that was found, and all parent sets that are known."""

    candidates: Candidates
    solution: Solution  # over these candidates
    finished: bool  # no new set and no better network in the last round


@dataclass
class _Search:
    """The state of a search: the sets, the best network, and the time that is left."""

    growing: Growing
    names: tuple[str, ...]
    stamp: Stamp
    seed: int
    workers: Workers
    left: Callable[[], float]
    on_progress: OnProgress
    on_network: Callable[[Network, float], None]
    network: Network | None = None
    score: float = -math.inf
    round: int = 0

    def anneal(self, moves_each: float) -> bool:
        """Anneal over the known sets from the best network on; return whether a better one was found."""
        candidates = self.growing.candidates(self.names, self.stamp)
        moves = int(moves_each * len(self.names))
        limits = Limits(_seconds(self.left()), moves, self.seed + self.round)
        found = solve(
            candidates, "anneal", limits=limits, start=self.network, workers=self.workers.here
        )
        better = found.score > self.score + self._margin
        if found.score > self.score:
            self.network = found.network
            self.score = found.score
            self.on_network(found.network, found.score)
        total = self.growing.total
        self.on_progress(Progress("network", 0, 1, f"score {self.score:,.3f}, {total:,} sets"))
        return better

    @property
    def _margin(self) -> float:
        """What counts as a better score."""
        return 0.0 if self.score == -math.inf else 1e-9 * max(1.0, abs(self.score))

    def grow(self, width: int) -> int:
        """Grow sets around the best network, with partners in the first rounds; return how many are new."""
        growing = self.growing
        before = growing.total
        parents = [] if self.network is None else self.network.parents
        if self.round < _PARTNER_ROUNDS:
            growing.find_partners(parents, 0 if self.round else _SINGLES)
            growing.beam(width)
        growing.around(parents)
        return growing.total - before


def grow(
    engine: Engine,
    names: tuple[str, ...],
    allowed: Allowed,
    stamp: Stamp,
    *,
    width: int = WIDE,
    seed: int = 0,
    workers: Workers | None = None,
    left: Callable[[], float] = lambda: math.inf,
    on_progress: OnProgress = silent,
    on_network: Callable[[Network, float], None] = lambda network, score: None,
) -> Growth:
    """Return the best network that was found before no time was `left`, or before rounds brought nothing new.

    `width` is that of the widest beams; `on_network` is called with each better network."""
    workers = workers or Workers()
    growing = Growing(engine, allowed, seed=seed, workers=workers, stop=lambda: left() <= 0.0)
    search = _Search(growing, names, stamp, seed, workers, left, on_progress, on_network)
    on_progress(Progress("network", 0, 1, f"scoring all pairs of {engine.n:,} variables"))
    growing.start()
    search.anneal(_FIRST_MOVES)
    growing.beam(NARROW)
    finished = False
    now = NARROW
    while left() > 0.0 and not finished:
        better = search.anneal(_MOVES * _MORE**search.round)
        new = search.grow(now)
        if not better and not new:
            finished = now >= width
            now = min(4 * now, width)
            if not finished:
                growing.beam(now, patience=2)
        search.round += 1
    candidates = growing.candidates(names, stamp)
    start = search.network
    best = solve(candidates, "anneal", limits=Limits(0.0, seed=seed), start=start)
    return Growth(candidates, replace(best, seed=seed), finished)


def _seconds(left: float) -> float | None:
    """Return a limit of seconds, None without one."""
    return None if left == math.inf else max(left, 0.0)
