"""How much memory there is. What would need more is refused before it begins: a machine that is out of memory kills
whatever runs on it, without a word."""

import os
from contextlib import suppress
from pathlib import Path

_GROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # of a container


def address_limit() -> int | None:
    """Bytes of address space that this process may take (`ulimit -v`); None if nobody limits it."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def memory_here() -> int | None:
    """Bytes that this process can have at most: the machine's, its container's, its limit; None if nobody can tell."""
    known = [address_limit()]
    with suppress(AttributeError, OSError, ValueError):  # Windows
        known.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for path in _GROUP_LIMITS:
        with suppress(OSError, ValueError):  # no such file; "max"
            known.append(int(Path(path).read_text()))
    return min((limit for limit in known if limit is not None and limit > 0), default=None)
