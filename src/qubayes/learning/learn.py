"""`learn`: one line per stage."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ..candidates import Candidates, Search, identify, read_candidates, write_candidates
from ..candidates.knowledge import Knowledge
from ..data import Dataset, ReadSettings, read
from ..foundation.errors import FormatError, QubayesError, SettingError
from ..foundation.progress import OnProgress, Progress, silent
from ..foundation.workers import Workers
from ..network import Network, fit
from ..qubo import Formulation, count_bits, formulate
from ..qubo.subsets import Subsets, cover, read_subsets, write_subsets
from ..qubo.subsets.cover import Budget
from ..scores import Score
from ..search import Limits, Solution, solve, solver_named
from ..search.run import stopping
from ..search.solution_files import read_solution, write_solution
from .confidence import Confidence, bootstrap
from .folder import RunFolder, key_of
from .learned import Learned
from .recipe import Recipe

Kept = TypeVar("Kept", Candidates, Subsets)

# A tenth of the search for subsets costs a few bits in a thousand and saves most of its time (connect, m = 3).
QUICK = Budget(effort=0.1, rounds=0)
USUAL_SECONDS = 10.0  # for the solver
SEARCHED = "what solution.json was searched in"  # whatever the solver and its limits were


def learn(
    data: Any,
    max_parents: int = 3,
    *,
    score: str | Score = "bdeu",
    ess: float = 1.0,
    knowledge: Knowledge | None = None,
    reading: ReadSettings | None = None,
    solver: str = "auto",
    time_limit: float | None = None,
    moves: int | None = None,
    seed: int = 0,
    bootstrap: int = 0,
    run_dir: str | PathLike[str] | None = None,
    workers: Workers | None = None,
    on_progress: OnProgress = silent,
) -> Learned:
    """The best network for the data, with its parameters, its bound and every stage's result.

    `data`: a file (CSV, Parquet, ...), a data frame or a `Dataset`; `reading` says how to read it.
    `max_parents`: of a variable, at most. More take longer: `qubayes plan` tells how much.
    `score`, `ess`: the score and, where it has one, its equivalent sample size; or a `Score`.
    `knowledge`: edges that are required or forbidden, and the like.
    `solver`: `auto` proves what it can and anneals the rest; the others are those of `qubayes solve`.
    `time_limit`: seconds for the solver alone; 10 unless it or `moves` is given, `math.inf` for no limit.
    `moves`: end after so many moves of the annealer instead: with `seed` the same result anywhere.
    `bootstrap`: this many resamplings tell how sure each edge is.
    `run_dir`: finished stages are kept in this folder, and a run that stopped goes on from them.
    `workers`: threads, or a Dask cluster; all cores unless given.
    `on_progress`: is told what goes on.

    Interrupted (Ctrl-C), it returns what it has once there is a network: `interrupted` tells.

    >>> import polars
    >>> rain = [0, 0, 1, 1, 0, 1, 0, 1] * 20
    >>> table = polars.DataFrame({"rain": rain, "wet": rain, "coin": [0, 1, 0, 1, 0, 0, 1, 1] * 20})
    >>> result = learn(table, max_parents=2)
    >>> result.solution.proved, result.network.edges
    (True, 1)
    """
    _check_kinds(max_parents, knowledge, reading, workers, seed, bootstrap)
    chosen = score if isinstance(score, Score) else Score(score, ess)
    seconds = USUAL_SECONDS if time_limit is None and moves is None else time_limit
    limits = Limits(None if seconds == math.inf else seconds, moves, seed)
    solver = "anneal" if solver == "auto" and moves is not None else solver  # a proof counts no moves
    search = Search(int(max_parents), chosen, knowledge or Knowledge())
    used = None if isinstance(data, Dataset) else reading
    recipe = Recipe(search, solver, limits, int(bootstrap), used)
    with RunFolder(Path(run_dir) if run_dir is not None else None) as folder:
        dataset = read(data, reading)
        source = Path(data).name if isinstance(data, str | PathLike) else None
        return _Kitchen(recipe.fitting(dataset), folder, workers, on_progress).cook(dataset, source)


def _check_kinds(
    max_parents: object, knowledge: object, reading: object, workers: object, seed: object, bootstrap: object
) -> None:
    """Raise with the remedy where a number, a file name or a dictionary was given for something else."""
    for name, value in (("max_parents", max_parents), ("seed", seed), ("bootstrap", bootstrap)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise SettingError(f"{name} = {value!r}; give a whole number")
    for name, value, kind, how in (
        (
            "knowledge",
            knowledge,
            Knowledge,
            "Knowledge(forbidden=[...]), or read_knowledge(file)",
        ),
        ("reading", reading, ReadSettings, "ReadSettings(bins=3)"),
        ("workers", workers, Workers, "Workers(threads=2)"),
    ):
        if value is not None and not isinstance(value, kind):
            raise SettingError(f"{name} = {value!r}; give {how}")


class _Kitchen:
    """One run of a recipe: where its results are kept, who works on it and who is told."""

    def __init__(self, recipe: Recipe, folder: RunFolder, workers: Workers | None, on_progress: OnProgress) -> None:
        self.recipe, self.folder, self.workers, self.on_progress = recipe, folder, workers, on_progress
        self.seconds: dict[str, float] = {}
        self.depends_on: dict[str, Any] = {}

    def cook(self, dataset: Dataset, source: str | None) -> Learned:
        """All stages, in the order the data flows. From the solver on there is a network, which is not thrown away."""
        settings = self.recipe.as_json()
        keys = ("max_parents", "score", "ess", "knowledge")
        self.depends_on = {"data": dataset.checksum, **{key: settings[key] for key in keys}}
        candidates = self._candidates(dataset)
        subsets = self._subsets(candidates)
        problem = self._problem(candidates, subsets)
        formulation = problem if isinstance(problem, Formulation) else None
        solution = self._solution(problem)  # hears an interrupt itself, as soon as it searches
        interrupted = np.array([solution.interrupted])
        with stopping(interrupted):
            with self._timed("bits"):
                bits = formulation.bits if formulation else count_bits(candidates, subsets, workers=self._threads)
            network = fit(solution.network, dataset, self.recipe.search.score)
        confidence = None if interrupted[0] else self._confidence(dataset)
        return Learned(
            self.recipe,
            dataset,
            candidates,
            subsets,
            bits,
            solution,
            network,
            confidence,
            dict(self.seconds),
            interrupted=bool(interrupted[0]) or (confidence.samples if confidence else 0) < self.recipe.bootstrap,
            source=source,
            given_formulation=formulation,
        )

    def _candidates(self, dataset: Dataset) -> Candidates:
        place = self.folder.file(f"candidates-{key_of(self.depends_on)[:12]}.blocks")

        def make() -> Candidates:
            return identify(
                dataset,
                self.recipe.search,
                workers=self.workers,
                checkpoint=place,
                resume=place is not None and place.exists(),
                on_progress=self.on_progress,
            )

        def read_own(path: Path) -> Candidates:
            return _of_names(read_candidates(path), dataset.names)

        with self._timed("candidates"):
            found = self.folder.kept("candidates.qbc", self.depends_on, make, read_own, write_candidates)
            if place is not None:
                place.unlink(missing_ok=True)
        return found

    def _subsets(self, candidates: Candidates) -> Subsets:
        def make() -> Subsets:
            found = cover(candidates, budget=QUICK, workers=self.workers, on_progress=self.on_progress)
            if found.status != "finished":
                raise KeyboardInterrupt
            return found

        def read_own(path: Path) -> Subsets:
            return _of_names(read_subsets(path), candidates.names)

        with self._timed("subsets"):
            return self.folder.kept("subsets.qbs", self.depends_on, make, read_own, write_subsets)

    def _problem(self, candidates: Candidates, subsets: Subsets) -> Candidates | Formulation:
        """What the solver takes. Few need the QUBO itself, which may be larger than the memory."""
        if solver_named(self.recipe.solver).takes != "formulation":
            return candidates
        with self._timed("formulation"):
            return formulate(candidates, subsets, workers=self._threads)

    def _solution(self, problem: Candidates | Formulation) -> Solution:
        recipe = self.recipe
        limits = recipe.limits
        depends_on = {**self.depends_on, "solver": recipe.solver, "limits": [limits.seconds, limits.moves, limits.seed]}

        def make() -> Solution:
            return solve(
                problem,
                solver_named(recipe.solver),
                limits=limits,
                start=self._network_so_far(problem),
                workers=self._threads,
                on_progress=self.on_progress,
            )

        def read_own(path: Path) -> Solution:
            return read_solution(path, problem)

        with self._timed("solve"):
            found = self.folder.kept("solution.json", depends_on, make, read_own, write_solution)
            if found.interrupted:
                self.folder.forget("solution.json")
            self.folder.note(SEARCHED, self.depends_on)
        self.on_progress(Progress(recipe.solver, 1.0, 1.0, f"score {found.score:,.3f}"))
        return found

    def _network_so_far(self, problem: Candidates | Formulation) -> Network | None:
        """What an earlier search in this folder found; nothing where the result must depend on seed and moves alone."""
        place = self.folder.file("solution.json")
        if place is None or self.recipe.limits.moves is not None or not self.folder.noted(SEARCHED, self.depends_on):
            return None
        with suppress(QubayesError):  # damaged, or gone
            return read_solution(place, problem).network
        return None

    def _confidence(self, dataset: Dataset) -> Confidence | None:
        recipe = self.recipe
        if not recipe.bootstrap:
            return None
        key = key_of({**self.depends_on, "seed": recipe.limits.seed})[:12]
        with self._timed("bootstrap"), suppress(KeyboardInterrupt):
            return bootstrap(
                dataset,
                recipe.search,
                recipe.bootstrap,
                seed=recipe.limits.seed,
                workers=self.workers,
                keep=self.folder.file(f"bootstrap-{key}.json"),
                on_progress=self.on_progress,
            )
        return None

    @property
    def _threads(self) -> Workers:
        """The threads of this process, for stages that do not run on a cluster."""
        return Workers(self.workers.threads if self.workers else None)

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.seconds[stage] = time.perf_counter() - began


def _of_names(kept: Kept, names: tuple[str, ...]) -> Kept:
    """What was kept if it is of these variables; an error if someone put another file in its place."""
    if kept.names != names:
        raise FormatError("the file in the run folder is of other variables")
    return kept
