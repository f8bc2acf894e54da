"""Single flips of a QUBO's bits (a try O(1), a flip O(degree)); schedules and threads.

Weights are kept in 32 bits where no state's energy changes by more than a tolerance (0: where all
are exact), since on dense models the time of a flip is that of reading its row. Fields and energies
are always kept in 64 bits."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...foundation.arrays import AnyArray, Bools, Floats, Ints, SmallInts
from ...foundation.jit import inlined, inner, kernel
from ...foundation.random import BLOCK, REACH, Draws, next_picks, next_waits
from ...foundation.words import lowest_bit
from ...machines.qubo import Qubo, qubo_from_couplers

# least length of a stretch: consecutive columns of a row, added without looking at indices
LONG = 8
# In a descent, of the largest coefficient: smaller gains could be rounding errors, without end.
LEAST_DESCENT_GAIN = 1e-12
POLL = 0.02  # seconds between two looks at the clock


class Couplings(NamedTuple):
    """The rows of J, cut into stretches of consecutive columns and single entries."""

    single_start: Ints  # (n + 1,) of each row in `columns` and `weights`
    columns: AnyArray  # uint32: numba looks twice at an index that might be negative
    weights: AnyArray  # float32 or float64
    stretch_start: Ints  # (n + 1,) of each row in `stretches`
    # (stretches, 3) first column, first place in `long_weights`, one past the last place
    stretches: Ints
    long_weights: AnyArray  # of the same type as `weights`


class FlipWalk(NamedTuple):
    """A state and the increments of its flips; changed in place by kernels."""

    field: Floats  # (n,) h_i + sum_j J_ij x_j; infinite beyond n, up to a multiple of BLOCK
    # (n,) 1 where x_i = 0, -1 where x_i = 1: flipping i adds sign_i field_i to the energy
    sign: Floats
    energy: Floats  # (1,)
    best: Bools  # (n,) the state of least energy at the end of a step; empty if it is not kept
    best_energy: Floats  # (1,)


class FlipModel(NamedTuple):
    """A QUBO and its couplers as the kernels read them."""

    qubo: Qubo
    couplings: Couplings

    @staticmethod
    def of(qubo: Qubo, tolerance: float = 0.0) -> "FlipModel":
        """Return the model; in 32 bits if no state's energy changes by more than the tolerance."""
        return FlipModel(qubo, couplings_of(qubo, tolerance))

    @property
    def kind(self) -> str:
        """The type of the weights: float32 or float64."""
        return str(self.couplings.weights.dtype)


# A QUBO for each type of weights, on which kernels are compiled or loaded: 1/2 is exact in 32 bits,
# 1/10 is not.
EXAMPLES = {
    kind: qubo_from_couplers([1.0, 1.0], [0], [1], [weight])
    for kind, weight in (("float32", 0.5), ("float64", 0.1))
}


def couplings_of(qubo: Qubo, tolerance: float = 0.0) -> Couplings:
    """Return the couplers of the QUBO, cut into stretches and single entries.

    A row with all other bits gets a weight of 0 for its own bit: one aligned stretch is faster than
    two."""
    indices = qubo.indices
    exact = qubo.weights
    lengths = np.diff(qubo.indptr)
    full = np.flatnonzero(lengths == qubo.bits - 1)
    if len(full):
        places = qubo.indptr[full] + full
        indices = np.insert(indices, places, full.astype(np.int32))
        exact = np.insert(exact, places, 0.0)
        lengths[full] += 1
    rows = np.repeat(np.arange(qubo.bits, dtype=np.int32), lengths)
    new = (np.diff(indices, prepend=np.int32(-2)) != 1) | (np.diff(rows, prepend=np.int32(-1)) != 0)
    first = np.flatnonzero(new)
    lengths = np.diff(np.append(first, len(rows)))
    long = lengths >= LONG
    single = np.repeat(~long, lengths)
    ends = np.cumsum(lengths[long])
    stretches = np.stack([indices[first[long]], ends - lengths[long], ends], axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        short = exact.astype(np.float32)
        error = float(np.abs(short - exact).sum()) / 2  # both triangles are stored
    weights = short if error <= tolerance else exact
    return Couplings(
        _starts(rows[single], qubo.bits),
        indices[single].astype(np.uint32),
        weights[single],
        _starts(rows[first[long]], qubo.bits),
        np.ascontiguousarray(stretches, dtype=np.int64),
        weights[~single],
    )


def _starts(rows: SmallInts, n: int) -> Ints:
    return np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))]).astype(np.int64)


def walk_from(qubo: Qubo, bits: AnyArray, *, keep_best: bool = False) -> FlipWalk:
    """Return the walk that begins at this state."""
    x = np.asarray(bits, dtype=np.float64)
    products = np.concatenate([[0.0], np.cumsum(qubo.weights * x[qubo.indices])])
    field = qubo.h + np.diff(products[qubo.indptr])
    energy = np.array([qubo.offset + 0.5 * float((x * (field + qubo.h)).sum())])
    best = (x > 0) if keep_best else np.zeros(0, np.bool_)
    beyond = -qubo.bits % BLOCK
    padded = np.append(field, np.full(beyond, np.inf))
    return FlipWalk(padded, np.append(1.0 - 2.0 * x, np.ones(beyond)), energy, best, energy.copy())


def state_of(walk: FlipWalk, n: int) -> Bools:
    """Return the n bits of the walk."""
    return walk.sign[:n] < 0


@inlined
def flip(couplings: Couplings, walk: FlipWalk, bit: int) -> None:
    """Flip one bit."""
    field, change = walk.field, walk.sign[bit]
    walk.energy[0] += change * field[bit]
    walk.sign[bit] = -change
    begin, end = couplings.single_start[bit], couplings.single_start[bit + 1]
    columns, weights = couplings.columns[begin:end], couplings.weights[begin:end]
    for k in range(len(columns)):
        field[columns[k]] += change * weights[k]
    for s in range(couplings.stretch_start[bit], couplings.stretch_start[bit + 1]):
        first, begin, end = couplings.stretches[s]
        stretch, weights = field[first : first + end - begin], couplings.long_weights[begin:end]
        for k in range(len(weights)):
            stretch[k] += change * weights[k]


@inner
def keep_best(walk: FlipWalk) -> None:
    """Copy the state if its energy is the least so far."""
    if len(walk.best) and walk.energy[0] < walk.best_energy[0]:
        walk.best_energy[0] = walk.energy[0]
        for bit in range(len(walk.best)):
            walk.best[bit] = walk.sign[bit] < 0.0


@kernel
def sweep_in_order(
    couplings: Couplings, walk: FlipWalk, draws: Draws, betas: Floats, halt: Bools
) -> None:
    """For each beta, try every bit once, in order: flip if beta d < -log(u), d the increment.

    This is Metropolis' rule. BLOCK tries are compared at once; if one succeeds they are repeated
    one by one, since a flip changes the increments of later bits. Another thread sets halt[0] to
    stop early."""
    for beta in betas:
        for start in range(0, len(walk.field), BLOCK):
            if halt[0]:
                return
            field, sign = walk.field[start : start + BLOCK], walk.sign[start : start + BLOCK]
            near = 0
            for k in range(BLOCK):
                near += beta * sign[k] * field[k] < REACH
            if near == 0:
                continue
            drawn = next_waits(draws)
            waits = draws.waits[drawn : drawn + BLOCK]
            mask = np.uint64(0)
            for k in range(BLOCK):
                mask |= np.uint64(beta * sign[k] * field[k] < waits[k]) << np.uint64(k)
            if mask:
                for k in range(lowest_bit(mask), BLOCK):
                    if beta * sign[k] * field[k] < waits[k]:
                        flip(couplings, walk, start + k)
        keep_best(walk)


@kernel
def sweep_at_random(
    couplings: Couplings, walk: FlipWalk, draws: Draws, betas: Floats, tries: int, halt: Bools
) -> None:
    """For each beta, try this many bits, each drawn from all, by Metropolis' rule."""
    field, sign = walk.field, walk.sign
    n = len(couplings.single_start) - 1
    for beta in betas:
        for start in range(0, tries, BLOCK):
            if halt[0]:
                return
            picked, drawn = next_picks(draws, n), next_waits(draws)
            picks, waits = draws.picks[picked : picked + BLOCK], draws.waits[drawn : drawn + BLOCK]
            accepted = 0
            for k in range(BLOCK):
                accepted += beta * sign[picks[k]] * field[picks[k]] < waits[k]
            if accepted:
                for k in range(min(BLOCK, tries - start)):
                    bit = np.int64(picks[k])
                    if beta * sign[bit] * field[bit] < waits[k]:
                        flip(couplings, walk, bit)
        keep_best(walk)


@kernel
def _descend(couplings: Couplings, walk: FlipWalk, least: float) -> None:
    """Flip bits whose flip lowers the energy by more than `least`, until there is none."""
    changed = True
    while changed:
        changed = False
        for bit in range(len(couplings.single_start) - 1):
            if walk.sign[bit] * walk.field[bit] < -least:
                flip(couplings, walk, bit)
                changed = True


def descend(model: FlipModel, bits: AnyArray) -> Bools:
    """Return the local minimum that is reached from this state by single flips."""
    walk = walk_from(model.qubo, bits)
    parts = model.qubo.h, model.qubo.weights
    largest = max(np.abs(part).max(initial=0.0) for part in parts)
    _descend(model.couplings, walk, LEAST_DESCENT_GAIN * float(largest))
    return state_of(walk, model.qubo.bits)


@dataclass(frozen=True, slots=True)
class Schedule:
    """Inverse temperatures: `geometric` or `linear` from first to last, or `custom` ones."""

    betas: Floats
    kind: str = "geometric"

    def steps(self, count: int) -> Floats:
        """Return the inverse temperatures of this many steps; of one step the last."""
        if self.kind == "custom":
            return self.betas[np.arange(count) * len(self.betas) // max(count, 1)]
        if count < 2:
            return self.betas[-1:].repeat(count)
        first, last = self.betas.tolist()
        space = np.geomspace if self.kind == "geometric" else np.linspace
        return space(first, last, count)

    def at(self, progress: float) -> float:
        """Return the inverse temperature after this share of the time."""
        if self.kind == "custom":
            return float(self.betas[min(int(progress * len(self.betas)), len(self.betas) - 1)])
        first, last = self.betas.tolist()
        if self.kind == "linear":
            return float(first + (last - first) * progress)
        return float(first * (last / first) ** progress)


@contextmanager
def halting(halt: Bools, threads: int) -> Iterator[ThreadPoolExecutor]:
    """Open a pool of threads; an error in the block sets halt[0]. The threads are waited for."""
    pool = ThreadPoolExecutor(threads)
    try:
        yield pool
    except BaseException:
        halt[0] = True
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def watch(futures: Sequence[Future[Any]], look: Callable[[], float], halt: Bools) -> list[Any]:
    """Return the results of the futures.

    `look`, called every POLL seconds, reports and returns the seconds left."""
    pending = set(futures)
    while pending:
        left = look()
        if left <= 0:
            halt[0] = True
        finished, pending = wait(pending, timeout=POLL if left <= 0 else min(POLL, left))
        for future in finished:
            future.result()
    return [future.result() for future in futures]
