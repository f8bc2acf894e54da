"""Memory of this machine, and optional or slow packages, imported when they are first used.

Work that needs more memory than there is, is refused before it begins: a system that is out of
memory kills processes without a message."""

import os
import platform
import sys
from contextlib import suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from .errors import MissingPackageError

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

# of a container, a service, a batch job
_GROUPS, _LIMITS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
_USED_OF_FREE = 0.75  # of the memory that is free
_PACKAGES = ("qubayes", "numpy", "scipy", "numba", "highspy", "dimod", "polars")


def address_limit() -> int | None:
    """Return the bytes of address space that this process may take (`ulimit -v`), or None."""
    if not resource:
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def peak_memory() -> int:
    """Return the most bytes of memory that this process has had so far; 0 if unknown (Windows)."""
    if not resource:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def memory_here() -> int | None:
    """Return the bytes that this process can have, or None if no limit is known.

    The least of the machine's memory, the process's own limit and those of its control groups (both
    versions of Linux's interface)."""
    known = [address_limit()]
    with suppress(AttributeError, OSError, ValueError):  # Windows
        known.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    lines: list[str] = []
    with suppress(OSError):
        lines = _GROUPS.read_text().splitlines()
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root, name = (
            (_LIMITS / "memory", "memory.limit_in_bytes")
            if controllers
            else (_LIMITS, "memory.max")
        )
        group = PurePosixPath(path)
        for folder in (group, *group.parents):
            with suppress(OSError, ValueError):  # no such file; "max"
                known.append(int((root / folder.relative_to("/") / name).read_text()))
    return min((limit for limit in known if limit is not None and limit > 0), default=None)


def free_memory() -> int | None:
    """Return the bytes that are free on this machine; None if unknown (only Linux tells)."""
    with suppress(OSError, ValueError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            name, _, amount = line.partition(":")
            if name == "MemAvailable":
                return 1024 * int(amount.split()[0])
    return None


def usable_memory(given: float | None = None) -> float:
    """Return the most bytes that this process is to take; infinity if no limit is known.

    Unless a number is given, that is what it has had so far and three quarters of what is free."""
    here = memory_here() or float("inf")
    if given is not None:
        return min(given, here)
    free = free_memory()
    return here if free is None else min(here, peak_memory() + _USED_OF_FREE * free)


def versions() -> dict[str, str]:
    """Return the versions of this program, Python and the packages that results may depend on."""
    found = {"python": platform.python_version(), "system": f"{sys.platform} {platform.machine()}"}
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def how_to_install(extra: str) -> str:
    """Return the end of a message: how to install the packages of an extra."""
    return f"in a clone of qubayes run: pip install '.[{extra}]'"


def optional(package: str, purpose: str, extra: str) -> Any:
    """Return the module of an optional package; raise an error that names the extra to install."""
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingPackageError(
            f"{purpose} needs {error.name}; {how_to_install(extra)}"
        ) from error


class _Lazy:
    """A module that is imported when the first of its names is used."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self._module), name)
        setattr(self, name, value)
        return value


# Packages whose import takes 20 to 120 ms, and which short runs of a command do without.
if TYPE_CHECKING:
    import dimod
    import highspy
    import narwhals
    from scipy import sparse
    from scipy.sparse import csgraph
else:
    dimod = _Lazy("dimod")
    highspy = _Lazy("highspy")
    narwhals = _Lazy("narwhals")
    sparse = _Lazy("scipy.sparse")
    csgraph = _Lazy("scipy.sparse.csgraph")

__all__ = [
    "address_limit",
    "csgraph",
    "dimod",
    "free_memory",
    "highspy",
    "how_to_install",
    "memory_here",
    "narwhals",
    "optional",
    "peak_memory",
    "sparse",
    "usable_memory",
    "versions",
]
