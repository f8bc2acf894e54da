"""`sample_networks`: the posterior over networks of given parent sets, by sums and by chains.

Components of few variables are summed exactly. Several chains from different starts run over all
variables; where they disagree after a part of the time, the components concerned are tempered, and
counting begins anew."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import numpy as np

from ...candidates import SlackSets
from ...foundation.arrays import Bools, Floats, Ints, frozen
from ...foundation.progress import OnProgress, Progress, silent
from ...foundation.stop import Interrupt, Reason, Stop, TimeLimit
from ...foundation.workers import Workers, run
from ..exact import MOST_SUMMED_VERTICES, edges_of, sum_component
from .chains import Chain
from .draws import Draws
from .history import History
from .tables import Tables

OPEN_ERROR = 0.02  # an edge with a larger error is open
OPEN_RHAT = 1.05  # so is one with a larger R-hat
_EXACT_SHARE = 0.5  # of the time, for exact sums
_SECONDS_A_STEP = 8e-9  # of an exact sum of k variables, which takes 3^k steps
_MOST_WITHOUT_CLOCK = 16  # variables of an exact sum where steps are counted
_CHECKS = (0.15, 0.3, 0.5)  # shares of the budget after which chains may be tempered
_STUCK_RHAT = 1.1  # of an edge of a component that is tempered
_MOST_TEMPERED = 100  # variables of a component: copies of more exchange too rarely
_LEAST_STEPS, _STEPS_A_VARIABLE = 500, 10  # of a round
_REPORT_EVERY = 0.25  # seconds
_KEPT = 3  # times as many networks as wanted, so that enough are left of half of them


@dataclass(frozen=True, slots=True)
class Sampled:
    """Probabilities of edges, at [parent, child], and what is known of their errors."""

    edges: Floats = field(repr=False)
    errors: Floats = field(repr=False)  # two standard errors of the sampling; 0 for exact sums
    rhat: Floats = field(repr=False)
    effective: Floats = field(repr=False)  # independent networks with the same error
    exact: Bools  # (n,) whether the variable's component was summed exactly
    draws: Draws = field(repr=False)
    lost: float  # bound of the mass of networks that were left out, averaged over the draws
    steps: int  # of each chain, burn-in not counted
    chains: int
    tempered: int  # variables whose components were tempered
    seconds: float
    interrupted: bool

    @property
    def open(self) -> Bools:
        """(n, n) whether the probability of an edge is not known well enough."""
        found: Bools = (self.errors > OPEN_ERROR) | (self.rhat > OPEN_RHAT)
        return found


class _Clock:
    """Ends at a time limit or Ctrl-C; compilation does not count."""

    def __init__(
        self,
        seconds: float | None,
        interrupt: Interrupt,
        now: Callable[[], float] | None,
    ) -> None:
        self.limit = TimeLimit(seconds, now)
        self._stop = Stop(interrupt, self.limit)

    @property
    def over(self) -> bool:
        """Whether the search is to end."""
        return self._stop()

    @property
    def reason(self) -> Reason | None:
        """Why it ended."""
        return self._stop.reason

    def paused(self) -> AbstractContextManager[None]:
        """Stop the clock inside the block."""
        return self.limit.paused()


def sample_networks(
    sets: SlackSets,
    *,
    seconds: float | None = 20.0,
    steps: int | None = None,
    chains: int = 4,
    draws: int = 1000,
    start: Sequence[int] | Ints | None = None,
    seed: int = 0,
    most_summed: int = MOST_SUMMED_VERTICES,
    now: Callable[[], float] | None = None,
    workers: Workers | None = None,
    interrupt: Interrupt | None = None,
    on_progress: OnProgress = silent,
) -> Sampled:
    """Return the probabilities of edges, and at most so many networks drawn from the posterior.

    It ends after the seconds, after `steps` of each chain, or by Ctrl-C. With steps alone the
    result depends on the seed only. Components of at most `most_summed` variables are summed
    exactly where this takes half of the time at most. `start` are the numbers of the sets of a
    good network, from which the first chain begins; the others begin without optional edges.
    `now` is the clock of the time limit."""
    interrupt = Interrupt() if interrupt is None else interrupt
    with interrupt.listening():
        sampling = _Sampling(
            sets, seconds, steps, chains, draws, seed, _Clock(seconds, interrupt, now)
        )
        sampling.most_summed = most_summed
        sampling.workers = (workers or Workers()).here
        sampling.on_progress = on_progress
        return sampling.run(None if start is None else np.asarray(start, np.int64))


class _Sampling:
    """A run of `sample_networks`."""

    def __init__(
        self,
        sets: SlackSets,
        seconds: float | None,
        steps: int | None,
        chains: int,
        draws: int,
        seed: int,
        clock: "_Clock",
    ) -> None:
        self.sets = sets
        self.seconds = seconds
        self.steps = math.inf if steps is None else steps
        self.wanted = draws
        self.seeds = np.random.SeedSequence(seed).spawn(chains)
        self.clock = clock
        self.workers = Workers()
        self.most_summed = MOST_SUMMED_VERTICES
        self.on_progress: OnProgress = silent
        self.tables = Tables(sets)
        arcs = sets.families.arcs()
        self.arcs = np.nonzero(arcs)
        self.probabilities = np.zeros(len(sets.scores))
        self.exact = np.zeros(sets.n, np.bool_)
        self.history = History(chains, len(self.arcs[0]))
        self.kept = _Kept(_KEPT * -(-draws // chains))
        self.chains: list[Chain] = []
        self.done = 0  # steps, those before tempering counted
        self._reported = -math.inf

    def run(self, start: Ints | None) -> Sampled:
        """Sum what can be summed, then sample until the end."""
        self._sum_components()
        starts = [self.tables.bases for _ in self.seeds]
        if start is not None:
            starts[0] = start
        self.chains = [
            Chain(self.tables, choice, seed)
            for choice, seed in zip(starts, self.seeds, strict=True)
        ]
        with self.clock.paused():
            self.chains[0].compile()
        self._burn_in(starts)
        checks = list(_CHECKS)
        while not self._finished():
            self._round()
            if checks and self._share() >= checks[0]:
                checks.pop(0)
                self._temper_stuck()
            self._report()
        return self._result()

    def _sum_components(self) -> None:
        """Sum the components that take a part of the time at most."""
        allowed = math.inf if self.seconds is None else _EXACT_SHARE * self.seconds
        for vertices in self.tables.components:
            if len(vertices) > self.most_summed:
                continue
            if math.isfinite(self.steps) and len(vertices) > _MOST_WITHOUT_CLOCK:
                continue
            needed = _SECONDS_A_STEP * 3.0 ** len(vertices)
            if needed > allowed or self.clock.over:
                continue
            if sum_component(self.sets, vertices, self.probabilities, self.clock) is not None:
                self.exact[vertices] = True
                allowed -= needed

    def _burn_in(self, starts: Sequence[Ints]) -> None:
        """Cool all chains but those that begin with a good network."""
        cooled = [
            chain.burn_in()
            for chain, choice in zip(self.chains, starts, strict=True)
            if choice is self.tables.bases
        ]
        left = len(cooled)
        while left and not self.clock.over:
            tasks = run(_next_stage, None, cooled, self.workers)
            left = sum(more for _, more in tasks)

    def _finished(self) -> bool:
        """Return whether the search is to end."""
        if self.done >= self.steps:
            return True
        if self.exact.all() and self.history.steps and self.kept.full:
            return True
        return self.clock.over and self.history.steps > 0

    def _share(self) -> float:
        """Return the share of the budget that is used."""
        by_steps = self.done / self.steps
        if self.seconds is None:
            return by_steps
        return max(by_steps, self.clock.limit.elapsed / max(self.seconds, 1e-9))

    def _round(self) -> None:
        """Let every chain make some steps, and count."""
        steps = max(_LEAST_STEPS, _STEPS_A_VARIABLE * self.sets.n)
        steps = int(min(steps, self.steps - self.done))
        before = [chain.counts[self.arcs] for chain in self.chains]
        for _ in run(_advance, steps, self.chains, self.workers):
            pass
        after = [chain.counts[self.arcs] for chain in self.chains]
        self.history.add(np.array(after) - np.array(before), steps)
        self.kept.add(np.array([chain.choice for chain in self.chains], np.int32))
        self.done += steps

    def _temper_stuck(self) -> None:
        """Temper the components in which chains disagree much."""
        estimates = self.history.estimates()
        children = self.arcs[1]
        stuck = np.zeros(self.sets.n, np.bool_)
        stuck[children[estimates.rhat > _STUCK_RHAT]] = True
        known = {int(vertices[0]) for vertices in self.chains[0].tempered}
        wanted = [
            vertices
            for vertices in self.tables.components
            if int(vertices[0]) in known
            or (
                stuck[vertices].any()
                and not self.exact[vertices].any()
                and len(vertices) <= _MOST_TEMPERED
            )
        ]
        if len(wanted) > len(known):
            for chain in self.chains:
                chain.temper(wanted)
            self.history.clear()
            self.kept.clear()

    def _report(self) -> None:
        """Report progress, a few times a second."""
        now = time.perf_counter()
        if now - self._reported < _REPORT_EVERY:
            return
        self._reported = now
        estimates = self.history.estimates()
        unknown = ~self.exact[self.arcs[1]]
        rhat = float(estimates.rhat[unknown].max(initial=1.0))
        error = float(estimates.errors[unknown].max(initial=0.0))
        note = f"R-hat {rhat:.2f}, largest error {error:.3f}, {self.done:,} steps a chain"
        self.on_progress(Progress("posterior", min(self._share(), 1.0), 1.0, note))

    def _result(self) -> Sampled:
        """Return what was found."""
        estimates = self.history.estimates()
        edges = self._matrix(estimates.shares, 0.0)
        summed = edges_of(self.sets.families, self.probabilities)
        edges[:, self.exact] = np.clip(summed[:, self.exact], 0.0, 1.0)
        edges[self._in_all_sets()] = 1.0
        summed_arcs = self.exact[self.arcs[1]]
        errors = np.where(summed_arcs, 0.0, estimates.errors)
        rhat = np.where(summed_arcs, 1.0, estimates.rhat)
        effective = np.where(summed_arcs, math.inf, estimates.effective)
        networks = self._draws()
        return Sampled(
            edges=frozen(edges),
            errors=frozen(self._matrix(errors, 0.0)),
            rhat=frozen(self._matrix(rhat, 1.0)),
            effective=frozen(self._matrix(effective, math.inf)),
            exact=frozen(self.exact),
            draws=networks,
            lost=_mass_lost(self.sets, networks.choices),
            steps=self.done,
            chains=len(self.chains),
            tempered=sum(map(len, self.chains[0].tempered)),
            seconds=self.clock.limit.elapsed,
            interrupted=self.clock.reason is Reason.INTERRUPTED,
        )

    def _in_all_sets(self) -> Bools:
        """Return (n, n) whether all sets of the child hold the parent: a required edge."""
        families = self.sets.families
        found = edges_of(families, np.ones(len(self.sets.scores)))
        every: Bools = found == families.sizes
        return every

    def _matrix(self, values: Floats, elsewhere: float) -> Floats:
        """Return (n, n) the values of the arcs, at [parent, child]."""
        found = np.full((self.sets.n, self.sets.n), elsewhere)
        found[self.arcs] = values
        return found

    def _draws(self) -> Draws:
        """Return the networks that are kept, those of one chain after the other."""
        number = len(self.chains)
        kept = self.kept.chosen(-(-self.wanted // number))
        choices = np.array(kept, np.int64).reshape(len(kept), number, self.sets.n)
        chains = np.repeat(np.arange(number), len(kept))
        by_chain = choices.transpose(1, 0, 2).reshape(len(chains), self.sets.n)[: self.wanted]
        scores = self.sets.scores[by_chain].sum(axis=1)
        return Draws(
            self.sets.names,
            self.sets.families,
            frozen(by_chain),
            frozen(scores),
            frozen(chains[: len(by_chain)]),
            self.sets.title,
        )


class _Kept:
    """Networks of all chains at evenly spread times, of which every other one may be dropped."""

    def __init__(self, most: int) -> None:
        self._most = max(2, most + most % 2)
        self._choices: list[Ints] = []
        self._stride = 1
        self._seen = 0

    def add(self, choices: Ints) -> None:
        """Add (chains, n) numbers of sets."""
        if self._seen % self._stride == 0:
            self._choices.append(choices)
        self._seen += 1
        if len(self._choices) > self._most:
            self._choices = self._choices[::2]
            self._stride *= 2

    def clear(self) -> None:
        """Drop all."""
        self._choices = []
        self._stride = 1
        self._seen = 0

    @property
    def full(self) -> bool:
        """Whether as many are kept as can be wanted."""
        return self._stride > 1

    def chosen(self, wanted: int) -> list[Ints]:
        """Return at most so many, evenly spread, without the first quarter."""
        later = self._choices[len(self._choices) // 4 :]
        places = np.unique(np.linspace(0, max(len(later) - 1, 0), wanted).astype(np.int64))
        return [later[place] for place in places if place < len(later)]


def _next_stage(_: None, stages: Iterator[None]) -> bool:
    """Do the next stage of burn-in; return whether there was one."""
    for _stage in stages:
        return True
    return False


def _advance(steps: int, chain: Chain) -> None:
    """Let a chain make steps."""
    chain.advance(steps)


def _mass_lost(sets: SlackSets, choices: Ints) -> float:
    """Return the bound of the mass that was left out, by the mean over these networks."""
    if not len(choices):
        return sets.lost_bound
    logs = np.log1p(sets.lost)[choices].sum(axis=1)
    top = float(logs.max())
    log_mean = top + math.log(float(np.exp(logs - top).mean()))
    return min(sets.lost_bound, -math.expm1(-log_mean))
