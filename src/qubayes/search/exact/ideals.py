"""Proofs by order ideals: a search over the sets of vertices that come first in a topological order.

A state U is the set of vertices that come first; g(U) is the least loss of networks on U.
Multipliers w >= 0 of the cuts give least prices m(v) of v's sets (loss plus w of the cuts that they
cross), and a completion of U loses at least

    h(U) = sum over v outside U of m(v)  -  sum over cuts of w * (the most that vertices outside U
    can add to the cut):

for a cluster C with k that is |C - U| - max(0, k - |C & U|), because the next k - |C & U| vertices
of C have fewer than k parents in C; for a zero-half cut half the sum over its clusters and its odd
vertices outside U, rounded down. h of the empty set is the bound of the relaxation. States with g +
h above a threshold are dropped. If no complete state is left, every network loses at least the
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
from typing import NamedTuple

import numpy as np

from ...candidates import example
from ...foundation.arrays import Bools, Floats, Ints, SmallInts, Words
from ...foundation.jit import inner, kernel
from ...foundation.words import lowest_bit, popcount
from ...foundation.workers import Workers
from ..run import Limits, Run
from .cuts import Bytes, ScoredSets, cluster_cuts, no_cuts
from .relaxation import ROUNDING, Bounded, lagrangian

LARGEST = 63  # vertices: a state is a word, and one word is left over
SLICE = 2_000_000  # sets that are looked at between two looks at the clock, some 10 ms
MOST_CLUSTERS = 5000  # clusters of one ascent
STAGES = (0.25, 0.5, 0.75, 1.0)  # thresholds, in parts of the gap
SLOWER = 0.75  # the growth factor of the next stage is about this times that of the last
ZERO = 1e-9  # reduced costs up to this count as 0


class Potential(NamedTuple):
    """The lower bound h as arrays for kernels; clusters are masks of vertices."""

    base: Floats  # (n,) least price minus the weights of the clusters around the vertex
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
        one, many = bounded.cuts.select(single), bounded.cuts.select(~single)
        weights = bounded.weights[single]
        least = np.minimum.reduceat(bounded.prices, sets.families.vertex_start[:-1])
        return Potential(
            least - weights @ one.inside,
            masks_of(one.inside),
            one.needs,
            weights,
            many.start,
            masks_of(many.inside),
            many.needs,
            masks_of(many.odd),
            bounded.weights[~single],
        )


class Queue(NamedTuple):
    """The states that were met, layer by layer, and how far they are expanded. 28 bytes a state, at most 36."""

    states: Words  # (most,) masks of the vertices that come first
    losses: Floats  # (most,) g
    before: SmallInts  # (most,) the state that each was reached from
    table: SmallInts  # (a power of 2,) places of the states of the next layer, by their hash
    counts: Ints  # states expanded; end of the layer; states met
    least: Floats  # least g + h that was dropped; least loss of a complete state
    fall: Floats  # (n,) h(U) - h(U and v)
    steps: Ints  # (n,)


class IdealSearch(NamedTuple):
    """The end of a search: every network loses at least `loss`."""

    finished: bool  # False if there were too many states or the run was over
    states: int
    loss: float
    best: float  # least loss of a complete state; infinite if none was met
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
    """Search the states with g + h up to the threshold, at most `most`, over networks of usable sets."""
    n = sets.families.n
    potential = Potential.of(sets, bounded)
    used = sets.select(np.flatnonzero(usable))
    by_loss = np.lexsort((used.losses, used.owners))
    start = used.families.vertex_start
    masks = used.families.masks()[by_loss]
    losses = used.losses[by_loss]
    queue = Queue(
        np.zeros(most, np.uint64),
        np.zeros(most),
        np.zeros(most, np.int32),
        np.zeros(_places(most), np.int32),
        np.array([0, 1, 1]),
        np.array([math.inf, math.inf]),
        np.zeros(n),
        np.zeros(n, np.int64),
    )
    going = 1
    while going == 1 and not run.over:
        going = expand_states(start, masks, losses, potential, queue, threshold, SLICE)
        run.report()
    count, (least, best) = int(queue.counts[2]), queue.least.tolist()
    margin = ROUNDING * (scale + 2.0 * float(bounded.weights @ bounded.cuts.sizes))
    order: list[int] = []
    if best < math.inf:
        at = count - 1  # the complete state is the last one
        while at > 0:
            added = int(queue.states[at] ^ queue.states[queue.before[at]])
            order.append(added.bit_length() - 1)
            at = int(queue.before[at])
    return IdealSearch(
        going == 0, count, min(least, best) - margin, best, np.array(order[::-1], np.int64)
    )


@cache
def compile_ideals() -> None:
    """Compile the kernels of this module."""
    candidates = example(3)
    sets = ScoredSets.of(candidates.families, candidates.scores)
    allowed = np.ones(len(sets.losses), np.bool_)
    bounded = greedy_duals(
        sets, lagrangian(sets, no_cuts(3), np.zeros(0), allowed, 0.0), allowed, 0.0, 0
    )
    run = Run(candidates, Limits(None), Workers(1))
    search_ideals(sets, bounded, allowed, bounded.loss, 10, 0.0, run)


def masks_of(inside: Bytes) -> Words:
    """Return the rows as masks, vertex v as bit v."""
    masks: Words = inside.astype(np.uint64) @ (
        np.uint64(1) << np.arange(inside.shape[1], dtype=np.uint64)
    )
    return masks


@kernel
def expand_states(
    start: Ints,
    masks: Words,
    losses: Floats,
    potential: Potential,
    queue: Queue,
    threshold: float,
    work: int,
) -> int:
    """Expand states; return 0 when all are expanded, 1 after looking at `work` sets, 2 if there is no place left."""
    one, n, least, most = np.uint64(1), len(start) - 1, queue.least, len(queue.states)
    everything = (one << np.uint64(n)) - one
    at, end, met = queue.counts[0], queue.counts[1], queue.counts[2]
    while at < met <= most and work > 0:
        if at == end:
            end = met
        state, g = queue.states[at], queue.losses[at]
        at += 1
        if state == everything:
            least[1] = g
            continue
        f = g + fill_falls(potential, state, queue.fall, queue.steps)
        work -= len(potential.clusters)
        if f > threshold:
            least[0] = min(least[0], f)
            continue
        low, high = 0, n
        for v in range(n):
            first = start[v]
            if (
                not (state >> np.uint64(v)) & one
                and first < start[v + 1]
                and not masks[first] & ~state
            ):
                low, high = v, v + 1
                break
        for v in range(low, high):
            if (state >> np.uint64(v)) & one:
                continue
            room = threshold - f + queue.fall[v]
            i, last = start[v], start[v + 1]
            while i < last and masks[i] & ~state and losses[i] <= room:
                i += 1
            work -= i - start[v] + 1
            if i < last and losses[i] > room:
                least[0] = min(least[0], f + losses[i] - queue.fall[v])
            elif i < last and met <= most:
                met = _reach(queue, state | (one << np.uint64(v)), g + losses[i], at - 1, end, met)
    queue.counts[0], queue.counts[1], queue.counts[2] = at, end, min(met, most)
    return 2 if met > most else int(at < met)


@inner
def _reach(queue: Queue, state: np.uint64, loss: float, before: int, end: int, met: int) -> int:
    """Enter a state of the next layer, or its smaller loss; return how many states were met, beyond `most` if all are.

    A place of the table that names a state of an earlier layer, before `end`, is free.
    """
    last = np.uint64(len(queue.table) - 1)
    place = ((state * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & last
    while queue.table[place] >= end and queue.states[queue.table[place]] != state:
        place = (place + np.uint64(1)) & last
    known = queue.table[place]
    if known < end:
        if met == len(queue.states):
            return met + 1
        queue.table[place] = known = met
        queue.states[known], queue.losses[known] = state, math.inf
        met += 1
    if loss < queue.losses[known]:
        queue.losses[known], queue.before[known] = loss, before
    return met


@inner
def fill_falls(p: Potential, state: np.uint64, fall: Floats, steps: Ints) -> float:
    """Return h(U); write h(U) - h(U and v) for each v outside U into `fall`."""
    one, n, h = np.uint64(1), len(fall), 0.0
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
        total = popcount(p.half_odd[c] & outside)
        for v in range(n):
            steps[v] = np.int64((p.half_odd[c] & outside) >> np.uint64(v) & one)
        for i in range(p.half_start[c], p.half_start[c + 1]):
            rest = p.half_clusters[i] & outside
            short = p.half_needs[i] - popcount(p.half_clusters[i] & state)
            total += popcount(rest)
            if short > 0:
                total -= short
            else:
                for v in range(n):
                    steps[v] += np.int64(rest >> np.uint64(v) & one)
        h -= p.half_weights[c] * (total // 2)
        for v in range(n):
            fall[v] -= p.half_weights[c] * (total // 2 - (total - steps[v]) // 2)
    return h


class Ascent(NamedTuple):
    """State of a greedy dual ascent."""

    start: Ints  # (n + 1,) sets by vertex
    masks: Words  # (sets,) their members
    costs: Floats  # (sets,) reduced
    zeros: Words  # masks of the sets with reduced cost 0, from start[v] on for vertex v
    counts: Ints  # (n,) of them
    clusters: Words  # (most,) found so far
    weights: Floats  # (most,)


def greedy_duals(
    sets: ScoredSets, bounded: Bounded, allowed: Bools, scale: float, seed: int
) -> Bounded:
    """Return the bound raised by greedy dual ascent; vertices leave a cluster in random order."""
    n, random, start = sets.families.n, np.random.default_rng(seed), sets.families.vertex_start
    costs = bounded.prices - np.minimum.reduceat(bounded.prices, start[:-1])[sets.owners]
    orders = np.array([random.permutation(n) for _ in range(64)])
    zeros, counts = np.zeros(len(costs), np.uint64), np.zeros(n, np.int64)
    clusters, weights = np.zeros(MOST_CLUSTERS, np.uint64), np.zeros(MOST_CLUSTERS)
    count = ascend(
        Ascent(start, sets.families.masks(), costs, zeros, counts, clusters, weights), orders
    )
    inside = (clusters[:count, None] >> np.arange(n, dtype=np.uint64)) & np.uint64(1)
    cuts = bounded.cuts.join(cluster_cuts(inside.astype(np.uint8), 1))
    return lagrangian(
        sets, cuts, np.concatenate([bounded.weights, weights[:count]]), allowed, scale
    )


@kernel
def ascend(ascent: Ascent, orders: Ints) -> int:
    """Find clusters and their weights; return how many there are."""
    one, n = np.uint64(1), len(ascent.counts)
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
        least = np.inf
        for v in range(n):
            if (cluster >> np.uint64(v)) & one:
                for i in range(ascent.start[v], ascent.start[v + 1]):
                    if not ascent.masks[i] & cluster and ascent.costs[i] < least:
                        least = ascent.costs[i]
        if least == np.inf:  # no network of these sets
            return count
        _lower(ascent, cluster, cluster, least)
        ascent.clusters[count], ascent.weights[count] = cluster, least
    return len(ascent.clusters)


@inner
def _lower(ascent: Ascent, vertices: np.uint64, cluster: np.uint64, by: float) -> None:
    """Lower the reduced costs of these vertices' sets outside the cluster; list those that are 0 now."""
    start, masks, costs = ascent.start, ascent.masks, ascent.costs
    for v in range(len(ascent.counts)):
        if (vertices >> np.uint64(v)) & np.uint64(1):
            for i in range(start[v], start[v + 1]):
                if not masks[i] & cluster:
                    costs[i] -= by
                    if costs[i] <= ZERO:
                        ascent.zeros[start[v] + ascent.counts[v]] = masks[i]
                        ascent.counts[v] += 1


@inner
def _closure(ascent: Ascent, state: np.uint64) -> np.uint64:
    """Return the vertices that follow from `state` by sets of reduced cost 0."""
    start, one, again = ascent.start, np.uint64(1), True
    while again:
        again = False
        for v in range(len(ascent.counts)):
            if not (state >> np.uint64(v)) & one:
                for i in range(start[v], start[v] + ascent.counts[v]):
                    if not ascent.zeros[i] & ~state:
                        state |= one << np.uint64(v)
                        again = True
                        break
    return state
