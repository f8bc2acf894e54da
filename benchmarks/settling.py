"""Settling moves beside single flips and dwave-samplers on other people's kinds of problem, at equal CPU seconds.

    python -m benchmarks settling --json docs/results/settling.jsonl --pages docs/samplers.md

Tours (TSP), quadratic assignment (QAP) and colouring of random graphs, as QUBOs with one-hot groups. Each sampler makes
eight reads in the given CPU seconds, on one thread; the best feasible value counts. The reference is the best of 300
descents by exchanges of two places (TSP, QAP). With --json rows that are in the file are not measured again."""

import argparse
import itertools
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import dimod
import numpy as np

from benchmarks.paper.bench import with_tables
from benchmarks.paper.table import Table
from benchmarks.paper.trial import circumstances

READS = 8
SOLVERS = ("single flips", "settling moves", "dwave-samplers")
Row = dict[str, Any]


class Problem(NamedTuple):
    """A QUBO, the value of a state (None if it breaks a constraint), and the best value known."""

    model: dimod.BinaryQuadraticModel
    value: Callable[[np.ndarray], float | None]
    reference: float | None


def one_hot(model: dimod.BinaryQuadraticModel, group: Sequence[int], penalty: float) -> None:
    """Add the penalty of a group of which exactly one bit is 1."""
    terms = [(bit, 1.0) for bit in group]
    model.add_linear_equality_constraint(terms, lagrange_multiplier=penalty, constant=-1.0)


def assignment(flow: np.ndarray, distance: np.ndarray, penalty: float) -> Problem:
    """Return the problem to assign n things to n places, with costs flow times distance."""
    n = len(flow)
    model = dimod.BinaryQuadraticModel("BINARY")
    model.add_variables_from((bit, 0.0) for bit in range(n * n))
    for i, j in itertools.permutations(range(n), 2):
        for p, q in itertools.permutations(range(n), 2):
            if flow[i, j] * distance[p, q]:
                model.add_quadratic(i * n + p, j * n + q, flow[i, j] * distance[p, q])
    for k in range(n):
        one_hot(model, [k * n + p for p in range(n)], penalty)
        one_hot(model, [i * n + k for i in range(n)], penalty)

    def value(state: np.ndarray) -> float | None:
        table = state.reshape(n, n)
        if (table.sum(axis=0) != 1).any() or (table.sum(axis=1) != 1).any():
            return None
        return cost_of(table.argmax(axis=1))

    def cost_of(places: np.ndarray) -> float:
        return float((flow * distance[np.ix_(places, places)]).sum())

    return Problem(model, value, best_of_exchanges(cost_of, n))


def best_of_exchanges(cost_of: Callable[[np.ndarray], float], n: int) -> float:
    """Return the least cost of 300 descents by exchanges of two places."""
    random = np.random.default_rng(0)
    best = np.inf
    for _ in range(300):
        places = random.permutation(n)
        cost = cost_of(places)
        moved = True
        while moved:
            moved = False
            for i, j in itertools.combinations(range(n), 2):
                places[[i, j]] = places[[j, i]]
                if cost_of(places) < cost - 1e-9:
                    cost = cost_of(places)
                    moved = True
                else:
                    places[[i, j]] = places[[j, i]]
        best = min(best, cost)
    return float(best)


def tour(n: int, seed: int) -> Problem:
    """Return a round trip through n random points."""
    points = np.random.default_rng(seed).random((n, 2)) * 100
    distance = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=-1))
    following = np.roll(np.eye(n), 1, axis=1)
    return assignment((following + following.T) / 2, distance, float(distance.max()))


def quadratic(n: int, seed: int) -> Problem:
    """Return a quadratic assignment problem of random flows and distances."""
    random = np.random.default_rng(seed)
    flow = np.triu(random.integers(0, 10, (n, n)), 1)
    distance = np.triu(random.integers(1, 10, (n, n)), 1)
    flow, distance = (flow + flow.T) / 2, (distance + distance.T).astype(float)
    return assignment(flow, distance, float(flow.sum(axis=1).max() * distance.max()))


def colouring(n: int, density: float, colours: int, seed: int) -> Problem:
    """Return the problem to colour a random graph; the value is the number of conflicts."""
    random = np.random.default_rng(seed)
    edges = [pair for pair in itertools.combinations(range(n), 2) if random.random() < density]
    model = dimod.BinaryQuadraticModel("BINARY")
    model.add_variables_from((bit, 0.0) for bit in range(n * colours))
    for i, j in edges:
        for colour in range(colours):
            model.add_quadratic(i * colours + colour, j * colours + colour, 1.0)
    for i in range(n):
        one_hot(model, range(i * colours, (i + 1) * colours), 4.0)

    def value(state: np.ndarray) -> float | None:
        table = state.reshape(n, colours)
        if (table.sum(axis=1) != 1).any():
            return None
        chosen = table.argmax(axis=1)
        return float(sum(chosen[i] == chosen[j] for i, j in edges))

    return Problem(model, value, None)


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "TSP, 10 cities": lambda: tour(10, 1),
    "TSP, 14 cities": lambda: tour(14, 2),
    "QAP, 10 places": lambda: quadratic(10, 3),
    "QAP, 14 places": lambda: quadratic(14, 4),
    "colouring, 150 vertices, 5 colours": lambda: colouring(150, 0.1, 5, 5),
    "colouring, 200 vertices, 9 colours": lambda: colouring(200, 0.2, 9, 6),
}


def sampled(solver: str, model: Any, sweeps: int, seed: int, reads: int) -> dimod.SampleSet:
    """Return the samples of one of the solvers."""
    if solver == "dwave-samplers":
        from dwave.samplers import SimulatedAnnealingSampler as Theirs

        return Theirs().sample(model, num_reads=reads, num_sweeps=sweeps, seed=seed)
    from qubayes.qubo.samplers import SimulatedAnnealingSampler

    moves = "settle" if solver == "settling moves" else "flip"
    common = {"num_reads": reads, "num_sweeps": sweeps, "seed": seed, "threads": 1}
    return SimulatedAnnealingSampler().sample(model, moves=moves, **common)


def best_value(solver: str, problem: Problem, seconds: float) -> tuple[float | None, float]:
    """Return the best feasible value of eight reads in about so many CPU seconds, and the seconds."""
    sampled(solver, problem.model, 10, 0, 1)  # compiles
    sweeps, spent = 100, 0.0
    while spent < 0.8 * seconds:
        sweeps = int(sweeps * min(10.0, seconds / spent)) if spent else sweeps
        began = time.process_time()
        found = sampled(solver, problem.model, sweeps, 1, READS)
        spent = time.process_time() - began
    order = [list(found.variables).index(bit) for bit in range(len(problem.model.variables))]
    values = [problem.value(state) for state in found.record.sample[:, order]]
    return min((value for value in values if value is not None), default=None), spent


def measured(name: str, seconds: float) -> Row:
    """Return the values of all solvers on a problem."""
    problem = PROBLEMS[name]()
    row: Row = {"problem": name, "bits": len(problem.model.variables), "seconds": seconds}
    row |= {"reference": problem.reference, **circumstances(), "found": {}}
    for solver in SOLVERS:
        value, spent = best_value(solver, problem, seconds)
        row["found"][solver] = {"value": value, "cpu_seconds": spent}
    return row


def table_of(rows: Sequence[Row]) -> Table:
    """Return the table of the rows."""
    cells = []
    for row in rows:
        found = [row["found"][solver] for solver in SOLVERS]
        values = [_shown(each["value"]) for each in found]
        spent = " / ".join(f"{each['cpu_seconds']:.1f}" for each in found)
        cells.append((row["problem"], f"{row['bits']:,}", _shown(row["reference"]), *values, spent))
    return Table("settling", "", ("problem", "bits", "reference", *SOLVERS, "CPU s"), tuple(cells))


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:,.2f}".removesuffix(".00")


def main() -> None:
    """Measure, print a table, and put it on pages."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--pages", default="")
    options = parser.parse_args()
    kept = []
    if options.json and options.json.exists():
        kept = [json.loads(line) for line in options.json.read_text().splitlines()]
    known = {row["problem"]: row for row in kept}
    for name in PROBLEMS:
        if name not in known:
            known[name] = measured(name, options.seconds)
            if options.json:
                with options.json.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(known[name]) + "\n")
    table = table_of([known[name] for name in PROBLEMS])
    print(table.body())
    for page in filter(None, options.pages.split(",")):
        text = Path(page).read_text(encoding="utf-8")
        Path(page).write_text(with_tables(text, [table]), encoding="utf-8")


if __name__ == "__main__":
    main()
