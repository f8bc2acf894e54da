"""Forecasts of the cost of a search for candidate sets: parts of the search are run and timed.

A part is a range of neighbouring sets, or some of the variables, as the search itself takes them.
After a level that is too long to be run, further levels are extrapolated.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from math import comb
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..data.dataset import Dataset
from ..foundation.environment import peak_memory
from ..foundation.errors import SettingError, option
from ..foundation.families import VertexSet
from ..foundation.progress import OnProgress, Progress, silent
from ..foundation.workers import Workers, run
from .by_extensions import FAMILY_SECONDS, bytes_of_child, families_of
from .candidates import Candidates
from .identify import CandidateSearch, assemble, checked, first_level, sets_per_block
from .knowledge import allowed_for
from .levels import (
    Level,
    bounds_pay,
    make_above,
    next_level,
    scan_block,
    sets_of_heads,
    split,
    with_bounds,
)
from .moments import PAIR_SECONDS, bytes_of_tables, pairs_of, prepare, scan_sizes
from .own_sets import SET_BYTES, calls_of, seconds_of_calls
from .parts import bytes_of_parts, scan_parts, seconds_of
from .scanning import Above, Block
from .screening import (
    best_parents,
    blocks_of_children,
    blocks_with_singles,
    candidates_of_child,
    prepare_pairs,
    with_partners,
)

WHOLE = 3.0  # seconds: a level that is predicted to take no longer is run, not sampled
_SAMPLES = 12  # samples take this part of these seconds each
_LEAST_SAMPLE = 0.1  # seconds: less does not see how busy the machine is
_RANGES = 4  # of a sample, at least: enough to meet cheap and costly variables
_LEAST_SETS = 1000  # of a range
_FIRST_PACE = 1e-6  # seconds a set, before anything is measured
_FASTER = 4  # times that bounds make the last level faster, at least (docs/candidates.md)
_CHILDREN = 32  # variables whose partners are found together in a sample


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
    possible_parents: int | None = None

    HEAD: ClassVar[str] = (
        f"{'m':>2} {'sets to score':>18} {'seconds':>10} {'memory':>9} "
        f"{'candidates':>11} {'bits':>8}"
    )

    def fits(self, seconds: float, memory: float) -> bool:
        """Return whether the search takes no more than this."""
        return self.seconds <= seconds and self.memory <= memory

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
            f"{self.max_parents:>2} {self.families:>18,} {self.seconds:>10,.1f} "
            f"{self.memory / 1e6:>6,.0f} MB {self.candidates:>11,.0f} {bits:>8}  {self.how}"
        )


def largest_that_fits(forecasts: Sequence[Forecast], seconds: float, memory: float) -> int:
    """Return the largest number of parents within these seconds and bytes; 0 if none is."""
    return max((each.max_parents for each in forecasts if each.fits(seconds, memory)), default=0)


def forecasts(
    dataset: Dataset,
    search: CandidateSearch,
    *,
    workers: Workers | None = None,
    longest: float = WHOLE,
    bits_of: Callable[[Candidates], int | None] | None = None,
    on_progress: OnProgress = silent,
) -> tuple[Forecast, ...]:
    """Return a forecast for each number of parents from 1 to search.max_parents.

    What is predicted to take `longest` seconds at most is run, and measured; of the rest samples
    of some tenths of a second are timed. `bits_of` counts the bits of the QUBO of the candidate
    sets where all of them were found.
    """
    search = checked(dataset, search)
    workers = workers or Workers()
    if workers.cluster is not None:
        raise SettingError(f"a plan is made on this machine; leave out {option('cluster')}")
    predicted = _among_all if search.possible_parents is None else _among_some
    if dataset.kind == "continuous":
        predicted = _among_numbers
    if dataset.kind == "mixed":
        predicted = _among_parts
    if not dataset.is_plain:
        predicted = _by_extensions
    if search.score.function is not None:
        predicted = _by_function
    found: list[Forecast] = []
    memory, load = peak_memory(), Load()
    for m, cost in enumerate(predicted(dataset, search, workers, load, longest, on_progress), 1):
        smaller = replace(search, max_parents=m)
        bits = None
        if bits_of is not None and cost.blocks is not None:
            bits = bits_of(assemble(dataset, smaller, cost.blocks))
        needed = memory + int(cost.candidates) * (12 * (m + 1) + 24)
        if search.score.function is not None:
            needed += SET_BYTES * calls_of(dataset.n, m)
        elif search.possible_parents is None:
            needed += table_bytes(dataset, m)
        found.append(
            Forecast(
                m,
                _families(dataset, smaller),
                load.factor * cost.seconds,
                needed,
                cost.candidates,
                bits,
                cost.how,
                search.possible_parents,
            )
        )
    return tuple(found)


def table_bytes(dataset: Dataset, max_parents: int) -> int:
    """Return the most bytes that the search among all parents keeps between levels."""
    n = dataset.n
    if not dataset.is_plain:
        return max(bytes_of_child(n, m) for m in range(max_parents + 1))
    if dataset.kind == "continuous":
        return bytes_of_tables(n, max_parents)
    if dataset.kind == "mixed":
        return bytes_of_parts(dataset, max_parents)
    return max((_table_bytes(n, m) for m in range(1, max_parents + 1)), default=0)


def _table_bytes(n: int, m: int) -> int:
    """Return the bytes of best scores (twice at last), terms, and numbers of states and ones."""
    best = 8 * n * (comb(n, m - 1) + (max(comb(n, m - 2), comb(n, m - 1)) if m > 1 else 0))
    return best + (8 + 4 + 4) * (comb(n, m) + comb(n, m - 1))


def _families(dataset: Dataset, search: CandidateSearch) -> int:
    """Return the number of (variable, parent set) pairs."""
    parents = dataset.n - 1 if search.possible_parents is None else search.possible_parents
    return dataset.n * sum(comb(parents, size) for size in range(search.max_parents + 1))


class _Cost(NamedTuple):
    """What a search is predicted to cost."""

    seconds: float  # of processor time of a thread
    candidates: float  # but for the sets without optional parents
    how: str
    blocks: list[Block] | None  # what it found, where it was run


class Pace(NamedTuple):
    """How fast sets are visited, and how often a candidate is found among them."""

    seconds: float  # of processor time of a thread, a set
    candidates: float  # a set


def extrapolated(before: Pace, pace: Pace) -> Pace:
    """Return the pace of larger sets: that of the last two sizes continued, within limits."""
    slower = min(max(pace.seconds / before.seconds, 1.0), 1.5)
    rarer = min(pace.candidates / max(before.candidates, 1e-12), 1.0)
    return Pace(slower * pace.seconds, rarer * pace.candidates)


@dataclass
class Load:
    """How many times as long work takes as its processor time: other work may share the processors.

    One figure for all samples: that of a single one depends on when the others were at work.
    """

    spent: float = 0.0  # seconds of wall clock
    worked: float = 0.0  # seconds of processor time

    def add(self, spent: float, worked: float) -> None:
        """Count what a sample took."""
        self.spent += spent
        self.worked += worked

    @property
    def factor(self) -> float:
        """Seconds of wall clock for a second of processor time."""
        return max(1.0, self.spent / self.worked) if self.worked > 0.0 else 1.0


class Trial(NamedTuple):
    """What was run of some tasks."""

    seconds: float  # of processor time of a thread, for a unit of work
    share: float  # of the work that was done
    results: list[Any]


def tried(
    task: Callable[[Any, Any], Any],
    shared: Any,
    items: Sequence[Any],
    work: Sequence[float],
    workers: Workers,
    load: Load,
    *,
    sample: float,
    longest: float = 0.0,
) -> Trial:
    """Run tasks in random order, until all are done.

    It ends after `sample` seconds, unless all are predicted to take `longest` seconds of
    processor time of each thread at most.
    """
    order = np.random.default_rng(0).permutation(len(items)).tolist()
    total = float(sum(work))
    begun, batch = 0, workers.count
    spent = worked = done = 0.0
    results: list[Any] = []
    while begun < len(items) and (spent < sample or worked * total <= longest * done):
        chosen = order[begun : begun + batch]
        began, began_work = time.perf_counter(), time.process_time()
        results += [result for _, result in run(task, shared, [items[i] for i in chosen], workers)]
        spent += time.perf_counter() - began
        worked += (time.process_time() - began_work) / workers.count
        done += sum(work[i] for i in chosen)
        begun += batch
        batch *= 2
    worked = min(worked, spent)  # products of matrices use more threads than they were given
    load.add(spent, worked)
    return Trial(worked / done, done / total, results)


def _sample(longest: float) -> float:
    """Return the seconds of a sample."""
    return min(longest, max(longest / _SAMPLES, _LEAST_SAMPLE))


class _LevelCost(NamedTuple):
    """The paces of a level, and what was run of it."""

    inner: Pace  # with what the next level needs
    last: Pace  # as the last level, with bounds where they pay
    bounded: bool
    how: str
    blocks: list[Block]  # all of its candidates, where it was measured


def _among_all(
    dataset: Dataset,
    search: CandidateSearch,
    workers: Workers,
    load: Load,
    longest: float,
    on_progress: OnProgress,
) -> Iterator[_Cost]:
    """Yield the costs of the searches among all parents with at most 1, 2, ... of them."""
    n, last = dataset.n, search.max_parents + 1
    below = found = 0.0  # seconds and candidates of all smaller sets
    blocks: list[Block] = []
    for k, cost in enumerate(_levels(dataset, search, workers, load, longest), 1):
        sets = comb(n, k)
        found += cost.last.candidates * sets
        blocks += cost.blocks
        if k > 1:
            seconds = below + cost.last.seconds * sets
            yield _Cost(
                seconds, max(found - n, 0.0), cost.how, blocks if cost.how == "measured" else None
            )
        below += cost.inner.seconds * sets
        on_progress(Progress("plan", k, last, f"sets of {k} variables"))


def _levels(
    dataset: Dataset, search: CandidateSearch, workers: Workers, load: Load, longest: float
) -> Iterator[_LevelCost]:
    """Yield the cost of each level; those after one that was not run whole are extrapolated."""
    begun = first_level(dataset, search)
    level: Level | None = begun
    first = Pace(_FIRST_PACE, 1.0)
    before = cost = _LevelCost(first, first, False, "measured", [])
    for k in range(1, search.max_parents + 2):
        if level is None:
            inner = extrapolated(before.inner, cost.inner)
            last = extrapolated(before.last, cost.last)
            bounded = cost.bounded or bounds_pay(begun, k)
            if bounded and not cost.bounded:
                last = last._replace(seconds=last.seconds / _FASTER)
            before, cost = cost, _LevelCost(inner, last, bounded, "extrapolated", [])
        else:
            before = cost
            cost, above = _level_cost(level, cost.inner.seconds, workers, load, longest)
            runs_on = above is not None and k <= search.max_parents
            level = next_level(level, above) if above is not None and runs_on else None
        yield cost


def _level_cost(
    level: Level, pace: float, workers: Workers, load: Load, longest: float
) -> tuple[_LevelCost, Above | None]:
    """Return the cost of a level, and its tables if it was run whole.

    `pace` is the seconds a set of the level below.
    """
    sample = _sample(longest)
    sets = int(sets_of_heads(level).sum())
    whole = pace * sets <= longest
    above = make_above(level, last=not whole)
    size = sets_per_block(level) if whole else _range_size(level, sample, pace)
    trial = _scanned(level, above, size, workers, load, sample, longest if whole else 0.0)
    inner = _pace_of(trial, sets)
    measured = whole and trial.share == 1.0
    last = inner
    bounded = with_bounds(level)
    if bounded is not level:
        nothing = make_above(level, last=True)
        size = _range_size(level, sample, inner.seconds / _FASTER)
        faster = _pace_of(_scanned(bounded, nothing, size, workers, load, sample, 0.0), sets)
        last = Pace(
            min(faster.seconds, inner.seconds), inner.candidates if measured else faster.candidates
        )
    how = "measured" if measured else "sampled"
    found = trial.results if measured else []
    return _LevelCost(inner, last, bounded is not level, how, found), above if measured else None


def _range_size(level: Level, sample: float, pace: float) -> int:
    """Return the number of sets of a range: a sample has several, a block one or more."""
    return max(_LEAST_SETS, min(sets_per_block(level), int(sample / _RANGES / pace)))


def _scanned(
    level: Level,
    above: Above,
    size: int,
    workers: Workers,
    load: Load,
    sample: float,
    longest: float,
) -> Trial:
    """Scan ranges of about this number of sets."""
    ranges = split(level, size)
    done = np.concatenate([[0], np.cumsum(sets_of_heads(level))])
    work = [float(done[end] - done[start]) for start, end in ranges]
    heads = len(level.heads)
    # This compiles or loads the kernels.
    scan_block((level, make_above(level, last=True)), (heads - 1, heads))
    shared = level, above
    return tried(scan_block, shared, ranges, work, workers, load, sample=sample, longest=longest)


def _pace_of(trial: Trial, sets: int) -> Pace:
    """Return the pace of sets whose candidates are in blocks."""
    return Pace(
        trial.seconds, sum(len(block.scores) for block in trial.results) / (trial.share * sets)
    )


def _among_numbers(
    dataset: Dataset,
    search: CandidateSearch,
    workers: Workers,
    load: Load,
    longest: float,
    on_progress: OnProgress,
) -> Iterator[_Cost]:
    """Yield the costs of the searches among continuous variables with at most 1, 2, ... parents.

    Sizes that are predicted to take `longest` seconds in all are run; then the number of candidate
    sets grows as it did between the last two sizes."""
    n, most = dataset.n, search.max_parents
    runs = 0  # the largest size that is run
    while runs < most and PAIR_SECONDS * _pairs(n, runs + 1) <= longest * workers.here.count:
        runs += 1
    allowed = allowed_for(dataset, search.score, search.knowledge, most)
    blocks: list[Block] = []
    counts = [0.0] * (most + 1)
    seconds = [0.0] * (most + 1)
    problem = prepare(dataset, search.score, allowed, most)
    for _ in scan_sizes(problem, 1, workers):  # compiles or loads the kernel
        pass
    began = time.perf_counter()
    with closing(scan_sizes(problem, runs, workers)) as parts:
        for found in parts:
            blocks.append(found.block)
            counts[found.size] += len(found.block.scores)
            seconds[found.size] = time.perf_counter() - began
    pace = PAIR_SECONDS / workers.here.count
    for m in range(1, most + 1):
        on_progress(Progress("forecast", m, most, f"at most {m} parents"))
        if m <= runs:
            own = [block for block in blocks if block.parents.shape[1] <= m]
            yield _Cost(seconds[m], sum(counts[1 : m + 1]), "measured", own)
            continue
        rate = counts[m - 1] / counts[m - 2] if m > 1 and counts[m - 2] else float(n)
        counts[m] = min(rate * counts[m - 1], float(pairs_of(n, m)))
        yield _Cost(pace * _pairs(n, m), sum(counts[1 : m + 1]), "extrapolated", None)


def _among_parts(
    dataset: Dataset,
    search: CandidateSearch,
    workers: Workers,
    load: Load,
    longest: float,
    on_progress: OnProgress,
) -> Iterator[_Cost]:
    """Yield the costs of the searches among numbers and states with at most 1, 2, ... parents.

    Those that are predicted to take `longest` seconds are run; then the number of candidate sets
    grows as it did between the last two sizes."""
    from ..scores.mixed import Mixed  # tables of one kind do without

    engine = Mixed(dataset, search.score)
    counts = [float(dataset.n)]
    for m in range(1, search.max_parents + 1):
        on_progress(Progress("forecast", m, search.max_parents, f"at most {m} parents"))
        seconds = seconds_of(dataset, m)
        if seconds <= longest:
            began = time.perf_counter()
            allowed = allowed_for(dataset, search.score, search.knowledge, m)
            steps = list(scan_parts(engine, allowed, m, workers))
            blocks = [block for found in steps for block in found.blocks]
            counts.append(float(sum(len(block.scores) for block in blocks)))
            yield _Cost(time.perf_counter() - began, counts[-1] - dataset.n, "measured", blocks)
            continue
        rate = counts[-1] / counts[-2] if len(counts) > 1 else float(dataset.n)
        counts.append(min(rate * counts[-1], float(families_of(dataset.n, m))))
        yield _Cost(seconds, counts[-1], "extrapolated", None)


def _by_extensions(
    dataset: Dataset,
    search: CandidateSearch,
    workers: Workers,
    load: Load,
    longest: float,
    on_progress: OnProgress,
) -> Iterator[_Cost]:
    """Yield the costs of searches by an engine with at most 1, 2, ... parents, as extrapolated.

    Nothing is known of how many sets are candidates: all are counted."""
    n = dataset.n
    pace = FAMILY_SECONDS * dataset.rows / workers.here.count
    for m in range(1, search.max_parents + 1):
        families = families_of(n, m)
        yield _Cost(pace * families, float(families), "extrapolated", None)


def _pairs(n: int, most: int) -> int:
    """Return how many (child, set) a search of continuous variables looks at."""
    return sum(pairs_of(n, size) for size in range(1, most + 1))


def _by_function(
    dataset: Dataset,
    search: CandidateSearch,
    workers: Workers,
    load: Load,
    longest: float,
    on_progress: OnProgress,
) -> Iterator[_Cost]:
    """Yield the costs of the searches with at most 1, 2, ... parents by a function of the user.

    Nothing is known of how many sets are candidates: all are counted."""
    n, most = dataset.n, search.max_parents
    paces = seconds_of_calls(search.score.engine(dataset), most)
    seconds = paces[0] * n
    for m in range(1, most + 1):
        on_progress(Progress("forecast", m, most, f"at most {m} parents"))
        seconds += paces[m] * (calls_of(n, m) - calls_of(n, m - 1))
        yield _Cost(seconds, float(calls_of(n, m) - n), "sampled", None)


def _among_some(
    dataset: Dataset,
    search: CandidateSearch,
    workers: Workers,
    load: Load,
    longest: float,
    on_progress: OnProgress,
) -> Iterator[_Cost]:
    """Yield the costs of the searches among possible parents with at most 1, 2, ... parents."""
    n, most = dataset.n, search.possible_parents or 0
    singles, partners, kept = _screened(dataset, search, workers, load, _sample(longest))
    before = pace = Pace(_FIRST_PACE, 1.0)  # of the sets of a variable and its possible parents
    for m in range(1, search.max_parents + 1):
        sets = sum(comb(most + 1, size) for size in range(m + 2))
        how, blocks = "extrapolated", None
        if m == 1 or pace.seconds * sets <= longest:
            trial = _searched(
                dataset, replace(search, max_parents=m), kept, workers, load, _sample(longest)
            )
            found = [block for blocks_of_child in trial.results for block in blocks_of_child]
            rate = sum(len(block.scores) for block in found) / len(trial.results)
            before, pace = pace, Pace(trial.seconds / sets, rate / sets)
            measured = len(trial.results) == n
            how, blocks = ("measured", found) if measured else ("sampled", None)
        else:
            before, pace = pace, extrapolated(before, pace)
        seconds = singles + (partners if m > 1 else 0.0) + n * sets * pace.seconds
        on_progress(Progress("plan", m, search.max_parents, f"among {most} possible parents"))
        yield _Cost(seconds, max(n * sets * pace.candidates - n, 0.0), how, blocks)


def _screened(
    dataset: Dataset, search: CandidateSearch, workers: Workers, load: Load, sample: float
) -> tuple[float, float, dict[int, VertexSet]]:
    """Return the seconds to rank single parents and to find partners, and some parents."""
    most = search.possible_parents or 0
    allowed = search.knowledge.resolve(dataset.names, search.max_parents)
    pairs = prepare_pairs(dataset, search.score.formula(dataset.rows))
    blocks = blocks_of_children(pairs.kinds)
    cells = [float(pairs.kinds[block, 1].sum()) for block in blocks]
    # On one thread: a product of matrices takes all of them.
    singles = tried(
        best_parents, (pairs, allowed, most), blocks, cells, Workers(1), load, sample=sample
    )
    ranked: dict[int, list[int]] = {}
    for best in singles.results:
        ranked.update(best)
    tasks = []
    for block in blocks_with_singles(pairs.sample, ranked, most):
        tasks += [block[start : start + _CHILDREN] for start in range(0, len(block), _CHILDREN)]
    shared = pairs.sample, allowed, most
    with_partners(shared, tasks[0][:1])  # compiles or loads the kernels
    sizes = [float(len(task)) for task in tasks]
    partners = tried(with_partners, shared, tasks, sizes, workers, load, sample=sample)
    kept: dict[int, VertexSet] = {}
    for found in partners.results:
        kept.update(found)
    return singles.seconds * sum(pairs.kinds[:, 1].tolist()), partners.seconds * dataset.n, kept


def _searched(
    dataset: Dataset,
    search: CandidateSearch,
    kept: dict[int, VertexSet],
    workers: Workers,
    load: Load,
    sample: float,
) -> Trial:
    """Search the parent sets of some variables among their possible parents."""
    children = sorted(kept)
    parents = tuple(kept.get(child, ()) for child in range(dataset.n))
    shared = (
        dataset,
        search.score,
        search.knowledge.resolve(dataset.names, search.max_parents),
        parents,
    )
    if search.max_parents == 1:
        candidates_of_child(shared, children[0])  # compiles or loads the kernels
    return tried(
        candidates_of_child, shared, children, [1.0] * len(children), workers, load, sample=sample
    )
