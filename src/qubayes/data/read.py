"""`read`: a Dataset from a file, a data frame or an array."""

import sys
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..foundation.arrays import AnyArray, Bools, Floats, Ints
from ..foundation.environment import narwhals as nw
from ..foundation.errors import DataError, FormatError, QubayesError, option, some
from ..foundation.files import ending, parse_json, read_text, shown
from ..settings import (
    Arities,
    BinMethod,
    Bins,
    CellTable,
    DataFormat,
    Missing,
    Numbers,
    ReadSettings,
)
from .cells import any_of, check_interventions, set_by_names, set_by_table
from .columns import (
    Column,
    cells_of,
    codes_in,
    encode,
    lost_rows,
    missing_cells,
    missing_values,
    with_values,
)
from .dataset import MISSING_STATE, MOST_STATES, Dataset, numbers_of
from .frames import frame_columns, read_frame_file
from .intervals import Intervals
from .weights import rows_left, take_weights, with_weights

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


def read(
    source: Any,
    settings: ReadSettings | None = None,
    *,
    like: HasStates | None = None,
    missing: Missing = "error",
    numbers: Numbers = "gaussian",
    bins: Bins | None = None,
    bin_method: BinMethod = "quantile",
    arities: str | Path | Arities | None = None,
    ignore: Sequence[str] = (),
    weights: str | Sequence[int] | None = None,
    format: DataFormat | None = None,
    interventions: Any = None,
) -> Dataset:
    """Return the data: integer codes with the names of their states, and numbers.

    `source` is a file (CSV, TSV, Parquet, Arrow, GOBNILP or FIMI `.dat`; text also as `.gz`), `-`
    for standard input (CSV unless `format` says otherwise), a data frame (pandas, polars, pyarrow,
    ...), an array of rows, or a Dataset, which is returned as it is. The other options are those of
    `ReadSettings`, which may be given as a whole in `settings`. States come in the declared order
    if the column's type or `arities` declares them, else in numeric order if all are whole numbers,
    else sorted as text. A column of numbers with fractions is continuous and has no states; beside
    one, so is a column of more than 20 whole numbers. Numbers whose states are intervals in `like`
    (a Network or a Dataset) are put into these intervals, and missing values are the state
    `missing` where it has one; where it has no states but numbers, so have the data.

    >>> import pandas
    >>> dataset = read(pandas.DataFrame({"rain": ["no", "yes"], "mm": [0.2, 8.5]}), bins=2)
    >>> dataset.n, dataset.rows, dataset.states[0], dataset.codes.tolist()
    (2, 2, ('no', 'yes'), [[0, 1], [0, 1]])
    >>> more = pandas.DataFrame({"rain": ["yes", "no"], "mm": [99.5, 0.0]})
    >>> read(more, like=dataset).codes.tolist()
    [[1, 0], [1, 0]]
    """
    settings = ReadSettings.of(locals(), "settings")
    if isinstance(source, Dataset):
        return source
    columns, arities_from = _load(source, settings)
    columns, times = take_weights(columns, settings.weights)
    columns, marks = _without_marks(columns, settings)
    columns = _used(columns, settings)
    states = _states_by_name(like) if like is not None else {}
    columns = [_like(column, states.get(column.name)) for column in columns]
    if settings.arities is not None:
        declaration = _declaration(settings.arities, columns)
        columns = [_declared(column, declaration.states.get(column.name)) for column in columns]
        arities_from = declaration.label
    with_state = [name for name, its in states.items() if MISSING_STATE in its]
    set_cells = _set_cells(columns, marks, settings)
    lost = lost_rows(columns, settings, with_state)
    dropped = _number_dropped(lost, times)
    left = rows_left(lost, times)
    if left is not None:
        columns = [column._replace(codes=column.codes[left]) for column in columns]
    gaps = missing_cells(columns, settings, with_state)
    dataset = encode(columns, settings, arities_from, dropped, gaps)
    if set_cells is not None:
        set_cells = set_cells if left is None else set_cells[:, left]
        check_interventions(dataset.names, set_cells)
        dataset = replace(dataset, interventions=any_of(set_cells))
    return with_weights(dataset, times if left is None or times is None else times[left])


def _without_marks(
    columns: list[Column], settings: ReadSettings
) -> tuple[list[Column], Column | None]:
    """Return the columns without the one that names the variables that were set, and that one."""
    name = settings.interventions
    if not isinstance(name, str):
        return columns, None
    found = next((column for column in columns if column.name == name), None)
    if found is None:
        names = some((column.name for column in columns), 10)
        raise DataError(
            f"{option('interventions', name)} is no column; columns are {names}: name the one that"
            " holds the variables that were set"
        )
    return [column for column in columns if column is not found], found


def _set_cells(
    columns: Sequence[Column], marks: Column | None, settings: ReadSettings
) -> Bools | None:
    """Return (n, rows) which cells an experiment set; None if there was none."""
    names = [column.name for column in columns]
    if marks is not None:
        missing = missing_values(marks).tolist()
        values = [*map(str, marks.distinct), ""]
        texts = ["" if lacks else text for text, lacks in zip(values, missing, strict=True)]
        return set_by_names(names, marks.name, [texts[code] for code in marks.codes.tolist()])
    if not isinstance(settings.interventions, CellTable):
        return None
    table = settings.interventions.table
    if not isinstance(table, Mapping | np.ndarray | list):
        table = {column.name: _values_of(column) for column in frame_columns(table)}
    return set_by_table(names, table, len(columns[0].codes))


def _values_of(column: Column) -> AnyArray:
    """Return (rows,) the values of a column; raise if one is missing."""
    if missing_values(column)[column.codes].any():
        raise DataError(
            f"{option('interventions')}: column {column.name!r} lacks values;"
            " give a truth value for each row"
        )
    values = column.distinct if column.own is None else column.own
    return np.asarray(values)[column.codes]


def _used(columns: list[Column], settings: ReadSettings) -> list[Column]:
    """Return the columns without those to ignore; raise unless two or more with names are left."""
    names = [column.name for column in columns]
    ignored = list(chain.from_iterable(_listed(name, names) for name in settings.ignore))
    asked = [*ignored, *(settings.bins if isinstance(settings.bins, Mapping) else ())]
    if unknown := [name for name in asked if name not in names]:
        raise DataError(f"no column is named {unknown[0]!r}; columns are {some(names, 10)}")
    if "" in names:
        raise DataError(
            f"column {names.index('') + 1} of {len(names)} has no name; give every column a name"
        )
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise DataError(f"two columns are named {twice!r}; give every column its own name")
    used = [column for column in columns if column.name not in ignored]
    if len(used) < 2:
        raise DataError(
            f"the data have {len(used)} column; a network needs two or more"
            " (fields are separated by commas in .csv, by tabs in .tsv)"
        )
    if len(used[0].codes) == 0:
        raise DataError(f"the data have {len(used)} columns and no row; give one row or more")
    return used


def _listed(text: str, names: Container[str]) -> list[str]:
    """Return the column of this name; if there is none, the columns of a list with commas."""
    return [text] if text in names else [part.strip() for part in text.split(",")]


def read_evidence(
    source: Any, like: HasStates, settings: ReadSettings | None = None
) -> dict[str, Ints]:
    """Return the state of every row in each column that `like` names; -1 for a missing value."""
    if isinstance(source, Dataset):
        columns = []
        for v, (name, its) in enumerate(zip(source.names, source.states, strict=True)):
            codes = np.where(source.lacking(v), len(its), source.codes[v])
            columns.append(Column(name, its, codes, its))
    else:
        columns, _ = _load(source, settings or ReadSettings())
    states = _states_by_name(like)
    return {
        column.name: codes_in(column, states[column.name])
        for column in columns
        if column.name in states
    }


def read_number_evidence(source: Any, names: Container[str]) -> dict[str, Floats]:
    """Return the numbers of every row in each column of these names; NaN for a missing value."""
    if isinstance(source, Dataset):
        return {name: numbers_of(source, name) for name in source.names if name in names}
    columns, _ = _load(source, ReadSettings())
    return {column.name: cells_of(column) for column in columns if column.name in names}


def column_like(source: Any, name: str, values: AnyArray) -> Any:
    """Return the values as a Series for the rows of a pandas or polars frame.

    For other sources they are returned as they are."""
    if isinstance(source, str | PathLike | np.ndarray | Dataset):
        return values
    package = nw.get_native_namespace(source)
    # so that dates become a column of dates
    plain = values.tolist() if values.dtype.hasobject else values
    if package.__name__ == "pandas":
        return package.Series(plain, index=source.index, name=name)
    return package.Series(name, plain, strict=False) if package.__name__ == "polars" else values


def _number_dropped(lost: Bools | None, times: Ints | None) -> int:
    """Return how many rows are dropped, each as often as it counts."""
    if lost is None:
        return 0
    return int(lost.sum() if times is None else times[lost].sum())


def _load(source: Any, settings: ReadSettings) -> tuple[list[Column], str]:
    """Return the columns as they are in the source, and what declares their arities."""
    if not isinstance(source, str | PathLike):
        return _with_origin(frame_columns(source))
    if str(source) == "-":
        return _load_standard_input(settings.format or "csv")
    return _load_file(Path(source), settings.format)


def _load_standard_input(kind: str) -> tuple[list[Column], str]:
    """Return the columns of the standard input in this format, and what declares their arities."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"stdin.{kind}"
        path.write_bytes(sys.stdin.buffer.read())
        try:
            return _load_file(path, kind)
        except QubayesError as error:
            raise type(error)(str(error).replace(str(path), "standard input")) from None


def _load_file(path: Path, kind: str | None) -> tuple[list[Column], str]:
    """Return the columns of a file, and what declares their arities."""
    kind = kind or _FORMATS.get(ending(path))
    if kind is None:
        raise FormatError(
            f"{path} ends in {ending(path) or 'nothing'!r};"
            " give .csv, .tsv, .parquet, .arrow or .dat (text also .gz),"
            f" or say what it is with {option('format')}"
        )
    if kind in ("parquet", "arrow"):
        return _with_origin(read_frame_file(path, kind.capitalize()))
    # loads numba, for which neither a network command nor the reader of Parquet files waits
    from . import text

    if kind == ".dat":
        kind = "fimi" if text.looks_like_fimi(path) else "gobnilp"
    if kind == "gobnilp":
        return text.read_gobnilp(path), path.name
    if kind == "fimi":
        return text.read_fimi(path), "item sets"
    columns = text.read_separated(path, "," if kind == "csv" else "\t")
    return [with_values(column) for column in columns], "data"


def _with_origin(columns: list[Column]) -> tuple[list[Column], str]:
    """Return the columns of a frame, and what declares their arities."""
    typed = any(column.declared is not None for column in columns)
    return columns, "declared types" if typed else "data"


def _states_by_name(source: HasStates) -> dict[str, tuple[str, ...]]:
    return dict(zip(source.names, source.states, strict=True)) if source.states else {}


class _Declaration(NamedTuple):
    """States, or numbers of states, that were declared for columns."""

    states: Mapping[str, Any]  # by name of column
    label: str  # for `Dataset.arities_from`
    source: str  # for messages


def _declaration(arities: str | Path | Arities, columns: list[Column]) -> _Declaration:
    """Return the declaration of states for these columns; raise if it does not fit them."""
    names = [column.name for column in columns]
    if isinstance(arities, Mapping):
        found = _Declaration(arities, "declared", "the declaration")
    elif ending(arities) == ".bif":
        found = _declared_by_network(Path(arities), names)
    elif ending(arities) == ".json":
        found = _declared_by_json(Path(arities))
    else:
        raise FormatError(f"arities from {arities}; give a .bif network or a .json file")
    for name, its in found.states.items():
        if name not in names:
            raise DataError(
                f"{found.source} names {name!r}, which is not a column;"
                f" columns are {some(names, 10)}"
            )
        if not 1 <= _number_of_states(its) <= MOST_STATES:
            raise DataError(
                f"{found.source} gives {name!r} the states {shown(its)};"
                f" give a list of different texts, or a number from 1 to {MOST_STATES}"
            )
    return found


def _declared_by_network(path: Path, names: Sequence[str]) -> _Declaration:
    """Return the states that a network file gives these columns."""
    # The one import against the order of packages: a network may declare the states of data.
    from ..network import read_network

    states = _states_by_name(read_network(path))
    declared = {name: states[name] for name in names if name in states}
    if not declared:
        raise DataError(
            f"{path} declares no column of the data ({names[0]!r}, ...); give their network"
        )
    return _Declaration(declared, f"network {path.name.removesuffix('.gz')}", str(path))


def _declared_by_json(path: Path) -> _Declaration:
    """Return the states that a JSON file declares."""
    try:
        declared = parse_json(read_text(path))
    except FormatError as error:
        raise FormatError(f"{path}: {error}; give {_EXAMPLE}") from None
    if not isinstance(declared, dict):
        raise FormatError(f"{path} does not hold a JSON object; give {_EXAMPLE}")
    return _Declaration(declared, path.name, str(path))


def _number_of_states(declared: Any) -> int:
    """Return the number of the declared states; 0 unless they are a number or different texts."""
    if isinstance(declared, bool):
        return 0
    if isinstance(declared, int):
        return declared
    if not isinstance(declared, list | tuple):
        return 0
    are_texts = all(isinstance(state, str) for state in declared)
    return len(declared) if are_texts and len(set(declared)) == len(declared) else 0


def _like(column: Column, states: Sequence[str] | None) -> Column:
    """Return the column as numbers if there are no states, or with these if they are intervals.

    One that declares its states stays as it is."""
    if column.declared is not None or states is None:
        return column
    return _declared(column._replace(continuous=not states), Intervals.of(states))


def _declared(column: Column, states: Sequence[str] | int | None) -> Column:
    """Return the column with these states, if any; intervals that it already has stay."""
    if states is None or isinstance(column.declared, Intervals):
        return column
    if isinstance(states, int):
        return column._replace(declared=states)
    own = Intervals.of(states) if column.declared is None else None
    return column._replace(declared=own or tuple(states))
