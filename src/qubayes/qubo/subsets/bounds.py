"""Lower bounds on the size of a cover: disjoint rows, and the relaxation of the integer program with cuts."""

import math

import numpy as np

from ...foundation.arrays import Bools, Ints
from ...foundation.jit import kernel
from .cuts import triples_of, violated_cuts, with_cuts
from .incidence import Incidence
from .presolve import Core
from .program import Program, program_of
from .relaxation import Relaxation, advance, relaxation_of

ROUND = 200  # steps of the relaxation between two rounds of cuts; the bound is then within 0.5 % of the relaxation's
FINISH = 500  # steps at the end; within 0.1 %


def packing_bound(core: Core) -> int:
    """Number of rows, chosen greedily, no two of which share an open column: each needs a column of its own."""
    order = np.argsort(np.bitwise_count(core.open), kind="stable")
    return int(_pack(core, order, np.zeros(len(core.columns), np.bool_)))


@kernel
def _pack(core: Core, order: Ints, used: Bools) -> int:
    found = 0
    for index in range(len(order)):
        first, last = core.row_start[order[index]], core.row_start[order[index] + 1]
        free = True
        for place in range(first, last):
            free &= core.row_columns[place] < 0 or not used[core.row_columns[place]]
        if free:
            found += 1
            for place in range(first, last):
                if core.row_columns[place] >= 0:
                    used[core.row_columns[place]] = True
    return found


def relaxation_bound(core: Core, incidence: Incidence, *, size: int, rounds: int) -> int:
    """A lower bound on every cover of the core; it stops when it proves that `size` is the smallest."""
    program, triples = program_of(core), triples_of(core, incidence)
    relaxation, random = relaxation_of(program), np.random.default_rng(0)
    enough, before = size - 1 + 1e-6, 0.0
    advance(relaxation, ROUND, enough=enough)
    for _ in range(rounds if len(triples.column) >= 6 else 0):
        reach = relaxation.bound + 2 * (relaxation.bound - before)
        if relaxation.bound > enough or whole(reach) == whole(relaxation.bound):  # no whole number is near
            break
        before = relaxation.bound
        found = violated_cuts(triples, relaxation.values[: program.choices], random)
        if not found:
            break
        relaxation = _without_idle_cuts(relaxation, program)
        relaxation = relaxation.extended(with_cuts(relaxation.program, triples, found))
        advance(relaxation, ROUND, enough=enough)
    if whole(relaxation.bound) < whole(float(relaxation.values[: program.choices].sum())):
        advance(relaxation, FINISH, enough=enough)
    return min(size, whole(relaxation.bound))


def _without_idle_cuts(relaxation: Relaxation, program: Program) -> Relaxation:
    """The relaxation without the cuts that carry no dual value."""
    used = (relaxation.duals > 1e-6) | (np.arange(len(relaxation.duals)) < len(program.lower))
    now = relaxation.program
    return relaxation.of(Program(now.matrix[used], now.lower[used], now.choices), relaxation.duals[used])


def whole(bound: float) -> int:
    """The smallest whole number that is not below the bound, but for rounding of sums."""
    return math.ceil(bound - 1e-6)
