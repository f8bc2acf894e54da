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
    added = {} if name in SOLVERS else {point.name: point.value for point in entry_points(group=GROUP)}
    target = SOLVERS.get(name) or added.get(name)
    if target is None:
        raise SettingError(f"solver {name!r} is unknown; choose one of {', '.join({**SOLVERS, **added})}")
    kind = load(target)
    follows = is_dataclass(kind) and is_solver(kind)
    if not follows:
        raise SettingError(f"{target} is registered as the solver {name!r}, but does not follow qubayes.search.Solver")
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


def is_solver(value: object) -> bool:
    """True if the value has what `Solver` asks for."""
    return callable(value) and all(hasattr(value, name) for name in ("name", "takes", "counts", "prepare"))


def _accepts(annotation: Any, value: object) -> bool:
    """True if a setting with this annotation may have the value. A whole number is a number; a boolean is not."""
    kinds = _alternatives(annotation)
    return (
        Any in kinds
        or (float in kinds and is_number(value))
        or (int in kinds and is_whole(value))
        or isinstance(value, tuple(kind for kind in kinds if kind not in (Any, int, float)))
    )


def _allowed(annotation: Any) -> str:
    """Return the values that the annotation allows, as text."""
    *others, last = [_KINDS.get(kind) or f"a {kind.__name__}" for kind in _alternatives(annotation)]
    return f"{', '.join(others)} or {last}" if others else last


def _alternatives(annotation: Any) -> list[Any]:
    """Return the types of a union, or the one type, without their parameters."""
    is_union = isinstance(annotation, UnionType) or get_origin(annotation) is Union
    return [get_origin(each) or each for each in (get_args(annotation) if is_union else [annotation])]
