"""What is known before the data are seen: edges that must or may not be, and the order of groups of variables.

As a JSON file, every key optional (an edge is [parent, child]):

    {
      "forbidden": [["Lung", "Smoker"]],
      "required": [["Age", "Lung"]],
      "tiers": [["Age", "Sex"], ["Smoker"], ["Lung"]],
      "forbid_within_tiers": false,
      "max_parents": {"Age": 0},
      "priors": [["Smoker", "Lung", 2.5]],
      "before": [["Age", "Lung"]],
      "not_ancestors": [["Lung", "Smoker"]],
      "ancestors": [["Sex", "Lung"]]
    }

No edge goes from a later tier to an earlier one, nor between variables of one tier if
`forbid_within_tiers` is true. Variables in no tier are free. A prior is added to the score of every
network that has the edge, in nats. All pairs of `before` hold in one common order of the variables
in which parents come before children. A pair [a, b] of `not_ancestors` forbids every directed path
from a to b, one of `ancestors` asks for one.

An order is expressed by candidate sets alone. If a comes before b, a is made a member of every set
of b, whether it is a parent or not: then every network without cycles has the order. A set keeps
the better of the scores with and without a as a parent (`with_order` in prune.py). `ancestors`
cannot be expressed by candidate sets; `learn` searches for the edges that make the path
(`with_ancestors` in learning/pipeline.py)."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..foundation.arrays import Floats
from ..foundation.errors import ConstraintError, FormatError
from ..foundation.families import VertexSet
from ..foundation.files import read_bytes, shown
from ..foundation.graph import cycle_path, find_cycle, reachable

Edge = tuple[str, str]  # (parent, child)

_MOST = 1e6  # nats of a prior: rounding of scores stays small beside them
# characters of a name that are compared when a likely one is looked for: it takes their square
_LONGEST = 100


class Allowed(NamedTuple):
    """The parent sets that may be scored: required[i] and any but excluded[i] of vertex i, limits[i] at most in all."""

    required: tuple[VertexSet, ...]  # parents that every set of the vertex contains
    excluded: tuple[VertexSet, ...]  # the vertex itself, and what cannot be its parent
    limits: tuple[int, ...]  # largest number of parents, the required ones counted
    # (parent, child, what the edge adds to the score)
    priors: tuple[tuple[int, int, float], ...] = ()
    # (first, second) in an order of the vertices that parents precede
    before: tuple[tuple[int, int], ...] = ()
    ancestors: tuple[tuple[int, int], ...] = ()  # (a, b): a directed path leads from a to b

    def prior_of(self, child: int) -> Floats:
        """Return (n,) what the edge from each vertex adds to the score of the child."""
        found = np.zeros(len(self.limits))
        for parent, its, nats in self.priors:
            found[parent] += nats if its == child else 0.0
        return found

    def prior_matrix(self) -> Floats:
        """Return (n, n) [child, parent] what each edge adds to the score."""
        found = np.zeros((len(self.limits), len(self.limits)))
        for parent, child, nats in self.priors:
            found[child, parent] += nats
        return found

    @property
    def allowed(self) -> tuple[VertexSet, ...]:
        """The further parents that a set of each vertex may contain."""
        barred = [
            {*needed, *others} for needed, others in zip(self.required, self.excluded, strict=True)
        ]
        return tuple(tuple(v for v in range(len(barred)) if v not in others) for others in barred)


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What is known of edges, numbers of parents and the order of variables, by name. Nothing is known by default."""

    forbidden: Sequence[Edge] = ()
    required: Sequence[Edge] = ()
    tiers: Sequence[Sequence[str]] = ()
    forbid_within_tiers: bool = False
    max_parents: Mapping[str, int] = field(default_factory=dict)
    # (parent, child, nats that the edge adds to the score)
    priors: Sequence[tuple[str, str, float]] = ()
    # (first, second) in one order that all parents precede their children in
    before: Sequence[Edge] = ()
    not_ancestors: Sequence[Edge] = ()  # (a, b): no directed path leads from a to b
    ancestors: Sequence[Edge] = ()  # (a, b): a directed path leads from a to b

    def __post_init__(self) -> None:
        for key in ("forbidden", "required", "before", "not_ancestors", "ancestors"):
            object.__setattr__(self, key, _checked_edges(key, getattr(self, key)))
        object.__setattr__(self, "priors", _checked_priors(self.priors))
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
                    raise ConstraintError(
                        f"{name!r} is in tier {seen[name]} and again in tier {place}; keep one"
                    )
                seen[name] = place
        if not isinstance(self.max_parents, Mapping) or not all(
            isinstance(name, str) for name in self.max_parents
        ):
            raise ConstraintError(
                f"max_parents = {shown(self.max_parents)}; allowed is an object such as {{'Age': 0}}"
            )
        for name, limit in self.max_parents.items():
            if type(limit) is not int or limit < 0:
                raise ConstraintError(
                    f"max_parents of {name!r} is {shown(limit)}; allowed are whole numbers from 0"
                )
        object.__setattr__(self, "max_parents", dict(self.max_parents))
        if not isinstance(self.forbid_within_tiers, bool):
            raise ConstraintError(
                f"forbid_within_tiers = {self.forbid_within_tiers!r}; allowed are true and false"
            )

    def resolve(self, names: Sequence[str], max_parents: int) -> Allowed:
        """Return the required and the allowed parents of each vertex, none with more than `max_parents`.

        A vertex that required edges lead to from i is not an allowed parent of i: no network
        without cycles has it."""
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
            raise ConstraintError(
                f"the required edges form the cycle {cycle_path(cycle, names)}; remove one of them"
            )
        order = [(index[first], index[second]) for first, second in self._order()]
        paths = [(index[first], index[second]) for first, second in self.ancestors]
        first_ones = [
            {first for first, second in (*order, *paths) if second == vertex} for vertex in range(n)
        ]
        if cycle := find_cycle(
            [sorted(parents | others) for parents, others in zip(required, first_ones, strict=True)]
        ):
            raise ConstraintError(
                f"required edges and the order of variables (before, ancestors, not_ancestors) form the cycle "
                f"{cycle_path(cycle, names)}; remove one of them"
            )
        if self.required or order or paths:
            arcs = np.array(
                [
                    [
                        p in its or p in others
                        for its, others in zip(required, first_ones, strict=True)
                    ]
                    for p in range(n)
                ]
            )
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
            tuple((index[parent], index[child], nats) for parent, child, nats in self.priors),
            tuple(order),
            tuple(paths),
        )

    def _order(self) -> list[Edge]:
        """Return (first, second) of the order that candidate sets express; raise for what they cannot express.

        That a is not an ancestor of b is the order b, a. Several such pairs need no common order:
        only where all of them share a variable in the same place does no cycle of a network and
        these arcs hold two of them."""
        order = [*self.before, *((second, first) for first, second in self.not_ancestors)]
        if (
            len(order) > 1
            and self.not_ancestors
            and min(len({edge[k] for edge in order}) for k in (0, 1)) > 1
        ):
            first, second = self.not_ancestors[0]
            raise ConstraintError(
                f"not_ancestors [{first!r}, {second!r}] stands beside other pairs of the order of variables; they "
                "can be expressed together only if all share the first or the second variable: give them as `before`, "
                "in one common order"
            )
        return list(dict.fromkeys(order))

    def _check(self, names: Sequence[str]) -> None:
        """Raise for names that are not among these, and for required edges that something else forbids."""
        mentions = [
            *(
                (f"the {key} edge {_arrow(edge)}", edge)
                for key in ("forbidden", "required")
                for edge in getattr(self, key)
            ),
            *(
                (f"{key} {list(pair)}", pair)
                for key in ("before", "not_ancestors", "ancestors")
                for pair in getattr(self, key)
            ),
            *((f"the prior of {_arrow(prior[:2])}", prior[:2]) for prior in self.priors),
            *((f"tier {place}", tier) for place, tier in enumerate(self.tiers, 1)),
            ("max_parents", tuple(self.max_parents)),
        ]
        known = set(names)
        for where, name in (
            (where, name)
            for where, mentioned in mentions
            for name in mentioned
            if name not in known
        ):
            near = get_close_matches(
                name[:_LONGEST], [other[:_LONGEST] for other in names], n=1, cutoff=0.0
            )
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ConstraintError(
                f"{where} names {shown(name)}, which is not a variable of the data{hint}"
            )
        tier_of = {name: place for place, tier in enumerate(self.tiers, 1) for name in tier}
        forbidden = set(self.forbidden)
        for edge in self.required:
            parent, child = (tier_of.get(name) for name in edge)
            if edge in forbidden:
                raise ConstraintError(
                    f"the edge {_arrow(edge)} is both required and forbidden; remove one of the two"
                )
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


def refuse_ancestors(knowledge: Knowledge) -> None:
    """Raise if ancestors are required: a set that scores less than its subset may be needed for the path."""
    for first, second in knowledge.ancestors:
        raise ConstraintError(
            f"that {first!r} is an ancestor of {second!r} cannot be expressed by candidate sets; use `qubayes learn`"
            " with the solver exact or auto, or require an edge"
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
        given = (
            ", ".join(map(repr, sorted(set(value) - set(keys))))
            if isinstance(value, dict)
            else "no object"
        )
        raise FormatError(
            f"{path}: {given} is given; allowed is a JSON object with the keys {', '.join(keys)}"
        )
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
            raise ConstraintError(
                f"{key} holds {shown(edge)}; allowed are edges [parent, child] of two names"
            )
        if edge[0] == edge[1]:
            raise ConstraintError(
                f"{key} holds an edge from {edge[0]!r} to itself; no network has one: remove it"
            )
    return tuple(dict.fromkeys((parent, child) for parent, child in edges))


def _checked_priors(value: Any) -> tuple[tuple[str, str, float], ...]:
    """Return the priors; raise if they are not triples of two names and a finite number, each edge once."""
    if not isinstance(value, Iterable) or isinstance(value, str | Mapping):
        raise ConstraintError(
            f"priors = {shown(value)}; allowed is a list of [parent, child, nats]"
        )
    found: list[tuple[str, str, float]] = []
    for prior in value:
        right = isinstance(prior, Sequence) and not isinstance(prior, str) and len(prior) == 3
        number = prior[2] if right else None
        if (
            not right
            or isinstance(number, bool)
            or not isinstance(number, Real)
            or not abs(float(number)) < _MOST
        ):
            raise ConstraintError(
                f"priors hold {shown(prior)}; allowed are [parent, child, nats], a number below {_MOST:g}"
            )
        [(parent, child)] = _checked_edges("priors", [prior[:2]])
        found.append((parent, child, float(number)))
    edges = [prior[:2] for prior in found]
    if twice := [edge for edge in edges if edges.count(edge) > 1]:
        raise ConstraintError(f"the edge {_arrow(twice[0])} has two priors; give their sum")
    return tuple(found)


def _is_list_of_names(value: object) -> bool:
    return (
        isinstance(value, Sequence)
        and not isinstance(value, str)
        and all(isinstance(name, str) for name in value)
    )


def _arrow(edge: Edge) -> str:
    return f"{edge[0]} -> {edge[1]}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
