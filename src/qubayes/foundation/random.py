"""Random numbers for kernels, a pool at a time: xorshift128+ in 256 lanes, so that the compiler vectorises it."""

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic
from numpy.polynomial import Chebyshev, Polynomial

from .arrays import Floats, Ints, Words
from .jit import inlined, inner, kernel

_intrinsic: Any = intrinsic

POOL = 256  # numbers drawn at once; a multiple of BLOCK
BLOCK = 16  # numbers taken at once
# log(1.5 + t), |t| <= 1/2, as a polynomial of degree 10: its Chebyshev interpolation is off by less than 1e-9.
LOG = tuple(
    Chebyshev.interpolate(lambda t: np.log(1.5 + t), 10, domain=[-0.5, 0.5]).convert(kind=Polynomial).coef.tolist()
)
REACH = 37.0  # no exponential draw is larger: -log(2^-52) = 36.04


class Dice(NamedTuple):
    """A stream of random numbers. Its state changes as it is used: one for each read."""

    lanes: Words  # (2, POOL) of xorshift128+
    waits: Floats  # (POOL,) exponential draws
    picks: Words  # (POOL,) draws from 0 .. n-1
    used: Ints  # (2,) how many waits and how many picks of the pool are gone


def dice_of(seeds: np.random.SeedSequence) -> Dice:
    """A stream that begins at this seed."""
    lanes = seeds.generate_state(2 * POOL, np.uint64).astype(np.uint64).reshape(2, POOL)
    return Dice(lanes, np.zeros(POOL), np.zeros(POOL, np.uint64), np.full(2, POOL))


@_intrinsic
def _as_float(context: Any, word: Any) -> Any:
    """The float64 with the bits of a 64-bit integer."""
    return types.float64(types.uint64), lambda ctx, builder, sig, args: builder.bitcast(args[0], ir.DoubleType())


@_intrinsic
def _as_word(context: Any, number: Any) -> Any:
    """The bits of a float64 as a 64-bit integer."""
    return types.uint64(types.float64), lambda ctx, builder, sig, args: builder.bitcast(args[0], ir.IntType(64))


@inner
def _step(lanes: Any, lane: int) -> Any:
    """The next word of a lane."""
    x, y = lanes[0, lane], lanes[1, lane]
    x ^= x << np.uint64(23)
    z = x ^ y ^ (x >> np.uint64(17)) ^ (y >> np.uint64(26))
    lanes[0, lane], lanes[1, lane] = y, z
    return z + y


@inner
def _minus_log(word: Any) -> Any:
    """-log(u) with u in (0, 1] from the upper 52 bits of the word, within 1e-9.

    u = m 2^e with m in [1, 2); log m by a polynomial. Integers become floats by their bits, and nothing is divided, as
    conversions and divisions (which numba checks) would not be vectorised.
    """
    u = 2.0 - _as_float((word >> np.uint64(12)) | np.uint64(0x3FF0000000000000))
    bits = _as_word(u)
    exponent = _as_float((bits >> np.uint64(52)) | np.uint64(0x4330000000000000)) - 4503599627371519.0  # 2^52 + 1023
    t = _as_float((bits & np.uint64(0x000FFFFFFFFFFFFF)) | np.uint64(0x3FF0000000000000)) - 1.5
    logarithm = LOG[10]
    for k in range(9, -1, -1):
        logarithm = logarithm * t + LOG[k]
    return -0.6931471805599453 * exponent - logarithm


@kernel
def _refill_waits(lanes: Any, waits: Any) -> None:
    for lane in range(POOL):
        waits[lane] = _minus_log(_step(lanes, lane))


@inlined
def next_waits(dice: Any) -> Any:
    """Where in the pool the next BLOCK exponential draws begin."""
    start = dice.used[0]
    if start == POOL:
        _refill_waits(dice.lanes, dice.waits)
        start = 0
    dice.used[0] = start + BLOCK
    return start


@kernel
def _refill_picks(lanes: Any, picks: Any, n: int) -> None:
    for lane in range(POOL):
        picks[lane] = ((_step(lanes, lane) >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32)


@inlined
def next_picks(dice: Any, n: int) -> Any:
    """Where in the pool the next BLOCK draws begin, each from 0 .. n-1; n is below 2^32 and the same in every call."""
    start = dice.used[1]
    if start == POOL:
        _refill_picks(dice.lanes, dice.picks, n)
        start = 0
    dice.used[1] = start + BLOCK
    return start


@kernel
def below(dice: Any, n: int) -> Any:
    """One draw from 0 .. n-1."""
    return np.int64(((_step(dice.lanes, 0) >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))
