"""Discrete data as integer codes."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..foundation.arrays import AnyArray, Ints


@dataclass(frozen=True, slots=True)
class Dataset:
    """Rows of discrete values: `codes[i, row]` is the state of variable i, an index into `states[i]`."""

    names: tuple[str, ...]
    states: tuple[tuple[str, ...], ...]
    codes: AnyArray = field(repr=False)  # (n, rows), the smallest unsigned type that holds every code; read-only
    arities_from: str = "data"  # "data", or what declared them: "declared types", "network alarm.bif", "states.json"

    @property
    def n(self) -> int:
        """Number of variables."""
        return len(self.names)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.codes.shape[1])

    @property
    def arities(self) -> Ints:
        """Declared number of states of each variable."""
        return np.array([len(states) for states in self.states], dtype=np.int64)

    @property
    def checksum(self) -> str:
        """sha256 of names, states and codes: the same data give the same checksum from any file format."""
        digest = hashlib.sha256(repr((self.names, self.states)).encode())
        digest.update(np.ascontiguousarray(self.codes).astype("<u4").tobytes())
        return digest.hexdigest()


def code_type(states: Sequence[Sequence[str]]) -> np.dtype[Any]:
    """The smallest unsigned integer type that holds every code."""
    return np.min_scalar_type(max((len(its) for its in states), default=1) - 1)
