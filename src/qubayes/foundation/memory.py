"""Memory limits and use of this process.

Work that needs more than there is, is refused before it begins: a system that is out of memory kills processes without
a message.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_GROUPS, _LIMITS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")  # of a container, a service, a batch job


def address_limit() -> int | None:
    """Return the bytes of address space that this process may take (`ulimit -v`), or None without a limit."""
    if not resource:
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def limit_address_space() -> None:
    """Limit this process to twice the machine's memory and 4 GiB, unless a limit is set: libraries reserve much.

    So a damaged file cannot ask for far more than there is.
    """
    if resource and address_limit() is None:
        have = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_AS, (2 * have + (4 << 30), resource.getrlimit(resource.RLIMIT_AS)[1]))


def peak_memory() -> int:
    """Return the most bytes of memory that this process has had so far; 0 where the system does not tell (Windows)."""
    if not resource:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def memory_here() -> int | None:
    """Return the bytes that this process can have: the least of the machine's, its groups' and its own limit, or None.

    None means that no limit is known.
    """
    known = [address_limit(), *_group_limits()]
    with suppress(AttributeError, OSError, ValueError):  # Windows
        known.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min((limit for limit in known if limit is not None and limit > 0), default=None)


def _group_limits() -> Iterator[int]:
    """Yield the limits of the control groups of this process (both versions of Linux's interface)."""
    lines: list[str] = []
    with suppress(OSError):
        lines = _GROUPS.read_text().splitlines()
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root, name = (_LIMITS / "memory", "memory.limit_in_bytes") if controllers else (_LIMITS, "memory.max")
        group = PurePosixPath(path)
        for folder in (group, *group.parents):
            with suppress(OSError, ValueError):  # no such file; "max"
                yield int((root / folder.relative_to("/") / name).read_text())
