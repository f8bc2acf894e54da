"""`cover` finds few candidate parent subsets for each vertex, and the files of such subsets.

A file (`.qbs`) is in the container of `qubayes.foundation.arrays`; its header holds the facts of
`Subsets` and the number of sets and members; the arrays are vertex_start, set_start, lower_bounds
(8 bytes each) and members (4 bytes)."""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...candidates import Candidates
from ...foundation.arrays import (
    Bools,
    Facts,
    Format,
    Ints,
    Layout,
    frozen,
    read_arrays,
    sizes_of,
    write_arrays,
)
from ...foundation.environment import csgraph, sparse
from ...foundation.errors import FormatError, SettingError
from ...foundation.families import Families, VertexSet, counting_bound, well_formed
from ...foundation.files import check_places, replacing
from ...foundation.progress import OnProgress, Progress, silent
from ...foundation.stop import Interrupt
from ...foundation.workers import Stopped, Workers, run
from .bounds import packing_bound, relaxation_bound, rounded_up
from .cover_search import search
from .instance import Incidence, SetSystem, incidence_of, sets_to_cover, uncovered
from .reductions import (
    CLOSED,
    OPEN,
    Core,
    core_of,
    covering_positions,
    reduce_as_paper,
    reduce_to_cores,
)
from .smallest_cover import (
    MOST_COLUMNS,
    NO_LIMIT,
    CoverProgram,
    program_of,
    smallest_cover,
    solve_program,
)

METHODS = ("auto", "search", "ilp", "ilp-only")
SMALL = 1000  # elements of all sets of a vertex, below which threads do not pay
UPDATES_PER_ENTRY = 1500  # row updates of the search per entry of the core
# First descents. Of pathfinder's largest core (m = 3) one seed in three stays 8 % above the others.
TRIALS = 6
TRIAL = 0.05  # part of the work that each trial may spend
TREE = 10_000  # nodes of branch and bound on a core with few columns
WIDE = 0.03  # a gap after the trials that is worth two full searches
NODES = 50  # nodes of the integer program


@dataclass(frozen=True, slots=True)
class Budget:
    """Work that one vertex may cost. Counts, so that results do not depend on the machine."""

    seconds: float = 60.0  # for the integer program; the paper's limit
    effort: float = 1.0  # multiplies the work of the search
    rounds: int = 6  # of cuts for the lower bound
    # columns of the largest core that `auto` gives to the integer program; 400 proves more, slowly
    program: int = 60

    def __post_init__(self) -> None:
        if not (self.seconds > 0 and self.effort > 0 and self.rounds >= 0 and self.program >= 0):
            raise SettingError(
                f"{self}; seconds and effort must be positive, rounds and program not negative"
            )


@dataclass(frozen=True, slots=True)
class Subsets:
    """For each vertex subsets U: every candidate set is base | A | B for some A, B in U or empty.

    The sets do not contain the vertex's base (its required parents); none is empty.
    """

    names: tuple[str, ...]
    families: Families
    lower_bounds: Ints  # (n,) the least number of subsets that any cover of the vertex has
    method: str  # "auto", "search", "ilp", "ilp-only"
    seconds: float  # wall clock
    complete: bool = True  # False if interrupted; the subsets cover all candidate sets in any case
    # Not in files: seconds, summed over vertices, of reductions and setting up, and afterwards
    preparing: float = 0.0
    solving: float = 0.0

    @property
    def total(self) -> int:
        """Number of u bits."""
        return int(self.families.sizes.sum())

    @property
    def lower_bound(self) -> int:
        """Lower bound on the number of u bits of any cover."""
        return int(self.lower_bounds.sum())

    @property
    def proved(self) -> Bools:
        """(n,) whether the vertex's subsets are proved to be the fewest."""
        proved: Bools = self.families.sizes == self.lower_bounds
        return proved

    @property
    def status(self) -> str:
        """How the search ended, in words."""
        if self.complete:
            return "finished"
        return "interrupted; the best covers found so far are returned"

    def as_json(self) -> dict[str, Any]:
        """Return what `qubayes subsets --json` prints."""
        subsets = {}
        for vertex, name in enumerate(self.names):
            sets = self.families.sets_of(vertex)
            subsets[name] = [list(map(self.names.__getitem__, members)) for members in sets]
        return {
            "n": len(self.names),
            "bits": self.total,
            "lower_bound": self.lower_bound,
            "mu": self.families.sizes.tolist(),
            "lower_bounds": self.lower_bounds.tolist(),
            "proved_optimal_vertices": int(self.proved.sum()),
            "method": self.method,
            "seconds": round(self.seconds, 3),
            "complete": self.complete,
            "status": self.status,
            "subsets": subsets,
        }

    def describe(self) -> list[str]:
        """Return the result in a few lines for people."""
        found = f"{self.total} subsets for {len(self.names)} vertices"
        proved = f"proved smallest for {int(self.proved.sum())} vertices"
        return [
            f"{found}; at least {self.lower_bound} are needed",
            f"{proved}; {self.method}, {self.seconds:.2f} s, {self.status}",
        ]


def cover(
    candidates: Candidates,
    *,
    method: str = "auto",
    budget: Budget | None = None,
    seed: int = 0,
    workers: Workers | None = None,
    on_progress: OnProgress = silent,
    interrupt: Interrupt | None = None,
) -> Subsets:
    """Return for each vertex the fewest subsets found whose unions of two give every candidate set.

    They are the candidate parent subsets of the paper (its Definition `candidate_parent_subsets`).
    `ilp-only` is the paper's integer program over all subsets, `ilp` the same after its Algorithm
    2, `search` a local search after exact reductions, `auto` the best of reductions, closed form,
    search and integer program, with lower bounds. Interrupted, it returns the covers found so far
    (`complete` is False); a vertex that was not reached keeps its candidate sets.

    >>> from qubayes.candidates import example
    >>> candidates = example()
    >>> subsets = cover(candidates)
    >>> subsets.total < candidates.total, bool(subsets.proved.all())
    (True, True)
    """
    if method not in METHODS:
        raise SettingError(
            f"cover method {method!r} is unknown; choose one of {', '.join(METHODS)}"
        )
    began = time.perf_counter()
    systems = [sets_to_cover(candidates.families, vertex) for vertex in range(candidates.n)]
    keys = [(system.sizes.tobytes(), system.members.tobytes()) for system in systems]
    # Identical columns of the data share their work.
    distinct = dict(zip(keys, systems, strict=True))
    interrupt = Interrupt() if interrupt is None else interrupt
    task = CoverTask(method, budget or Budget(), seed, interrupt.flag)
    with interrupt.listening():
        results = _cover_all(list(distinct.values()), task, workers or Workers(), on_progress)
    covered = dict(zip(distinct, results, strict=True))
    named = [system.named(covered[key].sets) for key, system in zip(keys, systems, strict=True)]
    bounds = np.array([covered[key].lower_bound for key in keys], dtype=np.int64)
    complete = not interrupt
    preparing = math.fsum(result.preparing for result in results)
    solving = math.fsum(result.seconds for result in results) - preparing
    seconds = time.perf_counter() - began
    return Subsets(
        names=candidates.names,
        families=Families.of(named),
        lower_bounds=frozen(bounds),
        method=method,
        seconds=seconds,
        complete=complete,
        preparing=preparing,
        solving=max(0.0, solving),
    )


class CoverTask(NamedTuple):
    """Input that all vertices share."""

    method: str
    budget: Budget
    seed: int
    stop: Bools  # (1,) set by an interrupt


class Covered(NamedTuple):
    """A verified cover of one vertex's sets."""

    sets: list[VertexSet]  # over the elements of the set system
    lower_bound: int
    preparing: float = 0.0  # seconds of reductions, and of setting up a program
    seconds: float = 0.0  # in all


def _cover_all(
    systems: Sequence[SetSystem], task: CoverTask, workers: Workers, on_progress: OnProgress
) -> list[Covered]:
    """Return a cover of each set system. The largest come first, so that no thread waits.

    Small ones take a millisecond, most of it outside of kernels, where threads only wait for each
    other: two took 0.45 s for andes, m = 3, and one 0.35 s. So one thread does them at the end."""
    sizes = [len(system.members) for system in systems]
    order = sorted(range(len(systems)), key=lambda index: -sizes[index])
    shared = workers.cluster is not None or task.method not in ("auto", "search")
    large = len(sizes) if shared else sum(size >= SMALL for size in sizes)
    results = [themselves(system) for system in systems]
    total = float(len(sizes) + sum(sizes))
    done = 0.0
    number = 0
    try:
        for index, result in _covered(systems, order[:large], order[large:], task, workers):
            results[index] = result
            done += 1 + sizes[index]
            number += 1
            text = f"{number} of {len(systems)} vertices"
            on_progress(Progress("subsets", done, total, text))
    except KeyboardInterrupt:  # a second one, or one that `on_progress` raises
        task.stop[0] = True
    return results


def _covered(
    systems: Sequence[SetSystem],
    large: list[int],
    small: list[int],
    task: CoverTask,
    workers: Workers,
) -> Iterator[tuple[int, Covered]]:
    """Yield the number and the cover of each system, the large ones by the workers."""
    if workers.cluster is not None:  # tasks elsewhere do not see the flag
        workers = workers.until(lambda: bool(task.stop[0]))
    for numbers, threads in ((large, workers), (small, Workers(1))):
        own = [systems[number] for number in numbers]
        with suppress(Stopped), closing(run(cover_system, task, own, threads)) as finished:
            for place, result in finished:
                yield numbers[place], result


def cover_system(task: CoverTask, system: SetSystem) -> Covered:
    """Return a verified cover of one vertex's sets; the sets themselves after an interrupt."""
    began = time.perf_counter()
    largest = int(system.sizes.max(initial=0))
    if task.stop[0]:
        result = themselves(system)
    elif largest <= 1:
        result = Covered(system.sets(), len(system.sizes))
    elif task.method not in ("auto", "search"):
        result = _by_program(task, system)
    elif largest == 2:
        sets = cover_pairs(system)
        result = Covered(sets, len(sets))
    else:
        result = _by_cores(task, system)
    return verified(system, result)._replace(seconds=time.perf_counter() - began)


def _by_cores(task: CoverTask, system: SetSystem) -> Covered:
    """Return a cover of a system with sets of three elements or more: reduced, then searched."""
    began = time.perf_counter()
    incidence = incidence_of(system)
    closed, cores = reduce_to_cores(incidence)
    preparing = time.perf_counter() - began
    chosen = [closed]
    bound = len(closed)
    for core in cores:
        best, lower = _solve_core(task, core, incidence)
        chosen.append(core.columns[best])
        bound += min(lower, int(best.sum()))
    return _result(incidence, np.concatenate(chosen), bound, preparing)


def verified(system: SetSystem, result: Covered) -> Covered:
    """Return the result; raise if its cover misses a set or its bound is above its size."""
    missing = np.flatnonzero(uncovered(system, result.sets))
    if len(missing) or result.lower_bound > len(result.sets):
        raise AssertionError(
            f"internal error: {len(missing)} of {len(system.sizes)} candidate sets are not "
            f"covered, lower bound {result.lower_bound}, size {len(result.sets)}; please report it"
        )
    return result


def themselves(system: SetSystem) -> Covered:
    """Return the sets as their own cover."""
    return Covered(system.sets(), counting_bound(len(system.sizes)))


def cover_pairs(system: SetSystem) -> list[VertexSet]:
    """Return a smallest cover of sets with one or two elements.

    Components of the graph whose edges are the pairs are independent. If T are the singletons that
    are chosen, a pair costs a member unless both its ends are in T, so the cost is |T| and the
    number of edges not inside T. Contracting a non-empty T leaves a connected graph of v - |T| + 1
    vertices, so at least v - |T| edges are not inside T, and the cost is at least v; T = everything
    attains it. T empty costs the number of edges, which is less than v only for a tree. So a
    component costs v members, or v - 1 if it is a tree without a singleton that is itself a
    candidate."""
    count = len(system.elements)
    singles = int(np.searchsorted(system.sizes, 2))
    pairs = system.members[singles:].reshape(-1, 2)
    ends = pairs[:, 0], pairs[:, 1]
    graph = sparse.coo_array((np.ones(len(pairs)), ends), shape=(count, count))
    components, label = csgraph.connected_components(graph, directed=False)
    forced = np.zeros(components, dtype=bool)
    forced[label[system.members[:singles]]] = True
    label_of_pair = label[pairs[:, 0]]
    edges = np.bincount(label_of_pair, minlength=components)
    by_pairs = (edges < np.bincount(label, minlength=components)) & ~forced
    chosen_singles = np.flatnonzero(~by_pairs[label]).tolist()
    chosen_pairs = pairs[by_pairs[label_of_pair]].tolist()
    return [*((element,) for element in chosen_singles), *map(tuple, chosen_pairs)]


def _by_program(task: CoverTask, system: SetSystem) -> Covered:
    """Cover by the integer program over every subset ("ilp-only"), or after Algorithm 2 ("ilp")."""
    began = time.perf_counter()
    incidence = incidence_of(system)
    if task.method == "ilp":
        status, row_open = reduce_as_paper(incidence)
    else:
        status = np.full(incidence.columns, OPEN, dtype=np.int8)
        row_open = np.ones(incidence.rows, dtype=np.bool_)
    closed = np.flatnonzero(status == CLOSED)
    if not row_open.any():
        return _result(incidence, closed, len(closed), time.perf_counter() - began)
    core = core_of(incidence, status, np.flatnonzero(row_open))
    known = np.zeros(len(core.columns), dtype=np.bool_)
    alone, _, _ = covering_positions(incidence, status)
    for start, mask in zip(core.row_start.tolist(), alone[core.rows].tolist(), strict=False):
        # The last open column that covers the row alone: the row itself wherever that is open.
        known[core.row_columns[start + mask.bit_length() - 1]] = True
    program = program_of(core)
    preparing = time.perf_counter() - began
    chosen, bound = _improved(task, known, program, NO_LIMIT)
    columns = np.concatenate([closed, core.columns[chosen]])
    return _result(incidence, columns, len(closed) + bound, preparing)


def _improved(
    task: CoverTask, known: Bools, program: CoverProgram, nodes: int
) -> tuple[Bools, int]:
    """Return the better of a known cover and the integer program's, and the lower bound."""
    found = solve_program(
        program, start=known, seconds=task.budget.seconds, nodes=nodes, stop=task.stop
    )
    best = found.chosen if found.feasible and found.chosen.sum() < known.sum() else known
    return best, min(int(best.sum()), rounded_up(found.bound))


def _solve_core(task: CoverTask, core: Core, incidence: Incidence) -> tuple[Bools, int]:
    """Return a cover and a lower bound, by each method in turn until the cover is proved smallest.

    These are branch and bound, search, relaxation with cuts, more search, the integer program. The
    method "search" takes the searches only, with the lower bound of disjoint rows."""
    auto = task.method == "auto"
    if auto and len(core.columns) <= MOST_COLUMNS:
        best, proved = smallest_cover(core, np.ones(len(core.columns), np.bool_), TREE)
        if proved:
            return best, int(best.sum())
    seeds, best = _trials(task, core, incidence)
    bound = packing_bound(core)
    if task.stop[0] or bound >= best.sum():
        return best, bound
    if auto:
        rounds = task.budget.rounds
        lower = relaxation_bound(core, incidence, size=int(best.sum()), rounds=rounds)
        bound = max(bound, lower)
    if bound < best.sum():
        wide = auto and bound < (1 - WIDE) * best.sum()
        full = seeds[: 2 if wide else 1]
        work = _search_work(task, core)
        longer = [search(core, incidence, work=work, seed=seed) for seed in full]
        best = min([best, *longer], key=np.count_nonzero)
    if auto and bound < best.sum() and len(core.columns) <= task.budget.program:
        best, lower = _improved(task, best, program_of(core), NODES)
        bound = max(bound, lower)
    return best, bound


def _search_work(task: CoverTask, core: Core) -> int:
    """Return the work of a full search; smaller cores converge early and have a smaller share."""
    share = min(1.0, (100 + len(core.columns)) / 600)
    return int(task.budget.effort * UPDATES_PER_ENTRY * share * len(core.entries))


def _trials(task: CoverTask, core: Core, incidence: Incidence) -> tuple[list[int], Bools]:
    """Return the seeds of short searches, the best first, and the cover that the best one found."""
    work = int(TRIAL * _search_work(task, core))
    count = 1 if len(core.columns) <= MOST_COLUMNS else TRIALS
    seeds = np.random.SeedSequence(task.seed).generate_state(count).tolist()
    found = {seed: search(core, incidence, work=work, seed=seed) for seed in seeds}
    seeds.sort(key=lambda seed: int(found[seed].sum()))
    return seeds, found[seeds[0]]


def _result(incidence: Incidence, columns: Ints, bound: int, preparing: float) -> Covered:
    """Return the columns as sets; with the counting bound if subsets had to be left out."""
    lower = bound if incidence.complete else min(len(columns), counting_bound(incidence.rows))
    return Covered(incidence.sets(np.sort(columns)), lower, preparing)


FINISHED = "finished"  # the status in a file
INTERRUPTED = "interrupted"


def _layout(facts: Facts) -> Layout:
    """Return type and length of vertex_start, set_start, lower_bounds and members."""
    vertices, sets, members = sizes_of(facts)
    seconds = facts.get("seconds")
    timed = type(seconds) is float and math.isfinite(seconds) and seconds >= 0
    texts = [facts.get("method"), facts.get("status")]
    if not timed or not all(isinstance(text, str) for text in texts):
        raise FormatError("the header does not hold the method, its seconds and its status")
    return ("<i8", vertices + 1), ("<i8", sets + 1), ("<i8", vertices), ("<i4", members)


_FORMAT = Format(
    b"\x93qubayes-subsets", "subsets", "`qubayes subsets FILE -o x.qbs` makes one", _layout
)


def check_output(path: str | Path) -> None:
    """Raise if subsets cannot be written there; called before a long search."""
    path = Path(path)
    if path.suffix.lower() != ".qbs":
        raise FormatError(f"cannot write subsets to {path}; the ending must be .qbs")
    check_places([path])


def write_subsets(subsets: Subsets, path: str | Path) -> None:
    """Write the subsets; the file is complete or absent."""
    check_output(path)
    families = subsets.families
    facts = {
        "names": list(subsets.names),
        "method": subsets.method,
        "seconds": float(subsets.seconds),
        "status": FINISHED if subsets.complete else INTERRUPTED,
        "sets": len(families.set_start) - 1,
        "members": len(families.members),
    }
    arrays = families.vertex_start, families.set_start, subsets.lower_bounds, families.members
    _check(subsets)
    with replacing(path, binary=True) as file:
        write_arrays(file, _FORMAT, facts, arrays)


def read_subsets(path: str | Path) -> Subsets:
    """Return the subsets that `write_subsets` wrote."""
    path = Path(path)
    try:
        facts, (vertex_start, set_start, lower_bounds, members) = read_arrays(path, _FORMAT)
        found = Subsets(
            names=tuple(facts["names"]),
            families=Families(vertex_start, set_start, members),
            lower_bounds=lower_bounds,
            method=facts["method"],
            seconds=facts["seconds"],
            complete=facts["status"] == FINISHED,
        )
        _check(found)
        return found
    except FormatError as error:
        raise FormatError(str(error) if str(path) in str(error) else f"{path}: {error}") from error


def _check(found: Subsets) -> None:
    """Raise unless the arrays hold sets and bounds; `formulate` checks what the sets cover."""
    families = found.families
    bounds = found.lower_bounds
    if not well_formed(families) or not (np.diff(families.set_start) >= 1).all():
        raise FormatError(
            "the arrays do not describe ascending sets of one parent or more; "
            "find the subsets again"
        )
    if not ((bounds >= 0) & (bounds <= families.sizes)).all():
        raise FormatError(
            "a lower bound exceeds the number of subsets, or is negative; find the subsets again"
        )
