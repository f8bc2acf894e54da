"""How data are to be read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from ..foundation.errors import SettingError

Missing: TypeAlias = Literal["error", "drop", "state"]
BinMethod: TypeAlias = Literal["quantile", "width"]
DataFormat: TypeAlias = Literal["csv", "tsv", "parquet", "arrow", "gobnilp", "fimi"]
Arities: TypeAlias = Mapping[str, int | Sequence[str]]  # number of states, or their names in order

# A variable with more states than this is an identifier or a measurement, not a discrete variable.
MOST_STATES = 1000
# Where all numbers are to be cut, whole ones of no more values than this are taken for codes, and stay.
MOST_CODES = 20


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """What to do with missing values and continuous columns, and who declares the states."""

    missing: Missing = "error"  # or drop the rows that have any; or let missing be a state of its own
    bins: int | Mapping[str, int] | None = None  # for every column of numbers that are no codes, or for those named
    bin_method: BinMethod = "quantile"  # equally many rows, or equally wide intervals
    arities: str | Path | Arities | None = None  # a .bif network, a .json file, or the same as a mapping
    ignore: tuple[str, ...] = ()  # columns that are left out
    format: DataFormat | None = None  # of a file; by its ending (and, for .dat, its content) unless given

    def __post_init__(self) -> None:
        for name, kind in (("missing", Missing), ("bin_method", BinMethod), ("format", DataFormat)):
            value, allowed = getattr(self, name), get_args(kind)
            if value not in allowed and not (name == "format" and value is None):
                raise SettingError(f"{name} = {value!r}; give one of {', '.join(allowed)}")
        for bins in self.bins.values() if isinstance(self.bins, Mapping) else [self.bins]:
            if bins is not None and (not isinstance(bins, int) or not 2 <= bins <= MOST_STATES):
                raise SettingError(f"bins = {bins}; give a whole number from 2 to {MOST_STATES}")

    def bins_of(self, name: str) -> int | None:
        """The number of bins asked for this column by name, else None."""
        return self.bins.get(name) if isinstance(self.bins, Mapping) else None

    @property
    def bins_of_all(self) -> int | None:
        """The number of bins asked for every column of numbers that are no codes, else None."""
        return self.bins if isinstance(self.bins, int) else None
