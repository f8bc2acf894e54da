"""Whether the value of a solver's setting is of the kind that its annotation says."""

from collections.abc import Mapping
from os import PathLike
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from .run import is_number, is_whole

_WORDS: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text",
    Mapping: "a mapping",
    PathLike: "a path",
    NoneType: "none",
}


def accepts(kind: Any, value: object) -> bool:
    """Whether a setting with this annotation may have the value. A whole number is a number; true and false are not."""
    if kind is Any:
        return True
    if _is_union(kind):
        return any(accepts(each, value) for each in get_args(kind))
    if kind is float:
        return is_number(value)
    if kind is int:
        return is_whole(value)
    return isinstance(value, get_origin(kind) or kind)


def allowed(kind: Any) -> str:
    """What the annotation allows, in words."""
    if _is_union(kind):
        *others, last = [allowed(each) for each in get_args(kind)]
        return f"{', '.join(others)} or {last}"
    plain = get_origin(kind) or kind
    return _WORDS.get(plain) or f"a {plain.__name__}"


def _is_union(kind: Any) -> bool:
    return isinstance(kind, UnionType) or get_origin(kind) is Union
