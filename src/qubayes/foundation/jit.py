"""Decorators for numba kernels and the folder where compiled kernels are kept.

A compiled kernel holds copies of the functions that it calls, but numba looks for changes in the kernel's own file
only. Therefore kernels are kept in a folder named by a checksum of their module and of all that it imports from here.

Compilation dominates the first run. Keep kernels few and small, pass few arrays, and allocate in the caller.
"""

import os
import re
import sys
import zlib
from collections.abc import Callable
from functools import cache
from importlib.util import resolve_name
from pathlib import Path
from typing import Any

import numba
from numba import njit
from numba.extending import register_jitable

config: Any = numba.config
uncompiled: set[str] = set()  # modules whose kernels are not on disk yet
PACKAGE = Path(__file__).parents[1]


@cache
def _imports(module: str) -> tuple[bytes, list[str]]:
    """Return the source of a module of this package and the modules of this package that it imports at the top."""
    path = PACKAGE.joinpath(*module.split(".")[1:])
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    source = path.read_bytes() if path.exists() else b""
    home = module if path.name == "__init__.py" else module.rpartition(".")[0]
    return source, [
        resolve_name(name.decode(), home) for name in re.findall(rb"^from (\.+[\w.]+) import", source, re.M)
    ]


@cache
def _folder(module: str) -> str:
    """Return the folder of the module's kernels: below NUMBA_CACHE_DIR, or below the user's cache folder."""
    closure = [module]
    for name in closure:  # grows while it is read
        closure += [imported for imported in _imports(name)[1] if imported not in closure]
    checksum = zlib.crc32(b"".join(_imports(name)[0] for name in sorted(closure)))
    home = {"win32": "AppData/Local", "darwin": "Library/Caches"}.get(sys.platform, ".cache")
    root = config.CACHE_DIR or os.environ.get("XDG_CACHE_HOME") or Path.home() / home
    return str(Path(root) / "qubayes" / f"{module.removeprefix('qubayes.')}-{checksum:08x}")


def _kept(**options: Any) -> Callable[[Any], Any]:
    """Return `njit` with these options and our own cache folder."""

    def decorate(function: Any) -> Any:
        before, folder = config.CACHE_DIR, _folder(function.__module__)
        if not os.path.isdir(folder):  # noqa: PTH112 - called for every kernel
            uncompiled.add(function.__module__)
        config.CACHE_DIR = folder
        try:
            return njit(nogil=True, cache=True, **options)(function)
        finally:
            config.CACHE_DIR = before

    return decorate


# Reference counting (`_nrt`) doubles the cost of calls with many arrays: a candidate set took 6.5 instead of 3.3 µs.
_PLAIN: Any = {"_nrt": False, "no_cfunc_wrapper": True}
# Entries from Python for functions that only kernels call took a quarter of the compilation. To Python these functions
# remain plain functions.
_INNER: Any = {"nogil": True, "no_cpython_wrapper": True, **_PLAIN}

kernel: Any = _kept(**_PLAIN)  # called from Python; allocates nothing
allocating_kernel: Any = _kept()  # called from Python; may allocate arrays
inner: Any = register_jitable(**_INNER)  # called by kernels, which hold a copy: not kept on disk
inlined: Any = register_jitable(forceinline=True, **_INNER)  # the same, for calls in the innermost loops
