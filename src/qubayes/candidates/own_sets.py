"""All parent sets up to a size, scored one by one by a function of the user, then pruned."""

import time
from collections.abc import Callable, Iterator
from itertools import combinations
from math import comb

import numpy as np

from ..foundation.families import VertexSet
from ..foundation.progress import OnProgress, Progress, silent
from ..scores.engine import Engine
from .candidates import Candidates, Stamp
from .knowledge import Allowed
from .prune import prune, with_order

SET_BYTES = 250  # of a scored set, in lists of Python
_SAMPLE_SECONDS = 0.3  # for the seconds of a call
_SAMPLE_CALLS = 100  # of each size
_REPORT_EVERY = 0.2  # seconds


# Sets that are scored without a forecast: even at a millisecond for each, these take few seconds.
CALLS_TO_FORECAST = 2000


def calls_of(n: int, most: int) -> int:
    """Return the number of sets of at most `most` parents, of all children."""
    return n * sum(comb(n - 1, size) for size in range(most + 1))


def score_all_sets(
    engine: Engine,
    names: tuple[str, ...],
    allowed: Allowed,
    stamp: Stamp,
    *,
    stop: Callable[[], bool] | None = None,
    on_progress: OnProgress = silent,
) -> Candidates | None:
    """Return the candidate sets among all allowed sets; None once `stop` is true."""
    most = max(allowed.limits, default=0)
    total = calls_of(engine.n, most)
    lists: list[list[tuple[VertexSet, float]]] = []
    done = 0
    reported = -np.inf
    for child in range(engine.n):
        priors = allowed.prior_of(child) if allowed.priors else np.zeros(engine.n)
        family: list[tuple[VertexSet, float]] = []
        for parents in sets_of(child, allowed):
            if stop is not None and stop():
                return None
            score = engine.local(child, parents) + float(priors[list(parents)].sum())
            family.append((parents, score))
            if time.monotonic() > reported + _REPORT_EVERY:
                reported = time.monotonic()
                calls = done + len(family)
                note = f"{calls:,} parent sets scored"
                on_progress(Progress("candidates", min(calls, total), total, note))
        done += len(family)
        lists.append(family)
    on_progress(Progress("candidates", total, total, f"{done:,} parent sets scored"))
    return with_order(prune(names, lists, stamp), allowed.before)


def sets_of(child: int, allowed: Allowed) -> Iterator[VertexSet]:
    """Yield the allowed parent sets of a child, smaller ones first."""
    required = allowed.required[child]
    barred = {child, *required, *allowed.excluded[child]}
    optional = [v for v in range(len(allowed.limits)) if v not in barred]
    for size in range(allowed.limits[child] - len(required) + 1):
        for more in combinations(optional, size):
            yield tuple(sorted((*required, *more)))


def seconds_of_calls(engine: Engine, most: int) -> list[float]:
    """Return the seconds of a call for sets of 0, 1, ... `most` parents, from a few calls each."""
    rng = np.random.default_rng(0)
    found = []
    for size in range(most + 1):
        began = time.perf_counter()
        calls = 0
        for _ in range(_SAMPLE_CALLS):
            child, *parents = rng.permutation(engine.n)[: size + 1].tolist()
            engine.local(child, sorted(parents))
            calls += 1
            if time.perf_counter() - began > _SAMPLE_SECONDS / (most + 1):
                break
        found.append((time.perf_counter() - began) / calls)
    return found
