"""Files and data frames to a Dataset."""

from collections import Counter
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..foundation.arrays import AnyArray, Bools, frozen
from ..foundation.errors import DataError, FormatError
from ..foundation.files import ending, parse_json, read_text, shown
from .columns import Column, Intervals, missing_values, states_of
from .dataset import MOST_STATES, Arities, Dataset, ReadSettings, code_type
from .frames import frame_columns, read_frame_file

_FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".dat": ".dat",  # GOBNILP or FIMI, by its content
}
_EXAMPLE = '{"column": ["state", "state"], "other": 3}'


class HasStates(Protocol):
    """Anything that names variables and their states: a Network, a Dataset."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables."""

    @property
    def states(self) -> tuple[tuple[str, ...], ...] | None:
        """Names of the states of each variable, if they are known."""


def read(source: Any, settings: ReadSettings | None = None, *, like: HasStates | None = None) -> Dataset:
    """Return the data as integer codes with the names of their states.

    `source` is a file (CSV, TSV, Parquet, Arrow, GOBNILP or FIMI `.dat`; text also as `.gz`), a data frame (pandas,
    polars, pyarrow, ...) or a Dataset, which is returned as it is. States come in the declared order if the column's
    type or `settings.arities` declares them, else in numeric order if all are whole numbers, else sorted as text.
    Numbers whose states are intervals in `like` (a Network or a Dataset) are put into these intervals.

    >>> import pandas
    >>> dataset = read(pandas.DataFrame({"rain": ["no", "yes"], "mm": [0.2, 8.5]}), ReadSettings(bins=2))
    >>> dataset.n, dataset.rows, dataset.states[0], dataset.codes.tolist()
    (2, 2, ('no', 'yes'), [[0, 1], [0, 1]])
    >>> read(pandas.DataFrame({"rain": ["yes", "no"], "mm": [99.5, 0.0]}), like=dataset).codes.tolist()
    [[1, 0], [1, 0]]
    """
    if isinstance(source, Dataset):
        return source
    settings = settings or ReadSettings()
    columns, arities_from = _load(source, settings)
    columns = _chosen(columns, settings)
    if like is not None:
        columns = _in_intervals_of(like, columns)
    if settings.arities is not None:
        columns, arities_from = _declare(columns, settings.arities)
    return _encoded(_without_missing(columns, settings), settings, arities_from)


def _load(source: Any, settings: ReadSettings) -> tuple[list[Column], str]:
    """Return the columns as they are in the source, and what declares their arities."""
    if isinstance(source, list) and source and all(isinstance(column, Column) for column in source):
        columns = source  # of the estimator
    elif not isinstance(source, str | PathLike):
        columns = frame_columns(source)
    else:
        path = Path(source)
        kind = settings.format or _FORMATS.get(ending(path))
        if kind is None:
            raise FormatError(
                f"{path} ends in {ending(path) or 'nothing'!r}; give .csv, .tsv, .parquet, .arrow or .dat (text also"
                f" .gz), or say what it is with --format"
            )
        if kind in ("parquet", "arrow"):
            columns = read_frame_file(path, kind.capitalize())
        else:
            from . import text  # loads numba, for which neither a network command nor the reader of Parquet files waits

            if kind == ".dat":
                kind = "fimi" if text.looks_like_fimi(path) else "gobnilp"
            if kind == "gobnilp":
                return text.read_gobnilp(path), path.name
            if kind == "fimi":
                return text.read_fimi(path), "item sets"
            columns = text.read_separated(path, "," if kind == "csv" else "\t")
    typed = any(column.declared is not None for column in columns)
    return columns, "declared types" if typed else "data"


def _chosen(columns: list[Column], settings: ReadSettings) -> list[Column]:
    """Return the columns that are not ignored; raise if names or sizes make the table unusable."""
    names = [column.name for column in columns]
    asked = [*settings.ignore, *(settings.bins if isinstance(settings.bins, Mapping) else ())]
    if unknown := [name for name in asked if name not in names]:
        raise DataError(f"no column is named {unknown[0]!r}; columns are {_some(names)}")
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


def _in_intervals_of(like: HasStates, columns: list[Column]) -> list[Column]:
    """Return the columns with the intervals of `like` declared for them; other columns unchanged."""
    found = {name: intervals for name, states in _states_by_name(like).items() if (intervals := Intervals.of(states))}
    return [
        column._replace(declared=found[column.name]) if column.declared is None and column.name in found else column
        for column in columns
    ]


def _states_by_name(source: HasStates) -> dict[str, tuple[str, ...]]:
    return dict(zip(source.names, source.states, strict=True)) if source.states else {}


def _declare(columns: list[Column], arities: str | Path | Arities) -> tuple[list[Column], str]:
    """Return the columns with their declared states, and the name of the declaration."""
    if isinstance(arities, Mapping):
        return _with_states(columns, arities, "the declaration"), "declared"
    path = Path(arities)
    if ending(path) == ".bif":
        # The one import against the order of the rooms: a network may declare the states of the data.
        from ..network import read_network

        states = _states_by_name(read_network(path))
        if not any(column.name in states for column in columns):
            raise DataError(f"{path} declares no column of the data ({columns[0].name!r}, ...); give their network")
        declared = [_declared(column, states.get(column.name)) for column in columns]
        return declared, f"network {path.name.removesuffix('.gz')}"
    if ending(path) != ".json":
        raise FormatError(f"arities from {path}; give a .bif network or a .json file")
    text = read_text(path)
    try:
        value = parse_json(text)
    except FormatError as error:
        raise FormatError(f"{path} is {error}; give {_EXAMPLE}") from None
    if not isinstance(value, dict):
        raise FormatError(f"{path} holds no JSON object; give {_EXAMPLE}")
    return _with_states(columns, value, str(path)), path.name


def _with_states(columns: list[Column], arities: Mapping[str, Any], source: str) -> list[Column]:
    """Return the columns with the states of a mapping; raise if the mapping is not valid."""
    names = [column.name for column in columns]
    for name, states in arities.items():
        if name not in names:
            raise DataError(f"{source} names {name!r}, which is no column; columns are {_some(names)}")
        if not _are_states(states):
            raise DataError(
                f"{source} gives {name!r} the states {shown(states)}; give a list of different texts, or a number"
                f" from 1 to {MOST_STATES}"
            )
    declared = {name: states if isinstance(states, int) else tuple(states) for name, states in arities.items()}
    return [_declared(column, declared.get(column.name)) for column in columns]


def _are_states(states: Any) -> bool:
    """Return True for a number of states, and for a list of different names."""
    if isinstance(states, list | tuple):
        return all(isinstance(s, str) for s in states) and 1 <= len(set(states)) == len(states) <= MOST_STATES
    return isinstance(states, int) and not isinstance(states, bool) and 1 <= states <= MOST_STATES


def _declared(column: Column, states: tuple[str, ...] | int | None) -> Column:
    """Return the column with these states, if any; intervals that it already has stay."""
    if states is None or isinstance(column.declared, Intervals):
        return column
    own = Intervals.of(states) if column.declared is None and isinstance(states, tuple) else None
    return column._replace(declared=own or states)


def _some(names: list[str]) -> str:
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")


def _without_missing(columns: list[Column], settings: ReadSettings) -> list[Column]:
    """Return the columns without the rows that have missing values, or raise, as the settings say."""
    if settings.missing == "state":
        return columns
    lost: Bools = np.zeros(len(columns[0].codes), dtype=np.bool_)
    counts: dict[str, int] = {}
    for column in columns:
        missing = missing_values(column)[column.codes]
        if (count := int(missing.sum())) > 0:
            lost |= missing
            counts[column.name] = count
    if not counts:
        return columns
    rows, lost_rows = len(lost), int(lost.sum())
    if settings.missing == "error":
        listed = ", ".join(f"{name!r} ({count})" for name, count in list(counts.items())[:10])
        more = f" and {len(counts) - 10} more columns" if len(counts) > 10 else ""
        raise DataError(
            f"missing values in {lost_rows} of {rows} rows, column (rows): {listed}{more};"
            f" drop these rows with --missing drop, or make missing a state with --missing state"
        )
    if lost_rows == rows:
        raise DataError(
            f"all {rows} rows have missing values, so none is left; use --missing state or --ignore a column"
        )
    return [column._replace(codes=column.codes[~lost]) for column in columns]


def _encoded(columns: list[Column], settings: ReadSettings, arities_from: str) -> Dataset:
    """Return the columns as one array of codes."""
    names = tuple(column.name for column in columns)
    states = [states_of(column, settings) for column in columns]
    state_names = tuple(its.names for its in states)
    for name, its in zip(names, state_names, strict=True):
        try:
            "".join((name, *its)).encode()
        except UnicodeEncodeError as error:
            text = shown(error.object[error.start : error.end])
            raise DataError(f"column {name!r} holds {text}, a lone surrogate and no Unicode text; replace it") from None
    kind = code_type(state_names)
    codes: AnyArray = np.empty((len(columns), len(columns[0].codes)), dtype=kind)
    for i, (column, found) in enumerate(zip(columns, states, strict=True)):
        codes[i] = found.lookup.astype(kind)[column.codes]
    return Dataset(names, state_names, frozen(codes), arities_from)
