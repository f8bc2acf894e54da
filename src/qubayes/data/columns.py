"""Columns to states (declared, observed, or intervals of numbers) or, if continuous, to numbers."""

import logging
from bisect import bisect_right
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from ..foundation.arrays import AnyArray, Bools, Floats, Ints, frozen
from ..foundation.errors import DataError, option, some
from ..foundation.files import shown
from ..settings import ReadSettings
from .cells import MissingCells
from .dataset import (
    MISSING_STATE,
    MISSING_TOKENS,
    MOST_CODES,
    MOST_STATES,
    Dataset,
    code_type,
)
from .intervals import Intervals, cut, interval_names
from .spelling import (
    INTEGER_PATTERN,
    NUMBER_PATTERN,
    TRUTH,
    is_missing,
    one_spelling,
    plain_spelling,
    text_of,
)

log = logging.getLogger("qubayes")

ADVISED_BINS = 3  # with more, few rows fall into each cell, and edges are missed
_EXACT = 2.0**53  # whole numbers below this are exact as floats


class Column(NamedTuple):
    """A column as its distinct values: row r holds `distinct[codes[r]]`.

    The code len(distinct) is a missing value."""

    name: str
    distinct: Sequence[str] | AnyArray  # text; or an int64, uint64 or float64 array
    codes: AnyArray  # (rows,) unsigned
    # the states in order, or their number; None: those observed
    declared: tuple[str, ...] | int | None = None
    # (distinct,) the values as the source has them; None: as in `distinct`
    own: AnyArray | None = None
    # whether it is kept as numbers; None: yes, unless its values are codes
    continuous: bool | None = None


def encode(
    columns: Sequence[Column],
    settings: ReadSettings,
    arities_from: str,
    dropped: int = 0,
    missing: MissingCells | None = None,
) -> Dataset:
    """Return the columns as one array of codes, with the states that each declares or shows.

    Those of continuous columns are 0; their numbers stand beside them. Cells that are `missing`
    have the code 0, or no number."""
    columns = _with_kinds(columns, settings)
    may_lack = missing is not None
    numbers = {each.name: _cells(each, may_lack=may_lack) for each in columns if each.continuous}
    found = {}
    for i, each in enumerate(columns):
        if not each.continuous:
            lacks = missing is not None and bool(missing.mask[i].any())
            found[each.name] = _states(each, settings, lacks=lacks)
    states = tuple(found[each.name][0] if each.name in found else () for each in columns)
    codes: AnyArray = np.zeros((len(columns), len(columns[0].codes)), dtype=code_type(states))
    values = {}
    for i, column in enumerate(columns):
        _check_unicode(column.name, states[i])
        if column.name in numbers:
            continue
        lookup = found[column.name][1]
        codes[i] = lookup.astype(codes.dtype)[column.codes]
        own = _own_values(column, states[i], lookup)
        if own is not None:
            values[column.name] = own
    names = tuple(column.name for column in columns)
    cells = frozen(codes)
    return Dataset(names, states, cells, arities_from, dropped, values, numbers, missing=missing)


def _with_kinds(columns: Sequence[Column], settings: ReadSettings) -> list[Column]:
    """Return the columns, each with the answer to whether it is kept as numbers.

    Numbers with fractions are, and beside these whole numbers with many values, too."""
    undecided = _undecided(columns, settings)
    fractions = {name for name, numbers in undecided.items() if not _are_whole(numbers)}
    given = any(column.continuous for column in columns)
    decided = {column.name: column for column in columns}
    for name, numbers in undecided.items():
        many = len(numbers) > MOST_CODES and (given or len(fractions) > 0)
        if name in fractions or many:
            _check_measured(decided[name], numbers)
            decided[name] = decided[name]._replace(continuous=True)
    return list(decided.values())


def _undecided(
    columns: Sequence[Column], settings: ReadSettings
) -> dict[str, AnyArray | list[int]]:
    """Return the different numbers of the columns that may be kept as numbers, by name."""
    found: dict[str, AnyArray | list[int]] = {}
    if settings.numbers != "gaussian" or isinstance(settings.bins, int):
        return found
    for column in columns:
        if column.continuous is not None or column.declared is not None:
            continue
        if _own_bins(column.name, settings) is not None:
            continue
        numbers = _present_numbers(column)
        if numbers is not None:
            found[column.name] = numbers
    return found


def _present_numbers(column: Column) -> AnyArray | list[int] | None:
    """Return the different values of a column of numbers; None of one that holds text."""
    counts = np.bincount(column.codes, minlength=len(column.distinct) + 1)
    return _numbers(column, np.flatnonzero((counts > 0) & ~missing_values(column)))


def _check_measured(column: Column, numbers: AnyArray | Sequence[int]) -> None:
    """Raise if a continuous column holds one value; warn if all are different whole numbers."""
    name, rows = column.name, len(column.codes)
    if len(numbers) == 1:
        raise DataError(
            f"column {name!r} is constant ({float(numbers[0])!r} in every row) and tells nothing "
            f"of others; leave it out with {option('ignore', [name])}"
        )
    if len(numbers) == rows and _are_whole(np.asarray(numbers, dtype=float)):
        _warn_of_identifier(name, rows)


def _cells(column: Column, *, may_lack: bool) -> Floats:
    """Return (rows,) the numbers of a continuous column; raise if one is missing and may not."""
    cells = cells_of(column)
    if np.isnan(cells).any() and not may_lack:
        raise DataError(
            f"column {column.name!r} is continuous, and a missing value is no state of it;"
            f" use {option('missing', 'impute')}, or cut the column into intervals"
            f" with {option('bins', {column.name: ADVISED_BINS})}"
        )
    return frozen(cells)


def _infinite(name: str) -> DataError:
    return DataError(f"column {name!r} holds infinite values; replace them or remove their rows")


def _check_unicode(name: str, states: Sequence[str]) -> None:
    """Raise unless the name and the states can be written as text."""
    try:
        "".join((name, *states)).encode()
    except UnicodeEncodeError as error:
        text = shown(error.object[error.start : error.end])
        raise DataError(
            f"column {name!r} holds {text}, a lone surrogate; replace it by Unicode text"
        ) from None


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
    """Return the value of each state.

    That of a state that did not occur is its number, or else its name (as of `missing`).

    >>> values_of(("0", "1", "2"), {"0": 0, "1": 1}, np.dtype(np.int64)).tolist()
    [0, 1, 2]
    """

    def value_of(name: str) -> Any:
        plain = plain_spelling(name)
        value = found.get(name, found.get(plain, name))
        if value is name and dtype.kind in "iuf" and NUMBER_PATTERN.fullmatch(plain):
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
    """Return an array of bool, int or float if all values are of this type, else of objects."""
    found = objects(values)
    kinds = {type(value) for value in values}
    for kind in (bool, int, float):
        if kinds == {kind}:
            with suppress(OverflowError):
                return found.astype(kind)
    return found


def with_values(column: Column) -> Column:
    """Return the column of a file of text with truth values and whole numbers as in data frames."""
    texts = column.distinct
    if isinstance(texts, np.ndarray) or len(texts) > MOST_STATES + len(MISSING_TOKENS):
        return column
    present = [text for text in texts if text not in MISSING_TOKENS]
    if present and all(TRUTH.get(text, text) in ("true", "false") for text in present):
        return column._replace(own=np.array([TRUTH.get(text, text) == "true" for text in texts]))
    if present and all(map(INTEGER_PATTERN.fullmatch, present)):
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
    """Return the index of the state that a value means: its text, or the interval of a number.

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
    """Return the index of the state that a value means.

    It is -1 for a missing value, unless missing is a state.

    >>> code_of(("no", "yes"), None), code_of(("no", "yes", "missing"), float("nan"))
    (-1, 2)
    """
    texts = [] if is_missing(value) else [text_of(name, value)]
    column = Column(name, texts, np.zeros(1, np.uint8))
    return int(codes_in(column, states)[0])


def missing_values(column: Column) -> Bools:
    """Return (distinct + 1,) True for each value that means "missing"; no declared state does."""
    if isinstance(column.distinct, np.ndarray):
        return np.append(np.isnan(column.distinct), True)
    known = column.declared if isinstance(column.declared, tuple) else ()
    tokens = MISSING_TOKENS.difference(known)
    return np.array([*(value in tokens for value in column.distinct), True])


def missing_cells(
    columns: Sequence[Column], settings: ReadSettings, with_state: Container[str] = ()
) -> MissingCells | None:
    """Return the missing cells if the settings keep them without a value; None if there are none.

    In the columns `with_state` missing values are a state."""
    if settings.missing not in ("rows", "impute"):
        return None
    mask: Bools = np.zeros((len(columns), len(columns[0].codes)), dtype=np.bool_)
    for i, column in enumerate(columns):
        if column.name not in with_state:
            mask[i] = missing_values(column)[column.codes]
    if not mask.any():
        return None
    if mask.all(axis=1).any():
        name = columns[int(np.argmax(mask.all(axis=1)))].name
        raise DataError(
            f"column {name!r} has no value in any row; leave it out with {option('ignore', [name])}"
        )
    return MissingCells(frozen(mask), settings.missing)


def lost_rows(
    columns: list[Column], settings: ReadSettings, with_state: Container[str] = ()
) -> Bools | None:
    """Return which rows are left out for missing values, None if none is; or raise.

    The settings say which. In the columns `with_state`, missing values are a state: they are not
    refused, but dropped where the settings say so."""
    if settings.missing in ("state", "rows", "impute"):
        return None
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
        return None
    rows = len(lost)
    number = int(lost.sum())
    if settings.missing == "error":
        listed = ", ".join(f"{name!r} ({count})" for name, count in list(counts.items())[:10])
        more = f" and {len(counts) - 10} more columns" if len(counts) > 10 else ""
        raise DataError(
            f"missing values in {number} of {rows} rows, column (rows): {listed}{more};"
            f" learn with {option('missing', 'impute')}, which draws them from the network, drop"
            f" these rows with {option('missing', 'drop')}, or make missing a state with"
            f" {option('missing', 'state')}"
        )
    if number == rows:
        raise DataError(
            f"all {rows} rows have missing values, so none is left;"
            f" give {option('missing', 'impute')}, or leave out a column with {option('ignore')}"
        )
    return lost


def _states(
    column: Column, settings: ReadSettings, *, lacks: bool = False
) -> tuple[tuple[str, ...], Ints]:
    """Return the names of the states in a stable order; (distinct + 1,) the state of each value.

    Values that do not occur have the state -1. If the column `lacks` values, these have the code
    0, and there is no state for them."""
    counts = np.bincount(column.codes, minlength=len(column.distinct) + 1)
    missing = missing_values(column)
    present = np.flatnonzero((counts > 0) & ~missing)
    names, codes = _states_of_present(column, present, counts[present], settings)
    lookup = np.full(len(counts), -1, dtype=np.int64)
    lookup[present] = codes
    if lacks:
        lookup[missing] = 0
        return names, lookup
    # rows with missing values have been refused or dropped before, unless missing is to be a state
    if counts[missing].any():
        names = _with_missing_state(column, names, codes)
        lookup[missing] = names.index(MISSING_STATE)
    return names, lookup


def _states_of_present(
    column: Column, present: Ints, counts: Ints, settings: ReadSettings
) -> tuple[tuple[str, ...], Ints]:
    """Return the names of the states, and the state of each value that is present."""
    bins = _own_bins(column.name, settings)
    if column.declared is not None and (bins is None or isinstance(column.declared, Intervals)):
        return _declared_states(column, _texts(column, present))
    numbers = _numbers(column, present)
    if numbers is not None:
        return _number_states(column.name, numbers, counts, settings)
    texts = _texts(column, present)
    if bins is not None and texts:
        example = next((text for text in texts if not NUMBER_PATTERN.fullmatch(text)), "")
        raise DataError(f"column {column.name!r} holds text such as {example!r}; bins need numbers")
    return _sorted_states(column.name, one_spelling(texts), whole=False)


def _with_missing_state(column: Column, names: tuple[str, ...], codes: Ints) -> tuple[str, ...]:
    """Return the states with one for missing values, which no value that is present may have."""
    if MISSING_STATE not in names:
        return (*names, MISSING_STATE)
    if not isinstance(column.declared, Intervals) and names.index(MISSING_STATE) in codes:
        raise DataError(
            f"column {column.name!r} has a state named {MISSING_STATE!r} and missing values;"
            " rename the state"
        )
    return names


def _own_bins(name: str, settings: ReadSettings) -> int | Sequence[float] | None:
    """Return the number of intervals, or the bounds, that the settings give for this column."""
    return settings.bins.get(name) if isinstance(settings.bins, Mapping) else None


def _bins_of_all(settings: ReadSettings) -> int | None:
    """Return the number of intervals of every continuous column, if the settings ask for any."""
    if isinstance(settings.bins, int):
        return settings.bins
    return ADVISED_BINS if settings.numbers == "bins" else None


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
        if not all(map(NUMBER_PATTERN.fullmatch, texts)) or not texts:
            return None
        if all(map(INTEGER_PATTERN.fullmatch, texts)):
            return [int(text) for text in texts]
        numbers = np.array([float(text) for text in texts])
    if not np.isfinite(numbers).all():
        raise _infinite(column.name)
    return numbers


def cells_of(column: Column) -> Floats:
    """Return (rows,) the cells of a column of numbers; NaN for a missing value."""
    counts = np.bincount(column.codes, minlength=len(column.distinct) + 1)
    present = np.flatnonzero((counts > 0) & ~missing_values(column))
    numbers = _numbers(column, present)
    if numbers is None and len(present):
        texts = _texts(column, present)
        example = next((text for text in texts if not NUMBER_PATTERN.fullmatch(text)), texts[0])
        raise DataError(
            f"column {column.name!r} holds text such as {example!r}, and it is continuous;"
            " give numbers"
        )
    found = np.full(len(column.distinct) + 1, np.nan)
    found[present] = np.array(numbers if numbers is not None else [], np.float64)
    return found[column.codes]


def _number_states(
    name: str, numbers: AnyArray | list[int], counts: Ints, settings: ReadSettings
) -> tuple[tuple[str, ...], Ints]:
    """Return the states of numbers: intervals where they are asked for, else whole numbers."""
    bins = _own_bins(name, settings)
    if bins is not None and not isinstance(bins, int):
        return _between(bins, numbers)
    whole = _are_whole(numbers)
    if bins is None and not (whole and len(numbers) <= MOST_CODES):
        bins = _bins_of_all(settings)
        if bins is not None and whole and len(numbers) == counts.sum():
            _warn_of_identifier(name, len(numbers))
    if bins is not None and len(numbers):
        return cut(numbers, counts, bins, settings.bin_method)
    if not whole:
        raise _continuous(name, [float(number) for number in numbers])
    return _sorted_states(name, [str(int(number)) for number in numbers], whole=True)


def _warn_of_identifier(name: str, rows: int) -> None:
    log.warning(
        "%r has another whole number in each of %d rows and may be an identifier;"
        " leave it out with %s",
        *(name, rows, option("ignore", [name])),
    )


def _between(bins: Sequence[float], numbers: AnyArray | list[int]) -> tuple[tuple[str, ...], Ints]:
    """Return the names of the intervals between these bounds, and the interval of each number."""
    bounds = [float(bound) for bound in bins]
    values = np.array([float(number) for number in numbers])
    return interval_names(bounds, bounds[0]), np.searchsorted(bounds, values, side="right")


def _are_whole(numbers: AnyArray | list[int]) -> bool:
    """Return whether all are whole numbers, of which a float holds every digit."""
    if isinstance(numbers, list) or numbers.dtype.kind in "iu":
        return True
    return bool(((np.abs(numbers) < _EXACT) & (numbers == np.round(numbers))).all())


def _continuous(name: str, numbers: list[float]) -> DataError:
    """Return the error for a column of fractions without intervals."""
    example = next((number for number in numbers if number != round(number)), numbers[0])
    return DataError(
        f"column {name!r} is continuous ({len(numbers)} values such as {example!r});"
        f" cut it into intervals with {option('bins', ADVISED_BINS)}"
        f" ({option('bin_method')} quantile or width), keep the numbers with"
        f" {option('numbers', 'gaussian')}, or declare its states with {option('arities')}"
    )


def _sorted_states(name: str, texts: list[str], *, whole: bool) -> tuple[tuple[str, ...], Ints]:
    """Return the distinct texts as states, sorted as text or numbers; the state of each text."""
    different = set(texts)
    if len(different) > MOST_STATES:
        bins = (
            f", cut it into intervals with {option('bins', {name: ADVISED_BINS})}" if whole else ""
        )
        raise DataError(
            f"column {name!r} has {len(different)} states, at most {MOST_STATES} are allowed;"
            f" is it an identifier? leave it out with {option('ignore', [name])}{bins}"
        )
    names = tuple(sorted(different, key=int if whole else None))
    return names, _positions(texts, names)


def _declared_states(column: Column, texts: list[str]) -> tuple[tuple[str, ...], Ints]:
    """Return the declared states, and the state of each text.

    A number may lie in a declared interval; other spellings of a state mean it, too."""
    names = column.declared
    assert names is not None
    if isinstance(names, int):
        names = _numbered_states(column.name, names, texts)
    elif isinstance(names, Intervals):
        texts = _in_intervals(texts, names)
    known = set(names)
    other = {plain_spelling(name): name for name in names}
    texts = [text if text in known else other.get(plain_spelling(text), text) for text in texts]
    if unknown := [text for text in texts if text not in known]:
        declared = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
        raise DataError(
            f"column {column.name!r} holds {unknown[0]!r}, which is not declared;"
            f" declared are {declared}; correct the declaration or the data"
        )
    return names, _positions(texts, names)


def _numbered_states(name: str, count: int, texts: list[str]) -> tuple[str, ...]:
    """Return the names of this number of states.

    They are 0, 1, ... or 1, 2, ... if the texts are such numbers, else the texts, and placeholders
    for states that do not occur."""
    different = set(texts)
    for first in (0, 1):
        numbers = tuple(map(str, range(first, first + count)))
        if different.issubset(numbers):
            return numbers
    if len(different) > count:
        raise DataError(
            f"column {name!r} is declared with {count} states and holds {len(different)};"
            " correct the declaration or the data"
        )
    seen = sorted(different, key=int if all(map(INTEGER_PATTERN.fullmatch, texts)) else None)
    return (*seen, *(f"unseen{i + 1}" for i in range(count - len(seen))))


def _in_intervals(texts: list[str], intervals: Intervals) -> list[str]:
    """Return the interval of each text that is a number and not a declared state."""
    names, bounds = intervals.names, intervals.bounds
    known = set(intervals)
    placed = list(texts)
    for i, text in enumerate(texts):
        if text not in known and NUMBER_PATTERN.fullmatch(text):
            placed[i] = names[bisect_right(bounds, float(text))]
    return placed


def _positions(texts: list[str], names: tuple[str, ...]) -> Ints:
    index = {name: i for i, name in enumerate(names)}
    return np.array([index[text] for text in texts], dtype=np.int64)
