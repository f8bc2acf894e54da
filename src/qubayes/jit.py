"""How kernels are compiled.

What a user waits for at the first run is compilation: few functions, few arrays for each (every one is seven values to
LLVM), no allocation inside where the caller can allocate, and no numpy function that numba has to compile itself.
"""

from typing import Any, cast

from numba import njit, types
from numba.extending import intrinsic

kernel: Any = njit(nogil=True, cache=True)
# For what allocates nothing and is given many arrays. Without numba's reference counting a call is free and compiles
# sooner: of alarm m=4 a set took 6.5 µs with it, 3.3 µs without.
leaf: Any = njit(nogil=True, cache=True, _nrt=False)  # type: ignore[call-overload]
# For what allocates nothing and is called by kernels only: to call it from Python ends the process. Without an entry
# from Python, and without a copy on disk (callers hold their own), the candidates' kernels compile in two thirds of the
# time.
part: Any = njit(nogil=True, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[call-overload]


@cast(Any, intrinsic)
def popcount(typing_context: Any, word: Any) -> Any:
    """The processor's own instruction: number of ones in a 64-bit word."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate
