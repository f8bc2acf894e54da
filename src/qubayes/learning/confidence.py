"""`bootstrap`: confidence in edges by the same search on samples of the rows."""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from operator import index
from pathlib import Path
from typing import Any

import numpy as np

from ..candidates import CandidateSearch, identify_until
from ..data import Dataset
from ..foundation.arrays import Bools, Floats, frozen
from ..foundation.errors import QubayesError, SettingError
from ..foundation.families import VertexSet
from ..foundation.files import json_object, read_text, replacing
from ..foundation.graph import edges_of, find_cycle
from ..foundation.progress import OnProgress, Progress, silent
from ..foundation.stop import Interrupt
from ..foundation.workers import Stopped, Workers, run
from ..network import Network, cpdag
from ..search import Limits, solve

# moves of the annealer on one sample; alarm's 37 variables take half a second
MOVES_PER_VERTEX = 10_000
LEAST_FREQUENCY = 0.5  # frequency that every edge of the consensus exceeds


@dataclass(frozen=True, slots=True)
class Confidence:
    """Frequency of each edge over the bootstrap samples, and the averaged acyclic network."""

    samples: int
    # (n, n) [parent, child]; an edge that may go either way counts half each
    frequencies: Floats = field(repr=False)
    consensus: Network

    def of(self, parent: int, child: int) -> float:
        """Return the share of the samples whose network joins the two, in either direction."""
        return float(self.frequencies[parent, child] + self.frequencies[child, parent])

    def of_edges(self, network: Network) -> dict[tuple[int, int], float]:
        """Return `of` for each edge (parent, child) of the network."""
        return {edge: self.of(*edge) for edge in edges_of(network.parents)}

    def as_json(self, network: Network) -> dict[str, Any]:
        """Return the confidence in the edges of this network, and the consensus."""
        names, edges = network.names, self.of_edges(network).items()
        return {
            "samples": self.samples,
            "edges": [[names[parent], names[child], share] for (parent, child), share in edges],
            "consensus": {
                name: list(parents) for name, parents in self.consensus.parent_names().items()
            },
        }


def bootstrap(
    dataset: Dataset,
    search: CandidateSearch,
    samples: int,
    *,
    seed: int = 0,
    workers: Workers | None = None,
    keep: Path | None = None,
    on_progress: OnProgress = silent,
    interrupt: Interrupt | None = None,
) -> Confidence:
    """Return edge frequencies over networks learned from `samples` bootstrap samples of the rows.

    Directions count only where the data can tell them: edges are taken from each network's
    equivalence class, if networks of a class have the same score. With `keep` the networks are
    written to that file as they are found, and those in it are not learned again. Interrupted, by
    Ctrl-C or by `interrupt.press()` from another thread, it returns what the samples so far say;
    `samples` is 0 if there are none.

    >>> from qubayes.data import read
    >>> import polars
    >>> rain = [0, 0, 1, 1, 0, 1, 0, 1] * 20
    >>> columns = {"rain": rain, "wet": rain, "coin": [0, 1, 0, 1, 0, 0, 1, 1] * 20}
    >>> dataset = read(polars.DataFrame(columns))
    >>> confidence = bootstrap(dataset, CandidateSearch(max_parents=1), samples=3)
    >>> confidence.of(0, 1)  # how often "rain" and "wet" were joined
    1.0
    """
    if samples < 1:
        raise SettingError(f"{samples} bootstrap samples; give 1 or more")
    interrupt = Interrupt() if interrupt is None else interrupt
    kept = kept_networks(keep, dataset.names)[:samples] if keep else []
    found = {number: network for number, network in enumerate(kept) if network is not None}
    missing = [number for number in range(samples) if number not in found]

    def show() -> None:
        on_progress(
            Progress("bootstrap", len(found), samples, f"{len(found)} of {samples} samples")
        )

    with (
        interrupt.listening(),
        suppress(Stopped),  # the samples so far count
        search.score.fitting(workers or Workers()).connected() as joined,
    ):
        show()
        for place, parents in _networks_of_samples(
            dataset, search, seed, missing, joined, interrupt
        ):
            if parents is None:
                break
            found[missing[place]] = Network(dataset.names, parents)
            if keep:
                write_kept(found, keep)
            show()
    networks = [found[number] for number in sorted(found)]
    return confidence_of(dataset.names, networks, search.score.told(dataset))


def confidence_of(
    names: tuple[str, ...], networks: Sequence[Network], told: Bools | None = None
) -> Confidence:
    """Return how often each edge is in these networks; `told` as in `cpdag`."""
    frequencies = np.zeros((len(names), len(names)))
    if networks:
        frequencies = edge_frequencies(networks, told)
    return Confidence(len(networks), frozen(frequencies), consensus(names, frequencies))


def _networks_of_samples(
    dataset: Dataset,
    search: CandidateSearch,
    seed: int,
    numbers: Sequence[int],
    workers: Workers,
    interrupt: Interrupt,
) -> Iterator[tuple[int, tuple[VertexSet, ...] | None]]:
    """Yield (place in `numbers`, what `parents_of_sample` returns) as samples are finished.

    On a cluster a sample is a task of one thread, which no interrupt reaches; tasks in hand are
    called off. Here samples follow each other, each on all threads."""

    def stop() -> bool:
        return bool(interrupt)

    if workers.cluster is None:
        shared = dataset, search, seed, workers, interrupt
        return run(parents_of_sample, shared, numbers, Workers(1).until(stop))
    apart = dataset, search, seed, Workers(1), Interrupt()
    return run(parents_of_sample, apart, numbers, workers.until(stop))


def parents_of_sample(
    shared: tuple[Dataset, CandidateSearch, int, Workers, Interrupt], number: int
) -> tuple[VertexSet, ...] | None:
    """Return the parents of each variable in the network learned from one bootstrap sample.

    Returns None if the search was interrupted."""
    dataset, search, seed, workers, interrupt = shared
    stream = np.random.SeedSequence(seed, spawn_key=(number,))
    rows = np.random.default_rng(stream).integers(dataset.rows, size=dataset.rows)
    candidates = identify_until(
        lambda: bool(interrupt), dataset.take(rows), search, workers=workers
    )
    if candidates is None:
        return None
    # the same on any machine
    limits = Limits(None, moves=MOVES_PER_VERTEX * dataset.n, seed=number)
    solution = solve(candidates, "anneal", limits=limits, workers=workers, interrupt=interrupt)
    return None if solution.interrupted else solution.network.parents


def write_kept(found: dict[int, Network], path: Path) -> None:
    """Write the networks found so far, by their numbers; `kept_networks` reads them."""
    numbers = range(max(found) + 1)
    networks = [found[number].parents if number in found else None for number in numbers]
    with replacing(path) as file:
        json.dump({"networks": networks}, file)


def kept_networks(path: Path, names: tuple[str, ...]) -> list[Network | None]:
    """Return the networks of a bootstrap file, None for missing ones; none if it is damaged."""
    if not path.exists():
        return []
    try:
        lists = json_object(read_text(path))["networks"]
        return [_network_of(names, parents) for parents in lists]
    except (QubayesError, KeyError, TypeError):
        return []


def _network_of(names: tuple[str, ...], parents: Sequence[Sequence[int]] | None) -> Network | None:
    """Return the network with these parents, as a file has them; None for a missing one."""
    if parents is None:
        return None
    return Network(names, tuple(tuple(map(index, members)) for members in parents))


def edge_frequencies(networks: Sequence[Network], told: Bools | None = None) -> Floats:
    """Return (n, n) [parent, child] the share of networks with the edge; half if reversible.

    `told` are the pairs whose direction is not open in equivalent networks."""
    counts = np.zeros((networks[0].n, networks[0].n))
    for network in networks:
        pattern = cpdag(network, told)
        for parent, child in pattern.directed:
            counts[parent, child] += 1.0
        for first, second in pattern.undirected:
            counts[first, second] += 0.5
            counts[second, first] += 0.5
    return counts / len(networks)


def consensus(names: tuple[str, ...], frequencies: Floats) -> Network:
    """Return the edges of most networks, most frequent first, except those that close a cycle.

    Each pair of vertices is taken in its likelier direction.
    """
    joined = frequencies + frequencies.T
    pairs = np.argwhere(np.triu(joined > LEAST_FREQUENCY, 1)).tolist()
    edges = [(a, b) if frequencies[a, b] >= frequencies[b, a] else (b, a) for a, b in pairs]
    parents: list[list[int]] = [[] for _ in names]
    for parent, child in sorted(edges, key=lambda edge: (-joined[edge], -frequencies[edge], edge)):
        parents[child].append(parent)
        if find_cycle(parents):
            parents[child].pop()
    return Network(names, tuple(tuple(sorted(members)) for members in parents))
