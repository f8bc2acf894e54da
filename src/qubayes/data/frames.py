"""Data frames, Parquet and Arrow files to columns."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import narwhals as nw
import numpy as np
import polars as pl

from ..foundation.errors import DataError, FormatError, QubayesError
from ..foundation.files import read_bytes
from .columns import Column

_NUMPY_SCALARS = (np.number, np.bool_, np.str_)


def parquet_columns(path: Path) -> Iterator[Column]:
    """The columns of a Parquet file, read one by one."""
    with _opened(path) as file, _guarded(path, "Parquet"):
        names = list(pl.read_parquet_schema(file))
    for name in names:
        yield _parquet_column(path, name)


def _parquet_column(path: Path, name: str) -> Column:
    with _opened(path) as file, _guarded(path, "Parquet"):
        return _polars_column(pl.read_parquet(file, columns=[name])[name])


def arrow_columns(path: Path) -> Iterator[Column]:
    """The columns of an Arrow (Feather, IPC) file or stream."""
    with _opened(path) as file:
        is_file = file.read(6) == b"ARROW1"
    with _opened(path) as file, _guarded(path, "Arrow"):  # opened again: polars reads from where the system stands
        frame = pl.read_ipc(file) if is_file else pl.read_ipc_stream(file)
    for series in frame.iter_columns():
        with _guarded(path, "Arrow"):
            column = _polars_column(series)
        yield column


@contextmanager
def _guarded(path: Path, kind: str) -> Iterator[None]:
    """Turn what polars says of a broken file into a FormatError."""
    try:
        yield
    except (QubayesError, KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # polars panics on some broken files, and a panic is no Exception
        reason = " ".join((str(error) or type(error).__name__).split())[:120]
        raise FormatError(f"{path} is not a whole {kind} file; write it again ({reason})") from None


def _opened(path: Path) -> IO[bytes]:
    if path.suffix.lower() == ".gz":
        raise FormatError(f"{path}: Parquet and Arrow files are compressed inside; unpack this one first")
    try:
        return path.open("rb")
    except (OSError, ValueError):
        read_bytes(path)  # says what is wrong
        raise


def frame_columns(frame: Any) -> list[Column]:
    """The columns of a data frame of any kind that narwhals knows (pandas, polars, pyarrow, ...)."""
    try:
        table = nw.from_native(frame)
        table = table.collect() if isinstance(table, nw.LazyFrame) else table
        native, names = table.to_native(), table.columns
    except TypeError:
        raise DataError(
            f"data of type {type(frame).__name__}; give a file, a data frame (pandas, polars, pyarrow) or a Dataset"
        ) from None
    except ValueError as error:  # names that repeat
        raise DataError(f"the data frame cannot be read: {' '.join(str(error).split())[:200]}") from None
    if isinstance(native, pl.DataFrame):
        return [_polars_column(series) for series in native.iter_columns()]
    return [_frame_column(str(name), table[:, i]) for i, name in enumerate(names)]


def _frame_column(name: str, series: nw.Series[Any]) -> Column:
    """A column of a frame that is not polars."""
    if series.dtype.is_numeric() and series.dtype != nw.Decimal and series.null_count() == 0:
        return _polars_column(pl.Series(name, np.ascontiguousarray(series.to_numpy())))
    nulls = series.is_null().to_list()
    values = [None if null else value for value, null in zip(series.to_list(), nulls, strict=True)]
    if series.dtype in (nw.Categorical, nw.Enum):
        texts = [None if value is None else _as_text(value) for value in values]
        column = _text_column(pl.Series(name, texts, dtype=pl.String))
        return column._replace(declared=_categories(series.to_native()))
    return _polars_column(_typed(name, values))


def _typed(name: str, values: list[Any]) -> pl.Series:
    """Python objects as a column of the type they share; as text if polars has no such type."""
    values = [value.item() if isinstance(value, _NUMPY_SCALARS) else value for value in values]
    kinds = {type(value) for value in values if value is not None}
    try:
        # Unless told, polars takes the type of the first value, and refuses 1, 2.5 where it takes 2.5, 1.
        series = pl.Series(name, values, dtype=pl.Float64 if kinds == {int, float} else None)
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        raise DataError(f"column {name!r} mixes values of several types; convert it to text first") from None
    if series.dtype != pl.Object:
        return series
    return pl.Series(name, [None if value is None else _as_text(value) for value in values], dtype=pl.String)


def _is_nothing(value: Any) -> bool:
    """Whether an object stands for no value: None, and what is not equal to itself (NaN, NaT, NA of pandas)."""
    if value is None:
        return True
    try:
        return not bool(value == value)
    except TypeError:  # NA of pandas is neither
        return True
    except ValueError:  # an array in a cell
        return False


def _categories(native: Any) -> tuple[str, ...] | None:
    """All categories of a categorical column of pandas or pyarrow in their order; None for other kinds of frame.

    narwhals gives only those that occur.
    """
    if hasattr(native, "cat"):
        return tuple(_as_text(value) for value in native.cat.categories.tolist())
    if hasattr(native, "unify_dictionaries"):
        chunks = native.unify_dictionaries().chunks
        return tuple(_as_text(value) for value in chunks[0].dictionary.to_pylist()) if chunks else None
    return None


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _polars_column(series: pl.Series) -> Column:
    kind = series.dtype
    if kind == pl.Object:
        values = [None if _is_nothing(value) else value for value in series.to_list()]
        return _polars_column(_typed(series.name, values))
    if isinstance(kind, pl.Enum):
        return _text_column(series.cast(pl.String))._replace(declared=tuple(kind.categories.to_list()))
    if kind in (pl.String, pl.Categorical, pl.Boolean, pl.Date, pl.Datetime, pl.Time, pl.Null):
        return _text_column(series.cast(pl.String))
    if kind.is_integer() and "128" in str(kind):
        return _text_column(series.cast(pl.String))
    if kind.is_integer():
        return _number_column(series.cast(pl.UInt64 if kind == pl.UInt64 else pl.Int64))
    if kind.is_numeric():
        return _number_column(series.cast(pl.Float64).fill_nan(None))
    raise DataError(f"column {series.name!r} is of type {kind}; convert it to text or numbers first")


def _text_column(series: pl.Series) -> Column:
    distinct = series.unique().drop_nulls().sort()
    codes = series.cast(pl.Enum(distinct)).to_physical()
    kind = np.min_scalar_type(len(distinct))
    if series.null_count():
        codes = codes.cast(pl.UInt32).fill_null(len(distinct))
    return Column(series.name, distinct.to_list(), codes.to_numpy().astype(kind))


def _number_column(series: pl.Series) -> Column:
    distinct = series.unique().drop_nulls().sort().to_numpy()
    nothing = series.is_null().to_numpy()
    filled = series.fill_null(0).to_numpy()
    codes = np.searchsorted(distinct, filled).astype(np.min_scalar_type(len(distinct)))
    codes[nothing] = len(distinct)
    return Column(series.name, distinct, codes)
