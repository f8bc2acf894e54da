"""The stamp of a result as one line of JSON, as every file of candidate sets keeps it."""

import json
from dataclasses import asdict
from typing import Any, get_type_hints

from ..foundation.errors import FormatError
from ..foundation.files import shown
from .candidates import Stamp

_TYPES = get_type_hints(Stamp)


def stamp_as_json(stamp: Stamp, **more: int) -> str:
    """The stamp, and more facts beside it, as one line of plain ASCII."""
    try:
        return json.dumps({**asdict(stamp), **more}, allow_nan=False)
    except ValueError as error:
        raise FormatError(f"the stamp {stamp} cannot be written: {error}; give finite numbers") from error


def stamp_of(facts: dict[str, Any]) -> Stamp:
    """The stamp that was written as these facts."""
    for key, value in facts.items():
        if key not in _TYPES:
            raise FormatError(f"the stamp has {key!r}; known are {', '.join(_TYPES)}")
        if not _fits(value, _TYPES[key]):
            raise FormatError(f"the stamp says {key} = {shown(value)}; it must be {_TYPES[key]}")
    return Stamp(**facts)


def _fits(value: object, kind: Any) -> bool:
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, kind) or (type(value) is int and isinstance(0.0, kind))  # 1 is a fine 1.0
