"""Files and data frames to a Dataset.

Parquet and Arrow files are read by polars in a process of its own, since polars ends its process on
some broken files and never returns from others. That child sends one column after the other: a line
of JSON, then its arrays."""

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, Protocol

import numpy as np

from ..foundation.arrays import AnyArray, Ints
from ..foundation.environment import limit_address_space, optional
from ..foundation.environment import narwhals as nw
from ..foundation.errors import DataError, FormatError, QubayesError, option, some
from ..foundation.files import ending, opened, parse_json, read_text, shown
from ..settings import Arities, BinMethod, Bins, DataFormat, Missing, ReadSettings
from .columns import (
    MISSING_STATE,
    Column,
    Intervals,
    array_of,
    codes_in,
    complete_rows,
    encode,
    is_missing,
    one_spelling,
    text_of,
    with_values,
)
from .dataset import MOST_STATES, Dataset

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
_ERRORS = {kind.__name__: kind for kind in (DataError, FormatError)}
# time that a file may take: at least, and for its size
_SECONDS, _BYTES_PER_SECOND = 60.0, 1_000_000
_CHILD = "import sys; from qubayes.data.read import send_file; send_file(*sys.argv[1:])"
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
    bins: Bins | None = None,
    bin_method: BinMethod = "quantile",
    arities: str | Path | Arities | None = None,
    ignore: Sequence[str] = (),
    format: DataFormat | None = None,
) -> Dataset:
    """Return the data as integer codes with the names of their states.

    `source` is a file (CSV, TSV, Parquet, Arrow, GOBNILP or FIMI `.dat`; text also as `.gz`), `-`
    for standard input (CSV unless `format` says otherwise), a data frame (pandas, polars, pyarrow,
    ...), an array of rows, or a Dataset, which is returned as it is. The other options are those of
    `ReadSettings`, which may be given as a whole in `settings`. States come in the declared order
    if the column's type or `arities` declares them, else in numeric order if all are whole numbers,
    else sorted as text. Numbers whose states are intervals in `like` (a Network or a Dataset) are
    put into these intervals, and missing values are the state `missing` where it has one.

    >>> import pandas
    >>> dataset = read(pandas.DataFrame({"rain": ["no", "yes"], "mm": [0.2, 8.5]}), bins=2)
    >>> dataset.n, dataset.rows, dataset.states[0], dataset.codes.tolist()
    (2, 2, ('no', 'yes'), [[0, 1], [0, 1]])
    >>> read(pandas.DataFrame({"rain": ["yes", "no"], "mm": [99.5, 0.0]}), like=dataset).codes.tolist()
    [[1, 0], [1, 0]]
    """
    settings = ReadSettings.of(locals(), "settings")
    if isinstance(source, Dataset):
        return source
    columns, arities_from = _load(source, settings)
    names = [column.name for column in columns]
    ignored = [part for name in settings.ignore for part in _listed(name, names)]
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
    columns = [column for column in columns if column.name not in ignored]
    if len(columns) < 2:
        raise DataError(
            f"the data have {len(columns)} column; a network needs two or more (fields are separated by commas in .csv,"
            " by tabs in .tsv)"
        )
    if len(columns[0].codes) == 0:
        raise DataError(f"the data have {len(columns)} columns and no row; give one row or more")
    states = _states_by_name(like) if like is not None else {}
    columns = [
        column
        if column.declared is not None
        else _declared(column, Intervals.of(states.get(column.name, ())))
        for column in columns
    ]
    if settings.arities is not None:
        columns, arities_from = _declare(columns, settings.arities)
    with_state = [name for name, its in states.items() if MISSING_STATE in its]
    rows, columns = len(columns[0].codes), complete_rows(columns, settings, with_state)
    return encode(columns, settings, arities_from, rows - len(columns[0].codes))


def _listed(text: str, names: Container[str]) -> list[str]:
    """Return the column of this name; if there is none, the columns of a list with commas."""
    return [text] if text in names else [part.strip() for part in text.split(",")]


def read_evidence(
    source: Any, like: HasStates, settings: ReadSettings | None = None
) -> dict[str, Ints]:
    """Return the state of every row in each column that `like` names, in its states; -1 where the value is missing."""
    if isinstance(source, Dataset):
        columns = [
            Column(*column)
            for column in zip(source.names, source.states, source.codes, source.states, strict=True)
        ]
    else:
        columns, _ = _load(source, settings or ReadSettings())
    states = _states_by_name(like)
    return {
        column.name: codes_in(column, states[column.name])
        for column in columns
        if column.name in states
    }


def column_like(source: Any, name: str, values: AnyArray) -> Any:
    """Return the values as a Series beside the rows of a pandas or polars frame; as they are for other sources."""
    if isinstance(source, str | PathLike | np.ndarray | Dataset):
        return values
    package = nw.get_native_namespace(source)
    # so that dates become a column of dates
    plain = values.tolist() if values.dtype.hasobject else values
    if package.__name__ == "pandas":
        return package.Series(plain, index=source.index, name=name)
    return package.Series(name, plain, strict=False) if package.__name__ == "polars" else values


def _load(source: Any, settings: ReadSettings) -> tuple[list[Column], str]:
    """Return the columns as they are in the source, and what declares their arities."""
    if not isinstance(source, str | PathLike):
        columns = _frame_columns(source)
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
            columns = _read_frame_file(path, kind.capitalize())
        else:
            # loads numba, for which neither a network command nor the reader of Parquet files waits
            from . import text

            if kind == ".dat":
                kind = "fimi" if text.looks_like_fimi(path) else "gobnilp"
            if kind == "gobnilp":
                return text.read_gobnilp(path), path.name
            if kind == "fimi":
                return text.read_fimi(path), "item sets"
            columns = [
                with_values(column)
                for column in text.read_separated(path, "," if kind == "csv" else "\t")
            ]
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
        # The one import against the order of the rooms: a network may declare the states of the
        # data.
        from ..network import read_network

        states = _states_by_name(read_network(path))
        declared = {name: states[name] for name in names if name in states}
        if not declared:
            raise DataError(
                f"{path} declares no column of the data ({names[0]!r}, ...); give their network"
            )
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
            raise DataError(
                f"{source} names {name!r}, which is not a column; columns are {some(names, 10)}"
            )
        count = its if isinstance(its, int) and not isinstance(its, bool) else 0
        if (
            isinstance(its, list | tuple)
            and all(isinstance(state, str) for state in its)
            and len(set(its)) == len(its)
        ):
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


def _frame_columns(frame: Any) -> list[Column]:
    """Return the columns of an array (x0, x1, ...) or of a frame that narwhals knows (pandas, polars, pyarrow)."""
    if isinstance(frame, np.ndarray):
        if frame.ndim != 2:
            raise DataError(f"an array of shape {frame.shape}; give rows and columns")
        masks, values = np.ma.getmaskarray(frame).T, np.ma.getdata(frame).T
        return [
            _array_column(f"x{i}", *column)
            for i, column in enumerate(zip(values, masks, strict=True))
        ]
    try:
        table = nw.from_native(frame)
        table = table.collect() if isinstance(table, nw.LazyFrame) else table
        names = table.columns
    except TypeError:
        raise DataError(
            f"data of type {type(frame).__name__}; give a file, a data frame (pandas, polars, pyarrow) or a Dataset"
        ) from None
    except ValueError as error:  # names that repeat
        raise DataError(
            f"the data frame cannot be read: {' '.join(str(error).split())[:200]}"
        ) from None
    return [_foreign_column(name, table, i) for i, name in enumerate(names)]


def _array_column(name: str, values: AnyArray, missing: AnyArray) -> Column:
    """Return a column of an array, whose masked values are missing."""
    values = np.asarray(values)
    if values.dtype.kind in "iuf":
        return _number_column(name, values, missing)
    cells = zip(values.tolist(), missing.tolist(), strict=True)
    return _object_column(name, [None if is_masked else value for value, is_masked in cells])


def _foreign_column(name: Any, table: "nw.DataFrame[Any]", number: int) -> Column:
    """Return a column of a frame; its names and cells may be objects of any kind."""
    try:
        text = "" if is_missing(name) else str(name)
    except Exception:  # of a class that is not ours, or a number with thousands of digits
        raise DataError(
            f"the name of column {number} is a {type(name).__name__}; rename it"
        ) from None
    try:
        return _frame_column(text, table[:, number])
    except (QubayesError, MemoryError):
        raise
    # pandas, polars and pyarrow raise errors of many kinds for odd cells
    except Exception as error:
        reason = shown(" ".join(str(error).split()), 100)
        raise DataError(
            f"column {text!r} cannot be read ({type(error).__name__}: {reason}); convert it to text or numbers first"
        ) from error


def _frame_column(name: str, series: "nw.Series[Any]") -> Column:
    kind = series.dtype
    as_objects = (
        nw.Object,
        nw.Unknown,
        nw.Date,
        nw.Datetime,
        nw.Time,
        nw.Decimal,
        nw.Int128,
        nw.UInt128,
    )
    if kind == nw.String:
        return _text_column(name, series)
    if kind in (nw.Categorical, nw.Enum):
        return _categorical_column(name, series)
    missing = series.is_null().to_numpy()
    if kind == nw.Boolean:
        codes = np.where(missing, 2, series.fill_null(False).to_numpy())
        return Column(name, ("false", "true"), codes.astype(np.uint8), own=np.array([False, True]))
    if kind.is_numeric() and kind not in as_objects:
        return _number_column(name, series.fill_null(0).to_numpy(), missing)
    if kind in as_objects:
        return _object_column(
            name, [None if m else value for value, m in zip(series.to_list(), missing, strict=True)]
        )
    raise DataError(f"column {name!r} is of type {kind}; convert it to text or numbers first")


def _text_column(name: str, series: "nw.Series[Any]") -> Column:
    try:
        distinct = sorted(series.unique().drop_nulls().to_list())
    except UnicodeEncodeError:  # of pandas
        raise DataError(
            f"column {name!r} holds a lone surrogate; replace it by Unicode text"
        ) from None
    if not distinct:
        return Column(name, (), np.zeros(len(series), np.uint8))
    codes = series.replace_strict(distinct, range(len(distinct)), return_dtype=nw.UInt32).fill_null(
        len(distinct)
    )
    return Column(name, distinct, codes.to_numpy().astype(np.min_scalar_type(len(distinct))))


def _categorical_column(name: str, series: "nw.Series[Any]") -> Column:
    """Return a column of categories, which are its declared states; a Categorical of polars declares none.

    narwhals gives only the categories that occur.
    """
    native = series.to_native()
    # pandas, where categories may be numbers
    if hasattr(native, "cat") and hasattr(native.cat, "categories"):
        values = native.cat.categories.tolist()
        texts = tuple(text_of(name, value) for value in values)
        if not any(isinstance(value, str) for value in values):  # texts are declared as they are
            texts = tuple(one_spelling(list(texts)))
        if len(set(texts)) < len(texts):
            raise DataError(
                f"column {name!r} has categories that are the same as text; rename them"
            )
        codes = np.asarray(native.cat.codes, dtype=np.int64)
        codes = np.where(codes < 0, len(texts), codes).astype(np.min_scalar_type(len(texts)))
        return Column(name, texts, codes, texts, _own(values))
    column = _text_column(name, series.cast(nw.String))
    if hasattr(native, "unify_dictionaries"):  # pyarrow
        chunks = native.unify_dictionaries().chunks
        values = chunks[0].dictionary.to_pylist() if chunks else []
        declared = tuple(text_of(name, value) for value in values)
        value_of = dict(zip(declared, values, strict=True))
        return column._replace(
            declared=declared, own=_own([value_of.get(text, text) for text in column.distinct])
        )
    return column._replace(declared=tuple(getattr(series.dtype, "categories", ())) or None)


def _number_column(name: str, values: AnyArray, missing: AnyArray) -> Column:
    """Return a column of int64, uint64 or float64 numbers; NaN is missing."""
    dtype = values.dtype
    if values.dtype.kind == "f":
        with np.errstate(over="ignore"):  # a longdouble becomes infinite, which is refused later
            values = values.astype(np.float64)
        missing = missing | np.isnan(values)
    else:
        values = values.astype(np.uint64 if values.dtype == np.uint64 else np.int64)
    distinct, places = np.unique(values[~missing], return_inverse=True)
    codes = np.full(len(values), len(distinct), np.min_scalar_type(len(distinct)))
    codes[~missing] = places
    return Column(name, distinct, codes, own=distinct.astype(dtype))


def _object_column(name: str, values: list[Any]) -> Column:
    """Return a column of Python objects of one type: as numbers, or as their text."""
    values = [
        None if is_missing(v) else v.item() if isinstance(v, np.generic) else v for v in values
    ]
    kinds = {type(value) for value in values if value is not None}
    if kinds and kinds != {int} and kinds <= {int, float, Decimal}:
        try:
            numbers = np.array([np.nan if value is None else float(value) for value in values])
        except (OverflowError, ValueError):
            raise DataError(
                f"column {name!r} holds infinite values; replace them or remove their rows"
            ) from None
        return _number_column(name, numbers, np.isnan(numbers))
    if len(kinds) > 1:
        raise DataError(f"column {name!r} mixes values of several types; convert it to text first")
    texts = [None if value is None else text_of(name, value) for value in values]
    value_of = {text: value for text, value in zip(texts, values, strict=True) if text is not None}
    index = {text: code for code, text in enumerate(sorted(value_of))}
    codes = np.array(
        [len(index) if text is None else index[text] for text in texts],
        np.min_scalar_type(len(index)),
    )
    return Column(name, list(index), codes, own=_own([value_of[text] for text in index]))


def _own(values: Sequence[Any]) -> AnyArray | None:
    """Return the values of a column as an array; None for texts."""
    return None if all(isinstance(value, str) for value in values) else array_of(values)


def _read_frame_file(path: Path, kind: str) -> list[Column]:
    """Return the columns of a Parquet or Arrow file; raise FormatError if its reader dies or does not return."""
    if path.suffix.lower() == ".gz":
        raise FormatError(
            f"{path}: Parquet and Arrow files are compressed inside; unpack this one first"
        )
    with opened(path) as file:
        size = os.fstat(file.fileno()).st_size
    if find_spec("polars") is None:
        # raises; imported by the child alone
        optional("polars", f"a file in the {kind} format", "frames")
    command = [sys.executable, "-P", "-c", _CHILD, kind, str(path)]
    nothing = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=nothing, stdout=subprocess.PIPE, stderr=nothing) as child:
        assert child.stdout is not None
        seconds, late = _SECONDS + size / _BYTES_PER_SECOND, threading.Event()

        def give_up() -> None:
            late.set()
            child.kill()

        timer = threading.Timer(seconds, give_up)
        timer.start()
        try:
            return list(_received(child.stdout))
        except QubayesError:
            raise
        except ValueError:  # it ended too early
            if late.is_set():
                raise FormatError(
                    f"{path} was not read in {seconds:.0f} s; if its disk is slow, copy it to another, or else write it"
                    " again: it may be damaged"
                ) from None
            raise FormatError(
                f"{path} is not a whole {kind} file: its reader failed; write it again"
            ) from None
        finally:
            timer.cancel()
            child.kill()


def _received(stream: IO[bytes]) -> Iterator[Column]:
    """Yield the columns that the child sends; raise its error, or ValueError if it ends before its last message."""

    def array(kind: str, length: int) -> AnyArray:
        return np.frombuffer(stream.read(length * np.dtype(kind).itemsize), kind, length)

    while header := json.loads(stream.readline()):
        if "error" in header:
            raise _ERRORS.get(header["error"], QubayesError)(header["message"])
        distinct, declared = header["distinct"], header["declared"]
        if isinstance(distinct, int):
            distinct = array(header["numbers"], distinct)
        codes = array(header["codes"], header["rows"])
        own = array(header["own"], len(distinct)) if header["own"] else None
        yield Column(
            header["name"], distinct, codes, None if declared is None else tuple(declared), own
        )


def send_file(kind: str, path: str) -> None:
    """Read the file and write its columns, or what is wrong with it, to the standard output (in the child)."""
    limit_address_space()
    stream = sys.stdout.buffer

    def send(header: dict[str, Any], *arrays: AnyArray) -> None:
        stream.write(json.dumps(header).encode() + b"\n")
        for array in arrays:
            stream.write(np.ascontiguousarray(array).data)

    try:
        for column in _file_columns(kind, Path(path)):
            numbers = [column.distinct] if isinstance(column.distinct, np.ndarray) else []
            own = [] if column.own is None or column.own.dtype.hasobject else [column.own]
            header = {
                "name": column.name,
                "declared": column.declared,
                "distinct": len(column.distinct) if numbers else list(column.distinct),
                "numbers": numbers[0].dtype.str if numbers else None,
                "codes": column.codes.dtype.str,
                "own": own[0].dtype.str if own else None,
                "rows": len(column.codes),
            }
            send(header, *numbers, column.codes, *own)
        send({})
    except QubayesError as error:
        send({"error": type(error).__name__, "message": str(error)})
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    # polars panics on some broken files, and a panic is not an Exception
    except BaseException as error:
        reason = " ".join((str(error) or type(error).__name__).split())[:120]
        message = f"{path} is not a whole {kind} file; write it again ({reason})"
        send({"error": FormatError.__name__, "message": message})
    stream.flush()


def _file_columns(kind: str, path: Path) -> Iterator[Column]:
    """Yield the columns of a Parquet file, read one by one, or of an Arrow (Feather, IPC) file or stream."""
    import polars as pl

    if kind == "Parquet":
        with path.open("rb") as file:
            names = list(pl.read_parquet_schema(file))
        for name in names:
            with path.open("rb") as file:
                yield from _frame_columns(pl.read_parquet(file, columns=[name]))
        return
    with path.open("rb") as file:
        is_file = file.read(6) == b"ARROW1"
    with path.open("rb") as file:  # opened again: polars reads from the position of the system
        frame = pl.read_ipc(file) if is_file else pl.read_ipc_stream(file)
    for series in frame.iter_columns():
        yield from _frame_columns(series.to_frame())
