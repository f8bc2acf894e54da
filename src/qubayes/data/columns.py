"""The distinct values of a column, and its states: declared, observed, or intervals of numbers."""

import logging
import re
from bisect import bisect_right
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, time
from itertools import pairwise
from math import inf
from typing import Any, NamedTuple

import numpy as np

from ..foundation.arrays import AnyArray, Bools, Ints, frozen
from ..foundation.errors import DataError, option, some
from ..foundation.files import shown
from ..settings import BinMethod, ReadSettings
from .dataset import MISSING_TOKENS, MOST_CODES, MOST_STATES, Dataset, code_type

log = logging.getLogger("qubayes")

MISSING_STATE = "missing"
ADVISED_BINS = 3  # with more, few rows fall into each cell, and edges are missed

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,299}")  # a float still holds 300 digits
_NUMBER = re.compile(
    r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?inf(?:inity)?",
    re.IGNORECASE,
)
_TRUTH = {"True": "true", "TRUE": "true", "False": "false", "FALSE": "false"}
_TIME = re.compile(r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?")
_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:Z|[-+][0-9]{2}:?[0-9]{2})?)?"
)
# in the text of an object that has no text of its own
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+>")
_EXACT = 2.0**53  # whole numbers below this are exact as floats
_FEWEST_DIGITS = 3  # digits of a bound between two intervals


class Intervals(tuple[str, ...]):
    """Declared states that are intervals of numbers, possibly with a state for missing values."""

    __slots__ = ()

    @staticmethod
    def of(states: Sequence[str]) -> "Intervals | None":
        """Return the states if they are intervals, else None."""
        return Intervals(states) if _edges_of(_without_missing(states)) else None


class Column(NamedTuple):
    """A column as its distinct values: row r holds `distinct[codes[r]]`; code len(distinct) is a missing value."""

    name: str
    distinct: Sequence[str] | AnyArray  # text; or an int64, uint64 or float64 array
    codes: AnyArray  # (rows,) unsigned
    # the states in order, or their number; None: those observed
    declared: tuple[str, ...] | int | None = None
    # (distinct,) the values as the source has them; None: as in `distinct`
    own: AnyArray | None = None


def encode(
    columns: Sequence[Column], settings: ReadSettings, arities_from: str, dropped: int = 0
) -> Dataset:
    """Return the columns as one array of codes, with the states that each column declares or shows."""
    rows = len(columns[0].codes)
    states, lookups = zip(*(_states(column, settings) for column in columns), strict=True)
    for column, its in zip(columns, states, strict=True):
        try:
            "".join((column.name, *its)).encode()
        except UnicodeEncodeError as error:
            text = shown(error.object[error.start : error.end])
            raise DataError(
                f"column {column.name!r} holds {text}, a lone surrogate; replace it by Unicode text"
            ) from None
    codes: AnyArray = np.empty((len(columns), rows), dtype=code_type(states))
    for i, (column, lookup) in enumerate(zip(columns, lookups, strict=True)):
        codes[i] = lookup.astype(codes.dtype)[column.codes]
    values = {}
    for column, its, lookup in zip(columns, states, lookups, strict=True):
        own = _own_values(column, its, lookup)
        if own is not None:
            values[column.name] = own
    names = tuple(column.name for column in columns)
    return Dataset(names, states, frozen(codes), arities_from, dropped, values)


def _own_values(column: Column, names: tuple[str, ...], lookup: Ints) -> AnyArray | None:
    """Return the value of each state as the source has it; None for texts and for intervals."""
    own = column.distinct if column.own is None else column.own
    if not isinstance(own, np.ndarray) or Intervals.of(names):
        return None
    found = dict(zip(_texts(column, np.arange(len(own))), own.tolist(), strict=True))
    occurs = (lookup >= 0) & ~missing_values(column)
    for place in np.flatnonzero(occurs).tolist():
        found[names[lookup[place]]] = own.item(place)
    return values_of(names, found, own.dtype)


def values_of(names: Sequence[str], found: Mapping[str, Any], dtype: np.dtype[Any]) -> AnyArray:
    """Return the value of each state; of one that did not occur, its number, or else its name (as of `missing`).

    >>> values_of(("0", "1", "2"), {"0": 0, "1": 1}, np.dtype(np.int64)).tolist()
    [0, 1, 2]
    """

    def value_of(name: str) -> Any:
        plain = plain_spelling(name)
        value = found.get(name, found.get(plain, name))
        if value is name and dtype.kind in "iuf" and _NUMBER.fullmatch(plain):
            return float(plain)
        return value

    values = objects([value_of(name) for name in names])
    if not any(isinstance(value, str) for value in values):
        with suppress(OverflowError):
            return values.astype(dtype)
    return values


def objects(values: Sequence[Any]) -> AnyArray:
    """Return the values as an array of Python objects."""
    found: AnyArray = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def array_of(values: Sequence[Any]) -> AnyArray:
    """Return an array of truth values, whole numbers or floats if all are of this type, else of objects."""
    found, kinds = objects(values), {type(value) for value in values}
    for kind in (bool, int, float):
        if kinds == {kind}:
            with suppress(OverflowError):
                return found.astype(kind)
    return found


def with_values(column: Column) -> Column:
    """Return the column of a file of text with truth values and whole numbers as data frames read them."""
    texts = column.distinct
    if isinstance(texts, np.ndarray) or len(texts) > MOST_STATES + len(MISSING_TOKENS):
        return column
    present = [text for text in texts if text not in MISSING_TOKENS]
    if present and all(_TRUTH.get(text, text) in ("true", "false") for text in present):
        return column._replace(own=np.array([_TRUTH.get(text, text) == "true" for text in texts]))
    if present and all(map(_INTEGER.fullmatch, present)):
        return column._replace(
            own=array_of([0 if text in MISSING_TOKENS else int(text) for text in texts])
        )
    return column


def codes_in(column: Column, states: tuple[str, ...]) -> Ints:
    """Return (rows,) the state of each row among these states; -1 where the value is missing."""
    declared = column._replace(declared=Intervals.of(states) or states)
    names, lookup = _states(declared, ReadSettings())
    codes = lookup[declared.codes]
    return np.where(codes < len(states), codes, -1) if len(names) > len(states) else codes


def state_of(states: tuple[str, ...], value: Any, name: str = "") -> int:
    """Return the index of the state that a value means: its text, or the interval in which a number lies.

    >>> state_of(("<1.5", ">=1.5"), 2), state_of(("false", "true"), True)
    (1, 1)
    """
    code = code_of(states, value, name)
    if code < 0:
        raise DataError(
            f"{value!r} is a missing value, not a state of {name!r}; its states are {some(states)}"
        )
    return code


def code_of(states: tuple[str, ...], value: Any, name: str = "") -> int:
    """Return the index of the state that a value means; -1 for a missing value, unless missing is a state.

    >>> code_of(("no", "yes"), None), code_of(("no", "yes", "missing"), float("nan"))
    (-1, 2)
    """
    texts = [] if is_missing(value) else [text_of(name, value)]
    column = Column(name, texts, np.zeros(1, np.uint8))
    return int(codes_in(column, states)[0])


def is_missing(value: Any) -> bool:
    """Return True for None and for a value that is not equal to itself (NaN, NaT, NA of pandas)."""
    if value is None:
        return True
    try:
        return not bool(value == value)
    except TypeError:  # NA of pandas is neither true nor false
        return True
    except Exception:  # an array in a cell
        return False


def text_of(name: str, value: Any) -> str:
    """Return the value as the name of a state; raise if its text would say nothing of the value."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime):
        return value.isoformat(" ", "microseconds")
    try:
        text = "" if hasattr(type(value), "__iter__") else str(value)
    except Exception:  # of a class that is not ours
        text = ""
    if not text or _ADDRESS.search(text):
        raise DataError(
            f"column {name!r} is of type {type(value).__name__}; convert it to text or numbers first"
        )
    return text


def missing_values(column: Column) -> Bools:
    """Return (distinct + 1,) True for each value that means "missing". A declared state never does."""
    if isinstance(column.distinct, np.ndarray):
        return np.append(np.isnan(column.distinct), True)
    known = column.declared if isinstance(column.declared, tuple) else ()
    tokens = MISSING_TOKENS.difference(known)
    return np.array([*(value in tokens for value in column.distinct), True])


def complete_rows(
    columns: list[Column], settings: ReadSettings, with_state: Container[str] = ()
) -> list[Column]:
    """Return the columns without the rows that have missing values; raise, or keep them, as the settings say.

    Missing values of the columns `with_state` are a state already; they are refused nowhere, but
    dropped where asked."""
    if settings.missing == "state":
        return columns
    lost: Bools = np.zeros(len(columns[0].codes), dtype=np.bool_)
    counts: dict[str, int] = {}
    for column in columns:
        if settings.missing == "error" and column.name in with_state:
            continue
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


def _states(column: Column, settings: ReadSettings) -> tuple[tuple[str, ...], Ints]:
    """Return the names of the states in a stable order, and (distinct + 1,) the state of each value that occurs."""
    counts = np.bincount(column.codes, minlength=len(column.distinct) + 1)
    missing = missing_values(column)
    present = np.flatnonzero((counts > 0) & ~missing)
    by_name = settings.bins.get(column.name) if isinstance(settings.bins, Mapping) else None
    if column.declared is not None and (by_name is None or isinstance(column.declared, Intervals)):
        names, codes = _declared_states(column, _texts(column, present))
    elif (numbers := _numbers(column, present)) is not None:
        names, codes = _number_states(column.name, numbers, counts[present], settings)
    else:
        texts = _texts(column, present)
        if by_name is not None and texts:
            example = next((text for text in texts if not _NUMBER.fullmatch(text)), "")
            raise DataError(
                f"column {column.name!r} holds text such as {example!r}; bins need numbers"
            )
        names, codes = _sorted_states(column.name, one_spelling(texts), whole=False)
    lookup = np.full(len(counts), -1, dtype=np.int64)
    lookup[present] = codes
    # the caller has refused or dropped these rows unless missing is to be a state
    if counts[missing].any():
        if MISSING_STATE not in names:
            names = (*names, MISSING_STATE)
        elif not isinstance(column.declared, Intervals) and names.index(MISSING_STATE) in codes:
            raise DataError(
                f"column {column.name!r} has a state named {MISSING_STATE!r} and missing values; rename the state"
            )
        lookup[missing] = names.index(MISSING_STATE)
    return names, lookup


def _texts(column: Column, present: Ints) -> list[str]:
    """Return the values that are present as text; whole numbers without a fraction."""
    if isinstance(column.distinct, np.ndarray):
        return [
            str(int(x)) if float(x).is_integer() else repr(x)
            for x in column.distinct[present].tolist()
        ]
    return [column.distinct[i] for i in present]


def _numbers(column: Column, present: Ints) -> AnyArray | list[int] | None:
    """Return the values that are present as numbers, or None if one of them is text."""
    if isinstance(column.distinct, np.ndarray):
        numbers: AnyArray = column.distinct[present]
    else:
        texts = [column.distinct[i] for i in present]
        if not all(map(_NUMBER.fullmatch, texts)) or not texts:
            return None
        if all(map(_INTEGER.fullmatch, texts)):
            return [int(text) for text in texts]
        numbers = np.array([float(text) for text in texts])
    if not np.isfinite(numbers).all():
        raise DataError(
            f"column {column.name!r} holds infinite values; replace them or remove their rows"
        )
    return numbers


def one_spelling(texts: list[str]) -> list[str]:
    """Return truth values, dates and times as data frames have them; other texts as they are.

    pandas, polars, pyarrow and R spell them differently in CSV: `True`, `true`, `TRUE`; `2024-05-01
    00:00:00`, `2024-05-01T00:00:00.000000`. Midnights of all rows are dates."""
    if all(text in _TRUTH or text in _TRUTH.values() for text in texts):
        return [_TRUTH.get(text, text) for text in texts]
    with suppress(ValueError):  # of the 31st of February
        if all(map(_TIME.fullmatch, texts)):
            return [time.fromisoformat(text).isoformat() for text in texts]
        if all(map(_MOMENT.fullmatch, texts)):
            moments = [datetime.fromisoformat(text) for text in texts]
            dates = all(moment.time() == time() and moment.tzinfo is None for moment in moments)
            return [
                moment.date().isoformat() if dates else moment.isoformat(" ") for moment in moments
            ]
    return texts


def _number_states(
    name: str, numbers: AnyArray | list[int], counts: Ints, settings: ReadSettings
) -> tuple[tuple[str, ...], Ints]:
    """Return the states of numbers: intervals where they are asked for, else whole numbers."""
    by_name = settings.bins.get(name) if isinstance(settings.bins, Mapping) else None
    bins = (
        by_name
        if by_name is not None
        else settings.bins
        if isinstance(settings.bins, int)
        else None
    )
    if isinstance(numbers, list) or numbers.dtype.kind in "iu":
        whole = True
    else:
        whole = bool(((np.abs(numbers) < _EXACT) & (numbers == np.round(numbers))).all())
    if bins is not None and not isinstance(bins, int):
        bounds = [float(bound) for bound in bins]
        values = np.array([float(number) for number in numbers])
        return _interval_names(bounds, bounds[0]), np.searchsorted(bounds, values, side="right")
    if (
        bins is not None
        and len(numbers)
        and (by_name is not None or not whole or len(numbers) > MOST_CODES)
    ):
        if whole and by_name is None and len(numbers) == counts.sum():
            log.warning(
                "%r has another whole number in each of %d rows and may be an identifier; leave it out with %s",
                *(name, len(numbers), option("ignore", [name])),
            )
        return cut(numbers, counts, bins, settings.bin_method)
    if not whole:
        fractions = (float(x) for x in numbers if float(x) != round(float(x)))
        raise DataError(
            f"column {name!r} is continuous ({len(numbers)} values such as"
            f" {next(fractions, float(numbers[0]))!r}); cut it into intervals with"
            f" {option('bins', ADVISED_BINS)} ({option('bin_method')} quantile or width), or declare its states with"
            f" {option('arities')}"
        )
    return _sorted_states(name, [str(int(number)) for number in numbers], whole=True)


def _sorted_states(name: str, texts: list[str], *, whole: bool) -> tuple[tuple[str, ...], Ints]:
    """Return the distinct texts as states in the order of text or of numbers, and the state of each text."""
    different = set(texts)
    if len(different) > MOST_STATES:
        bins = (
            f", cut it into intervals with {option('bins', {name: ADVISED_BINS})}" if whole else ""
        )
        raise DataError(
            f"column {name!r} has {len(different)} states, at most {MOST_STATES} are allowed; is it an identifier?"
            f" leave it out with {option('ignore', [name])}{bins}"
        )
    names = tuple(sorted(different, key=int if whole else None))
    return names, _positions(texts, names)


def _declared_states(column: Column, texts: list[str]) -> tuple[tuple[str, ...], Ints]:
    """Return the declared states, and the state of each text; a number may lie in a declared interval.

    A declared number of states gives the names 0, 1, ... or 1, 2, ... if the values are such
    numbers, else those observed and placeholders."""
    names, different = column.declared, set(texts)
    if isinstance(names, int):
        count = names
        seen = sorted(different, key=int if all(map(_INTEGER.fullmatch, texts)) else None)
        if different <= set(map(str, range(count))):
            names = tuple(map(str, range(count)))
        elif different <= set(map(str, range(1, count + 1))):
            names = tuple(map(str, range(1, count + 1)))
        elif len(seen) <= count:
            names = (*seen, *(f"unseen{i + 1}" for i in range(count - len(seen))))
        else:
            raise DataError(
                f"column {column.name!r} is declared with {count} states and holds {len(seen)};"
                f" correct the declaration or the data"
            )
    assert names is not None
    known, intervals = set(names), _without_missing(names) if isinstance(names, Intervals) else ()
    if edges := _edges_of(intervals):
        texts = [
            intervals[bisect_right(edges, float(text))]
            if text not in known and _NUMBER.fullmatch(text)
            else text
            for text in texts
        ]
    other = {plain_spelling(name): name for name in names}
    texts = [text if text in known else other.get(plain_spelling(text), text) for text in texts]
    if unknown := [text for text in texts if text not in known]:
        declared = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
        raise DataError(
            f"column {column.name!r} holds {unknown[0]!r}, which is not declared; declared are {declared};"
            f" correct the declaration or the data"
        )
    return names, _positions(texts, names)


def plain_spelling(text: str) -> str:
    """Return one spelling for all of a truth value, a whole number, a date or a time; other texts as they are."""
    if _NUMBER.fullmatch(text) and float(text).is_integer():
        return str(int(float(text)))
    with suppress(ValueError):  # of the 31st of February
        if _MOMENT.fullmatch(text):
            return datetime.fromisoformat(text).isoformat(" ")
        if _TIME.fullmatch(text):
            return time.fromisoformat(text).isoformat()
    return _TRUTH.get(text, text)


def _positions(texts: list[str], names: tuple[str, ...]) -> Ints:
    index = {name: i for i, name in enumerate(names)}
    return np.array([index[text] for text in texts], dtype=np.int64)


def _without_missing(states: Sequence[str]) -> tuple[str, ...]:
    return tuple(state for state in states if state != MISSING_STATE)


def cut(
    numbers: AnyArray | Sequence[int], counts: Ints, bins: int, method: BinMethod
) -> tuple[tuple[str, ...], Ints]:
    """Return the names of at most `bins` intervals, none of them empty, and the interval of each number.

    An interval includes its lower bound: `<1.5`, `1.5..3`, `>=3`. `counts` are the rows of each
    number."""
    values = np.array([float(number) for number in numbers])
    # 0.0 and -0.0 are one number in two spellings
    ordered, places = np.unique(values, return_inverse=True)
    shares = np.arange(1, bins) / bins
    # in this form no difference can overflow
    edges = ordered[0] * (1 - shares) + ordered[-1] * shares
    if method == "quantile" and len(ordered) > 1:
        # Interval k begins at the value that has nearest to a share k / `bins` of the rows below
        # it: a value with most of the rows gets an interval of its own.
        rows = np.bincount(places, counts).astype(np.int64)
        below, wanted = np.cumsum(rows)[:-1] * bins, np.arange(1, bins) * int(rows.sum())
        right = np.minimum(np.searchsorted(below, wanted, side="left"), len(below) - 1)
        left = np.maximum(right - 1, 0)
        edges = ordered[
            np.where(np.abs(below[left] - wanted) <= np.abs(below[right] - wanted), left, right) + 1
        ]
    firsts = np.searchsorted(ordered, edges, side="left")
    inside = (firsts > 0) & (firsts < len(ordered))
    firsts, which = np.unique(firsts[inside], return_index=True)
    short = []
    for below_it, first, edge in zip(
        ordered[firsts - 1], ordered[firsts], edges[inside][which], strict=True
    ):
        # A number near the edge with few digits that cuts the data in the same place.
        near = (
            float(f"{x:.{n}g}")
            for n in range(_FEWEST_DIGITS, 17)
            for x in (edge, below_it / 2 + first / 2)
        )
        short.append(next((number for number in near if below_it < number <= first), float(first)))
    codes: Ints = np.searchsorted(firsts, np.arange(len(ordered)), side="right")[places]
    return _interval_names(short, float(ordered[0])), codes


def _interval_names(edges: list[float], least: float) -> tuple[str, ...]:
    """Return the names of the intervals between the edges; of a single value, its own name."""
    texts = [repr(edge).removesuffix(".0") for edge in edges]
    if not texts:
        return (repr(least).removesuffix(".0"),)
    return (f"<{texts[0]}", *(f"{low}..{high}" for low, high in pairwise(texts)), f">={texts[-1]}")


def _edges_of(names: Sequence[str]) -> list[float] | None:
    """Return the lower bounds of the intervals of these names, but for the first; None if they are not intervals."""
    try:
        edges = [float(name.removeprefix(">=").split("..")[0]) for name in names[1:]]
    except ValueError:
        return None
    ascending = all(low < high for low, high in pairwise([-inf, *edges, inf]))
    return (
        edges if edges and ascending and _interval_names(edges, edges[0]) == tuple(names) else None
    )
