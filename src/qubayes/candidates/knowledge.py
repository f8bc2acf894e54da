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
    """The parent sets that may be scored: required[i] and any but excluded[i] of vertex i, limits[i] at most in all."""

    required: tuple[VertexSet, ...]  # parents that every set of the vertex contains
    excluded: tuple[VertexSet, ...]  # the vertex itself, and what cannot be its parent
    limits: tuple[int, ...]  # largest number of parents, the required ones counted

    @property
    def allowed(self) -> tuple[VertexSet, ...]:
        """The further parents that a set of each vertex may contain."""
        barred = [{*needed, *others} for needed, others in zip(self.required, self.excluded, strict=True)]
        return tuple(tuple(v for v in range(len(barred)) if v not in others) for others in barred)


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
            object.__setattr__(self, key, _checked_edges(key, getattr(self, key)))
        if (
            not isinstance(self.tiers, Sequence)
            or isinstance(self.tiers, str)
            or not all(map(_is_list_of_names, self.tiers))
        ):
            raise ConstraintError(
                f"tiers = {shown(self.tiers)}; allowed is a list of lists of names, the earliest first"
            )
        object.__setattr__(self, "tiers", tuple(map(tuple, self.tiers)))
        seen: dict[str, int] = {}
        for place, tier in enumerate(self.tiers, 1):
            for name in tier:
                if name in seen:
                    raise ConstraintError(f"{name!r} is in tier {seen[name]} and again in tier {place}; keep one")
                seen[name] = place
        if not isinstance(self.max_parents, Mapping) or not all(isinstance(name, str) for name in self.max_parents):
            raise ConstraintError(f"max_parents = {shown(self.max_parents)}; allowed is an object such as {{'Age': 0}}")
        for name, limit in self.max_parents.items():
            if type(limit) is not int or limit < 0:
                raise ConstraintError(f"max_parents of {name!r} is {shown(limit)}; allowed are whole numbers from 0")
        object.__setattr__(self, "max_parents", dict(self.max_parents))
        if not isinstance(self.forbid_within_tiers, bool):
            raise ConstraintError(f"forbid_within_tiers = {self.forbid_within_tiers!r}; allowed are true and false")

    def resolve(self, names: Sequence[str], max_parents: int) -> Allowed:
        """Return the required and the allowed parents of each vertex, none with more than `max_parents`.

        A vertex that required edges lead to from i is not an allowed parent of i: no network without cycles has it.
        """
        self._check(names)
        n, index = len(names), {name: vertex for vertex, name in enumerate(names)}
        required: list[set[int]] = [set() for _ in names]
        excluded = [{vertex} for vertex in range(n)]
        for parent, child in self.required:
            required[index[child]].add(index[parent])
        for parent, child in self.forbidden:
            excluded[index[child]].add(index[parent])
        later: set[int] = set()
        for tier in reversed(self.tiers):
            own = {index[name] for name in tier}
            for vertex in own:
                excluded[vertex] |= later | (own if self.forbid_within_tiers else set())
            later |= own
        if cycle := find_cycle([sorted(parents) for parents in required]):
            raise ConstraintError(f"the required edges form the cycle {cycle_path(cycle, names)}; remove one of them")
        if self.required:
            arcs = np.array([[parent in parents for parents in required] for parent in range(n)])
            for ancestor, descendant in np.argwhere(reachable(arcs)).tolist():
                excluded[ancestor].add(descendant)
        limits = [min(max_parents, self.max_parents.get(name, max_parents)) for name in names]
        for name, parents, limit in zip(names, required, limits, strict=True):
            if len(parents) > limit:
                raise ConstraintError(
                    f"{name!r} has {len(parents)} required parents ({_listed([names[p] for p in sorted(parents)])}) "
                    f"and may have at most {limit}; require fewer, or allow more parents"
                )
        return Allowed(
            tuple(tuple(sorted(parents)) for parents in required),
            tuple(tuple(sorted(others)) for others in excluded),
            tuple(limits),
        )

    def _check(self, names: Sequence[str]) -> None:
        """Raise for names that are not among these, and for required edges that something else forbids."""
        mentions = [
            *(
                (f"the {key} edge {_arrow(edge)}", edge)
                for key in ("forbidden", "required")
                for edge in getattr(self, key)
            ),
            *((f"tier {place}", tier) for place, tier in enumerate(self.tiers, 1)),
            ("max_parents", tuple(self.max_parents)),
        ]
        known = set(names)
        for where, name in ((where, name) for where, mentioned in mentions for name in mentioned if name not in known):
            near = get_close_matches(name[:_LONGEST], [other[:_LONGEST] for other in names], n=1, cutoff=0.0)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ConstraintError(f"{where} names {shown(name)}, which is not a variable of the data{hint}")
        tier_of = {name: place for place, tier in enumerate(self.tiers, 1) for name in tier}
        forbidden = set(self.forbidden)
        for edge in self.required:
            parent, child = (tier_of.get(name) for name in edge)
            if edge in forbidden:
                raise ConstraintError(f"the edge {_arrow(edge)} is both required and forbidden; remove one of the two")
            if parent is not None and child is not None and parent > child:
                raise ConstraintError(
                    f"the required edge {_arrow(edge)} goes from tier {parent} back to tier {child}; "
                    "remove the edge or change the tiers"
                )
            if parent is not None and parent == child and self.forbid_within_tiers:
                raise ConstraintError(
                    f"the required edge {_arrow(edge)} lies inside tier {parent}, where forbid_within_tiers allows "
                    "none; remove the edge or change the tiers"
                )


def read_knowledge(path: str | Path) -> Knowledge:
    """Return the knowledge of a JSON file."""
    content = read_bytes(path)
    try:
        value = json.loads(content, object_pairs_hook=_without_repeats)
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


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of the pairs; a key that comes twice would lose what came first."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise FormatError(f"a key comes twice among {_listed([key for key, _ in pairs])}")
    return found


def _checked_edges(key: str, value: Any) -> tuple[Edge, ...]:
    """Return the edges, each once; raise if they are not pairs of different names."""
    if not isinstance(value, Iterable) or isinstance(value, str | Mapping):
        raise ConstraintError(f"{key} = {shown(value)}; allowed is a list of [parent, child]")
    edges = list(value)
    for edge in edges:
        if not _is_list_of_names(edge) or len(edge) != 2:
            raise ConstraintError(f"{key} holds {shown(edge)}; allowed are edges [parent, child] of two names")
        if edge[0] == edge[1]:
            raise ConstraintError(f"{key} holds an edge from {edge[0]!r} to itself; no network has one: remove it")
    return tuple(dict.fromkeys((parent, child) for parent, child in edges))


def _is_list_of_names(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(name, str) for name in value)


def _arrow(edge: Edge) -> str:
    return f"{edge[0]} -> {edge[1]}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
