"""64-bit words and vectors of 16-bit numbers in kernels, and a hash table of words.

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
which it makes the instructions of the processor. Plain loops are too slow: LLVM's vector loops
begin at 128 numbers and leave shorter rows to a scalar loop, which took twice as long."""

from collections.abc import Callable
from math import prod
from typing import Any, cast

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from .arrays import AnyArray, Ints
from .jit import inlined, inner

LANES = 32  # numbers of a vector: 64 bytes, a cache line
_VECTOR = ir.VectorType(ir.IntType(16), LANES)
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
    """Return the length of a table of this many entries: a power of two, at least twice as many."""
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


def _vectors(context: Any, builder: Any, signature: Any, arguments: Any) -> list[Any]:
    """Return pointers to the vectors target[i:i+32] and source[j:j+32]; arguments end so."""
    pointers = []
    for place in (-4, -2):
        array = context.make_array(signature.args[place])(context, builder, value=arguments[place])
        start = builder.gep(array.data, [arguments[place + 1]])
        pointers.append(builder.bitcast(start, _VECTOR.as_pointer()))
    return pointers


def _on_vectors(operation: Callable[..., Any]) -> Any:
    """Return the step f(target, i, source, j) that sets target[i:i+32] to the operation's result.

    Its arguments are a builder, target[i:i+32] and source[j:j+32]."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target, source = _vectors(context, builder, signature, arguments)
        x = builder.load(target, align=2)
        y = builder.load(source, align=2)
        builder.store(operation(builder, x, y), target, align=2)
        return context.get_dummy_value()

    @_intrinsic
    def step(typing: Any, target: Any, i: Any, source: Any, j: Any) -> Any:
        return types.void(target, types.int64, source, types.int64), generate

    return step


_add = _on_vectors(lambda builder, x, y: builder.add(x, y))
_subtract = _on_vectors(lambda builder, x, y: builder.sub(x, y))
_move = _on_vectors(lambda builder, x, y: y)


@_intrinsic
def _append(typing: Any, bits: Any, target: Any, i: Any, source: Any, j: Any) -> Any:
    """Set target[i:i+32] = target[i:i+32] * 2^bits + source[j:j+32]."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        first = ir.Constant(ir.IntType(32), 0)
        everywhere = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        undefined = ir.Constant(_VECTOR, ir.Undefined)
        width = builder.trunc(arguments[0], ir.IntType(16))
        widths = builder.insert_element(undefined, width, first)
        widths = builder.shuffle_vector(widths, undefined, everywhere)
        target, source = _vectors(context, builder, signature, arguments)
        x = builder.shl(builder.load(target, align=2), widths)
        y = builder.load(source, align=2)
        builder.store(builder.add(x, y), target, align=2)
        return context.get_dummy_value()

    whole = types.int64
    return types.void(whole, target, whole, source, whole), generate


# In the following, a length is a multiple of LANES.


@inlined
def add(target: AnyArray, i: int, source: AnyArray, j: int, length: int) -> None:
    """Set target[i:i+length] += source[j:j+length]."""
    for k in range(0, length, LANES):
        _add(target, i + k, source, j + k)


@inlined
def subtract(target: AnyArray, i: int, source: AnyArray, j: int, length: int) -> None:
    """Set target[i:i+length] -= source[j:j+length]."""
    for k in range(0, length, LANES):
        _subtract(target, i + k, source, j + k)


@inlined
def move(target: AnyArray, i: int, source: AnyArray, j: int, length: int) -> None:
    """Set target[i:i+length] = source[j:j+length]."""
    for k in range(0, length, LANES):
        _move(target, i + k, source, j + k)


@inlined
def append(bits: int, target: AnyArray, i: int, source: AnyArray, j: int, length: int) -> None:
    """Append a digit of this many bits: target[i:i+length] * 2^bits + source[j:j+length]."""
    for k in range(0, length, LANES):
        _append(bits, target, i + k, source, j + k)
