"""`Growth`: alternates between growing parent sets and annealing over them; has a network at once.

1. Pairs: the sets of at most one parent, and the best network of these.
2. Beams: sets of more parents, grown from the best pairs.
3. Rounds: annealing over orders on all known sets, then new sets around the best network, and
   partners from among all variables in the first rounds. Beams get wider once a round brings
   nothing new.

Rounds are counted in moves, so the result depends on the seed alone unless a limit of time ends
them. Nothing is proved."""

import math
from collections.abc import Callable
from dataclasses import replace

from ..candidates import Candidates, Growing, Stamp
from ..candidates.knowledge import Allowed
from ..foundation.progress import OnProgress, Progress, silent
from ..foundation.stop import Interrupt
from ..foundation.workers import Workers
from ..network import Network
from ..scores import Engine
from .run import Limits
from .solve import Solution, solve

NARROW, WIDE = 4, 64  # sets of each size in the first beams and in the widest
_FIRST_MOVES = 10  # for each variable, of annealing over single parents
_MOVES = 50  # for each variable, of the first round of annealing
_MORE = 1.3  # times as many moves in each round
_PARTNER_ROUNDS = (1, 2, 3)  # rounds that look for partners among all variables
_SINGLES = 10  # best single parents whose partners are looked for in the first of these rounds,
_LEAST_SINGLES = 2  # fewer with more than _MANY variables, since their number squared is scanned
_MANY = 1000

OnNetwork = Callable[[Network, float], None]


def ignore_network(network: Network, score: float) -> None:
    """Receive a better network, and do nothing."""


class Growth:
    """A search that can be run for a while, and then for longer.

    `network` is the best one so far, with its `score`; `finished` is True once rounds with the
    widest beams bring neither a new set nor a better network. `on_network` is called with each
    better network. The search continues from `start` if it is given."""

    def __init__(
        self,
        engine: Engine,
        names: tuple[str, ...],
        allowed: Allowed,
        stamp: Stamp,
        *,
        width: int = WIDE,
        seed: int = 0,
        start: Network | None = None,
        workers: Workers | None = None,
        interrupt: Interrupt | None = None,
        on_progress: OnProgress = silent,
        on_network: OnNetwork = ignore_network,
    ) -> None:
        self.network: Network | None = None
        self.score = -math.inf
        self.finished = False
        self._names, self._stamp = names, stamp
        self._width, self._narrow = width, NARROW
        self._seed, self._round = seed, 0
        self._start = start
        self._workers = (workers or Workers()).here
        self._interrupt = Interrupt() if interrupt is None else interrupt
        self._on_progress, self._on_network = on_progress, on_network
        self._left: Callable[[], float] = lambda: math.inf
        self._sets = Growing(
            engine, allowed, seed=seed, workers=workers or Workers(), stop=lambda: self._over
        )

    @property
    def _over(self) -> bool:
        """Whether this run of the search is to end."""
        return bool(self._interrupt) or self._left() <= 0.0

    def run(self, left: Callable[[], float] = lambda: math.inf) -> None:
        """Search until no seconds are `left`, Ctrl-C was pressed, or nothing new is found."""
        self._left = left
        with self._interrupt.listening():
            if self.network is None:
                self._begin()
            while not self._over and not self.finished:
                self._do_round()

    def candidates(self) -> Candidates:
        """Return the known sets that beat all known subsets."""
        found = self._sets.candidates(self._names, self._stamp)
        return replace(found, stamp=replace(self._stamp, grown=found.total))

    def solution(self) -> Solution:
        """Return the best network so far as a solution over the known sets."""
        limits = Limits(0.0, seed=self._seed)
        return solve(self.candidates(), "anneal", limits=limits, start=self.network)

    def _begin(self) -> None:
        """Score all pairs; search the best network of at most one parent, or use the given one."""
        n = len(self._names)
        self._report(f"scoring all pairs of {n:,} variables")
        self._sets.start()
        if self._start is not None:
            order = [self._start.names.index(name) for name in self._names]
            place = {vertex: number for number, vertex in enumerate(order)}
            parents = [[place[p] for p in self._start.parents[vertex]] for vertex in order]
            self._sets.include(parents)
        self._anneal(_FIRST_MOVES, self._start)
        self._sets.beam(self._narrow)

    def _do_round(self) -> None:
        """Anneal over the known sets, and grow new ones."""
        better = self._anneal(_MOVES * _MORE**self._round, self.network)
        before = self._sets.total
        parents = [] if self.network is None else self.network.parents
        if self._round in _PARTNER_ROUNDS:
            first = self._round == _PARTNER_ROUNDS[0]
            self._sets.find_partners(parents, self._singles if first else 0)
            self._sets.beam(self._narrow)
        self._sets.around(parents)
        self._round += 1
        looked = self._round > _PARTNER_ROUNDS[-1]
        if better or self._sets.total > before or not looked or self._over:
            return
        if self._narrow >= self._width:
            self.finished = True
            return
        self._narrow = min(4 * self._narrow, self._width)
        self._sets.beam(self._narrow, patience=2)

    @property
    def _singles(self) -> int:
        """Number of best single parents whose partners are looked for."""
        n = max(len(self._names), 1)
        return max(_LEAST_SINGLES, min(_SINGLES, _SINGLES * _MANY // n))

    def _anneal(self, moves_each: float, start: Network | None) -> bool:
        """Anneal over the known sets; return whether a better network was found."""
        left = self._left()
        seconds = None if left == math.inf else max(left, 0.0)
        limits = Limits(seconds, int(moves_each * len(self._names)), self._seed + self._round)
        found = solve(
            self._sets.candidates(self._names, self._stamp),
            "anneal",
            limits=limits,
            start=start,
            workers=self._workers,
            interrupt=self._interrupt,
        )
        first = self.network is None
        gain = found.score - self.score
        if first or gain > 0.0:
            self.network = found.network
            self.score = found.score
            self._on_network(found.network, found.score)
        self._report(f"score {self.score:,.3f}, {self._sets.total:,} parent sets")
        return first or gain > 1e-9 * max(1.0, abs(self.score))

    def _report(self, note: str) -> None:
        """Report progress, of which no end is known."""
        self._on_progress(Progress("network", 0.0, 1.0, note))
