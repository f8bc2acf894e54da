"""Texts of values: the name that a value gets as a state, and the spellings that mean one value."""

import re
from contextlib import suppress
from datetime import datetime, time
from typing import Any

import numpy as np

from ..foundation.errors import DataError

INTEGER_PATTERN = re.compile(r"0|-?[1-9][0-9]{0,299}")  # a float still holds 300 digits
NUMBER_PATTERN = re.compile(
    r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?inf(?:inity)?",
    re.IGNORECASE,
)
TRUTH = {"True": "true", "TRUE": "true", "False": "false", "FALSE": "false"}
_TIME = re.compile(r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?")
_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:Z|[-+][0-9]{2}:?[0-9]{2})?)?"
)
# in the text of an object that has no text of its own
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+>")


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
            f"column {name!r} is of type {type(value).__name__};"
            " convert it to text or numbers first"
        )
    return text


def one_spelling(texts: list[str]) -> list[str]:
    """Return truth values, dates and times as data frames have them; other texts as they are.

    pandas, polars, pyarrow and R spell them differently in CSV: `True`, `true`, `TRUE`; `2024-05-01
    00:00:00`, `2024-05-01T00:00:00.000000`. Midnights of all rows are dates."""
    if all(text in TRUTH or text in TRUTH.values() for text in texts):
        return [TRUTH.get(text, text) for text in texts]
    with suppress(ValueError):  # of the 31st of February
        if all(map(_TIME.fullmatch, texts)):
            return [time.fromisoformat(text).isoformat() for text in texts]
        if all(map(_MOMENT.fullmatch, texts)):
            return _moments([datetime.fromisoformat(text) for text in texts])
    return texts


def _moments(moments: list[datetime]) -> list[str]:
    """Return moments as text; as dates if all are midnights without a time zone."""
    if all(moment.time() == time() and moment.tzinfo is None for moment in moments):
        return [moment.date().isoformat() for moment in moments]
    return [moment.isoformat(" ") for moment in moments]


def plain_spelling(text: str) -> str:
    """Return one spelling for all of a truth value, a whole number, a date or a time.

    Other texts are returned as they are."""
    if NUMBER_PATTERN.fullmatch(text) and float(text).is_integer():
        return str(int(float(text)))
    with suppress(ValueError):  # of the 31st of February
        if _MOMENT.fullmatch(text):
            return datetime.fromisoformat(text).isoformat(" ")
        if _TIME.fullmatch(text):
            return time.fromisoformat(text).isoformat()
    return TRUTH.get(text, text)
