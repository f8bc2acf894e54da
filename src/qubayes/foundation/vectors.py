"""Operations on 32 16-bit numbers at once, for kernels.

They are written in LLVM's generic vector code, from which it makes the instructions of the processor. Plain loops will
not do: LLVM's vector loops begin at 128 numbers and leave shorter rows to a scalar loop, which took twice as long.
"""

from collections.abc import Callable
from math import prod
from typing import Any, cast

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from .arrays import AnyArray

LANES = 32  # numbers of a vector: 64 bytes, a cache line
_LANES = ir.VectorType(ir.IntType(16), LANES)
_intrinsic = cast(Any, intrinsic)


def aligned(*shape: int) -> AnyArray:
    """Return zeros that begin with a cache line: otherwise every vector would take two."""
    raw = np.zeros(prod(shape) + LANES, np.uint16)
    skip = -(raw.ctypes.data // 2) % LANES
    return raw[skip : skip + prod(shape)].reshape(shape)


def _apply(operation: Callable[..., Any], context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Generate target[i:i+32] = operation(target[i:i+32], source[j:j+32]) for arguments that end so."""
    places = []
    for a in (-4, -2):
        array = context.make_array(signature.args[a])(context, builder, value=arguments[a])
        places.append(builder.bitcast(builder.gep(array.data, [arguments[a + 1]]), _LANES.as_pointer()))
    x, y = (builder.load(place, align=2) for place in places)
    builder.store(operation(builder, x, y), places[0], align=2)
    return context.get_dummy_value()


def _vector(operation: Callable[..., Any]) -> Any:
    """Return the kernel f(target, i, source, j): target[i:i+32] = operation(target[i:i+32], source[j:j+32])."""

    @_intrinsic
    def apply(typing: Any, target: Any, i: Any, source: Any, j: Any) -> Any:
        return types.void(target, types.int64, source, types.int64), lambda *more: _apply(operation, *more)

    return apply


add = _vector(lambda builder, x, y: builder.add(x, y))
subtract = _vector(lambda builder, x, y: builder.sub(x, y))
move = _vector(lambda builder, x, y: y)


@_intrinsic
def append(typing: Any, bits: Any, target: Any, i: Any, source: Any, j: Any) -> Any:
    """Append a digit of this many bits: target[i:i+32] = target[i:i+32] * 2^bits + source[j:j+32]."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        width = builder.trunc(arguments[0], ir.IntType(16))
        undefined, first = ir.Constant(_LANES, ir.Undefined), ir.Constant(ir.IntType(32), 0)
        everywhere = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        widths = builder.shuffle_vector(builder.insert_element(undefined, width, first), undefined, everywhere)
        return _apply(lambda b, x, y: b.add(b.shl(x, widths), y), context, builder, signature, arguments)

    return types.void(types.int64, target, types.int64, source, types.int64), generate
