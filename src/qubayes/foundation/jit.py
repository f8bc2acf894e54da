"""How kernels are compiled.

What a user waits for at the first run is compilation: few functions, few arrays for each (every one is seven values to
LLVM), no allocation inside where the caller can allocate, and no numpy function that numba has to compile itself.

What is compiled is kept on disk. A kernel holds copies of what it calls and of the constants that it names, wherever
they are defined, while numba looks for changes in the kernel's own file alone: after an upgrade it would go on with old
copies. So the stamp by which numba tells whether a kept kernel still fits is made of all that went into it, and what
cannot be read any more is compiled anew.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import CodeType, FunctionType
from typing import Any, cast

from numba import njit, types
from numba.extending import intrinsic

from .compilers import INNER, LEAF


class Stamp:
    """What a kernel was made from, found out when it is first compared: all that the kernel names is there by then."""

    def __init__(self, own: object, function: FunctionType) -> None:
        self._own, self._function = own, function

    def __eq__(self, other: object) -> bool:
        return bool(other == self.facts)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (self.facts,)

    @property
    def facts(self) -> tuple[object, str]:
        """numba's own stamp, and a checksum of this version and of all that the kernel calls and names."""
        from .. import __version__  # here, or the types of the package depend on each other in a ring

        digest = hashlib.sha256(__version__.encode())
        for piece in _pieces(self._function, set()):
            digest.update(piece.encode())
        return self._own, digest.hexdigest()


def _pieces(function: Any, seen: set[Any]) -> Iterator[str]:
    """The code of a function and of all kernels that it calls, and the values of the constants that they name."""
    if function in seen:
        return
    seen.add(function)
    names: set[str] = set()
    yield from _code(function.__code__, names)
    for name in sorted(names & function.__globals__.keys()):
        value = function.__globals__[name]
        called = getattr(value, "py_func", None) or getattr(value, "_defn", None)  # a kernel; an intrinsic
        if isinstance(called, FunctionType):
            yield from _pieces(called, seen)
        elif isinstance(value, int | float | str | tuple):
            yield f"{name} = {value!r}"
        elif hasattr(value, "tobytes"):  # an array
            yield f"{name} = {value.tobytes().hex()}"
    for kind in function.__annotations__.values():
        yield f"{getattr(kind, '_fields', '')}"


def _code(code: CodeType, names: set[str]) -> Iterator[str]:
    """The code without its line numbers; the names in it are added to `names`."""
    names.update(code.co_names)
    yield f"{code.co_code.hex()} {code.co_names} {code.co_varnames}"
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code(constant, names)
        else:
            yield repr(constant)


def stamped(decorator: Any) -> Callable[[Any], Any]:
    """The decorator of numba, kept kernels being told apart by their `Stamp`."""

    def decorate(function: Any) -> Any:
        compiled = decorator(function)
        with suppress(AttributeError):  # a numba that keeps its stamp elsewhere, or nothing at all
            file = compiled._cache._cache_file
            file._source_stamp = Stamp(file._source_stamp, function)
            file._load_index = _or_nothing(file._load_index)
        return compiled

    return decorate


def _or_nothing(load: Callable[[], dict[Any, Any]]) -> Callable[[], dict[Any, Any]]:
    """What is kept on disk, or nothing where it cannot be read: it names types that another version may not have."""

    def load_index() -> dict[Any, Any]:
        with suppress(Exception):  # whatever comes of unpickling names that are gone, or a damaged file
            return load()
        return {}

    return load_index


kernel: Any = stamped(njit(nogil=True, cache=True))
# For what allocates nothing and is given many arrays. Without numba's reference counting a call is free and compiles
# sooner: of alarm m=4 a set took 6.5 µs with it, 3.3 µs without. Nobody calls it from C.
leaf: Any = stamped(
    njit(nogil=True, cache=True, _nrt=False, no_cfunc_wrapper=True, **LEAF)  # type: ignore[call-overload]
)
# For what allocates nothing and is called by kernels only: Python cannot. Without an entry from Python, and without a
# copy on disk (callers hold their own), the candidates' kernels compile in two thirds of the time.
part: Any = njit(  # type: ignore[call-overload]
    nogil=True, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True, **INNER
)


@cast(Any, intrinsic)
def popcount(typing_context: Any, word: Any) -> Any:
    """The processor's own instruction: number of ones in a 64-bit word."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate
