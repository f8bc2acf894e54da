"""Files and data frames to a Dataset."""

from collections import Counter
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..foundation.arrays import AnyArray, Bools, frozen
from ..foundation.errors import DataError, FormatError
from ..foundation.files import ending
from .columns import Column, States, missing_values, states_of
from .dataset import Dataset, code_type
from .declared import declare, in_intervals_of
from .settings import DataFormat, ReadSettings

if TYPE_CHECKING:
    from ..network import Network

_FORMATS: dict[str, DataFormat] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}


def read(source: Any, settings: ReadSettings | None = None, *, like: "Network | None" = None) -> Dataset:
    """The data as integer codes with the names of their states.

    `source` is a file (CSV, TSV, Parquet, Arrow, GOBNILP or FIMI `.dat`; text also as `.gz`), a data frame (pandas,
    polars, pyarrow) or a Dataset, which is returned as it is. States come in the declared order if the column's type
    or `settings.arities` declares them, else in numeric order if all are whole numbers, else sorted as text.
    Numbers that were cut before the network `like` was learned, so that its states are intervals, are cut alike.

    >>> import polars
    >>> dataset = read(polars.DataFrame({"rain": ["no", "yes"], "mm": [0.2, 8.5]}), ReadSettings(bins=2))
    >>> dataset.n, dataset.rows, dataset.states[0], dataset.codes.tolist()
    (2, 2, ('no', 'yes'), [[0, 1], [0, 1]])
    >>> from qubayes.network import fit, from_modelstring
    >>> network = fit(from_modelstring("[mm][rain|mm]"), dataset)
    >>> read(polars.DataFrame({"rain": ["yes", "no"], "mm": [99.5, 0.0]}), like=network).codes.tolist()
    [[1, 0], [1, 0]]
    """
    if isinstance(source, Dataset):
        return source
    settings = settings or ReadSettings()
    columns, arities_from = _load(source, settings)
    columns = _chosen(columns, settings)
    if like is not None:
        columns = in_intervals_of(like, columns)
    if settings.arities is not None:
        columns, arities_from = declare(columns, settings.arities)
    columns = _without_missing(columns, settings)
    return _encoded(columns, [states_of(column, settings) for column in columns], arities_from)


def _load(source: Any, settings: ReadSettings) -> tuple[list[Column], str]:
    """The columns as they stand in the source, and what declares their arities."""
    if not isinstance(source, str | PathLike):
        from .frames import frame_columns

        columns = frame_columns(source)
    else:
        path = Path(source)
        kind = settings.format or _format_of(path)
        columns = _load_file(path, kind)
        if kind in ("gobnilp", "fimi"):
            return columns, path.name if kind == "gobnilp" else "item sets"
    typed = any(column.declared is not None for column in columns)
    return columns, "declared types" if typed else "data"


def _load_file(path: Path, kind: DataFormat) -> list[Column]:
    if kind in ("parquet", "arrow"):
        from .isolated import read_isolated

        return read_isolated(path, kind.capitalize())
    if kind == "fimi":
        from .fimi import read_fimi

        return read_fimi(path)
    from .text import read_gobnilp, read_separated

    return read_gobnilp(path) if kind == "gobnilp" else read_separated(path, "," if kind == "csv" else "\t")


def _format_of(path: Path) -> DataFormat:
    if ending(path) == ".dat":
        from .text import looks_like_fimi

        return "fimi" if looks_like_fimi(path) else "gobnilp"
    if ending(path) not in _FORMATS:
        raise FormatError(
            f"{path} ends in {ending(path) or 'nothing'!r}; give .csv, .tsv, .parquet, .arrow or .dat (text also .gz),"
            f" or say what it is with --format"
        )
    return _FORMATS[ending(path)]


def _chosen(columns: list[Column], settings: ReadSettings) -> list[Column]:
    """The columns that are not ignored, once it is clear that they can be used."""
    names = [column.name for column in columns]
    asked = [*settings.ignore, *(settings.bins if isinstance(settings.bins, Mapping) else ())]
    if unknown := [name for name in asked if name not in names]:
        more = f" and {len(names) - 10} more" if len(names) > 10 else ""
        raise DataError(f"no column is named {unknown[0]!r}; columns are {', '.join(names[:10])}{more}")
    if "" in names:
        raise DataError(f"column {names.index('') + 1} of {len(names)} has no name; give every column a name")
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise DataError(f"two columns are named {twice!r}; give every column its own name")
    kept = [column for column in columns if column.name not in settings.ignore]
    if len(kept) < 2:
        raise DataError(
            f"the data have {len(kept)} column; a network needs two or more (fields are separated by commas in .csv, by"
            " tabs in .tsv)"
        )
    if len(kept[0].codes) == 0:
        raise DataError(f"the data have {len(kept)} columns and no row; give one row or more")
    return kept


def _without_missing(columns: list[Column], settings: ReadSettings) -> list[Column]:
    """The columns with missing values refused, or their rows dropped, or left to become a state."""
    if settings.missing == "state":
        return columns
    lost: Bools = np.zeros(len(columns[0].codes), dtype=np.bool_)
    counts: dict[str, int] = {}
    for column in columns:
        none = missing_values(column)
        if (count := int(none[column.codes].sum())) > 0:
            lost |= none[column.codes]
            counts[column.name] = count
    if not counts:
        return columns
    rows, lost_rows = len(lost), int(lost.sum())
    if settings.missing == "error":
        shown = ", ".join(f"{name!r} ({count})" for name, count in list(counts.items())[:10])
        more = f" and {len(counts) - 10} more columns" if len(counts) > 10 else ""
        raise DataError(
            f"missing values in {lost_rows} of {rows} rows, column (rows): {shown}{more};"
            f" drop these rows with --missing drop, or make missing a state with --missing state"
        )
    if lost_rows == rows:
        raise DataError(
            f"all {rows} rows have missing values, so none is left; use --missing state or --ignore a column"
        )
    return [column._replace(codes=column.codes[~lost]) for column in columns]


def _encoded(columns: list[Column], states: list[States], arities_from: str) -> Dataset:
    names = tuple(column.name for column in columns)
    state_names = tuple(its.names for its in states)
    kind = code_type(state_names)
    codes: AnyArray = np.empty((len(columns), len(columns[0].codes)), dtype=kind)
    for i, (column, its) in enumerate(zip(columns, states, strict=True)):
        codes[i] = its.lookup.astype(kind)[column.codes]
    return Dataset(names, state_names, frozen(codes), arities_from)
