"""The verb: measure the trials of the paper's tables that are not measured yet; tables are made from them after."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

from qubayes import MissingPackageError, QubayesError, SettingError
from qubayes.foundation.files import lock_folder, replacing
from qubayes.foundation.progress import OnProgress, Progress, silent
from qubayes.foundation.workers import Workers
from qubayes.foundation.workers import run as run_all
from qubayes.search import WHERE_BASELINES_ARE, solver_named

from .growth import AXES, growth_tables
from .printed import INSTANCES, Instance
from .programs import PROGRAMS
from .sentences import sentences_of, with_sentences
from .store import Store
from .table import Table
from .tables import bits_table, candidates_table, scores_table, steps_table, wins_table
from .trial import Place, Trial, measure

TABLES = ("1", "2", "3", "D.2", "D.5", "growth")
PAPER_ROWS = 1000  # of each sample in the paper
ALIASES = {"4": "D.2", "5": "D.5"}  # the paper's five in the order of its pages
APPROACHES = ("auto", "ogorman", "ilp", "ilp-only")
SOLVERS = ("anneal", "exact", "digital", "order-sa", "hillclimb", "bqp", "sa-flips", "asobs")


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured."""

    tables: tuple[str, ...] = ("1", "2", "3", "D.2", "D.5")
    instances: tuple[Instance, ...] = INSTANCES
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    solvers: tuple[str, ...] = SOLVERS
    approaches: tuple[str, ...] = APPROACHES  # those of Tables 1, 2 and D.5 that are measured
    time_limit: float = 60.0  # of a solver
    vertex_seconds: float = 60.0  # of an integer program for one vertex
    rows: int = PAPER_ROWS
    threads: int | None = None
    # paths of other programs, which are measured in Table 3 too
    programs: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for table in self.tables:
            if table not in TABLES:
                raise SettingError(f"table {table!r} is unknown; choose among {', '.join(TABLES)}")
        for approach in self.approaches:
            if approach not in APPROACHES:
                raise SettingError(
                    f"approach {approach!r} is unknown; choose among {', '.join(APPROACHES)}"
                )

    def trials(self) -> Iterator[Trial]:
        """All trials of the tables, cheap kinds first: candidate sets are kept for what follows."""
        samples = [(i.name, i.max_parents, seed) for i, seed in product(self.instances, self.seeds)]
        common: dict[str, Any] = {"rows": self.rows, "threads": self.threads}
        if "D.2" in self.tables:
            for sample, score in product(samples, ("bds", "bdeu")):
                yield Trial("candidates", *sample, score=score, **common)
        for approach in self.approaches_measured():
            for sample in samples:
                yield Trial("bits", *sample, approach, seconds=self.vertex_seconds, **common)
        if "3" in self.tables:
            for sample in samples:
                yield Trial("preparation", *sample, **common)
            for sample, solver in product(samples, (*self.solvers, *self.programs)):
                yield Trial("solve", *sample, solver, seconds=self.time_limit, **common)
        if "growth" in self.tables:
            for axis in AXES:
                yield from axis.trials

    def approaches_measured(self) -> list[str]:
        """Return the approaches of which the tables need the bits."""
        wanted = {"1": APPROACHES, "2": ("auto", "ilp"), "D.5": ("auto", "ilp-only")}
        found = [approach for table in self.tables for approach in wanted.get(table, ())]
        return [approach for approach in dict.fromkeys(found) if approach in self.approaches]


# Everything at a small size: two networks and one item set, one sample, a second for each solver.
QUICK = Plan(
    instances=(Instance("alarm", 2), Instance("chess", 2)),
    seeds=(0,),
    time_limit=1.0,
    vertex_seconds=1.0,
    rows=200,
)


def check_installed(plan: Plan) -> None:
    """Raise unless all that the plan compares is installed; the other programs of Table 3 were checked before."""
    if "3" in plan.tables:
        for name in plan.solvers:
            solver_named(name)
    if "ogorman" in plan.approaches_measured() and find_spec("qubayes_baselines") is None:
        raise MissingPackageError(f"O'Gorman's formulation is {WHERE_BASELINES_ARE}")


def bench(
    plan: Plan,
    data: Path,
    results: Path,
    *,
    workers: Workers | None = None,
    on_progress: OnProgress = silent,
) -> Store:
    """Measure what is missing in `results`; return all that was measured there. Nothing is measured twice."""
    results.mkdir(parents=True, exist_ok=True)
    lock = lock_folder(results)
    if lock is None:
        raise QubayesError(
            f"another run measures in {results}; wait for its end, or give another --results"
        )
    try:
        return _measure_missing(plan, data, results, workers or Workers(1), on_progress)
    finally:
        lock.release()


def _measure_missing(
    plan: Plan, data: Path, results: Path, workers: Workers, on_progress: OnProgress
) -> Store:
    store = Store(results / "trials.jsonl")
    missing = [trial for trial in plan.trials() if trial not in store]
    count = 0
    for turn in range(3):
        preparation = store.preparation("identifying"), store.preparation("formulating")
        place = Place(
            str(data), str(results / "candidates"), store.optima(), *preparation, plan.programs
        )
        trials = [trial for trial in missing if _turn(trial) == turn]
        for _, record in run_all(measure, place, trials, workers):
            store.add(record)
            count += 1
            trial = record["trial"]
            note = f"{trial['kind']} {trial['instance']}:{trial['max_parents']} {trial['approach']}"
            on_progress(
                Progress(
                    "bench", count, len(missing), note + (" failed" if "error" in record else "")
                )
            )
    return store


def _turn(trial: Trial) -> int:
    """Solvers come after candidate sets, which are kept for them, and end at what `exact` proved before them."""
    return 0 if trial.kind != "solve" else 1 if trial.approach == "exact" else 2


def tables_of(store: Store, plan: Plan) -> list[Table]:
    """The tables that the plan asks for. Figures of the paper beside samples of another size are marked as such."""
    made: list[Table] = []
    if "D.2" in plan.tables:
        made.append(candidates_table(store, plan.instances))
    if "1" in plan.tables:
        made.append(bits_table(store, plan.instances))
    if "2" in plan.tables:
        made.append(steps_table(store, plan.instances, "ilp"))
    if "D.5" in plan.tables:
        made.append(steps_table(store, plan.instances, "ilp-only"))
    if "3" in plan.tables:
        for seconds in _time_limits(store, plan):
            solvers = (
                *plan.solvers,
                *(name for name in PROGRAMS if store.results(approach=name, seconds=seconds)),
            )
            tables = [
                make(store, plan.instances, solvers, seconds) for make in (wins_table, scores_table)
            ]
            ending = "" if seconds == plan.time_limit else f"-{seconds:g}s"
            made += [replace(table, name=table.name + ending) for table in tables if table.rows]
    if "growth" in plan.tables:
        made += growth_tables(store)
    if plan.rows != PAPER_ROWS:
        size = f" These samples have {plan.rows:,} rows, those of the paper {PAPER_ROWS:,}: figures are not comparable."
        made = [replace(table, note=table.note + size) for table in made]
    return made


def _time_limits(store: Store, plan: Plan) -> list[float]:
    """The time limits of Table 3 that were measured, that of the plan first."""
    others = {record["trial"]["seconds"] for record in store.results(kind="solve")} - {
        plan.time_limit
    }
    return [plan.time_limit, *sorted(others)]


def write_tables(store: Store, plan: Plan, results: Path, pages: Sequence[Path] = ()) -> list[Path]:
    """Each table as Markdown, CSV and LaTeX; tables and sentences in README.md and the other pages; the files."""
    made: list[Path] = []
    tables = tables_of(store, plan)
    for table in tables:
        for ending, text in (
            (".md", table.markdown()),
            (".csv", table.csv()),
            (".tex", table.latex()),
        ):
            path = results / f"{table.name}{ending}"
            with replacing(path) as file:
                file.write(text)
            made.append(path)
    sentences = sentences_of(store, plan.instances, _time_limits(store, plan))
    for page in filter(Path.exists, (results / "README.md", *pages)):
        text = with_sentences(with_tables(page.read_text(), tables), sentences)
        with replacing(page) as file:
            file.write(text)
        made.append(page)
    return made


def with_tables(page: str, tables: Sequence[Table]) -> str:
    """The page with each table in its place, between the comments <!-- NAME --> and <!-- /NAME -->."""
    for table in tables:
        begin, end = f"<!-- {table.name} -->", f"<!-- /{table.name} -->"
        before, found, rest = page.partition(begin)
        if found:
            page = f"{before}{begin}\n\n{table.body()}\n{end}{rest.partition(end)[2]}"
    return page


def parsed_instances(text: str) -> tuple[Instance, ...]:
    """alarm:4,chess:2 as instances."""
    found = []
    for word in text.split(","):
        name, colon, m = word.strip().partition(":")
        if not (name and colon and m.isascii() and m.isdigit()):
            raise SettingError(
                f"instance {word!r}; give NAME:PARENTS, such as alarm:4, separated by commas"
            )
        found.append(Instance(name, int(m)))
    return tuple(found)


def parsed_tables(texts: Sequence[str]) -> tuple[str, ...]:
    """1,2,D.5 as names of tables; 4 and 5 are the paper's D.2 and D.5."""
    return tuple(ALIASES.get(text.strip(), text.strip()) for text in texts)
