"""`History`: how often edges were there over time, in several chains; errors and R-hat of that."""

from typing import NamedTuple

import numpy as np

from ...foundation.arrays import Floats, Ints

_BATCHES = 64  # of a chain at most; then two become one
_LEFT_OUT = 4  # one part of so many, at the beginning of each chain, is left out
_LEAST_SHARE = 0.01  # R-hat takes rarer edges, and more certain ones, for as frequent as this
_WIDE = 2.0  # standard errors


class Estimates(NamedTuple):
    """What the chains say of each edge."""

    shares: Floats  # (edges,)
    errors: Floats  # (edges,) two standard errors
    rhat: Floats  # (edges,)
    effective: Floats  # (edges,) number of independent networks with the same error


class History:
    """Counts of edges in batches of equally many rounds, for each chain."""

    def __init__(self, chains: int, edges: int) -> None:
        self._counts = np.zeros((_BATCHES, chains, edges))  # the last batch grows
        self._steps = np.zeros(_BATCHES)
        self._batch = 0
        self._rounds = 0  # of the last batch
        self._length = 1  # rounds of a batch

    @property
    def steps(self) -> int:
        """Steps of each chain."""
        return int(self._steps.sum())

    def clear(self) -> None:
        """Forget all rounds."""
        self._counts[:] = 0.0
        self._steps[:] = 0.0
        self._batch = 0
        self._rounds = 0
        self._length = 1

    def add(self, counts: Ints, steps: int) -> None:
        """Add a round: (chains, edges) steps with each edge, of so many."""
        if self._rounds == self._length:
            self._batch += 1
            self._rounds = 0
        if self._batch == _BATCHES:
            self._join()
        self._counts[self._batch] += counts
        self._steps[self._batch] += steps
        self._rounds += 1

    def _join(self) -> None:
        """Make one batch of two."""
        half = _BATCHES // 2
        self._counts[:half] = self._counts[0::2] + self._counts[1::2]
        self._steps[:half] = self._steps[0::2] + self._steps[1::2]
        self._counts[half:] = 0.0
        self._steps[half:] = 0.0
        self._batch = half
        self._length *= 2

    def estimates(self) -> Estimates:
        """Return the shares of the steps with each edge, without the beginning of the chains."""
        last = self._batch + (self._rounds == self._length)
        first = last // _LEFT_OUT
        counts = self._counts[first:last]
        steps = self._steps[first:last]
        chains, edges = counts.shape[1:]
        if not len(steps):
            nothing = np.zeros(edges)
            return Estimates(nothing, nothing + 1.0, nothing + np.inf, nothing)
        shares = counts.sum(axis=0) / steps.sum()
        mean = shares.mean(axis=0)
        errors = _WIDE * np.sqrt(_variance_of_mean(counts / steps[:, None, None], shares))
        half = (last - first) // 2
        halves = shares
        if half:
            early = counts[:half].sum(axis=0) / steps[:half].sum()
            late = counts[half:].sum(axis=0) / steps[half:].sum()
            halves = np.concatenate([early, late])
        spread = mean * (1.0 - mean)
        inside = np.maximum((shares * (1.0 - shares)).mean(axis=0), _floor())
        between = halves.var(axis=0, ddof=1) if len(halves) > 1 else np.zeros(edges)
        rhat = np.sqrt(1.0 + between / inside)
        with np.errstate(divide="ignore", invalid="ignore"):
            effective = spread / (errors / _WIDE) ** 2
        whole = float(steps.sum()) * chains
        effective = np.where(errors > 0.0, np.minimum(effective, whole), whole)
        return Estimates(mean, errors, rhat, effective)


def _floor() -> float:
    """Return the variance of an edge of the least share."""
    return _LEAST_SHARE * (1.0 - _LEAST_SHARE)


def _variance_of_mean(batches: Floats, shares: Floats) -> Floats:
    """Return the variance of the mean, by batches in chains or by chains, the larger one.

    `batches` are (batches, chains, edges) shares, `shares` those of whole chains."""
    number, chains, edges = batches.shape
    by_batches = np.full(edges, 0.25)
    if number > 1:
        inside = ((batches - shares) ** 2).sum(axis=(0, 1)) / (chains * (number - 1))
        by_batches = inside / (chains * number)
    if chains == 1:
        return by_batches
    by_chains: Floats = shares.var(axis=0, ddof=1) / chains
    largest: Floats = np.maximum(by_batches, by_chains)
    return largest
