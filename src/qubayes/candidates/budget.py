"""Choice of the search for candidate sets that fits the time and the memory, by forecasts."""

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import comb, inf
from typing import Protocol

from ..data.dataset import Dataset
from ..foundation.environment import peak_memory, usable_memory
from ..foundation.errors import SettingError, TooLargeError, option
from ..foundation.jit import compilations
from ..foundation.progress import OnProgress, silent
from ..foundation.workers import Workers
from .by_extensions import FAMILY_SECONDS, families_of
from .forecast import WHOLE, Forecast, forecasts, table_bytes
from .identify import CandidateSearch, checked, too_many_sets
from .moments import PAIR_SECONDS, pairs_of
from .own_sets import CALLS_TO_FORECAST, calls_of
from .parts import seconds_of

# Sets times rows: a search of less takes a few minutes at most.
_WORK_TO_FORECAST = 2 * 10**11
_SECONDS_TO_FORECAST = 5.0  # the same for continuous variables
_LEAST_ROWS = 1000  # for the memory: fewer rows do not make the tables smaller
_WORK_A_SECOND = 10**8  # at least
_SECONDS_TO_WARN = 300.0
_SECONDS_OF_YEARS = 1000 * 86400.0
# Shares of the time limit for candidate sets that are chosen to fit, the rest is the solver's:
# of all sets, and of sets among possible parents. Three parents among 30 and a short search for
# the network are better than two parents and a long one (docs/candidates.md).
_SHARE, _SHARE_AMONG_SOME = 0.6, 0.8
_MOST = 0.9  # share where nothing else fits
_LEVELS = 20  # levels that are run for a forecast take this part of the limit each
log = logging.getLogger("qubayes")


class Forecasting(Protocol):
    """How the cost of searches is predicted, as `forecasts` does."""

    def __call__(
        self,
        dataset: Dataset,
        search: CandidateSearch,
        *,
        workers: Workers,
        longest: float,
        on_progress: OnProgress,
    ) -> Sequence[Forecast]:
        """Return a forecast for each number of parents from 1 to search.max_parents."""


def affordable(
    dataset: Dataset,
    search: CandidateSearch,
    workers: Workers,
    limit: float | None = None,
    *,
    smaller: bool = False,
    memory: float | None = None,
    on_progress: OnProgress = silent,
    predict: Forecasting = forecasts,
) -> CandidateSearch:
    """Return the search for candidate sets if it fits the memory and the limit (seconds).

    The memory is in bytes, by default three quarters of what is free. A search that does not fit is
    refused. With `smaller` and a limit, the first of `sizes` that fits is taken instead, and a
    warning says so. Only large searches are predicted; on a cluster only their memory.
    """
    limit = inf if limit is None else limit
    smaller = smaller and limit < inf
    search = _checked(dataset, search, smaller=smaller)
    if not is_large(dataset, search, limit):
        return search
    memory = usable_memory(memory)
    if limit == inf:
        _check_memory(dataset, search, memory)
    if workers.cluster is not None:
        return search
    costs = _Costs(dataset, search, Workers(workers.threads), limit, smaller, predict, on_progress)
    whole = costs.of(search)
    if whole.fits(costs.allowed(whole), memory):
        if limit == inf and whole.seconds > _SECONDS_TO_WARN:
            other = next(costs.of_smaller(), None)
            alternative = "" if other is None else f"; {_takes(other)}"
            log.warning("%s%s", _whole_takes(whole, memory), alternative)
        return search
    return _smaller_search(costs, whole, memory)


def _smaller_search(costs: "_Costs", whole: Forecast, memory: float) -> CandidateSearch:
    """Return the first smaller search that fits, with a warning; raise if none may be taken."""
    limit = costs.limit
    whole_takes = _whole_takes(whole, memory)
    tried, chosen = costs.first_that_fits(memory)
    limit_is = f"the limit is {limit:g} s"
    if chosen is not None and costs.smaller:
        taken = f"{_named(chosen)} is taken, {_about(chosen.seconds)}"
        log.warning("%s; %s: %s", whole_takes, limit_is, taken)
        return replace(
            costs.search,
            max_parents=chosen.max_parents,
            possible_parents=chosen.possible_parents,
        )
    other_takes = f"; {_takes(tried[-1])}" if tried else ""
    choose = "" if chosen is None else "choose that, or "
    raise SettingError(f"{whole_takes}{other_takes}; {limit_is}: {choose}give more time")


def most_parents(
    dataset: Dataset,
    search: CandidateSearch,
    workers: Workers,
    limit: float,
    *,
    memory: float | None = None,
    on_progress: OnProgress = silent,
    predict: Forecasting = forecasts,
) -> int:
    """Return the largest number of parents (2 to that of the search) whose sets fit the limit.

    0 if there is none."""
    most = search.max_parents
    if not is_large(dataset, search, limit):
        return most
    memory = usable_memory(memory)
    costs = _Costs(dataset, search, Workers(workers.threads), limit, True, predict, on_progress)
    for parents in range(most, 1, -1):
        if not too_many_sets(dataset.n, parents):
            forecast = costs.of(replace(search, max_parents=parents))
            if forecast.fits(limit - costs.spent, memory):
                return parents
    return 0


def warn_of_most(search: CandidateSearch, n: int) -> None:
    """Warn of more parents than other variables; the default is lowered without a word."""
    most = max(n - 1, 0)
    if search.max_parents > max(most, CandidateSearch().max_parents):
        given, same = option("max_parents", search.max_parents), option("max_parents", most)
        log.warning("%s is the same as %s: there are %d variables", given, same, n)


def _checked(dataset: Dataset, search: CandidateSearch, *, smaller: bool) -> CandidateSearch:
    """Return the search with at most n - 1 parents; raise unless it makes sense or gets smaller."""
    n = dataset.n
    # nothing is left out
    if search.possible_parents is not None and search.possible_parents >= n - 1:
        search = replace(search, possible_parents=None)
    if smaller and search.possible_parents is None and too_many_sets(n, search.max_parents):
        return search
    return checked(dataset, search)


def _check_memory(dataset: Dataset, search: CandidateSearch, memory: float) -> None:
    """Raise if the tables of the search do not fit the memory."""
    if search.possible_parents is not None or search.score.function is not None:
        return  # few sets; or sets that take long before they take much
    largest, here = search.max_parents, peak_memory()
    needed = here + table_bytes(dataset, largest)
    if needed <= memory:
        return
    while largest > 1 and here + table_bytes(dataset, largest) > memory:
        largest -= 1
    raise TooLargeError(
        f"{option('max_parents', search.max_parents)} {_needs(needed, memory)}: "
        f"take {option('max_parents', largest)}"
        + (f", or {option('possible_parents', 30)}" if dataset.kind == "discrete" else "")
    )


def is_large(dataset: Dataset, search: CandidateSearch, limit: float) -> bool:
    """Return whether the search may take long; one among possible parents takes minutes."""
    n = dataset.n
    m = search.max_parents
    kept = search.possible_parents
    if m < 1 or (kept is not None and limit == inf):
        return False
    if search.score.function is not None:
        return calls_of(n, m) > CALLS_TO_FORECAST
    if not dataset.is_plain:
        seconds = FAMILY_SECONDS * dataset.rows * families_of(n, m)
        return seconds >= min(_SECONDS_TO_FORECAST, max(limit, 1.0))
    if dataset.kind == "continuous":
        pairs = sum(pairs_of(n, size) for size in range(1, m + 1))
        return PAIR_SECONDS * pairs >= min(_SECONDS_TO_FORECAST, max(limit, 1.0))
    if dataset.kind == "mixed":
        return seconds_of(dataset, m) >= min(_SECONDS_TO_FORECAST, max(limit, 1.0))
    if kept is None:
        sets = sum(comb(n, size) for size in range(m + 2))
    else:
        sets = n * (n + sum(comb(kept + 1, size) for size in range(m + 2)))
    work = sets * max(dataset.stored_rows, _LEAST_ROWS)
    return work >= min(_WORK_TO_FORECAST, max(limit, 1.0) * _WORK_A_SECOND)


@dataclass
class _Costs:
    """Forecasts of a search and of smaller ones, made when they are asked for."""

    dataset: Dataset
    search: CandidateSearch
    workers: Workers
    limit: float
    smaller: bool  # a smaller search is taken, not only named
    predict: Forecasting
    on_progress: OnProgress
    made: dict[int | None, Sequence[Forecast]] = field(default_factory=dict)  # by possible parents
    spent: float = 0.0  # seconds of the limit that forecasts took; compilation is not counted

    def allowed(self, forecast: Forecast) -> float:
        """Return the seconds that a search may take; the solver has the rest."""
        if not self.smaller:
            return self.limit
        return (_SHARE if forecast.possible_parents is None else _SHARE_AMONG_SOME) * self.limit

    def first_that_fits(self, memory: float) -> tuple[list[Forecast], Forecast | None]:
        """Return the smaller searches that were predicted, and the first that fits, or None.

        Forecasts take time. If they have left too little for all searches, the first that fits
        most of the limit is returned, else the fastest that fits the limit.
        """
        tried: list[Forecast] = []
        for each in self.of_smaller():
            tried.append(each)
            if each.fits(self.allowed(each) - self.spent, memory):
                return tried, each
        if not self.smaller:
            return tried, None
        fast = [each for each in tried if each.fits(_MOST * self.limit - self.spent, memory)]
        if fast:
            return tried, fast[0]
        fast = [each for each in tried if each.fits(self.limit, memory)]
        return tried, min(fast, key=lambda each: each.seconds, default=None)

    def of_smaller(self) -> Iterator[Forecast]:
        """Yield the forecasts of smaller searches, in the order of `sizes`."""
        for m, few in sizes(self.search, self.dataset.n):
            plain = self.dataset.kind == "discrete" and self.dataset.is_plain
            among_some = plain and self.search.score.function is None
            if few is None or among_some:
                yield self.of(replace(self.search, max_parents=m, possible_parents=few))

    def of(self, search: CandidateSearch) -> Forecast:
        """Return the forecast of a search; one with too many sets to be numbered takes for ever."""
        m = search.max_parents
        few = search.possible_parents
        if few not in self.made:
            self.made[few] = self._forecasts(few)
        if m > len(self.made[few]):
            return Forecast(m, 0, inf, 0, 0.0, None, "extrapolated", few)
        return self.made[few][m - 1]

    def _forecasts(self, few: int | None) -> Sequence[Forecast]:
        """Return the forecasts of all numbers of parents whose sets can be numbered."""
        largest = self.search.max_parents
        while few is None and too_many_sets(self.dataset.n, largest):
            largest -= 1
        # too many variables to look at all pairs of parents
        if largest < min(self.search.max_parents, 2):
            return ()
        began = time.perf_counter()
        with compilations(self._count_compilation):
            made = self.predict(
                self.dataset,
                replace(self.search, max_parents=largest, possible_parents=few),
                workers=self.workers,
                longest=min(WHOLE, self.limit / _LEVELS),
                on_progress=self.on_progress,
            )
        if self.smaller:
            self.spent += time.perf_counter() - began
        return made

    def _count_compilation(self, begins: bool) -> None:
        """Leave the time of a compilation out of what was spent."""
        if self.smaller:
            self.spent += time.perf_counter() if begins else -time.perf_counter()


def sizes(search: CandidateSearch, n: int) -> Iterator[tuple[int, int | None]]:
    """Yield the (parents, possible parents) of smaller searches, best networks first.

    Three parents among 20 possible ones give better networks than two among all, but among 10 they
    do not (docs/candidates.md).
    """
    largest = search.max_parents
    if search.possible_parents is not None:
        yield from ((m, search.possible_parents) for m in range(largest - 1, 0, -1))
        return
    for m in range(largest, min(largest, 2) - 1, -1):
        if m < largest:
            yield m, None
        yield from ((m, kept) for kept in (30, 20) if kept < n - 1)
    if n > 11:  # 10 leave something out
        yield from ((m, 10) for m in range(largest, 0, -1))
    if largest > 1:
        yield 1, None


def _named(forecast: Forecast) -> str:
    """Return the size of the search as options."""
    kept = forecast.possible_parents
    among = "" if kept is None else f" {option('possible_parents', kept)}"
    return option("max_parents", forecast.max_parents) + among


def _whole_takes(whole: Forecast, memory: float) -> str:
    """Return what the whole search takes: memory if it is too little, else time."""
    if whole.memory > memory:
        return f"{_named(whole)} {_needs(whole.memory, memory)}"
    return f"{_named(whole)} would take {_about(whole.seconds)} for the candidate sets"


def _needs(needed: float, memory: float) -> str:
    """Return what a search needs of the memory."""
    return (
        f"needs {needed / 1e9:,.1f} GB for the candidate sets; {memory / 1e9:,.1f} GB may be used"
    )


def _takes(forecast: Forecast) -> str:
    """Return what a smaller search takes, and what it leaves out."""
    among = " and is optimal only among these parents" if forecast.possible_parents else ""
    return f"{_named(forecast)} takes {_about(forecast.seconds)}{among}"


def _about(seconds: float) -> str:
    """Return a time in the unit that suits it: about 35 s, 77 minutes, 21 hours, 9 days."""
    if seconds > _SECONDS_OF_YEARS:
        return "years"
    for unit, size, most in (("s", 1, 120), ("minutes", 60, 120), ("hours", 3600, 72)):
        if seconds < most * size:
            return f"about {seconds / size:.0f} {unit}"
    return f"about {seconds / 86400:,.0f} days"
