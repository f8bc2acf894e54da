"""Data frames, Parquet and Arrow files to columns.

Frames of all kinds come in through narwhals. Files are read by polars in a process of its own, since polars ends its
process on some broken files and never returns from others. That child sends one column after the other: a line of JSON,
then its arrays.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

import numpy as np

from ..foundation.arrays import AnyArray
from ..foundation.environment import limit_address_space, optional
from ..foundation.environment import narwhals as nw
from ..foundation.errors import DataError, FormatError, QubayesError
from ..foundation.files import opened
from .columns import Column, one_spelling, text_of

_ERRORS = {kind.__name__: kind for kind in (DataError, FormatError)}
_SECONDS, _BYTES_PER_SECOND = 60.0, 1_000_000  # time that a file may take: at least, and for its size
_CHILD = "import sys; from qubayes.data.frames import send_file; send_file(*sys.argv[1:])"


def frame_columns(frame: Any) -> list[Column]:
    """Return the columns of a data frame of any kind that narwhals knows (pandas, polars, pyarrow, ...)."""
    try:
        table = nw.from_native(frame)
        table = table.collect() if isinstance(table, nw.LazyFrame) else table
        names = table.columns
    except TypeError:
        raise DataError(
            f"data of type {type(frame).__name__}; give a file, a data frame (pandas, polars, pyarrow) or a Dataset"
        ) from None
    except ValueError as error:  # names that repeat
        raise DataError(f"the data frame cannot be read: {' '.join(str(error).split())[:200]}") from None
    return [_column("" if _is_missing(name) else str(name), table[:, i]) for i, name in enumerate(names)]


def array_columns(array: AnyArray) -> list[Column]:
    """Return the columns x0, x1, ... of an array of rows."""
    if array.ndim != 2:
        raise DataError(f"an array of shape {array.shape}; give rows and columns")
    return [
        _number_column(f"x{i}", values, np.zeros(len(values), np.bool_))
        if values.dtype.kind in "iuf"
        else _object_column(f"x{i}", values.tolist())
        for i, values in enumerate(array.T)
    ]


def _column(name: str, series: "nw.Series[Any]") -> Column:
    kind = series.dtype
    as_objects = nw.Object, nw.Unknown, nw.Date, nw.Datetime, nw.Time, nw.Decimal, nw.Int128, nw.UInt128
    if kind == nw.String:
        return _text_column(name, series)
    if kind in (nw.Categorical, nw.Enum):
        return _categorical_column(name, series)
    missing = series.is_null().to_numpy()
    if kind == nw.Boolean:
        codes = np.where(missing, 2, series.fill_null(False).to_numpy())
        return Column(name, ("false", "true"), codes.astype(np.uint8))
    if (kind.is_numeric() and kind not in as_objects) or (kind == nw.Unknown and series.to_numpy().dtype.kind == "f"):
        return _number_column(name, series.fill_null(0).to_numpy(), missing)
    if kind in as_objects:
        return _object_column(name, [None if m else value for value, m in zip(series.to_list(), missing, strict=True)])
    raise DataError(f"column {name!r} is of type {kind}; convert it to text or numbers first")


def _text_column(name: str, series: "nw.Series[Any]") -> Column:
    try:
        distinct = sorted(series.unique().drop_nulls().to_list())
    except UnicodeEncodeError:  # of pandas
        raise DataError(f"column {name!r} holds a lone surrogate; replace it by Unicode text") from None
    if not distinct:
        return Column(name, (), np.zeros(len(series), np.uint8))
    codes = series.replace_strict(distinct, range(len(distinct)), return_dtype=nw.UInt32).fill_null(len(distinct))
    return Column(name, distinct, codes.to_numpy().astype(np.min_scalar_type(len(distinct))))


def _categorical_column(name: str, series: "nw.Series[Any]") -> Column:
    """Return a column of categories, which are its declared states; a Categorical of polars declares none.

    narwhals gives only the categories that occur.
    """
    native = series.to_native()
    if hasattr(native, "cat") and hasattr(native.cat, "categories"):  # pandas, where categories may be numbers
        values = native.cat.categories.tolist()
        texts = tuple(text_of(name, value) for value in values)
        if not any(isinstance(value, str) for value in values):  # texts are declared as they are
            texts = tuple(one_spelling(list(texts)))
        if len(set(texts)) < len(texts):
            raise DataError(f"column {name!r} has categories that are the same as text; rename them")
        codes = np.asarray(native.cat.codes, dtype=np.int64)
        return Column(name, texts, np.where(codes < 0, len(texts), codes).astype(np.min_scalar_type(len(texts))), texts)
    column = _text_column(name, series.cast(nw.String))
    if hasattr(native, "unify_dictionaries"):  # pyarrow
        chunks = native.unify_dictionaries().chunks
        values = chunks[0].dictionary.to_pylist() if chunks else []
        return column._replace(declared=tuple(text_of(name, value) for value in values))
    return column._replace(declared=tuple(getattr(series.dtype, "categories", ())) or None)


def _number_column(name: str, values: AnyArray, missing: AnyArray) -> Column:
    """Return a column of int64, uint64 or float64 numbers; NaN is missing."""
    if values.dtype.kind == "f":
        with np.errstate(over="ignore"):  # a longdouble becomes infinite, which is refused later
            values = values.astype(np.float64)
        missing = missing | np.isnan(values)
    else:
        values = values.astype(np.uint64 if values.dtype == np.uint64 else np.int64)
    distinct, places = np.unique(values[~missing], return_inverse=True)
    codes = np.full(len(values), len(distinct), np.min_scalar_type(len(distinct)))
    codes[~missing] = places
    return Column(name, distinct, codes)


def _object_column(name: str, values: list[Any]) -> Column:
    """Return a column of Python objects of one type: as numbers, or as their text."""
    values = [None if _is_missing(v) else v.item() if isinstance(v, np.generic) else v for v in values]
    kinds = {type(value) for value in values if value is not None}
    if kinds and kinds != {int} and kinds <= {int, float, Decimal}:
        try:
            numbers = np.array([np.nan if value is None else float(value) for value in values])
        except (OverflowError, ValueError):
            raise DataError(f"column {name!r} holds infinite values; replace them or remove their rows") from None
        return _number_column(name, numbers, np.isnan(numbers))
    if len(kinds) > 1:
        raise DataError(f"column {name!r} mixes values of several types; convert it to text first")
    texts = [None if value is None else text_of(name, value) for value in values]
    index = {text: code for code, text in enumerate(sorted({text for text in texts if text is not None}))}
    codes = [len(index) if text is None else index[text] for text in texts]
    return Column(name, list(index), np.array(codes, np.min_scalar_type(len(index))))


def _is_missing(value: Any) -> bool:
    """Return True for None and for a value that is not equal to itself (NaN, NaT, NA of pandas)."""
    if value is None:
        return True
    try:
        return not bool(value == value)
    except TypeError:  # NA of pandas is neither true nor false
        return True
    except Exception:  # an array in a cell
        return False


# Parquet and Arrow files


def read_frame_file(path: Path, kind: str) -> list[Column]:
    """Return the columns of a Parquet or Arrow file; raise FormatError if its reader dies or does not return."""
    if path.suffix.lower() == ".gz":
        raise FormatError(f"{path}: Parquet and Arrow files are compressed inside; unpack this one first")
    with opened(path) as file:
        size = os.fstat(file.fileno()).st_size
    if find_spec("polars") is None:
        optional("polars", f"a file in the {kind} format", "frames")  # raises; imported by the child alone
    command = [sys.executable, "-P", "-c", _CHILD, kind, str(path)]
    nothing = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=nothing, stdout=subprocess.PIPE, stderr=nothing) as child:
        assert child.stdout is not None
        timer = threading.Timer(_SECONDS + size / _BYTES_PER_SECOND, child.kill)
        timer.start()
        try:
            return list(_received(child.stdout))
        except QubayesError:
            raise
        except ValueError:  # it ended too early
            raise FormatError(f"{path} is not a whole {kind} file: its reader failed; write it again") from None
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
        yield Column(header["name"], distinct, codes, None if declared is None else tuple(declared))


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
            header = {
                "name": column.name,
                "declared": column.declared,
                "distinct": len(column.distinct) if numbers else list(column.distinct),
                "numbers": numbers[0].dtype.str if numbers else None,
                "codes": column.codes.dtype.str,
                "rows": len(column.codes),
            }
            send(header, *numbers, column.codes)
        send({})
    except QubayesError as error:
        send({"error": type(error).__name__, "message": str(error)})
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # polars panics on some broken files, and a panic is not an Exception
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
                yield from frame_columns(pl.read_parquet(file, columns=[name]))
        return
    with path.open("rb") as file:
        is_file = file.read(6) == b"ARROW1"
    with path.open("rb") as file:  # opened again: polars reads from the position of the system
        frame = pl.read_ipc(file) if is_file else pl.read_ipc_stream(file)
    for series in frame.iter_columns():
        yield from frame_columns(series.to_frame())
