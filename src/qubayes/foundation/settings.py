"""`Option` annotates a field of settings; `facts` makes JSON of settings; checks of their types.

    @dataclass(frozen=True)
    class Faster:
        patience: Annotated[float | None, Option("Give up after this many times ...",
            metavar="FACTOR")] = None

The command line reads each `Option` (cli/options.py). `facts` makes JSON of all fields, for
provenance and for the keys of kept results: a field that is added is in every key at once. One
with the metadata "plain" is left out where it has that value: keys made without it stay."""

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from numbers import Integral, Real
from operator import index
from os import PathLike, fspath
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeGuard, Union, get_args, get_origin

from .errors import SettingError


class Option(NamedTuple):
    """An option of the command line, for the setting that it annotates."""

    help: str
    flags: tuple[str, ...] = ()  # made of the name of the setting unless given
    metavar: str | None = None
    least: int | None = None
    given_as: Any = None  # the type on the command line, where it is another one
    parse: Callable[[Any], Any] | None = None  # makes the setting of what is given; None stays None


def facts(value: Any) -> Any:
    """Return the value as JSON: settings by name of field; infinity as text, since JSON lacks it.

    >>> from qubayes.search import Limits
    >>> facts({"limits": Limits(seconds=2.5), "patience": math.inf, "ignore": ("id",)})
    {'limits': {'seconds': 2.5, 'moves': None, 'seed': 0}, 'patience': 'inf', 'ignore': ['id']}
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {name: facts(its) for name, its in _values_of(value).items()}
    if isinstance(value, Mapping):
        return {str(key): facts(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [facts(item) for item in value]
    if isinstance(value, PathLike):
        return fspath(value)
    if hasattr(value, "tolist"):  # an array or a number of numpy
        return facts(value.tolist())
    if isinstance(value, float) and math.isinf(value):
        return str(value)
    if callable(value):
        return f"{value.__module__}:{getattr(value, '__qualname__', type(value).__qualname__)}"
    return value


def _values_of(settings: Any) -> dict[str, Any]:
    """Return the fields of a dataclass by name, without those that have their "plain" value."""
    found = {}
    for each in fields(settings):
        value = getattr(settings, each.name)
        if "plain" not in each.metadata or value != each.metadata["plain"]:
            found[each.name] = value
    return found


def check_whole(settings: Any) -> None:
    """Raise unless fields annotated as `int` hold whole numbers; numpy's integers become `int`."""
    for each in fields(settings):
        value = getattr(settings, each.name)
        kinds = _kinds(each.type)
        if int not in kinds or value in _words(each.type):
            continue
        if value is None and type(None) in kinds:
            continue
        try:
            whole = index(value)
        except TypeError:
            whole = None
        if whole is None or isinstance(value, bool):
            raise SettingError(f"{each.name} = {value!r}; give a whole number")
        object.__setattr__(settings, each.name, whole)


def check_types(settings: Mapping[str, Any], annotations: Mapping[str, Any], owner: str) -> None:
    """Raise unless each setting is one that the owner has, of a type that its annotation allows."""
    for name, value in settings.items():
        if name not in annotations:
            known = ", ".join(annotations) or "none"
            raise SettingError(f"{owner} has no setting {name!r}; it has {known}")
        kinds = _kinds(annotations[name])
        if not any(_is_a(value, kind) for kind in kinds):
            *others, last = [_IN_WORDS.get(kind) or f"a {kind.__name__}" for kind in kinds]
            allowed = f"{', '.join(others)} or {last}" if others else last
            raise SettingError(f"{owner}: {name} = {value!r}; give {allowed}")


def is_number(value: object) -> TypeGuard[float]:
    """True for a number; booleans are not numbers."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_whole(value: object) -> TypeGuard[int]:
    """True for a whole number; booleans are not numbers."""
    return isinstance(value, Integral) and not isinstance(value, bool)


_IN_WORDS: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text",
    Mapping: "a mapping",
    PathLike: "a path",
    NoneType: "none",
}


def _is_a(value: object, kind: Any) -> bool:
    """Return whether the value is of this type; a whole number is a number too."""
    if kind is Any:
        return True
    if kind is float:
        return is_number(value)
    if kind is int:
        return is_whole(value)
    return isinstance(value, kind)


def _words(annotation: Any) -> list[str]:
    """Return the texts that an annotation allows by name."""
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    words: list[str] = []
    for kind in get_args(annotation):
        words += get_args(kind) if get_origin(kind) is Literal else ()
    return words


def _kinds(annotation: Any) -> tuple[Any, ...]:
    """Return the types that an annotation allows, without their parameters."""
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    is_union = get_origin(annotation) in (UnionType, Union)
    members = get_args(annotation) if is_union else (annotation,)
    return tuple(get_origin(each) or each for each in members)
