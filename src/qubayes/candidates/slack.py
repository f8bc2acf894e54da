"""`slack_sets`: parent sets that score within a slack of their best subset, for sums over networks.

The best network needs only sets that beat all their subsets. A sum over networks needs more. A set
that scores far below one of its subsets still never matters: exchanging it for this subset keeps a
network acyclic, so the networks with it weigh at most exp(score - score of the subset) of those
with the subset. With `lost` of a kept set Q as the sum of exp(score(P) - score(Q)) over the sets P
that are left out and have Q as their best subset, all networks together weigh at most

    product over the variables of (1 + largest `lost` of the variable's sets)

times the networks of the kept sets, which bounds the error of every probability."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from math import comb, lgamma
from typing import NamedTuple

import numpy as np

from ..foundation.arrays import Bools, Floats, Ints, SmallInts, frozen
from ..foundation.families import Families, VertexSet
from ..foundation.progress import OnProgress, Progress, silent
from ..foundation.workers import Workers, run
from ..scores import Engine
from ..settings import Prior
from .candidates import Candidates, Stamp, tolerance
from .knowledge import Allowed

SLACK = 9.0  # nats
_MOST_SLACK = 12.0  # nats, up to which the slack of a variable is raised
_STEP = 1.0  # nats
_SETS_AT_ONCE = 2048  # sets of a call of the engine


@dataclass(frozen=True, slots=True)
class SlackSets:
    """Parent sets of every variable with scores that hold the prior over networks, best first."""

    names: tuple[str, ...]
    families: Families
    scores: Floats = field(repr=False)  # (sets,)
    # (sets,) weight of the sets that were left out and have this one as their best subset, relative
    # to its own
    lost: Floats = field(repr=False)
    leads: Bools = field(repr=False)  # (sets,) whether the set beats all its subsets
    stamp: Stamp = field(default_factory=Stamp)
    prior: Prior = "uniform"

    @property
    def n(self) -> int:
        """Number of variables."""
        return len(self.names)

    @property
    def lost_bound(self) -> float:
        """Bound of the posterior mass of all networks with a set that was left out."""
        largest = np.maximum.reduceat(self.lost, self.families.vertex_start[:-1])
        return float(-np.expm1(-np.log1p(largest).sum()))

    @property
    def title(self) -> str:
        """The score and the prior over networks, in words."""
        return f"{self.stamp.title}, {self.prior} prior over networks"

    @property
    def among(self) -> str:
        """Among which parent sets the sums run, in words."""
        most = self.stamp.max_parents
        words = f"at most {most} parent{'s' * (most != 1)} of each variable"
        kept = self.stamp.possible_parents
        return words if kept is None else f"{words}, from about {kept} possible parents"

    def candidates(self) -> Candidates:
        """Return the sets that beat all their subsets."""
        numbers = np.flatnonzero(self.leads)
        families = self.families.chosen(numbers)
        return Candidates(self.names, families, frozen(self.scores[numbers]), self.stamp)


class _Level(NamedTuple):
    """All sets of one size of a child."""

    places: SmallInts  # (sets, size) places in the pool, in lexicographic order
    scores: Floats
    best: Floats  # best score of a proper subset
    dominant: Ints  # number of that subset among all sets of the child


class _Problem(NamedTuple):
    """What the children of a table share."""

    engine: Engine
    allowed: Allowed
    pools: Sequence[VertexSet]  # the possible parents of each child, beside the required ones
    prior: Prior
    slack: float
    most_lost: float  # of one child


class _Kept(NamedTuple):
    """The sets of a child that are kept, best first."""

    members: list[VertexSet]
    scores: Floats
    lost: Floats
    leads: Bools


def slack_sets(
    engine: Engine,
    names: tuple[str, ...],
    allowed: Allowed,
    stamp: Stamp,
    *,
    prior: Prior = "uniform",
    pools: Sequence[VertexSet] | None = None,
    slack: float = SLACK,
    most_lost: float = 0.01,
    workers: Workers | None = None,
    stop: Callable[[], bool] = lambda: False,
    on_progress: OnProgress = silent,
) -> SlackSets | None:
    """Return the parent sets within the slack of their best subset; None if stopped before.

    `allowed` limits the number of parents, and `pools` which variables are possible parents. The
    slack of a variable is raised, up to a limit, until the bound of the mass that is lost is below
    `most_lost` for all variables together. `prior` "fair" gives each number of parents of a
    variable the same probability, "uniform" each network."""
    n = len(names)
    free = allowed.allowed
    if pools is not None:
        free = tuple(
            tuple(sorted(set(its) & set(pool))) for its, pool in zip(free, pools, strict=True)
        )
    shared = _Problem(engine, allowed, free, prior, slack, most_lost / max(n, 1))
    found: dict[int, _Kept] = {}
    tasks = run(_kept_of, shared, list(range(n)), (workers or Workers()).here)
    for child, kept in tasks:
        found[child] = kept
        on_progress(Progress("parent sets", len(found), n, f"{len(found):,} of {n:,} variables"))
        if stop():
            tasks.close()
            return None
    parts = [found[child] for child in range(n)]
    return SlackSets(
        names,
        Families.of([kept.members for kept in parts]),
        frozen(np.concatenate([kept.scores for kept in parts])),
        frozen(np.concatenate([kept.lost for kept in parts])),
        frozen(np.concatenate([kept.leads for kept in parts])),
        replace(stamp, score=f"{stamp.score}+fair") if prior == "fair" else stamp,
        prior,
    )


def _kept_of(problem: _Problem, child: int) -> _Kept:
    """Return the sets of a child that are kept."""
    levels = _levels(problem, child)
    scores = np.concatenate([level.scores for level in levels])
    best = np.concatenate([level.best for level in levels])
    dominant = np.concatenate([level.dominant for level in levels])
    kept, lost = _cut(scores, best, dominant, problem.slack, problem.most_lost)
    order = kept[np.argsort(-scores[kept], kind="stable")]
    margin = tolerance(float(scores[0]), problem.engine.rows)
    starts = list(accumulate((len(level.scores) for level in levels), initial=0))
    pool = np.array(problem.pools[child], np.int64)
    required = problem.allowed.required[child]
    members = []
    for number in order.tolist():
        size = int(np.searchsorted(starts, number, side="right")) - 1
        places = levels[size].places[number - starts[size]]
        members.append(tuple(sorted([*required, *pool[places].tolist()])))
    leads = scores[order] > best[order] + margin
    return _Kept(members, scores[order], lost[order], leads)


def _cut(
    scores: Floats, best: Floats, dominant: Ints, slack: float, most_lost: float
) -> tuple[Ints, Floats]:
    """Return the sets that are kept, and what is lost for each set of the child."""
    while True:
        kept = scores > best - slack
        out = np.flatnonzero(~kept)
        lost = np.zeros(len(scores))
        np.add.at(lost, dominant[out], np.exp(scores[out] - best[out]))
        if lost.max() <= most_lost or slack >= _MOST_SLACK:
            return np.flatnonzero(kept), lost
        slack += _STEP


def _levels(problem: _Problem, child: int) -> list[_Level]:
    """Return all sets of the child by size, the required parents not counted."""
    allowed = problem.allowed
    pool = np.array(problem.pools[child], np.int64)
    most = min(allowed.limits[child] - len(allowed.required[child]), len(pool))
    nothing = np.zeros((1, 0), np.int32)
    found = _extended(problem, child, nothing, pool)
    alone = found[:, -1] + _prior_scores(problem, child, nothing, pool)
    levels = [_Level(nothing, alone, np.array([-np.inf]), np.zeros(1, np.int64))]
    before = 0  # sets of the levels below the last one
    for size in range(1, most + 1):
        last = levels[-1]
        places, scores = _next_sets(last.places, found, len(pool))
        scores = scores + _prior_scores(problem, child, places, pool)
        best, dominant = _best_subsets(places, last, before, len(pool))
        before += len(last.scores)
        levels.append(_Level(places, scores, best, dominant))
        if size < most:
            found = _extended(problem, child, places, pool)
    return levels


def _extended(problem: _Problem, child: int, places: SmallInts, pool: Ints) -> Floats:
    """Return (sets, pool + 1) scores with one more parent of the pool; the last: the set alone."""
    required = np.array(problem.allowed.required[child], np.int32)
    members = pool[places].astype(np.int32)
    sets = np.concatenate([np.tile(required, (len(places), 1)), members], axis=1)
    parts = [
        problem.engine.extensions(child, sets[first : first + _SETS_AT_ONCE], pool)
        for first in range(0, len(sets), _SETS_AT_ONCE)
    ]
    return np.concatenate(parts)


def _next_sets(places: SmallInts, found: Floats, pool: int) -> tuple[SmallInts, Floats]:
    """Return the sets with one more, larger place, and their scores."""
    last = places[:, -1] if places.shape[1] else np.full(len(places), -1)
    larger = np.arange(pool) > last[:, None]
    rows, added = np.nonzero(larger)
    sets = np.concatenate([places[rows], added[:, None].astype(np.int32)], axis=1)
    return sets, found[:, :-1][larger]


def _prior_scores(problem: _Problem, child: int, places: SmallInts, pool: Ints) -> Floats:
    """Return what priors of edges and of the number of parents add to the scores of the sets."""
    allowed = problem.allowed
    required = allowed.required[child]
    size = len(required) + places.shape[1]
    added = np.zeros(len(places))
    if problem.prior == "fair":
        others = len(allowed.limits) - 1
        added -= lgamma(others + 1) - lgamma(size + 1) - lgamma(others - size + 1)
    if allowed.priors:
        of_edges = allowed.prior_of(child)
        added += of_edges[list(required)].sum() + of_edges[pool[places]].sum(axis=1)
    return added


def _best_subsets(places: SmallInts, below: _Level, before: int, pool: int) -> tuple[Floats, Ints]:
    """Return the best score of a proper subset of each set, and which subset it is.

    `before` sets of the child are smaller than those of the level below."""
    own = below.scores >= below.best
    tops = np.where(own, below.scores, below.best)
    numbers = np.where(own, before + np.arange(len(tops)), below.dominant)
    best = np.full(len(places), -np.inf)
    dominant = np.zeros(len(places), np.int64)
    for left_out in range(places.shape[1]):
        ranks = _ranks(np.delete(places, left_out, axis=1), pool)
        better = tops[ranks] > best
        best = np.where(better, tops[ranks], best)
        dominant = np.where(better, numbers[ranks], dominant)
    return best, dominant


def _ranks(places: SmallInts, pool: int) -> Ints:
    """Return the rank of each set in the lexicographic order of the sets of its size."""
    size = places.shape[1]
    ranks = np.full(len(places), comb(pool, size) - 1)
    for position in range(size):
        behind = np.array([comb(x, size - position) for x in range(pool)], np.int64)
        ranks -= behind[pool - 1 - places[:, position]]
    return ranks
