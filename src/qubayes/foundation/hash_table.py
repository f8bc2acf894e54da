"""Hash table of 64-bit keys with open addressing, for kernels.

A table is an array of int64 `keys`; 0 marks a free slot and is not a key. Values are arrays of the same length:

    slots = table_slots(entries)  # in Python: at most half of the slots will be taken
    keys, values = np.zeros(slots, np.int64), np.empty(slots, np.int32)

    slot = slot_of(keys, key)  # in a kernel
    if keys[slot] == 0:  # the key is absent: insert it
        keys[slot], values[slot] = key, value

To use a table again, set its keys to 0. Entries cannot be removed one by one. A table may be the first `table_slots`
elements of a longer array.

The key of a set of vertices is either its members packed into one word, which is exact, or the sum of the members'
random words (`vertex_words`). Sums of two different sets agree with a probability of 2^-64: compare the members where
that matters. Where sets are looked up all at once, `np.unique` and `np.searchsorted` on such keys need no kernel.
"""

import numpy as np

from .arrays import Ints
from .jit import inner


def table_slots(entries: int) -> int:
    """Return the length of a table for this many entries: a power of two, at least twice as many."""
    return max(4, 1 << (2 * entries - 1).bit_length())


def vertex_words(n: int, seed: int | None = None) -> Ints:
    """Return (n,) random words of the vertices.

    Without a seed they differ in every run, so that no input can be made whose keys collide.
    """
    return np.random.default_rng(seed).integers(-(2**63), 2**63, size=n, dtype=np.int64)


@inner
def slot_of(keys: Ints, key: int) -> int:
    """Return the slot that holds the key, or the free slot where it belongs."""
    mask = len(keys) - 1
    slot = ((key * -7046029254386353131) >> 29) & mask
    while keys[slot] != 0 and keys[slot] != key:
        slot = (slot + 1) & mask
    return slot
