"""Settings as JSON, for provenance and for the keys of kept results.

A result is kept under a key that `facts` makes of all fields of the settings that it was made with: a field that is
added to the settings is in every key at once.
"""

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from os import PathLike, fspath
from typing import Any


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
