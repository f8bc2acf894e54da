"""Versions of the packages that a result depends on."""

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

_PACKAGES = ("qubayes", "numpy", "scipy", "numba", "highspy", "dimod", "polars")


def versions() -> dict[str, str]:
    """Return the versions of this program, of Python and of the packages that results may depend on."""
    found = {"python": platform.python_version(), "system": f"{sys.platform} {platform.machine()}"}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
