"""Forecast of the cost of a search for candidate sets, before it is run.

Small levels of the search are run; the next one is sampled: some of its sets are visited and timed on all threads.
Levels beyond that are extrapolated.
"""

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import comb, inf
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..candidates import Search, identify
from ..candidates.identify import assemble, checked, first_level, scan_level, too_many_sets
from ..candidates.levels import Block, Level, make_above, next_level, scan, sets_of_heads, with_bounds
from ..candidates.scanning import Above
from ..candidates.screening import (
    best_parents,
    blocks_of_children,
    blocks_with_singles,
    candidates_of_child,
    prepare_pairs,
    with_partners,
)
from ..data.dataset import Dataset
from ..foundation.environment import memory_here, peak_memory
from ..foundation.errors import SettingError, TooLargeError, option
from ..foundation.families import VertexSet
from ..foundation.progress import OnProgress, Progress, silent
from ..foundation.workers import Workers, run

_WHOLE = 3.0  # seconds: a level that is predicted to take no longer is run, not sampled
_SAMPLE = 0.5  # seconds of sampling a level
WORK_TO_PLAN = 2 * 10**11  # sets of the last level times rows; a search of less takes a few minutes at most
_LEAST_ROWS = 1000  # for the memory: fewer rows do not make the tables smaller
_WORK_A_SECOND = 10**8  # at least
SECONDS_TO_WARN = 300.0
_SHARE = 0.6  # share of the time limit for candidate sets that are chosen to fit: the rest is the solver's
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

    seconds: float  # seconds of wall clock per set
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


def plan(
    dataset: Dataset,
    search: Search,
    *,
    workers: Workers | None = None,
    count_bits: bool = True,
    longest: float = _WHOLE,
    on_progress: OnProgress = silent,
) -> tuple[Forecast, ...]:
    """Return a forecast for each number of parents from 1 to search.max_parents.

    A level that is predicted to take `longest` seconds at most is run, and measured; of the next one a sample is timed.
    """
    search, workers = checked(dataset, search), workers or Workers()
    if workers.cluster is not None:
        raise SettingError(f"a plan is made on this machine; leave out {option('cluster')}")
    level: Level | None = first_level(dataset, search)
    tiny = Dataset(dataset.names[:3], dataset.states[:3], np.ascontiguousarray(dataset.codes[:3, :2]))
    identify(tiny, Search(0), workers=Workers(1))  # compiles, so that the clock sees the search alone
    forecasts: list[Forecast] = []
    blocks: list[Block] = []
    memory_before, below, found = peak_memory(), 0.0, 0.0
    before = pace = before_last = last = _Pace(1e-9, 1.0, "measured")
    for k in range(1, search.max_parents + 2):
        on_progress(Progress("plan", k - 1, search.max_parents + 1, f"sets of {k} variables"))
        sets = comb(dataset.n, k)
        before, before_last = pace, last
        if level is None:
            pace, last = extrapolated(before, pace), extrapolated(before_last, last)
        else:
            pace, last, above, new = _tried(level, sets, workers, longest)
            blocks += new
            level = None if above is None or k > search.max_parents else next_level(level, above)
        found += pace.candidates * sets
        if k > 1:
            expected = max(found - dataset.n, 0.0)
            memory = memory_before + table_bytes(dataset, search, k - 1) + int(expected) * (12 * k + 24)
            families = dataset.n * sum(comb(dataset.n - 1, size) for size in range(k))
            bits = _bits(dataset, search, blocks) if count_bits and pace.how == "measured" else None
            forecasts.append(Forecast(k - 1, families, below + last.seconds * sets, memory, expected, bits, pace.how))
        below += pace.seconds * sets
    on_progress(Progress("plan", search.max_parents + 1, search.max_parents + 1))
    return tuple(forecasts)


def _tried(level: Level, sets: int, workers: Workers, longest: float) -> tuple[_Pace, _Pace, Above | None, list[Block]]:
    """Return the pace of a level, and its pace as the last one; what it leaves, and its blocks, where it was run."""
    bounded = with_bounds(level)  # as the last level is searched where bounds pay
    pace = sampled(level, workers)
    last = pace if bounded is level else sampled(bounded, workers)
    if pace.seconds * sets > longest:
        return pace, last, None, []
    above, began = make_above(level, last=False), time.perf_counter()
    blocks = [block for _, block in scan_level(level, above, workers)]
    pace = _Pace((time.perf_counter() - began) / sets, sum(len(b.child) for b in blocks) / sets, "measured")
    return pace, min(last, pace, key=lambda each: each.seconds), above, blocks


def seconds_among(dataset: Dataset, search: Search, workers: Workers) -> float:
    """Return the predicted seconds of a search among possible parents: some variables are screened and searched."""
    allowed, most = search.knowledge.resolve(dataset.names, search.max_parents), search.possible_parents or dataset.n
    pairs = prepare_pairs(dataset, search.score.formula(dataset.rows))
    blocks, ranked, kept = blocks_of_children(pairs.kinds), dict[int, list[int]](), dict[int, VertexSet]()
    screened, began = 0, time.perf_counter()
    for place in np.random.default_rng(0).permutation(len(blocks)).tolist():
        ranked |= best_parents((pairs, allowed, most), blocks[place])
        screened += int(pairs.kinds[blocks[place], 1].sum())
        if (spent := time.perf_counter() - began) >= _SAMPLE:
            break
    seconds = spent * float(pairs.kinds[:, 1].sum()) / screened
    sample = pairs.sample
    tasks = blocks_with_singles(sample, ranked, most)  # those of few states come first
    tasks = [tasks[place] for place in np.random.default_rng(0).permutation(len(tasks)).tolist()]
    pace, found = _pace_of(with_partners, (sample, allowed, most), tasks, workers)
    for some in found:
        kept |= some
    seconds += pace * len(found) / len(kept) * dataset.n
    everyone = tuple(kept.get(child, ()) for child in range(dataset.n))
    pace, _ = _pace_of(candidates_of_child, (dataset, search.score, allowed, everyone), sorted(kept), workers)
    return seconds + pace * dataset.n


def _pace_of(task: Any, shared: Any, items: Sequence[Any], workers: Workers) -> tuple[float, list[Any]]:
    """Return the seconds of a task, and the results of those that were tried: more and more of them until _SAMPLE."""
    task(shared, items[0])  # compiles or loads the kernels
    found, spent, batch = list[Any](), 0.0, 2 * workers.count
    while len(found) < len(items) and spent < _SAMPLE:
        began, some = time.perf_counter(), items[len(found) : len(found) + batch]
        found += [result for _, result in run(task, shared, some, workers)]
        spent, batch = spent + time.perf_counter() - began, 2 * batch
    return spent / len(found), found


def affordable(
    dataset: Dataset,
    search: Search,
    workers: Workers,
    limit: float | None = None,
    *,
    smaller: bool = False,
    on_progress: OnProgress = silent,
) -> Search:
    """Return the search for candidate sets, once it is known to fit the memory and the limit (seconds).

    One that does not fit is refused. With `smaller` and a limit, the largest number of parents that fits is taken
    instead, or a search among possible parents, and a warning says so. Only large searches are predicted; on a cluster
    only their memory.
    """
    limit, began = inf if limit is None else limit, time.perf_counter()
    smaller, here = smaller and limit < inf, memory_here() or inf
    if search.possible_parents is not None and search.possible_parents >= dataset.n - 1:  # nothing is left out
        search = replace(search, possible_parents=None)
    if not (smaller and search.possible_parents is None and too_many_sets(dataset.n, search.max_parents)):
        search = checked(dataset, search)
    if not _is_large(dataset, search, limit):
        return search
    needed = peak_memory() + table_bytes(dataset, search, search.max_parents)
    if search.possible_parents is None and needed > here and not smaller:
        raise TooLargeError(
            f"{option('max_parents', search.max_parents)} needs {needed / 1e9:,.1f} GB for the candidate sets; "
            f"{here / 1e9:,.1f} GB are here: take fewer parents, or {option('possible_parents', 30)}"
        )
    if workers.cluster is not None:
        return search
    offers = _offers(dataset, search, Workers(workers.threads), limit, on_progress)
    whole, share = next(offers), _SHARE * limit if smaller else limit
    about = "years" if whole.seconds == inf else f"about {in_words(whole.seconds)}"
    forecast = f"{_named(search)} would take {about} for the candidate sets"
    if whole.fits(share, here):
        if limit == inf and whole.seconds > SECONDS_TO_WARN:
            other = next(offers, None)
            log.warning("%s%s", forecast, f"; {other}" if other else "")
        return search
    fits, offer = False, whole
    for offer in offers:
        fits = offer.fits(share - (time.perf_counter() - began), here)
        if fits:
            break
    if fits and smaller:
        taken = f"{_named(offer.search)} is taken, about {in_words(offer.seconds)}"
        log.warning("%s; the limit is %g s: %s", forecast, limit, taken)
        return offer.search
    forecast += "" if offer is whole else f"; {offer}"
    raise SettingError(f"{forecast}; the limit is {limit:g} s: {'choose that, or ' if fits else ''}give more time")


class _Offer(NamedTuple):
    """A search for candidate sets with the seconds and bytes that it is predicted to take."""

    search: Search
    seconds: float
    memory: float

    def fits(self, seconds: float, memory: float) -> bool:
        """Return whether it takes no more than this."""
        return self.seconds <= seconds and self.memory <= memory

    def __str__(self) -> str:
        among = " and is optimal only among these parents" if self.search.possible_parents else ""
        return f"{_named(self.search)} takes about {in_words(self.seconds)}{among}"


def _is_large(dataset: Dataset, search: Search, limit: float) -> bool:
    """Return whether the search may take long, or longer than the limit; one among possible parents is short."""
    n, m, kept = dataset.n, search.max_parents, search.possible_parents
    if m < 1 or (kept is not None and limit == inf):
        return False
    sets = comb(n, m + 1) if kept is None else n * (n + comb(kept + 1, m + 1))
    return sets * max(dataset.rows, _LEAST_ROWS) >= min(WORK_TO_PLAN, max(limit, 1.0) * _WORK_A_SECOND)


def _offers(
    dataset: Dataset, search: Search, workers: Workers, limit: float, on_progress: OnProgress
) -> Iterator[_Offer]:
    """Yield the search itself, then smaller ones, each predicted when it is asked for."""
    n, largest, whole = dataset.n, search.max_parents, dict[int, Forecast]()
    while search.possible_parents is None and too_many_sets(n, largest):
        largest -= 1
    for m, few in _sizes(search):
        size = replace(search, max_parents=m, possible_parents=few)
        if few is not None:
            if few < n - 1:
                yield _Offer(size, seconds_among(dataset, size, workers), 0.0)
        elif m > largest or largest < min(search.max_parents, 2):
            if size == search:
                yield _Offer(size, inf, inf)
        else:
            if not whole:
                most, longest = replace(search, max_parents=largest), min(_WHOLE, limit / 20)
                found = plan(dataset, most, workers=workers, count_bits=False, longest=longest, on_progress=on_progress)
                whole = {each.max_parents: each for each in found}
            yield _Offer(size, whole[m].seconds, float(whole[m].memory))


def _sizes(search: Search) -> Iterator[tuple[int, int | None]]:
    """Yield (parents, possible parents) from large to small.

    Three parents among 30 possible ones give better networks than two among all (docs/candidates.md).
    """
    m, kept = search.max_parents, search.possible_parents
    fewer = range(m, 0, -1)
    if kept is not None:
        yield from ((parents, kept) for parents in fewer)
        return
    several = [parents for parents in fewer if parents > 1] or [m]
    yield from ((parents, few) for parents in several for few in (None, 30))
    yield from ((parents, 10) for parents in fewer)
    if m > 1:
        yield 1, None


def _named(search: Search) -> str:
    """Return the size of the search as options."""
    kept = "" if search.possible_parents is None else f" {option('possible_parents', search.possible_parents)}"
    return option("max_parents", search.max_parents) + kept


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

    candidates = assemble(dataset, search, blocks)
    return count_bits(candidates, cover(candidates))["total"]
