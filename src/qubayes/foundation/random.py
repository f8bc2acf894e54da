"""Random numbers for kernels: the generator xorshift128+, seeded from `np.random.SeedSequence`.

A random stream is an array of words with two rows and one column for each lane; every lane is a
generator of its own. Python makes the stream, one for each thread, and kernels draw from it:

    words = random_stream(seed)  # (2, 1)
    k = below(words, n)  # in a kernel: an integer from 0 .. n - 1
    u = uniform(words)  # a number from (0, 1]

Samplers that need millions of draws take them in blocks from `Draws`: 256 lanes, which the compiler
vectorises."""

from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial

from .arrays import Floats, Ints, Words
from .jit import inlined, inner, kernel

POOL = 256  # numbers drawn at once; a multiple of BLOCK
BLOCK = 16  # numbers taken at once
# log(1.5 + t), |t| <= 1/2, as a polynomial of degree 10: the error of its Chebyshev interpolation
# is below 1e-9.
LOG = tuple(
    Chebyshev.interpolate(lambda t: np.log(1.5 + t), 10, domain=[-0.5, 0.5])
    .convert(kind=Polynomial)
    .coef.tolist()
)
REACH = 37.0  # upper bound of the exponential draws: -log(2^-52) = 36.04


def random_stream(seed: int | np.random.SeedSequence, lanes: int = 1) -> Words:
    """Return the first state of a random stream, (2, lanes). Kernels change it at every draw."""
    sequence = np.random.SeedSequence(seed) if isinstance(seed, int) else seed
    return sequence.generate_state(2 * lanes, np.uint64).astype(np.uint64).reshape(2, lanes)


@inner
def next_word(words: Words, lane: int) -> Any:
    """Return the next 64 random bits of a lane. The lowest are the least random: prefer `below`."""
    x, y = words[0, lane], words[1, lane]
    x ^= x << np.uint64(23)
    z = x ^ y ^ (x >> np.uint64(17)) ^ (y >> np.uint64(26))
    words[0, lane], words[1, lane] = y, z
    return z + y


@inner
def below(words: Words, n: int) -> Any:
    """Return a random integer from 0 .. n - 1; n is below 2^32."""
    return np.int64(((next_word(words, 0) >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@inner
def uniform(words: Words) -> float:
    """Return a random number from (0, 1], a multiple of 2^-53."""
    return (np.float64(next_word(words, 0) >> np.uint64(11)) + 1.0) * 2.0**-53


class Draws(NamedTuple):
    """A random stream with a pool of exponential draws and one of integers; draws change it."""

    words: Words  # (2, POOL)
    waits: Floats  # (POOL,) exponential draws
    picks: Words  # (POOL,) draws from 0 .. n - 1
    used: Ints  # (2,) how many waits and how many picks of the pool are used


def draws_of(seed: np.random.SeedSequence) -> Draws:
    """Return a stream with empty pools."""
    return Draws(
        random_stream(seed, POOL), np.zeros(POOL), np.zeros(POOL, np.uint64), np.full(2, POOL)
    )


@kernel
def _refill_waits(words: Words, waits: Floats) -> None:
    """Set each of the waits to -log(u), within 1e-9, with u in (0, 1].

    u has the upper 52 bits of a random word. u = m 2^e with m in [1, 2); log m by a polynomial.
    Integers become floats by their bits, and nothing is divided: conversions and divisions (which
    numba checks) would prevent vectorisation."""
    one = np.uint64(0x3FF0000000000000)  # the exponent of 1.0
    for lane in range(POOL):
        u = 2.0 - np.uint64((next_word(words, lane) >> np.uint64(12)) | one).view(np.float64)
        bits = np.float64(u).view(np.uint64)
        exponent = (
            np.uint64((bits >> np.uint64(52)) | np.uint64(0x4330000000000000)).view(np.float64)
            - 2.0**52
            - 1023
        )
        t = np.uint64((bits & np.uint64(0x000FFFFFFFFFFFFF)) | one).view(np.float64) - 1.5
        logarithm = LOG[10]
        for k in range(9, -1, -1):
            logarithm = logarithm * t + LOG[k]
        waits[lane] = -0.6931471805599453 * exponent - logarithm  # -log(2) e - log(m)


@inlined
def next_waits(draws: Draws) -> int:
    """Return where in `waits` the next BLOCK exponential draws begin."""
    start: int = draws.used[0]
    if start == POOL:
        _refill_waits(draws.words, draws.waits)
        start = 0
    draws.used[0] = start + BLOCK
    return start


@kernel
def _refill_picks(words: Words, picks: Words, n: int) -> None:
    for lane in range(POOL):
        picks[lane] = ((next_word(words, lane) >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32)


@inlined
def next_picks(draws: Draws, n: int) -> int:
    """Return where in `picks` the next BLOCK draws begin, from 0 .. n - 1.

    n is below 2^32, and the same in every call."""
    start: int = draws.used[1]
    if start == POOL:
        _refill_picks(draws.words, draws.picks, n)
        start = 0
    draws.used[1] = start + BLOCK
    return start
