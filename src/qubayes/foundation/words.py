"""Processor instructions on 64-bit words, for kernels."""

from typing import Any, cast

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

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
