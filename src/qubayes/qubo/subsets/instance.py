"""The covering problem of one vertex: candidate sets, their subsets, and which lie in which.

A *row* is a candidate set W, a *column* a subset V that may become a member of the cover. The
columns inside a row have positions 0, 1, ... (at most 63 of them), so the part of a cover that lies
inside W is a word of bits, its *state*. The last position is W itself."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

import numpy as np

from ...foundation.arrays import AnyArray, Bools, Ints, SmallInts
from ...foundation.errors import QubayesError
from ...foundation.families import Families, VertexSet
from ...foundation.graph import renamed

MOST_POSITIONS = 63  # the sign bit of a state's pivot word says "covered"
LARGEST_ENUMERATED = 6  # 2^6 - 1 = 63 subsets
LARGEST_TABLED = 4  # 2^15 states
MOST_CLOSED = 20_000  # closed sets, where a candidate set is larger than LARGEST_ENUMERATED
ENTRY = np.dtype([("row", np.int32), ("position", np.int32)])  # entry of a column


class SetSystem(NamedTuple):
    """Distinct non-empty sets over the elements 0 .. len(elements) - 1, by size, then content.

    The order is canonical: it does not depend on the order in which the sets were given.
    """

    elements: SmallInts  # (k,) the vertex of each element, ascending
    sizes: Ints  # (sets,) number of members of each set, ascending
    members: SmallInts  # (sum of sizes,) elements, ascending inside a set

    def sets(self) -> list[VertexSet]:
        """Return the sets, each as ascending elements."""
        members, stops = self.members.tolist(), np.cumsum(self.sizes).tolist()
        return [
            tuple(members[stop - size : stop])
            for stop, size in zip(stops, self.sizes.tolist(), strict=True)
        ]

    def named(self, sets: Iterable[VertexSet]) -> list[VertexSet]:
        """Return the same sets with vertices in place of elements."""
        return renamed(sets, self.elements.tolist())


def sets_to_cover(families: Families, vertex: int) -> SetSystem:
    """Return the distinct non-empty sets W - base of one vertex, its base being the last set."""
    first, last = families.vertex_start[vertex : vertex + 2].tolist()
    starts = families.set_start[first : last + 1]
    members = families.members[starts[0] : starts[-1]]
    sizes = np.diff(starts)
    if len(sizes) and sizes[-1]:
        required = members[len(members) - sizes[-1] :]
        kept = np.isin(members, required, invert=True)
        remaining = np.bincount(np.repeat(np.arange(len(sizes)), sizes)[kept], minlength=len(sizes))
        if np.any(sizes - remaining != len(required)):
            raise QubayesError(
                f"vertex {vertex} has a candidate set without its required parents "
                f"{tuple(required.tolist())}; every set must contain the last one"
            )
        members, sizes = members[kept], remaining
    elements, numbers = np.unique(members, return_inverse=True)
    width = int(sizes.max(initial=0))
    matrix = np.full((len(sizes), width), -1, dtype=np.int32)
    matrix[np.arange(width) < sizes[:, None]] = numbers
    order = np.lexsort((*matrix.T[::-1], sizes))
    matrix, sizes = matrix[order], sizes[order]
    fresh = sizes > 0
    fresh[1:] &= np.any(matrix[1:] != matrix[:-1], axis=1)
    matrix = matrix[fresh]
    return SetSystem(elements.astype(np.int32), sizes[fresh], matrix[matrix >= 0])


def uncovered(system: SetSystem, members: Sequence[VertexSet]) -> Bools:
    """Return (sets,) which sets are neither a member nor the union of two members.

    Every cover is checked by it, so it uses no part of the covering code.
    """
    rows, chosen = _masks(system.sets()), _masks(members)
    missing = set(rows).difference(chosen)
    for place, mask in enumerate(chosen):
        if not missing:
            break
        missing.difference_update(map(mask.__or__, chosen[place + 1 :]))
    return np.array([row in missing for row in rows], dtype=np.bool_)


def _masks(sets: Iterable[VertexSet]) -> list[int]:
    """Return each set as a number whose bits are its elements."""
    return [sum(map((1).__lshift__, members)) for members in sets]


class Incidence(NamedTuple):
    """Rows, columns, and the positions of columns in rows."""

    row_start: Ints  # (rows + 1,)
    row_columns: SmallInts  # (row_start[-1],) the column at each position
    row_partners: Ints  # (rows,) where the row's masks start in `partners`
    # (rows,) where the row's states start in `pivot_table()`; -1: compute them from `partners`
    row_table: Ints
    # [start + p] has bit q if the columns at positions p and q have the row as their union
    partners: Ints
    column_start: Ints  # (columns + 1,)
    entries: AnyArray  # (column_start[-1],) of ENTRY, the rows of each column
    set_start: Ints  # (columns + 1,)
    members: SmallInts  # (set_start[-1],) elements of each column
    complete: bool  # every subset, or at least every closed one, is a column

    @property
    def rows(self) -> int:
        """Number of candidate sets."""
        return len(self.row_start) - 1

    @property
    def columns(self) -> int:
        """Number of subsets."""
        return len(self.column_start) - 1

    def sets(self, columns: Ints) -> list[VertexSet]:
        """Return the given columns as ascending elements."""
        starts, stops = self.set_start[columns].tolist(), self.set_start[columns + 1].tolist()
        return [tuple(self.members[a:b].tolist()) for a, b in zip(starts, stops, strict=True)]


def incidence_of(system: SetSystem, most_positions: int = MOST_POSITIONS) -> Incidence:
    """Return the rows of the sets and their subsets; of sets over six elements the closed ones.

    Of these a row has at most `most_positions`, itself among them.

    A set is closed if it is an intersection of candidate sets. Some smallest cover has closed
    members only: replacing V by the intersection of all candidate sets that contain V keeps every
    union that is a candidate set."""
    largest = int(system.sizes.max(initial=0))
    shift = len(system.elements).bit_length()
    if largest > LARGEST_ENUMERATED or largest * shift > 62:
        return _with_closed_subsets(system, most_positions)
    keys = _subset_keys(system, shift)
    order, column_start = _grouped(keys)
    distinct = keys[order[column_start[:-1]]]
    digits = (distinct[:, None] >> shift * np.arange(largest)) & ((1 << shift) - 1)
    starts, masks = partner_masks()
    tabled = np.minimum(system.sizes, LARGEST_TABLED)
    return _assembled(
        lengths=2**system.sizes - 1,
        ordered=(order, column_start),
        partners=(starts[system.sizes], masks),
        tables=np.where(system.sizes == tabled, table_starts()[tabled], -1),
        sets=(np.count_nonzero(digits, axis=1), digits[digits > 0] - 1),
        complete=True,
    )


def _subset_keys(system: SetSystem, shift: int) -> Ints:
    """Return for each set the key of each subset, by position.

    The digits of a key are the elements plus 1, so larger subsets have larger keys."""
    keys = []
    stop = 0
    for size, count in enumerate(np.bincount(system.sizes).tolist()):
        start = stop
        stop += size * count
        digits = system.members[start:stop].reshape(count, size).astype(np.int64) + 1
        own = np.zeros((count, 2**size), dtype=np.int64)
        for mask in range(1, 2**size):
            highest = mask.bit_length() - 1
            rest = mask ^ (1 << highest)
            own[:, mask] = own[:, rest] + (digits[:, highest] << (shift * rest.bit_count()))
        keys.append(own[:, 1:].ravel())
    return np.concatenate(keys)


def _with_closed_subsets(system: SetSystem, most_positions: int) -> Incidence:
    """Return the rows of the sets and their closed subsets."""
    rows = _masks(system.sets())
    closed, all_found = _intersections(rows)
    inside, all_kept = _closed_inside(rows, closed, most_positions)
    lengths = np.array(list(map(len, inside)), dtype=np.int64)
    number = {mask: place for place, mask in enumerate(closed)}
    keys = np.array([number[mask] for mask in chain.from_iterable(inside)], dtype=np.int64)
    order, column_start = _grouped(keys)
    columns = [closed[key] for key in keys[order[column_start[:-1]]].tolist()]
    members = [_elements(mask, len(system.elements)) for mask in columns]
    masks = np.fromiter(chain.from_iterable(map(_partners, inside)), np.int64)
    return _assembled(
        lengths=lengths,
        ordered=(order, column_start),
        partners=(np.cumsum(lengths) - lengths, masks),
        tables=np.full(len(rows), -1),
        sets=(
            np.array(list(map(len, members))),
            np.fromiter(chain.from_iterable(members), np.int64),
        ),
        complete=all_found and all_kept,
    )


def _closed_inside(rows: list[int], closed: list[int], most: int) -> tuple[list[list[int]], bool]:
    """Return for each row the closed subsets with the row last, and whether none is left out.

    Where a row has too many it keeps those that most rows share."""
    shared = {mask: sum(mask & row == mask for row in rows) for mask in closed}
    inside = []
    complete = True
    for row in rows:
        smaller = [mask for mask in closed if mask & row == mask and mask != row]
        if len(smaller) >= most:
            kept = {*sorted(smaller, key=lambda mask: -shared[mask])[: most - 1]}
            smaller = [mask for mask in smaller if mask in kept]
            complete = False
        inside.append([*smaller, row])
    return inside, complete


def _elements(mask: int, count: int) -> list[int]:
    """Return the elements of a set, ascending."""
    return [element for element in range(count) if mask >> element & 1]


def _partners(positions: Sequence[int]) -> list[int]:
    """Return for the subset at each position of a row those that complete it to the row."""
    row = max(positions, default=0)
    result = []
    for one in positions:
        word = 0
        for position, other in enumerate(positions):
            if one | other == row:
                word |= 1 << position
        result.append(word)
    return result


def _intersections(rows: list[int]) -> tuple[list[int], bool]:
    """Return the non-empty intersections of rows, smaller first, and whether these are all."""
    found = dict.fromkeys(rows)
    complete = _add_intersections(found, rows)
    return sorted(found, key=lambda mask: (mask.bit_count(), mask)), complete


def _add_intersections(found: dict[int, None], rows: list[int]) -> bool:
    """Add the intersections of rows to the rows; return False if they exceed MOST_CLOSED."""
    queue = list(rows)
    for column in queue:  # grows while it is read
        for row in rows:
            common = column & row
            if common and common not in found:
                if len(found) >= MOST_CLOSED:
                    return False
                found[common] = None
                queue.append(common)
    return True


def _grouped(keys: Ints) -> tuple[Ints, Ints]:
    """Return the order that sorts the keys, and where equal ones start in it."""
    order = np.argsort(keys, kind="stable")
    ascending = keys[order]
    fresh = np.append(True, ascending[1:] != ascending[:-1])
    return order, np.append(np.flatnonzero(fresh), len(keys))


def _assembled(
    *,
    lengths: Ints,
    ordered: tuple[Ints, Ints],
    partners: tuple[Ints, Ints],
    tables: Ints,
    sets: tuple[Ints, Ints],
    complete: bool,
) -> Incidence:
    """Return the incidence.

    `ordered` has the order of the entries, given row by row, by column, and the column starts."""
    order, column_start = ordered
    row_start = np.concatenate([[0], np.cumsum(lengths)])
    entries = np.empty(len(order), ENTRY)
    entries["row"] = np.repeat(np.arange(len(lengths)), lengths)
    entries["position"] = np.arange(len(order)) - row_start[entries["row"]]
    row_columns = np.empty(len(order), dtype=np.int32)
    row_columns[order] = np.repeat(
        np.arange(len(column_start) - 1, dtype=np.int32), np.diff(column_start)
    )
    lengths_of_sets, members = sets
    return Incidence(
        row_start=row_start,
        row_columns=row_columns,
        row_partners=partners[0],
        row_table=tables,
        partners=partners[1],
        column_start=column_start,
        entries=entries[order],
        set_start=np.concatenate([[0], np.cumsum(lengths_of_sets)]),
        members=members.astype(np.int32),
        complete=complete,
    )


@lru_cache(maxsize=1)
def partner_masks() -> tuple[Ints, Ints]:
    """Return (starts, masks) of sets with k elements, where a subset's position is its mask - 1."""
    starts: list[int] = []
    masks: list[int] = []
    for size in range(LARGEST_ENUMERATED + 1):
        starts.append(len(masks))
        masks += _partners(range(1, 2**size))
    return np.array(starts), np.array(masks, dtype=np.int64)


@lru_cache(maxsize=1)
def table_starts() -> Ints:
    """Return where the states of sets with k elements start in `pivot_table()`."""
    return np.concatenate([[0], np.cumsum([2 ** (2**size - 1) for size in range(LARGEST_TABLED)])])


@lru_cache(maxsize=1)
def pivot_table() -> Ints:
    """Return the pivots of each state of a set of up to four elements; the sign bit if covered.

    A pivot is a position whose flip makes a covered set uncovered, or an uncovered one covered.
    """
    starts, masks = partner_masks()
    tables = []
    for size in range(LARGEST_TABLED + 1):
        positions = range(2**size - 1)
        states = np.arange(2 ** len(positions))
        covered = np.zeros(len(states), dtype=bool)
        for p in positions:
            covered |= (states >> p & 1 == 1) & (states & masks[starts[size] + p] != 0)
        words = np.where(covered, np.int64(-(2**63)), np.int64(0))
        for p in positions:
            words |= (covered != covered[states ^ (1 << p)]).astype(np.int64) << p
        tables.append(words)
    return np.concatenate(tables)
