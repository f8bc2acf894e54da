"""CPU seconds of each stage by two checkouts, run alternately in one go, and whether their results are equal.

    python -m benchmarks speed --against CHECKOUT [--only candidates-bdeu,exact] [--rounds 9]

Each checkout runs in a process of its own with one thread. In every round both do the same work,
one after the other; the fewest CPU seconds of all rounds count. Results are compared by a checksum
of scores, networks, bits and coefficients. Ratios within 3 % are noise. The data are drawn from the
network that the sample data give."""

import argparse
import hashlib
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
Work = Callable[[], Any]  # does the work once and returns what it found


def checksum(found: Any) -> str:
    """Return a short checksum of numbers, texts, arrays and sequences of them."""
    digest = hashlib.sha256()
    _add(found, digest)
    return digest.hexdigest()[:12]


def _add(found: Any, digest: Any) -> None:
    if hasattr(found, "tobytes"):
        digest.update(found.tobytes())
    elif isinstance(found, list | tuple):
        for each in found:
            _add(each, digest)
    else:
        digest.update(repr(found).encode())


def candidates_of(score: str, most: int, rows: int, knowledge: bool = False) -> Work:
    """Return the search for the candidate sets of rows drawn from the sample's network."""
    import qubayes as qb

    dataset = drawn(rows)
    known = qb.Knowledge()
    if knowledge:
        names = dataset.names
        known = qb.Knowledge(forbidden=[(names[0], names[1])], required=[(names[2], names[3])])
    settings = settings_of(max_parents=most, score=qb.Score(score), knowledge=known)

    def work() -> Any:
        candidates = qb.identify(dataset, settings, workers=qb.Workers(1))
        families = candidates.families
        return [families.vertex_start, families.set_start, families.members, candidates.scores]

    return work


def settings_of(**fields: Any) -> Any:
    """Return the settings of candidate sets, which older versions called `Search`."""
    import qubayes as qb

    kind = getattr(qb, "CandidateSearch", None) or qb.Search
    return kind(**fields)


def network() -> Any:
    """Return the best network of the sample data with two parents."""
    import qubayes as qb

    return qb.learn(str(HERE / "examples" / "alarm.csv"), max_parents=2, threads=1).network


def drawn(rows: int) -> Any:
    """Return a dataset drawn from the best network of the sample data."""
    import qubayes as qb

    return qb.read(qb.sample(network(), rows, seed=0))


def solved(solver: str, most: int, rows: int, **limits: Any) -> Work:
    """Return a search for the best network on candidate sets."""
    import qubayes as qb

    candidates = qb.identify(drawn(rows), settings_of(max_parents=most), workers=qb.Workers(1))

    def work() -> Any:
        found = qb.solve(candidates, solver, limits=qb.Limits(**limits), workers=qb.Workers(1))
        return [found.score, found.choice, found.bound]

    return work


def single_flips() -> Any:
    """Return `sa` by single flips, which older versions have by default."""
    import qubayes as qb
    from qubayes.search import solver_named

    try:
        return solver_named("sa", flips=True)
    except qb.QubayesError:
        return solver_named("sa")


def formulated(solver: str | None = None, moves: int = 0) -> Work:
    """Return the cover and the QUBO, or an annealing of it."""
    import qubayes as qb

    candidates = qb.identify(drawn(1000), settings_of(max_parents=4), workers=qb.Workers(1))

    def formulate() -> Any:
        return qb.formulate(candidates, qb.cover(candidates, workers=qb.Workers(1)))

    formulation = formulate()

    def build() -> Any:
        return list(formulate().qubo)

    def anneal() -> Any:
        limits = qb.Limits(seconds=None, moves=moves)
        chosen = single_flips() if solver == "sa" else solver
        found = qb.solve(formulation, chosen, limits=limits, workers=qb.Workers(1))
        return [found.score, found.choice]

    return build if solver is None else anneal


def listed() -> Work:
    """Return the hundred best networks of few variables, and the posterior."""
    import qubayes as qb

    frame = qb.sample(network(), 300, seed=0)
    dataset = qb.read(frame.select(frame.columns[:18]))
    candidates = qb.identify(dataset, settings_of(max_parents=3), workers=qb.Workers(1))

    def work() -> Any:
        found = qb.alternatives(candidates, 100)
        return [found.scores, found.networks, found.edge_shares()]

    return work


def polynomial() -> Work:
    """Return the quadratization of the low autocorrelation of ten bits."""
    from benchmarks.polynomials import labs
    from qubayes.quadratize import quadratize

    energy = labs(10)

    def work() -> Any:
        found = quadratize(energy, mode="greedy")
        return [
            found.bits,
            found.sets,
            list(found.model.to_numpy_vectors(sort_indices=True).quadratic),
        ]

    return work


WORKS: dict[str, Callable[[], Work]] = {
    "candidates-bdeu": lambda: candidates_of("bdeu", 4, 1000),
    "candidates-bds": lambda: candidates_of("bds", 3, 1000),
    "candidates-bic": lambda: candidates_of("bic", 4, 5000),
    "candidates-known": lambda: candidates_of("bdeu", 3, 1000, knowledge=True),
    "exact": lambda: solved("exact", 3, 300, seconds=None),
    "anneal": lambda: solved("anneal", 3, 1000, seconds=None, moves=2_000_000),
    "formulate": formulated,
    "sa": lambda: formulated("sa", 20_000),
    "digital": lambda: formulated("digital", 200_000),
    "alternatives": listed,
    "quadratize": polynomial,
}


def serve(name: str) -> None:
    """Do the work whenever a line comes in; print CPU seconds and the checksum of what was found."""
    work = WORKS[name]()
    work()
    print("ready", flush=True)
    for _ in sys.stdin:
        began = time.process_time()
        found = work()
        print(time.process_time() - began, checksum(found), flush=True)


class Checkout:
    """A process that works with the package of one checkout."""

    def __init__(self, folder: Path, name: str) -> None:
        self.best = math.inf
        self.found = ""
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), "--serve", name],
            env=dict(os.environ, PYTHONPATH=f"{folder / 'src'}{os.pathsep}{HERE}"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._answer()

    def run(self) -> None:
        """Do the work once more."""
        assert self._process.stdin
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        seconds, self.found = self._answer().split()
        self.best = min(self.best, float(seconds))

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()

    def _answer(self) -> str:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("a process ended early; its error stands above")
        return line


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="the other checkout")
    parser.add_argument(
        "--only", default=",".join(WORKS), metavar="NAMES", help=f"some of {', '.join(WORKS)}"
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return
    if options.against is None:
        parser.error("give the other checkout with --against")
    print(
        "| work | other, CPU s | this, CPU s | this / other | results |\n|---|---:|---:|---:|---|"
    )
    for name in options.only.split(","):
        other = Checkout(options.against.resolve(), name)
        this = Checkout(HERE, name)
        for _ in range(options.rounds):
            other.run()
            this.run()
        other.close()
        this.close()
        equal = "equal" if other.found == this.found else "different"
        print(
            f"| {name} | {other.best:.3f} | {this.best:.3f} | {this.best / other.best:.3f} | {equal} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
