"""Settling moves for any QUBO: a bit flips, other bits react, and the whole is accepted or undone.

In models with constraints, such as one bit of each group, a single flip breaks a constraint and
costs its penalty. A settling move goes on: the bits whose flip now lowers the energy flip too, the
steepest first, each at most once, until there is none. Then Metropolis' rule decides about all
flips together. Nothing needs to be known of the groups."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ...foundation.arrays import AnyArray, Bools, Floats, Ints, SmallInts
from ...foundation.jit import inlined, inner, kernel
from ...foundation.random import BLOCK, Draws, draws_of, next_picks, next_waits
from ...machines.qubo import Qubo
from .flips import EXAMPLES, keep_best, state_of, walk_from

LEAST_SETTLING_GAIN = 1e-9  # of the largest coefficient: smaller gains could be rounding errors
MOST_FLIPS = 64  # reactions of a move; it is judged as it is then


class Rows(NamedTuple):
    """The couplers of a QUBO by rows."""

    start: Ints  # (n + 1,)
    columns: SmallInts
    weights: Floats


class Reactions(NamedTuple):
    """Scratch of a move."""

    flipped: Ints  # (MOST_FLIPS + 1,) the bits, in the order of their flips
    waiting: Ints  # (n,) bits that may lower the energy
    is_waiting: Bools  # (n,)
    last_move: Ints  # (n,) number of the last move that flipped the bit
    counts: Ints  # (3,) flips of this move, waiting bits, moves so far


class SettlingMoves:
    """Settling moves of the bits of a QUBO, with the methods of `FlipMoves`."""

    def __init__(self, qubo: Qubo, start: AnyArray, seed: np.random.SeedSequence) -> None:
        n = qubo.bits
        largest = max(np.abs(part).max(initial=0.0) for part in (qubo.h, qubo.weights))
        self.size = n
        self._least = LEAST_SETTLING_GAIN * float(largest)
        self._rows = Rows(qubo.indptr.astype(np.int64), qubo.indices, qubo.weights)
        self._walk = walk_from(qubo, start, keep_best=True)
        self._draws = draws_of(seed)
        self._reactions = Reactions(
            np.empty(MOST_FLIPS + 1, np.int64),
            np.empty(n, np.int64),
            np.zeros(n, np.bool_),
            np.full(n, -1),
            np.zeros(3, np.int64),
        )

    @property
    def state(self) -> Bools:
        """The present state."""
        return state_of(self._walk, self.size)

    @property
    def best(self) -> Bools:
        """The state of least energy at the end of a step."""
        return self._walk.best.copy()

    def make(self, betas: Floats, tries: int, halt: Bools) -> None:
        """Try this many moves at each inverse temperature; 0: as many as there are bits."""
        settle_at_random(
            self._rows,
            self._walk,
            self._draws,
            self._reactions,
            betas,
            tries or self.size,
            self._least,
            halt,
        )


@cache
def load_settling(kind: str) -> None:
    """Compile or load the kernel; it takes weights of 64 bits, whatever the kind."""
    moves = SettlingMoves(EXAMPLES[kind], np.zeros(2), np.random.SeedSequence(0))
    moves.make(np.ones(1), 1, np.zeros(1, np.bool_))


@kernel
def settle_at_random(
    rows: Rows,
    walk: Any,
    draws: Draws,
    reactions: Reactions,
    betas: Floats,
    tries: int,
    least: float,
    halt: Bools,
) -> None:
    """For each beta, try this many settling moves, each from a bit drawn from all."""
    n = len(rows.start) - 1
    for beta in betas:
        for start in range(0, tries, BLOCK):
            if halt[0]:
                return
            picked = next_picks(draws, n)
            drawn = next_waits(draws)
            for k in range(min(BLOCK, tries - start)):
                limit = draws.waits[drawn + k] / beta
                _try_move(np.int64(draws.picks[picked + k]), limit, rows, walk, reactions, least)
        keep_best(walk)


@inlined
def _try_move(bit: Any, limit: Any, rows: Any, walk: Any, reactions: Any, least: Any) -> None:
    """Flip the bit, let others react, and undo all flips if the energy rises above the limit."""
    counts = reactions.counts
    counts[0] = 0
    counts[1] = 0
    counts[2] += 1
    before = walk.energy[0]
    _flip(bit, rows, walk, reactions, least)
    # even if all waiting bits gained what they gain alone
    hope = walk.energy[0] - before
    for k in range(counts[1]):
        waiting = reactions.waiting[k]
        hope += walk.sign[waiting] * walk.field[waiting]
    hopeful = hope <= limit
    while hopeful and counts[0] <= MOST_FLIPS:
        steepest = _take_steepest(walk, reactions, least)
        if steepest < 0:
            break
        _flip(steepest, rows, walk, reactions, least)
    if walk.energy[0] - before > limit:
        for k in range(counts[0] - 1, -1, -1):
            _flip_back(reactions.flipped[k], rows, walk)
    for k in range(counts[1]):
        reactions.is_waiting[reactions.waiting[k]] = False


@inner
def _flip(bit: Any, rows: Any, walk: Any, reactions: Any, least: Any) -> None:
    """Flip the bit; its neighbours that can lower the energy now wait, if they have not flipped."""
    counts = reactions.counts
    reactions.flipped[counts[0]] = bit
    counts[0] += 1
    reactions.last_move[bit] = counts[2]
    change = walk.sign[bit]
    walk.energy[0] += change * walk.field[bit]
    walk.sign[bit] = -change
    for k in range(rows.start[bit], rows.start[bit + 1]):
        other = rows.columns[k]
        walk.field[other] += change * rows.weights[k]
        gains = walk.sign[other] * walk.field[other] < -least
        if gains and not reactions.is_waiting[other] and reactions.last_move[other] != counts[2]:
            reactions.is_waiting[other] = True
            reactions.waiting[counts[1]] = other
            counts[1] += 1


@inner
def _flip_back(bit: Any, rows: Any, walk: Any) -> None:
    """Flip the bit, as an earlier flip is undone."""
    change = walk.sign[bit]
    walk.energy[0] += change * walk.field[bit]
    walk.sign[bit] = -change
    for k in range(rows.start[bit], rows.start[bit + 1]):
        walk.field[rows.columns[k]] += change * rows.weights[k]


@inner
def _take_steepest(walk: Any, reactions: Any, least: Any) -> Any:
    """Return the waiting bit whose flip lowers the energy most, or -1; it waits no longer.

    Bits that no longer lower the energy do not wait any more either."""
    counts = reactions.counts
    waiting = reactions.waiting
    steepest = np.int64(-1)
    lowest = -least
    kept = 0
    for k in range(counts[1]):
        bit = waiting[k]
        rise = walk.sign[bit] * walk.field[bit]
        if rise >= -least:
            reactions.is_waiting[bit] = False
            continue
        if rise < lowest:
            lowest = rise
            steepest = np.int64(kept)
        waiting[kept] = bit
        kept += 1
    if steepest >= 0:
        chosen = waiting[steepest]
        kept -= 1
        waiting[steepest] = waiting[kept]
        reactions.is_waiting[chosen] = False
        steepest = chosen
    counts[1] = kept
    return steepest
