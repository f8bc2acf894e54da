"""Energies and increments from the definition, Boltzmann weights, the random numbers in Python. No kernel of ours."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

WORD = 2**64 - 1
POOL, BLOCK = 256, 16


def energy(
    h: Sequence[float],
    couplers: Mapping[tuple[int, int], float],
    offset: float,
    bits: Sequence[int],
) -> float:
    """offset + h.x + sum J_ij x_i x_j."""
    linear = sum(value * bit for value, bit in zip(h, bits, strict=True))
    return offset + linear + sum(weight * bits[i] * bits[j] for (i, j), weight in couplers.items())


def increment(
    h: Sequence[float], couplers: Mapping[tuple[int, int], float], bits: Sequence[int], flip: int
) -> float:
    """The energy after the flip minus the energy before."""
    other = [1 - bit if i == flip else bit for i, bit in enumerate(bits)]
    return energy(h, couplers, 0.0, other) - energy(h, couplers, 0.0, bits)


def boltzmann(
    h: Sequence[float], couplers: Mapping[tuple[int, int], float], beta: float
) -> list[float]:
    """The probability of each state, (0, .., 0) first and the last bit the fastest."""
    states = product((0, 1), repeat=len(h))
    weights = [math.exp(-beta * energy(h, couplers, 0.0, bits)) for bits in states]
    return [weight / sum(weights) for weight in weights]


class Draws:
    """xorshift128+ in lanes; draws come in pools of POOL and are taken in blocks of BLOCK."""

    def __init__(self, first: Sequence[int], second: Sequence[int]) -> None:
        self.first, self.second = list(first), list(second)
        self._waits: list[float] = []
        self._picks: list[int] = []

    def word(self, lane: int) -> int:
        x, y = self.first[lane], self.second[lane]
        x ^= (x << 23) & WORD
        z = x ^ y ^ (x >> 17) ^ (y >> 26)
        self.first[lane], self.second[lane] = y, z
        return (z + y) & WORD

    def below(self, n: int) -> int:
        return ((self.word(0) >> 32) * n) >> 32

    def uniform(self) -> float:
        """A number from (0, 1]."""
        return ((self.word(0) >> 11) + 1) / 2**53

    def shuffled(self, items: Sequence[int]) -> list[int]:
        """The items in random order, the last place first."""
        order = list(items)
        for place in range(len(order) - 1, 0, -1):
            other = self.below(place + 1)
            order[place], order[other] = order[other], order[place]
        return order

    def waits(self) -> list[float]:
        """BLOCK draws of -log(u)."""
        if not self._waits:
            self._waits = [-math.log(1.0 - (self.word(lane) >> 12) / 2**52) for lane in range(POOL)]
        block, self._waits = self._waits[:BLOCK], self._waits[BLOCK:]
        return block

    def picks(self, n: int) -> list[int]:
        if not self._picks:
            self._picks = [self.below_in(lane, n) for lane in range(POOL)]
        block, self._picks = self._picks[:BLOCK], self._picks[BLOCK:]
        return block

    def below_in(self, lane: int, n: int) -> int:
        return ((self.word(lane) >> 32) * n) >> 32


def sweeps_in_order(
    h: Sequence[float],
    couplers: Mapping[tuple[int, int], float],
    bits: Sequence[int],
    betas: Sequence[float],
    draws: Draws,
) -> Iterator[list[int]]:
    """The state after each sweep by Metropolis' rule. Blocks of bits none of which can be accepted draw nothing."""
    state = list(bits)
    for beta in betas:
        for start in range(0, len(h), BLOCK):
            block = range(start, min(start + BLOCK, len(h)))
            if any(beta * increment(h, couplers, state, bit) < 37.0 for bit in block):
                for bit, wait in zip(block, draws.waits(), strict=False):
                    state[bit] ^= beta * increment(h, couplers, state, bit) < wait
        yield list(state)


def sweeps_at_random(
    h: Sequence[float],
    couplers: Mapping[tuple[int, int], float],
    bits: Sequence[int],
    betas: Sequence[float],
    tries: int,
    draws: Draws,
) -> Iterator[list[int]]:
    """The state after each number of tries of random bits by Metropolis' rule; draws come in whole blocks."""
    state = list(bits)
    for beta in betas:
        for start in range(0, tries, BLOCK):
            drawn = list(zip(draws.picks(len(h)), draws.waits(), strict=True))
            for bit, wait in drawn[: tries - start]:
                state[bit] ^= beta * increment(h, couplers, state, bit) < wait
        yield list(state)


def parallel_trial(
    h: Sequence[float],
    couplers: Mapping[tuple[int, int], float],
    groups: Sequence[range],
    most: int,
    beta: float,
    draws: Draws,
) -> Iterator[tuple[list[int], float]]:
    """State and offset after each iteration from zero on: every flip is tried, one of the accepted is taken.

    Up to 16 blocks of bits are tried in random order until one is accepted, one block if all of
    them failed before; if none is, all others are tried, and one of those that are accepted is
    drawn. Blocks of bits none of which can be accepted take no random numbers."""
    n, blocks = len(h), 16
    bits, offset = [0] * n, 0.0

    def rise(bit: int) -> float:
        full = any(bit in group and sum(bits[i] for i in group) >= most for group in groups)
        return math.inf if full and not bits[bit] else increment(h, couplers, bits, bit) - offset

    while True:
        chosen, tried = None, set()
        for _ in range(blocks):
            for bit, wait in zip(draws.picks(n), draws.waits(), strict=True):
                if bit not in tried and beta * rise(bit) < wait:
                    chosen = bit
                    break
                tried.add(bit)
            if chosen is not None:
                break
        blocks = 1 if chosen is None else 16
        if chosen is None:
            hits = []
            for start in range(0, n, BLOCK):
                block = range(start, min(start + BLOCK, n))
                if any(beta * rise(bit) < 37.0 for bit in block):
                    drawn = zip(block, draws.waits(), strict=False)
                    hits += [
                        bit for bit, wait in drawn if beta * rise(bit) < wait and bit not in tried
                    ]
            chosen = hits[draws.below(len(hits))] if hits else None
        if chosen is None:
            offset += 1.0 / beta
        else:
            bits[chosen], offset = 1 - bits[chosen], 0.0
        yield list(bits), offset
