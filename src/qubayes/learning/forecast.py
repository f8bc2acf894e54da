"""Forecast of the cost of a search for candidate sets, before it is run.

Small levels of the search are run; the next one is sampled: some of its sets are visited and timed on all threads.
Levels beyond that are extrapolated.
"""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Any, ClassVar

import numpy as np

from ..candidates import Search, identify
from ..candidates.identify import assemble, checked, first_level, scan_level, stamp_of
from ..candidates.levels import Block, Level, make_above, next_level, scan, sets_of_heads, with_bounds
from ..data.dataset import Dataset
from ..foundation.environment import memory_here, peak_memory
from ..foundation.errors import SettingError, TooLargeError, option
from ..foundation.workers import Workers, run

_WHOLE = 3.0  # seconds: a level that is predicted to take no longer is run, not sampled
_SAMPLE = 0.5  # seconds of sampling a level
SETS_TO_PLAN = 100_000_000  # sets of the last level; a search of fewer takes at most a minute or so
SECONDS_TO_WARN = 300.0
log = logging.getLogger("qubayes")
_SETS_FOR_BITS = 100_000  # candidates; a QUBO of more is not made just to count its bits


@dataclass(frozen=True, slots=True)
class Forecast:
    """What the search with at most `max_parents` parents is predicted to cost."""

    max_parents: int
    families: int  # (variable, parent set) pairs to score
    seconds: float
    memory: int  # bytes of the whole process at its peak
    candidates: float  # expected number
    bits: int | None  # of the QUBO, where the search was cheap enough to be run for it
    how: str  # "measured", "sampled" or "extrapolated"

    HEAD: ClassVar[str] = f"{'m':>2} {'sets to score':>18} {'seconds':>10} {'memory':>9} {'candidates':>11} {'bits':>8}"

    def as_json(self) -> dict[str, Any]:
        """Return what `qubayes plan --json` prints of one number of parents."""
        return {
            "m": self.max_parents,
            "sets": self.families,
            "seconds": round(self.seconds, 3),
            "memory": self.memory,
            "candidates": round(self.candidates),
            "bits": self.bits,
            "how": self.how,
        }

    def describe(self) -> str:
        """Return a row of the table that `qubayes plan` prints below `HEAD`."""
        bits = "?" if self.bits is None else f"{self.bits:,}"
        return (
            f"{self.max_parents:>2} {self.families:>18,} {self.seconds:>10,.1f} {self.memory / 1e6:>6,.0f} MB "
            f"{self.candidates:>11,.0f} {bits:>8}  {self.how}"
        )


@dataclass(frozen=True, slots=True)
class _Pace:
    """How fast sets of a level are visited, and how often a candidate is found among them."""

    seconds: float  # of wall clock, a set
    candidates: float  # a set
    how: str


def in_words(seconds: float) -> str:
    """Return a time in the unit that suits it: 35 s, 77 minutes, 21 hours, 9 days."""
    for unit, size, most in (("s", 1, 120), ("minutes", 60, 120), ("hours", 3600, 72)):
        if seconds < most * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86400:,.0f} days"


def largest_that_fits(forecasts: Sequence[Forecast], seconds: float, memory: float) -> int:
    """Return the largest number of parents within these seconds and bytes; 0 if none is."""
    return max((f.max_parents for f in forecasts if f.seconds <= seconds and f.memory <= memory), default=0)


def plan(dataset: Dataset, search: Search, *, workers: Workers | None = None) -> tuple[Forecast, ...]:
    """Return a forecast for each number of parents from 1 to search.max_parents."""
    search, workers = checked(dataset, search), workers or Workers()
    if workers.cluster is not None:
        raise SettingError(f"a plan is made on this machine; leave out {option('cluster')}")
    level: Level | None = first_level(dataset, search)
    tiny = Dataset(dataset.names[:3], dataset.states[:3], np.ascontiguousarray(dataset.codes[:3, :2]))
    identify(tiny, Search(0), workers=Workers(1))  # compiles, so that the clock sees the search alone
    forecasts: list[Forecast] = []
    blocks: list[Block] = []
    resting, seconds, found = peak_memory(), 0.0, 0.0
    before = pace = before_last = last = _Pace(1e-9, 1.0, "measured")
    for k in range(1, search.max_parents + 2):
        sets = comb(dataset.n, k)
        before, before_last = pace, last
        if level is None:
            pace, last = extrapolated(before, pace), extrapolated(before_last, last)
        else:
            bounded = with_bounds(level)  # as the last level is searched where bounds pay
            pace = sampled(level, workers)
            last = pace if bounded is level else sampled(bounded, workers)
        if level is not None and pace.seconds * sets <= _WHOLE:
            above = make_above(level, last=False)
            began = time.perf_counter()
            new = [block for _, block in scan_level(level, above, workers)]
            pace = _Pace((time.perf_counter() - began) / sets, sum(len(b.child) for b in new) / sets, "measured")
            last = min(last, pace, key=lambda each: each.seconds)
            blocks += new
            level = next_level(level, above) if k <= search.max_parents else None
        else:
            level = None
        below, seconds = seconds, seconds + pace.seconds * sets
        found += pace.candidates * sets
        if k > 1:
            bits = _bits(dataset, search, blocks) if pace.how == "measured" else None
            expected = max(found - dataset.n, 0.0)
            memory = resting + table_bytes(dataset, search, k - 1) + int(expected) * (12 * k + 24)
            families = dataset.n * sum(comb(dataset.n - 1, size) for size in range(k))
            took = below + last.seconds * sets
            forecasts.append(Forecast(k - 1, families, took, memory, expected, bits, pace.how))
    return tuple(forecasts)


def check_cost(dataset: Dataset, search: Search, workers: Workers, limit: float | None = None) -> None:
    """Warn of a search for candidate sets that takes long; raise if it does not fit the memory or the limit (seconds).

    Only large searches are predicted. A search among possible parents is short and small.
    """
    search = checked(dataset, search)
    m = search.max_parents
    if comb(dataset.n, m + 1) < SETS_TO_PLAN or m < 2 or search.possible_parents is not None:
        return
    remedy = f"take fewer parents, or {option('possible_parents', 30)}"
    needed, here = peak_memory() + table_bytes(dataset, search, m), memory_here()
    if here is not None and needed > here:
        raise TooLargeError(
            f"{option('max_parents', m)} needs {needed / 1e9:,.1f} GB for the candidate sets; "
            f"{here / 1e9:,.1f} GB are here: {remedy}"
        )
    if workers.cluster is not None:
        return
    *_, fewer, wanted = plan(dataset, search, workers=Workers(workers.threads))
    forecast = (
        f"{option('max_parents', m)} would take about {in_words(wanted.seconds)} for the candidate sets; "
        f"{option('max_parents', m - 1)} takes about {in_words(fewer.seconds)}"
    )
    if limit is not None and wanted.seconds > limit:
        raise SettingError(f"{forecast}; the limit is {limit:g} s: {remedy}, or give more time")
    if wanted.seconds > SECONDS_TO_WARN:
        log.warning("%s; %s is quick, but optimal only among these parents", forecast, option("possible_parents", 30))


def sampled(level: Level, workers: Workers) -> _Pace:
    """Visit random sets of the level for half a second on all threads."""
    sets = sets_of_heads(level)
    order = np.random.default_rng(0).permutation(len(level.heads)).tolist()
    shared = (level, make_above(level, last=True))  # a sample keeps nothing for the next level
    scan(shared, (len(level.heads) - 1, len(level.heads)))  # a few sets: compiles or loads the kernels
    spent, visited, found = 0.0, 0, 0
    batch = 2 * workers.count
    while order and spent < _SAMPLE:
        chosen, order = order[:batch], order[batch:]
        began = time.perf_counter()
        found += sum(len(b.child) for _, b in run(scan, shared, [(h, h + 1) for h in chosen], workers))
        spent += time.perf_counter() - began
        visited += int(sets[chosen].sum())
        batch *= 2
    return _Pace(spent / max(visited, 1), found / max(visited, 1), "sampled")


def extrapolated(before: _Pace, pace: _Pace) -> _Pace:
    """Extrapolate to a level that cannot be sampled: the trend of the last two levels, within limits."""
    slower = min(max(pace.seconds / before.seconds, 1.0), 1.5)
    rarer = min(pace.candidates / max(before.candidates, 1e-12), 1.0)
    return _Pace(slower * pace.seconds, rarer * pace.candidates, "extrapolated")


def table_bytes(dataset: Dataset, search: Search, max_parents: int) -> int:
    """Bytes of what the search keeps between levels: best scores (twice at last), terms, numbers of states, ones."""
    n, m = dataset.n, max_parents
    best = 8 * n * (comb(n, m - 1) + (max(comb(n, m - 2), comb(n, m - 1)) if m > 1 else 0))
    return best + (8 + 4 + 4) * (comb(n, m) + comb(n, m - 1))


def _bits(dataset: Dataset, search: Search, blocks: list[Block]) -> int | None:
    """Bits of the QUBO of the candidates found so far."""
    if sum(len(block.child) for block in blocks) > _SETS_FOR_BITS:
        return None
    from ..qubo import count_bits  # the QUBO wing, which a plan of many candidates does not enter
    from ..qubo.subsets import cover

    candidates = assemble(dataset.names, blocks, stamp_of(dataset, search))
    return count_bits(candidates, cover(candidates))["total"]
