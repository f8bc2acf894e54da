"""How much memory there is. What would need more is refused before it begins: a machine that is out of memory kills
whatever runs on it, without a word."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

_GROUPS, _LIMITS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")  # of a container, a service, a batch job


def address_limit() -> int | None:
    """Bytes of address space that this process may take (`ulimit -v`); None if nobody limits it."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def memory_here() -> int | None:
    """Bytes that this process can have at most: the machine's, its group's, its limit; None if nobody can tell."""
    known = [address_limit(), *_group_limits()]
    with suppress(AttributeError, OSError, ValueError):  # Windows
        known.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min((limit for limit in known if limit is not None and limit > 0), default=None)


def _group_limits() -> Iterator[int]:
    """The limits of the control groups that this process is in (both versions of Linux's interface)."""
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
