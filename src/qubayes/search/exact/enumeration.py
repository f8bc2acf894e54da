"""Enumeration of all networks that cost at most a limit, vertex by vertex, each network once.

Multipliers w >= 0 of cuts give every candidate set a reduced cost: its Lagrangian cost (cost plus w
of the cuts that it crosses) minus the least one of its vertex. A network costs exactly

    L(w) + the sum of its reduced costs + the sum over cuts of w * slack,      slack >= 0,

so all networks that cost at most T are among the acyclic choices of one set for each vertex for
which the last two sums are at most T - L(w). The vertices decided so far bound the slack of each
cut. With the multipliers of a proof at the root, T - L(w) is hardly more than the distance from the
optimum."""

from typing import Any, NamedTuple

import numpy as np

from ...foundation.arrays import Floats, Ints, SmallInts, Words
from ...foundation.environment import sparse
from ...foundation.jit import inlined, inner, kernel
from ..run import Run
from .cuts import ClusterCuts, ScoredSets, coefficients
from .ideals import FINISHED, FULL, PAUSED
from .relaxation import Bounded

_SETS_PER_CALL = 1_000_000  # tried between two looks at the clock
_MOST_SETS_TRIED = 3_000_000_000  # in one enumeration


class Listed(NamedTuple):
    """The networks that an enumeration found."""

    choices: Ints  # (networks, n) numbers of candidate sets
    tried: int  # sets
    finished: bool  # these are all


def list_networks(sets: ScoredSets, bounded: Bounded, limit: float, most: int, run: Run) -> Listed:
    """Return the networks that cost at most `limit`, at most `most` of them."""
    budget = limit - bounded.cost
    options = Options.of(sets, bounded, limit)
    walk = Walk.of(options, most)
    with run.paused():
        ending = enumerate_choices(options, walk, budget, limit, 0)  # compiles
    while ending == PAUSED and walk.counts[2] < _MOST_SETS_TRIED and not run.over:
        ending = enumerate_choices(options, walk, budget, limit, _SETS_PER_CALL)
        run.report(f"{int(walk.counts[1]):,} networks")
    _, found, tried = walk.counts.tolist()
    return Listed(walk.found[:found], tried, ending == FINISHED)


class Options(NamedTuple):
    """The sets that may be taken, by vertex as they are decided and by rising reduced cost."""

    start: Ints  # (n + 1,)
    vertices: Ints  # (n,)
    numbers: Ints  # (options,) of the candidate sets
    reduced: Floats  # (options,) reduced costs
    costs: Floats  # (options,)
    set_start: Ints  # of all candidate sets
    members: SmallInts
    short_start: Ints  # (options + 1,)
    short_cuts: SmallInts  # cuts to which an option adds less than another set of its vertex could
    short_by: SmallInts  # and how much less
    spare: Ints  # (cuts,) how much less in all leaves no slack
    weights: Floats  # (cuts,)

    @staticmethod
    def of(sets: ScoredSets, bounded: Bounded, limit: float) -> "Options":
        """Return the sets of networks that cost at most `limit`."""
        n = sets.families.n
        vertices = _close_together(bounded.cuts, bounded.weights)
        least = np.zeros(n)
        if n:
            least = np.minimum.reduceat(bounded.lagrangian, sets.families.vertex_start[:-1])
        reduced = bounded.lagrangian - least[sets.owners]
        rank = np.argsort(vertices)[sets.owners]
        usable = np.flatnonzero((reduced <= limit - bounded.cost) & (sets.costs <= limit))
        usable = usable[np.lexsort((reduced[usable], rank[usable]))]
        start = np.searchsorted(rank[usable], np.arange(n + 1))
        added = coefficients(sets, usable, bounded.cuts)
        most = np.maximum.reduceat(added, start[:-1], axis=1) if n else added
        short = sparse.csc_array(most[:, rank[usable]] - added)
        return Options(
            start=start,
            vertices=vertices,
            numbers=usable,
            reduced=reduced[usable],
            costs=sets.costs[usable],
            set_start=sets.families.set_start,
            members=sets.families.members,
            short_start=short.indptr.astype(np.int64),
            short_cuts=short.indices.astype(np.int32),
            short_by=short.data.astype(np.int32),
            spare=most.sum(axis=1) - bounded.cuts.rhs,
            weights=bounded.weights,
        )


def _close_together(cuts: ClusterCuts, weights: Floats) -> Ints:
    """Return an order in which each vertex shares much weight of clusters with those before it.

    Slack of a cut shows as soon as its vertices are decided."""
    sizes = np.maximum(cuts.inside.sum(axis=1), 1)
    shares = np.repeat(weights, np.diff(cuts.start)) / sizes
    shared = (cuts.inside.T * shares) @ cuts.inside
    nearness = shared.sum(axis=1)
    order: list[int] = []
    for _ in range(len(shared)):
        order.append(int(np.argmax(nearness)))
        nearness = shared[order].sum(axis=0)
        nearness[order] = -np.inf
    return np.array(order, np.int64)


class Walk(NamedTuple):
    """State of the enumeration; level d has the first d vertices decided."""

    place: Ints  # (n + 1,) the next option of each level
    reduced: Floats  # (n + 1,) reduced costs of the options taken so far, and weighted slack
    cost: Floats  # (n + 1,)
    above: Words  # (n + 1, n, words) ancestors of each vertex at each level
    short: Ints  # (cuts,) how much less the options taken so far add to each cut
    counts: Ints  # level; networks found; sets tried
    found: Ints  # (most, n) numbers of candidate sets by vertex

    @staticmethod
    def of(options: Options, most: int) -> "Walk":
        """Return the state before the first vertex, with room for this number of networks."""
        n = len(options.vertices)
        walk = Walk(
            place=np.zeros(n + 1, np.int64),
            reduced=np.zeros(n + 1),
            cost=np.zeros(n + 1),
            above=np.zeros((n + 1, n, (n + 63) // 64), np.uint64),
            short=np.zeros(len(options.spare), np.int64),
            counts=np.zeros(3, np.int64),
            found=np.zeros((most, n), np.int64),
        )
        walk.reduced[0] = options.weights @ np.maximum(-options.spare, 0)
        return walk


@kernel
def enumerate_choices(options: Options, walk: Walk, budget: float, limit: float, work: int) -> int:
    """Continue until all is listed, `work` sets were tried, or no place is left; return which."""
    n = len(options.vertices)
    level = walk.counts[0]
    found = walk.counts[1]
    ending = PAUSED
    left = work
    while left > 0:
        if level == n:
            if found == len(walk.found):
                ending = FULL
                break
            for d in range(n):
                walk.found[found, options.vertices[d]] = options.numbers[walk.place[d] - 1]
            found += 1
        if level == n or _exhausted(options, walk, level, budget):
            level -= 1
            if level < 0:
                ending = FINISHED
                break
            _add_short(options, walk, walk.place[level] - 1, -1)
            continue
        option = walk.place[level]
        walk.place[level] = option + 1
        left -= 1
        if _take(options, walk, level, option, budget, limit):
            level += 1
            walk.place[level] = options.start[level] if level < n else 0
    walk.counts[0] = level
    walk.counts[1] = found
    walk.counts[2] += work - left
    return ending


@inlined
def _exhausted(options: Options, walk: Walk, level: int, budget: float) -> Any:
    """Return whether no option is left at the level that may be within the budget."""
    option = walk.place[level]
    if option == options.start[level + 1]:
        return True
    return walk.reduced[level] + options.reduced[option] > budget


@inlined
def _add_short(options: Options, walk: Walk, option: int, sign: int) -> None:
    """Count what an option adds less to the cuts, times the sign."""
    for k in range(options.short_start[option], options.short_start[option + 1]):
        walk.short[options.short_cuts[k]] += sign * options.short_by[k]


@inlined
def _take(
    options: Options, walk: Walk, level: int, option: int, budget: float, limit: float
) -> Any:
    """Take the option at the next level, if that leaves an acyclic network within the limits."""
    reduced = walk.reduced[level] + options.reduced[option]
    cost = walk.cost[level] + options.costs[option]
    for k in range(options.short_start[option], options.short_start[option + 1]):
        cut = options.short_cuts[k]
        over = walk.short[cut] - options.spare[cut]
        reduced += options.weights[cut] * (max(0, over + options.short_by[k]) - max(0, over))
    if cost > limit or reduced > budget:
        return False
    vertex = options.vertices[level]
    number = options.numbers[option]
    if not _set_ancestors(options, vertex, number, walk.above[level], walk.above[level + 1]):
        return False
    _add_short(options, walk, option, 1)
    walk.reduced[level + 1] = reduced
    walk.cost[level + 1] = cost
    return True


@inner
def _set_ancestors(options: Options, vertex: int, number: int, above: Words, here: Words) -> bool:
    """Set the ancestors of each vertex once `vertex` has the set; False if that closes a cycle."""
    one = np.uint64(1)
    word = vertex >> 6
    bit = one << np.uint64(vertex & 63)
    parents = range(options.set_start[number], options.set_start[number + 1])
    for k in parents:
        if above[options.members[k], word] & bit:
            return False
    for x in range(len(above)):
        for w in range(here.shape[1]):
            here[x, w] = above[x, w]
        if x == vertex or above[x, word] & bit:
            for k in parents:
                parent = options.members[k]
                here[x, parent >> 6] |= one << np.uint64(parent & 63)
                for w in range(here.shape[1]):
                    here[x, w] |= above[parent, w]
    return True
