"""A Dataset, the settings by which one is read, and the files that one is written to."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias, get_args

import numpy as np

from ..foundation.arrays import AnyArray, Ints
from ..foundation.environment import optional
from ..foundation.errors import FormatError, SettingError
from ..foundation.files import replacing

Missing: TypeAlias = Literal["error", "drop", "state"]
BinMethod: TypeAlias = Literal["quantile", "width"]
DataFormat: TypeAlias = Literal["csv", "tsv", "parquet", "arrow", "gobnilp", "fimi"]
Arities: TypeAlias = Mapping[str, int | Sequence[str]]  # number of states, or their names in order

MOST_STATES = 1000  # a variable with more is an identifier or a measurement, not a discrete variable
MOST_CODES = 20  # whole numbers with at most this many values are codes: `bins` for all columns leaves them as they are
_BLOCK = 1 << 14  # rows that are in memory as text


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


def write(dataset: Dataset, path: str | Path) -> None:
    """Write the data in the format of the path's ending: .csv, .tsv, .dat (GOBNILP) or .parquet.

    The columns of a Parquet file are enumerations, so that states that do not occur are kept.
    """
    ending = Path(path).suffix.lower()
    if ending == ".parquet":
        pl = optional("polars", "a file in the Parquet format", "frames")
        columns = []
        for name, states, codes in zip(dataset.names, dataset.states, dataset.codes, strict=True):
            names = pl.Series(name, states, dtype=pl.Enum(states))
            columns.append(names.gather(pl.Series(codes.astype(np.uint32))))
        with replacing(path, binary=True) as file:
            pl.DataFrame(columns).write_parquet(file)
        return
    if ending not in (".csv", ".tsv", ".dat"):
        raise FormatError(f"cannot write data to {path}; give a name that ends in .csv, .tsv, .dat or .parquet")
    if ending == ".dat":
        for text in (*dataset.names, *(state for states in dataset.states for state in states)):
            if not text or text.startswith("#") or any(c.isspace() for c in text):
                raise FormatError(
                    f"a .dat file cannot hold the name {text!r} (blanks in it, or `#` first); write .csv instead"
                )
    with replacing(path) as file:
        write_rows(dataset, file, {".csv": ",", ".tsv": "\t", ".dat": " "}[ending])


def write_rows(dataset: Dataset, file: IO[Any], separator: str = ",") -> None:
    """Write a header and the state names of each row to an open text file; arities too if blanks separate."""

    def field(text: str) -> str:
        if text and text == text.strip() and not any(sign in text for sign in ('"', "\r", "\n", separator)):
            return text
        return text if separator == " " else '"' + text.replace('"', '""') + '"'

    file.write(separator.join(map(field, dataset.names)) + "\n")
    if separator == " ":
        file.write(" ".join(map(str, dataset.arities)) + "\n")
    fields = [np.array([field(state) for state in states], dtype=object) for states in dataset.states]
    for start in range(0, dataset.rows, _BLOCK):
        block = dataset.codes[:, start : start + _BLOCK]
        columns = [texts[codes].tolist() for texts, codes in zip(fields, block, strict=True)]
        file.write("".join(separator.join(row) + "\n" for row in zip(*columns, strict=True)))
