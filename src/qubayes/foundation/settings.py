"""Settings are declared once: an annotation is the option of the command line, and all else is made from the fields.

    @dataclass(frozen=True)
    class Faster:
        patience: Annotated[float | None, Option("Give up after this many times ...",
            metavar="FACTOR")] = None

The command line reads each `Option` (cli/options.py). `facts` makes JSON of all fields, for
provenance and for the keys of kept results: a field that is added is in every key at once."""

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from operator import index
from os import PathLike, fspath
from types import UnionType
from typing import Annotated, Any, NamedTuple, get_args, get_origin

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
    """Return the value as JSON has it: settings by name of field; infinity, which JSON lacks, as text.

    >>> from qubayes.search import Limits
    >>> facts({"limits": Limits(seconds=2.5), "patience": math.inf, "ignore": ("id", "name")})
    {'limits': {'seconds': 2.5, 'moves': None, 'seed': 0}, 'patience': 'inf', 'ignore': ['id', 'name']}
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: facts(getattr(value, each.name)) for each in fields(value)}
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
    return value


def check_whole(settings: Any) -> None:
    """Raise unless each field annotated as `int` holds a whole number; integers of numpy become `int`."""
    for each in fields(settings):
        value = getattr(settings, each.name)
        kinds = _kinds(each.type)
        if int not in kinds or (value is None and type(None) in kinds):
            continue
        try:
            whole = index(value)
        except TypeError:
            whole = None
        if whole is None or isinstance(value, bool):
            raise SettingError(f"{each.name} = {value!r}; give a whole number")
        object.__setattr__(settings, each.name, whole)


def _kinds(annotation: Any) -> tuple[Any, ...]:
    """Return the types that an annotation allows."""
    kind = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    return get_args(kind) if isinstance(kind, UnionType) else (kind,)
