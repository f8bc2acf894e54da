"""`anneal`: annealing over orders with a population of walks and crossover between rounds.

move: one vertex is inserted elsewhere in the order, and every vertex takes its best candidate set
    that the order allows (`insertions.py`). In the QUBO this changes all order bits and subset bits
    of the vertex at once, so the state is always a network, and its energy minus its score.

walk: a sequence of moves with one random stream. It is cooled once or several times, from a hot to
    the cold temperature.

round: all walks are cooled for the same number of moves, in each round twice as many as in the one
    before. Walks begin at the best network or another good one. Slow cooling ends in the widest
    basin; where the best one is narrow, many short walks find it sooner. Therefore one walk of each
    round is cooled many times in a short time, each time from another random order (restarts), and
    then continues from the best order that it found.

crossover: a cooled walk ends at a network that is best in most regions and second best in some,
    other walks in others. After each round the walks are cooled once more, with only those
    candidate sets that the good networks (the elite) use: this takes the best of each region.

Identical columns are eliminated first. Strongly connected components are searched one by one; small
components are solved by dynamic programming."""

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from ...candidates import Candidates
from ...foundation.arrays import Bools, Floats
from ...foundation.errors import SettingError
from ...foundation.families import Families, VertexSet
from ...foundation.stop import Reason, Stalled
from ..reduction import (
    MOST_VERTICES_OF_BEST_OF_ALL,
    Component,
    Components,
    Reduced,
    best_of_all,
    split,
    without_twins,
)
from ..run import Ending, Run, warm_up
from .insertions import Ordered, OrderState, anneal_order, best_of, order_state, restart_at
from .walks import OrderProblem, order_problem, random_order

SWEEPS = 20  # moves for each vertex in a walk of the first round, and between restarts
# moves of a walk between looks at the best; more would withhold improvements from the user for
# seconds
SLICE = 2000
CROSSOVER = 0.2  # moves of a crossover, relative to the round before it
# starts of walks in turn, how hot
STARTS = (("restarts", 1.0), ("best", 0.25), ("elite", 0.5), ("elite", 1.0))
RESTARTING = 0.75  # part of the moves of a walk with restarts, at most
AFTERWARDS = 0.25  # relative temperature at which it continues from its best order
SAME = 1e-7  # networks whose scores differ by less count as one

# seconds for each member of a candidate set before the first move: 2.7 s for 54 million
_PREPARATION = 5e-8
_PLANNED = 0.95  # share of the remaining time; the rest is for another, short round
_TWINS = 4e-7  # seconds for each member to find and eliminate identical columns


@dataclass(frozen=True, slots=True)
class Anneal:
    """Annealing over orders. Temperatures are in units of the score: 1 is a factor of e."""

    hot: float | None = None  # unless given, by the differences between sets
    cold: float = 0.03
    walks: int = 4  # at once; with a time limit at least one for each thread
    twins: bool = True  # whether identical columns are eliminated first
    # with a time limit: how many times as long as it took to find the best to search on
    patience: float | None = None

    name: ClassVar[str] = "anneal"
    takes: ClassVar[str] = "candidates"
    counts: ClassVar[str] = "insertion moves, each a draw over all places of a vertex"

    def __post_init__(self) -> None:
        if not (
            0 < self.cold < math.inf and (self.hot is None or self.cold <= self.hot < math.inf)
        ):
            raise SettingError(
                f"temperatures from {self.hot} down to {self.cold}; give hot >= cold > 0"
            )
        if self.walks < 1:
            raise SettingError(f"walks = {self.walks}; give 1 or more")
        if self.patience is not None and not self.patience > 0:
            raise SettingError(
                f"patience = {self.patience}; give a number above 0, or inf for the whole time "
                "limit"
            )

    def prepare(self) -> "Anneal":
        """Compile the kernels."""
        warm_up(Anneal, 16, 100)  # fewer than 15 vertices need no kernels
        return self

    def walks_of(self, run: Run) -> int:
        """Return the number of walks: with a time limit at least one for each thread."""
        return self.walks if run.moves is not None else max(self.walks, run.workers.count)

    def __call__(self, candidates: Candidates, run: Run, /) -> Ending:
        """Solve or search every component, in turn, until the limit."""
        if run.left < _PREPARATION * len(candidates.families.members):
            return Ending("the time limit is too short to begin; the start is returned")
        twins = self.twins and run.left > _TWINS * len(candidates.families.members)
        walks = self.walks_of(run)
        with ThreadPoolExecutor(min(run.workers.count, walks)) as pool:
            search = _ComponentSearch(without_twins(candidates, twins), run, self, walks, pool)
            while not search.stop():
                search.advance()
        return search.ending


class _ComponentSearch:
    """The components, the solutions of the small ones and the populations of the others."""

    def __init__(
        self, reduced: Reduced, run: Run, settings: Anneal, walks: int, pool: Executor
    ) -> None:
        self.reduced = reduced
        self.candidates = reduced.candidates
        self.run = run
        self.pool = pool
        self.halt = np.zeros(1, np.bool_)  # read by the kernels
        times = settings.patience if run.moves is None else None
        self.patience = Stalled(run.clock, math.inf if times is None else times)
        self.stop = run.until(self._done, self._stalled)
        parts = split(self.candidates)
        small = [part for part in parts if len(part.vertices) <= MOST_VERTICES_OF_BEST_OF_ALL]
        large = [part for part in parts if len(part.vertices) > MOST_VERTICES_OF_BEST_OF_ALL]
        self.solved = [best_of_all(part.families, part.scores) for part in small]
        self.components = Components(self.candidates, large + small)
        self.populations: list[Population] = []
        parents = run.candidates.families.sets_at(run.start)
        seeds = np.random.SeedSequence(run.seed).spawn(len(large))
        for part, seed in zip(large, seeds, strict=True):
            if run.over:
                return
            inside = _parents_inside(part, parents)
            hot = settings.hot or _hot_temperature(part)
            temperatures = (max(settings.cold, hot), settings.cold)
            population = Population(part.families, part.scores, inside, temperatures, walks, seed)
            self.populations.append(population)
        self._offer()
        # of the best sets
        bounds = self.candidates.scores[self.candidates.families.vertex_start[:-1]].copy()
        for part, choice in zip(small, self.solved, strict=True):
            bounds[part.vertices] = part.scores[choice]
        run.tighten(math.fsum([*bounds.tolist(), reduced.rounding]))

    def _done(self) -> Reason | None:
        """Return a reason once all moves are made, or if there is nothing to search."""
        moves = math.inf if self.run.moves is None else self.run.moves
        going = self.populations and self.moves < moves
        return None if going else Reason.FINISHED

    def _stalled(self) -> Reason | None:
        """Ask the patience. Walks begin hot, so every component has its first round in any case."""
        cooled = all(population.cooled for population in self.populations)
        return self.patience() if cooled else None

    @property
    def moves(self) -> int:
        """Number of moves so far, in all components."""
        return sum(population.moves for population in self.populations)

    @property
    def ending(self) -> Ending:
        """How the search ended, with counts of moves and components."""
        reason = self.stop.reason
        if reason is not None and reason is not Reason.FINISHED:
            status = reason.sentence
        elif not self.populations:
            status = "every component solved, up to rounding"
        elif self._done():
            status = "number of moves reached"
        else:
            status = f"no better network in the last {self.patience.idle:.3g} s of annealing"
        counts = {
            "moves": self.moves,
            "components": len(self.components.parts),
            "solved_components": len(self.solved),
        }
        return Ending(status, counts, reason=reason)

    def advance(self) -> None:
        """Advance the component that had the fewest moves for its size."""
        open_ones = [
            population for population in self.populations if not population.perfect
        ] or self.populations
        chosen = min(open_ones, key=lambda population: population.moves / population.vertices)
        most = None if self.run.moves is None else self.run.moves - self.moves
        pace = chosen.moves / chosen.seconds if chosen.seconds else math.inf
        left = _PLANNED * self.run.left * pace if most is None else most
        share = chosen.vertices / sum(population.vertices for population in open_ones)

        def watch() -> None:
            self.halt[0] = self.run.over
            self.run.report(done=self.moves, total=self.run.moves)

        if chosen.advance(share * left, most, self.pool, self.halt, watch):
            self._offer()

    def _offer(self) -> None:
        """Offer the best network of every component, joined."""
        choices = [population.best.choice for population in self.populations] + self.solved
        if self.run.offer(self.reduced.invert(self.components.invert(choices))):
            self.patience.better()


def _parents_inside(part: Component, parents: Sequence[VertexSet]) -> list[VertexSet]:
    """Return the parents of each vertex of a component that belong to it, by their places in it."""
    place = {vertex: k for k, vertex in enumerate(part.vertices.tolist())}
    inside = []
    for vertex in place:
        inside.append(tuple(place[parent] for parent in parents[vertex] if parent in place))
    return inside


def _hot_temperature(part: Component) -> float:
    """Return a temperature at which walks cross between good regions.

    It was found by trial on data of 1000 rows."""
    start = part.families.vertex_start
    spread = part.scores[start[:-1]] - part.scores[start[1:] - 1]
    return max(2.0, 0.03 * float(spread.mean()))


class Cooling(NamedTuple):
    """One cooling of a walk, from `hot` to the cold temperature."""

    begin: str  # "here"; at a "random" order; at the "best" order of the walk
    hot: float
    moves: int


class OrderWalk:
    """A walk that is cooled several times. `state` holds the best order of all of them."""

    def __init__(
        self,
        problem: OrderProblem,
        order: npt.ArrayLike,
        coolings: list[Cooling],
        seed: np.random.SeedSequence,
    ) -> None:
        self.problem = problem
        self.coolings = deque(coolings)
        self._seed = seed
        self.state = order_state(problem, order, *seed.spawn(1))
        self._made = 0  # moves of the first cooling

    def advance(self, moves: int, cold: float, bases: Sequence[VertexSet], stop: Bools) -> int:
        """Make this many moves, fewer if stop[0] is set or coolings end; return the number made."""
        done = 0
        while done < moves and self.coolings and not stop[0]:
            begin, hot, length = self.coolings[0]
            if not self._made and begin != "here":
                best = begin == "best"
                order = self.state.best if best else random_order(bases, *self._seed.spawn(1))
                restart_at(self.problem, self.state, order)
            factor = (cold / hot) ** (1 / length)
            share = min(moves - done, length - self._made)
            made = anneal_order(
                self.problem, self.state, hot * factor**self._made, factor, share, stop
            )
            done, self._made = done + made, self._made + made
            if self._made == length:
                self.coolings.popleft()
                self._made = 0
        # sums of small steps drift
        self.state.totals[0] = self.problem.scores[self.state.choice].sum()
        return done


class Round(NamedTuple):
    """Walks that are cooled together, on all candidate sets or on those of the elite."""

    walks: list[OrderWalk]
    moves: int  # of each walk
    crossover: bool


class Population:
    """Walks over the orders of a component; the result depends on seed and moves, not threads."""

    def __init__(
        self,
        families: Families,
        scores: Floats,
        parents: Sequence[VertexSet],
        temperatures: tuple[float, float],
        count: int,
        seed: np.random.SeedSequence,
    ) -> None:
        self.families = families
        self.problem = order_problem(families, scores)
        self.count = count
        self.hot, self.cold = temperatures
        self.moves = 0
        self.rounds = 0
        self.seconds = 0.0
        self._seed = seed
        self._made = 0  # moves of each walk in the present round
        self.bases = families.sets_at(families.vertex_start[1:] - 1)
        self.best = best_of(self.problem, random_order(parents, self._next_seed()))
        self.elite = [self.best]
        self.round: Round | None = None
        self.cooled = False  # a round has ended

    @property
    def vertices(self) -> int:
        """Number of vertices."""
        return self.problem.n

    @property
    def limit(self) -> float:
        """Upper bound of the score: every vertex with its best set."""
        return math.fsum(self.problem.scores[self.problem.first[:-1]].tolist())

    @property
    def perfect(self) -> bool:
        """Whether the limit is reached."""
        return self.limit - self.best.score <= 1e-9 * max(1.0, abs(self.best.score))

    def advance(
        self, left: float, most: int | None, pool: Executor, stop: Bools, watch: Callable[[], Any]
    ) -> bool:
        """Make a slice of this round, or begin the next; return whether the best network is better.

        About `left` moves remain for all rounds: the last round takes them. At most `most` are made
        now. `watch` is called every few hundredths of a second; it may set stop[0]."""
        began = time.perf_counter()
        before = self.best.score
        present = self.round or self.next_round(left)
        self.round = present
        each = min(SLICE, present.moves - self._made)
        shares = [each] * self.count
        if most is not None and most < sum(shares):
            shares = [(most + k) // self.count for k in range(self.count)]
        waiting = {
            pool.submit(walk.advance, share, self.cold, self.bases, stop)
            for walk, share in zip(present.walks, shares, strict=True)
        }
        while waiting:
            done, waiting = wait(waiting, timeout=0.02)
            self.moves += sum(future.result() for future in done)
            watch()
        self._made += each
        states: list[OrderState] = [walk.state for walk in present.walks]
        self._keep_best(max(states, key=lambda state: state.totals[1]))
        if self._made >= present.moves:
            self._end_round(present)
        self.seconds += time.perf_counter() - began
        return self.best.score > before

    def _keep_best(self, state: OrderState) -> None:
        """Keep the best order of a walk if it is better than the best one so far."""
        if state.totals[1] > self.best.score:
            found = best_of(self.problem, state.best)
            self.best = max(self.best, found, key=lambda ordered: ordered.score)

    def _end_round(self, present: Round) -> None:
        """Update the elite, and begin the crossover that follows a round of an elite."""
        self.cooled = True
        found = [best_of(self.problem, walk.state.best) for walk in present.walks]
        self.update_elite([self.best, *found])
        self._made = 0
        self.round = None
        if not present.crossover and len(self.elite) > 1:
            self.round = self.crossover(present.moves)

    def update_elite(self, found: list[Ordered]) -> None:
        """Keep the best of the elite and these networks, those with different scores."""
        ranked = sorted([*self.elite, *found], key=lambda ordered: -ordered.score)
        self.elite = [ranked[0]]
        for ordered in ranked[1:]:
            if self.elite[-1].score - ordered.score > SAME:
                self.elite.append(ordered)
        del self.elite[2 * self.count :]

    def next_round(self, left: float) -> Round:
        """Return walks twice as long as before, or as long as the moves that are left allow."""
        wanted = SWEEPS * self.vertices * 2**self.rounds
        most = left / (self.count * (1 + CROSSOVER))
        moves = max(self.vertices, int(wanted if most > 2 * wanted else most))
        self.rounds += 1
        starts = [STARTS[k % len(STARTS)] for k in range(self.count)]
        return Round([self._walk(*start, moves) for start in starts], moves, crossover=False)

    def _walk(self, start: str, share: float, moves: int) -> OrderWalk:
        hot = max(self.cold, share * self.hot)
        coolings = [Cooling("here", hot, moves)]
        order = self.best.order
        if start == "restarts" and self.count > 1:  # a single walk is cooled slowly
            coolings = restarts((hot, self.cold), SWEEPS * self.vertices, moves)
        if start == "restarts":  # from the best network, no restart would be kept
            order = np.array(random_order(self.bases, self._next_seed()))
        if start == "elite":
            random = np.random.default_rng(self._next_seed())
            order = self.elite[random.integers(len(self.elite))].order
        return OrderWalk(self.problem, order, coolings, self._next_seed())

    def crossover(self, moves: int) -> Round:
        """Return walks from the best network over the sets that the elite uses, and the bases."""
        bases = self.families.vertex_start[1:] - 1
        numbers = np.unique(np.concatenate([bases, *(ordered.choice for ordered in self.elite)]))
        problem = order_problem(self.families.chosen(numbers), self.problem.scores[numbers])
        moves = max(1, int(CROSSOVER * moves))
        coolings = [Cooling("here", self.hot, moves)]
        walks = [
            OrderWalk(problem, self.best.order, coolings, self._next_seed())
            for _ in range(self.count)
        ]
        return Round(walks, moves, crossover=True)

    def _next_seed(self) -> np.random.SeedSequence:
        (seed,) = self._seed.spawn(1)
        return seed


def restarts(temperatures: tuple[float, float], each: int, moves: int) -> list[Cooling]:
    """Return coolings from random orders and one from the best; a single one for few moves."""
    hot, cold = temperatures
    count = int(RESTARTING * moves / each)
    if count < 2:
        return [Cooling("random", hot, moves)]
    return [Cooling("random", hot, each)] * count + [
        Cooling("best", max(cold, AFTERWARDS * hot), moves - count * each)
    ]
