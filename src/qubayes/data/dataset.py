"""The types of this room: a Dataset, and the settings by which one is read."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from ..foundation.arrays import AnyArray, Ints
from ..foundation.errors import SettingError

Missing: TypeAlias = Literal["error", "drop", "state"]
BinMethod: TypeAlias = Literal["quantile", "width"]
DataFormat: TypeAlias = Literal["csv", "tsv", "parquet", "arrow", "gobnilp", "fimi"]
Arities: TypeAlias = Mapping[str, int | Sequence[str]]  # number of states, or their names in order

MOST_STATES = 1000  # a variable with more is an identifier or a measurement, not a discrete variable
MOST_CODES = 20  # whole numbers with at most this many values are codes: `bins` for all columns leaves them as they are


@dataclass(frozen=True, slots=True)
class Dataset:
    """Rows of discrete values: `codes[i, row]` is the state of variable i, an index into `states[i]`."""

    names: tuple[str, ...]
    states: tuple[tuple[str, ...], ...]
    codes: AnyArray = field(repr=False)  # (n, rows), the smallest unsigned type that holds every code; read-only
    arities_from: str = "data"  # or their declaration: "declared types", "network alarm.bif", "states.json", ...

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
    """Return the smallest unsigned integer type that holds every code."""
    return np.min_scalar_type(max((len(its) for its in states), default=1) - 1)


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """Settings of `read`: missing values, continuous columns, declared states."""

    missing: Missing = "error"  # or drop the rows with missing values, or make missing a state of its own
    bins: int | Mapping[str, int] | None = None  # for every column of numbers that are not codes, or by name of column
    bin_method: BinMethod = "quantile"  # intervals with equally many rows, or equally wide ones
    arities: str | Path | Arities | None = None  # a .bif network, a .json file, or the same as a mapping
    ignore: tuple[str, ...] = ()  # columns that are left out
    format: DataFormat | None = None  # of a file; by default from its ending (and, for .dat, its content)

    def __post_init__(self) -> None:
        for name, kind in (("missing", Missing), ("bin_method", BinMethod), ("format", DataFormat)):
            value, allowed = getattr(self, name), get_args(kind)
            if value not in allowed and not (name == "format" and value is None):
                raise SettingError(f"{name} = {value!r}; give one of {', '.join(allowed)}")
        for bins in self.bins.values() if isinstance(self.bins, Mapping) else [self.bins]:
            if bins is not None and (not isinstance(bins, int) or not 2 <= bins <= MOST_STATES):
                raise SettingError(f"bins = {bins}; give a whole number from 2 to {MOST_STATES}")
