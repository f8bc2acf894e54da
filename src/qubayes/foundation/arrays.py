"""Names of the array types that kernels take."""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
SmallInts: TypeAlias = npt.NDArray[np.int32]
Words: TypeAlias = npt.NDArray[np.uint64]
Bools: TypeAlias = npt.NDArray[np.bool_]
AnyArray: TypeAlias = npt.NDArray[Any]


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the array read-only and contiguous, as every result of a stage is."""
    array = np.ascontiguousarray(array)
    array.setflags(write=False)
    return array
