"""Replica exchange: parallel trial at several temperatures at once, all falling; neighbours swapped now and then."""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ...foundation.arrays import AnyArray, Bools, Floats
from .reads import Model, watch
from .trial import Groups, replica_from, try_all

MOST = 2  # active bits in a group (Appendix D.4)
SPREAD = 2.0  # the hottest temperature over the coldest, at any time
WORK = 2**21  # flips tried by a replica between two exchanges, about 4 ms


class Tempering:
    """Replicas of one QUBO, each at its own temperature: the last at the coldest, the first SPREAD times as hot.

    On alarm m=4, 400,000 iterations in all, 16 replicas from 10 to 1 that did not fall ended at energies 11,892 and
    11,967 (two seeds), 4 that fell from 30 to 1 at 11,473 and 11,331.
    """

    def __init__(self, model: Model, groups: Groups, starts: Sequence[AnyArray], seeds: np.random.SeedSequence) -> None:
        own, *streams = seeds.spawn(1 + len(starts))
        self.model, self.groups, self.iterations = model, groups, 0
        self.replicas = [
            replica_from(model.qubo, bits, groups, MOST, seed) for bits, seed in zip(starts, streams, strict=True)
        ]
        self._places = list(range(len(starts)))  # the replica at each temperature
        self._random, self._rounds = np.random.default_rng(own), 0

    @property
    def period(self) -> int:
        """Iterations between two exchanges."""
        return max(16, min(1024, WORK // max(self.model.qubo.bits, 1)))

    @property
    def best(self) -> tuple[float, Bools]:
        """Energy and bits of the best state so far."""
        walk = min((replica.walk for replica in self.replicas), key=lambda walk: float(walk.best_energy[0]))
        return float(walk.best_energy[0]), walk.best.copy()

    @property
    def bests(self) -> list[Bools]:
        """The best state of each replica."""
        return [replica.walk.best.copy() for replica in self.replicas]

    def advance(
        self, pool: ThreadPoolExecutor, iterations: int, beta: float, look: Callable[[], float], halt: Bools
    ) -> None:
        """Let every replica iterate, the coldest at this inverse temperature, then exchange neighbours."""
        betas = beta * (np.geomspace(1.0 / SPREAD, 1.0, len(self.replicas)) if len(self.replicas) > 1 else np.ones(1))
        heats = [(beta, 1.0 / beta) for beta in betas.tolist()]
        futures = [
            pool.submit(try_all, self.model.couplings, self.groups, self.replicas[place], heat, iterations, halt)
            for place, heat in zip(self._places, heats, strict=True)
        ]
        self.iterations += max(watch(futures, look, halt))
        self._exchange(betas)

    def _exchange(self, betas: Floats) -> None:
        """Swap neighbours i, i + 1 with probability min(1, exp((b_i - b_j)(E_i - E_j))), even and odd i in turn."""
        self._rounds += 1
        for i in range(self._rounds % 2, len(self._places) - 1, 2):
            one, two = self.replicas[self._places[i]], self.replicas[self._places[i + 1]]
            gain = (betas[i] - betas[i + 1]) * float(one.walk.energy[0] - two.walk.energy[0])
            if self._random.random() < math.exp(min(0.0, gain)):
                self._places[i], self._places[i + 1] = self._places[i + 1], self._places[i]
                one.offset[0] = two.offset[0] = 0.0
