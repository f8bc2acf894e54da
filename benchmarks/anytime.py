"""Score against processor seconds: networks over grown parent sets, and other packages at their ends.

    python -m benchmarks anytime NETWORK.bif [...] [--rows 1000] [--permutations 5] [--seconds 10]
        [--peer-seconds 120] [--results anytime.jsonl] [--page PAGE.md] [--plot anytime.svg]

Rows are drawn from each network, and the columns are permuted with a fixed seed, since greedy
searches break ties by the order of columns. Every search runs in a process of its own on one
thread, with the data in memory and kernels compiled; seconds are processor time of the search.
Every score is BDeu with equivalent sample size 1, summed afresh by `qubayes.local_score`. There is
no limit of parents. A package that is not installed, or is not done in time, has no point.

The table has one line for each network and permutation: our first network, the best result of the
others, when ours became as good, how many of the others ours was level with or ahead of when they
ended, and our last network. With `--results`, finished searches
are kept and not run again; `--page` puts the table between the two comments that mark its place.
"""

import argparse
import json
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from math import fsum, inf
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from qubayes import Knowledge, Score, Workers, local_score, read_network
from qubayes.candidates import Stamp
from qubayes.data import Dataset
from qubayes.network import sample_dataset
from qubayes.search import Growth
from qubayes.search.growth import MANY_RESTARTS

OURS = "qubayes"
ENDS = "<!-- end of the table -->"
SCORE = Score("bdeu", 1.0)

Point = tuple[float, float]  # seconds, score


class Curve(NamedTuple):
    """The networks that one search found in one table."""

    network: str
    permutation: int
    search: str
    points: list[Point]

    @property
    def end(self) -> Point:
        """The last network."""
        return self.points[-1]


def main() -> None:
    """Run the searches that are not kept, and print the table."""
    options = _options()
    curves = kept(options.results)
    done = {(curve.network, curve.permutation, curve.search) for curve in curves}
    for path in options.networks:
        for permutation in range(options.permutations):
            for search in searches():
                name = path.name.split(".")[0]
                if (name, permutation, search) in done:
                    continue
                seconds = options.seconds if search == OURS else options.peer_seconds
                task = (search, path, options.rows, permutation, seconds)
                points = run_apart(_work, task, 2 * seconds + 20)
                curve = Curve(name, permutation, search, points)
                curves.append(curve)
                keep(curve, options.results)
    lines = list(table(curves))
    print("\n".join(lines))
    if options.page:
        options.page.write_text(with_table(options.page.read_text(), lines))
    if options.plot:
        plot(curves, options.plot)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("networks", nargs="*", type=Path)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--permutations", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--peer-seconds", type=float, default=120.0)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--plot", type=Path)
    return parser.parse_args()


def kept(path: Path | None) -> list[Curve]:
    """Return the searches of earlier runs."""
    if path is None or not path.exists():
        return []
    found = []
    for line in path.read_text().splitlines():
        value = json.loads(line)
        points = [(seconds, score) for seconds, score in value["points"]]
        found.append(Curve(value["network"], value["permutation"], value["search"], points))
    return found


def keep(curve: Curve, path: Path | None) -> None:
    """Add a finished search to the file of results."""
    if path is not None:
        with path.open("a") as file:
            file.write(json.dumps(curve._asdict()) + "\n")


def permuted(path: Path, rows: int, permutation: int) -> Dataset:
    """Return rows drawn from the network, with permuted columns."""
    dataset = sample_dataset(read_network(path), rows, seed=1)
    order = np.random.default_rng(permutation).permutation(dataset.n)
    return dataset.select(order)


def score_of(dataset: Dataset, parents: list[list[int]], score: Score = SCORE) -> float:
    """Return the score of a network, from the data."""
    return fsum(local_score(dataset, child, its, score) for child, its in enumerate(parents))


def searches() -> dict[str, Callable[[Dataset, float], list[Point]]]:
    """Return the searches by name: ours, and those of the packages that are installed."""
    found: dict[str, Callable[[Dataset, float], list[Point]]] = {OURS: grow}
    if find_spec("pyagrum"):
        found["pyAgrum greedy"] = lambda dataset, _: agrum(dataset, "useGreedyHillClimbing")
        found["pyAgrum tabu"] = lambda dataset, _: agrum(dataset, "useLocalSearchWithTabuList")
    if find_spec("pgmpy"):
        found["pgmpy"] = lambda dataset, _: pgmpy(dataset)
    return found


def grow(dataset: Dataset, seconds: float, score: Score = SCORE) -> list[Point]:
    """Return the networks of `Growth`."""
    few = dataset.select(np.arange(min(dataset.n, 8)))
    _growth(few, score).run()  # compiles or loads the kernels
    points: list[Point] = []
    began = time.process_time()

    def note(network: Any, score: float) -> None:
        points.append((time.process_time() - began, score))

    growth = _growth(dataset, score, on_network=note)
    growth.run(lambda: seconds - (time.process_time() - began))
    assert growth.network is not None
    parents = [list(its) for its in growth.network.parents]
    points.append((time.process_time() - began, score_of(dataset, parents, score)))
    return points


def _growth(dataset: Dataset, score: Score, **options: Any) -> Growth:
    allowed = Knowledge().resolve(dataset.names, dataset.n - 1)
    if dataset.kind == "continuous":
        options["restarts"] = MANY_RESTARTS
    engine = score.engine(dataset)
    return Growth(engine, dataset.names, allowed, Stamp(), workers=Workers(1), **options)


def agrum(dataset: Dataset, algorithm: str) -> list[Point]:
    """Return the network of a search of pyAgrum."""
    import pyagrum

    learner = pyagrum.BNLearner(dataset.to_frame())
    learner.setNumberOfThreads(1)
    learner.useScoreBDeu()
    learner.useNoPrior()
    getattr(learner, algorithm)()
    began = time.process_time()
    arcs = learner.learnDAG().arcs()
    seconds = time.process_time() - began
    parents: list[list[int]] = [[] for _ in range(dataset.n)]
    for parent, child in arcs:
        parents[child].append(parent)
    return [(seconds, score_of(dataset, parents))]


def pgmpy(dataset: Dataset) -> list[Point]:
    """Return the network of the hill climbing of pgmpy."""
    from pgmpy.estimators import BDeu, HillClimbSearch

    frame = dataset.to_frame()
    began = time.process_time()
    dag = HillClimbSearch(frame).estimate(
        scoring_method=BDeu(frame, equivalent_sample_size=1), show_progress=False
    )
    seconds = time.process_time() - began
    place = {name: number for number, name in enumerate(dataset.names)}
    parents: list[list[int]] = [[] for _ in range(dataset.n)]
    for parent, child in dag.edges():
        parents[place[child]].append(place[parent])
    return [(seconds, score_of(dataset, parents))]


def run_apart(
    work: Callable[..., list[Point]], task: tuple[Any, ...], seconds: float
) -> list[Point]:
    """Do the work in a process of its own; return no point if it takes more than the seconds."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=_put, args=(queue, work, task), daemon=True)
    process.start()
    process.join(seconds)
    if process.is_alive():
        process.kill()
        process.join()
    return [] if queue.empty() else queue.get()


def _put(queue: Any, work: Callable[..., list[Point]], task: tuple[Any, ...]) -> None:
    queue.put(work(*task))


def _work(search: str, path: Path, rows: int, permutation: int, seconds: float) -> list[Point]:
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return searches()[search](permuted(path, rows, permutation), seconds)


def passed(points: list[Point], score: float) -> float:
    """Return the seconds at which a search had this score; infinite if it never had."""
    margin = 1e-9 * abs(score) if score > -inf else 0.0
    return next((seconds for seconds, found in points if found >= score - margin), inf)


def table(curves: list[Curve]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield (
        "| network | permutation | first, s | best of the others, s | passed at, s |"
        " ahead at their ends | last, s |"
    )
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for ours in (curve for curve in curves if curve.search == OURS and curve.points):
        case = ours.network, ours.permutation
        others = [
            (curve.end[1], curve.end[0], curve.search)
            for curve in curves
            if (curve.network, curve.permutation) == case and curve is not ours and curve.points
        ]
        ahead = sum(passed(ours.points, score) <= seconds for score, seconds, _ in others)
        first, last = ours.points[0], ours.end
        other = when = "none"
        if others:
            score, seconds, name = max(others)
            other = f"{name} {score:,.1f} ({seconds:.2f})"
            at = passed(ours.points, score)
            when = f"{at:.2f}" if at < inf else "never"
        yield (
            f"| {ours.network} | {ours.permutation} | {first[1]:,.1f} ({first[0]:.3f}) | {other} |"
            f" {when} | {ahead} of {len(others)} | {last[1]:,.1f} ({last[0]:.1f}) |"
        )


def with_table(page: str, lines: list[str], name: str = "anytime") -> str:
    """Return the page with these lines in the place of the table of a benchmark."""
    begins = f"<!-- table of python -m benchmarks {name} -->"
    before, _, rest = page.partition(begins)
    _, _, after = rest.partition(ENDS)
    return "\n".join([before + begins, "", *lines, "", ENDS]) + after


def plot(curves: list[Curve], path: Path) -> None:
    """Draw a panel for each network: ours as lines, the others as points."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    names = list(dict.fromkeys(curve.network for curve in curves))
    figure, axes = pyplot.subplots(1, len(names), figsize=(3.4 * len(names), 3.0), squeeze=False)
    colours = {name: f"C{place}" for place, name in enumerate(searches())}
    for name, axis in zip(names, axes[0], strict=True):
        of_network = [curve for curve in curves if curve.network == name and curve.points]
        best = max(curve.end[1] for curve in of_network)
        worst = median(curve.points[0][1] for curve in of_network if curve.search == OURS)
        for curve in of_network:
            seconds, scores = zip(*curve.points, strict=True)
            gains = [100 * (score - worst) / (best - worst) for score in scores]
            style = "-" if curve.search == OURS else "o"
            axis.plot(seconds, gains, style, color=colours[curve.search], markersize=4)
        axis.set_xscale("log")
        axis.set_ylim(bottom=0, top=103)
        axis.set_title(name)
        axis.set_xlabel("processor seconds")
    axes[0][0].set_ylabel("score, % of the gain")
    for search, colour in colours.items():
        axes[0][0].plot([], [], "-" if search == OURS else "o", color=colour, label=search)
    axes[0][0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path)


if __name__ == "__main__":
    main()
