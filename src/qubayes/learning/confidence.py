"""Confidence in edges by the bootstrap: the same search on samples of the rows, drawn with replacement."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..candidates import Search, identify
from ..data import Dataset
from ..foundation.arrays import Floats, frozen
from ..foundation.errors import FormatError, SettingError
from ..foundation.families import VertexSet
from ..foundation.files import json_object, read_text, replacing
from ..foundation.graph import find_cycle
from ..foundation.progress import OnProgress, Progress, silent
from ..foundation.workers import Workers
from ..network import Network, cpdag
from ..search import Limits, solve

MOVES_PER_VERTEX = 10_000  # of the annealer on one sample; alarm's 37 variables take half a second
LEAST_FREQUENCY = 0.5  # of an edge of the consensus

Parents = tuple[VertexSet, ...]


@dataclass(frozen=True, slots=True)
class Confidence:
    """Frequency of each edge over the bootstrap samples, and the acyclic network of the frequent ones."""

    samples: int
    frequencies: Floats = field(repr=False)  # (n, n) [parent, child]; an edge that may go either way counts half each
    consensus: Network

    def of(self, parent: int, child: int) -> float:
        """Return the share of the samples whose network joins the two, in either direction."""
        return float(self.frequencies[parent, child] + self.frequencies[child, parent])

    def as_json(self, network: Network) -> dict[str, Any]:
        """Return the confidence in the edges of this network, and the consensus."""
        edges = [(parent, child) for child, parents in enumerate(network.parents) for parent in parents]
        return {
            "samples": self.samples,
            "edges": [[network.names[parent], network.names[child], self.of(parent, child)] for parent, child in edges],
            "consensus": {name: list(parents) for name, parents in self.consensus.parent_names().items()},
        }


def bootstrap(
    dataset: Dataset,
    search: Search,
    samples: int,
    *,
    seed: int = 0,
    workers: Workers | None = None,
    keep: Path | None = None,
    on_progress: OnProgress = silent,
) -> Confidence:
    """Return edge frequencies over networks learned from `samples` bootstrap samples of the rows.

    Directions count only where the data can tell them: edges are taken from each network's equivalence class. With
    `keep` the networks are written to that file as they are found, and those in it are not learned again. Interrupted,
    it returns what the samples so far say, if there are any.

    >>> from qubayes.data import read
    >>> import polars
    >>> rain = [0, 0, 1, 1, 0, 1, 0, 1] * 20
    >>> dataset = read(polars.DataFrame({"rain": rain, "wet": rain, "coin": [0, 1, 0, 1, 0, 0, 1, 1] * 20}))
    >>> confidence = bootstrap(dataset, Search(max_parents=1), samples=3)
    >>> confidence.of(0, 1)  # how often "rain" and "wet" were joined
    1.0
    """
    if samples < 1:
        raise SettingError(f"{samples} bootstrap samples; give 1 or more")
    found = _read(keep, dataset.n)[:samples] if keep else []
    streams = np.random.SeedSequence(seed).spawn(samples)
    try:
        for number in range(len(found), samples):
            found.append(_network_of(_resampled(dataset, streams[number]), search, number, workers))
            if keep:
                _write(keep, found)
            on_progress(Progress("bootstrap", number + 1, samples, f"{number + 1} of {samples} samples"))
    except KeyboardInterrupt:
        if not found:
            raise
    frequencies = frequencies_of(dataset.names, found)
    return Confidence(len(found), frozen(frequencies), consensus(dataset.names, frequencies))


def _resampled(dataset: Dataset, stream: np.random.SeedSequence) -> Dataset:
    rows = np.random.default_rng(stream).integers(dataset.rows, size=dataset.rows)
    return replace(dataset, codes=frozen(dataset.codes[:, rows]))


def _network_of(dataset: Dataset, search: Search, seed: int, workers: Workers | None) -> Parents:
    """Return the network that a fixed number of moves finds: the same on any machine."""
    candidates = identify(dataset, search, workers=workers)
    limits = Limits(None, moves=MOVES_PER_VERTEX * dataset.n, seed=seed)
    solution = solve(candidates, "anneal", limits=limits, workers=workers)
    if solution.interrupted:
        raise KeyboardInterrupt
    return solution.parents


def frequencies_of(names: tuple[str, ...], networks: Sequence[Parents]) -> Floats:
    """Return (n, n) [parent, child] the share of networks whose equivalence class has the edge; half if undirected."""
    counts = np.zeros((len(names), len(names)))
    for parents in networks:
        pattern = cpdag(Network(names, parents))
        for parent, child in pattern.directed:
            counts[parent, child] += 1.0
        for first, second in pattern.undirected:
            counts[first, second] += 0.5
            counts[second, first] += 0.5
    return counts / max(1, len(networks))


def consensus(names: tuple[str, ...], frequencies: Floats) -> Network:
    """Return the edges of more than half of the networks, most frequent first, except those that close a cycle."""
    n = len(names)
    parents: list[list[int]] = [[] for _ in range(n)]
    for parent, child in _frequent(frequencies):
        parents[child].append(parent)
        if find_cycle(parents):
            parents[child].pop()
    return Network(names, tuple(tuple(sorted(members)) for members in parents))


def _frequent(frequencies: Floats) -> Iterator[tuple[int, int]]:
    """Return frequent edges in their likelier direction, by frequency of the pair, then of the direction."""
    joined = frequencies + frequencies.T
    pairs = [(a, b) for a, b in np.argwhere(np.triu(joined > LEAST_FREQUENCY, 1)).tolist()]
    directed = [(a, b) if frequencies[a, b] >= frequencies[b, a] else (b, a) for a, b in pairs]
    return iter(sorted(directed, key=lambda edge: (-joined[edge], -frequencies[edge], edge)))


def _read(path: Path, n: int) -> list[Parents]:
    """Return the networks that were kept; none where the file is absent or damaged."""
    if not path.exists():
        return []
    try:
        networks = json_object(read_text(path)).get("networks")
        return [_checked(network, n) for network in networks] if isinstance(networks, list) else []
    except FormatError:
        return []


def _checked(value: object, n: int) -> Parents:
    if not (isinstance(value, list) and len(value) == n and all(isinstance(members, list) for members in value)):
        raise FormatError("no list of parents for each vertex")
    if not all(type(v) is int and 0 <= v < n for members in value for v in members):
        raise FormatError("parents are numbers of vertices")
    if any(len(set(members)) != len(members) for members in value) or find_cycle(value):
        raise FormatError("a network has no cycles, and a vertex no parent twice")
    return tuple(tuple(members) for members in value)


def _write(path: Path, networks: Sequence[Parents]) -> None:
    with replacing(path) as file:
        json.dump({"networks": networks}, file)
