"""Local search for a small cover of a core: row weighting with two kinds of kicks (design §6)."""

from typing import NamedTuple, TypeAlias

import numpy as np

from ...foundation.arrays import AnyArray, Bools, Ints, SmallInts
from ...foundation.jit import inner, kernel
from .incidence import Incidence, pivot_table
from .presolve import Core

Whole: TypeAlias = int | np.int64  # a number inside a kernel
COVERED = np.iinfo(np.int64).min  # the sign bit of a pivot word
PLACES = np.zeros(67, dtype=np.int64)  # 2^p mod 67 differs for p < 66: the place of a lone bit
PLACES[[pow(2, p, 67) for p in range(63)]] = np.arange(63)
PLACES.setflags(write=False)

# What a flip touches of a row lies together in memory, and a kernel is given one array in place of eight: it compiles
# in half the time.
ROW = np.dtype(
    [
        ("state", np.int64),  # positions of closed and chosen columns
        ("pivots", np.int64),  # which positions decide, and the sign bit if the row is covered
        ("weight", np.int64),
        ("open", np.int64),  # positions of open columns
        ("start", np.int64),  # where its columns start
        ("table", np.int64),  # where its states start in the table of pivots; -1: compute them from the partners
        ("place", np.int64),  # index in `uncovered`
        ("partners", np.int64),  # where its masks start
    ]
)
COLUMN = np.dtype(
    [
        ("start", np.int64),  # where its rows start
        ("place", np.int32),  # index in `chosen`
        ("inside", np.bool_),
        ("helper", np.bool_),  # covers no row alone
        ("found", np.bool_),  # in the smallest cover of the last descent
        ("best", np.bool_),  # in the smallest cover so far
    ]
)
ENTRY = np.dtype([("row", np.int32), ("position", np.int32)])


class Kicks(NamedTuple):
    """Groups of columns that are flipped together to leave a local optimum."""

    start: Ints  # (groups + 1,)
    columns: SmallInts


class Walk(NamedTuple):
    """The core as the kernels see it, and where the search stands."""

    rows: AnyArray  # (rows + 1,) of ROW
    columns: AnyArray  # (columns + 1,) of COLUMN
    row_columns: SmallInts  # the columns of each row, -1 where none is open
    entries: AnyArray  # of ENTRY, the rows of each column
    partners: Ints
    table: Ints  # of pivots
    score: Ints  # (columns,) weight of the rows that flipping the column uncovers or covers
    stamp: Ints  # (columns,) step of the last flip
    chosen: SmallInts  # (columns,) the first `tally[0]` are inside
    uncovered: SmallInts  # (rows,) the first `tally[1]` are not covered
    kicked: SmallInts  # (columns,) scratch
    tally: Ints  # (3,) chosen columns, uncovered rows, row updates so far


def walk_of(core: Core) -> Walk:
    """A walk that has not begun: nothing chosen, every weight 1."""
    rows, columns = np.zeros(len(core.fixed) + 1, ROW), np.zeros(len(core.columns) + 1, COLUMN)
    rows["start"], columns["start"] = core.row_start, core.column_start
    for name, values in (("state", core.fixed), ("open", core.open), ("table", core.row_table)):
        rows[name][:-1] = values
    rows["partners"][:-1], rows["weight"] = core.row_partners, 1
    entries = np.zeros(len(core.column_rows), ENTRY)
    entries["row"], entries["position"] = core.column_rows, core.column_positions
    score, stamp = np.zeros((2, len(core.columns)), np.int64)
    chosen, kicked = np.zeros((2, len(core.columns)), np.int32)
    return Walk(
        rows, columns, core.row_columns, entries, core.partners, pivot_table(), score, stamp, chosen,
        np.zeros(len(core.fixed), np.int32), kicked, np.zeros(3, np.int64),
    )  # fmt: skip


def search(core: Core, incidence: Incidence, *, work: int, seed: int) -> Bools:
    """A cover of the core: whether each of its columns is chosen. The same seed and work give the same cover."""
    walk = walk_of(core)
    _search(walk, kicks_of(core, incidence), work, patience_of(core), seed)
    return walk.columns["best"][:-1].copy()


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


@kernel
def _look(walk: Walk, row: Whole, state: Whole) -> Whole:
    """Positions whose flip covers or uncovers the row, and the sign bit if it is covered."""
    start = walk.rows[row].table
    if start >= 0:
        return np.int64(walk.table[start + state])
    length, first = walk.rows[row + 1].start - walk.rows[row].start, walk.rows[row].partners
    keep = np.int64(-1)  # positions without which the row is not covered
    covered = False
    for p in range(length):
        mates = walk.partners[first + p] & state
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
        if not state >> p & 1 and walk.partners[first + p] & (state | np.int64(1) << p):
            word |= np.int64(1) << p
    return word


@kernel
def _flip(walk: Walk, column: Whole) -> None:
    """Take the column in or out, and bring states, scores and lists up to date."""
    rows, columns, entries, tally = walk.rows, walk.columns, walk.entries, walk.tally
    if columns[column].inside:
        tally[0] -= 1
        last = walk.chosen[tally[0]]
        walk.chosen[columns[column].place] = last
        columns[last].place = columns[column].place
    else:
        walk.chosen[tally[0]] = column
        columns[column].place = tally[0]
        tally[0] += 1
    columns[column].inside = not columns[column].inside
    first, end = columns[column].start, columns[column + 1].start
    tally[2] += end - first
    for entry in range(first, end):
        number = np.int64(entries[entry].row)
        row = rows[number]
        state, old = row.state ^ np.int64(1) << entries[entry].position, row.pivots
        new = walk.table[row.table + state] if row.table >= 0 else _look(walk, number, state)
        row.state = state
        row.pivots = new
        changed = (old ^ new) & row.open
        while changed:
            low = changed & -changed
            changed ^= low
            other = walk.row_columns[row.start + PLACES[low % 67]]
            walk.score[other] += row.weight if new & low else -row.weight
        if old >= 0 and new < 0:
            tally[1] -= 1
            moved = walk.uncovered[tally[1]]
            walk.uncovered[row.place] = moved
            rows[moved].place = row.place
        elif old < 0 and new >= 0:
            walk.uncovered[tally[1]] = number
            row.place = tally[1]
            tally[1] += 1


@inner
def _raise(walk: Walk, row: Whole, amount: Whole) -> None:
    """Add to the weight of a row."""
    record = walk.rows[row]
    record.weight += amount
    changed = record.pivots & record.open
    while changed:
        low = changed & -changed
        changed ^= low
        walk.score[walk.row_columns[record.start + PLACES[low % 67]]] += amount


@kernel
def _start(walk: Walk) -> None:
    """No row is covered: list them all, and count for each column those that it covers."""
    for row in range(len(walk.uncovered)):
        walk.rows[row].pivots = _look(walk, row, walk.rows[row].state)
        walk.uncovered[row] = row
        walk.rows[row].place = row
        walk.rows[row].weight = 0
        _raise(walk, row, np.int64(1))
    walk.tally[1] = len(walk.uncovered)
    for column in range(len(walk.score)):  # those that pay only together: the first kick takes them all in
        walk.columns[column].helper = walk.score[column] == 0


@inner
def _best_for(walk: Walk, row: Whole, step: Whole) -> Whole:
    """The column that covers this uncovered row and most weight; of equals the one that rested longest."""
    best, score, stamp = np.int64(-1), np.int64(-1), np.int64(0)
    choices = walk.rows[row].pivots & walk.rows[row].open
    while choices:
        low = choices & -choices
        choices ^= low
        column = np.int64(walk.row_columns[walk.rows[row].start + PLACES[low % 67]])
        if walk.stamp[column] == step and choices:
            continue
        if walk.score[column] > score or (walk.score[column] == score and walk.stamp[column] < stamp):
            best, score, stamp = column, walk.score[column], walk.stamp[column]
    return best


@inner
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


@inner
def _descend(walk: Walk, first: Whole, patience: int) -> tuple[Whole, Whole]:
    """Cover what is open, then walk at one column less than the smallest cover so far, which is kept as `found`.

    Ends after `patience` steps without a smaller one; returns its size and the number of the last step.
    """
    tally, nothing = walk.tally, len(walk.score) + 1
    size, step, last = nothing, first, first
    while step - last <= patience or size == nothing:
        step += 1
        if tally[1] == 0:
            while tally[0]:
                column = _cheapest(walk.chosen, walk.score, walk.stamp, tally, np.int64(-1))
                if walk.score[column] > 0:
                    break
                _flip(walk, column)
            if tally[0] < size:
                for column in range(nothing - 1):
                    walk.columns[column].found = walk.columns[column].inside
                size, last = tally[0], step
            if size == 0:
                break
        if size < nothing:
            column = _cheapest(walk.chosen, walk.score, walk.stamp, tally, step)
            _flip(walk, column)
            walk.stamp[column] = step
            if tally[1] == 0:
                continue
        column = _best_for(walk, np.int64(walk.uncovered[np.random.randint(tally[1])]), step)  # noqa: NPY002
        _flip(walk, column)
        walk.stamp[column] = step
        if size < nothing:
            for index in range(tally[1]):
                _raise(walk, np.int64(walk.uncovered[index]), np.int64(1))
    return size, step


@inner
def _choose_kick(kicks: Kicks, group: Whole, walk: Walk) -> Whole:
    """How many columns to flip, put into `walk.kicked`: a group of kicks, or else helpers, or else some chosen ones."""
    count = np.int64(0)
    if group < len(kicks.start) - 1:
        for place in range(kicks.start[group], kicks.start[group + 1]):
            walk.kicked[count] = kicks.columns[place]
            count += 1
        return count
    helped = False
    for column in range(len(walk.score)):
        helped |= walk.columns[column].helper
        if walk.columns[column].helper and not walk.columns[column].inside:
            walk.kicked[count] = column
            count += 1
    return count if helped else _choose_some(walk.chosen, walk.kicked, walk.tally[0])


@inner
def _choose_some(chosen: SmallInts, kicked: SmallInts, total: Whole) -> Whole:
    """A tenth of the chosen columns and one more, put into `kicked` in random order."""
    for index in range(total):
        kicked[index] = chosen[index]
    for last in range(total - 1, 0, -1):
        other = np.random.randint(last + 1)  # noqa: NPY002
        kicked[last], kicked[other] = kicked[other], kicked[last]
    return np.int64(min(total, 1 + total // 10))


@kernel
def _search(walk: Walk, kicks: Kicks, work: int, patience: int, seed: int) -> None:
    """Descend by row weighting, kick the incumbent `best` and descend again, until the work is done."""
    np.random.seed(seed)  # noqa: NPY002  (kernels have only this generator)
    count = len(walk.score)
    step: Whole = np.int64(0)
    best_size: Whole = np.int64(count + 1)
    _start(walk)
    group = len(kicks.start) - 1
    while True:
        size, step = _descend(walk, step, patience)
        if size <= best_size:
            best_size = size
            for column in range(count):
                walk.columns[column].best = walk.columns[column].found
        if walk.tally[2] >= work or best_size <= 1:
            return
        for row in range(len(walk.uncovered)):
            if walk.rows[row].weight > 1:
                _raise(walk, row, 1 - walk.rows[row].weight)
        for kicking in range(2):  # back to the incumbent, then the kick; `_flip` is compiled into each place of its use
            many = _choose_kick(kicks, group, walk) if kicking else _choose_changed(walk.columns, walk.kicked)
            for index in range(many):
                kicked = np.int64(walk.kicked[index])
                _flip(walk, kicked)
                if kicking:
                    walk.stamp[kicked] = step
        group = np.random.randint(len(kicks.start))  # noqa: NPY002


@inner
def _choose_changed(columns: AnyArray, kicked: SmallInts) -> Whole:
    """In how many columns the incumbent differs from where the walk is; they are put into `kicked`."""
    count = np.int64(0)
    for column in range(len(columns) - 1):
        if columns[column].best != columns[column].inside:
            kicked[count] = column
            count += 1
    return count
