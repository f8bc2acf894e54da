"""Parallel trial with a dynamic offset: every flip is tried, one of those accepted is taken."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...foundation.arrays import AnyArray, Floats, Ints
from ...foundation.jit import inlined, kernel
from ...foundation.random import BLOCK, REACH, Draws, below, draws_of, next_picks, next_waits
from ...foundation.words import lowest_bit
from ...machines.qubo import Qubo
from .flips import FlipWalk, flip, keep_best, walk_from


class Groups(NamedTuple):
    """Ranges of bits of which only so many may be active; a bit is in one group at most."""

    group: Ints  # (n,) of each bit; -1 if it is in none
    first: Ints  # (groups,)
    last: Ints  # (groups,) one past the last bit

    @staticmethod
    def of(ranges: Sequence[tuple[int, int]], n: int) -> "Groups":
        """The groups [first, last) of n bits."""
        group = np.full(n, -1, np.int64)
        for number, (first, last) in enumerate(ranges):
            group[first:last] = number
        bounds = np.array(ranges, dtype=np.int64).reshape(-1, 2)
        return Groups(group, bounds[:, 0].copy(), bounds[:, 1].copy())


class Replica(NamedTuple):
    """One state that is searched from; changed in place by the kernel."""

    walk: FlipWalk
    wall: Floats  # (padded n,) infinite where a flip is not allowed, 0 elsewhere
    room: Ints  # (groups,) bits that may still become active
    offset: Floats  # (1,) subtracted from every increment until a flip is accepted
    seen: Ints  # (n + 1,) the last iteration in which the bit was tried by itself; then the number of this iteration
    hits: Ints  # (padded n,) space for the bits that are accepted
    draws: Draws


def replica_from(qubo: Qubo, bits: AnyArray, groups: Groups, most: int, seeds: np.random.SeedSequence) -> Replica:
    """The replica that begins at this state, which has at most `most` active bits in each group."""
    walk = walk_from(qubo, bits, keep_best=True)
    sums = np.concatenate([[0], np.cumsum(np.asarray(bits) != 0)])
    room = most - (sums[groups.last] - sums[groups.first])
    wall = np.zeros(len(walk.field))
    full = (room == 0)[groups.group] & (groups.group >= 0) if len(room) else np.zeros(qubo.bits, np.bool_)
    wall[: qubo.bits][full & (walk.sign[: qubo.bits] > 0)] = np.inf
    return Replica(
        walk,
        wall,
        room.astype(np.int64),
        np.zeros(1),
        np.zeros(qubo.bits + 1, np.int64),
        np.zeros(len(walk.field), np.int64),
        draws_of(seeds),
    )


@inlined
def _allow(groups: Any, replica: Any, bit: int) -> None:
    """Keep room and walls after a flip of this bit."""
    group = groups.group[bit]
    if group < 0:
        return
    added = replica.walk.sign[bit] < 0.0
    full = added and replica.room[group] == 1
    if full or replica.room[group] == 0:
        for other in range(groups.first[group], groups.last[group]):
            replica.wall[other] = np.inf if full and replica.walk.sign[other] > 0.0 else 0.0
    replica.room[group] += -1 if added else 1


@inlined
def _some(replica: Any, beta: float) -> Any:
    """The first of up to BLOCK bits in random order that is accepted; -1 if none is.

    The first accepted one in a random order of all is a random one of all accepted: where many are, few are tried.
    """
    walk, draws = replica.walk, replica.draws
    n = len(replica.seen) - 1
    picked, drawn = next_picks(draws, n), next_waits(draws)
    for k in range(BLOCK):
        bit = np.int64(draws.picks[picked + k])
        if replica.seen[bit] != replica.seen[n]:
            replica.seen[bit] = replica.seen[n]
            rise = walk.sign[bit] * walk.field[bit] + replica.wall[bit] - replica.offset[0]
            if beta * rise < draws.waits[drawn + k]:
                return bit
    return -1


@inlined
def _any(replica: Any, beta: float) -> Any:
    """A random one of all accepted bits that `_some` has not tried; -1 if there is none."""
    offset, n, found = replica.offset[0], len(replica.seen) - 1, 0
    for start in range(0, len(replica.wall), BLOCK):
        field, sign = replica.walk.field[start : start + BLOCK], replica.walk.sign[start : start + BLOCK]
        wall = replica.wall[start : start + BLOCK]
        near = 0
        for k in range(BLOCK):
            near += beta * (sign[k] * field[k] + wall[k] - offset) < REACH
        if near == 0:
            continue
        drawn = next_waits(replica.draws)
        waits = replica.draws.waits[drawn : drawn + BLOCK]
        mask = np.uint64(0)
        for k in range(BLOCK):
            mask |= np.uint64(beta * (sign[k] * field[k] + wall[k] - offset) < waits[k]) << np.uint64(k)
        while mask:
            bit = start + lowest_bit(mask)
            mask &= mask - np.uint64(1)
            if replica.seen[bit] != replica.seen[n]:
                replica.hits[found] = bit
                found += 1
    return replica.hits[below(replica.draws.words, found)] if found else -1


@kernel
def try_all(couplings: Any, groups: Any, replica: Any, heat: Any, iterations: int, halt: Any) -> int:
    """In each iteration try every allowed flip and take one of those accepted; the number of iterations.

    `heat` is (inverse temperature, growth): if no flip is accepted the offset grows by the latter, if one is it returns
    to 0 (the Digital Annealer's way out of local minima). Another thread sets halt[0] to end it early.
    """
    beta, growth = heat
    for iteration in range(iterations):
        if halt[0]:
            return iteration
        replica.seen[len(replica.seen) - 1] += 1
        bit = _some(replica, beta)
        if bit < 0:
            bit = _any(replica, beta)
        if bit < 0:
            replica.offset[0] += growth
            continue
        replica.offset[0] = 0.0
        flip(couplings, replica.walk, bit)
        _allow(groups, replica, bit)
        keep_best(replica.walk)
    return iterations
