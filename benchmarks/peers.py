"""Networks of the same data by qubayes' solvers and by other packages, as a Markdown table.

    python -m benchmarks peers [--data FILE] [-m 4] [--ess 1] [--time-limit 10] [--seed 0] [--skip
    NAME ...]

The data are examples/alarm.csv unless given. Every network's score (`bdeu`) is summed afresh from
the data by `qubayes.local_score`, whoever found it. All have the same limit of parents; the time
limit holds for those that have one, and annealers that count sweeps are given as many as take about
that long. Sampled states that are no network are repaired by qubayes, which the notes tell. The
seconds of qubayes' solvers are those of the search; candidate sets and formulation are told beside
the table. A package that is not installed is a row that says so:

    pip install pgmpy pyagrum dwave-samplers openjij gurobipy ./benchmarks/paper/baselines
"""

import argparse
import contextlib
import io
import logging
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from math import fsum
from pathlib import Path
from typing import Any

from qubayes import (
    Candidates,
    CandidateSearch,
    Dataset,
    Formulation,
    Score,
    cover,
    formulate,
    identify,
    local_score,
    read,
)
from qubayes.foundation.workers import Workers
from qubayes.qubo import to_bqm
from qubayes.search import BASELINES, SOLVERS, Limits, Solver, solve, solver_named

Parents = Mapping[str, Sequence[str]]
READS = 4  # of annealers that count sweeps


@dataclass(frozen=True, slots=True)
class Case:
    """What everyone is given."""

    data: Dataset
    candidates: Candidates
    formulation: Formulation
    score: Score
    max_parents: int
    seconds: float
    seed: int

    def score_of(self, parents: Parents) -> float:
        """The score of a network, from the data."""
        place = {name: column for column, name in enumerate(self.data.names)}
        return fsum(
            local_score(
                self.data,
                child,
                sorted(place[parent] for parent in parents.get(name, ())),
                self.score,
            )
            for name, child in place.items()
        )


@dataclass(frozen=True, slots=True)
class Result:
    """A network, who found it and what there is to say."""

    parents: Parents
    seconds: float
    note: str = ""
    bound: float | None = None  # of the score, if proved


@dataclass(frozen=True, slots=True)
class Entrant:
    """One row of the table."""

    name: str
    package: str  # as pip calls it
    module: str
    run: Callable[[Case], Result]


def main() -> None:
    """Print the table."""
    options = _options()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    case = _case(options)
    rows: list[tuple[Entrant, Result | str]] = []
    for entrant in _entrants():
        if entrant.name not in options.skip:
            rows.append((entrant, _enter(entrant, case)))
            print(f"{entrant.name}: done", flush=True)
    _print(case, rows)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, default=Path(__file__).parent.parent / "examples" / "alarm.csv"
    )
    parser.add_argument("-m", "--max-parents", type=int, default=4)
    parser.add_argument("--ess", type=float, default=1.0)
    parser.add_argument("--time-limit", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--skip", nargs="*", default=[])
    return parser.parse_args()


def _case(options: argparse.Namespace) -> Case:
    data, score = read(options.data), Score("bdeu", options.ess)
    began = time.perf_counter()
    candidates = identify(data, CandidateSearch(options.max_parents, score))
    identified = time.perf_counter()
    formulation = formulate(candidates, cover(candidates))
    formulated = time.perf_counter()
    print(
        f"{options.data.name}: {data.rows:,} rows, {data.n} variables, at most {options.max_parents} parents, BDeu "
        f"{options.ess:g}; {candidates.total:,} candidate sets in {identified - began:.1f} s, "
        f"{formulation.qubo.bits:,} bits in {formulated - identified:.1f} s; time limit {options.time_limit:g} s, "
        f"{Workers().count} threads"
    )
    return Case(
        data, candidates, formulation, score, options.max_parents, options.time_limit, options.seed
    )


def _entrants() -> list[Entrant]:
    dwave, openjij = "dwave.samplers:SimulatedAnnealingSampler", "openjij:SASampler"
    baselines = "qubayes-baselines", "qubayes_baselines"
    return [
        *(
            Entrant(name, "qubayes", "qubayes", partial(_ours, name))
            for name in SOLVERS
            if name != "dimod"
        ),
        *(Entrant(name, *baselines, partial(_ours, name)) for name in BASELINES if name != "bqp"),
        Entrant("hillclimb on data", *baselines, _hillclimb_on_data),
        Entrant("bqp on SCIP", "pyscipopt", "pyscipopt", partial(_bqp, "scip")),
        Entrant("bqp on Gurobi", "gurobipy", "gurobipy", partial(_bqp, "gurobi")),
        Entrant("HillClimbSearch", "pgmpy", "pgmpy", _pgmpy),
        Entrant(
            "tabu search", "pyagrum", "pyagrum", partial(_pyagrum, "useLocalSearchWithTabuList")
        ),
        Entrant(
            "greedy hill climbing", "pyagrum", "pyagrum", partial(_pyagrum, "useGreedyHillClimbing")
        ),
        Entrant(
            "annealer on our QUBO", "dwave-samplers", "dwave.samplers", partial(_annealer, dwave)
        ),
        Entrant("tabu on our QUBO", "dwave-samplers", "dwave.samplers", _dwave_tabu),
        Entrant("annealer on our QUBO", "openjij", "openjij", partial(_annealer, openjij)),
    ]


def _enter(entrant: Entrant, case: Case) -> Result | str:
    """The entrant's result, or why there is none."""
    if not _installed(entrant.module):
        return f"not installed: pip install {entrant.package}"
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return entrant.run(case)
    except Exception as error:  # a row of the table, not the end of it
        return f"failed: {type(error).__name__}: {' '.join(str(error).split())}"


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _solved(case: Case, solver: Solver) -> Result:
    """The result of a solver of ours; its kernels are compiled by a short run first."""
    problem = case.formulation if solver.takes == "formulation" else case.candidates
    solve(problem, solver, limits=Limits(0.2, seed=case.seed))
    solution = solve(problem, solver, limits=Limits(case.seconds, seed=case.seed))
    bound = solution.score if solution.proved else None
    return Result(solution.network.parent_names(), solution.seconds, solution.status, bound)


def _ours(name: str, case: Case) -> Result:
    return _solved(case, solver_named(name))


def _hillclimb_on_data(case: Case) -> Result:
    return _solved(case, solver_named("hillclimb", dataset=case.data))


def _bqp(backend: str, case: Case) -> Result:
    return _solved(case, solver_named("bqp", backend=backend))


def _annealer(sampler: str, case: Case) -> Result:
    """An annealer that counts sweeps: runs of growing length first, to learn how many it makes in the time."""
    module, name = sampler.split(":")
    made, model = getattr(import_module(module), name)(), to_bqm(case.formulation.qubo)
    few, seconds = 32, 0.0
    while seconds < case.seconds / 4:
        few, began = 2 * few, time.perf_counter()
        made.sample(model, num_reads=READS, num_sweeps=few, seed=case.seed)
        seconds = time.perf_counter() - began
    sweeps = int(few * case.seconds / seconds)
    result = _sampled(case, sampler, {"num_reads": READS, "num_sweeps": sweeps, "seed": case.seed})
    return Result(
        result.parents, result.seconds, f"{sweeps:,} sweeps, {READS} reads; {result.note}"
    )


def _dwave_tabu(case: Case) -> Result:
    parameters = {"timeout": int(1000 * case.seconds / READS), "num_reads": READS}
    return _sampled(case, "dwave.samplers:TabuSampler", parameters)


def _sampled(case: Case, sampler: str, parameters: dict[str, Any]) -> Result:
    solver = solver_named("dimod", sampler=sampler, parameters=parameters)
    solution = solve(case.formulation, solver, limits=Limits(20 * case.seconds, seed=case.seed))
    return Result(solution.network.parent_names(), solution.seconds, solution.status)


def _frame(data: Dataset) -> Any:
    """The data as pandas has them, every column categorical."""
    import pandas as pd

    columns = {
        name: pd.Categorical.from_codes(codes.tolist(), categories=list(states))
        for name, codes, states in zip(data.names, data.codes, data.states, strict=True)
    }
    return pd.DataFrame(columns)


def _pgmpy(case: Case) -> Result:
    from pgmpy.estimators import BDeu, HillClimbSearch

    frame = _frame(case.data).astype(str)
    began = time.perf_counter()
    graph = HillClimbSearch(frame).estimate(
        scoring_method=BDeu(frame, equivalent_sample_size=case.score.ess),
        max_indegree=case.max_parents,
        show_progress=False,
    )
    seconds = time.perf_counter() - began
    return Result(
        {name: list(graph.predecessors(name)) for name in graph.nodes},
        seconds,
        "one search, no time limit",
    )


def _pyagrum(method: str, case: Case) -> Result:
    import pyagrum

    learner = pyagrum.BNLearner(_frame(case.data))
    learner.useScoreBDeu()
    learner.useNoPrior()
    learner.setMaxIndegree(case.max_parents)
    getattr(learner, method)()
    began = time.perf_counter()
    graph = learner.learnDAG()
    seconds = time.perf_counter() - began
    names = list(learner.names())
    parents = {names[v]: [names[parent] for parent in graph.parents(v)] for v in graph.nodes()}
    return Result(parents, seconds, "one search, no restarts")


def _print(case: Case, rows: list[tuple[Entrant, Result | str]]) -> None:
    """The table, best first; the optimum is known if a solver proved it."""
    found = [
        (entrant, result, case.score_of(result.parents))
        for entrant, result in rows
        if isinstance(result, Result)
    ]
    proved = [result.bound for _, result, _ in found if result.bound is not None]
    top = max(proved) if proved else max(score for _, _, score in found)
    gain = top - case.score_of({})
    known = "proved optimum" if proved else "best found, not proved optimal"
    print(f"\n{known}: {top:,.2f}; empty graph {top - gain:,.2f}\n")
    print(
        f"| package | solver | score | below the {'optimum' if proved else 'best'} | % of the gain | seconds | note |"
    )
    print("|---|---|---:|---:|---:|---:|---|")
    for entrant, result, score in sorted(
        found, key=lambda row: (-round(row[2], 3), row[1].seconds)
    ):
        below = max(0.0, top - score)
        widest = max((len(its) for its in result.parents.values()), default=0)
        note = (
            result.note
            if widest <= case.max_parents
            else f"{widest} parents, more than allowed; {result.note}"
        )
        print(
            f"| {entrant.package} {_version(entrant.package)} | {entrant.name} | {score:,.2f} | {below:.2f} "
            f"| {100 * below / gain:.3f} | {result.seconds:.2f} | {note} |"
        )
    for entrant, reason in rows:
        if isinstance(reason, str):
            print(f"| {entrant.package} | {entrant.name} | | | | | {reason} |")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


if __name__ == "__main__":
    main()
