"""Search in the order graph: its nodes are order ideals, sets of vertices that can come first.

A state U is such a set; g(U) is the least cost of networks on U. Multipliers w >= 0 of the cuts
give least Lagrangian costs m(v) of v's sets (cost plus w of the cuts that they cross), and a
completion of U costs at least

    h(U) = sum over v outside U of m(v)  -  sum over cuts of w * (the most that vertices outside U
    can add to the cut):

for a cluster C with k that is |C - U| - max(0, k - |C & U|), because the next k - |C & U| vertices
of C have fewer than k parents in C; for a zero-half cut half the sum over its clusters and its odd
vertices outside U, rounded down. h of the empty set is the bound of the relaxation. States with g +
h above a threshold are dropped. If no complete state is left, every network costs at least the
least g + h that was dropped. States are searched in layers of equal size, so every way into a state
is known before it is expanded. A vertex whose best set lies inside U comes next, alone.

Multipliers come from the linear program, or from greedy dual ascent, which needs none: close the
empty set under sets of reduced cost 0; the vertices that are not reached form a cluster, which is
made small; its weight is the least reduced cost of its vertices' sets outside it, and is taken off
these.

Nothing here depends on the clock, except that a run that is over ends the search.
"""

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ...candidates import example
from ...foundation.arrays import Bools, Floats, Ints, SmallInts, Words
from ...foundation.jit import inlined, inner, kernel
from ...foundation.words import lowest_bit, popcount
from ...foundation.workers import Workers
from ..run import Limits, Run
from .cuts import Bytes, ScoredSets, cluster_cuts, no_cuts
from .relaxation import ROUNDING_SHARE, Bounded, lagrangian_bounds

MOST_VERTICES_OF_A_STATE = 63  # a state is a word, and one word is left over
# How a kernel that works in slices ended: done, after the sets of a slice, or out of room.
FINISHED, PAUSED, FULL = range(3)
_SETS_PER_CALL = 2_000_000  # tried between two looks at the clock, some 10 ms
_CLUSTERS_OF_ASCENT = 5000  # at most
_ZERO_COST = 1e-9  # reduced costs up to this count as 0


class Potential(NamedTuple):
    """The lower bound h as arrays for kernels; clusters are masks of vertices."""

    base: Floats  # (n,) least Lagrangian cost minus the weights of the clusters around the vertex
    clusters: Words  # (cuts of one cluster,)
    needs: Ints  # k
    weights: Floats
    half_start: Ints  # (zero-half cuts + 1,)
    half_clusters: Words
    half_needs: Ints
    half_odd: Words  # (zero-half cuts,)
    half_weights: Floats

    @staticmethod
    def of(sets: ScoredSets, bounded: Bounded) -> "Potential":
        """Return the lower bound of these multipliers."""
        single = bounded.cuts.divisors == 1
        one = bounded.cuts.select(single)
        many = bounded.cuts.select(~single)
        weights = bounded.weights[single]
        least = np.minimum.reduceat(bounded.lagrangian, sets.families.vertex_start[:-1])
        return Potential(
            base=least - weights @ one.inside,
            clusters=masks_of(one.inside),
            needs=one.needs,
            weights=weights,
            half_start=many.start,
            half_clusters=masks_of(many.inside),
            half_needs=many.needs,
            half_odd=masks_of(many.odd),
            half_weights=bounded.weights[~single],
        )


class Queue(NamedTuple):
    """The states met, layer by layer, and how far they are expanded. 28 to 36 bytes a state."""

    states: Words  # (most,) masks of the vertices that come first
    costs: Floats  # (most,) g
    before: SmallInts  # (most,) the state that each was reached from
    table: SmallInts  # (a power of 2,) places of the states of the next layer, by their hash
    counts: Ints  # states expanded; end of the layer; states met
    least: Floats  # least g + h that was dropped; least cost of a complete state
    fall: Floats  # (n,) h(U) - h(U and v)
    steps: Ints  # (n,)

    @staticmethod
    def of(n: int, most: int) -> "Queue":
        """Return a queue with room for this number of states, which holds the empty state."""
        return Queue(
            states=np.zeros(most, np.uint64),
            costs=np.zeros(most),
            before=np.zeros(most, np.int32),
            table=np.zeros(_places(most), np.int32),
            counts=np.array([0, 1, 1]),
            least=np.array([math.inf, math.inf]),
            fall=np.zeros(n),
            steps=np.zeros(n, np.int64),
        )

    def order(self) -> Ints:
        """Return the order that leads to the last state."""
        order: list[int] = []
        at = int(self.counts[2]) - 1
        while at > 0:
            added = int(self.states[at] ^ self.states[self.before[at]])
            order.append(added.bit_length() - 1)
            at = int(self.before[at])
        return np.array(order[::-1], np.int64)


class IdealSearch(NamedTuple):
    """The end of a search: every network costs at least `cost`."""

    finished: bool  # False if there were too many states or the run was over
    states: int
    cost: float
    best: float  # least cost of a complete state; infinite if none was met
    order: Ints  # of that state


def memory(most: int) -> int:
    """Return the bytes that a search over this many states takes."""
    return 20 * most + 4 * _places(most)


def _places(most: int) -> int:
    return 1 << math.ceil(math.log2(1.5 * most + 2))


def search_ideals(
    sets: ScoredSets,
    bounded: Bounded,
    usable: Bools,
    threshold: float,
    most: int,
    scale: float,
    run: Run,
) -> IdealSearch:
    """Search at most `most` states with g + h up to the threshold, over networks of usable sets."""
    potential = Potential.of(sets, bounded)
    allowed = CheapestFirst.of(sets.select(np.flatnonzero(usable)))
    queue = Queue.of(sets.families.n, most)
    ending = PAUSED
    while ending == PAUSED and not run.over:
        ending = expand_states(allowed, potential, queue, threshold, _SETS_PER_CALL)
        run.report()
    least, best = queue.least.tolist()
    margin = ROUNDING_SHARE * (scale + 2.0 * float(bounded.weights @ bounded.cuts.sizes))
    return IdealSearch(
        finished=ending == FINISHED,
        states=int(queue.counts[2]),
        cost=min(least, best) - margin,
        best=best,
        order=queue.order() if best < math.inf else np.zeros(0, np.int64),  # it was met last
    )


@cache
def compile_ideals() -> None:
    """Compile the kernels of this module."""
    candidates = example(3)
    sets = ScoredSets.of(candidates.families, candidates.scores)
    allowed = np.ones(len(sets.costs), np.bool_)
    start = lagrangian_bounds(sets, no_cuts(3), np.zeros(0), allowed, 0.0)
    bounded = greedy_duals(sets, start, allowed, 0.0, 0)
    run = Run(candidates, Limits(None), Workers(1))
    search_ideals(sets, bounded, allowed, bounded.cost, 10, 0.0, run)


def masks_of(inside: Bytes) -> Words:
    """Return the rows as masks, vertex v as bit v."""
    bits = np.uint64(1) << np.arange(inside.shape[1], dtype=np.uint64)
    masks: Words = inside.astype(np.uint64) @ bits
    return masks


class CheapestFirst(NamedTuple):
    """Sets by vertex and rising cost."""

    start: Ints  # (n + 1,)
    masks: Words  # (sets,) their members
    costs: Floats  # (sets,)

    @staticmethod
    def of(sets: ScoredSets) -> "CheapestFirst":
        """Return these sets."""
        order = np.lexsort((sets.costs, sets.owners))
        masks = sets.families.masks()
        return CheapestFirst(sets.families.vertex_start, masks[order], sets.costs[order])


@kernel
def expand_states(
    sets: CheapestFirst, potential: Potential, queue: Queue, threshold: float, work: int
) -> int:
    """Expand states until all are, `work` sets were tried, or no place is left; return which."""
    one = np.uint64(1)
    n = len(sets.start) - 1
    most = len(queue.states)
    everything = (one << np.uint64(n)) - one
    at = queue.counts[0]
    end = queue.counts[1]
    met = queue.counts[2]
    while at < met <= most and work > 0:
        if at == end:
            end = met
        state = queue.states[at]
        at += 1
        if state == everything:
            queue.least[1] = queue.costs[at - 1]
            continue
        f = queue.costs[at - 1] + fill_falls(potential, state, queue.fall, queue.steps)
        work -= len(potential.clusters)
        if f > threshold:
            queue.least[0] = min(queue.least[0], f)
            continue
        low, high = _next_vertices(sets, state)
        for v in range(low, high):
            if not (state >> np.uint64(v)) & one:
                met, tried = _append(sets, queue, v, threshold, f, at - 1, end, met)
                work -= tried
    queue.counts[0] = at
    queue.counts[1] = end
    queue.counts[2] = min(met, most)
    if met > most:
        return FULL
    return PAUSED if at < met else FINISHED


@inlined
def _next_vertices(sets: CheapestFirst, state: np.uint64) -> Any:
    """Return the range of vertices that may come next: one whose best set is allowed, or all."""
    n = len(sets.start) - 1
    for v in range(n):
        first = sets.start[v]
        if (
            not (state >> np.uint64(v)) & np.uint64(1)
            and first < sets.start[v + 1]
            and not sets.masks[first] & ~state
        ):
            return v, v + 1
    return 0, n


@inlined
def _append(
    sets: CheapestFirst,
    queue: Queue,
    v: int,
    threshold: float,
    f: float,
    before: int,
    end: int,
    met: int,
) -> Any:
    """Enter the state `before` with the vertex v, unless it is above the threshold.

    Returns how many states were met, and how many sets tried."""
    state = queue.states[before]
    fall = queue.fall[v]
    room = threshold - f + fall
    first = sets.start[v]
    last = sets.start[v + 1]
    i = first
    while i < last and sets.masks[i] & ~state and sets.costs[i] <= room:
        i += 1
    if i < last and sets.costs[i] > room:
        queue.least[0] = min(queue.least[0], f + sets.costs[i] - fall)
    elif i < last and met <= len(queue.states):
        after = state | (np.uint64(1) << np.uint64(v))
        met = _reach(queue, after, queue.costs[before] + sets.costs[i], before, end, met)
    return met, i - first + 1


@inner
def _reach(queue: Queue, state: np.uint64, cost: float, before: int, end: int, met: int) -> int:
    """Enter a state of the next layer, or its smaller cost; return how many states were met.

    That is one more than there are places if there is none left. A place of the table that names a
    state of an earlier layer, before `end`, is free."""
    last = np.uint64(len(queue.table) - 1)
    place = ((state * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & last
    while queue.table[place] >= end and queue.states[queue.table[place]] != state:
        place = (place + np.uint64(1)) & last
    known = queue.table[place]
    if known < end:
        if met == len(queue.states):
            return met + 1
        known = met
        queue.table[place] = known
        queue.states[known] = state
        queue.costs[known] = np.inf
        met += 1
    if cost < queue.costs[known]:
        queue.costs[known] = cost
        queue.before[known] = before
    return met


@inner
def fill_falls(p: Potential, state: np.uint64, fall: Floats, steps: Ints) -> float:
    """Return h(U); write h(U) - h(U and v) for each v outside U into `fall`."""
    one = np.uint64(1)
    n = len(fall)
    h = 0.0
    outside = ~state & ((one << np.uint64(n)) - one)
    for v in range(n):
        fall[v] = p.base[v]
        if (outside >> np.uint64(v)) & one:
            h += p.base[v]
    for c in range(len(p.clusters)):
        short = p.needs[c] - popcount(p.clusters[c] & state)
        if short > 0:
            h += p.weights[c] * short
            rest = p.clusters[c] & outside
            while rest:
                fall[lowest_bit(rest)] += p.weights[c]
                rest &= rest - one
    for c in range(len(p.half_weights)):
        total = _fill_steps(p, c, state, outside, steps)
        h -= p.half_weights[c] * (total // 2)
        for v in range(n):
            fall[v] -= p.half_weights[c] * (total // 2 - (total - steps[v]) // 2)
    return h


@inlined
def _fill_steps(p: Potential, c: int, state: np.uint64, outside: np.uint64, steps: Ints) -> Any:
    """Return twice the most that vertices outside U add to a zero-half cut.

    It is less by steps[v] outside U and v."""
    one = np.uint64(1)
    odd = p.half_odd[c] & outside
    total = popcount(odd)
    for v in range(len(steps)):
        steps[v] = np.int64(odd >> np.uint64(v) & one)
    for i in range(p.half_start[c], p.half_start[c + 1]):
        rest = p.half_clusters[i] & outside
        short = p.half_needs[i] - popcount(p.half_clusters[i] & state)
        total += popcount(rest)
        if short > 0:
            total -= short
        else:
            for v in range(len(steps)):
                steps[v] += np.int64(rest >> np.uint64(v) & one)
    return total


class Ascent(NamedTuple):
    """State of a greedy dual ascent."""

    start: Ints  # (n + 1,) sets by vertex
    masks: Words  # (sets,) their members
    reduced: Floats  # (sets,) reduced costs
    zeros: Words  # masks of the sets with reduced cost 0, from start[v] on for vertex v
    counts: Ints  # (n,) of them
    clusters: Words  # (most,) found so far
    weights: Floats  # (most,)

    @staticmethod
    def of(sets: ScoredSets, bounded: Bounded) -> "Ascent":
        """Return the ascent from these multipliers."""
        start = sets.families.vertex_start
        least = np.minimum.reduceat(bounded.lagrangian, start[:-1])
        return Ascent(
            start=start,
            masks=sets.families.masks(),
            reduced=bounded.lagrangian - least[sets.owners],
            zeros=np.zeros(len(sets.costs), np.uint64),
            counts=np.zeros(sets.families.n, np.int64),
            clusters=np.zeros(_CLUSTERS_OF_ASCENT, np.uint64),
            weights=np.zeros(_CLUSTERS_OF_ASCENT),
        )


def greedy_duals(
    sets: ScoredSets, bounded: Bounded, allowed: Bools, scale: float, seed: int
) -> Bounded:
    """Return the bound raised by greedy dual ascent; clusters are made small in random order."""
    n = sets.families.n
    random = np.random.default_rng(seed)
    orders = np.array([random.permutation(n) for _ in range(64)])
    ascent = Ascent.of(sets, bounded)
    count = ascend(ascent, orders)
    inside = (ascent.clusters[:count, None] >> np.arange(n, dtype=np.uint64)) & np.uint64(1)
    cuts = bounded.cuts.join(cluster_cuts(inside.astype(np.uint8), 1))
    weights = np.concatenate([bounded.weights, ascent.weights[:count]])
    return lagrangian_bounds(sets, cuts, weights, allowed, scale)


@kernel
def ascend(ascent: Ascent, orders: Ints) -> int:
    """Find clusters and their weights; return how many there are."""
    one = np.uint64(1)
    n = len(ascent.counts)
    everything = (one << np.uint64(n)) - one
    _lower(ascent, everything, np.uint64(0), 0.0)
    for count in range(len(ascent.clusters)):
        cluster = everything & ~_closure(ascent, np.uint64(0))
        if not cluster:
            return count
        for k in range(n):
            u = np.uint64(orders[count % len(orders), k])
            if (cluster >> u) & one:
                rest = everything & ~_closure(ascent, (everything & ~cluster) | (one << u))
                if rest:
                    cluster = rest
        least = _least_outside(ascent, cluster)
        if least == np.inf:  # no network of these sets
            return count
        _lower(ascent, cluster, cluster, least)
        ascent.clusters[count] = cluster
        ascent.weights[count] = least
    return len(ascent.clusters)


@inlined
def _least_outside(ascent: Ascent, cluster: np.uint64) -> Any:
    """Return the least reduced cost of sets outside the cluster that belong to its vertices."""
    least = np.inf
    for v in range(len(ascent.counts)):
        if (cluster >> np.uint64(v)) & np.uint64(1):
            for i in range(ascent.start[v], ascent.start[v + 1]):
                if not ascent.masks[i] & cluster and ascent.reduced[i] < least:
                    least = ascent.reduced[i]
    return least


@inner
def _lower(ascent: Ascent, vertices: np.uint64, cluster: np.uint64, by: float) -> None:
    """Lower the reduced costs of these vertices' sets outside the cluster; list those now 0."""
    for v in range(len(ascent.counts)):
        if (vertices >> np.uint64(v)) & np.uint64(1):
            first = ascent.start[v]
            for i in range(first, ascent.start[v + 1]):
                if not ascent.masks[i] & cluster:
                    ascent.reduced[i] -= by
                    if ascent.reduced[i] <= _ZERO_COST:
                        ascent.zeros[first + ascent.counts[v]] = ascent.masks[i]
                        ascent.counts[v] += 1


@inner
def _closure(ascent: Ascent, state: np.uint64) -> np.uint64:
    """Return the vertices that follow from `state` by sets of reduced cost 0."""
    one = np.uint64(1)
    again = True
    while again:
        again = False
        for v in range(len(ascent.counts)):
            if not (state >> np.uint64(v)) & one and _follows(ascent, v, state):
                state |= one << np.uint64(v)
                again = True
    return state


@inlined
def _follows(ascent: Ascent, v: int, state: np.uint64) -> Any:
    """Return whether a set of reduced cost 0 of the vertex is inside `state`."""
    first = ascent.start[v]
    for i in range(first, first + ascent.counts[v]):  # noqa: SIM110 (numba knows no `any`)
        if not ascent.zeros[i] & ~state:
            return True
    return False
