"""Local search for a small cover of a core: row weighting with two kinds of kicks (design §6)."""

from typing import NamedTuple, TypeAlias

import numpy as np

from ..arrays import Bools, Ints, SmallInts
from ..jit import leaf
from .incidence import Incidence, pivot_table
from .presolve import Core

Whole: TypeAlias = int | np.int64  # a number inside a kernel
COVERED = np.iinfo(np.int64).min  # the sign bit of a pivot word
PLACES = np.zeros(67, dtype=np.int64)  # 2^p mod 67 differs for p < 66: the place of a lone bit
PLACES[[pow(2, p, 67) for p in range(63)]] = np.arange(63)
PLACES.setflags(write=False)


class Kicks(NamedTuple):
    """Groups of columns that are flipped together to leave a local optimum."""

    start: Ints  # (groups + 1,)
    columns: SmallInts


class Walk(NamedTuple):
    """Where the search stands."""

    inside: Bools  # (columns,)
    state: Ints  # (rows,) positions of closed and chosen columns
    pivots: Ints  # (rows,) which positions decide, and the sign bit if the row is covered
    score: Ints  # (columns,) weight of the rows that flipping the column uncovers or covers
    weight: Ints  # (rows,)
    stamp: Ints  # (columns,) step of the last flip
    chosen: SmallInts  # (columns,) the first `tally[0]` are inside
    uncovered: SmallInts  # (rows,) the first `tally[1]` are not covered
    place: SmallInts  # (columns,) index in `chosen`
    row_place: SmallInts  # (rows,) index in `uncovered`
    tally: Ints  # (3,) chosen columns, uncovered rows, row updates so far
    found: Bools  # (columns,) the smallest cover of the last descent
    best: Bools  # (columns,) the smallest cover so far
    helpers: Bools  # (columns,) those that cover no row alone
    kicked: SmallInts  # (columns,) scratch


def walk_of(core: Core) -> Walk:
    """A walk that has not begun."""
    rows, columns = len(core.fixed), len(core.columns)
    score, stamp = np.zeros((2, columns), np.int64)
    chosen, place, kicked = np.zeros((3, columns), np.int32)
    state, pivots, weight = np.zeros((3, rows), np.int64)
    uncovered, row_place = np.zeros((2, rows), np.int32)
    inside, found, best, helpers = np.zeros((4, columns), np.bool_)
    return Walk(
        inside, state, pivots, score, weight, stamp, chosen, uncovered, place, row_place, np.zeros(3, np.int64),
        found, best, helpers, kicked,
    )  # fmt: skip


def search(core: Core, incidence: Incidence, *, work: int, seed: int) -> Bools:
    """A cover of the core: whether each of its columns is chosen. The same seed and work give the same cover."""
    walk = walk_of(core)
    _search(core, pivot_table(), PLACES, kicks_of(core, incidence), walk, work, patience_of(core), seed)
    return walk.best


def patience_of(core: Core) -> int:
    """Steps without progress before a kick."""
    return 10 + len(core.columns) // 16


def kicks_of(core: Core, incidence: Incidence) -> Kicks:
    """One group per open singleton, and per element the group of open pairs that contain it."""
    sizes = np.diff(incidence.set_start)[core.columns]
    first = incidence.set_start[core.columns]
    pairs = np.flatnonzero(sizes == 2)
    singles = np.flatnonzero(sizes == 1)
    ends = np.concatenate([incidence.members[first[pairs]], incidence.members[first[pairs] + 1]])
    order = np.argsort(ends, kind="stable")
    counts = np.bincount(ends, minlength=1)
    lengths = np.concatenate([np.ones(len(singles), dtype=np.int64), counts[counts > 0]])
    columns = np.concatenate([singles, np.tile(pairs, 2)[order]]).astype(np.int32)
    return Kicks(np.concatenate([[0], np.cumsum(lengths)]), columns)


@leaf
def _look(core: Core, table: Ints, row: Whole, state: Whole) -> Whole:
    """Positions whose flip covers or uncovers the row, and the sign bit if it is covered."""
    start = core.row_table[row]
    if start >= 0:
        return np.int64(table[start + state])
    length, partners = core.row_start[row + 1] - core.row_start[row], core.row_partners[row]
    keep = np.int64(-1)  # positions without which the row is not covered
    covered = False
    for p in range(length):
        mates = core.partners[partners + p] & state
        if not state >> p & 1 or mates == 0:
            continue
        covered = True
        if mates >> p & 1 or mates & (mates - 1):  # the row itself, or one that has several partners
            keep &= np.int64(1) << p
        else:
            keep &= (np.int64(1) << p) | mates
    if covered:
        return (keep & np.int64(0x7FFFFFFFFFFFFFFF)) | COVERED
    word = np.int64(0)
    for p in range(length):
        if not state >> p & 1 and core.partners[partners + p] & (state | np.int64(1) << p):
            word |= np.int64(1) << p
    return word


@leaf
def _flip(core: Core, table: Ints, places: Ints, walk: Walk, column: Whole) -> None:
    """Take the column in or out, and bring states, scores and lists up to date."""
    if walk.inside[column]:
        walk.tally[0] -= 1
        last = walk.chosen[walk.tally[0]]
        walk.chosen[walk.place[column]] = last
        walk.place[last] = walk.place[column]
    else:
        walk.chosen[walk.tally[0]] = column
        walk.place[column] = walk.tally[0]
        walk.tally[0] += 1
    walk.inside[column] = not walk.inside[column]
    walk.tally[2] += core.column_start[column + 1] - core.column_start[column]
    # Fields become local names once: each use of a field inside the loop costs reference counting, ten times the work.
    state, pivots, score, weight, opened = walk.state, walk.pivots, walk.score, walk.weight, core.open
    row_start, row_columns, row_table = core.row_start, core.row_columns, core.row_table
    column_rows, column_positions = core.column_rows, core.column_positions
    for entry in range(core.column_start[column], core.column_start[column + 1]):
        row = np.int64(column_rows[entry])
        state[row] ^= np.int64(1) << column_positions[entry]
        old, start = pivots[row], row_table[row]
        new = table[start + state[row]] if start >= 0 else _look(core, table, row, state[row])
        pivots[row] = new
        changed = (old ^ new) & opened[row]
        while changed:
            low = changed & -changed
            changed ^= low
            other = row_columns[row_start[row] + places[low % 67]]
            score[other] += weight[row] if new & low else -weight[row]
        if old >= 0 and new < 0:
            walk.tally[1] -= 1
            end = walk.uncovered[walk.tally[1]]
            walk.uncovered[walk.row_place[row]] = end
            walk.row_place[end] = walk.row_place[row]
        elif old < 0 and new >= 0:
            walk.uncovered[walk.tally[1]] = row
            walk.row_place[row] = walk.tally[1]
            walk.tally[1] += 1


@leaf
def _start(core: Core, table: Ints, places: Ints, walk: Walk) -> None:
    """Nothing chosen, every weight 1."""
    for row in range(len(core.fixed)):
        walk.weight[row] = 1
        walk.state[row] = core.fixed[row]
        walk.pivots[row] = _look(core, table, row, core.fixed[row])
        walk.uncovered[row] = row
        walk.row_place[row] = row
        changed = walk.pivots[row] & core.open[row]
        while changed:
            low = changed & -changed
            changed ^= low
            walk.score[core.row_columns[core.row_start[row] + places[low % 67]]] += 1
    walk.tally[1] = len(core.fixed)


@leaf
def _best_for(core: Core, places: Ints, walk: Walk, row: Whole, step: Whole) -> Whole:
    """The column that covers this uncovered row and most weight; of equals the one that rested longest."""
    best, score, stamp = np.int64(-1), np.int64(-1), np.int64(0)
    choices = walk.pivots[row] & core.open[row]
    while choices:
        low = choices & -choices
        choices ^= low
        column = np.int64(core.row_columns[core.row_start[row] + places[low % 67]])
        if walk.stamp[column] == step and choices:
            continue
        if walk.score[column] > score or (walk.score[column] == score and walk.stamp[column] < stamp):
            best, score, stamp = column, walk.score[column], walk.stamp[column]
    return best


@leaf
def _cheapest(chosen: SmallInts, scores: Ints, stamps: Ints, tally: Ints, step: Whole) -> Whole:
    """The chosen column whose removal uncovers least weight, not one taken in by the last step."""
    best, score, stamp, count = np.int64(chosen[0]), np.int64(0x7FFFFFFFFFFFFFFF), np.int64(0), tally[0]
    tally[2] += count >> 3
    for index in range(count):
        column = np.int64(chosen[index])  # one type of argument everywhere: numba compiles each function once
        if scores[column] > score or (stamps[column] == step - 1 and count > 1):
            continue
        if scores[column] < score or stamps[column] < stamp:
            best, score, stamp = column, scores[column], stamps[column]
    return best


@leaf
def _raise(core: Core, places: Ints, walk: Walk, row: Whole, amount: Whole) -> None:
    """Add to the weight of a row."""
    walk.weight[row] += amount
    changed = walk.pivots[row] & core.open[row]
    while changed:
        low = changed & -changed
        changed ^= low
        walk.score[core.row_columns[core.row_start[row] + places[low % 67]]] += amount


@leaf
def _descend(core: Core, table: Ints, places: Ints, walk: Walk, first: Whole, patience: int) -> tuple[Whole, Whole]:
    """Cover what is open, then walk at one column less than the smallest cover so far, which is kept in `walk.found`.

    Ends after `patience` steps without a smaller one; returns its size and the number of the last step.
    """
    nothing = len(walk.found) + 1
    size, step, last = nothing, first, first
    while step - last <= patience or size == nothing:
        step += 1
        if walk.tally[1] == 0:
            while walk.tally[0]:
                column = _cheapest(walk.chosen, walk.score, walk.stamp, walk.tally, np.int64(-1))
                if walk.score[column] > 0:
                    break
                _flip(core, table, places, walk, column)
            if walk.tally[0] < size:
                _copy(walk.inside, walk.found)
                size, last = walk.tally[0], step
            if size == 0:
                break
        if size < nothing:
            column = _cheapest(walk.chosen, walk.score, walk.stamp, walk.tally, step)
            _flip(core, table, places, walk, column)
            walk.stamp[column] = step
            if walk.tally[1] == 0:
                continue
        row = np.int64(walk.uncovered[np.random.randint(walk.tally[1])])  # noqa: NPY002
        column = _best_for(core, places, walk, row, step)
        _flip(core, table, places, walk, column)
        walk.stamp[column] = step
        if size < nothing:
            for index in range(walk.tally[1]):
                _raise(core, places, walk, np.int64(walk.uncovered[index]), np.int64(1))
    return size, step


@leaf
def _copy(source: Bools, target: Bools) -> None:
    for column in range(len(source)):  # numba takes half a second to compile target[:] = source
        target[column] = source[column]


@leaf
def _choose_kick(kicks: Kicks, group: Whole, walk: Walk) -> Whole:
    """How many columns to flip, put into `walk.kicked`: a group of kicks, or else helpers, or else some chosen ones."""
    count = np.int64(0)
    if group < len(kicks.start) - 1:
        for place in range(kicks.start[group], kicks.start[group + 1]):
            walk.kicked[count] = kicks.columns[place]
            count += 1
        return count
    helped = False
    for column in range(len(walk.helpers)):
        helped |= walk.helpers[column]
        if walk.helpers[column] and not walk.inside[column]:
            walk.kicked[count] = column
            count += 1
    return count if helped else _choose_some(walk.chosen, walk.kicked, walk.tally[0])


@leaf
def _choose_some(chosen: SmallInts, kicked: SmallInts, total: Whole) -> Whole:
    """A tenth of the chosen columns and one more, put into `kicked` in random order."""
    for index in range(total):
        kicked[index] = chosen[index]
    for last in range(total - 1, 0, -1):
        other = np.random.randint(last + 1)  # noqa: NPY002
        kicked[last], kicked[other] = kicked[other], kicked[last]
    return np.int64(min(total, 1 + total // 10))


@leaf
def _search(
    core: Core, table: Ints, places: Ints, kicks: Kicks, walk: Walk, work: int, patience: int, seed: int
) -> None:
    """Descend by row weighting, kick the incumbent `walk.best` and descend again, until the work is done."""
    np.random.seed(seed)  # noqa: NPY002  (kernels have only this generator)
    columns = len(core.columns)
    step: Whole = np.int64(0)
    best_size: Whole = np.int64(columns + 1)
    _start(core, table, places, walk)
    for column in range(columns):  # those that pay only together: the first kick takes them all in
        walk.helpers[column] = walk.score[column] == 0
    group = len(kicks.start) - 1
    while True:
        size, step = _descend(core, table, places, walk, step, patience)
        if size <= best_size:
            best_size = size
            _copy(walk.found, walk.best)
        if walk.tally[2] >= work or best_size <= 1:
            return
        for row in range(len(core.fixed)):
            if walk.weight[row] > 1:
                _raise(core, places, walk, row, 1 - walk.weight[row])
        for kicking in range(2):  # back to the incumbent, then the kick; `_flip` is compiled into each place of its use
            if kicking:
                count = _choose_kick(kicks, group, walk)
            else:
                count = _choose_changed(walk.best, walk.inside, walk.kicked)
            for index in range(count):
                kicked = np.int64(walk.kicked[index])
                _flip(core, table, places, walk, kicked)
                if kicking:
                    walk.stamp[kicked] = step
        group = np.random.randint(len(kicks.start))  # noqa: NPY002


@leaf
def _choose_changed(best: Bools, inside: Bools, kicked: SmallInts) -> Whole:
    """In how many columns the two covers differ; they are put into `kicked`."""
    count = np.int64(0)
    for column in range(len(best)):
        if best[column] != inside[column]:
            kicked[count] = column
            count += 1
    return count
