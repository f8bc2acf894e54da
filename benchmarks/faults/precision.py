"""How far scores, probabilities and energies are from exact arithmetic, on random tables.

    python -m benchmarks faults precision --tables 40 --rows 1000000 --seed 0

Scores are compared with mpmath on enough digits, probabilities and energies with
`fractions.Fraction`; the tables are counted in dictionaries. Prints the worst relative error of
each kind; exit code 1 if one is above 1e-9."""

import argparse
import math
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from io import StringIO
from json import loads
from pathlib import Path

import mpmath
import numpy as np

from qubayes.candidates import Candidates, CandidateSearch, identify
from qubayes.cli import main as command_line
from qubayes.data import Dataset, write
from qubayes.foundation.progress import silent
from qubayes.foundation.random import random_stream
from qubayes.foundation.workers import Workers
from qubayes.network import Network, fit, log_likelihood, write_network
from qubayes.qubo import Formulation, Qubo, encode_sets, energy, formulate
from qubayes.qubo.subsets import cover
from qubayes.scores import NAMES, Score, local_score
from qubayes.search.exact import presolve
from qubayes.search.run import Limits, Run
from qubayes_baselines.hillclimb import data_of, new_climb, possible_edges
from qubayes_baselines.hillclimb_kernels import climb_edges

ALLOWED = 1e-9
ARITIES = (1, 2, 2, 3, 4, 7, 20, 1000)
# equivalent sample sizes
WEIGHTS = (1e-100, 1e-20, 1e-6, 1e-3, 0.1, 1.0, 10.0, 1e3, 1e6, 1e12, 1e100)
FAMILIES = 6  # of each table


@dataclass
class Record:
    """The worst relative error of each kind of number."""

    counts: Counter[str] = field(default_factory=Counter)
    worst: dict[str, tuple[float, str]] = field(default_factory=dict)

    def add(self, kind: str, found: float, exact: mpmath.mpf | Fraction, where: str) -> None:
        """Compare a number with what it should be; where that is 0, the error is absolute."""
        error = abs(_exactly(found) - exact)
        relative = (
            float(error / abs(exact) if exact else error) if math.isfinite(found) else math.inf
        )
        self.counts[kind] += 1
        if relative >= self.worst.get(kind, (-1.0, ""))[0]:
            self.worst[kind] = (relative, where)

    def lines(self) -> Iterator[str]:
        """A Markdown table."""
        yield "| kind | numbers | worst relative error | there |"
        yield "|---|---|---|---|"
        for kind in sorted(self.counts):
            error, where = self.worst[kind]
            yield f"| {kind} | {self.counts[kind]} | {error:.1e}{' FAILED' if error > ALLOWED else ''} | {where} |"


def _exactly(number: float) -> Fraction:
    return Fraction(number) if math.isfinite(number) else Fraction(0)


def as_mpf(number: Fraction) -> mpmath.mpf:
    """The fraction on as many digits as are in use."""
    return mpmath.mpf(number.numerator) / number.denominator


# -- exact scores


@lru_cache(maxsize=1 << 18)
def rising(count: int, prior: Fraction) -> mpmath.mpf:
    """log (prior (prior + 1) ... (prior + count - 1))."""
    with mpmath.workdps(50 + max(0, len(str(int(prior))))):  # the digits that the difference loses
        a = as_mpf(prior)
        return mpmath.loggamma(a + count) - mpmath.loggamma(a)


class Counted:
    """A table of data, counted in dictionaries: each family once."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self._cells: dict[tuple[int, ...], Counter[tuple[int, ...]]] = {}

    def cells(self, *family: int) -> Counter[tuple[int, ...]]:
        """How often each joint state of the family occurs."""
        if family not in self._cells:
            self._cells[family] = Counter(
                zip(*(self.dataset.codes[v].tolist() for v in family), strict=True)
            )
        return self._cells[family]


def exact_score(counted: Counted, child: int, parents: Sequence[int], score: Score) -> mpmath.mpf:
    """The local score by its definition."""
    dataset, cells = counted.dataset, counted.cells(*parents, child)
    states: Counter[tuple[int, ...]] = Counter()
    for cell, count in cells.items():
        states[cell[:-1]] += count
    declared = math.prod(len(dataset.states[v]) for v in parents)
    arity = len(dataset.states[child])
    if score.name in ("loglik", "aic", "bic"):
        price = {
            "loglik": mpmath.mpf(0),
            "aic": mpmath.mpf(1),
            "bic": mpmath.log(dataset.rows) / 2,
        }[score.name]
        fitted = sum(
            count * mpmath.log(as_mpf(Fraction(count, states[cell[:-1]])))
            for cell, count in cells.items()
        )
        return fitted - price * declared * (arity - 1)
    if score.name == "k2":
        per_state, per_cell = Fraction(arity), Fraction(1)
    elif score.name == "bdeu":
        per_state, per_cell = (
            Fraction(score.ess) / declared,
            Fraction(score.ess) / (declared * arity),
        )
    else:
        observed = len({cell[-1] for cell in cells})
        per_state, per_cell = (
            Fraction(score.ess) / len(states),
            Fraction(score.ess) / (len(states) * observed),
        )
    return _sum_rising(cells, per_cell) - _sum_rising(states, per_state)


def _sum_rising(counts: Counter[tuple[int, ...]], prior: Fraction) -> mpmath.mpf:
    return sum(
        (n * rising(count, prior) for count, n in Counter(counts.values()).items()), mpmath.mpf(0)
    )


# -- random tables


def random_table(
    rng: np.random.Generator, rows: int, variables: int = 5, arities: Sequence[int] = ARITIES
) -> Dataset:
    """Columns of many arities: skewed, constant, copies up to names, noisy functions of two others."""
    columns, states = [], []
    for v in range(variables):
        arity = int(rng.choice(arities))
        kind = int(rng.integers(5))
        if kind == 0 and v:
            of = int(rng.integers(v))
            arity, column = len(states[of]), rng.permutation(len(states[of]))[columns[of]]
        elif kind == 1 and v > 1:
            column = (columns[v - 1] * 3 + columns[v - 2]) % arity
            noise = rng.random(rows) < rng.choice([0.0, 1 / rows, 0.2])
            column = np.where(noise, rng.integers(arity, size=rows), column)
        elif kind == 2:
            column = np.zeros(rows, np.int64)
            column[: int(rng.integers(2))] = arity - 1  # constant, or all but one row
        else:
            shares = rng.dirichlet(np.full(arity, rng.choice([0.05, 1.0, 50.0])))
            column = rng.choice(arity, size=rows, p=shares)
        columns.append(column)
        states.append(tuple(map(str, range(arity))))
    names = tuple(f"v{v}" for v in range(variables))
    kind = np.min_scalar_type(max(map(len, states)) - 1)
    return Dataset(names, tuple(states), np.array(columns).astype(kind))


def check_table(rng: np.random.Generator, rows: int, record: Record) -> None:
    """All kinds of score on one random table."""
    dataset = random_table(rng, rows)
    counted = Counted(dataset)
    families = [
        rng.permutation(dataset.n)[: 1 + int(rng.integers(4))].tolist() for _ in range(FAMILIES)
    ]
    ess = float(rng.choice(WEIGHTS))
    sizes = "x".join(str(len(its)) for its in dataset.states)
    for name in NAMES:
        score = Score(name, ess)
        where = f"{rows} rows, arities {sizes}, ess {ess:g}"
        for child, *parents in families:
            exact = exact_score(counted, child, parents, score)
            record.add(f"score {name}", local_score(dataset, child, parents, score), exact, where)
        candidates = identify(dataset, CandidateSearch(3, score), workers=Workers(1))
        check_candidates(rng, counted, candidates, score, record, where)
    check_probabilities(rng, counted, ess, record)


def check_candidates(
    rng: np.random.Generator,
    counted: Counted,
    candidates: Candidates,
    score: Score,
    record: Record,
    where: str,
) -> None:
    """The scores that the search keeps, and those that the hill climber counts."""
    owners = np.repeat(np.arange(candidates.n), candidates.families.sizes)
    for number in rng.permutation(len(owners))[: 2 * FAMILIES].tolist():
        child = int(owners[number])
        parents, found = list(candidates.of(child))[
            number - int(candidates.families.vertex_start[child])
        ]
        exact = exact_score(counted, child, parents, score)
        record.add(f"candidate {score.name}", found, exact, where)
    check_climber(rng, counted, candidates, score, record, where)


def check_climber(
    rng: np.random.Generator,
    counted: Counted,
    candidates: Candidates,
    score: Score,
    record: Record,
    where: str,
) -> None:
    """What the hill climber counts for one vertex of a random network, with each edge into it toggled."""
    edges = possible_edges(candidates)
    if not len(edges):
        return
    chosen = random_network(rng, candidates)
    parents = candidates.families.sets_at(chosen)
    run = Run(candidates, Limits(None), Workers(1), chosen, silent, "hillclimb")
    climb = new_climb(run, edges, random_stream(0), hashed=True, kick=0)
    vertex = int(rng.integers(candidates.n))
    climb_edges(None, data_of(counted.dataset, candidates), climb, 0)
    for other in np.flatnonzero(np.isfinite(climb.scores[vertex])).tolist():
        toggled = sorted({*parents[vertex]} ^ ({other} - {vertex}))
        exact = exact_score(counted, vertex, toggled, score)
        record.add(f"climber {score.name}", float(climb.scores[vertex, other]), exact, where)


# -- probabilities


def check_probabilities(
    rng: np.random.Generator, counted: Counted, ess: float, record: Record
) -> None:
    """Tables of a random network, the log-likelihood, and what `qubayes score` prints."""
    dataset = counted.dataset
    order = rng.permutation(dataset.n).tolist()
    parents: list[tuple[int, ...]] = [()] * dataset.n
    for place, vertex in enumerate(order):
        parents[vertex] = tuple(sorted(order[max(0, place - int(rng.integers(3))) : place]))
    if (
        max(math.prod(len(dataset.states[v]) for v in (*its, i)) for i, its in enumerate(parents))
        > 100_000
    ):
        return
    score = Score(str(rng.choice(["bdeu", "bds", "k2", "loglik"])), ess)
    network = fit(Network(dataset.names, tuple(parents)), dataset, score)
    assert network.tables is not None
    vertex = int(rng.integers(dataset.n))
    where = f"{dataset.rows} rows, ess {ess:g}"
    for place, exact in exact_table(counted, vertex, parents[vertex], score):
        record.add(f"probability {score.name}", float(network.tables[vertex][place]), exact, where)
    total = mpmath.mpf(0)
    for child, its in enumerate(parents):
        cells = counted.cells(*its, child)
        table = network.tables[child]
        total += sum(
            count * mpmath.log(as_mpf(Fraction(float(table[cell]))))
            for cell, count in cells.items()
        )
    record.add("log-likelihood", log_likelihood(network, dataset), total, where)
    if dataset.rows <= 10_000:
        check_command(counted, network, score, record, where)


def exact_table(
    counted: Counted, child: int, parents: tuple[int, ...], score: Score
) -> Iterator[tuple[tuple[int, ...], Fraction]]:
    """(cell, probability) of some rows of the table: of observed parent states, and of one that was never seen."""
    dataset, cells = counted.dataset, counted.cells(*parents, child)
    seen = {cell[:-1] for cell in cells}
    observed, arity = {cell[-1] for cell in cells}, len(dataset.states[child])
    declared = math.prod(len(dataset.states[v]) for v in parents)
    weight = Fraction(score.ess)
    prior = {
        "bdeu": weight / (declared * arity),
        "bds": weight / (len(seen) * len(observed)),
        "k2": Fraction(1),
    }
    first = tuple(0 for _ in parents)
    for state in [*sorted(seen)[:50], *([] if first in seen else [first])]:
        priors = [
            prior.get(score.name, Fraction(0))
            if score.name != "bds" or (state in seen and k in observed)
            else 0
            for k in range(arity)
        ]
        counts = [cells[(*state, k)] + priors[k] for k in range(arity)]
        total = sum(counts)
        for k in range(arity):
            yield (*state, k), counts[k] / total if total else Fraction(1, arity)


def check_command(
    counted: Counted, network: Network, score: Score, record: Record, where: str
) -> None:
    """The score of the network as the command prints it, every state declared."""
    with tempfile.TemporaryDirectory() as folder:
        write(counted.dataset, Path(folder) / "data.csv")
        write_network(network, Path(folder) / "network.bif")
        options = [
            "--score",
            score.name,
            "--ess",
            repr(score.ess),
            "--arities",
            f"{folder}/network.bif",
            "--json",
        ]
        printed = StringIO()
        arguments, sys.argv = (
            sys.argv,
            ["qubayes", "score", f"{folder}/data.csv", f"{folder}/network.bif", *options],
        )
        try:
            with redirect_stdout(printed):
                command_line()
        finally:
            sys.argv = arguments
    exact = sum(
        exact_score(counted, child, its, score) for child, its in enumerate(network.parents)
    )
    record.add("qubayes score", loads(printed.getvalue())["score"], exact, where)


# -- energies


def check_energies(rng: np.random.Generator, rows: int, states: int, record: Record) -> None:
    """Energies of the QUBOs of one random table: of networks, and of random bits."""
    dataset = random_table(rng, rows, 8, (2, 2, 3, 4))
    score = Score(
        str(rng.choice(["bdeu", "bds", "bic", "k2"])), float(rng.choice([0.1, 1.0, 10.0]))
    )
    candidates = identify(dataset, CandidateSearch(3, score), workers=Workers(1))
    smaller = presolve(candidates, 5.0).candidates
    for penalty, order in (("tight", "chordal"), ("paper", "scc")):
        for given, how in ((candidates, ""), (smaller, ", presolved")):
            subsets = cover(given, workers=Workers(1))
            formulation = formulate(
                given, subsets, order=order, penalty=penalty, workers=Workers(1)
            )
            where = f"{rows} rows, {score.name}, {formulation.qubo.bits} bits"
            for _ in range(states):
                check_network(rng, formulation, f"{penalty}{how}", record, where)
                bits = rng.random(formulation.qubo.bits) < rng.random()
                kind = f"energy of random bits, {penalty}{how}"
                record.add(
                    kind,
                    float(energy(formulation.qubo, bits)),
                    exact_energy(formulation.qubo, bits),
                    where,
                )


def check_network(
    rng: np.random.Generator, formulation: Formulation, kind: str, record: Record, where: str
) -> None:
    """A random network of the candidate sets: energy = -score, by the coefficients and by the scores."""
    candidates = formulation.candidates
    chosen = random_network(rng, candidates)
    bits = encode_sets(formulation, chosen)
    found = float(energy(formulation.qubo, bits))
    record.add(f"energy of networks, {kind}", found, exact_energy(formulation.qubo, bits), where)
    exact = -sum(map(Fraction, candidates.scores[chosen].tolist()), Fraction(0))
    record.add(f"energy = -score, {kind}", found, exact, where)


def random_network(rng: np.random.Generator, candidates: Candidates) -> np.ndarray:
    """The number of a candidate set for each vertex, together without a cycle."""
    chosen = candidates.families.vertex_start[1:] - 1
    for vertex in rng.permutation(candidates.n).tolist():
        first, last = candidates.families.vertex_start[vertex : vertex + 2].tolist()
        for number in rng.permutation(np.arange(first, last))[:10].tolist():
            tried = chosen.copy()
            tried[vertex] = number
            if acyclic(candidates.families.sets_at(tried)):
                chosen = tried
                break
    return chosen


def acyclic(parents: Sequence[Sequence[int]]) -> bool:
    """Whether vertices can leave one after the other, each after its parents."""
    left = set(range(len(parents)))
    while free := {v for v in left if not left.intersection(parents[v])}:
        left -= free
    return not left


def exact_energy(qubo: Qubo, bits: np.ndarray) -> Fraction:
    """offset + h.x + sum of J x x over the stored coefficients."""
    total = Fraction(qubo.offset)
    for i in np.flatnonzero(bits).tolist():
        total += Fraction(float(qubo.h[i]))
        for k in range(int(qubo.indptr[i]), int(qubo.indptr[i + 1])):
            j = int(qubo.indices[k])
            if j < i and bits[j]:
                total += Fraction(float(qubo.weights[k]))
    return total


def main() -> int:
    """Run the experiment; 1 if some number is wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=int, default=8, help="random tables")
    parser.add_argument(
        "--rows", type=int, default=10_000, help="of the largest tables; sizes vary up to this"
    )
    parser.add_argument(
        "--states", type=int, default=20, help="networks and random states of each QUBO"
    )
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    mpmath.mp.dps = 50
    record = Record()
    for stream in np.random.SeedSequence(options.seed).spawn(options.tables):
        rng = np.random.default_rng(stream)
        rows = (
            int(10 ** rng.uniform(0, math.log10(options.rows)))
            if rng.random() < 0.75
            else options.rows
        )
        check_table(rng, rows, record)
        check_energies(rng, min(rows, 5_000), options.states, record)
        rising.cache_clear()
    print("\n".join(record.lines()))
    return int(any(error > ALLOWED for error, _ in record.worst.values()))


if __name__ == "__main__":
    sys.exit(main())
