"""The four methods of covering the candidate sets of one vertex, and the check of what they return."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ...foundation.arrays import Bools, Ints
from ...foundation.errors import SettingError
from ...foundation.families import VertexSet
from .bounds import packing_bound, relaxation_bound
from .branch_and_bound import MOST_COLUMNS, smallest_cover
from .cover_program import NO_LIMIT, CoverProgram, program_of, solve_program
from .cover_search import search
from .instance import Incidence, SetSystem, incidence_of, uncovered
from .reductions import CLOSED, OPEN, Core, Status, core_of, covering_positions, presolve, reduce_as_paper

METHODS = ("auto", "search", "ilp", "ilp-only")
SEARCH_WORK = 1500  # row updates of the search per entry of the core
TRIALS = 6  # first descents; of pathfinder's largest core (m = 3) one seed in three stays 8 % above the others for long
TRIAL = 0.05  # part of the work that each trial may spend
TREE = 10_000  # nodes of branch and bound on a core with few columns
WIDE = 0.03  # a gap after the trials that is worth two full searches
NODES = 50  # of the integer program


@dataclass(frozen=True, slots=True)
class Budget:
    """Work that one vertex may cost. Work and rounds are counts, so that results do not depend on the machine."""

    seconds: float = 60.0  # for the integer program; the paper's limit
    effort: float = 1.0  # multiplies the work of the search
    rounds: int = 6  # of cuts for the lower bound
    program: int = 60  # columns of the largest core that `auto` gives to the integer program; 400 proves more, slowly

    def __post_init__(self) -> None:
        if not (self.seconds > 0 and self.effort > 0 and self.rounds >= 0 and self.program >= 0):
            raise SettingError(f"{self}; seconds and effort must be positive, rounds and program not negative")


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


def cover_system(task: CoverTask, system: SetSystem) -> Covered:
    """Return a verified cover of one vertex's sets by the task's method; the sets themselves after an interrupt."""
    began = time.perf_counter()
    largest = int(system.sizes.max(initial=0))
    if task.stop[0]:
        result = themselves(system)
    elif largest <= 1:
        result = Covered(system.sets(), len(system.sizes))
    elif largest == 2 and task.method in ("auto", "search"):
        sets = cover_pairs(system)
        result = Covered(sets, len(sets))
    elif task.method in ("auto", "search"):
        result = _by_cores(task, system)
    else:
        result = _by_program(task, system)
    return verified(system, result)._replace(seconds=time.perf_counter() - began)


def verified(system: SetSystem, result: Covered) -> Covered:
    """Return the result; raise if its cover misses a set or its bound is above its size."""
    missing = np.flatnonzero(uncovered(system, result.sets))
    if len(missing) or result.lower_bound > len(result.sets):
        raise AssertionError(
            f"internal error: {len(missing)} of {len(system.sizes)} candidate sets are not covered, "
            f"lower bound {result.lower_bound}, size {len(result.sets)}; please report it"
        )
    return result


def themselves(system: SetSystem) -> Covered:
    """Return the sets as their own cover."""
    return Covered(system.sets(), counting_bound(len(system.sizes)))


def counting_bound(sets: int) -> int:
    """Return the least k with k (k + 1) / 2 >= sets: k members have no more unions of at most two."""
    root = (math.isqrt(8 * sets + 1) - 1) // 2
    return root if root * (root + 1) // 2 >= sets else root + 1


def cover_pairs(system: SetSystem) -> list[VertexSet]:
    """Return a smallest cover of sets with one or two elements, by components of the graph whose edges are the pairs.

    If T are the singletons that are chosen, a pair costs a member unless both its ends are in T, so the cost is |T| and
    the number of edges not inside T. Contracting a non-empty T leaves a connected graph of v - |T| + 1 vertices, so at
    least v - |T| edges are not inside T, and the cost is at least v; T = everything attains it. T empty costs the
    number of edges, which is less than v only for a tree. So a component costs v members, or v - 1 if it is a tree
    without a singleton that is itself a candidate.
    """
    count, singles = len(system.elements), int(np.searchsorted(system.sizes, 2))
    pairs = system.members[singles:].reshape(-1, 2)
    graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(count, count))
    components, label = connected_components(graph, directed=False)
    forced = np.zeros(components, dtype=bool)
    forced[label[system.members[:singles]]] = True
    edges = np.bincount(label[pairs[:, 0]], minlength=components)
    by_pairs = (edges < np.bincount(label, minlength=components)) & ~forced
    chosen_singles = np.flatnonzero(~by_pairs[label])
    chosen_pairs = pairs[by_pairs[label[pairs[:, 0]]]]
    return [(element,) for element in chosen_singles.tolist()] + [(a, b) for a, b in chosen_pairs.tolist()]


def _by_program(task: CoverTask, system: SetSystem) -> Covered:
    """Cover by the integer program over every subset ("IP only"), or over what Algorithm 2 leaves open ("ilp")."""
    began = time.perf_counter()
    incidence = incidence_of(system)
    if task.method == "ilp":
        status, row_open = reduce_as_paper(incidence)
    else:
        status, row_open = np.full(incidence.columns, OPEN, dtype=np.int8), np.ones(incidence.rows, dtype=np.bool_)
    closed = np.flatnonzero(status == CLOSED)
    if not row_open.any():
        return _result(incidence, closed, len(closed), time.perf_counter() - began)
    core = core_of(incidence, status, np.flatnonzero(row_open))
    known, program = _plain_cover(core, incidence, status), program_of(core)
    preparing = time.perf_counter() - began
    chosen, bound = _improved(task, core, known, program, NO_LIMIT)
    return _result(incidence, np.concatenate([closed, core.columns[chosen]]), len(closed) + bound, preparing)


def _plain_cover(core: Core, incidence: Incidence, status: Status) -> Bools:
    """Return the last open column of each row that covers it alone: the row itself wherever that is open."""
    alone = covering_positions(incidence, status)[0][core.rows]
    highest = np.frexp(alone.astype(np.float64))[1] - 1
    highest -= (alone >> highest) == 0  # a mask of more than 53 bits may have been rounded up
    chosen = np.zeros(len(core.columns), dtype=np.bool_)
    chosen[core.row_columns[core.row_start[:-1] + highest]] = True
    return chosen


def _improved(task: CoverTask, core: Core, known: Bools, program: CoverProgram, nodes: int) -> tuple[Bools, int]:
    """Return the better of a known cover and the integer program's, and the program's lower bound."""
    found = solve_program(program, start=known, seconds=task.budget.seconds, nodes=nodes, stop=task.stop)
    better = int(found.chosen.sum()) < int(known.sum()) and covers_core(core, found.chosen)
    best = found.chosen if better else known
    return best, min(int(best.sum()), int(np.ceil(found.bound - 1e-6)))


def covers_core(core: Core, chosen: Bools) -> bool:
    """Return whether each row of the core has two positions, closed or chosen, that are partners."""
    live = core.row_columns >= 0
    owner = np.repeat(np.arange(len(core.rows)), np.diff(core.row_start))
    position = np.arange(len(owner)) - core.row_start[owner]
    taken = live & chosen[np.where(live, core.row_columns, 0)]
    state = core.fixed.copy()
    np.bitwise_or.at(state, owner[taken], np.int64(1) << position[taken])
    mates = core.partners[core.row_partners[owner] + position] & state[owner]
    met = (state[owner] >> position & 1 == 1) & (mates != 0)
    return bool(np.bincount(owner[met], minlength=len(core.rows)).all())


def _by_cores(task: CoverTask, system: SetSystem) -> Covered:
    """Reduce exactly, then solve each core by the task's method."""
    began = time.perf_counter()
    incidence = incidence_of(system)
    closed, cores = presolve(incidence)
    preparing = time.perf_counter() - began
    solve: Callable[[CoverTask, Core, Incidence], tuple[Bools, int]] = _solve_core
    if task.method == "search":
        solve = _search_core
    chosen, bound = [closed], len(closed)
    for core in cores:
        best, lower = solve(task, core, incidence)
        chosen.append(core.columns[best])
        bound += lower
    return _result(incidence, np.concatenate(chosen), bound, preparing)


def _search_core(task: CoverTask, core: Core, incidence: Incidence) -> tuple[Bools, int]:
    """Return a cover by local search and the lower bound of disjoint rows."""
    best = _longer(task, core, incidence, _trials(task, core, incidence)[:1])
    return best, min(int(best.sum()), packing_bound(core))


def _solve_core(task: CoverTask, core: Core, incidence: Incidence) -> tuple[Bools, int]:
    """Return the best cover and bound of: branch and bound, search, relaxation with cuts, more search, the program."""
    if len(core.columns) <= MOST_COLUMNS:
        best, proved = smallest_cover(core, np.ones(len(core.columns), np.bool_), TREE)
        if proved:
            return best, int(best.sum())
    trials = _trials(task, core, incidence)
    best, bound = trials[0][0], packing_bound(core)
    if task.stop[0]:
        return best, min(int(best.sum()), bound)
    if bound < best.sum():
        bound = max(bound, relaxation_bound(core, incidence, size=int(best.sum()), rounds=task.budget.rounds))
    if bound < best.sum():
        best = _longer(task, core, incidence, trials[: 2 if bound < (1 - WIDE) * best.sum() else 1])
    if bound < best.sum() and len(core.columns) <= task.budget.program:
        best, lower = _improved(task, core, best, program_of(core), NODES)
        bound = max(bound, lower)
    return best, min(int(best.sum()), bound)


def _trials(task: CoverTask, core: Core, incidence: Incidence) -> list[tuple[Bools, int]]:
    """Return the covers that a few short searches find and the seed of each, smaller first."""
    work = int(TRIAL * _work(task, core))
    seeds = np.random.SeedSequence(task.seed).generate_state(TRIALS if len(core.columns) > MOST_COLUMNS else 1)
    runs = [(search(core, incidence, work=work, seed=seed), seed) for seed in seeds.tolist()]
    return sorted(runs, key=lambda run: int(run[0].sum()))


def _longer(task: CoverTask, core: Core, incidence: Incidence, trials: list[tuple[Bools, int]]) -> Bools:
    """Return the smallest cover among those of the trials and of full searches from their seeds."""
    runs = [search(core, incidence, work=_work(task, core), seed=seed) for _, seed in trials]
    return min([*(known for known, _ in trials), *runs], key=lambda chosen: int(chosen.sum()))


def _work(task: CoverTask, core: Core) -> int:
    # Small cores converge early: their share of the work shrinks with them.
    return int(task.budget.effort * SEARCH_WORK * min(1.0, (100 + len(core.columns)) / 600) * len(core.column_rows))


def _result(incidence: Incidence, columns: Ints, bound: int, preparing: float) -> Covered:
    """Return the columns as sets. If subsets had to be left out, only counting bounds the optimum from below."""
    lower = bound if incidence.complete else min(len(columns), counting_bound(incidence.rows))
    return Covered(incidence.sets(np.sort(columns)), lower, preparing)
