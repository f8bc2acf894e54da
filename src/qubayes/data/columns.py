"""From the distinct values of a column to its states."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..foundation.arrays import AnyArray, Bools, Ints
from ..foundation.errors import DataError
from .bins import cut, edges_of
from .settings import MOST_CODES, MOST_STATES, ReadSettings

# What people write for "no value". Not "None" and not "none": many variables have a state of that name.
MISSING_TOKENS = frozenset({"", "NA", "N/A", "<NA>", "NaN", "nan", "NULL", "null", "?"})
MISSING_STATE = "missing"

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,299}")  # so long that a float can still hold it
_NUMBER = re.compile(
    r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?inf(?:inity)?", re.IGNORECASE
)
_EXACT = 2.0**53  # whole numbers below this are exact as floats


class Intervals(tuple[str, ...]):
    """Declared states that are intervals, into which numbers go, and perhaps one for missing values."""

    __slots__ = ()

    @staticmethod
    def of(states: Sequence[str]) -> "Intervals | None":
        """These states if they are intervals."""
        return Intervals(states) if edges_of(_without_missing(states)) else None


def _without_missing(states: Sequence[str]) -> tuple[str, ...]:
    return tuple(state for state in states if state != MISSING_STATE)


class Column(NamedTuple):
    """A column as its distinct values: row r holds `distinct[codes[r]]`; code len(distinct) is a missing value."""

    name: str
    distinct: Sequence[str] | AnyArray  # text; or an int64, uint64 or float64 array
    codes: AnyArray  # (rows,) unsigned
    declared: tuple[str, ...] | int | None = None  # the states in order, or how many there are; None: those observed


class States(NamedTuple):
    """The states of a column, and which of them each distinct value is."""

    names: tuple[str, ...]
    lookup: Ints  # (distinct + 1,) index into names; -1 for values that do not occur


def missing_values(column: Column) -> Bools:
    """(distinct + 1,) which of the values stand for none. A declared state never does."""
    if isinstance(column.distinct, np.ndarray):
        return np.append(np.isnan(column.distinct), True)
    known = column.declared if isinstance(column.declared, tuple) else ()
    tokens = MISSING_TOKENS.difference(known)
    return np.array([*(value in tokens for value in column.distinct), True])


def states_of(column: Column, settings: ReadSettings) -> States:
    """The states that the column declares or shows, in a stable order."""
    counts = np.bincount(column.codes, minlength=len(column.distinct) + 1)
    none = missing_values(column)
    present = np.flatnonzero((counts > 0) & ~none)
    names, codes = _present_states(column, present, counts[present], settings)
    lookup = np.full(len(counts), -1, dtype=np.int64)
    lookup[present] = codes
    if counts[none].any():  # the caller has raised or dropped these rows unless they are to be a state
        if MISSING_STATE in names and isinstance(column.declared, Intervals):
            lookup[none] = names.index(MISSING_STATE)
            return States(names, lookup)
        if MISSING_STATE in names:
            raise DataError(
                f"column {column.name!r} has a state named {MISSING_STATE!r} and missing values; rename the state"
            )
        lookup[none] = len(names)
        names = (*names, MISSING_STATE)
    return States(names, lookup)


def _present_states(
    column: Column, present: Ints, counts: Ints, settings: ReadSettings
) -> tuple[tuple[str, ...], Ints]:
    """The names of the states, and the state of each value that is present."""
    bins = None if isinstance(column.declared, Intervals) else settings.bins_of(column.name)
    if column.declared is not None and bins is None:
        return _declared_states(column, _texts(column, present))
    numbers = _numbers(column, present)
    if bins is not None and numbers is None:
        raise DataError(
            f"column {column.name!r} holds text such as {_text_example(column, present)}; bins need numbers"
        )
    if numbers is None:
        return _in_order(column.name, _texts(column, present), key=None)
    if not _are_whole(numbers):
        bins = bins or settings.bins_of_all or _refuse_continuous(column.name, numbers)
    elif len(present) > MOST_CODES:
        bins = bins or settings.bins_of_all
    if bins is not None:
        return cut(numbers, counts, bins, settings.bin_method)
    return _in_order(column.name, [str(int(number)) for number in numbers], key=int)


def _numbers(column: Column, present: Ints) -> AnyArray | list[int] | None:
    """The values that are present as numbers, or None if one of them is text."""
    if isinstance(column.distinct, np.ndarray):
        numbers: AnyArray | list[int] = column.distinct[present]
    else:
        texts = [column.distinct[i] for i in present]
        if not all(map(_NUMBER.fullmatch, texts)) or not texts:
            return None
        if all(map(_INTEGER.fullmatch, texts)):
            return [int(text) for text in texts]
        numbers = np.array([float(text) for text in texts])
    if not np.isfinite(numbers).all():
        raise DataError(f"column {column.name!r} holds infinite values; replace them or remove their rows")
    return numbers


def _are_whole(numbers: AnyArray | list[int]) -> bool:
    if isinstance(numbers, list) or numbers.dtype.kind in "iu":
        return True
    return bool((np.abs(numbers) < _EXACT).all() and (numbers == np.round(numbers)).all())


def _refuse_continuous(name: str, numbers: AnyArray | list[int]) -> int:
    raise DataError(
        f"column {name!r} is continuous ({len(numbers)} values such as {_example(numbers)}); cut it into intervals with"
        f" --bins K [--bin-method quantile|width], or declare its states with --arities"
    )


def _example(numbers: AnyArray | list[int]) -> str:
    fractions = [float(x) for x in numbers[:1000] if float(x) != round(float(x))]
    return repr((fractions or [float(numbers[0])])[0])


def _texts(column: Column, present: Ints) -> list[str]:
    """The values that are present as text; whole numbers without a fraction."""
    if isinstance(column.distinct, np.ndarray):
        return [str(int(x)) if float(x).is_integer() else repr(x) for x in column.distinct[present].tolist()]
    return [column.distinct[i] for i in present]


def _text_example(column: Column, present: Ints) -> str:
    return repr(next((text for text in _texts(column, present) if not _NUMBER.fullmatch(text)), ""))


def _in_order(name: str, texts: list[str], key: type[int] | None) -> tuple[tuple[str, ...], Ints]:
    """The distinct texts as states, sorted; and the state of each text."""
    different = set(texts)
    if len(different) > MOST_STATES:
        bins = f", cut it into intervals with --bins {name}=5" if key else ""
        raise DataError(
            f"column {name!r} has {len(different)} states, at most {MOST_STATES} are allowed; is it an identifier?"
            f" leave it out with --ignore {name}{bins}"
        )
    names = tuple(sorted(different, key=key))
    return names, _positions(texts, names)


def _declared_states(column: Column, texts: list[str]) -> tuple[tuple[str, ...], Ints]:
    """The declared states, and the state of each text; numbers lie in intervals, other texts must be declared."""
    assert column.declared is not None
    names = column.declared if isinstance(column.declared, tuple) else _named(column, texts, column.declared)
    known = set(names)
    if isinstance(column.declared, Intervals):
        texts = [_interval_of(text, column.declared) if text not in known else text for text in texts]
    unknown = [text for text in texts if text not in known]
    if unknown:
        shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
        raise DataError(
            f"column {column.name!r} holds {unknown[0]!r}, which is not declared; declared are {shown};"
            f" mend the declaration or the data"
        )
    return names, _positions(texts, names)


def _interval_of(text: str, states: Intervals) -> str:
    """The interval that holds the number; text stays what it is."""
    intervals = _without_missing(states)
    edges = edges_of(intervals)
    return intervals[bisect_right(edges, float(text))] if edges and _NUMBER.fullmatch(text) else text


def _named(column: Column, texts: list[str], count: int) -> tuple[str, ...]:
    """Names for `count` states: 0, 1, ... or 1, 2, ... if the values are such numbers, else those seen and fillers."""
    for first in (0, 1):
        numbered = tuple(str(i) for i in range(first, first + count))
        if set(texts) <= set(numbered):
            return numbered
    if len(set(texts)) > count:
        raise DataError(
            f"column {column.name!r} is declared with {count} states and holds {len(set(texts))};"
            f" mend the declaration or the data"
        )
    whole = all(map(_INTEGER.fullmatch, texts))
    seen = sorted(set(texts), key=int if whole else None)
    return (*seen, *(f"unseen{i + 1}" for i in range(count - len(seen))))


def _positions(texts: list[str], names: tuple[str, ...]) -> Ints:
    index = {name: i for i, name in enumerate(names)}
    return np.array([index[text] for text in texts], dtype=np.int64)
