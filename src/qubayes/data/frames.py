"""Data frames, Parquet and Arrow files to columns."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from ..errors import DataError, FormatError
from ..files import read_bytes
from .columns import Column


def read_parquet(path: Path) -> list[Column]:
    """The columns of a Parquet file."""
    return _read_file(path, pl.read_parquet, "Parquet")


def read_arrow(path: Path) -> list[Column]:
    """The columns of an Arrow (Feather, IPC) file or stream."""
    try:
        return _read_file(path, pl.read_ipc, "Arrow")
    except FormatError:
        with path.open("rb") as file:
            if file.read(6) == b"ARROW1":
                raise
        return _read_file(path, pl.read_ipc_stream, "Arrow")


def _read_file(path: Path, reader: Any, kind: str) -> list[Column]:
    if path.suffix.lower() == ".gz":
        raise FormatError(f"{path}: {kind} files are compressed inside; unpack it first")
    try:
        if not path.is_file():
            read_bytes(path)  # says what is wrong
        with path.open("rb") as file:
            frame = reader(file)
    except OSError as error:
        raise FormatError(f"cannot read {path}: {error.strerror or error}") from None
    except FormatError:
        raise
    except BaseException as error:  # polars panics on some broken files, and a panic is no Exception
        if isinstance(error, KeyboardInterrupt | SystemExit | MemoryError):
            raise
        raise FormatError(f"{path} is not a whole {kind} file; write it again ({_first_line(error)})") from None
    return list(_polars_columns(frame))


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:120]


def frame_columns(frame: Any) -> list[Column]:
    """The columns of a data frame of any kind that narwhals knows (pandas, polars, pyarrow, ...)."""
    try:
        table = nw.from_native(frame)
        table = table.collect() if isinstance(table, nw.LazyFrame) else table
    except TypeError:
        raise DataError(
            f"data of type {type(frame).__name__}; give a file, a data frame (pandas, polars, pyarrow) or a Dataset"
        ) from None
    native = table.to_native()
    if isinstance(native, pl.DataFrame):
        return list(_polars_columns(native))
    return [_frame_column(str(name), table[:, i]) for i, name in enumerate(table.columns)]


def _frame_column(name: str, series: nw.Series[Any]) -> Column:
    """A column of a frame that is not polars."""
    if series.dtype in (nw.Categorical, nw.Enum):
        categories = [_as_text(value) for value in series.cat.get_categories().to_list()]
        values = [None if _is_none(value) else _as_text(value) for value in series.to_list()]
        column = _text_column(pl.Series(name, values, dtype=pl.String))
        return column._replace(declared=tuple(categories))
    if series.dtype.is_numeric() and not series.dtype.is_decimal() and series.null_count() == 0:
        return _polars_column(pl.Series(name, np.ascontiguousarray(series.to_numpy())))
    values = [None if _is_none(value) else value for value in series.to_list()]
    try:
        return _polars_column(pl.Series(name, values))
    except (TypeError, pl.exceptions.PolarsError):
        raise DataError(f"column {name!r} mixes values of several types; convert it to text first") from None


def _is_none(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value)


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value == int(value) else str(value)


def _polars_columns(frame: pl.DataFrame) -> Iterator[Column]:
    for series in frame.iter_columns():
        yield _polars_column(series)


def _polars_column(series: pl.Series) -> Column:
    kind = series.dtype
    if isinstance(kind, pl.Enum):
        return _text_column(series.cast(pl.String))._replace(declared=tuple(kind.categories.to_list()))
    if kind in (pl.String, pl.Categorical, pl.Boolean) or kind.is_temporal() or kind == pl.Null:
        return _text_column(series.cast(pl.String))
    if kind.is_integer() and kind not in (pl.Int128,):
        return _number_column(series.cast(pl.UInt64 if kind == pl.UInt64 else pl.Int64))
    if kind.is_numeric():
        return _number_column(series.cast(pl.Float64).fill_nan(None))
    raise DataError(f"column {series.name!r} is of type {kind}; convert it to text or numbers first")


def _text_column(series: pl.Series) -> Column:
    distinct = series.unique().drop_nulls().sort()
    codes = series.cast(pl.Enum(distinct)).to_physical().cast(pl.UInt32).fill_null(len(distinct))
    return Column(series.name, distinct.to_list(), codes.to_numpy())


def _number_column(series: pl.Series) -> Column:
    distinct = series.unique().drop_nulls().sort().to_numpy()
    nothing = series.is_null().to_numpy()
    filled = series.fill_null(0).to_numpy()
    codes = np.searchsorted(distinct, filled).astype(np.uint32)
    codes[nothing] = len(distinct)
    return Column(series.name, distinct, codes)
