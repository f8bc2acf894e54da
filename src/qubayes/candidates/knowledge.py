"""What is known before the data are seen: edges that must or may not be, and the order of groups of variables.

As a JSON file, every key optional (an edge is [parent, child]):

    {
      "forbidden": [["Lung", "Smoker"]],
      "required": [["Age", "Lung"]],
      "tiers": [["Age", "Sex"], ["Smoker"], ["Lung"]],
      "forbid_within_tiers": false,
      "max_parents": {"Age": 0}
    }

No edge goes from a later tier to an earlier one, nor between variables of one tier if `forbid_within_tiers` is true.
Variables in no tier are free.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..foundation.errors import ConstraintError, FormatError
from ..foundation.families import VertexSet
from ..foundation.files import read_bytes, shown
from ..foundation.graph import cycle_path, find_cycle, reachable

Edge = tuple[str, str]  # (parent, child)

_LONGEST = 100  # characters of a name that are compared when a likely one is looked for: it takes their square


class Allowed(NamedTuple):
    """The parent sets that may be scored: of vertex i, required[i] and any of allowed[i], at most limits[i] in all."""

    required: tuple[VertexSet, ...]  # parents that every set of the vertex contains
    allowed: tuple[VertexSet, ...]  # further parents that a set may contain
    limits: tuple[int, ...]  # largest number of parents, the required ones counted


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Forbidden edges, required edges, tiers and numbers of parents, by name. Nothing is known by default."""

    forbidden: Sequence[Edge] = ()
    required: Sequence[Edge] = ()
    tiers: Sequence[Sequence[str]] = ()
    forbid_within_tiers: bool = False
    max_parents: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for key in ("forbidden", "required"):
            object.__setattr__(self, key, _edges(key, getattr(self, key)))
        object.__setattr__(self, "tiers", _tiers(self.tiers))
        object.__setattr__(self, "max_parents", _limits(self.max_parents))
        if not isinstance(self.forbid_within_tiers, bool):
            raise ConstraintError(f"forbid_within_tiers = {self.forbid_within_tiers!r}; allowed are true and false")

    def resolve(self, names: Sequence[str], max_parents: int) -> Allowed:
        """The required and the allowed parents of each vertex, none with more than `max_parents`.

        A vertex that required edges lead to from i is no allowed parent of i: no network without cycles has it.
        """
        self._check_names(names)
        self._check_edges()
        parents = self._required_parents(names)
        index = {name: vertex for vertex, name in enumerate(names)}
        if cycle := find_cycle([[index[parent] for parent in parents[name]] for name in names]):
            raise ConstraintError(f"the required edges form the cycle {cycle_path(cycle, names)}; remove one of them")
        limits = {name: min(max_parents, self.max_parents.get(name, max_parents)) for name in names}
        for name in names:
            if len(parents[name]) > limits[name]:
                raise ConstraintError(
                    f"{name!r} has {len(parents[name])} required parents ({_listed(parents[name])}) and may have at "
                    f"most {limits[name]}; require fewer, or allow more parents"
                )
        return self._indexed(names, parents, limits)

    def _indexed(self, names: Sequence[str], parents: dict[str, list[str]], limits: dict[str, int]) -> Allowed:
        index = {name: vertex for vertex, name in enumerate(names)}
        excluded = self._excluded(names, parents)
        required, allowed = [], []
        for name in names:
            needed = {index[parent] for parent in parents[name]}
            barred = needed | {index[parent] for parent in excluded[name]}
            required.append(tuple(sorted(needed)))
            allowed.append(tuple(vertex for vertex in range(len(names)) if vertex not in barred))
        return Allowed(tuple(required), tuple(allowed), tuple(limits[name] for name in names))

    def _excluded(self, names: Sequence[str], parents: dict[str, list[str]]) -> dict[str, set[str]]:
        """For each variable those that cannot be its parents, itself among them."""
        excluded = {name: {name} for name in names}
        for parent, child in self.forbidden:
            excluded[child].add(parent)
        later: list[str] = []
        for tier in reversed(self.tiers):
            for child in tier:
                excluded[child].update(later, tier if self.forbid_within_tiers else ())
            later += tier
        if self.required:
            arcs = np.array([[name in parents[child] for child in names] for name in names])
            for ancestor, descendant in np.argwhere(reachable(arcs)).tolist():
                excluded[names[ancestor]].add(names[descendant])
        return excluded

    def _required_parents(self, names: Sequence[str]) -> dict[str, list[str]]:
        parents: dict[str, list[str]] = {name: [] for name in names}
        for parent, child in self.required:
            parents[child].append(parent)
        return parents

    def _check_names(self, names: Sequence[str]) -> None:
        known = set(names)
        for place, name in self._mentions():
            if name not in known:
                near = get_close_matches(name[:_LONGEST], [other[:_LONGEST] for other in names], n=1, cutoff=0.0)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise ConstraintError(f"{place} names {shown(name)}, which is no variable of the data{hint}")

    def _mentions(self) -> Iterable[tuple[str, str]]:
        """(where, name) for every name that is mentioned."""
        for key in ("forbidden", "required"):
            for edge in getattr(self, key):
                yield from ((f"the {key} edge {_arrow(edge)}", name) for name in edge)
        yield from ((f"tier {place + 1}", name) for place, tier in enumerate(self.tiers) for name in tier)
        yield from (("max_parents", name) for name in self.max_parents)

    def _check_edges(self) -> None:
        tier_of = {name: place for place, tier in enumerate(self.tiers) for name in tier}
        forbidden = set(self.forbidden)
        for edge in self.required:
            if edge in forbidden:
                raise ConstraintError(f"the edge {_arrow(edge)} is both required and forbidden; remove one of the two")
            parent, child = (tier_of.get(name) for name in edge)
            if parent is None or child is None:
                continue
            if parent > child:
                raise ConstraintError(
                    f"the required edge {_arrow(edge)} goes from tier {parent + 1} back to tier {child + 1}; "
                    "remove the edge or change the tiers"
                )
            if parent == child and self.forbid_within_tiers:
                raise ConstraintError(
                    f"the required edge {_arrow(edge)} lies inside tier {parent + 1}, where forbid_within_tiers allows "
                    "none; remove the edge or change the tiers"
                )


def read_knowledge(path: str | Path) -> Knowledge:
    """The knowledge that a JSON file holds."""
    content = read_bytes(path)
    try:
        value = json.loads(content, object_pairs_hook=_unrepeated)
    except (RecursionError, ValueError) as error:
        raise FormatError(f"{path}: not a JSON file of prior knowledge ({error})") from error
    keys = [item.name for item in fields(Knowledge)]
    if not isinstance(value, dict) or set(value) - set(keys):
        given = ", ".join(map(repr, sorted(set(value) - set(keys)))) if isinstance(value, dict) else "no object"
        raise FormatError(f"{path}: {given} is given; allowed is a JSON object with the keys {', '.join(keys)}")
    try:
        return Knowledge(**value)
    except ConstraintError as error:
        raise ConstraintError(f"{path}: {error}") from error


def _unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of the pairs; a key that comes twice would lose what came first."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise FormatError(f"a key comes twice among {_listed([key for key, _ in pairs])}")
    return found


def _is_list_of_names(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(name, str) for name in value)


def _edges(key: str, value: Any) -> tuple[Edge, ...]:
    """The edges, each once."""
    if not isinstance(value, Iterable) or isinstance(value, str | Mapping):
        raise ConstraintError(f"{key} = {shown(value)}; allowed is a list of [parent, child]")
    edges = list(value)
    for edge in edges:
        if not _is_list_of_names(edge) or len(edge) != 2:
            raise ConstraintError(f"{key} holds {shown(edge)}; allowed are edges [parent, child] of two names")
        if edge[0] == edge[1]:
            raise ConstraintError(f"{key} holds an edge from {edge[0]!r} to itself; no network has one: remove it")
    return tuple(dict.fromkeys((parent, child) for parent, child in edges))


def _tiers(value: Any) -> tuple[tuple[str, ...], ...]:
    if not isinstance(value, Sequence) or isinstance(value, str) or not all(map(_is_list_of_names, value)):
        raise ConstraintError(f"tiers = {shown(value)}; allowed is a list of lists of names, the earliest first")
    seen: dict[str, int] = {}
    for place, tier in enumerate(value):
        for name in tier:
            if name in seen:
                raise ConstraintError(f"{name!r} is in tier {seen[name] + 1} and again in tier {place + 1}; keep one")
            seen[name] = place
    return tuple(map(tuple, value))


def _limits(value: Any) -> dict[str, int]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise ConstraintError(f"max_parents = {shown(value)}; allowed is an object such as {{'Age': 0}}")
    for name, limit in value.items():
        if type(limit) is not int or limit < 0:
            raise ConstraintError(f"max_parents of {name!r} is {shown(limit)}; allowed are whole numbers from 0")
    return dict(value)


def _arrow(edge: Edge) -> str:
    return f"{edge[0]} -> {edge[1]}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
