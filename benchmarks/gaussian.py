"""Score against processor seconds for columns of numbers: ours, FLOP and XGES.

    python -m benchmarks gaussian NETWORK.json [...] [--random 300 1000] [--rows 1000]
        [--samples 5] [--seconds 15] [--peer-seconds 120] [--results FILE.jsonl] [--page PAGE.md]

Rows are drawn from each linear Gaussian network, and the columns are permuted. `--random N` adds a
network of N columns with two edges a column on average, weights from 0.25 to 1 of either sign and
noise of variance 1. Every search runs in a process of its own on one thread, with the data in
memory and kernels compiled; seconds are processor time of the search. Every score is BIC, summed
afresh by `qubayes.local_score`; the others are given the same penalty. FLOP runs with 0, 20 and 200
restarts:

    pip install flopsearch xges

A package that is not installed, or is not done in time, has no point. The table has one line for
each network and sample: the scores of the others less our last one (below 0: ours is better), and
in brackets their seconds and our score at the same seconds, less theirs."""

import argparse
import os
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from math import inf
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from benchmarks.anytime import (
    OURS,
    Curve,
    Point,
    grow,
    keep,
    kept,
    run_apart,
    score_of,
    with_table,
)
from qubayes import Network, Score, read_network
from qubayes.data import Dataset
from qubayes.network import Linear, sample_dataset

TABLE = "gaussian"
SCORE = Score("bic")
RESTARTS = (0, 20, 200)
EDGES = 2  # a column, in random networks
# a search that ends at the same score up to this is level: rounding of two programs
LEVEL = 1e-9

Search = Callable[[Dataset, float], list[Point]]


def main() -> None:
    """Run the searches that are not kept, and print the table."""
    options = _options()
    curves = kept(options.results)
    done = {(curve.network, curve.permutation, curve.search) for curve in curves}
    sources = [*options.networks, *options.random]
    for source in sources:
        name = name_of(source)
        for sample in range(options.samples):
            for search in searches():
                if (name, sample, search) in done:
                    continue
                seconds = options.seconds if search == OURS else options.peer_seconds
                task = (search, source, options.rows, sample, seconds)
                curve = Curve(name, sample, search, run_apart(_work, task, 2 * seconds + 60))
                curves.append(curve)
                keep(curve, options.results)
    lines = list(table(curves))
    print("\n".join(lines))
    if options.page:
        options.page.write_text(with_table(options.page.read_text(), lines, TABLE))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("networks", nargs="*", type=Path)
    parser.add_argument("--random", nargs="*", type=int, default=[])
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--peer-seconds", type=float, default=120.0)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--page", type=Path)
    return parser.parse_args()


def name_of(source: Path | int) -> str:
    """Return the name of a network file, or of a random network."""
    return f"random {source}" if isinstance(source, int) else source.name.split(".")[0]


def random_network(n: int, seed: int) -> Network:
    """Return a random linear Gaussian network."""
    rng = np.random.default_rng(seed)
    parents: list[set[int]] = [set() for _ in range(n)]
    edges = 0
    while edges < EDGES * n:
        first, second = sorted(rng.integers(n, size=2).tolist())
        if first != second and first not in parents[second]:
            parents[second].add(first)
            edges += 1
    linears = []
    for its in parents:
        weights = rng.uniform(0.25, 1.0, len(its)) * rng.choice([-1.0, 1.0], len(its))
        linears.append(Linear(0.0, tuple(weights.tolist()), 1.0))
    names = tuple(f"x{vertex}" for vertex in range(n))
    sets = tuple(tuple(sorted(its)) for its in parents)
    return Network(names, sets, ((),) * n, tuple(linears))


def sampled(source: Path | int, rows: int, sample: int) -> Dataset:
    """Return rows drawn from a network, with permuted columns."""
    network = random_network(source, sample) if isinstance(source, int) else read_network(source)
    dataset = sample_dataset(network, rows, seed=1 + sample)
    return dataset.select(np.random.default_rng(sample).permutation(dataset.n))


def searches() -> dict[str, Search]:
    """Return the searches by name: ours, and those of the packages that are installed."""
    found: dict[str, Search] = {OURS: lambda dataset, seconds: grow(dataset, seconds, SCORE)}
    if find_spec("flopsearch"):
        for restarts in RESTARTS:
            found[f"FLOP {restarts}"] = lambda dataset, _, count=restarts: flop(dataset, count)
    if find_spec("xges"):
        found["XGES"] = lambda dataset, _: xges(dataset)
    return found


def numbers_of(dataset: Dataset) -> Any:
    """Return (rows, n) the numbers, each column divided by its standard deviation."""
    cells = np.array([dataset.numbers[name] for name in dataset.names]).T
    return np.ascontiguousarray((cells - cells.mean(axis=0)) / cells.std(axis=0))


def flop(dataset: Dataset, restarts: int) -> list[Point]:
    """Return the network of FLOP."""
    from flopsearch import flop as search

    cells = numbers_of(dataset)
    began = process_time()
    graph = search(cells, 1.0, restarts=restarts)
    seconds = process_time() - began
    # 1: an edge from the row to the column; 2, in both places: an edge without direction
    directed = np.argwhere(graph == 1).tolist()
    undirected = [pair for pair in np.argwhere(graph == 2).tolist() if pair[0] < pair[1]]
    return [(seconds, score_of(dataset, extension(dataset.n, directed, undirected), SCORE))]


def xges(dataset: Dataset) -> list[Point]:
    """Return the network of XGES."""
    from xges import XGES

    cells = numbers_of(dataset)
    XGES(alpha=1.0).fit(cells[:, :5], verbose=0)  # compiles
    began = process_time()
    search = XGES(alpha=1.0)
    search.fit(cells, verbose=0)
    seconds = process_time() - began
    parents: list[list[int]] = [[] for _ in range(dataset.n)]
    for parent, child in search.get_a_dag_networkx().edges:
        parents[child].append(int(parent))
    return [(seconds, score_of(dataset, parents, SCORE))]


def extension(n: int, directed: list[list[int]], undirected: list[list[int]]) -> list[list[int]]:
    """Return the parents in a DAG of the equivalence class (Dor and Tarsi 1992)."""
    into: list[set[int]] = [set() for _ in range(n)]
    out_of: list[set[int]] = [set() for _ in range(n)]
    beside: list[set[int]] = [set() for _ in range(n)]
    for parent, child in directed:
        into[child].add(parent)
        out_of[parent].add(child)
    for first, second in undirected:
        beside[first].add(second)
        beside[second].add(first)
    parents: list[list[int]] = [[] for _ in range(n)]
    left = set(range(n))

    def is_sink(vertex: int) -> bool:
        """Return whether all edges of the vertex can point to it."""
        around = into[vertex] | beside[vertex]
        joined = [
            around <= into[other] | out_of[other] | beside[other] | {other}
            for other in beside[vertex]
        ]
        return not out_of[vertex] and all(joined)

    while left:
        vertex = next(filter(is_sink, sorted(left)), None)
        if vertex is None:
            raise ValueError("the graph is no equivalence class of DAGs")
        parents[vertex] = sorted(into[vertex] | beside[vertex])
        for other in parents[vertex]:
            out_of[other].discard(vertex)
            beside[other].discard(vertex)
        left.discard(vertex)
    return parents


def _work(search: str, source: Path | int, rows: int, sample: int, seconds: float) -> list[Point]:
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return searches()[search](sampled(source, rows, sample), seconds)


def at(points: list[Point], seconds: float) -> float:
    """Return the score that a search had after these seconds."""
    return max((score for when, score in points if when <= seconds), default=-inf)


def table(curves: list[Curve]) -> Iterator[str]:
    """Yield the lines of the table."""
    peers = list(dict.fromkeys(curve.search for curve in curves if curve.search != OURS))
    yield f"| network | sample | ours, s | {' | '.join(f'{name}, s' for name in peers)} |"
    yield f"|---|--:|--:|{'--:|' * len(peers)}"
    for ours in (curve for curve in curves if curve.search == OURS and curve.points):
        case = ours.network, ours.permutation
        ends = {
            curve.search: curve.end
            for curve in curves
            if (curve.network, curve.permutation) == case and curve.points
        }
        cells = [_beside(ours.points, ends[name]) if name in ends else "none" for name in peers]
        last = ours.end
        text = f"{last[1]:,.1f} ({last[0]:.1f})"
        yield f"| {ours.network} | {ours.permutation} | {text} | {' | '.join(cells)} |"
    yield from _summary(curves, peers)


def _beside(points: list[Point], end: Point) -> str:
    """Return a cell: another's last score less ours; its seconds, and our score then less its."""
    seconds, score = end
    then = difference(at(points, seconds), score)
    there = f"{then:+.1f}" if then > -inf else "none"
    return f"{difference(score, points[-1][1]):+.1f} ({seconds:.2f}: {there})"


def difference(first: float, second: float) -> float:
    """Return the difference of two scores; 0 if it is rounding."""
    found = first - second
    return 0.0 if abs(found) <= LEVEL * abs(second) else found


def _summary(curves: list[Curve], peers: list[str]) -> Iterator[str]:
    """Yield a line with the number of cases in which ours is level or ahead: in the end, then."""
    places = {(curve.network, curve.permutation): curve for curve in curves if curve.search == OURS}
    cells = []
    for name in peers:
        ahead = then = cases = 0
        for curve in curves:
            ours = places.get((curve.network, curve.permutation))
            if curve.search != name or not curve.points or ours is None or not ours.points:
                continue
            seconds, score = curve.end
            cases += 1
            ahead += difference(ours.end[1], score) >= 0.0
            then += difference(at(ours.points, seconds), score) >= 0.0
        cells.append(f"{ahead} of {cases} ({then} of {cases})")
    yield f"| ours level or ahead in the end (at their end) | | | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
