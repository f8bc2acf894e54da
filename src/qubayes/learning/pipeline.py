"""`learn`: from data to a network, one method of `_Pipeline` per stage; use of the run folder."""

import json
import logging
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from .. import __version__
from ..candidates import (
    Candidates,
    CandidateSearch,
    Knowledge,
    affordable,
    allowed_for,
    fingerprint,
    identify,
    identify_until,
    read_candidates,
    warn_of_most,
    write_candidates,
)
from ..data import Dataset
from ..foundation.errors import (
    DataError,
    FormatError,
    NoResultError,
    QubayesError,
    SettingError,
    TooLargeError,
    option,
)
from ..foundation.files import json_object, replacing
from ..foundation.progress import (
    OnProgress,
    Progress,
    in_notebook,
    progress_bars,
    silent,
)
from ..foundation.settings import facts
from ..foundation.stop import Interrupt, Stop, TimeLimit
from ..foundation.workers import Workers
from ..network import Network, check_network_path, fit, read_network, write_network
from ..scores import LocalScore, Score, ScoreFunction
from ..search import Limits, Solution, solve, solver_named
from ..search.exact import Alternatives, alternatives
from ..search.solve import read_solution, write_solution
from ..settings import (
    Arities,
    BinMethod,
    Bins,
    DataFormat,
    LearnSettings,
    Missing,
    Numbers,
    Prior,
    ReadSettings,
)
from .ancestors import AncestorSearch
from .confidence import Confidence, bootstrap, confidence_of
from .grown import GrownStage
from .imputation import Completion, Imputation, read_completion, write_completion
from .learned import Learned, MadeQubo, Outputs, RunFolder, Written, key_of
from .stages import read_for_search, say_score_of_numbers, start_of

if TYPE_CHECKING:
    from ..qubo import Formulation
    from .posterior import Posterior

_EVERY_SHARE = 0.6  # of the time limit, after which no more sets of every size are searched
LEAST_SHARE = 0.1  # share of the time limit that the solver has in any case
log = logging.getLogger("qubayes")

# entry of run.json: checksum of the candidate sets' inputs, without solver and limits
SEARCH_INPUTS = "search_inputs"


def learn(
    data: Any,
    max_parents: int | Literal["all"] | None = None,
    *,
    score: str | Score | LocalScore | ScoreFunction = "auto",
    ess: float = 1.0,
    penalty: float = 1.0,
    knowledge: Knowledge | str | PathLike[str] | None = None,
    possible_parents: int | None = None,
    max_table: int = 10**6,
    memory: float | str | None = None,
    solver: str = "auto",
    time_limit: float | None = None,
    moves: int | None = None,
    patience: float | None = None,
    seed: int = 0,
    bootstrap: int = 0,
    posterior: float | None = None,
    prior: Prior = "uniform",
    impute_rounds: int = 8,
    completions: int = 5,
    best: int | None = None,
    within: float | None = None,
    reading: ReadSettings | None = None,
    missing: Missing = "error",
    numbers: Numbers = "gaussian",
    bins: Bins | None = None,
    bin_method: BinMethod = "quantile",
    arities: str | Path | Arities | None = None,
    ignore: Sequence[str] = (),
    weights: str | Sequence[int] | None = None,
    format: DataFormat | None = None,
    interventions: Any = None,
    output: str | PathLike[str] | None = None,
    report: str | PathLike[str] | None = None,
    qubo: str | PathLike[str] | None = None,
    trace: str | PathLike[str] | None = None,
    draws: str | PathLike[str] | None = None,
    run_dir: str | PathLike[str] | None = None,
    threads: int | None = None,
    cluster: Any = None,
    workers: Workers | None = None,
    on_progress: OnProgress | None = None,
) -> Learned:
    """Return the best network for the data, its parameters, its bound and the stages' results.

    `data` is a file (CSV, Parquet, ...), a data frame or a `Dataset`. The options up to `reading`
    are explained in `LearnSettings`, those from `missing` to `format` in `ReadSettings`: they make
    up `reading`. `output`, `report`, `qubo`, `trace` and `draws` are files to write. Finished
    stages are kept in the folder `run_dir`, and a later run resumes from them. `threads` of this
    process are all cores unless given; `cluster` is a Dask cluster; `workers` is both in one. In a
    notebook bars show the progress unless `on_progress` is given. The logger "qubayes" has the
    stages (info) and doubts about the data (warning).

    Interrupted (Ctrl-C) once the candidate sets are known, it returns what it has, at least the
    network of the required edges; `interrupted` is true then.

    >>> import polars
    >>> rain = [0, 0, 1, 1, 0, 1, 0, 1] * 20
    >>> table = polars.DataFrame({"rain": rain, "wet": rain, "coin": [0, 1, 0, 1, 0, 0, 1, 1] * 20})
    >>> result = learn(table, max_parents=2)
    >>> result.solution.proved, result.network.edges
    (True, [('rain', 'wet')])
    """
    settings = LearnSettings.of(locals())
    if workers is not None and (threads is not None or cluster is not None):
        raise SettingError(
            "workers was given with threads or cluster; give one: workers is both of them"
        )
    workers = Workers(threads, cluster) if workers is None else workers
    outputs = Outputs(
        *(None if path is None else Path(path) for path in (output, report, trace, qubo, draws))
    )
    outputs.check(
        [Path(data)] if isinstance(data, str | PathLike) else [],
        None if run_dir is None else Path(run_dir),
    )
    with ExitStack() as stack:
        if on_progress is None:
            on_progress = stack.enter_context(progress_bars()) if in_notebook() else silent
        learned, written = learn_with(
            settings,
            data,
            run_dir=run_dir,
            workers=workers,
            on_progress=on_progress,
            outputs=outputs,
        )
    if written.failure:  # the network is not lost for it
        warnings.warn(f"not every file was written: {written.failure}", stacklevel=2)
    return learned


def learn_with(
    settings: LearnSettings,
    data: Any,
    *,
    run_dir: str | PathLike[str] | None = None,
    workers: Workers | None = None,
    on_progress: OnProgress = silent,
    outputs: Outputs | None = None,
) -> tuple[Learned, Written]:
    """Return what `learn` returns for complete settings, and which files were written.

    `outputs` that cannot hold a network of these variables are refused before the search.
    """
    outputs = outputs or Outputs()
    if outputs.draws is not None and settings.posterior is None:
        needed = f"{option('draws')} needs {option('posterior', 20)}"
        raise SettingError(f"{needed}: networks are drawn only where probabilities are asked for")
    if workers is not None and not isinstance(workers, Workers):
        raise SettingError(f"workers = {workers!r}; give Workers(threads=2)")
    with (
        (workers or Workers()).connected() as joined,
        RunFolder(Path(run_dir) if run_dir is not None else None) as folder,
    ):
        began = time.perf_counter()
        dataset = read_for_search(data, settings.reading)
        if outputs.network is not None:
            check_network_path(outputs.network, dataset=dataset)
        source = Path(data).name if isinstance(data, str | PathLike) else None
        free = settings.max_parents is None and settings.possible_parents is None
        smaller = settings.max_parents is None and settings.time_limit is not None
        warn_of_most(settings.search, dataset.n)
        settings = settings.fitted_to(data, dataset)
        say_score_of_numbers(dataset, settings.chosen_score)
        log.info(
            "qubayes %s: %d rows of %d variables; %s",
            __version__,
            dataset.rows,
            dataset.n,
            settings.as_json(),
        )
        pipeline = _Pipeline(settings, folder, joined, on_progress, began, free=free)
        dataset = pipeline.fill(dataset)
        if smaller and not pipeline.grows:
            pipeline.fit_to_limit(dataset)
        return pipeline.run(dataset, source, outputs)


@dataclass
class _Pipeline:
    """State of one run: settings, run folder, workers, progress callback, seconds of each stage."""

    settings: LearnSettings
    folder: RunFolder
    workers: Workers
    on_progress: OnProgress
    began: float  # of the clock, before the data were read
    free: bool = False  # neither a number of parents nor one of possible parents is given
    first: GrownStage | None = None  # the stage that grew parent sets, if there was one
    interrupt: Interrupt = field(default_factory=Interrupt)  # of the stage at work
    interrupted: bool = False  # in a stage before
    fitted: bool = False  # the search for candidate sets was chosen to fit the time limit
    seconds: dict[str, float] = field(default_factory=dict)
    completions: Confidence | None = None  # of completed tables, where cells were missing
    # what candidates, and so all later stages, depend on
    inputs: dict[str, Any] = field(default_factory=dict)

    def fill(self, dataset: Dataset) -> Dataset:
        """Return the table with values in its missing cells, if these are to be imputed."""
        if not dataset.to_impute:
            return dataset
        most = dataset.n - 1 if self.free else self.settings.search.most(dataset.n)
        stage = Imputation(
            dataset, self.settings, self.workers, self.interrupt, self.on_progress, most
        )
        if self.settings.search.every_size:
            # loaded here: few runs need it
            from ..candidates.every_size import check_bounds

            check_bounds(stage.outline, self.settings.chosen_score)
        inputs = {"data": dataset.checksum, "settings": facts(self.settings)}
        with self._timed("missing cells"):
            found = self.folder.kept(
                "completed.json",
                inputs,
                lambda: Completion(stage.run(), tuple(stage.networks)),
                lambda path: read_completion(path, dataset),
                write_completion,
            )
        self.end_stage(stage.interrupted)
        if stage.interrupted:
            self.folder.forget("completed.json")
            self.interrupt.press()  # what follows ends as soon as it can
        if found.networks:
            told = self.settings.chosen_score.told(dataset)
            self.completions = confidence_of(dataset.names, found.networks, told)
        return found.table

    @property
    def limit_left(self) -> float | None:
        """The time limit less the seconds in which missing cells were filled."""
        limit = self.settings.time_limit
        spent = self.seconds.get("missing cells", 0.0)
        return None if limit is None else max(limit - spent, LEAST_SHARE * limit)

    def run(
        self, dataset: Dataset, source: str | None, outputs: Outputs
    ) -> tuple[Learned, Written]:
        """Run all stages in order. A first Ctrl-C after the candidate sets loses nothing."""
        self.inputs = fingerprint(dataset, self.settings.search)
        # raises for contradictions that the search would not meet
        if self.settings.knowledge is not None:
            search = self.settings.search
            most = search.most(dataset.n)
            allowed_for(dataset, search.score, self.settings.knowledge, most)
        candidates = self.grow(dataset) if self.grows else self.find_candidates(dataset)
        with self.interrupt.listening():
            learned = self.search(dataset, candidates, source)
            written = outputs.write(
                learned, self.workers.here, self.on_progress, interrupt=self.interrupt
            )
        marked = learned.interrupted or written.interrupted
        return replace(learned, interrupted=True) if marked else learned, written

    def search(self, dataset: Dataset, candidates: Candidates, source: str | None) -> Learned:
        """Return the best network and what is asked about it; if interrupted, only the network."""
        formulation = self.find_formulation(candidates)
        if self.interrupted or (formulation is None and self.needs_formulation):
            name, seed = self.settings.solver_name, self.settings.limits.seed
            start = None if self.first is None else self.first.network
            solution = start_of(candidates, name, seed, start)
        else:
            solution = self.find_solution(formulation or candidates)
        if self.settings.ancestors:
            candidates, solution = self.with_ancestors(dataset, candidates, solution)
        network = self.fitted_network(solution, dataset)
        self.end_stage(solution.interrupted)
        close = None if self.interrupted else self.find_alternatives(dataset, candidates)
        probable = None if self.interrupted else self.find_posterior(dataset, candidates)
        confidence = None if self.interrupted else self.find_confidence(dataset)
        samples = confidence.samples if confidence else 0
        qubo = MadeQubo()
        if formulation is not None:
            qubo = MadeQubo(formulation.subsets, formulation)
        return Learned(
            self.settings,
            dataset,
            candidates,
            solution,
            network,
            confidence,
            dict(self.seconds),
            interrupted=self.interrupted or samples < self.settings.bootstrap,
            source=source,
            alternatives=close,
            posterior=probable,
            qubo=qubo,
            completions=self.completions,
        )

    def fitted_network(self, solution: Solution, dataset: Dataset) -> Network:
        """Return the network with its parameters; without them if they cannot be estimated."""
        try:
            return fit(solution.network, dataset, self.settings.chosen_score)
        except (DataError, TooLargeError) as error:  # the graph is not lost
            log.warning("the network has no probabilities: %s", error)
        if dataset.kind != "discrete":
            return solution.network
        return replace(solution.network, states=dataset.states)

    def fit_to_limit(self, dataset: Dataset) -> None:
        """Choose the largest candidate search that fits the time; a resumed run keeps its own."""
        search, limit = self.settings.search, self.limit_left

        def make() -> dict[str, Any]:
            chosen = affordable(
                dataset, search, self.workers, limit, smaller=True, on_progress=self.on_progress
            )
            return {"max_parents": chosen.max_parents, "possible_parents": chosen.possible_parents}

        def write(choice: dict[str, Any], path: Path) -> None:
            with replacing(path) as file:
                json.dump(choice, file)

        inputs = {"data": dataset.checksum, "settings": facts(self.settings)}
        with self._timed("plan"):
            choice = self.folder.kept(
                "choice.json", inputs, make, lambda path: json_object(path.read_bytes()), write
            )
        self.settings, self.fitted = replace(self.settings, **choice), True

    @property
    def grows(self) -> bool:
        """Whether parent sets are grown, as no number of parents is given."""
        settings = self.settings
        anneals = settings.solver_name in ("auto", "anneal")
        return self.free and anneals and not settings.ancestors

    def grow(self, dataset: Dataset) -> Candidates:
        """Return grown parent sets, with all sets of at most m parents if these fit the time."""
        kept = self.folder.file("first.json")
        began = self.began
        if self.settings.time_limit is None:  # its default is for this stage alone
            began += self.seconds.get("missing cells", 0.0)
        stage = GrownStage(
            dataset, self.settings, self.workers, self.interrupt, self.on_progress, kept, began
        )
        inputs = {"data": dataset.checksum, "settings": facts(self.settings)}
        with self._timed("candidates"):
            found = self.folder.kept(
                "candidates.qbc", inputs, stage.find, read_candidates, write_candidates
            )
        if stage.interrupted:
            self.folder.forget("candidates.qbc")
        self.end_stage(stage.interrupted)
        self.first = stage
        self.settings = replace(self.settings, max_parents=found.stamp.max_parents)
        self.inputs = {**inputs, "grown": found.total}
        return found

    def find_candidates(self, dataset: Dataset) -> Candidates:
        blocks = self.folder.file(f"candidates-{key_of(self.inputs)[:12]}.blocks")

        def make() -> Candidates:
            search = self.settings.search
            if not self.fitted:
                search = affordable(
                    dataset,
                    search,
                    self.workers,
                    self.limit_left,
                    memory=self.settings.memory_in_bytes,
                    on_progress=self.on_progress,
                )
            if search.every_size:
                return self.of_every_size(dataset, search)
            return identify(
                dataset,
                search,
                workers=self.workers,
                checkpoint=blocks,
                resume=blocks is not None and blocks.exists(),
                on_progress=self.on_progress,
            )

        def read_back(path: Path) -> Candidates:
            kept = read_candidates(path)
            if kept.names != dataset.names:
                raise FormatError("the file in the run folder belongs to other variables")
            return kept

        with self._timed("candidates"):
            found = self.folder.kept(
                "candidates.qbc", self.inputs, make, read_back, write_candidates
            )
            if blocks is not None:
                blocks.unlink(missing_ok=True)
        return found

    def of_every_size(self, dataset: Dataset, search: CandidateSearch) -> Candidates:
        """Return candidate sets of any size, for as many variables as the time allows."""
        limit = self.settings.time_limit
        end = self.began + (inf if limit is None else _EVERY_SHARE * limit)
        found = identify_until(
            None,
            dataset,
            search,
            enough=lambda: time.perf_counter() > end,
            workers=self.workers,
            on_progress=self.on_progress,
        )
        assert found is not None  # nothing stops it
        if found.stamp.every_size != dataset.n:
            log.warning(
                "sets of every size were searched for %d of %d variables; the others have all sets"
                " of at most %d parents: more time may add some",
                *(found.stamp.every_size, dataset.n, found.stamp.max_parents),
            )
        return found

    @property
    def needs_formulation(self) -> bool:
        """Whether the solver takes a QUBO."""
        return solver_named(self.settings.solver_name).takes == "formulation"

    def find_formulation(self, candidates: Candidates) -> "Formulation | None":
        """Return the QUBO if the solver takes one; None also if interrupted."""
        if not self.needs_formulation:
            return None
        from ..qubo import quick_formulation  # few solvers need the QUBO

        with self._timed("formulation"):
            return quick_formulation(
                candidates, workers=self.workers.here, on_progress=self.on_progress
            )

    def find_solution(self, problem: "Candidates | Formulation") -> Solution:
        name = self.settings.solver_name
        solver = self.settings.solver_with_settings
        left = self.limits_left
        kept = self.best_so_far
        keep = None if kept is None else partial(write_network, path=kept)
        inputs = {
            **self.inputs,
            "solver": {"name": name, **facts(solver)},
            "limits": facts(self.settings.limits),
        }

        def make() -> Solution:
            return solve(
                problem,
                solver,
                limits=left,
                start=self.earlier_network(problem),
                workers=self.workers,
                on_progress=self.on_progress,
                on_network=keep,
                interrupt=self.interrupt,
            )

        def read_back(path: Path) -> Solution:
            return read_solution(path, problem)

        with self._timed("solve"):
            found = self.folder.kept("solution.json", inputs, make, read_back, write_solution)
            if found.interrupted:
                self.folder.forget("solution.json")
            self.folder.note(SEARCH_INPUTS, self.inputs)
            if kept is not None:
                kept.unlink(missing_ok=True)
        self.on_progress(Progress(name, 1.0, 1.0, f"score {found.score:,.3f}"))
        return self.with_first(found)

    def with_first(self, solution: Solution) -> Solution:
        """Return the solution with the scores of the networks known before the solver began."""
        if self.first is None or not self.first.trace:
            return solution
        before = self.first.trace
        last, score = before[-1]
        after = [(last + seconds, each) for seconds, each in solution.trace if each > score]
        return replace(solution, trace=(*before, *after))

    @property
    def limits_left(self) -> Limits:
        """The limits of the solver, or of the list of networks, less the time of earlier stages."""
        limits = self.settings.limits
        if limits.moves is not None and self.first is not None and self.first.moves is not None:
            limits = replace(limits, moves=limits.moves - self.first.moves)
        if self.settings.time_limit is None or limits.seconds is None:
            return limits
        spent = time.perf_counter() - self.began
        return replace(limits, seconds=max(limits.seconds - spent, LEAST_SHARE * limits.seconds))

    def find_alternatives(self, dataset: Dataset, candidates: Candidates) -> Alternatives | None:
        best, within = self.settings.best, self.settings.within
        if best is None and within is None:
            return None
        limits = Limits(self.limits_left.seconds)
        with self._timed("alternatives"):
            return alternatives(
                candidates,
                best,
                within=within,
                told=self.settings.chosen_score.told(dataset),
                limits=limits,
                on_progress=self.on_progress,
                interrupt=self.interrupt,
            )

    def find_posterior(self, dataset: Dataset, candidates: Candidates) -> "Posterior | None":
        """Return the probabilities of edges, if they are asked for."""
        settings = self.settings
        if settings.posterior is None:
            return None
        # here: a plain learn does without these kernels
        from .posterior import parents_for, posterior, read_posterior, write_posterior

        search = settings.search
        if self.free:
            search = replace(search, max_parents=parents_for(dataset))

        def make() -> "Posterior":
            return posterior(
                dataset,
                search,
                prior=settings.prior,
                seconds=settings.posterior,
                seed=settings.seed,
                known=candidates,
                workers=self.workers,
                interrupt=self.interrupt,
                on_progress=self.on_progress,
            )

        asked = [settings.posterior, settings.prior, settings.seed]
        inputs = {**fingerprint(dataset, search), "posterior": asked}
        found = None
        with self._timed("posterior"), suppress(NoResultError):
            found = self.folder.kept(
                "posterior.draws", inputs, make, read_posterior, write_posterior
            )
            if found.interrupted:
                self.folder.forget("posterior.draws")
        return found

    def with_ancestors(
        self, dataset: Dataset, candidates: Candidates, solution: Solution
    ) -> tuple[Candidates, Solution]:
        """Return the best network with all required ancestors, and its candidate sets."""
        with self._timed("ancestors"):
            if self.interrupted:
                self.interrupt.press()
            clock = TimeLimit(self.limits_left.seconds, time.perf_counter)
            search = AncestorSearch(
                dataset,
                self.settings,
                lambda: self.limits_left,
                Stop(self.interrupt, clock),
                self.interrupt,
                workers=self.workers,
                on_progress=self.on_progress,
            )
            return search.run(candidates, solution)

    def earlier_network(self, problem: "Candidates | Formulation") -> Network | None:
        """Return the network to begin with: one of an earlier search in this folder, or the first.

        Where moves and seed alone must decide, only the first."""
        first = None if self.first is None else self.first.network
        if self.best_so_far is None:
            return first
        with suppress(QubayesError):  # damaged or absent
            return read_network(self.best_so_far)
        place = self.folder.file("solution.json")
        if place is None or not self.folder.noted(SEARCH_INPUTS, self.inputs):
            return first
        with suppress(QubayesError):
            return read_solution(place, problem).network
        return first

    @property
    def best_so_far(self) -> Path | None:
        """The file for the best network of the solver at work; None if none is kept."""
        if self.settings.moves is not None:
            return None
        return self.folder.file(f"solution-{key_of(self.inputs)[:12]}.json")

    def find_confidence(self, dataset: Dataset) -> Confidence | None:
        settings = self.settings
        if not settings.bootstrap:
            return None
        key = key_of({**self.inputs, "seed": settings.seed})[:12]
        with self._timed("bootstrap"):
            found = bootstrap(
                dataset,
                settings.search,
                settings.bootstrap,
                seed=settings.seed,
                workers=self.workers,
                keep=self.folder.file(f"bootstrap-{key}.json"),
                on_progress=self.on_progress,
                interrupt=self.interrupt,
            )
        return found if found.samples else None

    def end_stage(self, interrupted: bool = False) -> None:
        """Note whether the stage was interrupted; the next Ctrl-C counts as the first."""
        pressed = self.interrupt.forget()
        self.interrupted = self.interrupted or interrupted or pressed

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.end_stage()
        self.seconds[stage] = time.perf_counter() - began
        log.info("%s: %.3f s", stage, self.seconds[stage])
