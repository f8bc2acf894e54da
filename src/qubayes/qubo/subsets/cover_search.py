"""Local search for a small cover of a core: row weighting, with kicks (docs/subsets.md).

A descent removes the chosen column that uncovers least weight, covers a random uncovered row by the
column that covers most weight, and raises the weights of the rows that are still uncovered. After
`patience` steps without a smaller cover the search returns to the best cover, flips a group of
columns (a kick), and descends again."""

from typing import NamedTuple

import numpy as np

from ...foundation.arrays import AnyArray, Bools, Ints, SmallInts, Words
from ...foundation.jit import inner, kernel
from ...foundation.random import below, random_stream
from .instance import Incidence, pivot_table
from .reductions import Core

COVERED_BIT = np.iinfo(np.int64).min  # the sign bit of a pivot word
MAX_INT = np.iinfo(np.int64).max
PLACES = np.zeros(67, dtype=np.int64)  # 2^p mod 67 differs for p < 66: the place of a lone bit
PLACES[[pow(2, p, 67) for p in range(63)]] = np.arange(63)
PLACES.setflags(write=False)

# What a flip touches of a row lies together in memory, and a kernel takes one array in place of
# eight: it compiles in half the time.
WALK_ROW = np.dtype(
    [
        ("state", np.int64),  # positions of closed and chosen columns
        # positions whose flip covers or uncovers the row, and the sign bit if it is covered
        ("pivots", np.int64),
        ("weight", np.int64),
        ("open", np.int64),  # positions of open columns
        ("start", np.int64),  # where its columns start
        # where its states start in the table of pivots; -1: compute them from the partners
        ("table", np.int64),
        ("place", np.int64),  # index in `uncovered`
        ("partners", np.int64),  # where its masks start
    ]
)
WALK_COLUMN = np.dtype(
    [
        ("start", np.int64),  # where its rows start
        ("place", np.int32),  # index in `chosen`
        ("inside", np.bool_),
        ("found", np.bool_),  # in the smallest cover of the last descent
        ("best", np.bool_),  # in the smallest cover so far
    ]
)


class Kicks(NamedTuple):
    """Groups of columns that are flipped together to leave a local optimum.

    Of the last group, columns are only added."""

    start: Ints  # (groups + 1,)
    columns: Ints


class CoverWalk(NamedTuple):
    """The core as kernels see it, and the state of the search."""

    rows: AnyArray  # (rows + 1,) of WALK_ROW
    columns: AnyArray  # (columns + 1,) of WALK_COLUMN
    row_columns: SmallInts  # the columns of each row, -1 where none is open
    entries: AnyArray  # of ENTRY, the rows of each column
    partners: Ints
    table: Ints  # of pivots
    score: Ints  # (columns,) weight of the rows that flipping the column uncovers or covers
    stamp: Ints  # (columns,) step of the last flip
    chosen: Ints  # (columns,) the first `tally[0]` are inside
    uncovered: Ints  # (rows,) the first `tally[1]` are not covered
    kicked: Ints  # (columns,) scratch
    tally: Ints  # (4,) chosen columns, uncovered rows, row updates so far, steps so far
    words: Words  # state of the random stream


def search(core: Core, incidence: Incidence, *, work: int, seed: int) -> Bools:
    """Return a cover of the core: whether each of its columns is chosen. Repeatable."""
    walk = walk_of(core, seed)
    patience = 10 + len(core.columns) // 16
    search_walk(walk, kicks_of(core, incidence, walk.score), work, patience)
    return walk.columns["best"][:-1].copy()


def walk_of(core: Core, seed: int) -> CoverWalk:
    """Return the state before the first step: nothing chosen, no row covered, every weight 1."""
    rows = np.zeros(len(core.fixed) + 1, WALK_ROW)
    rows["start"] = core.row_start
    rows["state"][:-1] = core.fixed
    rows["open"][:-1] = core.open
    rows["table"][:-1] = core.row_table
    rows["partners"][:-1] = core.row_partners
    rows["weight"] = 1
    rows["place"] = np.arange(len(rows))
    columns = np.zeros(len(core.columns) + 1, WALK_COLUMN)
    columns["start"] = core.column_start
    row = core.entries["row"]
    position = core.entries["position"].astype(np.int64)
    bit = np.int64(1) << position
    partners = core.partners[core.row_partners[row] + position]
    decides = partners & (core.fixed[row] | bit) != 0
    np.bitwise_or.at(rows["pivots"], row[decides], bit[decides])
    owner = np.repeat(np.arange(len(core.columns)), np.diff(core.column_start))
    return CoverWalk(
        rows=rows,
        columns=columns,
        row_columns=core.row_columns,
        entries=core.entries,
        partners=core.partners,
        table=pivot_table(),
        score=np.bincount(owner[decides], minlength=len(core.columns)),
        stamp=np.zeros(len(core.columns), np.int64),
        chosen=np.zeros(len(core.columns), np.int64),
        uncovered=np.arange(len(core.fixed)),
        kicked=np.zeros(len(core.columns), np.int64),
        tally=np.array([0, len(core.fixed), 0, 0]),
        words=random_stream(seed),
    )


def kicks_of(core: Core, incidence: Incidence, scores: Ints) -> Kicks:
    """Return the kicks: each open singleton, the open pairs with each element, and the helpers.

    Helpers are the columns that cover no row alone, and pay only together. If there are none, the
    last group is a tenth of the chosen columns. `scores` are those before the first step."""
    helpers = np.flatnonzero(scores == 0)
    sizes = np.diff(incidence.set_start)[core.columns]
    first = incidence.set_start[core.columns]
    pairs, singles = np.flatnonzero(sizes == 2), np.flatnonzero(sizes == 1)
    ends = np.concatenate([incidence.members[first[pairs]], incidence.members[first[pairs] + 1]])
    order = np.argsort(ends, kind="stable")
    counts = np.bincount(ends, minlength=1)
    lengths = np.concatenate(
        [np.ones(len(singles), dtype=np.int64), counts[counts > 0], [len(helpers)]]
    )
    columns = np.concatenate([singles, np.tile(pairs, 2)[order], helpers])
    return Kicks(np.concatenate([[0], np.cumsum(lengths)]), columns)


@inner
def _pivots(walk: CoverWalk, row: int, state: int) -> int:
    """Return the word of `pivot_table` for a row that is too large for it."""
    length = walk.rows[row + 1].start - walk.rows[row].start
    first = walk.rows[row].partners
    covered = False
    word = 0
    keep = MAX_INT  # positions without which the row is not covered
    for p in range(length):
        mates = walk.partners[first + p] & state
        if state >> p & 1 and mates != 0:
            covered = True
            replaceable = mates >> p & 1 or mates & (mates - 1)  # itself, or several partners
            keep &= 1 << p if replaceable else 1 << p | mates
        elif walk.partners[first + p] & (state | 1 << p):
            word |= 1 << p
    return keep | COVERED_BIT if covered else word


@inner
def _flip(walk: CoverWalk, column: int) -> None:
    """Take the column in or out, and update states, scores and lists."""
    rows = walk.rows
    columns = walk.columns
    tally = walk.tally
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
        number = walk.entries[entry].row
        row = rows[number]
        state = row.state ^ 1 << walk.entries[entry].position
        old = row.pivots
        new = walk.table[row.table + state] if row.table >= 0 else _pivots(walk, number, state)
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
def _raise(walk: CoverWalk, row: int, amount: int) -> None:
    """Add to the weight of a row."""
    record = walk.rows[row]
    record.weight += amount
    changed = record.pivots & record.open
    while changed:
        low = changed & -changed
        changed ^= low
        walk.score[walk.row_columns[record.start + PLACES[low % 67]]] += amount


@inner
def _best_for(walk: CoverWalk, row: int, step: int) -> int:
    """Return the column that covers this uncovered row and most weight, or the oldest flip."""
    best = -1
    score = -1
    stamp = 0
    choices = walk.rows[row].pivots & walk.rows[row].open
    while choices:
        low = choices & -choices
        choices ^= low
        column = walk.row_columns[walk.rows[row].start + PLACES[low % 67]]
        if walk.stamp[column] == step and choices:
            continue
        older = walk.score[column] == score and walk.stamp[column] < stamp
        if walk.score[column] > score or older:
            best = column
            score = walk.score[column]
            stamp = walk.stamp[column]
    return best


@inner
def _cheapest(walk: CoverWalk, barred: int) -> int:
    """Return the chosen column whose removal uncovers least weight.

    One with the barred stamp is returned only if it is alone."""
    chosen = walk.chosen
    scores = walk.score
    stamps = walk.stamp
    count = walk.tally[0]
    best = chosen[0]
    score = MAX_INT
    stamp = 0
    walk.tally[2] += count >> 3
    for index in range(count):
        column = chosen[index]
        if scores[column] > score or (stamps[column] == barred and count > 1):
            continue
        if scores[column] < score or stamps[column] < stamp:
            best = column
            score = scores[column]
            stamp = stamps[column]
    return best  # type: ignore[no-any-return]


@inner
def _descend(walk: CoverWalk, patience: int) -> int:
    """Cover what is open, then walk at one column less than the smallest cover so far.

    That cover is kept as `found`. Ends after `patience` steps without a smaller one; returns its
    size."""
    tally = walk.tally
    nothing = len(walk.score) + 1
    size = nothing
    step = tally[3]
    last = step
    while step - last <= patience or size == nothing:
        step += 1
        if tally[1] == 0:
            while tally[0]:
                column = _cheapest(walk, -step)  # stamps are not negative: none is barred
                if walk.score[column] > 0:
                    break
                _flip(walk, column)
            if tally[0] < size:
                for number in range(nothing - 1):
                    walk.columns[number].found = walk.columns[number].inside
                size = tally[0]
                last = step
            if size == 0:
                break
        if size < nothing:
            column = _cheapest(walk, step - 1)
            _flip(walk, column)
            walk.stamp[column] = step
            if tally[1] == 0:
                continue
        column = _best_for(walk, walk.uncovered[below(walk.words, tally[1])], step)
        _flip(walk, column)
        walk.stamp[column] = step
        if size < nothing:
            for index in range(tally[1]):
                _raise(walk, walk.uncovered[index], 1)
    tally[3] = step
    return size


@inner
def _choose_flips(walk: CoverWalk, kicks: Kicks, group: int) -> int:
    """Put the columns of a kick into `walk.kicked`; return their number.

    Group -1 is what differs from the best cover."""
    columns = walk.columns
    kicked = walk.kicked
    total = walk.tally[0]
    if group < 0:
        count = 0
        for column in range(len(walk.score)):
            if columns[column].best != columns[column].inside:
                kicked[count] = column
                count += 1
        return count
    first, end = kicks.start[group], kicks.start[group + 1]
    if first < end:
        count = 0
        for place in range(first, end):
            if group < len(kicks.start) - 2 or not columns[kicks.columns[place]].inside:
                kicked[count] = kicks.columns[place]
                count += 1
        return count
    for index in range(total):
        kicked[index] = walk.chosen[index]
    for last in range(total - 1, 0, -1):
        other = below(walk.words, last + 1)
        kicked[last], kicked[other] = kicked[other], kicked[last]
    return min(total, 1 + total // 10)  # type: ignore[no-any-return]


@kernel
def search_walk(walk: CoverWalk, kicks: Kicks, work: int, patience: int) -> None:
    """Descend by row weighting, kick the best cover and descend again, until the work is done.

    A kick sets all weights to 1, returns to the best cover, and flips a group of columns.
    """
    groups = len(kicks.start) - 1
    columns = len(walk.score)
    best_size = columns + 1
    group = groups - 1
    while True:
        size = _descend(walk, patience)
        if size <= best_size:
            best_size = size
            for column in range(columns):
                walk.columns[column].best = walk.columns[column].found
        if walk.tally[2] >= work or best_size <= 1:
            return
        for row in range(len(walk.uncovered)):
            if walk.rows[row].weight > 1:
                _raise(walk, row, 1 - walk.rows[row].weight)
        # First back to the best cover. One loop: `_flip` is compiled into each place that calls it.
        for kicking in range(2):
            for index in range(_choose_flips(walk, kicks, group if kicking else -1)):
                _flip(walk, walk.kicked[index])
                if kicking:
                    walk.stamp[walk.kicked[index]] = walk.tally[3]
        group = below(walk.words, groups)
