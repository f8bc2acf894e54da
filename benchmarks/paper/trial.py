"""One measurement: what is measured, and the run that measures it, in a process of its own."""

import json
import math
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from qubayes import QubayesError, SettingError, TooLargeError
from qubayes.candidates import (
    Candidates,
    CandidateSearch,
    example,
    identify,
    read_candidates,
    write_candidates,
)
from qubayes.data import Dataset
from qubayes.foundation.arrays import frozen
from qubayes.foundation.workers import Workers
from qubayes.scores import Score

from .instances import instance
from .programs import PROGRAMS, solve_by_program

KINDS = ("candidates", "bits", "preparation", "solve")
# solvers with settings, by what the tables call them
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {"sa-flips": ("sa", {"flips": True})}


@dataclass(frozen=True, slots=True)
class Trial:
    """What is measured. `approach`: a cover method or `ogorman` for bits, a solver for solve, "" for candidates."""

    kind: str
    instance: str
    max_parents: int
    seed: int
    approach: str = ""
    score: str = "bds"
    rows: int = 1000
    columns: int | None = None  # the first ones; all unless given
    seconds: float = 60.0  # a vertex for the integer programs, in all for solvers
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise SettingError(f"a trial of kind {self.kind!r}; choose one of {', '.join(KINDS)}")

    @property
    def key(self) -> str:
        """The trial as text: equal trials have equal keys."""
        return json.dumps(asdict(self), sort_keys=True)

    @property
    def sample(self) -> str:
        """Name of the rows and the candidate sets that the trial is about; trials of one sample can be compared."""
        size = f"{self.rows}x{self.columns or 'all'}"
        return f"{self.instance}_m{self.max_parents}_s{self.seed}_{self.score}_{size}"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a trial finds the data, keeps candidate sets for the next ones, and what is known before it."""

    data: str
    cache: str
    # proved best scores, by the name of the sample
    optima: dict[str, float] = field(default_factory=dict)
    # seconds of the candidate sets, by the same name
    identifying: dict[str, float] = field(default_factory=dict)
    formulating: dict[str, float] = field(default_factory=dict)  # seconds of the QUBO
    # paths of other programs, by their names in programs.py
    programs: dict[str, str] = field(default_factory=dict)


def measure(place: Place, trial: Trial) -> dict[str, Any]:
    """The record of the trial, measured in a process of its own so that its memory is its own."""
    request = json.dumps({"trial": asdict(trial), "place": asdict(place)})
    command = [sys.executable, "-P", "-m", "benchmarks.paper.trial"]
    paths = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        command, input=request, capture_output=True, text=True, check=False, env=environment
    )
    record: dict[str, Any] = {"trial": asdict(trial), **circumstances()}
    if done.returncode == 0:
        return {**record, "result": json.loads(done.stdout)}
    last = (
        done.stderr.strip().splitlines()[-1]
        if done.stderr.strip()
        else f"exit code {done.returncode}"
    )
    return {**record, "error": last}


@cache
def circumstances() -> dict[str, Any]:
    """Commit, versions and machine."""
    packages = ("qubayes", "numpy", "numba", "scipy", "highspy")
    return {
        "commit": _commit(),
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in packages},
        },
        "machine": {
            "system": platform.system(),
            "processor": _processor(),
            "cores": os.cpu_count(),
        },
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _commit() -> str:
    """The commit of the sources if they are a work tree of git; with a plus sign if it has changes."""
    folder = Path(__file__).parent
    try:
        head = _git(folder, "rev-parse", "--short=12", "HEAD")
        return head + (
            "+" if _git(folder, "status", "--porcelain", "--", str(folder.parent)) else ""
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(
            line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")
        )
    except (OSError, StopIteration):
        return platform.processor() or "unknown"


def sample_of(place: Place, trial: Trial) -> Dataset:
    """The rows that the trial is about."""
    whole = instance(trial.instance, trial.seed, place.data, trial.rows)
    if trial.columns is None:
        return whole
    kept = slice(trial.columns)
    return Dataset(
        whole.names[kept], whole.states[kept], frozen(whole.codes[kept]), whole.arities_from
    )


def prepared(place: Place, trial: Trial) -> Candidates:
    """The candidate sets of the trial's sample: kept ones, or found now and kept."""
    path = _kept_at(place, trial)
    if path.exists():
        try:
            return read_candidates(path)
        except QubayesError:
            pass  # damaged: as good as absent
    dataset = sample_of(place, trial)
    found = identify(
        dataset,
        CandidateSearch(trial.max_parents, Score(trial.score)),
        workers=Workers(trial.threads),
    )
    _keep(found, path)
    return found


def _kept_at(place: Place, trial: Trial) -> Path:
    return Path(place.cache) / f"{trial.sample}.qbc"


def _keep(candidates: Candidates, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_candidates(candidates, path)


def run(place: Place, trial: Trial) -> dict[str, Any]:
    """What the trial measures, here."""
    measures = {
        "candidates": _candidates,
        "bits": _bits,
        "preparation": _preparation,
        "solve": _solve,
    }
    result = measures[trial.kind](place, trial)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        1024 if sys.platform != "darwin" else 1024**2
    )
    return {**result, "peak_mb": round(peak)}


def _candidates(place: Place, trial: Trial) -> dict[str, Any]:
    """Number of candidate sets and seconds; kernels are compiled, or loaded, before the clock starts."""
    search, workers = CandidateSearch(trial.max_parents, Score(trial.score)), Workers(trial.threads)
    dataset = sample_of(place, trial)
    identify(
        sample_of(place, replace(trial, rows=10, columns=5)),
        CandidateSearch(1, Score(trial.score)),
        workers=workers,
    )
    began = time.perf_counter()
    found = identify(dataset, search, workers=workers)
    seconds = time.perf_counter() - began
    if trial.score == "bds":  # what the other tables start from
        _keep(found, _kept_at(place, trial))
    return {"n": found.n, "total": found.total, "seconds": seconds}


def _bits(place: Place, trial: Trial) -> dict[str, Any]:
    """Bits by kind, and the seconds of each step; what does not fit the memory is counted, not assembled."""
    from qubayes.qubo import count_bits, formulate
    from qubayes.qubo.subsets import Budget, cover

    candidates, workers = prepared(place, trial), Workers(trial.threads)
    if trial.approach == "ogorman":
        return _ogorman_bits(candidates)
    paper = trial.approach in ("ilp", "ilp-only")
    order, penalty = ("scc", "paper") if paper else ("chordal", "tight")
    small = example()
    # loads the kernels
    formulate(small, cover(small, method=trial.approach), order=order, penalty=penalty)
    subsets = cover(
        candidates, method=trial.approach, budget=Budget(seconds=trial.seconds), workers=workers
    )
    found: dict[str, Any] = {
        "n": candidates.n,
        "lower_bound": int(subsets.lower_bounds.sum()),
        "proved": int(subsets.proved.sum()),
        "prepare": subsets.preparing,
        "cover": subsets.solving,
    }
    began = time.perf_counter()
    try:
        formulation = formulate(candidates, subsets, order=order, penalty=penalty, workers=workers)
    except TooLargeError:
        bits = count_bits(candidates, subsets, order=order, penalty=penalty, workers=workers)
        return {**found, "bits": bits, "couplers": None, "assemble": time.perf_counter() - began}
    least, largest = formulation.coefficient_range
    return {
        **found,
        "bits": formulation.bits,
        "couplers": formulation.qubo.couplers,
        "range": largest / least,
        "assemble": formulation.seconds,
    }


def _ogorman_bits(candidates: Candidates) -> dict[str, Any]:
    """The size of O'Gorman's formulation; it is counted, not assembled."""
    from qubayes_baselines import ogorman_bits

    began = time.perf_counter()
    bits = ogorman_bits(candidates)
    return {"n": candidates.n, "bits": bits, "seconds": time.perf_counter() - began}


def _preparation(place: Place, trial: Trial) -> dict[str, Any]:
    """Seconds of identifying the candidate sets and of formulating the QUBO with the default cover.

    Solvers without a QUBO get them on top of their time limit, as in the paper. The subsets are
    kept for the others."""
    from qubayes.qubo import formulate
    from qubayes.qubo.subsets import cover, write_subsets

    identified = _candidates(place, trial)
    formulate(example())  # loads the kernels
    candidates, workers = prepared(place, trial), Workers(trial.threads)
    began = time.perf_counter()
    subsets = cover(candidates, workers=workers)
    formulate(candidates, subsets, workers=workers)
    seconds = time.perf_counter() - began
    write_subsets(subsets, _kept_at(place, trial).with_suffix(".qbs"))
    return {"identifying": identified["seconds"], "formulating": seconds}


def _solve(place: Place, trial: Trial) -> dict[str, Any]:
    """Score, bound and trace of a solver under the paper's rules.

    A solver of QUBOs has the time limit. A solver of candidate sets, and another program, also has
    the seconds of formulating the QUBO, and hill climbing, which climbs on the data, those of
    identifying the candidate sets as well. Nothing can be gained after a proved optimum: the solver
    ends when it reaches one. `ahead` is what its clock is behind that of the others: the seconds of
    formulating, or minus those of identifying."""
    from qubayes.qubo import formulate
    from qubayes.qubo.subsets import read_subsets
    from qubayes.search import Limits, solve, solver_named

    candidates, workers = prepared(place, trial), Workers(trial.threads)
    identifying, formulating = (
        times.get(trial.sample, 0.0) for times in (place.identifying, place.formulating)
    )
    problem: Any = candidates
    seconds, ahead = trial.seconds + formulating, 0.0
    if trial.approach in PROGRAMS:
        path = place.programs[trial.approach]
        found_there = solve_by_program(trial.approach, path, candidates, seconds, trial.seed)
        return {
            **found_there,
            "limit": seconds,
            "ahead": ahead,
            "trace": _thinned(found_there["trace"]),
        }
    name, settings = VARIANTS.get(trial.approach, (trial.approach, {}))
    solver: Any = solver_named(name, **settings)
    if solver.takes == "formulation":
        seconds, ahead = trial.seconds, formulating
        kept = _kept_at(place, trial).with_suffix(".qbs")
        problem = formulate(
            candidates, read_subsets(kept) if kept.exists() else None, workers=workers
        )
    elif trial.approach == "hillclimb":
        seconds, ahead = seconds + identifying, -identifying
        solver = replace(solver, dataset=sample_of(place, trial))
    best = place.optima.get(trial.sample, math.inf)
    found = solve(
        problem, solver, limits=Limits(seconds, seed=trial.seed), bound=best, workers=workers
    )
    return {
        "score": found.score,
        "empty_score": found.empty_score,
        "bound": found.bound,
        "proved": found.proved,
        "seconds": found.seconds,
        "limit": seconds,
        "ahead": ahead,
        "status": found.status,
        "trace": _thinned(found.trace),
        "statistics": {
            key: value
            for key, value in found.statistics.items()
            if isinstance(value, int | float | str)
        },
    }


def _thinned(trace: Sequence[Sequence[float]], most: int = 200) -> list[list[float]]:
    """The trace with at most this number of points, the first and the last among them."""
    step = max(1, -(-len(trace) // most))
    kept = [*trace[:-1:step], *trace[-1:]]
    return [[round(seconds, 4), score] for seconds, score in kept]


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    json.dump(run(Place(**asked["place"]), Trial(**asked["trial"])), sys.stdout)
