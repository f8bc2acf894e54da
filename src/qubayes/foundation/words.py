"""64-bit words and vectors of 16-bit numbers in kernels: processor instructions, and a hash table of words.

The table has open addressing. It is an array of int64 `keys`; 0 marks a free slot and is not a key.
Values are arrays of the same length:

    slots = table_slots(entries)  # in Python: at most half of the slots will be taken
    keys, values = np.zeros(slots, np.int64), np.empty(slots, np.int32)

    slot = slot_of(keys, key)  # in a kernel
    if keys[slot] == 0:  # the key is absent: insert it
        keys[slot], values[slot] = key, value

To use a table again, set its keys to 0. Entries cannot be removed one by one. A table may be the
first `table_slots` elements of a longer array.

The key of a set of vertices is either its members packed into one word, which is exact, or the sum
of random words of the members. Sums of two different sets agree with a probability of 2^-64:
compare the members where that matters. Where sets are looked up all at once, `np.unique` and
`np.searchsorted` on such keys need no kernel.

Operations on rows of 16-bit numbers take 32 of them at once, in LLVM's generic vector code, from
which it makes the instructions of the processor. Plain loops will not do: LLVM's vector loops begin
at 128 numbers and leave shorter rows to a scalar loop, which took twice as long."""

from collections.abc import Callable
from math import prod
from typing import Any, cast

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .arrays import AnyArray, Ints
from .jit import inner

LANES = 32  # numbers of a vector: 64 bytes, a cache line
_LANES = ir.VectorType(ir.IntType(16), LANES)
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


def aligned(*shape: int) -> AnyArray:
    """Return zeros that begin with a cache line: otherwise every vector would take two."""
    raw = np.zeros(prod(shape) + LANES, np.uint16)
    skip = -(raw.ctypes.data // 2) % LANES
    return raw[skip : skip + prod(shape)].reshape(shape)


def _apply(
    operation: Callable[..., Any], context: Any, builder: Any, signature: Any, arguments: Any
) -> Any:
    """Generate target[i:i+length] = operation(target[i:i+length], source[j:j+length]) for arguments that end so."""
    length, starts = arguments[-1], []
    for a in (-5, -3):
        array = context.make_array(signature.args[a])(context, builder, value=arguments[a])
        starts.append(builder.gep(array.data, [arguments[a + 1]]))
    zero, lanes = ir.Constant(length.type, 0), ir.Constant(length.type, LANES)
    with cgutils.for_range_slice(builder, zero, length, lanes, length.type) as (place, _):
        target, source = (
            builder.bitcast(builder.gep(start, [place]), _LANES.as_pointer()) for start in starts
        )
        x, y = (builder.load(pointer, align=2) for pointer in (target, source))
        builder.store(operation(builder, x, y), target, align=2)
    return context.get_dummy_value()


def _vector(operation: Callable[..., Any]) -> Any:
    """Return the kernel f(target, i, source, j, length), length a multiple of 32:

    target[i:i+length] = operation(target[i:i+length], source[j:j+length]).
    """

    @_intrinsic
    def apply(typing: Any, target: Any, i: Any, source: Any, j: Any, length: Any) -> Any:
        whole = types.int64
        return types.void(target, whole, source, whole, whole), lambda *more: _apply(
            operation, *more
        )

    return apply


add = _vector(lambda builder, x, y: builder.add(x, y))
subtract = _vector(lambda builder, x, y: builder.sub(x, y))
move = _vector(lambda builder, x, y: y)


@_intrinsic
def append(typing: Any, bits: Any, target: Any, i: Any, source: Any, j: Any, length: Any) -> Any:
    """Append a digit of this many bits: target[i:i+length] = target[i:i+length] * 2^bits + source[j:j+length]."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        width = builder.trunc(arguments[0], ir.IntType(16))
        undefined, first = ir.Constant(_LANES, ir.Undefined), ir.Constant(ir.IntType(32), 0)
        everywhere = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        widths = builder.shuffle_vector(
            builder.insert_element(undefined, width, first), undefined, everywhere
        )
        return _apply(
            lambda b, x, y: b.add(b.shl(x, widths), y), context, builder, signature, arguments
        )

    whole = types.int64
    return types.void(whole, target, whole, source, whole, whole), generate
