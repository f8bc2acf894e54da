"""`Chain`: a Markov chain over networks; parallel tempering for the components that need it."""

from collections.abc import Iterator, Sequence

import numpy as np

from ...foundation.arrays import Floats, Ints
from .blocks import State, exchange, new_scratch, new_state, run_steps
from .tables import Tables

# Cumulated probabilities of blocks of 1 to 4 variables.
_SIZES = np.array([0.1, 0.4, 0.7, 1.0])
_HOT = 0.1  # inverse temperature at which a chain begins
_STAGES = 15  # of burn-in, from there to 1
_SWEEPS = 20  # steps for each variable in a stage
_LEAST_BETA = 0.15  # inverse temperature of the hottest copy
_COPIES = 6  # networks of a tempered chain


class Chain:
    """A network that changes step by step; its distribution comes near the posterior.

    `temper` adds hotter copies of the network. Neighbouring copies exchange the parent sets of a
    whole component, which is possible as no cycle runs through two components."""

    def __init__(self, tables: Tables, start: Ints, seed: np.random.SeedSequence) -> None:
        self._tables = tables
        self._partners = tables.partners()
        self._all = np.arange(tables.sets.n)
        seeds = seed.spawn(_COPIES + 1)
        self._random = np.random.default_rng(seeds[-1])
        self._seeds = seeds[:-1]
        table = tables.at(1.0)
        self._scratch = new_scratch(table)
        self.copies = [new_state(table, start, seeds[0])]
        self.betas: Floats = np.ones(1)
        self.tempered: list[Ints] = []  # components
        self.swaps = np.zeros((2, _COPIES - 1))  # tried and made, by colder copy

    @property
    def choice(self) -> Ints:
        """(n,) the number of the set of each variable."""
        return self.copies[0].choice

    @property
    def counts(self) -> Ints:
        """(n, n) steps with each edge, at [parent, child]."""
        return self.copies[0].counts

    @property
    def score(self) -> float:
        """The score of the network."""
        return float(self._tables.sets.scores[self.choice].sum())

    def compile(self) -> None:
        """Load or compile the kernels."""
        self._run(self.copies[0], 1.0, self._all, 0)
        exchange(self._tables.at(1.0), self._all[:0], self.copies[0], self.copies[0])

    def burn_in(self) -> Iterator[None]:
        """Cool down from a high temperature, in stages."""
        steps = _SWEEPS * len(self._all)
        for beta in np.geomspace(_HOT, 1.0, _STAGES).tolist():
            self._run(self.copies[0], beta, self._all, steps)
            yield

    def temper(self, components: Sequence[Ints]) -> None:
        """Add hotter copies, which change these components."""
        self.tempered = list(components)
        self.betas = np.geomspace(1.0, _LEAST_BETA, _COPIES)
        table = self._tables.at(1.0)
        while len(self.copies) < _COPIES:
            seed = self._seeds[len(self.copies)]
            self.copies.append(new_state(table, self.choice, seed))

    def advance(self, steps: int) -> None:
        """Make steps of the network, and as many of each hotter copy of the components."""
        if not self.tempered:
            self._run(self.copies[0], 1.0, self._all, steps)
            return
        vertices = np.concatenate(self.tempered)
        part = 2 * len(self._all)
        for first in range(0, steps, part):
            now = min(part, steps - first)
            self._run(self.copies[0], 1.0, self._all, now)
            hot = max(1, now * len(vertices) // len(self._all))
            for copy, beta in zip(self.copies[1:], self.betas[1:].tolist(), strict=True):
                self._run(copy, beta, vertices, hot)
            self._exchange()

    def _run(self, state: State, beta: float, vertices: Ints, steps: int) -> None:
        """Make steps at an inverse temperature."""
        table = self._tables.at(beta)
        run_steps(table, self._partners, vertices, _SIZES, state, self._scratch, steps)

    def _exchange(self) -> None:
        """Let every other pair of neighbouring copies exchange components."""
        scores = self._tables.sets.scores
        first = int(self._random.integers(2))
        for colder in range(first, len(self.copies) - 1, 2):
            cold, hot = self.copies[colder], self.copies[colder + 1]
            fall = self.betas[colder] - self.betas[colder + 1]
            for vertices in self.tempered:
                gain = scores[hot.choice[vertices]].sum() - scores[cold.choice[vertices]].sum()
                self.swaps[0, colder] += 1
                if np.log(self._random.random()) < fall * gain:
                    self.swaps[1, colder] += 1
                    exchange(self._tables.at(1.0), vertices, cold, hot)
