"""`Growth`: alternates between growing parent sets and annealing over them; has a network at once.

1. Pairs: the sets of at most one parent, and the best network of these.
2. Beams: sets of more parents, grown from the best pairs.
3. Rounds: annealing over orders on all known sets, then new sets around the best network, and
   partners from among all variables in the first rounds. Beams get wider once a round brings
   nothing new.

Rounds are counted in moves, so the result depends on the seed and the number of moves alone unless
a limit of time ends them. Nothing is proved."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from ..candidates import Candidates, Growing, Stamp
from ..candidates.knowledge import Allowed
from ..foundation.graph import renamed
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
_FEW_MOVES = 15  # the same where growing sets costs little
_LONGER = 8  # rounds after which these get no longer
_LEAVING = 16  # variables of a full pool that leave it for partners, there
FEW_RESTARTS, MANY_RESTARTS = 3, 30  # times that such a search begins anew without gain
_MORE = 1.3  # times as many moves in each round
_PARTNER_ROUNDS = (1, 2, 3)  # rounds that look for partners among all variables
_FOR_ANNEALING = 0.3  # of the time that is left, when sets are grown
_SINGLES = 10  # best single parents whose partners are looked for in the first of these rounds,
_LEAST_SINGLES = 2  # fewer with more than _MANY variables, since their number squared is scanned
_MANY = 1000

OnNetwork = Callable[[Network, float], None]


def ignore_network(network: Network, score: float) -> None:
    """Receive a better network, and do nothing."""


class Growth:
    """A search that can be run for a while, and then for longer.

    `network` is the best one so far, with its `score`; `finished` is True once rounds with the
    widest beams bring neither a new set nor a better network, or `most_sets` are known.
    `on_network` is called with each better network. The search continues from `start` if it is
    given.

    With a number of `restarts`, for scores whose extensions cost little, there are more rounds of
    fewer moves, and all look for partners. The search then grows sets around other networks, too,
    and ends after this number of them without gain."""

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
        restarts: int | None = None,
        most_sets: float = math.inf,
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
        self._seed = seed
        self._round = -1  # pairs and first beams come before round 0
        self._steps: list[Callable[[], bool]] = []  # of growing, left of this round
        self._better = False  # a better network was found in this round
        self._before = 0  # known sets at the beginning of this round
        self._reserved = 0.0  # seconds at the end that are for annealing
        self._moves_left = math.inf
        self._start = start
        self._restarts = restarts
        self._barren = 0  # restarts since the last better network
        self._workers = (workers or Workers()).here
        self._interrupt = Interrupt() if interrupt is None else interrupt
        self._on_progress, self._on_network = on_progress, on_network
        self._left: Callable[[], float] = lambda: math.inf
        self._sets = Growing(
            engine,
            allowed,
            seed=seed,
            workers=workers or Workers(),
            leaving=0 if restarts is None else _LEAVING,
            stop=lambda: self._grown_enough,
            most_sets=most_sets,
            on_done=self._report,
        )

    @property
    def _over(self) -> bool:
        """Whether this run of the search is to end."""
        return bool(self._interrupt) or self._left() <= 0.0 or self._moves_left <= 0

    @property
    def _grown_enough(self) -> bool:
        """Whether growing is to end for now: the rest of the time is for annealing."""
        return bool(self._interrupt) or self._left() <= self._reserved

    @property
    def full(self) -> bool:
        """Whether there is no memory for more sets."""
        return self._sets.full

    def run(self, left: Callable[[], float] = lambda: math.inf, moves: float = math.inf) -> None:
        """Search until no seconds are `left`, Ctrl-C was pressed, or nothing new is found.

        With a number of `moves` of the annealing, also once these are used up."""
        self._left, self._moves_left = left, moves
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
        self._report()
        scored = self._sets.start()
        if self._start is not None:
            order = [self._start.names.index(name) for name in self._names]
            place = {vertex: number for number, vertex in enumerate(order)}
            known = (self._start.parents[vertex] for vertex in order)
            self._sets.include(renamed(known, place))
        self._anneal(_FIRST_MOVES, self._start)
        self._steps = [] if scored else [self._sets.start]
        self._steps.append(lambda: self._sets.beam(self._narrow))

    def _do_round(self) -> None:
        """Grow new sets, and anneal over all that are known; a later call ends an unfinished round.

        The new sets of a round depend on the network before it."""
        grown = self._grow()
        if grown and self._round >= 0:
            self._judge_round()
            grown = self._grow()
        if not grown or self.finished:
            self._anneal_again()
            self.finished = self.finished or self.full
            return
        self._round += 1
        self._better = False
        self._anneal_again()
        self._before = self._sets.total
        parents = [] if self.network is None else self.network.parents
        self._plan_growing(parents)

    def _plan_growing(self, parents: Sequence[Sequence[int]]) -> None:
        """Let the next steps grow sets around a network, in some rounds with partners."""
        always = self._restarts is not None and self._round >= _PARTNER_ROUNDS[0]
        if always or self._round in _PARTNER_ROUNDS:
            singles = self._singles if self._round == _PARTNER_ROUNDS[0] else 0
            self._steps.append(lambda: self._sets.find_partners(parents, singles))
            self._steps.append(lambda: self._sets.beam(self._narrow))
        self._steps.append(lambda: self._sets.around(parents))

    def _grow(self) -> bool:
        """Do the steps that are left of a round; return whether all are done."""
        left = self._left()
        self._reserved = _FOR_ANNEALING * left if left < math.inf else 0.0
        while self._steps:
            if self._grown_enough or not self._steps[0]():
                return False
            del self._steps[0]
        return True

    def _judge_round(self) -> None:
        """Grow wider beams, begin anew, or end the search, if a round brought nothing new."""
        if self._better:
            self._barren = 0
        if self._better or self._sets.total > self._before or self._round < _PARTNER_ROUNDS[-1]:
            return
        if self._narrow >= self._width:
            self._restart()
            return
        self._narrow = min(4 * self._narrow, self._width)
        self._steps.append(lambda: self._sets.beam(self._narrow, patience=2))

    def _restart(self) -> None:
        """Grow sets around another network than the best; end after some of these without gain."""
        self._barren += 1
        if self._restarts is None or self._barren > self._restarts:
            self.finished = True
            return
        other = self._annealed(self._moves_each, None)
        self._plan_growing(other.network.parents)

    @property
    def _moves_each(self) -> float:
        """Number of moves for each variable in this round."""
        done = max(self._round, 0)
        if self._restarts is None:
            return _MOVES * _MORE**done
        return _FEW_MOVES * _MORE ** min(done, _LONGER)

    def _anneal_again(self) -> None:
        """Anneal over the known sets, unless the search is over."""
        if not self._over and not self.finished:
            self._better = self._anneal(self._moves_each, self.network) or self._better

    @property
    def _singles(self) -> int:
        """Number of best single parents whose partners are looked for."""
        n = max(len(self._names), 1)
        return max(_LEAST_SINGLES, min(_SINGLES, _SINGLES * _MANY // n))

    def _anneal(self, moves_each: float, start: Network | None) -> bool:
        """Anneal over the known sets; return whether a better network was found."""
        found = self._annealed(moves_each, start)
        first = self.network is None
        gain = found.score - self.score
        if first or gain > 0.0:
            self.network = found.network
            self.score = found.score
            self._on_network(found.network, found.score)
        self._report()
        return first or gain > 1e-9 * max(1.0, abs(self.score))

    def _annealed(self, moves_each: float, start: Network | None) -> Solution:
        """Return the best network that annealing over the known sets finds."""
        left = self._left()
        seconds = None if left == math.inf else max(left, 0.0)
        moves = int(min(moves_each * len(self._names), self._moves_left))
        self._moves_left -= moves
        limits = Limits(seconds, moves, self._seed + max(self._round, 0))
        return solve(
            self._sets.candidates(self._names, self._stamp),
            "anneal",
            limits=limits,
            start=start,
            workers=self._workers,
            interrupt=self._interrupt,
        )

    def _report(self) -> None:
        """Report the rounds that are done, of which no end is known."""
        if self.network is None:
            note = f"scoring all pairs of {len(self._names):,} variables"
        else:
            sets = f"{self._sets.total:,} parent sets"
            note = f"round {self._round + 1}, score {self.score:,.3f}, {sets}"
        self._on_progress(Progress("network", max(self._round, 0), 0.0, note))
