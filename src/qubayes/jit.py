"""How kernels are compiled."""

from typing import Any

from numba import njit

kernel: Any = njit(nogil=True, cache=True)
# For what allocates nothing and is given many arrays. Without numba's reference counting a call is free and compiles
# sooner: of alarm m=4 a set took 6.5 µs with it, 3.3 µs without.
leaf: Any = njit(nogil=True, cache=True, _nrt=False)  # type: ignore[call-overload]
