"""Arrays, data frames, Parquet and Arrow files to columns."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from ..foundation.arrays import AnyArray
from ..foundation.environment import narwhals as nw
from ..foundation.environment import optional
from ..foundation.errors import DataError, FormatError, QubayesError
from ..foundation.files import opened, shown
from .columns import Column, array_of
from .spelling import is_missing, one_spelling, text_of

_CELLS_AT_ONCE = 2_000_000  # of a Parquet file


def frame_columns(frame: Any) -> list[Column]:
    """Return the columns of an array (x0, x1, ...) or of a frame of pandas, polars, pyarrow, ..."""
    if isinstance(frame, np.ndarray):
        if frame.ndim != 2:
            raise DataError(f"an array of shape {frame.shape}; give rows and columns")
        masks = np.ma.getmaskarray(frame)
        values = np.ma.getdata(frame)
        return [_array_column(f"x{i}", values[:, i], masks[:, i]) for i in range(frame.shape[1])]
    try:
        table = nw.from_native(frame)
        table = table.collect() if isinstance(table, nw.LazyFrame) else table
        names = table.columns
    except TypeError:
        raise DataError(
            f"data of type {type(frame).__name__};"
            " give a file, a data frame (pandas, polars, pyarrow) or a Dataset"
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
            f"column {text!r} cannot be read ({type(error).__name__}: {reason});"
            " convert it to text or numbers first"
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
    """Return a column of categories, which are its declared states.

    A Categorical of polars declares none. narwhals gives only the categories that occur."""
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
    values = [_plain(value) for value in values]
    kinds = {type(value) for value in values if value is not None}
    if kinds and kinds != {int} and kinds <= {int, float, Decimal}:
        return _column_of_floats(name, values)
    if len(kinds) > 1:
        raise DataError(f"column {name!r} mixes values of several types; convert it to text first")
    texts = [None if value is None else text_of(name, value) for value in values]
    value_of = {text: value for text, value in zip(texts, values, strict=True) if text is not None}
    distinct = sorted(value_of)
    code_of: dict[str | None, int] = {text: code for code, text in enumerate(distinct)}
    code_of[None] = len(distinct)
    codes = np.array([code_of[text] for text in texts], np.min_scalar_type(len(distinct)))
    return Column(name, distinct, codes, own=_own([value_of[text] for text in distinct]))


def _plain(value: Any) -> Any:
    """Return the value as a Python object; None for a missing one."""
    if is_missing(value):
        return None
    return value.item() if isinstance(value, np.generic) else value


def _column_of_floats(name: str, values: list[Any]) -> Column:
    """Return a column of numbers of several types, or None, as floats."""
    try:
        numbers = np.array([np.nan if value is None else float(value) for value in values])
    except (OverflowError, ValueError):
        raise DataError(
            f"column {name!r} holds infinite values; replace them or remove their rows"
        ) from None
    return _number_column(name, numbers, np.isnan(numbers))


def _own(values: Sequence[Any]) -> AnyArray | None:
    """Return the values of a column as an array; None for texts."""
    return None if all(isinstance(value, str) for value in values) else array_of(values)


def read_frame_file(path: Path, kind: str) -> list[Column]:
    """Return the columns of a file of this kind, "Parquet" or "Arrow"."""
    if path.suffix.lower() == ".gz":
        raise FormatError(
            f"{path}: Parquet and Arrow files are compressed inside; unpack this one first"
        )
    with opened(path):
        polars = optional("polars", f"a file in the {kind} format", "frames")
        read = _parquet_columns if kind == "Parquet" else _arrow_columns
        try:
            return list(read(polars, path))
        except (QubayesError, MemoryError, KeyboardInterrupt, SystemExit):
            raise
        # polars panics on some broken files, and a panic is not an Exception
        except BaseException as error:
            reason = " ".join((str(error) or type(error).__name__).split())[:120]
            raise FormatError(
                f"{path} is not a whole {kind} file; write it again ({reason})"
            ) from None


def _parquet_columns(polars: Any, path: Path) -> Iterator[Column]:
    """Yield the columns of a Parquet file, read in blocks to save memory."""
    with path.open("rb") as file:
        names = list(polars.read_parquet_schema(file))
    with path.open("rb") as file:
        rows = polars.scan_parquet(file).select(polars.len()).collect().item()
    width = max(1, _CELLS_AT_ONCE // max(rows, 1))
    for first in range(0, len(names), width):
        with path.open("rb") as file:
            block = polars.read_parquet(file, columns=names[first : first + width])
        yield from frame_columns(block)


def _arrow_columns(polars: Any, path: Path) -> Iterator[Column]:
    """Yield the columns of an Arrow (Feather, IPC) file or stream."""
    with path.open("rb") as file:
        is_file = file.read(6) == b"ARROW1"
    with path.open("rb") as file:  # opened again: polars reads from the position of the system
        frame = polars.read_ipc(file) if is_file else polars.read_ipc_stream(file)
    for series in frame.iter_columns():
        yield from frame_columns(series.to_frame())
