"""Files and data frames to a Dataset."""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import numpy as np

from ..foundation.arrays import Bools, Ints
from ..foundation.errors import DataError, FormatError, QubayesError, option, some
from ..foundation.files import ending, parse_json, read_text, shown
from .columns import Column, Intervals, codes_in, encode, missing_values
from .dataset import MOST_STATES, Arities, Dataset, ReadSettings
from .frames import array_columns, frame_columns, read_frame_file

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

    `source` is a file (CSV, TSV, Parquet, Arrow, GOBNILP or FIMI `.dat`; text also as `.gz`), `-` for standard input
    (CSV unless `settings.format` says otherwise), a data frame (pandas, polars, pyarrow, ...), an array of rows, or a
    Dataset, which is returned as it is. States come in the
    declared order if the column's type or `settings.arities` declares them, else in numeric order if all are whole
    numbers, else sorted as text. Numbers whose states are intervals in `like` (a Network or a Dataset) are put into
    these intervals.

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
    names = [column.name for column in columns]
    asked = [*settings.ignore, *(settings.bins if isinstance(settings.bins, Mapping) else ())]
    if unknown := [name for name in asked if name not in names]:
        raise DataError(f"no column is named {unknown[0]!r}; columns are {some(names, 10)}")
    if "" in names:
        raise DataError(f"column {names.index('') + 1} of {len(names)} has no name; give every column a name")
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise DataError(f"two columns are named {twice!r}; give every column its own name")
    columns = [column for column in columns if column.name not in settings.ignore]
    if len(columns) < 2:
        raise DataError(
            f"the data have {len(columns)} column; a network needs two or more (fields are separated by commas in .csv,"
            " by tabs in .tsv)"
        )
    if len(columns[0].codes) == 0:
        raise DataError(f"the data have {len(columns)} columns and no row; give one row or more")
    states = _states_by_name(like) if like is not None else {}
    columns = [
        column if column.declared is not None else _declared(column, Intervals.of(states.get(column.name, ())))
        for column in columns
    ]
    if settings.arities is not None:
        columns, arities_from = _declare(columns, settings.arities)
    rows, columns = len(columns[0].codes), _without_missing(columns, settings)
    return encode(columns, settings, arities_from, rows - len(columns[0].codes))


def read_evidence(source: Any, like: HasStates, settings: ReadSettings | None = None) -> dict[str, Ints]:
    """Return the state of every row in each column that `like` names, in its states; -1 where the value is missing."""
    if isinstance(source, Dataset):
        columns = [
            Column(*column) for column in zip(source.names, source.states, source.codes, source.states, strict=True)
        ]
    else:
        columns, _ = _load(source, settings or ReadSettings())
    states = _states_by_name(like)
    return {column.name: codes_in(column, states[column.name]) for column in columns if column.name in states}


def _load(source: Any, settings: ReadSettings) -> tuple[list[Column], str]:
    """Return the columns as they are in the source, and what declares their arities."""
    if isinstance(source, np.ndarray):
        columns = array_columns(source)
    elif not isinstance(source, str | PathLike):
        columns = frame_columns(source)
    elif str(source) == "-":
        with TemporaryDirectory() as folder:
            path = Path(folder) / f"stdin.{settings.format or 'csv'}"
            path.write_bytes(sys.stdin.buffer.read())
            try:
                return _load(path, replace(settings, format=settings.format or "csv"))
            except QubayesError as error:
                raise type(error)(str(error).replace(str(path), "standard input")) from None
    else:
        path = Path(source)
        kind = settings.format or _FORMATS.get(ending(path))
        if kind is None:
            raise FormatError(
                f"{path} ends in {ending(path) or 'nothing'!r}; give .csv, .tsv, .parquet, .arrow or .dat (text also"
                f" .gz), or say what it is with {option('format')}"
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


def _states_by_name(source: HasStates) -> dict[str, tuple[str, ...]]:
    return dict(zip(source.names, source.states, strict=True)) if source.states else {}


def _declare(columns: list[Column], arities: str | Path | Arities) -> tuple[list[Column], str]:
    """Return the columns with their declared states, and the name of the declaration."""
    names = [column.name for column in columns]
    if isinstance(arities, Mapping):
        declared, label, source = arities, "declared", "the declaration"
    elif ending(path := Path(arities)) == ".bif":
        # The one import against the order of the rooms: a network may declare the states of the data.
        from ..network import read_network

        states = _states_by_name(read_network(path))
        declared = {name: states[name] for name in names if name in states}
        if not declared:
            raise DataError(f"{path} declares no column of the data ({names[0]!r}, ...); give their network")
        label, source = f"network {path.name.removesuffix('.gz')}", str(path)
    elif ending(path) == ".json":
        try:
            declared = parse_json(read_text(path))
        except FormatError as error:
            raise FormatError(f"{path}: {error}; give {_EXAMPLE}") from None
        if not isinstance(declared, dict):
            raise FormatError(f"{path} does not hold a JSON object; give {_EXAMPLE}")
        label, source = path.name, str(path)
    else:
        raise FormatError(f"arities from {path}; give a .bif network or a .json file")
    for name, its in declared.items():
        if name not in names:
            raise DataError(f"{source} names {name!r}, which is not a column; columns are {some(names, 10)}")
        count = its if isinstance(its, int) and not isinstance(its, bool) else 0
        if isinstance(its, list | tuple) and all(isinstance(state, str) for state in its) and len(set(its)) == len(its):
            count = len(its)
        if not 1 <= count <= MOST_STATES:
            raise DataError(
                f"{source} gives {name!r} the states {shown(its)}; give a list of different texts, or a number"
                f" from 1 to {MOST_STATES}"
            )
    return [_declared(column, declared.get(column.name)) for column in columns], label


def _declared(column: Column, states: Sequence[str] | int | None) -> Column:
    """Return the column with these states, if any; intervals that it already has stay."""
    if states is None or isinstance(column.declared, Intervals):
        return column
    if isinstance(states, int):
        return column._replace(declared=states)
    own = Intervals.of(states) if column.declared is None else None
    return column._replace(declared=own or tuple(states))


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
            f" drop these rows with {option('missing', 'drop')}, or make missing a state with"
            f" {option('missing', 'state')}"
        )
    if lost_rows == rows:
        raise DataError(
            f"all {rows} rows have missing values, so none is left; give {option('missing', 'state')}, or leave out a"
            f" column with {option('ignore')}"
        )
    return [column._replace(codes=column.codes[~lost]) for column in columns]
