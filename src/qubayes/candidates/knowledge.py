"""Prior knowledge: required and forbidden edges, order of variables, limits, priors of edges.

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
(`AncestorSearch` in learning/ancestors.py)."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..data.dataset import Dataset
from ..foundation.arrays import Bools, Floats
from ..foundation.errors import ConstraintError, FormatError, option
from ..foundation.families import VertexSet
from ..foundation.files import read_bytes, shown
from ..foundation.graph import cycle_path, find_cycle, reachable
from ..scores import Score

Edge = tuple[str, str]  # (parent, child)

_MOST_NATS = 1e6  # of a prior: rounding of scores stays small beside them
# Characters of a name that are compared when a likely one is looked for: it takes their square.
_COMPARED_CHARACTERS = 100
_EDGE_LISTS = ("forbidden", "required", "before", "not_ancestors", "ancestors")


class Allowed(NamedTuple):
    """The parent sets that may be scored, by vertex: the required parents and some others."""

    required: tuple[VertexSet, ...]  # parents that every set of the vertex contains
    excluded: tuple[VertexSet, ...]  # the vertex itself, and what cannot be its parent
    limits: tuple[int, ...]  # largest number of parents, the required ones counted
    # (parent, child, what the edge adds to the score)
    priors: tuple[tuple[int, int, float], ...] = ()
    # (first, second) in an order of the vertices in which parents come before children
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
        found = []
        for required, excluded in zip(self.required, self.excluded, strict=True):
            barred = {*required, *excluded}
            found.append(tuple(v for v in range(len(self.limits)) if v not in barred))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What is known of edges, numbers of parents and the order of variables, by name.

    By default nothing is known.
    """

    forbidden: Sequence[Edge] = ()
    required: Sequence[Edge] = ()
    tiers: Sequence[Sequence[str]] = ()
    forbid_within_tiers: bool = False
    max_parents: Mapping[str, int] = field(default_factory=dict)
    # (parent, child, nats that the edge adds to the score)
    priors: Sequence[tuple[str, str, float]] = ()
    # (first, second) in one order in which all parents come before their children
    before: Sequence[Edge] = ()
    not_ancestors: Sequence[Edge] = ()  # (a, b): no directed path leads from a to b
    ancestors: Sequence[Edge] = ()  # (a, b): a directed path leads from a to b

    def __post_init__(self) -> None:
        for key in _EDGE_LISTS:
            object.__setattr__(self, key, _checked_edges(key, getattr(self, key)))
        object.__setattr__(self, "priors", _checked_priors(self.priors))
        object.__setattr__(self, "tiers", _checked_tiers(self.tiers))
        object.__setattr__(self, "max_parents", _checked_limits(self.max_parents))
        if not isinstance(self.forbid_within_tiers, bool):
            raise ConstraintError(
                f"forbid_within_tiers = {self.forbid_within_tiers!r}; allowed are true and false"
            )

    def resolve(self, names: Sequence[str], max_parents: int) -> Allowed:
        """Return the required and the allowed parents of each vertex, at most `max_parents`.

        A vertex that required edges lead to from i is not an allowed parent of i: no network
        without cycles has it."""
        self._refuse_unknown(names)
        self._refuse_contradictions()
        index = {name: vertex for vertex, name in enumerate(names)}
        required = _second_to_first(self.required, index)
        order = self._order()
        earlier = _second_to_first([*order, *self.ancestors], index)
        _refuse_cycles(names, required, earlier)
        excluded = self._excluded(index)
        if self.required or order or self.ancestors:
            for ancestor, descendant in np.argwhere(_paths(required, earlier)).tolist():
                excluded[ancestor].add(descendant)
        limits = [min(max_parents, self.max_parents.get(name, max_parents)) for name in names]
        _refuse_too_many(names, required, limits)
        return Allowed(
            required=tuple(tuple(sorted(parents)) for parents in required),
            excluded=tuple(tuple(sorted(others)) for others in excluded),
            limits=tuple(limits),
            priors=tuple(
                (index[parent], index[child], nats) for parent, child, nats in self.priors
            ),
            before=tuple((index[first], index[second]) for first, second in order),
            ancestors=tuple((index[first], index[second]) for first, second in self.ancestors),
        )

    def _excluded(self, index: Mapping[str, int]) -> list[set[int]]:
        """Return what forbidden edges and tiers exclude from the parents of each vertex."""
        excluded = [{vertex} for vertex in range(len(index))]
        for parent, child in self.forbidden:
            excluded[index[child]].add(index[parent])
        later: set[int] = set()
        for tier in reversed(self.tiers):
            own = {index[name] for name in tier}
            barred = later | own if self.forbid_within_tiers else later
            for vertex in own:
                excluded[vertex] |= barred
            later |= own
        return excluded

    def _order(self) -> list[Edge]:
        """Return (first, second) of the order that candidate sets express.

        Raises for what they cannot express. That a is not an ancestor of b is the order b, a.
        Several such pairs need no common order: only where all of them share a variable in the same
        place does no cycle of a network and these arcs hold two of them."""
        order = [*self.before, *((second, first) for first, second in self.not_ancestors)]
        firsts = {first for first, _ in order}
        seconds = {second for _, second in order}
        if self.not_ancestors and min(len(firsts), len(seconds)) > 1:
            first, second = self.not_ancestors[0]
            raise ConstraintError(
                f"not_ancestors [{first!r}, {second!r}] stands beside other pairs of the order of "
                "variables; they can be expressed together only if all share the first or the "
                "second variable: give them as `before`, in one common order"
            )
        return list(dict.fromkeys(order))

    def _mentions(self) -> Iterator[tuple[str, str]]:
        """Yield (where, name) of every variable that is named."""
        for key in _EDGE_LISTS:
            for edge in getattr(self, key):
                is_edge = key in ("forbidden", "required")
                where = f"the {key} edge {_arrow(edge)}" if is_edge else f"{key} {list(edge)}"
                yield from ((where, name) for name in edge)
        for parent, child, _ in self.priors:
            where = f"the prior of {_arrow((parent, child))}"
            yield where, parent
            yield where, child
        for place, tier in enumerate(self.tiers, 1):
            yield from ((f"tier {place}", name) for name in tier)
        yield from (("max_parents", name) for name in self.max_parents)

    def _refuse_unknown(self, names: Sequence[str]) -> None:
        """Raise for names that are not among these."""
        known = set(names)
        for where, name in self._mentions():
            if name not in known:
                raise ConstraintError(
                    f"{where} names {shown(name)}, which is not a variable of the data"
                    f"{_suggestion(name, names)}"
                )

    def _refuse_contradictions(self) -> None:
        """Raise for required edges that are forbidden, or go against the tiers."""
        tier_of = {}
        for place, tier in enumerate(self.tiers, 1):
            tier_of.update(dict.fromkeys(tier, place))
        forbidden = set(self.forbidden)
        for edge in self.required:
            if edge in forbidden:
                raise ConstraintError(
                    f"the edge {_arrow(edge)} is both required and forbidden; remove one of the two"
                )
            if edge[0] not in tier_of or edge[1] not in tier_of:
                continue
            parent, child = tier_of[edge[0]], tier_of[edge[1]]
            if parent > child:
                raise ConstraintError(
                    f"the required edge {_arrow(edge)} goes from tier {parent} back to tier "
                    f"{child}; remove the edge or change the tiers"
                )
            if parent == child and self.forbid_within_tiers:
                raise ConstraintError(
                    f"the required edge {_arrow(edge)} lies inside tier {parent}, where "
                    "forbid_within_tiers allows none; remove the edge or change the tiers"
                )


def allowed_for(dataset: Dataset, score: Score, knowledge: Knowledge, most: int) -> Allowed:
    """Return the parent sets that prior knowledge and the kinds of the columns allow.

    A continuous parent of a discrete variable is never allowed, and may not be required, unless a
    function of the user is the score."""
    found = knowledge.resolve(dataset.names, most)
    if dataset.kind != "mixed" or score.function is not None:
        return found
    numbers = [v for v, states in enumerate(dataset.states) if not states]
    excluded = list(found.excluded)
    for child, states in enumerate(dataset.states):
        if not states:
            continue
        if wrong := set(found.required[child]).intersection(numbers):
            number, state = dataset.names[min(wrong)], dataset.names[child]
            raise ConstraintError(
                f"the edge {number} -> {state} is required, and no number can be a parent of"
                f" states; require {state} -> {number}, or cut the column with"
                f" {option('bins', {number: 3})}"
            )
        excluded[child] = tuple(sorted({*excluded[child], *numbers}))
    return found._replace(excluded=tuple(excluded))


def _second_to_first(pairs: Sequence[Edge], index: Mapping[str, int]) -> list[set[int]]:
    """Return for each vertex the first ones of the pairs in which it is second."""
    found: list[set[int]] = [set() for _ in index]
    for first, second in pairs:
        found[index[second]].add(index[first])
    return found


def _refuse_cycles(names: Sequence[str], required: list[set[int]], earlier: list[set[int]]) -> None:
    """Raise if the required edges form a cycle, alone or with the order of variables."""
    if cycle := find_cycle([sorted(parents) for parents in required]):
        raise ConstraintError(
            f"the required edges form the cycle {cycle_path(cycle, names)}; remove one of them"
        )
    both = [sorted(parents | others) for parents, others in zip(required, earlier, strict=True)]
    if cycle := find_cycle(both):
        raise ConstraintError(
            "required edges and the order of variables (before, ancestors, not_ancestors) form the "
            f"cycle {cycle_path(cycle, names)}; remove one of them"
        )


def _paths(required: list[set[int]], earlier: list[set[int]]) -> Bools:
    """Return (n, n) whether required edges and the order lead from a to b, at [a, b]."""
    arcs = np.zeros((len(required), len(required)), np.bool_)
    for vertex, parents in enumerate(required):
        arcs[list(parents | earlier[vertex]), vertex] = True
    return reachable(arcs)


def _refuse_too_many(names: Sequence[str], required: list[set[int]], limits: Sequence[int]) -> None:
    """Raise if a vertex has more required parents than it may have parents."""
    for name, parents, limit in zip(names, required, limits, strict=True):
        if len(parents) > limit:
            listed = _listed([names[parent] for parent in sorted(parents)])
            raise ConstraintError(
                f"{name!r} has {len(parents)} required parents ({listed}) "
                f"and may have at most {limit}; require fewer, or allow more parents"
            )


def refuse_ancestors(knowledge: Knowledge) -> None:
    """Raise if ancestors are required: the path may need a set that scores less than its subset."""
    for first, second in knowledge.ancestors:
        raise ConstraintError(
            f"that {first!r} is an ancestor of {second!r} cannot be expressed by candidate sets; "
            "use `qubayes learn` with the solver exact or auto, or require an edge"
        )


def read_knowledge(path: str | Path) -> Knowledge:
    """Return the knowledge of a JSON file."""
    content = read_bytes(path)
    try:
        value = json.loads(content, object_pairs_hook=_without_repeats)
    except (RecursionError, ValueError) as error:
        raise FormatError(f"{path}: not a JSON file of prior knowledge ({error})") from error
    keys = [item.name for item in fields(Knowledge)]
    given = "no object"
    if isinstance(value, dict):
        given = ", ".join(map(repr, sorted(set(value) - set(keys))))
    if given:
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


def _checked_tiers(value: Any) -> tuple[tuple[str, ...], ...]:
    """Return the tiers; raise if they are not lists of names, each name once."""
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    if not is_list or not all(map(_is_list_of_names, value)):
        raise ConstraintError(
            f"tiers = {shown(value)}; allowed is a list of lists of names, the earliest first"
        )
    seen: dict[str, int] = {}
    for place, tier in enumerate(value, 1):
        for name in tier:
            if name in seen:
                raise ConstraintError(
                    f"{name!r} is in tier {seen[name]} and again in tier {place}; keep one"
                )
            seen[name] = place
    return tuple(map(tuple, value))


def _checked_limits(value: Any) -> dict[str, int]:
    """Return the largest numbers of parents; raise if they are not whole numbers by name."""
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise ConstraintError(
            f"max_parents = {shown(value)}; allowed is an object such as {{'Age': 0}}"
        )
    for name, limit in value.items():
        if type(limit) is not int or limit < 0:
            raise ConstraintError(
                f"max_parents of {name!r} is {shown(limit)}; allowed are whole numbers from 0"
            )
    return dict(value)


def _checked_priors(value: Any) -> tuple[tuple[str, str, float], ...]:
    """Return the priors; raise if they are not (name, name, finite number), each edge once."""
    if not isinstance(value, Iterable) or isinstance(value, str | Mapping):
        raise ConstraintError(
            f"priors = {shown(value)}; allowed is a list of [parent, child, nats]"
        )
    found: dict[Edge, float] = {}
    repeated: list[Edge] = []
    for prior in value:
        is_triple = isinstance(prior, Sequence) and not isinstance(prior, str) and len(prior) == 3
        if not is_triple or not _is_small_number(prior[2]):
            raise ConstraintError(
                f"priors hold {shown(prior)}; allowed are [parent, child, nats], "
                f"a number below {_MOST_NATS:g}"
            )
        [edge] = _checked_edges("priors", [prior[:2]])
        if edge in found:
            repeated.append(edge)
        found[edge] = float(prior[2])
    for edge in repeated:
        raise ConstraintError(f"the edge {_arrow(edge)} has two priors; give their sum")
    return tuple((parent, child, nats) for (parent, child), nats in found.items())


def _is_small_number(value: Any) -> bool:
    """Return whether the value is a number below the most nats of a prior, and not NaN."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return is_number and abs(float(value)) < _MOST_NATS


def _is_list_of_names(value: object) -> bool:
    """Return whether the value is a list of texts."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return False
    return all(isinstance(name, str) for name in value)


def _suggestion(name: str, names: Sequence[str]) -> str:
    """Return a hint with the name that is most like this one."""
    others = [other[:_COMPARED_CHARACTERS] for other in names]
    near = get_close_matches(name[:_COMPARED_CHARACTERS], others, n=1, cutoff=0.0)
    return f"; did you mean {near[0]!r}?" if near else ""


def _arrow(edge: Edge) -> str:
    """Return the edge as text."""
    return f"{edge[0]} -> {edge[1]}"


def _listed(names: Sequence[str]) -> str:
    """Return the first names as text."""
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
