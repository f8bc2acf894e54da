"""What `candidates`, `solve`, `formulate`, `decode`, `plan` do: one stage, from files to files."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..candidates import (
    Candidates,
    CandidateSearch,
    Forecast,
    affordable,
    check_output,
    forecasts,
    identify,
    read_candidates,
    read_knowledge,
    rename,
    restrict,
    warn_of_most,
    write_candidates,
)
from ..data import ADVISED_BINS, Dataset, ReadSettings, read
from ..data.dataset import MOST_CODES
from ..foundation.errors import FormatError, SettingError, option
from ..foundation.files import check_places, ending
from ..foundation.progress import OnProgress, silent
from ..foundation.stop import Interrupt
from ..foundation.workers import Workers
from ..network import Network, check_network_path, read_network, write_network
from ..report import write_model_drawing
from ..scores import Score, check_independent
from ..search import Limits, Solution, solve
from ..search.exact import presolve, save_certificate
from ..settings import FormulateSettings, SolveSettings

if TYPE_CHECKING:
    from ..machines import ModelSize
    from ..qubo import Decoded, Formulation
    from ..qubo.subsets import Subsets

log = logging.getLogger("qubayes")
_SETS_FOR_BITS = 100_000  # candidates; a QUBO of more is not made just to count its bits


def say_score_of_numbers(dataset: Dataset, score: Score) -> None:
    """Log which columns are numbers, and their score; raise if one is redundant."""
    if dataset.kind == "discrete" or score.function is not None:
        return
    if dataset.is_plain:
        check_independent(dataset)
    name = score.on(dataset).name
    numbers = len(dataset.numbers)
    cut = option("bins", ADVISED_BINS)
    if dataset.kind == "continuous":
        log.warning(
            "%d continuous columns: Gaussian score %s; %s cuts them into intervals",
            *(numbers, name, cut),
        )
        return
    log.warning(
        "%d continuous and %d discrete columns: score %s of regressions by state, and no number is"
        " a parent of a state; %s cuts the numbers into intervals",
        *(numbers, dataset.n - numbers, name, cut),
    )


def read_for_search(data: Any, reading: ReadSettings | None) -> Dataset:
    """Return the data, and warn of each column in which nearly every row has a state of its own."""
    dataset = read(data, reading)
    limit = max(MOST_CODES, dataset.rows // 2)
    for name, states in zip(dataset.names, dataset.states, strict=True):
        if len(states) > limit:
            numbers = all(state.removeprefix("-").isdecimal() for state in states)
            remedy = (
                f", or cut it into intervals with {option('bins', {name: ADVISED_BINS})}"
                if numbers
                else ""
            )
            log.warning(
                "%r has %d states in %d rows and may be an identifier; leave it out with %s%s",
                *(name, len(states), dataset.rows, option("ignore", [name]), remedy),
            )
    return dataset


def plan(
    dataset: Dataset,
    search: CandidateSearch,
    *,
    workers: Workers | None = None,
    on_progress: OnProgress = silent,
) -> tuple[Forecast, ...]:
    """Return the predicted cost of the candidate search, for 1 to search.max_parents parents.

    Small searches are run, and the bits of their QUBO are counted; larger ones are sampled or
    extrapolated."""
    return forecasts(dataset, search, workers=workers, bits_of=_bits, on_progress=on_progress)


def _bits(candidates: Candidates) -> int | None:
    """Return the bits of the QUBO; None for one that is not small."""
    if candidates.total > _SETS_FOR_BITS:
        return None
    from ..qubo import count_bits  # a plan of many candidates does without
    from ..qubo.subsets import cover

    return count_bits(candidates, cover(candidates))["total"]


def blocks_file(output: Path) -> Path:
    """Return the file beside `output` in which `identify_file` keeps finished blocks."""
    return output.with_name(output.name + ".blocks")


def identify_file(
    data: Any,
    search: CandidateSearch,
    output: Path | None = None,
    reading: ReadSettings | None = None,
    *,
    time_limit: float | None = None,
    smaller: bool = False,
    resume: bool = False,
    workers: Workers | None = None,
    on_progress: OnProgress = silent,
) -> Candidates:
    """Return the candidate sets of the data, and write them to `output`.

    A search that would take longer than `time_limit` (seconds) is refused or, with `smaller`, made
    smaller. Finished blocks are kept beside the output until it is written; `resume` continues from
    them."""
    if resume and output is None:
        given, needed = option("resume"), option("output")
        raise SettingError(
            f"{given} without {needed}; finished blocks are kept beside the output file, so name it"
        )
    Limits(time_limit)  # raises for a negative number
    if resume and smaller and time_limit is not None:
        raise SettingError(
            f"{option('resume')} and {option('time_limit')} without {option('max_parents')}; "
            "give the number of parents of the run that was stopped"
        )
    if output:
        check_output(output)
    with (workers or Workers()).connected() as joined:
        dataset = read_for_search(data, reading)
        if output:
            check_output(output, dataset.names)
        say_score_of_numbers(dataset, search.score)
        if dataset.dropped:
            log.warning("%d rows with missing values were dropped", dataset.dropped)
        warn_of_most(search, dataset.n)
        if not resume:
            search = affordable(
                dataset, search, joined, time_limit, smaller=smaller, on_progress=on_progress
            )
        if output is None:
            return identify(dataset, search, workers=joined, on_progress=on_progress)
        blocks = blocks_file(output)
        found = identify(
            dataset,
            search,
            workers=joined,
            checkpoint=blocks,
            resume=resume,
            on_progress=on_progress,
        )
    write_candidates(found, output)
    blocks.unlink(missing_ok=True)  # not before: a full disk must not cost the search
    return found


def solve_candidates(
    candidates: Candidates,
    settings: SolveSettings,
    *,
    start: Network | None = None,
    workers: Workers | None = None,
    on_progress: OnProgress = silent,
) -> Solution:
    """Return the best network of the candidate sets, with presolve and, if asked, the QUBO.

    Interrupted before the search, it returns the start.
    """
    problem = candidates
    presolved, formulation = None, None
    if settings.presolve_seconds:
        presolved = presolve(candidates, settings.presolve_seconds, on_progress=on_progress)
        problem = presolved.candidates
    stopped = presolved is not None and presolved.interrupted
    if settings.formulates and not stopped:
        from ..qubo import quick_formulation  # other solvers do without

        made_by = settings.order, settings.penalty, settings.cover
        formulation = quick_formulation(
            problem, *made_by, workers.here if workers else None, on_progress
        )
        stopped = formulation is None
    if stopped:
        return start_of(candidates, settings.solver_name, settings.seed, start)
    solution = solve(
        formulation or problem,
        settings.solver_with_settings,
        limits=settings.limits,
        start=start,
        bound_seconds=settings.bound_seconds,
        workers=workers,
        on_progress=on_progress,
    )
    return presolved.restore(solution) if presolved else solution


def start_of(
    candidates: Candidates, solver: str, seed: int, start: Network | None = None
) -> Solution:
    """Return what a solver of this name returns if it is interrupted before its search."""
    pressed = Interrupt()
    pressed.press()
    limits = Limits(0.0, seed=seed)
    found = solve(candidates, "exact", limits=limits, start=start, interrupt=pressed)
    return replace(found, solver=solver)


def read_restricted(
    file: Path, names: Path | None = None, knowledge: Path | None = None
) -> Candidates:
    """Return the candidate sets in a file.

    `names` is a file with the names of the variables, `knowledge` one with what is known of their
    edges."""
    known = read_knowledge(knowledge) if knowledge else None
    candidates = read_candidates(file)
    candidates = rename(candidates, names) if names else candidates
    return restrict(candidates, known) if known else candidates


def certified_scores(
    file: Path, certificate: Path | None, names: Path | None = None, knowledge: Path | None = None
) -> Path | None:
    """Return where `solve_file` writes the certified scores; None if `file` has them."""
    other = names or knowledge or ending(file) in (".pss", ".qbc")
    return certificate.with_suffix(".jkl") if certificate and other else None


def solve_file(
    file: Path,
    settings: SolveSettings,
    output: Path | None = None,
    trace: Path | None = None,
    *,
    start: Path | None = None,
    names: Path | None = None,
    knowledge: Path | None = None,
    workers: Workers | None = None,
    on_progress: OnProgress = silent,
) -> Solution:
    """Return `solve_candidates` of `read_restricted`; write the network and the trace of scores.

    A certificate is about a .jkl file of scores. With `names`, `knowledge` or another format, that
    file is written beside it, with the ending .jkl."""
    given = settings.solver_options.get("certificate")
    certificate = Path(given) if given else None
    scores = certified_scores(file, certificate, names, knowledge)
    check_places([output, trace, certificate, scores], [file, names, knowledge])
    check_places([certificate, scores], [start])  # the start may be replaced by the better network
    if output is not None:
        check_network_path(output, tables=False)
    first = read_network(start) if start else None
    candidates = read_restricted(file, names, knowledge)
    if certificate and candidates.plain is not None:
        both = f"{option('certificate')} and an order of variables in {option('knowledge')}"
        raise SettingError(
            f"{both}; give one: a certificate is about scores, which say nothing of an order"
        )
    if scores:
        check_output(scores, candidates.names)
    solution = solve_candidates(
        candidates, settings, start=first, workers=workers, on_progress=on_progress
    )
    if scores and solution.certificate:
        write_candidates(candidates, scores)
        solution = replace(solution, status=f"{solution.status}, about the scores in {scores}")
    if output is not None:
        write_network(solution.network, output)
    if trace is not None:
        solution.write_trace(trace)
    return solution


def formulate_file(
    file: Path,
    settings: FormulateSettings,
    output: Path | None = None,
    ordering: str = "penalties",
    *,
    workers: Workers | None = None,
    on_progress: OnProgress = silent,
    interrupt: Interrupt | None = None,
) -> "tuple[Formulation, ModelSize | None]":
    """Return the QUBO of the candidate sets in a file, and the size of the model that was written.

    An output that ends in .svg is a picture. Ctrl-C ends the searches: the sets that presolve has
    left so far are formulated, with the covers found so far.
    """
    from ..qubo import Coefficients, Demand, companion_of, data_scores, formulate  # start-up time

    interrupt = Interrupt() if interrupt is None else interrupt
    coefficients = Coefficients(settings.scale or {}, settings.digits, settings.precision)
    known = read_network(settings.network) if settings.network else None
    scores = settings.certificate and settings.certificate.with_suffix(".jkl")
    check_places(
        [output, output and companion_of(output), settings.certificate, scores],
        [file, settings.subsets, settings.network, settings.data],
    )
    candidates = _presolved(read_candidates(file), settings, interrupt, on_progress)
    union_scores = None
    if settings.data is not None:
        data = read(settings.data, settings.reading)
        union_scores = data_scores(candidates, data, settings.chosen_score)
    formulation = formulate(
        candidates,
        _parent_subsets(candidates, settings, workers, on_progress, interrupt),
        order=settings.order,
        penalty=settings.penalty,
        union_scores=union_scores,
        coefficients=coefficients,
        demand=Demand(known, seed=settings.seed, seconds=settings.order_seconds),
        workers=workers.here if workers else None,
        on_progress=on_progress,
    )
    if settings.certificate and scores and formulation.certificate:
        save_certificate(dict(formulation.certificate), settings.certificate)
        write_candidates(candidates, scores)
    if output is not None and ending(output) == ".svg":
        write_model_drawing(formulation, output)
        output = None
    return formulation, formulation.write(output, ordering=ordering) if output else None


def check_certified_model(
    model: Path, scores: Path, order: frozenset[frozenset[str]] | None
) -> None:
    """Raise unless the model is the QUBO of these scores with the order bits of a certificate."""
    from ..qubo import is_certified, read_formulation

    if order is None:
        remedy = "give one that `qubayes formulate --order proved --certificate` wrote"
        raise FormatError(f"refused: the certificate is not about a QUBO; {remedy}")
    formulation = read_formulation(model)
    candidates = read_candidates(scores)
    own = formulation.candidates
    if own.names != candidates.names or _scored_sets(own) != _scored_sets(candidates):
        raise FormatError(f"refused: {model} is not made of the scores in {scores}")
    if not is_certified(formulation, order):
        raise FormatError(f"refused: {model} has other order bits than the certificate")
    if formulation.weak:
        raise FormatError(f"refused: penalties of {model} are below their proved bounds")


def _scored_sets(candidates: Candidates) -> list[dict[tuple[int, ...], float]]:
    """Return the scores of the sets of each vertex."""
    return [dict(candidates.of(vertex)) for vertex in range(candidates.n)]


def _presolved(
    candidates: Candidates,
    settings: FormulateSettings,
    interrupt: Interrupt,
    on_progress: OnProgress,
) -> Candidates:
    """Return the candidate sets that presolve leaves, if it is asked for."""
    if not settings.presolve_seconds:
        return candidates
    presolved = presolve(candidates, settings.presolve_seconds, on_progress=on_progress)
    if presolved.interrupted:
        interrupt.press()
    return presolved.candidates


def _parent_subsets(
    candidates: Candidates,
    settings: FormulateSettings,
    workers: Workers | None,
    on_progress: OnProgress,
    interrupt: Interrupt,
) -> "Subsets":
    """Return the parent subsets in the file that is named, or search for few of them."""
    from ..qubo.subsets import cover, read_subsets  # start-up time

    if settings.subsets:
        return read_subsets(settings.subsets)
    return cover(
        candidates,
        method=settings.cover or "auto",
        seed=settings.seed,
        workers=workers,
        on_progress=on_progress,
        interrupt=interrupt,
    )


def is_model(path: Path) -> bool:
    """Return whether the path has the ending of a model, which `formulate_file` writes."""
    from ..machines import MODEL_ENDINGS  # `learn` alone needs no QUBO

    return ending(path) in (*MODEL_ENDINGS, ".qbf")


def decode_file(
    model: Path,
    answer: Path,
    settings: FormulateSettings,
    output: Path | None = None,
    *,
    repair: bool = True,
    workers: Workers | None = None,
) -> "tuple[tuple[str, ...], tuple[Decoded, ...], Decoded | None]":
    """Return (names, samples, best network) of an answer, and write the best network.

    The model is a file that `formulate_file` wrote, or candidate sets that are formulated with the
    settings."""
    from ..qubo import decode, read_answer, read_formulation  # start-up time

    check_places([output], [model, answer, settings.subsets])
    if output is not None:
        check_network_path(output, tables=False)
    if is_model(model):
        formulation = read_formulation(model, workers)
    else:
        formulation, _ = formulate_file(model, settings, workers=workers)
    found = decode(formulation, read_answer(answer, formulation), repair=repair)
    samples = found if isinstance(found, tuple) else (found,)
    networks = [sample.final for sample in samples if sample.final.feasible]
    best = max(networks, key=lambda network: network.score, default=None)
    if output is not None and best is not None:
        write_network(Network(formulation.candidates.names, best.parents), output)
    return formulation.candidates.names, samples, best
