"""The four methods on the family of one vertex."""

import time
from collections.abc import Callable

import numpy as np

from ...foundation.arrays import Bools, Ints
from .bounds import packing_bound, relaxation_bound
from .cover import Covered, Task, counting_bound
from .family import Family
from .incidence import Incidence, incidence_of
from .presolve import CLOSED, OPEN, Core, Status, all_ways, core_of, presolve
from .program import Limits, Program, program_of, solve_program
from .reduction import reduce_as_paper
from .search import search
from .tree import MOST_COLUMNS, smallest_cover

SEARCH_WORK = 1500  # row updates of the search per entry of the core
TRIALS = 6  # first descents; of pathfinder's largest core (m = 3) one seed in three stays 8 % above the others for long
TRIAL = 0.05  # part of the work that each trial may spend
TREE = 10_000  # nodes of the search tree of a core with few columns
WIDE = 0.03  # a gap after the trials that is worth two full searches
NODES = 50  # of the integer program


def by_program_only(task: Task, family: Family) -> Covered:
    """The integer program over every subset (the paper's "IP only")."""
    began = time.perf_counter()
    incidence = incidence_of(family)
    status = np.full(incidence.columns, OPEN, dtype=np.int8)
    return _by_program(task, incidence, status, np.ones(incidence.rows, dtype=np.bool_), began)


def by_program(task: Task, family: Family) -> Covered:
    """Algorithm 2, then the integer program over what it leaves open (the paper's "IP + Algorithm 2")."""
    began = time.perf_counter()
    incidence = incidence_of(family)
    return _by_program(task, incidence, *reduce_as_paper(incidence), began)


def _by_program(task: Task, incidence: Incidence, status: Status, row_open: Bools, began: float) -> Covered:
    closed = np.flatnonzero(status == CLOSED)
    if not row_open.any():
        return _result(incidence, closed, len(closed), time.perf_counter() - began)
    core = core_of(incidence, status, np.flatnonzero(row_open))
    limits = Limits(seconds=task.budget.seconds)
    known, program = _plain_cover(core, incidence, status), program_of(core)
    preparing = time.perf_counter() - began
    chosen, bound = _improved(core, known, program, limits, task.stop)
    return _result(incidence, np.concatenate([closed, core.columns[chosen]]), len(closed) + bound, preparing)


def _plain_cover(core: Core, incidence: Incidence, status: Status) -> Bools:
    """The last open column of each row that covers it alone: the row itself wherever that is open."""
    alone = all_ways(incidence, status)[0][core.rows]
    highest = np.frexp(alone.astype(np.float64))[1] - 1
    highest -= (alone >> highest) == 0  # a mask of more than 53 bits may have been rounded up
    chosen = np.zeros(len(core.columns), dtype=np.bool_)
    chosen[core.row_columns[core.row_start[:-1] + highest]] = True
    return chosen


def _improved(core: Core, known: Bools, program: Program, limits: Limits, stop: Bools) -> tuple[Bools, int]:
    """The better of a known cover and the integer program's, and the program's lower bound."""
    outcome = solve_program(program, limits, start=known, stop=stop)
    better = int(outcome.chosen.sum()) < int(known.sum()) and covers_core(core, outcome.chosen)
    best = outcome.chosen if better else known
    return best, min(int(best.sum()), int(np.ceil(outcome.bound - 1e-6)))


def covers_core(core: Core, chosen: Bools) -> bool:
    """Whether each row of the core has two positions, closed or chosen, that are partners."""
    live = core.row_columns >= 0
    owner = np.repeat(np.arange(len(core.rows)), np.diff(core.row_start))
    position = np.arange(len(owner)) - core.row_start[owner]
    taken = live & chosen[np.where(live, core.row_columns, 0)]
    state = core.fixed.copy()
    np.bitwise_or.at(state, owner[taken], np.int64(1) << position[taken])
    mates = core.partners[core.row_partners[owner] + position] & state[owner]
    met = (state[owner] >> position & 1 == 1) & (mates != 0)
    return bool(np.bincount(owner[met], minlength=len(core.rows)).all())


def by_search(task: Task, family: Family) -> Covered:
    """Exact reductions, then local search on each core; the lower bound is the cheap one."""
    return _by_cores(task, family, _search_core)


def by_all(task: Task, family: Family) -> Covered:
    """Exact reductions, then on each core search, relaxation with cuts, more search, the integer program if small."""
    return _by_cores(task, family, _settle_core)


def _by_cores(task: Task, family: Family, settle: Callable[[Task, Core, Incidence], tuple[Bools, int]]) -> Covered:
    began = time.perf_counter()
    incidence = incidence_of(family)
    closed, cores = presolve(incidence)
    preparing = time.perf_counter() - began
    chosen, bound = [closed], len(closed)
    for core in cores:
        best, lower = settle(task, core, incidence)
        chosen.append(core.columns[best])
        bound += lower
    return _result(incidence, np.concatenate(chosen), bound, preparing)


def _search_core(task: Task, core: Core, incidence: Incidence) -> tuple[Bools, int]:
    trials = _trials(task, core, incidence)
    best = _longer(task, core, incidence, trials[:1])
    return best, min(int(best.sum()), packing_bound(core))


def _trials(task: Task, core: Core, incidence: Incidence) -> list[tuple[Bools, int]]:
    """The covers that a few short searches find and the seed of each, smaller first."""
    work = int(TRIAL * _work(task, core))
    seeds = np.random.SeedSequence(task.seed).generate_state(TRIALS if len(core.columns) > MOST_COLUMNS else 1)
    runs = [(search(core, incidence, work=work, seed=seed), seed) for seed in seeds.tolist()]
    return sorted(runs, key=lambda run: int(run[0].sum()))


def _longer(task: Task, core: Core, incidence: Incidence, trials: list[tuple[Bools, int]]) -> Bools:
    """The smallest cover among those of the trials and of full searches from their seeds."""
    runs = [search(core, incidence, work=_work(task, core), seed=seed) for _, seed in trials]
    return min([*(known for known, _ in trials), *runs], key=lambda chosen: int(chosen.sum()))


def _settle_core(task: Task, core: Core, incidence: Incidence) -> tuple[Bools, int]:
    if len(core.columns) <= MOST_COLUMNS:
        best, proved = smallest_cover(core, np.ones(len(core.columns), np.bool_), TREE)
        if proved:
            return best, int(best.sum())
    trials = _trials(task, core, incidence)
    best, bound = trials[0][0], packing_bound(core)
    if bound < best.sum():
        bound = max(bound, relaxation_bound(core, incidence, size=int(best.sum()), rounds=task.budget.rounds))
    if bound < best.sum():
        best = _longer(task, core, incidence, trials[: 2 if bound < (1 - WIDE) * best.sum() else 1])
    if bound < best.sum() and len(core.columns) <= task.budget.program:
        best, lower = _improved(
            core, best, program_of(core), Limits(seconds=task.budget.seconds, nodes=NODES), task.stop
        )
        bound = max(bound, lower)
    return best, min(int(best.sum()), bound)


def _work(task: Task, core: Core) -> int:
    # Small cores settle early: their share of the work shrinks with them.
    return int(task.budget.effort * SEARCH_WORK * min(1.0, (100 + len(core.columns)) / 600) * len(core.column_rows))


def _result(incidence: Incidence, columns: Ints, bound: int, preparing: float) -> Covered:
    """The columns as sets. If subsets had to be left out, only counting bounds the optimum from below."""
    lower = bound if incidence.complete else min(len(columns), counting_bound(incidence.rows))
    return Covered(incidence.sets(np.sort(columns)), lower, preparing)


METHODS: dict[str, Callable[[Task, Family], Covered]] = {
    "auto": by_all,
    "search": by_search,
    "ilp": by_program,
    "ilp-only": by_program_only,
}
