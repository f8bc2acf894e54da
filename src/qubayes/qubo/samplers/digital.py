"""`digital`: the Digital Annealer's algorithm in software (DAQ).

It has parallel trial, dynamic offset and replica exchange. In an iteration of parallel trial every
flip is tried and one of those accepted is made.
"""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...foundation.arrays import AnyArray, Bools, Floats, Ints
from ...foundation.errors import SettingError
from ...foundation.jit import inlined, kernel
from ...foundation.random import BLOCK, REACH, Draws, below, draws_of, next_picks, next_waits
from ...foundation.words import lowest_bit
from ...machines.qubo import Qubo, qubo_from_couplers, upper_triangle
from ...search.run import Ending, Run, warm_up
from .. import Formulation, constrain
from .flips import (
    EXAMPLES,
    Couplings,
    FlipModel,
    FlipWalk,
    Schedule,
    descend,
    flip,
    halting,
    keep_best,
    walk_from,
    watch,
)
from .states import (
    PROVED_OPTIMAL,
    SHARES,
    NetworkOffers,
    formulate_example,
    offer_first,
    reserved_seconds,
    start_state,
    with_slack,
)

MOST_ACTIVE = 2  # bits in a group (paper, Appendix D.4)
SPREAD = 2.0  # the hottest temperature over the coldest, at any time
FLIPS_PER_EXCHANGE = 2**24  # flips tried by a replica between two exchanges, at most
FEW_BLOCKS = 16  # blocks of bits that are tried one by one before all others are tried at once


class BitGroups(NamedTuple):
    """Disjoint ranges of bits with a limit on the number of active ones."""

    group: Ints  # (n,) of each bit; -1: none
    first: Ints  # (groups,)
    last: Ints  # (groups,) one past the last bit

    @staticmethod
    def of(ranges: Sequence[tuple[int, int]], n: int) -> "BitGroups":
        """Return the groups [first, last) of n bits."""
        group = np.full(n, -1, np.int64)
        for number, (first, last) in enumerate(ranges):
            group[first:last] = number
        bounds = np.array(ranges, dtype=np.int64).reshape(-1, 2)
        return BitGroups(group, bounds[:, 0].copy(), bounds[:, 1].copy())


class Replica(NamedTuple):
    """A state and its random stream; changed in place by the kernel."""

    walk: FlipWalk
    wall: Floats  # (padded n,) infinite where a flip is not allowed, 0 elsewhere
    slack: Ints  # (groups,) bits that may still become active
    offset: Floats  # (1,) subtracted from every increment until a flip is accepted
    # (n + 2,) the iteration in which each bit was last tried one by one; the present iteration;
    # blocks
    seen: Ints
    hits: Ints  # (padded n,) work space: accepted bits
    draws: Draws


def replica_from(
    qubo: Qubo, bits: AnyArray, groups: BitGroups, most: int, seeds: np.random.SeedSequence
) -> Replica:
    """Return the replica at this state, with at most `most` active bits in each group."""
    walk = walk_from(qubo, bits, keep_best=True)
    sums = np.concatenate([[0], np.cumsum(np.asarray(bits) != 0)])
    slack = most - (sums[groups.last] - sums[groups.first])
    wall = np.zeros(len(walk.field))
    if len(slack):
        full = (groups.group >= 0) & (slack == 0)[groups.group]
        wall[: qubo.bits][full & (walk.sign[: qubo.bits] > 0)] = np.inf
    return Replica(
        walk=walk,
        wall=wall,
        slack=slack.astype(np.int64),
        offset=np.zeros(1),
        seen=np.append(np.zeros(qubo.bits + 1, np.int64), FEW_BLOCKS),
        hits=np.zeros(len(walk.field), np.int64),
        draws=draws_of(seeds),
    )


@inlined
def _try_some(replica: Replica, beta: float) -> Any:
    """Return the first accepted bit of some blocks in random order; -1 if none is accepted.

    The first accepted bit in a random order of all bits is a random one of all accepted: if many
    are, few are tried."""
    draws = replica.draws
    seen = replica.seen
    sign = replica.walk.sign
    field = replica.walk.field
    wall = replica.wall
    offset = replica.offset[0]
    n = len(seen) - 2
    iteration = seen[n]
    for _ in range(seen[n + 1]):
        picked, drawn = next_picks(draws, n), next_waits(draws)
        for k in range(BLOCK):
            bit = np.int64(draws.picks[picked + k])
            if seen[bit] != iteration:
                seen[bit] = iteration
                if beta * (sign[bit] * field[bit] + wall[bit] - offset) < draws.waits[drawn + k]:
                    seen[n + 1] = FEW_BLOCKS
                    return bit
    seen[n + 1] = 1  # few are accepted here: the next iteration tries one block before all
    return -1


@inlined
def _try_rest(replica: Replica, beta: float) -> int:
    """Return a random accepted bit that `_try_some` did not try; -1 if none is accepted."""
    offset = replica.offset[0]
    n = len(replica.seen) - 2
    found = 0
    for start in range(0, len(replica.wall), BLOCK):
        field = replica.walk.field[start : start + BLOCK]
        sign = replica.walk.sign[start : start + BLOCK]
        wall = replica.wall[start : start + BLOCK]
        near = 0
        for k in range(BLOCK):
            near += beta * (sign[k] * field[k] + wall[k] - offset) < REACH
        if near == 0:
            continue
        drawn = next_waits(replica.draws)
        waits = replica.draws.waits[drawn : drawn + BLOCK]
        mask = np.uint64(0)
        for k in range(BLOCK):
            accepted = beta * (sign[k] * field[k] + wall[k] - offset) < waits[k]
            mask |= np.uint64(accepted) << np.uint64(k)
        while mask:
            bit = start + lowest_bit(mask)
            mask &= mask - np.uint64(1)
            if replica.seen[bit] != replica.seen[n]:
                replica.hits[found] = bit
                found += 1
    return replica.hits[below(replica.draws.words, found)] if found else -1


@kernel
def try_all(
    couplings: Couplings,
    groups: BitGroups,
    replica: Replica,
    heat: tuple[float, float],
    iterations: int,
    halt: Bools,
) -> int:
    """In each iteration try every allowed flip and make an accepted one; return their number.

    `heat` is (inverse temperature, growth). If no flip is accepted, the offset grows by the latter,
    so that the state leaves a local minimum; if one is, it returns to 0. Another thread sets
    halt[0] to stop early."""
    beta, growth = heat
    for iteration in range(iterations):
        if halt[0]:
            return iteration
        replica.seen[len(replica.seen) - 2] += 1
        bit = _try_some(replica, beta)
        if bit < 0:
            bit = _try_rest(replica, beta)
        if bit < 0:
            replica.offset[0] += growth
            continue
        replica.offset[0] = 0.0
        flip(couplings, replica.walk, bit)
        group = groups.group[bit]
        if group >= 0:
            _note_flip(groups, replica, group, replica.walk.sign[bit] < 0.0)
        keep_best(replica.walk)
    return iterations


@inlined
def _note_flip(groups: BitGroups, replica: Replica, group: int, added: bool) -> None:
    """Count an active bit of the group more or less; a full group allows no more."""
    full = added and replica.slack[group] == 1
    if full or replica.slack[group] == 0:
        for other in range(groups.first[group], groups.last[group]):
            replica.wall[other] = np.inf if full and replica.walk.sign[other] > 0.0 else 0.0
    replica.slack[group] += -1 if added else 1


@cache
def load_trial(kind: str) -> None:
    """Compile or load the kernels for weights of this kind."""
    model, groups = FlipModel.of(EXAMPLES[kind]), BitGroups.of([], 2)
    replica = replica_from(model.qubo, np.zeros(2), groups, MOST_ACTIVE, np.random.SeedSequence(0))
    try_all(model.couplings, groups, replica, (1.0, 1.0), 1, np.zeros(1, np.bool_))
    descend(model, np.zeros(2))


class Tempering:
    """Replicas of one QUBO at temperatures of their own, the first SPREAD times as hot as the last.

    All temperatures fall. On alarm m=4 with 400,000 iterations in all, 16 replicas at constant
    temperatures from 10 to 1 ended at energies 11,892 and 11,967 (two seeds), 4 whose temperatures
    fell from 30 to 1 at 11,473 and 11,331."""

    def __init__(
        self,
        model: FlipModel,
        groups: BitGroups,
        starts: Sequence[AnyArray],
        seeds: np.random.SeedSequence,
    ) -> None:
        own, *streams = seeds.spawn(1 + len(starts))
        self.model = model
        self.groups = groups
        self.iterations = 0
        self.replicas = [
            replica_from(model.qubo, bits, groups, MOST_ACTIVE, seed)
            for bits, seed in zip(starts, streams, strict=True)
        ]
        self._places = list(range(len(starts)))  # the replica at each temperature
        self._random = np.random.default_rng(own)
        self._rounds = 0

    @property
    def period(self) -> int:
        """Iterations between two exchanges."""
        return max(16, min(4096, FLIPS_PER_EXCHANGE // max(self.model.qubo.bits, 1)))

    @property
    def best(self) -> tuple[float, Bools]:
        """Energy and bits of the best state so far."""
        walks = [replica.walk for replica in self.replicas]
        walk = min(walks, key=lambda walk: float(walk.best_energy[0]))
        return float(walk.best_energy[0]), walk.best.copy()

    @property
    def bests(self) -> list[Bools]:
        """The best state of each replica."""
        return [replica.walk.best.copy() for replica in self.replicas]

    def advance(
        self,
        pool: ThreadPoolExecutor,
        iterations: int,
        beta: float,
        look: Callable[[], float],
        halt: Bools,
    ) -> None:
        """Iterate with every replica, the coldest at inverse temperature beta, then exchange some.

        Neighbours i, i + 1 swap with probability min(1, exp((b_i - b_j)(E_i - E_j))), even and odd
        i in turn."""
        ratios = [1.0]
        if len(self.replicas) > 1:
            ratios = np.geomspace(1.0 / SPREAD, 1.0, len(self.replicas)).tolist()
        betas = [beta * ratio for ratio in ratios]
        futures = []
        for place, own in zip(self._places, betas, strict=True):
            replica = self.replicas[place]
            trial = partial(try_all, self.model.couplings, self.groups, replica)
            futures.append(pool.submit(trial, (own, 1.0 / own), iterations, halt))
        self.iterations += max(watch(futures, look, halt))
        self._rounds += 1
        for i in range(self._rounds % 2, len(self._places) - 1, 2):
            one, two = self.replicas[self._places[i]], self.replicas[self._places[i + 1]]
            gain = (betas[i] - betas[i + 1]) * float(one.walk.energy[0] - two.walk.energy[0])
            if self._random.random() < math.exp(min(0.0, gain)):
                self._places[i], self._places[i + 1] = self._places[i + 1], self._places[i]
                one.offset[0] = two.offset[0] = 0.0


@dataclass(frozen=True, slots=True)
class Digital:
    """Parallel trial with replica exchange, for at most two subsets a vertex (paper, Appendix D.4).

    Every flip is tried and one of the accepted is made. Replicas at several temperatures, which
    fall from the first to the last, are exchanged. Their number does not depend on the
    threads."""

    first_temperature: float = 30.0
    last_temperature: float = 1.0
    replicas: int = 4

    name: ClassVar[str] = "digital"
    takes: ClassVar[str] = "formulation"
    counts: ClassVar[str] = "iterations of each replica"

    def __post_init__(self) -> None:
        if not 0 < self.last_temperature <= self.first_temperature < float("inf"):
            raise SettingError(
                f"temperatures from {self.first_temperature} to {self.last_temperature}; "
                "they must fall and be positive"
            )
        if self.replicas < 1:
            raise SettingError(f"replicas = {self.replicas}; give 1 or more")

    def prepare(self) -> "Digital":
        """Compile the kernels."""
        warm_up(Digital, formulate=formulate_example)
        for kind in EXAMPLES:
            load_trial(kind)
        return self

    def __call__(self, formulation: Formulation, run: Run, /) -> Ending:
        """Search with all replicas; offer their best states after a descent of the whole QUBO."""
        model = FlipModel.of(formulation.qubo)
        offers = NetworkOffers(formulation, run)
        cost = offer_first(offers, model, start_state(formulation, run))
        statistics = {"iterations": 0, "replicas": self.replicas, "repaired": 0}
        tempering = None if run.over else self._tempering(formulation, run)
        if tempering is None or run.over:
            status = "the time limit is too short to begin; best so far returned"
            return Ending(status, {**statistics, **offers.scores})
        self._search(run, tempering, offers, reserved_seconds(run, 3.0 * cost * self.replicas))
        ends = [descend(model, with_slack(formulation, best)) for best in tempering.bests]
        repaired = sum(map(offers.offer, ends))
        count = tempering.iterations
        what = f"{self.replicas} replicas" if self.replicas > 1 else "1 replica"
        message = offers.message(repaired, self.replicas)
        status = f"{what}, {count:,} iterations of each; {message}"
        if run.proved:
            status = f"{PROVED_OPTIMAL}{status}"
        elif run.moves is not None and tempering.model.qubo.bits and count < run.moves:
            status = f"time limit reached before the last iteration; {status}"
        statistics |= {"iterations": count, "repaired": repaired}
        return Ending(status, {**statistics, **offers.scores})

    def _tempering(self, formulation: Formulation, run: Run) -> Tempering:
        """Return the replicas of the constrained form, at the start."""
        form = constrain(formulation, run.workers)
        qubo = sum_of_qubos(form.score, form.cycles)
        start = start_state(formulation, run)[: qubo.bits]
        return Tempering(
            FlipModel.of(qubo),
            BitGroups.of(form.groups, qubo.bits),
            [start] * self.replicas,
            np.random.SeedSequence(run.seed),
        )

    def _search(
        self, run: Run, tempering: Tempering, offers: NetworkOffers, reserve: float
    ) -> None:
        """Iterate until the limit; offer the best state so far after each share of it."""
        stop = run.until()
        halt = np.zeros(1, np.bool_)
        share = 1
        known = np.inf
        schedule = Schedule(1.0 / np.array([self.first_temperature, self.last_temperature]))
        begin = run.elapsed
        end = begin + run.left - reserve

        def progress() -> float:
            if run.moves is not None:
                return tempering.iterations / run.moves if run.moves else 1.0
            return (run.elapsed - begin) / (end - begin) if end > begin else 1.0

        def look() -> float:
            run.report(done=progress(), total=1.0)
            return run.left - reserve

        with halting(halt, run.workers.count) as pool:
            while tempering.model.qubo.bits and not (halt[0] or stop()):
                part = progress()
                if part >= 1.0:
                    break
                count = tempering.period
                if run.moves is not None:
                    count = min(count, run.moves - tempering.iterations)
                tempering.advance(pool, count, schedule.at(part), look, halt)
                if progress() >= share / SHARES:
                    share += 1
                    energy, best = tempering.best
                    if energy < known:
                        offers.offer(with_slack(offers.formulation, best))
                    known = energy


def sum_of_qubos(one: Qubo, two: Qubo) -> Qubo:
    """Return the sum of two functions of the same bits."""
    first, second = upper_triangle(one), upper_triangle(two)
    rows, columns = np.concatenate([first[0], second[0]]), np.concatenate([first[1], second[1]])
    weights = np.concatenate([first[2], second[2]])
    return qubo_from_couplers(one.h + two.h, rows, columns, weights, one.offset + two.offset)
