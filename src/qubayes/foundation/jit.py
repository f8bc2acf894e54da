"""Decorators for numba kernels and the folder where compiled kernels are kept.

A compiled kernel holds copies of the functions that it calls and of the globals that they read, but
numba looks for changes in the kernel's own file only. Therefore each kernel is kept in a folder
that is named by a checksum of the code of all these functions, wherever they are defined, of these
globals, and of the versions of Python, numpy and numba. The checksum is computed at the first call:
then everything is defined, and an import makes no folder.

Compilation dominates the first run. Keep kernels few and small, pass few arrays, and allocate in
the caller.

Only this module uses parts of numba that are not documented (`words.py` writes LLVM code through
the documented `intrinsic`). A new version may change them without a word, so pyproject.toml allows
no version that the tests have not seen, and tests/inside/foundation/test_jit.py says what changed:

- `_nrt=False`: no reference counting, which doubles the cost of calls with many arrays (a
  candidate set took 6.5 instead of 3.3 µs).
- `no_cpython_wrapper`, `no_cfunc_wrapper`: no entries from Python and from C that nobody calls.
  They took a quarter of the compilation.
- `FunctionCache` and `_cache`: kernels in a folder of our own. numba's own choice of folders
  notices changes in the kernel's file only, and gave results of functions that had been changed.
- `compile` of a dispatcher and `global_compiler_lock`, for `_compiled_once`.
- `numba.core.event`: a message while kernels are compiled, which takes seconds.
- `_defn` of an intrinsic and `py_func` of a kernel: the functions of which the checksum is made."""

import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from enum import Enum
from functools import cached_property
from itertools import chain
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, cast

import llvmlite  # type: ignore[import-untyped]
import numba
import numpy as np
from filelock import FileLock
from numba import njit, types
from numba.core.caching import FunctionCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.event import Listener, install_listener, trigger_event
from numba.extending import register_jitable

config: Any = numba.config
_NumbaCache: Any = FunctionCache
_VERSIONS = (sys.version, np.__version__, numba.__version__, llvmlite.__version__)
# packages whose versions stand for their code
_FOREIGN = sys.stdlib_module_names | {"numpy", "numba", "llvmlite"}
_ROOM = 1 << 17  # words of a frame: a megabyte
_SCALARS = (
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    None.__class__,
    range,
    Enum,
    np.generic,
    np.dtype,
    types.Type,
)


def _is_foreign(value: Any) -> bool:
    """Return whether the module or object belongs to a package of `_FOREIGN`."""
    name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return str(name).partition(".")[0] in _FOREIGN


def _described(value: Any) -> tuple[str, list[FunctionType]]:
    """Return a value that a kernel reads as text, and the functions that it calls by it."""
    if isinstance(value, _SCALARS):
        return repr(value), []
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}", []
    if isinstance(value, tuple):
        items = [_described(item) for item in value]
        functions = list(chain.from_iterable(its for _, its in items))
        return str([text for text, _ in items]), functions
    if isinstance(value, ModuleType):
        return value.__name__, []
    if isinstance(value, type):
        # of a named tuple, an enumeration
        members = getattr(value, "_fields", ()), getattr(value, "__members__", ())
        return f"{value.__module__}.{value.__qualname__} {members}", []
    # of a kernel, or an intrinsic
    function = getattr(value, "py_func", None) or getattr(value, "_defn", value)
    if isinstance(function, FunctionType) and not _is_foreign(function):
        return str(getattr(value, "targetoptions", "")), [function]
    place = getattr(value, "__module__", "")
    name = getattr(value, "__qualname__", "")
    return f"{type(value).__qualname__} {place}.{name}", []


def _codes(function: FunctionType) -> Iterator[CodeType]:
    """Yield the code of the function and of the functions inside it."""
    codes = [function.__code__]
    for code in codes:  # grows while it is read
        codes += [each for each in code.co_consts if isinstance(each, CodeType)]
        yield code


def _constants(code: CodeType) -> list[str]:
    """Return the constants in the code as text, those of sets in one order."""
    found = [each for each in code.co_consts if not isinstance(each, CodeType)]
    return [
        str(sorted(map(repr, each))) if isinstance(each, frozenset) else repr(each)
        for each in found
    ]


def _read_by(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield (name, value) of what the function reads.

    That is globals, attributes of modules and classes, cells and defaults."""
    names = sorted(set(chain.from_iterable(code.co_names for code in _codes(function))))
    spaces: list[tuple[str, Any]] = [("", function.__globals__)]
    seen: set[int] = set()
    for prefix, space in spaces:  # grows while it is read
        for name in names:
            if name not in space:
                continue
            value = space[name]
            yield prefix + name, value
            opens = isinstance(value, ModuleType | type) and not _is_foreign(value)
            if opens and id(value) not in seen:
                seen.add(id(value))
                spaces.append((f"{prefix}{name}.", vars(value)))
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # a cell that is still empty
            yield name, cell.cell_contents
    yield "defaults", function.__defaults__
    yield "defaults by name", tuple((function.__kwdefaults__ or {}).items())


def _made_from(function: FunctionType) -> Iterator[str]:
    """Yield as text what a kernel is made from: the code of its functions, and what they read."""
    functions = [function]
    for each in functions:  # grows while it is read
        yield f"{each.__module__}.{each.__qualname__} {getattr(each, 'jit_options', '')}"
        for code in _codes(each):
            yield repr(
                (
                    code.co_code,
                    code.co_exceptiontable,
                    code.co_names,
                    code.co_varnames,
                    _constants(code),
                )
            )
        for name, value in _read_by(each):
            text, called = _described(value)
            yield f"{name} = {text}"
            functions += [other for other in called if other not in functions]


class _Cache:
    """The compiled forms of a kernel on disk: numba's cache in a folder made at the first call."""

    def __init__(self, function: FunctionType) -> None:
        self._function = function

    @cached_property
    def folder(self) -> Path:
        """The folder of this kernel: below NUMBA_CACHE_DIR, or below the user's cache folder."""
        digest = hashlib.sha256(repr(_VERSIONS).encode())
        for text in _made_from(self._function):
            digest.update(text.encode("utf-8", "surrogatepass") + b"\n")
        home = {"win32": "AppData/Local", "darwin": "Library/Caches"}.get(sys.platform, ".cache")
        root = config.CACHE_DIR or os.environ.get("XDG_CACHE_HOME") or Path.home() / home
        name = self._function.__module__.removeprefix("qubayes.")
        return Path(root) / "qubayes" / f"{name}-{digest.hexdigest()[:12]}"

    @cached_property
    def _files(self) -> Any:
        before, config.CACHE_DIR = config.CACHE_DIR, str(self.folder)
        try:
            return _NumbaCache(self._function)
        finally:
            config.CACHE_DIR = before

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)


def _compiled_once(kernel: Any) -> Callable[[Any], Any]:
    """Return the `compile` of a kernel, for one process at a time while none is on disk.

    The others wait, and load what the first one kept. numba's own lock is taken first, so that no
    thread waits for a process while it keeps another thread of this one from compiling."""
    compiled = _with_room(kernel.compile)

    def run(signature: Any) -> Any:
        with global_compiler_lock:
            if is_compiled(kernel):
                return compiled(signature)
            # an event around the wait, too: clocks stop, and the message is shown
            event = trigger_event("numba:compile", {"dispatcher": kernel})
            with event, _only_process(kernel._cache.folder):
                return compiled(signature)

    return run


@contextmanager
def _only_process(folder: Path) -> Iterator[None]:
    """Let one process at a time into the block; all of them, where files cannot be locked."""
    lock = FileLock(folder / "kernel.lock")
    with suppress(OSError, NotImplementedError):
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _with_room(compiled: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the function, called in a frame that takes a megabyte of Python's stack.

    Python (3.11 and later) keeps its frames in chunks of 16 KB, and asks the system for a new chunk
    at every call across the end of one. numba makes hundreds of thousands of calls at such a depth,
    and these requests took a sixth of the time of a compilation. A large frame gets a chunk of
    twice its size, so that the frames above it need no other one."""

    def run(signature: Any) -> Any:
        return compiled(signature)

    run.__code__ = run.__code__.replace(co_stacksize=_ROOM)
    return run


def _kept(**options: Any) -> Callable[[Any], Any]:
    """Return `njit` with these options and our own cache folder."""

    def decorate(function: Any) -> Any:
        function.jit_options = options
        kernel = njit(nogil=True, **options)(function)
        kernel._cache = _Cache(function)
        if not config.DISABLE_JIT:  # else the kernel is the function itself
            kernel.compile = _compiled_once(kernel)
        return kernel

    return decorate


def _copied(**options: Any) -> Callable[[Any], Any]:
    """Return `register_jitable` with these options."""

    def decorate(function: Any) -> Any:
        function.jit_options = options
        return register_jitable(**options)(function)

    return decorate


def is_compiled(kernel: Any) -> bool:
    """Return whether a compiled form of the kernel is in this process or on disk."""
    return bool(kernel.signatures) or any(kernel._cache.folder.rglob("*.nbc"))


class _Listener(Listener):
    """Tells a receiver when the first of nested compilations begins and the last one ends."""

    def __init__(self, receive: Callable[[bool], None]) -> None:
        self.receive = receive
        self.depth = 0

    def on_start(self, event: Any) -> None:
        self.depth += 1
        if self.depth == 1:
            self.receive(True)

    def on_end(self, event: Any) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.receive(False)


def compilations(receive: Callable[[bool], None]) -> AbstractContextManager[None]:
    """Inside `with`, call receive(True) where a compilation begins, receive(False) at its end."""
    return cast(AbstractContextManager[None], install_listener("numba:compile", _Listener(receive)))


_PLAIN: Any = {"_nrt": False, "no_cfunc_wrapper": True}
# To Python these functions remain plain functions.
_INNER: Any = {"nogil": True, "no_cpython_wrapper": True, **_PLAIN}

kernel: Any = _kept(**_PLAIN)  # called from Python; allocates nothing
allocating_kernel: Any = _kept()  # called from Python; may allocate arrays
inner: Any = _copied(**_INNER)  # called by kernels, which hold a copy: not kept on disk
inlined: Any = _copied(forceinline=True, **_INNER)  # the same, for calls in the innermost loops
