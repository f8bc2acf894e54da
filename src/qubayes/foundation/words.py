"""64-bit words in kernels: processor instructions, and a hash table with open addressing.

A table is an array of int64 `keys`; 0 marks a free slot and is not a key. Values are arrays of the same length:

    slots = table_slots(entries)  # in Python: at most half of the slots will be taken
    keys, values = np.zeros(slots, np.int64), np.empty(slots, np.int32)

    slot = slot_of(keys, key)  # in a kernel
    if keys[slot] == 0:  # the key is absent: insert it
        keys[slot], values[slot] = key, value

To use a table again, set its keys to 0. Entries cannot be removed one by one. A table may be the first `table_slots`
elements of a longer array.

The key of a set of vertices is either its members packed into one word, which is exact, or the sum of random words of
the members. Sums of two different sets agree with a probability of 2^-64: compare the members where that matters. Where
sets are looked up all at once, `np.unique` and `np.searchsorted` on such keys need no kernel.
"""

from typing import Any, cast

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from .arrays import Ints
from .jit import inner

_intrinsic = cast(Any, intrinsic)


@_intrinsic
def popcount(context: Any, word: Any) -> Any:
    """Return the number of ones in a word."""
    return types.int64(types.uint64), lambda ctx, builder, sig, args: builder.ctpop(args[0])


@_intrinsic
def lowest_bit(context: Any, word: Any) -> Any:
    """Return the position of the lowest one in a word that is not 0."""
    return types.int64(types.uint64), lambda ctx, builder, sig, args: builder.cttz(
        args[0], ir.Constant(ir.IntType(1), 1)
    )


def table_slots(entries: int) -> int:
    """Return the length of a table for this many entries: a power of two, at least twice as many."""
    return max(4, 1 << (2 * entries - 1).bit_length())


@inner
def slot_of(keys: Ints, key: int) -> int:
    """Return the slot that holds the key, or the free slot where it belongs."""
    mask = len(keys) - 1
    slot = ((key * -7046029254386353131) >> 29) & mask
    while keys[slot] != 0 and keys[slot] != key:
        slot = (slot + 1) & mask
    return slot
