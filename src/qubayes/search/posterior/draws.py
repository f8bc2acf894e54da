"""`Draws`: networks drawn from the posterior, and how often a feature occurs among them."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import index
from pathlib import Path
from typing import overload

import numpy as np

from ...foundation.arrays import Bools, Floats, Ints, frozen
from ...foundation.errors import FormatError, QubayesError, SettingError
from ...foundation.families import Families, VertexSet
from ...foundation.files import json_object, read_text, replacing
from ...foundation.graph import reachable
from ...network import Network

_FORMAT = "qubayes draws"
_VERSION = 1
_ARROWS = re.compile(r"\s+(->|<-|--|~>)\s+")


@dataclass(frozen=True)
class Draws(Sequence[Network]):
    """Networks drawn from the posterior, those of one chain after the other."""

    names: tuple[str, ...]
    families: Families = field(repr=False)
    choices: Ints = field(repr=False)  # (draws, n) numbers of parent sets
    scores: Floats = field(repr=False)  # (draws,)
    chains: Ints = field(repr=False)  # (draws,) which chain each is from
    about: str = ""  # score and prior, in words

    def __len__(self) -> int:
        return len(self.choices)

    @overload
    def __getitem__(self, place: int) -> Network: ...

    @overload
    def __getitem__(self, place: slice) -> "Draws": ...

    def __getitem__(self, place: int | slice) -> "Network | Draws":
        if isinstance(place, slice):
            numbers = self.choices[place], self.scores[place], self.chains[place]
            return Draws(self.names, self.families, *numbers, self.about)
        return Network(self.names, self.families.sets_at(self.choices[place]))

    def arcs(self, place: int) -> Bools:
        """Return (n, n) the edges of a network, at [parent, child]."""
        found = np.zeros((len(self.names), len(self.names)), np.bool_)
        for child, members in enumerate(self.families.sets_at(self.choices[place])):
            found[list(members), child] = True
        return found

    def share(self, feature: Callable[[Network], bool]) -> float:
        """Return the share of the networks with a feature."""
        if not len(self):
            raise QubayesError("there are no networks to look at; allow more time")
        return sum(bool(feature(network)) for network in self) / len(self)

    def edges(self) -> Floats:
        """Return (n, n) the share of the networks with each edge, at [parent, child]."""
        return self._mean(lambda arcs: arcs)

    def paths(self) -> Floats:
        """Return (n, n) the share of the networks with a directed path from a to b, at [a, b]."""
        return self._mean(_paths)

    def markov_blankets(self) -> Floats:
        """Return (n, n) the share of the networks in which a is in the Markov blanket of b."""
        return self._mean(_blankets)

    def _mean(self, feature: Callable[[Bools], Bools]) -> Floats:
        total = np.zeros((len(self.names), len(self.names)))
        for place in range(len(self)):
            total += feature(self.arcs(place))
        return total / max(len(self), 1)

    def probability(self, feature: str | Callable[[Network], bool]) -> float:
        """Return the share of the networks with a feature: a function of a network, or words.

        Words are an edge "a -> b", two joined variables "a -- b", a directed path "a ~> b", or a
        v-structure "a -> b <- c", in which a and c are not joined.

        >>> both = Draws(("a", "b"), Families.of([[()], [(0,), ()]]), np.array([[0, 1], [0, 2]]),
        ...     np.zeros(2), np.zeros(2, np.int64))
        >>> both.probability("a -> b"), both.probability("a -- b"), both.probability("b ~> a")
        (0.5, 0.5, 0.0)
        """
        if callable(feature):
            return self.share(feature)
        return self.share(_feature_of(feature, self.names))

    def write(self, path: str | Path) -> None:
        """Write the networks as JSON lines: a header, then one network in each line."""
        header = {"format": _FORMAT, "version": _VERSION, "names": self.names, "about": self.about}
        with replacing(path) as file:
            file.write(json.dumps(header) + "\n")
            for place, sets in enumerate(map(self.families.sets_at, self.choices)):
                line = {
                    "chain": int(self.chains[place]),
                    "score": float(self.scores[place]),
                    "parents": sets,
                }
                file.write(json.dumps(line) + "\n")


def read_draws(path: str | Path) -> Draws:
    """Return the networks that `Draws.write` wrote."""
    lines = read_text(path).splitlines()
    try:
        header = json_object(lines[0])
        if header.get("format") != _FORMAT or header.get("version") != _VERSION:
            raise FormatError(f"{path} has no networks drawn by `learn --draws` of this version")
        names = tuple(map(str, header["names"]))
        rows = [json_object(line) for line in lines[1:]]
        lists = [tuple(tuple(sorted(map(index, its))) for its in row["parents"]) for row in rows]
        for sets in lists:
            Network(names, sets)  # raises for what is no network
        scores = np.array([float(row["score"]) for row in rows])
        chains = np.array([index(row["chain"]) for row in rows], np.int64)
    except (IndexError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, QubayesError):
            raise
        raise FormatError(f"{path} is damaged ({error}); write it again") from error
    return _of_lists(names, lists, scores, chains, str(header.get("about", "")))


def _of_lists(
    names: tuple[str, ...],
    lists: Sequence[tuple[VertexSet, ...]],
    scores: Floats,
    chains: Ints,
    about: str,
) -> Draws:
    """Return the networks with these parents."""
    numbers: list[dict[VertexSet, int]] = [{} for _ in names]
    for sets in lists:
        for known, members in zip(numbers, sets, strict=True):
            known.setdefault(members, len(known))
    families = Families.of([list(known) for known in numbers])
    choices = np.array(
        [[known[members] for known, members in zip(numbers, sets, strict=True)] for sets in lists],
        np.int64,
    ).reshape(len(lists), len(names))
    return Draws(
        names, families, frozen(choices + families.vertex_start[:-1]), scores, chains, about
    )


def _paths(arcs: Bools) -> Bools:
    """Return whether a directed path of at least one edge leads from a to b."""
    found = reachable(arcs)
    np.fill_diagonal(found, False)
    return found


def _blankets(arcs: Bools) -> Bools:
    """Return whether one is a parent, a child or another parent of a child of the other."""
    counts = arcs.astype(np.int64)
    found: Bools = arcs | arcs.T | (counts @ counts.T > 0)
    np.fill_diagonal(found, False)
    return found


def _feature_of(words: str, names: tuple[str, ...]) -> Callable[[Network], bool]:
    """Return the feature that these words describe."""
    parts = _ARROWS.split(words.strip())
    arrows = tuple(parts[1::2])
    index_of = {name: vertex for vertex, name in enumerate(names)}
    for name in parts[::2]:
        if name not in index_of:
            raise SettingError(
                f"the feature {words!r} has {name!r}, which is not a variable; give 'a -> b', "
                "'a -- b', 'a ~> b' or 'a -> b <- c'"
            )
    places = [index_of[name] for name in parts[::2]]
    kinds: dict[tuple[str, ...], Callable[..., bool]] = {
        ("->",): _has_edge,
        ("<-",): lambda network, b, a: _has_edge(network, a, b),
        ("--",): _joins,
        ("~>",): _has_path,
        ("->", "<-"): _has_v_structure,
    }
    if arrows not in kinds:
        raise SettingError(
            f"the feature {words!r} is none of 'a -> b', 'a -- b', 'a ~> b' and 'a -> b <- c'"
        )
    return lambda network: kinds[arrows](network, *places)


def _has_edge(network: Network, a: int, b: int) -> bool:
    return a in network.parents[b]


def _joins(network: Network, a: int, b: int) -> bool:
    return _has_edge(network, a, b) or _has_edge(network, b, a)


def _has_v_structure(network: Network, a: int, child: int, b: int) -> bool:
    both = _has_edge(network, a, child) and _has_edge(network, b, child)
    return both and not _joins(network, a, b)


def _has_path(network: Network, a: int, b: int) -> bool:
    """Return whether a directed path leads from a to b."""
    ancestors = set(network.parents[b])
    waiting = list(ancestors)
    while waiting:
        fresh = set(network.parents[waiting.pop()]) - ancestors
        ancestors |= fresh
        waiting += fresh
    return a in ancestors
