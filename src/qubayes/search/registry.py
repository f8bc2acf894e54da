"""The solvers by name, and the check of their settings.

Solvers are loaded on first use. Another package adds one by an entry point of the group "qubayes.solvers"; in its
pyproject.toml:

    [project.entry-points."qubayes.solvers"]
    genetic = "genetic_orders.solver:Genetic"
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from importlib.metadata import entry_points
from os import PathLike
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from ..foundation.errors import SettingError
from .run import Solver, is_number, is_whole

GROUP = "qubayes.solvers"
SOLVERS = {
    "anneal": "qubayes.search.orders.anneal:Anneal",
    "digital": "qubayes.qubo.samplers.digital:Digital",
    "sa": "qubayes.qubo.samplers.sa:SimulatedAnnealing",
    "bqp": "qubayes.qubo.samplers.bqp:QuadraticProgram",
    "hillclimb": "qubayes.search.orders.hillclimb:HillClimb",
    "order-sa": "qubayes.search.orders.swaps:OrderAnnealing",
    "asobs": "qubayes.search.orders.swaps:AcyclicSelection",
    "exact": "qubayes.search.exact:Exact",
    "auto": "qubayes.search.exact:ExactThenAnneal",
    "dimod": "qubayes.qubo.samplers.dimod_bridge:DimodSampler",
}
_KINDS: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text",
    Mapping: "a mapping",
    PathLike: "a path",
    NoneType: "none",
}


def solver_named(name: str, **settings: Any) -> Solver:
    """Return the solver of this name with these settings; the others keep their defaults."""
    kind = _solver_class(name)
    known, annotations = [field.name for field in fields(kind)], get_type_hints(kind)
    for setting, value in settings.items():
        if setting not in known:
            raise SettingError(f"{name} has no setting {setting!r}; it has {', '.join(known) or 'none'}")
        if not _accepts(annotations[setting], value):
            raise SettingError(f"{name}: {setting} = {value!r}; give {_allowed(annotations[setting])}")
    solver: Solver = kind(**settings)
    return solver


def load(target: str) -> Any:
    """Return the object that "module:name" names."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


def _solver_class(name: str) -> Any:
    if name in SOLVERS:
        return load(SOLVERS[name])
    found = tuple(entry_points(group=GROUP))
    for point in found:
        if point.name == name:
            kind = point.load()
            if not (is_dataclass(kind) and is_solver(kind)):
                raise SettingError(
                    f"{point.value} is registered as the solver {name!r}, but does not follow qubayes.search.Solver"
                )
            return kind
    names = ", ".join(dict.fromkeys([*SOLVERS, *(point.name for point in found)]))
    raise SettingError(f"solver {name!r} is unknown; choose one of {names}")


def is_solver(value: object) -> bool:
    """True if the value has what `Solver` asks for."""
    return callable(value) and all(hasattr(value, name) for name in ("name", "takes", "counts", "prepare"))


def _accepts(annotation: Any, value: object) -> bool:
    """True if a setting with this annotation may have the value. A whole number is a number; a boolean is not."""
    if annotation is Any:
        return True
    if _is_union(annotation):
        return any(_accepts(each, value) for each in get_args(annotation))
    if annotation is float:
        return is_number(value)
    if annotation is int:
        return is_whole(value)
    return isinstance(value, get_origin(annotation) or annotation)


def _allowed(annotation: Any) -> str:
    """Return the values that the annotation allows, as text."""
    if _is_union(annotation):
        *others, last = [_allowed(each) for each in get_args(annotation)]
        return f"{', '.join(others)} or {last}"
    plain = get_origin(annotation) or annotation
    return _KINDS.get(plain) or f"a {plain.__name__}"


def _is_union(annotation: Any) -> bool:
    return isinstance(annotation, UnionType) or get_origin(annotation) is Union
