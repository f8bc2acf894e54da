"""The covering problem of one vertex: its candidate sets, their subsets, and which subsets lie in which sets.

A *row* is a candidate set W, a *column* a subset V that may become a member of the cover. The columns inside a row have
positions 0, 1, ... (at most 63 of them), so the part of a cover that lies inside W is a word of bits, its *state*. The
last position is W itself.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ...foundation.arrays import Bools, Ints, SmallInts
from ...foundation.errors import QubayesError
from ...foundation.families import Families, VertexSet

MOST_POSITIONS = 63  # the sign bit of a state's pivot word says "covered"
LARGEST_ENUMERATED = 6  # 2^6 - 1 = 63 subsets
LARGEST_TABLED = 4  # 2^15 states
MOST_CLOSED = 20_000  # closed sets, where a candidate set is larger than LARGEST_ENUMERATED


class SetSystem(NamedTuple):
    """Distinct non-empty sets over the elements 0 .. len(elements) - 1, smaller first, then lexicographic.

    The order is canonical: it does not depend on the order in which the sets were given.
    """

    elements: SmallInts  # (k,) the vertex of each element, ascending
    sizes: Ints  # (sets,) number of members of each set, ascending
    members: SmallInts  # (sum of sizes,) elements, ascending inside a set

    def sets(self) -> list[VertexSet]:
        """Return the sets, each as ascending elements."""
        members, stops = self.members.tolist(), np.cumsum(self.sizes).tolist()
        return [tuple(members[stop - size : stop]) for stop, size in zip(stops, self.sizes.tolist(), strict=True)]

    def named(self, sets: Iterable[VertexSet]) -> list[VertexSet]:
        """Return the same sets with vertices in place of elements."""
        elements = self.elements.tolist()
        return [tuple(elements[element] for element in members) for members in sets]


def sets_to_cover(families: Families, vertex: int) -> SetSystem:
    """Return the sets W - base of one vertex, its base being the last set, without the empty set and repetitions."""
    first, last = int(families.vertex_start[vertex]), int(families.vertex_start[vertex + 1])
    starts = families.set_start[first : last + 1]
    members, sizes = families.members[starts[0] : starts[-1]], np.diff(starts)
    if len(sizes) and sizes[-1]:
        required = members[len(members) - sizes[-1] :]
        kept = np.isin(members, required, invert=True)
        remaining = np.bincount(np.repeat(np.arange(len(sizes)), sizes)[kept], minlength=len(sizes))
        if np.any(sizes - remaining != len(required)):
            raise QubayesError(
                f"vertex {vertex} has a candidate set without its required parents {tuple(required.tolist())}; "
                "every set must contain the last one"
            )
        members, sizes = members[kept], remaining
    return _canonical(sizes, members)


def set_system(sets: Sequence[Iterable[int]]) -> SetSystem:
    """Return the set system of the given sets."""
    lists = [sorted(set(members)) for members in sets]
    members = np.array([member for own in lists for member in own], dtype=np.int32)
    return _canonical(np.array([len(own) for own in lists], dtype=np.int64), members)


def _canonical(sizes: Ints, members: SmallInts) -> SetSystem:
    elements, numbers = np.unique(members, return_inverse=True)
    width = int(sizes.max(initial=0))
    filled = np.arange(width) < sizes[:, None]
    matrix = np.full((len(sizes), width), -1, dtype=np.int32)
    matrix[filled] = numbers
    order = np.lexsort((*matrix.T[::-1], sizes))
    matrix, sizes = matrix[order], sizes[order]
    fresh = np.ones(len(sizes), dtype=bool)
    fresh[1:] = np.any(matrix[1:] != matrix[:-1], axis=1)
    fresh &= sizes > 0
    matrix, sizes = matrix[fresh], sizes[fresh]
    return SetSystem(elements.astype(np.int32), sizes, matrix[matrix >= 0])


def uncovered(system: SetSystem, members: Sequence[VertexSet]) -> Bools:
    """Return (sets,) which sets are neither a member nor the union of two members, from the definition.

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
    masks = []
    for members in sets:
        mask = 0
        for element in members:
            mask |= 1 << element
        masks.append(mask)
    return masks


class Incidence(NamedTuple):
    """Rows, columns, and the positions of columns in rows."""

    row_start: Ints  # (rows + 1,)
    row_columns: SmallInts  # (row_start[-1],) the column at each position
    row_partners: Ints  # (rows,) where the row's masks start in `partners`
    row_table: Ints  # (rows,) where the row's states start in `pivot_table()`; -1: compute them from `partners`
    partners: Ints  # [start + p] has bit q if the columns at positions p and q have the row as their union
    column_start: Ints  # (columns + 1,)
    column_rows: SmallInts  # (column_start[-1],)
    column_positions: SmallInts  # (column_start[-1],)
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


def incidence_of(system: SetSystem) -> Incidence:
    """Return the rows of the sets and all their subsets; only closed subsets if a set has more than six elements.

    A set is closed if it is an intersection of candidate sets. Some smallest cover has closed members only: replacing V
    by the intersection of all candidate sets that contain V keeps every union that is a candidate set.
    """
    largest = int(system.sizes.max(initial=0))
    if largest <= LARGEST_ENUMERATED and largest * len(system.elements).bit_length() <= 62:
        return _enumerated(system)
    return _closed(system)


def _enumerated(system: SetSystem) -> Incidence:
    shift = len(system.elements).bit_length()
    counts = np.bincount(system.sizes, minlength=1)
    keys, stop = [], 0
    for size, count in enumerate(counts.tolist()):
        block = system.members[stop : stop + size * count].reshape(count, size)
        stop += size * count
        if size and count:
            keys.append(_subset_keys(block, shift).ravel())
    flat = np.concatenate(keys)
    order = np.argsort(flat, kind="stable")
    ascending = flat[order]
    fresh = np.append(True, ascending[1:] != ascending[:-1])
    starts, masks = partner_masks()
    tabled = system.sizes <= LARGEST_TABLED
    return _assemble(
        lengths=2**system.sizes - 1,
        ordered=(order, np.append(np.flatnonzero(fresh), len(flat))),
        partners=(starts[system.sizes], masks),
        tables=np.where(tabled, table_starts()[np.minimum(system.sizes, LARGEST_TABLED)], -1),
        sets=_decoded(ascending[fresh], shift),
        complete=True,
    )


def _subset_keys(block: SmallInts, shift: int) -> Ints:
    """Return (sets, 2^k - 1) a key of each subset; larger subsets have larger keys."""
    count, size = block.shape
    keys = np.zeros((count, 2**size), dtype=np.int64)
    for mask in range(1, 2**size):
        highest = mask.bit_length() - 1
        rest = mask ^ (1 << highest)
        keys[:, mask] = keys[:, rest] + ((block[:, highest].astype(np.int64) + 1) << (shift * rest.bit_count()))
    return keys[:, 1:]


def _decoded(keys: Ints, shift: int) -> tuple[Ints, SmallInts]:
    digits = [
        (keys >> (shift * place)) & ((1 << shift) - 1) for place in range(LARGEST_ENUMERATED) if shift * place < 63
    ]
    table = np.stack(digits, axis=1)
    return np.concatenate([[0], np.cumsum((table > 0).sum(axis=1))]), (table[table > 0] - 1).astype(np.int32)


def _assemble(
    *,
    lengths: Ints,
    ordered: tuple[Ints, Ints],
    partners: tuple[Ints, Ints],
    tables: Ints,
    sets: tuple[Ints, SmallInts],
    complete: bool,
) -> Incidence:
    """Return the incidence; `ordered` are the entries, row by row, in the order of their columns, and column starts."""
    order, column_start = ordered
    row_start = np.concatenate([[0], np.cumsum(lengths)])
    owner = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
    position = (np.arange(row_start[-1]) - row_start[owner]).astype(np.int32)
    row_columns = np.empty(len(order), dtype=np.int32)
    row_columns[order] = np.repeat(np.arange(len(column_start) - 1, dtype=np.int32), np.diff(column_start))
    return Incidence(
        row_start,
        row_columns,
        partners[0],
        tables,
        partners[1],
        column_start,
        owner[order],
        position[order],
        *sets,
        complete,
    )


@lru_cache(maxsize=1)
def partner_masks() -> tuple[Ints, Ints]:
    """Return (starts, masks) of sets with k elements, where the position of a subset is its mask - 1."""
    starts, masks = [0], []
    for size in range(LARGEST_ENUMERATED + 1):
        full = 2**size - 1
        masks += [sum(1 << (q - 1) for q in range(1, full + 1) if p | q == full) for p in range(1, full + 1)]
        starts.append(len(masks))
    return np.array(starts[:-1]), np.array(masks, dtype=np.int64)


@lru_cache(maxsize=1)
def table_starts() -> Ints:
    """Return where the states of sets with k elements start in `pivot_table()`."""
    return np.concatenate([[0], np.cumsum([2 ** (2**size - 1) for size in range(LARGEST_TABLED)])])


@lru_cache(maxsize=1)
def pivot_table() -> Ints:
    """Return for each state of a set with at most four elements the deciding positions, and the sign bit if covered.

    A position decides if flipping it makes a covered set uncovered or an uncovered one covered.
    """
    return np.concatenate([_pivots(size) for size in range(LARGEST_TABLED + 1)])


def _pivots(size: int) -> Ints:
    states = np.arange(2 ** (2**size - 1))
    starts, masks = partner_masks()
    covered = np.zeros(len(states), dtype=bool)
    for p in range(2**size - 1):
        covered |= (states >> p & 1 == 1) & (states & masks[starts[size] + p] != 0)
    words = np.where(covered, np.int64(-(2**63)), np.int64(0))
    for p in range(2**size - 1):
        words |= (covered != covered[states ^ (1 << p)]).astype(np.int64) << p
    return words


def _closed(system: SetSystem) -> Incidence:
    rows = _masks(system.sets())
    columns, complete = _intersections(rows)
    number = {column: index for index, column in enumerate(columns)}
    popularity = {column: sum(column & row == column for row in rows) for column in columns}
    inside: list[list[int]] = []
    for row in rows:
        smaller = [column for column in columns if column & row == column and column != row]
        if len(smaller) >= MOST_POSITIONS:  # keep what most rows can share
            smaller = sorted(smaller, key=lambda column: (-popularity[column], number[column]))[: MOST_POSITIONS - 1]
            smaller, complete = sorted(smaller, key=number.__getitem__), False
        inside.append([*smaller, row])
    masks = [sum(1 << q for q, other in enumerate(own) if p | other == own[-1]) for own in inside for p in own]
    lengths = np.array([len(own) for own in inside], dtype=np.int64)
    numbers = np.array([number[column] for own in inside for column in own], dtype=np.int64)
    order = np.argsort(numbers, kind="stable")
    members = [[e for e in range(len(system.elements)) if column >> e & 1] for column in columns]
    return _assemble(
        lengths=lengths,
        ordered=(order, np.searchsorted(numbers[order], np.arange(len(columns) + 1))),
        partners=(np.concatenate([[0], np.cumsum(lengths)[:-1]]), np.array(masks, dtype=np.int64)),
        tables=np.full(len(rows), -1),
        sets=(
            np.cumsum([0, *map(len, members)], dtype=np.int64),
            np.array([e for own in members for e in own], dtype=np.int32),
        ),
        complete=complete,
    )


def _intersections(rows: list[int]) -> tuple[list[int], bool]:
    """Return the non-empty intersections of rows, smaller first, and whether these are all."""
    found = dict.fromkeys(rows)
    queue = list(rows)
    for column in queue:
        for row in rows:
            common = column & row
            if common and common not in found:
                if len(found) >= MOST_CLOSED:
                    return sorted(found, key=lambda mask: (mask.bit_count(), mask)), False
                found[common] = None
                queue.append(common)
    return sorted(found, key=lambda mask: (mask.bit_count(), mask)), True
